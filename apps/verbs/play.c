// SPDX-License-Identifier: Apache-2.0
// `gpurt play`: runs the policy of a checkpoint in one environment and shows what it does, as an
// animated SVG or as the trajectory in JSON. Here are policies of evolution strategies: one graph
// has a launch for each step, and keeps the state after each. play_ppo.c has those of PPO.
#include "play.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "gpurt/rollout.h"
#include "cli/output/files.h"
#include "gpurt/model_file.h"
#include "cli/options/options.h"
#include "cli/output/output.h"
#include "cli/talk.h"

#define MAX_STEPS 5000
#define DEFAULT_STEPS 300

struct play {
    struct options common;  // first: see options.h
    const char *checkpoint;
    const char *form;  // "svg" or "json"; NULL: by the name
    uint32_t phase, steps, start;
    uint64_t seed;  // and SEEDED
    struct grt_dev *dev;
};

static bool read_form(const char *text, void *into, char why[RANGES_WHY]) {
    if (strcmp(text, "svg") == 0 || strcmp(text, "json") == 0) {
        return options_read_text(text, into, why);
    }
    snprintf(why, RANGES_WHY, "known are svg json");
    return false;
}

// Of 32 bits; above them lies that it was given.
#define SEEDED (1ull << 32)

static bool read_seed(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t *seed = into;
    bool ok = options_whole(text, 0, UINT32_MAX, seed, why);
    *seed |= ok ? SEEDED : 0;
    return ok;
}

// The form that --format or else the name asks for; NULL with the sentence.
static const char *form_of(const struct play *play) {
    static const char *const forms[] = {"svg", "json"};
    const char *path = play->common.output ? play->common.output : "";
    const char *slash = strrchr(path, '/'), *ending = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (play->form ? strcmp(play->form, forms[i]) == 0
                       : !ending || strcmp(ending + 1, forms[i]) == 0) {
            return forms[i];
        }
    }
    talk_error("'%s': the name must end in .svg or .json, or --format svg|json says the form",
               path);
    return NULL;
}

#define AT(field) offsetof(struct play, field)

static const struct option_row play_options[] = {
    {.name = "checkpoint",
     .value = "FILE",
     .help = "of `gpurt train es`, `standing`, `ppo` or `uav`",
     .read = options_read_text,
     .at = AT(checkpoint)},
    {.name = "phase",
     .value = "N",
     .help = "phase of the environment (default: the checkpoint's)",
     .read = options_read_count,
     .at = AT(phase)},
    {.name = "steps",
     .value = "N",
     .help = "steps that are shown (default: 300; of PPO, an episode)",
     .read = options_read_count,
     .at = AT(steps)},
    {.name = "start",
     .value = "N",
     .help = "which start, from 1",
     .fallback = "1",
     .read = options_read_count,
     .at = AT(start)},
    {.name = "seed",
     .value = "N",
     .help = "of the starts of a policy of PPO (default: that of `gpurt eval`)",
     .read = read_seed,
     .at = AT(seed)},
    {.name = "format",
     .value = "svg|json",
     .help = "a picture, or the trajectory (default: by the name, else svg)",
     .read = read_form,
     .at = AT(form)},
    {.name = "output",
     .letter = "o",
     .value = "FILE",
     .help = "write to FILE, .svg or .json, which appears when complete (default: stdout)",
     .read = options_read_text,
     .at = offsetof(struct options, output)},
};

// ---- the device's part ----

// What lies on the device, each at an aligned place of one buffer.
#define PLAY_BUFFERS(X)                                                                            \
    X(control, 16)                                                                                 \
    X(theta, quads * 16)                                                                           \
    X(norm, 2 * obs * 4)                                                                           \
    X(state, states * 4)                                                                           \
    X(score, GRT_ROLLOUT_SCORES * 4)                                                               \
    X(sums, 2 * obs * 4)                                                                           \
    X(path, frames *states * 4)                                                                    \
    X(seen, frames *obs * 4)                                                                       \
    X(shapes, (frames * shapes_of + 1) * 4)                                                        \
    X(policies, quads * 16)

struct stage {
#define X(name, bytes) struct grt_buf *name;
    PLAY_BUFFERS(X)
#undef X
    struct grt_buf *host;  // readback: the parts of a struct shown, one behind the other
};

// What lies in `host`, in floats from its beginning.
struct places {
    uint64_t states, scores, seen, shapes, all;
};

static struct places places_of(const struct play *play, const struct grt_env_info *env) {
    struct places p = {0};
    p.scores = (uint64_t)play->steps * env->state;
    p.seen = p.scores + (uint64_t)play->steps * GRT_ROLLOUT_SCORES;
    p.shapes = p.seen + (uint64_t)play->steps * env->obs;
    p.all = p.shapes + (uint64_t)play->steps * env->shapes * GRT_TRACE_SHAPE;
    return p;
}

static bool stage_create(struct stage *s, const struct play *play, const struct grt_env_info *env,
                         uint32_t quads) {
    uint64_t obs = env->obs, states = env->state, frames = play->steps;
    uint64_t shapes_of = (uint64_t)env->shapes * GRT_TRACE_SHAPE;
#define X(name, bytes)                                                                             \
    s->name = grt_buf_create(play->dev, grt_buf_desc(.size = bytes, .label = "play"));             \
    if (!s->name)                                                                                  \
        return false;
    PLAY_BUFFERS(X)
#undef X
    s->host = grt_buf_create(play->dev, grt_buf_desc(.size = places_of(play, env).all * 4,
                                                     .kind = GRT_BUF_READBACK, .label = "play"));
    return s->host != NULL;
}

static void stage_destroy(struct stage *s) {
#define X(name, bytes) grt_buf_destroy(&s->name);
    PLAY_BUFFERS(X)
#undef X
    grt_buf_destroy(&s->host);
}

// The checkpoint's numbers in the kernel's order, onto the device.
static bool give_policy(const struct stage *s, const struct grt_archive *a,
                        const struct grt_policy *policy, const struct grt_env_info *env,
                        uint32_t seed) {
    const struct grt_rng_state control = {{seed, 0}, {0, 0}};
    const float *norm = grt_policy_normalizer(env, a);
    float *numbers = norm ? grt_policy_load(policy, env, a) : NULL;
    bool ok = numbers &&
              grt_buf_write(s->theta, 0, numbers, (uint64_t)grt_policy_quads(policy, env) * 16) &&
              grt_buf_write(s->norm, 0, norm, (uint64_t)2 * env->obs * 4) &&
              grt_buf_write(s->control, 0, &control, sizeof control);
    free(numbers);
    return ok;
}

static bool run_steps(const struct stage *s, const struct play *play,
                      const struct grt_env_info *env, const struct grt_policy *policy) {
    uint64_t bytes = (uint64_t)env->state * 4, scores = GRT_ROLLOUT_SCORES * 4;
    struct places places = places_of(play, env);
    struct grt_graph *graph = grt_graph_create(play->dev, "play");
    struct grt_rollout_desc desc = {.env = env,
                                    .policy = policy,
                                    .envs = 1,
                                    .sides = 1,
                                    .steps = 1,
                                    .phase = play->phase,
                                    .normalise = true,
                                    .control = {s->control, 0, 0},
                                    .theta = {s->theta, 0, 0},
                                    .norm = {s->norm, 0, 0},
                                    .state = {s->state, 0, 0},
                                    .score = {s->score, 0, 0},
                                    .sums = {s->sums, 0, 0},
                                    .scratch = {s->policies, 0, 0}};
    for (uint32_t t = 0; graph && t < play->steps; t++) {
        desc.first = t;
        grt_op_rollout(graph, &desc);
        grt_graph_copy(graph, (struct grt_range){s->path, t * bytes, bytes},
                       (struct grt_range){s->state, 0, bytes});
        grt_graph_copy(graph, (struct grt_range){s->host, places.scores * 4 + t * scores, scores},
                       (struct grt_range){s->score, 0, scores});
    }
    bool ok = graph != NULL;
    if (ok) {
        uint64_t seen = (places.shapes - places.seen) * 4,
                 shapes = (places.all - places.shapes) * 4;
        grt_op_trace(graph, &(struct grt_trace_desc){.env = env,
                                                     .frames = play->steps,
                                                     .states = {s->path, 0, 0},
                                                     .obs = {s->seen, 0, 0},
                                                     .shapes = {s->shapes, 0, 0}});
        grt_graph_copy(graph, (struct grt_range){s->host, 0, play->steps * bytes},
                       (struct grt_range){s->path, 0, play->steps * bytes});
        grt_graph_copy(graph, (struct grt_range){s->host, places.seen * 4, seen},
                       (struct grt_range){s->seen, 0, seen});
        if (shapes) {
            grt_graph_copy(graph, (struct grt_range){s->host, places.shapes * 4, shapes},
                           (struct grt_range){s->shapes, 0, shapes});
        }
        ok = grt_graph_finish(graph);
    }
    grt_graph_destroy(&graph);
    return ok;
}

// ---- what is shown ----

json_t *play_rows(const float *rows, uint32_t frames, uint32_t width) {
    json_t *all = json_array();
    for (uint32_t f = 0; f < frames; f++) {
        json_t *row = json_array();
        for (uint32_t i = 0; i < width; i++) {
            double x = (double)rows[(size_t)f * width + i];
            json_array_append_new(row, x - x == 0 ? json_real(x) : json_null());
        }
        json_array_append_new(all, row);
    }
    return all;
}

bool play_json(FILE *file, const struct play_trip *trip) {
    json_t *names = json_array();
    for (uint32_t i = 0; i < trip->env->state; i++) {
        json_array_append_new(names, json_string(trip->env->state_names[i]));
    }
    json_t *all =
        json_pack("{ss ss si sf sf sf si so so so so so}", "schema", "gpurt.play/1", "env",
                  trip->env->name, "phase", (int)trip->phase, "dt", (double)trip->env->dt, "return",
                  trip->total, "good_rate", trip->good, "falls", (int)trip->falls, "state", names,
                  "frames", play_rows(trip->states, trip->frames, trip->env->state), "observations",
                  play_rows(trip->seen, trip->frames, trip->env->obs), "actions",
                  play_rows(trip->actions, trip->frames, trip->env->act), "rewards",
                  play_rows(trip->rewards, trip->frames, 1));
    bool ok = all && json_dumpf(all, file, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 &&
              fputc('\n', file) != EOF;
    json_decref(all);
    return ok;
}

static int show(const struct play *play, const struct stage *s, const struct grt_env_info *env,
                const struct grt_policy *policy, const struct grt_archive *archive) {
    struct output output;
    int code = output_open(&output, play->common.output);
    if (code) {
        return code;
    }
    const float *host = grt_buf_host(s->host);
    struct places places = places_of(play, env);
    const float *score = host + places.seen - GRT_ROLLOUT_SCORES;
    uint32_t taken = (uint32_t)score[3];
    float *actions = play_actions(policy, env, archive, host + places.seen, play->steps);
    float *rewards = calloc(play->steps, sizeof *rewards);
    for (uint32_t t = 0; rewards && t < play->steps; t++) {
        const float *sums = host + places.scores + (size_t)t * GRT_ROLLOUT_SCORES;
        rewards[t] = sums[0] - (t ? sums[-GRT_ROLLOUT_SCORES] : 0);
    }
    struct play_trip trip = {.env = env,
                             .phase = play->phase,
                             .frames = taken ? taken : 1,
                             .states = host,
                             .seen = host + places.seen,
                             .actions = actions,
                             .rewards = rewards,
                             .shapes = host + places.shapes,
                             .total = (double)score[0],
                             .good = (double)score[1] / play->steps,
                             .falls = (uint32_t)score[2]};
    bool ok = actions && rewards;
    if (!ok) {
        talk_error("out of memory");
    } else if (strcmp(play->form, "json") == 0) {
        ok = play_json(output.file, &trip);
    } else {
        play_svg(output.file, &trip);
    }
    free(actions);
    free(rewards);
    int written = output_close(&output, ok);
    return ok ? written : COMMAND_INTERNAL;
}

static int play_archive(struct play *play, const struct grt_env_info *env,
                        const struct grt_archive *archive) {
    struct grt_policy policy;
    struct stage stage = {0};
    play->phase = play->phase ? play->phase : (uint32_t)grt_archive_whole(archive, "phase", 1);
    if (play->phase < 1 || play->phase > env->phases) {
        talk_error("%s: of phase %u, which '%s' has not", play->checkpoint, play->phase, env->name);
        return COMMAND_DATA;
    }
    if (!grt_policy_parse(grt_archive_text(archive, "policy", ""), &policy)) {
        return COMMAND_DATA;
    }
    play->dev = options_open_device(&play->common);
    int code = COMMAND_OK;
    if (!play->dev || !stage_create(&stage, play, env, grt_policy_quads(&policy, env))) {
        code = command_exit_of(grt_last_status());
    } else if (!give_policy(&stage, archive, &policy, env, play->start)) {
        code = COMMAND_DATA;
    } else if (!run_steps(&stage, play, env, &policy)) {
        code = command_exit_of(grt_last_status());
    } else {
        code = show(play, &stage, env, &policy, archive);
    }
    stage_destroy(&stage);
    grt_dev_destroy(&play->dev);
    return code;
}

// A policy of evolution strategies: one episode in registers.
static int play_es(struct play *play, const struct grt_env_info *env, size_t words,
                   const struct grt_archive *archive) {
    if (!grt_env_in_registers(env, "this policy")) {
        return COMMAND_DATA;
    }
    if (words > 1 || play->seed) {
        talk_error("%s: a policy of `gpurt train es` has no %s; --start N is another start",
                   play->checkpoint, words > 1 ? "KEY=VALUE" : "--seed");
        return COMMAND_USAGE;
    }
    play->steps = play->steps ? play->steps : DEFAULT_STEPS;
    return play_archive(play, env, archive);
}

// Whether it holds a policy for the environment.
static int check_archive(const char *path, const struct grt_archive *archive,
                         const struct grt_env_info *env, enum grt_model_maker *maker) {
    char holds[GRT_MODEL_TEXT];
    const char *of = grt_archive_text(archive, "env", "");
    *maker = grt_model_maker(archive, holds);
    if (*maker == GRT_MODEL_OF_SUPERVISED || *maker == GRT_MODEL_OF_OTHERS) {
        bool ours = *maker == GRT_MODEL_OF_SUPERVISED;
        talk_error("%s holds %s, no policy%s%s%s", path, holds,
                   ours ? ": `gpurt eval --data FILE --checkpoint " : "", ours ? path : "",
                   ours ? "` tries it" : "");
    } else if (strcmp(of, env->name) != 0) {
        talk_error("%s: a policy for '%s' and not for '%s'", path, of, env->name);
    } else {
        return COMMAND_OK;
    }
    return COMMAND_DATA;
}

static int play_env(struct play *play, const char **words, size_t count,
                    const struct grt_env_info *env) {
    if (!play->checkpoint) {
        talk_error("play %s: no policy: name one with --checkpoint FILE, such as %s%s that "
                   "`gpurt train %s --env %s` writes",
                   words[0], env->name, env->world ? "-ppo.h5" : "-phase1.h5",
                   env->world ? "ppo" : "es", words[0]);
        return COMMAND_USAGE;
    }
    if (play->phase > env->phases || play->steps > MAX_STEPS || play->start > MAX_STEPS) {
        if (play->phase > env->phases) {
            talk_error("environment '%s' has no phase %u; it has 1 to %u", env->name, play->phase,
                       env->phases);
        } else {
            talk_error("--%s %u: at most %d can be shown",
                       play->steps > MAX_STEPS ? "steps" : "start",
                       play->steps > MAX_STEPS ? play->steps : play->start, MAX_STEPS);
        }
        return COMMAND_USAGE;
    }
    int code = FILES_APART({FILE_READ, "--checkpoint", play->checkpoint},
                           {FILE_WRITTEN, "--output", play->common.output});
    if (code) {
        return code;
    }
    play->form = form_of(play);
    if (!play->form) {
        return COMMAND_USAGE;
    }
    struct grt_archive *archive = grt_model_load(play->checkpoint);
    if (!archive) {
        return command_exit_of(grt_last_status());
    }
    enum grt_model_maker maker = GRT_MODEL_OF_OTHERS;
    code = check_archive(play->checkpoint, archive, env, &maker);
    if (code) {
        grt_archive_destroy(&archive);
        return code;
    }
    if (maker == GRT_MODEL_OF_PPO) {
        uint64_t seed = play->seed & ~SEEDED;
        return play_ppo(&(struct play_ppo_desc){.common = &play->common,
                                                .archive = archive,
                                                .words = words,
                                                .word_count = count,
                                                .json = strcmp(play->form, "json") == 0,
                                                .phase = play->phase,
                                                .steps = play->steps,
                                                .start = play->start,
                                                .seed = play->seed ? &seed : NULL});
    }
    code = play_es(play, env, count, archive);
    grt_archive_destroy(&archive);
    return code;
}

int cmd_play(int argc, char **argv) {
    struct play play = {0};
    struct option_list lists[] = {
        OPTION_LIST("What is played", play_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {
        .verb = "play",
        .words = "ENV|FILE.k [KEY=VALUE...]",
        .about =
            "Runs a trained policy in one environment and writes a picture that moves.\n"
            "ENV is standing, cartpole, pendulum, uav, uav_flight, or a file of your own. Of a "
            "policy of PPO, its most\nlikely actions are shown, and KEY=VALUE changes settings "
            "of the environment: map=24.\n",
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists,
        .keys = GRT_CONFIG_OF_PPO};
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t count = 0;
    if (!words) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    int code = options_parse(&desc, argc, argv, &play.common, words, &count);
    if (code < 0 && count == 0) {
        talk_error("what is to be played? `gpurt play ENV --checkpoint FILE -o FILE.svg`");
        code = COMMAND_USAGE;
    } else if (code < 0) {
        const struct grt_env_info *env = grt_env_open(words[0]);
        code = env ? play_env(&play, words, count, env) : command_exit_of_input(grt_last_status());
        grt_env_close(&env);
    }
    free(words);
    return code;
}
