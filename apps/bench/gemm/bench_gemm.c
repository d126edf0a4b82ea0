// SPDX-License-Identifier: Apache-2.0
// `gpurt bench gemm`: matrix products. All contestants of one product (variants, and the peer if
// one is asked for) are prepared and checked first, then measured in turns, so that clocks and
// neighbours that change over time treat them alike:
//
//     warm-up   A B peer      round 1   A B peer      round 2   A B peer      ...
//
// One run of a contestant has as many products as make it long enough for a clock. Beside a peer
// all are timed by the same clock, the wall's, and the column CPUs says how many each had: where
// other programs take them, a ratio of times is a ratio of luck.
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "bench_gemm_case.h"
#include "cli/talk.h"
#include "gpurt/tunable.h"

#define MAX_ROWS 32  // contestants of one product
#define MAX_PRODUCTS 4096u
#define NAME_SIZE 48

struct contestant {
    struct bench_gemm_case *g;
    const struct bench_gemm_peer *peer;  // NULL: a variant of ours
    char variant[NAME_SIZE];
    enum bench_outcome outcome;
    struct bench_timing timing;
    uint32_t products;  // of one run
    double error;
    double *samples;  // seconds of one product, STATS_MAX_SAMPLES have room
    size_t sample_count;
    struct stats stats;
    double wall, cpu;  // seconds of all samples, and CPU seconds that this process had in them
};

// All that one product is measured with.
struct field {
    struct bench_gemm_case g;
    struct contestant rows[MAX_ROWS];
    size_t count;
};

// ---- one contestant ----

static struct grt_graph *record(void *context, uint32_t count) {
    struct contestant *row = context;
    struct grt_gemm_desc desc = bench_gemm_case_desc(row->g, row->variant);
    struct grt_graph *graph = grt_graph_create(row->g->bench->dev, "bench gemm");
    if (!graph) {
        return NULL;
    }
    if (row->timing.device_timer) {
        grt_graph_phase(graph, row->variant);
    }
    for (uint32_t i = 0; i < count; i++) {
        grt_op_gemm(graph, &desc);
    }
    if (!grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

static bool sample(struct contestant *row, double *seconds) {
    if (row->peer) {
        *seconds = bench_gemm_peer_run(row->peer, row->g, row->products);
    } else if (!bench_sample(&row->timing, seconds)) {
        return false;
    }
    *seconds /= row->products;
    return !talk_stopped();
}

static enum bench_outcome prepare_peer(struct contestant *row) {
    bench_gemm_poison(row->g);
    double seconds = bench_gemm_peer_run(row->peer, row->g, 1);
    double products = BENCH_RUN_SECONDS / (seconds + 1e-9);
    row->products = products < 1 ? 1 : products > MAX_PRODUCTS ? MAX_PRODUCTS : (uint32_t)products;
    return bench_gemm_check(row->g, row->variant, &row->error);
}

static enum bench_outcome prepare_variant(struct contestant *row) {
    row->products = bench_fill_run(&row->timing, MAX_PRODUCTS, record, row);
    if (!row->products) {
        return bench_failure();
    }
    return bench_gemm_run_checked(row->g, row->timing.graph, row->variant, &row->error);
}

// ---- who takes part ----

static bool enter(struct field *field, const char *variant, const struct bench_gemm_peer *peer) {
    struct contestant *row = &field->rows[field->count];
    if (field->count == MAX_ROWS) {
        talk_error("gemm: more than %d variants", MAX_ROWS);
        return false;
    }
    *row = (struct contestant){.g = &field->g, .peer = peer, .timing.replays = 1};
    row->timing.device_timer =
        grt_dev_info(field->g.bench->dev)->caps.timestamps != 0 && !field->g.bench->gemm.peer;
    snprintf(row->variant, sizeof row->variant, "%s", variant);
    row->samples = calloc(STATS_MAX_SAMPLES, sizeof *row->samples);
    if (!row->samples) {
        talk_error("out of memory");
        return false;
    }
    field->count++;
    return true;
}

// The device's variants for this product as one text, for messages.
static const char *list_variants(const struct field *field, char text[256]) {
    struct grt_gemm_desc desc = bench_gemm_case_desc(&field->g, NULL);
    const char *name = NULL;
    int n = 0;
    text[0] = '\0';
    for (uint32_t i = 0; n >= 0 && n < 256; i++) {
        name = grt_gemm_variant(field->g.bench->dev, &desc, i);
        if (!name) {
            break;
        }
        n += snprintf(text + n, (size_t)(256 - n), "%s%s", i ? ", " : "", name);
    }
    return text;
}

// One that was named, whether the device has it for this product or not.
static bool enter_named(struct field *field, const char *variant) {
    struct grt_gemm_desc desc = bench_gemm_case_desc(&field->g, variant);
    char known[256];
    if (!enter(field, variant, NULL)) {
        return false;
    }
    if (!grt_gemm_variant(field->g.bench->dev, &desc, 0)) {
        field->rows[field->count - 1].outcome = BENCH_UNSUITED;
        talk_error("gemm of %s: no variant '%s' on %s; there are %s", grt_dtype_text(field->g.in),
                   variant, grt_dev_info(field->g.bench->dev)->selector,
                   list_variants(field, known));
    }
    return true;
}

static bool enter_all(struct field *field, const struct bench_gemm_peer *peer) {
    const char *asked = field->g.bench->gemm.variants;
    struct grt_gemm_desc desc = bench_gemm_case_desc(&field->g, NULL);
    bool every = strcmp(asked, "all") == 0;
    const char *name = NULL;
    bool good = true;
    if (every || strcmp(asked, "auto") == 0) {
        for (uint32_t i = 0; good && (every || i == 0); i++) {
            name = grt_gemm_variant(field->g.bench->dev, &desc, i);
            if (!name && i == 0) {
                good = enter_named(field, "auto");
            }
            if (!name) {
                break;
            }
            good = enter(field, name, NULL);
        }
    } else {
        for (const char *at = asked; good && *at; at += *at == ',') {
            char word[NAME_SIZE];
            size_t length = strcspn(at, ",");
            snprintf(word, sizeof word, "%.*s", (int)length, at);
            good = enter_named(field, word);
            at += length;
        }
    }
    if (good && peer->sgemm && field->g.in == GRT_F32) {
        good = enter(field, "openblas", peer);
    }
    return good;
}

// ---- the measurement ----

// One turn of everyone; kept or not.
static bool round_of(struct field *field, bool keep) {
    for (size_t i = 0; i < field->count; i++) {
        struct contestant *row = &field->rows[i];
        double seconds = 0;
        if (row->outcome != BENCH_GOOD) {
            continue;
        }
        double wall = grt_seconds();
        double cpu = stats_cpu();
        if (!sample(row, &seconds)) {
            return false;
        }
        if (!keep) {
            continue;
        }
        row->wall += grt_seconds() - wall;
        row->cpu += stats_cpu() - cpu;
        row->samples[row->sample_count++] = seconds;
    }
    return true;
}

static bool measure(struct field *field) {
    const struct bench *bench = field->g.bench;
    double budget = bench->seconds * (double)field->count;
    size_t rounds = 0;
    double start = grt_seconds();
    do {
        if (!round_of(field, false)) {
            return false;
        }
    } while (grt_seconds() - start < 0.1 * budget);
    start = grt_seconds();
    while (rounds < bench->samples ||
           (rounds < STATS_MAX_SAMPLES && grt_seconds() - start < budget)) {
        if (!round_of(field, true)) {
            return false;
        }
        rounds++;
    }
    for (size_t i = 0; i < field->count; i++) {
        struct contestant *row = &field->rows[i];
        row->stats = stats_of(row->samples, row->sample_count);
    }
    return true;
}

static bool prepare(struct field *field) {
    bool any = false;
    for (size_t i = 0; i < field->count; i++) {
        struct contestant *row = &field->rows[i];
        if (row->outcome == BENCH_GOOD) {
            row->outcome = row->peer ? prepare_peer(row) : prepare_variant(row);
        }
        if (row->outcome == BENCH_BROKEN) {
            return false;
        }
        any = any || row->outcome == BENCH_GOOD;
    }
    return !any || measure(field);
}

// ---- rows ----

// The profile that has the variant's settings, with its line: "nvidia:10", or of a file its name;
// "" where the variant has none.
static const char *profile_of(const struct bench_gemm_case *g, const struct contestant *row) {
    const struct grt_profile_value *value =
        row->peer || row->outcome == BENCH_UNSUITED
            ? NULL
            : grt_tunable_in_use(g->bench->dev, "gemm", row->variant, g->in, g->shape.m, g->shape.n,
                                 g->batch);
    const char *folder = value ? strrchr(value->profile, '/') : NULL;
    return folder ? folder + 1 : value ? value->profile : "";
}

static bool print_one(struct field *field, const struct contestant *row, double peer_seconds) {
    struct bench_gemm_case *g = &field->g;
    double rate = bench_gemm_case_flops(g) / row->stats.median;
    bool software = grt_dev_info(g->bench->dev)->caps.software != 0;
    char shape[64];
    char types[32];
    const char trans[] = {g->a_transposed ? 't' : 'n', g->b_transposed ? 't' : 'n', '\0'};
    snprintf(shape, sizeof shape, "%llux%llux%llu", (unsigned long long)g->shape.m,
             (unsigned long long)g->shape.n, (unsigned long long)g->shape.k);
    snprintf(types, sizeof types, "%s%s%s", grt_dtype_text(g->in), g->in == g->out ? "" : ">",
             g->in == g->out ? "" : grt_dtype_text(g->out));
    // A product above the peak shows that the register kernel did not reach it (a busy CPU), or
    // that f32 was done on the matrix unit: no share is better than 200 %.
    double peak =
        !row->peer && row->outcome == BENCH_GOOD ? bench_peak(g->bench, row->variant, g->in) : 0;
    struct table_cell cells[BENCH_COLUMN_COUNT] = {
        [BENCH_KIND] = TABLE_CELL(.text = "gemm"),
        [BENCH_SHAPE] = TABLE_CELL(.text = shape),
        [BENCH_BATCH] = TABLE_CELL(.count = g->batch),
        [BENCH_PRECISION] = TABLE_CELL(.text = types),
        [BENCH_TRANS] = TABLE_CELL(.text = trans),
        [BENCH_VARIANT] = TABLE_CELL(.text = row->variant),
        [BENCH_PROFILE] = {.known = *profile_of(g, row) != '\0', .text = profile_of(g, row)},
        [BENCH_MS] = TABLE_CELL(.number = 1e3 * row->stats.median),
        [BENCH_GFLOPS] = TABLE_CELL(.number = rate / 1e9),
        [BENCH_TFLOPS] = TABLE_CELL(.number = rate / 1e12),
        [BENCH_PEAK] = {.known = peak > 0 && rate <= peak, .number = rate / peak},
        [BENCH_RATIO] = {.known = !row->peer && peer_seconds > 0,
                         .number = peer_seconds / row->stats.median},
        [BENCH_CPUS] = {.known = row->wall > 0 && (row->peer || software),
                        .number = row->cpu / row->wall},
        [BENCH_ERROR] = {.known = row->products > 0, .number = row->error},
    };
    return bench_row(g->bench, cells, row->outcome, &row->stats,
                     !row->peer && row->timing.device_timer);
}

// Says so when other programs took the CPUs from the peer. A small product it does on fewer by its
// own choice: OpenBLAS on two cores had 1.0 of them for 64^3, 1.7 for 128^3 and 2.0 from 192^3 on.
static void warn_if_busy(const struct contestant *row) {
    bool small = bench_gemm_case_flops(row->g) < 0x1p23 * row->g->batch;
    if (row->peer && !small && row->wall > 0 && row->cpu < 0.9 * row->peer->cpus * row->wall) {
        talk_error("the machine is busy: %s had %.2f of %d CPUs, so the ratios above say little",
                   row->variant, row->cpu / row->wall, row->peer->cpus);
    }
}

static bool print_all(struct field *field) {
    double peer_seconds = 0;
    bool good = true;
    for (size_t i = 0; i < field->count; i++) {
        if (field->rows[i].peer && field->rows[i].outcome == BENCH_GOOD) {
            peer_seconds = field->rows[i].stats.median;
        }
    }
    for (size_t i = 0; good && i < field->count; i++) {
        good = print_one(field, &field->rows[i], peer_seconds);
    }
    for (size_t i = 0; good && i < field->count; i++) {
        warn_if_busy(&field->rows[i]);
    }
    return good;
}

// One product: operands, contestants, rounds, rows.
static bool run_case(struct bench_gemm_case g, const struct bench_gemm_peer *peer) {
    struct field *field = calloc(1, sizeof *field);
    bool good = false;
    if (!field) {
        talk_error("out of memory");
        return bench_row(g.bench, NULL, BENCH_BROKEN, NULL, false);
    }
    field->g = g;
    bench_progress_row(&g.bench->progress, "gemm: %llux%llux%llu, %u of %s",
                       (unsigned long long)g.shape.m, (unsigned long long)g.shape.n,
                       (unsigned long long)g.shape.k, g.batch, grt_dtype_text(g.in));
    enum bench_outcome outcome = bench_gemm_case_begin(&field->g);
    if (outcome == BENCH_GOOD) {
        bool entered = enter_all(field, peer);
        // A row for each variant, where one was planned for the product.
        g.bench->progress.planned += field->count > 1 ? field->count - 1 : 0;
        if (entered && prepare(field)) {
            good = print_all(field);
        } else {
            bench_row(g.bench, NULL, BENCH_BROKEN, NULL, false);
        }
    } else {
        const struct contestant none = {.g = &field->g, .variant = "-", .outcome = outcome};
        good = print_one(field, &none, 0);
    }
    for (size_t i = 0; i < field->count; i++) {
        grt_graph_destroy(&field->rows[i].timing.graph);
        free(field->rows[i].samples);
    }
    bench_gemm_case_end(&field->g);
    free(field);
    return good;
}

// Every shape in every batch, type and transposition.
static bool walk(struct bench *bench, const struct bench_gemm_peer *peer) {
#define X(name, text) GRT_##name,
    static const enum grt_dtype precisions[] = {BENCH_GEMM_PRECISIONS(X)};
#undef X
    const struct bench_gemm_options *o = &bench->gemm;
    bool good = true;
    size_t batches = o->batches.count, kinds = 0;
    for (size_t v = 0; v < sizeof precisions / sizeof *precisions * 4; v++) {
        kinds += (o->precisions >> v / 4 & 1) && (o->trans >> v % 4 & 1);
    }
    bench_progress_plan(&bench->progress, o->shapes.count * batches * kinds, bench->seconds);
    for (size_t s = 0; good && s < o->shapes.count * batches; s++) {
        for (size_t v = 0; good && v < sizeof precisions / sizeof *precisions * 4; v++) {
            struct bench_gemm_case g = {
                .bench = bench,
                .shape = o->shapes.values[s / batches],
                .batch = (uint32_t)o->batches.values[s % batches],
                .in = precisions[v / 4],
                .out = o->out == 2 ? GRT_F32 : precisions[v / 4],
                .a_transposed = (v & 2) != 0,
                .b_transposed = (v & 1) != 0,
            };
            if ((o->precisions >> v / 4 & 1) && (o->trans >> v % 4 & 1)) {
                good = run_case(g, peer);
            }
        }
    }
    return good;
}

bool bench_gemm(struct bench *bench) {
    bool software = grt_dev_info(bench->dev)->caps.software != 0;
    uint64_t shown = BENCH_BIT(SHAPE) | BENCH_BIT(BATCH) | BENCH_BIT(PRECISION) | BENCH_BIT(TRANS) |
                     BENCH_BIT(VARIANT) | BENCH_BIT(PROFILE) | BENCH_BIT(MS) | BENCH_BIT(PEAK) |
                     BENCH_BIT(SPREAD) | BENCH_BIT(SAMPLES) | BENCH_BIT(ERROR) | BENCH_BIT(TIMER) |
                     BENCH_BIT(CHECK);
    struct bench_gemm_peer peer = {0};
    shown |= software ? BENCH_BIT(GFLOPS) : BENCH_BIT(TFLOPS);
    shown |= bench->gemm.peer ? BENCH_BIT(RATIO) | BENCH_BIT(CPUS) : 0;
    if (!bench_gemm_defaults(&bench->gemm, software, bench->quick)) {
        return bench_row(bench, NULL, BENCH_BROKEN, NULL, false);
    }
    if (bench->gemm.peer && !bench_gemm_peer_open(&peer)) {
        bench->missing = true;
        return false;
    }
    bool good = bench_section(bench, "gemm", shown) && walk(bench, &peer);
    bench_gemm_peer_close(&peer);
    return good;
}
