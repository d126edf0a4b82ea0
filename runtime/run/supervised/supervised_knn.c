// SPDX-License-Identifier: Apache-2.0
// Training without targets is tried by nearest neighbours from time to time, where the file has
// classes. The classes change nothing of what is learnt. Ranks share the samples out.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
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

// Whether all ranks go on with a trial: none does where somebody has asked to stop, or where one of
// them cannot. So each waits for the others no longer than a batch takes.
struct meeting {
    struct grt_comm *comm;
    const struct grt_run *run;
    bool stopped;
};

static bool meet(void *context, bool good) {
    struct meeting *m = context;
    m->stopped = grt_run_asked_to_stop(m->run);
    if (grt_comm_ranks(m->comm) > 1) {
        bool met = grt_comm_vote(m->comm) &&
                   grt_comm_all(m->comm, "cannot try nearest neighbours: see its own line", good);
        m->stopped = grt_comm_stop(m->comm) != 0;
        return met && !m->stopped;
    }
    return good && !m->stopped;
}

#define TURN_QUERIES 2048u  // of a rank, where several judge

// Each rank judges its own queries, some in each turn.
static bool judge(struct grt_dev *dev, struct meeting *m, const struct grt_features_of *of,
                  double *share) {
    uint32_t ranks = grt_comm_ranks(m->comm), rank = grt_comm_rank(m->comm);
    const struct grt_features *all = &of->queries;
    if (ranks == 1) {
        return grt_knn(dev, &of->bank, all, NULL, share);
    }
    uint64_t *right = calloc(ranks, sizeof *right), own_right = 0, sum = 0;
    bool good = meet(m, right || grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", ranks));
    for (uint64_t turn = 0; good && turn < all->rows; turn += ranks * TURN_QUERIES) {
        uint64_t left = all->rows - turn, most = ranks * TURN_QUERIES;
        uint64_t each = ((left < most ? left : most) + ranks - 1) / ranks, first = rank * each;
        uint64_t rows = first >= left ? 0 : left - first < each ? left - first : each;
        struct grt_features own = {.rows = rows, .width = all->width};
        bool judged = true;
        if (rows > 0) {
            double found = 0;
            own.x = all->x + (turn + first) * all->width;
            own.classes = all->classes + turn + first;
            judged = grt_knn(dev, &of->bank, &own, NULL, &found);
            own_right += (uint64_t)llround(found * (double)rows);
        }
        good = meet(m, judged);
    }
    if (good && right) {
        right[rank] = own_right;
        good = grt_comm_gather(m->comm, right, sizeof *right);
        for (uint32_t r = 0; r < ranks; r++) {
            sum += right[r];
        }
    }
    *share = (double)sum / (double)all->rows;
    free(right);
    return good;
}

static bool measure(struct grt_supervised *s, struct meeting *m, double *share) {
    struct grt_archive *model = grt_archive_create();
    struct grt_config *bank = malloc(sizeof *bank);
    struct grt_features_of of = {0};
    bool good = (model && bank) || grt_fail(GRT_NO_MEMORY, "no host memory for a trial");
    good = good && bank_config(&s->task.config, bank) && supervised_save(s, m->run, model);
    good = meet(m, good) &&
           grt_features_take(
               s->desc.dev,
               &(struct grt_features_desc){
                   .model = model, .config = bank, .comm = m->comm, .meet = meet, .context = m},
               &of);
    good = good && judge(s->desc.dev, m, &of, share);
    grt_features_of_finish(&of);
    grt_archive_destroy(&model);
    free(bank);
    return good;
}

bool supervised_knn_due(const struct grt_supervised *s, uint64_t step) {
    uint64_t each = s->steps_per_epoch * s->knn_every;
    return each > 0 && (step >= s->steps || step % each == 0);
}

double supervised_knn(struct grt_supervised *s, const struct grt_run *run, bool *stopped) {
    struct meeting m = {.comm = s->desc.comm, .run = run};
    double share = -1;
    if (!supervised_knn_due(s, grt_run_info(run).step)) {
        return -1;
    }
    bool measured = measure(s, &m, &share);
    if (!measured && (m.stopped || grt_comm_stop(s->desc.comm) != 0)) {
        *stopped = true;  // it is owed, and comes first when the run goes on
    } else if (!measured) {
        // Learning goes on without it; why was said.
        s->knn_every = 0;
        grt_run_say(s->driver, GRT_RUN_NEWS_FAULT, "no more trials by nearest neighbours");
    }
    s->loop.apart = true;  // its time is no part of any rate
    return measured ? share : -1;
}
