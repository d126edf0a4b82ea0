// SPDX-License-Identifier: Apache-2.0
// Policies that run inside the rollout kernel: from an observation to an action in [-1, 1].
//
//     linear         clamp(W o)                      W [act][obs]
//     affine         clamp(W o + b)
//     mlp64          tanh(W1 relu(W0 o + b0) + b1)   W0 [64][obs], W1 [act][64]; 16, 20, ... 256
//     mlp64-tanh     the same with tanh in the middle
//
// The kernel keeps the numbers in quads of four, in its own order (shaders/rl/rollout.k); a
// checkpoint has them as PyTorch would.
#ifndef GRT_POLICY_H
#define GRT_POLICY_H

#include "archive.h"
#include "env.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_POLICY_LEAST 16
#define GRT_POLICY_MOST 256

struct grt_policy {
    uint32_t hidden;  // units of the hidden layer, a multiple of 4; 0: none
    bool bias;        // of a policy without hidden layer; with one there always is
    bool tanh;        // in the middle, instead of relu
};

#define GRT_POLICY_TEXT 32

// Whether there is a policy of so many hidden units; false with a sentence that names the nearest
// (GRT_INVALID).
GRT_API bool grt_policy_check(const struct grt_policy *policy);
// False with a sentence that says what there is (GRT_INVALID).
GRT_API bool grt_policy_parse(const char *text, struct grt_policy *policy);
// "mlp64-tanh"
GRT_API void grt_policy_text(const struct grt_policy *policy, char text[GRT_POLICY_TEXT]);
GRT_API uint32_t grt_policy_quads(const struct grt_policy *policy, const struct grt_env_info *env);
// What four more hidden units add to that.
GRT_API uint32_t grt_policy_quads_of_four(const struct grt_env_info *env);
// Numbers that are learnt: 232 for `linear` with 29 observations and 8 actions.
GRT_API uint32_t grt_policy_params(const struct grt_policy *policy, const struct grt_env_info *env);
// Operations of an environment's step with this policy, in floating point; 0: the environment's are
// not counted.
GRT_API double grt_policy_operations(const struct grt_policy *policy,
                                     const struct grt_env_info *env);

// One tensor of it, in PyTorch's shape.
struct grt_policy_tensor {
    const char *name;  // "layers.0.weight"
    uint32_t rank;
    uint32_t shape[2];  // [out][in], or [out]
};
// The i-th tensor; false past the last.
GRT_API bool grt_policy_tensor(const struct grt_policy *policy, const struct grt_env_info *env,
                               uint32_t i, struct grt_policy_tensor *tensor);
// Where element [row][col] of the i-th tensor lies among the kernel's numbers.
GRT_API uint32_t grt_policy_index(const struct grt_policy *policy, const struct grt_env_info *env,
                                  uint32_t i, uint32_t row, uint32_t col);

// Into an archive as tensors "model/layers.0.weight", out of the kernel's numbers, 4 *
// grt_policy_quads() of them; and back, to be freed. NULL with a sentence where one is missing or
// has another shape (GRT_BAD_DATA).
GRT_API bool grt_policy_save(const struct grt_policy *policy, const struct grt_env_info *env,
                             const float *numbers, struct grt_archive *archive);
GRT_API float *grt_policy_load(const struct grt_policy *policy, const struct grt_env_info *env,
                               const struct grt_archive *archive);
// [3][obs]: mean, one over the deviation, variance of its observations. NULL with a sentence
// (GRT_INVALID).
GRT_API const float *grt_policy_normalizer(const struct grt_env_info *env,
                                           const struct grt_archive *archive);

#ifdef __cplusplus
}
#endif
#endif
