// SPDX-License-Identifier: Apache-2.0
// Measuring one configuration: a learner, a loader and a feed, as training has them.
//
//     the wall     windows of up to 8 steps: their batches are fetched and sent while the device
//                  works
//     the device   [ step ][ step ][ step ] ... and uploads beside them where it can
//
// Rows on the device need no window: groups of steps are queued at once.
//
// The time of a step is that of a window over its steps: the median over groups of windows, since
// workers deliver in bursts. Device times of the phases come from a graph of its own, with marks,
// whose barriers the steps that are timed do not have.
#include <math.h>
#include <string.h>

#include "bench_train.h"
#include "cli/stats.h"
#include "cli/talk.h"
#include "gpurt/feed.h"

#define MOST_SECONDS 4.0
#define LEAST_GROUPS 3
#define GROUP_SECONDS 0.03  // rows on the device: of a group at least,
#define MOST_GROUP 4096u    // or so many steps

struct run {
    struct train_bench *bench;
    struct train_row *row;
    struct grt_learner *learner;
    struct grt_loader *loader;
    struct grt_feed *feed;
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

// What a failed call means for the row.
static enum train_status failure(void) {
    enum grt_status status = grt_last_status();
    return status == GRT_NO_MEMORY     ? TRAIN_OOM
           : status == GRT_UNSUPPORTED ? TRAIN_UNSUITED
                                       : TRAIN_BROKEN;
}

static bool choose_cache(struct run *run) {
    const struct train_bench *bench = run->bench;
    struct grt_cache_choice choice = {.cache = bench->cache};
    // What lies on the device already is no part of what is still to be had there.
    if (bench->kept) {
        choice.cache = GRT_CACHE_DEVICE;
    } else if (bench->cache == TRAIN_CACHE_AUTO &&
               !grt_task_choose_cache(bench->dev, &bench->task, grt_learner_desc_of(run->learner),
                                      GRT_CACHE_RAM, &choice)) {
        return false;
    }
    run->row->cache = choice.cache;
    return true;
}

static enum train_status set_up(struct run *run) {
    const struct train_bench *bench = run->bench;
    struct train_row *row = run->row;
    if (bench->task.info.part_rows[GRT_PART_TRAIN] < row->batch) {
        return TRAIN_FEW_ROWS;
    }
    if (!create_learner(run)) {
        return failure();
    }
    row->variant = grt_learner_variant(run->learner);
    row->memory = grt_learner_bytes(run->learner, NULL);
    if (!choose_cache(run)) {
        return failure();
    }
    if (row->cache != GRT_CACHE_DEVICE) {
        row->memory += row->batch * grt_feed_row_bytes(bench->dev,
                                                       grt_learner_x_bytes(run->learner) +
                                                           grt_learner_y_bytes(run->learner),
                                                       false);
    }
    row->planned = row->memory > grt_dev_mem_left(bench->dev);
    if (row->planned) {
        return TRAIN_OOM;
    }
    uint64_t before = grt_dev_mem_use(bench->dev, NULL).current;
    if (!grt_learner_alloc(run->learner)) {
        return failure();
    }
    bool on_device = row->cache == GRT_CACHE_DEVICE;
    run->loader = grt_loader_create(
        grt_loader_desc(.data = bench->task.data, .dev = bench->dev, .part = GRT_PART_TRAIN,
                        .batch = row->batch, .workers = row->workers, .cache = row->cache,
                        .prefetch = (uint32_t)bench->config.prefetch_factor, .pin = row->pin,
                        .held = GRT_FEED_HELD, .turns = grt_dev_lanes(bench->dev), .shuffle = true,
                        .drop_last = true, .seed = bench->config.seed));
    if (!run->loader) {
        return failure();
    }
    run->feed = grt_feed_create(grt_feed_desc(.dev = bench->dev, .learner = run->learner,
                                              .loader = run->loader, .batch = row->batch,
                                              .on_device = on_device));
    if (!run->feed) {
        return failure();
    }
    row->memory = grt_dev_mem_use(bench->dev, NULL).current - before;
    return TRAIN_OK;
}

static void tear_down(struct run *run) {
    grt_dev_wait(run->bench->dev);
    grt_feed_destroy(&run->feed);
    grt_loader_destroy(&run->loader);
    grt_learner_destroy(&run->learner);
}

// ---- steps ----

// Windows until there were that many steps, and what they took.
struct group {
    uint32_t steps;
    double waited, stalled;
};
static bool run_group(struct run *run, uint32_t steps, struct group *group) {
    *group = (struct group){0};
    while (group->steps < steps) {
        struct grt_feed_done done;
        uint32_t most =
            run->row->cache == GRT_CACHE_DEVICE ? steps - group->steps : GRT_FEED_WINDOW;
        if (talk_stopped() || !grt_feed_run(run->feed, most, true, &done)) {
            return false;
        }
        group->steps += done.steps;
        group->waited += done.waited;
        group->stalled += done.stalled;
    }
    return grt_dev_wait(run->bench->dev);
}

// Steps of a group of rows on the device: so many that waiting for its end is no part of what they
// take.
static bool size_group(struct run *run, uint32_t *steps) {
    struct group group;
    double seconds = 0;
    for (*steps = GRT_FEED_WINDOW; *steps < MOST_GROUP && seconds < GROUP_SECONDS; *steps *= 2) {
        double begun = grt_seconds();
        if (!run_group(run, *steps, &group)) {
            return false;
        }
        seconds = grt_seconds() - begun;
    }
    return true;
}

static bool time_steps(struct run *run) {
    struct train_row *row = run->row;
    double totals[STATS_MAX_SAMPLES], ios[STATS_MAX_SAMPLES], stalls[STATS_MAX_SAMPLES];
    uint32_t slots = grt_loader_info(run->loader).slots;
    uint32_t size = row->workers > 0 && slots > GRT_FEED_WINDOW ? slots : GRT_FEED_WINDOW;
    double least = run->bench->seconds > 0 ? run->bench->seconds : TRAIN_LEAST_SECONDS;
    struct group group;
    // The first run of each graph is slower: it is timed to be cut.
    if (!run_group(run, 2 * GRT_FEED_WINDOW, &group) ||
        (row->cache == GRT_CACHE_DEVICE && !size_group(run, &size))) {
        return false;
    }
    size_t count = 0;
    uint64_t steps = 0;
    double begun = grt_seconds(), before = begun;
    while (count < STATS_MAX_SAMPLES) {
        if (!run_group(run, size, &group)) {
            return false;
        }
        double now = grt_seconds();
        totals[count] = (now - before) / group.steps;
        ios[count] = group.waited / group.steps;
        stalls[count] = fmin(1.0, group.stalled / (now - before));
        count++;
        steps += group.steps;
        before = now;
        double passed = now - begun;
        if (count >= LEAST_GROUPS && ((steps >= run->bench->steps && passed >= least) ||
                                      passed >= fmax(least, MOST_SECONDS))) {
            break;
        }
    }
    row->counter = bench_counter_read(&run->bench->counter);
    struct stats total = stats_of(totals, count);
    row->total = total.median;
    row->spread = total.spread;
    row->samples = (uint32_t)count;
    row->io = stats_of(ios, count).median;
    row->stall = stats_of(stalls, count).median;
    row->rate = row->batch / row->total;
    return true;
}

// ---- phases ----

static void add_phases(const struct grt_phase_time *times, uint32_t count, double into[4]) {
    static const char *const names[4] = {"input", "forward", "backward", "optimizer"};
    for (uint32_t i = 0; i < count; i++) {
        for (int k = 0; k < 4; k++) {
            into[k] += strcmp(times[i].name, names[k]) == 0 ? times[i].seconds : 0;
        }
    }
}

// Device times of one step with marks; without timestamps, the wall around one without.
static bool time_phases(struct run *run) {
    struct train_row *row = run->row;
    double samples[4][STATS_MAX_SAMPLES], walls[STATS_MAX_SAMPLES];
    // Over the newest batch, which lies where it was used.
    struct grt_tensor x, y;
    grt_feed_newest(run->feed, &x, &y);
    struct grt_graph *graph = grt_learner_step(
        run->learner, grt_step_desc(.label = "step", .phases = true, .x = x.range, .y = y.range));
    size_t count = 0;
    bool good = graph && grt_graph_finish(graph) && grt_graph_finish(graph), known = good;
    size_t wanted = run->bench->steps < 50 ? (size_t)run->bench->steps : 50;
    double begun = grt_seconds();
    while (good && count < wanted && (count < LEAST_GROUPS || grt_seconds() - begun < 1)) {
        double start = grt_seconds(), sums[4] = {0};
        struct grt_phase_time times[GRT_MAX_PHASES];
        good = !talk_stopped() && grt_graph_finish(graph);
        walls[count] = grt_seconds() - start;
        uint32_t phases = grt_graph_times(graph, times, GRT_MAX_PHASES);
        known = known && phases > 0;
        add_phases(times, phases < GRT_MAX_PHASES ? phases : GRT_MAX_PHASES, sums);
        for (int k = 0; k < 4; k++) {
            samples[k][count] = sums[k];
        }
        count++;
    }
    grt_graph_destroy(&graph);
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

// What the copy of a batch takes on its own. Where it takes longer than a step, it is what steps
// wait for, which the host does not see.
static bool time_upload(struct run *run) {
    struct train_row *row = run->row;
    double samples[LEAST_GROUPS];
    if (run->row->cache == GRT_CACHE_DEVICE) {
        return true;
    }
    for (int i = 0; i < LEAST_GROUPS; i++) {
        struct grt_batch batch;
        if (!grt_loader_next(run->loader, &batch)) {
            return false;
        }
        double start = grt_seconds();
        bool good = grt_loader_upload(run->loader, &batch, 0) && grt_dev_wait(run->bench->dev);
        samples[i] = grt_seconds() - start;
        grt_loader_release(run->loader, &batch);
        if (!good) {
            return false;
        }
    }
    row->upload = stats_of(samples, LEAST_GROUPS).median;
    double step = row->busy * row->total;
    row->stall = fmax(row->stall, fmin(1.0, (row->upload - step) / row->total));
    // A batch that comes late is counted from when it was asked for; the device was busy for a part
    // of that.
    row->stall = fmin(row->stall, 1 - row->busy);
    return true;
}

void train_measure(struct train_bench *bench, struct train_row *row) {
    struct run run = {.bench = bench, .row = row};
    row->status = set_up(&run);
    if (row->status == TRAIN_OK && !(time_steps(&run) && time_phases(&run) && time_upload(&run))) {
        row->status = talk_stopped() ? TRAIN_BROKEN : failure();
    }
    struct grt_learn_state state;
    if (row->status == TRAIN_OK) {
        if (!grt_learner_state(run.learner, &state)) {
            row->status = TRAIN_BROKEN;
        } else if (!isfinite(state.loss) || state.halted) {
            row->status = TRAIN_NOT_FINITE;
        }
    }
    tear_down(&run);
}
