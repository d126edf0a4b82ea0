// SPDX-License-Identifier: Apache-2.0
// Trained models: what a checkpoint says of the task that it was trained for, and that task again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/log.h"
#include "task_parts.h"

// What the model and the meaning of its numbers depend on.
static const enum grt_config_key kept_keys[] = {
    GRT_CONFIG_INPUTS,
    GRT_CONFIG_TARGETS,
    GRT_CONFIG_SAMPLE_WEIGHTS,
    GRT_CONFIG_NORMALIZE,
    GRT_CONFIG_TRANSFORM,
    GRT_CONFIG_MODEL,
    GRT_CONFIG_NETWORK,
    GRT_CONFIG_DEPTH,
    GRT_CONFIG_HIDDEN,
    GRT_CONFIG_ACTIVATION,
    GRT_CONFIG_RESIDUAL,
    GRT_CONFIG_LAYER_NORM,
    GRT_CONFIG_POOLING,
    GRT_CONFIG_HEAD_DEPTH,
    GRT_CONFIG_LOSS,
    GRT_CONFIG_LOSSES,
    GRT_CONFIG_LOSS_WEIGHTS,
    GRT_CONFIG_HUBER_DELTA,
    GRT_CONFIG_LABEL_SMOOTHING,
    GRT_CONFIG_CLASS_WEIGHTS,
    GRT_CONFIG_PRECISION,
    GRT_CONFIG_SEED,
    GRT_CONFIG_VALIDATION_SPLIT,
    GRT_CONFIG_OPTIMIZER,
    GRT_CONFIG_SHUFFLE,
    GRT_CONFIG_SHUFFLE_WINDOW,
    GRT_CONFIG_EVAL_TRANSFORM,
    GRT_CONFIG_TEMPERATURE,
    GRT_CONFIG_PROJECTION,
    GRT_CONFIG_ACCUMULATE_EXACT,
    GRT_CONFIG_EMA,
};

#define INPUT_SHAPES "input_shapes"
#define MEAN "data/mean"
#define MEAN_REST "data/mean_rest"
#define STD "data/std"

// A double for each feature as three f32, which archives and their readers know: [features] is the
// number rounded, and where that loses something [2][features] is what it leaves; their sum is the
// double again.
static bool add_mean(struct grt_archive *archive, const struct grt_dataset_info *info) {
    uint64_t features = info->features, shape[2] = {2, features};
    float *parts = calloc(3 * features, sizeof *parts);
    if (!parts) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for an archive");
    }
    bool more = false;
    for (uint64_t k = 0; k < features; k++) {
        double left = info->mean[k];
        for (int i = 0; i < 3; i++) {
            parts[i * features + k] = (float)left;
            left -= parts[i * features + k];
        }
        more = more || parts[features + k] != 0;
    }
    bool good = grt_archive_add(archive, MEAN, GRT_F32, 1, shape + 1, parts) &&
                (!more || grt_archive_add(archive, MEAN_REST, GRT_F32, 2, shape, parts + features));
    free(parts);
    return good;
}

static bool add_std(struct grt_archive *archive, const struct grt_dataset_info *info) {
    uint64_t shape[1] = {info->features};
    struct grt_archive_tensor *t = grt_archive_add(archive, STD, GRT_F32, 1, shape, NULL);
    for (uint64_t k = 0; t && k < info->features; k++) {
        ((float *)t->data)[k] = (float)info->std[k];
    }
    return t != NULL;
}

// Of several inputs the shapes, for who has no data: a line each, [height] [points] [features]
// [first].
static bool add_inputs(struct grt_archive *archive, const struct grt_dataset_info *info) {
    char text[GRT_DATA_MAX_ARRAYS * 48] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct grt_dataset_input *in = &info->inputs[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%u %u %u %u\n", in->height,
                                 in->points, in->features, in->first);
    }
    return info->input_count < 2 || grt_archive_set_text(archive, INPUT_SHAPES, text);
}

bool grt_task_describe(const struct grt_task *task, struct grt_archive *archive) {
    char text[2 * GRT_CONFIG_TREE_SIZE];
    size_t used = 0;
    for (size_t i = 0; i < sizeof kept_keys / sizeof *kept_keys; i++) {
        char value[GRT_CONFIG_TREE_SIZE];
        const struct grt_config_key_info *info = grt_config_key_info(kept_keys[i]);
        bool list = info->type == GRT_CONFIG_IS_NAMES || info->type == GRT_CONFIG_IS_TREE ||
                    info->type == GRT_CONFIG_IS_REALS || info->type == GRT_CONFIG_IS_TEXT;
        if (list && !grt_config_given(&task->config, kept_keys[i])) {
            continue;  // an empty list or text cannot be written
        }
        grt_config_value_text(&task->config, kept_keys[i], value, sizeof value);
        int length = snprintf(text + used, sizeof text - used, "%s: %s\n", info->name, value);
        if (length < 0 || (size_t)length >= sizeof text - used) {
            return grt_fail(GRT_CONFIG, "names and layers are too long for a checkpoint");
        }
        used += (size_t)length;
    }
    const struct grt_dataset_info *info = &task->info;
    return grt_archive_set_text(archive, "config", text) &&
           grt_archive_set_whole(archive, "features", info->features) &&
           grt_archive_set_whole(archive, "points", info->points) &&
           (info->height == 0 || grt_archive_set_whole(archive, "height", info->height)) &&
           grt_archive_set_whole(archive, "outputs", task->learner.outputs) &&
           grt_archive_set_whole(archive, "classes", info->classes) && add_inputs(archive, info) &&
           (!info->mean || (add_mean(archive, info) && add_std(archive, info))) &&
           task_source_keep(task, archive);
}

bool grt_task_continues(const struct grt_task *task, const struct grt_archive *archive) {
    const char *text = grt_archive_text(archive, "config", "");
    struct grt_config *theirs = malloc(sizeof *theirs);  // too large for the stack
    if (!theirs) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a config");
    }
    grt_config_init(theirs);
    bool same = grt_config_parse(theirs, archive->path, text, strlen(text));
    bool list = grt_config_given(theirs, GRT_CONFIG_NETWORK);
    for (size_t i = 0; same && i < sizeof kept_keys / sizeof *kept_keys; i++) {
        char was[GRT_CONFIG_TREE_SIZE], is[GRT_CONFIG_TREE_SIZE];
        enum grt_config_key key = kept_keys[i];
        // A run may go on with other types; archives of older versions name fewer keys, and had
        // one loss.
        bool of_losses = key == GRT_CONFIG_LOSSES || key == GRT_CONFIG_LOSS_WEIGHTS;
        if (key == GRT_CONFIG_PRECISION || (!of_losses && !grt_config_given(theirs, key)) ||
            (list && task_key_of_kinds(key))) {
            continue;
        }
        grt_config_value_text(theirs, key, was, sizeof was);
        grt_config_value_text(&task->config, key, is, sizeof is);
        same = strcmp(was, is) == 0 ||
               grt_fail(GRT_CONFIG,
                        "%s was made with %s=%.100s; here it is %.100s, which is another run: use "
                        "the same, or another checkpoint_dir",
                        archive->path, grt_config_key_info(key)->name, was, is);
    }
    free(theirs);
    return same;
}

// Adds the f32 of a tensor [rows][features] up, row on row; false when there is none of that shape.
static bool add_up(const struct grt_archive *archive, const char *name, uint64_t rows,
                   uint64_t features, double *sums) {
    const struct grt_archive_tensor *t = grt_archive_find(archive, name);
    bool right = t && t->dtype == GRT_F32 && t->bytes == rows * features * sizeof(float) &&
                 t->rank == (rows > 1 ? 2 : 1) && t->shape[t->rank - 1] == features;
    for (uint64_t i = 0; right && i < rows * features; i++) {
        sums[i % features] += ((const float *)t->data)[i];
    }
    return right;
}

double *task_feature_numbers(const struct grt_archive *archive) {
    uint64_t features = (uint64_t)grt_archive_whole(archive, "features", 0);
    const struct grt_archive_tensor *mean = grt_archive_find(archive, MEAN);
    if (!mean || mean->bytes != features * sizeof(float)) {
        return NULL;
    }
    double *numbers = calloc(2 * features + 1, sizeof *numbers);
    if (numbers && add_up(archive, MEAN, 1, features, numbers) &&
        add_up(archive, STD, 1, features, numbers + features)) {
        add_up(archive, MEAN_REST, 2, features, numbers);  // of some data alone
        return numbers;
    }
    free(numbers);
    return NULL;
}

static bool check_shapes(const struct grt_task *task, const struct grt_archive *archive,
                         const char *remedy) {
    int64_t features = grt_archive_whole(archive, "features", 0);
    int64_t points = grt_archive_whole(archive, "points", 0);
    int64_t height = grt_archive_whole(archive, "height", 0);
    if (features == task->info.features && points == task->info.points &&
        height == task->info.height) {
        return true;
    }
    char ours[GRT_SAMPLE_TEXT], theirs[GRT_SAMPLE_TEXT];
    grt_sample_text(task->info.height, task->info.points, task->info.features, ours);
    grt_sample_text(height, points, features, theirs);
    return grt_fail(GRT_BAD_DATA, "%s: samples have %s; the model of %s wants %s%s",
                    task->config.data, ours, archive->path, theirs, remedy);
}

bool grt_task_fits(const struct grt_task *task, const struct grt_archive *archive) {
    static const char remedy[] = ": use data of the same shapes, or another checkpoint_dir";
    int64_t outputs = grt_archive_whole(archive, "outputs", task->learner.outputs);
    return check_shapes(task, archive, remedy) &&
           (outputs == task->learner.outputs ||
            grt_fail(GRT_BAD_DATA, "%s: targets want %u outputs; the model of %s has %lld%s",
                     task->config.data, task->learner.outputs, archive->path, (long long)outputs,
                     remedy));
}

// Which samples are meant, in the order of the file, and what of the network.
static bool take_samples(struct grt_task *task, const struct grt_task_samples *samples,
                         struct task_opening *opening) {
    struct grt_config *c = &task->config;
    char split[32];
    snprintf(split, sizeof split, "%.17g", samples->validation_split);
    task->features = true;
    opening->no_targets = !samples->targets;
    opening->class_targets = samples->targets != NULL;
    opening->classes = 0;
    return (!samples->inputs || grt_config_set(c, GRT_CONFIG_INPUTS, samples->inputs)) &&
           (!samples->targets || grt_config_set(c, GRT_CONFIG_TARGETS, samples->targets)) &&
           grt_config_set(c, GRT_CONFIG_VALIDATION_SPLIT, split) &&
           grt_config_set(c, GRT_CONFIG_SHUFFLE, "false") &&
           grt_config_set(c, GRT_CONFIG_DROP_LAST, "false");
}

// Weights alone, as another program wrote them: the config says what network they are of, and the
// targets of the data how many outputs it has.
static bool open_weights(struct grt_task *task, const struct grt_config *config,
                         const struct grt_profile *profile,
                         const struct grt_task_samples *samples) {
    struct task_opening opening = {.look = {.late = true}};
    task->config = *config;
    task->inputs = config->inputs;
    bool good =
        (!samples || take_samples(task, samples, &opening)) && task_open(task, profile, &opening);
    task->learner.inference = true;
    return good;
}

static bool open_archive(struct grt_task *task, const struct grt_archive *archive,
                         const struct grt_config *config, const struct grt_profile *profile,
                         bool targets, const struct grt_task_samples *samples) {
    const char *text = grt_archive_text(archive, "config", NULL);
    memset(task, 0, sizeof *task);
    if (!text && (grt_config_given(config, GRT_CONFIG_NETWORK) ||
                  grt_config_given(config, GRT_CONFIG_MODEL))) {
        return open_weights(task, config, profile, samples);
    }
    grt_config_init(&task->config);
    if (!text || !grt_archive_find(archive, STD) != !grt_archive_find(archive, MEAN)) {
        return grt_fail(GRT_BAD_DATA,
                        "%s holds no model that gpurt train supervised made; of weights alone, "
                        "`model` says the network",
                        archive->path);
    }
    if (!grt_config_parse(&task->config, archive->path, text, strlen(text))) {
        return false;
    }
    task->inputs = task->config.inputs;
    // How data are read and where they lie is the caller's; the rest is the model's.
    static const enum grt_config_key callers[] = {
        GRT_CONFIG_DATA,           GRT_CONFIG_BATCH_SIZE,
        GRT_CONFIG_NUM_WORKERS,    GRT_CONFIG_PREFETCH_FACTOR,
        GRT_CONFIG_CACHE,          GRT_CONFIG_ON_NAN,
        GRT_CONFIG_PIN_MEMORY,     GRT_CONFIG_PRECISION,
        GRT_CONFIG_INPUTS,         GRT_CONFIG_TARGETS,
        GRT_CONFIG_TEST_FLIPS,     GRT_CONFIG_FILL,
        GRT_CONFIG_SAMPLE_WEIGHTS,
    };
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++) {
        if (grt_config_given(config, callers[i])) {
            grt_config_copy(&task->config, config, callers[i]);
        }
    }
    const char *weights = targets ? task_weights(&task->config) : NULL;
    size_t length = weights ? strlen(weights) : 0;
    if (length > 4 && strcmp(weights + length - 4, ".npy") == 0 &&
        !grt_config_given(config, GRT_CONFIG_SAMPLE_WEIGHTS)) {
        return grt_fail(GRT_CONFIG,
                        "%s holds the weights of the samples of training: "
                        "`sample_weights=FILE.npy` names those of %s, `sample_weights=none` leaves "
                        "weights out",
                        weights, task->config.data);
    }
    struct grt_direct like = task_source_of(archive);
    task_source_names(task, config, like.input_names != NULL);
    double *numbers = task_feature_numbers(archive);
    struct task_opening opening = {
        .no_targets = !targets,
        .mean = numbers,
        .std = numbers ? numbers + grt_archive_whole(archive, "features", 0) : NULL,
        .features = (uint32_t)grt_archive_whole(archive, "features", 0),
        .classes = (uint32_t)grt_archive_whole(archive, "classes", 0),
        .like = like,
        .look = {.late = true}};
    task->config.normalize = opening.mean != NULL;
    bool opened =
        (!samples || take_samples(task, samples, &opening)) && task_open(task, profile, &opening);
    free(numbers);
    if (!opened) {
        return false;
    }
    if (!samples) {
        task->learner.outputs = (uint32_t)grt_archive_whole(archive, "outputs", 1);
    }
    task->learner.inference = true;
    if (!check_shapes(task, archive, "")) {
        grt_task_close(task);
        return false;
    }
    return true;
}

static bool read_inputs(struct grt_dataset_info *info, const struct grt_archive *archive,
                        uint32_t count) {
    const char *text = grt_archive_text(archive, INPUT_SHAPES, "");
    info->input_count = count < GRT_DATA_MAX_ARRAYS ? count : GRT_DATA_MAX_ARRAYS;
    for (uint32_t i = 0; i < info->input_count; i++) {
        struct grt_dataset_input *in = &info->inputs[i];
        uint32_t *numbers[] = {&in->height, &in->points, &in->features, &in->first};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            char *end = NULL;
            *numbers[k] = (uint32_t)strtoul(text, &end, 10);
            if (end == text) {
                return grt_fail(GRT_BAD_DATA,
                                "%s: no shapes of its %u inputs, which older checkpoints lack: "
                                "--resume the run for an epoch, and take the new one",
                                archive->path, info->input_count);
            }
            text = end;
        }
    }
    return true;
}

// A number of the archive that counts something; `most` keeps products of two in 64 bits.
static bool read_count(const struct grt_archive *archive, const char *name, uint32_t *count) {
    const int64_t most = 1 << 30;
    int64_t value = grt_archive_whole(archive, name, 0);
    *count = (uint32_t)value;
    return (value >= 0 && value <= most) ||
           grt_fail(GRT_BAD_DATA, "%s: its %s are %lld", archive->path, name, (long long)value);
}

bool grt_task_open_kept(struct grt_task *task, const struct grt_archive *archive, bool features) {
    const char *text = grt_archive_text(archive, "config", NULL);
    memset(task, 0, sizeof *task);
    grt_config_init(&task->config);
    if (!text) {
        return grt_fail(GRT_BAD_DATA,
                        "%s holds no network that gpurt train supervised made: it has no config",
                        archive->path);
    }
    struct grt_dataset_info *info = &task->info;
    uint32_t outputs = 0;
    if (!grt_config_parse(&task->config, archive->path, text, strlen(text)) ||
        !grt_config_set(&task->config, GRT_CONFIG_BATCH_SIZE, "1") ||
        !read_count(archive, "features", &info->features) ||
        !read_count(archive, "points", &info->points) ||
        !read_count(archive, "height", &info->height) ||
        !read_count(archive, "classes", &info->classes) ||
        !read_count(archive, "outputs", &outputs)) {
        return false;
    }
    uint64_t width = (uint64_t)info->features * (info->points > 0 ? info->points : 1);
    if (width == 0 || width > UINT32_MAX || (info->height > 0 && info->points % info->height)) {
        return grt_fail(GRT_BAD_DATA, "%s: samples of %u features, %u points and a height of %u",
                        archive->path, info->features, info->points, info->height);
    }
    info->x_width = (uint32_t)width;
    info->y_width = outputs;
    task->inputs = task->config.inputs;
    task->features = features;
    uint32_t count = task->inputs.count;
    info->input_count = 1;
    info->inputs[0] = (struct grt_dataset_input){.name = count > 0 ? task->inputs.values[0] : "x",
                                                 .points = info->points,
                                                 .height = info->height,
                                                 .features = info->features};
    if ((count > 1 && !read_inputs(info, archive, count)) || !task_read_losses(task) ||
        !task_describe_learner(task)) {
        return false;
    }
    for (uint32_t i = 0; i < info->input_count && i < count; i++) {
        info->inputs[i].name = task->inputs.values[i];
    }
    task->learner.outputs = features ? 0 : outputs;
    task->learner.inference = true;
    return true;
}

// A checkpoint has every key of a network, also those that do nothing beside its kind: what is as
// it would be anyway is not given.
static bool differs(const struct grt_config *config, const struct grt_config *theirs,
                    enum grt_config_key key) {
    char ours[GRT_CONFIG_TEXT_SIZE], other[GRT_CONFIG_TEXT_SIZE];
    grt_config_value_text(config, key, ours, sizeof ours);
    grt_config_value_text(theirs, key, other, sizeof other);
    return strcmp(ours, other) != 0;
}

bool grt_task_take_network(struct grt_config *config, const struct grt_archive *archive) {
    const char *text = archive ? grt_archive_text(archive, "config", NULL) : NULL;
    bool described = !config || grt_config_given(config, GRT_CONFIG_MODEL) ||
                     grt_config_given(config, GRT_CONFIG_NETWORK);
    for (uint32_t key = 0; !described && key < GRT_CONFIG_KEY_COUNT; key++) {
        described = task_key_of_kinds((enum grt_config_key)key) &&
                    grt_config_given(config, (enum grt_config_key)key);
    }
    struct grt_config *theirs = text && !described ? malloc(sizeof *theirs) : NULL;
    bool good = theirs != NULL;
    if (good) {
        grt_config_init(theirs);
        good = grt_config_parse(theirs, archive->path, text, strlen(text));
    }
    bool list = good && grt_config_given(theirs, GRT_CONFIG_NETWORK);
    if (list) {
        grt_config_copy(config, theirs, GRT_CONFIG_NETWORK);
    }
    for (uint32_t i = 0; good && !list && i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        if ((key == GRT_CONFIG_MODEL || task_key_of_kinds(key)) && grt_config_given(theirs, key) &&
            differs(config, theirs, key)) {
            grt_config_copy(config, theirs, key);
        }
    }
    free(theirs);
    return good;
}

bool grt_task_open_trained(struct grt_task *task, const struct grt_archive *archive,
                           const struct grt_config *config, const struct grt_profile *profile,
                           bool targets) {
    return open_archive(task, archive, config, profile, targets, NULL);
}

bool grt_task_open_features(struct grt_task *task, const struct grt_archive *archive,
                            const struct grt_config *config, const struct grt_profile *profile,
                            const struct grt_task_samples *samples) {
    return open_archive(task, archive, config, profile, samples->targets != NULL, samples);
}

static bool same_shape(const struct grt_archive_tensor *a, const struct grt_tensor *b) {
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < b->rank; i++) {
        same = a->shape[i] == b->shape[i];
    }
    return same;
}

// 16-bit numbers of another program into a tensor of f32.
static bool give_wider(const struct grt_archive_tensor *from, const struct grt_tensor *tensor) {
    uint64_t count = from->bytes / sizeof(uint16_t);
    const uint16_t *bits = from->data;
    float *numbers = malloc(count * sizeof *numbers + 1);
    if (!numbers) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for '%s'", from->name);
    }
    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = grt_f32_of_16(from->dtype, bits[i]);
    }
    bool good =
        grt_buf_write(tensor->range.buf, tensor->range.offset, numbers, count * sizeof *numbers);
    free(numbers);
    return good;
}

// One tensor of a network that goes on learning; what does not fit is left, and named to who wants
// to know.
static bool take_tensor(const struct grt_archive *archive, const char *name,
                        const struct grt_tensor *tensor, struct grt_task_taken *taken) {
    char full[GRT_ARCHIVE_NAME];
    snprintf(full, sizeof full, "model/%.80s%.95s", taken->prefix, name);
    const struct grt_archive_tensor *found = grt_archive_find(archive, full);
    bool same = found && same_shape(found, tensor), f32 = tensor->dtype == GRT_F32;
    bool wider = same && f32 && (found->dtype == GRT_F16 || found->dtype == GRT_BF16);
    if (!same || (found->dtype != tensor->dtype && !wider)) {
        if (taken->left++ == 0) {
            snprintf(taken->first_left, sizeof taken->first_left, "%.95s", name);
        }
        grt_log(GRT_LOG_INFO, "%s: %s is drawn anew: %s", archive->path, name,
                !found  ? "there is none"
                : !same ? "it has another shape there"
                        : "it has another type there");
        return true;
    }
    taken->count++;
    return wider ? give_wider(found, tensor) : grt_archive_give(archive, full, tensor);
}

// The tensors that are the model: parameters, then buffers. Begins with {0}.
struct model_walk {
    uint32_t role, next;
};

static const struct grt_tensor *next_tensor(const struct grt_learner *learner,
                                            struct model_walk *walk, const char **name) {
    static const enum grt_tensor_role roles[] = {GRT_TENSOR_PARAM, GRT_TENSOR_BUFFER};
    const struct grt_tensor *tensor = NULL;
    while (!tensor && walk->role < sizeof roles / sizeof *roles) {
        tensor = grt_learner_tensor(learner, roles[walk->role], walk->next++, name);
        if (!tensor) {
            *walk = (struct model_walk){.role = walk->role + 1};
        }
    }
    return tensor;
}

static bool take_tensors(struct grt_learner *learner, const struct grt_archive *archive,
                         struct grt_task_taken *taken) {
    struct model_walk walk = {0};
    const struct grt_tensor *tensor;
    const char *name = NULL;
    bool good = true;
    while (good && (tensor = next_tensor(learner, &walk, &name)) != NULL) {
        good = take_tensor(archive, name, tensor, taken);
    }
    return good;
}

static bool has_tensor(const struct grt_learner *learner, const char *wanted) {
    struct model_walk walk = {0};
    const char *name = NULL;
    while (next_tensor(learner, &walk, &name)) {
        if (strcmp(name, wanted) == 0) {
            return true;
        }
    }
    return false;
}

// What all names of an archive begin with, to the first dot and that too: "module." of a network
// that was wrapped. "" where they do not agree.
static void common_prefix(const struct grt_archive *archive, char prefix[GRT_PARAM_NAME]) {
    prefix[0] = '\0';
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const char *name = archive->tensors[i].name;
        const char *dot = strncmp(name, "model/", 6) == 0 ? strchr(name + 6, '.') : NULL;
        if (strncmp(name, "model/", 6) != 0) {
            continue;
        }
        size_t length = dot ? (size_t)(dot - name) - 5 : 0;
        bool first = !prefix[0];
        if (length == 0 || length >= 80 ||
            (!first && (strlen(prefix) != length || strncmp(prefix, name + 6, length) != 0))) {
            prefix[0] = '\0';
            return;
        }
        memcpy(prefix, name + 6, length);
        prefix[length] = '\0';
    }
}

bool grt_task_begin_with(struct grt_learner *learner, const struct grt_archive *archive,
                         struct grt_task_taken *taken) {
    *taken = (struct grt_task_taken){0};
    if (!take_tensors(learner, archive, taken)) {
        return false;
    }
    struct grt_task_taken again = {0};
    if (taken->count == 0) {
        common_prefix(archive, again.prefix);
    }
    if (again.prefix[0] && !take_tensors(learner, archive, &again)) {
        return false;
    }
    *taken = again.count > 0 ? again : *taken;
    size_t skip = strlen("model/") + strlen(taken->prefix);
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const char *name = archive->tensors[i].name;
        if (strncmp(name, "model/", 6) != 0 || has_tensor(learner, name + skip)) {
            continue;
        }
        if (taken->unused++ == 0) {
            snprintf(taken->first_unused, sizeof taken->first_unused, "%.95s", name + 6);
        }
        grt_log(GRT_LOG_INFO, "%s: %s is no part of this network", archive->path, name + 6);
    }
    if (taken->count == 0) {
        return grt_fail(GRT_BAD_DATA,
                        "%s has no tensor of this network: none is called '%s' and has its shape",
                        archive->path, taken->first_left);
    }
    return grt_learner_sync(learner);
}

bool grt_task_load_model(struct grt_learner *learner, const struct grt_archive *archive) {
    struct model_walk walk = {0};
    const struct grt_tensor *tensor;
    const char *name = NULL;
    bool good = true;
    while (good && (tensor = next_tensor(learner, &walk, &name)) != NULL) {
        char full[GRT_ARCHIVE_NAME];
        snprintf(full, sizeof full, "model/%s", name);
        good = grt_archive_give(archive, full, tensor);
    }
    return good && grt_learner_sync(learner);
}
