// SPDX-License-Identifier: Apache-2.0
// `gpurt convert`: checkpoints to safetensors, with the names that PyTorch's load_state_dict() wants, and
// back.
//
//     checkpoint  model/layers.0.weight  optimizer/...  state/...      safetensors  layers.0.weight
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "files.h"
#include "options.h"
#include "talk.h"
#include "train/checkpoint.h"
#include "train/safetensors.h"

#define MODEL "model/"

struct convert {
    struct options common;  // first: see options.h
    uint32_t all;
};

static const struct option_row convert_options[] = {
    {.name = "all",
     .help = "optimizer and state too, all under their full names",
     .at = offsetof(struct convert, all)},
};

// A form by the end of a name.
static const struct form {
    const char *ending;
    struct grt_archive *(*load)(const char *path);
    bool (*save)(const struct grt_archive *archive, const char *path);
    bool foreign;
} forms[] = {
    {".safetensors", grt_safetensors_load, grt_safetensors_save, true},
    {".h5", grt_checkpoint_load, grt_checkpoint_save, false},
    {".hdf5", grt_checkpoint_load, grt_checkpoint_save, false},
};

static const struct form *form_of(const char *path) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t length = strlen(path);
        size_t ending = strlen(forms[i].ending);
        if (length > ending && !strcmp(path + length - ending, forms[i].ending))
            return &forms[i];
    }
    talk_error("'%s': the name must end in .safetensors or .h5", path);
    return NULL;
}

// The name a tensor has on the other side, or false when it stays behind.
static bool other_name(const char *name, bool foreign, bool all, char other[GRT_ARCHIVE_NAME]) {
    bool ours = !strncmp(name, MODEL, strlen(MODEL));
    if (foreign && !all && !ours && strncmp(name, "data/", 5) != 0)
        return false;
    const char *prefix = !foreign && !strchr(name, '/') ? MODEL : "";
    const char *rest = foreign && !all && ours ? name + strlen(MODEL) : name;
    int length = snprintf(other, GRT_ARCHIVE_NAME, "%s%s", prefix, rest);
    return length > 0 && length < GRT_ARCHIVE_NAME;
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

static struct grt_archive *rename_all(const struct grt_archive *from, bool foreign, bool all) {
    struct grt_archive *to = grt_archive_create();
    bool good = to != NULL;
    for (uint32_t i = 0; good && i < from->tensor_count; i++) {
        const struct grt_archive_tensor *t = &from->tensors[i];
        char name[GRT_ARCHIVE_NAME];
        if (other_name(t->name, foreign, all, name))
            good = grt_archive_add(to, name, t->dtype, t->rank, t->shape, t->data);
    }
    for (uint32_t i = 0; good && i < from->value_count; i++)
        good = copy_value(to, &from->values[i]);
    if (!good)
        grt_archive_destroy(&to);
    return to;
}

static int run(const struct convert *c, const char *in, const char *out) {
    const struct form *from = form_of(in);
    const struct form *to = from ? form_of(out) : NULL;
    if (!to)
        return COMMAND_USAGE;
    if (from->foreign == to->foreign) {
        talk_error(
            "both are of the same form; one name must end in .safetensors, the other in .h5");
        return COMMAND_USAGE;
    }
    int code = FILES_APART({FILE_READ, "IN", in}, {FILE_WRITTEN, "OUT", out});
    if (code)
        return code;
    struct grt_archive *archive = from->load(in);
    struct grt_archive *renamed = archive ? rename_all(archive, to->foreign, c->all != 0) : NULL;
    bool empty = renamed && renamed->tensor_count == 0;
    bool good = renamed && !empty && to->save(renamed, out);
    if (good)
        talk_line("%u tensors in %s", renamed->tensor_count, out);
    if (empty)
        talk_error("%s: holds no model that `gpurt train supervised` made", in);
    code = good ? COMMAND_OK : empty ? COMMAND_DATA : command_exit_of(grt_last_status());
    grt_archive_destroy(&renamed);
    grt_archive_destroy(&archive);
    return code;
}

int cmd_convert(int argc, char **argv) {
    struct convert c = {0};
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t word_count = 0;
    int code = COMMAND_INTERNAL;
    struct option_list lists[] = {
        OPTION_LIST("Options", convert_options),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {
        .verb = "convert",
        .words = "IN OUT",
        .about =
            "Turns a checkpoint (.h5) into a safetensors file, or the other way round. Tensors "
            "of the\nmodel get PyTorch's names, layers.0.weight; a model that comes back can "
            "be used by\n`gpurt eval` and `gpurt predict`, and with --all be resumed.\n",
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists};
    if (!words)
        talk_error("out of memory");
    else
        code = options_parse(&desc, argc, argv, &c.common, words, &word_count);
    if (code < 0 && word_count != 2) {
        talk_error("convert: two names are wanted, IN and OUT; see `gpurt convert --help`");
        code = COMMAND_USAGE;
    } else if (code < 0) {
        code = run(&c, words[0], words[1]);
    }
    free(words);
    return code;
}
