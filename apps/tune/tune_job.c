// SPDX-License-Identifier: Apache-2.0
// One setting: what is in use is measured first, then candidates until the time is over, then the
// best of them against what was in use, in turns.
#include "tune_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/talk.h"

// X(name, key, heading, unit, type, precision, width)
#define TUNE_COLUMNS(X)                                                                            \
    X(OP, "op", "op", NULL, TEXT, 0, 0)                                                            \
    X(VARIANT, "variant", "variant", NULL, TEXT, 0, 8)                                             \
    X(PRECISION, "precision", "types", NULL, TEXT, 0, 0)                                           \
    X(CLASS, "class", "class", NULL, TEXT, 0, 6)                                                   \
    X(SHAPE, "shape", "m x n x k", NULL, TEXT, 0, 15)                                              \
    X(TRANS, "trans", "trans", NULL, TEXT, 0, 0)                                                   \
    X(BEFORE, "before", "before", NULL, TEXT, 0, 16)                                               \
    X(BEFORE_RATE, "before_gflop_per_s", "", "GFLOP/s", NUMBER, 2, 9)                              \
    X(AFTER, "after", "after", NULL, TEXT, 0, 16)                                                  \
    X(AFTER_RATE, "after_gflop_per_s", "", "GFLOP/s", NUMBER, 2, 9)                                \
    X(SPREAD, "spread", "spread", NULL, SHARE, 1, 6)                                               \
    X(TRIED, "tried", "tried", NULL, COUNT, 0, 0)                                                  \
    X(WRONG, "failed", "failed", NULL, COUNT, 0, 0)                                                \
    X(RESULT, "result", "result", NULL, TEXT, 0, 0)

enum {
#define X(name, key, heading, unit, type, precision, width) TUNE_##name,
    TUNE_COLUMNS(X)
#undef X
        TUNE_COLUMN_COUNT,
};

static const struct table_column columns[] = {TUNE_COLUMNS(TABLE_COLUMN)};

struct run {
    struct tune *tune;
    struct tune_job *job;
    const struct grt_tunable *tunable;
    struct tune_search search;
    struct tune_time before, best;  // median 0: none
    uint32_t tried, failed;
};

struct table_desc tune_table_desc(struct output *output, enum table_format format, int argc,
                                  char **argv) {
    return (struct table_desc){.output = output,
                               .format = format,
                               .columns = columns,
                               .column_count = TUNE_COLUMN_COUNT,
                               .schema = "gpurt.tune/1",
                               .argc = argc,
                               .argv = argv};
}

bool tune_table_begin(struct tune *tune) {
    char title[TABLE_TEXT_SIZE];
    snprintf(title, sizeof title, "%s on %s: %s, %s %s", tune->op, tune->info.selector,
             tune->info.name, tune->info.driver, tune->info.driver_version);
    uint64_t shown = (1ull << TUNE_COLUMN_COUNT) - 1 - (1ull << TUNE_OP);
    return table_section(tune->table, title, shown, NULL, 0);
}

// ---- words ----

static void values_text(const struct grt_tunable *tunable, const uint32_t *values, char text[96]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t k = 0; k < GRT_PROFILE_NUMBERS && tunable->knobs[k].name && used < 96; k++) {
        used += (size_t)snprintf(text + used, 96 - used, "%s%u", k ? " " : "", values[k]);
    }
}

static const struct bench_gemm_shape *shape_at(const struct tune_job *job, uint32_t i) {
    return i == 0 ? &job->shape : &job->also[i - 1];
}

// Of one product of every shape.
static double rate(const struct run *run, double seconds) {
    double work = 0;
    for (uint32_t i = 0; i <= run->job->also_count; i++) {
        const struct bench_gemm_shape *s = shape_at(run->job, i);
        work += 2e-9 * (double)s->m * (double)s->n * (double)s->k;
    }
    return seconds > 0 ? work / seconds : 0;
}

static void shape_text(const struct tune_job *job, char text[64]) {
    int used = snprintf(text, 64, "%llux%llux%llu", (unsigned long long)job->shape.m,
                        (unsigned long long)job->shape.n, (unsigned long long)job->shape.k);
    if (job->also_count > 0) {
        snprintf(text + used, (size_t)(64 - used), " and %u more", job->also_count);
    }
}

// What matters most first: a terminal of 80 columns shows no more.
static void say_progress(struct run *run) {
    char best[96];
    double left = run->tune->end - grt_seconds();
    values_text(run->tunable, run->search.all[run->search.best].values, best);
    talk_progress(
        "%s %s %s: %.0f s left, %u of %zu tried, %u failed, best %.4g GFLOP/s (%.2fx): %s",
        run->tunable->variant, grt_dtype_text(run->job->in),
        grt_size_class_text(run->job->pick.size), left > 0 ? left : 0, run->tried,
        run->search.count, run->failed, rate(run, run->best.median),
        run->best.median > 0 ? run->before.median / run->best.median : 0, best);
}

// ---- trying ----

#define LEAST_SHAPE 128  // a smaller product is mostly overhead

bool tune_job_shape(struct tune *tune, struct tune_job *job, enum grt_size_class size,
                    double most) {
    static const uint32_t sizes[] = {16,  32,  48,  64,   96,   128,  192, 256,
                                     384, 512, 768, 1024, 1536, 2048, 4096};
    bool found = false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t n = sizes[i];
        struct grt_pick pick;
        if ((!found || n <= most || job->shape.m < LEAST_SHAPE) &&
            grt_tunable_pick(grt_tunable(job->tunable), &tune->info, tune->profile, n, n, 1,
                             &pick) &&
            pick.size == size) {
            job->shape = (struct bench_gemm_shape){n, n, n, job->shape.trans};
            job->pick = pick;
            found = true;
        }
    }
    return found;
}

// For tests: the first candidate of a run crashes or hangs.
static enum tune_fault fault(struct tune *tune, size_t candidate) {
    const char *wanted = getenv("GPURT_TUNE_FAULT");
    if (!wanted || candidate == 0 || tune->faulted) {
        return TUNE_NO_FAULT;
    }
    tune->faulted = true;
    return strcmp(wanted, "hang") == 0    ? TUNE_HANG
           : strcmp(wanted, "crash") == 0 ? TUNE_CRASH
                                          : TUNE_NO_FAULT;
}

// A fifth of the time for one candidate at most: one that hangs must not cost all of it. Whatever
// the budget, a busy machine must be able to compile and run one.
static double limit(const struct tune *tune) {
    double seconds = tune->budget / 5;
    return seconds < 10 ? 10 : seconds > 30 ? 30 : seconds;
}

// Seconds of a product; one that takes longer leaves time for few candidates.
static double slow(const struct tune *tune) {
    return tune->budget / 1000;
}

static struct tune_task task_of(const struct run *run, enum tune_task_kind kind) {
    double seconds = run->tune->budget / 300;
    return (struct tune_task){.kind = kind,
                              .tunable = run->job->tunable,
                              .in = run->job->in,
                              .shape = run->job->shape,
                              .limit = limit(run->tune),
                              .seconds = seconds < 0.05  ? 0.05
                                         : seconds > 0.2 ? 0.2
                                                         : seconds};
}

// Tries candidate i for all shapes; its time is 0 when it is not usable.
static enum tune_news try_one(struct run *run, size_t i, struct tune_time *time) {
    struct tune_task task = task_of(run, TUNE_TRY);
    struct tune_answer answer;
    char text[96];
    memcpy(task.values[0], run->search.all[i].values, sizeof task.values[0]);
    run->search.all[i].tried = true;
    task.fault = fault(run->tune, i);
    task.hopeless = run->tried ? 1.5 * run->best.fastest : slow(run->tune);
    *time = (struct tune_time){0};
    enum tune_news news = TUNE_ANSWERED;
    struct tune_time sum = {0};
    bool good = true;
    for (uint32_t shape = 0; good && shape <= run->job->also_count; shape++) {
        task.shape = *shape_at(run->job, shape);
        news = tune_worker_ask(&run->tune->worker, &task, &answer);
        if (news == TUNE_STOPPED || news == TUNE_NOBODY) {
            return news;
        }
        task.fault = TUNE_NO_FAULT;
        good = news == TUNE_ANSWERED && answer.good;
        tune_time_add(&sum, &answer.times[0]);
    }
    run->tried++;
    if (good) {
        *time = sum;
        return news;
    }
    run->failed++;
    values_text(run->tunable, run->search.all[i].values, text);
    if (run->tune->bench.common.verbose) {
        talk_error("%s %s: %s", run->tunable->variant, text, answer.why);
    }
    return news;
}

static enum tune_news search(struct run *run) {
    struct tune_time time;
    size_t next = 0;
    enum tune_news news = try_one(run, 0, &run->before);
    // A small product was the first; now the largest that leaves time for many candidates.
    uint64_t first = run->job->shape.m;
    if (run->before.median > 0 && !run->job->given &&
        tune_job_shape(run->tune, run->job, run->job->pick.size,
                       cbrt(0.5e9 * slow(run->tune) * rate(run, run->before.median))) &&
        run->job->shape.m > first) {
        run->tried = 0;
        news = try_one(run, 0, &run->before);
    }
    run->best = run->before;
    // A part of the time is kept for the comparison.
    double end = run->tune->deadline - 0.15 * (run->tune->deadline - grt_seconds());
    while (news != TUNE_STOPPED && news != TUNE_NOBODY && run->tune->level != TUNE_LEVEL_0 &&
           grt_seconds() < end && !talk_stopped() && tune_search_next(&run->search, &next)) {
        say_progress(run);
        news = try_one(run, next, &time);
        if (tune_time_leads(&time, &run->best)) {
            run->best = time;
            run->search.best = next;
        }
    }
    return news;
}

// The best against what was in use, in turns, for products of this shape.
static bool duel(struct run *run, const struct bench_gemm_shape *shape,
                 struct tune_answer *answer) {
    struct tune_task task = task_of(run, TUNE_DUEL);
    task.shape = *shape;
    memcpy(task.values[0], run->search.all[0].values, sizeof task.values[0]);
    memcpy(task.values[1], run->search.all[run->search.best].values, sizeof task.values[1]);
    task.seconds *= 8;
    task.limit *= 3;
    return tune_worker_ask(&run->tune->worker, &task, answer) == TUNE_ANSWERED && answer->good;
}

// A setting without classes serves every product, so one that was found for a shape of the user's
// must not make the others slower: whether it is no worse for the cube that is tuned otherwise.
static bool harmless(struct run *run) {
    struct tune_job other = *run->job;
    struct tune_answer answer;
    double most = cbrt(0.5e9 * slow(run->tune) * rate(run, run->before.median));
    if (!run->job->given || run->tunable->classes > 1 ||
        !tune_job_shape(run->tune, &other, run->job->pick.size, most)) {
        return true;
    }
    return duel(run, &other.shape, &answer) && !tune_duel_slower(&answer);
}

// Whether the best beats what was in use round by round, for one of the shapes at least, and makes
// nothing else slower.
static bool wins(struct run *run) {
    struct tune_answer answer;
    if (run->search.best == 0) {
        return false;
    }
    if (run->before.median <= 0) {
        return true;  // what was in use does not run here
    }
    struct tune_verdict verdict = {.shapes = 1 + run->job->also_count};
    for (uint32_t i = 0; i < verdict.shapes; i++) {
        if (!duel(run, shape_at(run->job, i), &answer) || !tune_verdict_add(&verdict, &answer)) {
            return false;
        }
    }
    run->before = verdict.before;
    run->best = verdict.best;
    return tune_verdict_wins(&verdict) && harmless(run);
}

static bool store(struct run *run) {
    const struct grt_dev_info *info = &run->tune->info;
    const uint32_t *values = run->search.all[run->search.best].values;
    struct grt_profile_value value = {0};
    char date[16];
    char shape[64];
    time_t now = time(NULL);
    for (; value.count < GRT_PROFILE_NUMBERS && run->tunable->knobs[value.count].name;
         value.count++) {
        value.numbers[value.count] = values[value.count];
    }
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    shape_text(run->job, shape);
    snprintf(value.from, sizeof value.from,
             "measured: %s, %.60s %.40s, %.4g GFLOP/s in %s %s; %.4g before", date, info->driver,
             info->driver_version, rate(run, run->best.median), grt_dtype_text(run->job->in), shape,
             rate(run, run->before.median));
    return grt_profile_store(info, (enum grt_profile_key)(run->tunable->key + run->job->pick.size),
                             &value);
}

static bool print_row(const struct run *run, const char *result) {
#define X(name, text) text,
    static const char *const ways[] = {BENCH_GEMM_TRANS(X)};
#undef X
    char before[96];
    char after[96];
    char shape[64];
    values_text(run->tunable, run->search.all[0].values, before);
    values_text(run->tunable, run->search.all[run->search.best].values, after);
    shape_text(run->job, shape);
    struct table_cell cells[TUNE_COLUMN_COUNT] = {
        [TUNE_OP] = TABLE_CELL(.text = run->tunable->op),
        [TUNE_VARIANT] = TABLE_CELL(.text = run->tunable->variant),
        [TUNE_PRECISION] = TABLE_CELL(.text = grt_dtype_text(run->job->in)),
        [TUNE_CLASS] = TABLE_CELL(.text = grt_size_class_text(run->job->pick.size)),
        [TUNE_SHAPE] = TABLE_CELL(.text = shape),
        [TUNE_TRANS] = TABLE_CELL(.text = ways[run->job->shape.trans & 3]),
        [TUNE_BEFORE] = TABLE_CELL(.text = before),
        [TUNE_BEFORE_RATE] = {.known = run->before.median > 0,
                              .number = rate(run, run->before.median)},
        [TUNE_AFTER] = TABLE_CELL(.text = after),
        [TUNE_AFTER_RATE] = {.known = run->best.median > 0, .number = rate(run, run->best.median)},
        [TUNE_SPREAD] = {.known = run->best.median > 0, .number = run->best.spread},
        [TUNE_TRIED] = TABLE_CELL(.count = run->tried),
        [TUNE_WRONG] = TABLE_CELL(.count = run->failed),
        [TUNE_RESULT] = TABLE_CELL(.text = result),
    };
    return !run->tune->table || table_row(run->tune->table, cells);
}

static int finish(struct run *run) {
    const char *result = "kept";
    int code = COMMAND_OK;
    run->job->measured = run->best.median > 0;
    if (run->tune->level == TUNE_LEVEL_0) {
        result = "measured";
    } else if (run->best.median > 0 && wins(run)) {
        bool stored = store(run);
        result = stored ? "stored" : "not stored";
        run->tune->stored += stored;
        code = stored ? COMMAND_OK : command_exit_of(grt_last_status());
    } else if (run->best.median > 0) {
        run->search.best = 0;
        run->best = run->before;
    } else {
        result = run->tried ? "none runs" : "not tried";
    }
    print_row(run, result);
    return code;
}

int tune_job_run(struct tune *tune, struct tune_job *job) {
    struct run run = {.tune = tune, .job = job, .tunable = grt_tunable(job->tunable)};
    int code = COMMAND_INTERNAL;
    if (!tune_search_begin(&run.search, run.tunable, &tune->info, job->pick.values,
                           (uint64_t)time(NULL) * 2654435761u)) {
        talk_error("out of memory");
        return code;
    }
    talk_progress("%s %s: measuring what is in use", run.tunable->op, run.tunable->variant);
    enum tune_news news = search(&run);
    code = news == TUNE_NOBODY ? COMMAND_NO_DEVICE : finish(&run);
    tune_search_end(&run.search);
    return code;
}
