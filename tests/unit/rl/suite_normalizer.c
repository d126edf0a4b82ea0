// SPDX-License-Identifier: Apache-2.0
// Observations that PPO normalises: mean and deviation against their definition in double
// precision over all rows that counted, what the networks get, the same in evaluations, and the
// same bits after a resume.
#include "kits/ppo_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rl/ppo_parts.h"

// All rows that counted so far, as the environment gave them.
struct history {
    size_t obs, count, room;
    double *rows;
};

static void remember(struct history *h, const struct grt_ppo *ppo, const float *before) {
    struct ppo_collected c = ppo_collect(ppo);
    for (size_t i = 0; i < c.count; i++) {
        if (!c.counts[i]) {
            continue;
        }
        assert_true(h->count < h->room);
        for (size_t k = 0; k < h->obs; k++) {
            h->rows[h->count * h->obs + k] =
                c.own[i * h->obs + k] / (double)before[h->obs + k] + (double)before[k];
        }
        h->count++;
    }
    assert_true(h->count % c.count != 0);  // some did not count
    ppo_collected_end(&c);
}

static void check_moments(const struct history *h, const struct grt_ppo *ppo) {
    float *norm = ppo_read(ppo->norm), *counts = ppo_read(ppo->counts);
    for (size_t k = 0; k < h->obs; k++) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < h->count; i++) {
            mean += h->rows[i * h->obs + k] / (double)h->count;
        }
        for (size_t i = 0; i < h->count; i++) {
            variance += pow(h->rows[i * h->obs + k] - mean, 2) / (double)h->count;
        }
        assert_true(counts[k] == (float)h->count);
        ppo_near("mean", k, (double)norm[k], mean, 1e-5 * (1 + sqrt(variance)));
        ppo_near("variance", k, (double)norm[2 * h->obs + k], variance, 1e-4 * variance + 1e-9);
        // What hardly moves is left as it is.
        double want = variance > 1e-8 ? 1 / sqrt(variance) : 1;
        ppo_near("1 / deviation", k, (double)norm[h->obs + k], want, 1e-4 * want);
    }
    free(norm);
    free(counts);
}

static void moments_are_of_all_rows_that_count(struct ppo_maker m) {
    m.desc.normalise = true;
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo *ppo = made.ppo;
    const int iterations = 4;
    struct history h = {.obs = ppo->sizes->obs, .room = (size_t)iterations * ppo->count};
    h.rows = test_alloc(h.room * h.obs * sizeof *h.rows);
    size_t unlike = 0;
    for (int i = 0; i < iterations; i++) {
        struct grt_ppo_report report;
        float *before = ppo_read(ppo->norm);
        assert_true(grt_ppo_iterate(ppo, &report));
        remember(&h, ppo, before);
        check_moments(&h, ppo);
        // The last observation of the iteration, before and after.
        float *raw = ppo_read(ppo->learning.raw);
        struct ppo_collected c = ppo_collect(ppo);
        for (size_t k = 0; k < c.rows * c.obs; k++) {
            double got = c.own[c.count * c.obs + k];
            double want =
                ((double)raw[k] - (double)before[k % c.obs]) * (double)before[c.obs + k % c.obs];
            ppo_near("normalised", k, got, want, 1e-5 * (1 + fabs(want)));
            unlike += raw[k] != (float)got;
        }
        ppo_collected_end(&c);
        free(before);
        free(raw);
    }
    assert_true(unlike > 0);
    free(h.rows);
    ppo_end(&made);
}

static void discrete_moments(void **state) {
    (void)state;
    moments_are_of_all_rows_that_count(ppo_uavs());
}

static void continuous_moments(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    moments_are_of_all_rows_that_count(m);
}

// ---- evaluations ----

struct watched {
    const struct oracle_ppo_net *actor;
    const float *norm;
    size_t obs, steps;
    double sum;
};

// What is shown is what the environment gave; the action follows from it normalised.
static bool look(void *self, const struct grt_ppo_moment *m) {
    struct watched *w = self;
    if (m->step == 0) {
        return true;
    }
    double x[8], y;
    for (size_t k = 0; k < w->obs; k++) {
        x[k] = ((double)m->obs[k] - (double)w->norm[k]) * (double)w->norm[w->obs + k];
    }
    // Of a pendulum: cosine and sine.
    assert_true(fabs(hypot((double)m->obs[0], (double)m->obs[1]) - 1) < 1e-5);
    oracle_ppo_net(w->actor, x, &y);
    ppo_near("action", m->step, (double)m->acts[0], y, 1e-4 * (1 + fabs(y)));
    w->sum += (double)m->acts[0] * m->step;
    w->steps++;
    return true;
}

static void evaluations_see_by_it_too(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.normalise = true;
    m.desc.optim.lr = 0.02;
    struct ppo_made made = ppo_make(&m), other = ppo_make(&m);
    struct grt_worlds *worlds = ppo_make_worlds(&m, 3, true);
    struct grt_ppo_report report;
    for (int i = 0; i < 5; i++) {
        assert_true(grt_ppo_iterate(made.ppo, &report));
    }
    struct grt_archive *archive = grt_archive_create();
    assert_true(grt_ppo_save(made.ppo, archive));
    assert_true(grt_ppo_load(other.ppo, archive, GRT_PPO_ACTOR));
    struct ppo_collected c = ppo_collect(made.ppo);
    double *params = ppo_widened(made.ppo->params.master);
    struct oracle_ppo batch = ppo_batch_of(made.ppo, &c, params);
    float *norm = ppo_read(made.ppo->norm);
    double sums[2] = {0};
    for (int k = 0; k < 2; k++) {
        struct watched w = {.actor = &batch.actor, .norm = norm, .obs = c.obs};
        assert_true(c.obs <= 8);
        assert_true(grt_ppo_watch(k ? other.ppo : made.ppo, worlds, GRT_PPO_TRY_POLICY, 4, 1, look,
                                  &w, &report));
        assert_true(w.steps > m.length);
        sums[k] = w.sum;
    }
    assert_true(sums[0] == sums[1]);
    free(norm);
    free(params);
    ppo_collected_end(&c);
    grt_archive_destroy(&archive);
    ppo_end(&made);
    ppo_end(&other);
    grt_worlds_destroy(&worlds);
}

// ---- archives ----

static void a_resumed_run_has_the_same_bits(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    m.desc.normalise = true;
    struct ppo_made whole = ppo_make(&m), part = ppo_make(&m);
    struct grt_ppo_report report;
    assert_true(grt_ppo_iterate(whole.ppo, &report) && grt_ppo_iterate(whole.ppo, &report));
    struct grt_archive *archive = grt_archive_create();
    assert_true(grt_ppo_save(whole.ppo, archive));
    assert_true(grt_ppo_load(part.ppo, archive, GRT_PPO_ALL));
    for (int i = 0; i < 2; i++) {
        assert_true(grt_ppo_iterate(whole.ppo, &report) && grt_ppo_iterate(part.ppo, &report));
    }
    const struct grt_tensor *const want[] = {whole.ppo->params.master, whole.ppo->norm,
                                             whole.ppo->counts};
    const struct grt_tensor *const got[] = {part.ppo->params.master, part.ppo->norm,
                                            part.ppo->counts};
    for (int i = 0; i < 3; i++) {
        float *a = ppo_read(want[i]), *b = ppo_read(got[i]);
        test_same(test.dev, "after a resume", b, a, 4, grt_tensor_count(want[i]));
        free(a);
        free(b);
    }
    ppo_end(&part);
    grt_archive_destroy(&archive);

    // Networks of a run without it begin one that has it, which cannot go on as the same run.
    m.desc.normalise = false;
    struct ppo_made plain = ppo_make(&m);
    archive = grt_archive_create();
    assert_true(grt_ppo_save(plain.ppo, archive));
    assert_null(grt_archive_find(archive, GRT_PPO_NORMALIZER));
    assert_true(grt_ppo_load(whole.ppo, archive, GRT_PPO_NETWORKS));
    TEST_REFUSED(grt_ppo_load(whole.ppo, archive, GRT_PPO_ALL), GRT_BAD_DATA, GRT_PPO_NORMALIZER);
    grt_archive_destroy(&archive);
    ppo_end(&plain);
    ppo_end(&whole);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(discrete_moments),
    TEST_CASE(continuous_moments),
    TEST_CASE(evaluations_see_by_it_too),
    TEST_CASE(a_resumed_run_has_the_same_bits),
};
TEST_SUITE(normalizer, true, cases);
