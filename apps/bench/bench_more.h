// SPDX-License-Identifier: Apache-2.0
// The kinds of `gpurt bench` that have a command line of their own, since their options have the
// names that training scripts know; and what they share: the file that is read, or made.
#ifndef APPS_BENCH_MORE_H
#define APPS_BENCH_MORE_H

#include "gpurt/dataset.h"
#include "cli/options/options.h"

// X(name, help); argv[0] stands for "bench" and the kind.
#define BENCH_MORE(X)                                                                              \
    X(train, "whole training steps over batch sizes, workers and precisions (the default)")        \
    X(data, "the loader alone: samples/s, and the share of raw reading")                           \
    X(mlp, "the training step of an MLP alone, per model and batch size")                          \
    X(conv, "convolutions, forward and both gradients, by the layers of ResNet-18")                \
    X(images, "whole training steps of image networks, per model, resolution and batch size")      \
    X(ppo, "whole iterations of PPO, where their time goes, and beside them a loop of the host")   \
    X(scaling, "steps of several ranks, measured and predicted, and whether they pay")

#define X(name, help) int bench_##name(int argc, char **argv);
BENCH_MORE(X)
#undef X

// A line for each kind there is, for --help; returns how many bytes.
size_t bench_kinds_text(char *text, size_t size);

// Where rows come from.
struct bench_source {
    const char *path;              // --data; NULL: synthetic
    const char *inputs, *targets;  // names with commas between; NULL: x and y
    bool synthetic;
    char made[512];  // the synthetic file, removed at the end
};

// The models that benches know by name, and any other as depth=6,hidden=64.
struct bench_model {
    const char *name;  // "small", or "own"
    uint32_t depth, hidden;
};
#define BENCH_MODEL_WANTED "small, medium, large, or as in depth=6,hidden=64 is wanted"
// Reads one and moves `at` past it; false when there is none, or its sizes are none to build.
bool bench_model(const char **at, struct bench_model *model);

// bench_read_cache: none or ram; bench_read_any_cache: the device too.
options_read_fn bench_read_batches, bench_read_workers, bench_read_cache, bench_read_any_cache;

// Rows of an option table whose struct has a bench_source.
#define BENCH_SOURCE_ROWS(type, field)                                                             \
    {.name = "data",                                                                               \
     .value = "FILE",                                                                              \
     .help = "HDF5 file to read (default: synthetic data)",                                        \
     .read = options_read_text,                                                                    \
     .at = offsetof(type, field.path)},                                                            \
        {.name = "inputs",                                                                         \
         .value = "NAME,...",                                                                      \
         .help = "its data sets that are inputs (default: x)",                                     \
         .read = options_read_text,                                                                \
         .at = offsetof(type, field.inputs)},                                                      \
    {                                                                                              \
        .name = "targets", .value = "NAME,...", .help = "and targets (default: y)",                \
        .read = options_read_text, .at = offsetof(type, field.targets)                             \
    }

// Where no file is named, makes one with so many rows and features; false with the sentence.
bool bench_source_make(struct bench_source *source, uint64_t rows, uint32_t features);
// Opens the file, made or not. NULL with the sentence.
struct grt_dataset *bench_source_open(const struct bench_source *source);
void bench_source_end(struct bench_source *source);
// For the head of a report.
json_t *bench_source_json(const struct bench_source *source, const struct grt_dataset *data);

#endif
