// SPDX-License-Identifier: Apache-2.0
// Worlds: copies of an environment in device memory, for learners that act from outside. rollout.h
// runs whole episodes with a small policy inside one kernel; here a learner observes, chooses
// actions with any network, and steps:
//
//     reset     every copy begins an episode
//     observe   state -> a row for each agent of each copy; what is known of the whole; which
//               actions are allowed
//     step      actions -> state, rewards, and how each row ended
//     totals    sums over the episodes that ended
//
// A row is an agent of a copy: row = copy * agents + agent. All four record themselves into graphs;
// nothing returns to the host. A copy whose episode has ended is reset by its next step: that step
// takes no action, and its rows do not count. So the observation behind the last action of an
// episode is there to be valued.
#ifndef GRT_WORLDS_H
#define GRT_WORLDS_H

#include "env.h"
#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_env_value {
    const char *name;  // of a setting of the environment
    double value;
};

struct grt_worlds_desc {
    const struct grt_env_info *env;
    const struct grt_env_value *settings;  // other values than the environment's own
    uint32_t setting_count;
    uint32_t copies;
    uint32_t first;   // number of the first: a copy's episodes follow from its number
    uint32_t phase;   // 1 ...; 0 means 1
    uint32_t length;  // steps after which an episode is cut; 0: the environment's
    bool once;        // a copy plays one episode and then stays as it is: all its rows are idle
};
#define grt_worlds_desc(...) GRT_DESC(struct grt_worlds_desc, __VA_ARGS__)

struct grt_worlds_sizes {
    uint32_t agents;   // of a copy
    uint32_t obs;      // numbers of an agent's observation
    uint32_t global;   // numbers of the observation of the whole copy; 0: there is none
    uint32_t act;      // numbers of a continuous action in [-1, 1]; 0: actions are discrete
    uint32_t choices;  // of a discrete action, at most 32; 0: actions are continuous
    uint32_t words;    // of a copy's state, 4 bytes each
    uint32_t terms;    // that are added up for reports
    uint32_t shapes;   // that a copy is drawn with; 0: it is not, or its state is held in registers
};

// How a row ended: bits.
#define GRT_ROW_LAST 1u  // nothing after this row belongs to the same episode
#define GRT_ROW_CUT 2u   // by time: what the next observation is worth still counts
#define GRT_ROW_IDLE                                                                               \
    4u  // the row does not count: its agent had ended before, or the copy was reset

struct grt_worlds;

// NULL with a sentence: a setting that the environment does not have, a value outside its range,
// sizes that do not fit together (GRT_CONFIG).
GRT_API struct grt_worlds *grt_worlds_create(struct grt_dev *dev,
                                             const struct grt_worlds_desc *desc);
GRT_API void grt_worlds_destroy(struct grt_worlds **worlds);
GRT_API const struct grt_worlds_sizes *grt_worlds_sizes(const struct grt_worlds *worlds);
GRT_API uint32_t grt_worlds_copies(const struct grt_worlds *worlds);
GRT_API uint32_t grt_worlds_first(const struct grt_worlds *worlds);
// Steps after which an episode is cut.
GRT_API uint32_t grt_worlds_length(const struct grt_worlds *worlds);
// The name of the i-th term; NULL past the last.
GRT_API const char *grt_worlds_term(const struct grt_worlds *worlds, uint32_t i);
// The name of the i-th setting, and its value here; NULL past the last.
GRT_API const char *grt_worlds_setting(const struct grt_worlds *worlds, uint32_t i, double *value);
// Declares state and totals, in group "worlds"; the ops can be recorded when the plan is allocated.
// The i-th tensor that a checkpoint keeps is the i-th of that group.
GRT_API void grt_worlds_declare(struct grt_worlds *worlds, struct grt_plan *plan);

// `control` is a struct grt_rng_state; its seed[0] makes the episodes.
GRT_API void grt_op_worlds_reset(struct grt_graph *graph, struct grt_worlds *worlds,
                                 struct grt_range control);

// A number that is NaN or infinite is seen as 0.
struct grt_observe_desc {
    struct grt_range obs;     // [rows][pitch]; no buffer: not wanted
    struct grt_range global;  // [copies][global_pitch]; no buffer: not wanted
    enum grt_dtype dtype;     // of both: f32, f16 or bf16
    // Numbers from one row to the next, zeros behind its own. 0: as many as it has. A row of 16-bit
    // numbers that would end inside 4 bytes has one more.
    uint32_t pitch, global_pitch;
    struct grt_range mask;  // u32 [rows], bit i: action i is allowed; discrete actions only
};
GRT_API void grt_op_worlds_observe(struct grt_graph *graph, struct grt_worlds *worlds,
                                   const struct grt_observe_desc *desc);

// A reward that is NaN or infinite ends the episode and counts for nothing.
struct grt_world_step_desc {
    struct grt_range control;
    // u32 [rows], past the last counts as 0; or f32 [rows][act], clamped to [-1, 1]
    struct grt_range actions;
    struct grt_range rewards;  // out: f32 [rows]
    struct grt_range ends;     // out: u32 [rows], GRT_ROW_*
};
GRT_API void grt_op_worlds_step(struct grt_graph *graph, struct grt_worlds *worlds,
                                const struct grt_world_step_desc *desc);

// Random actions: each allowed choice with the same probability, or numbers in [-1, 1).
struct grt_world_random_desc {
    struct grt_range control;
    struct grt_range mask;     // u32 [rows]; discrete actions only
    struct grt_range actions;  // out, as for the step
    uint32_t stream;           // tells apart the draws of one step of `control`
    bool advance;              // add 1 to that step afterwards
};
GRT_API void grt_op_worlds_random(struct grt_graph *graph, struct grt_worlds *worlds,
                                  const struct grt_world_random_desc *desc);

// Sums over the episodes that ended since the last call, f32: episodes, their rewards (mean over
// agents), their steps, then the terms. `out` has GRT_WORLD_TOTALS + terms numbers.
#define GRT_WORLD_TOTALS 3
GRT_API void grt_op_worlds_totals(struct grt_graph *graph, struct grt_worlds *worlds,
                                  struct grt_range out);

// ---- drawing ----

#define GRT_DRAWN_KINDS(X)                                                                         \
    X(NONE)   /* nothing is drawn */                                                               \
    X(LINE)   /* from (x0, y0) to (x1, y1), `size` wide */                                         \
    X(CIRCLE) /* around (x0, y0), of radius `size` */                                              \
    X(BOX)    /* from (x0, y0) to (x1, y1) */
#define GRT_DRAWN_ROLES(X)                                                                         \
    X(AREA)  /* where all happens */                                                               \
    X(BLOCK) /* what is in the way */                                                              \
    X(GOAL)  /* where somebody is to go */                                                         \
    X(AGENT) /* who goes there, and leaves a track */

enum grt_drawn_kind {
#define X(name) GRT_DRAWN_##name,
    GRT_DRAWN_KINDS(X)
#undef X
};
enum grt_drawn_role {
#define X(name) GRT_DRAWN_##name,
    GRT_DRAWN_ROLES(X)
#undef X
};

// In the environment's own unit, y upwards.
struct grt_drawn_shape {
    float kind, role;  // of the enums
    float of;          // the agent whose colour it has; -1: none
    float done;        // 1: the goal is reached, or the agent's part has ended
    float x0, y0, x1, y1, size;
};

// How the copies look now: struct grt_drawn_shape [copies][shapes].
GRT_API void grt_op_worlds_draw(struct grt_graph *graph, struct grt_worlds *worlds,
                                struct grt_range out);

#ifdef __cplusplus
}
#endif
#endif
