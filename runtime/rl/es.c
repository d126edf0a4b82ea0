// SPDX-License-Identifier: Apache-2.0
// The learner: plans its memory, finds how many steps a launch may have, records an iteration and
// replays it.
#include "gpurt/es.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "es_parts.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "shaders/es/es_params.k"

#define DEFAULT_STEP 0.02f
#define DEFAULT_NOISE 0.03f
#define DEFAULT_SUBMIT_MS 500
#define BETA1 0.9f
#define BETA2 0.999f
#define TREE 16              // lanes of a reduction: the same on every device, so are the sums
#define FLAT 64              // lanes where nothing is shared
#define MAX_DIRS 16384       // ranks compare every direction with every other
#define MAX_ENVS (1u << 20)  // of a side
#define UNIT_ENVS 2048  // by default, of an iteration for each compute unit; the H200 gets 1986
#define MAX_LENGTH (1u << 20)  // steps are counted in floats
#define START_ITERATION 0xffffffffu

const char *grt_es_algo_text(enum grt_es_algo algo) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_ES_ALGOS(X)
#undef X
    };
    return (unsigned)algo < GRT_ES_ALGO_COUNT ? texts[algo] : "unknown";
}

bool grt_es_read(const struct grt_tensor *tensor, void *data) {
    return grt_buf_read(tensor->range.buf, tensor->range.offset, data, grt_tensor_bytes(tensor));
}

bool grt_es_write(const struct grt_tensor *tensor, const void *data) {
    return grt_buf_write(tensor->range.buf, tensor->range.offset, data, grt_tensor_bytes(tensor));
}

// ---- what was asked for ----

static bool check_range(const char *name, uint32_t value, uint32_t most) {
    return (value >= 1 && value <= most) ||
           grt_fail(GRT_INVALID, "%s is %u; it must be from 1 to %u", name, value, most);
}

struct grt_es_sizes grt_es_sizes(const struct grt_profile *profile,
                                 const struct grt_dev_info *info) {
    struct grt_es_sizes sizes = {
        .num_envs = grt_profile_whole(profile, GRT_KEY_NUM_ENVS),
        .num_dirs = grt_profile_whole(profile, GRT_KEY_NUM_DIRS),
        .dir_chunk = grt_profile_whole(profile, GRT_KEY_DIR_CHUNK),
    };
    uint64_t most = (uint64_t)info->caps.compute_units * UNIT_ENVS / (2 * sizes.num_dirs);
    if (info->caps.compute_units > 0 && most < sizes.num_envs) {
        sizes.num_envs = most > 1 ? (uint32_t)most : 1;
    }
    return sizes;
}

static bool fill_desc(struct grt_es *es) {
    struct grt_es_desc *d = &es->desc;
    struct grt_es_sizes sizes = grt_es_sizes(grt_dev_profile(es->dev), grt_dev_info(es->dev));
    uint32_t chunk = sizes.dir_chunk;
    // Devices of several kinds: all have the sizes of the first rank, and chunks of their own.
    if (!grt_comm_lead(d->comm, &sizes, sizeof sizes)) {
        return false;
    }
    sizes.dir_chunk = chunk;
    if (!d->env || (unsigned)d->algo >= GRT_ES_ALGO_COUNT) {
        return grt_fail(GRT_INVALID, "grt_es_create: no %s",
                        d->env ? "such algorithm" : "environment");
    }
    if (!grt_env_in_registers(d->env, "training by evolution strategies")) {
        return false;
    }
    d->phase = d->phase ? d->phase : 1;
    d->no_normalise = d->no_normalise && !d->blind;  // blind: by deviations without end, start()
    d->num_envs = d->num_envs ? d->num_envs : sizes.num_envs;
    d->num_dirs = d->num_dirs ? d->num_dirs : sizes.num_dirs;
    bool chunk_given = d->dir_chunk > 0;
    d->dir_chunk = chunk_given ? d->dir_chunk : sizes.dir_chunk;
    d->top_dirs = d->top_dirs ? d->top_dirs : (d->num_dirs + 1) / 2;
    d->episode_length = d->episode_length ? d->episode_length : d->env->length;
    float step = d->env->step_size > 0 ? d->env->step_size : DEFAULT_STEP;
    float noise = d->env->noise_std > 0 ? d->env->noise_std : DEFAULT_NOISE;
    d->step_size = d->step_size != 0.0f ? d->step_size : step;
    d->noise_std = d->noise_std != 0.0f ? d->noise_std : noise;
    d->max_submit_ms = d->max_submit_ms > 0 ? d->max_submit_ms : DEFAULT_SUBMIT_MS;
    if (d->phase > d->env->phases) {
        return grt_fail(GRT_INVALID, "environment '%s' has no phase %u; it has 1 to %u",
                        d->env->name, d->phase, d->env->phases);
    }
    if (!check_range("the number of environments", d->num_envs, MAX_ENVS) ||
        !check_range("the number of directions", d->num_dirs, MAX_DIRS) ||
        !check_range("the length of an episode", d->episode_length, MAX_LENGTH) ||
        !check_range("the number of top directions", d->top_dirs, d->num_dirs)) {
        return false;
    }
    if (!grt_policy_check(&d->policy)) {
        return false;
    }
    if (!(d->ema >= 0 && d->ema < 1)) {
        return grt_fail(GRT_INVALID, "es: ema %g is not from 0 to below 1", d->ema);
    }
    if (!isfinite(d->step_size) || !isfinite(d->noise_std) || d->noise_std < 0.0f) {
        return grt_fail(GRT_INVALID, "step size %g and noise %g must be numbers, the noise above 0",
                        (double)d->step_size, (double)d->noise_std);
    }
    if (d->dir_chunk > d->num_dirs) {
        if (chunk_given) {
            grt_log(GRT_LOG_WARN, "a chunk of %u directions is more than there are; using %u",
                    d->dir_chunk, d->num_dirs);
        }
        d->dir_chunk = d->num_dirs;
    }
    return true;
}

// ---- memory ----

static struct grt_tensor *tensor(struct grt_es *es, const char *label, enum grt_dtype dtype,
                                 uint64_t rows, uint64_t cols) {
    return grt_plan_tensor(es->plan, grt_tensor_desc(.label = label, .group = "es", .dtype = dtype,
                                                     .shape = {rows, cols}));
}

static bool declare(struct grt_es *es) {
    const struct grt_es_desc *d = &es->desc;
    uint64_t lanes = (uint64_t)2 * d->dir_chunk * d->num_envs;
    uint64_t sides = (uint64_t)2 * d->num_dirs;
    uint64_t rows = GRT_ROLLOUT_RESULTS + 2 * d->env->obs;
    grt_plan_destroy(&es->plan);
    es->plan = grt_plan_create(es->dev);
    if (!es->plan) {
        return false;
    }
    es->control = tensor(es, "control", GRT_U32, 4, 0);
    es->trial = tensor(es, "trial", GRT_U32, 4, 0);
    es->theta = tensor(es, "theta", GRT_F32, es->quads, 4);
    es->moments = tensor(es, "moments", GRT_F32, 2 * (uint64_t)es->quads, 4);
    es->norm = tensor(es, "norm", GRT_F32, 3, d->env->obs);
    es->report = tensor(es, "report", GRT_F32, ES_REPORT, 0);
    es->results = tensor(es, "results", GRT_F32, rows, sides);
    es->weight = tensor(es, "weight", GRT_F32, d->num_dirs, 0);
    es->used = tensor(es, "used", GRT_F32, d->num_dirs, 0);
    const struct grt_rollout_desc rollout = {
        .env = d->env, .policy = &d->policy, .sides = 2 * d->dir_chunk};
    uint64_t scratch = grt_op_rollout_scratch(es->dev, &rollout);
    es->policies = scratch ? tensor(es, "policies", GRT_F32, scratch / 16, 4) : NULL;
    es->state = tensor(es, "state", GRT_F32, d->env->state, lanes);
    es->score = tensor(es, "score", GRT_F32, GRT_ROLLOUT_SCORES, lanes);
    es->sums = tensor(es, "sums", GRT_F32, d->no_normalise ? 1 : 2 * d->env->obs,
                      d->no_normalise ? 1 : lanes);
    return es->state && es->score && es->sums && (es->policies || !scratch);
}

// Plans for as many directions at once as asked for, or for half of them, and so on, until the plan
// fits: all of it into the memory, and its largest tensors within reach of one binding.
static bool choose_chunk(struct grt_es *es) {
    struct grt_es_desc *d = &es->desc;
    double left = (double)grt_dev_mem_left(es->dev);
    double reach = (double)grt_dev_info(es->dev)->caps.max_binding;
    uint32_t asked = d->dir_chunk;
    char why[96] = "";
    for (;; d->dir_chunk /= 2) {
        if (!declare(es)) {
            return false;
        }
        double bytes = (double)grt_plan_bytes(es->plan, NULL);
        double most = fmax((double)grt_tensor_bytes(es->state), (double)grt_tensor_bytes(es->sums));
        most = es->policies ? fmax(most, (double)grt_tensor_bytes(es->policies)) : most;
        bool fits = bytes <= left && (reach <= 0 || most <= reach);
        if (!why[0]) {
            snprintf(why, sizeof why,
                     bytes > left ? "need %.1f MB and %.1f MB are free"
                                  : "need %.1f MB and one binding reaches %.1f MB",
                     (bytes > left ? bytes : most) / 1e6, (bytes > left ? left : reach) / 1e6);
        }
        if (fits && d->dir_chunk < asked) {
            grt_log(GRT_LOG_WARN, "%u directions at once %s; running %u at once", asked, why,
                    d->dir_chunk);
        }
        if (fits || d->dir_chunk == 1) {
            return true;  // what does not fit even so is refused by the plan, with its numbers
        }
    }
}

static bool allocate(struct grt_es *es) {
    uint64_t bytes = (ES_REPORT + GRT_ROLLOUT_RESULTS + 2 * es->desc.env->obs) * sizeof(float);
    es->readback = grt_buf_create(
        es->dev, grt_buf_desc(.size = bytes, .kind = GRT_BUF_READBACK, .label = "es"));
    return es->readback && grt_plan_alloc(es->plan);
}

// ---- recording ----

static struct grt_rollout_desc rollout_desc(const struct grt_es *es) {
    const struct grt_es_desc *d = &es->desc;
    return (struct grt_rollout_desc){
        .env = d->env,
        .policy = &d->policy,
        .envs = d->num_envs,
        .sides = 2 * d->dir_chunk,
        .steps = d->episode_length,
        .phase = d->phase,
        .sigma = d->noise_std,
        .normalise = !d->no_normalise,
        .restart = d->restart,
        .control = es->control->range,
        .theta = es->theta->range,
        .norm = es->norm->range,
        .state = es->state->range,
        .score = es->score->range,
        .sums = es->sums->range,
        .scratch = es->policies ? es->policies->range : (struct grt_range){0},
    };
}

// All steps of an episode for the sides of `desc`, in cuts, then their sums.
static bool record_episode(const struct grt_es *es, struct es_work *work,
                           struct grt_rollout_desc *desc, uint32_t sides) {
    const struct grt_es_desc *d = &es->desc;
    double share = (double)desc->sides / (2.0 * d->dir_chunk);
    for (uint32_t first = 0; first < d->episode_length; first += es->at_once) {
        uint32_t left = d->episode_length - first;
        desc->first = first;
        desc->steps = left < es->at_once ? left : es->at_once;
        struct grt_graph *graph = es_work_graph(work, share * es->step_seconds * desc->steps);
        if (!graph) {
            return false;
        }
        grt_op_rollout(graph, desc);
    }
    const struct es_reduce_params params = {.envs = d->num_envs,
                                            .lanes = d->num_envs * desc->sides,
                                            .side = 2 * desc->direction,
                                            .sides = sides,
                                            .shift = GRT_ROLLOUT_SHIFT};
    const struct grt_range ranges[] = {es->score->range, es->sums->range, es->results->range};
    uint32_t rows = GRT_ROLLOUT_RESULTS + (d->no_normalise ? 0 : 2 * d->env->obs);
    grt_op_launch(es_work_graph(work, 0),
                  grt_kernel_desc(.name = "es_reduce", .specs = {{"WG", TREE}}), &params,
                  sizeof params, ranges, 3, (uint32_t[]){rows, desc->sides, 1});
    return true;
}

static void record_update(const struct grt_es *es, struct grt_graph *graph) {
    const struct grt_es_desc *d = &es->desc;
    uint32_t ranks = d->algo == GRT_ES_RANKS;
    float per_env = 1.0f / (float)d->num_envs;
    float per_episode = per_env / (float)(2 * d->num_dirs);
    const struct es_rank_params rank = {.dirs = d->num_dirs,
                                        .top = d->top_dirs,
                                        .per_env = per_env,
                                        .per_rank = 1.0f / (float)(2 * d->num_dirs - 1)};
    const struct grt_range rank_ranges[] = {es->results->range, es->weight->range, es->used->range};
    grt_op_launch(
        graph, grt_kernel_desc(.name = "es_rank", .specs = {{"WG", FLAT}, {"RANKS", ranks}}), &rank,
        sizeof rank, rank_ranges, 3, (uint32_t[]){(d->num_dirs + FLAT - 1) / FLAT, 1, 1});
    const struct es_sum_params sum = {.dirs = d->num_dirs,
                                      .obs = d->env->obs,
                                      .step = d->step_size,
                                      .per_env = per_env,
                                      .per_episode = per_episode,
                                      .per_step = per_episode / (float)d->episode_length,
                                      .beta1 = BETA1,
                                      .beta2 = BETA2};
    const struct grt_range sum_ranges[] = {es->results->range, es->used->range, es->norm->range,
                                           es->report->range};
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = "es_sum", .specs = {{"WG", TREE},
                                                    {"RANKS", ranks},
                                                    {"NORM", !d->no_normalise && !d->blind}}),
        &sum, sizeof sum, sum_ranges, 4, (uint32_t[]){1, 1, 1});
    float noise = d->noise_std > 0 ? d->noise_std : 1.0f;
    const struct es_step_params step = {.dirs = d->num_dirs,
                                        .quads = es->quads,
                                        .gain = 1.0f / ((float)(2 * d->num_dirs) * noise),
                                        .beta1 = BETA1,
                                        .beta2 = BETA2};
    const struct grt_range step_ranges[] = {es->control->range, es->weight->range,
                                            es->report->range, es->theta->range,
                                            es->moments->range};
    grt_op_launch(
        graph, grt_kernel_desc(.name = "es_step", .specs = {{"WG", FLAT}, {"ADAM", ranks}}), &step,
        sizeof step, step_ranges, 5, (uint32_t[]){(es->quads + FLAT - 1) / FLAT, 1, 1});
    const uint32_t by = 1;
    grt_op_launch(graph, grt_kernel_desc(.name = "tick", .specs = {{"WG", 1}}), &by, sizeof by,
                  &es->control->range, 1, (uint32_t[]){1, 1, 1});
    grt_graph_copy(graph, (struct grt_range){es->readback, 0, ES_REPORT * sizeof(float)},
                   es->report->range);
}

static bool record(struct grt_es *es) {
    const struct grt_es_desc *d = &es->desc;
    struct grt_rollout_desc rollout = rollout_desc(es);
    es->iteration = (struct es_work){.dev = es->dev, .label = "es iteration"};
    es->evaluation = (struct es_work){.dev = es->dev, .label = "es evaluation"};
    es->update = (struct es_work){.dev = es->dev, .label = "es update"};
    uint32_t end = es->first_dir + es->dir_count;
    for (uint32_t first = es->first_dir; first < end; first += d->dir_chunk) {
        uint32_t left = end - first;
        rollout.direction = first;
        rollout.sides = 2 * (left < d->dir_chunk ? left : d->dir_chunk);
        if (!record_episode(es, &es->iteration, &rollout, 2 * d->num_dirs)) {
            return false;
        }
    }
    bool several = grt_comm_ranks(d->comm) > 1;
    struct grt_graph *update = es_work_graph(several ? &es->update : &es->iteration, 0);
    if (!update) {
        return false;
    }
    record_update(es, update);

    rollout = rollout_desc(es);
    rollout.sides = 1;
    rollout.sigma = 0.0f;
    rollout.control = es->trial->range;
    if (!record_episode(es, &es->evaluation, &rollout, 1)) {
        return false;
    }
    uint64_t bytes = GRT_ROLLOUT_RESULTS * sizeof(float);
    grt_graph_copy(es_work_graph(&es->evaluation, 0), (struct grt_range){es->readback, 0, bytes},
                   (struct grt_range){es->results->range.buf, es->results->range.offset, bytes});
    return es_work_bake(&es->iteration) && es_work_bake(&es->update) &&
           es_work_bake(&es->evaluation);
}

// ---- how long a launch may be ----

static bool time_steps(struct grt_es *es, uint32_t steps, double *seconds) {
    struct grt_graph *graph = grt_graph_create(es->dev, "es probe");
    struct grt_rollout_desc desc = rollout_desc(es);
    bool ok = graph != NULL;
    desc.steps = steps;
    if (ok) {
        grt_op_rollout(graph, &desc);
    }
    *seconds = 1e30;
    // Drivers compile in the first run.
    for (int i = 0; ok && i < 2; i++) {
        double start = grt_seconds();
        ok = grt_graph_finish(graph);
        double taken = grt_seconds() - start;
        *seconds = taken < *seconds ? taken : *seconds;
    }
    grt_graph_destroy(&graph);
    return ok;
}

// As many steps as stay below half of the allowed time, found by doubling. What lanes compute does
// not depend on it.
static bool choose_steps(struct grt_es *es) {
    uint32_t length = es->desc.episode_length;
    double limit = 0.5e-3 * es->desc.max_submit_ms;
    double seconds = 0;
    for (uint32_t steps = 1;; steps = steps * 4 < length ? steps * 4 : length) {
        if (!time_steps(es, steps, &seconds)) {
            return false;
        }
        double fit = limit / (seconds > 1e-9 ? seconds : 1e-9) * steps;
        if (fit <= (double)steps * 4 || steps >= length) {
            fit = fit > length ? length : fit;
            es->at_once = fit < 1 ? 1 : (uint32_t)fit;
            es->step_seconds = seconds / steps;
            return true;
        }
    }
}

// ---- first numbers ----

// The output begins at 0, so that no action is preferred; a hidden layer begins with normal numbers
// whose sum over the observations has deviation 1.
static bool start_theta(struct grt_es *es) {
    const struct grt_es_desc *d = &es->desc;
    uint64_t bytes = grt_tensor_bytes(es->theta);
    float *numbers = calloc(1, bytes);
    struct grt_graph *graph = grt_graph_create(es->dev, "es start");
    const struct grt_range drawn = es->moments->range;  // not yet in use, and large enough
    bool ok = numbers && graph && grt_es_write(es->theta, numbers);
    if (ok && d->policy.hidden) {
        const struct grt_rng_state start = {{d->seed, 0}, {START_ITERATION, 0}};
        const struct es_perturb_params params = {.quads = es->quads,
                                                 .sigma = 1.0f / sqrtf((float)d->env->obs)};
        const struct grt_range ranges[] = {es->control->range, es->theta->range, drawn};
        grt_op_launch(graph, grt_kernel_desc(.name = "es_perturb", .specs = {{"WG", FLAT}}),
                      &params, sizeof params, ranges, 3,
                      (uint32_t[]){(es->quads + FLAT - 1) / FLAT, 1, 1});
        // Only the hidden layer's part, its biases included, is kept.
        uint64_t part = (uint64_t)d->policy.hidden / 4 * (d->env->obs + 1) * 4 * sizeof(float);
        ok = grt_es_write(es->control, &start) && grt_graph_finish(graph) &&
             grt_buf_read(drawn.buf, drawn.offset, numbers, part) &&
             grt_es_write(es->theta, numbers);
    }
    grt_graph_destroy(&graph);
    free(numbers);
    return ok || (numbers ? false : grt_fail(GRT_NO_MEMORY, "no host memory for a policy"));
}

static bool start(struct grt_es *es) {
    const struct grt_es_desc *d = &es->desc;
    const struct grt_rng_state control = {{d->seed, 0}, {0, 0}};
    uint32_t samples = (d->episode_length + (1u << GRT_ROLLOUT_SHIFT) - 1) >> GRT_ROLLOUT_SHIFT;
    float prior = GRT_ES_PRIOR * 2.0f * (float)d->num_dirs * (float)d->num_envs * (float)samples;
    float report[ES_REPORT] = {[ES_POWER1] = 1.0f, [ES_POWER2] = 1.0f, [ES_COUNT] = prior};
    uint64_t bytes = grt_tensor_bytes(es->moments);
    float *zeros = calloc(1, bytes);
    float *norm = calloc((size_t)3 * d->env->obs, sizeof *norm);
    bool ok = zeros && norm;
    for (uint32_t i = 0; ok && i < 2 * d->env->obs; i++) {
        norm[d->env->obs + i] = d->blind && i < d->env->obs ? 0.0f : 1.0f;
    }
    if (!ok) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a policy");
    }
    ok = ok && start_theta(es) && grt_es_write(es->moments, zeros) &&
         grt_es_write(es->norm, norm) && grt_es_write(es->report, report) &&
         grt_es_write(es->control, &control);
    free(norm);
    free(zeros);
    return ok;
}

// ---- public ----

struct grt_es *grt_es_create(struct grt_dev *dev, const struct grt_es_desc *desc) {
    struct grt_es *es = dev && desc ? calloc(1, sizeof *es) : NULL;
    if (!es) {
        grt_fail(dev && desc ? GRT_NO_MEMORY : GRT_INVALID, "grt_es_create: no %s",
                 !dev    ? "device"
                 : !desc ? "desc"
                         : "host memory");
        return NULL;
    }
    es->dev = dev;
    es->desc = *desc;
    if (!fill_desc(es)) {
        goto undo;
    }
    es->quads = grt_policy_quads(&es->desc.policy, es->desc.env);
    if (grt_es_share(es) && choose_chunk(es) && allocate(es) && start(es) && choose_steps(es) &&
        record(es) && grt_es_average_begin(es)) {
        return es;
    }
undo:
    grt_es_destroy(&es);
    return NULL;
}

void grt_es_destroy(struct grt_es **es) {
    if (!es || !*es) {
        return;
    }
    es_work_destroy(&(*es)->iteration);
    es_work_destroy(&(*es)->evaluation);
    es_work_destroy(&(*es)->update);
    free((*es)->exchanged);
    free((*es)->all_results);
    free((*es)->average);
    free((*es)->newest);
    grt_buf_destroy(&(*es)->readback);
    grt_plan_destroy(&(*es)->plan);
    free(*es);
    *es = NULL;
}

const struct grt_es_desc *grt_es_desc_of(const struct grt_es *es) {
    return es ? &es->desc : NULL;
}

static bool run_timed(const struct grt_es *es, struct es_work *work, struct grt_es_report *report) {
    struct es_work_time time;
    bool ok = es_work_run(work, es->desc.stop, &time);
    report->seconds = time.seconds;
    report->busy = time.busy;
    report->stopped = time.stopped;
    return ok;
}

// The directions of ranks that are gone are those of the others. Chunks stay as they are: the
// memory is planned for them.
static bool deal_anew(struct grt_es *es) {
    es_work_destroy(&es->iteration);
    es_work_destroy(&es->evaluation);
    es_work_destroy(&es->update);
    return grt_es_share(es) && record(es);
}

bool grt_es_iterate(struct grt_es *es, struct grt_es_report *report) {
    if (!es || !report) {
        return grt_fail(GRT_INVALID, "grt_es_iterate: no %s", es ? "report" : "learner");
    }
    *report = (struct grt_es_report){0};
    bool several, again;
    double begun = grt_seconds();
    // The update is in the last piece: until then nothing that is learnt has changed.
    do {
        again = false;
        if (grt_es_thinned(es) && !deal_anew(es)) {
            return false;
        }
        several = grt_comm_ranks(es->desc.comm) > 1;
        if (!run_timed(es, &es->iteration, report) ||
            (several && !grt_es_exchange(es, &report->stopped, &again))) {
            return false;
        }
    } while (again);
    if (report->stopped) {
        return true;
    }
    double busy = report->busy;
    if (several && !run_timed(es, &es->update, report)) {
        return false;
    }
    if (several) {
        report->busy += busy;
        report->seconds = grt_seconds() - begun;
        report->stopped = false;
    }
    const float *numbers = grt_buf_host(es->readback);
    es->done++;
    es->iterated++;
    report->iteration = es->done;
    report->mean_return = numbers[ES_MEAN];
    report->best_return = numbers[ES_BEST];
    report->spread = numbers[ES_SPREAD];
    report->good_rate = numbers[ES_GOOD_RATE];
    report->best_good = numbers[ES_BEST_GOOD];
    report->fall_rate = numbers[ES_FALL_RATE];
    report->steps = (double)numbers[ES_STEPS] * 2.0 * es->desc.num_dirs * es->desc.num_envs;
    return (!several || grt_es_settle(es, report)) && grt_es_average_add(es);
}

bool grt_es_returns(const struct grt_es *es, float *returns) {
    if (!es || !returns || es->iterated == 0) {
        return grt_fail(GRT_INVALID, "grt_es_returns: no %s",
                        !es        ? "learner"
                        : !returns ? "room for returns"
                                   : "iteration yet");
    }
    // The first row of the results; the sums are over environments.
    uint32_t sides = 2 * es->desc.num_dirs;
    const struct grt_range *all = &es->results->range;
    if (!grt_buf_read(all->buf, all->offset, returns, sides * sizeof *returns)) {
        return false;
    }
    for (uint32_t i = 0; i < sides; i++) {
        returns[i] /= (float)es->desc.num_envs;
    }
    return true;
}

bool grt_es_evaluate(struct grt_es *es, uint32_t seed, struct grt_es_report *report) {
    if (!es || !report) {
        return grt_fail(GRT_INVALID, "grt_es_evaluate: no %s", es ? "report" : "learner");
    }
    const struct grt_rng_state trial = {{seed, 0}, {es->done, 0}};
    *report = (struct grt_es_report){.iteration = es->done};
    // A trial that fails leaves the policy its own parameters too.
    bool in = grt_es_average_in(es, true);
    bool ok = in && grt_es_write(es->trial, &trial) && run_timed(es, &es->evaluation, report);
    bool out = in && grt_es_average_in(es, false);
    if (!ok || !out) {
        return false;
    }
    if (report->stopped) {
        return true;
    }
    const float *sums = grt_buf_host(es->readback);  // return, good steps, falls, steps taken
    float envs = (float)es->desc.num_envs;
    report->mean_return = sums[0] / envs;
    report->best_return = report->mean_return;
    report->good_rate = sums[1] / (envs * (float)es->desc.episode_length);
    report->fall_rate = sums[2] / envs;
    report->steps = (double)sums[3];
    return true;
}

struct grt_es_size grt_es_size(const struct grt_es *es) {
    if (!es) {
        return (struct grt_es_size){0};
    }
    const struct grt_es_desc *d = &es->desc;
    uint32_t chunks = (es->dir_count + d->dir_chunk - 1) / d->dir_chunk;
    return (struct grt_es_size){
        .batch = (uint64_t)2 * d->num_dirs * d->num_envs,
        .bytes = grt_plan_bytes(es->plan, NULL),
        .launches = chunks * ((d->episode_length + es->at_once - 1) / es->at_once),
        .steps_at_once = es->at_once,
    };
}
