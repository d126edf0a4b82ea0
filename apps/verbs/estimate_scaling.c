// SPDX-License-Identifier: Apache-2.0
#include "estimate_scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole_file.h"
#include "cli/command.h"
#include "cli/talk.h"
#include "estimate/scaling.h"
#include "gpurt/env.h"
#include "gpurt/rollout.h"

#define USUAL_GPUS "8-1024*2"
#define MOST_GPUS 65536

// Work of one GPU, a row of a suite that is estimated, and what is exchanged for it. Each GPU has
// as much as that, however many there are.
static const struct workload {
    const char *name, *suite, *what;
    struct {
        const char *key;
        double number;
    } cells[4];          // that tell the row
    double bytes;        // of one exchange; 0: of the results of directions
    uint32_t exchanges;  // in a step
    uint32_t words;      // exchanges of some bytes in a step: votes, sums of rows, losses
    double passes;       // over the bytes of an exchange on the host, besides those of the sum
    double states;       // bytes of a GPU that all others get where a checkpoint is due
    bool hides;          // behind backward, in buckets
} workloads[] = {
    {.name = "data parallel",
     .suite = "images",
     .what = "ResNet-18, 1,024 images of side 32 a GPU, f16; gradients of 11.2 M parameters",
     .cells = {{"resolution", 32}, {"batch", 1024}},
     .bytes = 4 * 11173962.0,
     .exchanges = 1,
     .words = 1,
     .hides = true},
    {.name = "es",
     .suite = "rollout",
     .what = "the standing robot, 64 directions of 1,024 environments a GPU; returns and sums",
     .cells = {{"num_envs", 1024}, {"num_dirs", 64}},
     .exchanges = 1,
     .words = 1},
    {.name = "ppo",
     .suite = "ppo",
     .what = "ten UAVs, 4,096 copies a GPU, f16; gradients of 37,130 parameters, 16 times, and "
             "every tenth iteration the states of all copies, 468 B each",
     .cells = {{"num_envs", 4096}, {"agents", 10}},
     .bytes = 4 * 37130.0,
     .exchanges = 16,
     .words = 16 + 1 + 2,
     .passes = 4,
     .states = 4096 * 468.0},
};
#define WORKLOADS (sizeof workloads / sizeof *workloads)
#define ES_DIRS 64
#define SAVE_EVERY 10  // iterations of PPO, where nothing else is said

bool estimate_read_gpus(const char *text, void *into, char why[RANGES_WHY]) {
    struct ranges *list = into;
    ranges_destroy(list);
    if (!ranges_parse(text, &(struct ranges_rule){.min = 1, .max = MOST_GPUS}, list, why)) {
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        if ((list->values[i] & (list->values[i] - 1)) != 0) {
            snprintf(why, RANGES_WHY, "%llu is no power of two: sums are made in a tree",
                     (unsigned long long)list->values[i]);
            ranges_destroy(list);
            return false;
        }
    }
    return true;
}

// X(name, key, heading, unit, type, precision, width)
#define COLUMNS(X)                                                                                 \
    X(CARD, "card", "card", NULL, TEXT, 0, 0)                                                      \
    X(WORKLOAD, "workload", "workload", NULL, TEXT, 0, 0)                                          \
    X(LINK, "link", "link", NULL, TEXT, 0, 0)                                                      \
    X(GPUS, "gpus", "GPUs", NULL, COUNT, 0, 5)                                                     \
    X(MACHINES, "machines", "machines", NULL, COUNT, 0, 0)                                         \
    X(COMPUTE, "compute_ms", "compute", "ms", NUMBER, 2, 8)                                        \
    X(READBACK, "readback_ms", "", "ms", NUMBER, 3, 0)                                             \
    X(HOST, "host_ms", "", "ms", NUMBER, 3, 0)                                                     \
    X(NETWORK, "network_ms", "", "ms", NUMBER, 3, 0)                                               \
    X(UPLOAD, "upload_ms", "", "ms", NUMBER, 3, 0)                                                 \
    X(EXCHANGE, "exchange_ms", "exchange", "ms", NUMBER, 3, 9)                                     \
    X(HIDDEN, "hidden_ms", "hidden", "ms", NUMBER, 2, 8)                                           \
    X(STEP, "step_ms", "step", "ms", NUMBER, 2, 8)                                                 \
    X(EFFICIENCY, "efficiency", "efficiency", NULL, SHARE, 1, 0)                                   \
    X(FASTER, "speed_up", "times one GPU", NULL, NUMBER, 1, 0)

enum column {
    COLUMNS(TABLE_ENTRY) COLUMN_COUNT,
};
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};
#define BIT(name) (1ull << COLUMN_##name)

struct run {
    const struct estimate_scaling *desc;
    struct links links;
    bool link[LINK_MAX];
    struct ranges gpus;
    struct table table;
    size_t rows;
};

static double cell_of(const struct report_cell *cells, size_t count, const char *key) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cells[i].key, key) == 0) {
            return cells[i].number;
        }
    }
    return 0;
}

// Seconds of the workload on one card; false: nothing is known of it there.
static bool seconds_of(const struct run *run, const struct workload *w, const struct card *card,
                       const char *backend, double *seconds) {
    size_t s = 0;
    while (strcmp(suites[s].name, w->suite) != 0) {
        s++;
    }
    struct fit fit;
    struct report_cell cells[SUITE_CELLS];
    struct report_row row = {.cells = cells};
    if (!fit_suite(&suites[s], backend, run->desc->records, run->desc->cards, &fit)) {
        return false;
    }
    for (size_t i = 0; (row.cell_count = suites[s].row(i, 0, cells)) > 0; i++) {
        bool same = true;
        struct estimate e;
        for (size_t k = 0; k < 4 && w->cells[k].key; k++) {
            same = same && cell_of(cells, row.cell_count, w->cells[k].key) == w->cells[k].number;
        }
        if (same && estimate_row(&fit, &suites[s], card, &row, &e)) {
            *seconds = e.seconds;
            return true;
        }
    }
    return false;
}

// What the directions of a GPU tell: results, and two sums of each observation, of both sides.
static double es_bytes(void) {
    const struct grt_env_info *env = grt_env_find("standing");
    return 4.0 * 2 * ES_DIRS * (GRT_ROLLOUT_RESULTS + 2.0 * (env ? env->obs : 0));
}

// Of all exchanges of a step.
static struct scaling_parts parts_of(const struct workload *w, const struct link *link,
                                     double gpus) {
    if (gpus <= 1) {
        return (struct scaling_parts){0};
    }
    // The rest behind the buckets is a piece too.
    double pieces = w->hides ? ceil(scaling_buckets(w->bytes)) + 1 : 1;
    struct scaling_parts p = w->bytes > 0
                                 ? scaling_cluster_sum(link, gpus, w->bytes, pieces, w->passes)
                                 : scaling_cluster_gather(link, gpus, es_bytes());
    double many = w->exchanges;
    p = (struct scaling_parts){many * p.readback, many * p.host, many * p.network, many * p.upload};
    p.network += w->words * scaling_cluster_gather(link, gpus, 0).network;
    p.readback += w->states / SAVE_EVERY / (SCALING_COPY_SHARE * link->copy);
    if (w->states > 0) {
        p.network += scaling_cluster_gather(link, gpus, w->states).network / SAVE_EVERY;
    }
    return p;
}

static bool print_row(struct run *run, const struct workload *w, const struct card *card,
                      const struct link *link, double gpus, double compute) {
    struct scaling_parts p = parts_of(w, link, gpus);
    double exchange = scaling_sum(&p);
    double hidden = w->hides ? scaling_hidden(compute, exchange, run->desc->options->overlap) : 0;
    double step = compute + exchange - hidden;
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_CARD] = TABLE_CELL(.text = card->id),
        [COLUMN_WORKLOAD] = TABLE_CELL(.text = w->name),
        [COLUMN_LINK] = TABLE_CELL(.text = link->id),
        [COLUMN_GPUS] = TABLE_CELL(.count = (uint64_t)gpus),
        [COLUMN_MACHINES] = TABLE_CELL(.count = (uint64_t)ceil(gpus / link->gpus)),
        [COLUMN_COMPUTE] = TABLE_CELL(.number = 1e3 * compute),
        [COLUMN_READBACK] = TABLE_CELL(.number = 1e3 * p.readback),
        [COLUMN_HOST] = TABLE_CELL(.number = 1e3 * p.host),
        [COLUMN_NETWORK] = TABLE_CELL(.number = 1e3 * p.network),
        [COLUMN_UPLOAD] = TABLE_CELL(.number = 1e3 * p.upload),
        [COLUMN_EXCHANGE] = TABLE_CELL(.number = 1e3 * exchange),
        [COLUMN_HIDDEN] = TABLE_CELL(.number = 1e3 * hidden),
        [COLUMN_STEP] = TABLE_CELL(.number = 1e3 * step),
        [COLUMN_EFFICIENCY] = TABLE_CELL(.number = compute / step),
        [COLUMN_FASTER] = TABLE_CELL(.number = gpus * compute / step),
    };
    run->rows++;
    return table_row(&run->table, cells);
}

static bool print_card(struct run *run, const struct card *card, const char *backend) {
    const uint64_t shown = BIT(GPUS) | BIT(MACHINES) | BIT(COMPUTE) | BIT(EXCHANGE) | BIT(HIDDEN) |
                           BIT(STEP) | BIT(EFFICIENCY) | BIT(FASTER);
    bool good = true;
    for (size_t i = 0; i < WORKLOADS && good; i++) {
        const struct workload *w = &workloads[i];
        double compute = 0;
        if (!seconds_of(run, w, card, backend, &compute)) {
            continue;
        }
        for (size_t k = 0; k < run->links.count && good; k++) {
            const struct link *link = &run->links.list[k];
            char title[3 * CARD_WHY];
            snprintf(title, sizeof title, "%s over %.60s: %.100s by %s", w->name, link->id,
                     card->name, backend);
            good = !run->link[k] || table_section(&run->table, title, shown, NULL, 0);
            for (size_t n = 0; n < run->gpus.count && good && run->link[k]; n++) {
                good = print_row(run, w, card, link, (double)run->gpus.values[n], compute);
            }
        }
    }
    return good;
}

static int read_links(struct run *run) {
    const struct estimate_scaling_options *o = run->desc->options;
    uint64_t size = strlen(estimate_links);
    char why[CARD_WHY];
    char *text = o->links ? grt_whole_file_read_any(o->links, CARD_MAX_FILE, &size) : NULL;
    if (o->links && !text) {
        return command_exit_of(grt_last_status());
    }
    bool good = links_read(&run->links, text ? text : estimate_links, (size_t)size, why);
    free(text);
    if (!good) {
        talk_error("'%s': %s", o->links ? o->links : "links.json", why);
        return COMMAND_DATA;
    }
    // It names every link that there is.
    struct command_unknown links = {.what = "link", .help = "gpurt estimate --scaling"};
    return estimate_choose(o->link ? o->link : "all", links, run->links.list, run->links.count,
                           sizeof *run->links.list, run->link);
}

static json_t *head(const char *backend, double overlap) {
    return json_pack("{s:s, s:s, s:{s:f, s:f, s:f, s:f, s:f, s:f}}", "nature", "predicted", "api",
                     backend, "assumed", "copy_share", SCALING_COPY_SHARE, "memory_share",
                     SCALING_MEMORY_SHARE, "network_share", SCALING_NETWORK_SHARE,
                     "inner_latency_us", 1e6 * SCALING_INNER_LATENCY, "backward_share",
                     SCALING_BACKWARD, "overlap", overlap);
}

static int print(struct run *run) {
    const struct estimate_scaling *d = run->desc;
    size_t b = 0;
    while (b + 1 < ESTIMATE_BACKENDS && !d->backend[b]) {
        b++;
    }
    struct table_desc desc = {.output = d->output,
                              .format = d->common->format,
                              .columns = columns,
                              .column_count = COLUMN_COUNT,
                              .schema = "gpurt.estimate.scaling/1",
                              .argc = d->argc,
                              .argv = d->argv,
                              .head = head(estimate_backends[b], d->options->overlap)};
    bool good = table_open(&run->table, &desc);
    for (size_t i = 0; i < d->cards->count && good; i++) {
        good = !d->card[i] || print_card(run, &d->cards->list[i], estimate_backends[b]);
    }
    table_close(&run->table);
    for (size_t i = 0; i < WORKLOADS && !d->common->quiet; i++) {
        talk_line("%s: %s", workloads[i].name, workloads[i].what);
    }
    for (size_t i = 0; i < run->links.count && !d->common->quiet; i++) {
        if (run->link[i]) {
            talk_line("%s: %s", run->links.list[i].id, run->links.list[i].name);
        }
    }
    if (good && run->rows == 0) {
        talk_error("nothing is known of these workloads on this card");
        return COMMAND_DATA;
    }
    return COMMAND_OK;
}

int estimate_scaling(const struct estimate_scaling *desc) {
    struct run *run = calloc(1, sizeof *run);
    char why[RANGES_WHY];
    int code = COMMAND_INTERNAL;
    if (!run) {
        talk_error("out of memory");
        return code;
    }
    run->desc = desc;
    code = read_links(run);
    const struct ranges *given = &desc->options->gpus;
    if (!code && given->count == 0 && !estimate_read_gpus(USUAL_GPUS, &run->gpus, why)) {
        talk_error("%s", why);
        code = COMMAND_INTERNAL;
    }
    struct ranges usual = run->gpus;
    run->gpus = given->count > 0 ? *given : usual;
    code = code ? code : print(run);
    ranges_destroy(&usual);
    links_finish(&run->links);
    free(run);
    return code;
}
