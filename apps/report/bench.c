// SPDX-License-Identifier: Apache-2.0
// The kinds of results that a report knows: one row each.
#include "model.h"

#include <string.h>

#define BENCH "gpurt.bench/1"

const struct report_bench report_benches[] = {
    {.name = "train",
     .title = "Training",
     .cases = "settings of training",
     .schema = "gpurt.bench.train/1",
     .value = "samples_per_s",
     .scale = 1,
     .unit = "samples/s",
     .compared = true,
     .parts = {{.key = "depth"},
               {.key = "hidden", .before = "x"},
               {.key = "batch", .before = " batch "},
               {.key = "precision", .before = " "},
               {.key = "workers", .before = " workers "},
               {.key = "cache", .before = " cache "},
               {.key = "pin_memory", .before = " pin_memory ", .usual = "1"}}},
    {.name = "mlp",
     .title = "Training step of an MLP",
     .cases = "training steps",
     .schema = "gpurt.bench.mlp/1",
     .value = "msamples_per_s",
     .scale = 1e6,
     .unit = "samples/s",
     .compared = true,
     .parts = {{.key = "depth"},
               {.key = "hidden", .before = "x"},
               {.key = "batch", .before = " batch "},
               {.key = "precision", .before = " "}}},
    {.name = "images",
     .title = "Training step of a network of images",
     .cases = "training steps",
     .schema = "gpurt.bench.images/1",
     .value = "images_per_s",
     .scale = 1,
     .unit = "images/s",
     .compared = true,
     .parts = {{.key = "model"},
               {.key = "resolution", .before = " side "},
               {.key = "batch", .before = " batch "},
               {.key = "precision", .before = " "}}},
    {.name = "gemm",
     .title = "Matrix products",
     .cases = "products",
     .schema = BENCH,
     .kind = "gemm",
     .value = "gflop_per_s",
     .scale = 1e9,
     .unit = "FLOP/s",
     .compared = true,
     .parts = {{.key = "shape"},
               {.key = "batch", .before = " x ", .usual = "1"},
               {.key = "precision", .before = " "},
               {.key = "trans", .before = " ", .usual = "nn"}}},
    {.name = "conv",
     .title = "Convolutions",
     .cases = "convolutions",
     .schema = BENCH,
     .kind = "conv",
     .value = "gflop_per_s",
     .scale = 1e9,
     .unit = "FLOP/s",
     .compared = true,
     .parts = {{.key = "images"},
               {.key = "window", .before = " "},
               {.key = "precision", .before = " "},
               {.key = "test", .before = " "}}},
    {.name = "rollout",
     .title = "Rollouts",
     .cases = "rollouts",
     .schema = BENCH,
     .kind = "rollout",
     .value = "steps_per_s",
     .scale = 1,
     .unit = "steps/s",
     .compared = true,
     .settings = true,
     .parts = {{.key = "test"},
               {.key = "policy", .before = " "},
               {.key = "num_envs", .before = " envs "},
               {.key = "num_dirs", .before = " dirs "},
               {.key = "dir_chunk", .before = " chunk "}}},
    {.name = "ppo",
     .title = "Iterations of PPO",
     .cases = "iterations of PPO",
     .schema = "gpurt.bench.ppo/1",
     .kind = "iteration",
     .value = "agent_steps_per_s",
     .scale = 1,
     .unit = "agent steps/s",
     .compared = true,
     .settings = true,
     .parts = {{.key = "env"},
               {.key = "num_envs", .before = " envs "},
               {.key = "agents", .before = " agents ", .usual = "1"},
               {.key = "rollout_steps", .before = " steps "},
               {.key = "precision", .before = " "},
               {.key = "loop", .before = " loop ", .usual = "device"}}},
    {.name = "phase",
     .title = "Phases of PPO",
     .cases = "phases",
     .schema = "gpurt.bench.ppo/1",
     .kind = "phase",
     .value = "seconds",
     .scale = 1,
     .unit = "s",
     .lower = true,
     .settings = true,
     .parts = {{.key = "env"},
               {.key = "num_envs", .before = " envs "},
               {.key = "agents", .before = " agents ", .usual = "1"},
               {.key = "rollout_steps", .before = " steps "},
               {.key = "precision", .before = " "},
               {.key = "loop", .before = " loop ", .usual = "device"},
               {.key = "phase", .before = ": "}}},
    {.name = "memory",
     .title = "Memory bandwidth",
     .cases = "copies",
     .schema = BENCH,
     .kind = "memory",
     .value = "gb_per_s",
     .scale = 1e9,
     .unit = "B/s",
     .compared = true,
     .parts = {{.key = "test"}, {.key = "size", .before = " ", .bytes = true}}},
    {.name = "launch",
     .title = "Cost of a dispatch",
     .cases = "counts of dispatches",
     .schema = BENCH,
     .kind = "launch",
     .value = "us",
     .scale = 1e-6,
     .unit = "s",
     .lower = true,
     .compared = true,
     .parts = {{.key = "test"}, {.key = "dispatches", .before = " x "}}},
    {.name = "data",
     .title = "Data loader",
     .cases = "settings of the loader",
     .schema = "gpurt.bench.data/1",
     .value = "samples_per_s",
     .scale = 1,
     .unit = "samples/s",
     .compared = true,
     .parts = {{.key = "batch", .before = "batch "},
               {.key = "workers", .before = " workers "},
               {.key = "cache", .before = " cache "},
               {.key = "order", .before = " "},
               {.key = "row_bytes", .before = " rows of ", .bytes = true},
               {.key = "compressed", .before = " compressed ", .usual = "0"}}},
    {.name = "static",
     .title = "Kernels compiled for GPUs that are not here",
     .cases = "targets",
     .schema = "gpurt.static/1",
     .value = "registers",
     .scale = 1,
     .unit = "registers",
     .lower = true,
     .parts = {{.key = "target"},
               {.key = "kernel", .before = " "},
               {.key = "mode", .before = " ", .usual = "default"},
               {.key = "setting", .before = " ", .usual = ""}}},
};
const size_t report_bench_count = sizeof report_benches / sizeof *report_benches;

const struct report_bench *report_bench_of(const char *schema, const char *kind) {
    for (size_t i = 0; i < report_bench_count; i++) {
        const struct report_bench *b = &report_benches[i];
        bool same = b->kind ? kind && strcmp(b->kind, kind) == 0 : !kind;
        if (same && strcmp(b->schema, schema) == 0) {
            return b;
        }
    }
    return NULL;
}

bool report_knows_schema(const char *schema) {
    for (size_t i = 0; i < report_bench_count; i++) {
        if (strcmp(report_benches[i].schema, schema) == 0) {
            return true;
        }
    }
    return false;
}

bool report_knows_name(const char *schema) {
    const char *slash = strrchr(schema, '/');
    for (size_t i = 0; slash && i < report_bench_count; i++) {
        size_t length = (size_t)(slash - schema) + 1;
        if (strncmp(report_benches[i].schema, schema, length) == 0) {
            return true;
        }
    }
    return false;
}
