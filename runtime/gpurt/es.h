// SPDX-License-Identifier: Apache-2.0
// Evolution strategies with the whole rollout on the device.
//
//     for each chunk of directions:  rollout, rollout, ... -> reduce   an episode, in short submits
//     then:                          rank -> sum -> step -> tick       the update, noise made anew
//
// An iteration is one baked graph, or several where it takes long (es_work.h); the host reads 16
// numbers of it. Two algorithms: augmented random search (Mania, Guy, Recht 2018: the best
// directions, scaled by the deviation of their returns) and evolution strategies (Salimans et al.
// 2017: ranks and Adam). The result depends on nothing but the desc and the device's arithmetic:
// not on the chunk, nor on the cuts, nor on when it was stopped and resumed.
#ifndef GRT_ES_H
#define GRT_ES_H

#include "profile.h"
#include "archive.h"
#include "comm.h"
#include "policy.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_ES_ALGOS(X)                                                                            \
    X(ARS, "ars")                                                                                  \
    X(RANKS, "es")

enum grt_es_algo {
#define X(name, text) GRT_ES_##name,
    GRT_ES_ALGOS(X)
#undef X
        GRT_ES_ALGO_COUNT,
};
GRT_API const char *grt_es_algo_text(enum grt_es_algo algo);

struct grt_es_desc {
    const struct grt_env_info *env;
    struct grt_policy policy;
    enum grt_es_algo algo;
    uint32_t phase;     // 1 to env->phases; 0: 1
    uint32_t num_envs;  // for each side of a direction; 0: by the device's profile
    uint32_t num_dirs;  // 0: by the profile
    // directions at once; 0: by the profile; more than num_dirs: all, with a note
    uint32_t dir_chunk;
    uint32_t top_dirs;        // that ARS uses; 0: half
    uint32_t episode_length;  // steps; 0: the environment's
    float step_size;          // 0: the environment's, or 0.02
    float noise_std;          // 0: the environment's, or 0.03
    uint32_t seed;
    // Leave observations as they are. Otherwise they are shifted and scaled by mean and deviation
    // of all iterations before, of which every 16th observation counts, and of a prior: see
    // GRT_ES_PRIOR.
    bool no_normalise;
    // the policy sees zeros whatever happens: its biases alone act, one constant action
    bool blind;
    bool restart;          // an episode that ends begins anew: for measuring, every lane is busy
    double max_submit_ms;  // 0: 500
    // Asked about every second of an iteration or evaluation, which then is given up; may be NULL.
    bool (*stop)(void);
    // The ranks that train together, or NULL: each rolls out its share of the directions, all get
    // the returns of all and make the same update. The bits are those of one rank.
    struct grt_comm *comm;
    // Evaluations and checkpoints have a running average of the policies: this much of what it was,
    // the rest of an iteration's policy; 0: the newest policy.
    double ema;
};
// Observations begin with mean 0 and deviation 1 as if as many iterations had shown that. Without
// it the deviations of the first one alone, in which the robot hardly moves, make noise of the
// second so large that half of all fall: mean return 675, 338, 645 becomes 675, 602, 692.
#define GRT_ES_PRIOR 4
#define grt_es_desc(...) GRT_DESC(struct grt_es_desc, __VA_ARGS__)

// What a desc that names none of them gets: by the device's profile, and no more environments than
// 2,048 in an iteration for each compute unit, where the driver tells how many there are: a small
// GPU that shares the host's memory has much of that and few of them.
struct grt_es_sizes {
    uint32_t num_envs, num_dirs, dir_chunk;
};
GRT_API struct grt_es_sizes grt_es_sizes(const struct grt_profile *profile,
                                         const struct grt_dev_info *info);

struct grt_es;

// Plans, allocates, compiles and records. Where a chunk does not fit into the memory it is made
// smaller, with a note. NULL with a sentence.
GRT_API struct grt_es *grt_es_create(struct grt_dev *dev, const struct grt_es_desc *desc);
GRT_API void grt_es_destroy(struct grt_es **es);
// What it was made with, the defaults filled in.
GRT_API const struct grt_es_desc *grt_es_desc_of(const struct grt_es *es);

struct grt_es_report {
    uint32_t iteration;  // how many are done
    float mean_return;   // over all sides of all directions
    float best_return;   // of the best side
    float spread;        // deviation of the returns that were used
    float good_rate;     // good steps over all of the episodes, those after a fall included
    float fall_rate;     // falls an episode
    double steps;        // taken in this iteration
    double seconds;      // on the wall
    double busy;         // seconds of the device; 0: it has no clock
    bool stopped;        // given up: the learner is as before, and nothing else here is known
    float best_good;     // good steps of the side that has most, of an iteration
};
// One iteration: rollouts and the update.
GRT_API bool grt_es_iterate(struct grt_es *es, struct grt_es_report *report);
// What each direction of the newest iteration came to: returns [num_dirs][2], the mean of an
// episode with the noise of the direction added, then with it taken away. False where there was
// none.
//
// Numbers 4 q to 4 q + 3 of the noise of direction d in iteration i, both from 0 on, are Box and
// Muller's two pairs of the block (q, d, i, 0x65730001) of Philox4x32-10 with the key (seed, 0):
// radius of the first word of a pair, (its upper 24 bits + 1) / 2^24, and turns of the second, its
// upper 24 bits / 2^24. An update of ars adds step_size / (top_dirs * spread) times the sum of
// (plus - minus) times noise.
GRT_API bool grt_es_returns(const struct grt_es *es, float *returns);
// The policy without noise in num_envs environments, starts of a seed of its own: nothing is
// learnt.
GRT_API bool grt_es_evaluate(struct grt_es *es, uint32_t seed, struct grt_es_report *report);

struct grt_es_size {
    uint64_t batch;          // environments of an iteration: num_envs * num_dirs * 2
    uint64_t bytes;          // of device memory
    uint32_t launches;       // rollouts of one iteration
    uint32_t steps_at_once;  // of one launch
};
GRT_API struct grt_es_size grt_es_size(const struct grt_es *es);

// Everything that a later run needs to go on with the same bits, into an archive: tensors
// "model/...", "normalizer/...", "optimizer/..." and values.
GRT_API bool grt_es_save(const struct grt_es *es, struct grt_archive *archive);
// Takes it over. Refused, with both named, when environment, policy or algorithm differ; nothing is
// changed then. With `model_only` the iteration and the optimizer begin anew: for a next phase.
GRT_API bool grt_es_load(struct grt_es *es, const struct grt_archive *archive, bool model_only);

#ifdef __cplusplus
}
#endif
#endif
