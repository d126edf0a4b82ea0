// SPDX-License-Identifier: Apache-2.0
#include "mlp_kit.h"

#include <math.h>
#include <stdlib.h>

struct oracle_format mlp_kit_format(enum grt_dtype dtype) {
    return dtype == GRT_F16 ? oracle_f16 : dtype == GRT_BF16 ? oracle_bf16 : oracle_f32;
}

double mlp_kit_rounded(enum grt_dtype dtype, double v) {
    return oracle_widen(mlp_kit_format(dtype), oracle_narrow(mlp_kit_format(dtype), v));
}

static void add(struct mlp_kit *kit, uint64_t rows, uint64_t cols) {
    struct grt_param *p = &kit->param[kit->params.count];
    *p = (struct grt_param){.first = kit->params.elements,
                            .count = rows * (cols ? cols : 1),
                            .rank = cols ? 2 : 1,
                            .shape = {rows, cols}};
    kit->list[kit->params.count++] = p;
    uint64_t unit = kit->params.unit;
    kit->params.elements += (p->count + unit - 1) / unit * unit;
}

static void draw(struct mlp_kit *kit, uint64_t seed) {
    uint64_t elements = kit->params.elements;
    float *all = test_alloc(elements * sizeof *all);
    uint16_t *small = test_alloc(elements * sizeof *small);
    for (uint64_t i = 0; i < elements; i++) {
        all[i] = NAN;
        small[i] = 0x7fff;
    }
    for (uint32_t k = 0; k < kit->params.count; k++) {
        const struct grt_param *p = kit->list[k];
        bool exact = p->rank == 1 || kit->dtype == GRT_F32;
        double bound = p->rank == 1 ? 0.5 : 1.6 / sqrt((double)p->shape[1]);
        kit->value[k] = test_alloc(p->count * sizeof(double));
        for (uint64_t i = 0; i < p->count; i++) {
            float v = (float)(bound * (2.0 * test_unit(&seed) - 1.0));
            all[p->first + i] = v;
            small[p->first + i] = (uint16_t)oracle_narrow(mlp_kit_format(kit->dtype), (double)v);
            kit->value[k][i] = exact ? (double)v : mlp_kit_rounded(kit->dtype, (double)v);
        }
    }
    test_tensor_write(&kit->master, all);
    if (kit->dtype != GRT_F32) {
        test_tensor_write(&kit->copy, small);
    }
    free(all);
    free(small);
}

void mlp_kit_begin(struct mlp_kit *kit, enum grt_dtype dtype, const struct grt_mlp_desc *m,
                   uint64_t seed) {
    *kit = (struct mlp_kit){.dtype = dtype};
    kit->params =
        (struct grt_params){.dev = test.dev, .type = dtype, .unit = 64, .list = kit->list};
    for (uint32_t l = 0; l <= m->depth; l++) {
        uint32_t to = l == m->depth ? m->outputs : m->hidden;
        add(kit, to, l == 0 ? m->inputs : m->hidden);
        add(kit, to, 0);
    }
    kit->master = test_tensor(test.dev, GRT_F32, kit->params.elements, 0);
    kit->grad = test_tensor(test.dev, GRT_F32, kit->params.elements, 0);
    kit->params.master = &kit->master.tensor;
    kit->params.grad = &kit->grad.tensor;
    if (dtype != GRT_F32) {
        kit->copy = test_tensor(test.dev, dtype, kit->params.elements, 0);
        kit->params.copy = &kit->copy.tensor;
    }
    draw(kit, seed);
}

void mlp_kit_end(struct mlp_kit *kit) {
    struct test_tensor *const all[] = {&kit->master, &kit->copy, &kit->grad};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        test_tensor_end(all[i]);
    }
    for (uint32_t k = 0; k < kit->params.count; k++) {
        free(kit->value[k]);
    }
}
