// SPDX-License-Identifier: Apache-2.0
// A sweep: trials of one training, each with values of its own, on slots of this machine or by a
// queue. Files are the truth: whatever is killed, what was done is found again.
//
//     DIR/sweep.yaml       as it was given                DIR/config.yaml   what trials share
//     DIR/sweep.json       executor, devices, folder      DIR/sweep.lock    whose sweep it is
//     DIR/stop             asks the sweep to stop
//     DIR/0007/config.yaml   settings of trial 7          log.jsonl, output.txt, checkpoints
//             /state.json    what goes on: crashes so far, its job
//             /exit.json     of a queue: how its newest run ended
//             /stop          of a queue: asks it to stop
//             /result.json   when it has come to its end; written whole
//
//     plan.h      what is to be tried            drive.c    starts, judges, halves, stops
//     trial.c     a trial's files                local.c    child processes
//     progress.c  a trial's log                  slurm.c, ssh.c   queues that run `sweep trial`
#ifndef APPS_SWEEP_H
#define APPS_SWEEP_H

#include <jansson.h>
#include <sys/types.h>

#include "base/lock.h"
#include "cli/output/table.h"
#include "plan.h"

#define SWEEP_PATH 4096
#define SWEEP_WHY 400
#define SWEEP_EXTRA 64  // words behind --

// ---- progress.c: what a log tells ----

struct sweep_point {
    uint64_t at;  // epoch, of es and ppo the step
    double value, time;
};

struct sweep_progress {
    off_t read;  // bytes of the log so far
    struct sweep_point *points;
    uint32_t count, room;
    bool any;  // the metric has appeared
    double best;
    uint64_t best_at;
    uint64_t at, whole;           // newest epoch or step, and in all
    uint64_t first, step, steps;  // of the newest process: where it began, is, and will end
    double seconds, spent;        // of the newest process, and of those before it
    char ended[24];               // how the newest process ended; "": it has not
    char had[160];                // fields of the rows that should have the metric
    uint64_t rows;
};

// Reads on from where it stood. False only without memory; a log that is not there has no rows.
bool sweep_progress_read(struct sweep_progress *progress, const char *path,
                         const struct sweep_metric *metric);
void sweep_progress_finish(struct sweep_progress *progress);
// Seconds to its end; below 0: not known.
double sweep_progress_left(const struct sweep_progress *progress);

// ---- trials ----

// X(NAME, "word", final)
#define SWEEP_STATES(X)                                                                            \
    X(WAITING, "waiting", false)                                                                   \
    X(RUNNING, "running", false)                                                                   \
    X(DONE, "done", true)                                                                          \
    X(HALVED, "halved", true) /* ended early: others were better */                                \
    X(NAN, "nan", true)       /* its loss was no number any more */                                \
    X(MEMORY, "memory", true) /* it does not fit */                                                \
    X(FAILED, "failed", true)

enum sweep_state {
#define X(name, word, final) SWEEP_##name,
    SWEEP_STATES(X)
#undef X
        SWEEP_STATE_COUNT,
};
const char *sweep_state_word(enum sweep_state state);
bool sweep_state_final(enum sweep_state state);

enum sweep_ask { SWEEP_ASK_NOTHING, SWEEP_ASK_HALT, SWEEP_ASK_HALVE };

struct sweep_trial {
    uint32_t number;
    enum sweep_state state;
    struct sweep_progress progress;
    uint32_t crashes;
    char device[SWEEP_NAME];
    char why[SWEEP_WHY];
    bool prepared;  // its folder is there
    // of one that runs
    enum sweep_ask asked;
    uint32_t slot;         // of local.c
    pid_t pid;             // 0: another process started it, and it is coming to its end
    unsigned long job;     // of slurm.c
    uint32_t rungs;        // that were judged
    uint32_t idle;         // runs in a row that ended with 75 and did nothing
    uint64_t rows_before;  // of the log, when it was started
};

struct sweep;

// How a run of a trial ended.
struct sweep_end {
    bool known;       // false: only its files tell
    int code;         // exit code; below 0: a signal
    const char *why;  // what is said of a crash; NULL: its code
};

// Where trials run. Each call that can fail says why.
struct sweep_executor {
    const char *name;
    bool (*open)(struct sweep *sweep);            // whether it can be used: before anything is made
    uint32_t (*room)(const struct sweep *sweep);  // how many may be started now
    bool (*start)(struct sweep *sweep, struct sweep_trial *trial);
    // Calls sweep_ended() for each that has come to its end.
    void (*look)(struct sweep *sweep);
    // Asks it to write a checkpoint and end; once for each run.
    void (*stop)(struct sweep *sweep, struct sweep_trial *trial);
    // Whether a trial of an earlier process of this sweep goes on.
    bool (*adopt)(struct sweep *sweep, struct sweep_trial *trial);
    void (*close)(struct sweep *sweep);
};
extern const struct sweep_executor sweep_local, sweep_slurm, sweep_ssh;
const struct sweep_executor *sweep_executor_named(const char *name);

struct sweep {
    struct sweep_plan plan;
    char dir[SWEEP_PATH];
    char self[SWEEP_PATH];  // this command, as it was called when the sweep began to run
    struct grt_lock lock;
    struct sweep_trial *trials;
    const struct sweep_executor *executor;
    char devices[SWEEP_DEVICES][SWEEP_NAME];  // of the slots; "": the config's
    uint32_t slots;
    struct sweep_trial *on[SWEEP_DEVICES];  // which trial a slot runs
    const char *extra[SWEEP_EXTRA + 1];     // for sbatch or parallel
    uint32_t extra_count;
    json_t *about;  // sweep.json
    // of queues
    pid_t parallel;
    double looked;                                                 // when the queue was asked
    bool broken;                                                   // no program to start
    bool fatal;                                                    // no trial can succeed
    void (*tell)(struct sweep *sweep, struct sweep_trial *trial);  // its state is another one
    void *context;                                                 // of tell
};

// ---- folder.c ----

struct sweep_new {
    const char *yaml, *dir;  // dir NULL: by the name of the file
    const char *data;
    const char **words;  // KEY=VALUE
    size_t word_count;
    const struct sweep_executor *executor;
    const char *devices;  // "0,1", or NULL
    uint32_t slots;       // 0: one for each device
    const char **extra;
    size_t extra_count;
};
// Each returns an exit code, the mistake said. sweep_close() frees, also then.
int sweep_plan_new(struct sweep *sweep, const struct sweep_new *desc);    // reads and checks all
int sweep_folder_new(struct sweep *sweep, const struct sweep_new *desc);  // makes and locks it
int sweep_folder_open(struct sweep *sweep, const char *dir, bool lock);
void sweep_close(struct sweep *sweep);
// Whether the file that the sweep was made from is as it was.
int sweep_unchanged(const struct sweep *sweep);
// The devices of `text`, with commas between, as slots. A number is that device of the backend that
// would be chosen.
bool sweep_devices(struct sweep *sweep, const char *text);

// ---- trial.c ----

// DIR/0007/name
void sweep_trial_path(const struct sweep *sweep, const struct sweep_trial *trial, const char *name,
                      char path[SWEEP_PATH]);
// Where its checkpoints are: a folder, or of policies the one file.
void sweep_trial_kept(const struct sweep *sweep, const struct sweep_trial *trial,
                      char path[SWEEP_PATH]);
// "lr=0.001 batch_size=64"
void sweep_trial_text(const struct sweep *sweep, const struct sweep_trial *trial, char *text,
                      size_t size);
// What its files say of it.
bool sweep_trial_load(struct sweep *sweep, struct sweep_trial *trial);
// Its folder and its config.
bool sweep_trial_prepare(struct sweep *sweep, struct sweep_trial *trial);
bool sweep_trial_save(const struct sweep *sweep, const struct sweep_trial *trial);
// A run of it has ended: what that means. Writes state.json or result.json.
bool sweep_ended(struct sweep *sweep, struct sweep_trial *trial, struct sweep_end end);
// Whether a is better than b; one without the metric is worse than any.
bool sweep_better(const struct sweep *sweep, const struct sweep_trial *a,
                  const struct sweep_trial *b);
// The best of those that are done or halved, or NULL.
const struct sweep_trial *sweep_best(const struct sweep *sweep);

// ---- local.c ----

// Whether a process has the lock of that file.
bool sweep_held(const char *path);
// Whether a process of the trial lives, on this machine or one that shares the folder.
bool sweep_trial_alive(const struct sweep *sweep, const struct sweep_trial *trial);
// `gpurt sweep trial DIR N`: one run of a trial, which a queue asked for. Returns its exit code.
int sweep_trial_run(struct sweep *sweep, uint32_t number);
// How a queue's run ended, as sweep_trial_run() wrote it; not known: it has not.
struct sweep_end sweep_exit_read(const struct sweep *sweep, const struct sweep_trial *trial);
// The files of a queue: asks for a stop; forgets how the run before ended.
bool sweep_stop_write(const struct sweep *sweep, const struct sweep_trial *trial);
void sweep_queue_clear(const struct sweep *sweep, const struct sweep_trial *trial);
// Finds `self`, "/usr/bin/gpurt". Once: a file that is replaced later has another name by then.
bool sweep_self(struct sweep *sweep);
// How a process ended, if it has.
bool sweep_reap(pid_t pid, struct sweep_end *end);

// ---- drive.c ----

// Runs all that is left. `wait` shows what there is and waits at most so long; false: stop. Returns
// the exit code.
int sweep_drive(struct sweep *sweep, bool (*wait)(struct sweep *sweep, double seconds));
// How many are in a state.
uint32_t sweep_count(const struct sweep *sweep, enum sweep_state state);
// Seconds to the end of all; below 0: not known.
double sweep_left(const struct sweep *sweep);
void sweep_judge_rungs(struct sweep *sweep);

// ---- rows.c ----

#define SWEEP_COLUMNS(X)                                                                           \
    X(TRIAL, "trial", "trial", NULL, COUNT, 0, 5)                                                  \
    X(STATE, "state", "state", NULL, TEXT, 0, 7)                                                   \
    X(VALUE, "value", "value", NULL, NUMBER, 6, 9)                                                 \
    X(AT_SHORT, NULL, "epoch", NULL, TEXT, 0, 7)                                                   \
    X(AT, "at", "at", NULL, COUNT, 0, 0)                                                           \
    X(WHOLE, "of", "of", NULL, COUNT, 0, 0)                                                        \
    X(BEST_AT, "best_at", "best at", NULL, COUNT, 0, 0)                                            \
    X(DEVICE, "device", "device", NULL, TEXT, 0, 8)                                                \
    X(LEFT_SHORT, NULL, "left", NULL, TEXT, 0, 5)                                                  \
    X(LEFT, "left", "left", "s", NUMBER, 0, 0)                                                     \
    X(SECONDS, "seconds", "s", NULL, NUMBER, 1, 0)                                                 \
    X(CRASHES, "crashes", "crashes", NULL, COUNT, 0, 0)                                            \
    X(PARAMETERS, NULL, "parameters", NULL, TEXT, 0, 0)                                            \
    X(WHY, "why", "why", NULL, TEXT, 0, 0)

struct sweep_table {
    struct table table;
    struct table_column columns[TABLE_MAX_COLUMNS];
    size_t count;
};
// `desc` has output, format, fit and the command line.
bool sweep_table_open(struct sweep_table *table, const struct sweep *sweep,
                      const struct table_desc *desc);
bool sweep_table_row(struct sweep_table *table, const struct sweep *sweep,
                     const struct sweep_trial *trial);
bool sweep_table_close(struct sweep_table *table);
// All trials of a folder as `--format json` writes them, for `gpurt report`; freed by the caller.
// NULL with the mistake said, *code the exit code.
char *sweep_report_text(const char *dir, int *code);

// ---- live.c ----

// The table on a terminal, drawn again and again; false: it is none.
bool sweep_live_open(void);
void sweep_live_close(void);
bool sweep_live_wait(struct sweep *sweep, double seconds);
// What it draws, as screen_show() takes it, with so many trials at most; freed by the caller.
char *sweep_live_text(const struct sweep *sweep, int lines, int columns);

#endif
