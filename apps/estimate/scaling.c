// SPDX-License-Identifier: Apache-2.0
#include "scaling.h"

#include <math.h>

double scaling_line_at(const struct scaling_line *line, double bytes) {
    return line->latency + (line->rate > 0 ? bytes / line->rate : 0);
}

struct scaling_line scaling_line_of(const double bytes[2], const double seconds[2]) {
    double more = bytes[1] - bytes[0], longer = seconds[1] - seconds[0];
    double latency = more > 0 ? seconds[0] - longer / more * bytes[0] : -1;
    if (!(longer > 0) || !(latency >= 0)) {
        return (struct scaling_line){0, seconds[1] > 0 ? bytes[1] / seconds[1] : 0};
    }
    return (struct scaling_line){latency, more / longer};
}

double scaling_sum(const struct scaling_parts *p) {
    return p->readback + p->host + p->network + p->upload;
}

double scaling_step(double compute, const struct scaling_parts *p, double overlap) {
    return compute + (1 - overlap) * scaling_sum(p);
}

double scaling_overlap(double step, double compute, double alone) {
    double hidden = alone > 0 ? 1 - (step - compute) / alone : 0;
    return fmin(1, fmax(0, hidden));
}

double scaling_efficiency(double one, double several, double ranks) {
    return one / (several * ranks);
}
