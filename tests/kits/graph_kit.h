// SPDX-License-Identifier: Apache-2.0
// Four buffers and the copy kernel, for the suites that record commands by hand.
#ifndef TEST_GRAPH_KIT_H
#define TEST_GRAPH_KIT_H

#include "harness/harness.h"

#define KIT_WORDS 4096
#define KIT_BYTES (KIT_WORDS * 4)

struct kit {
    struct grt_buf *a, *b;      // on the device
    struct grt_buf *up, *down;  // upload, readback
    const struct grt_kernel *copy;
    uint32_t step;  // bytes; a distance that suits every binding
};
extern struct kit kit;

int kit_begin(void **state);
int kit_end(void **state);
#define KIT_CASE(function)                                                                         \
    { #function, function, kit_begin, kit_end, NULL }

struct grt_range kit_part(struct grt_buf *buf, uint64_t offset, uint64_t size);
struct grt_range kit_whole(struct grt_buf *buf);
// Records y = x by the copy kernel.
void kit_copy(struct grt_graph *graph, struct grt_range y, struct grt_range x, uint32_t words);
struct grt_graph *kit_graph(void);

#endif
