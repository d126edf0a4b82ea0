// SPDX-License-Identifier: Apache-2.0
// Weighted nearest neighbours: cosines are products of unit rows, block by block on the device; the
// largest of each query are kept on the host. A block of the bank is made once for all queries of a
// group.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "gpurt/device.h"
#include "gpurt/features.h"
#include "gpurt/gemm.h"

#define K 200
#define TEMPERATURE 0.1
#define BLOCK_QUERIES 256u
#define BLOCK_BANK 8192u
#define GROUP_QUERIES 16384u     // whose neighbours are kept at once, at most
#define GROUP_BYTES (64u << 20)  // of these neighbours, where that is a block of queries or more
#define LEAST_QUERIES 16u        // of a thread

struct near {
    float cosine;
    uint32_t row;
};

// What is on the device: a block of queries, one of the bank, and their products.
struct products {
    struct grt_dev *dev;
    struct grt_plan *plan;
    struct grt_tensor *a, *b, *c;
    struct grt_graph *graph;
    float *rows;  // of a block, on the host
};

static struct grt_tensor *declare(struct products *p, const char *label, uint64_t rows,
                                  uint64_t cols) {
    return grt_plan_tensor(
        p->plan, grt_tensor_desc(.label = label, .group = "neighbours", .shape = {rows, cols}));
}

static void end(struct products *p) {
    grt_graph_destroy(&p->graph);
    grt_plan_destroy(&p->plan);
    free(p->rows);
}

static bool begin(struct products *p, struct grt_dev *dev, uint64_t queries, uint64_t bank,
                  uint64_t width) {
    *p = (struct products){.dev = dev, .plan = grt_plan_create(dev)};
    queries = queries < BLOCK_QUERIES ? queries : BLOCK_QUERIES;
    bank = bank < BLOCK_BANK ? bank : BLOCK_BANK;
    uint64_t most = queries > bank ? queries : bank;
    p->rows = malloc((most * width > queries * bank ? most * width : queries * bank) * 4);
    p->a = p->plan ? declare(p, "queries", queries, width) : NULL;
    p->b = p->plan ? declare(p, "bank", bank, width) : NULL;
    p->c = p->plan ? declare(p, "cosines", queries, bank) : NULL;
    if (!p->rows) {
        grt_fail(GRT_NO_MEMORY, "no host memory for neighbours");
    }
    p->graph = p->rows && p->a && p->b && p->c && grt_plan_alloc(p->plan)
                   ? grt_graph_create(dev, "cosines")
                   : NULL;
    if (p->graph) {
        grt_op_gemm(p->graph, grt_gemm_desc(.a = p->a, .b = p->b, .c = p->c, .b_transposed = true));
    }
    return p->graph && grt_graph_bake(p->graph);
}

// Rows of length 1 into a block; behind the last are zeros.
static bool give(struct products *p, const struct grt_tensor *to, const struct grt_features *f,
                 uint64_t first) {
    for (uint64_t i = 0; i < to->shape[0]; i++) {
        const float *x = f->x + (first + i) * f->width;
        double squares = 0;
        for (uint64_t k = 0; first + i < f->rows && k < f->width; k++) {
            squares += (double)x[k] * (double)x[k];
        }
        double over = squares > 0 ? 1 / sqrt(squares) : 0;
        for (uint64_t k = 0; k < f->width; k++) {
            p->rows[i * f->width + k] = first + i < f->rows ? (float)((double)x[k] * over) : 0.0f;
        }
    }
    return grt_buf_write(to->range.buf, to->range.offset, p->rows, grt_tensor_bytes(to));
}

// Whether a is further than b; of equals the later one of the file is.
static bool further(const struct near *a, const struct near *b) {
    return a->cosine < b->cosine || (a->cosine == b->cosine && a->row > b->row);
}

// The furthest of the kept stands first: a heap.
static void sink(struct near *kept, uint32_t count, uint32_t at) {
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && further(&kept[child + 1], &kept[child]);
        if (!further(&kept[child], &kept[at])) {
            return;
        }
        struct near was = kept[at];
        kept[at] = kept[child];
        kept[child] = was;
        at = child;
    }
}

static void rise(struct near *kept, uint32_t at) {
    for (; at > 0 && further(&kept[at], &kept[(at - 1) / 2]); at = (at - 1) / 2) {
        struct near was = kept[at];
        kept[at] = kept[(at - 1) / 2];
        kept[(at - 1) / 2] = was;
    }
}

static uint32_t keep(struct near *kept, uint32_t count, uint32_t k, const float *cosines,
                     uint32_t first, uint32_t rows) {
    for (uint32_t i = 0; i < rows; i++) {
        struct near one = {cosines[i], first + i};
        if (count < k) {
            kept[count] = one;
            rise(kept, count++);
        } else if (further(&kept[0], &one)) {
            kept[0] = one;
            sink(kept, count, 0);
        }
    }
    return count;
}

// The class with the most votes, the first of equals.
static uint32_t vote(const struct near *kept, uint32_t count, const struct grt_features *bank,
                     double temperature, double *votes, uint32_t classes) {
    uint32_t best = 0;
    memset(votes, 0, classes * sizeof *votes);
    for (uint32_t i = 0; i < count; i++) {
        votes[bank->classes[kept[i].row]] += exp(((double)kept[i].cosine - 1) / temperature);
    }
    for (uint32_t c = 1; c < classes; c++) {
        best = votes[c] > votes[best] ? c : best;
    }
    return best;
}

static uint32_t classes_of(const struct grt_features *bank) {
    uint32_t most = 0;
    for (uint64_t i = 0; i < bank->rows; i++) {
        most = bank->classes[i] > most ? bank->classes[i] : most;
    }
    return most + 1;
}

// The neighbours of a group of queries, and how many of these are judged right.
struct group {
    const struct grt_features *bank, *queries;
    uint64_t first, rows;  // of the queries
    uint32_t k, classes;
    double temperature;
    struct near *kept;  // [rows][k]
    uint32_t *counts;   // [rows]
    double *votes;      // [classes]
};

static uint64_t group_rows(const struct group *g) {
    uint64_t most = GROUP_BYTES / (g->k * sizeof *g->kept);
    most = most > BLOCK_QUERIES ? most : BLOCK_QUERIES;
    most = most < GROUP_QUERIES ? most : GROUP_QUERIES;
    return most < g->queries->rows ? most : g->queries->rows;
}

static bool group_alloc(struct group *g, uint64_t most) {
    g->kept = malloc(most * g->k * sizeof *g->kept);
    g->counts = malloc(most * sizeof *g->counts);
    g->votes = malloc(g->classes * sizeof *g->votes);
    return (g->kept && g->counts && g->votes) ||
           grt_fail(GRT_NO_MEMORY, "no host memory for neighbours");
}

static void group_free(struct group *g) {
    free(g->kept);
    free(g->counts);
    free(g->votes);
}

// The cosines of a block of queries with a block of the bank.
struct block {
    struct group *group;
    const float *cosines;
    uint64_t query;        // the first one of the group
    uint64_t wide;         // cosines of a query
    uint32_t first, rows;  // of the bank
};

static void keep_part(void *context, uint64_t first, uint64_t count) {
    const struct block *b = context;
    const struct group *g = b->group;
    for (uint64_t i = first; i < first + count; i++) {
        uint64_t q = b->query + i;
        g->counts[q] = keep(g->kept + q * g->k, g->counts[q], g->k, b->cosines + i * b->wide,
                            b->first, b->rows);
    }
}

// With one core a block of 256 queries and 8,192 rows took 9 ms beside an H200 (2026-11).
static bool group_keep(struct group *g, struct products *p, uint64_t query, uint64_t first,
                       uint64_t there) {
    uint64_t left = g->rows - query, rows = left < p->a->shape[0] ? left : p->a->shape[0];
    if (!give(p, p->a, g->queries, g->first + query) || !grt_graph_finish(p->graph) ||
        !grt_buf_read(p->c->range.buf, p->c->range.offset, p->rows, grt_tensor_bytes(p->c))) {
        return false;
    }
    struct block block = {g, p->rows, query, p->b->shape[0], (uint32_t)first, (uint32_t)there};
    grt_thread_share(rows, LEAST_QUERIES, keep_part, &block);
    return true;
}

static bool group_judge(struct group *g, struct products *p, uint64_t *right) {
    bool good = true;
    memset(g->counts, 0, g->rows * sizeof *g->counts);
    for (uint64_t b = 0; good && b < g->bank->rows; b += p->b->shape[0]) {
        uint64_t more = g->bank->rows - b, there = more < p->b->shape[0] ? more : p->b->shape[0];
        good = give(p, p->b, g->bank, b);
        for (uint64_t q = 0; good && q < g->rows; q += p->a->shape[0]) {
            good = group_keep(g, p, q, b, there);
        }
    }
    for (uint64_t i = 0; good && i < g->rows; i++) {
        *right += vote(g->kept + i * g->k, g->counts[i], g->bank, g->temperature, g->votes,
                       g->classes) == g->queries->classes[g->first + i];
    }
    return good;
}

bool grt_knn(struct grt_dev *dev, const struct grt_features *bank,
             const struct grt_features *queries, const struct grt_knn_desc *desc,
             double *accuracy) {
    if (!dev || !bank || !queries || !accuracy || !bank->classes || !queries->classes ||
        bank->rows == 0 || queries->rows == 0 || bank->width != queries->width ||
        bank->rows > UINT32_MAX || (desc && !(desc->temperature >= 0))) {
        return grt_fail(GRT_INVALID, "neighbours: a bank and queries of one width are wanted, and "
                                     "their classes");
    }
    uint64_t k = desc && desc->k > 0 ? desc->k : K;
    struct group g = {
        .bank = bank,
        .queries = queries,
        .k = (uint32_t)(k < bank->rows ? k : bank->rows),
        .classes = classes_of(bank),
        .temperature = desc && desc->temperature > 0 ? desc->temperature : TEMPERATURE,
    };
    struct products p = {0};
    uint64_t right = 0, most = group_rows(&g);
    bool good = group_alloc(&g, most) && begin(&p, dev, queries->rows, bank->rows, bank->width);
    for (; good && g.first < queries->rows; g.first += most) {
        uint64_t left = queries->rows - g.first;
        g.rows = left < most ? left : most;
        good = group_judge(&g, &p, &right);
    }
    *accuracy = (double)right / (double)queries->rows;
    end(&p);
    group_free(&g);
    return good;
}
