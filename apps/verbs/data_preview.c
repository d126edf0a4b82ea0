// SPDX-License-Identifier: Apache-2.0
// `gpurt data preview`: images of a file beside what their transform makes of them in training, and
// which numbers were drawn for that; `gpurt data info FILE -o sheet.png`: images of each class.
#include "data_preview.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output/sheet.h"
#include "cli/talk.h"
#include "gpurt/direct.h"
#include "gpurt/learner.h"
#include "gpurt/loader.h"
#include "gpurt/network.h"
#include "train/train_config.h"

#define VIEWS 2            // of a sample, of steps one after the other
#define SHEET_CELLS 8      // images of a class
#define SHEET_CLASSES 100  // lines
#define LOOK_ROWS 256      // that are read at a time
#define MOST_NUMBERS (1u << 28)

// ---- images of a file ----

struct images {
    struct grt_file_info *info;
    struct grt_dataset *data;
    struct grt_loader *loader;
    uint32_t height, width, channels;
    bool classes;  // y has them
};

static const struct grt_array_info *array_of(const struct grt_file_info *info, const char *name) {
    for (uint32_t i = 0; i < info->count; i++) {
        if (strcmp(info->arrays[i].name, name + (name[0] == '/')) == 0) {
            return &info->arrays[i];
        }
    }
    return NULL;
}

static void images_close(struct images *m) {
    grt_loader_destroy(&m->loader);
    grt_dataset_close(&m->data);
    grt_file_info_destroy(&m->info);
}

// Returns an exit code; a mistake is said.
static int images_open(struct images *m, const char *path, const char *x, const char *y,
                       uint64_t batch, bool shuffle, uint64_t seed) {
    const char *file = grt_direct_path(path);
    *m = (struct images){.info = file ? grt_file_info_create(file) : NULL};
    if (!m->info) {
        int code = command_exit_of(grt_last_status());
        return code ? code : COMMAND_INTERNAL;
    }
    const struct grt_array_info *inputs = array_of(m->info, x), *targets = array_of(m->info, y);
    if (!inputs || inputs->rank != 4 || inputs->problem[0]) {
        const char *problem = inputs ? inputs->problem : "";
        talk_error("%s: %s is no data set of images [N][H][W][C]%s%s", path, x,
                   problem[0] ? ": " : "", problem);
        return COMMAND_DATA;
    }
    m->channels = (uint32_t)inputs->shape[3];
    if (m->channels != 1 && m->channels != 3) {
        talk_error("%s: a picture is made of images of 1 or 3 channels, and %s has %u", path, x,
                   m->channels);
        return COMMAND_DATA;
    }
    if (inputs->shape[1] * inputs->shape[2] > MOST_NUMBERS / m->channels) {
        talk_error("%s: images of %" PRIu64 "x%" PRIu64 " are too large for a picture", path,
                   inputs->shape[1], inputs->shape[2]);
        return COMMAND_DATA;
    }
    uint64_t numbers = inputs->shape[1] * inputs->shape[2] * m->channels;
    batch = batch < inputs->shape[0] ? batch : inputs->shape[0];
    batch = batch < MOST_NUMBERS / numbers ? batch : MOST_NUMBERS / numbers;
    m->classes = targets && !targets->problem[0] && targets->rank == 1 &&
                 targets->shape[0] == inputs->shape[0] && strchr("ui", targets->dtype[0]);
    m->data = grt_dataset_open(
        grt_dataset_desc(.path = file, .shown = path, .inputs = &x, .input_count = 1, .targets = &y,
                         .target_count = m->classes, .no_targets = !m->classes,
                         .class_targets = m->classes, .check_late = true));
    m->loader = m->data ? grt_loader_create(grt_loader_desc(.data = m->data, .part = GRT_PART_ALL,
                                                            .batch = (uint32_t)batch,
                                                            .shuffle = shuffle, .seed = seed))
                        : NULL;
    m->height = (uint32_t)inputs->shape[1];
    m->width = (uint32_t)inputs->shape[2];
    return m->loader ? COMMAND_OK : command_exit_of(grt_last_status());
}

// "class 3 cat"; nothing where there are no classes.
static void class_text(const struct images *m, const struct grt_batch *batch, uint32_t row,
                       char text[80]) {
    uint32_t class = m->classes ? ((const uint32_t *)batch->y)[row] : 0;
    const char *name = class < m->info->class_name_count ? m->info->class_names[class] : "";
    text[0] = '\0';
    if (m->classes) {
        snprintf(text, 80, "class %u%s%s", class, name[0] ? " " : "", name);
    }
}

// What stands for white: 255 of bytes, 1 where no number is larger.
static double white_of(const float *x, uint64_t count) {
    float largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        largest = x[i] > largest ? x[i] : largest;
    }
    return largest <= 1 ? 1 : 255;
}

// ---- the sheet of a file ----

int data_sheet(const char *path, const char *output) {
    struct images m;
    struct sheet sheet = {0};
    struct grt_batch batch;
    int code = images_open(&m, path, "x", "y", LOOK_ROWS, false, 0);
    uint32_t classes = 1, filled[SHEET_CLASSES] = {0}, full = 0;
    if (!code && m.classes) {
        classes = grt_dataset_info(m.data).classes;
        classes = classes < SHEET_CLASSES ? classes : SHEET_CLASSES;
    }
    if (!code && !sheet_init(&sheet, classes, SHEET_CELLS, m.height, m.width)) {
        code = COMMAND_DATA;
    }
    uint64_t batches = code ? 0 : grt_loader_info(m.loader).batches_per_epoch;
    for (uint64_t b = 0; !code && b < batches && full < classes && !talk_stopped(); b++) {
        if (!grt_loader_next(m.loader, &batch)) {
            code = command_exit_of(grt_last_status());
            break;
        }
        uint64_t numbers = (uint64_t)m.height * m.width * m.channels;
        double white = white_of(batch.x, batch.rows * numbers);
        for (uint32_t i = 0; i < batch.rows; i++) {
            uint32_t class = m.classes ? ((const uint32_t *)batch.y)[i] : 0;
            if (class >= classes || filled[class] == SHEET_CELLS) {
                continue;
            }
            class_text(&m, &batch, i, sheet.texts[class]);
            sheet_put(&sheet, class, filled[class]++, batch.x + i * numbers, m.height, m.width,
                      m.channels, white);
            full += filled[class] == SHEET_CELLS;
        }
        grt_loader_release(m.loader, &batch);
    }
    code = code ? code : sheet_save(&sheet, output);
    for (uint32_t i = 0; !code && i < classes; i++) {
        talk_line("line %u: %u images%s%s", i + 1, filled[i], m.classes ? " of " : "",
                  sheet.texts[i]);
    }
    sheet_finish(&sheet);
    images_close(&m);
    return code;
}

// ---- views ----

struct views {
    struct grt_module *module;
    struct grt_params params;
    struct grt_plan *plan;
    struct grt_net net;
    struct grt_shape out;
    struct grt_tensor *x, *y;
    struct grt_buf *state;
    struct grt_graph *graph;
    float *images;  // of the newest step
};

static void views_finish(struct views *v) {
    free(v->images);
    grt_graph_destroy(&v->graph);
    grt_buf_destroy(&v->state);
    grt_module_destroy(&v->module);
    grt_net_finish(&v->net);
    grt_params_finish(&v->params);
    grt_plan_destroy(&v->plan);
}

// The transform of the settings by itself: its random numbers are those of a training run with the
// same seed, in which it stands before all other modules too.
static bool views_declare(struct views *v, struct grt_dev *dev, const struct grt_config *c,
                          const struct grt_shape *in, uint64_t rows) {
    grt_params_init(&v->params, dev, GRT_F32);
    v->module = grt_transform_create(
        grt_network_desc(.text = c->transform.text,
                         .path = grt_config_file(c, GRT_CONFIG_TRANSFORM),
                         .name = grt_config_source(c, GRT_CONFIG_TRANSFORM),
                         .line = c->transform.line, .column = c->transform.column,
                         .whole = c->transform.whole));
    v->plan = v->module ? grt_plan_create(dev) : NULL;
    if (!v->plan) {
        return false;
    }
    v->net = (struct grt_net){.dev = dev,
                              .plan = v->plan,
                              .params = &v->params,
                              .dtype = GRT_F32,
                              .rows = rows,
                              .seed = c->seed};
    grt_transform_plain(v->module);
    v->out = grt_module_declare(v->module, &v->net, "", in);
    return v->out.rank > 0;
}

static bool views_alloc(struct views *v, struct grt_dev *dev, const struct grt_shape *in,
                        uint64_t rows) {
    struct grt_tensor_desc x = {.label = "x", .shape = {rows}};
    struct grt_tensor_desc y = {.label = "y", .shape = {rows}};
    memcpy(x.shape + 1, in->dim, sizeof in->dim);
    memcpy(y.shape + 1, v->out.dim, sizeof v->out.dim);
    v->x = grt_plan_tensor(v->plan, &x);
    v->y = grt_plan_tensor(v->plan, &y);
    if (v->net.scratch_bytes > 0) {
        v->net.scratch =
            grt_plan_tensor(v->plan, grt_tensor_desc(.label = "scratch",
                                                     .shape = {(v->net.scratch_bytes + 3) / 4}));
    }
    v->state =
        grt_buf_create(dev, grt_buf_desc(.size = sizeof(struct grt_learn_state), .label = "state"));
    v->images = malloc(rows * grt_shape_count(&v->out) * sizeof *v->images);
    v->graph = grt_graph_create(dev, "views");
    if (!grt_plan_alloc(v->plan) || !v->state || !v->images || !v->graph) {
        return false;
    }
    const struct grt_pass pass = {.graph = v->graph,
                                  .training = true,
                                  .state = {v->state, 0, sizeof(struct grt_learn_state)}};
    grt_module_forward(v->module, &pass, v->x, v->y);
    return grt_graph_bake(v->graph);
}

static bool views_run(struct views *v, uint32_t step) {
    const struct grt_learn_state state = {.steps = step};
    return grt_buf_write(v->state, 0, &state, sizeof state) && grt_graph_run(v->graph) &&
           grt_graph_finish(v->graph) &&
           grt_buf_read(v->y->range.buf, v->y->range.offset, v->images, grt_tensor_bytes(v->y));
}

static float as_float(uint32_t word) {
    float number;
    memcpy(&number, &word, sizeof number);
    return number;
}

#define BOX_WORDS 8
#define COLOUR_WORDS 12

static void print_colours(const uint32_t *w) {
    static const char *const names[] = {"brightness", "contrast", "saturation", "hue"};
    for (uint32_t order = w[0]; order != 0; order >>= 4) {
        uint32_t operation = (order & 15) - 1;
        printf(", %s %.4f", names[operation & 3], (double)as_float(w[1 + (operation & 3)]));
    }
    if (w[5]) {
        printf(", grey");
    }
    if (as_float(w[6]) > 0) {
        printf(", blur %.4f", (double)as_float(w[6]));
    }
    if ((int32_t)w[9] > 0 && (int32_t)w[10] > 0) {
        printf(", erased %dx%d at %d,%d", (int32_t)w[9], (int32_t)w[10], (int32_t)w[7],
               (int32_t)w[8]);
    }
}

// What was drawn for each sample of the newest step. A box is height x width at top,left.
static bool print_drawn(const struct views *v, const struct images *m,
                        const struct grt_batch *batch, const uint32_t *rows, uint32_t step) {
    const struct grt_tensor *boxes;
    for (uint32_t p = 0; (boxes = grt_transform_boxes(v->module, p)) != NULL; p++) {
        const struct grt_tensor *colours = grt_transform_colours(v->module, p);
        uint32_t b[BOX_WORDS], c[COLOUR_WORDS] = {0};
        for (uint32_t i = 0; i < batch->rows; i++) {
            char class[80];
            if (!grt_buf_read(boxes->range.buf, boxes->range.offset + i * sizeof b, b, sizeof b) ||
                (colours && !grt_buf_read(colours->range.buf, colours->range.offset + i * sizeof c,
                                          c, sizeof c))) {
                return false;
            }
            class_text(m, batch, i, class);
            printf("step %u, place %u: row %u%s%s, pass %u: box %dx%d at %d,%d%s", step, i, rows[i],
                   class[0] ? ", " : "", class, p + 1, (int32_t)b[2], (int32_t)b[3], (int32_t)b[0],
                   (int32_t)b[1], b[4] ? ", flipped" : "");
            if (colours) {
                print_colours(c);
            }
            printf("\n");
        }
    }
    float own = 1;
    if (v->net.mix &&
        !grt_buf_read(v->net.mix->range.buf, v->net.mix->range.offset, &own, sizeof own)) {
        return false;
    }
    if (v->net.mix) {
        printf("step %u: mixed, %.4f of each sample and the rest of the one before it\n", step,
               (double)own);
    }
    return fflush(stdout) == 0;
}

// ---- the verb ----

struct preview {
    struct train_config config;  // first: see train_config.h
    const char *output;
    uint64_t rows, step;
    uint32_t print;
};

static bool read_rows(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 1, 1000, into, why);
}

static bool read_step(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 0, 0, into, why) && *(uint64_t *)into < UINT32_MAX - VIEWS;
}

static const struct option_row preview_options[] = {
    {.name = "rows",
     .value = "N",
     .help = "samples",
     .fallback = "8",
     .read = read_rows,
     .at = offsetof(struct preview, rows)},
    {.name = "step",
     .value = "N",
     .help = "views as of this step of training and the next one",
     .fallback = "0",
     .read = read_step,
     .at = offsetof(struct preview, step)},
    {.name = "print-parameters",
     .help = "print what was drawn for each sample and view",
     .at = offsetof(struct preview, print)},
    {.name = "output",
     .letter = "o",
     .value = "FILE",
     .help = "the picture, .png or .svg: an original and two views a line",
     .read = options_read_text,
     .at = offsetof(struct preview, output)},
};

// A line for each sample. Returns an exit code; a mistake is said.
static int draw(const struct preview *p, struct grt_dev *dev, struct images *m, struct views *v,
                const struct grt_batch *batch, struct sheet *sheet) {
    const struct grt_shape in = {3, {m->height, m->width, m->channels}};
    uint64_t numbers = grt_shape_count(&in);
    double white = white_of(batch->x, batch->rows * numbers);
    uint32_t *rows = calloc(batch->rows, sizeof *rows);
    bool good = rows && grt_loader_order(m->loader, 0, 0, batch->rows, rows);
    v->out = in;
    good = good && (!dev || views_declare(v, dev, &p->config.settings, &in, batch->rows));
    uint32_t height = (uint32_t)v->out.dim[0], width = (uint32_t)v->out.dim[1];
    if (good &&
        !sheet_init(sheet, batch->rows, dev ? 1 + VIEWS : 1,
                    height > m->height ? height : m->height, width > m->width ? width : m->width)) {
        free(rows);
        return COMMAND_DATA;
    }
    for (uint32_t i = 0; good && i < batch->rows; i++) {
        char class[80];
        class_text(m, batch, i, class);
        snprintf(sheet->texts[i], sizeof *sheet->texts, "row %u%s%s", rows[i], class[0] ? ", " : "",
                 class);
        sheet_put(sheet, i, 0, batch->x + i * numbers, m->height, m->width, m->channels, white);
    }
    if (good && dev) {
        good = views_alloc(v, dev, &in, batch->rows) &&
               grt_buf_write(v->x->range.buf, v->x->range.offset, batch->x,
                             batch->rows * numbers * sizeof(float));
    }
    for (uint32_t view = 0; good && dev && view < VIEWS; view++) {
        uint32_t step = (uint32_t)p->step + view;
        good = views_run(v, step) && (!p->print || print_drawn(v, m, batch, rows, step));
        for (uint32_t i = 0; good && i < batch->rows; i++) {
            sheet_put(sheet, i, 1 + view, v->images + i * grt_shape_count(&v->out), height, width,
                      m->channels, white);
        }
    }
    free(rows);
    return good ? COMMAND_OK : command_exit_of(grt_last_status());
}

static int run(void *values, int argc, char **argv) {
    struct preview *p = values;
    const struct grt_config *c = &p->config.settings;
    struct images m = {0};
    struct sheet sheet = {0};
    struct grt_batch batch;
    struct grt_dev *dev = NULL;
    (void)argc;
    (void)argv;
    if (!p->output && !p->print) {
        talk_error("data preview: -o FILE.png or FILE.svg says where to");
        return COMMAND_USAGE;
    }
    if (p->output && !sheet_named("data preview", p->output)) {
        return COMMAND_USAGE;
    }
    if (!c->data[0]) {
        talk_error("data preview: no data: name an HDF5 file with --data FILE");
        return COMMAND_USAGE;
    }
    if (p->print && !c->transform.text[0]) {
        talk_error("data preview: without a transform nothing is drawn: transform='...'");
        return COMMAND_USAGE;
    }
    int code = train_config_apart(&p->config, p->output);
    if (!code) {
        code = images_open(&m, c->data, c->inputs.count > 0 ? c->inputs.values[0] : "x",
                           c->targets.count > 0 ? c->targets.values[0] : "y", p->rows, c->shuffle,
                           c->seed);
    }
    if (!code && c->transform.text[0]) {
        dev = train_config_device(&p->config);
        code = dev ? COMMAND_OK : command_exit_of(grt_last_status());
    }
    if (!code) {
        struct views v = {0};
        code = grt_loader_next(m.loader, &batch) ? draw(p, dev, &m, &v, &batch, &sheet)
                                                 : command_exit_of(grt_last_status());
        views_finish(&v);
    }
    if (!code && p->output) {
        code = sheet_save(&sheet, p->output);
        for (uint32_t i = 0; !code && i < sheet.lines; i++) {
            talk_line("line %u: %s", i + 1, sheet.texts[i]);
        }
    }
    sheet_finish(&sheet);
    images_close(&m);
    grt_dev_destroy(&dev);
    return code;
}

int data_preview(int argc, char **argv) {
    struct option_list lists[] = {
        OPTION_LIST("Options", preview_options),
        OPTION_LIST("Settings", train_config_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("General options", options_general),
    };
    const struct train_config_verb verb = {
        .options = {.verb = "data preview",
                    .words = "[KEY=VALUE...]",
                    .about =
                        "  Images of a file beside what `transform` makes of them in training: "
                        "a line of the\n  picture is a sample, then its views of two steps. "
                        "They are those of a training run\n  with the same seed at the same "
                        "step and place of a batch. Nothing is normalized.\n",
                    .lists = lists,
                    .list_count = sizeof lists / sizeof *lists},
        .size = sizeof(struct preview),
        .run = run};
    return train_config_main(&verb, argc, argv);
}
