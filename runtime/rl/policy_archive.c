// SPDX-License-Identifier: Apache-2.0
// A policy in an archive and back. There its tensors lie as PyTorch would have them; the kernel has
// an order of its own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/policy.h"

#define NORMALIZER "normalizer/mean_rstd_variance"

static const char *path_of(const struct grt_archive *archive) {
    return archive->path[0] ? archive->path : "checkpoint";
}

// Where the k-th number of a tensor lies among the kernel's.
static uint32_t place_of(const struct grt_policy *policy, const struct grt_env_info *env,
                         uint32_t i, const struct grt_policy_tensor *t, uint32_t k) {
    return grt_policy_index(policy, env, i, k / t->shape[1], k % t->shape[1]);
}

static void tensor_name(char name[GRT_ARCHIVE_NAME], const struct grt_policy_tensor *t) {
    snprintf(name, GRT_ARCHIVE_NAME, "model/%s", t->name);
}

bool grt_policy_save(const struct grt_policy *policy, const struct grt_env_info *env,
                     const float *numbers, struct grt_archive *archive) {
    struct grt_policy_tensor t;
    for (uint32_t i = 0; grt_policy_tensor(policy, env, i, &t); i++) {
        char name[GRT_ARCHIVE_NAME];
        const uint64_t shape[2] = {t.shape[0], t.shape[1]};
        tensor_name(name, &t);
        struct grt_archive_tensor *into =
            grt_archive_add(archive, name, GRT_F32, t.rank, shape, NULL);
        float *data = into ? into->data : NULL;
        if (!data) {
            return false;
        }
        for (uint32_t k = 0; k < t.shape[0] * t.shape[1]; k++) {
            data[k] = numbers[place_of(policy, env, i, &t, k)];
        }
    }
    return true;
}

float *grt_policy_load(const struct grt_policy *policy, const struct grt_env_info *env,
                       const struct grt_archive *archive) {
    float *numbers = calloc(grt_policy_quads(policy, env), 4 * sizeof *numbers);
    struct grt_policy_tensor t;
    if (!numbers) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a policy");
        return NULL;
    }
    for (uint32_t i = 0; grt_policy_tensor(policy, env, i, &t); i++) {
        char name[GRT_ARCHIVE_NAME];
        tensor_name(name, &t);
        const struct grt_archive_tensor *from = grt_archive_find(archive, name);
        const uint64_t shape[2] = {t.shape[0], t.shape[1]};
        if (!grt_archive_fits(archive, name, GRT_F32, t.rank, shape)) {
            free(numbers);
            return NULL;
        }
        for (uint32_t k = 0; k < t.shape[0] * t.shape[1]; k++) {
            memcpy(&numbers[place_of(policy, env, i, &t, k)],
                   (const char *)from->data + k * sizeof(float), sizeof(float));
        }
    }
    return numbers;
}

const float *grt_policy_normalizer(const struct grt_env_info *env,
                                   const struct grt_archive *archive) {
    const struct grt_archive_tensor *norm = grt_archive_find(archive, NORMALIZER);
    if (!norm || norm->bytes != (uint64_t)3 * env->obs * sizeof(float)) {
        grt_fail(GRT_INVALID, "%s: no checkpoint of a policy for '%s'", path_of(archive),
                 env->name);
        return NULL;
    }
    return norm->data;
}
