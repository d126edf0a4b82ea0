// SPDX-License-Identifier: Apache-2.0
// `gpurt bench mlp`: the training step of a multilayer perceptron by itself, data already on the
// device: forward, loss, backward and AdamW, many steps in one baked graph, timed by the wall from
// submit to end.
//
// The model is that of the peers' scripts: 32 inputs, relu, one output, mean squared error. Check:
// the gradients of the first step against double precision.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_mlp_check.h"
#include "bench_more.h"
#include "bench_progress.h"
#include "bench_peaks.h"
#include "cli/command.h"
#include "cli/devices.h"
#include "cli/stats.h"
#include "cli/talk.h"
#include "cli/options/watch.h"

#define INPUTS 32
#define OUTPUTS 1
#define PERIOD 256        // samples that a batch repeats
#define RUN_SECONDS 0.02  // of one run, at least
#define MAX_STEPS 1000    // of one run
#define MAX_MODELS 16
#define PHASE_STEPS 6

#define COLUMNS(X)                                                                                 \
    X(MODEL, "model", "model", NULL, TEXT, 0, 7)                                                   \
    X(DEPTH, "depth", "depth", NULL, COUNT, 0, 0)                                                  \
    X(HIDDEN, "hidden", "hidden", NULL, COUNT, 0, 0)                                               \
    X(BATCH, "batch", "batch", NULL, COUNT, 0, 7)                                                  \
    X(PRECISION, "precision", "types", NULL, TEXT, 0, 0)                                           \
    X(VARIANT, "variant", "variant", NULL, TEXT, 0, 12)                                            \
    X(MS, "ms", "", "ms/step", NUMBER, 4, 9)                                                       \
    X(RATE, "msamples_per_s", "", "M samples/s", NUMBER, 3, 0)                                     \
    X(FORWARD, "forward_ms", "forward", NULL, NUMBER, 4, 8)                                        \
    X(BACKWARD, "backward_ms", "backward", NULL, NUMBER, 4, 8)                                     \
    X(UPDATE, "optimizer_ms", "optimizer", NULL, NUMBER, 4, 0)                                     \
    X(TFLOPS, "tflop_per_s", "", "TFLOP/s", NUMBER, 3, 8)                                          \
    X(DISPATCHES, "dispatches", "dispatches", NULL, COUNT, 0, 0)                                   \
    X(STEPS, "steps_per_run", "steps a run", NULL, COUNT, 0, 0)                                    \
    X(MEMORY, "memory", "memory", NULL, BYTES, 0, 9)                                               \
    X(SPREAD, "spread", "spread", NULL, SHARE, 1, 6)                                               \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(ERROR, "error", "error", NULL, NUMBER, 6, 8)                                                 \
    X(CHECK, "check", "check", NULL, TEXT, 0, 0)

enum column {
    COLUMNS(TABLE_ENTRY) COLUMN_COUNT,
};

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

struct mlp_models {
    struct bench_model values[MAX_MODELS];
    size_t count;
};

struct mlp_bench {
    struct options common;  // first: see options.h
    struct mlp_models models;
    struct ranges batches;
    uint32_t precisions;  // bits of grt_dtype
    uint32_t variants;    // bits of variant_names
    double seconds;
    struct grt_dev *dev;
    struct table table;
    struct bench_progress progress;
    uint32_t wrong, good, too_large;
};

// ---- options ----

static bool read_models(const char *text, void *into, char why[RANGES_WHY]) {
    struct mlp_models *models = into;
    models->count = 0;
    for (const char *at = text;; at++) {
        if (models->count == MAX_MODELS || !bench_model(&at, &models->values[models->count++]) ||
            (*at && *at != ',')) {
            snprintf(why, RANGES_WHY, BENCH_MODEL_WANTED);
            return false;
        }
        if (!*at) {
            return true;
        }
    }
}

static bool read_precisions(const char *text, void *into, char why[RANGES_WHY]) {
    // In the order of grt_dtype.
    static const char *const names[] = {"f32", "f16", "bf16"};
    return options_bits(text, names, 3, into, why);
}

static const char *const variant_names[] = {"best", "layers", "fused"};

static bool read_variants(const char *text, void *into, char why[RANGES_WHY]) {
    return options_bits(text, variant_names, 3, into, why);
}

#define AT(field) offsetof(struct mlp_bench, field)

static const struct option_row own_options[] = {
    {.name = "model",
     .value = "LIST",
     .help = "small, medium, large, or depth=N,hidden=N",
     .fallback = "small,medium,large",
     .read = read_models,
     .at = AT(models)},
    {.name = "batch-sizes",
     .value = "LIST",
     .help = "samples of a step (default: 1024, or 4096,65536 on a GPU)",
     .read = bench_read_batches,
     .at = AT(batches)},
    {.name = "precision",
     .value = "LIST",
     .help = "f32, f16, bf16 (default: f32, or f16 on a GPU)",
     .read = read_precisions,
     .at = AT(precisions)},
    {.name = "variant",
     .value = "LIST",
     .help = "how forward and backward are done: layers, fused, or the best",
     .fallback = "best",
     .read = read_variants,
     .at = AT(variants)},
    {.name = "time",
     .value = "SECONDS",
     .help = "time for each row",
     .fallback = "0.5",
     .read = options_read_positive,
     .at = AT(seconds)},
};

// ---- one row ----

struct mlp_case {
    const struct bench_model *model;
    uint32_t batch;
    enum grt_dtype precision;
    const char *variant;  // NULL: the best
    struct grt_learner *learner;
    struct mlp_samples samples;
    double error;
    uint32_t steps, dispatches;
    double forward, backward, update;  // device milliseconds; 0: unknown
    uint64_t bytes;
    char kernels[24];  // "fused coop"
};

// Of the loss, in f16: such that the gradients of single samples are far from the smallest numbers,
// as dynamic scaling would find it.
static double scale_of(const struct mlp_case *c) {
    double scale = 16;
    while (scale < 16.0 * c->batch) {
        scale *= 2;
    }
    return c->precision == GRT_F16 ? scale : 1;
}

// What gradients may differ by, as the norm of the difference. The reference rounds where training
// does, so what differs is the order of sums, and what matrix units leave out of them: a sum of
// `width` products is off by SUM sqrt(width) of itself. Of numbers kept in 16 bits the share
// SUM sqrt(width) / u is then rounded the other way, by u, so units are off by `off`, and by
// sqrt(l) of that behind l layers. As large a share of them, times the density of a normal
// distribution at 0, stands on the other side of relu, and its gradients are off altogether. Added
// up over all layers as squares that is the first term. The second: gradients of units below the
// smallest normal half are kept to 2^-25, and there are `scale` / (batch sqrt(width)) of the error.
// 8 layers of 512 were off by 0.0061 on an H200 (2026-11) where 0.019 are allowed.
static double allowed(const struct mlp_case *c) {
    const double sum = 0x1p-22, density = 0.4;
    double u = c->precision == GRT_F16 ? 0x1p-11 : 0x1p-8;
    double layers = c->model->depth + 1.0, across = sqrt((double)c->model->hidden);
    double off = sqrt(sum * across / u) * u;
    double flips = density * off * 2 / 3 * layers * sqrt(layers);
    double small = c->precision == GRT_F16 ? 0x1p-25 * c->batch * across / scale_of(c) : 0;
    return c->precision == GRT_F32 ? 1e-4 : sqrt(flips) + small;
}

static bool make_samples(struct mlp_samples *s) {
    uint32_t state = 12345;
    s->period = PERIOD;
    s->x = malloc(PERIOD * INPUTS * sizeof *s->x);
    s->y = malloc(PERIOD * OUTPUTS * sizeof *s->y);
    if (!s->x || !s->y) {
        return false;
    }
    for (size_t i = 0; i < PERIOD * (INPUTS + OUTPUTS); i++) {
        state = state * 1664525u + 1013904223u;
        float v = (float)((double)(state >> 8) * 0x1p-22 - 2.0);
        if (i < PERIOD * INPUTS) {
            s->x[i] = v;
        } else {
            s->y[i - PERIOD * INPUTS] = v;
        }
    }
    return true;
}

static bool fill(const struct grt_tensor *t, const float *values, uint32_t width, uint32_t rows) {
    for (uint32_t r = 0; r < rows; r += PERIOD) {
        uint32_t count = rows - r < PERIOD ? rows - r : PERIOD;
        if (!grt_buf_write(t->range.buf, t->range.offset + (uint64_t)r * width * 4, values,
                           (uint64_t)count * width * 4)) {
            return false;
        }
    }
    return true;
}

static struct grt_mlp_desc network(const struct mlp_case *c) {
    return (struct grt_mlp_desc){.inputs = INPUTS,
                                 .depth = c->model->depth,
                                 .hidden = c->model->hidden,
                                 .outputs = OUTPUTS,
                                 .act = GRT_ACT_RELU};
}

static bool create(struct mlp_bench *bench, struct mlp_case *c) {
    const struct grt_mlp_desc mlp = network(c);
    struct grt_learner_desc desc = {
        .make = grt_mlp_make,
        .of = &mlp,
        .input = {1, {INPUTS}},
        .loss = GRT_LOSS_MSE,
        .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
        .precision = c->precision,
        .batch = c->batch,
        .variant = c->variant,
    };
    desc.optim.lr = 3e-4;
    desc.optim.scale = scale_of(c);
    c->learner = grt_learner_create(bench->dev, &desc);
    if (!c->learner) {
        return false;
    }
    c->bytes = grt_learner_bytes(c->learner, NULL);
    const char *kernels = grt_learner_fused_kernels(c->learner);
    snprintf(c->kernels, sizeof c->kernels, "%s%s%s", grt_learner_variant(c->learner),
             kernels ? " " : "", kernels ? kernels : "");
    return grt_learner_alloc(c->learner) &&
           fill(grt_learner_input(c->learner), c->samples.x, INPUTS, c->batch) &&
           fill(grt_learner_target(c->learner), c->samples.y, OUTPUTS, c->batch);
}

static struct grt_graph *record(struct mlp_case *c, uint32_t steps) {
    return grt_learner_step(c->learner, grt_step_desc(.label = "bench mlp", .steps = steps));
}

// All parameters, one behind the other; allocated.
static float *read_params(struct mlp_case *c) {
    float *all = malloc(grt_learner_parameters(c->learner) * sizeof *all);
    const struct grt_tensor *t;
    const char *name;
    uint64_t at = 0;
    for (uint32_t i = 0; all && (t = grt_learner_tensor(c->learner, GRT_TENSOR_PARAM, i, &name));
         i++) {
        if (!grt_buf_read(t->range.buf, t->range.offset, all + at, grt_tensor_bytes(t))) {
            free(all);
            return NULL;
        }
        at += grt_tensor_count(t);
    }
    return all;
}

// One step from the start; false when a call failed.
static bool check(struct mlp_case *c, struct stats *stats) {
    (void)stats;
    float *before = read_params(c);
    struct grt_graph *graph = before ? record(c, 1) : NULL;
    bool good = graph && grt_graph_finish(graph);
    if (good) {
        c->dispatches = grt_graph_stats(graph).dispatches;
        const struct grt_mlp_desc mlp = network(c);
        c->error = mlp_check(c->learner, &mlp, before, &c->samples, scale_of(c));
        good = c->error >= 0;
    }
    grt_graph_destroy(&graph);
    free(before);
    return good;
}

static bool run_once(void *graph, double *seconds) {
    double begun = grt_seconds();
    if (talk_stopped() || !grt_graph_finish(graph)) {
        return false;
    }
    *seconds = grt_seconds() - begun;
    return true;
}

// As many steps in a run as make it long enough for the wall's clock; then its times.
static bool measure(struct mlp_bench *bench, struct mlp_case *c, struct stats *stats) {
    struct grt_graph *graph = NULL;
    double seconds = 0;
    c->steps = 1;
    for (;;) {
        grt_graph_destroy(&graph);
        graph = record(c, c->steps);
        // The first run compiles and is cut into submits.
        if (!graph || !run_once(graph, &seconds) || !run_once(graph, &seconds) ||
            !run_once(graph, &seconds)) {
            grt_graph_destroy(&graph);
            return false;
        }
        if (seconds >= RUN_SECONDS || c->steps == MAX_STEPS) {
            break;
        }
        double next = c->steps * fmin(16, fmax(2, 1.25 * RUN_SECONDS / (seconds + 1e-6)));
        c->steps = next < MAX_STEPS ? (uint32_t)next : MAX_STEPS;
    }
    struct stats_desc how = {.warm_up = 0.1 * bench->seconds, .budget = bench->seconds};
    bool good = stats_measure(&how, run_once, graph, stats);
    grt_graph_destroy(&graph);
    return good;
}

// What the phases of a step take, by the device's clock; barriers between them cost a little.
static bool measure_phases(struct mlp_case *c) {
    struct grt_graph *graph = grt_learner_step(
        c->learner, grt_step_desc(.label = "bench mlp", .steps = PHASE_STEPS, .phases = true));
    struct grt_phase_time times[GRT_MAX_PHASES];
    bool good = graph && grt_graph_finish(graph) && grt_graph_finish(graph);
    uint32_t count = good ? grt_graph_times(graph, times, GRT_MAX_PHASES) : 0;
    for (uint32_t i = 0; i < count && i < GRT_MAX_PHASES; i++) {
        double *into = strcmp(times[i].name, "forward") == 0     ? &c->forward
                       : strcmp(times[i].name, "backward") == 0  ? &c->backward
                       : strcmp(times[i].name, "optimizer") == 0 ? &c->update
                                                                 : NULL;
        if (into) {
            *into += 1e3 * times[i].seconds / PHASE_STEPS;
        }
    }
    grt_graph_destroy(&graph);
    return good;
}

// Products of forward, backward and gradients; there is no gradient of the inputs.
static double flops(const struct mlp_case *c) {
    double h = c->model->hidden, hidden = (c->model->depth - 1) * h * h + h * OUTPUTS;
    return 2.0 * c->batch * (3.0 * hidden + 2.0 * INPUTS * h);
}

static bool print_row(struct mlp_bench *bench, struct mlp_case *c, const struct stats *stats,
                      const char *outcome) {
    bool timed = stats->count > 0;
    double seconds = timed ? stats->median / c->steps : 1;
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_MODEL] = TABLE_CELL(.text = c->model->name),
        [COLUMN_DEPTH] = TABLE_CELL(.count = c->model->depth),
        [COLUMN_HIDDEN] = TABLE_CELL(.count = c->model->hidden),
        [COLUMN_BATCH] = TABLE_CELL(.count = c->batch),
        [COLUMN_PRECISION] = TABLE_CELL(.text = grt_dtype_text(c->precision)),
        [COLUMN_VARIANT] = {.known = c->kernels[0] != 0, .text = c->kernels},
        [COLUMN_MS] = {.known = timed, .number = 1e3 * seconds},
        [COLUMN_RATE] = {.known = timed, .number = 1e-6 * c->batch / seconds},
        [COLUMN_FORWARD] = {.known = c->forward > 0, .number = c->forward},
        [COLUMN_BACKWARD] = {.known = c->backward > 0, .number = c->backward},
        [COLUMN_UPDATE] = {.known = c->update > 0, .number = c->update},
        [COLUMN_TFLOPS] = {.known = timed, .number = 1e-12 * flops(c) / seconds},
        [COLUMN_DISPATCHES] = {.known = c->dispatches > 0, .count = c->dispatches},
        [COLUMN_STEPS] = {.known = timed, .count = c->steps},
        [COLUMN_MEMORY] = {.known = c->bytes > 0, .count = c->bytes},
        [COLUMN_SPREAD] = {.known = timed, .number = stats->spread},
        [COLUMN_SAMPLES] = {.known = timed, .count = stats->count},
        [COLUMN_ERROR] = {.known = c->error >= 0, .number = c->error},
        [COLUMN_CHECK] = TABLE_CELL(.text = outcome),
    };
    return table_row(&bench->table, cells);
}

// False when the bench must stop. What does not fit, or has no such variant, is a row of its own.
static bool run_case(struct mlp_bench *bench, struct mlp_case *c) {
    struct stats stats = {0};
    const char *outcome = "ok";
    bool good = true;
    c->error = -1;
    bench_progress_row(&bench->progress, "mlp: %s, batch %u, %s", c->model->name, c->batch,
                       grt_dtype_text(c->precision));
    if (!make_samples(&c->samples)) {
        talk_error("out of memory");
        good = false;
    } else if (!create(bench, c)) {
        enum grt_status status = grt_last_status();
        good = status == GRT_NO_MEMORY || status == GRT_UNSUPPORTED;
        outcome = status == GRT_NO_MEMORY ? "no memory" : "unsuited";
        bench->too_large += status == GRT_NO_MEMORY;
    } else if (!check(c, &stats)) {
        good = false;
    } else if (!(c->error <= allowed(c))) {
        talk_error("mlp %s, batch %u, %s: gradients are off by %g, and %g is allowed",
                   c->model->name, c->batch, c->kernels, c->error, allowed(c));
        outcome = "FAILED";
        bench->wrong++;
    } else {
        good = measure(bench, c, &stats) && measure_phases(c);
        bench->good += good;
    }
    good = good && print_row(bench, c, &stats, outcome);
    grt_learner_destroy(&c->learner);
    free(c->samples.x);
    free(c->samples.y);
    return good;
}

static bool run_rows(struct mlp_bench *bench) {
    const struct grt_dev_info *info = grt_dev_info(bench->dev);
    char title[TABLE_TEXT_SIZE], why[RANGES_WHY];
    bool software = info->caps.software;
    if (!bench->batches.count &&
        !bench_read_batches(software ? "1024" : "4096,65536", &bench->batches, why)) {
        return false;
    }
    if (!bench->precisions) {
        bench->precisions = software ? 1u << GRT_F32 : 1u << GRT_F16;
    }
    snprintf(title, sizeof title, "mlp training on %s: %s, %s %s", info->selector, info->name,
             info->driver, info->driver_version);
    uint64_t hidden = 1ull << COLUMN_SAMPLES | 1ull << COLUMN_STEPS;
    if (!table_section(&bench->table, title, ((1ull << COLUMN_COUNT) - 1) & ~hidden, NULL, 0)) {
        return false;
    }
    size_t kinds = 0;
    for (uint32_t v = 0; v < 9; v++) {
        kinds += (bench->precisions >> v / 3 & 1) && (bench->variants >> v % 3 & 1);
    }
    bench_progress_plan(&bench->progress, bench->models.count * bench->batches.count * kinds,
                        bench->seconds);
    for (size_t m = 0; m < bench->models.count; m++) {
        for (size_t b = 0; b < bench->batches.count; b++) {
            for (uint32_t v = 0; v < 9; v++) {
                if (!(bench->precisions >> v / 3 & 1) || !(bench->variants >> v % 3 & 1)) {
                    continue;
                }
                struct mlp_case c = {.model = &bench->models.values[m],
                                     .batch = (uint32_t)bench->batches.values[b],
                                     .precision = (enum grt_dtype)(v / 3),
                                     .variant = v % 3 ? variant_names[v % 3] : NULL};
                if (!run_case(bench, &c)) {
                    return false;
                }
                bench->progress.done++;
            }
        }
    }
    return true;
}

static int run(struct mlp_bench *bench, int argc, char **argv) {
    struct output output;
    int code = output_open(&output, bench->common.output);
    if (code) {
        return code;
    }
    talk_progress("opening the device");
    bench->dev = options_open_device(&bench->common);
    bool good = false;
    if (bench->dev) {
        struct table_desc desc = {
            .output = &output,
            .format = bench->common.format,
            .columns = columns,
            .column_count = COLUMN_COUNT,
            .schema = "gpurt.bench.mlp/1",
            .verb = "bench mlp",
            .argc = argc,
            .argv = argv,
            .head = json_pack("{so}", "device", devices_json(grt_dev_info(bench->dev))),
        };
        good = table_open(&bench->table, &desc) && run_rows(bench);
        if (!good && !talk_stopped()) {
            code = command_exit_of(grt_last_status());
        }
        code = bench_progress_end(&bench->progress, &bench->table, code);
        table_close(&bench->table);
    } else {
        code = command_exit_of(grt_last_status());
    }
    talk_clear();
    if (!code && bench->wrong) {
        talk_error("rows that failed their check, not timed: %u", bench->wrong);
        code = COMMAND_INTERNAL;
    }
    if (!code && !bench->good) {
        code = bench->too_large ? COMMAND_NO_MEMORY : COMMAND_NO_DEVICE;
    }
    code = watch_close(&bench->common, &bench->dev, bench_peaks, code);
    return output_end(&output, good || code == COMMAND_RESUMABLE, code);
}

static const char about[] =
    "The training step of a multilayer perceptron by itself: 32 inputs, relu, one output, mean "
    "squared error,\n"
    "AdamW, the data on the device. small, medium and large are 3 hidden layers of 16, 6 of 64 and "
    "12 of 128.\n"
    "Steps are recorded once and replayed, many to a submit. Numbers are medians.\n";

int bench_mlp(int argc, char **argv) {
    struct mlp_bench bench = {0};
    struct option_list lists[] = {
        OPTION_LIST("Options of mlp", own_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("Where time and memory go", watch_options),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "bench mlp",
                                .about = about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    size_t word_count = 0;
    int code = options_parse(&desc, argc, argv, &bench.common, NULL, &word_count);
    if (code < 0) {
        code = run(&bench, argc, argv);
    }
    ranges_destroy(&bench.batches);
    return code;
}
