// SPDX-License-Identifier: Apache-2.0
// The options of `gpurt train es` and `gpurt train standing`.
#include <stdio.h>
#include <string.h>

#include "train_es.h"

static bool read_seed(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t seed = 0;
    bool ok = options_whole(text, 0, UINT32_MAX, &seed, why);
    struct train_es *t = into;
    t->seed = (uint32_t)seed;
    t->seed_given = ok;
    return ok;
}

static bool read_algo(const char *text, void *into, char why[RANGES_WHY]) {
#define X(name, word)                                                                              \
    if (strcmp(text, word) == 0)                                                                   \
        return options_read_text(word, into, why);
    GRT_ES_ALGOS(X)
#undef X
#define X(name, word) " " word
    snprintf(why, RANGES_WHY, "known are" GRT_ES_ALGOS(X));
#undef X
    return false;
}

#define AT(field) offsetof(struct train_es, field)

const struct option_row train_es_env_options[TRAIN_ES_ENV_OPTIONS_COUNT] = {
    {.name = "env",
     .value = "NAME|FILE.k",
     .help = "environment, or a file of your own",
     .read = options_read_text,
     .at = AT(env)},
};

const struct option_row train_es_options[TRAIN_ES_OPTIONS_COUNT] = {
    {.name = "phase",
     .value = "N",
     .help =
         "phase of the environment; 2 and up begin with the policy of the one before (default: 1)",
     .read = options_read_count,
     .at = AT(phase)},
    {.name = "policy",
     .value = "linear|affine|mlpN|mlpN-tanh",
     .help = "N hidden units, 16 to 256 in steps of 4 (default: affine)",
     .read = options_read_text,
     .at = AT(policy)},
    {.name = "algo",
     .value = "ars|es",
     .help = "augmented random search, or ranks and Adam (default: ars)",
     .read = read_algo,
     .at = AT(algo)},
    {.name = "num-envs",
     .value = "N",
     .help = "environments for each side of a direction (default: by profile)",
     .read = options_read_count,
     .at = AT(num_envs)},
    {.name = "num-dirs",
     .value = "N",
     .help = "directions of an iteration (default: by profile)",
     .read = options_read_count,
     .at = AT(num_dirs)},
    {.name = "dir-chunk",
     .value = "N",
     .help = "directions run at once; bounds memory, changes no result (default: by profile)",
     .read = options_read_count,
     .at = AT(dir_chunk)},
    {.name = "top-dirs",
     .value = "N",
     .help = "best directions that ars uses (default: half)",
     .read = options_read_count,
     .at = AT(top_dirs)},
    {.name = "step-size",
     .value = "X",
     .help = "length of an update (default: the environment's, 0.005 for standing, or 0.02)",
     .read = options_read_positive,
     .at = AT(step_size)},
    {.name = "noise-std",
     .value = "X",
     .help = "deviation of the noise (default: the environment's, 0.005 for standing, or 0.03)",
     .read = options_read_positive,
     .at = AT(noise_std)},
    {.name = "episode-length",
     .value = "N",
     .help = "steps of an episode (default: the environment's)",
     .read = options_read_count,
     .at = AT(episode_length)},
    {.name = "no-normalise", .help = "leave observations as they are", .at = AT(no_normalise)},
    {.name = "seed",
     .value = "N",
     .help = "of everything random (default: 0)",
     .read = read_seed,
     .at = 0},  // two fields
};

const struct option_row train_es_run_options[TRAIN_ES_RUN_OPTIONS_COUNT] = {
    {.name = "config",
     .letter = "c",
     .value = "FILE",
     .help = "settings in YAML; options and KEY=VALUE stand above it",
     .read = options_read_text,
     .at = AT(trainer.config.config)},
    {.name = "iterations",
     .value = "N",
     .help = "updates in all, those of a resumed run included (default: 100)",
     .read = options_read_count,
     .at = AT(iterations)},
    {.name = "until",
     .value = "SHARE",
     .help = "end when the policy itself has this share of good steps",
     .read = options_read_fraction,
     .at = AT(until)},
    {.name = "baselines",
     .help = "in the end compare with actions that never change: none, the policy's biases alone, "
             "the best that as many iterations find",
     .at = AT(baselines)},
    {.name = "directions",
     .value = "FILE",
     .help = "append what each direction of an iteration came to, as CSV",
     .read = options_read_text,
     .at = AT(directions_path)},
    {.name = "evaluate-every",
     .value = "N",
     .help = "iterations between trials of the policy without noise (default: a tenth of all)",
     .read = options_read_count,
     .at = AT(file.evaluate_every)},
    {.name = "checkpoint",
     .value = "FILE",
     .help = "where it is kept (default: that of --resume, or ENV-phaseN.h5)",
     .read = options_read_text,
     .at = AT(trainer.config.checkpoint)},
    {.name = "checkpoint-every",
     .value = "N",
     .help = "iterations between checkpoints (default: 10)",
     .read = options_read_count,
     .at = AT(checkpoint_every)},
    {.name = "resume",
     .value = "FILE",
     .help = "go on from this checkpoint",
     .read = options_read_text,
     .at = AT(file.resume)},
    {.name = "from",
     .value = "FILE|none",
     .help = "begin with its policy (default: the checkpoint of the phase before)",
     .read = options_read_text,
     .at = AT(file.from)},
};
