// SPDX-License-Identifier: Apache-2.0
// What the variants of a matrix product share.
#include "gemm_case.h"

#include <stdio.h>
#include <string.h>

#include "op_support.h"
#include "report.h"

uint32_t gemm_ceil_div(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

// One setting of the profile, as whole numbers; false when the device cannot run it.
static bool take_sizes(struct grt_dev *dev, const struct grt_tunable *tunable, uint32_t size,
                       uint32_t values[GRT_PROFILE_NUMBERS]) {
    enum grt_profile_key key = (enum grt_profile_key)(tunable->key + size);
    const struct grt_profile_value *value = grt_profile_get(dev->profile, key);
    char why[GRT_TUNABLE_WHY];
    for (uint32_t i = 0; i < value->count; i++) {
        values[i] = (uint32_t)value->numbers[i];
    }
    if (tunable->possible(&dev->info, values, why)) {
        return true;
    }
    if (grt_profile_first_time(dev->profile, key)) {
        grt_log(GRT_LOG_WARN, "%s of profile %s is passed over on %s: %s",
                grt_profile_key_info(key)->key, value->profile, dev->info.selector, why);
    }
    return false;
}

static bool fills(const struct gemm_case *g, uint32_t rows, uint32_t columns) {
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    return (uint64_t)gemm_ceil_div(g->m, rows) * gemm_ceil_div(g->n, columns) * g->batch >= units;
}

bool gemm_sizes(const struct gemm_case *g, const struct grt_tunable *tunable,
                uint32_t values[GRT_PROFILE_NUMBERS]) {
    uint32_t kept[GRT_SIZE_COUNT][GRT_PROFILE_NUMBERS];
    uint32_t count = 0;
    for (uint32_t size = 0; size < tunable->classes; size++) {
        count += take_sizes(g->dev, tunable, size, kept[count]);
    }
    // The smallest there is serves whatever the larger do not suit.
    uint32_t i = 0;
    while (i + 1 < count &&
           !(fills(g, kept[i][0], kept[i][1]) && g->m > kept[i + 1][0] && g->n > kept[i + 1][1])) {
        i++;
    }
    if (count > 0) {
        memcpy(values, kept[i], sizeof kept[i]);
    }
    return count > 0;
}

// "f32", "16" or "16f32": how the kernels of one shape differ.
static const char *type_suffix(const struct gemm_case *g) {
    return g->in == GRT_F32 ? "f32" : g->out == GRT_F32 ? "16f32" : "16";
}

static struct grt_range range_or(const struct grt_tensor *tensor, struct grt_range other) {
    return tensor ? tensor->range : other;
}

// Dispatches kernel "gemm_<shape>_<types>" with the constants that all products have and `own` ones,
// over a grid of `groups`.
void gemm_dispatch(struct grt_graph *graph, const struct gemm_case *g, const char *shape,
                   const struct grt_spec *own, uint32_t own_count, const uint32_t groups[3]) {
    const struct grt_gemm_desc *d = g->desc;
    char name[48];
    snprintf(name, sizeof name, "gemm_%s_%s", shape, type_suffix(g));
    struct grt_kernel_desc kernel = {
        name,
        {{"A_T", d->a_transposed},
         {"B_T", d->b_transposed},
         {"KIND", g->in == GRT_BF16},
         {"BETA", d->beta != 0.0f},
         {"BIAS", d->bias != NULL},
         {"ACT", (uint32_t)d->act},
         {"ADD", d->add != NULL},
         {"GRAD", (uint32_t)d->grad_act}},
    };
    memcpy(kernel.specs + 8, own, own_count * sizeof *own);
    // An operand that is not there is bound to something harmless.
    struct grt_range none = grt_op_unused(graph);
    struct grt_range ranges[] = {d->a->range,
                                 d->b->range,
                                 d->c->range,
                                 range_or(d->bias, none),
                                 range_or(d->add, none),
                                 range_or(d->saved, none)};
    grt_op_launch(graph, &kernel, &g->params, sizeof g->params, ranges, 6, groups);
}
