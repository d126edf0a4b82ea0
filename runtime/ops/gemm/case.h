// SPDX-License-Identifier: Apache-2.0
// Inside runtime/ops/gemm/: one product with all that was checked and derived, and the table of
// variants.
#ifndef GRT_GEMM_CASE_H
#define GRT_GEMM_CASE_H

#include "gpurt/gemm.h"
#include "device/internal.h"
#include "shaders/host.h"
#include "cl/nvidia/lib/wgmma_limits.k"
#include "shaders/gemm/lib/gemm_params.k"
#include "tunables.h"

struct gemm_case {
    struct grt_dev *dev;
    const struct grt_gemm_desc *desc;
    uint32_t m, n, k, batch;
    enum grt_dtype in, out;
    struct gemm_params params;
    bool gaps;      // between rows or matrices: what a variant reads beyond a row is not its own
    bool zeros;     // but those of a and b are filled with zeros
    uint64_t room;  // bytes of scratch
    // In a check: the product that it stands for, whose tile it is to have; else NULL.
    const struct gemm_case *stands_for;
};
// The product that a tile is chosen for.
const struct gemm_case *gemm_meant(const struct gemm_case *g);

// A way to do a product. Rows stand in order of preference, and the first that is usable and pays
// does it: plain at the latest. One that is named only needs to be usable, and tests and
// measurements see all that are.
struct gemm_variant {
    const char *name;
    // Whether it can do the product on this device.
    bool (*usable)(const struct gemm_case *g);
    // Whether it should, before the rows that follow; NULL: always. Asked of products that it
    // cannot do, too.
    bool (*pays)(const struct gemm_case *g);
    // Records the product; a failure is rejected to the graph.
    void (*record)(struct grt_graph *graph, const struct gemm_case *g);
    bool fills;           // keeps the device busy without split-K
    bool gaps;            // what lies between rows and matrices changes nothing, and is not changed
    bool zero_gaps;       // the same where it is zeros between rows of a and b
    bool made_of_others;  // another variant multiplies, and has its own check
    // Microseconds that a product is expected to take, the launch aside; NULL: nobody knows.
    double (*time)(const struct gemm_case *g);
    // The tile that it takes for a product, as its setting of the profile has it: BM BN and so on;
    // then what else has kernels of its own. NULL: products of one size have one.
    void (*tile)(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]);
    // Whether it cuts k of some tiles: another kernel. NULL: never.
    bool (*cuts)(const struct gemm_case *g);
};

extern const struct gemm_variant *const gemm_variants[];
extern const uint32_t gemm_variant_count;

extern const struct gemm_variant gemm_variant_panel;
extern const struct gemm_variant gemm_variant_wgmma;
extern const struct gemm_variant gemm_variant_wgmma_b_registers;
extern const struct gemm_variant gemm_variant_wgmma_48k;
extern const struct gemm_variant gemm_variant_wgmma_b_shared;
extern const struct gemm_variant gemm_variant_padded;
extern const struct gemm_variant gemm_variant_mma;
extern const struct gemm_variant gemm_variant_xmx;
extern const struct gemm_variant gemm_variant_stream;
extern const struct gemm_variant gemm_variant_coop;
extern const struct gemm_variant gemm_variant_few_rows;
extern const struct gemm_variant gemm_variant_split_direct;
extern const struct gemm_variant gemm_variant_split;
extern const struct gemm_variant gemm_variant_split_wgmma;
extern const struct gemm_variant gemm_variant_split_mma;
extern const struct gemm_variant gemm_variant_coop_deep;
extern const struct gemm_variant gemm_variant_lanes;
extern const struct gemm_variant gemm_variant_tiny;
extern const struct gemm_variant gemm_variant_tiled;
extern const struct gemm_variant gemm_variant_plain;

// What a product of these tensors is; they fit together.
void gemm_fill_case(struct gemm_case *g, struct grt_dev *dev, const struct grt_gemm_desc *d);
// The first variant that serves, or NULL.
const struct gemm_variant *gemm_first(const struct gemm_case *g);
// Whether a variant can do the product on this device and was seen to do such products right.
bool gemm_can(const struct gemm_variant *v, const struct gemm_case *g);
// Records the product by it.
void gemm_record(struct grt_graph *graph, const struct gemm_case *g);

// ---- split_k.c: k in `parts` of `each`, the last maybe shorter; 1 part if that does not pay ----
struct gemm_cut {
    uint32_t parts, each;
};
struct gemm_cut gemm_cut_of(const struct gemm_case *g);
uint64_t gemm_cut_bytes(const struct gemm_case *g, const struct gemm_cut *cut);
void gemm_record_cut(struct grt_graph *graph, const struct gemm_case *g,
                     const struct gemm_cut *cut);

// ---- padded.c: bytes of scratch for copies of operands with aligned rows ----
uint64_t gemm_padded_bytes(const struct gemm_case *g);

// Which operands it copies, who multiplies then, and how long that is expected to take: what is
// quickest of what `can` be done, and takes less than `limit` microseconds; else nobody does.
typedef bool gemm_asked(const struct gemm_variant *v, const struct gemm_case *g);
struct gemm_padding {
    const struct gemm_variant *by;
    bool a, b;
    double time;
};
struct gemm_padding gemm_padding_of(const struct gemm_case *g, double limit, gemm_asked *can);

// ---- schedule.c: tiles of c, and parts of k, for workgroups that stay ----

// A tile of c, and what it was seen to cost: microseconds for a step along k, when a compute unit
// is full of such tiles, and for beginning and ending.
struct gemm_tile {
    uint32_t bm, bn;
    uint32_t at_once;  // workgroups on a compute unit
    double step, ends;
    bool leaves;   // a workgroup a tile; else they stay, each with tensor maps of its own
    double alone;  // a step of a workgroup that has a compute unit for itself; 0: as long
};
// The first `whole` tiles are done whole, the others in `parts` each, which convolutions add
// `bunch` at a time; see cl/nvidia/lib/wgmma_units.k.
struct gemm_schedule {
    uint32_t whole, parts, bunch;
    uint32_t groups;
    double time;  // microseconds, the launch aside
};
// The quickest for a k of `steps`; without `cut` all tiles are whole.
struct gemm_schedule gemm_schedule_of(const struct gemm_case *g, const struct gemm_tile *t,
                                      uint32_t steps, bool cut);
// That of a small product in the check of one whose schedule is `meant`: cut if that is, into two
// parts of the last tile.
struct gemm_schedule gemm_schedule_of_check(const struct gemm_case *g, const struct gemm_tile *t,
                                            uint32_t steps, const struct gemm_schedule *meant);
// The product with its schedule's numbers for the kernel.
struct gemm_case gemm_scheduled(const struct gemm_case *g, const struct gemm_schedule *s);

// The sizes of the device's profile for this product, see grt_tunable_pick().
bool gemm_sizes(const struct gemm_case *g, const struct grt_tunable *tunable,
                uint32_t values[GRT_PROFILE_NUMBERS]);

// What the profile says of each tile of a variant.
const double *gemm_costs(const struct gemm_case *g, enum grt_profile_key key);
// Tiles of variants, see struct gemm_variant.
void gemm_coop_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]);
void gemm_mma_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]);
void gemm_split_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]);
void gemm_split_wgmma_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]);
void gemm_wgmma_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]);
void gemm_wgmma_48k_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]);

// Times of variants that others compare themselves with.
double gemm_mma_time(const struct gemm_case *g);
// Whether it has a tile for the product's few columns, which wgmma's are slower than.
bool gemm_mma_narrow(const struct gemm_case *g);
double gemm_wgmma_time(const struct gemm_case *g);
double gemm_wgmma_48k_time(const struct gemm_case *g);

// What is worth trying for products in parts, by cooperative matrices and by mma.sync.
#define GEMM_SPLIT_KNOBS                                                                           \
    {                                                                                              \
        {"BM", {32, 64, 128, 256}}, {"BN", {32, 64, 128, 256}}, {"BK", {16, 32}},                  \
            {"WM", {16, 32, 64}}, {"WN", {16, 32, 64}},                                            \
    }

// Whether the device's profile says that cutting floats into bfloats pays (gemm.split.use).
bool gemm_split_pays(const struct gemm_case *g);

uint32_t gemm_ceil_div(uint32_t a, uint32_t b);
// Compute units of the device, or a guess.
uint32_t gemm_units(const struct gemm_case *g);
// Workgroups of a kernel whose workgroups stay, one a compute unit: no more than there are tensor
// maps for.
uint32_t gemm_places(const struct gemm_case *g);
// How often tiles of bm x bn fill the device, when a compute unit has `at_once` of them.
uint64_t gemm_rounds(const struct gemm_case *g, uint32_t bm, uint32_t bn, uint32_t at_once);
// Whether a and b are 16-bit and their rows and matrices begin at multiples of 16 bytes, as
// Hopper's copy engine wants them.
bool gemm_in_chunks(const struct gemm_case *g);
// Whether Hopper's second cache has room for c, which is read next, but not for a beside it, which
// is read once here; and nothing else is read or written.
bool gemm_keeps_c(const struct gemm_case *g);
// Whether a dispatch may have so many workgroups on the first two axes, and one for each matrix on
// the third.
bool gemm_within(const struct gemm_case *g, uint32_t across, uint32_t down);
// Whether the device has Hopper's instructions and its shared memory beyond 48 KiB. Vulkan says
// nothing of the latter, and every imported kernel of Hopper has it (runtime/device/import.c).
bool gemm_has_room(const struct gemm_case *g);
// Whether a product has enough work for a kernel that Vulkan imports as PTX, which NVIDIA's driver
// compiles at every start. Cooperative matrices, which serve else, are slow where rows begin
// anywhere, and where k is long: 64 of 76x76x40 take 7.8 us, by mma 4.3 (H200, 2026-11-17); in f32
// 16 of 56x56x129 6.6, by split_wgmma 5.7.
bool gemm_worth_importing(const struct gemm_case *g);
// Whether a product on Vulkan with a b that is short both ways is stream's: halves, where b is
// short enough for it.
bool gemm_is_streams(const struct gemm_case *g);
// Whether every stored row of a and b is whole vectors of 4 floats.
bool gemm_in_vectors(const struct gemm_case *g);
// Of how many elements rows of `ld` elements are multiples: the power of two, 3 at most.
uint32_t gemm_alignment(uint32_t ld);
// The same of c, whose rows may have gaps that must stay as they are, and whose matrices may begin
// anywhere.
uint32_t gemm_alignment_of_c(const struct gemm_case *g);
// The kernel with the constants that all products have (shaders/gemm/lib/gemm.k) and `own` ones.
struct grt_kernel_desc gemm_kernel(const struct gemm_case *g, const char *name,
                                   const struct grt_spec *own, uint32_t own_count);
// What is bound for an operand that may not be there.
struct grt_range gemm_range_or(const struct grt_tensor *tensor, struct grt_range other);
// Dispatches kernel "gemm_<shape>_<types>", types being f32, 16 or 16f32, with the bindings
// that all products have, over a grid of `groups`.
void gemm_dispatch(struct grt_graph *graph, const struct gemm_case *g, const char *shape,
                   const struct grt_spec *own, uint32_t own_count, const uint32_t groups[3]);

#endif
