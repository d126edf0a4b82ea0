// SPDX-License-Identifier: Apache-2.0
#include "gpurt/model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/checkpoint.h"
#include "gpurt/onnx.h"
#include "gpurt/safetensors.h"

#define MODEL "model/"

enum grt_model_form grt_model_form(const char *path) {
    if (!path) {
        return GRT_MODEL_UNKNOWN;
    }
    static const struct {
        const char *ending;
        enum grt_model_form form;
    } forms[] = {{".safetensors", GRT_MODEL_SAFETENSORS},
                 {".onnx", GRT_MODEL_ONNX},
                 {".h5", GRT_MODEL_CHECKPOINT},
                 {".hdf5", GRT_MODEL_CHECKPOINT}};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t ending = strlen(forms[i].ending);
        if (length > ending && strcmp(path + length - ending, forms[i].ending) == 0) {
            return forms[i].form;
        }
    }
    return GRT_MODEL_UNKNOWN;
}

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

static bool copy_value(struct grt_archive *to, const struct grt_archive_value *value) {
    switch (value->type) {
    case GRT_ARCHIVE_WHOLE:
        return grt_archive_set_whole(to, value->name, value->whole);
    case GRT_ARCHIVE_REAL:
        return grt_archive_set_real(to, value->name, value->real);
    case GRT_ARCHIVE_TEXT:
        return grt_archive_set_text(to, value->name, value->text);
    }
    return false;
}

// PyTorch has the weights of a convolution as [outputs][channels][height][width]; here the channels
// come last. No other parameter has four axes.
static bool add_turned(struct grt_archive *to, const char *name, const struct grt_archive_tensor *t,
                       bool channels_last) {
    uint64_t shape[GRT_MAX_RANK] = {t->shape[0]};
    uint64_t size = grt_dtype_size(t->dtype), of_output = t->bytes / size / t->shape[0];
    uint64_t channels = channels_last ? t->shape[3] : t->shape[1], pixels = of_output / channels;
    uint64_t fast = channels_last ? pixels : channels, slow = of_output / fast;
    memcpy(shape + 1, t->shape + (channels_last ? 3 : 2), (channels_last ? 1 : 2) * sizeof *shape);
    memcpy(shape + (channels_last ? 2 : 3), t->shape + 1, (channels_last ? 2 : 1) * sizeof *shape);
    unsigned char *turned = malloc(t->bytes);
    const unsigned char *data = t->data;
    for (uint64_t i = 0; turned && i < t->bytes / size; i++) {
        uint64_t output = i / of_output, at = i % of_output;
        uint64_t from = output * of_output + at % fast * slow + at / fast;
        memcpy(turned + i * size, data + from * size, size);
    }
    bool good = turned && grt_archive_add(to, name, t->dtype, t->rank, shape, turned);
    free(turned);
    return good;
}

// A copy in which `name_of` says what a tensor is called; NULL leaves it out. Names of a model are
// with MODEL here and without it elsewhere, where convolutions lie otherwise too.
static struct grt_archive *renamed(const struct grt_archive *from,
                                   const char *(*name_of)(const char *, char *), uint32_t *left) {
    struct grt_archive *to = grt_archive_create();
    bool good = to != NULL;
    *left = 0;
    for (uint32_t i = 0; good && i < from->tensor_count; i++) {
        const struct grt_archive_tensor *t = &from->tensors[i];
        char room[GRT_ARCHIVE_NAME + sizeof MODEL];
        const char *name = name_of(t->name, room);
        if (name && t->rank == 4 && t->bytes > 0 && begins(name, MODEL) != begins(t->name, MODEL)) {
            good = add_turned(to, name, t, begins(t->name, MODEL));
        } else if (name) {
            good = grt_archive_add(to, name, t->dtype, t->rank, t->shape, t->data);
        } else {
            ++*left;
        }
    }
    for (uint32_t i = 0; good && i < from->value_count; i++) {
        good = copy_value(to, &from->values[i]);
    }
    if (good) {
        snprintf(to->path, sizeof to->path, "%s", from->path);
    } else {
        grt_archive_destroy(&to);
    }
    return to;
}

static const char *our_name(const char *name, char *room) {
    if (strchr(name, '/')) {
        return name;
    }
    snprintf(room, GRT_ARCHIVE_NAME + sizeof MODEL, MODEL "%s", name);
    return room;
}

// What a model needs to be used goes along, whatever it is called; what only training needs does
// not.
static const char *foreign_name(const char *name, char *room) {
    (void)room;
    if (begins(name, "optimizer/") || begins(name, "state/") || begins(name, "worlds/")) {
        return NULL;
    }
    return begins(name, MODEL) ? name + strlen(MODEL) : name;
}

enum grt_model_maker grt_model_maker(const struct grt_archive *archive, char text[GRT_MODEL_TEXT]) {
    const char *env = grt_archive_text(archive, "env", "?");
    if (strcmp(grt_archive_text(archive, "learner", ""), "ppo") == 0) {
        snprintf(text, GRT_MODEL_TEXT, "a policy of `gpurt train ppo` for '%.100s'", env);
        return GRT_MODEL_OF_PPO;
    }
    if (grt_archive_text(archive, "algo", NULL)) {
        snprintf(text, GRT_MODEL_TEXT, "a policy of `gpurt train es` for '%.100s'", env);
        return GRT_MODEL_OF_ES;
    }
    bool ours = grt_archive_text(archive, "config", NULL) != NULL;
    snprintf(text, GRT_MODEL_TEXT,
             ours ? "a network of `gpurt train supervised`" : "a model of another program");
    return ours ? GRT_MODEL_OF_SUPERVISED : GRT_MODEL_OF_OTHERS;
}

struct grt_archive *grt_model_load(const char *path) {
    uint32_t left = 0;
    if (!path) {
        grt_fail(GRT_INVALID, "no path of a model");
        return NULL;
    }
    if (grt_model_form(path) == GRT_MODEL_ONNX) {
        return grt_onnx_load(path);
    }
    if (grt_model_form(path) != GRT_MODEL_SAFETENSORS) {
        return grt_checkpoint_load(path);
    }
    struct grt_archive *foreign = grt_safetensors_load(path);
    struct grt_archive *archive = foreign ? renamed(foreign, our_name, &left) : NULL;
    grt_archive_destroy(&foreign);
    return archive;
}

bool grt_model_save(const struct grt_archive *archive, const char *path, bool all, uint32_t *left) {
    if (!archive || !path || !left) {
        return grt_fail(GRT_INVALID, "an archive and a path of a model are wanted");
    }
    *left = 0;
    if (grt_model_form(path) != GRT_MODEL_SAFETENSORS) {
        return grt_checkpoint_save(archive, path);
    }
    struct grt_archive *foreign = all ? NULL : renamed(archive, foreign_name, left);
    bool good = (all || foreign) && grt_safetensors_save(all ? archive : foreign, path);
    grt_archive_destroy(&foreign);
    return good;
}
