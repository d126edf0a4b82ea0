// SPDX-License-Identifier: Apache-2.0
// Options of the verbs that work by a training config: the file, what the command line changes in
// it, and the device that both together name.
#ifndef APPS_TRAIN_CONFIG_H
#define APPS_TRAIN_CONFIG_H

#include "cli/options/options.h"
#include "gpurt/archive.h"
#include "gpurt/config.h"

// A struct of values begins with this.
struct train_config {
    struct options common;   // first: see options.h
    const char *config;      // --config
    const char *data;        // --data
    const char *checkpoint;  // --checkpoint, a file or a folder
    struct grt_config settings;
};

#define TRAIN_CONFIG_OPTIONS_COUNT 2
extern const struct option_row train_config_options[TRAIN_CONFIG_OPTIONS_COUNT];
#define TRAIN_CHECKPOINT_OPTIONS_COUNT 1
extern const struct option_row train_checkpoint_options[TRAIN_CHECKPOINT_OPTIONS_COUNT];

// Reads a file (NULL: none) and the words "key=value" into settings that were initialised. Returns
// an exit code; a mistake is said.
int train_config_settings(struct grt_config *settings, const char *file, const char **words,
                          size_t word_count);
// The device of the settings, where no option names one.
void train_config_devices(const struct grt_config *settings, struct options *options);
// Fills `settings` from the file, the words "key=value" and --data, and the device options that
// were not given from it. Returns an exit code; a mistake is said.
int train_config_read(struct train_config *values, enum grt_config_scope scope, const char **words,
                      size_t word_count);
// Opens the device that the settings name. NULL with the sentence said.
struct grt_dev *train_config_device(const struct train_config *values);
// Whether what is written is neither the config nor the data nor the network. Returns an exit code;
// see files.h.
int train_config_apart(const struct train_config *values, const char *output);
// Every key of a kind's config, as a table. Returns an exit code.
int train_print_keys(const struct options *options, const char *verb, enum grt_config_scope scope,
                     int argc, char **argv);
// What one takes, "f32|f16|bf16" or a range; and what stands when it is not given.
void train_key_values(const struct grt_config_key_info *info, char text[128]);
const char *train_key_fallback(enum grt_config_key key, enum grt_config_scope scope);
// Defaults of `gpurt train simclr`, where the keys are not given.
bool train_simclr_settings(struct grt_config *settings);
bool train_config_is_folder(const char *path);
// A trained model: a file's, or of a folder of checkpoints the best or the newest. NULL with the
// sentence.
struct grt_archive *train_config_load(const char *path);
// The one that --checkpoint names.
struct grt_archive *train_config_model(const struct train_config *values);
// The model and the device of a verb that writes `output` (may be NULL). Returns an exit code, the
// mistake said; both are the caller's to destroy, also then.
int train_config_open(const struct train_config *values, const char *output,
                      struct grt_archive **model, struct grt_dev **dev);

// A verb that works by a training config.
struct train_config_verb {
    struct options_desc options;
    size_t size;       // of its values, which begin with struct train_config
    bool config_word;  // the first word, where it is no KEY=VALUE, is the config
    int (*run)(void *values, int argc, char **argv);  // with the settings read
};
// Parses, reads the settings and runs. Returns an exit code.
int train_config_main(const struct train_config_verb *verb, int argc, char **argv);

#endif
