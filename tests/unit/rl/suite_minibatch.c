// SPDX-License-Identifier: Apache-2.0
// Minibatches of PPO: the list of rows that count, the order of an epoch, which has each of them
// once and no other but for places that are left over, and what is learnt from them. Which rows are
// idle is written by the test.
#include "kits/ppo_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rl/ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

// ---- rows that count ----

// Whether row i of n is idle.
typedef bool (*idle_rows)(size_t i, size_t n);

static bool none(size_t i, size_t n) {
    return i > n;
}

static bool one(size_t i, size_t n) {
    return i == n / 2;
}

static bool some(size_t i, size_t n) {
    return (i * 2654435761u + n) % 1000 < 350;
}

static bool beginning(size_t i, size_t n) {
    return i < n - n / 10;
}

static bool all_but_one(size_t i, size_t n) {
    return i != n / 3;
}

static bool all(size_t i, size_t n) {
    return i < n;
}

static const idle_rows patterns[] = {none, one, some, beginning, all_but_one, all};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

// What the rows that were collected are worth with these of them idle.
static void make_idle(struct grt_ppo *ppo, idle_rows idle) {
    const struct ppo_actors *a = &ppo->learning;
    uint32_t *traj = ppo_read(a->traj), *ends = traj + PPO_END * grt_ppo_section(a);
    for (uint64_t i = 0; i < ppo->count; i++) {
        uint32_t *end = &ends[i / a->rows * a->stride + i % a->rows];
        *end = idle((size_t)i, (size_t)ppo->count) ? GRT_ROW_IDLE : *end & ~GRT_ROW_IDLE;
    }
    assert_true(
        grt_buf_write(a->traj->range.buf, a->traj->range.offset, traj, grt_tensor_bytes(a->traj)));
    struct grt_graph *graph = grt_graph_create(test.dev, "worth");
    assert_non_null(graph);
    grt_ppo_record_worth(ppo, graph);
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    free(traj);
}

// Those that count, then the others; returns how many count.
static size_t check_list(const struct grt_ppo *ppo, idle_rows idle) {
    uint32_t *list = ppo_read(ppo->list), *norms = ppo_read(ppo->norms);
    size_t at = 0, counting = 0;
    for (int wanted = 0; wanted < 2; wanted++) {
        for (size_t i = 0; i < ppo->count; i++) {
            if (idle(i, ppo->count) == (wanted == 1)) {
                if (list[at] != i) {
                    fail_msg("place %zu of the list has row %u, not %zu", at, list[at], i);
                }
                at++;
            }
        }
        counting = wanted == 0 ? at : counting;
    }
    assert_int_equal(norms[PPO_COUNT], counting);
    free(list);
    free(norms);
    return counting;
}

// ---- the order ----

// Rows of minibatch number b: each has the same number, the last ones what is left.
static size_t rows_of_batch(const struct grt_ppo *ppo, size_t counting, size_t b) {
    size_t each = (size_t)ceil((double)counting / ppo->batches);
    return (b + 1) * each <= counting ? each : b * each < counting ? counting - b * each : 0;
}

// Each row that counts stands once, in the first places of its minibatch; idle ones behind them.
static void check_order(const struct grt_ppo *ppo, idle_rows idle, size_t counting,
                        const uint32_t *order) {
    const struct ppo_epoch epoch = grt_ppo_epoch_of(ppo, 0);
    bool *seen = test_alloc(ppo->count * sizeof *seen);
    memset(seen, 0, ppo->count * sizeof *seen);
    size_t found = 0;
    for (size_t i = 0; i < epoch.places; i++) {
        size_t b = i / epoch.rows, row = order[i];
        bool counts = i % epoch.rows < rows_of_batch(ppo, counting, b);
        if (row >= ppo->count || idle(row, ppo->count) == counts || (counts && seen[row])) {
            fail_msg("place %zu of %zu, with %zu rows that count, has row %zu", i,
                     (size_t)epoch.places, counting, row);
        }
        seen[row] = true;
        found += counts;
    }
    assert_int_equal(found, counting);
    // Not many more places than rows.
    size_t spare = (size_t)epoch.rows - rows_of_batch(ppo, counting, 0);
    assert_true(spare <= ppo->batch / 32 + 128);
    assert_true(epoch.rows == ppo->batch || epoch.rows % 128 == 0);
    free(seen);
}

// Rows of a minibatch that stay together, as the documentation has it.
static size_t run_of(size_t batch) {
    return batch >= 16384 ? 16 : batch >= 8192 ? 8 : batch >= 4096 ? 4 : batch >= 2048 ? 2 : 1;
}

// The places behind whose row its neighbour stands, of rows that all count: all but the last of
// each run, and few where runs have one row. And the first minibatch is of all parts of the rows.
static void check_runs(const struct grt_ppo *ppo, const uint32_t *order) {
    size_t batch = rows_of_batch(ppo, ppo->count, 0), run = run_of(ppo->batch), together = 0;
    size_t parts[4] = {0};
    for (size_t i = 0; i < batch; i++) {
        together += i + 1 < batch && order[i + 1] == (order[i] + 1) % ppo->count;
        parts[order[i] / ((ppo->count + 3) / 4)]++;
    }
    double share = (double)together / (double)batch, want = 1.0 - 1.0 / (double)run;
    if (share < want - 0.01 || share > want + 0.05) {
        fail_msg("of minibatches of %zu rows %.3f stand beside their neighbour, not %.3f",
                 (size_t)ppo->batch, share, want);
    }
    for (int i = 0; ppo->batches > 1 && i < 4; i++) {
        assert_in_range(parts[i], batch * 20 / 100, batch * 30 / 100);
    }
}

// Two epochs, by what was collected.
static void check_epochs(struct grt_ppo *ppo, idle_rows idle) {
    size_t counting = check_list(ppo, idle);
    double learnt = ppo_learnt_rows(ppo);
    uint32_t *orders[2];
    for (uint32_t k = 0; k < 2; k++) {
        ppo_run_epoch(ppo, k);
        orders[k] = ppo_read(ppo->order);
        check_order(ppo, idle, counting, orders[k]);
        if (counting == ppo->count && counting > 1000) {
            check_runs(ppo, orders[k]);
        }
    }
    ppo_near("rows learnt from", 0, ppo_learnt_rows(ppo) - learnt, 2.0 * (double)counting, 0);
    if (counting > 10) {
        assert_memory_not_equal(orders[0], orders[1],
                                rows_of_batch(ppo, counting, 0) * sizeof **orders);
    }
    free(orders[0]);
    free(orders[1]);
}

// Sizes: one row; minibatches that are alike, and a smaller last one; more rows than lanes; runs of
// 2, 8 and 16 rows, whose number does not divide all rows.
static void each_epoch_takes_every_row_that_counts_once(void **state) {
    (void)state;
    static const struct {
        uint32_t copies, horizon, batch, batches;
    } sizes[] = {{1, 1, 0, 1},    {7, 10, 32, 3},     {16, 40, 160, 4},    {67, 33, 900, 3},
                 {131, 41, 0, 1}, {267, 16, 2136, 2}, {1001, 33, 8300, 4}, {1001, 33, 0, 1}};
    for (size_t s = 0; s < (test.small ? 3 : sizeof sizes / sizeof sizes[0]); s++) {
        struct ppo_maker m = ppo_pendulums();
        m.copies = sizes[s].copies;
        m.desc.horizon = sizes[s].horizon;
        m.desc.batch = sizes[s].batch;
        m.desc.epochs = 2;
        struct ppo_made made = ppo_make(&m);
        assert_int_equal(grt_ppo_size(made.ppo).batches, sizes[s].batches);
        assert_true(grt_graph_run(made.ppo->collect));
        for (size_t k = 0; k < PATTERNS; k++) {
            make_idle(made.ppo, patterns[k]);
            check_epochs(made.ppo, patterns[k]);
        }
        ppo_end(&made);
    }
}

static void another_iteration_has_another_order(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    struct ppo_made made = ppo_make(&m);
    uint32_t *orders[2];
    for (int k = 0; k < 2; k++) {
        assert_true(grt_graph_run(made.ppo->collect));
        make_idle(made.ppo, some);
        ppo_run_epoch(made.ppo, 0);
        orders[k] = ppo_read(made.ppo->order);
    }
    assert_memory_not_equal(orders[0], orders[1], made.ppo->count / 2 * sizeof **orders);
    free(orders[0]);
    free(orders[1]);
    ppo_end(&made);
}

// ---- what is learnt ----

#define LR 0.2

// Gradient descent in double precision, minibatch by minibatch, over the rows that count.
static void descend(const struct grt_ppo *ppo, const struct ppo_collected *c, const uint32_t *order,
                    double *params) {
    const struct ppo_epoch epoch = grt_ppo_epoch_of(ppo, 0);
    size_t counting = 0;
    for (size_t i = 0; i < c->count; i++) {
        counting += c->counts[i];
    }
    bool *in = test_alloc(c->count * sizeof *in);
    double *slopes = test_alloc(ppo->params.elements * sizeof *slopes);
    struct oracle_ppo b = ppo_batch_of(ppo, c, params);
    b.in = in;
    for (size_t k = 0; k < ppo->batches; k++) {
        memset(in, 0, c->count * sizeof *in);
        for (size_t i = 0; i < rows_of_batch(ppo, counting, k); i++) {
            in[order[k * epoch.rows + i]] = true;
        }
        for (uint64_t i = 0; i < ppo->params.elements; i++) {
            slopes[i] = ppo_slope(&b, params, i);
        }
        for (uint64_t i = 0; i < ppo->params.elements; i++) {
            params[i] -= LR * slopes[i];
        }
    }
    free(in);
    free(slopes);
}

// As if they were not there: an epoch of several minibatches, of rows of which many are idle.
static void idle_rows_teach_nothing(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    m.desc.optim.lr = LR;
    m.desc.optim.max_norm = 0;
    m.copies = test.small ? 20 : 60;
    m.desc.batch = m.copies * m.desc.horizon / 2;
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo *ppo = made.ppo;
    assert_true(grt_graph_run(ppo->collect));
    make_idle(ppo, some);
    struct ppo_collected c = ppo_collect(ppo);
    double *want = ppo_widened(ppo->params.master), *begun = ppo_widened(ppo->params.master);
    ppo_run_epoch(ppo, 0);
    uint32_t *order = ppo_read(ppo->order);
    descend(ppo, &c, order, want);
    double *got = ppo_widened(ppo->params.master), moved = 0;
    for (uint64_t i = 0; i < ppo->params.elements; i++) {
        ppo_near("parameter", i, got[i], want[i], 2e-5);
        moved = fmax(moved, fabs(want[i] - begun[i]));
    }
    assert_true(moved > 1e-2);
    free(order);
    free(want);
    free(begun);
    free(got);
    ppo_collected_end(&c);
    ppo_end(&made);
}

static void without_rows_nothing_is_learnt(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    m.desc.batch = 50;
    struct ppo_made made = ppo_make(&m);
    assert_true(grt_graph_run(made.ppo->collect));
    make_idle(made.ppo, all);
    float *before = ppo_read(made.ppo->params.master);
    ppo_run_epoch(made.ppo, 0);
    float *after = ppo_read(made.ppo->params.master);
    test_same(test.dev, "parameters", after, before, 4, made.ppo->params.elements);
    free(before);
    free(after);
    ppo_end(&made);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(each_epoch_takes_every_row_that_counts_once),
    TEST_CASE(another_iteration_has_another_order),
    TEST_CASE(idle_rows_teach_nothing),
    TEST_CASE(without_rows_nothing_is_learnt),
};
TEST_SUITE(minibatch, true, cases);
