// SPDX-License-Identifier: Apache-2.0
// `gpurt sweep`: its command lines.
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/output/files.h"
#include "cli/talk.h"

struct values {
    struct options common;  // first: see options.h
    const char *executor, *devices, *dir, *data, *apply;
    uint32_t slots, dry_run;
    int argc;
    char **argv;
    const char **extra;
    size_t extra_count;
    char output_path[SWEEP_PATH], apply_path[SWEEP_PATH];
    struct output output;
    struct sweep_table table;
    bool rows;  // the table is open
    struct sweep sweep;
};

#define AT(field) offsetof(struct values, field)

static bool read_executor(const char *text, void *into, char why[RANGES_WHY]) {
    *(const char **)into = text;
    if (sweep_executor_named(text)) {
        return true;
    }
    snprintf(why, RANGES_WHY, "known are local slurm ssh");
    return false;
}

static bool read_slots(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t whole = 0;
    bool good = options_whole(text, 1, SWEEP_DEVICES, &whole, why);
    *(uint32_t *)into = (uint32_t)whole;
    return good;
}

static const struct option_row run_options[] = {
    {.name = "executor",
     .value = "local|slurm|ssh",
     .help = "where trials run: on this machine, as jobs of Slurm, or by GNU parallel over ssh",
     .fallback = "local",
     .read = read_executor,
     .at = AT(executor)},
    {.name = "devices",
     .value = "LIST",
     .help = "slots of this machine, a trial at a time on each: 0,1 or vulkan:0,vulkan:1",
     .read = options_read_text,
     .at = AT(devices)},
    {.name = "slots",
     .value = "N",
     .help = "trials at a time, on the devices in turns (default: one a device)",
     .read = read_slots,
     .at = AT(slots)},
    {.name = "dir",
     .value = "DIR",
     .help = "folder of the sweep (default: the name of the file without its end)",
     .read = options_read_text,
     .at = AT(dir)},
    {.name = "data",
     .value = "FILE",
     .help = "HDF5 file with the samples, of all trials",
     .read = options_read_text,
     .at = AT(data)},
    {.name = "dry-run", .help = "print the trials and run none", .at = AT(dry_run)},
};
static const struct option_row best_options[] = {
    {.name = "apply",
     .value = "FILE",
     .help = "write the settings of the best trial as a config",
     .read = options_read_text,
     .at = AT(apply)},
};

// ---- the table ----

static int open_rows(struct values *v) {
    int code = output_open(&v->output, v->common.output);
    if (code) {
        return code;
    }
    struct table_desc desc = {
        .output = &v->output, .format = v->common.format, .argc = v->argc, .argv = v->argv};
    v->rows = true;
    return sweep_table_open(&v->table, &v->sweep, &desc) ? COMMAND_OK : COMMAND_IO;
}

static int close_rows(struct values *v, int code) {
    if (v->rows) {
        sweep_table_close(&v->table);
        code = output_end(&v->output, true, code);
    }
    return code;
}

static int print_all(struct values *v) {
    int code = open_rows(v);
    for (uint32_t i = 0; !code && i < v->sweep.plan.trials; i++) {
        sweep_table_row(&v->table, &v->sweep, &v->sweep.trials[i]);
    }
    return close_rows(v, code);
}

// Where there is no terminal: a line for what begins, a row for what ended.
static void tell(struct sweep *s, struct sweep_trial *t) {
    struct values *v = s->context;
    char text[TABLE_TEXT_SIZE];
    if (sweep_state_final(t->state)) {
        sweep_table_row(&v->table, s, t);
    } else if (t->state == SWEEP_RUNNING) {
        sweep_trial_text(s, t, text, sizeof text);
        talk_line("trial %u%s%s%s: %s", t->number, *t->device ? " on " : "", t->device,
                  t->progress.rows ? " goes on" : "", text);
    }
}

// ---- running ----

static void say_end(const struct sweep *s) {
    const struct sweep_trial *best = sweep_best(s);
    char text[TABLE_TEXT_SIZE];
    if (best) {
        sweep_trial_text(s, best, text, sizeof text);
        talk_line("best: %s %.6g, trial %u: %s", s->plan.metric.name, best->progress.best,
                  best->number, text);
    }
}

static int drive(struct values *v) {
    struct sweep *s = &v->sweep;
    int code = COMMAND_OK;
    s->context = v;
    bool live = v->common.format == TABLE_PLAIN && !v->common.output && !v->common.quiet &&
                sweep_live_open();
    if (live) {
        code = sweep_drive(s, sweep_live_wait);
        sweep_live_close();
        int printed = print_all(v);
        code = code ? code : printed;
    } else {
        code = open_rows(v);
        s->tell = tell;
        for (uint32_t i = 0; !code && i < s->plan.trials; i++) {
            if (sweep_state_final(s->trials[i].state)) {
                sweep_table_row(&v->table, s, &s->trials[i]);
            }
        }
        code = close_rows(v, code ? code : sweep_drive(s, NULL));
    }
    say_end(s);
    return code;
}

static int run_new(struct values *v, const char **words, size_t count) {
    if (count == 0 || strchr(words[0], '=')) {
        talk_error("sweep: the file of a sweep is wanted, or status, best, resume or stop; see "
                   "`gpurt sweep --help`");
        return COMMAND_USAGE;
    }
    struct sweep_new desc = {.yaml = words[0],
                             .dir = v->dir,
                             .data = v->data,
                             .words = words + 1,
                             .word_count = count - 1,
                             .executor = sweep_executor_named(v->executor),
                             .devices = v->devices,
                             .slots = v->slots,
                             .extra = v->extra,
                             .extra_count = v->extra_count};
    if (v->extra_count && desc.executor == &sweep_local) {
        talk_error("what stands behind -- is for sbatch or parallel: --executor slurm or ssh");
        return COMMAND_USAGE;
    }
    const char *yaml = words[0];
    int code = FILES_APART({FILE_READ, "the sweep", yaml}, {FILE_READ, "--data", v->data},
                           {FILE_WRITTEN, "--output", v->common.output});
    code = code ? code : sweep_plan_new(&v->sweep, &desc);
    if (code || v->dry_run) {
        snprintf(v->sweep.dir, sizeof v->sweep.dir, "/%s", words[0]);
        return code ? code : print_all(v);
    }
    code = sweep_folder_new(&v->sweep, &desc);
    return code ? code : drive(v);
}

static int one_folder(const char *verb, size_t count) {
    if (count != 1) {
        talk_error("sweep %s: the folder of a sweep is wanted, and nothing else", verb);
        return COMMAND_USAGE;
    }
    return COMMAND_OK;
}

static int run_resume(struct values *v, const char **words, size_t count) {
    int code = one_folder("resume", count);
    code = code ? code : sweep_folder_open(&v->sweep, words[0], true);
    code = code ? code : sweep_unchanged(&v->sweep);
    if (!code && !v->sweep.executor->open(&v->sweep)) {
        code = command_exit_of(grt_last_status());
    }
    return code ? code : drive(v);
}

// ---- looking ----

static int run_status(struct values *v, const char **words, size_t count) {
    struct sweep *s = &v->sweep;
    int code = one_folder("status", count);
    code = code ? code : sweep_folder_open(s, words[0], false);
    for (uint32_t i = 0; !code && i < s->plan.trials; i++) {
        struct sweep_trial *t = &s->trials[i];
        if (t->state == SWEEP_WAITING && sweep_trial_alive(s, t)) {
            t->state = SWEEP_RUNNING;
        }
    }
    code = code ? code : print_all(v);
    if (!code && v->common.format == TABLE_PLAIN) {
        say_end(s);
    }
    return code;
}

static int run_best(struct values *v, const char **words, size_t count) {
    struct sweep *s = &v->sweep;
    int code = one_folder("best", count);
    code = code ? code : sweep_folder_open(s, words[0], false);
    if (code) {
        return code;
    }
    const struct sweep_trial *best = sweep_best(s);
    if (!best) {
        talk_error("no trial of %s has come to an end with %s yet", words[0], s->plan.metric.name);
        return COMMAND_DATA;
    }
    if (v->apply) {
        struct grt_config *config = malloc(sizeof *config);
        char head[256];
        snprintf(head, sizeof head, "trial %u of %.100s: %s %.6g", best->number,
                 strrchr(s->dir, '/') + 1, s->plan.metric.name, best->progress.best);
        bool good = config && sweep_settings(&s->plan, best->number, config) &&
                    grt_config_write(config, v->apply, head);
        free(config);
        if (!good) {
            return command_exit_of(grt_last_status());
        }
    }
    code = open_rows(v);
    if (!code) {
        sweep_table_row(&v->table, s, best);
    }
    code = close_rows(v, code);
    if (!code) {
        char kept[SWEEP_PATH];
        sweep_trial_kept(s, best, kept);
        talk_line(s->plan.kind->folder ? "its checkpoints are in %s" : "its checkpoint is %s",
                  kept);
    }
    return code;
}

// The sweep sees the file, also on another machine; it ends when its lock does.
static int run_stop(struct values *v, const char **words, size_t count) {
    struct sweep *s = &v->sweep;
    char lock[SWEEP_PATH], file[SWEEP_PATH];
    int code = one_folder("stop", count);
    code = code ? code : sweep_folder_open(s, words[0], false);
    if (code) {
        return code;
    }
    snprintf(lock, sizeof lock, "%.3900s/sweep.lock", s->dir);
    snprintf(file, sizeof file, "%.3900s/stop", s->dir);
    bool asked = sweep_held(lock);
    if (asked && !grt_whole_file_save(file, "\n", 1)) {
        return command_exit_of(grt_last_status());
    }
    while (sweep_held(lock)) {
        if (talk_stopped()) {
            return COMMAND_INTERRUPTED;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    unlink(file);
    talk_line(asked ? "stopped; `gpurt sweep resume %s` goes on" : "no process runs the sweep %s",
              words[0]);
    return COMMAND_OK;
}

// For queues.
static int run_trial(struct values *v, const char **words, size_t count) {
    char *end = NULL;
    unsigned long number = count == 2 ? strtoul(words[1], &end, 10) : 0;
    if (count != 2 || !*words[1] || *end) {
        talk_error("sweep trial: the folder of a sweep and the number of a trial are wanted");
        return COMMAND_USAGE;
    }
    int code = sweep_folder_open(&v->sweep, words[0], false);
    if (!code && number >= v->sweep.plan.trials) {
        talk_error("sweep trial: %s has %u trials", words[0], v->sweep.plan.trials);
        code = COMMAND_USAGE;
    }
    return code ? code : sweep_trial_run(&v->sweep, (uint32_t)number);
}

// ---- the verb ----

static const char about[] =
    "Trains again and again with other settings, by a file with the keys of Weights & Biases\n"
    "(method, metric, parameters, run_cap, early_terminate), or by a config in which a list\n"
    "stands on a key: lr: [0.01, 0.001]. KEY=VALUE is for all trials. Each trial has a folder in\n"
    "DIR with its config, log, checkpoints and result. Ctrl-C ends all with checkpoints and exit\n"
    "code 75; whatever was killed, `gpurt sweep resume DIR` goes on. Options of sbatch or of\n"
    "parallel stand behind --. The exit code is 1 when a trial failed.\n"
    "\n"
    "  status DIR    the table of the trials\n"
    "  best DIR      the best one; --apply FILE writes its config\n"
    "  resume DIR    goes on\n"
    "  stop DIR      asks a sweep that runs to stop\n";

static const struct command {
    const char *name, *verb, *about;
    int (*run)(struct values *v, const char **words, size_t count);
    bool output;
    const struct option_row *own;
    size_t own_count;
} commands[] = {
    {"status", "sweep status", "Prints the table of a sweep, whether it runs or not.\n", run_status,
     true, NULL, 0},
    {"best", "sweep best", "Prints the best trial of a sweep.\n", run_best, true, best_options, 1},
    {"resume", "sweep resume",
     "Goes on with a sweep, where its trials stand. The file that it was made from may not have\n"
     "changed.\n",
     run_resume, true, NULL, 0},
    {"stop", "sweep stop",
     "Asks a sweep that runs, on this machine or another, to stop, and waits until it has: its\n"
     "trials write checkpoints.\n",
     run_stop, false, NULL, 0},
    {"trial", "sweep trial", "One run of a trial: what a queue calls.\n", run_trial, false, NULL,
     0},
};

// A sweep is read in the folder where it was begun; what is written is named from this one.
static bool name_whole(const char **path, char whole[SWEEP_PATH]) {
    char here[SWEEP_PATH];
    if (!*path || **path == '/' || strcmp(*path, "-") == 0) {
        return true;
    }
    if (!getcwd(here, sizeof here) ||
        snprintf(whole, SWEEP_PATH, "%s/%s", here, *path) >= SWEEP_PATH) {
        talk_error("cannot create '%s': its whole name is not known, or too long", *path);
        return false;
    }
    *path = whole;
    return true;
}

static int parse_and_run(struct values *v, const struct command *c, int argc, char **argv,
                         const char **words) {
    struct option_list lists[4] = {OPTION_LIST("Options", run_options)};
    size_t lists_used = 1, count = 0;
    if (c) {
        lists[0] = (struct option_list){"Options", c->own, c->own_count, NULL, false};
        lists_used = c->own ? 1 : 0;
    }
    if (!c || c->output) {
        lists[lists_used++] = (struct option_list)OPTION_LIST("Output options", options_output);
    }
    lists[lists_used++] = (struct option_list)OPTION_LIST("General options", options_general);
    struct options_desc desc = {.verb = c ? c->verb : "sweep",
                                .words = !c                    ? "FILE|COMMAND [KEY=VALUE...]"
                                         : c->run == run_trial ? "DIR N"
                                                               : "DIR",
                                .about = c ? c->about : about,
                                .lists = lists,
                                .list_count = lists_used,
                                .keys = GRT_CONFIG_OF_PPO};
    int code = options_parse(&desc, argc, argv, &v->common, words, &count);
    if (code < 0 && c &&
        (!name_whole(&v->common.output, v->output_path) || !name_whole(&v->apply, v->apply_path))) {
        code = COMMAND_CANNOT_CREATE;
    }
    if (code < 0) {
        code = c ? c->run(v, words, count) : run_new(v, words, count);
    }
    return code;
}

const struct command_word cmd_sweep_words[] = {
    {"status", "the table of a sweep", NULL},
    {"best", "its best trial", NULL},
    {"resume", "go on with it", NULL},
    {"stop", "end it, with checkpoints", NULL},
    {NULL, NULL, NULL},
};

int cmd_sweep(int argc, char **argv) {
    struct values *v = calloc(1, sizeof *v);
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    const struct command *command = NULL;
    int code = COMMAND_INTERNAL, own = 1;
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        command = strcmp(argv[1], commands[i].name) == 0 ? &commands[i] : command;
    }
    while (own < argc && strcmp(argv[own], "--") != 0) {
        own++;
    }
    if (!v || !words) {
        talk_error("out of memory");
    } else if (argc - own > SWEEP_EXTRA + 1) {  // and -- itself
        talk_error("more than %d words behind --", SWEEP_EXTRA);
        code = COMMAND_USAGE;
    } else {
        v->argc = argc;
        v->argv = argv;
        v->extra = (const char **)(argv + own + (own < argc));
        v->extra_count = own < argc ? (size_t)(argc - own - 1) : 0;
        int skipped = command ? 1 : 0;
        code = parse_and_run(v, command, own - skipped, argv + skipped, words);
        sweep_close(&v->sweep);
    }
    free(words);
    free(v);
    return code;
}
