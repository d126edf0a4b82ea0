// SPDX-License-Identifier: Apache-2.0
#include "gpurt/optim.h"

#include <math.h>
#include <stddef.h>

#include "gpurt/device.h"
#include "ops/op_support.h"
#include "gpurt/profile.h"
#include "shaders/host.h"
#include "shaders/nn/lib/nn_words.k"
#include "shaders/optim/lib/optim_params.k"

const char *grt_optim_text(enum grt_optim optim) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_OPTIMS(X)
#undef X
    };
    return (unsigned)optim < GRT_OPTIM_COUNT ? texts[optim] : "unknown optimizer";
}

const char *grt_schedule_text(enum grt_schedule schedule) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_SCHEDULES(X)
#undef X
    };
    return (unsigned)schedule < GRT_SCHEDULE_COUNT ? texts[schedule] : "unknown schedule";
}

struct grt_optim_desc grt_optim_defaults(enum grt_optim kind) {
    return (struct grt_optim_desc){
        .kind = kind,
        .lr = 1e-3,
        .weight_decay = kind == GRT_OPTIM_ADAMW ? 1e-2 : 0.0,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-8,
        .gamma = 0.1,
        .trust = 1e-3,
        .div = 25.0,
        .final_div = 1e4,
        .scale = 65536.0,
        .growth = 2.0,
        .backoff = 0.5,
        .growth_interval = 2000,
    };
}

double grt_lr_for_batch(double lr, uint64_t batch, uint64_t base_batch) {
    return batch > 0 && base_batch > 0 ? lr * sqrt((double)batch / (double)base_batch) : lr;
}

static bool is_adam(const struct grt_optim_desc *d) {
    return d->kind == GRT_OPTIM_ADAM || d->kind == GRT_OPTIM_ADAMW;
}

uint32_t grt_optim_tensors(const struct grt_optim_desc *desc) {
    return is_adam(desc) ? 2 : desc->momentum != 0.0;
}

const char *grt_optim_tensor_name(const struct grt_optim_desc *desc, uint32_t i) {
    static const char *const adam[] = {"exp_avg", "exp_avg_sq"};
    if (i >= grt_optim_tensors(desc)) {
        return NULL;
    }
    return is_adam(desc) ? adam[i] : "momentum_buffer";
}

static const char *groups_mistake(const struct grt_optim_desc *d) {
    if (d->group_count > GRT_OPTIM_GROUPS) {
        return "more than 16 groups of parameters";
    }
    for (uint32_t i = 0; i < d->group_count; i++) {
        const struct grt_optim_group *g = &d->groups[i];
        if (!g->match[0]) {
            return "a group of parameters without a pattern of names";
        }
        if ((g->own_lr && !(g->lr >= 0.0 && isfinite(g->lr))) ||
            (g->own_decay && !(g->weight_decay >= 0.0))) {
            return "lr and weight_decay of a group must not be below 0";
        }
    }
    return NULL;
}

const char *grt_optim_mistake(const struct grt_optim_desc *d) {
    if ((unsigned)d->kind >= GRT_OPTIM_COUNT || (unsigned)d->schedule >= GRT_SCHEDULE_COUNT ||
        (unsigned)d->nonfinite >= GRT_NONFINITE_COUNT) {
        return "no such optimizer, schedule or reaction";
    }
    if (!(d->lr > 0.0) || !isfinite(d->lr)) {
        return "lr must be above 0";
    }
    if (!(d->weight_decay >= 0.0) || !(d->max_norm >= 0.0) || !(d->min_lr >= 0.0)) {
        return "weight_decay, max_norm and min_lr must not be below 0";
    }
    if (!(d->momentum >= 0.0) || (d->nesterov && (d->momentum == 0.0 || d->dampening != 0.0))) {
        return "momentum must not be below 0, and Nesterov's wants momentum and no dampening";
    }
    if (d->kind == GRT_OPTIM_LARS && !(d->trust > 0.0)) {
        return "the trust coefficient of lars must be above 0";
    }
    if (!(d->ema >= 0.0 && d->ema < 1.0)) {
        return "ema must lie in [0, 1)";
    }
    if (is_adam(d) && (!(d->beta1 >= 0.0 && d->beta1 < 1.0) ||
                       !(d->beta2 >= 0.0 && d->beta2 < 1.0) || !(d->eps >= 0.0))) {
        return "beta1 and beta2 must lie in [0, 1), eps must not be below 0";
    }
    if ((d->schedule == GRT_SCHEDULE_COSINE || d->schedule == GRT_SCHEDULE_LINEAR) &&
        d->total <= d->warmup) {
        return "cosine and linear want more steps in all than the warm-up has";
    }
    if (d->schedule == GRT_SCHEDULE_ONE_CYCLE &&
        (d->warmup == 0 || d->total <= d->warmup || !(d->div >= 1.0) || !(d->final_div >= 1.0))) {
        return "one_cycle wants steps that rise and steps that fall, and divisors of at least 1";
    }
    if (d->schedule == GRT_SCHEDULE_STEP && (d->period == 0 || !(d->gamma > 0.0))) {
        return "step wants a period of at least 1 and gamma above 0";
    }
    if (!(d->scale > 0.0) || !(d->growth >= 1.0) || !(d->backoff > 0.0 && d->backoff < 1.0) ||
        d->growth_interval == 0) {
        return "the loss scale must be above 0, growth at least 1, back-off in (0, 1), the "
               "interval "
               "at least 1";
    }
    return groups_mistake(d);
}

// Each member of the state lies at the word where kernels look for it, and there are no others.
#define AT(member, word)                                                                           \
    _Static_assert(offsetof(struct grt_learn_state, member) == 4 * (word),                         \
                   #member " is not word " #word);
AT(steps, NN_STEPS)
AT(updates, NN_UPDATES)
AT(skipped, NN_SKIPPED)
AT(halted, NN_HALTED)
AT(loss_scale, NN_LOSS_SCALE)
AT(good, NN_GOOD)
AT(lr_factor, NN_LR_FACTOR)
AT(cursor, NN_CURSOR)
AT(loss, NN_LOSS)
AT(grad_norm, NN_GRAD_NORM)
AT(lr, NN_LR)
AT(finite, NN_FINITE)
AT(found_steps, NN_FOUND_STEPS)
AT(found_updates, NN_FOUND_UPDATES)
AT(found_halted, NN_FOUND_HALTED)
AT(found_loss_scale, NN_FOUND_LOSS_SCALE)
AT(eval_loss, NN_EVAL_LOSS)
AT(eval_samples, NN_EVAL_SAMPLES)
AT(eval_hits, NN_EVAL_HITS)
AT(found_lr_factor, NN_FOUND_LR_FACTOR)
AT(epoch, NN_EPOCH)
AT(eval_cursor, NN_EVAL_CURSOR)
AT(eval_near, NN_EVAL_NEAR)
AT(idle, NN_IDLE)
AT(eval_parts, NN_EVAL_PARTS)
AT(reserved, NN_WORDS)
#undef AT
_Static_assert(sizeof(struct grt_learn_state) == 32 * 4, "checkpoints hold 32 words of state");

#define AT(member, word)                                                                           \
    _Static_assert(offsetof(struct grt_learn_row, member) == 4 * (word),                           \
                   #member " is not number " #word);
AT(loss, NN_ROW_LOSS)
AT(grad_norm, NN_ROW_GRAD_NORM)
AT(lr, NN_ROW_LR)
AT(loss_scale, NN_ROW_LOSS_SCALE)
AT(parts, NN_ROW_PARTS)
#undef AT
_Static_assert(sizeof(struct grt_learn_row) == 4 * NN_ROW && GRT_HISTORY == NN_ROWS, "history");

#define X(name, text) _Static_assert((unsigned)GRT_OPTIM_##name == OPTIM_##name, text);
GRT_OPTIMS(X)
#undef X
#define X(name, text) _Static_assert((unsigned)GRT_SCHEDULE_##name == SCHEDULE_##name, text);
GRT_SCHEDULES(X)
#undef X

// The logarithm of what Adam's averages forget by; 0, none, makes the corrections 1. beta 0 forgets
// all.
static float log_beta(const struct grt_optim_desc *d, double beta) {
    return !is_adam(d) ? 0.0f : beta > 0.0 ? (float)log(beta) : -100.0f;
}

static struct decide_params decision_of(const struct grt_update_desc *u, uint32_t norm_parts) {
    const struct grt_optim_desc *d = u->optim;
    bool cycle = d->schedule == GRT_SCHEDULE_ONE_CYCLE;
    bool falls = d->schedule == GRT_SCHEDULE_COSINE || d->schedule == GRT_SCHEDULE_LINEAR;
    uint32_t span = falls || cycle                     ? d->total - d->warmup
                    : d->schedule == GRT_SCHEDULE_STEP ? d->period
                                                       : 1;
    uint32_t rise = cycle && d->warmup > 0 ? d->warmup - 1 : d->warmup;
    return (struct decide_params){
        .norm_parts = norm_parts,
        .loss_parts = u->loss_part_count,
        .samples = u->cursor_step,
        .epoch = u->cursor_end,
        .lr = (float)d->lr,
        .min_lr = (float)(cycle ? 1.0 / (d->div * d->final_div) : d->min_lr),
        .warmup = d->warmup,
        .per_warmup = rise > 0 ? (float)(1.0 / rise) : 0.0f,
        .span = span,
        .per_span = (float)(1.0 / span),
        .turn = (float)(cycle                              ? 1.0 / d->div
                        : d->schedule == GRT_SCHEDULE_STEP ? log(d->gamma)
                                                           : 0.0),
        .log_beta1 = log_beta(d, d->beta1),
        .log_beta2 = log_beta(d, d->beta2),
        .weight_decay = d->kind == GRT_OPTIM_ADAMW ? (float)d->weight_decay : 0.0f,
        .max_norm = (float)d->max_norm,
        .growth = (float)d->growth,
        .backoff = (float)d->backoff,
        .interval = d->growth_interval,
    };
}

// Parts of the gradients' sum of squares: enough to fill a device, few for what is small. A device
// that cannot reach all gradients at once takes its share of the parts for each piece. OpenCL on a
// CPU has a lane a core, which walks through memory by vectors: lanes side by side would each fetch
// every line of it.
uint32_t grt_op_squares(struct grt_graph *graph, const struct grt_squares_desc *d) {
    const struct grt_dev *dev = grt_graph_dev(graph);
    const struct grt_dev_info *info = grt_dev_info(dev);
    bool alone = info->caps.software && info->backend == GRT_BACKEND_OPENCL;
    uint32_t wg = alone ? 1 : grt_op_tree_wg(dev), first = d->first;
    struct grt_pieces pieces = grt_op_pieces(graph, grt_tensor_count(d->grads), 4);
    uint64_t piece_count = (pieces.total + pieces.largest - 1) / pieces.largest;
    while (grt_op_next(&pieces)) {
        uint64_t groups = (pieces.count + 4 * (uint64_t)wg - 1) / (4 * (uint64_t)wg);
        uint64_t most = d->most / piece_count, units = info->caps.compute_units;
        if (most == 0) {
            grt_graph_reject(graph, GRT_UNSUPPORTED, "too many gradients for %s: %llu pieces",
                             grt_dev_info(dev)->selector, (unsigned long long)piece_count);
            return 0;
        }
        most = alone && units > 0 && units < most ? units : most;
        groups = groups < most ? groups : most;
        const struct grad_norm_params params = {.n = (uint32_t)pieces.count, .first = first};
        const struct grt_range ranges[] = {grt_op_piece(d->grads, &pieces), d->state->range,
                                           d->parts->range};
        grt_op_launch(
            graph,
            grt_kernel_desc(.name = "grad_norm", .specs = {{"WG", wg}, {"WIDE", alone ? 16 : 1}}),
            &params, sizeof params, ranges, 3, (const uint32_t[3]){(uint32_t)groups, 1, 1});
        first += (uint32_t)groups;
    }
    return first - d->first;
}

// Element i of a range of `type`, at the current piece.
static struct grt_range piece_of(const struct grt_tensor *t, const struct grt_pieces *pieces,
                                 uint64_t first) {
    uint64_t size = grt_dtype_size(t->dtype);
    return grt_op_part(t->range, (first + pieces->first) * size, pieces->count * size);
}

// Of LARS. It has one launch: a binding reaches all parameters, which grt_op_update() has checked.
static void measure(struct grt_graph *graph, const struct grt_update_desc *u) {
    uint64_t rows = grt_optim_rate_rows(u->optim, u->params);
    const struct lars_lengths_params params = {
        .at = (uint32_t)(2 * rows + u->params->elements / u->params->unit)};
    const struct grt_range ranges[] = {u->params->master->range, u->params->grad->range,
                                       u->state->range, u->rates->range, u->lengths->range};
    uint32_t wg = grt_op_tree_wg(grt_graph_dev(graph));
    grt_op_launch(graph, grt_kernel_desc(.name = "lars_lengths", .specs = {{"WG", wg}}), &params,
                  sizeof params, ranges, 5, (const uint32_t[3]){(uint32_t)rows * LARS_PARTS, 1, 1});
}

uint64_t grt_optim_lengths(const struct grt_optim_desc *d, const struct grt_params *params) {
    return d->kind == GRT_OPTIM_LARS ? grt_optim_rate_rows(d, params) * 2 * LARS_PARTS : 0;
}

// lavapipe ends a loop, silently, after 65535 turns (Mesa 22.3): a lane takes fewer.
#define MOST_TURNS 32768

// How the update is cut: each workgroup decides for itself, then takes a run of the elements.
struct cut {
    uint32_t wg, groups;
    uint32_t run;
    uint32_t adders;
};

// Workgroups of a GPU's compute unit, which all decide: 8 fill it. Microseconds of 8 layers of 512
// with 9216 parts of the norm on an H200 (OpenCL, driver 580.159.04, 2026-11): 1024 workgroups 26,
// 256 34, 4096 41, one for each 256 elements, 7200, 63.
#define A_UNIT 8u

// On a CPU a workgroup is a thread's work, and lanes that wait for each other cost: a few small
// ones there.
static struct cut cut(const struct grt_dev *dev, uint64_t elements) {
    const struct grt_caps *caps = &grt_dev_info(dev)->caps;
    struct cut c = {.wg = grt_op_wg(dev), .adders = 1};
    uint64_t most = grt_profile_whole(grt_dev_profile(dev), GRT_KEY_STREAM_GROUPS);
    if (caps->software) {
        c.wg =
            grt_dev_info(dev)->backend == GRT_BACKEND_VULKAN && caps->subgroup ? caps->subgroup : 1;
        most = caps->compute_units ? caps->compute_units : 1;
        uint64_t turns = (uint64_t)c.wg * MOST_TURNS, least = (elements + turns - 1) / turns;
        most = most > least ? most : least;
    }
    if (!caps->software && caps->compute_units > 0 && most > A_UNIT * caps->compute_units) {
        most = A_UNIT * caps->compute_units;
    }
    while (!caps->software && 2 * c.adders <= c.wg && c.adders < grt_op_tree_wg(dev)) {
        c.adders *= 2;
    }
    uint64_t at_once = c.wg * most;
    c.run = (uint32_t)((elements + at_once - 1) / at_once) * c.wg;
    c.groups = (uint32_t)((elements + c.run - 1) / c.run);
    return c;
}

static void update(struct grt_graph *graph, const struct grt_update_desc *u, uint32_t norm_parts) {
    const struct grt_optim_desc *d = u->optim;
    const struct grt_params *all = u->params;
    uint32_t kept = grt_optim_tensors(d);
    uint32_t copy = all->type == GRT_F32 ? 0 : all->type == GRT_F16 ? 1 : 2;
    uint64_t rates = u->rates ? grt_optim_rate_rows(d, all) : 0;
    struct grt_pieces pieces = grt_op_pieces(graph, all->elements, 4);
    while (grt_op_next(&pieces)) {
        struct cut by = cut(grt_graph_dev(graph), pieces.count);
        const struct grt_kernel_desc kernel = {"optim",
                                               {{"WG", by.wg},
                                                {"OPTIM", (uint32_t)d->kind},
                                                {"MOMENTUM", d->momentum != 0.0},
                                                {"NESTEROV", d->nesterov},
                                                {"COPY", copy},
                                                {"SCHEDULE", (uint32_t)d->schedule},
                                                {"SCALING", u->scaling},
                                                {"HALT", d->nonfinite == GRT_NONFINITE_HALT},
                                                {"ADDERS", by.adders},
                                                {"RATES", (uint32_t)rates},
                                                {"EMA", u->average != NULL}}};
        const struct optim_params params = {
            .n = (uint32_t)pieces.count,
            .run = by.run,
            .leads = pieces.first == 0,
            .weight_decay = (float)d->weight_decay,
            .rate = (float)d->momentum,
            .damp = (float)(1.0 - d->dampening),
            .beta1 = (float)d->beta1,
            .beta2 = (float)d->beta2,
            .rest1 = (float)(1.0 - d->beta1),
            .rest2 = (float)(1.0 - d->beta2),
            .eps = (float)(d->kind == GRT_OPTIM_LARS ? d->trust : d->eps),
            .first = (uint32_t)pieces.first,
            .unit = (uint32_t)all->unit,
            .ema = (float)d->ema,
            .decide = decision_of(u, norm_parts),
        };
        // Operands that this optimizer does not have are bound to what it does not look at, each to
        // something else: written bindings may not overlap.
        const struct grt_range ranges[] = {
            piece_of(all->master, &pieces, 0),
            piece_of(all->grad, &pieces, 0),
            kept > 0 ? piece_of(u->kept, &pieces, 0) : grt_op_unused_at(graph, 0),
            kept > 1 ? piece_of(u->kept, &pieces, all->elements) : grt_op_unused_at(graph, 1),
            copy ? piece_of(all->copy, &pieces, 0) : grt_op_unused_at(graph, 2),
            u->state->range,
            u->norms.buf ? u->norms : u->norm_parts->range,
            u->loss_parts,
            u->history->range,
            u->rates ? u->rates->range : u->loss_parts,
            u->average ? piece_of(u->average, &pieces, 0) : grt_op_unused_at(graph, 3),
            d->kind == GRT_OPTIM_LARS ? u->lengths->range : u->loss_parts,
        };
        const uint32_t groups[3] = {by.groups, 1, 1};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges,
                      sizeof ranges / sizeof ranges[0], groups);
    }
}

void grt_op_update(struct grt_graph *graph, const struct grt_update_desc *u) {
    if (!graph || !u || !u->optim || !u->params || !u->params->master) {
        grt_graph_reject(graph, GRT_INVALID, "update: no desc, optimizer or parameters");
        return;
    }
    const char *why = grt_optim_mistake(u->optim);
    uint64_t wanted = grt_optim_tensors(u->optim) * u->params->elements;
    if (why || (wanted > 0 && (!u->kept || grt_tensor_count(u->kept) < wanted))) {
        grt_graph_reject(graph, GRT_INVALID, "update: %s",
                         why ? why : "what the optimizer keeps has too few elements");
        return;
    }
    if (!grt_op_tensor(graph, "update", "params", u->params->master) ||
        !grt_op_tensor(graph, "update", "grads", u->params->grad) ||
        !grt_op_tensor(graph, "update", "state", u->state) ||
        !grt_op_tensor(graph, "update", "history", u->history) ||
        !grt_op_tensor(graph, "update", "norm_parts", u->norm_parts) || u->loss_part_count == 0) {
        grt_graph_reject(graph, GRT_INVALID, "update: no parts of a loss");
        return;
    }
    if (grt_tensor_bytes(u->history) < GRT_HISTORY * sizeof(struct grt_learn_row)) {
        grt_graph_reject(graph, GRT_INVALID, "update: the history wants %d rows of 8 numbers",
                         GRT_HISTORY);
        return;
    }
    uint64_t words = grt_optim_rate_words(u->optim, u->params);
    if ((u->rates ? grt_tensor_count(u->rates) : 0) != words) {
        grt_graph_reject(graph, GRT_INVALID,
                         "update: groups of parameters want %llu words of rates",
                         (unsigned long long)words);
        return;
    }
    if ((u->average ? grt_tensor_count(u->average) : 0) !=
        (u->optim->ema > 0.0 ? u->params->elements : 0)) {
        grt_graph_reject(graph, GRT_INVALID, "update: ema wants an average of all parameters");
        return;
    }
    bool lars = u->optim->kind == GRT_OPTIM_LARS;
    if (lars &&
        (!u->lengths || grt_tensor_count(u->lengths) < grt_optim_lengths(u->optim, u->params) ||
         u->params->elements > grt_op_reach(grt_graph_dev(graph)))) {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "update: lars wants room for lengths, and a binding that reaches all "
                         "parameters");
        return;
    }
    const struct grt_squares_desc squares = {.grads = u->params->grad,
                                             .state = u->state,
                                             .parts = u->norm_parts,
                                             .most = GRT_NORM_PARTS};
    uint32_t norm_parts = u->norms.buf ? u->norm_count : grt_op_squares(graph, &squares);
    if (norm_parts > 0 && lars) {
        measure(graph, u);
    }
    if (norm_parts > 0) {
        update(graph, u, norm_parts);
    }
}
