// SPDX-License-Identifier: Apache-2.0
// An iteration of PPO: the parameters that it begins with, the gradient of a minibatch that is not
// whole, and what its report says.
#include "kits/ppo_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rl/ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

// ---- parameters at the start ----

// The shorter side's vectors are orthogonal and as long as the gain.
static void check_matrix(const struct grt_param *p, const double *w, double gain) {
    size_t rows = (size_t)p->shape[0], cols = (size_t)p->shape[1];
    size_t count = rows < cols ? rows : cols, length = rows < cols ? cols : rows;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j <= i; j++) {
            double dot = 0;
            for (size_t k = 0; k < length; k++) {
                dot += rows < cols ? w[i * cols + k] * w[j * cols + k]
                                   : w[k * cols + i] * w[k * cols + j];
            }
            ppo_near(p->name, i, dot, i == j ? gain * gain : 0, 1e-5 * gain * gain);
        }
    }
}

static void parameters_begin_orthogonal(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    struct ppo_made made = ppo_make(&m);
    double *params = ppo_widened(made.ppo->params.master);
    for (uint32_t k = 0; k < made.ppo->params.count; k++) {
        const struct grt_param *p = made.ppo->params.list[k];
        if (strstr(p->name, ".weight")) {
            bool acts = strcmp(p->name, "actor.layers.2.weight") == 0;
            bool values = strcmp(p->name, "critic.layers.2.weight") == 0;
            check_matrix(p, params + p->first, acts ? 0.01 : values ? 1 : sqrt(2));
        } else {
            for (uint64_t i = 0; i < p->count; i++) {
                assert_true(params[p->first + i] == 0);
            }
        }
    }
    free(params);
    ppo_end(&made);
}

// ---- a minibatch ----

static double largest(const struct grt_param *p, const double *of) {
    double most = 0;
    for (uint64_t i = p->first; i < p->first + p->count; i++) {
        most = fmax(most, fabs(of[i]));
    }
    return most;
}

// The last one has the fewest rows. The optimizer does not move. `off`: what a slope may be off by,
// as a share of its own size and of the largest of its parameter.
static void check_minibatch(struct ppo_maker m, double off) {
    m.desc.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    m.desc.optim.lr = 1e-20;
    m.desc.optim.scale = 256;
    const double scale = m.desc.precision == GRT_F16 ? m.desc.optim.scale : 1;
    m.desc.optim.max_norm = 0;
    m.desc.batch = 26;
    m.desc.epochs = 1;
    m.desc.entropy_weight = 0.05;
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo *ppo = made.ppo;
    assert_int_equal(ppo->count, 180);
    assert_true(grt_graph_run(ppo->collect));
    struct ppo_collected c = ppo_collect(ppo);
    ppo_run_epoch(ppo, 0);
    double *params = ppo_widened(ppo->params.master), *got = ppo_widened(ppo->params.grad);
    uint32_t *order = ppo_read(ppo->order);
    bool in[180] = {false};
    double counting = 0;
    const uint64_t step = m.hidden ? 331 : 17;
    const struct ppo_epoch epoch = grt_ppo_epoch_of(ppo, 0);
    for (uint64_t i = epoch.rows * (ppo->batches - 1); i < epoch.places; i++) {
        in[order[i]] = true;
    }
    for (size_t i = 0; i < 180; i++) {
        counting += c.counts[i];
    }
    assert_true(counting > 100 && counting < 180 && ppo_learnt_rows(ppo) == counting);
    struct oracle_ppo b = ppo_batch_of(ppo, &c, params);
    b.in = in;
    for (uint32_t k = 0; k < ppo->params.count; k++) {
        const struct grt_param *p = ppo->params.list[k];
        double most = largest(p, got) / scale;
        for (uint64_t i = p->first; i<p->first + p->count; i += p->count> 40 ? step : 1) {
            double want = ppo_slope(&b, params, i);
            ppo_near(p->name, (size_t)(i - p->first), got[i] / scale, want,
                     1e-4 + off * (fabs(want) + most));
        }
    }
    free(order);
    free(params);
    free(got);
    ppo_collected_end(&c);
    ppo_end(&made);
}

static void a_minibatch_has_the_gradient_of_its_rows(void **state) {
    (void)state;
    check_minibatch(ppo_uavs(), 5e-4);
}

// Hidden layers of 64 in 16 bits: a device may have kernels of its own for them. Actions to choose
// from, then continuous ones.
static void so_it_has_in_16_bits(void **state) {
    (void)state;
    static const enum grt_dtype types[] = {GRT_F16, GRT_BF16};
    static const char *const variants[] = {NULL, "rows", "layers"};
    struct ppo_maker makers[] = {ppo_uavs(), ppo_pendulums()};
    makers[1].copies = 18;  // 180 rows, too
    for (uint32_t i = 0; i < 12; i++) {
        struct ppo_maker m = makers[i / 6];
        m.hidden = 64;
        m.desc.precision = types[i / 3 % 2];
        m.desc.variant = variants[i % 3];
        check_minibatch(m, m.desc.precision == GRT_F16 ? 0.01 : 0.04);
    }
}

// ---- the report ----

static double explained_by(const struct ppo_collected *c) {
    double sums[2] = {0}, squares[2] = {0}, count = 0, variance[2];
    for (size_t i = 0; i < c->count; i++) {
        const double x[2] = {c->returns[i], c->returns[i] - c->value[i]};
        for (size_t k = 0; k < 2 && c->counts[i]; k++) {
            sums[k] += x[k];
            squares[k] += x[k] * x[k];
        }
        count += c->counts[i];
    }
    for (size_t k = 0; k < 2; k++) {
        variance[k] = squares[k] / count - sums[k] * sums[k] / (count * count);
    }
    return 1 - variance[1] / variance[0];
}

// Episodes of the first iteration, from the rows: how many ended, their mean return and length, and
// the mean share of UAVs that arrived.
static void check_episodes(const struct grt_ppo_report *r, const struct ppo_collected *c,
                           size_t agents) {
    double episodes = 0, returns = 0, lengths = 0, arrived = 0, whole = 0;
    for (size_t first = 0; first < c->rows; first += agents) {
        double sum = 0, length = 0, landed = 0;
        for (size_t t = 0; t < c->steps; t++) {
            bool flew = false, open = false, cut = false;
            for (size_t i = t * c->rows + first; i < t * c->rows + first + agents; i++) {
                bool last = (c->end[i] & GRT_ROW_LAST) != 0;
                sum += c->reward[i] / (double)agents;
                flew = flew || c->counts[i];
                open = open || (c->counts[i] && !last);
                cut = cut || (c->end[i] & GRT_ROW_CUT) != 0;
                landed += c->counts[i] && last && (c->end[i] & GRT_ROW_CUT) == 0;
            }
            length += flew;
            if (flew && !open) {
                episodes++;
                returns += sum;
                lengths += length;
                arrived += landed / (double)agents;
                whole += !cut;
                sum = length = landed = 0;
            }
        }
    }
    assert_true(episodes > 0);
    ppo_near("episodes", 0, r->episodes, episodes, 0);
    ppo_near("return", 0, r->mean_return, returns / episodes, 1e-5);
    ppo_near("length", 0, r->length, lengths / episodes, 1e-5);
    ppo_near("arrived", 0, r->terms[0], arrived / episodes, 1e-5);
    ppo_near("all arrived", 0, r->terms[2], whole / episodes, 1e-5);
}

// The same iteration twice: epoch by epoch with the oracle beside it, and by grt_ppo_iterate().
static void the_report_says_what_happened(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    m.desc.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    m.desc.optim.lr = 0.3;
    m.desc.optim.max_norm = 0;
    m.desc.clip = 0.01;
    m.desc.epochs = 3;
    struct ppo_made made = ppo_make(&m), again = ppo_make(&m);
    struct grt_ppo *ppo = made.ppo;
    assert_true(grt_graph_run(ppo->collect));
    struct ppo_collected c = ppo_collect(ppo);
    struct oracle_ppo_result mean = {0};
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        double *params = ppo_widened(ppo->params.master);
        struct oracle_ppo b = ppo_batch_of(ppo, &c, params);
        struct oracle_ppo_result at = oracle_ppo(&b);
        mean.policy += at.policy / 3;
        mean.value += at.value / 3;
        mean.entropy += at.entropy / 3;
        mean.kl += at.kl / 3;
        mean.clipped += at.clipped / 3;
        ppo_run_epoch(ppo, epoch);
        free(params);
    }
    double *grads = ppo_widened(ppo->params.grad), square = 0, counting = 0;
    for (uint64_t i = 0; i < ppo->params.elements; i++) {
        square += grads[i] * grads[i];
    }
    for (size_t i = 0; i < c.count; i++) {
        counting += c.counts[i];
    }
    struct grt_ppo_report r;
    assert_true(grt_ppo_iterate(again.ppo, &r));
    // The case has what it is to test.
    assert_true(mean.clipped > 0.01 && mean.clipped < 0.9 && mean.kl > 1e-7);
    ppo_near("policy loss", 0, r.policy_loss, mean.policy, 1e-5);
    ppo_near("value loss", 0, r.value_loss, mean.value, 1e-4 * mean.value);
    ppo_near("entropy", 0, r.entropy, mean.entropy, 1e-4);
    ppo_near("kl", 0, r.kl, mean.kl, 0.05 * mean.kl + 1e-7);
    ppo_near("clip rate", 0, r.clip_rate, mean.clipped, 2 / counting);
    ppo_near("explained", 0, r.explained, explained_by(&c), 1e-3);
    ppo_near("rows", 0, r.rows, counting, 0);
    ppo_near("gradient", 0, r.grad_norm, sqrt(square), 1e-4 * sqrt(square));
    ppo_near("lr", 0, r.lr, 0.3, 1e-6);
    assert_int_equal(r.epochs, 3);
    assert_int_equal(r.iteration, 1);
    check_episodes(&r, &c, ppo->sizes->agents);
    free(grads);
    ppo_collected_end(&c);
    ppo_end(&made);
    ppo_end(&again);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(parameters_begin_orthogonal),
    TEST_CASE(a_minibatch_has_the_gradient_of_its_rows),
    TEST_CASE(so_it_has_in_16_bits),
    TEST_CASE(the_report_says_what_happened),
};
TEST_SUITE(iteration, true, cases);
