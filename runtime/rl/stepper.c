// SPDX-License-Identifier: Apache-2.0
// Three graphs, each ending with the copies that bring what is seen to the host:
//
//     begin   seed -> reset ---------.
//     step    actions -> step -------+-> observe -> readback
//     look    ------------------------'
#include "gpurt/stepper.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "shaders/host.h"
#include "shaders/rl/worlds_params.k"
#include "worlds_parts.h"

enum part { OBS, GLOBAL, MASK, REWARDS, ENDS, PARTS };

struct grt_stepper {
    struct grt_dev *dev;
    struct grt_worlds *worlds;
    struct grt_plan *plan;
    struct grt_tensor *control, *actions;
    struct grt_tensor *parts[PARTS];  // NULL: the environment has none
    struct grt_buf *in;               // upload: the seed, then the actions
    struct grt_buf *out;              // readback: the parts, one behind the other
    struct grt_graph *begin, *step, *look;
    bool begun;
    struct grt_stepper_view view;
};

#define SEED_BYTES sizeof(struct grt_rng_state)

static struct grt_tensor *declare(struct grt_stepper *s, const char *label, uint64_t rows,
                                  uint64_t width) {
    if (rows * width == 0) {
        return NULL;
    }
    return grt_plan_tensor(s->plan, grt_tensor_desc(.label = label, .group = "stepper",
                                                    .dtype = GRT_U32, .shape = {rows, width}));
}

static bool allocate(struct grt_stepper *s) {
    const struct grt_worlds_sizes *sizes = &s->view.sizes;
    uint64_t rows = s->view.rows, bytes = 0;
    grt_worlds_declare(s->worlds, s->plan);
    s->control = declare(s, "control", 1, SEED_BYTES / 4);
    s->actions = declare(s, "actions", rows, sizes->act > 0 ? sizes->act : 1);
    s->parts[OBS] = declare(s, "obs", rows, sizes->obs);
    s->parts[GLOBAL] = declare(s, "global", s->view.copies, sizes->global);
    s->parts[MASK] = declare(s, "mask", rows, sizes->choices > 0);
    s->parts[REWARDS] = declare(s, "rewards", rows, 1);
    s->parts[ENDS] = declare(s, "ends", rows, 1);
    if (!grt_plan_alloc(s->plan)) {
        return false;
    }
    for (int i = 0; i < PARTS; i++) {
        bytes += s->parts[i] ? grt_tensor_bytes(s->parts[i]) : 0;
    }
    s->in = grt_buf_create(s->dev, grt_buf_desc(.size = SEED_BYTES + grt_tensor_bytes(s->actions),
                                                .kind = GRT_BUF_UPLOAD, .label = "stepper"));
    s->out = grt_buf_create(
        s->dev, grt_buf_desc(.size = bytes, .kind = GRT_BUF_READBACK, .label = "stepper"));
    return s->in && s->out;
}

static void show(struct grt_stepper *s) {
    char *in = grt_buf_host(s->in), *out = grt_buf_host(s->out);
    void *at[PARTS] = {NULL};
    memset(in, 0, SEED_BYTES + grt_tensor_bytes(s->actions));
    for (int i = 0; i < PARTS; i++) {
        uint64_t bytes = s->parts[i] ? grt_tensor_bytes(s->parts[i]) : 0;
        at[i] = bytes > 0 ? out : NULL;
        memset(out, 0, bytes);
        out += bytes;
    }
    if (s->view.sizes.act > 0) {
        s->view.actions = (void *)(in + SEED_BYTES);
    } else {
        s->view.choices = (void *)(in + SEED_BYTES);
    }
    s->view.obs = at[OBS];
    s->view.global = at[GLOBAL];
    s->view.mask = at[MASK];
    s->view.rewards = at[REWARDS];
    s->view.ends = at[ENDS];
}

static struct grt_range range_of(const struct grt_tensor *tensor) {
    return tensor ? tensor->range : (struct grt_range){0};
}

static void record_seen(struct grt_stepper *s, struct grt_graph *graph) {
    uint64_t offset = 0;
    grt_op_worlds_observe(graph, s->worlds,
                          &(struct grt_observe_desc){.obs = range_of(s->parts[OBS]),
                                                     .global = range_of(s->parts[GLOBAL]),
                                                     .mask = range_of(s->parts[MASK])});
    for (int i = 0; i < PARTS; i++) {
        if (s->parts[i]) {
            uint64_t bytes = grt_tensor_bytes(s->parts[i]);
            struct grt_range from = s->parts[i]->range;
            from.size = bytes;
            grt_graph_copy(graph, (struct grt_range){s->out, offset, bytes}, from);
            offset += bytes;
        }
    }
}

static struct grt_graph *record(struct grt_stepper *s, const char *label) {
    struct grt_graph *graph = grt_graph_create(s->dev, label);
    if (!graph) {
        return NULL;
    }
    const struct grt_range seed = {s->in, 0, SEED_BYTES};
    const struct grt_range actions = {s->in, SEED_BYTES, grt_tensor_bytes(s->actions)};
    if (strcmp(label, "begin") == 0) {
        grt_graph_copy(graph, s->control->range, seed);
        grt_graph_fill(graph, s->parts[REWARDS]->range, 0);
        grt_graph_fill(graph, s->parts[ENDS]->range, 0);
        grt_op_worlds_reset(graph, s->worlds, s->control->range);
    } else if (strcmp(label, "step") == 0) {
        grt_graph_copy(graph, s->actions->range, actions);
        grt_op_worlds_step(graph, s->worlds,
                           &(struct grt_world_step_desc){.control = s->control->range,
                                                         .actions = s->actions->range,
                                                         .rewards = s->parts[REWARDS]->range,
                                                         .ends = s->parts[ENDS]->range});
    }
    record_seen(s, graph);
    if (!grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

struct grt_stepper *grt_stepper_create(struct grt_dev *dev, const struct grt_worlds_desc *desc) {
    struct grt_worlds *worlds = grt_worlds_create(dev, desc);
    if (!worlds) {
        return NULL;
    }
    struct grt_stepper *s = calloc(1, sizeof *s);
    if (!s) {
        grt_worlds_destroy(&worlds);
        grt_fail(GRT_NO_MEMORY, "no host memory for a stepper");
        return NULL;
    }
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(worlds);
    s->dev = dev;
    s->worlds = worlds;
    s->view = (struct grt_stepper_view){.copies = desc->copies,
                                        .rows = desc->copies * sizes->agents,
                                        .length = grt_worlds_length(worlds),
                                        .sizes = *sizes};
    s->plan = grt_plan_create(dev);
    if (!s->plan || !allocate(s)) {
        goto undo;
    }
    show(s);
    s->begin = record(s, "begin");
    s->step = s->begin ? record(s, "step") : NULL;
    s->look = s->step ? record(s, "look") : NULL;
    if (!s->look) {
        goto undo;
    }
    return s;
undo:
    grt_stepper_destroy(&s);
    return NULL;
}

void grt_stepper_destroy(struct grt_stepper **stepper) {
    struct grt_stepper *s = stepper ? *stepper : NULL;
    if (!s) {
        return;
    }
    grt_graph_destroy(&s->begin);
    grt_graph_destroy(&s->step);
    grt_graph_destroy(&s->look);
    grt_buf_destroy(&s->in);
    grt_buf_destroy(&s->out);
    grt_plan_destroy(&s->plan);
    grt_worlds_destroy(&s->worlds);
    free(s);
    *stepper = NULL;
}

const struct grt_stepper_view *grt_stepper_view(const struct grt_stepper *stepper) {
    return stepper ? &stepper->view : NULL;
}

static bool there(const struct grt_stepper *s, const char *call) {
    return s || grt_fail(GRT_INVALID, "%s: no stepper", call);
}

static bool run(struct grt_stepper *s, struct grt_graph *graph) {
    return grt_graph_run(graph) && grt_dev_wait(s->dev);
}

bool grt_stepper_reset(struct grt_stepper *s, uint32_t seed) {
    if (!there(s, "reset")) {
        return false;
    }
    const struct grt_rng_state control = {.seed = {seed, 0}};
    memcpy(grt_buf_host(s->in), &control, sizeof control);
    s->begun = run(s, s->begin);
    return s->begun;
}

bool grt_stepper_step(struct grt_stepper *s) {
    if (!there(s, "step")) {
        return false;
    }
    if (!s->begun) {
        return grt_fail(GRT_INVALID, "environment '%s': a step before the first reset",
                        s->worlds->env->name);
    }
    return run(s, s->step);
}

static bool whole_state(const struct grt_stepper *s, const char *call, const void *state,
                        uint64_t words) {
    if (!there(s, call)) {
        return false;
    }
    uint64_t want = (uint64_t)s->view.sizes.words * s->view.copies;
    if (!state || words != want) {
        return grt_fail(GRT_INVALID,
                        "environment '%s': %llu words of states; %u copies have %u each, %llu in "
                        "all",
                        s->worlds->env->name, (unsigned long long)(state ? words : 0),
                        s->view.copies, s->view.sizes.words, (unsigned long long)want);
    }
    return true;
}

bool grt_stepper_state(struct grt_stepper *s, uint32_t *state, uint64_t words) {
    if (!whole_state(s, "state", state, words)) {
        return false;
    }
    if (!s->begun) {
        return grt_fail(GRT_INVALID, "environment '%s': no states before the first reset",
                        s->worlds->env->name);
    }
    struct grt_range range = s->worlds->state->range;
    return grt_buf_read(range.buf, range.offset, state, words * 4);
}

bool grt_stepper_set_state(struct grt_stepper *s, const uint32_t *state, uint64_t words) {
    if (!whole_state(s, "set state", state, words) || (!s->begun && !grt_stepper_reset(s, 0))) {
        return false;
    }
    // Time, end and return of the episode begin anew; which one it is stays.
    _Static_assert(WORLDS_EPISODE == 0 && WORLDS_BOOK == 4, "the book");
    struct grt_range at = s->worlds->state->range, book = s->worlds->book->range;
    uint64_t row = 4ull * s->view.copies;
    void *zeros = calloc(3, row);
    bool ok = zeros || grt_fail(GRT_NO_MEMORY, "no host memory for states");
    ok = ok && grt_buf_write(at.buf, at.offset, state, words * 4) &&
         grt_buf_write(book.buf, book.offset + row, zeros, 3 * row) && run(s, s->look);
    free(zeros);
    return ok;
}
