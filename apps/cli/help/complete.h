// SPDX-License-Identifier: Apache-2.0
// `gpurt completion`: what may stand at the end of a command line. The answer comes from the tables
// of verbs, options and keys themselves; the scripts of the three shells only ask for it.
#ifndef APPS_COMPLETE_H
#define APPS_COMPLETE_H

#include "cli/command.h"

// `completion bash|zsh|fish` prints the script of a shell. `completion -- WORD...` prints what the
// last word, which may be empty, can become, one a line:
//
//     WORD<tab>HELP        a word, or the beginning of one: KEY= has its value still to come
//     :files END END...    names of files that end so, or of any where no end is named
//
// The scripts are apps/completions, as texts by apps/CMakeLists.txt.
extern const char complete_bash[], complete_zsh[], complete_fish[];
int complete_main(const struct command_verb *verbs, size_t count, int argc, char **argv);

#endif
