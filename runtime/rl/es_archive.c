// SPDX-License-Identifier: Apache-2.0
// A learner in an archive and back, bit for bit. The policy lies there as PyTorch would have it;
// what only the optimizer needs lies there as the device has it.
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

// ---- saving ----

static bool save_policy(const struct grt_es *es, struct grt_archive *archive) {
    float *numbers = malloc(grt_tensor_bytes(es->theta));
    if (!numbers) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a policy");
    }
    bool ok = grt_es_read(es->theta, numbers);
    // With ema the policy is the average, which evaluations are of.
    ok = ok &&
         grt_policy_save(&es->desc.policy, es->desc.env, es->average ? es->average : numbers,
                         archive) &&
         (!es->average || grt_archive_take(archive, "optimizer/newest", es->theta));
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
    char digest[GRT_ENV_DIGEST];
    grt_env_digest(d->env, digest);
    return ok && (!digest[0] || grt_archive_set_text(archive, "env_digest", digest)) &&
           grt_archive_set_whole(archive, "iteration", es->done) &&
           grt_archive_set_whole(archive, "seed", d->seed) &&
           grt_archive_set_whole(archive, "phase", d->phase) &&
           grt_archive_set_whole(archive, "num_envs", d->num_envs) &&
           grt_archive_set_whole(archive, "num_dirs", d->num_dirs) &&
           grt_archive_set_whole(archive, "top_dirs", d->top_dirs) &&
           grt_archive_set_whole(archive, "episode_length", d->episode_length) &&
           grt_archive_set_whole(archive, "normalise", !d->no_normalise) &&
           grt_archive_set_real(archive, "step_size", (double)d->step_size) &&
           grt_archive_set_real(archive, "noise_std", (double)d->noise_std) &&
           (!es->average || grt_archive_set_real(archive, "ema", d->ema));
}

// ---- loading ----

// A changed file goes on learning, but not unseen.
static void compare_env(const struct grt_env_info *env, const struct grt_archive *archive,
                        const char *path) {
    char digest[GRT_ENV_DIGEST];
    const char *found = grt_archive_text(archive, "env_digest", "");
    grt_env_digest(env, digest);
    if (found[0] && strcmp(found, digest) != 0) {
        grt_log(GRT_LOG_WARN, "%s: it was trained in another text of environment '%s'", path,
                env->name);
    }
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
    double ema = grt_archive_real(archive, "ema", 0);
    if (!model_only && ema != es->desc.ema) {
        return grt_fail(GRT_CONFIG, "%s was made with ema=%g; here it is %g, which is another run",
                        path, ema, es->desc.ema);
    }
    compare_env(es->desc.env, archive, path);
    const float *norm = grt_policy_normalizer(es->desc.env, archive);
    const struct grt_archive_tensor *report = grt_archive_find(archive, "optimizer/report");
    // A converted policy comes without what the optimizer had to say; it can be begun with.
    bool told = report && report->bytes == grt_tensor_bytes(es->report);
    if (norm && !told && (report || !model_only)) {
        grt_fail(GRT_INVALID, "%s: no checkpoint that can be resumed: tensor 'optimizer/report' %s",
                 path, report ? "has another shape" : "is missing");
    }
    if (!norm || (!told && (report || !model_only))) {
        return false;
    }
    float *numbers = grt_policy_load(&es->desc.policy, es->desc.env, archive);
    if (!numbers) {
        return false;
    }
    float words[ES_REPORT];
    if (told) {
        memcpy(words, report->data, sizeof words);
    } else if (!grt_es_read(es->report, words)) {
        free(numbers);
        return false;
    }
    if (model_only) {
        words[ES_POWER1] = words[ES_POWER2] = 1.0f;
    }
    es->done = model_only ? 0 : (uint32_t)grt_archive_whole(archive, "iteration", 0);
    struct grt_rng_state control = {{es->desc.seed, 0}, {es->done, 0}};
    bool ok = grt_es_write(es->theta, numbers) &&
              (es->desc.blind || grt_es_write(es->norm, norm)) && grt_es_write(es->report, words) &&
              grt_es_write(es->control, &control) &&
              (model_only || es->desc.algo != GRT_ES_RANKS ||
               grt_archive_give(archive, "optimizer/moments", es->moments));
    ok = ok && grt_es_average_begin(es);
    if (ok && es->average && !model_only) {
        ok = grt_archive_give(archive, "optimizer/newest", es->theta);
    }
    free(numbers);
    return ok;
}
