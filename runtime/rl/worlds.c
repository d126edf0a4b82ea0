// SPDX-License-Identifier: Apache-2.0
// The kernels are in shaders/rl/worlds_*.k.
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "ops/op_support.h"
#include "gpurt/rollout.h"
#include "shaders/env/shape_words.k"
#include "shaders/host.h"
#include "shaders/rl/worlds_params.k"
#include "worlds_parts.h"

#define MAX_NAME 64
#define FLAT 64  // lanes of a workgroup where a lane is a row
#define WORLDS_SPECS 5

// Of observations on a GPU (shaders/rl/worlds_observe.k): lanes of a workgroup, lanes that share a
// row, at most, and rows. Rows of a subgroup's size are worked out with the branches of one. The
// UAVs make 2.33 G steps/s so on OpenCL and 2.23 G on Vulkan; with 80 rows, those of eight copies,
// Vulkan loses 5 % (H200, 65,536 copies, 580.159.04, 2026-11).
#define SIGHT_WG 128
#define SIGHT_LANES 32
#define SIGHT_ROWS 32
// Where these are too few groups for the device: 64 copies of the UAVs took 28 us a step with 10
// rows and 29 with 2.
#define SIGHT_ROWS_LEAST 8
#define SIGHT_WHOLES_LEAST 4

_Static_assert(WORLDS_TERMS == GRT_WORLD_TOTALS, "totals");
_Static_assert(WORLDS_LAST == GRT_ROW_LAST && WORLDS_CUT == GRT_ROW_CUT &&
                   WORLDS_IDLE == GRT_ROW_IDLE,
               "rows");
_Static_assert(SHAPE_NUMBERS * sizeof(float) == sizeof(struct grt_drawn_shape) &&
                   (uint32_t)SHAPE_BOX == GRT_DRAWN_BOX && (uint32_t)SHAPE_AGENT == GRT_DRAWN_AGENT,
               "shapes");

struct params {
    struct worlds_head head;
    uint32_t settings[GRT_ENV_SETTINGS];
};
_Static_assert(sizeof(struct params) <= GRT_MAX_PARAMS, "settings are parameters of kernels");

static uint64_t rows_of(const struct grt_worlds *worlds) {
    return (uint64_t)worlds->copies * worlds->sizes.agents;
}

const char *grt_worlds_copies_key(const struct grt_worlds *worlds) {
    return worlds->once ? "evaluate_envs" : "num_envs";
}

// Indices are counted in 32 bits, and a binding reaches so many numbers.
static bool fits(const struct grt_worlds *worlds) {
    const struct grt_worlds_sizes *sizes = &worlds->sizes;
    uint64_t widest = sizes->obs > sizes->act ? sizes->obs : sizes->act;
    uint64_t of_copy = sizes->agents * widest;
    of_copy = of_copy > sizes->words ? of_copy : sizes->words;
    of_copy = of_copy > sizes->global ? of_copy : sizes->global;
    uint64_t most = grt_op_reach(worlds->dev) / of_copy;
    return worlds->copies <= most ||
           grt_fail(GRT_CONFIG,
                    "%u copies of environment '%s' (%s) are more than %s reaches in one buffer; "
                    "use at most %llu",
                    worlds->copies, worlds->env->name, grt_worlds_copies_key(worlds),
                    grt_dev_info(worlds->dev)->selector, (unsigned long long)most);
}

static bool settle(struct grt_worlds *worlds, const struct grt_worlds_desc *desc) {
    const struct grt_env_info *env = desc->env;
    if (desc->copies == 0) {
        return grt_fail(GRT_CONFIG, "0 copies of environment '%s'; there must be at least 1",
                        env->name);
    }
    if (worlds->phase > env->phases) {
        return grt_fail(GRT_CONFIG, "environment '%s' has no phase %u; it has 1 to %u", env->name,
                        worlds->phase, env->phases);
    }
    return grt_worlds_settle(worlds, desc) && fits(worlds);
}

// On a CPU a lane is a thread's work, and an environment in registers makes all of a row at once.
static struct worlds_sight sight_of(const struct grt_worlds *worlds) {
    const struct grt_caps *caps = &grt_dev_info(worlds->dev)->caps;
    if (caps->software || !worlds->env->world) {
        return (struct worlds_sight){.wg = FLAT, .rows = FLAT, .lanes = 1, .wholes = FLAT};
    }
    struct worlds_sight sight = {SIGHT_WG, SIGHT_ROWS, SIGHT_LANES, SIGHT_ROWS};
    uint64_t units = caps->compute_units > 0 ? caps->compute_units : 16;
    while (sight.rows > SIGHT_ROWS_LEAST && rows_of(worlds) / sight.rows < 4 * units) {
        sight.rows /= 2;
    }
    if (worlds->copies / sight.wholes < 2 * units) {
        sight.wholes = SIGHT_WHOLES_LEAST;
    }
    while (sight.wg > caps->max_wg) {
        sight.wg /= 2;
    }
    return sight;
}

struct grt_worlds *grt_worlds_create(struct grt_dev *dev, const struct grt_worlds_desc *desc) {
    if (!dev || !desc || !desc->env || (desc->setting_count > 0 && !desc->settings)) {
        grt_fail(GRT_INVALID, "worlds: no %s",
                 !dev                  ? "device"
                 : !desc || !desc->env ? "environment"
                                       : "settings");
        return NULL;
    }
    struct grt_worlds *worlds = calloc(1, sizeof *worlds);
    if (!worlds) {
        grt_fail(GRT_NO_MEMORY, "no host memory for worlds");
        return NULL;
    }
    worlds->dev = dev;
    worlds->env = desc->env;
    worlds->copies = desc->copies;
    worlds->first = desc->first;
    worlds->phase = desc->phase ? desc->phase : 1;
    worlds->length = desc->length ? desc->length : desc->env->length;
    worlds->once = desc->once;
    if (!settle(worlds, desc)) {
        grt_worlds_destroy(&worlds);
        return NULL;
    }
    worlds->sight = sight_of(worlds);
    return worlds;
}

void grt_worlds_destroy(struct grt_worlds **worlds) {
    if (worlds) {
        free(*worlds);
        *worlds = NULL;
    }
}

const struct grt_worlds_sizes *grt_worlds_sizes(const struct grt_worlds *worlds) {
    return worlds ? &worlds->sizes : NULL;
}

uint32_t grt_worlds_copies(const struct grt_worlds *worlds) {
    return worlds ? worlds->copies : 0;
}

uint32_t grt_worlds_first(const struct grt_worlds *worlds) {
    return worlds ? worlds->first : 0;
}

uint32_t grt_worlds_length(const struct grt_worlds *worlds) {
    return worlds ? worlds->length : 0;
}

const char *grt_worlds_term(const struct grt_worlds *worlds, uint32_t i) {
    if (!worlds || i >= worlds->sizes.terms) {
        return NULL;
    }
    return worlds->env->world ? worlds->env->world->terms[i] : "good";
}

const char *grt_worlds_setting(const struct grt_worlds *worlds, uint32_t i, double *value) {
    if (!worlds || i >= worlds->setting_count) {
        return NULL;
    }
    *value = worlds->settings[i];
    return worlds->env->world->settings[i].name;
}

void grt_worlds_declare(struct grt_worlds *worlds, struct grt_plan *plan) {
    const struct {
        const char *label;
        enum grt_dtype dtype;
        uint32_t rows;
        const struct grt_tensor **tensor;
    } rows[] = {{"state", GRT_U32, worlds->sizes.words, &worlds->state},
                {"book", GRT_U32, WORLDS_BOOK, &worlds->book},
                {"totals", GRT_F32, GRT_WORLD_TOTALS + worlds->sizes.terms, &worlds->totals}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rows[i].tensor = grt_plan_tensor(
            plan, grt_tensor_desc(.label = rows[i].label, .group = "worlds", .dtype = rows[i].dtype,
                                  .shape = {rows[i].rows, worlds->copies}));
    }
}

// ---- ops ----

struct operand {
    const char *name;
    struct grt_range range;
    uint64_t numbers;  // of 4 bytes; 0: not wanted
};

// Whether worlds and operands can be used; the range of each becomes exact. Rejects the graph
// otherwise.
static bool check(struct grt_graph *graph, const struct grt_worlds *worlds, const char *op,
                  struct operand *operands, uint32_t count) {
    if (!graph || !worlds) {
        grt_graph_reject(graph, GRT_INVALID, "%s: no %s", op, worlds ? "graph" : "worlds");
        return false;
    }
    if (!grt_op_tensor(graph, op, "state", worlds->state)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t room = operands[i].range.buf ? grt_op_room(operands[i].range) : 0;
        if (operands[i].numbers * 4 > room) {
            grt_graph_reject(graph, GRT_INVALID,
                             "%s of environment '%s': %s has %llu bytes and needs %llu", op,
                             worlds->env->name, operands[i].name, (unsigned long long)room,
                             (unsigned long long)operands[i].numbers * 4);
            return false;
        }
        if (operands[i].numbers > 0) {
            operands[i].range.size = operands[i].numbers * 4;
        } else {
            operands[i].range = grt_op_unused_at(graph, i % GRT_OP_UNUSED);
        }
    }
    return !grt_graph_rejected(graph);
}

// A kernel of the environment over so many lanes.
static void launch(struct grt_graph *graph, const struct grt_worlds *worlds, const char *user,
                   struct worlds_head head, const struct grt_spec specs[WORLDS_SPECS],
                   uint64_t lanes, const struct grt_range *ranges, uint32_t count) {
    const struct grt_env_world *world = worlds->env->world;
    struct params params = {.head = head};
    for (uint32_t i = 0; i < worlds->setting_count; i++) {
        union {
            float real;
            uint32_t word;
        } bits = {.real = (float)worlds->settings[i]};
        params.settings[i] = world->settings[i].whole ? (uint32_t)worlds->settings[i] : bits.word;
    }
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s_%s", worlds->env->name, user);
    const struct grt_kernel_desc kernel = {
        .name = name,
        .specs = {specs[0], specs[1], specs[2], specs[3], specs[4]},
        .source = worlds->env->source};
    uint32_t groups[3], size = sizeof params.head + worlds->setting_count * sizeof(uint32_t);
    grt_op_row_grid(worlds->dev, (lanes + specs[0].value - 1) / specs[0].value, groups);
    grt_op_launch(graph, &kernel, &params, size, ranges, count, groups);
}

static struct worlds_head head_of(const struct grt_worlds *worlds) {
    const struct grt_worlds_sizes *sizes = &worlds->sizes;
    return (struct worlds_head){.copies = worlds->copies,
                                .agents = sizes->agents,
                                .obs = sizes->obs,
                                .whole = sizes->global,
                                .act = sizes->act,
                                .choices = sizes->choices,
                                .terms = sizes->terms,
                                .phase = worlds->phase,
                                .limit = worlds->length,
                                .share = 1.0f / (float)sizes->agents,
                                .once = worlds->once,
                                .each = worlds->first};
}

// Lanes that are copies. They share nothing, and few in a workgroup spread over more of a GPU.
static struct grt_spec copies_wg(const struct grt_worlds *worlds) {
    const struct grt_caps *caps = &grt_dev_info(worlds->dev)->caps;
    return (struct grt_spec){"WG", caps->software   ? grt_rollout_wg(worlds->dev, worlds->copies)
                                   : caps->subgroup ? caps->subgroup
                                                    : FLAT};
}

void grt_op_worlds_reset(struct grt_graph *graph, struct grt_worlds *worlds,
                         struct grt_range control) {
    struct operand operands[] = {{"control", control, 4}};
    if (!check(graph, worlds, "reset", operands, 1)) {
        return;
    }
    const struct grt_range ranges[] = {worlds->state->range, operands[0].range, worlds->book->range,
                                       worlds->totals->range};
    launch(graph, worlds, "worlds_reset", head_of(worlds),
           (const struct grt_spec[WORLDS_SPECS]){copies_wg(worlds)}, worlds->copies, ranges, 4);
}

static uint32_t words_of_row(uint32_t numbers, uint32_t pitch, uint32_t each) {
    return numbers == 0 ? 0 : pitch > 0 ? pitch / each : (numbers + each - 1) / each;
}

void grt_op_worlds_observe(struct grt_graph *graph, struct grt_worlds *worlds,
                           const struct grt_observe_desc *desc) {
    if (!graph || !worlds || !desc) {
        grt_graph_reject(graph, GRT_INVALID, "observe: no %s", worlds ? "desc" : "worlds");
        return;
    }
    const struct grt_worlds_sizes *sizes = &worlds->sizes;
    struct worlds_head head = head_of(worlds);
    head.obs = desc->obs.buf ? head.obs : 0;
    head.terms = worlds->bits;
    head.whole = desc->global.buf ? head.whole : 0;
    uint32_t each = desc->dtype == GRT_F32 ? 1 : 2;  // numbers of a word
    head.each = words_of_row(head.obs, desc->pitch, each);
    head.limit = words_of_row(head.whole, desc->global_pitch, each);
    if ((desc->dtype != GRT_F32 && desc->dtype != GRT_F16 && desc->dtype != GRT_BF16) ||
        head.each * each < head.obs || desc->pitch % each != 0 || head.limit * each < head.whole ||
        desc->global_pitch % each != 0) {
        grt_graph_reject(graph, GRT_INVALID,
                         "observe: rows of %u %s for %u numbers, %u for %u of the whole; they must "
                         "be f32, f16 or bf16, as long, and multiples of 4 bytes",
                         desc->pitch, grt_dtype_text(desc->dtype), head.obs, desc->global_pitch,
                         head.whole);
        return;
    }
    uint64_t rows = rows_of(worlds);
    struct operand operands[] = {{"obs", desc->obs, rows * head.each},
                                 {"mask", desc->mask, sizes->choices > 0 ? rows : 0},
                                 {"global", desc->global, (uint64_t)worlds->copies * head.limit}};
    if (!check(graph, worlds, "observe", operands, 3)) {
        return;
    }
    // A line of bits is 32 numbers, so many words.
    uint32_t widest = head.each > head.limit ? head.each : head.limit;
    uint32_t wide = worlds->bits > 0 ? 32 / each : widest;
    struct worlds_sight sight = worlds->sight;
    uint32_t lanes = grt_op_power_above(wide, sight.lanes);
    uint64_t groups = (rows + sight.rows - 1) / sight.rows;
    groups += head.whole > 0 ? (worlds->copies + sight.wholes - 1) / sight.wholes : 0;
    const struct grt_range ranges[] = {worlds->state->range, operands[0].range, operands[1].range,
                                       operands[2].range};
    const uint32_t kind = desc->dtype == GRT_F32 ? 0 : desc->dtype == GRT_F16 ? 1 : 2;
    launch(graph, worlds, "worlds_observe", head,
           (const struct grt_spec[WORLDS_SPECS]){{"WG", sight.wg},
                                                 {"LANES", lanes},
                                                 {"KIND", kind},
                                                 {"ROWS", sight.rows},
                                                 {"WHOLES", sight.wholes}},
           groups * sight.wg, ranges, 4);
}

void grt_op_worlds_step(struct grt_graph *graph, struct grt_worlds *worlds,
                        const struct grt_world_step_desc *desc) {
    if (!graph || !worlds || !desc) {
        grt_graph_reject(graph, GRT_INVALID, "step: no %s", worlds ? "desc" : "worlds");
        return;
    }
    uint64_t rows = rows_of(worlds);
    struct operand operands[] = {
        {"control", desc->control, 4},
        {"actions", desc->actions, rows * (worlds->sizes.act > 0 ? worlds->sizes.act : 1)},
        {"rewards", desc->rewards, rows},
        {"ends", desc->ends, rows}};
    if (!check(graph, worlds, "step", operands, 4)) {
        return;
    }
    const struct grt_range ranges[] = {
        worlds->state->range, operands[0].range, worlds->book->range, worlds->totals->range,
        operands[1].range,    operands[2].range, operands[3].range};
    launch(graph, worlds, "worlds_step", head_of(worlds),
           (const struct grt_spec[WORLDS_SPECS]){copies_wg(worlds)}, worlds->copies, ranges, 7);
}

void grt_op_worlds_random(struct grt_graph *graph, struct grt_worlds *worlds,
                          const struct grt_world_random_desc *desc) {
    if (!graph || !worlds || !desc) {
        grt_graph_reject(graph, GRT_INVALID, "random actions: no %s", worlds ? "desc" : "worlds");
        return;
    }
    const struct grt_worlds_sizes *sizes = &worlds->sizes;
    uint64_t rows = rows_of(worlds);
    struct operand operands[] = {
        {"control", desc->control, 4},
        {"mask", desc->mask, sizes->choices > 0 ? rows : 0},
        {"actions", desc->actions, rows * (sizes->act > 0 ? sizes->act : 1)}};
    if (!check(graph, worlds, "random actions", operands, 3)) {
        return;
    }
    const struct worlds_random_params params = {.rows = (uint32_t)rows,
                                                .act = sizes->act,
                                                .choices = sizes->choices,
                                                .stream = desc->stream};
    const struct grt_range ranges[] = {operands[0].range, operands[1].range, operands[2].range};
    uint32_t groups[3];
    grt_op_row_grid(worlds->dev, (rows + FLAT - 1) / FLAT, groups);
    grt_op_launch(graph, grt_kernel_desc(.name = "worlds_random", .specs = {{"WG", FLAT}}), &params,
                  sizeof params, ranges, 3, groups);
    if (desc->advance) {
        const uint32_t by = 1;
        grt_op_launch(graph, grt_kernel_desc(.name = "tick", .specs = {{"WG", 1}}), &by, sizeof by,
                      &operands[0].range, 1, (const uint32_t[3]){1, 1, 1});
    }
}

void grt_op_worlds_totals(struct grt_graph *graph, struct grt_worlds *worlds,
                          struct grt_range out) {
    uint32_t count = worlds ? GRT_WORLD_TOTALS + worlds->sizes.terms : 0;
    struct operand operands[] = {{"out", out, count}};
    if (!check(graph, worlds, "totals", operands, 1)) {
        return;
    }
    const struct worlds_totals_params params = {.copies = worlds->copies};
    const struct grt_range ranges[] = {worlds->totals->range, operands[0].range};
    const uint32_t groups[3] = {count, 1, 1};
    grt_op_launch(graph, grt_kernel_desc(.name = "worlds_totals", .specs = {{"WG", FLAT}}), &params,
                  sizeof params, ranges, 2, groups);
}

void grt_op_worlds_draw(struct grt_graph *graph, struct grt_worlds *worlds, struct grt_range out) {
    uint64_t shapes = worlds ? (uint64_t)worlds->copies * worlds->sizes.shapes : 0;
    struct operand operands[] = {{"out", out, shapes * SHAPE_NUMBERS}};
    if (!check(graph, worlds, "draw", operands, 1)) {
        return;
    }
    if (shapes == 0 || shapes > grt_op_reach(worlds->dev) / SHAPE_NUMBERS) {
        grt_graph_reject(graph, GRT_INVALID, "draw of environment '%s': it has %s shapes",
                         worlds->env->name, shapes == 0 ? "no" : "too many");
        return;
    }
    struct worlds_head head = head_of(worlds);
    head.each = worlds->sizes.shapes;
    const struct grt_range ranges[] = {worlds->state->range, operands[0].range};
    launch(graph, worlds, "worlds_draw", head,
           (const struct grt_spec[WORLDS_SPECS]){{"WG", FLAT}, {NULL, 0}}, shapes, ranges, 2);
}
