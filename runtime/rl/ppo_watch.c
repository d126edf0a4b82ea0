// SPDX-License-Identifier: Apache-2.0
// Watching one copy of an evaluation: after each step, what it saw and did is read to the host.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/half.h"
#include "base/log.h"
#include "ops/op_support.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

struct watch {
    struct grt_ppo *ppo;
    const struct grt_worlds_sizes *sizes;
    uint32_t copy, copies;
    const struct grt_tensor *state, *totals;
    struct grt_buf *shapes_at;
    struct grt_graph *draw;
    uint32_t *words;  // of all copies, then of this one
    uint32_t *seen;   // observations as they are in memory
    float *obs, *acts, *rewards;
    uint32_t *mask, *choices, *ends;
    struct grt_drawn_shape *shapes;
};

static uint32_t agents(const struct watch *w) {
    return w->sizes->agents;
}

// Numbers of 4 bytes, `each` for every agent of the copy, from place `at` of a tensor.
static bool read_rows(const struct watch *w, const struct grt_tensor *t, uint64_t at, uint32_t each,
                      void *into) {
    uint64_t bytes = (uint64_t)agents(w) * each * 4;
    return grt_buf_read(t->range.buf, t->range.offset + at * 4 + w->copy * bytes, into, bytes);
}

static bool read_section(const struct watch *w, uint32_t section, void *into) {
    const struct ppo_actors *a = &w->ppo->evaluating;
    return read_rows(w, a->traj, section * grt_ppo_section(a), 1, into);
}

// Observations as f32, without what is behind their rows.
static bool read_observations(const struct watch *w) {
    const struct ppo_actors *a = &w->ppo->evaluating;
    enum grt_dtype type = w->ppo->net.dtype;
    if (!read_rows(w, a->obs, 0, a->obs_words, w->seen)) {
        return false;
    }
    for (uint32_t k = 0; k < agents(w); k++) {
        const uint32_t *row = w->seen + (size_t)k * a->obs_words;
        for (uint32_t i = 0; i < w->sizes->obs; i++) {
            float *to = &w->obs[(size_t)k * w->sizes->obs + i];
            if (type == GRT_F32) {
                memcpy(to, row + i, sizeof *to);
            } else {
                *to = grt_f32_of_16(type, (uint16_t)(row[i / 2] >> (i % 2 * 16)));
            }
        }
    }
    return true;
}

static bool read_step(struct watch *w) {
    const struct ppo_actors *a = &w->ppo->evaluating;
    bool discrete = w->sizes->choices > 0;
    return (a->raw ? read_rows(w, a->raw, 0, w->sizes->obs, w->obs) : read_observations(w)) &&
           (discrete ? read_section(w, PPO_MASK, w->mask) && read_section(w, PPO_ACTION, w->choices)
                     : read_rows(w, a->acts, 0, w->sizes->act, w->acts)) &&
           read_section(w, PPO_REWARD, w->rewards) && read_section(w, PPO_END, w->ends);
}

// The words of the copy, and its shapes.
static bool read_state(struct watch *w) {
    uint64_t all = (uint64_t)w->sizes->words * w->copies;
    if (!grt_buf_read(w->state->range.buf, w->state->range.offset, w->words, all * 4)) {
        return false;
    }
    for (uint32_t i = 0; i < w->sizes->words; i++) {
        w->words[all + i] = w->words[(uint64_t)i * w->copies + w->copy];
    }
    uint64_t bytes = w->sizes->shapes * sizeof *w->shapes;
    return !w->draw || (grt_graph_run(w->draw) &&
                        grt_buf_read(w->shapes_at, w->copy * bytes, w->shapes, bytes));
}

static bool make_drawing(struct watch *w, struct grt_worlds *worlds) {
    uint64_t bytes = (uint64_t)w->copies * w->sizes->shapes * sizeof *w->shapes;
    w->shapes_at =
        grt_buf_create(w->ppo->dev, grt_buf_desc(.size = bytes, .label = "drawn shapes"));
    w->draw = w->shapes_at ? grt_graph_create(w->ppo->dev, "draw") : NULL;
    if (w->draw) {
        grt_op_worlds_draw(w->draw, worlds, (struct grt_range){w->shapes_at, 0, bytes});
    }
    return w->draw && grt_graph_bake(w->draw);
}

static bool make(struct watch *w, struct grt_worlds *worlds) {
    const struct grt_worlds_sizes *sizes = w->sizes;
    size_t n = sizes->agents;
    w->state = grt_plan_at(w->ppo->evaluating.plan, "worlds", 0);
    w->totals = grt_plan_at(w->ppo->evaluating.plan, "worlds", 2);
    w->words = calloc((size_t)sizes->words * ((size_t)w->copies + 1), sizeof *w->words);
    w->seen = calloc(n * w->ppo->evaluating.obs_words, sizeof *w->seen);
    w->obs = calloc(n * sizes->obs, sizeof *w->obs);
    w->acts = calloc(n * (sizes->act + 1), sizeof *w->acts);
    w->rewards = calloc(n, sizeof *w->rewards);
    w->mask = calloc(n, sizeof *w->mask);
    w->choices = calloc(n, sizeof *w->choices);
    w->ends = calloc(n, sizeof *w->ends);
    w->shapes = calloc((size_t)sizes->shapes + 1, sizeof *w->shapes);
    if (!w->words || !w->seen || !w->obs || !w->acts || !w->rewards || !w->mask || !w->choices ||
        !w->ends || !w->shapes) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for an episode");
    }
    return sizes->shapes == 0 || make_drawing(w, worlds);
}

static void finish(struct watch *w) {
    void *all[] = {w->words, w->seen,    w->obs,  w->acts,  w->rewards,
                   w->mask,  w->choices, w->ends, w->shapes};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
    grt_graph_destroy(&w->draw);
    grt_buf_destroy(&w->shapes_at);
}

// What the copy's own totals say, [number][copies].
static bool report_copy(const struct watch *w, struct grt_ppo_report *r) {
    double *const numbers[GRT_WORLD_TOTALS] = {&r->episodes, &r->mean_return, &r->length};
    bool ok = true;
    for (uint32_t i = 0; ok && i < GRT_WORLD_TOTALS + w->sizes->terms; i++) {
        float number = 0;
        uint64_t at = ((uint64_t)i * w->copies + w->copy) * 4;
        ok = grt_buf_read(w->totals->range.buf, w->totals->range.offset + at, &number, 4);
        if (i < GRT_WORLD_TOTALS) {
            *numbers[i] = (double)number;
        } else if (i - GRT_WORLD_TOTALS < GRT_PPO_TERMS) {
            r->terms[i - GRT_WORLD_TOTALS] = (double)number;
        }
    }
    r->rows = r->length * agents(w);
    return ok;
}

static struct grt_ppo_moment moment_of(const struct watch *w, uint32_t step) {
    bool discrete = w->sizes->choices > 0;
    uint64_t all = (uint64_t)w->sizes->words * w->copies;
    return (struct grt_ppo_moment){.step = step,
                                   .state = w->words ? w->words + all : NULL,
                                   .shapes = w->draw ? w->shapes : NULL,
                                   .obs = w->obs,
                                   .mask = discrete ? w->mask : NULL,
                                   .choices = discrete ? w->choices : NULL,
                                   .acts = discrete ? NULL : w->acts,
                                   .rewards = w->rewards,
                                   .ends = w->ends};
}

bool grt_ppo_watch(struct grt_ppo *ppo, struct grt_worlds *worlds, enum grt_ppo_trial trial,
                   uint32_t seed, uint32_t copy, grt_ppo_look look, void *self,
                   struct grt_ppo_report *report) {
    if (!ppo || !worlds || !look || !report || (unsigned)trial >= GRT_PPO_TRIAL_COUNT ||
        copy >= grt_worlds_copies(worlds)) {
        return grt_fail(GRT_INVALID, "grt_ppo_watch: no PPO, worlds, trial, copy, look or report");
    }
    double start = grt_seconds();
    struct watch w = {.ppo = ppo,
                      .sizes = grt_worlds_sizes(worlds),
                      .copy = copy,
                      .copies = grt_worlds_copies(worlds)};
    *report = (struct grt_ppo_report){.iteration = ppo->done};
    bool in = grt_ppo_average(ppo, true);
    bool ok =
        in && grt_ppo_begin_trial(ppo, worlds, trial, seed) && make(&w, worlds) && read_state(&w);
    uint32_t length = grt_worlds_length(worlds);
    struct grt_ppo_moment moment = moment_of(&w, 0);
    bool more = ok && look(self, &moment);
    for (uint32_t t = 1; ok && more && t <= length + 1; t++) {
        ok = grt_graph_run(ppo->trials[trial]) && read_step(&w) && read_state(&w);
        moment = moment_of(&w, t);
        more = ok && look(self, &moment);
    }
    ok = ok && report_copy(&w, report);
    // An episode that fails leaves the networks their own parameters too.
    bool out = in && grt_ppo_average(ppo, false);
    report->seconds = grt_seconds() - start;
    finish(&w);
    return ok && out;
}
