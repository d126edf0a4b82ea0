// SPDX-License-Identifier: Apache-2.0
#include "train_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output/files.h"
#include "gpurt/model_file.h"
#include "cli/talk.h"
#include "gpurt/checkpoint.h"

const struct option_row train_config_options[] = {
    {.name = "config",
     .letter = "c",
     .value = "FILE",
     .help = "settings in YAML; --keys of `gpurt train supervised` lists them",
     .read = options_read_text,
     .at = offsetof(struct train_config, config)},
    {.name = "data",
     .value = "FILE",
     .help = "file with the samples: HDF5, .csv, .tsv, .npz or .npy",
     .read = options_read_text,
     .at = offsetof(struct train_config, data)},
};

const struct option_row train_checkpoint_options[] = {
    {.name = "checkpoint",
     .value = "PATH",
     .help = "the trained network: a file, or a folder, whose best is taken",
     .fallback = "checkpoints",
     .read = options_read_text,
     .at = offsetof(struct train_config, checkpoint)},
};

int train_config_settings(struct grt_config *c, const char *file, const char **words,
                          size_t word_count) {
    bool good = !file || grt_config_read(c, file);
    for (size_t i = 0; good && i < word_count; i++) {
        if (!strchr(words[i], '=')) {
            bool of_data = c->scope & GRT_CONFIG_OF_SUPERVISED;
            talk_error("'%s' is not of the form key=value; a file is named with %s--config FILE%s",
                       words[i], of_data ? "--data FILE or " : "",
                       of_data ? "" : ", an environment with --env NAME");
            return COMMAND_CONFIG;
        }
        good = grt_config_override(c, words[i]);
    }
    return good ? COMMAND_OK : command_exit_of(grt_last_status());
}

void train_config_devices(const struct grt_config *c, struct options *o) {
    // What a config says stands above the environment, which is there for all commands.
    bool meant = o->device && o->device == getenv("GPURT_DEVICE");
    if ((!o->device || meant) && *c->device) {
        o->device = c->device;
    } else if (meant && strcmp(c->backend, "auto") != 0) {
        o->device = NULL;
    }
    if (strcmp(o->backend, "auto") == 0) {
        o->backend = c->backend;
    }
    if (o->mem_fraction == 0) {
        o->mem_fraction = c->mem_fraction;
    }
}

int train_config_read(struct train_config *values, enum grt_config_scope scope, const char **words,
                      size_t word_count) {
    struct grt_config *c = &values->settings;
    grt_config_init_for(c, scope);
    int code = train_config_settings(c, values->config, words, word_count);
    if (!code && values->data && !grt_config_set(c, GRT_CONFIG_DATA, values->data)) {
        code = command_exit_of(grt_last_status());
    }
    if (!code) {
        grt_config_settle(c);
        train_config_devices(c, &values->common);
    }
    return code;
}

int train_config_apart(const struct train_config *values, const char *output) {
    return FILES_APART(
        {FILE_READ, "--config", values->config}, {FILE_READ, "--data", values->settings.data},
        {FILE_READ, "--checkpoint", values->checkpoint},
        {FILE_FOLDER, "--checkpoint", values->checkpoint}, {FILE_WRITTEN, "--output", output});
}

struct grt_dev *train_config_device(const struct train_config *values) {
    talk_progress("opening the device");
    struct grt_dev *dev = options_open_device(&values->common);
    talk_clear();
    return dev;
}

bool train_config_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

struct grt_archive *train_config_load(const char *path) {
    char best[4200];
    if (!train_config_is_folder(path)) {
        return grt_model_load(path);
    }
    snprintf(best, sizeof best, "%.4096s/best.h5", path);
    return access(best, F_OK) == 0 ? grt_checkpoint_load(best) : grt_checkpoint_newest(path);
}

struct grt_archive *train_config_model(const struct train_config *values) {
    struct grt_archive *archive = train_config_load(values->checkpoint);
    if (!archive && grt_last_status() == GRT_NO_INPUT &&
        !train_config_is_folder(values->checkpoint)) {
        talk_error("the trained network is named with --checkpoint PATH, a file or a folder "
                   "that `gpurt train supervised` wrote");
    }
    return archive;
}

int train_config_open(const struct train_config *values, const char *output,
                      struct grt_archive **model, struct grt_dev **dev) {
    int code = train_config_apart(values, output);
    if (code) {
        return code;
    }
    *model = train_config_model(values);
    *dev = *model ? train_config_device(values) : NULL;
    return *dev ? COMMAND_OK : command_exit_of(grt_last_status());
}

int train_config_main(const struct train_config_verb *verb, int argc, char **argv) {
    struct train_config *values = calloc(1, verb->size);
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t count = 0;
    int code = COMMAND_INTERNAL;
    if (!values || !words) {
        talk_error("out of memory");
    } else {
        code = options_parse(&verb->options, argc, argv, &values->common, words, &count);
    }
    if (code < 0) {
        size_t first = verb->config_word && count > 0 && !strchr(words[0], '=') && !values->config;
        bool model = first && (grt_model_form(words[0]) != GRT_MODEL_UNKNOWN ||
                               train_config_is_folder(words[0]));
        if (first) {
            *(model ? &values->checkpoint : &values->config) = words[0];
        }
        code = train_config_read(values, GRT_CONFIG_OF_SUPERVISED, words + first, count - first);
        if (!code) {
            code = verb->run(values, argc, argv);
        }
    }
    free(words);
    free(values);
    return code;
}
