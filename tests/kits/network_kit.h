// SPDX-License-Identifier: Apache-2.0
// Networks as lists of layers to check: their learners, samples and parameters by formula.
#ifndef TEST_NETWORK_KIT_H
#define TEST_NETWORK_KIT_H

#include "gpurt/network.h"
#include "learn_kit.h"

#define NETWORK_SAMPLES 10

struct network_case {
    const char *text;
    struct oracle_network oracle;
    uint32_t outputs;
    double bound;  // roundings on the way, in units of the largest gradient, for f32
    bool driver;   // on drivers too: every case there is kernels to compile
};

// Samples and targets of a case, in the numbers that the device computes with, and in upload
// buffers.
struct network_samples {
    double *x, *y;
    struct grt_buf *bx, *by;
};

struct network_samples network_samples_make(const struct network_case *c, enum grt_dtype dtype);
void network_samples_end(struct network_samples *s);
struct grt_learner *network_create(const struct network_case *c, enum grt_dtype dtype,
                                   uint32_t accumulate, const char *variant);
// Every parameter a number of its own place, those of norms around 1 and 0; *count tensors, each
// allocated.
double **network_set_parameters(struct grt_learner *learner, enum grt_dtype dtype, size_t *count);
void network_free_parameters(double **params, size_t count);

#endif
