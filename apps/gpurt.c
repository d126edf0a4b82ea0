// SPDX-License-Identifier: Apache-2.0
// The command `gpurt`: finds the verb, calls it, and returns its exit code. Data go to stdout,
// messages to stderr.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/help/complete.h"
#include "cli/help/manual.h"
#include "cli/crash.h"
#include "cli/output/output.h"
#include "cli/talk.h"
#include "publish/publish.h"

static int cmd_version(int argc, char **argv);
static int cmd_help(int argc, char **argv);
static int cmd_completion(int argc, char **argv);

static const struct command_verb verbs[] = {
    {"devices", "list every device and what it can do", cmd_devices},
    {"doctor", "say what is missing on this machine and how to mend it", cmd_doctor},
    {"monitor", "what the GPUs do, and the gpurt processes on them, live", cmd_monitor},
    {"bench", "find the best training settings; measure memory, launches, products", cmd_bench,
     .words = cmd_bench_words},
    {"report", "devices side by side: a page of results from any machines", cmd_report},
    {"compare", "what became better or worse between two files of results", cmd_compare},
    {"estimate", "what a card that is not here would make, with its error", cmd_estimate},
    {"data", "make data with a known answer, and describe HDF5 files", cmd_data,
     .words = cmd_data_words},
    {"tune", "find the fastest settings of kernels and keep them", cmd_tune},
    {"profile", "show the settings that a device gets, and why", cmd_profile},
    {"init", "write a commented config for these data and this machine", cmd_init,
     .words = cmd_init_words},
    {"train", "train: networks on data, policies by evolution strategies", cmd_train,
     .words = cmd_train_words, .wants_word = true},
    {"sweep", "train with many settings: grids and random search, on slots or queues", cmd_sweep,
     .words = cmd_sweep_words},
    {"model", "the layers of a network, what they cost, and the largest batch", cmd_model},
    {"eval", "the loss of a trained network over a file", cmd_eval, .words = cmd_eval_words,
     .takes_env = true},
    {"predict", "what a trained network says of every sample of a file", cmd_predict},
    {"convert", "checkpoints to and from safetensors", cmd_convert},
    {"play", "show what a trained policy does, as a picture that moves", cmd_play,
     .takes_env = true},
    {"completion", "completion of command lines, for bash, zsh and fish", cmd_completion},
    {"version", "print the version", cmd_version},
    {"help", "explain a command: gpurt help bench, gpurt help bench mlp", cmd_help},
};
#define VERB_COUNT (sizeof verbs / sizeof *verbs)

static void print_verbs(FILE *file) {
    fputs("usage: gpurt COMMAND [OPTION...]\n\n", file);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        fprintf(file, "  %-11s %s\n", verbs[i].name, verbs[i].help);
    }
    fputs("\n`gpurt COMMAND --help` explains one; `man gpurt` explains all.\n", file);
}

static int print_help(void) {
    fputs("gpurt trains on any GPU, through Vulkan or OpenCL.\n\n", stdout);
    print_verbs(stdout);
    fputs("\nExit codes:\n", stdout);
#define X(name, code, text) printf("  %3d  %s\n", code, text);
    COMMAND_EXITS(X)
#undef X
    return COMMAND_OK;
}

// What is left on the command line of a verb that takes nothing.
static int no_more(const char *verb, int argc, char **argv) {
    if (argc <= 1) {
        return COMMAND_OK;
    }
    talk_error("%s: '%s' is not expected", verb, argv[1]);
    return COMMAND_USAGE;
}

static int cmd_version(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        return printf("usage: gpurt version\n\nPrints the version of gpurt.\n"), COMMAND_OK;
    }
    int code = no_more("version", argc, argv);
    if (code) {
        return code;
    }
    printf("gpurt %s\n", GPURT_VERSION);
    // An installed command can meet another library than it was built with.
    if (strcmp(grt_version(), GPURT_VERSION) != 0) {
        printf("libgpurt %s\n", grt_version());
    }
    return COMMAND_OK;
}

// `gpurt bench help`, and `gpurt bench mlp help` of a verb with kinds, mean --help.
static void take_help(int argc, char **argv) {
    static char help[] = "--help";
    bool kinds = strcmp(argv[0], "bench") == 0 || strcmp(argv[0], "train") == 0 ||
                 strcmp(argv[0], "sweep") == 0;
    if ((argc == 2 || (argc == 3 && kinds)) && strcmp(argv[argc - 1], "help") == 0) {
        argv[argc - 1] = help;
    }
}

static int run_verb(int argc, char **argv) {
    take_help(argc, argv);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(argv[0], verbs[i].name) == 0) {
            return verbs[i].run(argc, argv);
        }
    }
    struct command_unknown unknown = {"command", argv[0], NULL, "gpurt --help"};
    return command_unknown(&unknown, verbs, VERB_COUNT, sizeof *verbs);
}

static int cmd_help(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--manual") == 0) {
        return manual_print(verbs, VERB_COUNT, argv[2]);
    }
    if (argc < 2 || strcmp(argv[1], "help") == 0 || argv[1][0] == '-') {
        return print_help();
    }
    int code = argc > 3 ? no_more("help", argc - 2, argv + 2) : COMMAND_OK;
    char help[] = "--help";
    char *words[] = {argv[1], argc > 2 ? argv[2] : help, argc > 2 ? help : NULL, NULL};
    return code ? code : run_verb(argc > 2 ? 3 : 2, words);
}

static int cmd_completion(int argc, char **argv) {
    return complete_main(verbs, VERB_COUNT, argc, argv);
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        print_verbs(stderr);
        return COMMAND_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        return print_help();
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        return cmd_version(argc - 1, argv + 1);
    }
    if (argv[1][0] == '-') {
        talk_error("no option '%s' before the command; see `gpurt --help`", argv[1]);
        return COMMAND_USAGE;
    }
    return run_verb(argc - 1, argv + 1);
}

// A closed stdin, stdout or stderr would give its number to the next file that is opened, and our
// text would land there. A null device opened the wrong way round keeps the number and still fails.
static void hold_standard_files(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
}

int main(int argc, char **argv) {
    hold_standard_files();
    // Writing then fails with a reason instead of ending the process: no reader, or `ulimit -f`.
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    crash_init();
    talk_init();
    int code = run(argc, argv);
    publish_end();
    talk_clear();
    // Text that a verb printed without an output of its own: help and versions.
    int written = output_close(&(struct output){.file = stdout}, true);
    if (talk_stopped()) {
        return COMMAND_INTERRUPTED;
    }
    if (code == COMMAND_IO) {
        // HDF5 would close a file that cannot be written once more at the end: it tries for ever,
        // or crashes.
        fflush(NULL);
        _exit(code);
    }
    return code ? code : written;
}
