// SPDX-License-Identifier: Apache-2.0
#include "scaling.h"

#include <math.h>

#define BOX 1048576.0  // bytes that ranks of one machine exchange at a time (runtime/comm/window.h)

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

// The least mean of `chunk` numbers in a row.
static double quickest(const double *steps, size_t count, size_t chunk) {
    double least = INFINITY;
    for (size_t i = 0; i + chunk <= count; i += chunk) {
        double sum = 0;
        for (size_t k = 0; k < chunk; k++) {
            sum += steps[i + k];
        }
        least = fmin(least, sum / (double)chunk);
    }
    return least;
}

struct scaling_alone scaling_alone_of(const double *steps, size_t ranks, size_t count,
                                      size_t chunk) {
    struct scaling_alone alone = {0};
    double together = INFINITY;
    chunk = chunk < count ? chunk : count;
    for (size_t r = 0; r < ranks; r++) {
        alone.step = fmax(alone.step, quickest(steps + r * count, count, chunk));
    }
    for (size_t i = 0; i + chunk <= count; i += chunk) {
        double sum = 0;
        for (size_t k = 0; k < chunk; k++) {
            double slowest = 0;
            for (size_t r = 0; r < ranks; r++) {
                slowest = fmax(slowest, steps[r * count + i + k]);
            }
            sum += slowest;
        }
        together = fmin(together, sum / (double)chunk);
    }
    alone.wait = count > 0 ? fmax(0, together - alone.step) : 0;
    return alone;
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

double scaling_buckets(double bytes) {
    return fmin(fmax(bytes / SCALING_BUCKET, 1), SCALING_BUCKETS);
}

struct scaling_parts scaling_cluster_sum(const struct link *link, double gpus, double bytes,
                                         double pieces, double passes) {
    struct cluster c = cluster_of(link, gpus);
    double copy = bytes / (SCALING_COPY_SHARE * link->copy), machine = c.here * bytes;
    double inner = 2 * machine * (c.here - 1) / c.all, outer = machine * (c.all - c.here) / c.all;
    struct scaling_parts p = {.readback = copy, .upload = copy};
    if (c.all > c.here) {
        passes += 3 * (c.all - 1) / c.all + 2 / c.all + 2;
        p.network = pieces * (c.all - 1 + log2(c.all)) * c.latency +
                    2 * (inner / c.memory + outer / c.network);
    } else {
        passes += c.all > 2 ? 5 + 1 / c.all : 5;
        p.network = (c.all > 2 ? 2 : 1) * fmax(ceil(bytes / BOX), pieces) * c.latency;
    }
    p.host = machine * passes / c.memory;
    return p;
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
