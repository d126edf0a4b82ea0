// SPDX-License-Identifier: Apache-2.0
// Learning rates over the steps of a run, against their formulas and PyTorch, and the average of
// the parameters.
#include "kits/optim_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/cycle_torch.h"

static double half_wave(double from, double to, double share) {
    return to + (from - to) * (1 + cos(ORACLE_PI * fmin(1, share))) / 2;
}

static double schedule(const struct grt_optim_desc *d, uint32_t step) {
    if (d->schedule == GRT_SCHEDULE_ONE_CYCLE) {
        double peak = d->warmup - 1.0;
        return step < peak ? half_wave(d->lr / d->div, d->lr, step / peak)
                           : half_wave(d->lr, d->lr / d->div / d->final_div,
                                       (step - peak) / (d->total - 1 - peak));
    }
    if (step < d->warmup) {
        return d->lr * (step + 1) / d->warmup;
    }
    uint32_t s = step - d->warmup;
    if (d->schedule == GRT_SCHEDULE_COSINE) {
        double share = fmin(1, (double)s / (d->total - d->warmup));
        return d->min_lr + (d->lr - d->min_lr) * (1 + cos(ORACLE_PI * share)) / 2;
    }
    if (d->schedule == GRT_SCHEDULE_LINEAR) {
        return fmax(d->min_lr, d->lr - (d->lr - d->min_lr) * s / (d->total - d->warmup));
    }
    return d->schedule == GRT_SCHEDULE_STEP ? d->lr * pow(d->gamma, floor((double)s / d->period))
                                            : d->lr;
}

static void schedules(void **state) {
    (void)state;
    struct grt_optim_desc rows[9];
    for (int i = 0; i < 9; i++) {
        rows[i] = rig_desc(GRT_OPTIM_SGD, 0.3);
        rows[i].warmup = i % 2 ? 7 : 0;
    }
    rows[1].schedule = rows[2].schedule = GRT_SCHEDULE_COSINE;
    rows[1].total = rows[2].total = 25;
    rows[2].min_lr = 0.01;
    rows[3].schedule = rows[4].schedule = GRT_SCHEDULE_STEP;
    rows[3].period = 5;
    rows[3].gamma = 0.5;
    rows[4].period = 3;
    rows[4].gamma = 0.1;
    rows[5].schedule = rows[6].schedule = GRT_SCHEDULE_ONE_CYCLE;
    rows[5].total = rows[6].total = 25;
    rows[6].warmup = 1;
    rows[6].div = 4;
    rows[6].final_div = 10;
    rows[7].schedule = rows[8].schedule = GRT_SCHEDULE_LINEAR;
    rows[7].total = rows[8].total = 25;
    rows[8].min_lr = 0.01;
    rows[8].warmup = 1;  // of one step, which has the whole rate
    for (int i = 0; i < 9; i++) {
        struct rig r;
        rig_begin(&r, &rows[i], GRT_F32);
        rig_set(&r, 1.0f);
        struct test_compare compare =
            test_compare(test.dev, "schedule %s, warm-up %u", grt_schedule_text(rows[i].schedule),
                         rows[i].warmup);
        for (uint32_t s = 0; s < 40; s++) {
            rig_step(&r);
            double want = schedule(&rows[i], s);
            test_compare_value(&compare, s, rig_state(&r).lr,
                               (struct oracle_value){want, 32 * ORACLE_U * rows[i].lr});
        }
        test_compare_end(&compare);
        // Far along, where steps are large numbers.
        struct grt_learn_state s = rig_state(&r);
        s.steps = 3000000 + rows[i].warmup;
        s.lr_factor = 0.5f;
        rig_write_all(r.state, &s);
        rig_step(&r);
        double want = 0.5 * schedule(&rows[i], 3000000 + rows[i].warmup);
        assert_true(fabs((double)rig_state(&r).lr - want) <= 1e-6);
        rig_end(&r);
    }
    assert_true(fabs(grt_lr_for_batch(1e-3, 1024, 256) - 2e-3) < 1e-12);
}

// Steps that a float no longer counts one by one: both sides of every stair, of a length whose
// quotients are rounded up and down, and the wave.
static void schedules_of_millions(void **state) {
    (void)state;
    enum { PERIOD = 4000005, TOTAL = 40000000 };
    struct grt_optim_desc rows[4];
    for (int i = 0; i < 4; i++) {
        rows[i] = rig_desc(GRT_OPTIM_SGD, 0.3);
    }
    rows[3].schedule = GRT_SCHEDULE_LINEAR;
    rows[3].total = TOTAL;
    rows[0].schedule = GRT_SCHEDULE_STEP;
    rows[0].period = PERIOD;
    rows[0].gamma = 0.5;
    rows[1].schedule = GRT_SCHEDULE_COSINE;
    rows[1].total = TOTAL;
    rows[1].min_lr = 0.01;
    rows[2].warmup = TOTAL;
    for (int i = 0; i < 4; i++) {
        struct rig r;
        rig_begin(&r, &rows[i], GRT_F32);
        rig_set(&r, 1.0f);
        struct test_compare compare = test_compare(test.dev, "millions of steps, schedule %d", i);
        for (uint32_t k = 1; k < 20; k++) {
            struct grt_learn_state s = rig_state(&r);
            s.steps = i == 0 ? k / 2 * PERIOD - 1 + k % 2 : k * (TOTAL / 20) + k;
            s.steps = k == 1 ? 0 : s.steps;
            rig_write_all(r.state, &s);
            rig_step(&r);
            test_compare_value(&compare, k, rig_state(&r).lr,
                               (struct oracle_value){schedule(&rows[i], s.steps), 64 * ORACLE_U});
        }
        test_compare_end(&compare);
        rig_end(&r);
    }
}

// PyTorch's OneCycleLR, and its AveragedModel of the parameters.
static void cycle_and_average(void **state) {
    (void)state;
    struct grt_optim_desc d = rig_desc(GRT_OPTIM_SGD, CYCLE_MAX_LR);
    d.momentum = 0.9;
    d.nesterov = true;
    d.schedule = GRT_SCHEDULE_ONE_CYCLE;
    d.warmup = CYCLE_RISE;
    d.total = CYCLE_STEPS;
    d.ema = CYCLE_EMA;
    struct rig r;
    rig_begin(&r, &d, GRT_F32);
    rig_set(&r, 1.0f);
    float got[COUNT];
    float grads[COUNT];
    float *all = test_alloc(r.params.elements * sizeof *all);
    memset(all, 0, r.params.elements * sizeof *all);
    for (uint64_t i = 0; i < CYCLE_NUMBERS; i++) {
        all[i] = 0.25f * (float)i - 0.5f;
    }
    rig_write_all(r.params.master, all);
    free(all);
    struct test_compare compare = test_compare(test.dev, "one cycle, average");
    for (uint32_t s = 0; s < CYCLE_STEPS; s++) {
        for (int i = 0; i < COUNT; i++) {
            grads[i] = 0.125f * (float)((i * 5 + (int)s * 3) % 7 - 3);
        }
        rig_set_grads(&r, grads);
        rig_step(&r);
        test_compare_value(&compare, s, rig_state(&r).lr,
                           (struct oracle_value){cycle_lr[s], 1e-6 * CYCLE_MAX_LR});
        for (int part = 0; part < 2; part++) {
            rig_gather(&r, part ? r.average : r.params.master, 0, got);
            for (uint32_t i = 0; i < CYCLE_NUMBERS; i++) {
                double want = part ? cycle_average[s][i] : cycle_param[s][i];
                test_compare_value(&compare, 100 * s + i, got[i],
                                   (struct oracle_value){want, 4e-6});
            }
        }
    }
    test_compare_end(&compare);
    rig_end(&r);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(schedules),
    TEST_CASE(schedules_of_millions),
    TEST_CASE(cycle_and_average),
};
TEST_SUITE(rates, true, cases);
