// SPDX-License-Identifier: Apache-2.0
// Samples through a trained network, one batch after the other.
#include "pass.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/buffer.h"

void pass_end(struct pass *p) {
    grt_learner_destroy(&p->learner);
    grt_loader_destroy(&p->loader);
    grt_task_close(&p->task);
}

bool pass_begin(struct pass *p, struct grt_dev *dev, const struct grt_archive *model,
                enum grt_part part) {
    p->rows = p->task.info.part_rows[part];
    if (p->rows == 0) {
        grt_fail(GRT_BAD_DATA, "%s has no samples for that", p->task.config.data);
        goto undo;
    }
    if (p->rows < p->task.learner.batch) {
        p->task.learner.batch = (uint32_t)p->rows;
    }
    // Each row is read once: nothing to keep.
    grt_config_set(&p->task.config, GRT_CONFIG_CACHE, "none");
    p->learner = grt_learner_create(dev, &p->task.learner);
    if (!p->learner || !grt_learner_alloc(p->learner) ||
        (model && !grt_task_load_model(p->learner, model))) {
        goto undo;
    }
    uint32_t ranks = grt_comm_ranks(p->comm);
    struct grt_loader_share share = {grt_comm_rank(p->comm), 1, ranks};
    p->loader = grt_task_loader(&p->task, dev, part, GRT_FEED_HELD, ranks > 1 ? &share : NULL);
    if (p->loader) {
        return true;
    }
undo:
    pass_end(p);
    return false;
}

const void *pass_target(const struct pass *p, const struct grt_batch *batch, uint32_t row) {
    return (const uint32_t *)batch->y + (uint64_t)row * p->task.info.y_width;
}

double pass_weight(const struct pass *p, const struct grt_batch *batch, uint32_t row) {
    float weight = 1.0f;
    if (p->task.info.weighted) {
        const float *words = pass_target(p, batch, row);
        weight = words[p->task.info.y_width - 1];
    }
    return (double)weight;
}

// Images of a batch, from right to left.
static void mirror(const struct pass *p, uint64_t rows, float *x) {
    const struct grt_dataset_info *info = &p->task.info;
    uint64_t width = info->points / info->height, channels = info->features;
    for (uint64_t line = 0; line < rows * info->height; line++, x += width * channels) {
        for (uint64_t i = 0; i < width / 2; i++) {
            for (uint64_t c = 0; c < channels; c++) {
                float *left = &x[i * channels + c], *right = &x[(width - 1 - i) * channels + c];
                float kept = *left;
                *left = *right;
                *right = kept;
            }
        }
    }
}

// The way of a batch: up, through the network, and back.
struct way {
    struct grt_buf *in, *out;
    struct grt_graph *graph;
    uint32_t recorded;  // rows of the graph
    float *y;
};

static bool way_open(struct way *way, const struct pass *p, struct grt_dev *dev) {
    uint64_t batch = p->task.learner.batch, y_bytes = grt_learner_outputs(p->learner) * 4;
    way->in = grt_buf_create(dev, grt_buf_desc(.size = batch * grt_learner_x_bytes(p->learner),
                                               .kind = GRT_BUF_UPLOAD, .label = "batches"));
    way->out = grt_buf_create(
        dev, grt_buf_desc(.size = batch * y_bytes, .kind = GRT_BUF_READBACK, .label = "outputs"));
    way->y = malloc(batch * y_bytes);
    return way->in && way->out &&
           (way->y || grt_fail(GRT_NO_MEMORY, "no host memory for predictions"));
}

static void way_close(struct way *way) {
    free(way->y);
    grt_graph_destroy(&way->graph);
    grt_buf_destroy(&way->in);
    grt_buf_destroy(&way->out);
}

static bool run_batch(struct way *way, struct pass *p, const struct grt_batch *b) {
    uint64_t x_bytes = b->rows * grt_learner_x_bytes(p->learner);
    uint64_t numbers = b->rows * (uint64_t)grt_learner_outputs(p->learner);
    memcpy(grt_buf_host(way->in), b->x, x_bytes);
    if (b->rows != way->recorded) {
        grt_graph_destroy(&way->graph);
        way->graph = grt_learner_predict(p->learner,
                                         grt_step_desc(.rows = b->rows, .x = {way->in, 0, x_bytes}),
                                         (struct grt_range){way->out, 0, numbers * 4});
        way->recorded = b->rows;
    }
    if (!way->graph || !grt_graph_finish(way->graph)) {
        return false;
    }
    memcpy(way->y, grt_buf_host(way->out), numbers * 4);
    if (p->task.config.test_flips) {
        mirror(p, b->rows, grt_buf_host(way->in));
        if (!grt_graph_finish(way->graph)) {
            return false;
        }
        const float *other = grt_buf_host(way->out);
        for (uint64_t i = 0; i < numbers; i++) {
            way->y[i] = 0.5f * (way->y[i] + other[i]);
        }
    }
    return true;
}

static bool meet(const struct pass *p, bool good) {
    return p->meet ? p->meet(p->meets, good) : good;
}

bool pass_run(struct pass *p, struct grt_dev *dev, bool (*stop)(void), pass_fn *told,
              void *context) {
    if (p->task.config.test_flips && p->task.info.height == 0) {
        return grt_fail(GRT_CONFIG, "test_flips: samples of %s are no images", p->task.config.data);
    }
    struct way way = {0};
    uint64_t turns = grt_loader_info(p->loader).batches_per_epoch;
    bool good = meet(p, way_open(&way, p, dev));
    for (uint64_t turn = 0; good && turn < turns; turn++) {
        struct grt_batch b;
        bool given = !(stop && stop()) && grt_loader_next(p->loader, &b);
        good = meet(p, given && (b.rows == 0 || run_batch(&way, p, &b)));
        if (good) {
            told(context, p, &b, way.y);
        }
        if (given) {
            grt_loader_release(p->loader, &b);
        }
    }
    way_close(&way);
    return good;
}
