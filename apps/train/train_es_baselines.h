// SPDX-License-Identifier: Apache-2.0
// What a learnt policy is compared with: actions that never change. A task that one of these solves
// needs no policy.
#ifndef APPS_TRAIN_ES_BASELINES_H
#define APPS_TRAIN_ES_BASELINES_H

#include "gpurt/es.h"

struct train_baseline {
    const char *name;
    struct grt_es_report report;
};

#define TRAIN_BASELINES 4  // the policy itself, then what train_baselines() fills in

// No action; the biases of the policy in `learnt`, its weights 0; and the best constant action that
// `iterations` iterations find. Each iteration of that search tries two constants a direction, and
// what counts as its best is the most good steps that any of them had on its starts: rather too
// much than too little.
bool train_baselines(struct grt_dev *dev, const struct grt_es_desc *desc,
                     const struct grt_archive *learnt, uint32_t iterations, uint32_t seed,
                     struct train_baseline rows[TRAIN_BASELINES - 1]);

#endif
