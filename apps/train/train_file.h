// SPDX-License-Identifier: Apache-2.0
// A training whose run is kept in one file: what it begins with, --resume or --from, and where it
// is kept.
#ifndef APPS_TRAIN_FILE_H
#define APPS_TRAIN_FILE_H

#include "trainer.h"

#define TRAIN_FILE_PATH 1024

struct train_file {
    const char *resume, *from;    // options
    struct grt_archive *archive;  // that it begins with, or NULL
    char path[TRAIN_FILE_PATH];   // of the checkpoint
    uint32_t evaluate_every;      // iterations between trials of the policy
};

// Each returns an exit code, the mistake said.
int train_file_check(const struct train_file *file);  // --resume and --from exclude each other
int train_file_load(struct train_file *file, const char *path);
// Where it is kept: in the file given, or the one that is resumed, or else in `otherwise`.
int train_file_keep(struct train_file *file, const char *given, const char *otherwise);
// Whether what is written is apart from what is read: see files.h.
int train_file_apart(const struct trainer *t, const struct train_file *file);
// Makes the run and begins it; fills in what the file says of `start`.
int train_file_begin(struct trainer *t, const struct train_file *file, uint64_t save_every,
                     struct grt_run_start *start);

// The exit code for a checkpoint that another policy or environment has left.
int train_file_exit(void);
// Without an answer to how often a policy is tried: ten times in all.
uint32_t train_file_turns(uint64_t asked, uint64_t iterations);

#endif
