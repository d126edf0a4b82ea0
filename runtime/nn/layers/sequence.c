// SPDX-License-Identifier: Apache-2.0
// Modules one behind the other.
//
//     x --part 0--> h0 --part 1--> h1 --part 2--> y          h kept for backward
//     dx <-part 0-- d0 <-part 1-- d1 <-part 2-- dy           d alternate in two tensors, or d0 is
//                                                            written over d1 where part 1 can
//
// Computing again (recompute): the parts are cut into segments of about the root of their number.
// What a segment ends with is kept; all else that its parts declare lies where that of the other
// segments lies, and is filled again, by the same forward, before backward goes through the
// segment. The last segment is still as forward left it.
//
//     x --[part 0, 1, 2]--> h2 --[part 3, 4, 5]--> h5 --[part 6, 7]--> y          h2 and h5 kept
//
// When a part makes the gradient of its h, what was declared behind the part is not read any more:
// the gradient lies there if it fits (over). So does an h that no backward reads: it is gone when
// the next part has taken it.
//
// A part that is a view has the memory of its input. In inference two tensors take turns for h as
// well: a part changes turns, a view does not.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "batch_norm.h"
#include "nn/layer_ops.h"
#include "pointwise.h"
#include "sequence.h"

// Whether the gradient of what part i takes is written over that of what it gives.
static bool is_in_place(const struct grt_sequence *s, uint32_t i) {
    const struct grt_module *part = s->parts[i];
    return part->is_view || (part->dx_on_dy && part->owns_dy);
}

// Which of the two tensors what part i gives, or its gradient, has its turn in.
static uint32_t turn_of(const struct grt_sequence *s, uint32_t i) {
    uint32_t turn = 0;
    for (uint32_t k = 0; k <= i; k++) {
        turn ^= !is_in_place(s, k);
    }
    return turn;
}

// The output whose gradient's memory that of output i has; the last one: that is the caller's.
static uint32_t owner_of(const struct grt_sequence *s, uint32_t i) {
    while (i + 1 < s->count && is_in_place(s, i + 1)) {
        i++;
    }
    return i;
}

// Memory for the gradient of output i, or for the output itself where it is not kept.
static const struct grt_tensor *turn(const struct grt_sequence *s, uint32_t i) {
    uint32_t owner = owner_of(s, i);
    return s->over[owner] ? s->over[owner] : s->turns[turn_of(s, i)];
}

// A batch norm computes the activation behind it, which then is a view. The last part is not: its
// memory is the caller's.
static void join(struct grt_sequence *s) {
    for (uint32_t i = 0; i + 2 < s->count; i++) {
        enum grt_act act;
        if (grt_activation_of(s->parts[i + 1], &act) && grt_batch_norm_takes(s->parts[i], act)) {
            struct grt_module *view = s->parts[i + 1];
            view->is_view = view->forgets_x = view->forgets_y = true;
        }
    }
}

// A view gives no memory to keep, so a segment does not end with one. Few parts would save nothing.
static void cut(struct grt_sequence *s, const struct grt_net *net) {
    uint32_t length = (uint32_t)ceil(sqrt((double)s->count)), begun = 0;
    for (uint32_t i = 1; net->recompute && !net->inference && s->count > 3 && i < s->count; i++) {
        bool next = i - begun >= length && !s->parts[i - 1]->is_view;
        begun = next ? i : begun;
        s->segment[i] = s->segment[i - 1] + next;
    }
}

static bool ends_segment(const struct grt_sequence *s, uint32_t i) {
    return i + 1 < s->count && s->segment[i + 1] != s->segment[i];
}

// What lies before a part that is no view has a gradient in memory of the sequence.
static void give_gradients(struct grt_sequence *s, const struct grt_net *net) {
    bool owned = false;
    for (uint32_t i = s->count; i-- > 0;) {
        s->parts[i]->owns_dy = owned && !net->inference;
        owned = owned || !s->parts[i]->is_view;
    }
}

// Whether no backward reads what part i gives.
static bool is_forgotten(const struct grt_sequence *s, const struct grt_net *net, uint32_t i) {
    uint32_t next = i + 1;
    bool forgotten = !net->recompute && s->parts[i]->forgets_y;
    for (; next < s->count && s->parts[next]->is_view; next++) {
        forgotten = forgotten && s->parts[next]->forgets_x && s->parts[next]->forgets_y;
    }
    // The next part's gradient in the same memory would lay what it gives over what it takes.
    return forgotten && next < s->count && s->parts[next]->forgets_x && owner_of(s, i) + 1 == next;
}

// Whether an output that is not kept lies where the gradient of this one will.
static bool holds_output(const struct grt_sequence *s, uint32_t owner) {
    bool holds = false;
    for (uint32_t i = owner + 1; i-- > 0 && owner_of(s, i) == owner;) {
        holds = holds || (!s->h[i] && !s->parts[i]->is_view);
    }
    return holds;
}

// Where a segment's last output is kept: beside the activations, which segments share.
static struct grt_tensor *keep(struct grt_net *net, const char *name,
                               const struct grt_shape *shape) {
    struct grt_tensor_desc desc = {
        .label = name, .group = "checkpoints", .dtype = net->dtype, .shape = {net->rows}};
    memcpy(desc.shape + 1, shape->dim, shape->rank * sizeof *shape->dim);
    return grt_net_tensor(net, &desc);
}

static void part_prefix(const struct grt_sequence *s, uint32_t i, const char *prefix,
                        char name[GRT_PARAM_NAME]) {
    char number[12];
    snprintf(number, sizeof number, "%u", i);
    grt_module_prefix(s->parts[i], prefix, number, name);
}

// Memory for gradients, and in inference for outputs: over activations, or two tensors in turn.
static void declare_turns(struct grt_sequence *s, struct grt_net *net, const char *prefix) {
    uint64_t widest[2] = {0}, most = 0;
    const struct grt_tensor *above = NULL;
    for (uint32_t i = s->count - 1; i-- > 0;) {
        uint64_t count = grt_shape_count(&s->parts[i]->out);
        uint32_t owner = owner_of(s, i), number = turn_of(s, i);
        most = owner_of(s, i + 1) == owner && most > count ? most : count;
        if (i > 0 && owner_of(s, i - 1) == owner) {
            continue;  // this one has the same memory
        }
        char label[48];
        snprintf(label, sizeof label, "%.28sturn of %u", prefix, owner);
        if (!net->inference && !net->recompute && owner + 1 < s->count) {
            s->over[owner] =
                grt_plan_over(net->plan,
                              grt_tensor_desc(.label = label, .group = "acts", .dtype = net->dtype,
                                              .shape = {net->rows, most}),
                              s->behind[owner + 1], above);
        }
        above = s->over[owner];
        if (!above && (net->inference || owner + 1 < s->count)) {
            widest[number] = most > widest[number] ? most : widest[number];
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (widest[i] > 0) {
            s->turns[i] = grt_net_turn(net, prefix, i == 0 ? "turn0" : "turn1",
                                       &(struct grt_shape){1, {widest[i]}});
        }
    }
}

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct grt_sequence *s = (struct grt_sequence *)module;
    struct grt_shape shape = *in;
    snprintf(s->prefix, sizeof s->prefix, "%s", prefix);
    join(s);
    cut(s, net);
    give_gradients(s, net);
    struct grt_plan_share share = grt_plan_share_begin(net->plan, "acts");
    struct grt_plan_share turns = grt_plan_share_begin(net->plan, "turns");
    for (uint32_t i = 0; i < s->count; i++) {
        char name[GRT_PARAM_NAME];
        part_prefix(s, i, prefix, name);
        shape = grt_module_declare(s->parts[i], net, name, &shape);
        if (shape.rank == 0) {
            return shape;
        }
        grt_plan_share_next(net->plan, &turns);
        struct grt_plan_place here = grt_plan_place(net->plan, "acts");
        if (i + 1 < s->count) {
            if (ends_segment(s, i)) {
                s->h[i] = keep(net, name, &shape);
                grt_plan_share_next(net->plan, &share);
            } else if (!net->inference && !s->parts[i]->is_view && !is_forgotten(s, net, i)) {
                s->h[i] = grt_net_activation(net, name, "y", &shape);
            }
        }
        bool over_y = i > 0 && s->parts[i]->forgets_y && !holds_output(s, i - 1);
        s->behind[i] = over_y ? here : grt_plan_place(net->plan, "acts");
    }
    grt_plan_share_end(net->plan, &share);
    grt_plan_share_end(net->plan, &turns);
    declare_turns(s, net, prefix);
    return shape;
}

// `rows` samples of a shape, in the memory of a tensor.
static struct grt_tensor view(const struct grt_tensor *memory, uint64_t rows,
                              const struct grt_shape *shape) {
    struct grt_tensor t = *memory;
    t.rank = 1 + shape->rank;
    memset(t.shape, 0, sizeof t.shape);
    t.shape[0] = rows;
    for (uint32_t i = 0; i < shape->rank; i++) {
        t.shape[1 + i] = shape->dim[i];
    }
    t.range.size = grt_tensor_bytes(&t);
    return t;
}

// What part i gives.
static struct grt_tensor output(const struct grt_sequence *s, uint32_t i,
                                const struct grt_tensor *x, const struct grt_tensor *y) {
    uint64_t rows = x->shape[0];
    if (i + 1 == s->count) {
        return *y;
    }
    if (s->parts[i]->is_view) {
        struct grt_tensor from = i == 0 ? *x : output(s, i - 1, x, y);
        return view(&from, rows, &s->parts[i]->out);
    }
    return view(s->h[i] ? s->h[i] : turn(s, i), rows, &s->parts[i]->out);
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    struct grt_sequence *s = (struct grt_sequence *)module;
    struct grt_tensor from = *x;
    for (uint32_t i = 0; i < s->count; i++) {
        struct grt_tensor to = output(s, i, x, y);
        grt_module_forward(s->parts[i], pass, &from, &to);
        if (!s->parts[i]->has_parts && !s->parts[i]->is_view) {
            char name[GRT_PARAM_NAME];
            part_prefix(s, i, s->prefix, name);
            grt_pass_saw(pass, &to, "activations of %.*s (%s)", (int)strlen(name) - 1, name,
                         s->parts[i]->fns->kind);
        }
        from = to;
    }
}

// Fills what the segment that part `last` ends shares with others.
static void again(const struct grt_sequence *s, const struct grt_pass *pass,
                  const struct grt_tensor *x, uint32_t last) {
    struct grt_pass repeat = *pass;
    const struct grt_tensor unused = *x;
    uint32_t i = last;
    repeat.again = true;
    repeat.saw = NULL;
    while (i > 0 && s->segment[i - 1] == s->segment[last]) {
        i--;
    }
    for (; i <= last; i++) {
        struct grt_tensor from = i == 0 ? *x : output(s, i - 1, x, &unused);
        struct grt_tensor to = output(s, i, x, &unused);
        grt_module_forward(s->parts[i], &repeat, &from, &to);
    }
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    struct grt_sequence *s = (struct grt_sequence *)module;
    const struct grt_tensor unused = *dy;
    struct grt_tensor above = *dy;
    for (uint32_t i = s->count; i-- > 0;) {
        struct grt_module *part = s->parts[i];
        if (ends_segment(s, i)) {
            again(s, pass, x, i);
        }
        struct grt_tensor from = i == 0 ? *x : output(s, i - 1, x, &unused), below = {0};
        if (i > 0) {
            below = view(is_in_place(s, i) ? &above : turn(s, i - 1), x->shape[0], &part->in);
        } else if (dx) {
            below = *dx;
        }
        grt_module_backward(part, pass, &from, &above, i > 0 || dx ? &below : NULL,
                            i == 0 && add_dx);
        above = below;
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct grt_sequence *s = (const struct grt_sequence *)module;
    for (uint32_t i = 0; i < s->count; i++) {
        x = grt_module_onnx(s->parts[i], to, x);
    }
    return x;
}

static void destroy(struct grt_module *module) {
    struct grt_sequence *s = (struct grt_sequence *)module;
    for (uint32_t i = 0; i < s->count; i++) {
        grt_module_destroy(&s->parts[i]);
    }
    free(s->parts);
    free(s->h);
    free(s->over);
    free(s->behind);
    free(s->segment);
    free(s);
}

static const struct grt_module_fns sequence_fns = {"sequence", declare, forward,
                                                   backward,   destroy, onnx};

const struct grt_sequence *grt_sequence_of(const struct grt_module *module) {
    return module->fns == &sequence_fns ? (const struct grt_sequence *)module : NULL;
}

struct grt_module *grt_sequence_create(struct grt_module **parts, uint32_t count) {
    bool whole = parts && count > 0;
    for (uint32_t i = 0; whole && i < count; i++) {
        whole = parts[i] != NULL;
    }
    struct grt_sequence *s = whole ? calloc(1, sizeof *s) : NULL;
    if (s) {
        s->parts = calloc(count, sizeof(struct grt_module *));
        s->h = calloc(count, sizeof(struct grt_tensor *));
        s->over = calloc(count, sizeof(struct grt_tensor *));
        s->behind = calloc(count, sizeof *s->behind);
        s->segment = calloc(count, sizeof *s->segment);
    }
    if (!s || !s->parts || !s->h || !s->over || !s->behind || !s->segment) {
        grt_fail(whole ? GRT_NO_MEMORY : GRT_INVALID, "sequence: %s",
                 whole ? "no host memory for a module" : "no parts, or one is missing");
        for (uint32_t i = 0; parts && i < count; i++) {
            grt_module_destroy(&parts[i]);
        }
        if (s) {
            destroy(&s->base);
        }
        return NULL;
    }
    memcpy(s->parts, parts, count * sizeof(struct grt_module *));
    s->count = count;
    s->base.fns = &sequence_fns;
    s->base.has_parts = true;
    s->base.f32_output = parts[count - 1]->f32_output;
    s->base.adds_dx = parts[0]->adds_dx;
    s->base.wide_rows = parts[0]->wide_rows;
    return &s->base;
}
