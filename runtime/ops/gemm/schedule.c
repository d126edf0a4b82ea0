// SPDX-License-Identifier: Apache-2.0
// How a product is spread over workgroups that stay: whole tiles first, one at a time; then, where
// the last round of tiles would leave the device idle, those tiles in parts of k.
// cl/nvidia/lib/wgmma_units.k does what is decided here.
//
// What a schedule costs was fitted to 228 products of 38 shapes drawn at random, each with six
// tiles (H200, driver 580.159.04, 2026-11-16, OpenCL): matrix units, device memory and its cache
// each have a time, and a product takes (units^1.5 + memory^1.5 + cache^1.5)^(1/1.5). What tiles of
// wgmma cost was fitted again to 5400 ways of 110 products drawn at random (2026-11-19): the error
// is 14 %, and what this chooses among them and mma's takes 2.8 % longer than the best, 25 % at
// worst.
#include <math.h>

#include "case.h"

// Numbers of the setting gemm.schedule.
enum { MEMORY, CACHE, STORE, READ, MEET };

// Workgroups of a launch that every device takes.
#define MOST_IN_A_ROW 65535u

static const double *costs(const struct gemm_case *g) {
    return gemm_costs(g, GRT_KEY_GEMM_SCHEDULE);
}

// Partial tiles that a kernel has room for.
static uint32_t places(const struct gemm_tile *t) {
    return MOST_PLACES(t->bm * t->bn * 4);
}

static uint32_t slots(const struct gemm_case *g, const struct gemm_tile *t) {
    uint32_t all = gemm_units(g) * t->at_once;
    return all < MOST_GROUPS || t->leaves ? all : MOST_GROUPS;
}

// Parts wait for each other: unless all are on the device at once, they lose milliseconds. Two
// workgroups on a compute unit are certain to fit, whatever registers a compiler takes; one of a
// kernel that Vulkan imports on a queue with graphics, where nobody has tried two.
static uint32_t waiting(const struct gemm_case *g, const struct gemm_tile *t) {
    uint32_t most = g->dev->info.caps.imports == 1 ? 1 : 2;
    return gemm_units(g) * (t->at_once < most ? t->at_once : most);
}

static uint64_t tile_count(const struct gemm_case *g, const struct gemm_tile *t) {
    return (uint64_t)gemm_ceil_div(g->m, t->bm) * gemm_ceil_div(g->n, t->bn) * g->batch;
}

// Of kernels that do not wait: few are added at once; of many, about the root of them.
static uint32_t bunch_of(uint32_t parts) {
    return parts <= 6 ? parts : (uint32_t)ceil(sqrt(parts));
}

// A part is stored, all meet, and each workgroup reads as much as one part has. Convolutions, which
// have no product's desc, meet by counters and so that much later; products are taken to meet by
// their sums. Those of large tiles do not (nvidia/lib/wgmma_parts.k), which is not measured yet.
#define COUNTED 1.54
static double adding(const struct gemm_case *g, const struct gemm_tile *t) {
    const double *c = costs(g);
    return c[MEET] * (g->desc ? 1 : COUNTED) + t->bm * t->bn / 1024.0 * (c[STORE] + c[READ]);
}

static double power(double x) {
    return x * sqrt(x);
}

// Of all tiles, when the matrix units take `units` microseconds.
static double time_of(const struct gemm_case *g, const struct gemm_tile *t, double units) {
    double rows = g->m, columns = g->n, depth = g->k;
    double size = grt_dtype_size(g->in);
    double memory = g->batch * (rows * depth + depth * columns + rows * columns) * size;
    double high = rows < t->bm ? rows : t->bm, wide = columns < t->bn ? columns : t->bn;
    double cache = (double)tile_count(g, t) * (high + wide) * depth * size;
    double sum = power(units) + power(memory / costs(g)[MEMORY]) + power(cache / costs(g)[CACHE]);
    return cbrt(sum * sum);
}

// Of `count` workgroups that the device holds at once, `steps` each.
static double last_round(const struct gemm_case *g, const struct gemm_tile *t, uint64_t count,
                         uint32_t steps) {
    uint64_t at_once = (count + gemm_units(g) - 1) / gemm_units(g);
    double step = t->step * (double)at_once / t->at_once;
    double least = t->alone > 0 ? t->alone : t->step;
    return count > 0 ? steps * (step > least ? step : least) + t->ends : 0;
}

// Workgroups of a launch for so many tiles and parts.
static uint32_t groups_of(const struct gemm_case *g, const struct gemm_tile *t, uint64_t units) {
    uint32_t most = t->leaves ? MOST_IN_A_ROW : slots(g, t);
    return (uint32_t)(units < most ? units : most);
}

struct gemm_schedule gemm_schedule_of(const struct gemm_case *g, const struct gemm_tile *t,
                                      uint32_t steps, bool cut) {
    uint64_t count = tile_count(g, t);
    uint64_t full = count / slots(g, t), rest = count % slots(g, t);
    double rounds = (double)full * (steps * t->step + t->ends);
    struct gemm_schedule best = {.parts = 1, .bunch = 1};
    best.whole = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    best.time = time_of(g, t, rounds + last_round(g, t, rest, steps));
    uint32_t room = waiting(g, t) < places(t) ? waiting(g, t) : places(t);
    uint32_t most_parts = rest > 0 && cut && count < UINT32_MAX ? room / (uint32_t)rest : 1;
    most_parts = most_parts < steps / 2 ? most_parts : steps / 2;
    for (uint32_t parts = 2; parts <= most_parts; parts++) {
        uint32_t each = gemm_ceil_div(steps, parts);
        double units = rounds + last_round(g, t, rest * parts, each);
        double time = time_of(g, t, units) + adding(g, t);
        bool whole = gemm_ceil_div(steps, each) == parts;  // every part has some of k
        if (whole && time < best.time) {
            best =
                (struct gemm_schedule){(uint32_t)(count - rest), parts, bunch_of(parts), 0, time};
        }
    }
    best.groups = groups_of(g, t, best.whole + (count - best.whole) * best.parts);
    return best;
}

struct gemm_schedule gemm_schedule_of_check(const struct gemm_case *g, const struct gemm_tile *t,
                                            uint32_t steps, const struct gemm_schedule *meant) {
    struct gemm_schedule s = gemm_schedule_of(g, t, steps, false);
    if (meant->parts > 1 && steps > 1) {
        s.groups = groups_of(g, t, (uint64_t)s.whole + 1);
        s.whole -= 1;
        s.parts = s.bunch = 2;
    }
    return s;
}

struct gemm_case gemm_scheduled(const struct gemm_case *g, const struct gemm_schedule *s) {
    struct gemm_case own = *g;
    own.params.parts = s->parts;
    own.params.whole = s->whole;
    return own;
}
