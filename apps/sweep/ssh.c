// SPDX-License-Identifier: Apache-2.0
// Trials on machines that ssh reaches, by GNU parallel: one process of it for all that wait, which
// calls `gpurt sweep trial DIR N` there. The folder is one that all machines share. Trials that are
// to run again wait for the next process of it.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/spawn.h"
#include "cli/talk.h"
#include "sweep.h"

static bool open_ssh(struct sweep *s) {
    for (uint32_t i = 0; i < s->extra_count; i++) {
        const char *word = s->extra[i];
        if (strncmp(word, "--sshlogin", 10) == 0 || strncmp(word, "--slf", 5) == 0 ||
            strncmp(word, "-S", 2) == 0) {
            return true;
        }
    }
    return grt_fail(GRT_CONFIG, "--executor ssh wants to know the machines, as GNU parallel does: "
                                "-- --sshlogin 2/first,2/second");
}

static uint32_t room(const struct sweep *s) {
    return s->parallel > 0 ? 0 : s->plan.trials;
}

// parallel is started when all are known.
static bool start(struct sweep *s, struct sweep_trial *t) {
    sweep_queue_clear(s, t);
    snprintf(t->device, sizeof t->device, "ssh");
    (void)s;
    return true;
}

static bool start_parallel(struct sweep *s) {
    char output[SWEEP_PATH], here[SWEEP_PATH];
    size_t count = 0, numbers = 0;
    char **argv = calloc(SWEEP_EXTRA + 16 + s->plan.trials, sizeof *argv);
    char(*texts)[16] = calloc(s->plan.trials, sizeof *texts);
    bool good = argv && texts && getcwd(here, sizeof here);
    const char *const fixed[] = {"parallel", "--will-cite", "--quote", "--workdir", here};
    const char *const command[] = {s->self, "sweep", "trial", s->dir, "{}", ":::"};
    for (size_t i = 0; good && i < sizeof fixed / sizeof *fixed; i++) {
        argv[count++] = (char *)(uintptr_t)fixed[i];
    }
    for (uint32_t i = 0; good && i < s->extra_count; i++) {
        argv[count++] = (char *)(uintptr_t)s->extra[i];
    }
    for (size_t i = 0; good && i < sizeof command / sizeof *command; i++) {
        argv[count++] = (char *)(uintptr_t)command[i];
    }
    for (uint32_t i = 0; good && i < s->plan.trials; i++) {
        if (s->trials[i].state == SWEEP_RUNNING) {
            snprintf(texts[numbers], sizeof *texts, "%u", i);
            argv[count++] = texts[numbers++];
        }
    }
    snprintf(output, sizeof output, "%.3900s/parallel.txt", s->dir);
    s->parallel = good && numbers ? spawn_program(argv, output, output, -1) : 0;
    free(texts);
    free(argv);
    return s->parallel > 0;
}

static void look(struct sweep *s) {
    struct sweep_end end = {0};
    char why[SWEEP_WHY];
    snprintf(why, sizeof why, "parallel ended without it; see %.340s/parallel.txt", s->dir);
    if (s->parallel <= 0 && sweep_count(s, SWEEP_RUNNING) == 0) {
        return;
    }
    bool over = s->parallel > 0 ? sweep_reap(s->parallel, &end) : !start_parallel(s);
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        struct sweep_trial *t = &s->trials[i];
        if (t->state != SWEEP_RUNNING) {
            continue;
        }
        struct sweep_end own = sweep_exit_read(s, t);
        if (!own.known && over && t->asked == SWEEP_ASK_NOTHING) {
            // No such machine, no such program, killed. parallel's own code is how many failed.
            own = (struct sweep_end){.known = true, .code = -9, .why = why};
        }
        if (own.known || over) {
            sweep_ended(s, t, own);
        }
    }
    if (over) {
        s->parallel = 0;
    }
}

// Told once, parallel starts no more and waits for those that run.
static void stop(struct sweep *s, struct sweep_trial *t) {
    sweep_stop_write(s, t);
    if (t->asked == SWEEP_ASK_HALT && s->parallel > 0) {
        kill(s->parallel, SIGHUP);
    }
}

static bool adopt(struct sweep *s, struct sweep_trial *t) {
    (void)s, (void)t;
    return false;
}

static void close_ssh(struct sweep *s) {
    (void)s;
}

const struct sweep_executor sweep_ssh = {.name = "ssh",
                                         .open = open_ssh,
                                         .room = room,
                                         .start = start,
                                         .look = look,
                                         .stop = stop,
                                         .adopt = adopt,
                                         .close = close_ssh};
