// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run: a folder with the newest and the best, or one file that is replaced.
//
// What an earlier run has left is moved aside, never replaced: the checkpoints of a folder into
// FOLDER/earlier-1, the file a.h5 to a-earlier-1.h5.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/whole_file.h"
#include "gpurt/checkpoint.h"
#include "run_parts.h"
#include "run_ranks.h"

#define JUDGED "patience_judged"
#define EVALUATED "evaluated"
#define BEST_SCORE "best_score"
#define BEST_STEP "best_step"

// ---- before the start ----

static bool lock_dir(struct grt_run *run) {
    char path[GRT_WHOLE_FILE_PATH + 16];
    char what[GRT_WHOLE_FILE_PATH + 32];
    snprintf(path, sizeof path, "%.4096s/.lock", run->desc.dir);
    snprintf(what, sizeof what, "checkpoint_dir %.4096s", run->desc.dir);
    return grt_lock_take(&run->lock, path, what);
}

static bool claim_file(struct grt_run *run) {
    const char *path = run->desc.file;
    char file[GRT_WHOLE_FILE_PATH];
    char lock[GRT_WHOLE_FILE_PATH + 8];
    int error = grt_whole_file_obstacle(path);
    if (error) {
        return grt_fail(GRT_NO_OUTPUT,
                        "cannot write the checkpoint %s: %s; --checkpoint FILE names another", path,
                        strerror(error));
    }
    // Devices and pipes are nobody's own.
    if (!grt_whole_file_makes(path, file)) {
        return true;
    }
    snprintf(lock, sizeof lock, "%s.lock", file);
    if (!grt_lock_take(&run->lock, lock, path)) {
        return false;
    }
    grt_checkpoint_clean(file);
    return true;
}

static struct run_found look_at(const char *path) {
    struct stat info;
    bool any = path && stat(path, &info) == 0;
    return any ? (struct run_found){true, (uint64_t)info.st_dev, (uint64_t)info.st_ino}
               : (struct run_found){.any = false};
}

bool run_keep_check(struct grt_run *run) {
    const struct grt_run_desc *d = &run->desc;
    struct stat info;
    run->found = look_at(d->file);
    if (!run_writes(run)) {
        return true;
    }
    if (!grt_runlog_check(
            &(struct grt_runlog_desc){.jsonl = d->log, .tensorboard = d->tensorboard})) {
        return false;
    }
    if (d->file) {
        return claim_file(run);
    }
    // An existing folder is made sure of, and locked; one that is missing is made when the rest is
    // right.
    return stat(d->dir, &info) != 0 || (grt_checkpoint_make_dir(d->dir) && lock_dir(run));
}

bool grt_run_newest(struct grt_run *run, const struct grt_archive **newest) {
    const char *dir = run->desc.resume ? run->desc.dir : NULL;
    bool any = grt_checkpoint_any(dir);
    if (any && !run->newest) {
        run->newest = grt_checkpoint_newest(dir);
    }
    *newest = run->newest;
    return !any || run->newest;
}

bool run_keep_open(struct grt_run *run) {
    const char *dir = run->desc.dir;
    if (!dir) {
        return true;
    }
    // Made now: a folder that cannot be written would be found out after an epoch of work.
    if (run_writes(run) && (!grt_checkpoint_make_dir(dir) || (!run->lock.held && !lock_dir(run)))) {
        return false;
    }
    bool any = grt_checkpoint_any(dir);
    run->earlier = any && !run->desc.resume && run_writes(run);
    const struct grt_archive *newest;
    if (!grt_run_newest(run, &newest)) {
        return false;
    }
    if (run->desc.resume && !newest) {
        char text[GRT_WHOLE_FILE_PATH + 64];
        snprintf(text, sizeof text, "no checkpoint in %.4096s: the run begins anew", dir);
        grt_run_say(run, GRT_RUN_NEWS_NOTE, text);
    }
    return true;
}

// ---- an earlier run's ----

bool run_keep_clear(struct grt_run *run) {
    char text[GRT_WHOLE_FILE_PATH + 128];
    char aside[GRT_WHOLE_FILE_PATH + 32];
    if (!run->earlier) {
        return true;
    }
    if (!grt_checkpoint_set_aside(run->desc.dir, aside, sizeof aside)) {
        return false;
    }
    run->earlier = false;
    snprintf(text, sizeof text, "checkpoints of an earlier run were moved to %s", aside);
    grt_run_say(run, GRT_RUN_NEWS_NOTE, text);
    return true;
}

// Characters of a name before its ".h5".
static int stem_of(const char *path) {
    size_t length = strlen(path);
    return (int)(length > 3 && strcmp(path + length - 3, ".h5") == 0 ? length - 3 : length);
}

// Of a link it is the file behind it that moves; devices and pipes stay where they are.
static bool set_file_aside(struct grt_run *run, const char *path) {
    char file[GRT_WHOLE_FILE_PATH];
    char kept[GRT_WHOLE_FILE_PATH + 32];
    char text[2 * GRT_WHOLE_FILE_PATH + 64];
    for (uint32_t i = 1; grt_whole_file_replaces(path, file); i++) {
        int stem = stem_of(file);
        snprintf(kept, sizeof kept, "%.*s-earlier-%u%s", stem, file, i, file + stem);
        if (access(kept, F_OK) == 0) {
            continue;
        }
        if (rename(file, kept) != 0) {
            return grt_fail(GRT_NO_OUTPUT, "cannot move %s to %s: %s", file, kept, strerror(errno));
        }
        snprintf(text, sizeof text, "the earlier %s is now %s", file, kept);
        grt_run_say(run, GRT_RUN_NEWS_NOTE, text);
    }
    return true;
}

// ---- making ----

// In blocks, which compilers look through by vectors: the 90 MB of a ResNet-18 with its optimizer
// take 21 ms of a core, one by one 35 (Xeon, 2026-11).
static bool all_finite(const float *numbers, uint64_t count) {
    enum { BLOCK = 256 };
    const uint32_t exponent = 0x7f800000u;
    uint64_t k = 0;
    for (; k + BLOCK <= count; k += BLOCK) {
        uint32_t bits[BLOCK], found = 0;
        memcpy(bits, numbers + k, sizeof bits);
        for (uint32_t i = 0; i < BLOCK; i++) {
            found |= (bits[i] & exponent) == exponent;
        }
        if (found) {
            return false;
        }
    }
    while (k < count && isfinite(numbers[k])) {
        k++;
    }
    return k == count;
}

static const char *nonfinite_tensor(const struct grt_archive *archive) {
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *tensor = &archive->tensors[i];
        const float *numbers = tensor->data;
        uint64_t count = tensor->dtype == GRT_F32 ? tensor->bytes / sizeof *numbers : 0;
        if (!all_finite(numbers, count)) {
            return tensor->name;
        }
    }
    return NULL;
}

// What is not finite would replace something that works.
static bool check_finite(struct grt_run *run, const struct grt_archive *archive) {
    const char *remedy = run->start.trainer->remedy;
    const char *name = remedy ? nonfinite_tensor(archive) : NULL;
    char text[GRT_WHOLE_FILE_PATH + 512];
    if (!name) {
        return true;
    }
    snprintf(text, sizeof text, "step %llu: %s is not finite, and %s is left as it was. %s",
             (unsigned long long)run->place.step, name,
             run->desc.file ? run->desc.file : run->desc.dir, remedy);
    struct grt_run_row row = {.event = GRT_RUN_NONFINITE};
    grt_run_row_text(&row, GRT_FIELD_TENSOR, name);
    grt_run_tell(run, &row);
    grt_run_say(run, GRT_RUN_NEWS_FAULT, text);
    run->nonfinite = true;
    return false;
}

// How the numbers of the model are spread, once for a step.
static void tell_spread(struct grt_run *run, const struct grt_archive *archive) {
    const struct grt_config *c = run->start.config;
    if (!c || !c->histograms || !run->log || run->spread_step == run->place.step + 1) {
        return;
    }
    run->spread_step = run->place.step + 1;
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *t = &archive->tensors[i];
        if (t->dtype == GRT_F32 && strncmp(t->name, "model/", 6) == 0) {
            grt_runlog_histogram(run->log, run->place.step, t->name, t->data, t->bytes / 4);
        }
    }
}

static struct grt_archive *make_archive(struct grt_run *run) {
    const struct grt_trainer *trainer = run->start.trainer;
    const struct grt_run_place *p = &run->place;
    struct grt_archive *archive = grt_archive_create();
    bool best = trainer->keeps_best && p->any_best;
    // Ranks that save together begin it together: one without an archive would keep the others
    // waiting.
    bool begun =
        trainer->saves_together
            ? grt_comm_all(run->desc.comm, "cannot save: it has no host memory for a checkpoint",
                           archive != NULL)
            : archive != NULL;
    bool good = begun && archive && trainer->save(run->start.self, run, archive) &&
                grt_limits_save(&run->desc.limits, &p->patience, run_seconds(run), archive) &&
                (run->desc.limits.patience == 0 ||
                 grt_archive_set_whole(archive, JUDGED, (int64_t)p->judged)) &&
                (!trainer->keeps_best ||
                 grt_archive_set_whole(archive, EVALUATED, (int64_t)p->evaluated)) &&
                (!best || (grt_archive_set_real(archive, BEST_SCORE, p->best_score) &&
                           grt_archive_set_whole(archive, BEST_STEP, (int64_t)p->best_step))) &&
                check_finite(run, archive);
    if (!good) {
        grt_archive_destroy(&archive);
    }
    return archive;
}

void run_keep_place(const struct grt_archive *archive, struct grt_run_place *place, double *spent) {
    *place = (struct grt_run_place){
        .judged = (uint64_t)grt_archive_whole(archive, JUDGED, 0),
        .any_best = grt_archive_value(archive, BEST_SCORE) != NULL,
        .best_score = grt_archive_real(archive, BEST_SCORE, 0),
        .best_step = (uint64_t)grt_archive_whole(archive, BEST_STEP, 0),
    };
    place->evaluated = (uint64_t)grt_archive_whole(archive, EVALUATED, (int64_t)RUN_UNKNOWN);
    grt_limits_load(archive, &place->patience, spent);
}

bool run_keep_counts(const struct grt_archive *archive) {
    return grt_archive_value(archive, JUDGED) != NULL;
}

void run_drop(struct grt_archive **one, const struct grt_archive *other) {
    if (*one != other) {
        grt_archive_destroy(one);
    }
    *one = NULL;
}

// ---- writing ----

// FOLDER/best.h5, or a-best.h5 beside the file a.h5.
static void best_path(const struct grt_run *run, char *path, size_t capacity) {
    const char *file = run->desc.file;
    if (!file) {
        snprintf(path, capacity, "%s/best.h5", run->desc.dir);
        return;
    }
    int stem = stem_of(file);
    snprintf(path, capacity, "%.*s-best%s", stem, file, file + stem);
}

static void newest_path(const struct grt_run *run, char *path, size_t capacity) {
    if (run->desc.file) {
        snprintf(path, capacity, "%s", run->desc.file);
    } else {
        grt_checkpoint_path(run->desc.dir, run->pending_step, path, capacity);
    }
}

static bool came_out(const struct run_file *file) {
    return file->good || grt_fail(file->status, "%s", file->why);
}

// Ends the writing that was begun, and says what came of it; false where that is not all that was
// to be written.
static bool end_writing(struct grt_run *run) {
    struct run_writing *w = &run->writing;
    bool newest = w->newest.archive != NULL, best = w->best.archive != NULL;
    if (!w->active) {
        return true;
    }
    run_write_end(w);
    if (newest || best) {  // not where the writer only warmed up
        run->write_time = grt_seconds();
    }
    if (best) {
        run->best_unwritten = !came_out(&w->best);
        run->best_written = run->best_written || !run->best_unwritten;
    }
    if (newest) {
        run->unwritten = !came_out(&w->newest);
        run->written = run->written || !run->unwritten;
    }
    if (newest && !run->unwritten) {
        grt_run_say(run, GRT_RUN_NEWS_CHECKPOINT, w->newest.path);
    }
    return !(newest && run->unwritten) && !(best && run->best_unwritten);
}

// Moves what waits over to the writer, which has nothing to do.
static void hand_over(struct grt_run *run) {
    const struct grt_run_desc *d = &run->desc;
    struct run_writing *w = &run->writing;
    if (!run_writes(run)) {
        run_drop(&run->pending, run->pending_best);
        grt_archive_destroy(&run->pending_best);
    }
    if (!run->pending && !run->pending_best) {
        return;
    }
    w->dir = d->dir;
    w->keep = d->keep;
    w->newest.step = run->pending_step;
    newest_path(run, w->newest.path, sizeof w->newest.path);
    best_path(run, w->best.path, sizeof w->best.path);
    // An earlier run's files are moved by the run itself, which says so.
    if (run->pending_best && d->file && !run->best_written && !set_file_aside(run, w->best.path)) {
        run_drop(&run->pending_best, run->pending);
        run->best_unwritten = true;
    }
    if (run->pending && d->file && !run->written && !set_file_aside(run, w->newest.path)) {
        run_drop(&run->pending, run->pending_best);
        run->unwritten = true;
    }
    w->newest.archive = run->pending;
    w->best.archive = run->pending_best;
    run->pending = run->pending_best = NULL;
    run_write_begin(w);
}

void run_keep_take_over(struct grt_run *run) {
    struct run_found now = look_at(run->desc.file);
    // Files are made whole and then get their name: another file is this run's.
    run->written =
        run->written || (now.any && (!run->found.any || now.device != run->found.device ||
                                     now.number != run->found.number));
    // What that rank had not brought to the disk is saved anew. Without a lock it is so too.
    run->saved_step = run->left_step = RUN_UNSAVED;
    (void)(run->desc.file ? claim_file(run) : lock_dir(run));
}

void run_keep_begin(struct grt_run *run) {
    if (run_writes(run)) {
        run_write_begin(&run->writing);
    }
}

void run_keep_due(struct grt_run *run) {
    if (run->writing.active && run->writing.done) {
        end_writing(run);
    }
    if (!run->writing.active && grt_seconds() - run->write_time >= RUN_WRITE_SECONDS) {
        hand_over(run);
    }
}

bool run_keep_finish(struct grt_run *run) {
    bool good = end_writing(run);
    hand_over(run);
    return end_writing(run) && good;
}

// Whether this rank has an archive to make: it writes it, takes part in an exchange, or sees
// whether all is finite, which decides how all go on.
static bool makes_archives(const struct grt_run *run) {
    const struct grt_trainer *trainer = run->start.trainer;
    return run_writes(run) || trainer->saves_together || trainer->remedy;
}

void run_keep_save(struct grt_run *run, bool now) {
    if (!makes_archives(run)) {
        run->saved_step = run->left_step = run->place.step;
        return;
    }
    bool best = run->pending_best && run->pending_best_step == run->place.step;
    // The best of this step was made before the time may have come to its end.
    best = best && grt_limits_save(&run->desc.limits, &run->place.patience, run_seconds(run),
                                   run->pending_best);
    struct grt_archive *made = best ? run->pending_best : make_archive(run);
    run->unmade = !made && run_keep_whole(run);
    if (!made) {
        return;  // the one that waits is still good
    }
    tell_spread(run, made);
    grt_archive_destroy(&run->origin);
    run_drop(&run->pending, run->pending_best);
    run->pending = made;
    run->pending_step = run->place.step;
    run->saved_step = run->left_step = run->place.step;
    if (now) {
        end_writing(run);
        hand_over(run);
    } else {
        run_keep_due(run);
    }
}

void run_keep_best(struct grt_run *run) {
    if (!makes_archives(run)) {
        return;
    }
    struct grt_archive *made = make_archive(run);
    run->best_unmade = !made;
    if (made) {
        tell_spread(run, made);
        run_drop(&run->pending_best, run->pending);
        run->pending_best = made;
        run->pending_best_step = run->place.step;
    }
}

// ---- a rank that is gone ----

bool run_keep_whole(const struct grt_run *run) {
    return !run->start.trainer->saves_together || !(grt_comm_stop(run->desc.comm) & GRT_STOP_LOST);
}

void run_keep_origin(struct grt_run *run) {
    bool several = grt_comm_ranks(run->desc.comm) > 1;
    if (!several || !run->start.trainer->saves_together || run->saved_step != RUN_UNSAVED) {
        return;
    }
    run->origin = make_archive(run);
    if (!run_writes(run)) {
        grt_archive_destroy(&run->origin);
    }
}

void run_keep_older(struct grt_run *run) {
    char text[160];
    if (run->origin) {
        run->pending = run->origin;
        run->pending_step = run->saved_step = run->left_step = run->start_step;
        run->origin = NULL;
    }
    if (run->left_step != RUN_UNSAVED && run->left_step != run->place.step) {
        snprintf(text, sizeof text,
                 "step %llu went with the rank that is gone: the checkpoint is that of step %llu",
                 (unsigned long long)run->place.step, (unsigned long long)run->left_step);
        grt_run_say(run, GRT_RUN_NEWS_NOTE, text);
    }
}

// ---- going back ----

bool grt_run_back(struct grt_run *run, bool *none) {
    // The first rank alone knows: one that makes no checkpoint takes it for made, and the first may
    // have had no memory for it.
    uint64_t step = run->saved_step;
    if (!grt_comm_lead(run->desc.comm, &step, sizeof step)) {
        return false;
    }
    *none = step == RUN_UNSAVED;
    if (*none) {
        return true;
    }
    // The others read it behind the first rank's write.
    if (!grt_comm_all(run->desc.comm, "cannot go back: its checkpoint is not written",
                      run_keep_finish(run))) {
        return false;
    }
    struct grt_archive *archive =
        run->desc.file ? grt_checkpoint_load(run->desc.file) : grt_checkpoint_newest(run->desc.dir);
    bool good = archive && run_restore(run, archive);
    grt_archive_destroy(&archive);
    return good;
}

void run_keep_close(struct grt_run *run) {
    run_write_end(&run->writing);
    run_drop(&run->pending, run->pending_best);
    grt_archive_destroy(&run->pending_best);
    grt_archive_destroy(&run->origin);
    grt_archive_destroy(&run->newest);
    grt_lock_release(&run->lock);
}
