// SPDX-License-Identifier: Apache-2.0
// Exit codes, and what is said of a misspelt word.
#include "command.h"

#include "base/closest.h"
#include "talk.h"

int command_exit_of(enum grt_status status) {
    switch (status) {
    case GRT_NO_DEVICE:
    case GRT_UNSUPPORTED:
        return COMMAND_NO_DEVICE;
    case GRT_IO:
        return COMMAND_IO;
    case GRT_NO_OUTPUT:
        return COMMAND_CANNOT_CREATE;
    case GRT_NO_INPUT:
        return COMMAND_NO_INPUT;
    case GRT_BAD_DATA:
        return COMMAND_DATA;
    case GRT_CONFIG:
        return COMMAND_CONFIG;
    case GRT_NO_MEMORY:
        return COMMAND_NO_MEMORY;
    // What the user gave was checked before the library was asked, so a call that the library finds
    // invalid is our mistake.
    case GRT_INVALID:
    case GRT_COMPILE:
    case GRT_LOST:
    case GRT_OK:
    case GRT_STATUS_COUNT:
        break;
    }
    return COMMAND_INTERNAL;
}

int command_exit_of_input(enum grt_status status) {
    return status == GRT_INVALID ? COMMAND_USAGE : command_exit_of(status);
}

int command_unknown(const struct command_unknown *unknown, const void *names, size_t count,
                    size_t stride) {
    const struct command_unknown *u = unknown;
    const char *closest = grt_closest(u->word, names, count, stride);
    const char *prefix = u->prefix ? u->prefix : "";
    if (closest) {
        talk_error("no %s '%s%s'; did you mean '%s%s'?", u->what, prefix, u->word, prefix, closest);
    } else {
        talk_error("no %s '%s%s'; see `%s`", u->what, prefix, u->word, u->help);
    }
    return COMMAND_USAGE;
}
