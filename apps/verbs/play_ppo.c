// SPDX-License-Identifier: Apache-2.0
// `gpurt play` of a policy that `gpurt train ppo` made: an episode with its most likely actions. An
// environment in memory is drawn by its shapes (play_world.h), one in registers as for evolution
// strategies (play.h).
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output/output.h"
#include "cli/talk.h"
#include "play.h"
#include "play_world.h"
#include "train/train_ppo.h"

// What was seen, one step behind the other; those of an environment in registers begin with the
// first step, those in memory with the start.
struct record {
    const struct grt_worlds_sizes *sizes;
    uint32_t state;  // numbers of a state in registers
    uint32_t most;   // steps that are wanted
    uint32_t steps;  // that were taken
    bool ended, fell;
    double good;                     // share of the steps, in registers
    double total;                    // mean return of the agents
    struct grt_drawn_shape *shapes;  // [steps + 1][shapes]
    float *states;                   // [steps][state]
    float *obs;                // [steps + 1][agents][obs], before each step and behind the last
    float *acts;               // the same, [agents][act]
    uint32_t *mask, *choices;  // the same, [agents]
    float *rewards;            // [steps][agents]
    bool *counts;              // [steps][agents]
};

static bool make_record(struct record *r) {
    const struct grt_worlds_sizes *s = r->sizes;
    size_t frames = (size_t)r->most + 1, rows = frames * s->agents;
    r->shapes = calloc(frames * (s->shapes + 1), sizeof *r->shapes);
    r->states = calloc(frames * (r->state + 1), sizeof *r->states);
    r->obs = calloc(rows * s->obs, sizeof *r->obs);
    r->acts = calloc(rows * (s->act + 1), sizeof *r->acts);
    r->mask = calloc(rows, sizeof *r->mask);
    r->choices = calloc(rows, sizeof *r->choices);
    r->rewards = calloc(rows, sizeof *r->rewards);
    r->counts = calloc(rows, sizeof *r->counts);
    if (r->shapes && r->states && r->obs && r->acts && r->mask && r->choices && r->rewards &&
        r->counts) {
        return true;
    }
    talk_error("out of memory");
    return false;
}

static void free_record(struct record *r) {
    free(r->shapes);
    free(r->states);
    free(r->obs);
    free(r->acts);
    free(r->mask);
    free(r->choices);
    free(r->rewards);
    free(r->counts);
}

static void keep(void *into, const void *from, size_t at, size_t count, size_t size) {
    if (from) {
        memcpy((char *)into + at * count * size, from, count * size);
    }
}

static bool look(void *self, const struct grt_ppo_moment *m) {
    struct record *r = self;
    const struct grt_worlds_sizes *s = r->sizes;
    if (m->step == 0) {
        keep(r->shapes, m->shapes, 0, s->shapes, sizeof *r->shapes);
        return true;
    }
    size_t at = m->step - 1, n = s->agents;
    keep(r->obs, m->obs, at, n * s->obs, sizeof *r->obs);
    keep(r->acts, m->acts, at, n * s->act, sizeof *r->acts);
    keep(r->mask, m->mask, at, n, sizeof *r->mask);
    keep(r->choices, m->choices, at, n, sizeof *r->choices);
    // What follows the last step is no step.
    if (r->ended || m->step > r->most) {
        return false;
    }
    keep(r->shapes, m->shapes, m->step, s->shapes, sizeof *r->shapes);
    keep(r->states, m->state, at, r->state, sizeof *r->states);
    keep(r->rewards, m->rewards, at, n, sizeof *r->rewards);
    // An agent that is out has ended before the others; the last to act end the episode.
    bool more = false;
    for (size_t a = 0; a < n; a++) {
        r->counts[at * n + a] = (m->ends[a] & GRT_ROW_IDLE) == 0;
        r->total += (double)m->rewards[a] / (double)n;
        more |= r->counts[at * n + a] && (m->ends[a] & GRT_ROW_LAST) == 0;
        r->fell |= (m->ends[a] & GRT_ROW_LAST) != 0 && (m->ends[a] & GRT_ROW_CUT) == 0;
    }
    r->steps = m->step;
    r->ended = !more;
    // The last words of a state in registers: steps, and how many of them were good
    // (shaders/rl/worlds_state.k).
    if (r->state) {
        r->good = (double)m->state[s->words - 1] / m->state[s->words - 2];
    }
    return true;
}

// ---- an environment in registers ----

// The shapes of its states, where it gives some: [steps][shapes][GRT_TRACE_SHAPE].
static float *trace(struct grt_dev *dev, const struct grt_env_info *env, const struct record *r) {
    uint64_t states = (uint64_t)r->steps * env->state * 4, seen = (uint64_t)r->steps * env->obs * 4;
    uint64_t shapes = (uint64_t)r->steps * env->shapes * GRT_TRACE_SHAPE * 4;
    float *drawn = calloc(1, shapes + 4);
    struct grt_buf *buf =
        grt_buf_create(dev, grt_buf_desc(.size = states, .label = "states of play"));
    struct grt_buf *obs = grt_buf_create(dev, grt_buf_desc(.size = seen, .label = "play"));
    struct grt_buf *out = grt_buf_create(dev, grt_buf_desc(.size = shapes + 4, .label = "play"));
    struct grt_graph *graph = buf && obs && out ? grt_graph_create(dev, "trace") : NULL;
    if (graph) {
        grt_op_trace(graph, &(struct grt_trace_desc){.env = env,
                                                     .frames = r->steps,
                                                     .states = {buf, 0, 0},
                                                     .obs = {obs, 0, 0},
                                                     .shapes = {out, 0, 0}});
    }
    if (!drawn || !graph || !grt_buf_write(buf, 0, r->states, states) || !grt_graph_finish(graph) ||
        (shapes > 0 && !grt_buf_read(out, 0, drawn, shapes))) {
        free(drawn);
        drawn = NULL;
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
    grt_buf_destroy(&obs);
    grt_buf_destroy(&out);
    return drawn;
}

static bool show_registers(FILE *file, const struct train_ppo *t, const struct record *r,
                           bool json) {
    const struct grt_env_info *env = t->info;
    float *shapes = trace(t->trainer.dev, env, r);
    uint32_t phase = (uint32_t)t->trainer.config.settings.phase;
    struct play_trip trip = {.env = env,
                             .phase = phase ? phase : 1,
                             .frames = r->steps,
                             .states = r->states,
                             .seen = r->obs + env->obs,  // after each step
                             .actions = r->acts + env->act,
                             .rewards = r->rewards,
                             .shapes = shapes,
                             .total = r->total,
                             .good = r->good,
                             .falls = r->fell};
    bool ok = shapes != NULL;
    if (ok && json) {
        ok = play_json(file, &trip);
    } else if (ok) {
        play_svg(file, &trip);
    }
    free(shapes);
    return ok;
}

// ---- an environment in memory ----

static json_t *settings_json(const struct grt_worlds *worlds) {
    json_t *all = json_object();
    const char *name;
    double value;
    for (uint32_t i = 0; (name = grt_worlds_setting(worlds, i, &value)); i++) {
        json_object_set_new(all, name, json_real(value));
    }
    return all;
}

static json_t *terms_json(const struct grt_worlds *worlds, const struct grt_ppo_report *report) {
    json_t *all = json_object();
    const char *name;
    for (uint32_t i = 0; i < GRT_PPO_TERMS && (name = grt_worlds_term(worlds, i)); i++) {
        if (report->episodes > 0) {
            json_object_set_new(all, name, json_real(report->terms[i]));
        }
    }
    return all;
}

// A list for each step: of whole numbers or truths, one for each agent.
static json_t *words_json(const uint32_t *words, const bool *truths, uint32_t steps, uint32_t n) {
    json_t *all = json_array();
    for (uint32_t t = 0; t < steps; t++) {
        json_t *row = json_array();
        for (uint32_t a = 0; a < n; a++) {
            size_t at = (size_t)t * n + a;
            bool truth = truths && truths[at];
            json_array_append_new(row, words ? json_integer(words[at]) : json_boolean(truth));
        }
        json_array_append_new(all, row);
    }
    return all;
}

// A list for each step: of rows of numbers, one for each agent.
static json_t *steps_json(const float *rows, uint32_t steps, uint32_t n, uint32_t width) {
    json_t *all = json_array();
    for (uint32_t t = 0; t < steps; t++) {
        json_array_append_new(all, play_rows(rows + (size_t)t * n * width, n, width));
    }
    return all;
}

static bool show_json(FILE *file, const struct train_ppo *t, const struct record *r,
                      const struct grt_ppo_report *report) {
    const struct grt_worlds_sizes *s = r->sizes;
    bool discrete = s->choices > 0;
    json_t *all =
        json_pack("{ss ss so sf si si sf sb so so so so so}", "schema", "gpurt.play-world/1", "env",
                  t->info->name, "settings", settings_json(t->task->trials), "dt",
                  (double)t->info->dt, "agents", (int)s->agents, "steps", (int)r->steps, "return",
                  r->total, "ended", (int)r->ended, "terms", terms_json(t->task->trials, report),
                  "counts", words_json(NULL, r->counts, r->steps, s->agents), "observations",
                  steps_json(r->obs, r->steps, s->agents, s->obs), "actions",
                  discrete ? words_json(r->choices, NULL, r->steps, s->agents)
                           : steps_json(r->acts, r->steps, s->agents, s->act),
                  "rewards", play_rows(r->rewards, r->steps, s->agents));
    if (all && discrete) {
        json_object_set_new(all, "masks", words_json(r->mask, NULL, r->steps, s->agents));
    }
    bool ok = all && json_dumpf(all, file, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 &&
              fputc('\n', file) != EOF;
    json_decref(all);
    return ok;
}

static bool show_picture(FILE *file, const struct train_ppo *t, const struct record *r,
                         const struct grt_ppo_report *report) {
    char title[512];
    const char *name;
    size_t used = (size_t)snprintf(title, sizeof title, "%s: return %.3f, %u steps", t->info->name,
                                   r->total, r->steps);
    for (uint32_t i = 0; used < sizeof title - 96 && i < GRT_PPO_TERMS && report->episodes > 0 &&
                         (name = grt_worlds_term(t->task->trials, i));
         i++) {
        used += (size_t)snprintf(title + used, sizeof title - used, ", %.64s %.3g", name,
                                 report->terms[i]);
    }
    return play_world_svg(file, &(struct play_world){.title = title,
                                                     .steps = r->steps,
                                                     .dt = (double)t->info->dt,
                                                     .shapes = r->sizes->shapes,
                                                     .drawn = r->shapes});
}

// ---- the whole ----

static int show(const struct play_ppo_desc *desc, const struct train_ppo *t, const struct record *r,
                const struct grt_ppo_report *report) {
    struct output output;
    int code = output_open(&output, desc->common->output);
    if (code) {
        return code;
    }
    bool ok = t->info->world ? (desc->json ? show_json : show_picture)(output.file, t, r, report)
                             : show_registers(output.file, t, r, desc->json);
    int written = output_close(&output, ok);
    return ok ? written : COMMAND_INTERNAL;
}

static int not_drawn(const struct train_ppo *t) {
    talk_error("environment '%s' does not say how it is drawn: ENV_SHAPES and world_draw() in its "
               "file do; --format json has its trajectory",
               t->info->name);
    return COMMAND_DATA;
}

static int run(const struct play_ppo_desc *desc, struct train_ppo *t) {
    struct grt_ppo_report report;
    bool drawn = t->info->world && !desc->json;
    if (drawn && strcmp(t->info->world->shapes, "0") == 0) {
        return not_drawn(t);
    }
    int code = train_ppo_open_trained(t);
    if (code) {
        return code;
    }
    struct record r = {.sizes = grt_worlds_sizes(t->task->trials), .state = t->info->state};
    uint32_t length = grt_worlds_length(t->task->trials);
    r.most = desc->steps && desc->steps < length ? desc->steps : length;
    if (drawn && r.sizes->shapes == 0) {
        return not_drawn(t);
    }
    if (!make_record(&r)) {
        code = COMMAND_INTERNAL;
    } else if (!grt_ppo_watch(t->task->ppo, t->task->trials, GRT_PPO_TRY_POLICY,
                              desc->seed ? (uint32_t)*desc->seed : TRAIN_PPO_TRIALS,
                              desc->start - 1, look, &r, &report)) {
        code = command_exit_of(grt_last_status());
    } else {
        code = show(desc, t, &r, &report);
    }
    free_record(&r);
    return code;
}

int play_ppo(const struct play_ppo_desc *desc) {
    static const struct train_kind kind = {.verb = "play", .keys = GRT_CONFIG_OF_PPO};
    char phase[32];
    struct train_ppo *t = calloc(1, sizeof *t);
    const char **words = calloc(desc->word_count + 1, sizeof *words);
    struct grt_archive *archive = desc->archive;
    int code = COMMAND_INTERNAL;
    if (!t || !words) {
        talk_error("out of memory");
        grt_archive_destroy(&archive);
    } else {
        memcpy(words, desc->words, desc->word_count * sizeof *words);
        snprintf(phase, sizeof phase, "phase=%u", desc->phase);
        words[desc->word_count] = phase;
        t->trainer.kind = &kind;
        t->trainer.config.common = *desc->common;
        t->file.archive = archive;
        code = train_ppo_trained(t, words, desc->word_count + (desc->phase > 0), desc->start);
        if (!code) {
            code = run(desc, t);
        }
        train_ppo_close(t);
        grt_dev_destroy(&t->trainer.dev);
    }
    free(words);
    free(t);
    return code;
}
