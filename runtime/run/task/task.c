// SPDX-License-Identifier: Apache-2.0
#include "gpurt/task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "gpurt/network.h"
#include "task_parts.h"

// ---- words of the config as the library's numbers ----

TASK_WORD_FN(loss_of, GRT_LOSSES)
TASK_WORD_FN(pool_of, GRT_POOLS)
TASK_WORD_FN(cache_of, GRT_CACHES)
TASK_WORD_FN(on_nan_of, GRT_ON_NANS)

#define PAIRS 256  // samples of a batch that are told apart

// Sets what the config does not give.
static bool set_default(struct grt_config *config, enum grt_config_key key, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return grt_config_given(config, key) || grt_config_set(config, key, text);
}

// ---- choices ----

static bool is_points(const struct grt_task *task) {
    return !grt_config_given(&task->config, GRT_CONFIG_NETWORK) &&
           strcmp(task->config.model, "points") == 0;
}

bool task_key_of_kinds(enum grt_config_key key) {
    static const enum grt_config_key keys[] = {
        GRT_CONFIG_DEPTH,      GRT_CONFIG_HIDDEN,  GRT_CONFIG_ACTIVATION, GRT_CONFIG_RESIDUAL,
        GRT_CONFIG_LAYER_NORM, GRT_CONFIG_POOLING, GRT_CONFIG_HEAD_DEPTH,
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i] == key) {
            return true;
        }
    }
    return false;
}

// A list of layers, and beside it what would describe another network.
static bool one_network(const struct grt_config *c) {
    for (uint32_t key = 0; key < GRT_CONFIG_KEY_COUNT; key++) {
        const struct grt_config_place *place = &c->places[key];
        if (place->given && task_key_of_kinds((enum grt_config_key)key)) {
            char where[GRT_CONFIG_WHERE];
            grt_config_where(c, (enum grt_config_key)key, where);
            return grt_fail(GRT_CONFIG,
                            "%s%s describes an mlp, and `model` is a list of layers, which has its "
                            "own: leave %s out, or the list",
                            where, place->name, place->name);
        }
    }
    return true;
}

// Networks over images are lists of layers; small, medium and large are sizes of an mlp, and what
// is given besides stands.
static bool choose_model(struct grt_task *task) {
    static const struct {
        const char *name;
        uint64_t depth, hidden;
    } sizes[] = {{"small", 3, 16}, {"medium", 6, 64}, {"large", 12, 128}};
    struct grt_config *c = &task->config;
    if (grt_config_given(c, GRT_CONFIG_NETWORK)) {
        return true;
    }
    if (strncmp(c->model, "resnet", 6) == 0 || strcmp(c->model, "wideresnet") == 0) {
        char list[sizeof c->model + 2];
        const struct grt_config_place place = c->places[GRT_CONFIG_MODEL];
        snprintf(list, sizeof list, "[%s]", c->model);
        if (!grt_config_set(c, GRT_CONFIG_NETWORK, list)) {
            return false;
        }
        c->places[GRT_CONFIG_NETWORK] = place;
        c->places[GRT_CONFIG_NETWORK].given = true;  // by its kind, where nobody gave a model
        c->network.line = place.value_line;
        c->network.column = place.value_column;
        c->network.whole = true;
        return one_network(c);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strcmp(c->model, sizes[i].name) == 0) {
            return set_default(c, GRT_CONFIG_DEPTH, sizes[i].depth) &&
                   set_default(c, GRT_CONFIG_HIDDEN, sizes[i].hidden) &&
                   grt_config_set(c, GRT_CONFIG_MODEL, "mlp");
        }
    }
    if (task->info.points > 0 && task->info.height == 0 && !grt_config_given(c, GRT_CONFIG_MODEL)) {
        return grt_config_set(c, GRT_CONFIG_MODEL, "points");
    }
    if (is_points(task) && task->info.points == 0) {
        return grt_fail(GRT_CONFIG,
                        "model points wants inputs of one shape [N][P][D]; %s has others", c->data);
    }
    return true;
}

// Whether the file's target is of an integer type.
static bool whole_targets(const struct grt_task *task, bool *whole) {
    const struct grt_config_names *targets = &task->config.targets;
    bool named = targets->count > 0 && !task->source.columns;
    const char *name = named ? targets->values[0] : "y";
    struct grt_file_info *file = grt_file_info_create(task->source.path);
    if (!file) {
        return false;
    }
    *whole = false;
    for (uint32_t i = 0; i < file->count; i++) {
        const char *found = file->arrays[i].name;
        if (strcmp(found + (found[0] == '/'), name + (name[0] == '/')) == 0) {
            *whole = strchr("iub", file->arrays[i].dtype[0]) != NULL && file->arrays[i].dtype[0];
        }
    }
    grt_file_info_destroy(&file);
    return true;
}

static bool choose_loss(struct grt_task *task) {
    struct grt_config *config = &task->config;
    bool whole = false;
    if (strcmp(config->loss, "auto") != 0) {
        return true;
    }
    return whole_targets(task, &whole) &&
           grt_config_set(config, GRT_CONFIG_LOSS, whole ? "cross_entropy" : "mse");
}

// Samples are told apart from those of their batch: as many as SimCLR's small runs have, whatever
// the device would like.
static bool choose_pairs(struct grt_task *task) {
    struct grt_config *c = &task->config;
    uint64_t rows = task->info.part_rows[GRT_PART_TRAIN];
    uint64_t most = rows > c->accumulate ? rows / c->accumulate : 1;
    return set_default(c, GRT_CONFIG_BATCH_SIZE, most < PAIRS ? most : PAIRS) &&
           set_default(c, GRT_CONFIG_NUM_WORKERS, 2);
}

// Batch, workers and accumulation of the device's profile, by the size of the model.
static bool choose_batch(struct grt_task *task, const struct grt_profile *profile) {
    static const enum grt_profile_key keys[3][3] = {
        {GRT_KEY_SMALL_BATCH, GRT_KEY_SMALL_WORKERS, GRT_KEY_SMALL_ACCUMULATE},
        {GRT_KEY_MEDIUM_BATCH, GRT_KEY_MEDIUM_WORKERS, GRT_KEY_MEDIUM_ACCUMULATE},
        {GRT_KEY_LARGE_BATCH, GRT_KEY_LARGE_WORKERS, GRT_KEY_LARGE_ACCUMULATE},
    };
    struct grt_config *c = &task->config;
    uint64_t weights = 0;
    if (!grt_loss_has_targets((enum grt_loss)loss_of(c->loss))) {
        return choose_pairs(task);
    }
    for (uint64_t i = 0; i < c->depth; i++) {
        uint64_t width = c->hidden.values[i < c->hidden.count ? i : 0];
        weights += width * width;
    }
    const enum grt_profile_key *row = keys[weights <= 4096 ? 0 : weights <= 65536 ? 1 : 2];
    uint64_t rows = task->info.part_rows[GRT_PART_TRAIN];
    uint64_t batch = grt_profile_whole(profile, row[0]);
    // An accumulation without a batch size, or the other way round, is meant as it stands.
    bool by_kind = c->batch_size > 0;
    batch = by_kind ? c->batch_size : batch;
    if (!by_kind && !grt_config_given(c, GRT_CONFIG_BATCH_SIZE) &&
        !set_default(c, GRT_CONFIG_ACCUMULATE, grt_profile_whole(profile, row[2]))) {
        return false;
    }
    if (rows > 0 && batch * c->accumulate > rows) {
        batch = rows > c->accumulate ? rows / c->accumulate : 1;
    }
    return set_default(c, GRT_CONFIG_BATCH_SIZE, batch) &&
           set_default(c, GRT_CONFIG_NUM_WORKERS, grt_profile_whole(profile, row[1]));
}

// ---- descs ----

// Behind the pooling of points: layers as wide as the last over each point.
static struct grt_mlp_desc head_desc(const struct grt_config *c, uint32_t outputs) {
    struct grt_mlp_desc head = grt_task_mlp(c, outputs);
    memset(head.widths, 0, sizeof head.widths);
    head.depth = (uint32_t)c->head_depth;
    head.hidden = (uint32_t)c->hidden.values[c->hidden.count - 1];
    return head;
}

_Static_assert(GRT_DATA_MAX_ARRAYS <= GRT_NETWORK_INPUTS, "a network may name every input");

struct grt_shape task_shape(uint32_t height, uint32_t points, uint32_t features) {
    return height > 0   ? (struct grt_shape){3, {height, points / height, features}}
           : points > 0 ? (struct grt_shape){2, {points, features}}
                        : (struct grt_shape){1, {features}};
}

// The inputs of a sample, under the names that the network has for them.
static uint32_t network_inputs(const struct grt_task *task,
                               struct grt_input inputs[GRT_DATA_MAX_ARRAYS]) {
    const struct grt_dataset_info *info = &task->info;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct grt_dataset_input *from = &info->inputs[i];
        inputs[i] =
            (struct grt_input){.name = i < task->inputs.count ? task->inputs.values[i] : from->name,
                               .first = from->first,
                               .shape = task_shape(from->height, from->points, from->features)};
    }
    return info->input_count;
}

// Whether the network's outputs are compared with each other, behind layers of their own.
static bool has_head(const struct grt_task *task) {
    return !grt_loss_has_targets((enum grt_loss)loss_of(task->config.loss));
}

// Kinds of models.
static struct grt_module *make_model(const struct grt_task *task) {
    const struct grt_config *c = &task->config;
    bool features = task->features || has_head(task);
    uint32_t outputs = features ? 0 : task->learner.outputs;
    if (grt_config_given(c, GRT_CONFIG_NETWORK)) {
        struct grt_input inputs[GRT_DATA_MAX_ARRAYS];
        uint32_t count = network_inputs(task, inputs);
        return grt_network_create(
            grt_network_desc(.text = c->network.text,
                             .path = grt_config_file(c, GRT_CONFIG_NETWORK),
                             .name = grt_config_source(c, GRT_CONFIG_NETWORK),
                             .line = c->network.line, .column = c->network.column,
                             .whole = c->network.whole, .outputs = outputs, .features = features,
                             .inputs = inputs, .input_count = count));
    }
    struct grt_mlp_desc mlp = grt_task_mlp(c, is_points(task) ? 0 : outputs);
    return is_points(task)
               ? grt_points_create(grt_points_desc(.pool = (enum grt_pool)pool_of(c->pooling),
                                                   .each = mlp, .head = head_desc(c, outputs)))
               : grt_mlp_create(&mlp);
}

// What is given for a key with steps or layers.
static struct grt_network_desc text_of(const struct grt_config *c, enum grt_config_key key,
                                       const struct grt_config_tree *tree) {
    return (struct grt_network_desc){.text = tree->text,
                                     .path = grt_config_file(c, key),
                                     .name = grt_config_source(c, key),
                                     .line = tree->line,
                                     .column = tree->column,
                                     .whole = tree->whole};
}

static struct grt_module *make_transform(const struct grt_config *c) {
    struct grt_network_desc steps = text_of(c, GRT_CONFIG_TRANSFORM, &c->transform);
    struct grt_network_desc others = text_of(c, GRT_CONFIG_EVAL_TRANSFORM, &c->eval_transform);
    struct grt_module *module = grt_transform_create(&steps);
    if (module && c->eval_transform.text[0] && !grt_transform_evaluate(module, &others)) {
        grt_module_destroy(&module);
    }
    return module;
}

// Layers behind the model, for what it is trained by alone.
static struct grt_module *make_head(const struct grt_config *c) {
    struct grt_module *parts[2 * GRT_CONFIG_NUMBERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->projection.count; i++) {
        parts[count++] =
            grt_linear_create(grt_linear_desc(.outputs = (uint32_t)c->projection.values[i]));
        if (i + 1 < c->projection.count) {
            parts[count++] = grt_activation_create(GRT_ACT_RELU);
        }
    }
    struct grt_module *head = grt_sequence_create(parts, count);
    if (head) {
        snprintf(head->name, sizeof head->name, "projection");
    }
    return head;
}

// The model, behind the transforms of its images and before a head, where there are any, for the
// learner's desc. Names of parameters are those of the model alone, so that it is the same network
// with another head.
static struct grt_module *make_network(const void *of) {
    const struct grt_task *task = of;
    const struct grt_config *c = &task->config;
    struct grt_module *parts[4] = {NULL}, *model = make_model(task);
    uint32_t count = 0;
    bool head = has_head(task) && !task->features, whole = model != NULL;
    if (!model || (!c->transform.text[0] && !head)) {
        return model;
    }
    if (c->transform.text[0]) {
        parts[count++] = make_transform(c);
        if (!grt_config_given(c, GRT_CONFIG_NETWORK)) {
            parts[count++] = grt_flatten_create();
        }
    }
    model->nameless = true;
    parts[count++] = model;
    if (head) {
        parts[count++] = make_head(c);
    }
    for (uint32_t i = 0; i < count; i++) {
        whole = whole && parts[i];
    }
    for (uint32_t i = 0; !whole && i < count; i++) {
        grt_module_destroy(&parts[i]);
    }
    return whole ? grt_sequence_create(parts, count) : NULL;
}

// Images and samples of points keep their shape for whoever can use it; a plain mlp takes all their
// numbers at once.
static struct grt_shape sample_shape(const struct grt_task *task) {
    const struct grt_dataset_info *info = &task->info;
    if (grt_config_given(&task->config, GRT_CONFIG_NETWORK) || task->config.transform.text[0]) {
        return task_shape(info->height, info->points, info->features);
    }
    return is_points(task) ? task_shape(0, info->points, info->features)
                           : task_shape(0, 0, info->x_width);
}

// Two views of a sample have to differ: as SimCLR has it for small images, where nothing else is
// given.
static bool choose_transform(struct grt_task *task) {
    struct grt_config *c = &task->config;
    const struct grt_dataset_info *info = &task->info;
    char text[224];
    if (!has_head(task) || task->features || info->height == 0 || c->normalize ||
        grt_config_given(c, GRT_CONFIG_TRANSFORM)) {
        return true;
    }
    snprintf(text, sizeof text,
             "random_resized_crop(size=(%u, %u)) | random_horizontal_flip%s | normalize",
             info->height, info->points / info->height,
             info->features == 3
                 ? " | color_jitter(0.4, 0.4, 0.4, 0.1, p=0.8) | random_grayscale(p=0.2)"
                 : "");
    return grt_config_set(c, GRT_CONFIG_TRANSFORM, text);
}

// Transforms are of images, and their `normalize` is of numbers as they stand in the file.
static bool check_transform(const struct grt_task *task) {
    const struct grt_config *c = &task->config;
    char where[GRT_CONFIG_WHERE];
    if (!c->transform.text[0] && c->eval_transform.text[0]) {
        grt_config_where(c, GRT_CONFIG_EVAL_TRANSFORM, where);
        return grt_fail(GRT_CONFIG, "%seval_transform: there is no `transform` of training", where);
    }
    if (!c->transform.text[0]) {
        return true;
    }
    grt_config_where(c, GRT_CONFIG_TRANSFORM, where);
    if (task->info.height == 0) {
        return grt_fail(GRT_CONFIG, "%stransform: the samples of %s are no images [N][H][W][C]",
                        where, c->data);
    }
    return !c->normalize ||
           grt_fail(GRT_CONFIG,
                    "%stransform: `normalize: true` comes before it: leave that out, and write "
                    "`| normalize` at the end",
                    where);
}

static bool take_class_weights(struct grt_task *task) {
    const struct grt_config_reals *given = &task->config.class_weights;
    uint32_t classes = task->info.classes;
    if (given->count == 0) {
        return true;
    }
    if (classes > 0 && given->count != classes) {
        return grt_fail(GRT_CONFIG,
                        "class_weights has %u numbers, and the targets of %s are %u classes",
                        given->count, task->config.data, classes);
    }
    double sum = 0;
    for (uint32_t i = 0; i < given->count; i++) {
        task->class_weights[i] = (float)given->values[i];
        sum += given->values[i];
    }
    task->learner.class_weights = task->class_weights;
    return sum > 0 || grt_fail(GRT_CONFIG, "class_weights are all 0: nothing would be learned");
}

bool task_describe_learner(struct grt_task *task) {
    const struct grt_config *c = &task->config;
    const struct grt_dataset_info *info = &task->info;
    task->learner = (struct grt_learner_desc){
        .make = make_network,
        .of = task,
        .input = sample_shape(task),
        .outputs = task->features      ? 0
                   : has_head(task)    ? (uint32_t)c->projection.values[c->projection.count - 1]
                   : info->classes > 0 ? info->classes
                                       : info->y_width - info->weighted,
        .loss = (enum grt_loss)loss_of(c->loss),
        .huber_delta = (float)c->huber_delta,
        .label_smoothing = (float)c->label_smoothing,
        .sample_weights = info->weighted > 0,
        .precision = grt_task_precision(c),
        .batch = (uint32_t)(c->batch_size * c->accumulate),
        .accumulate = (uint32_t)c->accumulate,
        .recompute = c->activation_checkpointing,
        .seed = c->seed,
    };
    if (task->loss_count > 0) {
        task->learner.loss_count = task->loss_count;
        memcpy(task->learner.losses, task->losses, sizeof task->losses);
        task->learner.outputs = 0;
        for (uint32_t i = 0; i < task->loss_count; i++) {
            task->learner.outputs += task->losses[i].cols;
        }
    }
    if (task->features) {
        task->learner.loss = GRT_LOSS_MSE;
    } else if (has_head(task)) {
        task->learner.views = 2;
        task->learner.temperature = (float)c->temperature;
        task->learner.exact = c->accumulate_exact;
    }
    return take_class_weights(task) && grt_task_optimizer(c, &task->learner.optim);
}

static bool without_targets(const struct grt_config *c, const struct task_opening *opening) {
    return opening->no_targets || (!opening->class_targets && strcmp(c->loss, "auto") != 0 &&
                                   !grt_loss_has_targets((enum grt_loss)loss_of(c->loss)));
}

static bool open_data(struct grt_task *task, const struct task_opening *opening) {
    const struct grt_config *c = &task->config;
    const char *inputs[GRT_CONFIG_NAMES];
    const char *targets[GRT_CONFIG_NAMES];
    for (uint32_t i = 0; i < GRT_CONFIG_NAMES; i++) {
        inputs[i] = c->inputs.values[i];
        targets[i] = c->targets.values[i];
    }
    bool late = strcmp(c->on_nan, "late") == 0, no_targets = without_targets(c, opening);
    bool named = !task->source.columns;
    bool classes = opening->class_targets || strcmp(c->loss, "cross_entropy") == 0;
    const char *weights = no_targets || task->features ? NULL : task_weights(c);
    struct grt_dataset_target kinds[GRT_LOSS_MOST];
    bool mixed = task->loss_count > 0 && !classes && !no_targets;
    if (mixed && !named) {
        return grt_fail(GRT_CONFIG,
                        "losses want targets that are data sets of their own: %s has "
                        "columns; a .h5 or .npz file has data sets",
                        c->data);
    }
    task_loss_kinds(task, kinds);
    task->data = grt_dataset_open(
        grt_dataset_desc(.path = task->source.path, .shown = c->data, .inputs = inputs,
                         .input_count = named ? c->inputs.count : 0, .targets = targets,
                         .target_count = no_targets || !named ? 0 : c->targets.count,
                         .no_targets = no_targets, .weights = weights && !named ? "w" : weights,
                         .class_targets = classes && !no_targets, .classes = opening->classes,
                         .kinds = mixed ? kinds : NULL,
                         .share_targets = strcmp(c->loss, "bce") == 0 && !opening->class_targets,
                         .on_nan = late ? GRT_NAN_ERROR : (enum grt_on_nan)on_nan_of(c->on_nan),
                         .normalise = c->normalize, .validation_split = c->validation_split,
                         .seed = c->seed, .shuffle_window = c->shuffle_window,
                         .mean = opening->mean, .std = opening->std, .features = opening->features,
                         .check_late = opening->look.late || late,
                         .threads = (uint32_t)c->num_workers, .watch = opening->look.watch,
                         .context = opening->look.context));
    if (task->data) {
        task->info = grt_dataset_info(task->data);
    }
    return task->data != NULL;
}

static bool check_config(const struct grt_config *c) {
    if (!c->data[0]) {
        return grt_fail(GRT_CONFIG, "no data: name a file with --data FILE or `data: FILE`");
    }
    if (task_weights(c) && strcmp(c->loss, "auto") != 0 &&
        !grt_loss_has_targets((enum grt_loss)loss_of(c->loss))) {
        return grt_fail(GRT_CONFIG, "sample_weights has no effect with loss %s: leave it out",
                        c->loss);
    }
    if (c->betas.count != 2) {
        return grt_fail(GRT_CONFIG, "betas has %u numbers; two are wanted", c->betas.count);
    }
    if (c->nesterov && strcmp(c->optimizer, "sgd") == 0 && c->momentum <= 0) {
        return grt_fail(GRT_CONFIG, "nesterov: true wants a momentum above 0, such as 0.9");
    }
    return true;
}

// Whole numbers that are more classes than there are rows are amounts, such as prices.
static bool open_by_loss(struct grt_task *task, const struct task_opening *opening) {
    bool guessed = strcmp(task->config.loss, "auto") == 0 && opening->classes == 0;
    if (!choose_loss(task) || !open_data(task, opening)) {
        return false;
    }
    if (!guessed || task->info.classes <= task->info.file_rows) {
        return true;
    }
    grt_log(GRT_LOG_WARN,
            "%s: targets up to %u in %llu rows are taken for amounts, loss=mse; with "
            "loss=cross_entropy they are classes",
            task->config.data, task->info.classes - 1, (unsigned long long)task->info.file_rows);
    grt_dataset_close(&task->data);
    return grt_config_set(&task->config, GRT_CONFIG_LOSS, "mse") && open_data(task, opening);
}

bool task_open(struct grt_task *task, const struct grt_profile *profile,
               const struct task_opening *opening) {
    bool good = check_config(&task->config) && task_read_losses(task) &&
                task_source(task, opening, without_targets(&task->config, opening)) &&
                open_by_loss(task, opening) && task_loss_widths(task) && choose_model(task) &&
                grt_task_widths(&task->config) && choose_batch(task, profile);
    if (good && task->config.batch_size * task->config.accumulate > 1u << 30) {
        good = grt_fail(GRT_CONFIG, "batch_size times accumulate is over 2^30");
    }
    good = good && choose_transform(task) && check_transform(task) && task_describe_learner(task);
    if (!good) {
        grt_task_close(task);
    }
    return good;
}

bool grt_task_open(struct grt_task *task, const struct grt_config *config,
                   const struct grt_profile *profile, const struct grt_task_look *look) {
    struct task_opening opening = {.look = look ? *look : (struct grt_task_look){0}};
    memset(task, 0, sizeof *task);
    task->config = *config;
    task->inputs = config->inputs;
    bool good = (!grt_config_given(config, GRT_CONFIG_NETWORK) || one_network(config)) &&
                task_one_way(config) && task_open(task, profile, &opening);
    if (good && !task_source_fits(task)) {
        grt_task_close(task);
        good = false;
    }
    return good;
}

void grt_task_close(struct grt_task *task) {
    grt_dataset_close(&task->data);
}

// Rows of an epoch that so many batches, or that share of them, are; 0: all.
static uint64_t rows_of(const struct grt_task *task, double amount) {
    uint64_t batch = task->config.batch_size, rows = task->info.part_rows[GRT_PART_TRAIN];
    double batches = amount;
    if (amount > 0 && amount < 1) {
        uint64_t all = (rows + batch - 1) / batch;
        batches = fmax(1, floor(amount * (double)all));
    }
    return batches * (double)batch < (double)rows ? (uint64_t)batches * batch : 0;
}

struct grt_loader *grt_task_loader(const struct grt_task *task, struct grt_dev *dev,
                                   enum grt_part part, uint32_t held,
                                   const struct grt_loader_share *share) {
    const struct grt_config *c = &task->config;
    bool training = part == GRT_PART_TRAIN;
    bool same = training && c->overfit_batches > 0;
    enum grt_cache cache = (enum grt_cache)cache_of(c->cache);
    // Rows that go to the device are read once, by every core; nobody reads after that.
    long cores = cache == GRT_CACHE_DEVICE ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    uint64_t workers = cores > (long)c->num_workers ? (uint64_t)cores : c->num_workers;
    return grt_loader_create(grt_loader_desc(
            .data = task->data, .dev = dev, .part = part, .batch = task->learner.batch,
            .workers = (uint32_t)(workers < 16 || cores == 0 ? workers : 16),
            .prefetch = (uint32_t)c->prefetch_factor, .held = held, .pin = c->pin_memory,
            .cache = cache, .shuffle = training && c->shuffle, .same = same,
            .limit =
                training ? rows_of(task, same ? c->overfit_batches : c->limit_train_batches) : 0,
            .drop_last = training && c->drop_last, .short_workers = !c->persistent_workers,
            .turns = grt_dev_lanes(dev), .seed = c->seed,
            .share = share ? *share : (struct grt_loader_share){0}));
}
