// SPDX-License-Identifier: Apache-2.0
// `gpurt bench rollout` of an environment whose state lies in device memory, with the policy that
// `gpurt train ppo` begins with: every step has an observation, the actor, and its most likely
// action. A sample is one episode of every copy, reset included. The check: every copy has ended
// it.
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "train/train_ppo.h"

#define MAX_WORDS (GRT_ENV_SETTINGS + 4)

struct play {
    struct train_ppo ppo;
    struct grt_ppo_report report;
};

static bool play_once(void *context, double *seconds) {
    struct play *p = context;
    if (!grt_ppo_evaluate(p->ppo.task->ppo, p->ppo.task->trials, GRT_PPO_TRY_POLICY, 1,
                          &p->report) ||
        p->report.stopped) {
        return false;
    }
    *seconds = p->report.seconds;
    return true;
}

// Settings as `gpurt train ppo` has them. Nothing is learnt: the least that makes a learner is
// enough.
static int open_play(struct play *p, struct bench *bench,
                     const struct bench_worlds_settings *settings, uint32_t copies) {
    static const struct train_kind kind = {.verb = "bench rollout", .keys = GRT_CONFIG_OF_PPO};
    char texts[MAX_WORDS][96];
    const char *words[MAX_WORDS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < settings->count; i++) {
        snprintf(texts[count++], sizeof texts[0], "%s=%.9g", settings->values[i].name,
                 settings->values[i].value);
    }
    snprintf(texts[count++], sizeof texts[0], "evaluate_envs=%u", copies);
    snprintf(texts[count++], sizeof texts[0], "num_envs=1");
    snprintf(texts[count++], sizeof texts[0], "rollout_steps=1");
    if (bench->rollout.length > 0) {
        snprintf(texts[count++], sizeof texts[0], "episode_limit=%u", bench->rollout.length);
    }
    for (uint32_t i = 0; i < count; i++) {
        words[i] = texts[i];
    }
    p->ppo.trainer.kind = &kind;
    p->ppo.trainer.config.common = bench->common;
    p->ppo.trainer.dev = bench->dev;
    p->ppo.env = bench->rollout.env;
    int code = train_ppo_settings(&p->ppo, NULL, words, count);
    return code ? code : train_ppo_make(&p->ppo);
}

bool bench_worlds_policy(struct bench *bench, const struct bench_worlds_settings *settings,
                         uint32_t copies) {
    struct play *play = calloc(1, sizeof *play);  // too large for a stack
    struct stats stats = {0};
    enum bench_outcome outcome = BENCH_GOOD;
    double seconds;
    bench_progress_row(&bench->progress, "rollout: %s, %u copies, with the policy",
                       bench->rollout.env, copies);
    if (!play) {
        talk_error("out of memory");
        return bench_row(bench, NULL, BENCH_BROKEN, NULL, false);
    }
    if (open_play(play, bench, settings, copies)) {
        outcome = bench_failure();
    } else if (!play_once(play, &seconds)) {
        outcome = BENCH_BROKEN;
    }
    if (outcome == BENCH_GOOD && play->report.episodes != copies) {
        talk_error("%u copies: %.0f of them ended their episode", copies, play->report.episodes);
        outcome = BENCH_WRONG;
    }
    struct stats_desc how = {.budget = bench->seconds, .min_samples = bench->samples};
    if (outcome == BENCH_GOOD && !stats_measure(&how, play_once, play, &stats)) {
        outcome = BENCH_BROKEN;
    }
    const struct grt_ppo_task *task = play->ppo.task;
    const struct grt_worlds_sizes *sizes = task ? grt_worlds_sizes(task->trials) : NULL;
    double rows = (double)copies * (sizes ? sizes->agents : 0);
    double length = task ? grt_worlds_length(task->trials) : 0;
    struct table_cell cells[BENCH_COLUMN_COUNT] = {
        [BENCH_KIND] = TABLE_CELL(.text = "rollout"),
        [BENCH_TEST] =
            TABLE_CELL(.text = play->ppo.info ? play->ppo.info->name : bench->rollout.env),
        [BENCH_POLICY] = TABLE_CELL(.text = "actor"),
        [BENCH_ENVS] = TABLE_CELL(.count = copies),
        [BENCH_TOTAL] = TABLE_CELL(.count = (uint64_t)rows),
        [BENCH_STEPS] = TABLE_CELL(.number = stats.median > 0 ? rows * length / stats.median : 0),
        [BENCH_MS] = TABLE_CELL(.number = length > 0 ? 1e3 * stats.median / length : 0),
    };
    if (task) {
        cells[BENCH_MEMORY] = TABLE_CELL(.count = grt_dev_mem_use(bench->dev, NULL).current);
    }
    bool good = bench_row(bench, cells, outcome, &stats, false);
    train_ppo_close(&play->ppo);
    free(play);
    return good;
}
