// SPDX-License-Identifier: Apache-2.0
// Samples through a trained network, batch by batch, up to its last layers.
#include "gpurt/features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pass.h"
#include "run/task/task_parts.h"

#define QUERIES 0.2  // share of the samples, where no others are there

void grt_features_finish(struct grt_features *f) {
    free(f->x);
    free(f->classes);
    *f = (struct grt_features){0};
}

void grt_features_of_finish(struct grt_features_of *of) {
    grt_features_finish(&of->bank);
    grt_features_finish(&of->queries);
    grt_features_finish(&of->bank_x);
    grt_features_finish(&of->queries_x);
}

// ---- which samples ----

struct choice {
    const char *inputs, *targets;  // of the bank; inputs NULL: as the model has them
    bool labelled;                 // the bank has classes
    bool test;                     // the queries are test/x and test/y
};

static const struct grt_array_info *find(const struct grt_file_info *file, const char *name) {
    for (uint32_t i = 0; i < file->count; i++) {
        const char *found = file->arrays[i].name;
        if (strcmp(found + (found[0] == '/'), name + (name[0] == '/')) == 0) {
            return &file->arrays[i];
        }
    }
    return NULL;
}

static bool has(const struct grt_file_info *file, const char *name) {
    return find(file, name) != NULL;
}

// Targets that are numbers are no classes.
static bool has_classes(const struct grt_file_info *file, const char *name) {
    const struct grt_array_info *array = find(file, name);
    return array && array->dtype[0] && strchr("iub", array->dtype[0]);
}

static const char *first_of(const struct grt_config_names *names, const char *otherwise) {
    return names->count > 0 ? names->values[0] : otherwise;
}

// A model may have been trained on samples without classes: x and y are meant all the same, unless
// others are named.
static bool choose(const struct grt_config *c, struct choice *choice) {
    if (task_unnamed(c->data)) {
        *choice = (struct choice){.targets = "y"};
        return true;
    }
    const char *path = grt_direct_path(c->data);
    struct grt_file_info *file = path ? grt_file_info_create(path) : NULL;
    if (!file) {
        return false;
    }
    bool named = grt_config_given(c, GRT_CONFIG_INPUTS);
    *choice = (struct choice){.targets = first_of(&c->targets, "y")};
    choice->inputs = named ? NULL : has(file, "x") ? "x" : NULL;
    choice->labelled = has_classes(file, choice->targets);
    choice->test = !named && !grt_config_given(c, GRT_CONFIG_TARGETS) && has(file, "test/x") &&
                   has(file, "test/y");
    grt_file_info_destroy(&file);
    return true;
}

bool grt_features_labelled(const struct grt_config *config) {
    struct choice choice;
    return config && choose(config, &choice) && choice.labelled;
}

// ---- through the network ----

struct kept {
    struct grt_comm *comm;
    uint64_t batch;  // rows of one
    uint64_t done;   // batches, of all ranks
    bool good;       // all have what all have
    bool (*meet)(void *context, bool good);
    void *context;
    struct grt_features *y, *x;  // x may be NULL
};

// Room for whole turns of all ranks.
static bool make_room(struct grt_features *f, uint64_t rows, uint64_t turn, uint64_t width,
                      bool classes) {
    uint64_t room = (rows + turn - 1) / turn * turn;
    *f = (struct grt_features){.rows = rows, .width = width};
    f->x = calloc(room * width, sizeof *f->x);
    f->classes = classes ? calloc(room, sizeof *f->classes) : NULL;
    return (f->x && (f->classes || !classes)) ||
           grt_fail(GRT_NO_MEMORY, "no host memory for %llu samples of %llu numbers",
                    (unsigned long long)rows, (unsigned long long)width);
}

static void keep(void *context, const struct pass *p, const struct grt_batch *b, const float *y) {
    struct kept *kept = context;
    struct grt_features *sets[] = {kept->y, kept->x};
    const float *from[] = {y, b->x};
    uint64_t turn = kept->done * kept->batch;
    uint64_t own = turn + grt_comm_rank(kept->comm) * kept->batch;
    (void)p;
    for (int i = 0; i < 2; i++) {
        struct grt_features *f = sets[i];
        if (f) {
            memcpy(f->x + own * f->width, from[i], b->rows * f->width * sizeof *f->x);
            kept->good = kept->good && grt_comm_gather(kept->comm, f->x + turn * f->width,
                                                       kept->batch * f->width * sizeof *f->x);
        }
        if (f && f->classes) {
            memcpy(f->classes + own, b->y, b->rows * sizeof *f->classes);
            kept->good = kept->good && grt_comm_gather(kept->comm, f->classes + turn,
                                                       kept->batch * sizeof *f->classes);
        }
    }
    kept->done += grt_comm_ranks(kept->comm);
}

static bool meet(void *context, bool good) {
    const struct kept *kept = context;
    good = good && kept->good;
    return kept->meet ? kept->meet(kept->context, good) : good;
}

// The samples of a part, as the network has them at its end, and as they are.
static bool take(struct grt_dev *dev, const struct grt_features_desc *d,
                 const struct grt_task_samples *samples, enum grt_part part, struct grt_features *y,
                 struct grt_features *x) {
    struct kept kept = {
        .comm = d->comm, .good = true, .meet = d->meet, .context = d->context, .y = y, .x = x};
    struct pass p = {.comm = d->comm, .meet = meet, .meets = &kept};
    bool begun =
        grt_task_open_features(&p.task, d->model, d->config, grt_dev_profile(dev), samples) &&
        pass_begin(&p, dev, d->drawn ? NULL : d->model, part);
    bool classes = begun && p.task.info.classes > 0, good = begun;
    if (begun) {
        kept.batch = p.task.learner.batch;
        uint64_t turn = kept.batch * grt_comm_ranks(d->comm);
        good = make_room(y, p.rows, turn, grt_learner_outputs(p.learner), classes) &&
               (!x || make_room(x, p.rows, turn, p.task.info.x_width, classes));
    }
    char sizes[96];
    snprintf(sizes, sizeof sizes, "%llu of %llu numbers, %u at once, %u classes",
             (unsigned long long)p.rows, (unsigned long long)y->width, (uint32_t)kept.batch,
             p.task.info.classes);
    good = meet(&kept, good) && grt_comm_agree(d->comm, "samples", sizes) &&
           pass_run(&p, dev, d->stop, keep, &kept);
    if (begun) {
        pass_end(&p);
    }
    return good && kept.good;
}

bool grt_features_take(struct grt_dev *dev, const struct grt_features_desc *d,
                       struct grt_features_of *of) {
    struct choice choice = {0};
    if (!dev || !d || !d->model || !d->config || !of) {
        return grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
    }
    *of = (struct grt_features_of){0};
    bool chosen = choose(d->config, &choice);
    if (d->meet ? !d->meet(d->context, chosen) : !chosen) {
        return false;
    }
    if (!choice.labelled && task_unnamed(d->config->data)) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: its classes have no name here: `gpurt data import` makes "
                        "HDF5 of it, and a .npz has x and y",
                        d->config->data);
    }
    if (!choice.labelled) {
        return grt_fail(GRT_BAD_DATA, "%s has no classes '%s'; `targets` names others",
                        d->config->data, choice.targets);
    }
    double split =
        grt_config_given(d->config, GRT_CONFIG_VALIDATION_SPLIT) && d->config->validation_split > 0
            ? d->config->validation_split
            : QUERIES;
    struct grt_task_samples bank = {.inputs = choice.inputs, .targets = choice.targets};
    struct grt_task_samples queries = bank;
    bank.validation_split = queries.validation_split = choice.test ? 0 : split;
    if (choice.test) {
        queries.inputs = "test/x";
        queries.targets = "test/y";
    }
    bool good = take(dev, d, &bank, choice.test ? GRT_PART_ALL : GRT_PART_TRAIN, &of->bank,
                     d->pixels ? &of->bank_x : NULL) &&
                take(dev, d, &queries, choice.test ? GRT_PART_ALL : GRT_PART_VALIDATION,
                     &of->queries, d->pixels ? &of->queries_x : NULL);
    if (!good) {
        grt_features_of_finish(of);
    }
    return good;
}

struct grt_archive *grt_features_archive(struct grt_dev *dev, const struct grt_archive *model,
                                         const struct grt_config *config, bool (*stop)(void)) {
    struct choice choice;
    struct grt_features f = {0};
    if (!dev || !model || !config) {
        grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
        return NULL;
    }
    if (!choose(config, &choice)) {
        return NULL;
    }
    struct grt_task_samples samples = {.targets = choice.labelled ? choice.targets : NULL};
    const struct grt_features_desc desc = {.model = model, .config = config, .stop = stop};
    struct grt_archive *archive =
        take(dev, &desc, &samples, GRT_PART_ALL, &f, NULL) ? grt_archive_create() : NULL;
    uint64_t shape[2] = {f.rows, f.width};
    if (archive &&
        (!grt_archive_add(archive, "embedding", GRT_F32, 2, shape, f.x) ||
         (f.classes && !grt_archive_add(archive, "class", GRT_U32, 1, shape, f.classes)))) {
        grt_archive_destroy(&archive);
    }
    grt_features_finish(&f);
    return archive;
}
