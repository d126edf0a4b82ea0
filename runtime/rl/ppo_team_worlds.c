// SPDX-License-Identifier: Apache-2.0
// The copies of all parts: what they are is gathered part by part, and is one tensor of all copies
// in an archive.
//
//     gathered   | part 0: state [words][own copies], book, totals | part 1: ... |
//     archive    worlds/state [words][copies of all]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/buffer.h"
#include "ppo_team_parts.h"

static const struct grt_tensor *world_at(const struct grt_ppo *ppo, uint32_t i) {
    return grt_plan_at(ppo->plan, "worlds", i);
}

static char *part_of(const struct grt_ppo_team *team, char *worlds, uint32_t part) {
    return worlds + part * team->world_bytes;
}

bool ppo_team_worlds_make(struct grt_ppo_team *team) {
    const struct grt_tensor *t;
    for (uint32_t i = 0; (t = world_at(team->learners[0], i)); i++) {
        team->world_bytes += grt_tensor_bytes(t);
    }
    team->worlds = calloc(team->all, team->world_bytes);
    return team->worlds ||
           grt_fail(GRT_NO_MEMORY, "no host memory for the state of %u parts", team->all);
}

static bool read_own(struct grt_ppo_team *team) {
    const struct grt_tensor *t;
    for (uint32_t k = 0; k < team->count; k++) {
        char *to = part_of(team, team->worlds, team->first + k);
        for (uint32_t i = 0; (t = world_at(team->learners[k], i)); i++) {
            if (!grt_buf_read(t->range.buf, t->range.offset, to, grt_tensor_bytes(t))) {
                return false;
            }
            to += grt_tensor_bytes(t);
        }
    }
    return true;
}

// Between the columns of a part in a tensor of all copies and the part's own.
static void move(const struct grt_ppo_team *team, const struct grt_tensor *t, uint32_t part,
                 char *own, char *whole, bool to_whole) {
    uint64_t row = t->shape[1] * 4;
    for (uint64_t r = 0; r < t->shape[0]; r++) {
        char *there = whole + (r * team->all + part) * row, *here = own + r * row;
        memcpy(to_whole ? there : here, to_whole ? here : there, row);
    }
}

bool grt_ppo_team_save(struct grt_ppo_team *team, struct grt_archive *archive) {
    if (!team || !archive) {
        return grt_fail(GRT_INVALID, "grt_ppo_team_save: no %s", team ? "archive" : "team");
    }
    char name[GRT_ARCHIVE_NAME];
    const struct grt_tensor *t;
    // The exchange first: a rank that fails behind it keeps nobody waiting, and where one fails
    // before it nobody begins.
    bool ok = grt_comm_all(team->comm, "cannot save: the states of its copies were not read",
                           read_own(team)) &&
              grt_comm_gather(team->comm, team->worlds, team->count * team->world_bytes) &&
              grt_ppo_save_own(team->learners[0], archive);
    uint64_t at = 0;
    for (uint32_t i = 0; ok && (t = world_at(team->learners[0], i)); i++) {
        const uint64_t shape[2] = {t->shape[0], t->shape[1] * team->all};
        snprintf(name, sizeof name, "worlds/%s", t->label);
        struct grt_archive_tensor *to = grt_archive_add(archive, name, t->dtype, 2, shape, NULL);
        ok = to != NULL;
        for (uint32_t part = 0; ok && part < team->all; part++) {
            move(team, t, part, part_of(team, team->worlds, part) + at, to->data, true);
        }
        at += grt_tensor_bytes(t);
    }
    return ok;
}

// Whether the archive has the copies of all parts.
static bool fits(const struct grt_ppo_team *team, const struct grt_archive *archive) {
    char name[GRT_ARCHIVE_NAME];
    const struct grt_tensor *t;
    for (uint32_t i = 0; (t = world_at(team->learners[0], i)); i++) {
        snprintf(name, sizeof name, "worlds/%s", t->label);
        const uint64_t shape[2] = {t->shape[0], t->shape[1] * team->all};
        if (!grt_archive_fits(archive, name, t->dtype, 2, shape)) {
            return false;
        }
    }
    return true;
}

static bool give_worlds(struct grt_ppo_team *team, const struct grt_archive *archive) {
    char name[GRT_ARCHIVE_NAME];
    const struct grt_tensor *t;
    uint64_t at = 0;
    for (uint32_t i = 0; (t = world_at(team->learners[0], i)); i++) {
        snprintf(name, sizeof name, "worlds/%s", t->label);
        const struct grt_archive_tensor *from = grt_archive_find(archive, name);
        for (uint32_t part = 0; part < team->all; part++) {
            move(team, t, part, part_of(team, team->worlds, part) + at, from->data, false);
        }
        for (uint32_t k = 0; k < team->count; k++) {
            const struct grt_tensor *to = world_at(team->learners[k], i);
            const char *own = part_of(team, team->worlds, team->first + k) + at;
            if (!grt_buf_write(to->range.buf, to->range.offset, own, grt_tensor_bytes(to))) {
                return false;
            }
        }
        at += grt_tensor_bytes(t);
    }
    return true;
}

bool grt_ppo_team_load(struct grt_ppo_team *team, const struct grt_archive *archive,
                       enum grt_ppo_part part) {
    if (!team || !archive) {
        return grt_fail(GRT_INVALID, "grt_ppo_team_load: no %s", team ? "archive" : "team");
    }
    bool ok = part != GRT_PPO_ALL || fits(team, archive);
    for (uint32_t k = 0; ok && k < team->count; k++) {
        ok = grt_ppo_load_own(team->learners[k], archive, part);
    }
    return ok && (part != GRT_PPO_ALL || give_worlds(team, archive));
}
