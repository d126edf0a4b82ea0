// SPDX-License-Identifier: Apache-2.0
// Tries settings in a child process that opens the device and serves one task after the other. A
// child that crashed or did not answer in time is replaced at the next task.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/gemm/bench_gemm_case.h"
#include "cli/talk.h"
#include "tune.h"

#define OPEN_SECONDS 60.0  // a driver's first start on a machine can take long
#define MAX_PRODUCTS 1024u
#define ROUNDS 7        // samples of a candidate at least
#define DUEL_ROUNDS 15  // and of each side when two are compared

// Odd in every way and small enough to be checked everywhere; then without what some variants do
// not take.
static const struct bench_gemm_shape ragged[] = {
    {203, 131, 77, 0}, {200, 136, 72, 0}, {192, 128, 64, 0}};
#define RAGGED_COUNT (sizeof ragged / sizeof *ragged)

// ---- in the child ----

struct server {
    struct bench bench;
    struct bench_gemm_case cases[2];  // the ragged one, and the one that is timed
    bool begun;
    uint32_t tunable;  // that they are for
};

// The i-th variant for a product of this shape, or NULL; of `variant` alone, where that is given.
static const char *variant_of(struct server *s, const struct bench_gemm_shape *shape,
                              enum grt_dtype in, const char *variant, uint32_t i) {
    bool a_t = (shape->trans & 2) != 0, b_t = (shape->trans & 1) != 0;
    struct grt_tensor a = {.dtype = in, .rank = 2, .shape = {shape->m, shape->k}};
    struct grt_tensor b = {.dtype = in, .rank = 2, .shape = {shape->k, shape->n}};
    struct grt_tensor c = {.dtype = in, .rank = 2, .shape = {shape->m, shape->n}};
    if (a_t) {
        a.shape[0] = shape->k;
        a.shape[1] = shape->m;
    }
    if (b_t) {
        b.shape[0] = shape->n;
        b.shape[1] = shape->k;
    }
    struct grt_gemm_desc desc = {
        .a = &a, .b = &b, .c = &c, .a_transposed = a_t, .b_transposed = b_t, .variant = variant};
    return grt_gemm_variant(s->bench.dev, &desc, i);
}

static struct bench_gemm_shape ragged_for(struct server *s, const struct tune_task *task) {
    struct bench_gemm_shape shape = {0};
    for (size_t i = 0; i < RAGGED_COUNT; i++) {
        shape = ragged[i];
        shape.trans = task->shape.trans;
        if (variant_of(s, &shape, task->in, grt_tunable(task->tunable)->variant, 0)) {
            break;
        }
    }
    return shape;
}

static void end_cases(struct server *s) {
    if (s->begun) {
        bench_gemm_case_end(&s->cases[0]);
        bench_gemm_case_end(&s->cases[1]);
    }
    s->begun = false;
}

// Operands for the task, kept until another shape, type or variant is asked for.
static bool begin_cases(struct server *s, const struct tune_task *task) {
    const struct bench_gemm_shape *old = &s->cases[1].shape;
    if (s->begun && s->cases[1].in == task->in && s->tunable == task->tunable &&
        memcmp(old, &task->shape, sizeof *old) == 0) {
        return true;
    }
    end_cases(s);
    s->tunable = task->tunable;
    for (int i = 0; i < 2; i++) {
        s->cases[i] = (struct bench_gemm_case){.bench = &s->bench,
                                               .shape = i ? task->shape : ragged_for(s, task),
                                               .batch = 1,
                                               .in = task->in,
                                               .out = task->in,
                                               .a_transposed = (task->shape.trans & 2) != 0,
                                               .b_transposed = (task->shape.trans & 1) != 0};
        if (bench_gemm_case_begin(&s->cases[i]) != BENCH_GOOD) {
            if (i) {
                bench_gemm_case_end(&s->cases[0]);
            }
            return false;
        }
    }
    return s->begun = true;
}

// Every class gets the candidate, so that it is used whatever the product's size.
static bool use(struct server *s, const struct grt_tunable *tunable, const uint32_t *values) {
    struct grt_profile_value value = {.from = "default"};
    for (; value.count < GRT_PROFILE_NUMBERS && tunable->knobs[value.count].name; value.count++) {
        value.numbers[value.count] = values[value.count];
    }
    for (uint32_t size = 0; size < tunable->classes; size++) {
        if (!grt_dev_profile_set(s->bench.dev, (enum grt_profile_key)(tunable->key + size),
                                 &value)) {
            return false;
        }
    }
    return true;
}

struct recipe {
    const struct bench_gemm_case *g;
    const char *variant;
    bool device_timer;
};

static struct grt_graph *record(void *context, uint32_t count) {
    const struct recipe *r = context;
    struct grt_gemm_desc desc = bench_gemm_case_desc(r->g, r->variant);
    struct grt_graph *graph = grt_graph_create(r->g->bench->dev, "tune");
    if (graph && r->device_timer) {
        grt_graph_phase(graph, r->variant);
    }
    for (uint32_t i = 0; graph && i < count; i++) {
        grt_op_gemm(graph, &desc);
    }
    if (graph && !grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

static bool checked(struct bench_gemm_case *g, struct grt_graph *graph, const char *variant,
                    char *why) {
    double error = 0;
    enum bench_outcome outcome =
        graph ? bench_gemm_run_checked(g, graph, variant, &error) : BENCH_BROKEN;
    if (outcome == BENCH_WRONG) {
        snprintf(why, 256, "the result is wrong");
    } else if (outcome != BENCH_GOOD) {
        snprintf(why, 256, "%.255s", grt_last_error());
    }
    return outcome == BENCH_GOOD;
}

// Prepares a graph that is long enough for a clock, after both checks. Returns its products, or 0.
static uint32_t prepare(struct server *s, const struct grt_tunable *tunable, const uint32_t *values,
                        struct bench_timing *timing, char *why) {
    struct recipe odd = {&s->cases[0], tunable->variant, false};
    struct recipe timed = {&s->cases[1], tunable->variant, timing->device_timer};
    if (!use(s, tunable, values)) {
        snprintf(why, 256, "%.255s", grt_last_error());
        return 0;
    }
    struct grt_graph *graph = record(&odd, 1);
    bool good = checked(&s->cases[0], graph, tunable->variant, why);
    grt_graph_destroy(&graph);
    if (good) {
        graph = record(&timed, 1);
        good = checked(&s->cases[1], graph, tunable->variant, why);
        grt_graph_destroy(&graph);
    }
    uint32_t products = good ? bench_fill_run(timing, MAX_PRODUCTS, record, &timed) : 0;
    if (good && !products) {
        snprintf(why, 256, "%.255s", grt_last_error());
    }
    return products;
}

// Both settings in turns, or one alone.
static void measure(struct server *s, const struct tune_task *task, struct tune_answer *answer) {
    const struct grt_tunable *tunable = grt_tunable(task->tunable);
    int sides = task->kind == TUNE_DUEL ? 2 : 1;
    struct bench_timing timings[2] = {{0}};
    uint32_t products[2] = {0};
    double samples[2][STATS_MAX_SAMPLES];
    size_t count = 0;
    double seconds = 0;
    bool good = begin_cases(s, task);
    if (!good) {
        snprintf(answer->why, sizeof answer->why, "%.255s", grt_last_error());
    }
    for (int i = 0; good && i < sides; i++) {
        timings[i] = (struct bench_timing){
            .replays = 1, .device_timer = grt_dev_info(s->bench.dev)->caps.timestamps != 0};
        products[i] = prepare(s, tunable, task->values[i], &timings[i], answer->why);
        good = products[i] && bench_sample(&timings[i], &seconds);
    }
    bool hopeless = task->hopeless > 0 && good && seconds / products[0] > task->hopeless;
    double end = grt_seconds() + task->seconds;
    size_t least = task->kind == TUNE_DUEL ? DUEL_ROUNDS : ROUNDS;
    while (good && count < STATS_MAX_SAMPLES && (count < least || grt_seconds() < end)) {
        for (int i = 0; good && i < sides; i++) {
            good = bench_sample(&timings[i], &samples[i][count]);
            samples[i][count] /= products[i] ? products[i] : 1;
        }
        count++;
        if (hopeless) {
            break;
        }
    }
    answer->wins = good && sides == 2 && stats_wins(samples[0], samples[1], count);
    for (int i = 0; i < sides; i++) {
        struct stats stats = stats_of(samples[i], good ? count : 0);
        answer->times[i] = (struct tune_time){stats.median, stats.spread, stats.min};
        grt_graph_destroy(&timings[i].graph);
    }
    answer->good = good;
}

static void add_tunables(const char *variant, bool used, const struct tune_task *task,
                         struct tune_answer *answer) {
    for (uint32_t t = 0; grt_tunable(t); t++) {
        uint32_t at = 0;
        if (strcmp(grt_tunable(t)->variant, variant) != 0 ||
            !(grt_tunable(t)->dtypes >> task->in & 1)) {
            continue;
        }
        while (at < answer->count && answer->tunables[at] != t) {
            at++;
        }
        if (at < TUNE_MAX_TUNABLES) {
            answer->tunables[at] = t;
            answer->used[at] = answer->used[at] || used;
            answer->count += at == answer->count;
        }
    }
}

// The tunables of variants that the device has for operands of this type, in their order: for the
// product that was named, or for one of ordinary size and for a large one, which another variant
// may serve.
static void list_variants(struct server *s, const struct tune_task *task,
                          struct tune_answer *answer) {
    bool given = task->shape.m > 0;
    const struct bench_gemm_shape sizes[] = {
        given ? task->shape : (struct bench_gemm_shape){512, 512, 512, task->shape.trans},
        {4096, 4096, 4096, task->shape.trans}};
    for (int size = 0; size < (given ? 1 : 2); size++) {
        const char *name = NULL;
        for (uint32_t i = 0; (name = variant_of(s, &sizes[size], task->in, NULL, i)) != NULL; i++) {
            if (i == 0) {
                snprintf(answer->best, sizeof answer->best, "%s", name);
            }
            add_tunables(name, i == 0, task, answer);
        }
    }
    answer->good = true;
}

// Opens the device, then answers until the parent has no more to ask. The process ends right after,
// so nothing is taken down: a driver may hang in that too.
static int serve(struct grt_child *parent, void *context) {
    static struct server server;
    struct server *s = &server;
    struct tune_answer opened = {0};
    struct tune_task task;
    talk_resume();  // a Ctrl-C of before is the parent's business
    s->bench.dev = grt_dev_create(context);
    opened.good = s->bench.dev != NULL;
    if (!opened.good) {
        snprintf(opened.why, sizeof opened.why, "%.255s", grt_last_error());
    }
    if (!grt_child_send(parent, &opened, sizeof opened) || !opened.good) {
        return 1;
    }
    while (grt_child_receive(parent, &task, sizeof task, 0, NULL) == GRT_CHILD_ANSWERED) {
        struct tune_answer answer = {0};
        if (task.fault == TUNE_CRASH) {
            signal(SIGSEGV, SIG_DFL);  // PoCL has a handler of its own
            raise(SIGSEGV);
        }
        while (task.fault == TUNE_HANG) {
            pause();
        }
        if (task.kind == TUNE_VARIANTS) {
            list_variants(s, &task, &answer);
        } else {
            measure(s, &task, &answer);
        }
        if (!grt_child_send(parent, &answer, sizeof answer)) {
            break;
        }
    }
    return 0;
}

// ---- in the parent ----

static bool start(struct tune_worker *worker) {
    struct tune_answer opened = {0};
    char why[256] = "";
    if (!grt_child_start(&worker->child, serve, &worker->device, why)) {
        talk_error("%s", why);
        return false;
    }
    enum grt_child_news news =
        grt_child_receive(&worker->child, &opened, sizeof opened, OPEN_SECONDS, NULL);
    if (news == GRT_CHILD_ANSWERED && opened.good) {
        return true;
    }
    grt_child_end(&worker->child, why);
    talk_error("cannot open %s: %s", worker->device.device,
               news == GRT_CHILD_ANSWERED ? opened.why
               : news == GRT_CHILD_LATE   ? "the driver does not answer"
                                          : why);
    return false;
}

enum tune_news tune_worker_ask(struct tune_worker *worker, const struct tune_task *task,
                               struct tune_answer *answer) {
    *answer = (struct tune_answer){0};
    // A new child makes the operands first, and compiles what makes them.
    bool fresh = worker->child.pid <= 0;
    double limit = (fresh ? 3 : 1) * task->limit;
    if (fresh && !start(worker)) {
        return TUNE_NOBODY;
    }
    enum grt_child_news news = GRT_CHILD_ENDED;
    if (grt_child_send(&worker->child, task, sizeof *task)) {
        news = grt_child_receive(&worker->child, answer, sizeof *answer, limit,
                                 task->kind == TUNE_TRY ? talk_stopped : NULL);
    }
    if (news == GRT_CHILD_ANSWERED) {
        return TUNE_ANSWERED;
    }
    char how[160];
    grt_child_end(&worker->child, how);
    if (news == GRT_CHILD_STOPPED) {
        return TUNE_STOPPED;
    }
    if (news == GRT_CHILD_LATE) {
        snprintf(answer->why, sizeof answer->why, "no answer within %g s", limit);
    } else {
        snprintf(answer->why, sizeof answer->why, "the driver %s", how);
    }
    return TUNE_DIED;
}

void tune_worker_end(struct tune_worker *worker) {
    grt_child_end(&worker->child, NULL);
}
