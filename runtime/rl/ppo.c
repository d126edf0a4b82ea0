// SPDX-License-Identifier: Apache-2.0
// Making PPO: checks the desc, declares every tensor into one plan, allocates, draws, records.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/device.h"
#include "ops/op_support.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

// That networks see at once, at least: evaluations with more copies than learn go in pieces.
#define LEAST_ROWS 256
#define LEAST_ROWS_OF_GPU 16384
#define ONE 0x3f800000u  // 1.0f

struct grt_ppo_desc grt_ppo_defaults(void) {
    struct grt_ppo_desc d = {.horizon = 128,
                             .epochs = 4,
                             .gamma = 0.99,
                             .lambda = 0.95,
                             .clip = 0.2,
                             .value_weight = 0.5,
                             .entropy_weight = 0.01,
                             .optim = grt_optim_defaults(GRT_OPTIM_ADAM)};
    d.optim.lr = 3e-4;
    d.optim.eps = 1e-5;
    d.optim.max_norm = 0.5;
    return d;
}

static bool within(double value, double least, double most) {
    return value >= least && value <= most;
}

static const char *mistake(const struct grt_ppo_desc *d) {
    if (!d->worlds || !d->actor.make || !d->critic.make) {
        return d->worlds ? "no actor or no critic" : "no worlds";
    }
    if (d->horizon == 0 || d->epochs == 0) {
        return "horizon and epochs must be at least 1";
    }
    if (!within(d->gamma, 0, 1) || !within(d->lambda, 0, 1)) {
        return "gamma and lambda must be from 0 to 1";
    }
    if (!(d->clip > 0) || !within(d->value_clip, 0, 1e30) || !within(d->value_weight, 0, 1e30) ||
        !within(d->entropy_weight, 0, 1e30) || !within(d->target_kl, 0, 1e30)) {
        return "clip must be above 0, and value_clip, weights and target_kl not below 0";
    }
    if (!within(d->log_std, -20, 10)) {
        return "log_std must be from -20 to 10";
    }
    if (d->precision != GRT_F32 && d->precision != GRT_F16 && d->precision != GRT_BF16) {
        return "precision must be f32, f16 or bf16";
    }
    if (d->variant && strcmp(d->variant, "layers") != 0 && strcmp(d->variant, "rows") != 0) {
        return "variant must be NULL, \"layers\" or \"rows\"";
    }
    if (d->parts > 0 && d->part >= d->parts) {
        return "part must be below parts";
    }
    return grt_optim_mistake(&d->optim);
}

// ---- declaring ----

static struct grt_tensor *declare(struct grt_plan *plan, const char *label, const char *group,
                                  enum grt_dtype dtype, uint64_t a, uint64_t b) {
    return grt_plan_tensor(
        plan, grt_tensor_desc(.label = label, .group = group, .dtype = dtype, .shape = {a, b}));
}

// Numbers of 4 bytes until the next place where a binding may begin.
static uint64_t aligned(const struct grt_ppo *ppo, uint64_t numbers) {
    return grt_dev_align_up(ppo->dev, numbers * 4) / 4;
}

uint64_t grt_ppo_section(const struct ppo_actors *actors) {
    return (actors->steps + 1) * actors->stride;
}

bool grt_ppo_declare_actors(const struct grt_ppo *ppo, struct ppo_actors *a, struct grt_plan *plan,
                            uint64_t steps) {
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(a->worlds);
    uint32_t copies = grt_worlds_copies(a->worlds);
    a->plan = plan;
    a->steps = steps;
    a->rows = (uint64_t)copies * sizes->agents;
    a->stride = aligned(ppo, a->rows);
    uint32_t each = 4 / grt_dtype_size(ppo->net.dtype);  // numbers of a word
    a->obs_words = (uint32_t)ppo->actor.x->shape[1] / each;
    a->whole_words =
        ppo->desc.central ? (uint32_t)grt_net_pitch(&ppo->net, sizes->global) / each : 0;
    a->obs_stride = aligned(ppo, a->rows * a->obs_words);
    a->whole_stride = aligned(ppo, (uint64_t)copies * a->whole_words);
    a->acts_stride = sizes->choices > 0 ? 0 : aligned(ppo, a->rows * sizes->act);
    if (!grt_ppo_actors_fit(ppo, a)) {
        return false;
    }
    grt_worlds_declare(a->worlds, plan);
    a->control = declare(plan, "control", "state", GRT_U32, 4, 0);
    a->traj = declare(plan, "trajectory", "rollout", GRT_U32, PPO_SECTIONS * grt_ppo_section(a), 0);
    a->obs = declare(plan, "observations", "rollout", GRT_U32, (steps + 1) * a->obs_stride, 0);
    if (ppo->desc.normalise) {
        a->raw = declare(plan, "raw observations", "rollout", GRT_F32, a->rows, sizes->obs);
    }
    if (a->whole_stride > 0) {
        a->whole = declare(plan, "observations of the whole", "rollout", GRT_U32,
                           (steps + 1) * a->whole_stride, 0);
    }
    if (a->acts_stride > 0) {
        a->acts = declare(plan, "actions", "rollout", GRT_F32, steps * a->acts_stride, 0);
    }
    a->totals = declare(plan, "totals", "state", GRT_F32, GRT_WORLD_TOTALS + sizes->terms, 0);
    return (a->control && a->traj && a->obs && a->totals) ||
           grt_fail(GRT_NO_MEMORY, "no host memory for PPO");
}

// A network and its operands; false with the sentence.
static bool declare_net(struct grt_ppo *ppo, struct ppo_net *n, const struct grt_ppo_net *from,
                        const char *prefix, uint64_t inputs, uint64_t outputs) {
    n->module = from->make(from->of);
    if (!n->module) {
        return false;
    }
    struct grt_net *net = &ppo->net;
    n->first_param = ppo->params.count;
    const struct grt_shape in = {.rank = 1, .dim = {inputs}};
    struct grt_shape out = grt_module_declare(n->module, net, prefix, &in);
    char text[GRT_SHAPE_TEXT];
    if (out.rank == 0) {
        return false;
    }
    if (out.rank != 1 || out.dim[0] != outputs) {
        return grt_fail(GRT_CONFIG, "%sthe %.*s gives %s for an observation; it must give [%llu]",
                        n->module->where, (int)strlen(prefix) - 1, prefix,
                        grt_shape_text(&out, text), (unsigned long long)outputs);
    }
    uint64_t pitch = grt_net_pitch(net, inputs);
    n->x = declare(ppo->plan, "input", "acts", net->dtype, net->rows, pitch);
    if (!n->module->wide_rows && pitch > inputs) {
        n->tight = declare(ppo->plan, "tight input", "acts", net->dtype, net->rows, inputs);
    }
    n->y = declare(ppo->plan, "output", "acts", GRT_F32, net->rows, outputs);
    if (net->dtype != GRT_F32 && !n->module->f32_output) {
        n->y16 = declare(ppo->plan, "output16", "acts", net->dtype, net->rows, outputs);
    }
    n->dy = declare(ppo->plan, "output gradient", "acts", net->dtype, net->rows, outputs);
    return true;
}

static bool declare_nets(struct grt_ppo *ppo) {
    const struct grt_ppo_desc *d = &ppo->desc;
    uint64_t seen = ppo->sizes->obs + (d->central ? ppo->sizes->global : 0);
    ppo->critic.whole = d->central;
    if (!declare_net(ppo, &ppo->actor, &d->actor, "actor.", ppo->sizes->obs, ppo->width) ||
        !declare_net(ppo, &ppo->critic, &d->critic, "critic.", seen, 1)) {
        return false;
    }
    if (ppo->sizes->choices == 0) {
        ppo->log_std = grt_params_add(&ppo->params, "", "log_std", (uint64_t[]){ppo->width, 0},
                                      GRT_INIT_ZEROS, 0.0f);
        ppo->dlog_std =
            declare(ppo->plan, "log_std gradients", "acts", GRT_F32, ppo->net.rows, ppo->width);
        grt_net_scratch(&ppo->net,
                        grt_op_colsum_scratch(ppo->dev, grt_colsum_desc(.x = ppo->dlog_std)));
    }
    return true;
}

// That the networks see at once: those of a minibatch and of a step, and enough for an evaluation
// in pieces.
static uint64_t most_rows(const struct grt_ppo *ppo, uint64_t of_step) {
    uint64_t rows = ppo->batch > of_step ? ppo->batch : of_step;
    uint64_t least = grt_dev_info(ppo->dev)->caps.software ? LEAST_ROWS : LEAST_ROWS_OF_GPU;
    return rows > least ? rows : least;
}

// Sums of workgroups, or those of learners, take the same place.
static uint64_t most_of(uint64_t groups, uint64_t parts) {
    return groups > parts ? groups : parts;
}

static bool declare_all(struct grt_ppo *ppo) {
    const struct grt_ppo_desc *d = &ppo->desc;
    struct grt_plan *plan = ppo->plan;
    grt_params_init(&ppo->params, ppo->dev, d->precision);
    uint64_t rows = (uint64_t)grt_worlds_copies(d->worlds) * ppo->sizes->agents;
    ppo->count = rows * d->horizon;
    uint64_t batch = d->batch > 0 && d->batch < ppo->count ? d->batch : ppo->count;
    uint64_t wanted = (ppo->count + batch - 1) / batch;
    // As many as hide the waits for memory.
    ppo->groups = grt_dev_info(ppo->dev)->caps.software ? PPO_GROUPS : PPO_MOST_GROUPS;
    ppo->batch = (ppo->count + wanted - 1) / wanted;  // all but the last alike
    ppo->batches = (uint32_t)((ppo->count + ppo->batch - 1) / ppo->batch);
    ppo->net = (struct grt_net){.dev = ppo->dev,
                                .plan = plan,
                                .params = &ppo->params,
                                .dtype = d->precision,
                                .rows = most_rows(ppo, rows),
                                .seed = d->seed};
    if (!declare_nets(ppo) || !grt_ppo_declare_actors(ppo, &ppo->learning, plan, d->horizon)) {
        return false;
    }
    grt_ppo_declare_apart(ppo, &ppo->actor);
    grt_ppo_declare_apart(ppo, &ppo->critic);
    grt_ppo_declare_hidden(ppo, &ppo->actor);
    grt_ppo_declare_hidden(ppo, &ppo->critic);
    if (grt_ppo_learns(ppo)) {
        ppo->records = declare(plan, "records", "rollout", GRT_U32, ppo->count, PPO_SECTIONS);
    }
    grt_params_declare(&ppo->params, plan, true);
    uint64_t kept = grt_optim_tensors(&d->optim) * ppo->params.elements;
    ppo->kept = kept > 0 ? declare(plan, "optimizer", "optim", GRT_F32, kept, 0) : NULL;
    if (d->optim.ema > 0.0) {
        ppo->average = declare(plan, "average", "optim", GRT_F32, ppo->params.elements, 0);
    }
    if (d->normalise) {
        ppo->norm = declare(plan, "normalizer", "normalizer", GRT_F32, 3, ppo->sizes->obs);
        ppo->counts = declare(plan, "counts", "normalizer", GRT_F32, ppo->sizes->obs, 0);
        ppo->moments = declare(plan, "sums of observations", "scratch", GRT_F32,
                               most_of(ppo->groups, d->parts), 2ull * ppo->sizes->obs + 1);
    }
    ppo->state = declare(plan, "state", "state", GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    ppo->history = declare(plan, "history", "state", GRT_F32, GRT_HISTORY, 8);
    ppo->norm_parts = declare(plan, "norm parts", "state", GRT_F32, GRT_NORM_PARTS, 0);
    ppo->tallies = declare(plan, "tallies", "state", GRT_U32, PPO_GROUPS, 0);
    ppo->list = declare(plan, "list", "rollout", GRT_U32, ppo->count, 0);
    ppo->order = declare(plan, "order", "rollout", GRT_U32, ppo->batches * ppo->batch, 0);
    ppo->sums = declare(plan, "sums", "state", GRT_F32, most_of(PPO_GROUPS, d->parts), PPO_SUMS);
    ppo->norms = declare(plan, "norms", "state", GRT_U32, PPO_NORMS, 0);
    ppo->stats = declare(plan, "stats", "state", GRT_F32, ppo->groups, PPO_STATS + 1);
    if (ppo->net.scratch_bytes > 0) {
        ppo->net.scratch =
            declare(plan, "scratch", "scratch", GRT_F32, (ppo->net.scratch_bytes + 3) / 4, 0);
    }
    return (!ppo->params.failed && grt_ppo_undo_declare(ppo)) ||
           grt_fail(GRT_NO_MEMORY, "no host memory for PPO");
}

// ---- beginning ----

// As long as nothing was seen, observations are left as they are.
static void begin_normalizer(struct grt_ppo *ppo, struct grt_graph *graph) {
    uint64_t row = (uint64_t)ppo->sizes->obs * 4;
    grt_graph_fill(graph, ppo->norm->range, 0);
    grt_graph_fill(graph, grt_op_part(ppo->norm->range, row, row), ONE);
    grt_graph_fill(graph, ppo->counts->range, 0);
}

static bool begin(struct grt_ppo *ppo) {
    const struct grt_ppo_desc *d = &ppo->desc;
    const struct grt_learn_state state = {
        .loss_scale = d->precision == GRT_F16 ? (float)d->optim.scale : 1.0f, .lr_factor = 1.0f};
    const struct grt_rng_state control = {.seed = {(uint32_t)d->seed, (uint32_t)(d->seed >> 32)}};
    struct grt_tensor *const clear[] = {ppo->history, ppo->kept, ppo->stats, ppo->learning.traj};
    struct grt_graph *graph = grt_graph_create(ppo->dev, "begin");
    for (uint32_t i = 0; graph && i < sizeof clear / sizeof clear[0]; i++) {
        if (clear[i]) {
            grt_graph_fill(graph, clear[i]->range, 0);
        }
    }
    if (graph && ppo->norm) {
        begin_normalizer(ppo, graph);
    }
    if (graph && ppo->average) {
        grt_graph_copy(graph, ppo->average->range, ppo->params.master->range);
    }
    bool ok =
        graph &&
        grt_buf_write(ppo->state->range.buf, ppo->state->range.offset, &state, sizeof state) &&
        grt_buf_write(ppo->learning.control->range.buf, ppo->learning.control->range.offset,
                      &control, sizeof control);
    if (ok) {
        grt_op_worlds_reset(graph, d->worlds, ppo->learning.control->range);
        ok = grt_graph_finish(graph);
    }
    grt_graph_destroy(&graph);
    return ok;
}

static bool make(struct grt_ppo *ppo) {
    ppo->plan = grt_plan_create(ppo->dev);
    if (!ppo->plan || !declare_all(ppo) || !grt_ppo_plan_fits(ppo, &ppo->learning, ppo->plan) ||
        !grt_plan_alloc(ppo->plan)) {
        return false;
    }
    grt_params_place(&ppo->params);
    return grt_ppo_draw(ppo) && begin(ppo) && grt_ppo_said_make(ppo) && grt_ppo_record(ppo) &&
           grt_ppo_share_make(ppo);
}

struct grt_ppo *grt_ppo_create(struct grt_dev *dev, const struct grt_ppo_desc *desc) {
    if (!dev || !desc) {
        grt_fail(GRT_INVALID, "ppo: no %s", dev ? "desc" : "device");
        return NULL;
    }
    const char *why = mistake(desc);
    const struct grt_worlds_sizes *sizes = why ? NULL : grt_worlds_sizes(desc->worlds);
    if (!why && desc->central && sizes->global == 0) {
        why = "the environment has no observation of the whole for a central critic";
    }
    if (why) {
        grt_fail(GRT_CONFIG, "ppo: %s", why);
        return NULL;
    }
    struct grt_ppo *ppo = calloc(1, sizeof *ppo);
    if (!ppo) {
        grt_fail(GRT_NO_MEMORY, "no host memory for PPO");
        return NULL;
    }
    ppo->dev = dev;
    ppo->desc = *desc;
    ppo->sizes = sizes;
    ppo->width = sizes->choices > 0 ? sizes->choices : sizes->act;
    ppo->learning.worlds = desc->worlds;
    if (!make(ppo)) {
        grt_ppo_destroy(&ppo);
    }
    return ppo;
}

void grt_ppo_destroy(struct grt_ppo **ppo) {
    if (!ppo || !*ppo) {
        return;
    }
    struct grt_ppo *p = *ppo;
    *ppo = NULL;
    grt_graph_destroy(&p->keep);
    grt_graph_destroy(&p->collect);
    for (int i = 0; i < GRT_PPO_TRIAL_COUNT; i++) {
        grt_graph_destroy(&p->trials[i]);
    }
    grt_ppo_rungs_end(p);
    grt_ppo_share_end(p);
    for (uint32_t i = 0; i < p->host_count; i++) {
        grt_graph_destroy(&p->host[i]);
    }
    free(p->host);
    grt_graph_destroy(&p->alone);
    grt_module_destroy(&p->actor.module);
    grt_module_destroy(&p->critic.module);
    grt_plan_destroy(&p->evaluating.plan);
    grt_plan_destroy(&p->plan);
    grt_buf_destroy(&p->said);
    grt_params_finish(&p->params);
    grt_net_finish(&p->net);
    free(p);
}

const struct grt_ppo_desc *grt_ppo_desc_of(const struct grt_ppo *ppo) {
    return ppo ? &ppo->desc : NULL;
}

struct grt_ppo_size grt_ppo_size(const struct grt_ppo *ppo) {
    if (!ppo) {
        return (struct grt_ppo_size){0};
    }
    return (struct grt_ppo_size){.parameters = ppo->params.numbers,
                                 .rows = ppo->count,
                                 .batches = ppo->batches,
                                 .bytes = grt_plan_bytes(ppo->plan, NULL)};
}
