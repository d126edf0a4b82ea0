// SPDX-License-Identifier: Apache-2.0
// Evaluations of rows that lie on the device: several steps in one launch.
#include "kits/learn_kit.h"

#include <math.h>

#include "data/order.h"

// Evaluations of rows by their numbers: where two steps of one graph are one launch of the network
// (`together`), and where they are not, they come to the same bits as two graphs of a step, and as
// samples that are copied in that order. So they do with a step of `rest` samples behind the two.
static void check_two_steps(uint32_t batch, uint32_t rest, bool known, bool together) {
    uint32_t samples = 2 * batch + rest;
    struct learn_desc d = learn_small(GRT_F32);
    d.batch = batch;
    d.variant = "fused";
    struct learn l = learn_begin(&d, samples);
    struct grt_order order = grt_order(samples, 1, 0, 3);
    struct grt_draw draw = {.part = GRT_PART_ALL, .window = 1};
    uint32_t words[64];
    uint64_t record = grt_order_record(&order, &draw);
    assert_true(record <= 64);
    grt_order_words(&order, &draw, 0, words);
    struct test_tensor x = test_tensor(test.dev, GRT_F32, samples, 8);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, samples, 2);
    struct test_tensor records = test_tensor(test.dev, GRT_U32, record, 0);
    struct test_tensor drawn = test_tensor(test.dev, GRT_U32, 3 * batch, 0);
    test_tensor_write(&x, l.data.x);
    test_tensor_write(&y, l.data.y);
    test_tensor_write(&records, words);
    struct grt_step_rows rows = {.x = x.tensor,
                                 .y = y.tensor,
                                 .order = records.tensor,
                                 .record = (uint32_t)record,
                                 .epoch = samples,
                                 .staged = 3};
    assert_true(grt_learner_draws(l.learner, &rows, true));
    rows.drawn = drawn.tensor.range;
    const uint32_t ways[] = {2, 1, 0};  // steps of a graph; 0: copied
    struct grt_learn_state first = {0};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct grt_learn_state s = learn_state(&l);
        // Rows on the device begin the sums anew; of others it is for the caller to clear them.
        s.eval_loss = s.eval_samples = s.eval_hits = s.eval_near = ways[w] > 0 ? 7 : 0;
        assert_true(grt_learner_set_state(l.learner, &s));
        uint32_t stride = ways[w] > 0 ? ways[w] : 1;
        for (uint32_t step = 0; step < 2 || (rest > 0 && step == 2 && stride == 1);
             step += stride) {
            uint32_t own = step < 2 ? batch : rest;
            struct grt_step_desc desc = {
                .rows = own, .steps = ways[w], .rest = ways[w] == 2 ? rest : 0, .data = &rows};
            if (ways[w] == 0) {
                desc =
                    (struct grt_step_desc){.rows = own, .x = x.tensor.range, .y = y.tensor.range};
                desc.x.offset += step * batch * 8 * 4;
                desc.y.offset += step * batch * 2 * 4;
                desc.x.size = own * 8 * 4;
                desc.y.size = own * 2 * 4;
            }
            struct grt_graph *graph = grt_learner_evaluate(l.learner, &desc);
            assert_non_null(graph);
            if (known && ways[w] == 2) {
                assert_int_equal(grt_graph_stats(graph).dispatches == 3, together);
            }
            learn_run(graph, 1);
            grt_graph_destroy(&graph);
        }
        s = learn_state(&l);
        first = w == 0 ? s : first;
        assert_true(s.eval_samples == (float)samples && s.eval_cursor == 0);
        assert_true(s.eval_hits == 0 && s.eval_near == 0);
        assert_true(isfinite(s.eval_loss) && s.eval_loss > 0);
        assert_memory_equal(&s.eval_loss, &first.eval_loss, sizeof s.eval_loss);
    }
    test_tensor_end(&x);
    test_tensor_end(&y);
    test_tensor_end(&records);
    test_tensor_end(&drawn);
    learn_end(&l);
}

static void evaluates_at_once(void **state) {
    (void)state;
    const struct grt_dev_info *info = grt_dev_info(test.dev);
    if (!info->caps.software) {
        return;  // fused kernels in f32 are for CPUs
    }
    // Blocks of losses are of four rows there, up to eight for each core.
    uint32_t units = info->caps.compute_units;
    bool known = info->backend != GRT_BACKEND_VULKAN && units >= 2;
    check_two_steps(32, 0, known, true);
    check_two_steps(4 * 8 * (units < 16 ? units : 16), 0, known && units <= 16, false);
    for (uint32_t rest = 1; rest < 16; rest++) {
        check_two_steps(16, rest, known, true);
    }
    // Two steps fit a launch, and with the rest they do not.
    check_two_steps(4 * 4 * (units < 16 ? units : 16), 1, known && units <= 16, false);
}

static const struct CMUnitTest cases[] = {TEST_CASE(evaluates_at_once)};
TEST_SUITE(evaluations, true, cases);
