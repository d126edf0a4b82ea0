// SPDX-License-Identifier: Apache-2.0
#include "run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char run_kit_folder[64];
char run_kit_data[96];

void run_kit_begin_with(enum grt_make make, uint64_t samples) {
    // In memory where that is to be had: each checkpoint waits for the disk.
    snprintf(run_kit_folder, sizeof run_kit_folder, "%s/gpurt-supervised-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(run_kit_folder));
    snprintf(run_kit_data, sizeof run_kit_data, "%s/d.h5", run_kit_folder);
    assert_true(grt_data_make(grt_make_desc(.path = run_kit_data, .make = make, .samples = samples,
                                            .features = 4, .points = 5, .classes = 3, .noise = -1,
                                            .seed = 1)));
}

void run_kit_begin(enum grt_make make) {
    run_kit_begin_with(make, 300);
}

void run_kit_end(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", run_kit_folder);
    assert_int_equal(system(command), 0);
}

struct grt_config run_kit_bare(const char *dir) {
    struct grt_config c;
    char path[128];
    grt_config_init(&c);
    snprintf(path, sizeof path, "%s/%s", run_kit_folder, dir);
    assert_true(grt_config_set(&c, GRT_CONFIG_DATA, run_kit_data));
    assert_true(grt_config_set(&c, GRT_CONFIG_CHECKPOINT_DIR, path));
    return c;
}

struct grt_config run_kit_config(const char *dir, const char *const *pairs) {
    struct grt_config c = run_kit_bare(dir);
    const char *const fixed[] = {"hidden=8", "depth=2",         "batch_size=16",
                                 "epochs=2", "num_workers=1",   "log_interval=5",
                                 "keep=2",   "schedule=cosine", "cache=none"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        assert_true(grt_config_override(&c, fixed[i]));
    }
    for (; pairs && *pairs; pairs++) {
        assert_true(grt_config_override(&c, *pairs));
    }
    return c;
}
static void on_epoch(void *context, const struct grt_run_report *r) {
    struct run_kit_epochs *e = context;
    e->step = r->step;
    if (r->news != GRT_RUN_NEWS_ROW) {
        return;
    }
    if (r->row->event == GRT_RUN_EVALUATE && e->count < RUN_KIT_EPOCHS) {
        e->trained[e->count] = r->row->numbers[GRT_FIELD_TRAIN_LOSS];
        e->judged[e->count] = r->row->numbers[GRT_FIELD_LOSS];
        e->count++;
    }
    if (r->row->event == GRT_RUN_ROLLBACK && e->rollbacks < 4) {
        e->factors[e->rollbacks] = r->row->numbers[GRT_FIELD_LR_FACTOR];
        e->rollbacks++;
    }
}

static bool on_epoch_stop(void *context) {
    const struct run_kit_epochs *e = context;
    return e->stop_at > 0 && e->step >= e->stop_at;
}

enum grt_ending run_kit_train(const struct grt_config *c, bool resume, struct run_kit_epochs *e) {
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                            .config = c,
                                                            .resume = resume,
                                                            .lockstep = e->stop_at > 0,
                                                            .stop = on_epoch_stop,
                                                            .report = on_epoch,
                                                            .context = e});
    assert_non_null(run);
    enum grt_ending end = grt_run_go(grt_supervised_driver(run));
    grt_supervised_destroy(&run);
    return end;
}

void run_kit_equal(const char *a, const char *b) {
    char command[512];
    snprintf(command, sizeof command, "cmp '%s/%s' '%s/%s'", run_kit_folder, a, run_kit_folder, b);
    assert_int_equal(system(command), 0);
}

void run_kit_report(void *context, const struct grt_run_report *r) {
    struct run_kit_watch *w = context;
    w->news[r->news]++;
    w->step = r->step;
    if (r->news == GRT_RUN_NEWS_ROW) {
        w->rows[r->row->event]++;
    }
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_EVALUATE) {
        const double *numbers = r->row->numbers;
        double loss = numbers[GRT_FIELD_TRAIN_LOSS];
        w->first_loss = w->rows[GRT_RUN_EVALUATE] == 1 ? loss : w->first_loss;
        w->last_loss = loss;
        w->data_share = fmax(w->data_share, numbers[GRT_FIELD_DATA_SHARE]);
        w->accuracy =
            grt_run_row_has(r->row, GRT_FIELD_ACCURACY) ? numbers[GRT_FIELD_ACCURACY] : -1;
        assert_true(grt_run_row_has(r->row, GRT_FIELD_LOSS) && isfinite(numbers[GRT_FIELD_LOSS]));
    }
    if (r->news == GRT_RUN_NEWS_FAULT || r->news == GRT_RUN_NEWS_NOTE) {
        snprintf(w->text, sizeof w->text, "%.255s", r->text);
    }
}

static bool on_stop(void *context) {
    const struct run_kit_watch *w = context;
    return w->stop_at > 0 && w->step >= w->stop_at;
}

struct grt_supervised *run_kit_create(const struct grt_config *c, bool resume,
                                      struct run_kit_watch *w) {
    return grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                               .config = c,
                                                               .resume = resume,
                                                               .lockstep = w->stop_at > 0,
                                                               .stop = on_stop,
                                                               .report = run_kit_report,
                                                               .context = w});
}

enum grt_ending run_kit_watched(const struct grt_config *c, bool resume, struct run_kit_watch *w) {
    struct grt_supervised *run = run_kit_create(c, resume, w);
    assert_non_null(run);
    enum grt_ending end = grt_run_go(grt_supervised_driver(run));
    grt_supervised_destroy(&run);
    return end;
}
