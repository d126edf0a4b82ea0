// SPDX-License-Identifier: Apache-2.0
// Networks of ONNX files as checkpoints. runtime/onnx gives the layers as text and their numbers in
// order; what these are called is asked of the network itself.
#include "onnx_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "onnx/network.h"

void onnx_undo(struct onnx_declared *d) {
    grt_module_destroy(&d->module);
    grt_plan_destroy(&d->plan);
    grt_params_finish(&d->params);
    grt_net_finish(&d->net);
    grt_dev_destroy(&d->dev);
}

bool onnx_declare(struct onnx_declared *d, struct grt_module *module, const char *prefix,
                  const struct grt_shape *in) {
    *d = (struct onnx_declared){.module = module};
    d->dev = module ? grt_dev_create(grt_dev_desc(.backend = "ref")) : NULL;
    d->plan = d->dev ? grt_plan_create(d->dev) : NULL;
    if (!d->plan) {
        return false;
    }
    grt_params_init(&d->params, d->dev, GRT_F32);
    d->net = (struct grt_net){
        .dev = d->dev, .plan = d->plan, .params = &d->params, .rows = 1, .inference = true};
    return grt_module_declare(module, &d->net, prefix, in).rank > 0 &&
           (!d->params.failed || grt_fail(GRT_NO_MEMORY, "no host memory for a network"));
}

// ---- reading ----

static bool describe(struct grt_archive *archive, const struct onnx_network *net) {
    bool image = net->rank == 3;
    uint64_t places = image ? net->dims[0] * net->dims[1] : net->rank == 2 ? net->dims[0] : 0;
    uint64_t features = net->dims[net->rank - 1];
    size_t room = strlen(net->text) + 128;
    char *config = malloc(room);
    if (!config) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", archive->path);
    }
    snprintf(config, room, "normalize: %s\nnetwork: %s\nloss: %s\n", net->mean ? "true" : "false",
             net->text, net->softmax ? "cross_entropy" : "mse");
    bool good =
        grt_archive_set_text(archive, "config", config) &&
        grt_archive_set_whole(archive, "features", (int64_t)features) &&
        grt_archive_set_whole(archive, "points", (int64_t)places) &&
        (!image || grt_archive_set_whole(archive, "height", (int64_t)net->dims[0])) &&
        grt_archive_set_whole(archive, "outputs", (int64_t)net->outputs) &&
        grt_archive_set_whole(archive, "classes", net->softmax ? (int64_t)net->outputs : 0) &&
        (!net->mean || (grt_archive_add(archive, "data/mean", GRT_F32, 1, &features, net->mean) &&
                        grt_archive_add(archive, "data/std", GRT_F32, 1, &features, net->std)));
    free(config);
    return good;
}

// The next parameter or buffer of the network, which must be as the piece is.
static bool add_piece(struct grt_archive *archive, const struct onnx_piece *piece,
                      const struct grt_param *param) {
    char name[GRT_ARCHIVE_NAME];
    bool same = param && param->rank == piece->rank;
    for (uint32_t i = 0; same && i < piece->rank; i++) {
        same = param->shape[i] == piece->shape[i];
    }
    if (!same) {
        return grt_fail(GRT_BAD_DATA, "%s: its layers have other parameters than its nodes",
                        archive->path);
    }
    snprintf(name, sizeof name, "model/%s", param->name);
    return grt_archive_add(archive, name, GRT_F32, piece->rank, piece->shape, piece->numbers);
}

static bool add_pieces(struct grt_archive *archive, const struct onnx_network *net,
                       const struct onnx_declared *d) {
    uint32_t params = 0, buffers = 0;
    bool good = true;
    for (uint32_t i = 0; good && i < net->piece_count; i++) {
        const struct onnx_piece *piece = &net->pieces[i];
        uint32_t *at = piece->buffer ? &buffers : &params;
        uint32_t most = piece->buffer ? d->params.buffer_count : d->params.count;
        struct grt_param *const *list = piece->buffer ? d->params.buffers : d->params.list;
        good = add_piece(archive, piece, *at < most ? list[*at] : NULL);
        ++*at;
    }
    return good;
}

struct grt_archive *grt_onnx_load(const char *path) {
    struct onnx_declared d = {0};
    if (!path) {
        grt_fail(GRT_INVALID, "a path is wanted");
        return NULL;
    }
    struct onnx_network *net = onnx_network_load(path);
    struct grt_archive *archive = net ? grt_archive_create() : NULL;
    struct grt_task *task = archive ? calloc(1, sizeof *task) : NULL;  // too large for the stack
    bool good = task != NULL;
    if (good) {
        snprintf(archive->path, sizeof archive->path, "%.1023s", path);
        const struct grt_learner_desc *l = &task->learner;
        good = describe(archive, net) && grt_task_open_kept(task, archive, false) &&
               onnx_declare(&d, l->make(l->of), "", &l->input) && add_pieces(archive, net, &d);
    }
    if (!good) {
        grt_archive_destroy(&archive);
    }
    onnx_undo(&d);
    free(task);
    onnx_network_destroy(&net);
    return archive;
}
