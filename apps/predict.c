// SPDX-License-Identifier: Apache-2.0
// `gpurt predict`: what a trained network says of every sample of a file, as an HDF5 file.
#include <stdlib.h>

#include "command.h"
#include "output.h"
#include "talk.h"
#include "train/checkpoint.h"
#include "train/supervised.h"
#include "train_config.h"

struct predict {
    struct train_config config;  // first: see train_config.h
    const char *output;
};

static const struct option_row predict_options[] = {
    {.name = "output",
     .letter = "o",
     .value = "FILE",
     .help = "HDF5 file, which appears when complete",
     .read = options_read_text,
     .at = offsetof(struct predict, output)},
};

static int run(struct predict *p) {
    if (!p->output) {
        talk_error("no file for the predictions: name one with --output FILE");
        return COMMAND_USAGE;
    }
    int code = train_config_apart(&p->config, p->output);
    if (code)
        return code;
    struct grt_archive *model = train_config_model(&p->config);
    struct grt_dev *dev = model ? train_config_device(&p->config) : NULL;
    struct grt_archive *archive =
        dev ? grt_predict(dev, model, &p->config.settings, talk_stopped) : NULL;
    bool good = archive && grt_checkpoint_save(archive, p->output);
    if (good)
        talk_line("%llu predictions in %s", (unsigned long long)archive->tensors[0].shape[0],
                  p->output);
    code = good ? COMMAND_OK : command_exit_of(grt_last_status());
    grt_archive_destroy(&archive);
    grt_archive_destroy(&model);
    grt_dev_destroy(&dev);
    return code;
}

int cmd_predict(int argc, char **argv) {
    struct predict *p = calloc(1, sizeof *p);
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t word_count = 0;
    int code = COMMAND_INTERNAL;
    struct option_list lists[] = {
        OPTION_LIST("Options", predict_options),
        OPTION_LIST("Network", train_checkpoint_options),
        OPTION_LIST("Data", train_config_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {
        .verb = "predict",
        .words = "[KEY=VALUE...]",
        .about =
            "What a network that `gpurt train supervised` trained says of every sample, in the "
            "file's\norder: y [N][outputs] f32 and, of classes, class [N], the likeliest.\n",
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists};
    if (!p || !words)
        talk_error("out of memory");
    else
        code = options_parse(&desc, argc, argv, &p->config.common, words, &word_count);
    if (code < 0) {
        code = train_config_read(&p->config, words, word_count);
        if (!code)
            code = run(p);
    }
    free(words);
    free(p);
    return code;
}
