// SPDX-License-Identifier: Apache-2.0
// `gpurt predict`: what a trained network says of every sample of a file, as HDF5 or CSV.
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output.h"
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

static bool read_format(const char *text, void *into, char why[RANGES_WHY]) {
    if (strcmp(text, "h5") == 0 || strcmp(text, "csv") == 0) {
        return options_read_text(text, into, why);
    }
    snprintf(why, RANGES_WHY, "known are h5 csv");
    return false;
}

static const struct option_row predict_options[] = {
    {.name = "output",
     .letter = "o",
     .value = "FILE",
     .help = "a name in .h5, .hdf5 or .csv; - is stdout. Appears when complete",
     .read = options_read_text,
     .at = offsetof(struct predict, output)},
    {.name = "format",
     .value = "h5|csv",
     .help = "form of the predictions (default: by the name, else h5)",
     .read = read_format,
     .at = offsetof(struct predict, format)},
    {.name = "embeddings",
     .help = "what the network gives before its last layers instead, with the file's classes",
     .at = offsetof(struct predict, embeddings)},
};

// The form that the name asks for, where --format does not; NULL with the sentence.
static const char *form_of(const struct predict *p) {
    const char *slash = strrchr(p->output, '/');
    const char *ending = strrchr(slash ? slash : p->output, '.');
    if (p->format) {
        return p->format;
    }
    if (!ending || strcmp(ending, ".h5") == 0 || strcmp(ending, ".hdf5") == 0) {
        return "h5";
    }
    if (strcmp(ending, ".csv") == 0) {
        return "csv";
    }
    talk_error("'%s': the name must end in .h5, .hdf5 or .csv, or --format h5|csv says the form",
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
            if (t->dtype == GRT_U32) {
                fprintf(file, "%u", whole);
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

// ---- the verb ----

static int save(const struct grt_archive *archive, const char *path, const char *form) {
    if (strcmp(form, "csv") == 0) {
        return save_csv(archive, path);
    }
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
    const char *form = form_of(p);
    struct grt_archive *model = NULL;
    struct grt_archive *archive = NULL;
    struct grt_dev *dev = NULL;
    int code = form ? train_config_open(&p->config, p->output, &model, &dev) : COMMAND_USAGE;
    if (!code) {
        archive = p->embeddings
                      ? grt_features_archive(dev, model, &p->config.settings, talk_stopped)
                      : grt_predict(dev, model, &p->config.settings, talk_stopped);
        code = archive ? save(archive, p->output, form) : command_exit_of(grt_last_status());
    }
    if (archive && !code) {
        talk_line("%llu %s in %s", (unsigned long long)archive->tensors[0].shape[0],
                  p->embeddings ? "embeddings" : "predictions", p->output);
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
                 "y0, y1 and so on.\nWith --embeddings: embedding [N][width] f32, and class [N] "
                 "as the file has them.\n",
             .lists = lists,
             .list_count = sizeof lists / sizeof *lists},
        .size = sizeof(struct predict),
        .run = run,
    };
    return train_config_main(&verb, argc, argv);
}
