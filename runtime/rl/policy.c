// SPDX-License-Identifier: Apache-2.0
#include "gpurt/policy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

bool grt_policy_check(const struct grt_policy *policy) {
    uint32_t hidden = policy ? policy->hidden : 0;
    if (hidden == 0) {
        return policy || grt_fail(GRT_INVALID, "grt_policy_check: no policy");
    }
    if (hidden < GRT_POLICY_LEAST || hidden > GRT_POLICY_MOST) {
        return grt_fail(GRT_INVALID, "a policy of %u hidden units: there are %d to %d; use mlp%d",
                        hidden, GRT_POLICY_LEAST, GRT_POLICY_MOST,
                        hidden < GRT_POLICY_LEAST ? GRT_POLICY_LEAST : GRT_POLICY_MOST);
    }
    return hidden % 4 == 0 ||
           grt_fail(GRT_INVALID,
                    "a policy of %u hidden units: they are computed in fours; use mlp%u or mlp%u",
                    hidden, hidden / 4 * 4, hidden / 4 * 4 + 4);
}

bool grt_policy_parse(const char *text, struct grt_policy *policy) {
    if (!text || !policy) {
        return grt_fail(GRT_INVALID, "grt_policy_parse: no %s", text ? "policy" : "text");
    }
    if (strcmp(text, "linear") == 0 || strcmp(text, "affine") == 0) {
        *policy = (struct grt_policy){.bias = text[0] == 'a'};
        return true;
    }
    char *end = NULL;
    unsigned long hidden = 0;
    if (strncmp(text, "mlp", 3) == 0 && isdigit((unsigned char)text[3])) {
        hidden = strtoul(text + 3, &end, 10);
    }
    bool tanh = end && strcmp(end, "-tanh") == 0;
    if (!end || (*end && !tanh && strcmp(end, "-relu") != 0) || hidden == 0) {
        return grt_fail(
            GRT_INVALID,
            "no policy '%s'; there are linear, affine and mlpN or mlpN-tanh with N hidden "
            "units, a multiple of 4 from %d to %d",
            text, GRT_POLICY_LEAST, GRT_POLICY_MOST);
    }
    struct grt_policy named = {
        .hidden = hidden < UINT32_MAX ? (uint32_t)hidden : UINT32_MAX, .bias = true, .tanh = tanh};
    if (!grt_policy_check(&named)) {
        return false;
    }
    *policy = named;
    return true;
}

void grt_policy_text(const struct grt_policy *policy, char text[GRT_POLICY_TEXT]) {
    if (policy->hidden) {
        snprintf(text, GRT_POLICY_TEXT, "mlp%u%s", policy->hidden, policy->tanh ? "-tanh" : "");
    } else {
        snprintf(text, GRT_POLICY_TEXT, "%s", policy->bias ? "affine" : "linear");
    }
}

static uint32_t action_quads(const struct grt_env_info *env) {
    return (env->act + 3) / 4;
}

// Quads of the hidden layer, with the bias behind each column's observations.
static uint32_t hidden_quads(const struct grt_policy *policy, const struct grt_env_info *env) {
    return policy->hidden / 4 * (env->obs + 1);
}

uint32_t grt_policy_quads(const struct grt_policy *policy, const struct grt_env_info *env) {
    uint32_t in = policy->hidden ? policy->hidden : env->obs;
    return hidden_quads(policy, env) + (in + 1) * action_quads(env);
}

uint32_t grt_policy_quads_of_four(const struct grt_env_info *env) {
    return env->obs + 1 + 4 * action_quads(env);
}

bool grt_policy_tensor(const struct grt_policy *policy, const struct grt_env_info *env, uint32_t i,
                       struct grt_policy_tensor *tensor) {
    const struct grt_policy_tensor one[] = {{"weight", 2, {env->act, env->obs}},
                                            {"bias", 1, {env->act, 1}}};
    const struct grt_policy_tensor two[] = {{"layers.0.weight", 2, {policy->hidden, env->obs}},
                                            {"layers.0.bias", 1, {policy->hidden, 1}},
                                            {"layers.1.weight", 2, {env->act, policy->hidden}},
                                            {"layers.1.bias", 1, {env->act, 1}}};
    uint32_t count = policy->hidden ? 4 : policy->bias ? 2 : 1;
    if (i >= count) {
        return false;
    }
    *tensor = policy->hidden ? two[i] : one[i];
    return true;
}

double grt_policy_operations(const struct grt_policy *policy, const struct grt_env_info *env) {
    struct grt_policy_tensor t;
    double sum = env->operations + 2.0 * env->obs;
    for (uint32_t i = 0; grt_policy_tensor(policy, env, i, &t); i++) {
        sum += (t.rank == 2 ? 2.0 : 1.0) * t.shape[0] * (t.rank == 2 ? t.shape[1] : 1);
    }
    return env->operations ? sum : 0;
}

uint32_t grt_policy_params(const struct grt_policy *policy, const struct grt_env_info *env) {
    struct grt_policy_tensor tensor;
    uint32_t count = 0;
    for (uint32_t i = 0; grt_policy_tensor(policy, env, i, &tensor); i++) {
        count += tensor.shape[0] * tensor.shape[1];
    }
    return count;
}

uint32_t grt_policy_index(const struct grt_policy *policy, const struct grt_env_info *env,
                          uint32_t i, uint32_t row, uint32_t col) {
    if (policy->hidden && i < 2) {
        uint32_t quad = row / 4 * (env->obs + 1) + (i == 0 ? col : env->obs);
        return 4 * quad + row % 4;
    }
    uint32_t in = policy->hidden ? policy->hidden : env->obs;
    uint32_t from = i % 2 == 0 ? col : in;
    return 4 * (hidden_quads(policy, env) + from * action_quads(env) + row / 4) + row % 4;
}
