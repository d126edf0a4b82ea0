// SPDX-License-Identifier: Apache-2.0
// `gpurt help --manual man|md`: the parts of the man page and of docs/options.md that follow from
// the tables of verbs and options, so that neither can say something else than --help does.
#ifndef APPS_MANUAL_H
#define APPS_MANUAL_H

#include "cli/command.h"

// Copies stdin to stdout; a line @SYNOPSIS@, @OPTIONS@ or @EXITS@ becomes what it names, and
// @VERSION@ within a line the version. `form` is "man" or "md". Returns an exit code.
int manual_print(const struct command_verb *verbs, size_t count, const char *form);

#endif
