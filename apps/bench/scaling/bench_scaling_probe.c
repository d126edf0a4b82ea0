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
#include "gpurt/graph.h"
#include "train/trainer.h"

#define BUCKET (SCALING_BUCKET / 4)  // numbers
#define MOST_COPIES 10000
#define LEAST_ROUNDS 9
#define MOST_ROUNDS 201
#define SECONDS 1.0

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
    PART_COPIES,  // work of the device alone
    PART_SUMS,    // alone
    PART_SEEN,    // of both at once: what the host was held up by the device's work
    PART_BEHIND,  // of both at once: the sums
    PART_COUNT,
};

struct probe {
    struct grt_comm *comm;
    struct grt_buf *device, *other, *down, *up;
    struct grt_graph *take, *give, *copy;
    float *slices;
    uint64_t count, room;
    enum scaling_exchange exchange;
    float weight;     // of a part's rows
    uint32_t copies;  // on the device that take as long as the sums, about
    double times[PART_COUNT][MOST_ROUNDS];
    size_t rounds;
    bool right;
};

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
    p->other = grt_buf_create(dev, grt_buf_desc(.size = size, .label = "bench scaling"));
    p->down = grt_buf_create(dev, grt_buf_desc(.size = size, .kind = GRT_BUF_READBACK));
    p->up = grt_buf_create(dev, grt_buf_desc(.size = size, .kind = GRT_BUF_UPLOAD));
    if (!p->device || !p->other || !p->down || !p->up) {
        return false;
    }
    p->take = grt_graph_create(dev, "readback");
    p->give = grt_graph_create(dev, "upload");
    p->copy = grt_graph_create(dev, "work of the device");
    if (!p->take || !p->give || !p->copy) {
        return false;
    }
    struct grt_range here = {p->device, 0, size};
    grt_graph_copy(p->take, (struct grt_range){p->down, 0, size}, here);
    grt_graph_copy(p->give, here, (struct grt_range){p->up, 0, size});
    grt_graph_copy(p->copy, (struct grt_range){p->other, 0, size}, here);
    return grt_graph_bake(p->take) && grt_graph_bake(p->give) && grt_graph_bake(p->copy);
}

static void unmake(struct probe *p) {
    grt_graph_destroy(&p->take);
    grt_graph_destroy(&p->give);
    grt_graph_destroy(&p->copy);
    grt_buf_destroy(&p->device);
    grt_buf_destroy(&p->other);
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

// From where the device has left them to where it takes them, behind the word of all that they go
// on: bucket by bucket, or as PPO does, weighed by the rows of a part and then all at once.
static bool sum(struct probe *p) {
    const float *down = grt_buf_host(p->down);
    float *up = grt_buf_host(p->up);
    bool good = grt_comm_vote(p->comm);
    if (p->exchange == SCALING_MINIBATCHES) {
        for (uint64_t i = 0; i < p->count; i++) {
            p->slices[i] = down[i] * p->weight;
        }
        good = good && grt_comm_sum(p->comm, p->slices, p->slices, p->count);
        memcpy(up, p->slices, p->count * sizeof *up);
        return good;
    }
    for (uint64_t at = 0; good && at < p->count; at += BUCKET) {
        uint64_t count = p->count - at < BUCKET ? p->count - at : BUCKET;
        good = grt_comm_sum(p->comm, down + at, up + at, count);
    }
    return good;
}

static bool queue_copies(struct probe *p) {
    bool good = true;
    for (uint32_t i = 0; good && i < p->copies; i++) {
        good = grt_graph_run(p->copy);
    }
    return good;
}

// Work of the device that takes about as long as the sums, the sums, and both at once. What a rank
// waits for the others before each is in none of them.
static bool time_overlap(struct probe *p, struct grt_dev *dev, double sums) {
    size_t n = p->rounds;
    double at[4];
    bool good = true;
    if (p->copies == 0) {
        at[0] = grt_seconds();
        good = grt_graph_finish(p->copy);
        double many = sums / fmax(grt_seconds() - at[0], 1e-7);
        p->copies = (uint32_t)fmin(fmax(many, 1), MOST_COPIES);
    }
    good = good && grt_comm_vote(p->comm);
    at[0] = grt_seconds();
    good = good && queue_copies(p) && grt_dev_wait(dev);
    p->times[PART_COPIES][n] = grt_seconds() - at[0];
    good = good && grt_comm_vote(p->comm);
    at[0] = grt_seconds();
    good = good && sum(p);
    p->times[PART_SUMS][n] = grt_seconds() - at[0];
    good = good && grt_comm_vote(p->comm);
    at[0] = grt_seconds();
    good = good && queue_copies(p);
    at[1] = grt_seconds();
    good = good && sum(p);
    at[2] = grt_seconds();
    good = good && grt_dev_wait(dev);
    at[3] = grt_seconds();
    p->times[PART_SEEN][n] = at[1] - at[0] + at[3] - at[2];
    p->times[PART_BEHIND][n] = at[2] - at[1];
    return good;
}

// What share of the sums is hidden behind work of the device that takes as long: none where the
// device is the processor that sums. Other work of the machine adds to a time, and most to sums, in
// which ranks wait for each other: so the device's work alone is the shortest, and sums that take
// less time beside it than alone hide nothing.
static double overlap_of(struct probe *p) {
    double copies = stats_of(p->times[PART_COPIES], p->rounds).min;
    double sums = stats_of(p->times[PART_SUMS], p->rounds).median;
    double most = fmin(copies, sums), shares[MOST_ROUNDS];
    if (most <= 0) {
        return 0;  // exchanges without sums
    }
    for (size_t i = 0; i < p->rounds; i++) {
        double slower = fmax(0, p->times[PART_BEHIND][i] - sums);
        shares[i] = (copies - p->times[PART_SEEN][i] - slower) / most;
    }
    return fmin(1, fmax(0, stats_of(shares, p->rounds).median));
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
    if (!grt_graph_finish(p->give) || !grt_comm_vote(p->comm)) {
        return false;
    }
    at[0] = grt_seconds();
    bool good = grt_graph_finish(p->take);
    at[1] = grt_seconds();
    good = good && sum(p);
    at[2] = grt_seconds();
    good = good && grt_graph_finish(p->give);
    at[3] = grt_seconds();
    double sums = time_sums(p, ranks);
    p->times[PART_READBACK][n] = at[1] - at[0];
    p->times[PART_HOST][n] = sums;
    p->times[PART_NETWORK][n] = at[2] - at[1];
    p->times[PART_UPLOAD][n] = at[3] - at[2];
    // The sum, as the device has it.
    float wanted = (float)ranks * (float)(ranks + 1) / 2;
    const float *down = grt_buf_host(p->down);
    good = good && time_overlap(p, dev, at[2] - at[1]) && grt_graph_finish(p->take);
    p->right = p->right && good && down[0] == wanted && down[p->count - 1] == wanted;
    return good;
}

static bool measure(struct probe *p, struct grt_dev *dev) {
    double begun = grt_seconds();
    uint32_t more = 1;
    // The first round maps memory.
    bool good = round_of(p, dev);
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
