// SPDX-License-Identifier: Apache-2.0
// A trained policy on starts of its own, and beside it actions that need no learning: a row each.
#include "eval_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/output/files.h"
#include "cli/talk.h"
#include "train_ppo.h"

struct eval_policy {
    struct train_ppo ppo;  // first: its common options are those of the command
    uint32_t episodes;
    uint64_t seed;
};

static bool read_seed(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 0, UINT32_MAX, into, why);
}

#define AT(field) offsetof(struct eval_policy, field)
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

static const struct option_row own_options[] = {
    {.name = "checkpoint",
     .value = "FILE",
     .help = "of `gpurt train ppo` or `gpurt train uav` (default: ENV-ppo.h5)",
     .read = options_read_text,
     .at = AT(ppo.trainer.config.checkpoint)},
    {.name = "episodes",
     .value = "N",
     .help = "that are played, each on a start of its own",
     .fallback = "256",
     .read = options_read_count,
     .at = AT(episodes)},
    {.name = "seed",
     .value = "N",
     .help = "of the starts",
     .fallback = TEXT(TRAIN_PPO_TRIALS),
     .read = read_seed,
     .at = AT(seed)},
};

// X(name, key, heading, unit, type, precision, width)
#define EVAL_COLUMNS(X)                                                                            \
    X(NAME, "policy", "policy", NULL, TEXT, 0, 16)                                                 \
    X(EPISODES, "episodes", "episodes", NULL, COUNT, 0, 0)                                         \
    X(RETURN, "return", "return", NULL, NUMBER, 3, 9)                                              \
    X(LENGTH, "length", "steps", NULL, NUMBER, 1, 7)                                               \
    X(TERM_1, "term_1", "", NULL, NUMBER, 4, 10)                                                   \
    X(TERM_2, "term_2", "", NULL, NUMBER, 4, 10)                                                   \
    X(TERM_3, "term_3", "", NULL, NUMBER, 4, 10)                                                   \
    X(TERM_4, "term_4", "", NULL, NUMBER, 4, 10)                                                   \
    X(RATE, "steps_per_s", "", "steps/s", NUMBER, 0, 10)

enum eval_column {
#define X(name, key, heading, unit, type, precision, width) EVAL_##name,
    EVAL_COLUMNS(X)
#undef X
        EVAL_COLUMN_COUNT,
};

static int print(struct eval_policy *e, const struct grt_ppo_report *reports, int argc,
                 char **argv) {
    struct table_column columns[] = {EVAL_COLUMNS(TABLE_COLUMN)};
    struct train_ppo *t = &e->ppo;
    struct output output;
    struct table table;
    uint64_t shown = (1ull << EVAL_COLUMN_COUNT) - 1;
    for (uint32_t i = 0; i < GRT_RUN_TERMS; i++) {
        const char *name = grt_worlds_term(t->task->worlds, i);
        columns[EVAL_TERM_1 + i].key = name;  // NULL: the environment lacks it, and so do all forms
        if (name) {
            columns[EVAL_TERM_1 + i].heading = name;
        } else {
            shown &= ~(1ull << (EVAL_TERM_1 + i));
        }
    }
    int code = output_open(&output, t->trainer.config.common.output);
    if (code) {
        return code;
    }
    struct table_desc desc = {
        .output = &output,
        .format = t->trainer.config.common.format,
        .columns = columns,
        .column_count = EVAL_COLUMN_COUNT,
        .schema = "gpurt.eval-policy/1",
        .argc = argc,
        .argv = argv,
        .head = json_pack("{soss}", "device", devices_json(grt_dev_info(t->trainer.dev)), "env",
                          t->info->name),
    };
    bool good = table_open(&table, &desc) && table_section(&table, NULL, shown, NULL, 0);
    for (int i = 0; good && i < GRT_PPO_TRIAL_COUNT; i++) {
        const struct grt_ppo_report *r = &reports[i];
        struct table_cell cells[EVAL_COLUMN_COUNT] = {
            [EVAL_NAME] = TABLE_CELL(.text = grt_ppo_trial_text((enum grt_ppo_trial)i)),
            [EVAL_EPISODES] = TABLE_CELL(.count = (uint64_t)r->episodes),
            [EVAL_RETURN] = TABLE_CELL(.number = r->mean_return),
            [EVAL_LENGTH] = TABLE_CELL(.number = r->length),
            [EVAL_RATE] = TABLE_CELL(.number = r->rows / r->seconds)};
        for (uint32_t k = 0; k < GRT_RUN_TERMS; k++) {
            if (grt_worlds_term(e->ppo.task->worlds, k)) {
                cells[EVAL_TERM_1 + k] = TABLE_CELL(.number = r->terms[k]);
            }
        }
        good = table_row(&table, cells);
    }
    table_close(&table);
    return output_close(&output, true);
}

static int run(struct eval_policy *e, int argc, char **argv) {
    struct train_ppo *t = &e->ppo;
    struct train_config *config = &t->trainer.config;
    struct grt_ppo_report reports[GRT_PPO_TRIAL_COUNT];
    int code = FILES_APART({FILE_READ, "--checkpoint", t->file.archive->path},
                           {FILE_WRITTEN, "--output", config->common.output});
    if (code) {
        return code;
    }
    code = train_ppo_open_trained(t);
    if (code) {
        return code;
    }
    for (int i = 0; i < GRT_PPO_TRIAL_COUNT; i++) {
        if (!grt_ppo_evaluate(t->task->ppo, t->task->trials, (enum grt_ppo_trial)i,
                              (uint32_t)e->seed, &reports[i])) {
            return command_exit_of(grt_last_status());
        }
        if (reports[i].stopped) {
            return COMMAND_INTERRUPTED;
        }
    }
    return print(e, reports, argc, argv);
}

int eval_policy(int argc, char **argv) {
    struct eval_policy *e = calloc(1, sizeof *e);
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t count = 0;
    int code = COMMAND_INTERNAL;
    struct option_list lists[] = {
        OPTION_LIST("Options", own_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    static const struct train_kind kind = {.verb = "eval", .keys = GRT_CONFIG_OF_PPO};
    struct options_desc desc = {
        .verb = "eval ENV",
        .words = "[KEY=VALUE...]",
        .about = "What a policy that `gpurt train ppo` or `gpurt train uav` trained is worth: its "
                 "most likely actions\non starts that training never saw, and random actions "
                 "beside it. KEY=VALUE changes settings of\nthe environment: map=24.\n",
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists,
        .keys = GRT_CONFIG_OF_PPO};
    if (!e || !words) {
        talk_error("out of memory");
    } else {
        e->ppo.trainer.kind = &kind;
        code = options_parse(&desc, argc, argv, &e->ppo.trainer.config.common, words, &count);
        if (code < 0) {
            code = train_ppo_trained(&e->ppo, words, count, e->episodes);
        }
        if (!code && e->ppo.info) {
            code = run(e, argc, argv);
        }
        train_ppo_close(&e->ppo);
        grt_dev_destroy(&e->ppo.trainer.dev);
    }
    free(words);
    free(e);
    return code;
}
