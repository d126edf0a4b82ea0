// SPDX-License-Identifier: Apache-2.0
// A learner in an archive and back, bit for bit. The policy lies there as PyTorch would have it; what only the
// optimizer needs lies there as the device has it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "es_parts.h"

#define VALUE_COUNT 3

// What must agree for a checkpoint to be taken over.
struct identity {
    char policy[GRT_POLICY_TEXT];
    const char *names[VALUE_COUNT];
    const char *texts[VALUE_COUNT];
};

static void identify(const struct grt_es *es, struct identity *identity) {
    grt_policy_text(&es->desc.policy, identity->policy);
    const char *names[VALUE_COUNT] = {"env", "policy", "algo"};
    const char *texts[VALUE_COUNT] = {es->desc.env->name, identity->policy,
                                      grt_es_algo_text(es->desc.algo)};
    memcpy(identity->names, names, sizeof names);
    memcpy(identity->texts, texts, sizeof texts);
}

static bool read_tensor(const struct grt_tensor *tensor, void *data) {
    return grt_buf_read(tensor->range.buf, tensor->range.offset, data, grt_tensor_bytes(tensor));
}

static void tensor_name(char name[GRT_ARCHIVE_NAME], const struct grt_policy_tensor *t) {
    snprintf(name, GRT_ARCHIVE_NAME, "model/%s", t->name);
}

// ---- saving ----

static bool save_policy(const struct grt_es *es, struct grt_archive *archive) {
    const struct grt_es_desc *d = &es->desc;
    float *numbers = malloc(grt_tensor_bytes(es->theta));
    if (!numbers) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a policy");
    }
    bool ok = read_tensor(es->theta, numbers);
    struct grt_policy_tensor t;
    for (uint32_t i = 0; ok && grt_policy_tensor(&d->policy, d->env, i, &t); i++) {
        char name[GRT_ARCHIVE_NAME];
        const uint64_t shape[2] = {t.shape[0], t.shape[1]};
        tensor_name(name, &t);
        struct grt_archive_tensor *into =
            grt_archive_add(archive, name, GRT_F32, t.rank, shape, NULL);
        float *data = into ? into->data : NULL;
        ok = data != NULL;
        for (uint32_t k = 0; ok && k < t.shape[0] * t.shape[1]; k++) {
            data[k] =
                numbers[grt_policy_index(&d->policy, d->env, i, k / t.shape[1], k % t.shape[1])];
        }
    }
    free(numbers);
    return ok;
}

bool grt_es_save(const struct grt_es *es, struct grt_archive *archive) {
    if (!es || !archive) {
        return grt_fail(GRT_INVALID, "grt_es_save: no %s", es ? "archive" : "learner");
    }
    const struct grt_es_desc *d = &es->desc;
    struct identity identity;
    identify(es, &identity);
    bool ok =
        save_policy(es, archive) &&
        grt_archive_take(archive, "normalizer/mean_rstd_variance", es->norm) &&
        grt_archive_take(archive, "optimizer/report", es->report) &&
        (d->algo != GRT_ES_RANKS || grt_archive_take(archive, "optimizer/moments", es->moments));
    for (int i = 0; ok && i < VALUE_COUNT; i++) {
        ok = grt_archive_set_text(archive, identity.names[i], identity.texts[i]);
    }
    return ok && grt_archive_set_whole(archive, "iteration", es->done) &&
           grt_archive_set_whole(archive, "seed", d->seed) &&
           grt_archive_set_whole(archive, "phase", d->phase) &&
           grt_archive_set_whole(archive, "num_envs", d->num_envs) &&
           grt_archive_set_whole(archive, "num_dirs", d->num_dirs) &&
           grt_archive_set_whole(archive, "top_dirs", d->top_dirs) &&
           grt_archive_set_whole(archive, "episode_length", d->episode_length) &&
           grt_archive_set_whole(archive, "normalise", !d->no_normalise) &&
           grt_archive_set_real(archive, "step_size", (double)d->step_size) &&
           grt_archive_set_real(archive, "noise_std", (double)d->noise_std);
}

// ---- loading ----

// The archive's tensors put into the kernel's order; NULL with a sentence.
static float *load_policy(const struct grt_es *es, const struct grt_archive *archive) {
    const struct grt_es_desc *d = &es->desc;
    float *numbers = calloc(es->quads, 4 * sizeof *numbers);
    if (!numbers) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a policy");
        return NULL;
    }
    bool ok = true;
    struct grt_policy_tensor t;
    for (uint32_t i = 0; ok && grt_policy_tensor(&d->policy, d->env, i, &t); i++) {
        char name[GRT_ARCHIVE_NAME];
        tensor_name(name, &t);
        const struct grt_archive_tensor *from = grt_archive_find(archive, name);
        uint64_t bytes = (uint64_t)t.shape[0] * t.shape[1] * sizeof(float);
        ok = from && from->dtype == GRT_F32 && from->rank == t.rank && from->bytes == bytes &&
             from->shape[0] == t.shape[0];
        if (!ok) {
            grt_fail(GRT_INVALID, "%s: tensor '%s' %s",
                     archive->path[0] ? archive->path : "checkpoint", name,
                     from ? "has another shape" : "is missing");
        }
        for (uint32_t k = 0; ok && k < t.shape[0] * t.shape[1]; k++) {
            float x;
            memcpy(&x, (const char *)from->data + k * sizeof x, sizeof x);
            numbers[grt_policy_index(&d->policy, d->env, i, k / t.shape[1], k % t.shape[1])] = x;
        }
    }
    if (!ok) {
        free(numbers);
        numbers = NULL;
    }
    return numbers;
}

bool grt_es_load(struct grt_es *es, const struct grt_archive *archive, bool model_only) {
    if (!es || !archive) {
        return grt_fail(GRT_INVALID, "grt_es_load: no %s", es ? "archive" : "learner");
    }
    const char *path = archive->path[0] ? archive->path : "checkpoint";
    struct identity identity;
    identify(es, &identity);
    for (int i = 0; i < VALUE_COUNT - (model_only ? 1 : 0); i++) {
        const char *found = grt_archive_text(archive, identity.names[i], "");
        if (strcmp(found, identity.texts[i]) != 0) {
            return grt_fail(GRT_INVALID, "%s: its %s is '%s' and not '%s'", path, identity.names[i],
                            found, identity.texts[i]);
        }
    }
    const struct grt_archive_tensor *norm =
        grt_archive_find(archive, "normalizer/mean_rstd_variance");
    const struct grt_archive_tensor *report = grt_archive_find(archive, "optimizer/report");
    // A converted policy comes without what the optimizer had to say; it can be begun with.
    bool told = report && report->bytes == grt_tensor_bytes(es->report);
    if (!norm || norm->bytes != grt_tensor_bytes(es->norm) || (!told && (report || !model_only))) {
        return grt_fail(GRT_INVALID, "%s: no checkpoint of a policy for '%s'", path,
                        es->desc.env->name);
    }
    float *numbers = load_policy(es, archive);
    if (!numbers) {
        return false;
    }
    float words[ES_REPORT];
    if (told) {
        memcpy(words, report->data, sizeof words);
    } else if (!read_tensor(es->report, words)) {
        free(numbers);
        return false;
    }
    if (model_only) {
        words[ES_POWER1] = words[ES_POWER2] = 1.0f;
    }
    es->done = model_only ? 0 : (uint32_t)grt_archive_whole(archive, "iteration", 0);
    struct grt_rng_state control = {{es->desc.seed, 0}, {es->done, 0}};
    bool ok = grt_es_write(es->theta, numbers) &&
              (es->desc.blind || grt_es_write(es->norm, norm->data)) &&
              grt_es_write(es->report, words) && grt_es_write(es->control, &control) &&
              (model_only || es->desc.algo != GRT_ES_RANKS ||
               grt_archive_give(archive, "optimizer/moments", es->moments));
    free(numbers);
    return ok;
}
