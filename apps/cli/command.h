// SPDX-License-Identifier: Apache-2.0
// What every verb of the command shares: exit codes, words that were meant, and the verbs.
#ifndef APPS_COMMAND_H
#define APPS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "gpurt/gpurt.h"

// The numbers of BSD's sysexits, and the shell's for a command that was interrupted.
#define COMMAND_EXITS(X)                                                                           \
    X(OK, 0, "all went well")                                                                      \
    X(BELOW, 1, "a figure is below what --fail-under asks for, or a trial of a sweep failed")      \
    X(USAGE, 64, "the command line is wrong")                                                      \
    X(DATA, 65, "the input data are bad")                                                          \
    X(NO_INPUT, 66, "an input file cannot be read")                                                \
    X(NO_DEVICE, 69, "no such device, or it cannot do this")                                       \
    X(INTERNAL, 70, "a check, a kernel or the device failed")                                      \
    X(NO_MEMORY, 71, "the memory of the device or the host does not suffice")                      \
    X(CANNOT_CREATE, 73, "an output file or folder cannot be created")                             \
    X(IO, 74, "writing or reading failed after a file was opened")                                 \
    X(RESUMABLE, 75, "interrupted; can be resumed")                                                \
    X(CONFIG, 78, "the configuration is wrong")                                                    \
    X(INTERRUPTED, 130, "interrupted")

enum command_exit {
#define X(name, code, text) COMMAND_##name = (code),
    COMMAND_EXITS(X)
#undef X
};

// The exit code that a failed call of the library leads to.
int command_exit_of(enum grt_status status);

// The same where the call was given what the user wrote: invalid is a mistake on the command line.
int command_exit_of_input(enum grt_status status);

// A word that is not among the names.
struct command_unknown {
    const char *what;  // "command"
    const char *word;
    const char *prefix;  // before word and name in the sentence: "--", or NULL
    const char *help;    // what explains the right ones: "gpurt --help"
};
// Says so, with the closest of `names` (as grt_closest() takes them) if one is close; returns
// COMMAND_USAGE.
int command_unknown(const struct command_unknown *unknown, const void *names, size_t count,
                    size_t stride);

// A word that has a meaning behind a verb: a kind of training, or of benchmark.
struct command_word {
    const char *name;
    const char *help;
    const char *after;  // the word that it follows; NULL: the verb
};
// Lists of them end with a row of NULL.
extern const struct command_word cmd_bench_words[], cmd_data_words[], cmd_eval_words[],
    cmd_init_words[], cmd_sweep_words[], cmd_train_words[];

struct command_verb {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);  // argv[0] is the verb
    const struct command_word *words;   // NULL: none
    bool wants_word;                    // it has no options without one of them
    bool takes_env;                     // an environment may stand in place of them
};

// The verbs; argv[0] is the verb itself. Each returns an exit code.
int cmd_devices(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_monitor(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_estimate(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_init(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_play(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_convert(int argc, char **argv);

#endif
