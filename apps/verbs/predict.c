// SPDX-License-Identifier: Apache-2.0
// `gpurt predict`: what a trained network says of every sample of a file, as HDF5, CSV or .npy.
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output/output.h"
#include "cli/talk.h"
#include "gpurt/checkpoint.h"
#include "gpurt/features.h"
#include "gpurt/supervised.h"
#include "train/train_config.h"

struct predict {
    struct train_config config;  // first: see train_config.h
    const char *output;
    const char *format;  // NULL: by the name
    uint32_t embeddings;
};

static int save_h5(const struct grt_archive *archive, const char *path);
static int save_csv(const struct grt_archive *archive, const char *path);
static int save_npy(const struct grt_archive *archive, const char *path);

// A form of the predictions is a row here.
static const struct form {
    const char *name;
    const char *endings[2];
    int (*save)(const struct grt_archive *archive, const char *path);
} forms[] = {{"h5", {".h5", ".hdf5"}, save_h5},
             {"csv", {".csv", NULL}, save_csv},
             {"npy", {".npy", NULL}, save_npy}};

static bool read_format(const char *text, void *into, char why[RANGES_WHY]) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(text, forms[i].name) == 0) {
            return options_read_text(text, into, why);
        }
    }
    snprintf(why, RANGES_WHY, "known are h5 csv npy");
    return false;
}

static const struct option_row predict_options[] = {
    {.name = "output",
     .letter = "o",
     .value = "FILE",
     .help = "a name in .h5, .hdf5, .csv or .npy; - is stdout. Appears when complete",
     .read = options_read_text,
     .at = offsetof(struct predict, output)},
    {.name = "format",
     .value = "h5|csv|npy",
     .help = "form of the predictions (default: by the name, else h5)",
     .read = read_format,
     .at = offsetof(struct predict, format)},
    {.name = "embeddings",
     .help = "what the network gives before its last layers instead, with the file's classes",
     .at = offsetof(struct predict, embeddings)},
};

// The form that --format or else the name asks for; NULL with the sentence.
static const struct form *form_of(const struct predict *p) {
    const char *slash = strrchr(p->output, '/');
    const char *ending = strrchr(slash ? slash : p->output, '.');
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *const *ends = forms[i].endings;
        bool named = ending && ((ends[0] && strcmp(ending, ends[0]) == 0) ||
                                (ends[1] && strcmp(ending, ends[1]) == 0));
        if (p->format ? strcmp(p->format, forms[i].name) == 0 : named || !ending) {
            return &forms[i];
        }
    }
    talk_error("'%s': the name must end in .h5, .hdf5, .csv or .npy, or --format h5|csv|npy says "
               "the form",
               p->output);
    return NULL;
}

// ---- CSV: a line of names, then a line a sample ----

static uint64_t width_of(const struct grt_archive_tensor *t) {
    return t->rank > 1 ? t->shape[1] : 1;
}

// y of one output, y0 and y1 of two.
static void print_names(FILE *file, const struct grt_archive *archive) {
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *t = &archive->tensors[i];
        for (uint64_t k = 0; k < width_of(t); k++) {
            fprintf(file, "%s%s", i || k ? "," : "", t->name);
            if (width_of(t) > 1) {
                fprintf(file, "%llu", (unsigned long long)k);
            }
        }
    }
    fputc('\n', file);
}

static void print_sample(FILE *file, const struct grt_archive *archive, uint64_t row) {
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *t = &archive->tensors[i];
        for (uint64_t k = 0; k < width_of(t); k++) {
            const char *at = (const char *)t->data + 4 * (row * width_of(t) + k);
            float number;
            uint32_t whole;
            memcpy(&number, at, 4);
            memcpy(&whole, at, 4);
            fputs(i || k ? "," : "", file);
            // Nine digits tell every float from its neighbours.
            if (t->dtype == GRT_U32 && whole != UINT32_MAX) {  // no class: an empty cell
                fprintf(file, "%u", whole);
            } else if (t->dtype == GRT_U32) {
                continue;
            } else {
                fprintf(file, "%.9g", (double)number);
            }
        }
    }
    fputc('\n', file);
}

static int save_csv(const struct grt_archive *archive, const char *path) {
    struct output output;
    int code = output_open(&output, path);
    if (code) {
        return code;
    }
    print_names(output.file, archive);
    for (uint64_t row = 0; row < archive->tensors[0].shape[0] && !ferror(output.file); row++) {
        print_sample(output.file, archive, row);
    }
    return output_close(&output, true);
}

// ---- .npy: y, or embedding, alone, as NumPy's own format 1.0 ----

#define NPY_HEAD 128  // bytes of the magic, the length and the text: a multiple of 64

static int save_npy(const struct grt_archive *archive, const char *path) {
    const struct grt_archive_tensor *t = &archive->tensors[0];
    struct output output;
    char head[NPY_HEAD + 1];
    int code = output_open(&output, path);
    if (code) {
        return code;
    }
    int length = snprintf(head, sizeof head,
                          "\x93NUMPY%c%c%c%c{'descr': '<f4', 'fortran_order': False, 'shape': "
                          "(%llu, %llu), }",
                          1, 0, NPY_HEAD - 10, 0, (unsigned long long)t->shape[0],
                          (unsigned long long)width_of(t));
    memset(head + length, ' ', (size_t)(NPY_HEAD - length));
    head[NPY_HEAD - 1] = '\n';
    fwrite(head, 1, NPY_HEAD, output.file);
    fwrite(t->data, 1, t->bytes, output.file);
    return output_close(&output, true);
}

// ---- the verb ----

static int save_h5(const struct grt_archive *archive, const char *path) {
    return grt_checkpoint_save(archive, path) ? COMMAND_OK : command_exit_of(grt_last_status());
}

static int run(void *values, int argc, char **argv) {
    struct predict *p = values;
    (void)argc;
    (void)argv;
    if (!p->output) {
        talk_error("no file for the predictions: name one with --output FILE");
        return COMMAND_USAGE;
    }
    const struct form *form = form_of(p);
    struct grt_archive *model = NULL;
    struct grt_archive *archive = NULL;
    struct grt_dev *dev = NULL;
    int code = form ? train_config_open(&p->config, p->output, &model, &dev) : COMMAND_USAGE;
    if (!code) {
        archive = p->embeddings
                      ? grt_features_archive(dev, model, &p->config.settings, talk_stopped)
                      : grt_predict(dev, model, &p->config.settings, talk_stopped);
        code = archive ? form->save(archive, p->output) : command_exit_of(grt_last_status());
    }
    int64_t left_out = archive ? grt_archive_whole(archive, "rows_left_out", 0) : 0;
    if (archive && !code) {
        talk_line("%llu %s in %s", (unsigned long long)archive->tensors[0].shape[0],
                  p->embeddings ? "embeddings" : "predictions", p->output);
    }
    if (left_out > 0 && !code) {
        talk_line("%lld of them are NaN: their rows have NaN or Inf (on_nan=drop)",
                  (long long)left_out);
    }
    grt_archive_destroy(&archive);
    grt_archive_destroy(&model);
    grt_dev_destroy(&dev);
    return code;
}

int cmd_predict(int argc, char **argv) {
    struct option_list lists[] = {
        OPTION_LIST("Options", predict_options),
        OPTION_LIST("Network", train_checkpoint_options),
        OPTION_LIST("Data", train_config_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("General options", options_general),
    };
    const struct train_config_verb verb = {
        .options =
            {.verb = "predict",
             .words = "[KEY=VALUE...]",
             .about =
                 "What a network that `gpurt train supervised` trained says of every sample, in "
                 "the "
                 "file's\norder: y [N][outputs] f32. With the losses cross_entropy and bce y are "
                 "logits, "
                 "as the\nattribute y_is says, and probability [N][outputs] has their softmax or "
                 "sigmoid; of classes,\nclass [N] is the likeliest. As CSV: a column for each, "
                 "named "
                 "y0, y1 and so on. As .npy: y alone.\nOf samples that on_nan=drop leaves out "
                 "y is NaN, class 4294967295 (as CSV nothing).\nWith --embeddings: embedding "
                 "[N][width] "
                 "f32, and class [N] "
                 "as the file has them.\n",
             .lists = lists,
             .list_count = sizeof lists / sizeof *lists},
        .size = sizeof(struct predict),
        .run = run,
    };
    return train_config_main(&verb, argc, argv);
}
