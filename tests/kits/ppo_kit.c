// SPDX-License-Identifier: Apache-2.0
#include "ppo_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle/oracle.h"
#include "rl/ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

struct ppo_maker ppo_uavs(void) {
    struct ppo_maker m = {.env = "uav",
                          .settings = {{"map", 6}, {"num_uavs", 3}, {"window", 3}},
                          .setting_count = 3,
                          .copies = 5,
                          .length = 9,
                          .desc = grt_ppo_defaults()};
    m.desc.central = true;
    m.desc.horizon = 12;
    return m;
}

struct ppo_maker ppo_pendulums(void) {
    struct ppo_maker m = {.env = "pendulum", .copies = 7, .length = 8, .desc = grt_ppo_defaults()};
    m.desc.horizon = 10;
    m.desc.log_std = -0.5;
    return m;
}

struct grt_worlds *ppo_make_worlds(const struct ppo_maker *m, uint32_t copies, bool once) {
    const struct grt_env_info *env = m->info ? m->info : grt_env_find(m->env);
    assert_non_null(env);
    struct grt_worlds *worlds = grt_worlds_create(
        test.dev,
        grt_worlds_desc(.env = env, .settings = m->settings, .setting_count = m->setting_count,
                        .copies = copies, .length = m->length, .once = once));
    assert_non_null(worlds);
    return worlds;
}

// An mlp that takes no rows with zeros behind them.
static struct grt_module *tight_mlp(const void *of) {
    struct grt_module *mlp = grt_mlp_make(of);
    if (mlp) {
        mlp->wide_rows = false;
    }
    return mlp;
}

struct ppo_made ppo_make(const struct ppo_maker *m) {
    struct ppo_made made = {.worlds = ppo_make_worlds(m, m->copies, false)};
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(made.worlds);
    made.actor = (struct grt_mlp_desc){.depth = PPO_DEPTH,
                                       .hidden = m->hidden ? m->hidden : PPO_HIDDEN,
                                       .outputs = sizes->choices ? sizes->choices : sizes->act,
                                       .act = GRT_ACT_TANH};
    made.critic = made.actor;
    made.critic.outputs = 1;
    struct grt_ppo_desc desc = m->desc;
    desc.worlds = made.worlds;
    desc.actor = (struct grt_ppo_net){m->tight ? tight_mlp : grt_mlp_make, &made.actor};
    desc.critic = (struct grt_ppo_net){m->tight ? tight_mlp : grt_mlp_make, &made.critic};
    made.ppo = grt_ppo_create(test.dev, &desc);
    assert_non_null(made.ppo);
    return made;
}

void ppo_end(struct ppo_made *made) {
    grt_ppo_destroy(&made->ppo);
    grt_worlds_destroy(&made->worlds);
}

// ---- what lies on the device ----

void *ppo_read(const struct grt_tensor *t) {
    void *data = test_alloc(grt_tensor_bytes(t));
    assert_true(grt_buf_read(t->range.buf, t->range.offset, data, grt_tensor_bytes(t)));
    return data;
}

// Tests write rows and norms themselves; the host hears of them as it does after collecting.
static void say_norms(const struct grt_ppo *ppo) {
    struct grt_graph *graph = grt_graph_create(ppo->dev, "norms");
    assert_non_null(graph);
    grt_ppo_say(ppo, graph, ppo->norms);
    assert_true(grt_graph_bake(graph) && grt_graph_run(graph));
    grt_graph_destroy(&graph);
}

void ppo_run_epoch(struct grt_ppo *ppo, uint32_t number) {
    say_norms(ppo);
    assert_true(grt_ppo_take_rung(ppo));
    struct grt_graph *epoch = grt_ppo_epoch(ppo, number);
    assert_true(epoch && grt_graph_run(epoch));
}

void ppo_was_smaller(const struct grt_ppo *ppo) {
    assert_true(grt_ppo_epoch_of(ppo, 0).rows < ppo->batch);
}

double ppo_learnt_rows(const struct grt_ppo *ppo) {
    float *stats = ppo_read(ppo->stats);
    double sum = 0;
    for (size_t g = 0; g < ppo->groups; g++) {
        sum += (double)stats[g * PPO_STATS + PPO_STAT_ROWS];
    }
    free(stats);
    return sum;
}

// Number k of a row in the networks' type.
static double seen(const struct grt_ppo *ppo, const uint32_t *row, size_t k) {
    if (ppo->net.dtype == GRT_F32) {
        return (double)test_as_f32(row[k]);
    }
    uint16_t bits = (uint16_t)(row[k / 2] >> k % 2 * 16);
    return oracle_widen(ppo->net.dtype == GRT_F16 ? oracle_f16 : oracle_bf16, bits);
}

struct ppo_collected ppo_collect(const struct grt_ppo *ppo) {
    const struct ppo_actors *a = &ppo->learning;
    const struct grt_worlds_sizes *sizes = ppo->sizes;
    struct ppo_collected c = {.rows = a->rows,
                              .steps = ppo->desc.horizon,
                              .width = ppo->width,
                              .obs = sizes->obs,
                              .seen_width = sizes->obs + (ppo->desc.central ? sizes->global : 0)};
    c.count = c.rows * c.steps;
    size_t more = c.count + c.rows;
    c.own = test_alloc(more * c.obs * sizeof(double));
    c.seen = test_alloc(more * c.seen_width * sizeof(double));
    uint32_t **words[] = {&c.mask, &c.action, &c.end};
    double **numbers[] = {&c.logp, &c.value, &c.reward, &c.advantage, &c.returns};
    static const uint32_t word_sections[] = {PPO_MASK, PPO_ACTION, PPO_END};
    static const uint32_t sections[] = {PPO_LOGP, PPO_VALUE, PPO_REWARD, PPO_ADVANTAGE, PPO_RETURN};
    uint32_t *traj = ppo_read(a->traj);
    for (size_t k = 0; k < 3; k++) {
        *words[k] = test_alloc(more * sizeof(uint32_t));
    }
    for (size_t k = 0; k < 5; k++) {
        *numbers[k] = test_alloc(more * sizeof(double));
    }
    c.acts = test_alloc(more * c.width * sizeof(double));
    c.counts = test_alloc(more * sizeof(bool));
    uint32_t *obs = ppo_read(a->obs), *whole = a->whole ? ppo_read(a->whole) : NULL;
    float *acts = a->acts ? ppo_read(a->acts) : NULL;
    size_t section = (size_t)grt_ppo_section(a);
    for (size_t i = 0; i < more; i++) {
        size_t t = i / c.rows, row = i % c.rows, at = t * a->stride + row;
        for (size_t k = 0; k < 3; k++) {
            (*words[k])[i] = traj[word_sections[k] * section + at];
        }
        for (size_t k = 0; k < 5; k++) {
            (*numbers[k])[i] = (double)test_as_f32(traj[sections[k] * section + at]);
        }
        c.counts[i] = (c.end[i] & GRT_ROW_IDLE) == 0;
        for (size_t k = 0; k < c.obs; k++) {
            double v = seen(ppo, obs + t * a->obs_stride + row * a->obs_words, k);
            c.own[i * c.obs + k] = c.seen[i * c.seen_width + k] = v;
        }
        for (size_t k = c.obs; k < c.seen_width; k++) {
            size_t copy = row / sizes->agents;
            c.seen[i * c.seen_width + k] =
                seen(ppo, whole + t * a->whole_stride + copy * a->whole_words, k - c.obs);
        }
        for (size_t k = 0; acts && t < c.steps && k < c.width; k++) {
            c.acts[i * c.width + k] = (double)acts[t * a->acts_stride + row * c.width + k];
        }
    }
    free(traj);
    free(obs);
    free(whole);
    free(acts);
    return c;
}

void ppo_collected_end(struct ppo_collected *c) {
    void *all[] = {c->own,  c->seen,  c->mask,   c->action,    c->end,     c->acts,
                   c->logp, c->value, c->reward, c->advantage, c->returns, c->counts};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

// A group of the parameters in double precision, at the places of the whole range.
double *ppo_widened(const struct grt_tensor *t) {
    float *from = ppo_read(t);
    size_t count = grt_tensor_count(t);
    double *to = test_alloc(count * sizeof *to);
    for (size_t i = 0; i < count; i++) {
        to[i] = (double)from[i];
    }
    free(from);
    return to;
}

const struct grt_param *ppo_param(const struct grt_ppo *ppo, const char *name) {
    for (uint32_t i = 0; i < ppo->params.count; i++) {
        if (strcmp(ppo->params.list[i]->name, name) == 0) {
            return ppo->params.list[i];
        }
    }
    fail_msg("no parameter %s", name);
    return NULL;
}

static struct oracle_ppo_net ppo_net_of(const struct grt_ppo *ppo, const char *name, double *params,
                                        size_t inputs, size_t outputs) {
    struct oracle_ppo_net n = {.depth = PPO_DEPTH, .inputs = inputs, .outputs = outputs};
    for (int layer = 0; layer <= PPO_DEPTH; layer++) {
        char text[64];
        snprintf(text, sizeof text, "%s.layers.%d.weight", name, layer);
        n.weight[layer] = params + ppo_param(ppo, text)->first;
        snprintf(text, sizeof text, "%s.layers.%d.bias", name, layer);
        n.bias[layer] = params + ppo_param(ppo, text)->first;
        n.hidden = layer == 0 ? ppo_param(ppo, text)->count : n.hidden;
    }
    return n;
}

struct oracle_ppo ppo_batch_of(const struct grt_ppo *ppo, const struct ppo_collected *c,
                               double *params) {
    const struct grt_ppo_desc *d = &ppo->desc;
    return (struct oracle_ppo){.rows = c->count,
                               .width = c->width,
                               .own = c->own,
                               .seen = c->seen,
                               .mask = c->mask,
                               .action = ppo->sizes->choices > 0 ? c->action : NULL,
                               .acts = c->acts,
                               .log_std = ppo->log_std ? params + ppo->log_std->first : NULL,
                               .logp = c->logp,
                               .advantage = c->advantage,
                               .returns = c->returns,
                               .value = c->value,
                               .counts = c->counts,
                               .clip = d->clip,
                               .value_clip = d->value_clip,
                               .value_weight = d->value_weight,
                               .entropy_weight = d->entropy_weight,
                               .actor = ppo_net_of(ppo, "actor", params, c->obs, c->width),
                               .critic = ppo_net_of(ppo, "critic", params, c->seen_width, 1)};
}

double ppo_slope(const struct oracle_ppo *batch, double *params, size_t i) {
    const double step = 1e-5, before = params[i];
    params[i] = before + step;
    double up = oracle_ppo(batch).loss;
    params[i] = before - step;
    double down = oracle_ppo(batch).loss;
    params[i] = before;
    return (up - down) / (2 * step);
}

void ppo_near(const char *what, size_t i, double got, double want, double bound) {
    if (!(fabs(got - want) <= bound)) {
        fail_msg("%s[%zu]: %.9g, wanted %.9g within %.3g", what, i, got, want, bound);
    }
}
