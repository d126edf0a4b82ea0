// SPDX-License-Identifier: Apache-2.0
// What the benchmark of convolutions and its check share.
#ifndef GPURT_BENCH_CONV_H
#define GPURT_BENCH_CONV_H

#include "bench.h"
#include "bench_more.h"

#define BENCH_CONV_SHAPES 64

struct bench_conv_shape {
    uint32_t rows, height, width, channels, outputs;
    uint32_t size, stride, padding;  // size 0: by the options
};

struct bench_conv {
    struct bench bench;  // first: see options.h
    struct bench_conv_shape shapes[BENCH_CONV_SHAPES];
    size_t shape_count;
    uint32_t size, stride, padding, rows;
    uint32_t precisions, passes;  // bits
    const char *variants;
};

struct bench_conv_run {
    struct bench_conv *b;
    struct bench_conv_shape s;
    enum grt_conv_pass pass;
    enum grt_dtype type;
    struct grt_plan *plan;
    struct grt_tensor tensors[3];  // x, w, y
    void *host[3];
    struct grt_tensor *scratch;
    uint32_t written;
    const char *variant;
    struct bench_timing timing;
    uint32_t count;
    double error;
};

enum { BENCH_CONV_X, BENCH_CONV_W, BENCH_CONV_Y };

// Runs the graph of r->timing over a result that is poisoned, and compares.
enum bench_outcome bench_conv_check(struct bench_conv_run *r);
// Compares what was written, in r->host, with sums in double precision, at the ends and at random
// places. Fills r->error.
enum bench_outcome bench_conv_compare(struct bench_conv_run *r);

#endif
