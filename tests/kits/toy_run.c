// SPDX-License-Identifier: Apache-2.0
#include "toy_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char toy_folder[64];

void toy_enter(void) {
    snprintf(toy_folder, sizeof toy_folder, "/tmp/gpurt-run-XXXXXX");
    assert_non_null(mkdtemp(toy_folder));
}

void toy_leave(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", toy_folder);
    assert_int_equal(system(command), 0);
}

const char *toy_path(const char *name) {
    static char paths[16][128];
    static uint32_t next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", toy_folder, name);
    return path;
}

bool toy_advance(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    struct toy *t = self;
    uint64_t *step = &grt_run_place(run)->step;
    // Nothing goes beyond an evaluation that may be the end.
    while (turn->more && t->begun < *step + t->ahead && grt_run_ahead(run, t->begun) > 0 &&
           !(t->begun > *step && grt_run_decides(run) &&
             (grt_run_due(run, t->begun) & GRT_DUE_EVALUATE))) {
        t->begun++;
    }
    turn->idle = t->begun == *step;
    for (int i = 0; i < 2 && t->begun > *step && !(i && grt_run_due(run, *step)); i++) {
        struct grt_run_row row = {.event = GRT_RUN_TRAIN};
        ++*step;
        grt_run_row_set(&row, GRT_FIELD_LOSS, 1.0 / (double)*step);
        grt_run_tell(run, &row);
        t->weight = t->weight * 1.5f + (float)*step;
        t->step = *step;
        if (t->after) {
            t->after(t);
        }
    }
    t->step = *step;
    return true;
}

static bool evaluate(void *self, struct grt_run *run, bool more, struct grt_run_row *row,
                     bool *stopped) {
    struct toy *t = self;
    uint64_t step = grt_run_place(run)->step;
    // What was begun behind an evaluation has it done.
    *stopped = !more && t->begun == step;
    if (!*stopped) {
        t->evaluated[step]++;
        row->score = t->scores[step];
        grt_run_row_set(row, GRT_FIELD_RETURN, row->score);
    }
    return true;
}

static bool save(void *self, const struct grt_run *run, struct grt_archive *archive) {
    struct toy *t = self;
    uint64_t step = grt_run_info(run).step;
    const uint64_t shape[1] = {1};
    t->saved[step]++;
    const uint64_t many[1] = {TOY_MANY};
    float numbers[TOY_MANY] = {0};
    numbers[t->many_at] = t->many;
    return grt_archive_add(archive, "model/weight", GRT_F32, 1, shape, &t->weight) &&
           grt_archive_add(archive, "model/many", GRT_F32, 1, many, numbers) &&
           grt_archive_set_whole(archive, "step", (int64_t)step);
}

static bool load(void *self, const struct grt_run *run, const struct grt_archive *archive,
                 struct grt_run_place *place) {
    struct toy *t = self;
    (void)run;
    place->step = t->begun = t->step = (uint64_t)grt_archive_whole(archive, "step", 0);
    memcpy(&t->weight,
           grt_archive_find((struct grt_archive *)(uintptr_t)archive, "model/weight")->data,
           sizeof t->weight);
    return true;
}

const struct grt_trainer toy_trainer = {.kind = "toy",
                                        .all = GRT_ENDED_ITERATIONS,
                                        .keeps_best = true,
                                        .remedy = "None is known",
                                        .advance = toy_advance,
                                        .evaluate = evaluate,
                                        .save = save,
                                        .load = load};

static void on_report(void *context, const struct grt_run_report *r) {
    struct toy *t = context;
    t->announced += r->news == GRT_RUN_NEWS_BEGUN;
    if (r->news == GRT_RUN_NEWS_ROW) {
        // Whoever reads of a step may stop the run, and then the step is not lost.
        assert_true(t->announced == 1 || r->row->event != GRT_RUN_TRAIN);
        t->rows[r->row->event]++;
        t->last = r->row->event;
        t->eta = r->row->eta;
        if (grt_run_row_has(r->row, GRT_FIELD_SECONDS)) {
            double seconds = r->row->numbers[GRT_FIELD_SECONDS];
            assert_true(seconds >= t->seconds);
            t->seconds = seconds;
            if (r->row->event == GRT_RUN_TRAIN) {
                t->trained = t->rows[GRT_RUN_TRAIN] == 1 ? seconds : t->trained;
                t->trained_at = seconds;
            }
        }
        assert_true(r->row->event == GRT_RUN_START || grt_run_row_has(r->row, GRT_FIELD_SECONDS));
    }
    if (r->news == GRT_RUN_NEWS_CHECKPOINT) {
        t->written += access(r->text, F_OK) == 0;
    }
    if (r->news == GRT_RUN_NEWS_FAULT || r->news == GRT_RUN_NEWS_NOTE) {
        snprintf(t->text, sizeof t->text, "%.511s", r->text);
    }
}

static bool on_stop(void *context) {
    const struct toy *t = context;
    return t->stop_at > 0 && t->step >= t->stop_at;
}

enum grt_ending toy_go(struct toy *t, struct grt_run_desc desc, struct grt_run_start start) {
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    struct grt_archive *from = NULL;
    assert_non_null(dev);
    desc.stop = on_stop;
    desc.report = on_report;
    desc.context = t;
    start.trainer = t->trainer ? t->trainer : &toy_trainer;
    start.self = t;
    start.dev = dev;
    t->ahead = t->ahead ? t->ahead : 1;
    t->announced = 0;
    if (desc.file && desc.resume) {
        from = grt_checkpoint_load(desc.file);
        assert_non_null(from);
        start.from = from;
    }
    struct grt_run *run = grt_run_create(&desc);
    assert_non_null(run);
    assert_true(grt_run_begin(run, &start));
    enum grt_ending ended = grt_run_go(run);
    assert_int_equal(grt_run_info(run).ended, ended);
    t->best_step = grt_run_info(run).place.best_step;
    assert_in_range(t->announced, 0, 1);
    grt_run_destroy(&run);
    grt_archive_destroy(&from);
    grt_dev_destroy(&dev);
    return ended;
}

void toy_rise(struct toy *t) {
    for (int i = 0; i < TOY_MOST; i++) {
        t->scores[i] = i;
    }
}

uint64_t toy_step_in(const char *path) {
    struct grt_archive *archive = grt_checkpoint_load(path);
    assert_non_null(archive);
    uint64_t step = (uint64_t)grt_archive_whole(archive, "step", -1);
    grt_archive_destroy(&archive);
    return step;
}
