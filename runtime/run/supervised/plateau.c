// SPDX-License-Identifier: Apache-2.0
#include "plateau.h"

#include <math.h>

#define FACTOR "plateau_factor"
#define BEST "plateau_best"
#define BAD "plateau_bad"
#define COOLING "plateau_cooling"

// A change of the rate below this is none, as in PyTorch.
#define LEAST_CHANGE 1e-8

// Thresholds are shares of the best. More is better of a score, less of a loss, which is a score
// below 0.
static bool better(const struct plateau_desc *d, double score, double best) {
    return d->loss ? -score < -best * (1 - d->threshold) : score > best * (1 + d->threshold);
}

bool plateau_add(struct plateau *p, const struct plateau_desc *d, double score) {
    if (isfinite(score) && (!p->any || better(d, score, p->best))) {
        p->best = score;
        p->any = true;
        p->bad = 0;
    } else {
        p->bad++;
    }
    if (p->cooling > 0) {
        p->cooling--;
        p->bad = 0;
    }
    if (p->bad <= d->patience) {
        return false;
    }
    p->cooling = d->cooldown;
    p->bad = 0;
    double least = d->min_lr / d->lr, next = fmax(plateau_factor(p) * d->factor, least);
    bool falls = (plateau_factor(p) - next) * d->lr > LEAST_CHANGE;
    p->factor = falls ? next : p->factor;
    return falls;
}

bool plateau_save(const struct plateau *p, struct grt_archive *archive) {
    return grt_archive_set_real(archive, FACTOR, plateau_factor(p)) &&
           (!p->any || grt_archive_set_real(archive, BEST, p->best)) &&
           grt_archive_set_whole(archive, BAD, (int64_t)p->bad) &&
           grt_archive_set_whole(archive, COOLING, (int64_t)p->cooling);
}

void plateau_load(struct plateau *p, const struct grt_archive *archive) {
    *p = (struct plateau){.any = grt_archive_value(archive, BEST) != NULL,
                          .best = grt_archive_real(archive, BEST, 0),
                          .bad = (uint64_t)grt_archive_whole(archive, BAD, 0),
                          .cooling = (uint64_t)grt_archive_whole(archive, COOLING, 0),
                          .factor = grt_archive_real(archive, FACTOR, 0)};
}
