// SPDX-License-Identifier: Apache-2.0
// `gpurt bench ppo`: whole iterations of PPO, and where their time goes.
//
//     host     before: one environment, the host in every step, and what crosses the bus waits
//     device   after: all copies, an iteration of a few recorded graphs
//
// Settings are those of `gpurt train ppo`. An iteration is timed by the wall; of several, the one
// in the middle is shown. Its phases are by the device's clock, but for the environment's part of a
// step, which is what the same steps take alone (grt_ppo_environment). Check: these end in the same
// state, and rows were learnt from.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_more.h"
#include "bench_progress.h"
#include "bench_peaks.h"
#include "cli/command.h"
#include "cli/devices.h"
#include "cli/stats.h"
#include "cli/talk.h"
#include "cli/options/watch.h"
#include "train/train_ppo.h"
#include "train/train_ppo_time.h"

#define LEAST_SAMPLES 3
#define MOST_SAMPLES 63
#define MOST_NUMBER (1u << 24)
#define MOST_ROWS 256

// X(name, key, heading, unit, type, precision, width)
#define COLUMNS(X)                                                                                 \
    X(KIND, "kind", "kind", NULL, TEXT, 0, 9)                                                      \
    X(LOOP, "loop", "loop", NULL, TEXT, 0, 6)                                                      \
    X(ENV, "env", "env", NULL, TEXT, 0, 0)                                                         \
    X(ENVS, "num_envs", "envs", NULL, COUNT, 0, 6)                                                 \
    X(AGENTS, "agents", "agents", NULL, COUNT, 0, 0)                                               \
    X(STEPS, "rollout_steps", "steps", NULL, COUNT, 0, 0)                                          \
    X(PRECISION, "precision", "types", NULL, TEXT, 0, 0)                                           \
    X(RATE, "agent_steps_per_s", "", "agent steps/s", NUMBER, 0, 0)                                \
    X(ENV_RATE, "env_steps_per_s", "", "env steps/s", NUMBER, 0, 0)                                \
    X(SPEEDUP, "speedup", "speed-up", NULL, NUMBER, 1, 0)                                          \
    X(PHASE, "phase", "phase", NULL, TEXT, 0, 16)                                                  \
    X(SECONDS, "seconds", "", "s", NUMBER, 5, 10)                                                  \
    X(SHARE, "share", "share", NULL, SHARE, 1, 6)                                                  \
    X(GPU, "gpu", "device busy", NULL, SHARE, 0, 0)                                                \
    X(MEMORY, "memory", "memory", NULL, BYTES, 0, 9)                                               \
    X(SPREAD, "spread", "spread", NULL, SHARE, 1, 6)                                               \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(CHECK, "check", "check", NULL, TEXT, 0, 0)

enum column {
    COLUMNS(TABLE_ENTRY) COLUMN_COUNT,
};
#define BIT(name) (1ull << COLUMN_##name)

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

enum loop { BY_HOST, BY_DEVICE };
static const char *const loop_names[] = {"host", "device"};

// A row, and the table of its phases.
struct result {
    enum loop loop;
    uint32_t envs, agents;
    char precision[8];
    double seconds, spread, rate;
    size_t samples;
    uint64_t bytes;
    bool clock;  // the phases are known
    struct ppo_part parts[PPO_PARTS];
};

struct ppo_bench {
    struct train_ppo ppo;  // first: its common options are those of the command
    struct ranges envs;
    uint32_t precisions;  // bits of grt_dtype
    uint32_t loops;       // bits
    double seconds;       // of each row
    struct table table;
    struct bench_progress progress;
    struct result results[MOST_ROWS];
    size_t count;
    uint32_t wrong, too_large;
};

// ---- options ----

static bool read_envs(const char *text, void *into, char why[RANGES_WHY]) {
    ranges_destroy(into);
    return ranges_parse(text, &(struct ranges_rule){.min = 1, .max = MOST_NUMBER}, into, why);
}

static const char *const precision_names[] = {"f32", "f16", "bf16"};  // as grt_dtype

static bool read_precisions(const char *text, void *into, char why[RANGES_WHY]) {
    return options_bits(text, precision_names, 3, into, why);
}

static bool read_loops(const char *text, void *into, char why[RANGES_WHY]) {
    return options_bits(text, loop_names, 2, into, why);
}

#define AT(field) offsetof(struct ppo_bench, field)

static const struct option_row own_options[] = {
    {.name = "env",
     .value = "NAME|FILE.k",
     .help = "environment, or a file of your own",
     .read = options_read_text,
     .at = AT(ppo.env)},
    {.name = "config",
     .letter = "c",
     .value = "FILE",
     .help = "settings in YAML, as of `gpurt train ppo`",
     .read = options_read_text,
     .at = AT(ppo.trainer.config.config)},
    {.name = "num-envs",
     .value = "LIST",
     .help = "copies of the environment (default: 16 on a CPU, else 1024-16384*4)",
     .read = read_envs,
     .at = AT(envs)},
    {.name = "precision",
     .value = "LIST",
     .help = "f32, f16, bf16 (default: that of the settings)",
     .read = read_precisions,
     .at = AT(precisions)},
    {.name = "loop",
     .value = "LIST",
     .help = "host: one environment, the host in every step; device: recorded",
     .fallback = "host,device",
     .read = read_loops,
     .at = AT(loops)},
    {.name = "time",
     .value = "SECONDS",
     .help = "time for each row; three iterations at least",
     .fallback = "1",
     .read = options_read_positive,
     .at = AT(seconds)},
};

// ---- one row ----

struct sample {
    struct grt_ppo_report report;
    struct grt_ppo_times times;
};

static int by_seconds(const void *a, const void *b) {
    double x = ((const struct sample *)a)->report.seconds;
    double y = ((const struct sample *)b)->report.seconds;
    return (x > y) - (x < y);
}

// One iteration and where its time goes. False: a call failed, the check did, or a stop.
static bool take(struct grt_ppo *ppo, enum loop loop, struct sample *s) {
    double environment = 0;
    if (talk_stopped()) {
        return false;
    }
    if (loop == BY_HOST) {
        return grt_ppo_iterate_by_host(ppo, &s->report, &s->times) && !s->report.stopped;
    }
    if (!grt_ppo_iterate(ppo, &s->report) || s->report.stopped ||
        !grt_ppo_environment(ppo, &environment)) {
        return false;
    }
    s->times = ppo_times(&s->report, environment);
    return true;
}

static bool measure(struct ppo_bench *bench, struct result *r) {
    struct sample samples[MOST_SAMPLES];
    double seconds[MOST_SAMPLES], spent = 0;
    struct grt_ppo *ppo = bench->ppo.task->ppo;
    size_t count = 0;
    // In the first one drivers finish their kernels, and graphs are cut into submits.
    if (!take(ppo, r->loop, &samples[0])) {
        return false;
    }
    while (count < MOST_SAMPLES && (count < LEAST_SAMPLES || spent < bench->seconds)) {
        if (!take(ppo, r->loop, &samples[count])) {
            return false;
        }
        seconds[count] = samples[count].report.seconds;
        spent += seconds[count++];
    }
    struct stats stats = stats_of(seconds, count);
    qsort(samples, count, sizeof *samples, by_seconds);
    const struct sample *middle = &samples[count / 2];
    r->seconds = middle->report.seconds;
    r->rate = middle->report.rows / r->seconds;
    r->spread = stats.spread;
    r->samples = count;
    r->clock = middle->report.acting > 0;
    ppo_parts(&middle->times, r->seconds, r->parts);
    if (!(middle->report.rows > 0) || !isfinite(middle->report.value_loss)) {
        talk_error("ppo: an iteration learnt from %.0f rows, with a loss of values of %g",
                   middle->report.rows, middle->report.value_loss);
        bench->wrong++;
    }
    return true;
}

static void common_cells(const struct ppo_bench *bench, const struct result *r,
                         struct table_cell cells[COLUMN_COUNT]) {
    cells[COLUMN_LOOP] = TABLE_CELL(.text = loop_names[r->loop]);
    cells[COLUMN_ENV] = TABLE_CELL(.text = bench->ppo.info->name);
    cells[COLUMN_ENVS] = TABLE_CELL(.count = r->envs);
    cells[COLUMN_AGENTS] = (struct table_cell){.known = r->agents > 0, .count = r->agents};
    cells[COLUMN_STEPS] = TABLE_CELL(.count = bench->ppo.steps);
    cells[COLUMN_PRECISION] = TABLE_CELL(.text = r->precision);
}

// Before it, of the same types: one environment with the host in every step.
static const struct result *before(const struct ppo_bench *bench, const struct result *r) {
    for (size_t i = 0; r->loop == BY_DEVICE && i < bench->count; i++) {
        const struct result *other = &bench->results[i];
        if (other->loop == BY_HOST && strcmp(other->precision, r->precision) == 0) {
            return other;
        }
    }
    return NULL;
}

static bool print_row(struct ppo_bench *bench, const struct result *r, const char *outcome) {
    struct table_cell cells[COLUMN_COUNT] = {[COLUMN_KIND] = TABLE_CELL(.text = "iteration"),
                                             [COLUMN_CHECK] = TABLE_CELL(.text = outcome)};
    const struct result *first = before(bench, r);
    bool timed = r->samples > 0;
    common_cells(bench, r, cells);
    cells[COLUMN_RATE] = (struct table_cell){.known = timed, .number = r->rate};
    cells[COLUMN_SECONDS] = (struct table_cell){.known = timed, .number = r->seconds};
    cells[COLUMN_SPREAD] = (struct table_cell){.known = timed, .number = r->spread};
    cells[COLUMN_SAMPLES] = (struct table_cell){.known = timed, .count = r->samples};
    cells[COLUMN_MEMORY] = (struct table_cell){.known = r->bytes > 0, .count = r->bytes};
    if (timed) {
        cells[COLUMN_ENV_RATE] =
            TABLE_CELL(.number = (double)r->envs * bench->ppo.steps / r->seconds);
    }
    if (timed && first) {
        cells[COLUMN_SPEEDUP] = TABLE_CELL(.number = r->rate / first->rate);
    }
    if (timed && r->clock) {
        cells[COLUMN_GPU] = TABLE_CELL(.number = r->parts[PPO_PARTS - 1].busy);
    }
    return table_row(&bench->table, cells);
}

// False when the bench must stop. What does not fit is a row of its own.
static bool run_row(struct ppo_bench *bench, enum loop loop, uint32_t envs, const char *precision,
                    int *code) {
    struct train_ppo *t = &bench->ppo;
    struct grt_config *c = &t->trainer.config.settings;
    struct result r = {.loop = loop, .envs = envs};
    char text[16];
    snprintf(r.precision, sizeof r.precision, "%s", precision);
    snprintf(text, sizeof text, "%u", envs);
    bench_progress_row(&bench->progress, "ppo: %s, %u environments, %s", loop_names[loop], envs,
                       precision);
    bool good = grt_config_set(c, GRT_CONFIG_NUM_ENVS, text) &&
                grt_config_set(c, GRT_CONFIG_PRECISION, precision);
    *code = good ? train_ppo_make(t) : COMMAND_CONFIG;
    const char *outcome = "ok";
    if (*code && grt_last_status() == GRT_NO_MEMORY) {
        *code = COMMAND_OK;
        outcome = "no memory";
        bench->too_large++;
    } else if (!*code) {
        r.agents = grt_worlds_sizes(t->task->worlds)->agents;
        r.bytes = grt_ppo_size(t->task->ppo).bytes;
        good = measure(bench, &r);
        outcome = bench->wrong ? "FAILED" : outcome;
        *code = good || talk_stopped() ? COMMAND_OK : command_exit_of(grt_last_status());
    }
    good = good && !*code && print_row(bench, &r, outcome);
    if (good && r.samples > 0 && bench->count < MOST_ROWS) {
        bench->results[bench->count++] = r;
    }
    train_ppo_unmake(t);
    bench->progress.done++;
    return good;
}

static const uint64_t iteration_columns =
    BIT(LOOP) | BIT(ENVS) | BIT(AGENTS) | BIT(STEPS) | BIT(PRECISION) | BIT(RATE) | BIT(ENV_RATE) |
    BIT(SPEEDUP) | BIT(SECONDS) | BIT(GPU) | BIT(MEMORY) | BIT(SPREAD) | BIT(SAMPLES) | BIT(CHECK);

static bool run_rows(struct ppo_bench *bench, int *code) {
    const struct grt_dev_info *info = grt_dev_info(bench->ppo.trainer.dev);
    struct grt_config *c = &bench->ppo.trainer.config.settings;
    char title[TABLE_TEXT_SIZE], why[RANGES_WHY], own[sizeof c->precision];
    const char *usual = info->caps.software ? "16" : "1024-16384*4";
    char given[24];
    if (grt_config_given(c, GRT_CONFIG_NUM_ENVS)) {
        snprintf(given, sizeof given, "%llu", (unsigned long long)c->num_envs);
        usual = given;
    }
    if (!bench->envs.count && !read_envs(usual, &bench->envs, why)) {
        return false;
    }
    snprintf(own, sizeof own, "%s", c->precision);
    uint32_t kinds = 0;
    for (uint32_t p = 0; p < 3; p++) {
        if (!bench->precisions && strcmp(own, precision_names[p]) == 0) {
            bench->precisions = 1u << p;
        }
        kinds += bench->precisions >> p & 1;
    }
    size_t rows = (bench->loops & 1) + (bench->loops >> 1 & 1) * bench->envs.count;
    bench_progress_plan(&bench->progress, rows * kinds, bench->seconds);
    snprintf(title, sizeof title, "PPO of %s on %s: %s, %s %s", bench->ppo.info->name,
             info->selector, info->name, info->driver, info->driver_version);
    if (!table_section(&bench->table, title, iteration_columns, NULL, 0)) {
        return false;
    }
    for (uint32_t p = 0; p < 3; p++) {
        if (!(bench->precisions >> p & 1)) {
            continue;
        }
        if ((bench->loops >> BY_HOST & 1) &&
            !run_row(bench, BY_HOST, 1, precision_names[p], code)) {
            return false;
        }
        for (size_t i = 0; (bench->loops >> BY_DEVICE & 1) && i < bench->envs.count; i++) {
            if (!run_row(bench, BY_DEVICE, (uint32_t)bench->envs.values[i], precision_names[p],
                         code)) {
                return false;
            }
        }
    }
    return true;
}

// ---- where the time goes ----

static bool print_phases(struct ppo_bench *bench, const struct result *r) {
    char title[TABLE_TEXT_SIZE];
    snprintf(title, sizeof title, "an iteration of %u environment%s, %s, loop of the %s", r->envs,
             r->envs > 1 ? "s" : "", r->precision, loop_names[r->loop]);
    if (!r->clock) {
        return true;
    }
    bool good = table_section(&bench->table, title,
                              BIT(PHASE) | BIT(SECONDS) | BIT(SHARE) | BIT(GPU), NULL, 0);
    for (int i = 0; good && i < PPO_PARTS; i++) {
        struct table_cell cells[COLUMN_COUNT] = {
            [COLUMN_KIND] = TABLE_CELL(.text = "phase"),
            [COLUMN_PHASE] = TABLE_CELL(.text = r->parts[i].name),
            [COLUMN_SECONDS] = TABLE_CELL(.number = r->parts[i].seconds),
            [COLUMN_SHARE] = TABLE_CELL(.number = r->parts[i].share),
            [COLUMN_GPU] = TABLE_CELL(.number = r->parts[i].busy),
        };
        common_cells(bench, r, cells);
        good = table_row(&bench->table, cells);
    }
    return good;
}

static bool print_story(struct ppo_bench *bench) {
    const struct result *best = NULL;
    for (size_t i = 0; i < bench->count; i++) {
        const struct result *r = &bench->results[i];
        best = r->loop == BY_DEVICE && (!best || r->rate > best->rate) ? r : best;
    }
    const struct result *first = best ? before(bench, best) : NULL;
    char title[TABLE_TEXT_SIZE];
    if (!first) {
        return true;
    }
    snprintf(title, sizeof title,
             "before, one environment with the host in every step: %.0f agent steps/s; after, %u "
             "recorded on the device: %.0f, %.1f times as many",
             first->rate, best->envs, best->rate, best->rate / first->rate);
    return table_section(&bench->table, title, 0, NULL, 0);
}

static int run(struct ppo_bench *bench, int argc, char **argv) {
    struct train_config *config = &bench->ppo.trainer.config;
    struct output output;
    int code = output_open(&output, config->common.output);
    if (code) {
        return code;
    }
    talk_progress("opening the device");
    struct grt_dev *dev = bench->ppo.trainer.dev = train_config_device(config);
    bool good = false;
    if (dev) {
        struct table_desc desc = {
            .output = &output,
            .format = config->common.format,
            .columns = columns,
            .column_count = COLUMN_COUNT,
            .schema = "gpurt.bench.ppo/1",
            .verb = "bench ppo",
            .argc = argc,
            .argv = argv,
            .head = json_pack("{so}", "device", devices_json(grt_dev_info(dev))),
        };
        good = table_open(&bench->table, &desc) && run_rows(bench, &code);
        for (size_t i = 0; !code && i < bench->count; i++) {
            good = print_phases(bench, &bench->results[i]) && good;
        }
        good = !code && print_story(bench) && good;
        code = bench_progress_end(&bench->progress, &bench->table, code);
        table_close(&bench->table);
    } else {
        code = command_exit_of(grt_last_status());
    }
    talk_clear();
    if (!code && bench->wrong) {
        code = COMMAND_INTERNAL;
    }
    if (!code && !bench->count) {  // nothing fits
        code = COMMAND_INTERNAL;
    }
    return output_end(&output, good || code == COMMAND_RESUMABLE, code);
}

// ---- the command ----

static const char about[] =
    "Whole iterations of PPO, environment and learning on the device, and where their time goes. "
    "Beside them\n"
    "one environment with the host in every step, as programs have it whose environment is on the "
    "CPU.\n"
    "Every key of `gpurt train ppo --keys`, and every setting of the environment, is an option or "
    "KEY=VALUE:\n"
    "--rollout-steps 64, num_uavs=4, hidden=128. An iteration is timed by the wall; of several the "
    "middle is\n"
    "shown. A LIST has numbers and ranges: 64-16384*4.\n";

int bench_ppo(int argc, char **argv) {
    struct ppo_bench *bench = calloc(1, sizeof *bench);
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    struct options_keys spelled = {0};
    size_t count = 0;
    int code = COMMAND_INTERNAL;
    struct option_list lists[] = {
        OPTION_LIST("Options of ppo", own_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("Where time and memory go", watch_options),
        OPTION_LIST("General options", options_general),
    };
    static const struct train_kind kind = {.verb = "bench ppo", .keys = GRT_CONFIG_OF_PPO};
    struct options_desc desc = {.verb = "bench ppo",
                                .words = "[KEY=VALUE...]",
                                .about = about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists,
                                .keys = GRT_CONFIG_OF_PPO};
    if (!bench || !words || !options_keys_begin(&spelled, lists, desc.list_count, argc, argv)) {
        talk_error("out of memory");
    } else {
        bench->ppo.trainer.kind = &kind;
        code = options_parse(&desc, spelled.argc, spelled.argv, &bench->ppo.trainer.config.common,
                             words, &count);
        if (code < 0) {
            code = train_ppo_settings(&bench->ppo, NULL, words, count);
        }
        if (!code && bench->ppo.info) {
            code = run(bench, argc, argv);
        }
        train_ppo_close(&bench->ppo);
        code = watch_close(&bench->ppo.trainer.config.common, &bench->ppo.trainer.dev, bench_peaks,
                           code);
        ranges_destroy(&bench->envs);
    }
    options_keys_end(&spelled);
    free(words);
    free(bench);
    return code;
}
