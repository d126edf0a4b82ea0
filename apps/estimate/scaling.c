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

double scaling_overlap(double step, double compute, double alone) {
    double hidden = alone > 0 ? 1 - (step - compute) / alone : 0;
    return fmin(1, fmax(0, hidden));
}

// Of N GPUs, G on each machine.
struct cluster {
    double all, here, latency, memory, network;
};

static struct cluster cluster_of(const struct link *link, double gpus) {
    double here = fmin(link->gpus, gpus);
    return (struct cluster){.all = gpus,
                            .here = here,
                            .latency = gpus > here ? link->latency : SCALING_INNER_LATENCY,
                            .memory = SCALING_MEMORY_SHARE * link->memory,
                            .network = SCALING_NETWORK_SHARE * link->network};
}

struct scaling_parts scaling_cluster_sum(const struct link *link, double gpus, double bytes) {
    struct cluster c = cluster_of(link, gpus);
    double copy = bytes / (SCALING_COPY_SHARE * link->copy), machine = c.here * bytes;
    double inner = 2 * machine * (c.here - 1) / c.all, outer = machine * (c.all - c.here) / c.all;
    return (struct scaling_parts){
        .readback = copy,
        .host = machine * (4 + 3 * (c.all - 1) / c.all) / c.memory,
        .network =
            (c.all - 1 + log2(c.all)) * c.latency + 2 * (inner / c.memory + outer / c.network),
        .upload = copy,
    };
}

struct scaling_parts scaling_cluster_gather(const struct link *link, double gpus, double bytes) {
    struct cluster c = cluster_of(link, gpus);
    double inner = 2 * c.here * c.all * bytes, outer = c.here * (c.all - c.here) * bytes;
    return (struct scaling_parts){.network = log2(c.all) * c.latency + inner / c.memory +
                                             outer / c.network};
}

double scaling_hidden(double compute, double exchange, double overlap) {
    return fmin(overlap * exchange, SCALING_BACKWARD * compute);
}

double scaling_efficiency(double one, double several, double ranks) {
    return one / (several * ranks);
}
