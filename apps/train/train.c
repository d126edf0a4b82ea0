// SPDX-License-Identifier: Apache-2.0
// `gpurt train`: finds the kind and calls it.
#include "train.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/talk.h"

static const struct kind {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} kinds[] = {
#define X(name, help) {#name, help, train_##name},
    TRAIN_KINDS(X)
#undef X
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

const struct command_word cmd_train_words[] = {
#define X(name, help) {#name, help, NULL},
    TRAIN_KINDS(X)
#undef X
        {NULL, NULL, NULL},
};

static void print_kinds(FILE *file) {
    fputs("usage: gpurt train KIND [OPTION...]\n\nTrains on the device. Kinds:\n\n", file);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        fprintf(file, "  %-11s %s\n", kinds[i].name, kinds[i].help);
    }
    fputs("\n`gpurt train KIND --help` explains one.\n", file);
}

int cmd_train(int argc, char **argv) {
    if (argc < 2) {
        print_kinds(stderr);
        return COMMAND_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_kinds(stdout);
        return COMMAND_OK;
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(argv[1], kinds[i].name) == 0) {
            return kinds[i].run(argc - 1, argv + 1);
        }
    }
    if (argv[1][0] == '-') {
        talk_error("the kind of training comes before '%s'; see `gpurt train --help`", argv[1]);
        return COMMAND_USAGE;
    }
    struct command_unknown unknown = {"kind of training", argv[1], NULL, "gpurt train --help"};
    return command_unknown(&unknown, kinds, KIND_COUNT, sizeof *kinds);
}
