// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: a run, and what it leaves on the disk.
#ifndef GRT_RUN_PARTS_H
#define GRT_RUN_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "base/whole_file.h"
#include "gpurt/run.h"
#include "gpurt/runlog.h"

// Evaluations may follow each other in milliseconds, and a file takes longer to reach the disk. So
// what they leave is written at most once in this many seconds.
#define RUN_WRITE_SECONDS 0.5
#define RUN_UNSAVED UINT64_MAX  // no checkpoint has a step
#define RUN_UNKNOWN UINT64_MAX  // an archive does not tell

// A checkpoint that is written, and what came of it.
struct run_file {
    struct grt_archive *archive;  // NULL: none
    uint64_t step;
    char path[GRT_WHOLE_FILE_PATH + 64];
    bool good;
    enum grt_status status;
    char why[2048];
};

// What is on its way to the disk. Between run_write_begin() and `done` all of it is the writer's.
struct run_writing {
    const char *dir;  // NULL: one file
    uint32_t keep;
    struct run_file newest, best;  // may have one archive
    bool active;                   // begun and not ended
    bool threaded;
    pthread_t thread;
    atomic_bool done;
};

struct grt_run {
    struct grt_run_desc desc;
    struct grt_run_start start;
    struct grt_run_row about;  // a copy of start.about
    uint64_t steps;
    enum grt_ending all;  // why it ends when all steps are done
    struct grt_run_place place;
    uint64_t start_step;
    double spent;  // seconds of training before this process
    double began;  // when grt_run_go() did; 0: not yet
    // The first step is done: from here on the rest is estimated. In it drivers finish their
    // kernels.
    bool begun, announced;  // the latter: GRT_RUN_NEWS_BEGUN was said
    double begun_at;
    uint64_t begun_step;
    enum grt_ending ended;
    struct grt_runlog *log;
    bool bears;            // ranks go on where one is lost
    bool leads;            // this rank writes, or did when it was last looked
    uint32_t losses;       // of ranks, when that was
    uint64_t spread_step;  // of the newest histograms, and one; 0: none

    // Checkpoints.
    struct grt_lock lock;
    bool earlier;       // the folder has checkpoints of an earlier run
    bool written;       // the file is of this run
    struct run_found {  // it as the run found it
        bool any;
        uint64_t device, number;
    } found;
    bool best_written;                 // and the best one beside it
    uint64_t saved_step;               // of the newest checkpoint of this run, or RUN_UNSAVED
    uint64_t left_step;                // the same, also where what it has is to be saved anew
    bool unmade, unwritten;            // the newest checkpoint could not be
    bool best_unmade, best_unwritten;  // the same of the best one
    bool nonfinite;                    // it was not saved: a tensor is not finite
    struct run_writing writing;
    // Made and not yet handed over to the writer, since one is on its way or was a moment ago; a
    // newer one takes its place.
    struct grt_archive *pending, *pending_best;
    struct grt_archive *newest;  // what it goes on with, until it has begun
    // What a run of saves_together begins with, until its first checkpoint.
    struct grt_archive *origin;
    uint64_t pending_best_step;
    uint64_t pending_step;
    double write_time;  // of the newest
};

// Seconds of training so far, those of earlier processes included.
double run_seconds(const struct grt_run *run);
// Of ranks that train together only the first writes.
static inline bool run_writes(const struct grt_run *run) {
    return grt_comm_rank(run->desc.comm) == 0;
}
// Says, once, that there is something to lose.
void run_announce(struct grt_run *run);
// Where ranks are gone and the others go on: says so, and the first of these writes from here on.
void run_thin(struct grt_run *run);

// ---- checkpoints: run_keep.c ----

// Whether the places can be written; locks those that are there.
bool run_keep_check(struct grt_run *run);
// Makes the folder, and looks for checkpoints; run->newest (may become NULL) is the one to go on
// with.
bool run_keep_open(struct grt_run *run);
// Moves the checkpoints of an earlier run out of a folder, before the first of this one.
bool run_keep_clear(struct grt_run *run);
// The rank that wrote is gone, and this one is the first now.
void run_keep_take_over(struct grt_run *run);
// Has the writer make ready.
void run_keep_begin(struct grt_run *run);
// A checkpoint of the present place; `now`: is handed over to the writer, once that has written the
// one before. Else it may wait, and a newer one take its place.
void run_keep_save(struct grt_run *run, bool now);
// Besides, as the best so far.
void run_keep_best(struct grt_run *run);
// Whether all that a checkpoint has is still there: part of it may have gone with a rank.
bool run_keep_whole(const struct grt_run *run);
// Before the first step: what can be left where a rank is gone before the first checkpoint.
void run_keep_origin(struct grt_run *run);
// What is not whole is not saved: the checkpoint before is left, and that is said.
void run_keep_older(struct grt_run *run);
// Hands over what waits, once the writer has nothing to do and the last one is long enough ago.
// Says what came of the one before.
void run_keep_due(struct grt_run *run);
// Brings to the disk what is on its way and what waits. False when some of it is not there; the
// sentence was said.
bool run_keep_finish(struct grt_run *run);
void run_keep_close(struct grt_run *run);
// The run's own values of an archive.
void run_keep_place(const struct grt_archive *archive, struct grt_run_place *place, double *spent);
// Whether it says which evaluations patience has counted.
bool run_keep_counts(const struct grt_archive *archive);
// The best of a step is its newest too: `one` and `other` may be the same archive.
void run_drop(struct grt_archive **one, const struct grt_archive *other);

// ---- behind its back: run_write.c ----

// Writes the archives, of which it becomes the owner, and comes back before they are written.
// Without any it has HDF5 make ready what it needs.
void run_write_begin(struct run_writing *writing);
// Waits for the end.
void run_write_end(struct run_writing *writing);

// Takes over what an archive has.
bool run_restore(struct grt_run *run, const struct grt_archive *archive);

#endif
