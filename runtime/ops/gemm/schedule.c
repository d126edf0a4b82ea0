// SPDX-License-Identifier: Apache-2.0
// How a product is spread over workgroups that stay: whole tiles first, one at a time; then, where
// the last round of tiles would leave the device idle, those tiles in parts of k.
// cl/nvidia/lib/wgmma_units.k does what is decided here.
//
// What a schedule costs was fitted to 228 products of 38 shapes drawn at random, each with six
// tiles (H200, driver 580.159.04, 2026-11-16, OpenCL): matrix units, device memory and its cache
// each have a time, and a product takes (units^1.5 + memory^1.5 + cache^1.5)^(1/1.5). The error is
// 16 %; the tile that this chooses takes 4.5 % longer than the best one.
#include <math.h>

#include "case.h"

// Numbers of the setting gemm.schedule.
enum { MEMORY, CACHE, STORE, READ, MEET };

static const double *costs(const struct gemm_case *g) {
    return gemm_costs(g, GRT_KEY_GEMM_SCHEDULE);
}

// Partial tiles that a kernel has room for.
static uint32_t places(const struct gemm_tile *t) {
    return MOST_PLACES(t->bm * t->bn * 4);
}

static uint32_t slots(const struct gemm_case *g, const struct gemm_tile *t) {
    uint32_t all = gemm_units(g) * t->at_once;
    return all < MOST_GROUPS ? all : MOST_GROUPS;
}

static uint64_t tile_count(const struct gemm_case *g, const struct gemm_tile *t) {
    return (uint64_t)gemm_ceil_div(g->m, t->bm) * gemm_ceil_div(g->n, t->bn) * g->batch;
}

// Few are added at once; of many, about the root of them.
static uint32_t bunch_of(uint32_t parts) {
    return parts <= 6 ? parts : (uint32_t)ceil(sqrt(parts));
}

static double adding(const struct gemm_case *g, const struct gemm_tile *t, uint32_t parts) {
    const double *c = costs(g);
    double size = t->bm * t->bn / 1024.0;
    uint32_t bunch = bunch_of(parts), bunches = gemm_ceil_div(parts, bunch);
    double time = c[MEET] + size * (c[STORE] + c[READ] * bunch);
    return bunches == 1 ? time : time + c[MEET] + size * (c[STORE] + c[READ] * bunches);
}

static double power(double x) {
    return x * sqrt(x);
}

// Of all tiles, when the matrix units take `units` microseconds.
static double time_of(const struct gemm_case *g, const struct gemm_tile *t, double units) {
    double rows = g->m, columns = g->n, depth = g->k;
    double memory = g->batch * (rows * depth + depth * columns + rows * columns) * 2;
    double high = rows < t->bm ? rows : t->bm, wide = columns < t->bn ? columns : t->bn;
    double cache = (double)tile_count(g, t) * (high + wide) * depth * 2;
    double sum = power(units) + power(memory / costs(g)[MEMORY]) + power(cache / costs(g)[CACHE]);
    return cbrt(sum * sum);
}

struct gemm_schedule gemm_schedule_of(const struct gemm_case *g, const struct gemm_tile *t,
                                      uint32_t steps, bool cut) {
    uint64_t count = tile_count(g, t);
    uint64_t full = count / slots(g, t), rest = count % slots(g, t);
    double round = steps * t->step + t->ends;
    struct gemm_schedule best = {.parts = 1, .bunch = 1};
    best.whole = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    best.time = time_of(g, t, (double)(full + (rest > 0)) * round);
    uint32_t room = slots(g, t) < places(t) ? slots(g, t) : places(t);
    uint32_t most = rest > 0 && cut && count < UINT32_MAX ? room / (uint32_t)rest : 1;
    most = most < steps / 2 ? most : steps / 2;
    for (uint32_t parts = 2; parts <= most; parts++) {
        uint32_t each = gemm_ceil_div(steps, parts);
        double units = (double)full * round + each * t->step + t->ends;
        double time = time_of(g, t, units) + adding(g, t, parts);
        bool whole = gemm_ceil_div(steps, each) == parts;  // every part has some of k
        if (whole && time < best.time) {
            best =
                (struct gemm_schedule){(uint32_t)(count - rest), parts, bunch_of(parts), 0, time};
        }
    }
    uint64_t all = best.whole + (count - best.whole) * best.parts;
    best.groups = (uint32_t)(all < slots(g, t) ? all : slots(g, t));
    return best;
}

struct gemm_case gemm_scheduled(const struct gemm_case *g, const struct gemm_schedule *s) {
    struct gemm_case own = *g;
    own.params.parts = s->parts;
    own.params.whole = s->whole;
    own.params.bunch = s->bunch;
    return own;
}
