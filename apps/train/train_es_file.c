// SPDX-License-Identifier: Apache-2.0
// The checkpoint of a policy's training: one file, replaced as a whole.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "gpurt/checkpoint.h"
#include "train_es.h"
#include "base/whole_file.h"

// What an earlier run has learnt makes way for the first checkpoint of this one: a.h5 becomes a-earlier-1.h5.
// Of a link it is the file behind it; devices and pipes stay where they are.
static bool set_aside(struct train_es *t) {
    char file[GRT_WHOLE_FILE_PATH], kept[GRT_WHOLE_FILE_PATH + 32];
    bool ours = t->written || (t->resume && grt_whole_file_same(t->path, t->resume));
    for (uint32_t i = 1; !ours && grt_whole_file_replaces(t->path, file); i++) {
        size_t length = strlen(file);
        size_t stem = length > 3 && !strcmp(file + length - 3, ".h5") ? length - 3 : length;
        snprintf(kept, sizeof kept, "%.*s-earlier-%u%s", (int)stem, file, i, file + stem);
        if (access(kept, F_OK) == 0)
            continue;
        if (rename(file, kept) != 0) {
            talk_error("cannot move %s to %s: %s", file, kept, strerror(errno));
            return false;
        }
        talk_line("the earlier %s is now %s", file, kept);
    }
    return true;
}

// A policy with a NaN in it would replace one that works.
static bool is_finite(const struct train_es *t, const struct grt_archive *archive,
                      uint32_t iteration) {
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *tensor = &archive->tensors[i];
        const float *numbers = tensor->data;
        uint64_t count = tensor->bytes / sizeof *numbers;
        uint64_t k = 0;
        while (k < count && isfinite(numbers[k]))
            k++;
        if (k < count) {
            talk_error("iteration %u: %s is not finite, and %s is left as it was. A smaller "
                       "--step-size or another --noise-std may help",
                       iteration, tensor->name, t->path);
            return false;
        }
    }
    return true;
}

int train_es_save(struct train_es *t, uint32_t iteration) {
    if (t->written && t->saved == iteration)
        return COMMAND_OK;
    struct grt_archive *archive = grt_archive_create();
    int code = COMMAND_OK;
    if (!archive || !grt_es_save(t->es, archive) ||
        !grt_limits_save(&t->limits, &t->patience, train_es_seconds(t), archive) ||
        (t->limits.patience > 0 && !grt_archive_set_whole(archive, TRAIN_ES_JUDGED, t->judged))) {
        code = command_exit_of(grt_last_status());
    } else if (!is_finite(t, archive, iteration)) {
        code = COMMAND_INTERNAL;
        t->ended = GRT_ENDED_NONFINITE;
    } else if (!set_aside(t)) {
        code = COMMAND_CANNOT_CREATE;
    } else if (!grt_checkpoint_save(archive, t->path)) {
        code = command_exit_of(grt_last_status());
    }
    t->written = t->written || !code;
    t->saved = iteration;
    grt_archive_destroy(&archive);
    return code;
}

// Asked before the work: a checkpoint that cannot be written would be found out after it.
static bool can_save(const char *path) {
    int error = grt_whole_file_obstacle(path);
    if (error)
        talk_error("cannot write the checkpoint %s: %s; --checkpoint FILE names another", path,
                   strerror(error));
    return error == 0;
}

int train_es_claim(struct train_es *t, const char *path) {
    char file[GRT_WHOLE_FILE_PATH], lock[GRT_WHOLE_FILE_PATH + 8];
    struct grt_runlog_desc log = {.jsonl = t->log, .tensorboard = t->tensorboard};
    if ((size_t)snprintf(t->path, sizeof t->path, "%s", path) >= sizeof t->path) {
        talk_error("the name of the checkpoint is too long: %.100s...", path);
        return COMMAND_CANNOT_CREATE;
    }
    if (!can_save(t->path))
        return COMMAND_CANNOT_CREATE;
    if (!grt_runlog_check(&log))
        return command_exit_of(grt_last_status());
    // Devices and pipes are nobody's own.
    if (!grt_whole_file_makes(t->path, file))
        return COMMAND_OK;
    snprintf(lock, sizeof lock, "%s.lock", file);
    if (!grt_lock_take(&t->lock, lock, t->path))
        return command_exit_of(grt_last_status());
    grt_checkpoint_clean(file);
    return COMMAND_OK;
}
