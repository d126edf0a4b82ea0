// SPDX-License-Identifier: Apache-2.0
// Checkpoints go to the disk while the run goes on:
//
//     run      makes archives, hands over | steps ...          | looks: done; says what came of it
//     writer                       HDF5 | file | fsync | rename | removes old ones
//
// H200, ResNet-18, 2026-11: the 90 MB of an epoch's end take 350 ms of a core and then the disk's
// time, and steps that are queued last 250 ms.
#include "run_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/whole_file.h"
#include "gpurt/checkpoint.h"

// Failures are kept, for the run's own thread to say.
static void note(struct run_file *file, bool good) {
    file->good = good;
    file->status = good ? GRT_OK : grt_quiet_status();
    snprintf(file->why, sizeof file->why, "%s", good ? "" : grt_quiet_error());
}

// `twin`: another name for it, or NULL.
static void write_newest(struct run_writing *w, const char *twin) {
    struct run_file *file = &w->newest;
    const struct grt_checkpoint_dir dir = {w->dir, w->keep, twin};
    bool before = grt_quiet(true);
    note(file, w->dir ? grt_checkpoint_store(&dir, file->archive, file->step)
                      : grt_checkpoint_save(file->archive, file->path));
    grt_quiet(before);
}

static void write_best(struct run_writing *w) {
    struct run_file *file = &w->best;
    bool before = grt_quiet(true);
    note(file, (!w->dir || grt_checkpoint_make_dir(w->dir)) &&
                   grt_checkpoint_save(file->archive, file->path));
    grt_quiet(before);
}

// The best and the newest of one step are one file with two names. To write it a second time took 5
// of the 78 ms that 20 epochs took on an H200 (2026-11).
static void write_both(struct run_writing *w) {
    write_newest(w, w->best.path);
    if (w->newest.good && grt_whole_file_same(w->newest.path, w->best.path)) {
        note(&w->best, true);
    } else {
        write_best(w);
    }
}

// HDF5's first file takes 4 ms more than those behind it (Xeon, 2026-11), and 20 epochs of 27 steps
// take 60 on an H200: it is made while the first steps run.
static void warm(void) {
    const uint64_t shape[1] = {1};
    const float number = 0;
    struct grt_archive *archive = grt_archive_create();
    bool before = grt_quiet(true);
    if (archive && grt_archive_add(archive, "model/weight", GRT_F32, 1, shape, &number)) {
        grt_checkpoint_save(archive, "/dev/null");
    }
    grt_quiet(before);
    grt_archive_destroy(&archive);
}

static void *write_all(void *context) {
    struct run_writing *w = context;
    if (!w->newest.archive && !w->best.archive) {
        warm();
    } else if (w->dir && w->newest.archive && w->newest.archive == w->best.archive) {
        write_both(w);
    } else {
        if (w->best.archive) {
            write_best(w);
        }
        if (w->newest.archive) {
            write_newest(w, NULL);
        }
    }
    w->done = true;
    return NULL;
}

void run_write_begin(struct run_writing *w) {
    w->active = true;
    w->done = false;
    w->threaded = grt_thread_start(&w->thread, write_all, w);
    if (!w->threaded) {
        write_all(w);
    }
}

void run_write_end(struct run_writing *w) {
    if (w->threaded) {
        pthread_join(w->thread, NULL);
    }
    w->threaded = w->active = false;
    run_drop(&w->newest.archive, w->best.archive);
    grt_archive_destroy(&w->best.archive);
}
