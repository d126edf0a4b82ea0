// SPDX-License-Identifier: Apache-2.0
#include "worlds_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct grt_graph *graph(struct grt_dev *dev, const char *label) {
    struct grt_graph *made = grt_graph_create(dev, label);
    assert_non_null(made);
    return made;
}

static void run(struct grt_graph *graph) {
    assert_true(grt_graph_finish(graph));
}

#define NARROW_EVERY 16  // looks

// Rows of 16-bit numbers in memory: a multiple of 8, and of 2.
static uint32_t narrow_pitch(const struct worlds_case *c) {
    return (c->sizes.obs + 7) / 8 * 8;
}
static uint32_t narrow_global(const struct worlds_case *c) {
    return (c->sizes.global + 1) / 2 * 2;
}

// x is y rounded to `bits` of fraction: off by half of its last place at most, and by nothing where
// y has that many. The smallest step of a half is 2^-24.
static void check_rounded(float x, float y, int bits) {
    double step = ldexp(1, y == 0 ? -24 : ilogb((double)y) - bits);
    step = bits == 10 && step < ldexp(1, -24) ? ldexp(1, -24) : step;
    assert_true(fabs((double)x - (double)y) <= step / 2);
}

static float wide(uint16_t bits, bool brain) {
    if (brain) {
        return test_as_f32((uint32_t)bits << 16);
    }
    int exponent = bits >> 10 & 31;
    double fraction = (bits & 1023) / 1024.0;
    double size = exponent == 0 ? ldexp(fraction, -14) : ldexp(1 + fraction, exponent - 15);
    return (float)(bits & 0x8000 ? -size : size);
}

static void check_narrow(struct test_tensor *at, const float *all, uint64_t rows, uint32_t count,
                         uint32_t pitch, bool brain) {
    uint16_t *got = test_alloc(rows * pitch * sizeof *got);
    test_tensor_read(at, got);
    for (uint64_t r = 0; r < rows; r++) {
        for (uint32_t i = 0; i < pitch; i++) {
            if (i < count) {
                check_rounded(wide(got[r * pitch + i], brain), all[r * count + i], brain ? 7 : 10);
            } else {
                assert_int_equal(got[r * pitch + i], 0);
            }
        }
    }
    free(got);
}

static void look_narrow(struct worlds_case *c) {
    for (int kind = 0; kind < 2; kind++) {
        test_tensor_prefill(&c->narrow_at[kind], test_prefills[0]);
        run(c->narrow[kind]);
        check_narrow(&c->narrow_at[kind], c->obs, c->rows, c->sizes.obs, narrow_pitch(c), kind);
        if (c->sizes.global > 0) {
            check_narrow(&c->narrow_global_at[kind], c->global, c->copies, c->sizes.global,
                         narrow_global(c), kind);
        }
    }
}

static void look(struct worlds_case *c) {
    run(c->observe);
    test_tensor_read(&c->obs_at, c->obs);
    if (c->sizes.global > 0) {
        test_tensor_read(&c->global_at, c->global);
    }
    if (c->sizes.choices > 0) {
        test_tensor_read(&c->mask_at, c->mask);
    }
    if (c->looks++ % NARROW_EVERY == 0) {
        look_narrow(c);
    }
}

static void record(struct worlds_case *c) {
    const struct grt_observe_desc observe = {
        .obs = c->obs_at.tensor.range,
        .global = c->sizes.global > 0 ? c->global_at.tensor.range : (struct grt_range){0},
        .mask = c->sizes.choices > 0 ? c->mask_at.tensor.range : (struct grt_range){0}};
    const struct grt_world_step_desc step = {.control = c->control.tensor.range,
                                             .actions = c->actions_at.tensor.range,
                                             .rewards = c->rewards_at.tensor.range,
                                             .ends = c->ends_at.tensor.range};
    const struct grt_world_random_desc random = {.control = step.control,
                                                 .mask = observe.mask,
                                                 .actions = step.actions,
                                                 .stream = 5,
                                                 .advance = true};
    grt_op_worlds_reset(c->reset, c->worlds, step.control);
    grt_op_worlds_observe(c->observe, c->worlds, &observe);
    for (int kind = 0; kind < 2; kind++) {
        struct grt_observe_desc narrow = observe;
        narrow.obs = c->narrow_at[kind].tensor.range;
        narrow.global =
            c->sizes.global > 0 ? c->narrow_global_at[kind].tensor.range : observe.global;
        narrow.dtype = kind == 0 ? GRT_F16 : GRT_BF16;
        narrow.pitch = narrow_pitch(c);
        grt_op_worlds_observe(c->narrow[kind], c->worlds, &narrow);
    }
    grt_op_worlds_step(c->step, c->worlds, &step);
    grt_op_worlds_random(c->random, c->worlds, &random);
    grt_op_worlds_totals(c->totals, c->worlds, c->sums_at.tensor.range);
}

void worlds_begin(struct worlds_case *c, struct grt_dev *dev, const struct grt_worlds_desc *desc,
                  uint32_t seed) {
    worlds_begin_shaped(c, dev, desc, seed, NULL);
}

void worlds_begin_shaped(struct worlds_case *c, struct grt_dev *dev,
                         const struct grt_worlds_desc *desc, uint32_t seed,
                         const struct worlds_sight *sight) {
    *c = (struct worlds_case){.dev = dev, .copies = desc->copies, .seed = seed};
    c->worlds = grt_worlds_create(dev, desc);
    assert_non_null(c->worlds);
    c->worlds->sight = sight ? *sight : c->worlds->sight;
    c->sizes = *grt_worlds_sizes(c->worlds);
    c->rows = c->copies * c->sizes.agents;
    c->plan = grt_plan_create(dev);
    grt_worlds_declare(c->worlds, c->plan);
    assert_true(grt_plan_alloc(c->plan));
    uint32_t wide = c->sizes.act > 0 ? c->sizes.act : 1;
    uint32_t sums = GRT_WORLD_TOTALS + c->sizes.terms;
    c->control = test_tensor(dev, GRT_U32, 4, 0);
    c->actions_at = test_tensor(dev, GRT_U32, c->rows, wide);
    c->rewards_at = test_tensor(dev, GRT_F32, c->rows, 0);
    c->ends_at = test_tensor(dev, GRT_U32, c->rows, 0);
    c->obs_at = test_tensor(dev, GRT_F32, c->rows, c->sizes.obs);
    c->global_at = test_tensor(dev, GRT_F32, c->copies, c->sizes.global ? c->sizes.global : 1);
    c->mask_at = test_tensor(dev, GRT_U32, c->rows, 0);
    c->sums_at = test_tensor(dev, GRT_F32, sums, 0);
    c->actions = test_alloc((size_t)c->rows * wide * 4);
    c->rewards = test_alloc((size_t)c->rows * 4);
    c->ends = test_alloc((size_t)c->rows * 4);
    c->obs = test_alloc((size_t)c->rows * c->sizes.obs * 4);
    c->global = test_alloc((size_t)c->copies * (c->sizes.global ? c->sizes.global : 1) * 4);
    c->mask = test_alloc((size_t)c->rows * 4);
    c->sums = test_alloc((size_t)sums * 4);
    const uint32_t control[4] = {seed, 0, 0, 0};
    test_tensor_write(&c->control, control);
    c->reset = graph(dev, "reset");
    c->observe = graph(dev, "observe");
    for (int kind = 0; kind < 2; kind++) {
        uint32_t global = c->sizes.global > 0 ? narrow_global(c) : 2;
        c->narrow[kind] = graph(dev, "observe in 16 bits");
        c->narrow_at[kind] = test_tensor(dev, GRT_F16, c->rows, narrow_pitch(c));
        c->narrow_global_at[kind] = test_tensor(dev, GRT_F16, c->copies, global);
    }
    c->step = graph(dev, "step");
    c->random = graph(dev, "random");
    c->totals = graph(dev, "totals");
    record(c);
    run(c->reset);
    look(c);
}

void worlds_step(struct worlds_case *c) {
    test_tensor_write(&c->actions_at, c->actions);
    test_tensor_prefill(&c->rewards_at, test_prefills[0]);
    test_tensor_prefill(&c->ends_at, test_prefills[0]);
    test_tensor_prefill(&c->obs_at, test_prefills[0]);
    run(c->step);
    test_tensor_read(&c->rewards_at, c->rewards);
    test_tensor_read(&c->ends_at, c->ends);
    look(c);
}

void worlds_draw(struct worlds_case *c) {
    run(c->random);
    test_tensor_read(&c->actions_at, c->actions);
}

void worlds_totals(struct worlds_case *c) {
    run(c->totals);
    test_tensor_read(&c->sums_at, c->sums);
}

uint32_t *worlds_state(const struct worlds_case *c) {
    struct grt_range range = grt_plan_at(c->plan, "worlds", 0)->range;
    uint64_t bytes = (uint64_t)c->sizes.words * c->copies * 4;
    uint32_t *words = test_alloc(bytes);
    assert_true(grt_buf_read(range.buf, range.offset, words, bytes));
    return words;
}

struct grt_drawn_shape *worlds_shapes(const struct worlds_case *c) {
    uint32_t count = c->copies * c->sizes.shapes;
    struct grt_drawn_shape *shapes = test_alloc(count * sizeof *shapes);
    struct test_tensor at = test_tensor(c->dev, GRT_F32, count, sizeof *shapes / 4);
    struct grt_graph *draw = graph(c->dev, "draw");
    test_tensor_prefill(&at, test_prefills[0]);
    grt_op_worlds_draw(draw, c->worlds, at.tensor.range);
    run(draw);
    test_tensor_read(&at, shapes);
    grt_graph_destroy(&draw);
    test_tensor_end(&at);
    return shapes;
}

void worlds_end(struct worlds_case *c) {
    struct grt_graph **graphs[] = {&c->reset,  &c->observe,   &c->step,     &c->random,
                                   &c->totals, &c->narrow[0], &c->narrow[1]};
    struct test_tensor *tensors[] = {&c->control,
                                     &c->actions_at,
                                     &c->rewards_at,
                                     &c->ends_at,
                                     &c->obs_at,
                                     &c->global_at,
                                     &c->mask_at,
                                     &c->sums_at,
                                     &c->narrow_at[0],
                                     &c->narrow_at[1],
                                     &c->narrow_global_at[0],
                                     &c->narrow_global_at[1]};
    void *arrays[] = {c->actions, c->rewards, c->ends, c->obs, c->global, c->mask, c->sums};
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        grt_graph_destroy(graphs[i]);
    }
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        test_tensor_end(tensors[i]);
    }
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        free(arrays[i]);
    }
    grt_plan_destroy(&c->plan);
    grt_worlds_destroy(&c->worlds);
}

const struct grt_env_info *worlds_env(const char *name, const char *text) {
    char folder[] = "/tmp/gpurt-test-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s.k", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    const struct grt_env_info *env = grt_env_open(path);
    unlink(path);
    rmdir(folder);
    return env;
}
