// SPDX-License-Identifier: Apache-2.0
// `gpurt init`: a config to begin with. init.c looks at the data and the device and sets keys;
// init_text.c writes the file.
#ifndef APPS_TRAIN_INIT_H
#define APPS_TRAIN_INIT_H

#include <stdio.h>

#include "gpurt/config.h"

// Writes every key that the config's kind takes, by sections, each below its meaning: those that
// are given with their values, the others as comments with their defaults. `head` are lines for the
// top.
void init_print(FILE *file, const struct grt_config *config, const char *head);

#endif
