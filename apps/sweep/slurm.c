// SPDX-License-Identifier: Apache-2.0
// Trials as jobs of Slurm, one each: `sbatch` with `gpurt sweep trial DIR N`. The queue only says
// what is alive; how a run ended is in the trial's files. A job that Slurm itself runs again, since
// its node went down or it ended with 75 (RequeueExit), is waited for: it goes on from its
// checkpoint. Such a job would wait two minutes; it is told to begin at once.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program.h"
#include "cli/talk.h"
#include "sweep.h"

#define ASK_SECONDS 1.0    // between two looks at the queue
#define WAIT_SECONDS 60.0  // for an answer of Slurm
#define MOST_JOBS 1000     // in the queue at a time, where --slots names no number

static bool ask(const char *const *argv, char **said) {
    int code = grt_program_run(argv, WAIT_SECONDS, said);
    if (code == GRT_PROGRAM_NONE) {
        return grt_fail(GRT_NO_INPUT,
                        "there is no %s here: install Slurm's commands (Debian: slurm-client), or "
                        "use --executor local",
                        argv[0]);
    }
    if (code != 0) {
        char line[300];
        snprintf(line, sizeof line, "%.290s", *said ? *said : "");
        line[strcspn(line, "\n")] = '\0';
        return grt_fail(GRT_IO, "%s ended with %d: %s", argv[0], code, line);
    }
    return true;
}

static bool open_slurm(struct sweep *s) {
    const char *const argv[] = {"sinfo", "--version", NULL};
    char *said = NULL;
    (void)s;
    bool good = ask(argv, &said);
    free(said);
    return good;
}

static uint32_t room(const struct sweep *s) {
    uint32_t most = s->slots ? s->slots : MOST_JOBS, running = sweep_count(s, SWEEP_RUNNING);
    return running < most ? most - running : 0;
}

// In single quotes, whatever it is.
static void quote(FILE *file, const char *word) {
    fputc('\'', file);
    for (; *word; word++) {
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, file);
    }
    fputc('\'', file);
}

static char *job_text(const struct sweep *s, const struct sweep_trial *t) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a command");
        return NULL;
    }
    fputs("exec ", file);
    quote(file, s->self);
    fputs(" sweep trial ", file);
    quote(file, s->dir);
    fprintf(file, " %u", t->number);
    fclose(file);
    return text;
}

static bool start(struct sweep *s, struct sweep_trial *t) {
    char output[SWEEP_PATH], name[64], *said = NULL, *job = job_text(s, t), *end = NULL;
    const char *argv[SWEEP_EXTRA + 16];
    size_t count = 0;
    sweep_queue_clear(s, t);
    sweep_trial_path(s, t, "job.txt", output);
    snprintf(name, sizeof name, "%.40s-%04u", strrchr(s->dir, '/') + 1, t->number);
    const char *const fixed[] = {"sbatch",   "--parsable", "--job-name",         name,
                                 "--output", output,       "--open-mode=append", "--requeue"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        argv[count++] = fixed[i];
    }
    for (uint32_t i = 0; i < s->extra_count; i++) {
        argv[count++] = s->extra[i];
    }
    argv[count++] = "--wrap";
    argv[count++] = job;
    argv[count] = NULL;
    bool good = job && ask(argv, &said);
    // "17", or "17;cluster"
    t->job = good && said ? strtoul(said, &end, 10) : 0;
    if (good && t->job == 0) {
        good = grt_fail(GRT_IO, "sbatch gave no number of a job: %.100s", said ? said : "");
    }
    snprintf(t->device, sizeof t->device, "job %lu", t->job);
    free(job);
    free(said);
    return good;
}

// ---- the queue ----

// The line "17|PENDING|BeginTime|n0" of a job, or NULL: it is not in the queue.
static const char *line_of(const char *said, unsigned long job) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%lu|", job);
    for (const char *line = said; line && *line;) {
        if (strncmp(line, prefix, strlen(prefix)) == 0) {
            return line + strlen(prefix);
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
}

static char *queue(void) {
    const char *const argv[] = {"squeue", "--noheader", "--me", "--format=%A|%T|%r|%N", NULL};
    char *said = NULL;
    // A controller that does not answer now may do so later: nothing is concluded from it.
    int code = grt_program_run(argv, WAIT_SECONDS, &said);
    if (code != 0) {
        free(said);
        return NULL;
    }
    return said ? said : calloc(1, 1);
}

static void begin_now(const struct sweep_trial *t) {
    char job[48], *said = NULL;
    snprintf(job, sizeof job, "JobId=%lu", t->job);
    const char *const argv[] = {"scontrol", "update", job, "StartTime=now", NULL};
    grt_program_run(argv, WAIT_SECONDS, &said);
    free(said);
}

static void look_at(struct sweep *s, struct sweep_trial *t, const char *line) {
    if (!line) {
        struct sweep_end end = sweep_exit_read(s, t);
        // Gone without a word: cancelled, or its node went down and it may not run again.
        if (!end.known && t->asked == SWEEP_ASK_NOTHING) {
            end = (struct sweep_end){.known = true, .code = -9};
        }
        sweep_ended(s, t, end);
        return;
    }
    char node[SWEEP_NAME];
    const char *reason = strchr(line, '|'), *where = reason ? strchr(reason + 1, '|') : NULL;
    snprintf(node, sizeof node, "%.*s", where ? (int)strcspn(where + 1, "\n") : 0,
             where ? where + 1 : "");
    if (node[0]) {
        snprintf(t->device, sizeof t->device, "%s", node);
    }
    if (strncmp(line, "PENDING|BeginTime", 17) == 0) {
        begin_now(t);
    }
}

static void look(struct sweep *s) {
    if (grt_seconds() - s->looked < ASK_SECONDS || sweep_count(s, SWEEP_RUNNING) == 0) {
        return;
    }
    char *said = queue();
    s->looked = grt_seconds();
    for (uint32_t i = 0; said && i < s->plan.trials; i++) {
        struct sweep_trial *t = &s->trials[i];
        if (t->state == SWEEP_RUNNING) {
            look_at(s, t, line_of(said, t->job));
        }
    }
    free(said);
}

// One that has not begun is taken out of the queue; one that runs finds the file.
static void stop(struct sweep *s, struct sweep_trial *t) {
    char job[32], *said = NULL;
    snprintf(job, sizeof job, "%lu", t->job);
    const char *const argv[] = {"scancel", "--state=PENDING", job, NULL};
    sweep_stop_write(s, t);
    grt_program_run(argv, WAIT_SECONDS, &said);
    free(said);
    s->looked = 0;
}

static bool adopt(struct sweep *s, struct sweep_trial *t) {
    char *said = t->job ? queue() : NULL;
    (void)s;
    // Without an answer it counts as there: look() will know.
    bool there = t->job && (!said || line_of(said, t->job));
    free(said);
    return there;
}

static void close_slurm(struct sweep *s) {
    (void)s;
}

const struct sweep_executor sweep_slurm = {.name = "slurm",
                                           .open = open_slurm,
                                           .room = room,
                                           .start = start,
                                           .look = look,
                                           .stop = stop,
                                           .adopt = adopt,
                                           .close = close_slurm};
