// SPDX-License-Identifier: Apache-2.0
// `gpurt estimate --scaling`: one step on one card, by its fit, and the exchange of many of them.
#ifndef APPS_VERBS_ESTIMATE_SCALING_H
#define APPS_VERBS_ESTIMATE_SCALING_H

#include "cli/command.h"
#include "cli/options/options.h"
#include "estimate/estimate.h"

struct estimate_scaling_options {
    uint32_t wanted;  // --scaling
    const char *link, *links;
    struct ranges gpus;
    double overlap;
};

struct estimate_scaling {
    const struct options *common;
    const struct estimate_scaling_options *options;
    const struct cards *cards;
    const bool *card;     // which of them
    const bool *backend;  // of estimate_backends; the first counts
    const struct report *records;
    struct output *output;
    int argc;
    char **argv;
};

options_read_fn estimate_read_gpus;
// Returns an exit code, the mistake said.
int estimate_scaling(const struct estimate_scaling *desc);
// Words with commas between, each one of the names (as grt_closest() takes them), or all; `of` says
// what they are, and what explains the right ones.
int estimate_choose(const char *text, struct command_unknown of, const void *names, size_t count,
                    size_t stride, bool *chosen);

#endif
