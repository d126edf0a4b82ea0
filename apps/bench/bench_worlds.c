// SPDX-License-Identifier: Apache-2.0
// `gpurt bench rollout` of an environment whose state lies in device memory: the environment alone,
// with random actions among those that are allowed. A step is one agent's: what it sees, a choice,
// and what follows. The check: every copy took every step, as a step of an episode or as the reset
// behind one.
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk.h"
#include "gpurt/es.h"

#define MAX_STEPS 256  // of one run
#define SMALL_COPIES 64
#define BOOK 1  // of the tensors of worlds: episode, time, ended of each copy

// What a row is measured with.
struct stage {
    struct grt_dev *dev;
    struct grt_worlds *worlds;
    struct grt_worlds_sizes sizes;
    uint32_t copies, steps;
    struct grt_plan *plan;
    const struct grt_tensor *control, *obs, *whole, *mask, *actions, *rewards, *ends, *sums;
};

bool bench_worlds_settings(const char *text, struct bench_worlds_settings *settings) {
    *settings = (struct bench_worlds_settings){0};
    while (text && *text) {
        size_t length = strcspn(text, ","), name = strcspn(text, "=,");
        if (settings->count == GRT_ENV_SETTINGS || name == 0 || name >= BENCH_SETTING_NAME ||
            text[name] != '=') {
            talk_error("--set %.*s: settings are NAME=VALUE, with commas between, at most %d",
                       (int)length, text, GRT_ENV_SETTINGS);
            return false;
        }
        struct grt_env_value *value = &settings->values[settings->count];
        char *end = NULL, *into = settings->names[settings->count];
        memcpy(into, text, name);
        value->name = into;
        value->value = strtod(text + name + 1, &end);
        if (end != text + length || end == text + name + 1) {
            talk_error("--set %.*s: the value is no number", (int)length, text);
            return false;
        }
        settings->count++;
        text += length + (text[length] == ',');
    }
    return true;
}

static void stage_end(struct stage *s) {
    grt_plan_destroy(&s->plan);
    grt_worlds_destroy(&s->worlds);
}

static const struct grt_tensor *tensor(struct stage *s, const char *label, enum grt_dtype dtype,
                                       uint64_t rows, uint64_t cols) {
    return grt_plan_tensor(s->plan,
                           grt_tensor_desc(.label = label, .group = "bench", .dtype = dtype,
                                           .shape = {rows, cols > 0 ? cols : 1}));
}

static bool stage_begin(struct stage *s, struct bench *bench, const struct grt_env_info *env,
                        const struct bench_worlds_settings *settings, uint32_t copies) {
    *s = (struct stage){.dev = bench->dev, .copies = copies};
    s->worlds = grt_worlds_create(bench->dev, grt_worlds_desc(.env = env, .copies = copies,
                                                              .settings = settings->values,
                                                              .setting_count = settings->count,
                                                              .length = bench->rollout.length));
    s->plan = s->worlds ? grt_plan_create(bench->dev) : NULL;
    if (!s->plan) {
        return false;
    }
    s->sizes = *grt_worlds_sizes(s->worlds);
    uint64_t rows = (uint64_t)copies * s->sizes.agents;
    s->control = tensor(s, "control", GRT_U32, 4, 1);
    s->obs = tensor(s, "observations", GRT_F32, rows, s->sizes.obs);
    s->whole = tensor(s, "observations of the whole", GRT_F32, copies, s->sizes.global);
    s->mask = tensor(s, "masks", GRT_U32, rows, 1);
    s->actions = tensor(s, "actions", GRT_U32, rows, s->sizes.act);
    s->rewards = tensor(s, "rewards", GRT_F32, rows, 1);
    s->ends = tensor(s, "ends", GRT_U32, rows, 1);
    s->sums = tensor(s, "totals", GRT_F32, GRT_WORLD_TOTALS + s->sizes.terms, 1);
    grt_worlds_declare(s->worlds, s->plan);
    return grt_plan_alloc(s->plan);
}

// So many steps of all copies.
static struct grt_graph *record(void *context, uint32_t count) {
    struct stage *s = context;
    struct grt_graph *graph = grt_graph_create(s->dev, "bench worlds");
    const struct grt_observe_desc observe = {.obs = s->obs->range,
                                             .global = s->sizes.global > 0 ? s->whole->range
                                                                           : (struct grt_range){0},
                                             .mask = s->mask->range};
    const struct grt_world_random_desc random = {.control = s->control->range,
                                                 .mask = s->mask->range,
                                                 .actions = s->actions->range,
                                                 .advance = true};
    const struct grt_world_step_desc step = {.control = s->control->range,
                                             .actions = s->actions->range,
                                             .rewards = s->rewards->range,
                                             .ends = s->ends->range};
    for (uint32_t i = 0; graph && i < count; i++) {
        grt_op_worlds_observe(graph, s->worlds, &observe);
        grt_op_worlds_random(graph, s->worlds, &random);
        grt_op_worlds_step(graph, s->worlds, &step);
    }
    if (graph && !grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

static bool reset(struct stage *s) {
    const struct grt_rng_state control = {{1, 0}, {0, 0}};
    struct grt_graph *graph = grt_graph_create(s->dev, "bench worlds reset");
    bool ok = graph && grt_buf_write(s->control->range.buf, s->control->range.offset, &control,
                                     sizeof control);
    if (ok) {
        grt_op_worlds_reset(graph, s->worlds, s->control->range);
        ok = grt_graph_finish(graph);
    }
    grt_graph_destroy(&graph);
    return ok;
}

// Steps that all copies took, one by one, resets included; negative when a call failed.
static double steps_taken(struct stage *s) {
    const struct grt_tensor *book = grt_plan_at(s->plan, "worlds", BOOK);
    uint32_t *words = calloc(1, grt_tensor_bytes(book));
    float *sums = calloc(1, grt_tensor_bytes(s->sums));
    struct grt_graph *graph = grt_graph_create(s->dev, "bench worlds totals");
    double taken = -1;
    if (words && sums && graph) {
        grt_op_worlds_totals(graph, s->worlds, s->sums->range);
        if (grt_graph_finish(graph) &&
            grt_buf_read(s->sums->range.buf, s->sums->range.offset, sums,
                         grt_tensor_bytes(s->sums)) &&
            grt_buf_read(book->range.buf, book->range.offset, words, grt_tensor_bytes(book))) {
            taken = (double)sums[2];
        }
        for (uint32_t i = 0; taken >= 0 && i < s->copies; i++) {
            bool ended = words[2 * s->copies + i] != 0;
            taken += words[i] + (ended ? 0 : words[s->copies + i]);
        }
    }
    grt_graph_destroy(&graph);
    free(words);
    free(sums);
    return taken;
}

static enum bench_outcome measure(struct bench *bench, struct stage *s, struct stats *stats) {
    struct bench_timing timing = {.replays = 1};
    s->steps = bench_fill_run(&timing, MAX_STEPS, record, s);
    enum bench_outcome outcome = s->steps > 0 ? BENCH_GOOD : BENCH_BROKEN;
    if (outcome == BENCH_GOOD) {
        double want = (double)s->steps * s->copies;
        double taken = reset(s) && grt_graph_finish(timing.graph) ? steps_taken(s) : -1;
        outcome = taken < 0 ? BENCH_BROKEN : taken == want ? BENCH_GOOD : BENCH_WRONG;
        if (outcome == BENCH_WRONG) {
            talk_error("%u copies: %.0f steps were taken and not %.0f", s->copies, taken, want);
        }
    }
    if (outcome == BENCH_GOOD && !bench_time(bench, &timing, stats)) {
        outcome = BENCH_BROKEN;
    }
    grt_graph_destroy(&timing.graph);
    return outcome;
}

static bool print_one(struct bench *bench, const struct grt_env_info *env,
                      const struct bench_worlds_settings *settings, uint32_t copies) {
    struct stage s;
    struct stats stats = {0};
    bench_progress_row(&bench->progress, "rollout: %s, %u copies", env->name, copies);
    enum bench_outcome outcome = BENCH_BROKEN;
    if (!stage_begin(&s, bench, env, settings, copies)) {
        outcome = s.worlds ? bench_failure() : BENCH_BROKEN;
    } else if (reset(&s)) {
        outcome = measure(bench, &s, &stats);
    }
    double rows = (double)copies * s.sizes.agents;
    struct table_cell cells[BENCH_COLUMN_COUNT] = {
        [BENCH_KIND] = TABLE_CELL(.text = "rollout"),
        [BENCH_TEST] = TABLE_CELL(.text = env->name),
        [BENCH_POLICY] = TABLE_CELL(.text = "random"),
        [BENCH_ENVS] = TABLE_CELL(.count = copies),
        [BENCH_TOTAL] = TABLE_CELL(.count = (uint64_t)rows),
        [BENCH_STEPS] = TABLE_CELL(.number = stats.median > 0 ? rows * s.steps / stats.median : 0),
        [BENCH_MS] = TABLE_CELL(.number = s.steps > 0 ? 1e3 * stats.median / s.steps : 0),
    };
    if (s.plan) {
        cells[BENCH_MEMORY] = TABLE_CELL(.count = grt_plan_bytes(s.plan, NULL));
    }
    stage_end(&s);
    return bench_row(bench, cells, outcome, &stats, false);
}

uint32_t bench_worlds_policies(const char *names) {
    static const char *const known[] = {"random", "actor"};
    char why[RANGES_WHY];
    uint32_t policies = BENCH_WORLDS_RANDOM | BENCH_WORLDS_ACTOR;
    if (names && !options_bits(names, known, 2, &policies, why)) {
        talk_error("--policy %s: %s; an environment in device memory is run with random actions or "
                   "with the actor of PPO",
                   names, why);
        return 0;
    }
    return policies;
}

bool bench_worlds(struct bench *bench, const struct grt_env_info *env) {
    const struct bench_rollout_options *o = &bench->rollout;
    struct bench_worlds_settings settings;
    struct grt_es_sizes sizes = grt_es_sizes(grt_dev_profile(bench->dev), grt_dev_info(bench->dev));
    uint64_t usual[] = {SMALL_COPIES, sizes.num_envs};
    struct ranges copies = o->envs.count  ? o->envs
                           : bench->quick ? (struct ranges){usual, 1}
                                          : (struct ranges){usual, 2};
    uint64_t shown = BENCH_BIT(TEST) | BENCH_BIT(POLICY) | BENCH_BIT(ENVS) | BENCH_BIT(TOTAL) |
                     BENCH_BIT(STEPS) | BENCH_BIT(MEMORY) | BENCH_BIT(MS) | BENCH_BIT(SPREAD) |
                     BENCH_BIT(SAMPLES) | BENCH_BIT(CHECK);
    // What is wrong with the settings is said before anything is printed.
    struct grt_worlds *trial = NULL;
    if (bench_worlds_settings(o->set, &settings)) {
        trial = grt_worlds_create(bench->dev, grt_worlds_desc(.env = env, .copies = 1,
                                                              .settings = settings.values,
                                                              .setting_count = settings.count));
    }
    if (!trial) {
        return bench_row(bench, NULL, BENCH_BROKEN, NULL, false);
    }
    grt_worlds_destroy(&trial);
    uint32_t policies = bench_worlds_policies(o->policies);
    size_t kinds = (policies & 1) + (policies >> 1);
    bench_progress_plan(&bench->progress, copies.count * kinds, bench->seconds);
    if (!bench_section(bench, "rollout", shown)) {
        return false;
    }
    for (size_t i = 0; i < copies.count; i++) {
        uint32_t count = (uint32_t)copies.values[i];
        if ((policies & BENCH_WORLDS_RANDOM) && !print_one(bench, env, &settings, count)) {
            return false;
        }
        if ((policies & BENCH_WORLDS_ACTOR) && !bench_worlds_policy(bench, &settings, count)) {
            return false;
        }
    }
    return true;
}
