// SPDX-License-Identifier: Apache-2.0
// `gpurt bench rollout`: iterations of evolution strategies, update included.
//
// A step is one evaluation of the policy with all the physics that follow from it. Episodes that
// end begin anew, so every environment takes every step. Without lists it measures two settings:
// what a program had before it was tuned, 128 environments, 16 directions, 8 at once; and the
// device's profile. The check: every step was taken, and the returns are the same bits whatever the
// chunk. Where an environment says how many operations a step is, their rate is printed, and what
// share of the multiply-adds in registers it is (bench_peak.c).
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpurt/es.h"
#include "cli/command.h"
#include "cli/talk.h"

#define BEFORE_ENVS 128
#define BEFORE_DIRS 16
#define BEFORE_CHUNK 8
#define QUICK_LENGTH 100
#define MAX_NUMBER (1u << 20)

static bool read_numbers(const char *text, void *into, char why[RANGES_WHY]) {
    ranges_destroy(into);
    return ranges_parse(text, &(struct ranges_rule){.min = 1, .max = MAX_NUMBER}, into, why);
}

#define AT(field) offsetof(struct bench, rollout.field)

const struct option_row bench_rollout_options[7] = {
    {.name = "env",
     .value = "NAME|FILE.k",
     .help = "environment, or a file of your own (default: standing)",
     .read = options_read_text,
     .at = AT(env)},
    {.name = "num-envs",
     .value = "LIST",
     .help = "environments of each side (default: 128 and the profile's)",
     .read = read_numbers,
     .at = AT(envs)},
    {.name = "num-dirs",
     .value = "LIST",
     .help = "directions (default: 16 and the profile's)",
     .read = read_numbers,
     .at = AT(dirs)},
    {.name = "dir-chunk",
     .value = "LIST",
     .help = "directions at once (default: 8 and the profile's)",
     .read = read_numbers,
     .at = AT(chunks)},
    {.name = "policy",
     .value = "NAMES",
     .help = "linear, affine, mlp16 to mlp256 in steps of 4 (default: linear); random, actor of "
             "uav",
     .read = options_read_text,
     .at = AT(policies)},
    {.name = "episode-length",
     .value = "N",
     .help = "steps of an episode (default: the environment's)",
     .read = options_read_count,
     .at = AT(length)},
    {.name = "set",
     .value = "NAME=VALUE,...",
     .help = "settings of the environment, where it has some: map=64,num_uavs=32",
     .read = options_read_text,
     .at = AT(set)},
};

// The first policy named at `*at`, which goes on to the next; false when the name is unknown.
static bool next_policy(const char **at, struct grt_policy *policy) {
    char name[GRT_POLICY_TEXT];
    size_t length = strcspn(*at, ",");
    snprintf(name, sizeof name, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] == ',');
    return grt_policy_parse(name, policy);
}

// What does not go together; said.
static bool fits(const struct bench_rollout_options *o, const struct grt_env_info *env) {
    struct bench_worlds_settings settings;
    if (!bench_worlds_settings(o->set, &settings)) {
        return false;
    }
    if (o->set && !(env && env->world)) {
        talk_error("--set %s: environment '%s' has no settings", o->set,
                   env ? env->name : "standing");
        return false;
    }
    if (env && env->world && (o->dirs.count || o->chunks.count)) {
        talk_error("--num-dirs and --dir-chunk are of evolution strategies; environment '%s' is "
                   "run with random actions and with the actor of PPO",
                   env->name);
        return false;
    }
    return !(env && env->world) || bench_worlds_policies(o->policies) != 0;
}

int bench_rollout_options_check(const struct bench_rollout_options *options) {
    struct grt_policy policy;
    const struct grt_env_info *env = options->env ? grt_env_open(options->env) : NULL;
    bool known = !options->env || env;
    bool fit = !known || fits(options, env), worlds = env && env->world;
    grt_env_close(&env);
    for (const char *at = worlds ? NULL : options->policies; known && at && *at;) {
        known = next_policy(&at, &policy);
    }
    return !known ? command_exit_of_input(grt_last_status()) : fit ? -1 : COMMAND_USAGE;
}

void bench_rollout_options_end(struct bench_rollout_options *options) {
    ranges_destroy(&options->envs);
    ranges_destroy(&options->dirs);
    ranges_destroy(&options->chunks);
}

// ---- one row ----

struct rollout_case {
    struct grt_es_desc desc;
    double steps_per_s, busy;  // out
    float mean;                // out: of the first iteration
};

struct rollout_timing {
    struct grt_es *es;
    struct grt_es_report report;
    double busy, seconds;  // of all samples
};

static bool sample(void *context, double *seconds) {
    struct rollout_timing *t = context;
    if (talk_stopped() || !grt_es_iterate(t->es, &t->report) || t->report.stopped) {
        return false;
    }
    *seconds = t->report.seconds;
    t->busy += t->report.busy;
    t->seconds += t->report.seconds;
    return true;
}

// `want` is the mean return of the same case with another chunk, NaN when there is none.
static enum bench_outcome check(struct rollout_case *c, struct rollout_timing *t, float want) {
    double seconds;
    const struct grt_es_desc *d = &c->desc;
    if (!sample(t, &seconds)) {
        return BENCH_BROKEN;
    }
    c->mean = t->report.mean_return;
    double steps = 2.0 * d->num_dirs * d->num_envs * d->episode_length;
    if (t->report.steps < steps * (1 - 1e-6) || t->report.steps > steps * (1 + 1e-6)) {
        talk_error("%s: %.0f steps were taken and not %.0f", d->env->name, t->report.steps, steps);
        return BENCH_WRONG;
    }
    if (c->mean != c->mean || (want == want && c->mean != want)) {
        talk_error("%s: the mean return is %.9g and with another chunk %.9g", d->env->name,
                   (double)c->mean, (double)want);
        return BENCH_WRONG;
    }
    return BENCH_GOOD;
}

static bool print_case(struct bench *bench, struct rollout_case *c, float want, double before) {
    struct stats stats = {0};
    struct rollout_timing timing = {0};
    enum bench_outcome outcome;
    char policy[GRT_POLICY_TEXT];
    grt_policy_text(&c->desc.policy, policy);
    bench_progress_row(&bench->progress, "rollout: %s, %u environments, %u directions, %u at once",
                       policy, c->desc.num_envs, c->desc.num_dirs, c->desc.dir_chunk);
    timing.es = grt_es_create(bench->dev, &c->desc);
    if (timing.es) {
        c->desc = *grt_es_desc_of(timing.es);
        outcome = check(c, &timing, want);
        timing.busy = timing.seconds = 0;
        struct stats_desc how = {.budget = bench->seconds, .min_samples = bench->samples};
        if (outcome == BENCH_GOOD && !stats_measure(&how, sample, &timing, &stats)) {
            outcome = BENCH_BROKEN;
        }
    } else {
        outcome = grt_last_status() == GRT_UNSUPPORTED ? BENCH_UNSUITED : bench_failure();
    }
    double steps = 2.0 * c->desc.num_dirs * c->desc.num_envs * c->desc.episode_length;
    c->steps_per_s = stats.median > 0 ? steps / stats.median : 0;
    c->busy = timing.seconds > 0 ? timing.busy / timing.seconds : 0;
    struct table_cell cells[BENCH_COLUMN_COUNT] = {
        [BENCH_KIND] = TABLE_CELL(.text = "rollout"),
        [BENCH_TEST] = TABLE_CELL(.text = c->desc.env->name),
        [BENCH_POLICY] = TABLE_CELL(.text = policy),
        [BENCH_ENVS] = TABLE_CELL(.count = c->desc.num_envs),
        [BENCH_DIRS] = TABLE_CELL(.count = c->desc.num_dirs),
        [BENCH_CHUNK] = TABLE_CELL(.count = c->desc.dir_chunk),
        [BENCH_TOTAL] = TABLE_CELL(.count = (uint64_t)2 * c->desc.num_dirs * c->desc.num_envs),
        [BENCH_STEPS] = TABLE_CELL(.number = c->steps_per_s),
        [BENCH_SUBSTEPS] = TABLE_CELL(.number = c->steps_per_s * c->desc.env->substeps),
        [BENCH_MS] = TABLE_CELL(.number = 1e3 * stats.median),
    };
    double rate = c->steps_per_s * grt_policy_operations(&c->desc.policy, c->desc.env);
    double peak = rate > 0 ? bench_peak(bench, "", GRT_F32) : 0;
    cells[BENCH_GFLOPS] = (struct table_cell){.known = rate > 0, .number = rate / 1e9};
    cells[BENCH_TFLOPS] = (struct table_cell){.known = rate > 0, .number = rate / 1e12};
    cells[BENCH_PEAK] = (struct table_cell){.known = peak > 0, .number = rate / peak};
    if (before > 0) {
        cells[BENCH_SPEEDUP] = TABLE_CELL(.number = c->steps_per_s / before);
    }
    if (c->busy > 0) {
        cells[BENCH_GPU] = TABLE_CELL(.number = c->busy < 1 ? c->busy : 1);
    }
    if (timing.es) {
        cells[BENCH_MEMORY] = TABLE_CELL(.count = grt_es_size(timing.es).bytes);
    }
    grt_es_destroy(&timing.es);
    return bench_row(bench, cells, outcome, &stats, false);
}

// ---- what held it back ----

// In words: the device waits for the host, or has too few environments to fill it, or computes.
static const char *bottleneck(const struct bench *bench, const struct rollout_case *c) {
    const struct grt_caps *caps = &grt_dev_info(bench->dev)->caps;
    uint64_t lanes = (uint64_t)2 * c->desc.dir_chunk * c->desc.num_envs;
    uint64_t full = (uint64_t)caps->compute_units * (caps->software ? 1 : 256);
    if (c->busy > 0 && c->busy < 0.8) {
        return "launches and the host's reading";
    }
    return lanes < full ? "too few environments at once to fill the device"
                        : "the physics' arithmetic";
}

static bool print_story(struct bench *bench, const struct rollout_case *before,
                        const struct rollout_case *after) {
    char title[TABLE_TEXT_SIZE];
    if (!(before->steps_per_s > 0 && after->steps_per_s > 0)) {
        return true;
    }
    snprintf(title, sizeof title,
             "%u x %u, %u at once, was held back by %s; %u x %u, %u at once, by %s: %.1f times the "
             "steps",
             before->desc.num_envs, before->desc.num_dirs, before->desc.dir_chunk,
             bottleneck(bench, before), after->desc.num_envs, after->desc.num_dirs,
             after->desc.dir_chunk, bottleneck(bench, after),
             after->steps_per_s / before->steps_per_s);
    return table_section(&bench->table, title, 0, NULL, 0);
}

// ---- all rows of a policy ----

// The two settings that are compared.
static struct rollout_case case_before(const struct grt_es_desc *desc) {
    struct rollout_case c = {.desc = *desc};
    c.desc.num_envs = BEFORE_ENVS;
    c.desc.num_dirs = BEFORE_DIRS;
    c.desc.dir_chunk = BEFORE_CHUNK;
    return c;
}

static struct rollout_case case_after(const struct bench *bench, const struct grt_es_desc *desc) {
    struct grt_es_sizes sizes = grt_es_sizes(grt_dev_profile(bench->dev), grt_dev_info(bench->dev));
    struct rollout_case c = {.desc = *desc};
    c.desc.num_envs = sizes.num_envs;
    c.desc.num_dirs = sizes.num_dirs;
    c.desc.dir_chunk = sizes.dir_chunk;
    return c;
}

static bool before_and_after(struct bench *bench, const struct grt_es_desc *desc) {
    struct rollout_case before = case_before(desc), after = case_after(bench, desc);
    const float none = NAN;
    if (bench->quick) {
        return print_case(bench, &after, none, 0);
    }
    return print_case(bench, &before, none, 0) &&
           print_case(bench, &after, none, before.steps_per_s) &&
           print_story(bench, &before, &after);
}

static bool same_setting(const struct rollout_case *a, const struct rollout_case *b) {
    return a->desc.num_envs == b->desc.num_envs && a->desc.num_dirs == b->desc.num_dirs &&
           a->desc.dir_chunk == b->desc.dir_chunk;
}

// What is given is measured and nothing else. Lists that have both settings are followed by the
// comparison.
static bool every_case(struct bench *bench, const struct grt_es_desc *desc) {
    const struct bench_rollout_options *o = &bench->rollout;
    struct grt_es_sizes sizes = grt_es_sizes(grt_dev_profile(bench->dev), grt_dev_info(bench->dev));
    uint64_t defaults[] = {sizes.num_envs, sizes.num_dirs, sizes.dir_chunk};
    const struct ranges *given[] = {&o->envs, &o->dirs, &o->chunks};
    struct ranges lists[3];
    for (int i = 0; i < 3; i++) {
        lists[i] = given[i]->count ? *given[i] : (struct ranges){&defaults[i], 1};
    }
    struct rollout_case before = case_before(desc), after = case_after(bench, desc);
    double first = 0;
    for (size_t e = 0; e < lists[0].count; e++) {
        for (size_t d = 0; d < lists[1].count; d++) {
            float want = NAN;
            uint32_t last_chunk = 0;
            for (size_t k = 0; k < lists[2].count; k++) {
                struct rollout_case c = {.desc = *desc};
                c.desc.num_envs = (uint32_t)lists[0].values[e];
                c.desc.num_dirs = (uint32_t)lists[1].values[d];
                uint32_t chunk = (uint32_t)lists[2].values[k];
                c.desc.dir_chunk = chunk < c.desc.num_dirs ? chunk : c.desc.num_dirs;
                if (c.desc.dir_chunk == last_chunk) {
                    bench->progress.planned--;
                    continue;
                }
                last_chunk = c.desc.dir_chunk;
                if (!print_case(bench, &c, want, first)) {
                    return false;
                }
                first = first > 0 ? first : c.steps_per_s;
                if (same_setting(&c, &before)) {
                    before = c;
                }
                if (same_setting(&c, &after)) {
                    after = c;
                }
                want = c.steps_per_s > 0 ? c.mean : want;
            }
        }
    }
    return same_setting(&before, &after) || print_story(bench, &before, &after);
}

static bool each_policy(struct bench *bench, struct grt_es_desc *desc, uint64_t shown) {
    const struct bench_rollout_options *o = &bench->rollout;
    bool lists = o->envs.count || o->dirs.count || o->chunks.count;
    const char *at = o->policies ? o->policies : "linear";
    size_t rows = lists
                      ? (o->envs.count ? o->envs.count : 1) * (o->dirs.count ? o->dirs.count : 1) *
                            (o->chunks.count ? o->chunks.count : 1)
                      : (bench->quick ? 1 : 2);
    size_t policies = 1;
    for (const char *c = at; *c; c++) {
        policies += *c == ',';
    }
    bench_progress_plan(&bench->progress, rows * policies, bench->seconds);
    while (*at) {
        if (!next_policy(&at, &desc->policy)) {
            bench->outcomes[BENCH_BROKEN]++;
            return false;
        }
        // A table of its own: the comparison ends it.
        if (!bench_section(bench, "rollout", shown) ||
            !(lists ? every_case(bench, desc) : before_and_after(bench, desc))) {
            return false;
        }
    }
    return true;
}

// The robot, where the list of environments has it, else the first.
static const char *default_env(void) {
    const struct grt_env_info *env;
    for (uint32_t i = 0; (env = grt_env_at(i)); i++) {
        if (strcmp(env->name, "standing") == 0) {
            return env->name;
        }
    }
    return grt_env_at(0)->name;
}

bool bench_rollout(struct bench *bench) {
    const struct bench_rollout_options *o = &bench->rollout;
    struct grt_es_desc desc = {
        .env = grt_env_open(o->env ? o->env : default_env()),
        .episode_length = o->length,
        .restart = true,
        .max_submit_ms = bench->common.max_submit_ms,
        .stop = talk_stopped,
    };
    if (!desc.env) {
        return bench_row(bench, NULL, BENCH_BROKEN, NULL, false);
    }
    if (desc.env->world) {
        bool ok = bench_worlds(bench, desc.env);
        grt_env_close(&desc.env);
        return ok;
    }
    uint64_t shown = BENCH_BIT(TEST) | BENCH_BIT(POLICY) | BENCH_BIT(ENVS) | BENCH_BIT(DIRS) |
                     BENCH_BIT(CHUNK) | BENCH_BIT(TOTAL) | BENCH_BIT(STEPS) | BENCH_BIT(SUBSTEPS) |
                     BENCH_BIT(SPEEDUP) | BENCH_BIT(GPU) | BENCH_BIT(MEMORY) | BENCH_BIT(MS) |
                     BENCH_BIT(SPREAD) | BENCH_BIT(SAMPLES) | BENCH_BIT(CHECK);
    bool software = grt_dev_info(bench->dev)->caps.software != 0;
    if (desc.env->operations) {
        shown |= BENCH_BIT(PEAK) | (software ? BENCH_BIT(GFLOPS) : BENCH_BIT(TFLOPS));
    }
    if (bench->quick && !desc.episode_length) {
        desc.episode_length = QUICK_LENGTH;
    }
    bool ok = each_policy(bench, &desc, shown);
    grt_env_close(&desc.env);
    return ok;
}
