// SPDX-License-Identifier: Apache-2.0
// `gpurt train KIND`, whatever is trained: one command around a run (gpurt/run.h).
//
//     command   options, --keys, config; the device; banner, progress, table; the last line, the
//               exit code
//     kind      its options and columns, and how its trainer is made
//
// A kind is one file train_KIND.c with a struct train_kind, and one row in train.h.
#ifndef APPS_TRAINER_H
#define APPS_TRAINER_H

#include "gpurt/run.h"
#include "train_config.h"
#include "train_rows.h"

#define TRAIN_MAX_COLUMNS 32

// What --monitor has to tell; trainer_monitor.c.
struct trainer_sensors {
    bool due;             // a row of the log
    double epoch_energy;  // since the evaluation before
    bool energy_known;    // some of it was told
    uint32_t epochs;      // evaluations
};

// What every kind has; the values of a kind begin with it.
struct trainer {
    struct train_config config;     // first: see train_config.h
    const char *log, *tensorboard;  // options
    double rank_timeout;
    uint32_t keys;
    struct options_keys spelled;  // where keys are options
    const struct train_kind *kind;
    struct grt_comm *comm;  // the ranks that train together; NULL: this process is alone
    char device[32];        // of this rank, where it was chosen by its number
    bool silent;            // another rank speaks for all
    struct grt_dev *dev;
    double device_seconds;  // that opening it took
    struct grt_run *run;
    struct train_rows rows;
    struct table_column columns[TRAIN_MAX_COLUMNS];
    struct table_cell cells[TRAIN_MAX_COLUMNS];  // of the next row of the table
    bool pending;                                // it has something to show
    char progress[160];
    const char *dry_where;  // checkpoints of the run that a dry run stands for; NULL: it is none
    struct trainer_sensors sensors;
};

// A column of the table: a field of a row of the log. Programs get those of an evaluation with
// "evaluate_" before their name, all others as the log has them. A baseline stands in the columns
// of an evaluation.
struct train_column {
    enum grt_run_event event;
    enum grt_run_field field;  // GRT_FIELD_COUNT: the step
    struct table_column column;
};
#define TRAIN_COLUMN(name, event, field, key, heading, unit, type, precision, width)               \
    {GRT_RUN_##event, GRT_FIELD_##field, {key, heading, unit, TABLE_##type, precision, width, 0}},
#define GRT_FIELD_STEP GRT_FIELD_COUNT

struct train_kind {
    const char *verb;   // "train es"
    const char *about;  // for --help
    enum grt_config_scope keys;
    const struct option_list *lists;  // its own, before those of every kind
    size_t list_count;
    const struct train_column *columns;
    size_t column_count;
    size_t size;            // of its values
    const char *more;       // how a run that is done gets more steps: "--iterations N"
    const char *advice;     // after a loss that is not finite; NULL: the trainer gives it
    bool resume_file;       // --resume takes a file
    bool keys_are_options;  // --key VALUE is KEY=VALUE
    bool outlives;          // goes on where a rank is lost, by an MPI that can

    // Each returns an exit code, the mistake said.
    int (*read)(void *self, const char **words,
                size_t count);  // settings, from the words KEY=VALUE too
    int (*files)(void *self);   // whether what is written is apart from what is read: see files.h
    int (*open)(void *self);    // t->dev is open: makes the trainer and t->run, which has begun
    // Lines above the table, and its title ("": none) and columns.
    void (*banner)(void *self, char title[TABLE_TEXT_SIZE], uint64_t *shown);
    int (*report)(void *self);  // below the table; may be NULL
    void (*close)(void *self);  // always; t->run and t->dev, where there are any, are still there
};

// Parses, trains and reports. argv[0] is the kind. Returns the exit code.
int trainer_main(const struct train_kind *kind, int argc, char **argv);

// ---- ranks: trainer_ranks.c ----

// Where several devices are named and nothing has started ranks: starts them by mpirun, waits, and
// returns their exit code; else -1.
int trainer_ranks_launch(const struct trainer *t, int argc, char **argv);
// The beginning of a command line that starts ranks; "-n N PROGRAM" follows. Returns how many words
// it has.
#define TRAINER_MPIRUN_WORDS 16
size_t trainer_ranks_mpirun(const char *words[TRAINER_MPIRUN_WORDS]);
// The device of the rank with this number on its machine; "": the usual one. False: the options say
// nothing of it, and there is no GPU.
bool trainer_ranks_device(const struct options *options, uint32_t number, char *device,
                          size_t size);
// Before the device is opened: its device, and who is silent.
void trainer_ranks_place(struct trainer *t);
// Behind it: meets the others. Returns an exit code, the mistake said.
int trainer_ranks_meet(struct trainer *t);
// Behind all else; returns the exit code of this rank.
int trainer_ranks_end(struct trainer *t, int code);
// Lines of the banner: which rank has which device.
void trainer_ranks_banner(const struct trainer *t);
// Whether this process speaks for all.
bool trainer_first(const struct trainer *t);
// Where the ranks before this one are gone, it speaks for all from here on.
void trainer_ranks_speak(struct trainer *t);

// Part of grt_run_desc that is the command's: its hooks, the log, the limits of the settings.
struct grt_run_desc trainer_run_desc(struct trainer *t);
// The hooks themselves; the context is the struct trainer.
void trainer_report(void *context, const struct grt_run_report *report);
bool trainer_stop(void *context);
// What is judged, a loss or a return; and its rate, of samples or steps of environments.
enum grt_run_field trainer_score_of(const struct grt_run_row *row);
enum grt_run_field trainer_rate_of(const struct grt_run_row *row);
// What trainer_monitor.c does of the hook: the state for `gpurt monitor`, and with --monitor rows
// of the log.
void trainer_monitor_report(struct trainer *t, const struct grt_run_report *report);
// At the end: what sensors told in all, to people and as a note of the table.
void trainer_monitor_end(struct trainer *t);

// A row outside the loop, such as a baseline: into the log and the table.
void trainer_tell(struct trainer *t, struct grt_run_row *row);

// Options that every kind has: --log, --tensorboard, --keys.
#define TRAINER_OPTIONS_COUNT 3
extern const struct option_row trainer_options[TRAINER_OPTIONS_COUNT];
// Of trainer_ranks.c.
extern const struct option_row trainer_ranks_options[1];

#endif
