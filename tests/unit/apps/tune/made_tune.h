// SPDX-License-Identifier: Apache-2.0
// Settings to tune and a worker that are made up, for test_tune_jobs.c: speeds follow from the
// first number of a setting, and each task takes a second.
#ifndef TESTS_MADE_TUNE_H
#define TESTS_MADE_TUNE_H

#include "unit/apps/made_device.h"

#include <dirent.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "tune/tune.h"

#define MOST_TASKS 4096

// ---- in place of the library's ----

static bool possible(const struct grt_dev_info *info, const uint32_t *values,
                     char why[GRT_TUNABLE_WHY]) {
    (void)info;
    (void)values;
    why[0] = '\0';
    return true;
}

static uint32_t one(const uint32_t *values) {
    (void)values;
    return 1;
}

#define ALL_TYPES (1u << GRT_F32 | 1u << GRT_F16 | 1u << GRT_BF16)
static const struct grt_tunable tunables[] = {
    {.op = "gemm",
     .variant = "plain",
     .dtypes = ALL_TYPES,
     .key = GRT_KEY_GEMM_PLAIN,
     .classes = 1,
     .knobs = {{"WG", {8, 16, 32, 64, 128}}},
     .possible = possible,
     .lanes = one,
     .registers = one},
    {.op = "gemm",
     .variant = "tiled",
     .dtypes = 1u << GRT_F32,
     .key = GRT_KEY_GEMM_TILED_LARGE,
     .classes = 3,
     .knobs = {{"BM", {32, 64, 128, 256}},
               {"BN", {32, 64, 128, 256}},
               {"BK", {8, 16, 32}},
               {"TM", {4, 8}},
               {"TN", {4, 8}}},
     .possible = possible,
     .lanes = one,
     .registers = one},
};

const struct grt_tunable *grt_tunable(uint32_t i) {
    return i < 2 ? &tunables[i] : NULL;
}

// Of products of tiles the class follows from the rows.
bool grt_tunable_pick(const struct grt_tunable *tunable, const struct grt_dev_info *info,
                      struct grt_profile *profile, uint64_t rows, uint64_t columns, uint64_t batch,
                      struct grt_pick *pick) {
    (void)info;
    (void)columns;
    assert_int_equal(batch, 1);
    *pick = (struct grt_pick){.size = GRT_SIZE_LARGE};
    if (tunable->classes == 3) {
        pick->size = rows >= 1024 ? GRT_SIZE_LARGE : rows >= 256 ? GRT_SIZE_MEDIUM : GRT_SIZE_SMALL;
    }
    const struct grt_profile_value *value =
        grt_profile_get(profile, (enum grt_profile_key)(tunable->key + pick->size));
    for (uint32_t i = 0; i < value->count; i++) {
        pick->values[i] = (uint32_t)value->numbers[i];
    }
    return true;
}

struct grt_dev_list *grt_dev_list_create(void) {
    struct grt_dev_list *list = calloc(1, sizeof *list);
    list->count = 1;
    list->devices = &made.info;
    return list;
}

void grt_dev_list_destroy(struct grt_dev_list **list) {
    free(*list);
    *list = NULL;
}

static struct {
    struct tune_task tasks[MOST_TASKS];
    size_t count;
    double speeds[257];   // GFLOP/s by the first number; below 0: wrong
    double slower_small;  // speed of products below 64 rows with WG 32
    double duel;          // of the second side's time
    double spread;
    bool loses, claims, nobody, dies_in_duel;
    bool used[2];  // what VARIANTS says of both
    const char *best;
} m;

enum tune_news tune_worker_ask(struct tune_worker *worker, const struct tune_task *task,
                               struct tune_answer *answer) {
    assert_string_equal(worker->device.device, "opencl:0");
    *answer = (struct tune_answer){.good = true};
    assert_true(m.count < MOST_TASKS);
    m.tasks[m.count++] = *task;
    made.now += 1;
    if (m.nobody) {
        return TUNE_NOBODY;
    }
    if (task->kind == TUNE_VARIANTS) {
        for (uint32_t i = 0; i < 2; i++) {
            if (tunables[i].dtypes >> task->in & 1) {
                answer->tunables[answer->count] = i;
                answer->used[answer->count++] = m.used[i];
            }
        }
        snprintf(answer->best, sizeof answer->best, "%s", m.best);
        return TUNE_ANSWERED;
    }
    double work = 2e-9 * (double)task->shape.m * (double)task->shape.n * (double)task->shape.k;
    for (int side = 0; side < (task->kind == TUNE_DUEL ? 2 : 1); side++) {
        uint32_t first = task->values[side][0];
        double speed = m.speeds[first];
        speed = task->shape.m < 64 && first == 32 && m.slower_small > 0 ? m.slower_small : speed;
        if (speed < 0) {
            answer->good = false;
            snprintf(answer->why, sizeof answer->why, "the result is wrong");
            return TUNE_ANSWERED;
        }
        double seconds = work / speed * (side ? m.duel : 1);
        answer->times[side] = (struct tune_time){seconds, m.spread, seconds};
    }
    bool faster = answer->times[1].median < answer->times[0].median;
    answer->wins = m.claims || (!m.loses && faster);
    return task->kind == TUNE_DUEL && m.dies_in_duel ? TUNE_DIED : TUNE_ANSWERED;
}

void tune_worker_end(struct tune_worker *worker) {
    (void)worker;
}

static char folder[] = "/tmp/gpurt-tune-XXXXXX";

static void empty_folder(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/gpurt/opencl-made-up-9000.profile", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/gpurt", folder);
    rmdir(path);
}

static int begin(void **state) {
    memset(&m, 0, sizeof m);
    for (int i = 0; i < 257; i++) {
        m.speeds[i] = 1;
    }
    m.speeds[16] = 2;
    m.speeds[32] = 4;
    m.speeds[64] = 1.5;
    m.speeds[128] = -1;
    m.duel = 1;
    m.spread = 0.02;
    m.best = "wgmma";
    int code = made_begin(state);
    empty_folder();
    setenv("XDG_CONFIG_HOME", folder, 1);
    return code;
}

static int make(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int unmake(void **state) {
    (void)state;
    empty_folder();
    return rmdir(folder);
}

// What stands in the user's profile; "" where there is none.
static const char *profile_text(void) {
    static char text[4096];
    char path[128];
    snprintf(path, sizeof path, "%s/gpurt/opencl-made-up-9000.profile", folder);
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

static int tune(const char *words) {
    char line[1024];
    snprintf(line, sizeof line, "tune %s", words);
    m.count = 0;
    return made_run(cmd_tune, line);
}

#endif
