// SPDX-License-Identifier: Apache-2.0
// Training without targets is tried by nearest neighbours from time to time, where the file has
// classes. The classes change nothing of what is learnt.
#include <stdio.h>
#include <stdlib.h>

#include "gpurt/comm.h"
#include "gpurt/features.h"
#include "supervised_parts.h"

// The samples with classes: x and y, whatever is trained on, unless targets are named.
static bool bank_config(const struct grt_config *c, struct grt_config *bank) {
    char batch[32];
    snprintf(batch, sizeof batch, "%llu", (unsigned long long)c->batch_size);
    grt_config_init(bank);
    grt_config_copy(bank, c, GRT_CONFIG_DATA);
    grt_config_copy(bank, c, GRT_CONFIG_NUM_WORKERS);
    if (grt_config_given(c, GRT_CONFIG_TARGETS)) {
        grt_config_copy(bank, c, GRT_CONFIG_INPUTS);
        grt_config_copy(bank, c, GRT_CONFIG_TARGETS);
    }
    if (c->validation_split > 0) {
        grt_config_copy(bank, c, GRT_CONFIG_VALIDATION_SPLIT);
    }
    return grt_config_set(bank, GRT_CONFIG_BATCH_SIZE, batch);
}

void supervised_begin_knn(struct grt_supervised *s) {
    const struct grt_config *c = &s->task.config;
    struct grt_config *bank = malloc(sizeof *bank);  // too large for the stack
    bool wanted = !grt_loss_has_targets(s->task.learner.loss) && bank && bank_config(c, bank) &&
                  grt_features_labelled(bank);
    uint64_t tenth = c->epochs / 10 > 0 ? c->epochs / 10 : 1;
    s->knn_every = !wanted ? 0 : grt_config_given(c, GRT_CONFIG_KNN_EVERY) ? c->knn_every : tenth;
    free(bank);
}

static bool measure(struct grt_supervised *s, const struct grt_run *run, double *share) {
    struct grt_archive *model = grt_archive_create();
    struct grt_config *bank = malloc(sizeof *bank);
    struct grt_features_of of = {0};
    bool good =
        model && bank && bank_config(&s->task.config, bank) && supervised_save(s, run, model) &&
        grt_features_take(s->desc.dev, &(struct grt_features_desc){.model = model, .config = bank},
                          &of) &&
        grt_knn(s->desc.dev, &of.bank, &of.queries, NULL, share);
    grt_features_of_finish(&of);
    grt_archive_destroy(&model);
    free(bank);
    return good;
}

bool supervised_knn_due(const struct grt_supervised *s, uint64_t step) {
    uint64_t each = s->steps_per_epoch * s->knn_every;
    return each > 0 && (step >= s->steps || step % each == 0);
}

void supervised_knn(struct grt_supervised *s, const struct grt_run *run, struct grt_run_row *row) {
    double share = 0;
    // The row is the first rank's.
    if (!supervised_knn_due(s, grt_run_info(run).step) || grt_comm_rank(s->desc.comm) > 0) {
        return;
    }
    if (measure(s, run, &share)) {
        grt_run_row_set(row, GRT_FIELD_KNN, share);
    } else {
        // Learning goes on without it; why was said.
        s->knn_every = 0;
        grt_run_say(s->driver, GRT_RUN_NEWS_FAULT, "no more trials by nearest neighbours");
    }
    s->loop.apart = true;  // its time is no part of any rate
}
