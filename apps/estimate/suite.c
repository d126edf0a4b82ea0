// SPDX-License-Identifier: Apache-2.0
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpurt/env.h"
#include "gpurt/gpurt.h"
#include "gpurt/policy.h"
#include "gpurt/tunable.h"

#define CELL_TEXT(name, value) ((struct report_cell){.key = (name), .text = (value)})
#define CELL_NUMBER(name, value) ((struct report_cell){.key = (name), .number = (value)})
#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool is(const struct report_row *row, const char *key, const char *text) {
    const struct report_cell *cell = report_cell(row, key);
    return cell && cell->text && strcmp(cell->text, text) == 0;
}

static bool positive(const double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(numbers[i] > 0 && isfinite(numbers[i]))) {
            return false;
        }
    }
    return true;
}

// ---- rollouts of evolution strategies ----

// A lane is one environment of one direction, and holds its state in registers: no bytes count.
// Directions that are not taken at once are dispatched one after the other.
static bool count_rollout(const struct report_row *row, const struct card *card,
                          struct roof_work *work, double *amount) {
    double numbers[] = {report_number(row, "num_envs"), report_number(row, "num_dirs"),
                        report_number(row, "dir_chunk")};
    const struct report_cell *policy_cell = report_cell(row, "policy");
    struct grt_policy policy;
    (void)card;
    if (!is(row, "test", "standing") || !positive(numbers, COUNT(numbers)) || !policy_cell ||
        !policy_cell->text || !grt_policy_parse(policy_cell->text, &policy)) {
        return false;
    }
    const struct grt_env_info *env = grt_env_find("standing");
    double lanes = 2 * numbers[0] * numbers[1];  // of all dispatches
    double dispatches = ceil(numbers[1] / numbers[2]);
    // A row that was measured says how long its episodes were, and what its day's kernel counted.
    double ms = report_number(row, "ms"), rate = report_number(row, "steps_per_s");
    double counted = report_number(row, "gflop_per_s");
    double length = ms > 0 && rate > 0 ? rate * ms * 1e-3 / lanes : (double)env->length;
    double operations =
        counted > 0 && rate > 0 ? counted * 1e9 / rate : grt_policy_operations(&policy, env);
    *work = (struct roof_work){
        .launches = dispatches,
        .plain = lanes * length * operations,
        .chain = dispatches * length * operations,
    };
    *amount = lanes * length;
    return operations > 0;
}

// The guide's settings: 128 environments in chunks of 8 directions, and all directions at once.
static size_t row_rollout(size_t i, double size, struct report_cell cells[SUITE_CELLS]) {
    static const double sizes[] = {64, 128, 256, 512, 1024, 2048, 4096};
    static const struct {
        const char *policy;
        double dirs, chunk;
    } kinds[] = {{"linear", 16, 8}, {"linear", 64, 64}, {"mlp256", 16, 8}, {"mlp256", 64, 64}};
    size_t kind = i / COUNT(sizes);
    if (kind >= COUNT(kinds)) {
        return 0;
    }
    size_t count = 0;
    cells[count++] = CELL_TEXT("kind", "rollout");
    cells[count++] = CELL_TEXT("test", "standing");
    cells[count++] = CELL_TEXT("policy", kinds[kind].policy);
    cells[count++] = CELL_NUMBER("num_envs", size > 0 ? size : sizes[i % COUNT(sizes)]);
    cells[count++] = CELL_NUMBER("num_dirs", kinds[kind].dirs);
    cells[count++] = CELL_NUMBER("dir_chunk", kinds[kind].chunk);
    return count;
}

// ---- iterations of PPO with UAVs ----

// The default networks of ten UAVs on maps of 32 x 32, and four epochs of four minibatches.
#define UAV_AGENTS 10
#define UAV_WEIGHTS 37130
#define UAV_OBSERVATION 162
#define PPO_EPOCHS 4
#define PPO_MINIBATCHES 4
#define PPO_MOVING 0.55  // of the agents, measured once a policy flies; the others have arrived

// Networks run forward once to act, and forward and backward in every epoch, over the rows of all
// agents; only those that still fly are counted as steps.
static bool count_ppo(const struct report_row *row, const struct card *card, struct roof_work *work,
                      double *amount) {
    double numbers[] = {report_number(row, "num_envs"), report_number(row, "rollout_steps")};
    if (!is(row, "env", "uav") || !is(row, "loop", "device") || !is(row, "precision", "f16") ||
        report_number(row, "agents") != UAV_AGENTS || !positive(numbers, COUNT(numbers)) ||
        card->matrix <= 0) {
        return false;
    }
    double rows = numbers[0] * numbers[1] * UAV_AGENTS;
    double done = report_number(row, "agent_steps_per_s") * report_number(row, "seconds");
    *work = (struct roof_work){
        .launches = numbers[1] + 2 * PPO_EPOCHS * PPO_MINIBATCHES,
        .matrix = 2 * rows * UAV_WEIGHTS * (1 + 3 * PPO_EPOCHS),
        .bytes = 2 * rows * UAV_OBSERVATION * (1 + PPO_EPOCHS),
    };
    *amount = done > 0 ? done : PPO_MOVING * rows;
    return true;
}

static size_t row_ppo(size_t i, double size, struct report_cell cells[SUITE_CELLS]) {
    static const double sizes[] = {256, 1024, 4096, 16384};
    size_t count = 0;
    if (i >= COUNT(sizes)) {
        return 0;
    }
    cells[count++] = CELL_TEXT("kind", "iteration");
    cells[count++] = CELL_TEXT("loop", "device");
    cells[count++] = CELL_TEXT("env", "uav");
    cells[count++] = CELL_NUMBER("num_envs", size > 0 ? size : sizes[i]);
    cells[count++] = CELL_NUMBER("agents", UAV_AGENTS);
    cells[count++] = CELL_NUMBER("rollout_steps", 64);
    cells[count++] = CELL_TEXT("precision", "f16");
    return count;
}

// ---- the training step of an MLP ----

#define INPUTS 32
#define FUSED_MOST 128  // units of a hidden layer that the fused kernels take
// Bytes of an activation in a step: two each time it is written and read, forward and backward.
#define ACTIVATION_BYTES 12

static bool count_step(const struct report_row *row, const struct card *card,
                       struct roof_work *work, double *amount) {
    double depth = report_number(row, "depth"), hidden = report_number(row, "hidden");
    double batch = report_number(row, "batch"), numbers[] = {depth, hidden, batch};
    if (!positive(numbers, COUNT(numbers)) || !is(row, "precision", "f16") || card->matrix <= 0) {
        return false;
    }
    bool fused = hidden <= FUSED_MOST;
    double weights = (depth - 1) * hidden * hidden + hidden;
    *work = (struct roof_work){
        .launches = fused ? 4 : 5 * depth + 9,
        .matrix = 2 * batch * (3 * weights + 2 * INPUTS * hidden),
        .bytes = ACTIVATION_BYTES * batch * (INPUTS + depth * hidden),
        .serial = fused ? depth * hidden : 0,
    };
    *amount = batch;
    return true;
}

static size_t row_mlp(size_t i, double size, struct report_cell cells[SUITE_CELLS]) {
    static const double sizes[] = {128, 1024, 4096, 16384, 65536};
    static const struct {
        const char *model;
        double depth, hidden;
    } kinds[] = {{"small", 3, 16}, {"medium", 6, 64}, {"large", 12, 128}};
    size_t kind = i / COUNT(sizes), count = 0;
    if (kind >= COUNT(kinds)) {
        return 0;
    }
    cells[count++] = CELL_TEXT("model", kinds[kind].model);
    cells[count++] = CELL_NUMBER("depth", kinds[kind].depth);
    cells[count++] = CELL_NUMBER("hidden", kinds[kind].hidden);
    cells[count++] = CELL_NUMBER("batch", size > 0 ? size : sizes[i % COUNT(sizes)]);
    cells[count++] = CELL_TEXT("precision", "f16");
    return count;
}

// ---- whole training steps, whose data are on the device ----

// One dispatch more: which rows are next. One model was measured, so what its layers take one after
// the other is part of what a dispatch costs.
static bool count_train(const struct report_row *row, const struct card *card,
                        struct roof_work *work, double *amount) {
    bool good = is(row, "cache", "device") && count_step(row, card, work, amount);
    work->launches += 1;
    work->serial = 0;
    return good;
}

static size_t row_train(size_t i, double size, struct report_cell cells[SUITE_CELLS]) {
    static const double sizes[] = {256, 1024, 4096, 16384, 65536};
    size_t count = 0;
    if (i >= COUNT(sizes)) {
        return 0;
    }
    cells[count++] = CELL_NUMBER("depth", 6);
    cells[count++] = CELL_NUMBER("hidden", 64);
    cells[count++] = CELL_NUMBER("batch", size > 0 ? size : sizes[i]);
    cells[count++] = CELL_TEXT("precision", "f16");
    cells[count++] = CELL_NUMBER("workers", 0);
    cells[count++] = CELL_TEXT("cache", "device");
    return count;
}

// ---- matrix products ----

#define TILE 128

static bool count_product(const struct report_row *row, double bytes, struct roof_work *work,
                          double *amount) {
    const struct report_cell *shape = report_cell(row, "shape");
    double m = 0, n = 0, k = 0, batch = report_number(row, "batch");
    char rest = 0;
    if (!shape || !shape->text || sscanf(shape->text, "%9lfx%9lfx%9lf%c", &m, &n, &k, &rest) != 3) {
        return false;
    }
    double numbers[] = {m, n, k, batch};
    if (!positive(numbers, COUNT(numbers))) {
        return false;
    }
    *amount = 2 * m * n * k * batch;
    *work = (struct roof_work){
        .launches = 1,
        .matrix = *amount,
        .bytes = bytes * batch * (m * k + k * n + m * n),
        .groups = ceil(m / TILE) * ceil(n / TILE) * batch,
    };
    return true;
}

static bool count_gemm(const struct report_row *row, const struct card *card,
                       struct roof_work *work, double *amount) {
    bool half = is(row, "precision", "f16") || is(row, "precision", "bf16");
    return half && card->matrix > 0 && count_product(row, 2, work, amount);
}

// Whether the card's profile has f32 products on its matrix units, by parts of 16 bits. What its
// products make otherwise was not recorded of any GPU.
static bool splits(const struct card *card) {
    struct grt_dev_info info = {.caps.memory = (uint64_t)card->memory};
    snprintf(info.name, sizeof info.name, "%s", card->name);
    struct grt_profile *profile = grt_profile_create(&info);
    bool use = profile && grt_profile_get(profile, GRT_KEY_GEMM_SPLIT_USE)->numbers[0] > 0;
    grt_profile_destroy(&profile);
    return use;
}

static bool count_gemm_f32(const struct report_row *row, const struct card *card,
                           struct roof_work *work, double *amount) {
    return is(row, "precision", "f32") && card->matrix > 0 && splits(card) &&
           count_product(row, 4, work, amount);
}

static size_t row_product(size_t i, const char *precision, struct report_cell cells[SUITE_CELLS]) {
    static const char *const shapes[] = {"1024x1024x1024", "2048x2048x2048", "4096x4096x4096",
                                         "8192x8192x8192", "65536x64x64",    "65536x128x128",
                                         "65536x256x256"};
    if (i >= COUNT(shapes)) {
        return 0;
    }
    size_t count = 0;
    cells[count++] = CELL_TEXT("kind", "gemm");
    cells[count++] = CELL_TEXT("shape", shapes[i]);
    cells[count++] = CELL_NUMBER("batch", 1);
    cells[count++] = CELL_TEXT("precision", precision);
    cells[count++] = CELL_TEXT("trans", "nn");
    return count;
}

static size_t row_gemm(size_t i, double size, struct report_cell cells[SUITE_CELLS]) {
    (void)size;
    return row_product(i, "f16", cells);
}

static size_t row_gemm_f32(size_t i, double size, struct report_cell cells[SUITE_CELLS]) {
    (void)size;
    return row_product(i, "f32", cells);
}

// ---- convolutions ----

#define LEAST_CHANNELS 16

// As products, whose tiles have TILE pixels and TILE channels: of outputs forward, of images back.
// Gradients of weights are cut along the pixels, so that every unit has a part, and added up.
// Images of a few channels have no tile on matrix units, and cards other than Hopper's, whose
// profile splits f32 too, have other kernels, of which no GPU was recorded: both are left out.
static bool count_conv(const struct report_row *row, const struct card *card,
                       struct roof_work *work, double *amount) {
    const struct report_cell *images = report_cell(row, "images");
    const struct report_cell *window = report_cell(row, "window");
    double n = 0, h = 0, w = 0, c = 0, k = 0, kh = 0, kw = 0, step = 0, pad = 0;
    char rest = 0;
    bool half = is(row, "precision", "f16") || is(row, "precision", "bf16");
    if (!half || card->matrix <= 0 || !splits(card) || !images || !images->text || !window ||
        !window->text ||
        sscanf(images->text, "%9lfx%9lfx%9lfx%9lfx%9lf%c", &n, &h, &w, &c, &k, &rest) != 5 ||
        sscanf(window->text, "%4lfx%4lf/%4lf+%4lf%c", &kh, &kw, &step, &pad, &rest) != 4) {
        return false;
    }
    double down = floor((h + 2 * pad - kh) / step) + 1;
    double across = floor((w + 2 * pad - kw) / step) + 1;
    double numbers[] = {n, h, w, c, k, kh, kw, step, 1 + pad, down, across};
    if (!positive(numbers, COUNT(numbers)) || c < LEAST_CHANNELS) {
        return false;
    }
    bool forward = is(row, "test", "forward"), weight = is(row, "test", "weight");
    double pixels = forward ? n * down * across : n * h * w;
    *amount = 2 * n * down * across * k * c * kh * kw;
    *work = (struct roof_work){
        .launches = weight ? 2 : 1,
        .matrix = *amount,
        .bytes = 2 * (n * h * w * c + n * down * across * k + c * k * kh * kw),
        .groups = weight ? 0 : ceil(pixels / TILE) * ceil((forward ? k : c) / TILE),
    };
    return true;
}

static size_t row_conv(size_t i, double size, struct report_cell cells[SUITE_CELLS]) {
    static const char *const shapes[][2] = {{"128x32x32x64x64", "3x3/1+1"},
                                            {"128x16x16x128x128", "3x3/1+1"},
                                            {"128x8x8x256x256", "3x3/1+1"},
                                            {"128x4x4x512x512", "3x3/1+1"}};
    static const char *const passes[] = {"forward", "data", "weight"};
    size_t shape = i / COUNT(passes), count = 0;
    (void)size;
    if (shape >= COUNT(shapes)) {
        return 0;
    }
    cells[count++] = CELL_TEXT("kind", "conv");
    cells[count++] = CELL_TEXT("test", passes[i % COUNT(passes)]);
    cells[count++] = CELL_TEXT("images", shapes[shape][0]);
    cells[count++] = CELL_TEXT("window", shapes[shape][1]);
    cells[count++] = CELL_TEXT("precision", "f16");
    return count;
}

// ---- the training step of ResNet-18 ----

// Dispatches of a step, as PoCL records it; each activation is written and read four times.
#define IMAGE_LAUNCHES 262
#define IMAGE_PASSES 8

// Forward operations and outputs of the convolutions of one image; up to 64 pixels the stem is 3x3.
static void resnet18(double side, double *operations, double *outputs) {
    bool small = side <= 64;
    double in = 64, at = small ? side : ceil(side / 2);
    *outputs = 64 * at * at;
    *operations = 2 * *outputs * 3 * (small ? 9 : 49);
    at = small ? at : ceil(at / 2);
    for (int stage = 0; stage < 4; stage++) {
        double out = 64 << stage;
        at = stage ? ceil(at / 2) : at;
        double area = at * at * out;
        *operations += 2 * area * 9 * (in + 3 * out) + (stage ? 2 * area * in : 0);
        *outputs += area * (stage ? 5 : 4);
        in = out;
    }
    *operations += 2 * 512 * 10;
}

static bool count_images(const struct report_row *row, const struct card *card,
                         struct roof_work *work, double *amount) {
    double side = report_number(row, "resolution"), batch = report_number(row, "batch");
    double numbers[] = {side, batch}, operations, outputs;
    if (!is(row, "model", "resnet18") || !is(row, "precision", "f16") || card->matrix <= 0 ||
        !positive(numbers, COUNT(numbers))) {
        return false;
    }
    resnet18(side, &operations, &outputs);
    *work = (struct roof_work){
        .launches = IMAGE_LAUNCHES,
        .matrix = 3 * operations * batch,
        .bytes = 2 * IMAGE_PASSES * outputs * batch,
    };
    *amount = batch;
    return true;
}

static size_t row_images(size_t i, double size, struct report_cell cells[SUITE_CELLS]) {
    static const double sizes[] = {32, 128, 512, 1024};
    static const double sides[] = {32, 96};
    size_t kind = i / COUNT(sizes), count = 0;
    if (kind >= COUNT(sides)) {
        return 0;
    }
    cells[count++] = CELL_TEXT("model", "resnet18");
    cells[count++] = CELL_NUMBER("resolution", sides[kind]);
    cells[count++] = CELL_NUMBER("batch", size > 0 ? size : sizes[i % COUNT(sizes)]);
    cells[count++] = CELL_TEXT("precision", "f16");
    return count;
}

// ---- the list ----

const struct suite suites[] = {
    {.name = "rollout",
     .help = "rollouts of the standing robot over environments",
     .bench = "rollout",
     .free = SUITE_SHARE(plain) | SUITE_SHARE(cycles),
     .count = count_rollout,
     .row = row_rollout,
     .sizes = 7},
    {.name = "ppo",
     .help = "iterations of PPO with ten UAVs over environments",
     .bench = "ppo",
     .free = SUITE_SHARE(matrix) | SUITE_SHARE(launch),
     .count = count_ppo,
     .row = row_ppo,
     .sizes = 4},
    {.name = "mlp",
     .help = "training step of an MLP over batch size",
     .bench = "mlp",
     .free = SUITE_SHARE(matrix) | SUITE_SHARE(bytes) | SUITE_SHARE(cycles) | SUITE_SHARE(launch),
     .count = count_step,
     .row = row_mlp,
     .sizes = 5},
    {.name = "train",
     .help = "whole training steps over batch size",
     .bench = "train",
     .free = SUITE_SHARE(matrix) | SUITE_SHARE(bytes) | SUITE_SHARE(launch),
     .count = count_train,
     .row = row_train,
     .sizes = 5},
    {.name = "gemm",
     .help = "matrix products in f16",
     .bench = "gemm",
     .free = SUITE_SHARE(matrix) | SUITE_SHARE(bytes) | SUITE_SHARE(hidden) | SUITE_SHARE(launch),
     .count = count_gemm,
     .row = row_gemm},
    {.name = "gemm-f32",
     .help = "matrix products in f32",
     .bench = "gemm",
     .free = SUITE_SHARE(matrix) | SUITE_SHARE(bytes) | SUITE_SHARE(hidden) | SUITE_SHARE(launch),
     .count = count_gemm_f32,
     .row = row_gemm_f32},
    {.name = "conv",
     .help = "convolutions of ResNet-18 in f16",
     .bench = "conv",
     .free = SUITE_SHARE(matrix) | SUITE_SHARE(bytes) | SUITE_SHARE(hidden) | SUITE_SHARE(launch),
     .count = count_conv,
     .row = row_conv},
    {.name = "images",
     .help = "training step of ResNet-18 over batch size",
     .bench = "images",
     .free = SUITE_SHARE(matrix) | SUITE_SHARE(bytes) | SUITE_SHARE(launch),
     .count = count_images,
     .row = row_images,
     .sizes = 4},
};
const size_t suite_count = sizeof suites / sizeof *suites;
