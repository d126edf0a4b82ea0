// SPDX-License-Identifier: Apache-2.0
// Measuring one configuration: a learner and a loader, as training uses them.
//
//     the wall     next k | wait k-1 | run k | next k+1 | wait k | run k+1 ...
//     the device           [  step k-1  ]     [  step k            ]
//
// Data of the next step are fetched while the device works; what next() still takes is I/O. The time of a
// step is that between two submits, the median over groups of as many steps as there are slots, since
// workers deliver in bursts. Device times of the phases come from a graph of its own, with marks,
// whose barriers the steps that are timed do not have.
#include <math.h>
#include <string.h>

#include "bench_train.h"
#include "stats.h"
#include "talk.h"

#define MOST_SLOTS 1024
#define LEAST_SECONDS 0.3  // of the timed part
#define MOST_SECONDS 4.0
#define LEAST_GROUPS 3

struct run {
    struct train_bench *bench;
    struct train_row *row;
    struct grt_learner *learner;
    struct grt_loader *loader;
    struct grt_graph *graphs[MOST_SLOTS];  // pin: a step for each slot; else only the first
    struct grt_batch last;                 // of the step that runs
    bool running;
};

// ---- set-up ----

static bool create_learner(struct run *run) {
    struct grt_learner_desc desc = run->bench->task.learner;
    desc.precision = run->row->precision;
    desc.batch = run->row->batch;
    desc.accumulate = 1;
    run->learner = grt_learner_create(run->bench->dev, &desc);
    return run->learner != NULL;
}

static struct grt_graph *create_step(struct run *run, const struct grt_batch *batch, bool phases) {
    struct grt_step_desc desc = {.label = "step", .phases = phases};
    if (run->row->pin) {
        desc.x = batch->x_range;
        desc.y = batch->y_range;
    }
    return grt_learner_step(run->learner, &desc);
}

// What a failed call means for the row.
static enum train_status failure(void) {
    enum grt_status status = grt_last_status();
    return status == GRT_NO_MEMORY     ? TRAIN_OOM
           : status == GRT_UNSUPPORTED ? TRAIN_UNSUITED
                                       : TRAIN_BROKEN;
}

static enum train_status set_up(struct run *run) {
    const struct train_bench *bench = run->bench;
    struct train_row *row = run->row;
    if (bench->task.info.part_rows[GRT_PART_TRAIN] < row->batch)
        return TRAIN_FEW_ROWS;
    if (!create_learner(run))
        return failure();
    row->variant = grt_learner_variant(run->learner);
    row->memory = grt_learner_bytes(run->learner, NULL);
    row->planned = row->memory > grt_dev_mem_left(bench->dev);
    if (row->planned)
        return TRAIN_OOM;
    uint64_t before = grt_dev_mem_use(bench->dev, NULL).current;
    if (!grt_learner_alloc(run->learner))
        return failure();
    run->loader = grt_loader_create(
        grt_loader_desc(.data = bench->task.data, .dev = bench->dev, .part = GRT_PART_TRAIN,
                        .batch = row->batch, .workers = row->workers,
                        .prefetch = (uint32_t)bench->config.prefetch_factor, .pin = row->pin,
                        .shuffle = true, .drop_last = true, .seed = bench->config.seed));
    if (!run->loader)
        return failure();
    if (!row->pin && !grt_loader_bind(run->loader, grt_learner_input(run->learner),
                                      grt_learner_target(run->learner)))
        return failure();
    row->memory = grt_dev_mem_use(bench->dev, NULL).current - before;
    return TRAIN_OK;
}

static void tear_down(struct run *run) {
    grt_dev_wait(run->bench->dev);
    for (uint32_t i = 0; i < MOST_SLOTS; i++)
        grt_graph_destroy(&run->graphs[i]);
    grt_loader_destroy(&run->loader);
    grt_learner_destroy(&run->learner);
}

// ---- steps ----

static bool finish_last(struct run *run) {
    if (!run->running)
        return true;
    run->running = false;
    bool good = grt_dev_wait(run->bench->dev);
    grt_loader_release(run->loader, &run->last);
    return good;
}

// Fetches a batch, waits for the step before, begins this one; *io is what fetching took.
static bool step(struct run *run, double *io) {
    struct grt_batch batch;
    if (talk_stopped() || !grt_loader_next(run->loader, &batch))
        return false;
    *io = batch.waited;
    if (!finish_last(run))
        return false;
    struct grt_graph **graph = &run->graphs[run->row->pin ? batch.slot % MOST_SLOTS : 0];
    bool good = true;
    if (!run->row->pin) {
        double begun = stats_now();
        good = grt_loader_upload(run->loader, &batch);
        *io += stats_now() - begun;
    }
    if (good && !*graph)
        *graph = create_step(run, &batch, false);
    good = good && *graph && grt_graph_run(*graph);
    run->last = batch;
    run->running = true;
    return good;
}

static bool time_steps(struct run *run) {
    struct train_row *row = run->row;
    double totals[STATS_MAX_SAMPLES], ios[STATS_MAX_SAMPLES];
    uint32_t slots = grt_loader_info(run->loader).slots;
    uint32_t group = row->workers > 0 ? slots : 1;
    double io = 0;
    // The first run of each graph is slower: it is timed to be cut.
    for (uint32_t i = 0; i < slots + 2; i++) {
        if (!step(run, &io))
            return false;
    }
    size_t count = 0;
    double begun = stats_now(), before = begun;
    while (count < STATS_MAX_SAMPLES) {
        ios[count] = 0;
        for (uint32_t i = 0; i < group; i++) {
            if (!step(run, &io))
                return false;
            ios[count] += io / group;
        }
        double now = stats_now();
        totals[count++] = (now - before) / group;
        before = now;
        double passed = now - begun;
        if ((count >= run->bench->steps && passed >= LEAST_SECONDS) ||
            (count >= LEAST_GROUPS && passed >= MOST_SECONDS))
            break;
    }
    row->counter = bench_counter_read(&run->bench->counter);
    if (!finish_last(run))
        return false;
    struct stats total = stats_of(totals, count);
    row->total = total.median;
    row->spread = total.spread;
    row->samples = (uint32_t)count;
    row->io = stats_of(ios, count).median;
    row->rate = row->batch / row->total;
    return true;
}

// ---- phases ----

static void add_phases(const struct grt_phase_time *times, uint32_t count, double into[4]) {
    static const char *const names[4] = {"input", "forward", "backward", "optimizer"};
    for (uint32_t i = 0; i < count; i++) {
        for (int k = 0; k < 4; k++)
            into[k] += strcmp(times[i].name, names[k]) == 0 ? times[i].seconds : 0;
    }
}

// Device times of one step with marks; without timestamps, the wall around one without.
static bool time_phases(struct run *run) {
    struct train_row *row = run->row;
    double samples[4][STATS_MAX_SAMPLES], walls[STATS_MAX_SAMPLES];
    struct grt_batch batch;
    if (!grt_loader_next(run->loader, &batch))
        return false;
    struct grt_graph *graph = create_step(run, &batch, true);
    size_t count = 0;
    bool good = graph && grt_graph_finish(graph) && grt_graph_finish(graph), known = good;
    size_t wanted = run->bench->steps < 50 ? (size_t)run->bench->steps : 50;
    double begun = stats_now();
    while (good && count < wanted && (count < LEAST_GROUPS || stats_now() - begun < 1)) {
        double start = stats_now(), sums[4] = {0};
        struct grt_phase_time times[GRT_MAX_PHASES];
        good = !talk_stopped() && grt_graph_finish(graph);
        walls[count] = stats_now() - start;
        uint32_t phases = grt_graph_times(graph, times, GRT_MAX_PHASES);
        known = known && phases > 0;
        add_phases(times, phases < GRT_MAX_PHASES ? phases : GRT_MAX_PHASES, sums);
        for (int k = 0; k < 4; k++)
            samples[k][count] = sums[k];
        count++;
    }
    grt_graph_destroy(&graph);
    grt_loader_release(run->loader, &batch);
    double *into[4] = {&row->input, &row->forward, &row->backward, &row->optimizer};
    double device = 0;
    for (int k = 0; good && known && k < 4; k++) {
        *into[k] = stats_of(samples[k], count).median;
        device += *into[k];
    }
    row->phases = known && device > 0;
    device = row->phases ? device : stats_of(walls, count).median;
    row->busy = row->total > 0 ? fmin(1.0, device / row->total) : 0;
    return good;
}

void train_measure(struct train_bench *bench, struct train_row *row) {
    struct run run = {.bench = bench, .row = row};
    row->status = set_up(&run);
    if (row->status == TRAIN_OK && !(time_steps(&run) && time_phases(&run)))
        row->status = talk_stopped() ? TRAIN_BROKEN : failure();
    struct grt_learn_state state;
    if (row->status == TRAIN_OK) {
        if (!grt_learner_state(run.learner, &state))
            row->status = TRAIN_BROKEN;
        else if (!isfinite(state.loss) || state.halted)
            row->status = TRAIN_NOT_FINITE;
    }
    tear_down(&run);
}
