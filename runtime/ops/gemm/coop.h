// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: what the products through Vulkan's cooperative matrices share, see
// shaders/gemm/lib/gemm_coop.k.
#ifndef GRT_GEMM_COOP_H
#define GRT_GEMM_COOP_H

#include "case.h"

// A tile of c.
struct coop_tile {
    uint32_t bm, bn, bk;
    uint32_t wm, wn;  // of a subgroup
    uint32_t deep;    // the pipelined loop, for aligned operands
};
// The tiles that a variant chooses from, and the settings that say what they cost.
struct coop_tiles {
    const struct coop_tile *tiles;
    uint32_t count;
    enum grt_profile_key fit, step, step_t, ends;  // step_t: where a is transposed
};

// The instruction for matrices of `in` summed in `sums`, m << 16 | n << 8 | k: 16 x 16 x 16, or the
// first that fits; 0: none.
uint32_t coop_shape(const struct grt_dev_info *info, enum grt_dtype in, enum grt_dtype sums);
// Lanes of a workgroup.
uint32_t coop_lanes(const struct grt_dev_info *info, const struct coop_tile *t);
// Whether a tile is made of whole subgroups and instructions, with no more lanes and columns of
// tiles than the device has.
bool coop_fits(const struct grt_dev_info *info, const struct coop_tile *t, uint32_t shape);
// The tile `given`, the profile's, where it names one (bm is not 0) and that is possible; else the
// one of `from` whose rounds take least; bm 0: none is possible.
typedef bool coop_possible(const struct gemm_case *g, const struct coop_tile *t, uint32_t shape);
struct coop_tile coop_choose(const struct gemm_case *g, struct coop_tile given,
                             const struct coop_tiles *from, uint32_t shape, coop_possible *may);
// For settings, whose numbers begin with BM BN BK WM WN: lanes of a workgroup, that of a tile, and
// the sentence for one that does not run, false.
uint32_t coop_setting_lanes(const uint32_t *v);
void coop_setting_of(const struct coop_tile *t, uint32_t *v);
bool coop_setting_refused(const struct grt_dev_info *info, const uint32_t *v, char *why);
// Dispatches a kernel of gemm_coop.k; `more` are constants that not all of them have.
void coop_dispatch(struct grt_graph *graph, const struct gemm_case *g, const char *kernel,
                   const struct coop_tile *t, uint32_t shape, const struct grt_spec *more,
                   uint32_t more_count);

#endif
