// SPDX-License-Identifier: Apache-2.0
// 16-bit convolutions on Hopper's matrix units, through OpenCL with PTX inside, from boxes of
// pixels: cl/nvidia/lib/conv_wgmma.k forward and back to x, conv_wgmma_weight.k for the weights.
// Vulkan imports the kernels as PTX. wgmma_48k is the same in 48 KiB of shared memory, for queues
// and drivers of Vulkan that have no more.
#include <math.h>
#include <stdio.h>

#include "ops/op_support.h"
#include "wgmma.h"

// Pixels of x of one rest are written together on the way back.
static uint32_t rests_of(const struct conv_case *c) {
    return c->desc->pass == GRT_CONV_DATA ? c->window.stride : 1;
}

// Taps of all boxes along one axis that read something inside an extent of `from`.
static uint64_t taps_of(const struct conv_case *c, uint32_t size, uint32_t boxes, uint32_t box,
                        uint32_t from) {
    const struct grt_window *w = &c->window;
    int64_t s = w->stride;
    uint64_t taps = 0;
    for (uint32_t rest = 0; rest < rests_of(c); rest++) {
        for (uint32_t i = 0; i < boxes; i++) {
            for (int64_t k = 0; k < size; k++) {
                bool back = c->desc->pass == GRT_CONV_DATA;
                int64_t d = back ? (int64_t)rest + w->padding - k : k - (int64_t)w->padding;
                int64_t rest_of_tap = ((d % s) + s) % s;
                int64_t at = (int64_t)i * box + (d - rest_of_tap) / s;
                int64_t there = back ? from : ((int64_t)from - rest_of_tap + s - 1) / s;
                taps += !(back && rest_of_tap) && at + box > 0 && at < there;
            }
        }
    }
    return taps;
}

static struct conv_boxes boxes_of(const struct conv_case *c, uint32_t pixels, uint32_t w,
                                  uint32_t h) {
    const struct grt_window *win = &c->window;
    bool back = c->desc->pass == GRT_CONV_DATA;
    uint32_t rests = rests_of(c);
    uint32_t width = conv_ceil_div(back ? win->width : win->out_width, rests);
    uint32_t height = conv_ceil_div(back ? win->height : win->out_height, rests);
    struct conv_boxes b = {.w = w, .h = h, .images = pixels >> (w + h)};
    b.across = conv_ceil_div(width, 1u << w);
    b.down = conv_ceil_div(height, 1u << h);
    b.deep = conv_ceil_div(c->rows, b.images);
    uint32_t read_w = back ? win->out_width : win->width;
    uint32_t read_h = back ? win->out_height : win->height;
    b.steps = taps_of(c, conv_across(c), b.across, 1u << w, read_w) *
              taps_of(c, win->size, b.down, 1u << h, read_h) * b.deep;
    return b;
}

// Pixels of a box.
static uint32_t box_of(const struct conv_case *c, const struct conv_way *way) {
    return c->desc->pass == GRT_CONV_WEIGHT ? way->depth : way->tile.bm;
}

// How much longer a step takes with boxes of 2^bits pixels side by side than with wide ones. Pixels
// that go to registers come from the cache of a compute unit where neighbours are in one box: us a
// step in boxes of 1x1 / of 8x8, 128x256 0.50 / 0.42, 128x160 0.40 to 0.43 / 0.35, 256x160 0.81 to
// 0.94 / 0.60, 256x128 0.60 to 0.72 / 0.49 (H200, Vulkan, driver 580.159.04, 2026-11-18).
static double apart_by(const struct conv_case *c, const struct conv_kind *kind,
                       const struct conv_way *way, uint32_t bits) {
    if (kind->registers) {
        return bits >= 2 ? 1.0 : way->tile.bm == 128 ? 1.17 : 1.42;
    }
    return c->desc->pass == GRT_CONV_WEIGHT && bits < 4 ? 1.25 : 1.0;
}

// With the fewest steps, and of those the widest. For the weights pixels that lie apart take
// longer: TFLOP/s in boxes of 1, 4x4 and 8x8 pixels 325, 349, 350 (24x24x64), 500, 527, 526
// (16x16x128) and 515, 576, 579 (8x8x256), where the first has 0.84 of the steps; forward 362, 352,
// 354, then 560, 545, 550 and 643, 620, 620 (H200, driver 580.159.04, 2026-11).
static struct conv_boxes best_boxes(const struct conv_case *c, const struct conv_kind *kind,
                                    const struct conv_way *way) {
    uint32_t pixels = box_of(c, way);
    const double *set = grt_profile_get(c->dev->profile, GRT_KEY_CONV_BOX)->numbers;
    struct conv_boxes best = {0};
    double least = INFINITY;
    for (uint32_t w = 0; 1u << w <= pixels; w++) {
        for (uint32_t h = 0; 1u << (w + h) <= pixels; h++) {
            // What the profile sets and a tile cannot have is passed over.
            bool other = set[0] * set[1] > 0 && set[0] * set[1] <= pixels &&
                         (set[0] != 1u << w || set[1] != 1u << h);
            struct conv_boxes b = boxes_of(c, pixels, w, h);
            double slower = apart_by(c, kind, way, w + h);
            double cost = (double)b.steps * slower * (other ? 1e6 : 1.0);
            bool wider = cost <= least && b.w + b.h >= best.w + best.h;
            best = cost < least || wider ? b : best;
            least = cost < least ? cost : least;
        }
    }
    return best;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

// Microseconds that a step takes were measured of products (2026-11-16). What brought nothing on an
// H200: all weights of 64 channels kept in shared memory with warpgroups that take
// tiles in turns (forward 352 TFLOP/s, 365 without), a warpgroup that hands its registers on (560,
// 562 at 16x16x128), all nine taps of 64 channels as one tile of the weights' gradient (241, 330).
static const struct conv_way ways[] = {
    {{128, 256, 1, 0.568, 1.2}, 4, 288, 64}, {{256, 128, 1, 0.568, 1.2}, 4, 288, 64},
    {{128, 128, 1, 0.290, 0.9}, 5, 288, 64}, {{128, 160, 1, 0.360, 1.0}, 5, 288, 64},
    {{128, 64, 2, 0.400, 0.8}, 3, 288, 64},
};
static const struct conv_way weight_ways[] = {
    {{128, 256, 1, 0.568, 1.5}, 4, 288, 64}, {{128, 128, 1, 0.290, 1.0}, 5, 288, 64},
    {{64, 256, 1, 0.300, 1.0}, 4, 160, 64},  {{64, 192, 1, 0.240, 1.0}, 5, 160, 64},
    {{64, 64, 2, 0.300, 1.0}, 4, 160, 64},
};
static const struct conv_kind large = {.ways = ways,
                                       .weight_ways = weight_ways,
                                       .way_count = COUNT(ways),
                                       .weight_way_count = COUNT(weight_ways)};

// Several workgroups on a compute unit. The copy engine takes about as long for a row of 32 bytes
// as for one of 128. TFLOP/s forward, 128x128 of 16 and 32: 192, 302 (16x16x128), 322, 396
// (8x8x256); 64 channels, 128x64 of 16 and 32, 64x64 of 64: 90, 162, 168. Weights, 128x128 of 16
// and 32: 218, 293 and 231, 312; 64 channels, 64x192: 154, 129 (H200, Vulkan, 2026-11).
static const struct conv_way lean_ways[] = {
    {{128, 128, 2, 0.85, 1.2}, 2, 288, 32},
    {{64, 64, 4, 1.65, 1.0}, 2, 160, 64},
};
static const struct conv_way lean_weight_ways[] = {
    {{128, 128, 2, 0.94, 2.0}, 2, 288, 32},
    {{64, 192, 2, 0.67, 2.0}, 5, 160, 16},
    {{64, 256, 1, 0.40, 2.0}, 4, 160, 16},
};
static const struct conv_kind lean = {.lean = true,
                                      .ways = lean_ways,
                                      .weight_ways = lean_weight_ways,
                                      .way_count = COUNT(lean_ways),
                                      .weight_way_count = COUNT(lean_weight_ways)};

static uint32_t blocks_of(uint32_t channels) {
    return conv_ceil_div(channels, 64);
}

// The product that it is, for what a schedule costs.
static struct gemm_case product_of(const struct conv_case *c, const struct conv_way *way,
                                   const struct conv_boxes *b) {
    const struct grt_window *w = &c->window;
    uint32_t boxes = b->across * b->down * b->deep * rests_of(c) * rests_of(c);
    struct gemm_case g = {.dev = c->dev, .batch = 1};
    if (c->desc->pass == GRT_CONV_WEIGHT) {
        g.m = c->outputs;
        g.n = w->size * conv_across(c) * blocks_of(w->channels) * 64;
        g.k = boxes * way->depth;
        return g;
    }
    bool back = c->desc->pass == GRT_CONV_DATA;
    g.m = boxes * way->tile.bm;
    g.n = back ? w->channels : c->outputs;
    uint64_t steps = boxes > 0 ? (b->steps + boxes - 1) / boxes : 0;
    g.k = (uint32_t)steps * conv_ceil_div(back ? c->outputs : w->channels, way->depth) * way->depth;
    return g;
}

static struct gemm_schedule schedule_of(const struct conv_case *c, const struct conv_way *way,
                                        const struct conv_boxes *boxes) {
    struct gemm_case g = product_of(c, way, boxes);
    return gemm_schedule_of(&g, &way->tile, conv_ceil_div(g.k, way->depth), true);
}

static struct conv_choice choice_of(const struct conv_case *c, const struct conv_kind *kind,
                                    const struct conv_way *way) {
    struct conv_choice this = {.way = *way, .boxes = best_boxes(c, kind, way)};
    struct conv_way timed = *way;
    if (kind->registers) {  // costs of others were fitted with the boxes that they get
        timed.tile.step *= apart_by(c, kind, way, this.boxes.w + this.boxes.h);
    }
    this.schedule = schedule_of(c, &timed, &this.boxes);
    return this;
}

// Bytes of shared memory.
static uint32_t bytes_of(const struct conv_way *way, const struct conv_kind *kind) {
    if (kind->registers) {
        return way->stages * blocks_of(way->tile.bn) * 2048 + (way->lanes - 128) * 16 + 1024;
    }
    uint32_t out = kind->lean ? 16 : way->tile.bn % 64 ? 32 : 128;
    return way->stages * (way->tile.bm + blocks_of(way->tile.bn) * 64) * way->depth * 2 +
           (way->lanes - 32) * out + 1024;
}

static bool is_possible(const struct conv_way *way, const struct conv_kind *kind) {
    const struct gemm_tile *t = &way->tile;
    bool rows = t->bm == 64 || t->bm == 128 || t->bm == 256;
    bool cols = t->bn == 64 || t->bn == 128 || t->bn == 160 || t->bn == 192 || t->bn == 256;
    bool deep = way->depth == 64 || (kind->lean && (way->depth == 16 || way->depth == 32));
    if (kind->registers) {
        rows = t->bm == 128 || (t->bm == 256 && t->bn <= 160);
        cols = t->bn == 64 || t->bn == 128 || t->bn == 160 || t->bn == 256;
        deep = way->depth == 32;
    }
    return rows && cols && deep && way->stages >= 2 &&
           (kind->registers || t->bm * t->bn <= 32768) &&
           bytes_of(way, kind) <= (kind->lean ? 48u : 226u) << 10;
}

// The tile that the profile sets.
static struct conv_way set_way(const double *set, const struct conv_kind *kind) {
    struct conv_way way = {.tile = {(uint32_t)set[0], (uint32_t)set[1], 1, 0.5, 1},
                           .stages = (uint32_t)set[2],
                           .depth = set[3] > 0 ? (uint32_t)set[3] : 64};
    way.lanes = kind->registers ? 384 : way.tile.bm >= 128 ? 288 : 160;
    uint32_t room = (227u << 10) / bytes_of(&way, kind);
    uint32_t fit = 65536 / (way.lanes * (way.tile.bm * way.tile.bn / (way.lanes - 32) + 56));
    way.tile.at_once = room < 1 || fit < 1 ? 1 : room < fit ? room : fit;
    return way;
}

static struct conv_choice quickest(const struct conv_case *c, const struct conv_kind *kind) {
    const struct grt_profile_value *set = grt_profile_get(c->dev->profile, GRT_KEY_CONV_WGMMA);
    bool weight = c->desc->pass == GRT_CONV_WEIGHT;
    const struct conv_way *all = weight ? kind->weight_ways : kind->ways;
    uint32_t count = weight ? kind->weight_way_count : kind->way_count;
    struct conv_way own = set_way(set->numbers, kind);
    if (is_possible(&own, kind)) {
        return choice_of(c, kind, &own);
    }
    struct conv_choice best = choice_of(c, kind, &all[0]);
    for (uint32_t i = 1; i < count; i++) {
        struct conv_choice this = choice_of(c, kind, &all[i]);
        best = this.schedule.time < best.schedule.time ? this : best;
    }
    return best;
}

// The schedule of a check is cut where that is which it stands for.
struct conv_choice conv_choose(const struct conv_case *c, const struct conv_kind *kind) {
    struct conv_choice choice = quickest(c->stands_for ? c->stands_for : c, kind);
    if (c->stands_for) {  // of fewer pixels
        struct conv_boxes *b = &choice.boxes;
        *b = boxes_of(c, box_of(c, &choice.way), b->w, b->h);
        struct gemm_case g = product_of(c, &choice.way, b);
        choice.schedule = gemm_schedule_of_check(
            &g, &choice.way.tile, conv_ceil_div(g.k, choice.way.depth), &choice.schedule);
    }
    return choice;
}

// Whether all columns of a tile of the weights' gradient are of one tap.
static bool is_single(const struct conv_case *c, const struct conv_way *way) {
    return c->desc->pass == GRT_CONV_WEIGHT &&
           blocks_of(c->window.channels) * 64 % way->tile.bn == 0;
}

void conv_choice_text(const struct conv_case *c, const struct conv_kind *kind,
                      char text[CONV_TILE_TEXT]) {
    struct conv_choice choice = conv_choose(c, kind);
    const struct conv_way *way = &choice.way;
    snprintf(text, CONV_TILE_TEXT, "%ux%u by %u, %u stages%s%s", way->tile.bm, way->tile.bn,
             way->depth, way->stages, is_single(c, way) ? ", of one tap" : "",
             choice.schedule.parts > 1 ? ", cut" : "");
}

// Steps of a tile of a convolution like this one, of other extents.
static uint32_t steps_in(const struct conv_case *c, const struct conv_choice *choice,
                         const struct conv_extents *e) {
    const struct conv_way *way = &choice->way;
    struct conv_case other = *c;
    struct grt_window *w = &other.window;
    w->height = e->height;
    w->width = e->width;
    w->channels = e->channels;
    w->out_height = grt_window_places(w, w->height);
    w->out_width = grt_window_places(w, w->width);
    other.rows = e->rows;
    other.outputs = e->outputs;
    struct conv_boxes b = boxes_of(&other, box_of(c, way), choice->boxes.w, choice->boxes.h);
    return product_of(&other, way, &b).k / way->depth;
}

// One extent larger by a little, of those that steps are made of; false: all are the case's own.
static bool grow(const struct conv_case *c, struct conv_extents *e) {
    const struct grt_window *w = &c->window;
    bool weight = c->desc->pass == GRT_CONV_WEIGHT, back = c->desc->pass == GRT_CONV_DATA;
    uint32_t *extents[] = {weight ? &e->rows
                           : back ? &e->outputs
                                  : &e->channels,
                           &e->height, &e->width};
    const uint32_t most[] = {weight ? c->rows
                             : back ? c->outputs
                                    : w->channels,
                             w->height, w->width};
    const uint32_t by[] = {weight ? 1 : 64, 2, 2};
    for (uint32_t i = 0; i < 3; i++) {
        if (*extents[i] < most[i]) {
            *extents[i] = most[i] - *extents[i] < by[i] ? most[i] : *extents[i] + by[i];
            return true;
        }
    }
    return false;
}

// The channels are those of the last tile, so that it is of one tap or of several as it is meant. A
// cut takes two steps.
void conv_choice_extents(const struct conv_case *c, const struct conv_kind *kind,
                         struct conv_extents *e) {
    struct conv_choice choice = conv_choose(c, kind);
    if (c->desc->pass == GRT_CONV_WEIGHT) {
        uint32_t wide = blocks_of(c->window.channels) * 64, last = wide % choice.way.tile.bn;
        e->channels = (last ? last : choice.way.tile.bn) - (wide - c->window.channels);
    }
    while (choice.schedule.parts > 1 && steps_in(c, &choice, e) < 2 && grow(c, e)) {
    }
}

struct conv_params conv_choice_params(const struct conv_case *c, const struct conv_choice *choice) {
    struct conv_params params = conv_params_of(c);
    params.box_w = choice->boxes.w;
    params.box_h = choice->boxes.h;
    params.boxes_w = choice->boxes.across;
    params.boxes_h = choice->boxes.down;
    params.parts = choice->schedule.parts;
    params.whole = choice->schedule.whole;
    params.bunch = choice->schedule.bunch;
    return params;
}

// The copy engine reads rows that are multiples of 16 bytes; rests are told apart by one bit.
bool conv_choice_suits(const struct conv_case *c) {
    const struct grt_window *w = &c->window;
    bool sixteen = c->type == GRT_F16 || c->type == GRT_BF16;
    bool out = c->desc->pass == GRT_CONV_WEIGHT || c->out == c->type;
    uint64_t x = (uint64_t)c->rows * w->height * w->width;
    uint64_t y = (uint64_t)c->rows * w->out_height * w->out_width;
    return sixteen && out && (w->channels | c->outputs) % 8 == 0 && w->stride <= 2 &&
           w->height >= w->stride && w->width >= w->stride && w->size <= 16 && x < 1u << 30 &&
           y < 1u << 30;
}

static bool usable(const struct conv_case *c) {
    const char *probe = c->dev->info.caps.imports ? "probe_wgmma_48k" : "probe_wgmma";
    return conv_choice_suits(c) && !conv_is_lean(c) && grt_kernel_builds(c->dev, probe);
}

static bool usable_48k(const struct conv_case *c) {
    return conv_choice_suits(c) && grt_kernel_builds(c->dev, "probe_wgmma_48k");
}

static bool pays(const struct conv_case *c) {
    return c->window.channels >= 16 && c->outputs >= 16;
}

// Elsewhere it runs for tests; wgmma has more memory there.
static bool pays_48k(const struct conv_case *c) {
    return conv_is_lean(c) && pays(c);
}

static void record_by(struct grt_graph *graph, const struct conv_case *c,
                      const struct conv_kind *kind) {
    const struct grt_conv2d_desc *d = c->desc;
    struct conv_choice choice = conv_choose(c, kind);
    const struct gemm_schedule *s = &choice.schedule;
    const struct conv_way *way = &choice.way;
    struct conv_params params = conv_choice_params(c, &choice);
    const uint32_t groups[3] = {s->groups, 1, 1};
    uint32_t type = c->type == GRT_BF16, beta = d->add, split = s->parts > 1;
    if (d->pass == GRT_CONV_WEIGHT) {
        grt_op_launch(graph,
                      grt_kernel_desc(.name = "conv_wgmma_weight_16f32",
                                      .specs = {{"WG", way->lanes},
                                                {"KIND", type},
                                                {"BETA", beta},
                                                {"BM", way->tile.bm},
                                                {"BN", way->tile.bn},
                                                {"STAGES", way->stages},
                                                {"SPLIT", split},
                                                {"SINGLE", is_single(c, way)},
                                                {"DEPTH", way->depth},
                                                {"LEAN", kind->lean}}),
                      &params, sizeof params,
                      (const struct grt_range[]){d->x->range, d->y->range, d->w->range}, 3, groups);
        grt_graph_operations(graph, conv_operations(c));
        return;
    }
    bool back = d->pass == GRT_CONV_DATA;
    grt_op_launch(graph,
                  grt_kernel_desc(.name = "conv_wgmma_16", .specs = {{"WG", way->lanes},
                                                                     {"BACK", back},
                                                                     {"KIND", type},
                                                                     {"BETA", beta},
                                                                     {"BIAS", d->bias != NULL},
                                                                     {"BM", way->tile.bm},
                                                                     {"BN", way->tile.bn},
                                                                     {"STAGES", way->stages},
                                                                     {"SPLIT", split},
                                                                     {"DEPTH", way->depth},
                                                                     {"LEAN", kind->lean}}),
                  &params, sizeof params,
                  (const struct grt_range[]){back ? d->y->range : d->x->range, d->w->range,
                                             back ? d->x->range : d->y->range,
                                             d->bias ? d->bias->range : grt_op_unused(graph)},
                  4, groups);
    grt_graph_operations(graph, conv_operations(c));
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    record_by(graph, c, &large);
}

static void record_48k(struct grt_graph *graph, const struct conv_case *c) {
    record_by(graph, c, &lean);
}

static void tile(const struct conv_case *c, char text[CONV_TILE_TEXT]) {
    conv_choice_text(c, &large, text);
}

static void tile_48k(const struct conv_case *c, char text[CONV_TILE_TEXT]) {
    conv_choice_text(c, &lean, text);
}

static void extents(const struct conv_case *c, struct conv_extents *e) {
    conv_choice_extents(c, &large, e);
}

static void extents_48k(const struct conv_case *c, struct conv_extents *e) {
    conv_choice_extents(c, &lean, e);
}

const struct conv_variant conv_variant_wgmma = {"wgmma", usable, pays, record,
                                                NULL,    false,  tile, extents};
const struct conv_variant conv_variant_wgmma_48k = {"wgmma_48k", usable_48k, pays_48k, record_48k,
                                                    NULL,        false,      tile_48k, extents_48k};
