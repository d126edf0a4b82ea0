// SPDX-License-Identifier: Apache-2.0
// Tensor plans: declare every tensor with its shape, ask what it costs, then allocate all at once.
//
//     group "params":  | w0 | b0 | w1 | b1 |   one buffer, tensors packed at the device's alignment
//     group "grads":   | w0 | b0 | w1 | b1 |   the same order, so element i of one group meets
//     group "acts":    | x | h0 | h1 | y |     element i of the other
//
// A group is one buffer (several only where the device cannot make one so large), so an optimizer
// is one kernel over one range. The peak is known before anything is allocated: "does not fit" is
// an answer with numbers in it.
#ifndef GRT_PLAN_H
#define GRT_PLAN_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_MAX_RANK 5  // a batch of samples of rank 4

// Row-major. Plans fill it; ops read it.
struct grt_tensor {
    struct grt_range range;  // buf is NULL until the plan is allocated
    enum grt_dtype dtype;
    uint32_t rank;
    uint64_t shape[GRT_MAX_RANK];
    char label[48];
};

GRT_API uint64_t grt_tensor_count(const struct grt_tensor *tensor);
GRT_API uint64_t grt_tensor_bytes(const struct grt_tensor *tensor);

struct grt_tensor_desc {
    const char *label;
    const char *group;  // NULL: "tensors"
    enum grt_dtype dtype;
    uint64_t shape[GRT_MAX_RANK];  // ends at the first 0; all 0 is a scalar
};
#define grt_tensor_desc(...) GRT_DESC(struct grt_tensor_desc, __VA_ARGS__)

struct grt_plan;

GRT_API struct grt_plan *grt_plan_create(struct grt_dev *dev);
GRT_API void grt_plan_destroy(struct grt_plan **plan);
// The tensor belongs to the plan and stays where it is. Cannot fail: the first mistake sticks and
// grt_plan_alloc() reports it; the tensor returned then has no elements. NULL only when out of
// host memory.
GRT_API struct grt_tensor *grt_plan_tensor(struct grt_plan *plan,
                                           const struct grt_tensor_desc *desc);
// Tensors of a group that share memory, because no two sets of them are needed at once: what is
// declared into the group between begin and next, or two nexts, or next and end, lies where the
// other sets lie. May be nested.
struct grt_plan_share {
    uint32_t slab;
    uint64_t base, high;
};
GRT_API struct grt_plan_share grt_plan_share_begin(struct grt_plan *plan, const char *group);
GRT_API void grt_plan_share_next(struct grt_plan *plan, struct grt_plan_share *share);
GRT_API void grt_plan_share_end(struct grt_plan *plan, struct grt_plan_share *share);
// Where the next tensor of a group will lie.
struct grt_plan_place {
    uint32_t slab;
    uint64_t offset;
};
GRT_API struct grt_plan_place grt_plan_place(const struct grt_plan *plan, const char *group);
// A tensor over those of its group that were declared from `from` on, because it is needed only
// when they are not: as late there as it fits, and apart from `beside` (NULL: from none). NULL:
// they are too small, which is no mistake, or there is no host memory.
GRT_API struct grt_tensor *grt_plan_over(struct grt_plan *plan, const struct grt_tensor_desc *desc,
                                         struct grt_plan_place from,
                                         const struct grt_tensor *beside);
// Bytes that grt_plan_alloc() will take, in all or of one group.
GRT_API uint64_t grt_plan_bytes(const struct grt_plan *plan, const char *group);
// Allocates every group, or nothing. Refuses with the numbers when it exceeds the device's budget.
GRT_API bool grt_plan_alloc(struct grt_plan *plan);
// The i-th tensor of a group in the order of their declaration; NULL past the last.
GRT_API const struct grt_tensor *grt_plan_at(const struct grt_plan *plan, const char *group,
                                             uint32_t i);
// The whole range of a group, for kernels that run over all its tensors; buf NULL when there is no
// such group or it had to be split.
GRT_API struct grt_range grt_plan_group(const struct grt_plan *plan, const char *group);

#ifdef __cplusplus
}
#endif
#endif
