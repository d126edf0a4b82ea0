// SPDX-License-Identifier: Apache-2.0
#include "train_file.h"

#include <stdio.h>

#include "cli/command.h"
#include "cli/output/files.h"
#include "gpurt/model_file.h"
#include "cli/talk.h"

int train_file_check(const struct train_file *file) {
    if (file->resume && file->from) {
        talk_error("--resume goes on with a run and --from begins one: give one of them");
        return COMMAND_USAGE;
    }
    return COMMAND_OK;
}

int train_file_load(struct train_file *file, const char *path) {
    file->archive = grt_model_load(path);
    return file->archive ? COMMAND_OK : command_exit_of(grt_last_status());
}

int train_file_keep(struct train_file *file, const char *given, const char *otherwise) {
    const char *path = given ? given : file->resume ? file->resume : otherwise;
    if ((size_t)snprintf(file->path, sizeof file->path, "%s", path) >= sizeof file->path) {
        talk_error("the name of the checkpoint is too long: %.100s...", path);
        return COMMAND_CANNOT_CREATE;
    }
    return COMMAND_OK;
}

int train_file_apart(const struct trainer *t, const struct train_file *file) {
    const struct train_config *c = &t->config;
    return FILES_APART({FILE_READ, "--config", c->config},
                       {FILE_READ, file->resume ? "--resume" : "--from",
                        file->archive ? file->archive->path : NULL},
                       {FILE_KEPT, "--checkpoint", file->path},
                       {FILE_WRITTEN, "--log", c->settings.log},
                       {FILE_WRITTEN, "--directions", c->settings.directions},
                       {FILE_WRITTEN, "--metrics", c->common.metrics},
                       {FILE_WRITTEN, "--output", c->common.output}, FILES_WATCHED(&c->common));
}

int train_file_begin(struct trainer *t, const struct train_file *file, uint64_t save_every,
                     struct grt_run_start *start) {
    struct grt_run_desc desc = trainer_run_desc(t);
    desc.file = file->path;
    desc.save_every = save_every;
    t->run = grt_run_create(&desc);
    if (!t->run) {
        return command_exit_of(grt_last_status());
    }
    start->dev = t->dev;
    start->config = &t->config.settings;
    start->evaluate_every = file->evaluate_every;
    start->from = file->resume ? file->archive : NULL;
    return grt_run_begin(t->run, start) ? COMMAND_OK : train_file_exit();
}

int train_file_exit(void) {
    return grt_last_status() == GRT_INVALID ? COMMAND_DATA : command_exit_of(grt_last_status());
}

uint32_t train_file_turns(uint64_t asked, uint64_t iterations) {
    uint64_t turns = asked > 0 ? asked : iterations < 20 ? 1 : iterations / 10;
    return turns < UINT32_MAX ? (uint32_t)turns : UINT32_MAX;
}
