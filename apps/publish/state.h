// SPDX-License-Identifier: Apache-2.0
// What running gpurt processes say of themselves, each in a small file:
//
//     $XDG_RUNTIME_DIR/gpurt/PID.json     or, without that variable, /tmp/gpurt-UID/PID.json
//
//     who        the folder belongs to this user and to nobody else (0700), and is no link: else
//                nothing is written there and nothing read. So a user sees his own processes
//     how        a file beside it, renamed: a reader gets a whole one, old or new
//     how long   the process holds a lock on the file. The lock ends with the process, however that
//                ends: a file that can be locked is one of a dead process, and is removed by
//                whoever reads next. A number of a process that is used again misleads nobody
//
// What is read is not trusted: of each file a few kB at most, only regular files, only the keys
// below, numbers that are finite, texts that are cut; whoever shows them makes them visible.
#ifndef APPS_PUBLISH_STATE_H
#define APPS_PUBLISH_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "sensors/sensors.h"

#define STATE_TEXT 96
// X(field): texts, "" where unknown
#define STATE_TEXTS(X)                                                                             \
    X(app)      /* "train supervised" */                                                           \
    X(device)   /* "vulkan:0" */                                                                   \
    X(name)     /* of the device */                                                                \
    X(pci)      /* "0000:65:00.0" */                                                               \
    X(rate_of)  /* "samples_per_s", as the log calls it */                                         \
    X(score_of) /* "loss" or "return" */
// X(field): numbers, NaN where unknown
#define STATE_NUMBERS(X)                                                                           \
    X(pid)      /* of the file's name, not of what is in it */                                     \
    X(software) /* 1: the device is the CPU */                                                     \
    X(updated)  /* seconds since 1970 */                                                           \
    X(step)                                                                                        \
    X(steps)                                                                                       \
    X(epoch)                                                                                       \
    X(epochs)                                                                                      \
    X(rate)                                                                                        \
    X(score)                                                                                       \
    X(left)   /* seconds to the end */                                                             \
    X(memory) /* bytes on the device, by gpurt's own account */

struct state {
#define X(field) char field[STATE_TEXT];
    STATE_TEXTS(X)
#undef X
#define X(field) double field;
    STATE_NUMBERS(X)
#undef X
};

#define STATE_MOST 32  // processes that are shown

void state_init(struct state *state);
// The device of the sample that the process works on: by address, where its driver told none by
// name, and drivers on the CPU by that. -1: none of them.
int state_device(const struct state *state, const struct sensor_sample *sample);

// The folder, made when it is missing; false: it is not to be had, or not ours alone.
#define STATE_PATH 256
bool state_folder(char path[STATE_PATH]);

// The file of this process.
struct state_file {
    int folder, fd;              // -1: none
    char path[STATE_PATH + 32];  // the file's, "": there is none yet
};
#define STATE_FILE                                                                                 \
    (struct state_file) {                                                                          \
        .folder = -1, .fd = -1                                                                     \
    }
// Replaces what was published before. False: it could not be written, which harms nothing.
bool state_publish(struct state_file *file, const struct state *state);
void state_withdraw(struct state_file *file);

// Those of all living processes, by their number; removes what dead ones left.
size_t state_read_all(struct state states[STATE_MOST]);

#endif
