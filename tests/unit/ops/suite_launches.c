// SPDX-License-Identifier: Apache-2.0
// What ops record: kernels with their constants, parameters, grids and ranges, written out, on a
// device whose limits are set here. Nothing is run.
//
//     fill WG=8 (400 3fc00000) [5 1 1] a:1000 b+40:8   constants that are not the default,
//         parameters in hex, groups, and of each range its bytes in hex, from where it begins
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "device/graph_parts.h"
#include "ops/op_support.h"

static struct grt_dev *dev;
static struct grt_buf *bufs[5];
static char said[2048];

static int begin(void **state) {
    dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    if (!dev) {
        return -1;
    }
    for (int i = 0; i < 5; i++) {
        bufs[i] = grt_buf_create(dev, grt_buf_desc(.size = 1 << 20, .label = "here"));
    }
    struct grt_caps *caps = &dev->info.caps;
    caps->software = 0;
    caps->subgroup = 32;
    caps->align = 64;
    caps->max_binding = 4096;
    caps->max_wg = 256;
    caps->max_groups[0] = caps->max_groups[1] = caps->max_groups[2] = 65535;
    const struct grt_profile_value wg = {.count = 1, .numbers = {8}};
    const struct grt_profile_value groups = {.count = 1, .numbers = {5}};
    return grt_dev_profile_set(dev, GRT_KEY_STREAM_WG, &wg) &&
                   grt_dev_profile_set(dev, GRT_KEY_STREAM_GROUPS, &groups)
               ? test_case_begin(state)
               : -1;
}
static int end(void **state) {
    for (int i = 0; i < 5; i++) {
        grt_buf_destroy(&bufs[i]);
    }
    grt_dev_destroy(&dev);
    return test_case_end(state);
}
#define LAUNCH_CASE(function)                                                                      \
    { #function, function, begin, end, NULL }

static void say_range(const struct grt_range *range) {
    size_t used = strlen(said);
    char name = '?';
    for (int i = 0; i < 5; i++) {
        name = range->buf == bufs[i] ? "abcde"[i] : name;
    }
    name = range->buf == dev->unused ? 'u' : name;
    snprintf(said + used, sizeof said - used, range->offset ? " %c+%llx:%llx" : " %c%.0llx:%llx",
             name, (unsigned long long)range->offset, (unsigned long long)range->size);
}

static void describe(const struct grt_cmd *cmd) {
    size_t used = strlen(said);
#define SAY(...) used += (size_t)snprintf(said + used, sizeof said - used, __VA_ARGS__)
    if (cmd->kind != GRT_CMD_DISPATCH) {
        SAY("%s", cmd->kind == GRT_CMD_COPY ? "(copy)" : "(other)");
        say_range(&cmd->src);
        say_range(&cmd->dst);
    } else {
        const struct grt_kernel_info *info = cmd->kernel->info;
        SAY("%s", info->name);
        for (uint32_t i = 0; i < info->spec_count; i++) {
            if (cmd->kernel->spec_values[i] != info->specs[i].value) {
                SAY(" %s=%u", info->specs[i].name, cmd->kernel->spec_values[i]);
            }
        }
        for (uint32_t i = 0; i < cmd->params_size / 4; i++) {
            uint32_t word = 0;
            memcpy(&word, cmd->params + 4 * (size_t)i, 4);
            SAY("%s%x", i ? " " : " (", word);
        }
        SAY(") [%u %u %u]", cmd->groups[0], cmd->groups[1], cmd->groups[2]);
        for (uint32_t i = 0; i < info->arg_count; i++) {
            say_range(&cmd->bindings[i]);
        }
    }
    used = strlen(said);
    SAY("\n");
#undef SAY
}

static struct grt_graph *graph;
static void expect(const char *want) {
    if (graph->mistake != GRT_OK) {
        fail_msg("%s", graph->mistake_text);
    }
    said[0] = '\0';
    for (uint32_t i = 0; i < graph->count; i++) {
        describe(&graph->cmds[i]);
    }
    grt_graph_destroy(&graph);
    if (strcmp(said, want) != 0) {
        print_error("GOT\n%s", said);
    }
    assert_string_equal(said, want);
}
#define RECORD(op, want)                                                                           \
    do {                                                                                           \
        graph = grt_graph_create(dev, "launches");                                                 \
        op;                                                                                        \
        expect(want);                                                                              \
    } while (0)
#define REFUSE(op, status, part)                                                                   \
    do {                                                                                           \
        graph = grt_graph_create(dev, "launches");                                                 \
        op;                                                                                        \
        TEST_REFUSED(grt_graph_bake(graph), status, part);                                         \
        grt_graph_destroy(&graph);                                                                 \
    } while (0)

// A tensor that begins at a byte of a buffer.
static struct grt_tensor *at(int buf, uint64_t offset, enum grt_dtype dtype, uint64_t x, uint64_t y,
                             uint64_t z) {
    static struct grt_tensor tensors[64];
    static int next;
    struct grt_tensor *t = &tensors[next++ % 64];
    *t = (struct grt_tensor){.label = "t", .dtype = dtype, .shape = {x, y, z}};
    t->rank = z ? 3 : y ? 2 : 1;
    t->range = (struct grt_range){bufs[buf], offset, grt_tensor_bytes(t)};
    return t;
}
#define F32(buf, n) at(buf, 0, GRT_F32, n, 0, 0)

static void streams(void **state) {
    (void)state;
    RECORD(grt_op_fill(graph, F32(0, 2500), 1.5f), "fill WG=8 (400 3fc00000) [5 1 1] a:1000\n"
                                                   "fill WG=8 (400 3fc00000) [5 1 1] a+1000:1000\n"
                                                   "fill WG=8 (1c4 3fc00000) [5 1 1] a+2000:710\n");
    RECORD(grt_op_fill(graph, at(0, 64, GRT_BF16, 2500, 0, 0), 1.0f),
           "fill16 WG=8 (800 3f80) [5 1 1] a+40:1000\n"
           "fill16 WG=8 (1c4 3f80) [5 1 1] a+1040:388\n");
    RECORD(grt_op_fill(graph, at(0, 64, GRT_F16, 20, 0, 0), 1.0f),
           "fill16 WG=8 (14 3c00) [3 1 1] a+40:28\n");
    RECORD(grt_op_copy(graph, F32(1, 20), F32(0, 20)), "copy4 WG=8 (4) [1 1 1] a:40 b:40\n"
                                                       "copy WG=8 (4) [1 1 1] a+40:10 b+40:10\n");
    RECORD(grt_op_copy(graph, F32(1, 16), F32(0, 16)), "copy4 WG=8 (4) [1 1 1] a:40 b:40\n");
    RECORD(grt_op_copy(graph, F32(1, 1040), F32(0, 1040)),
           "copy4 WG=8 (100) [5 1 1] a:1000 b:1000\n"
           "copy4 WG=8 (4) [1 1 1] a+1000:40 b+1000:40\n");
    RECORD(grt_op_copy(graph, at(1, 0, GRT_F16, 33, 0, 0), at(0, 128, GRT_F16, 33, 0, 0)),
           "copy4 WG=8 (4) [1 1 1] a+80:40 b:40\n"
           "copy2 WG=8 (1) [1 1 1] a+c0:2 b+40:2\n");
    RECORD(grt_op_convert(graph, at(1, 0, GRT_F16, 20, 0, 0), F32(0, 20)),
           "narrow WG=8 (14) [3 1 1] a:50 b:28\n");
    RECORD(grt_op_convert(graph, at(1, 0, GRT_BF16, 1030, 0, 0), F32(0, 1030)),
           "narrow WG=8 KIND=1 (400) [5 1 1] a:1000 b:800\n"
           "narrow WG=8 KIND=1 (6) [1 1 1] a+1000:18 b+800:c\n");
    RECORD(grt_op_convert(graph, F32(1, 20), at(0, 0, GRT_BF16, 20, 0, 0)),
           "widen WG=8 KIND=1 (14) [3 1 1] a:28 b:50\n");
    RECORD(grt_op_convert(graph, at(1, 0, GRT_BF16, 20, 0, 0), at(0, 0, GRT_F16, 20, 0, 0)),
           "recode WG=8 (14) [3 1 1] a:28 b:28\n");
    RECORD(grt_op_convert(graph, at(1, 0, GRT_F16, 20, 0, 0), at(0, 0, GRT_BF16, 20, 0, 0)),
           "recode WG=8 FROM=1 TO=0 (14) [3 1 1] a:28 b:28\n");
    RECORD(grt_op_convert(graph, F32(1, 4), F32(0, 4)), "copy WG=8 (4) [1 1 1] a:10 b:10\n");
    dev->info.caps.software = 1;
    RECORD(grt_op_copy(graph, F32(1, 20), F32(0, 20)), "(copy) a:50 b:50\n");
    RECORD(grt_op_copy(graph, at(1, 0, GRT_F16, 3, 0, 0), at(0, 0, GRT_F16, 3, 0, 0)),
           "copy2 WG=8 (3) [1 1 1] a:6 b:6\n");
    dev->info.caps.subgroup = 1;
    RECORD(grt_op_copy(graph, F32(1, 20), F32(0, 20)), "copy4 WG=8 (4) [1 1 1] a:40 b:40\n"
                                                       "copy WG=8 (4) [1 1 1] a+40:10 b+40:10\n");
}

static void maps(void **state) {
    (void)state;
    struct grt_tensor *x = F32(0, 20), *y = F32(1, 20), *z = F32(2, 20);
#define MAP(...) grt_op_map(graph, grt_map_desc(__VA_ARGS__))
    RECORD(MAP(.map = GRT_MAP_ADD, .y = y, .a = x, .b = z),
           "map WG=8 OP=12 (14 3f800000 3f800000) [3 1 1] a:50 c:50 b:50\n");
    RECORD(MAP(.map = GRT_MAP_ADD, .y = y, .a = x, .b = z, .beta = 2.0f),
           "map WG=8 OP=12 (14 0 40000000) [3 1 1] a:50 c:50 b:50\n");
    RECORD(MAP(.map = GRT_MAP_ADD, .y = y, .a = y, .b = z),
           "map WG=8 OP=12 A_IS_Y=1 (14 3f800000 3f800000) [3 1 1] c:50 c:50 b:50\n");
    RECORD(MAP(.map = GRT_MAP_ADD, .y = y, .a = z, .b = y),
           "map WG=8 OP=12 B_IS_Y=1 (14 3f800000 3f800000) [3 1 1] c:50 c:50 b:50\n");
    RECORD(MAP(.map = GRT_MAP_ADD, .y = y, .a = y, .b = y),
           "map WG=8 OP=12 A_IS_Y=1 B_IS_Y=1 (14 3f800000 3f800000) [3 1 1] u:100 u:100 b:50\n");
    RECORD(MAP(.map = GRT_MAP_SCALE, .y = y, .a = x),
           "map WG=8 (14 3f800000 0) [3 1 1] a:50 a:50 b:50\n");
    RECORD(MAP(.map = GRT_MAP_SCALE, .y = y, .a = x, .alpha = 2.0f),
           "map WG=8 (14 40000000 0) [3 1 1] a:50 a:50 b:50\n");
    RECORD(MAP(.map = GRT_MAP_MIN, .y = y, .a = x, .b = z),
           "map WG=8 OP=15 (14 0 0) [3 1 1] a:50 c:50 b:50\n");
    RECORD(MAP(.map = GRT_MAP_MAX, .y = F32(1, 1030), .a = F32(0, 1030), .b = F32(2, 1030)),
           "map WG=8 OP=16 (400 0 0) [5 1 1] a:1000 c:1000 b:1000\n"
           "map WG=8 OP=16 (6 0 0) [1 1 1] a+1000:18 c+1000:18 b+1000:18\n");
#undef MAP
}

static void reductions(void **state) {
    (void)state;
    dev->info.caps.max_binding = 1 << 20;
#define REDUCE(...) grt_op_reduce(graph, &(struct grt_reduce_desc){__VA_ARGS__})
    const struct grt_range scratch = {bufs[4], 0, 0};
    struct grt_tensor *one = F32(1, 1), *x = F32(0, 16384), *index = at(1, 0, GRT_U32, 1, 0, 0);
    RECORD(REDUCE(.reduce = GRT_REDUCE_SUM, .y = one, .x = x),
           "reduce WG=256 (4000 4000 4000 38800000) [1 1 1] a:10000 b:4\n");
    RECORD(REDUCE(.reduce = GRT_REDUCE_MEAN, .y = one, .x = x),
           "reduce WG=256 FINISH=1 (4000 4000 4000 38800000) [1 1 1] a:10000 b:4\n");
    RECORD(REDUCE(.reduce = GRT_REDUCE_MAX, .y = one, .x = x),
           "reduce WG=256 OP=2 (4000 4000 4000 38800000) [1 1 1] a:10000 b:4\n");
    RECORD(REDUCE(.reduce = GRT_REDUCE_NORM, .y = one, .x = x),
           "reduce WG=256 OP=1 FINISH=2 (4000 4000 4000 38800000) [1 1 1] a:10000 b:4\n");
    RECORD(REDUCE(.reduce = GRT_REDUCE_ARGMAX, .y = index, .x = x, .scratch = scratch),
           "argmax WG=256 (4000 4000 4000 0 0) [1 1 1] a:10000 a:10000 e:4 b:4\n");
    x = F32(0, 16385);
    RECORD(REDUCE(.reduce = GRT_REDUCE_NORM, .y = one, .x = x, .scratch = scratch),
           "reduce WG=256 OP=1 (1000 1000 4001 387ffc00) [5 1 1] a:10004 e:14\n"
           "reduce WG=256 FINISH=2 (5 5 5 387ffc00) [1 1 1] e:14 b:4\n");
    RECORD(REDUCE(.reduce = GRT_REDUCE_ARGMAX, .y = index, .x = x, .scratch = scratch),
           "argmax WG=256 (1000 1000 4001 0 0) [5 1 1] a:10004 a:10004 e+80:14 e+40:14\n"
           "argmax WG=256 PAIRS=1 (5 5 5 0 0) [1 1 1] e+80:14 e+40:14 e:4 b:4\n");
    struct grt_tensor *rows = at(0, 0, GRT_F32, 70, 10, 0);
    RECORD(REDUCE(.reduce = GRT_REDUCE_MEAN, .y = F32(1, 70), .x = rows, .rows = true),
           "reduce WG=256 FINISH=1 (a a 2bc 3dcccccd) [70 1 1] a:af0 b:118\n");
    // 1024 numbers at once: 102 rows, of which 96 begin where a binding may.
    dev->info.caps.max_binding = 4096;
    rows = at(0, 0, GRT_F32, 200, 10, 0);
    RECORD(REDUCE(.reduce = GRT_REDUCE_SUM, .y = F32(1, 200), .x = rows, .rows = true),
           "reduce WG=256 (a a 3c0 3dcccccd) [96 1 1] a:f00 b:180\n"
           "reduce WG=256 (a a 3c0 3dcccccd) [96 1 1] a+f00:f00 b+180:180\n"
           "reduce WG=256 (a a 50 3dcccccd) [8 1 1] a+1e00:140 b+300:20\n");
    RECORD(REDUCE(.reduce = GRT_REDUCE_ARGMAX, .y = index, .x = F32(0, 2000), .scratch = scratch),
           "argmax WG=256 (40 40 400 0 0) [16 1 1] a:1000 a:1000 e+c0:40 e+40:40\n"
           "argmax WG=256 (40 40 3d0 400 0) [16 1 1] a+1000:f40 a+1000:f40 e+100:40 e+80:40\n"
           "argmax WG=256 PAIRS=1 (20 20 20 0 0) [1 1 1] e+c0:80 e+40:80 e:4 b:4\n");
    dev->info.caps.software = 1;
    RECORD(REDUCE(.reduce = GRT_REDUCE_SUM, .y = one, .x = F32(0, 100)),
           "reduce WG=16 (64 64 64 3c23d70a) [1 1 1] a:190 b:4\n");
    dev->info.caps.max_groups[0] = 3;
    rows = at(0, 0, GRT_F32, 7, 10, 0);
    RECORD(REDUCE(.reduce = GRT_REDUCE_SUM, .y = F32(1, 7), .x = rows, .rows = true),
           "reduce WG=16 (a a 46 3dcccccd) [3 3 1] a:118 b:1c\n");
    REFUSE(REDUCE(.reduce = GRT_REDUCE_SUM, .y = F32(1, 20), .x = at(0, 0, GRT_F32, 20, 100, 0),
                  .rows = true),
           GRT_UNSUPPORTED, "reduction over rows of 100 numbers: ref:0 reaches 64 at once");
    REFUSE(REDUCE(.reduce = GRT_REDUCE_SUM, .y = index, .x = F32(0, 100)), GRT_INVALID,
           "sum of 't': 't' must hold 1 of f32");
    REFUSE(REDUCE(.reduce = GRT_REDUCE_ARGMAX, .y = F32(1, 7), .x = rows, .rows = true),
           GRT_INVALID, "argmax of 't': 't' must hold 7 of u32");
    REFUSE(REDUCE(.reduce = GRT_REDUCE_ARGMAX, .y = index, .x = F32(0, 100)), GRT_INVALID,
           "argmax of 't' needs 64 bytes of scratch, given 0");
#undef REDUCE
}

static void transposes(void **state) {
    (void)state;
#define TRANSPOSE(count, rows, cols, dtype)                                                        \
    grt_op_transpose(graph, at(1, 0, dtype, count, cols, rows), at(0, 0, dtype, count, rows, cols))
    RECORD(TRANSPOSE(3, 5, 7, GRT_F32), "transpose WG=256 (5 7) [1 1 3] a:1a4 b:1a4\n");
    RECORD(TRANSPOSE(3, 17, 16, GRT_F16), "transpose16 WG=256 (11 10) [1 2 3] a:660 b:660\n");
    // 416 bytes: 9 at once, and every second of them ends where a binding may begin.
    RECORD(TRANSPOSE(20, 8, 13, GRT_F32), "transpose WG=256 (8 d) [1 1 8] a:d00 b:d00\n"
                                          "transpose WG=256 (8 d) [1 1 8] a+d00:d00 b+d00:d00\n"
                                          "transpose WG=256 (8 d) [1 1 4] a+1a00:680 b+1a00:680\n");
    RECORD(TRANSPOSE(9, 8, 13, GRT_F32), "transpose WG=256 (8 d) [1 1 9] a:ea0 b:ea0\n");
    dev->info.caps.max_groups[2] = 2;
    RECORD(TRANSPOSE(5, 4, 8, GRT_F32), "transpose WG=256 (4 8) [1 1 2] a:100 b:100\n"
                                        "transpose WG=256 (4 8) [1 1 2] a+100:100 b+100:100\n"
                                        "transpose WG=256 (4 8) [1 1 1] a+200:80 b+200:80\n");
    dev->info.caps.software = 1;
    RECORD(TRANSPOSE(1, 4, 8, GRT_F32), "transpose WG=16 (4 8) [1 1 1] a:80 b:80\n");
    REFUSE(TRANSPOSE(2, 32, 33, GRT_F32), GRT_UNSUPPORTED,
           "transpose of 't': a matrix of 4224 bytes, ref:0 reaches 4096 at once");
    REFUSE(TRANSPOSE(2, 4, 4, GRT_U8), GRT_INVALID, "elements of 2 or 4 bytes only");
#undef TRANSPOSE
}

static void random_numbers(void **state) {
    (void)state;
#define RANDOM(...) grt_op_random(graph, &(struct grt_random_desc){__VA_ARGS__})
    const struct grt_range seed = {bufs[3], 128, 0};
    RECORD(RANDOM(.dist = GRT_DIST_NORMAL, .y = F32(0, 2500), .state = seed, .stream = 9,
                  .advance = true),
           "random WG=8 DIST=2 (400 0 9) [5 1 1] d+80:10 a:1000\n"
           "random WG=8 DIST=2 (400 100 9) [5 1 1] d+80:10 a+1000:1000\n"
           "random WG=8 DIST=2 (1c4 200 9) [5 1 1] d+80:10 a+2000:710\n"
           "tick WG=1 (1) [1 1 1] d+80:10\n");
    RECORD(RANDOM(.dist = GRT_DIST_BITS, .y = at(0, 0, GRT_U32, 3, 0, 0), .state = seed),
           "random WG=8 (3 0 0) [1 1 1] d+80:10 a:c\n");
    REFUSE(RANDOM(.dist = GRT_DIST_BITS, .y = F32(0, 3), .state = seed), GRT_INVALID,
           "random: 't' must be u32 and at most 2^34 elements");
    REFUSE(RANDOM(.dist = GRT_DIST_NORMAL, .y = F32(0, 3)), GRT_INVALID, "random: no state");
#undef RANDOM
}

static void rows_and_columns(void **state) {
    (void)state;
    struct grt_tensor *x = at(0, 0, GRT_F32, 200, 10, 0), *y = at(1, 0, GRT_F32, 200, 10, 0);
    RECORD(grt_op_softmax(graph, y, x),
           "softmax WG=256 LANES=4 (60 a) [2 1 1] a:f00 b:f00\n"
           "softmax WG=256 LANES=4 (60 a) [2 1 1] a+f00:f00 b+f00:f00\n"
           "softmax WG=256 LANES=4 (8 a) [1 1 1] a+1e00:140 b+1e00:140\n");
#define NORM(...) grt_op_layer_norm(graph, &(struct grt_layer_norm_desc){__VA_ARGS__})
    RECORD(NORM(.x = x, .y = y, .stats = at(4, 0, GRT_F32, 200, 2, 0)),
           "layer_norm WG=256 LANES=4 SAVE=1 (60 a 3dcccccd 3727c5ac) [2 1 1] a:f00 a:f00 a:f00"
           " b:f00 e:300\n"
           "layer_norm WG=256 LANES=4 SAVE=1 (60 a 3dcccccd 3727c5ac) [2 1 1] a+f00:f00 a+f00:f00"
           " a+f00:f00 b+f00:f00 e+300:300\n"
           "layer_norm WG=256 LANES=4 SAVE=1 (8 a 3dcccccd 3727c5ac) [1 1 1] a+1e00:140 a+1e00:140"
           " a+1e00:140 b+1e00:140 e+600:40\n");
    dev->info.caps.max_binding = 1 << 20;
    RECORD(NORM(.x = x, .y = y), "layer_norm WG=256 LANES=4 (c8 a 3dcccccd 3727c5ac) [4 1 1] "
                                 "a:1f40 a:1f40 a:1f40 b:1f40 u:100\n");
    RECORD(NORM(.x = x, .y = y, .weight = F32(2, 10), .bias = F32(3, 10),
                .stats = at(4, 0, GRT_F32, 200, 2, 0), .eps = 0.5f),
           "layer_norm WG=256 LANES=4 WEIGHT=1 BIAS=1 SAVE=1 (c8 a 3dcccccd 3f000000) [4 1 1] "
           "a:1f40 c:28 d:28 b:1f40 e:640\n");
    RECORD(NORM(.x = x, .y = y, .bias = F32(3, 10)),
           "layer_norm WG=256 LANES=4 BIAS=1 (c8 a 3dcccccd 3727c5ac) [4 1 1] a:1f40 a:1f40 d:28 "
           "b:1f40 u:100\n");
    REFUSE(NORM(.x = x, .y = y, .eps = -1.0f), GRT_INVALID, "layer norm of 't': eps is -1, below");
    REFUSE(NORM(.x = x, .y = y, .weight = F32(2, 11)), GRT_INVALID, "'t' must hold 10 of f32");
    REFUSE(NORM(.x = x, .y = y, .stats = F32(2, 200)), GRT_INVALID, "'t' must hold 400 of f32");
#define COLSUM(...) grt_op_colsum(graph, &(struct grt_colsum_desc){__VA_ARGS__})
    const struct grt_range scratch = {bufs[4], 0, 0};
    RECORD(COLSUM(.x = x, .y = F32(2, 10)), "colsum WG=256 (c8 a c8 0) [1 1 1] a:1f40 c:28\n");
    RECORD(COLSUM(.x = x, .y = F32(2, 10), .x2 = y, .y2 = F32(3, 10), .add = true),
           "colsum_pair WG=256 ADD=1 (c8 a c8 0) [1 1 2] a:1f40 c:28 b:1f40 d:28\n");
    x = at(0, 0, GRT_F32, 256, 100, 0);
    RECORD(COLSUM(.x = x, .y = F32(2, 100)),
           "colsum WG=256 COLS=32 (100 64 100 0) [4 1 1] a:19000 c:190\n");
    x = at(0, 0, GRT_F32, 257, 100, 0);
    RECORD(COLSUM(.x = x, .y = F32(2, 100), .scratch = scratch, .add = true),
           "colsum WG=256 COLS=32 (101 64 80 0) [4 3 1] a:19190 e:4b0\n"
           "colsum WG=256 COLS=32 ADD=1 (3 64 3 0) [4 1 1] e:4b0 c:190\n");
    x = at(0, 0, GRT_BF16, 300, 10, 0);
    RECORD(COLSUM(.x = x, .y = F32(2, 10), .scratch = scratch),
           "colsum16 WG=256 KIND=1 (12c a 80 0) [1 3 1] a:1770 e:78\n"
           "colsum WG=256 (3 a 3 0) [1 1 1] e:78 c:28\n");
    REFUSE(COLSUM(.x = x, .y = F32(2, 10)), GRT_INVALID,
           "column sums of 't' needs 120 bytes of scratch, given 0");
    dev->info.caps.software = 1;
    x = at(0, 0, GRT_F32, 3, 40, 0);
    RECORD(COLSUM(.x = x, .y = F32(2, 40)), "colsum WG=16 (3 28 3 0) [3 1 1] a:1e0 c:a0\n");
    RECORD(grt_op_softmax(graph, at(1, 0, GRT_F32, 3, 40, 0), x),
           "softmax WG=16 LANES=1 (3 28) [1 1 1] a:1e0 b:1e0\n");
    RECORD(grt_op_softmax(graph, F32(1, 1025), F32(0, 1025)),
           "softmax WG=16 (1 401) [1 1 1] a:1004 b:1004\n");
    REFUSE(COLSUM(.x = x, .y = F32(2, 40), .x2 = y), GRT_INVALID, "a second x has the first one's");
    REFUSE(COLSUM(.x = x, .y = F32(2, 40), .x2 = y, .y2 = F32(3, 10)), GRT_INVALID,
           "a second x has the first one's");
}

static const struct CMUnitTest cases[] = {
    LAUNCH_CASE(streams),    LAUNCH_CASE(maps),           LAUNCH_CASE(reductions),
    LAUNCH_CASE(transposes), LAUNCH_CASE(random_numbers), LAUNCH_CASE(rows_and_columns),
};
TEST_SUITE(launches, false, cases);
