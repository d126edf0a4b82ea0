// SPDX-License-Identifier: Apache-2.0
// `gpurt bench images`: whole training steps of image networks by themselves, images already on the
// device: forward, cross-entropy over ten classes, backward and SGD with momentum, in one baked
// graph, timed by the wall from submit to end. A model behind "simclr-" has a projection behind it
// instead of classes, the loss is NT-Xent, and the batch counts pairs, whose two images are equal.
//
// Check: what the gradients say of the loss. Behind a first step without momentum's past, along the
// gradient g by lr, the loss of the same images must have fallen by lr |g|^2, but for curvature and
// rounding.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_more.h"
#include "bench_progress.h"
#include "bench_peaks.h"
#include "cli/command.h"
#include "cli/devices.h"
#include "cli/stats.h"
#include "cli/talk.h"
#include "cli/options/watch.h"
#include "gpurt/gpurt.h"
#include "gpurt/learner.h"

#define CLASSES 10
#define CHANNELS 3
#define MAX_MODELS 16
#define SIMCLR "simclr-"
#define HIDDEN 512     // of the projection
#define PROJECTED 128  // what it gives
// The check: a step is to take this share of the loss from it, then a quarter of that, and so on,
// until the loss falls as its gradient says. Curvature shrinks with the step; a gradient that is
// wrong stays wrong.
#define FALL 0.02
#define LEAST_FALL 1e-4
#define ENOUGH 0.1    // with so small an error no smaller step is tried
#define ALLOWED 0.35  // share of the fall which curvature and rounding may change

#define COLUMNS(X)                                                                                 \
    X(MODEL, "model", "model", NULL, TEXT, 0, 16)                                                  \
    X(SIDE, "resolution", "side", NULL, COUNT, 0, 0)                                               \
    X(BATCH, "batch", "batch", NULL, COUNT, 0, 7)                                                  \
    X(PRECISION, "precision", "types", NULL, TEXT, 0, 0)                                           \
    X(MS, "ms", "", "ms/step", NUMBER, 3, 9)                                                       \
    X(BEST, "best_ms", "best", NULL, NUMBER, 3, 9)                                                 \
    X(CPU, "cpu_ms", "CPU", NULL, NUMBER, 3, 9)                                                    \
    X(RATE, "images_per_s", "", "images/s", NUMBER, 1, 0)                                          \
    X(FORWARD, "forward_ms", "forward", NULL, NUMBER, 3, 8)                                        \
    X(BACKWARD, "backward_ms", "backward", NULL, NUMBER, 3, 8)                                     \
    X(UPDATE, "optimizer_ms", "optimizer", NULL, NUMBER, 3, 0)                                     \
    X(TFLOPS, "tflop_per_s", "", "TFLOP/s", NUMBER, 4, 8)                                          \
    X(DISPATCHES, "dispatches", "dispatches", NULL, COUNT, 0, 0)                                   \
    X(MEMORY, "memory", "memory", NULL, BYTES, 0, 9)                                               \
    X(SPREAD, "spread", "spread", NULL, SHARE, 1, 6)                                               \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(ERROR, "error", "error", NULL, NUMBER, 4, 7)                                                 \
    X(CHECK, "check", "check", NULL, TEXT, 0, 0)

enum column {
    COLUMNS(TABLE_ENTRY) COLUMN_COUNT,
};

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

struct image_model {
    char name[32];
    bool pairs;
    struct grt_resnet_desc resnet;
    struct grt_wideresnet_desc wide;
};

struct image_models {
    struct image_model values[MAX_MODELS];
    size_t count;
};

struct images_bench {
    struct options common;  // first: see options.h
    struct image_models models;
    struct ranges batches, sides;
    uint32_t precisions;  // bits of grt_dtype
    double seconds;
    struct grt_dev *dev;
    struct table table;
    struct bench_progress progress;
    uint32_t wrong, good, too_large;
};

// ---- options ----

// The number behind `word`, and `at` past it; 0: there is none.
static uint32_t number_behind(const char **at, const char *word) {
    size_t length = strlen(word);
    char *end = NULL;
    if (strncmp(*at, word, length) != 0) {
        return 0;
    }
    unsigned long value = strtoul(*at + length, &end, 10);
    bool good = end > *at + length && value <= 1024;
    *at = good ? end : *at;
    return good ? (uint32_t)value : 0;
}

static const uint32_t resnets[] = {18, 34, 50, 101, 152};

static bool read_model(const char **at, struct image_model *m) {
    const char *begin = *at;
    bool pairs = strncmp(begin, SIMCLR, strlen(SIMCLR)) == 0;
    uint32_t outputs = pairs ? 0 : CLASSES;
    *m = (struct image_model){.pairs = pairs, .resnet.outputs = outputs, .wide.outputs = outputs};
    *at += pairs ? strlen(SIMCLR) : 0;
    m->resnet.depth = number_behind(at, "resnet");
    m->wide.depth = m->resnet.depth ? 0 : number_behind(at, "wideresnet-");
    m->wide.width = m->wide.depth ? number_behind(at, "-") : 0;
    snprintf(m->name, sizeof m->name, "%.*s", (int)(*at - begin), begin);
    bool known = m->wide.width > 0 && m->wide.depth >= 10 && m->wide.depth % 6 == 4;
    for (size_t i = 0; i < sizeof resnets / sizeof *resnets; i++) {
        known = known || m->resnet.depth == resnets[i];
    }
    return known;
}

static bool read_models(const char *text, void *into, char why[RANGES_WHY]) {
    struct image_models *models = into;
    models->count = 0;
    for (const char *at = text;; at++) {
        if (models->count == MAX_MODELS || !read_model(&at, &models->values[models->count++]) ||
            (*at && *at != ',')) {
            snprintf(why, RANGES_WHY,
                     "resnet18, 34, 50, 101 or 152, or as in wideresnet-28-10 is wanted, or one "
                     "of these behind simclr-");
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

static bool read_sides(const char *text, void *into, char why[RANGES_WHY]) {
    ranges_destroy(into);
    return ranges_parse(text, &(struct ranges_rule){.min = 1, .max = 4096}, into, why);
}

#define AT(field) offsetof(struct images_bench, field)

static const struct option_row own_options[] = {
    {.name = "model",
     .value = "LIST",
     .help = "resnet18, 34, 50, 101, 152, wideresnet-DEPTH-WIDTH, or simclr-resnet18 and so on",
     .fallback = "resnet18",
     .read = read_models,
     .at = AT(models)},
    {.name = "batch-sizes",
     .value = "LIST",
     .help = "images of a step (default: 32, or 512,1024 on a GPU)",
     .read = bench_read_batches,
     .at = AT(batches)},
    {.name = "resolution",
     .value = "LIST",
     .help = "height and width; up to 64 a resnet has the stem of 3x3",
     .fallback = "32",
     .read = read_sides,
     .at = AT(sides)},
    {.name = "precision",
     .value = "LIST",
     .help = "f32, f16, bf16 (default: f32, or f16 on a GPU)",
     .read = read_precisions,
     .at = AT(precisions)},
    {.name = "time",
     .value = "SECONDS",
     .help = "time for each row",
     .fallback = "1",
     .read = options_read_positive,
     .at = AT(seconds)},
};

// ---- one row ----

struct images_case {
    const struct image_model *model;
    uint32_t side, batch;
    enum grt_dtype precision;
    struct grt_learner *learner;
    double error, operations;
    uint32_t dispatches;
    double forward, backward, update;  // device milliseconds; 0: unknown
    double best, cpu;                  // seconds of a step; of all cores, at best
    uint64_t bytes;
};

static struct grt_module *make(const void *of) {
    const struct image_model *m = of;
    struct grt_module *network =
        m->resnet.depth ? grt_resnet_create(&m->resnet) : grt_wideresnet_create(&m->wide);
    if (!m->pairs) {
        return network;
    }
    struct grt_module *parts[] = {network, grt_linear_create(grt_linear_desc(.outputs = HIDDEN)),
                                  grt_activation_create(GRT_ACT_RELU),
                                  grt_linear_create(grt_linear_desc(.outputs = PROJECTED))};
    return grt_sequence_create(parts, 4);
}

static bool fill(const struct images_case *c) {
    const struct grt_tensor *x = grt_learner_input(c->learner), *y = grt_learner_target(c->learner);
    uint64_t count = grt_tensor_count(x);
    float *images = malloc((size_t)count * sizeof *images);
    uint32_t *classes = calloc(c->batch, sizeof *classes), state = 12345;
    bool good = images && classes;
    for (uint64_t i = 0; good && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        images[i] = (float)((double)(state >> 8) * 0x1p-23 - 1.0);
    }
    for (uint32_t i = 0; good && i < c->batch; i++) {
        state = state * 1664525u + 1013904223u;
        classes[i] = (state >> 16) % CLASSES;
    }
    if (!good) {
        talk_error("out of memory");
    }
    good = good && grt_buf_write(x->range.buf, x->range.offset, images, count * sizeof *images) &&
           (c->model->pairs ||
            grt_buf_write(y->range.buf, y->range.offset, classes, c->batch * sizeof *classes));
    free(images);
    free(classes);
    return good;
}

static bool create(struct images_bench *bench, struct images_case *c) {
    struct grt_learner_desc desc = {
        .make = make,
        .of = c->model,
        .input = {3, {c->side, c->side, CHANNELS}},
        .loss = GRT_LOSS_CROSS_ENTROPY,
        .optim = grt_optim_defaults(GRT_OPTIM_SGD),
        .precision = c->precision,
        .batch = c->batch,
    };
    if (c->model->pairs) {
        desc.loss = GRT_LOSS_NT_XENT;
        desc.views = 2;
        desc.outputs = PROJECTED;
    }
    desc.optim.lr = 1e-3;
    desc.optim.momentum = 0.9;
    desc.optim.scale = c->precision == GRT_F16 ? 1024 : 1;
    c->learner = grt_learner_create(bench->dev, &desc);
    if (!c->learner) {
        return false;
    }
    c->bytes = grt_learner_bytes(c->learner, NULL);
    const struct grt_net_layer *all = grt_learner_layer(c->learner, 0);
    c->operations = all ? all->operations : 0;
    return grt_learner_alloc(c->learner);
}

static bool run_once(void *graph, double *seconds) {
    double begun = grt_seconds();
    if (talk_stopped() || !grt_graph_finish(graph)) {
        return false;
    }
    *seconds = grt_seconds() - begun;
    return true;
}

// One step from the drawn parameters at rate factor `factor`, then the loss of the next.
static bool two_losses(struct images_case *c, struct grt_graph *graph, float factor,
                       struct grt_learn_state states[2]) {
    double seconds;
    // A reset clears the inputs too.
    bool good =
        grt_learner_reset(c->learner, 1) && fill(c) && grt_learner_state(c->learner, &states[0]);
    states[0].lr_factor = factor;
    good = good && grt_learner_set_state(c->learner, &states[0]);
    for (uint32_t i = 0; good && i < 2; i++) {
        good = run_once(graph, &seconds) && grt_learner_state(c->learner, &states[i]);
    }
    return good;
}

// False when a call failed.
static bool check(struct images_case *c, struct grt_graph *graph) {
    struct grt_learn_state s[2];
    if (!two_losses(c, graph, 1.0f, s)) {
        return false;
    }
    const double rate = s[0].lr, loss = s[0].loss;
    const double square = (double)s[0].grad_norm * s[0].grad_norm;
    c->error = INFINITY;
    for (double fall = FALL; fall >= LEAST_FALL && !(c->error <= ENOUGH); fall /= 4) {
        float factor = (float)(fall * loss / (rate * square));
        if (!isfinite(factor)) {
            return true;
        }
        if (!two_losses(c, graph, factor, s)) {
            return false;
        }
        c->error = fmin(c->error, fabs(((double)s[0].loss - s[1].loss) / (s[0].lr * square) - 1));
    }
    return true;
}

// What the phases of a step take, by the device's clock; barriers between them cost a little.
static bool measure_phases(struct images_case *c) {
    struct grt_graph *graph =
        grt_learner_step(c->learner, grt_step_desc(.label = "bench images", .phases = true));
    struct grt_phase_time times[GRT_MAX_PHASES];
    bool good = graph && grt_graph_finish(graph) && grt_graph_finish(graph);
    uint32_t count = good ? grt_graph_times(graph, times, GRT_MAX_PHASES) : 0;
    for (uint32_t i = 0; i < count && i < GRT_MAX_PHASES; i++) {
        double *into = strcmp(times[i].name, "forward") == 0     ? &c->forward
                       : strcmp(times[i].name, "backward") == 0  ? &c->backward
                       : strcmp(times[i].name, "optimizer") == 0 ? &c->update
                                                                 : NULL;
        if (into) {
            *into += 1e3 * times[i].seconds;
        }
    }
    grt_graph_destroy(&graph);
    return good;
}

static bool print_row(struct images_bench *bench, struct images_case *c, const struct stats *stats,
                      const char *outcome) {
    bool timed = stats->count > 0;
    double seconds = timed ? stats->median : 1;
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_MODEL] = TABLE_CELL(.text = c->model->name),
        [COLUMN_SIDE] = TABLE_CELL(.count = c->side),
        [COLUMN_BATCH] = TABLE_CELL(.count = c->batch),
        [COLUMN_PRECISION] = TABLE_CELL(.text = grt_dtype_text(c->precision)),
        [COLUMN_MS] = {.known = timed, .number = 1e3 * seconds},
        [COLUMN_BEST] = {.known = timed, .number = 1e3 * c->best},
        [COLUMN_CPU] = {.known = timed && c->cpu > 0, .number = 1e3 * c->cpu},
        [COLUMN_RATE] = {.known = timed, .number = c->batch / seconds},
        [COLUMN_FORWARD] = {.known = timed && c->forward > 0, .number = c->forward},
        [COLUMN_BACKWARD] = {.known = timed && c->backward > 0, .number = c->backward},
        [COLUMN_UPDATE] = {.known = timed && c->update > 0, .number = c->update},
        [COLUMN_TFLOPS] = {.known = timed,
                           .number = (c->model->pairs ? 6e-12 : 3e-12) * c->operations * c->batch /
                                     seconds},
        [COLUMN_DISPATCHES] = {.known = c->dispatches > 0, .count = c->dispatches},
        [COLUMN_MEMORY] = {.known = c->bytes > 0, .count = c->bytes},
        [COLUMN_SPREAD] = {.known = timed, .number = stats->spread},
        [COLUMN_SAMPLES] = {.known = timed, .count = stats->count},
        [COLUMN_ERROR] = {.known = isfinite(c->error) && c->error >= 0, .number = c->error},
        [COLUMN_CHECK] = TABLE_CELL(.text = outcome),
    };
    return table_row(&bench->table, cells);
}

struct timed_run {
    struct grt_graph *graph;
    double best, cpu;
};

static bool run_timed(void *context, double *seconds) {
    struct timed_run *t = context;
    clock_t begun = clock();
    bool good = run_once(t->graph, seconds);
    double cpu = (double)(clock() - begun) / CLOCKS_PER_SEC;
    t->cpu = good && (t->cpu == 0 || cpu < t->cpu) ? cpu : t->cpu;
    t->best = good && (t->best == 0 || *seconds < t->best) ? *seconds : t->best;
    return good;
}

static bool measure(struct images_bench *bench, struct images_case *c, struct grt_graph *graph,
                    struct stats *stats) {
    struct stats_desc how = {
        .warm_up = 0.1 * bench->seconds, .budget = bench->seconds, .min_samples = 3};
    struct timed_run timed = {.graph = graph};
    bool good = stats_measure(&how, run_timed, &timed, stats) && measure_phases(c);
    c->best = timed.best;
    c->cpu = timed.cpu;
    return good;
}

// False when the bench must stop. What does not fit is a row of its own.
static bool run_case(struct images_bench *bench, struct images_case *c) {
    struct stats stats = {0};
    const char *outcome = "ok";
    struct grt_graph *graph = NULL;
    bool good = true;
    c->error = -1;
    bench_progress_row(&bench->progress, "images: %s, %u, batch %u, %s", c->model->name, c->side,
                       c->batch, grt_dtype_text(c->precision));
    if (!create(bench, c)) {
        enum grt_status status = grt_last_status();
        good = status == GRT_NO_MEMORY || status == GRT_UNSUPPORTED;
        outcome = status == GRT_NO_MEMORY ? "OOM" : "unsuited";
        bench->too_large += status == GRT_NO_MEMORY;
    } else {
        graph = grt_learner_step(c->learner, grt_step_desc(.label = "bench images"));
        good = graph && check(c, graph);
        c->dispatches = graph ? grt_graph_stats(graph).dispatches : 0;
        if (good && !(c->error <= ALLOWED)) {
            talk_error("images: the loss of %s, batch %u, %s falls by other than its gradient "
                       "says: off by %.3g of it",
                       c->model->name, c->batch, grt_dtype_text(c->precision), c->error);
            outcome = "FAILED";
            bench->wrong++;
        } else if (good) {
            good = measure(bench, c, graph, &stats);
            bench->good += good;
        }
    }
    good = good && print_row(bench, c, &stats, outcome);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&c->learner);
    return good;
}

static bool run_rows(struct images_bench *bench) {
    const struct grt_dev_info *info = grt_dev_info(bench->dev);
    char title[TABLE_TEXT_SIZE], why[RANGES_WHY];
    bool software = info->caps.software;
    if (!bench->batches.count &&
        !bench_read_batches(software ? "32" : "512,1024", &bench->batches, why)) {
        return false;
    }
    if (!bench->precisions) {
        bench->precisions = software ? 1u << GRT_F32 : 1u << GRT_F16;
    }
    snprintf(title, sizeof title, "training on images on %s: %s, %s %s", info->selector, info->name,
             info->driver, info->driver_version);
    uint64_t hidden = 1ull << COLUMN_SAMPLES | 1ull << COLUMN_BEST;
    hidden |= software ? 0 : 1ull << COLUMN_CPU;
    if (!table_section(&bench->table, title, ((1ull << COLUMN_COUNT) - 1) & ~hidden, NULL, 0)) {
        return false;
    }
    size_t types = 0, sides = bench->sides.count, batches = bench->batches.count;
    for (uint32_t t = 0; t < 3; t++) {
        types += bench->precisions >> t & 1;
    }
    bench_progress_plan(&bench->progress, bench->models.count * sides * batches * types,
                        bench->seconds);
    for (size_t i = 0; i < bench->models.count * sides * batches * 3; i++) {
        struct images_case c = {.model = &bench->models.values[i / (sides * batches * 3)],
                                .side = (uint32_t)bench->sides.values[i / (batches * 3) % sides],
                                .batch = (uint32_t)bench->batches.values[i / 3 % batches],
                                .precision = (enum grt_dtype)(i % 3)};
        if (!(bench->precisions >> i % 3 & 1)) {
            continue;
        }
        if (!run_case(bench, &c)) {
            return false;
        }
        bench->progress.done++;
    }
    return true;
}

static int run(struct images_bench *bench, int argc, char **argv) {
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
            .schema = "gpurt.bench.images/1",
            .verb = "bench images",
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
    "Whole training steps of image networks: ten classes, cross-entropy, SGD with momentum, the "
    "images on the\n"
    "device. A step is recorded once and replayed. Numbers are medians. TFLOP/s counts three times "
    "the operations\n"
    "of forward. CPU, on drivers that run on one, is the least time of all cores for a step, which "
    "other work\n"
    "changes little. What does not fit into the device's memory is marked OOM. simclr- before a "
    "model sets a\n"
    "projection and NT-Xent behind it; the batch then counts pairs.\n";

int bench_images(int argc, char **argv) {
    struct images_bench bench = {0};
    struct option_list lists[] = {
        OPTION_LIST("Options of images", own_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("Where time and memory go", watch_options),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "bench images",
                                .about = about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    size_t word_count = 0;
    int code = options_parse(&desc, argc, argv, &bench.common, NULL, &word_count);
    if (code < 0) {
        code = run(&bench, argc, argv);
    }
    ranges_destroy(&bench.batches);
    ranges_destroy(&bench.sides);
    return code;
}
