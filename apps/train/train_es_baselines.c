// SPDX-License-Identifier: Apache-2.0
#include "train_es_baselines.h"

#include "cli/talk.h"

// The learner itself searches: a policy that sees zeros is its biases. A third of the iterations
// each with the noise of the training, with a tenth of it (balance on a point), and with noise that
// reaches every corner of [-1, 1].
static bool search(struct grt_dev *dev, const struct grt_es_desc *desc, uint32_t iterations,
                   uint32_t seed, struct grt_es_report *best) {
    const float noises[] = {desc->noise_std, 0.1f * desc->noise_std, 1.0f};
    bool ok = true;
    for (int i = 0; ok && i < 3; i++) {
        struct grt_es_desc blind = *desc;
        blind.noise_std = noises[i];
        blind.step_size = i == 0 ? desc->step_size : noises[i];
        struct grt_es *es = grt_es_create(dev, &blind);
        ok = es != NULL;
        for (uint32_t k = 0; ok && k < (iterations + 2) / 3 && !talk_stopped(); k++) {
            struct grt_es_report tried, trial;
            ok = grt_es_iterate(es, &tried) && grt_es_evaluate(es, seed, &trial);
            if (ok && trial.good_rate > best->good_rate) {
                *best = trial;
            }
            if (ok && tried.best_good > best->good_rate) {
                *best = (struct grt_es_report){.iteration = tried.iteration,
                                               .good_rate = tried.best_good,
                                               .mean_return = tried.best_return,
                                               .fall_rate = tried.fall_rate};
            }
        }
        grt_es_destroy(&es);
    }
    return ok;
}

bool train_baselines(struct grt_dev *dev, const struct grt_es_desc *desc,
                     const struct grt_archive *learnt, uint32_t iterations, uint32_t seed,
                     struct train_baseline rows[TRAIN_BASELINES - 1]) {
    struct grt_es_desc blind = *desc;
    blind.blind = true;
    rows[0].name = "no action";
    rows[1].name = "its biases alone";
    rows[2].name = "best constant action";
    struct grt_es *es = grt_es_create(dev, &blind);
    bool ok = es && grt_es_evaluate(es, seed, &rows[0].report) && grt_es_load(es, learnt, true) &&
              grt_es_evaluate(es, seed, &rows[1].report);
    grt_es_destroy(&es);
    rows[2].report = rows[0].report;
    return ok && search(dev, &blind, iterations, seed, &rows[2].report);
}
