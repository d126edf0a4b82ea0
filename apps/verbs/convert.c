// SPDX-License-Identifier: Apache-2.0
// `gpurt convert`: checkpoints, safetensors and ONNX into each other; model_file.h has the names.
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output/files.h"
#include "gpurt/model_file.h"
#include "cli/options/options.h"
#include "cli/talk.h"
#include "gpurt/onnx.h"
#include "train/train_config.h"

struct convert {
    struct options common;  // first: see options.h
    uint32_t all;
    uint32_t probabilities, embeddings;
};

static const struct option_row convert_options[] = {
    {.name = "all",
     .help = "optimizer and state too, all under their full names",
     .at = offsetof(struct convert, all)},
    {.name = "probabilities",
     .help = "into ONNX: softmax or sigmoid behind the logits",
     .at = offsetof(struct convert, probabilities)},
    {.name = "embeddings",
     .help = "into ONNX: what the network gives before its last layers",
     .at = offsetof(struct convert, embeddings)},
};

static enum grt_model_form form_of(const char *path, bool read) {
    enum grt_model_form form =
        read && train_config_is_folder(path) ? GRT_MODEL_CHECKPOINT : grt_model_form(path);
    if (form == GRT_MODEL_UNKNOWN) {
        talk_error("'%s': the name must end in .h5, .safetensors or .onnx", path);
    }
    return form;
}

static bool holds_model(const struct grt_archive *archive) {
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        if (strncmp(archive->tensors[i].name, "model/", 6) == 0) {
            return true;
        }
    }
    return false;
}

static int write_onnx(const struct convert *c, const struct grt_archive *archive, const char *out) {
    const struct grt_onnx_export as = {.probabilities = c->probabilities != 0,
                                       .embeddings = c->embeddings != 0};
    if (!grt_onnx_write(archive, &as, out)) {
        return command_exit_of(grt_last_status());
    }
    talk_line("%s: opset %d, any number of samples at once", out, GRT_ONNX_OPSET);
    return COMMAND_OK;
}

// What the options and the names say together.
static int check(const struct convert *c, enum grt_model_form from, enum grt_model_form to) {
    if (from == to) {
        talk_error("both are of the same form: give names with other ends");
    } else if (to == GRT_MODEL_ONNX && c->all) {
        talk_error("--all is for safetensors: ONNX has no place for the optimizer");
    } else if (to != GRT_MODEL_ONNX && (c->probabilities || c->embeddings)) {
        talk_error("--%s is for names that end in .onnx",
                   c->probabilities ? "probabilities" : "embeddings");
    } else if (c->probabilities && c->embeddings) {
        talk_error("embeddings have no probabilities: give --embeddings or --probabilities");
    } else {
        return COMMAND_OK;
    }
    return COMMAND_USAGE;
}

static int run(const struct convert *c, const char *in, const char *out) {
    enum grt_model_form from = form_of(in, true);
    enum grt_model_form to = from != GRT_MODEL_UNKNOWN ? form_of(out, false) : GRT_MODEL_UNKNOWN;
    if (to == GRT_MODEL_UNKNOWN) {
        return COMMAND_USAGE;
    }
    int code = check(c, from, to);
    code = code ? code : FILES_APART({FILE_READ, "IN", in}, {FILE_WRITTEN, "OUT", out});
    if (code) {
        return code;
    }
    uint32_t left = 0;
    struct grt_archive *archive = train_config_load(in);
    bool empty = archive && !holds_model(archive);
    if (archive && !empty && to == GRT_MODEL_ONNX) {
        code = write_onnx(c, archive, out);
        grt_archive_destroy(&archive);
        return code;
    }
    bool good = archive && !empty && grt_model_save(archive, out, c->all != 0, &left);
    if (good && left > 0) {
        talk_line("%u tensors in %s; %u that only --resume needs stay behind, --all takes them too",
                  archive->tensor_count - left, out, left);
    } else if (good) {
        talk_line("%u tensors in %s", archive->tensor_count, out);
    }
    if (empty) {
        talk_error("%s: holds no model that `gpurt train` made", in);
    }
    code = good ? COMMAND_OK : empty ? COMMAND_DATA : command_exit_of(grt_last_status());
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
            "Turns a checkpoint (.h5), a safetensors file and an ONNX file (.onnx) into each "
            "other. Of a folder of checkpoints the best is taken.\n"
            "\n"
            "safetensors: tensors have PyTorch's names, layers.0.weight, of PPO "
            "actor.layers.0.weight\n"
            "and critic.layers.0.weight. What the model does to its inputs comes along: data/mean "
            "and\n"
            "data/std of normalize, of a policy normalizer/mean_rstd_variance, [3][observations].\n"
            "`gpurt eval`, `predict` and `play` take such a file; with --all it can be resumed.\n"
            "\n"
            "ONNX: ONNX Runtime runs the file, and all that is done to inputs is inside. Inputs "
            "are x\n"
            "or the data sets' names, images [N][height][width][channels]; y comes out. Of a "
            "policy\n"
            "they are observation and action, or logits. Files of other programs are read where\n"
            "gpurt has their layers; --from of `gpurt train supervised` begins with them.\n",
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists};
    if (!words) {
        talk_error("out of memory");
    } else {
        code = options_parse(&desc, argc, argv, &c.common, words, &word_count);
    }
    if (code < 0 && word_count != 2) {
        talk_error("convert: two names are wanted, IN and OUT; see `gpurt convert --help`");
        code = COMMAND_USAGE;
    } else if (code < 0) {
        code = run(&c, words[0], words[1]);
    }
    free(words);
    return code;
}
