// SPDX-License-Identifier: Apache-2.0
// PPO in an archive and back, bit for bit.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "ppo_parts.h"

// A tensor that is kept besides the parameters, with its name.
struct kept {
    const char *name;
    const struct grt_tensor *tensor;
};

#define MAX_KEPT 16

// Those of the learner itself, then those of its worlds where wanted, whose names are made.
static uint32_t list(const struct grt_ppo *ppo, bool worlds, struct kept kept[MAX_KEPT],
                     char names[MAX_KEPT][GRT_ARCHIVE_NAME]) {
    const struct kept own[] = {{"optimizer/moments", ppo->kept},
                               {"optimizer/state", ppo->state},
                               {"optimizer/control", ppo->learning.control}};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (own[i].tensor) {
            kept[count++] = own[i];
        }
    }
    const struct grt_tensor *t;
    for (uint32_t i = 0; worlds && count < MAX_KEPT && (t = grt_plan_at(ppo->plan, "worlds", i));
         i++) {
        snprintf(names[count], GRT_ARCHIVE_NAME, "worlds/%s", t->label);
        kept[count] = (struct kept){names[count], t};
        count++;
    }
    return count;
}

// What observations are normalised by: of the networks, though the optimizer does not learn it.
static const struct {
    const char *name;
    size_t at;
} normalizer[] = {{GRT_PPO_NORMALIZER, offsetof(struct grt_ppo, norm)},
                  {"normalizer/counts", offsetof(struct grt_ppo, counts)}};
#define NORMALIZERS (sizeof normalizer / sizeof normalizer[0])

static const struct grt_tensor *normalizer_at(const struct grt_ppo *ppo, size_t i) {
    return *(struct grt_tensor *const *)((const char *)ppo + normalizer[i].at);
}

// Of a parameter: with ema the model is the average, which trials are of, and what updates change
// stands with the optimizer.
static void newest_name(const struct grt_ppo *ppo, const struct grt_param *p,
                        char name[GRT_ARCHIVE_NAME]) {
    snprintf(name, GRT_ARCHIVE_NAME, "%s%s", ppo->average ? "optimizer/newest." : "model/",
             p->name);
}

static bool save(const struct grt_ppo *ppo, bool worlds, struct grt_archive *archive) {
    char name[GRT_ARCHIVE_NAME], names[MAX_KEPT][GRT_ARCHIVE_NAME];
    bool ok = true;
    for (uint32_t i = 0; ok && i < ppo->params.count; i++) {
        const struct grt_param *p = ppo->params.list[i];
        struct grt_tensor average = {0};
        newest_name(ppo, p, name);
        ok = grt_archive_take(archive, name, &p->master);
        if (ok && ppo->average) {
            average = grt_params_view(p, ppo->average, 0);
            snprintf(name, sizeof name, "model/%s", p->name);
            ok = grt_archive_take(archive, name, &average);
        }
    }
    for (size_t i = 0; ok && ppo->norm && i < NORMALIZERS; i++) {
        ok = grt_archive_take(archive, normalizer[i].name, normalizer_at(ppo, i));
    }
    struct kept kept[MAX_KEPT];
    uint32_t count = list(ppo, worlds, kept, names);
    for (uint32_t i = 0; ok && i < count; i++) {
        ok = grt_archive_take(archive, kept[i].name, kept[i].tensor);
    }
    return ok && grt_archive_set_text(archive, "learner", "ppo") &&
           grt_archive_set_whole(archive, "iteration", ppo->done) &&
           grt_archive_set_whole(archive, "seed", (int64_t)ppo->desc.seed);
}

bool grt_ppo_save(const struct grt_ppo *ppo, struct grt_archive *archive) {
    if (!ppo || !archive) {
        return grt_fail(GRT_INVALID, "grt_ppo_save: no %s", ppo ? "archive" : "PPO");
    }
    return save(ppo, true, archive);
}

bool grt_ppo_save_own(const struct grt_ppo *ppo, struct grt_archive *archive) {
    return save(ppo, false, archive);
}

// Whether the archive has every tensor that is wanted, of its shape: nothing is changed before that
// is known.
static bool fits(const struct grt_archive *archive, const char *name, const struct grt_tensor *t) {
    return grt_archive_fits(archive, name, t->dtype, t->rank, t->shape);
}

// Whether a parameter is of that part.
static bool wanted(const struct grt_param *p, enum grt_ppo_part part) {
    return part != GRT_PPO_ACTOR || strncmp(p->name, "critic.", strlen("critic.")) != 0;
}

static bool load(struct grt_ppo *ppo, bool worlds, const struct grt_archive *archive,
                 enum grt_ppo_part part) {
    char name[GRT_ARCHIVE_NAME], names[MAX_KEPT][GRT_ARCHIVE_NAME];
    struct kept kept[MAX_KEPT];
    uint32_t count = part == GRT_PPO_ALL ? list(ppo, worlds, kept, names) : 0;
    // Networks that saw observations as they are may begin a run that normalises them.
    bool begins = part != GRT_PPO_ALL && !grt_archive_find(archive, GRT_PPO_NORMALIZER);
    size_t normalizers = ppo->norm && !begins ? NORMALIZERS : 0;
    bool ok = true;
    ppo->fresh = false;
    for (int give = 0; ok && give < 2; give++) {
        for (size_t i = 0; ok && i < normalizers; i++) {
            const struct grt_tensor *t = normalizer_at(ppo, i);
            ok = give ? grt_archive_give(archive, normalizer[i].name, t)
                      : fits(archive, normalizer[i].name, t);
        }
        for (uint32_t i = 0; ok && i < ppo->params.count; i++) {
            const struct grt_param *p = ppo->params.list[i];
            if (!wanted(p, part)) {
                continue;
            }
            // A run that begins with networks begins its average with them.
            snprintf(name, sizeof name, "model/%s", p->name);
            if (ppo->average) {
                const struct grt_tensor average = grt_params_view(p, ppo->average, 0);
                ok = give ? grt_archive_give(archive, name, &average)
                          : fits(archive, name, &average);
            }
            if (part == GRT_PPO_ALL) {
                newest_name(ppo, p, name);
            }
            ok = ok && (give ? grt_archive_give(archive, name, &p->master)
                             : fits(archive, name, &p->master));
        }
        for (uint32_t i = 0; ok && i < count; i++) {
            ok = give ? grt_archive_give(archive, kept[i].name, kept[i].tensor)
                      : fits(archive, kept[i].name, kept[i].tensor);
        }
    }
    if (ok && part == GRT_PPO_ALL) {
        ppo->done = (uint32_t)grt_archive_whole(archive, "iteration", 0);
    }
    return ok && grt_params_sync(&ppo->params);
}

bool grt_ppo_load(struct grt_ppo *ppo, const struct grt_archive *archive, enum grt_ppo_part part) {
    if (!ppo || !archive) {
        return grt_fail(GRT_INVALID, "grt_ppo_load: no %s", ppo ? "archive" : "PPO");
    }
    return load(ppo, true, archive, part);
}

bool grt_ppo_load_own(struct grt_ppo *ppo, const struct grt_archive *archive,
                      enum grt_ppo_part part) {
    return load(ppo, false, archive, part);
}
