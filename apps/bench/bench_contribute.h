// SPDX-License-Identifier: Apache-2.0
// `gpurt bench all --contribute FILE`: results that can be given away. Nothing in them is of the
// user or the machine but the device, its driver, and what was measured: what a head and a row may
// have is listed, and what is not listed is left out.
#ifndef APPS_BENCH_CONTRIBUTE_H
#define APPS_BENCH_CONTRIBUTE_H

#include "bench.h"

// The options, which stand behind those of the kinds.
#define BENCH_CONTRIBUTE_OPTIONS 1
extern const struct option_row bench_contribute_options[BENCH_CONTRIBUTE_OPTIONS];

// Settles format and output of a bench that contributes; `all` says that all kinds were asked for.
// -1 to go on, or an exit code with the mistake said.
int bench_contribute_begin(struct bench *bench, bool all);
// What the table gets in place of its head's members and of the command line: names of files and
// options are no part of what is given away.
void bench_contribute_desc(const struct bench *bench, struct table_desc *desc);
// Takes out of a row what may name a file: the profile.
void bench_contribute_row(struct table_cell *cells);
void bench_contribute_end(const struct bench *bench, int code);

#endif
