// SPDX-License-Identifier: Apache-2.0
// The command around every training. Rows for people and programs are in trainer_rows.c.
#include "trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_peaks.h"
#include "cli/command.h"
#include "cli/devices.h"
#include "cli/options/watch.h"
#include "cli/stats.h"
#include "cli/talk.h"
#include "gpurt/profile.h"
#include "publish/publish.h"

#define AT(field) offsetof(struct trainer, field)

const struct option_row trainer_options[TRAINER_OPTIONS_COUNT] = {
    {.name = "log",
     .value = "FILE",
     .help = "append the log, a JSON object a line",
     .read = options_read_text,
     .at = AT(log)},
    {.name = "tensorboard",
     .value = "DIR",
     .help = "event files for TensorBoard",
     .read = options_read_text,
     .at = AT(tensorboard)},
    {.name = "keys",
     .help = "list every key of a config with its names in other tools, and exit",
     .at = AT(keys)},
};

bool trainer_stop(void *context) {
    (void)context;
    return talk_stopped();
}

struct grt_run_desc trainer_run_desc(struct trainer *t) {
    const struct grt_config *c = &t->config.settings;
    return (struct grt_run_desc){
        .log = c->log,
        .tensorboard = c->tensorboard,
        .limits = {.max_time = c->max_time, .patience = c->patience, .min_delta = c->min_delta},
        .comm = t->comm,
        .stop = trainer_stop,
        .report = trainer_report,
        .context = t,
    };
}

// ---- the run ----

static void open_table(struct trainer *t, const char *title, uint64_t shown, int argc,
                       char **argv) {
    for (size_t i = 0; i < t->kind->column_count; i++) {
        t->columns[i] = t->kind->columns[i].column;
    }
    struct table_desc desc = {
        .format = t->config.common.format,
        .columns = t->columns,
        .column_count = t->kind->column_count,
        .schema = "gpurt.train/2",
        .verb = t->kind->verb,
        .argc = argc,
        .argv = argv,
        .head = json_pack("{so}", "device", devices_json(grt_dev_info(t->dev))),
    };
    train_rows_begin(&t->rows, &desc, title[0] ? title : NULL, shown);
}

static void profile_text(const struct grt_dev *dev, char text[256]) {
    struct grt_profile_part part;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; used < 200 && grt_profile_part(grt_dev_profile(dev), i, &part); i++) {
        used += (size_t)snprintf(text + used, 256 - used, "%s%.60s", i ? ", " : "", part.name);
    }
}

static void print_banner(struct trainer *t, char title[TABLE_TEXT_SIZE], uint64_t *shown) {
    const struct grt_dev_info *dev = grt_dev_info(t->dev);
    char memory[TABLE_TEXT_SIZE];
    char used[TABLE_TEXT_SIZE];
    char profile[256];
    char kept[32] = "";
    struct grt_run_info info = grt_run_info(t->run);
    table_bytes_text(dev->caps.memory, memory);
    table_bytes_text(grt_dev_mem_use(t->dev, NULL).current, used);
    profile_text(t->dev, profile);
    talk_line("device      %s: %s, %s %s, %s", dev->selector, dev->name, dev->driver,
              dev->driver_version, memory);
    trainer_ranks_banner(t);
    t->kind->banner(t, title, shown);
    talk_line("memory      %s taken on the device", used);
    talk_line("profile     %s", profile);
    if (info.keep > 0) {
        snprintf(kept, sizeof kept, ", the newest %u", info.keep);
    }
    talk_line("checkpoints %s%s%s%s", t->dry_where ? t->dry_where : info.where, kept,
              info.trainer->keeps_best ? " and the best" : "",
              t->dry_where ? "; a dry run writes none" : "");
    talk_line("%s", "");
}

static void say_nothing_to_do(const struct trainer *t, const struct grt_run_info *info) {
    bool all = info->step >= info->steps && t->kind->more;
    talk_line("nothing to do at step %llu of %llu: %s (%s)%s%s%s", (unsigned long long)info->step,
              (unsigned long long)info->steps, grt_ending_text(info->ended),
              grt_ending_word(info->ended), all ? "; " : "", all ? t->kind->more : "",
              all ? " for more" : "");
}

static void say_end(const struct grt_run_info *info) {
    char best[96] = "";
    const struct grt_run_place *p = &info->place;
    if (info->trainer->keeps_best && p->any_best) {
        bool epochs =
            info->epoch > 0 && (p->best_step % info->epoch == 0 || p->best_step == info->steps);
        uint64_t every = epochs ? info->epoch : 1;
        // A loss is a score below 0.
        const char *score = info->score ? info->score : "score";
        bool loss = strcmp(score, "loss") == 0;
        snprintf(best, sizeof best, "; the best %s is %.6g, of %s %llu", score,
                 loss ? -p->best_score : p->best_score, epochs ? "epoch" : "step",
                 (unsigned long long)((p->best_step + every - 1) / every));
    }
    talk_line("ended by %s: %s%s", grt_ending_word(info->ended), grt_ending_text(info->ended),
              best);
}

// Of a run that has ended.
static int exit_of(const struct trainer *t, const struct grt_run_info *info) {
    switch (info->ended) {
    case GRT_ENDED_SIGNAL:
        if (t->dry_where) {
            return COMMAND_INTERRUPTED;
        }
        if (!trainer_first(t)) {
            return COMMAND_RESUMABLE;
        }
        talk_error("interrupted; the checkpoint is in %s: `--resume%s%s` goes on from there",
                   info->where, t->kind->resume_file ? " " : "",
                   t->kind->resume_file ? info->where : "");
        return COMMAND_RESUMABLE;
    case GRT_ENDED_NONFINITE:
        if (t->dry_where) {
            talk_error("the run ended there. %s", t->kind->advice ? t->kind->advice : "");
        } else if (t->kind->advice) {
            talk_error("the run ended there; checkpoints before it are in %s. %s", info->where,
                       t->kind->advice);
        }
        return COMMAND_INTERNAL;
    case GRT_ENDED_FAILED:
        return command_exit_of(grt_last_status());
    default:
        return COMMAND_OK;
    }
}

static int go(struct trainer *t, int argc, char **argv) {
    char title[TABLE_TEXT_SIZE] = "";
    uint64_t shown = (1ull << t->kind->column_count) - 1;
    print_banner(t, title, &shown);
    struct grt_run_info info = grt_run_info(t->run);
    // Of no steps what there is before the first is written.
    bool done = info.ended != GRT_ENDED_NONE && (info.step > 0 || info.steps > 0);
    if (done) {
        say_nothing_to_do(t, &info);
    }
    open_table(t, title, shown, argc, argv);
    talk_progress("the first step, in which a driver finishes its kernels");
    grt_timeline_restart(t->dev);
    publish_restart();
    grt_run_go(t->run);
    talk_clear();
    info = grt_run_info(t->run);
    int code = done ? COMMAND_OK : exit_of(t, &info);
    if (!code && !done) {
        say_end(&info);
    }
    trainer_monitor_end(t);
    if (!code && t->kind->report && !talk_stopped() && trainer_first(t)) {
        code = t->kind->report(t);
    }
    talk_clear();
    talk_resume();
    return code || !grt_run_info(t->run).log_failed ? code : COMMAND_IO;
}

static int train(struct trainer *t, int argc, char **argv) {
    int code = t->kind->files(t);
    trainer_ranks_place(t);
    if (!code) {
        code = train_rows_open(&t->rows, t->config.common.output);
    }
    if (code) {
        return code;
    }
    double begun = grt_seconds();
    t->dev = train_config_device(&t->config);
    t->device_seconds = grt_seconds() - begun;
    code = t->dev ? trainer_ranks_meet(t) : command_exit_of(grt_last_status());
    if (!code) {
        code = t->kind->open(t);
    }
    talk_clear();
    if (!code) {
        code = go(t, argc, argv);
    } else if (talk_stopped()) {
        talk_resume();
        talk_error("stopped before the first step; the same command begins again");
        code = COMMAND_RESUMABLE;
    } else if (grt_comm_stop(t->comm) & GRT_STOP_LOST) {
        code = COMMAND_RESUMABLE;
    }
    return train_rows_close(&t->rows, code);
}

// ---- the verb ----

static int parse(struct trainer *t, int argc, char **argv, const char **words, size_t *count) {
    const struct train_kind *kind = t->kind;
    struct option_list lists[16];
    const struct option_list shared[] = {
        OPTION_LIST("Log", trainer_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Several devices", trainer_ranks_options),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("Where time and memory go", watch_options),
        OPTION_LIST("General options", options_general),
    };
    memcpy(lists, kind->lists, kind->list_count * sizeof *lists);
    memcpy(lists + kind->list_count, shared, sizeof shared);
    size_t list_count = kind->list_count + sizeof shared / sizeof *shared;
    struct options_desc desc = {.verb = kind->verb,
                                .words = "[KEY=VALUE...]",
                                .about = kind->about,
                                .lists = lists,
                                .list_count = list_count,
                                .keys = kind->keys};
    if (kind->keys_are_options) {
        if (!options_keys_begin(&t->spelled, lists, list_count, argc, argv)) {
            talk_error("out of memory");
            return COMMAND_INTERNAL;
        }
        argc = t->spelled.argc;
        argv = t->spelled.argv;
    }
    return options_parse(&desc, argc, argv, &t->config.common, words, count);
}

// Options that are keys by another name.
static bool set_keys(struct trainer *t) {
    struct grt_config *c = &t->config.settings;
    return (!t->log || grt_config_set(c, GRT_CONFIG_LOG, t->log)) &&
           (!t->tensorboard || grt_config_set(c, GRT_CONFIG_TENSORBOARD, t->tensorboard));
}

int trainer_main(const struct train_kind *kind, int argc, char **argv) {
    struct trainer *t = calloc(1, kind->size);
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t count = 0;
    int code = COMMAND_INTERNAL;
    if (!t || !words) {
        talk_error("out of memory");
        goto undo_memory;
    }
    t->kind = kind;
    code = parse(t, argc, argv, words, &count);
    if (code >= 0) {
        goto undo_memory;
    }
    if (t->keys) {
        code = train_print_keys(&t->config.common, kind->verb, kind->keys, argc, argv);
        goto undo_memory;
    }
    talk_stop_by(TALK_STOP_AT_ONCE);
    code = kind->read(t, words, count);
    if (!code && !set_keys(t)) {
        code = command_exit_of(grt_last_status());
    }
    int launched = code ? -1 : trainer_ranks_launch(t, argc, argv);
    if (!code) {
        code = launched >= 0 ? launched : train(t, argc, argv);
    }
    kind->close(t);
    grt_run_destroy(&t->run);
    code = watch_close(&t->config.common, &t->dev, bench_peaks, code);
    code = trainer_ranks_end(t, code);
undo_memory:
    free(words);
    if (t) {
        options_keys_end(&t->spelled);
    }
    free(t);
    return code;
}
