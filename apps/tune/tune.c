// SPDX-License-Identifier: Apache-2.0
// `gpurt tune`: the options, the jobs that the level asks for, and the time each may take.
#include "tune.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output/files.h"
#include "cli/devices.h"
#include "cli/options/spread.h"
#include "cli/talk.h"
#include "tune_job.h"

static const char about[] =
    "Finds the fastest settings of kernels on a device and keeps them in "
    "the user's profile, where\n"
    "every later run finds them. A candidate that computes wrong, crashes "
    "or hangs is passed over,\n"
    "and what is stored is replaced only by what is faster in three "
    "rounds of four. Ctrl-C keeps\n"
    "what was found. Levels: 0 measures and stores nothing, 1 the best variant for "
    "large products, 2 for all\n"
    "sizes, 3 every variant.\n";

// ---- options ----

static bool read_op(const char *text, void *into, char why[RANGES_WHY]) {
    *(const char **)into = text;
    for (uint32_t i = 0; grt_tunable(i); i++) {
        if (strcmp(grt_tunable(i)->op, text) == 0) {
            return true;
        }
    }
    snprintf(why, RANGES_WHY, "known is gemm");
    return false;
}

static bool read_text(const char *text, void *into, char why[RANGES_WHY]) {
    (void)why;
    *(const char **)into = text;
    return true;
}

// "60", "60s", "5m", "1h"
static bool read_budget(const char *text, void *into, char why[RANGES_WHY]) {
    char *end = NULL;
    double value = strtod(text, &end);
    double unit = !*end || strcmp(end, "s") == 0 ? 1
                  : strcmp(end, "m") == 0        ? 60
                  : strcmp(end, "h") == 0        ? 3600
                                                 : 0;
    *(double *)into = value * unit;
    if (end != text && value * unit >= 1 && value * unit <= 86400) {
        return true;
    }
    snprintf(why, RANGES_WHY, "a time from 1s to 24h is wanted, such as 60s or 5m");
    return false;
}

static bool read_level(const char *text, void *into, char why[RANGES_WHY]) {
    if (text[0] < '0' || text[0] > '3' || text[1]) {
        snprintf(why, RANGES_WHY, "a level from 0 to 3 is wanted");
        return false;
    }
    *(uint32_t *)into = (uint32_t)(text[0] - '0') + TUNE_LEVEL_0;
    return true;
}

static const struct option_row tune_options[] = {
    {.name = "op",
     .value = "gemm",
     .help = "what is tuned",
     .fallback = "gemm",
     .read = read_op,
     .at = offsetof(struct tune, op)},
    {.name = "data",
     .value = "CONFIG.yaml",
     .help = "tune the products of this training config",
     .read = read_text,
     .at = offsetof(struct tune, data)},
    {.name = "budget",
     .value = "TIME",
     .help = "time for all of it: 60s, 5m",
     .fallback = "60s",
     .read = read_budget,
     .at = offsetof(struct tune, budget)},
    {.name = "level",
     .value = "0-3",
     .help = "how much is searched (default: by profile)",
     .read = read_level,
     .at = offsetof(struct tune, level)},
};
#define TUNE_OPTIONS (sizeof tune_options / sizeof *tune_options)

// ---- what there is to do ----

static bool named(const char *list, const char *variant) {
    size_t length = strlen(variant);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == length && strncmp(at, variant, length) == 0) {
            return true;
        }
    }
    return false;
}

// A tunable, and the share of the time that its jobs get: most for what serves.
#define USED_WEIGHT 4
struct choice {
    uint32_t tunable, weight;
};

// The tunables for operands of one type: those of the device's variants for products of this shape,
// 0 rows for any, or those that were named.
static bool choose_tunables(struct tune *tune, enum grt_dtype in,
                            const struct bench_gemm_shape *shape, struct choice *chosen,
                            uint32_t *count) {
    const char *asked = tune->bench.gemm.variants;
    struct tune_task task = {.kind = TUNE_VARIANTS, .in = in, .shape = *shape, .limit = 30};
    struct tune_answer answer;
    *count = 0;
    if (strcmp(asked, "auto") != 0 && strcmp(asked, "all") != 0) {
        for (uint32_t t = 0; grt_tunable(t) && *count < TUNE_MAX_TUNABLES; t++) {
            if (named(asked, grt_tunable(t)->variant) && grt_tunable(t)->dtypes >> in & 1) {
                chosen[(*count)++] = (struct choice){t, 1};
            }
        }
        return true;
    }
    if (tune_worker_ask(&tune->worker, &task, &answer) != TUNE_ANSWERED) {
        return false;
    }
    // Settings of a variant that is not the one used would be tuned for nothing.
    bool all = strcmp(asked, "all") == 0 || tune->level == TUNE_LEVEL_0 + 3;
    for (uint32_t i = 0; i < answer.count; i++) {
        if (all || answer.used[i]) {
            chosen[(*count)++] =
                (struct choice){answer.tunables[i], answer.used[i] ? USED_WEIGHT : 1};
        }
    }
    if (!*count && !tune->bench.common.quiet) {
        talk_error("%s in %s is done by '%s', which has no settings%s", tune->op,
                   grt_dtype_text(in), answer.best,
                   tune->table ? "; --variant all tunes the others" : "");
    }
    return true;
}

// One setting for another shape, too.
static bool add_shape(struct tune_job *job, const struct bench_gemm_shape *shape) {
    if (job->also_count == TUNE_MAX_SHAPES - 1) {
        talk_error("more than %u shapes are %s products", TUNE_MAX_SHAPES,
                   grt_size_class_text(job->pick.size));
        return false;
    }
    job->also[job->also_count++] = *shape;
    return true;
}

static bool add_job(struct tune *tune, const struct tune_job *job) {
    for (size_t i = 0; i < tune->job_count; i++) {
        if (tune->jobs[i].tunable == job->tunable && tune->jobs[i].in == job->in &&
            tune->jobs[i].pick.size == job->pick.size) {
            if (!tune->table || tune->data) {
                return true;  // of a run's products the first of a class stands for it
            }
            return add_shape(&tune->jobs[i], &job->shape);
        }
    }
    if (tune->job_count < TUNE_MAX_JOBS) {
        tune->jobs[tune->job_count++] = *job;
    }
    return true;
}

// The jobs of one tunable: its classes, or that of the shape that was given.
static bool add_jobs(struct tune *tune, const struct choice *choice, enum grt_dtype in,
                     const struct bench_gemm_shape *shape) {
    const struct grt_tunable *tunable = grt_tunable(choice->tunable);
    bool largest_only = tune->level == TUNE_LEVEL_0 + 1;
    struct tune_job job = {.tunable = choice->tunable,
                           .in = in,
                           .shape = *shape,
                           .given = shape->m > 0,
                           .weight = choice->weight};
    bool good = true;
    if (job.given) {
        return !grt_tunable_pick(tunable, &tune->info, tune->profile, shape->m, shape->n, 1,
                                 &job.pick) ||
               add_job(tune, &job);
    }
    for (uint32_t size = 0; good && size < tunable->classes; size++) {
        if (!tune_job_shape(tune, &job, (enum grt_size_class)size, 0)) {
            continue;
        }
        good = add_job(tune, &job);
        if (largest_only) {
            break;
        }
    }
    return good;
}

// The jobs for products of one type and shape; false with the exit code.
static bool plan_shape(struct tune *tune, enum grt_dtype in, const struct bench_gemm_shape *shape,
                       int *code) {
    struct choice chosen[TUNE_MAX_TUNABLES];
    uint32_t count = 0;
    if (!choose_tunables(tune, in, shape, chosen, &count)) {
        *code = talk_stopped() ? COMMAND_OK : COMMAND_NO_DEVICE;
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!add_jobs(tune, &chosen[i], in, shape)) {
            *code = COMMAND_USAGE;
            return false;
        }
    }
    return true;
}

// The way of --trans, a place in BENCH_GEMM_TRANS.
static uint32_t way_of(const struct tune *tune) {
    uint32_t way = 0;
    while (way < 3 && !(tune->bench.gemm.trans >> way & 1)) {
        way++;
    }
    return tune->bench.gemm.trans ? way : 0;
}

// A plan of all jobs; false with the exit code.
static bool plan(struct tune *tune, int *code) {
#define X(name, text) GRT_##name,
    static const enum grt_dtype precisions[] = {BENCH_GEMM_PRECISIONS(X)};
#undef X
    uint32_t asked = tune->bench.gemm.precisions;
    asked = asked ? asked : tune->info.caps.software ? 1 : 3;
    const struct bench_gemm_shapes *given = &tune->bench.gemm.shapes;
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        for (size_t i = 0; (asked >> p & 1) && i < (given->count ? given->count : 1); i++) {
            struct bench_gemm_shape shape = {0};
            if (given->count) {
                shape = given->values[i];
            }
            shape.trans = shape.trans ? shape.trans : way_of(tune);
            if (!plan_shape(tune, precisions[p], &shape, code)) {
                return false;
            }
        }
    }
    const char *variants = tune->bench.gemm.variants;
    if (!tune->job_count && strcmp(variants, "auto") != 0) {
        talk_error("nothing to tune: no variant '%s' with settings on %s", variants,
                   tune->info.selector);
        *code = COMMAND_NO_DEVICE;
    }
    return tune->job_count > 0;
}

// ---- running ----

static int run_jobs(struct tune *tune) {
    int code = COMMAND_OK;
    tune->end = grt_seconds() + tune->budget;
    if (!plan(tune, &code)) {
        return code;
    }
    // Said before the time is spent.
    if (tune->level > TUNE_LEVEL_0 && !grt_profile_storable(&tune->info)) {
        return command_exit_of(grt_last_status());
    }
    uint32_t measured = 0, weights = 0;
    for (size_t i = 0; i < tune->job_count; i++) {
        weights += tune->jobs[i].weight;
    }
    for (size_t i = 0; !code && i < tune->job_count && !talk_stopped(); i++) {
        double left = tune->end - grt_seconds();
        tune->deadline = grt_seconds() + left * tune->jobs[i].weight / weights;
        weights -= tune->jobs[i].weight;
        code = tune_job_run(tune, &tune->jobs[i]);
        measured += tune->jobs[i].measured;
    }
    if (!code && !measured && !talk_stopped()) {
        talk_error("no setting could be measured");
        code = COMMAND_INTERNAL;
    }
    return code;
}

static void say_end(const struct tune *tune) {
    char path[4096];
    if (tune->bench.common.quiet || !tune->job_count ||
        !grt_profile_user_path(&tune->info, path, sizeof path)) {
        return;
    }
    talk_error("%s%u of %zu settings improved, %s %s", talk_stopped() ? "interrupted; " : "",
               tune->stored, tune->job_count, tune->stored ? "in" : "so nothing is written in",
               path);
    const char *above = getenv("GPURT_PROFILE");
    if (tune->stored && above && *above) {
        talk_error("GPURT_PROFILE names %s, which stands above that file", above);
    }
}

// Finds the device without opening it: this process forks, and must not hold a driver.
static int find_device(struct tune *tune) {
    struct grt_dev_list *list = grt_dev_list_create();
    struct grt_dev_desc desc = options_device_desc(&tune->bench.common);
    const struct grt_dev_info *info = list ? grt_dev_choose(list, &desc) : NULL;
    if (info) {
        tune->info = *info;
    }
    grt_dev_list_destroy(&list);
    tune->profile = info ? grt_profile_create(&tune->info) : NULL;
    if (!tune->profile) {
        return command_exit_of(grt_last_status());
    }
    desc.device = tune->info.selector;
    desc.backend = NULL;
    tune->worker = (struct tune_worker){.device = desc, .child = GRT_NO_CHILD};
    if (!tune->level) {
        tune->level = TUNE_LEVEL_0 + grt_profile_whole(tune->profile, GRT_KEY_AUTOTUNE);
    }
    return COMMAND_OK;
}

// The options that do not go together, and the products of --data.
static int read_products(struct tune *tune) {
    static struct grt_config config;
    uint32_t ways = tune->bench.gemm.trans;
    if (ways & (ways - 1)) {
        talk_error("--trans: settings are for one way, such as tn");
        return COMMAND_USAGE;
    }
    if (!tune->data) {
        return COMMAND_OK;
    }
    if (tune->bench.gemm.shapes.count || tune->bench.gemm.precisions || ways != 1) {
        talk_error("--data has shapes, types and transpositions: name no others");
        return COMMAND_USAGE;
    }
    grt_config_init(&config);
    return grt_config_read(&config, tune->data)
               ? tune_products(&config, tune->profile, &tune->bench.gemm)
               : command_exit_of(grt_last_status());
}

static int run_tune(struct tune *tune, int argc, char **argv) {
    struct output output = {0};
    char profile[4096];
    talk_progress("asking the drivers for their devices");
    int code = find_device(tune);
    bool kept = !code && grt_profile_user_path(&tune->info, profile, sizeof profile);
    if (!code) {
        code = FILES_APART({FILE_KEPT, "the device's profile", kept ? profile : NULL},
                           {FILE_WRITTEN, "--output", tune->bench.common.output});
    }
    if (!code) {
        code = read_products(tune);
    }
    if (!code) {
        code = output_open(&output, tune->bench.common.output);
    }
    if (!code) {
        struct table_desc desc = tune_table_desc(&output, tune->bench.common.format, argc, argv);
        desc.head = json_pack("{so}", "device", devices_json(&tune->info));
        tune->table = &tune->bench.table;
        if (table_open(tune->table, &desc) && tune_table_begin(tune)) {
            code = run_jobs(tune);
        }
        table_close(tune->table);
        talk_clear();
        if (!code || code == COMMAND_INTERNAL) {
            say_end(tune);
        }
    }
    tune_worker_end(&tune->worker);
    grt_profile_destroy(&tune->profile);
    // Whatever was found is stored by now, so an interruption is no failure.
    talk_resume();
    int written = output_close(&output, code != COMMAND_NO_DEVICE && code != COMMAND_CANNOT_CREATE);
    return code ? code : written;
}

int cmd_tune(int argc, char **argv) {
    struct tune tune = {.worker.child = GRT_NO_CHILD};
    // The options of `bench gemm` that mean the same here; their values are fields of struct bench.
    static const char *const shared[] = {"shape", "precision", "trans", "variant"};
    struct option_row rows[TUNE_OPTIONS + sizeof shared / sizeof *shared];
    size_t count = TUNE_OPTIONS;
    memcpy(rows, tune_options, sizeof tune_options);
    for (size_t i = 0; i < sizeof bench_gemm_options / sizeof *bench_gemm_options; i++) {
        for (size_t k = 0; k < sizeof shared / sizeof *shared; k++) {
            if (strcmp(bench_gemm_options[i].name, shared[k]) == 0) {
                rows[count++] = bench_gemm_options[i];
            }
        }
    }
    struct option_list lists[] = {
        {"Tuning options", rows, count, NULL},
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    int spread = spread_devices("tune", argc, argv);
    if (spread >= 0) {
        return spread;
    }
    struct options_desc desc = {
        .verb = "tune", .about = about, .lists = lists, .list_count = sizeof lists / sizeof *lists};
    size_t word_count = 0;
    int code = options_parse(&desc, argc, argv, &tune.bench.common, NULL, &word_count);
    if (code < 0) {
        code = run_tune(&tune, argc, argv);
    }
    bench_gemm_options_end(&tune.bench.gemm);
    return code;
}

int tune_for_training(const struct tune_training *training) {
    struct tune tune = {.worker.child = GRT_NO_CHILD, .op = "gemm", .budget = training->seconds};
    tune.bench.common = *training->common;
    tune.bench.gemm.variants = "auto";
    tune.level = TUNE_LEVEL_0 + 1;
    int code = find_device(&tune);
    if (!code) {
        code = tune_products(training->config, tune.profile, &tune.bench.gemm);
    }
    if (!code) {
        code = run_jobs(&tune);
    }
    talk_clear();
    if (!code && tune.job_count) {
        talk_line("autotune: %u of %zu settings improved", tune.stored, tune.job_count);
    }
    tune_worker_end(&tune.worker);
    grt_profile_destroy(&tune.profile);
    bench_gemm_options_end(&tune.bench.gemm);
    // A run that is slower than it need be is no reason not to begin it.
    return code == COMMAND_CANNOT_CREATE || code == COMMAND_IO ? COMMAND_OK : code;
}
