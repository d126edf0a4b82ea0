// SPDX-License-Identifier: Apache-2.0
// The parts of an exchange, each alone, by ranks that began together: as a step of training has
// them, with a buffer in place of the gradients.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_scaling.h"
#include "cli/command.h"
#include "cli/devices.h"
#include "cli/talk.h"
#include "gpurt/comm.h"
#include "gpurt/device.h"
#include "gpurt/gemm.h"
#include "gpurt/graph.h"
#include "train/trainer.h"

#define ROWS 128u  // of a matrix that the device multiplies beside sums, with one of SIDE x SIDE
#define SIDE 512u
#define ONE 0x3f800000u    // 1.0f
#define MOST_PRODUCTS 512  // of a graph
#define FEW_BUCKETS 4      // of an exchange that has several
#define COARSE 4           // times the sums
#define LEAST_ROUNDS 5
#define MOST_ROUNDS 201
#define SECONDS 3.0

#define COLUMNS(X)                                                                                 \
    X(KIND, "kind", "kind", NULL, TEXT, 0, 0)                                                      \
    X(RANKS, "ranks", "ranks", NULL, COUNT, 0, 6)                                                  \
    X(BYTES, "bytes", "bytes", NULL, BYTES, 0, 9)                                                  \
    X(READBACK, "readback_ms", "readback", "ms", NUMBER, 3, 9)                                     \
    X(HOST, "host_ms", "host", "ms", NUMBER, 3, 9)                                                 \
    X(NETWORK, "network_ms", "network", "ms", NUMBER, 3, 9)                                        \
    X(UPLOAD, "upload_ms", "upload", "ms", NUMBER, 3, 9)                                           \
    X(OVERLAP, "overlap", "overlap", NULL, SHARE, 0, 0)                                            \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(CHECK, "check", "check", NULL, TEXT, 0, 0)

enum column {
    COLUMNS(TABLE_ENTRY) COLUMN_COUNT,
};
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

// Those of an exchange, in the order of their columns, and those that the overlap is made of.
enum part {
    PART_READBACK,
    PART_HOST,
    PART_NETWORK,  // with the sums of the host
    PART_UPLOAD,
    PART_PRODUCTS,  // work of the device alone, as backward has it
    PART_STEP,      // with the exchange, as a step has both
    PART_COUNT,
};

// Numbers that are exchanged together.
struct bucket {
    uint64_t at, count, mark;
    struct grt_graph *take, *give;
};

struct probe {
    struct grt_comm *comm;
    struct grt_buf *device, *matrices, *down, *up;
    struct grt_graph *multiply;
    struct bucket buckets[SCALING_BUCKETS];
    uint32_t bucket_count;
    float *slices;
    uint64_t count, room;
    enum scaling_exchange exchange;
    float weight;       // of a part's rows
    uint32_t products;  // on the device for each bucket, which take as long as its sum, about
    double times[PART_COUNT][MOST_ROUNDS];
    size_t rounds;
    bool right;
};

static bool make_matrices(struct probe *p, struct grt_dev *dev) {
    const uint64_t size = (uint64_t)SIDE * SIDE * sizeof(float);
    p->matrices = grt_buf_create(dev, grt_buf_desc(.size = 3 * size, .label = "matrices"));
    struct grt_graph *fill = p->matrices ? grt_graph_create(dev, "matrices") : NULL;
    if (!fill) {
        return false;
    }
    grt_graph_fill(fill, (struct grt_range){p->matrices, 0, 2 * size}, ONE);
    bool good = grt_graph_finish(fill);
    grt_graph_destroy(&fill);
    return good;
}

// Work of the device that its caches matter to: so many times a few rows and a square matrix, in
// one graph, as backward has few.
static bool make_products(struct probe *p, struct grt_dev *dev, uint32_t count) {
    static const uint64_t rows[] = {ROWS, SIDE, ROWS};
    struct grt_tensor m[3];
    grt_graph_destroy(&p->multiply);
    p->multiply = grt_graph_create(dev, "work of the device");
    if (!p->multiply) {
        return false;
    }
    for (uint64_t i = 0; i < 3; i++) {
        m[i] = (struct grt_tensor){.dtype = GRT_F32,
                                   .rank = 2,
                                   .shape = {rows[i], SIDE},
                                   .range = {p->matrices, i * SIDE * SIDE * sizeof(float),
                                             rows[i] * SIDE * sizeof(float)}};
    }
    for (uint32_t i = 0; i < count; i++) {
        grt_op_gemm(p->multiply, grt_gemm_desc(.a = &m[0], .b = &m[1], .c = &m[2]));
    }
    return grt_graph_bake(p->multiply);
}

static bool make_bucket(struct probe *p, struct grt_dev *dev, uint64_t at, uint64_t end) {
    struct bucket *b = &p->buckets[p->bucket_count++];
    uint64_t from = at * 4, size = (end - at) * 4;
    b->at = at;
    b->count = end - at;
    b->take = grt_graph_create(dev, "readback");
    b->give = grt_graph_create(dev, "upload");
    if (!b->take || !b->give) {
        return false;
    }
    struct grt_range here = {p->device, from, size};
    grt_graph_copy(b->take, (struct grt_range){p->down, from, size}, here);
    grt_graph_copy(b->give, here, (struct grt_range){p->up, from, size});
    return grt_graph_bake(b->take) && grt_graph_bake(b->give);
}

static bool make(struct probe *p, struct grt_dev *dev, uint64_t bytes) {
    p->count = (bytes + 3) / 4;
    p->weight = 1;
    uint64_t ranks = grt_comm_ranks(p->comm);
    p->room = (p->count + ranks - 1) / ranks * ranks;
    p->slices = calloc(p->room, sizeof *p->slices);
    if (!p->slices) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %llu bytes", (unsigned long long)bytes);
    }
    uint64_t size = p->count * 4;
    p->device = grt_buf_create(dev, grt_buf_desc(.size = size, .label = "bench scaling"));
    p->down = grt_buf_create(dev, grt_buf_desc(.size = size, .kind = GRT_BUF_READBACK));
    p->up = grt_buf_create(dev, grt_buf_desc(.size = size, .kind = GRT_BUF_UPLOAD));
    if (!p->device || !p->down || !p->up) {
        return false;
    }
    bool good = true;
    // What is probed is a part of an exchange, which has more.
    bool several = p->exchange == SCALING_GRADIENTS && (double)size >= SCALING_BUCKET;
    uint32_t buckets = several ? (uint32_t)fmax(scaling_buckets((double)size), FEW_BUCKETS) : 1;
    for (uint32_t i = 0; good && i < buckets; i++) {
        good = make_bucket(p, dev, p->count * i / buckets, p->count * (i + 1) / buckets);
    }
    return good && (buckets == 1 || make_matrices(p, dev));
}

static void unmake(struct probe *p) {
    for (uint32_t i = 0; i < p->bucket_count; i++) {
        grt_graph_destroy(&p->buckets[i].take);
        grt_graph_destroy(&p->buckets[i].give);
    }
    grt_graph_destroy(&p->multiply);
    grt_buf_destroy(&p->device);
    grt_buf_destroy(&p->matrices);
    grt_buf_destroy(&p->down);
    grt_buf_destroy(&p->up);
    free(p->slices);
}

// Additions of this rank's slice of all, as grt_comm_sum() makes them: part of that call's time.
static double time_sums(struct probe *p, uint32_t ranks) {
    uint64_t slice = p->room / ranks;
    double begun = grt_seconds();
    for (uint32_t r = 1; r < ranks; r++) {
        float *restrict to = p->slices;
        const float *restrict from = p->slices + r * slice;
        for (uint64_t i = 0; i < slice; i++) {
            to[i] += from[i];
        }
    }
    return grt_seconds() - begun;
}

// Takes all buckets from the device, or gives them back, and waits.
static bool copy_all(struct probe *p, struct grt_dev *dev, bool takes) {
    bool good = true;
    for (uint32_t i = 0; good && i < p->bucket_count; i++) {
        good = grt_graph_run(takes ? p->buckets[i].take : p->buckets[i].give);
    }
    return good && grt_dev_wait(dev);
}

// From where the device has left them to where it takes them: as they are, or as PPO does, weighed
// by the rows of a part.
static bool sum(struct probe *p, const struct bucket *b) {
    const float *down = (const float *)grt_buf_host(p->down) + b->at;
    float *up = (float *)grt_buf_host(p->up) + b->at;
    if (p->exchange != SCALING_MINIBATCHES) {
        return grt_comm_sum(p->comm, down, up, b->count);
    }
    for (uint64_t i = 0; i < b->count; i++) {
        p->slices[i] = down[i] * p->weight;
    }
    bool good = grt_comm_sum(p->comm, p->slices, p->slices, b->count);
    memcpy(up, p->slices, b->count * sizeof *up);
    return good;
}

// Behind the word of all that they go on.
static bool sum_all(struct probe *p) {
    bool good = grt_comm_vote(p->comm);
    for (uint32_t i = 0; good && i < p->bucket_count; i++) {
        good = sum(p, &p->buckets[i]);
    }
    return good;
}

// Work of the device: all of it, or as backward has it, with buckets taken on the way.
static bool multiply(struct probe *p, struct grt_dev *dev, bool takes) {
    bool good = true;
    for (uint32_t i = 0; good && i < p->bucket_count; i++) {
        good = grt_graph_run(p->multiply);
        if (takes) {
            good = good && grt_graph_run(p->buckets[i].take);
            p->buckets[i].mark = grt_dev_mark(dev, GRT_LANE_MAIN);
        }
    }
    return good;
}

static bool exchange(struct probe *p, struct grt_dev *dev) {
    bool good = grt_comm_vote(p->comm);
    for (uint32_t i = 0; good && i < p->bucket_count; i++) {
        const struct bucket *b = &p->buckets[i];
        good = grt_dev_wait_for(dev, GRT_LANE_MAIN, b->mark) && sum(p, b) && grt_graph_run(b->give);
    }
    return good;
}

// As many products for each bucket as take about as long as its sum.
static bool choose_products(struct probe *p, struct grt_dev *dev, double sums) {
    bool good = make_products(p, dev, 1) && grt_graph_finish(p->multiply);
    double at = grt_seconds();
    good = good && grt_graph_finish(p->multiply);
    double many = sums / p->bucket_count / fmax(grt_seconds() - at, 1e-7);
    p->products = (uint32_t)fmin(fmax(round(many), 1), MOST_PRODUCTS);
    return good && make_products(p, dev, p->products);
}

// Work of the device that takes about as long as the sums, and with an exchange beside it. What a
// rank waits for the others before each is in neither.
static bool time_overlap(struct probe *p, struct grt_dev *dev, double sums) {
    double at;
    bool good = p->products > 0 || choose_products(p, dev, sums);
    for (int part = PART_PRODUCTS; good && part <= PART_STEP; part++) {
        bool step = part == PART_STEP;
        good = grt_comm_vote(p->comm);
        at = grt_seconds();
        good = good && multiply(p, dev, step) && (!step || exchange(p, dev)) && grt_dev_wait(dev);
        p->times[part][p->rounds] = grt_seconds() - at;
    }
    return good;
}

// What share of the sums is hidden behind work of the device that takes as long, of those that can
// be: the last bucket is there when the work is over. Below 0 a step takes longer than its parts
// one behind the other: where the device is the processor that sums, both take turns, and each
// finds its caches full of the other's. A machine with other work is slower in some rounds, so each
// is compared within itself.
static double overlap_of(struct probe *p) {
    double shares[MOST_ROUNDS];
    size_t count = 0;
    for (size_t i = 0; i < p->rounds; i++) {
        double products = p->times[PART_PRODUCTS][i], sums = p->times[PART_NETWORK][i];
        double apart = products + p->times[PART_READBACK][i] + sums + p->times[PART_UPLOAD][i];
        double most = fmin(products, sums) * (1 - 1.0 / p->bucket_count);
        // Beside a product that takes far longer than the sums nobody could tell.
        if (most > 0 && products < COARSE * sums) {
            shares[count++] = (apart - p->times[PART_STEP][i]) / most;
        }
    }
    return count > 0 ? fmin(1, fmax(-1, stats_of(shares, count).median)) : 0;
}

// The first and the last number of each bucket.
static bool all_are(const struct probe *p, float wanted) {
    const float *down = grt_buf_host(p->down);
    bool right = true;
    for (uint32_t i = 0; i < p->bucket_count; i++) {
        const float *own = down + p->buckets[i].at;
        right = right && own[0] == wanted && own[p->buckets[i].count - 1] == wanted;
    }
    return right;
}

// One after another, each begun by all at once.
static bool round_of(struct probe *p, struct grt_dev *dev) {
    uint32_t ranks = grt_comm_ranks(p->comm);
    double at[5];
    size_t n = p->rounds;
    float *up = grt_buf_host(p->up);
    for (int i = 0; i < PART_COUNT; i++) {
        p->times[i][n] = 0;
    }
    if (p->exchange == SCALING_RESULTS) {
        bool good = grt_comm_vote(p->comm);
        at[0] = grt_seconds();
        good = good && grt_comm_vote(p->comm) &&
               grt_comm_gather(p->comm, p->slices, p->room / ranks * sizeof(float));
        p->times[PART_NETWORK][n] = grt_seconds() - at[0];
        return good;
    }
    // Known numbers: the rank's own, of which every rank gets the sum.
    for (uint64_t i = 0; i < p->count; i++) {
        up[i] = (float)(grt_comm_rank(p->comm) + 1);
    }
    if (!copy_all(p, dev, false) || !grt_comm_vote(p->comm)) {
        return false;
    }
    at[0] = grt_seconds();
    bool good = copy_all(p, dev, true);
    at[1] = grt_seconds();
    good = good && sum_all(p);
    at[2] = grt_seconds();
    good = good && copy_all(p, dev, false);
    at[3] = grt_seconds();
    double sums = time_sums(p, ranks);
    p->times[PART_READBACK][n] = at[1] - at[0];
    p->times[PART_HOST][n] = sums;
    p->times[PART_NETWORK][n] = at[2] - at[1];
    p->times[PART_UPLOAD][n] = at[3] - at[2];
    // The sum, as the device has it, and that of as many sums.
    float wanted = (float)ranks * (float)(ranks + 1) / 2;
    good = good && copy_all(p, dev, true);
    p->right = p->right && good && all_are(p, wanted);
    if (p->bucket_count > 1) {
        good = good && time_overlap(p, dev, at[2] - at[1]) && copy_all(p, dev, true);
        p->right = p->right && good && all_are(p, wanted * (float)ranks);
    }
    return good;
}

static bool measure(struct probe *p, struct grt_dev *dev) {
    double begun = grt_seconds();
    uint32_t more = 1;
    // The first round maps memory; sums take longer in it.
    bool good = round_of(p, dev);
    p->products = 0;
    while (good && more) {
        good = round_of(p, dev);
        p->rounds++;
        // The first rank's clock decides for all.
        more = p->rounds < MOST_ROUNDS &&
               (p->rounds < LEAST_ROUNDS || grt_seconds() - begun < SECONDS) && !talk_stopped();
        good = good && grt_comm_lead(p->comm, &more, sizeof more);
    }
    return good;
}

static bool print(struct scaling_bench *bench, struct probe *p, int argc, char **argv,
                  struct grt_dev *dev) {
    struct output output;
    if (output_open(&output, bench->common.output)) {
        return false;
    }
    struct table_desc desc = {.output = &output,
                              .format = bench->common.format,
                              .columns = columns,
                              .column_count = COLUMN_COUNT,
                              .schema = SCALING_SCHEMA,
                              .verb = "bench scaling",
                              .argc = argc,
                              .argv = argv,
                              .head = json_pack("{so}", "device", devices_json(grt_dev_info(dev)))};
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_KIND] = TABLE_CELL(.text = "exchange"),
        [COLUMN_RANKS] = TABLE_CELL(.count = grt_comm_ranks(p->comm)),
        [COLUMN_BYTES] = TABLE_CELL(.count = p->count * 4),
        [COLUMN_SAMPLES] = TABLE_CELL(.count = p->rounds),
        [COLUMN_CHECK] = TABLE_CELL(.text = p->right ? "ok" : "FAILED"),
    };
    // The host's sums are taken off what is the quickest of both: in a round other work may add to
    // either.
    double host = stats_of(p->times[PART_HOST], p->rounds).min;
    for (int i = PART_READBACK; i <= PART_UPLOAD; i++) {
        double least = stats_of(p->times[i], p->rounds).min;
        double rest = i == PART_NETWORK ? fmax(0, least - host) : least;
        cells[COLUMN_READBACK + i] = TABLE_CELL(.number = 1e3 * rest);
    }
    cells[COLUMN_OVERLAP] = TABLE_CELL(.number = overlap_of(p));
    bool good = table_open(&bench->table, &desc) &&
                table_section(&bench->table, NULL, ~(1ull << COLUMN_KIND), NULL, 0) &&
                table_row(&bench->table, cells);
    table_close(&bench->table);
    return output_close(&output, good) == COMMAND_OK && good;
}

static int run(struct scaling_bench *bench, struct trainer *t, int argc, char **argv) {
    struct probe *p = calloc(1, sizeof *p);
    int code = COMMAND_INTERNAL;
    bool good = p != NULL;
    if (p) {
        p->comm = t->comm;
        p->exchange = bench->kind->exchange;
        p->right = true;
        good = grt_comm_all(t->comm, "cannot begin: see its own line",
                            make(p, t->dev, bench->probe)) &&
               measure(p, t->dev) && (!trainer_first(t) || print(bench, p, argc, argv, t->dev));
        code = !good      ? command_exit_of(grt_last_status())
               : p->right ? COMMAND_OK
                          : COMMAND_INTERNAL;
        if (good && !p->right) {
            talk_error("the sum of an exchange is wrong");
        }
        unmake(p);
    }
    free(p);
    return code;
}

int scaling_probe(struct scaling_bench *bench, int argc, char **argv) {
    static const struct train_kind kind = {.verb = "bench scaling"};
    struct trainer *t = calloc(1, sizeof *t);
    int code = COMMAND_INTERNAL;
    if (!t) {
        talk_error("out of memory");
        return code;
    }
    t->kind = &kind;
    t->config.common = bench->common;
    trainer_ranks_place(t);
    bench->common.output = t->config.common.output;
    t->dev = options_open_device(&t->config.common);
    code = t->dev ? trainer_ranks_meet(t) : command_exit_of(grt_last_status());
    if (!code && !t->comm) {
        talk_error("--probe wants several ranks: mpirun -n 2 gpurt bench scaling --probe 1MB");
        code = COMMAND_USAGE;
    }
    code = code ? code : run(bench, t, argc, argv);
    grt_dev_destroy(&t->dev);
    grt_comm_end(&t->comm, code == COMMAND_OK);
    free(t);
    return code;
}
