// SPDX-License-Identifier: Apache-2.0
// Whether PPO fits into the device's memory. Where it does not, the sentence has what it takes,
// what there is, and the settings to lower.
#include <stdio.h>

#include "base/log.h"
#include "gpurt/device.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"
#include "worlds_parts.h"

// A tensor that kernels reach as a whole, in words: what all copies write in a step, and the share
// of a copy, without what aligns it. Both are there `times` for each step.
struct part {
    const char *what;
    uint64_t times, all, of_copy;
};

// Words that one binding reaches, and indices of 32 bits count.
static uint64_t most_words(const struct grt_caps *caps) {
    uint64_t most = INT32_MAX;
    most = caps->max_binding > 0 && caps->max_binding / 4 < most ? caps->max_binding / 4 : most;
    return caps->max_buffer > 0 && caps->max_buffer / 4 < most ? caps->max_buffer / 4 : most;
}

// "4096 copies (num_envs) over 128 steps (rollout_steps)"
static void describe(const struct grt_ppo *ppo, const struct ppo_actors *a, char *text,
                     size_t size) {
    int used = snprintf(text, size, "%u copies (%s)", grt_worlds_copies(a->worlds),
                        grt_worlds_copies_key(a->worlds));
    if (a == &ppo->learning && used > 0 && (size_t)used < size) {
        snprintf(text + used, size - (size_t)used, " over %llu steps (rollout_steps)",
                 (unsigned long long)a->steps);
    }
}

bool grt_ppo_actors_fit(const struct grt_ppo *ppo, const struct ppo_actors *a) {
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(a->worlds);
    const struct part parts[] = {
        {"trajectories", PPO_SECTIONS, a->stride, sizes->agents},
        {"observations", 1, a->obs_stride, (uint64_t)sizes->agents * a->obs_words},
        {"observations of the whole", 1, a->whole_stride, a->whole_words},
        {"actions", 1, a->acts_stride, (uint64_t)sizes->agents * sizes->act},
    };
    const struct part *p = &parts[0];
    for (size_t i = 1; i < sizeof parts / sizeof parts[0]; i++) {
        p = parts[i].times * parts[i].all > p->times * p->all ? &parts[i] : p;
    }
    uint64_t most = most_words(&grt_dev_info(ppo->dev)->caps), in_step = p->times * p->all;
    uint64_t steps = most / in_step;  // with one more than those that are taken
    if (a->steps < steps) {
        return true;
    }
    const char *key = grt_worlds_copies_key(a->worlds);
    uint64_t unit = grt_dev_align(ppo->dev) / 4;
    uint64_t copies = most / (a->steps + 1) / p->times / unit * unit / p->of_copy;
    char all[96], fewer[64] = "", shorter[64] = "";
    describe(ppo, a, all, sizeof all);
    if (copies > 0) {
        snprintf(fewer, sizeof fewer, "%s=%llu", key, (unsigned long long)copies);
    }
    if (a == &ppo->learning && steps > 1) {
        snprintf(shorter, sizeof shorter, "%srollout_steps=%llu", copies > 0 ? " or " : "",
                 (unsigned long long)(steps - 1));
    }
    return grt_fail(GRT_CONFIG,
                    "ppo: the %s of %s take %.1f MB, and %s reaches %.1f MB in one buffer: %s%s "
                    "fits",
                    p->what, all, (double)in_step * (double)(a->steps + 1) * 4 / 1e6,
                    grt_dev_info(ppo->dev)->selector, (double)most * 4 / 1e6, fewer, shorter);
}

bool grt_ppo_plan_fits(const struct grt_ppo *ppo, const struct ppo_actors *a,
                       const struct grt_plan *plan) {
    uint64_t needed = grt_plan_bytes(plan, NULL), left = grt_dev_mem_left(ppo->dev);
    if (needed <= left) {
        return true;
    }
    char all[96], networks[96] = "";
    describe(ppo, a, all, sizeof all);
    if (a == &ppo->learning) {
        snprintf(networks, sizeof networks, ", %.1f MB of them for networks on %llu rows at once",
                 (double)grt_plan_bytes(plan, "acts") / 1e6, (unsigned long long)ppo->net.rows);
    }
    return grt_fail(GRT_NO_MEMORY,
                    "ppo: %s take %.1f MB%s, and %s has %.1f MB left: lower %s%s, or raise the "
                    "memory limit or fraction",
                    all, (double)needed / 1e6, networks, grt_dev_info(ppo->dev)->selector,
                    (double)left / 1e6, grt_worlds_copies_key(a->worlds),
                    networks[0] ? ", rollout_steps or batch_size" : "");
}
