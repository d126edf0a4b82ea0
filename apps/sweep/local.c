// SPDX-License-Identifier: Apache-2.0
// Trials as child processes, one for each slot; and one run of a trial for a queue.
//
// A child is a group of its own, so that Ctrl-C in the terminal reaches the sweep alone, which asks
// each child once. When the sweep is killed the kernel sends SIGTERM to its children: they write
// their checkpoints and end. Each child holds the lock of its trial's folder, by an open file that
// it inherits: whoever comes next sees whether it still lives.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "cli/command.h"
#include "cli/spawn.h"
#include "cli/talk.h"
#include "gpurt/device.h"
#include "sweep.h"

// ---- processes ----

bool sweep_self(struct sweep *s) {
    char *path = s->self;
    const char *other = getenv("GPURT_SWEEP_COMMAND");
    if (other && *other) {
        snprintf(path, SWEEP_PATH, "%s", other);
        return true;
    }
    ssize_t length = readlink("/proc/self/exe", path, SWEEP_PATH - 1);
    if (length <= 0) {
        return grt_fail(GRT_IO, "where this command lies is not known: %s", strerror(errno));
    }
    path[length] = '\0';
    return true;
}

bool sweep_reap(pid_t pid, struct sweep_end *end) {
    struct sweep_end ended = {.known = false};
    bool over = spawn_ended(pid, &ended.known, &ended.code);
    if (over) {
        *end = ended;
    }
    return over;
}

// ---- the lock of a trial ----

// The open file that has the lock, or -1: another process has it, or there is no such file.
static int hold(const char *path, bool make) {
    int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0666);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        errno = EWOULDBLOCK;
        return -1;
    }
    return fd;
}

bool sweep_held(const char *path) {
    int fd = hold(path, false);
    bool held = fd < 0 && errno == EWOULDBLOCK;
    if (fd >= 0) {
        close(fd);
    }
    return held;
}

bool sweep_trial_alive(const struct sweep *s, const struct sweep_trial *t) {
    char path[SWEEP_PATH];
    sweep_trial_path(s, t, "trial.lock", path);
    return sweep_held(path);
}

// A process of the trial that is still there has this long to end: a child of one that was killed,
// or the run on a node that was lost and found again. False: it has not.
#define OTHER_SECONDS 60
static bool await_other(const struct sweep *s, const struct sweep_trial *t) {
    bool alive = sweep_trial_alive(s, t);
    for (int i = 0; alive && i < OTHER_SECONDS * 100 && !talk_stopped(); i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        alive = sweep_trial_alive(s, t);
    }
    return !alive;
}

// ---- the command of a trial ----

#define MOST_WORDS 24

struct words {
    char *argv[MOST_WORDS];
    size_t count;
    char config[SWEEP_PATH], log[SWEEP_PATH], board[SWEEP_PATH];
    char kept[SWEEP_PATH + 32];
};

static void word(struct words *w, const char *text) {
    w->argv[w->count++] = (char *)(uintptr_t)text;
    w->argv[w->count] = NULL;
}

static void make_words(struct words *w, const struct sweep *s, const struct sweep_trial *t,
                       const char *device) {
    char kept[SWEEP_PATH];
    *w = (struct words){.count = 0};
    sweep_trial_path(s, t, "config.yaml", w->config);
    sweep_trial_path(s, t, "log.jsonl", w->log);
    sweep_trial_kept(s, t, kept);
    word(w, s->self);
    word(w, "train");
    word(w, s->plan.kind->name);
    word(w, "--config");
    word(w, w->config);
    word(w, "--log");
    word(w, w->log);
    if (s->plan.kind->folder) {
        // Without a checkpoint it begins.
        snprintf(w->kept, sizeof w->kept, "checkpoint_dir=%s", kept);
        word(w, w->kept);
        word(w, "--resume");
    } else {
        snprintf(w->kept, sizeof w->kept, "%s", kept);
        word(w, access(kept, F_OK) == 0 ? "--resume" : "--checkpoint");
        word(w, w->kept);
    }
    if (s->plan.base.tensorboard[0]) {
        sweep_trial_path(s, t, "tensorboard", w->board);
        word(w, "--tensorboard");
        word(w, w->board);
    }
    if (*device) {
        word(w, "--device");
        word(w, device);
    }
}

static bool run_trial(struct sweep *s, struct sweep_trial *t, const char *device) {
    char output[SWEEP_PATH], lock[SWEEP_PATH];
    struct words *w = malloc(sizeof *w);
    sweep_trial_path(s, t, "trial.lock", lock);
    int fd = await_other(s, t) ? hold(lock, true) : -1;
    sweep_trial_path(s, t, "output.txt", output);
    t->pid = -1;
    if (!w) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a command");
    } else if (fd < 0) {
        grt_fail(GRT_NO_OUTPUT, "trial %u runs already, or its folder cannot be written",
                 t->number);
    } else {
        make_words(w, s, t, device);
        t->pid = spawn_program(w->argv, output, output, fd);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(w);
    return t->pid > 0;
}

// ---- the executor ----

static bool open_local(struct sweep *s) {
    (void)s;
    return true;
}

static uint32_t room(const struct sweep *s) {
    uint32_t room = 0;
    for (uint32_t i = 0; i < s->slots; i++) {
        room += s->on[i] == NULL;
    }
    return room;
}

static bool start(struct sweep *s, struct sweep_trial *t) {
    uint32_t slot = 0;
    while (s->on[slot]) {
        slot++;
    }
    const char *device = s->devices[slot][0] ? s->devices[slot] : s->plan.base.device;
    snprintf(t->device, sizeof t->device, "%.*s", SWEEP_NAME - 1, device);
    t->slot = slot;
    if (!run_trial(s, t, s->devices[slot])) {
        return false;
    }
    s->on[slot] = t;
    return true;
}

static void look(struct sweep *s) {
    struct sweep_end end;
    for (uint32_t i = 0; i < s->slots; i++) {
        struct sweep_trial *t = s->on[i];
        if (t && sweep_reap(t->pid, &end)) {
            s->on[i] = NULL;
            sweep_ended(s, t, end);
        }
    }
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        struct sweep_trial *t = &s->trials[i];
        if (t->state == SWEEP_RUNNING && t->pid == 0 && !sweep_trial_alive(s, t)) {
            sweep_ended(s, t, (struct sweep_end){.known = false});
        }
    }
}

static void stop(struct sweep *s, struct sweep_trial *t) {
    (void)s;
    if (t->pid > 0) {
        kill(t->pid, SIGTERM);
    }
}

static bool adopt(struct sweep *s, struct sweep_trial *t) {
    t->pid = 0;
    return sweep_trial_alive(s, t);
}

static void close_local(struct sweep *s) {
    (void)s;
}

const struct sweep_executor sweep_local = {.name = "local",
                                           .open = open_local,
                                           .room = room,
                                           .start = start,
                                           .look = look,
                                           .stop = stop,
                                           .adopt = adopt,
                                           .close = close_local};

// ---- one run, for a queue ----

bool sweep_stop_write(const struct sweep *s, const struct sweep_trial *t) {
    char path[SWEEP_PATH];
    sweep_trial_path(s, t, "stop", path);
    return grt_whole_file_save(path, "\n", 1);
}

void sweep_queue_clear(const struct sweep *s, const struct sweep_trial *t) {
    static const char *const names[] = {"stop", "exit.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[SWEEP_PATH];
        sweep_trial_path(s, t, names[i], path);
        unlink(path);
    }
}

static bool write_exit(const struct sweep *s, const struct sweep_trial *t, int code) {
    char path[SWEEP_PATH], text[64];
    int length = snprintf(text, sizeof text, "{\"code\": %d}\n", code);
    sweep_trial_path(s, t, "exit.json", path);
    return grt_whole_file_save(path, text, (uint64_t)length);
}

struct sweep_end sweep_exit_read(const struct sweep *s, const struct sweep_trial *t) {
    char path[SWEEP_PATH];
    sweep_trial_path(s, t, "exit.json", path);
    json_t *object = access(path, F_OK) == 0 ? json_load_file(path, 0, NULL) : NULL;
    const json_t *code = json_object_get(object, "code");
    struct sweep_end end = {.known = json_is_integer(code), .code = (int)json_integer_value(code)};
    json_decref(object);
    return end;
}

// The GPU that Slurm gave the job: Vulkan and OpenCL see all of them. Where there is no such
// device, and where the settings name one, the settings decide.
static void slurm_device(struct sweep *s, char device[SWEEP_NAME]) {
    const char *gpus = getenv("SLURM_JOB_GPUS");
    device[0] = '\0';
    if (!gpus || !*gpus || s->plan.base.device[0] || getenv("GPURT_DEVICE")) {
        return;
    }
    char first[SWEEP_NAME];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(gpus, ",-"), gpus);
    if (sweep_devices(s, first)) {
        snprintf(device, SWEEP_NAME, "%s", s->devices[0]);
    }
}

int sweep_trial_run(struct sweep *s, uint32_t number) {
    struct sweep_trial *t = &s->trials[number];
    char path[SWEEP_PATH], device[SWEEP_NAME];
    struct sweep_end end = {0};
    bool asked = false;
    sweep_trial_path(s, t, "stop", path);
    if (access(path, F_OK) == 0) {
        // Asked to stop before it began. Not 75: a queue would run it again.
        return write_exit(s, t, COMMAND_RESUMABLE) ? COMMAND_OK : COMMAND_IO;
    }
    sweep_queue_clear(s, t);
    slurm_device(s, device);
    talk_stop_by(TALK_STOP_AFTER_STEP);
    if (!await_other(s, t)) {
        talk_resume();
        talk_error("trial %u runs elsewhere", number);
        return write_exit(s, t, COMMAND_RESUMABLE) ? COMMAND_RESUMABLE : COMMAND_IO;
    }
    if (!sweep_self(s) || !sweep_trial_prepare(s, t) || !run_trial(s, t, device)) {
        int code = command_exit_of(grt_last_status());
        write_exit(s, t, code);
        return code;
    }
    while (!sweep_reap(t->pid, &end)) {
        bool wanted = access(path, F_OK) == 0;
        if (!asked && (wanted || talk_stopped())) {
            asked = true;
            stop(s, t);
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    bool wanted = access(path, F_OK) == 0;
    talk_resume();
    if (!write_exit(s, t, end.known ? end.code : COMMAND_INTERNAL)) {
        return COMMAND_IO;
    }
    return wanted ? COMMAND_OK : end.code < 0 ? COMMAND_INTERNAL : end.code;
}
