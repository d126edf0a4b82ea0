// SPDX-License-Identifier: Apache-2.0
// The files of a trial, and what the end of a run means.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "cli/command.h"
#include "cli/spawn.h"
#include "cli/talk.h"
#include "sweep.h"

#define MOST_IDLE 10  // runs in a row that end with 75 before their first row

static const struct {
    const char *word;
    bool final;
} states[] = {
#define X(name, word, final) {word, final},
    SWEEP_STATES(X)
#undef X
};

const char *sweep_state_word(enum sweep_state state) {
    return states[state].word;
}

bool sweep_state_final(enum sweep_state state) {
    return states[state].final;
}

void sweep_trial_path(const struct sweep *s, const struct sweep_trial *t, const char *name,
                      char path[SWEEP_PATH]) {
    snprintf(path, SWEEP_PATH, "%.3900s/%04u/%s", s->dir, t->number, name);
}

void sweep_trial_kept(const struct sweep *s, const struct sweep_trial *t, char path[SWEEP_PATH]) {
    sweep_trial_path(s, t, s->plan.kind->folder ? "checkpoints" : "checkpoint.h5", path);
}

void sweep_trial_text(const struct sweep *s, const struct sweep_trial *t, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < s->plan.parameter_count && used < size; i++) {
        char value[SWEEP_VALUE];
        sweep_sample(&s->plan, i, t->number, value);
        used += (size_t)snprintf(text + used, size - used, "%s%s=%s", i ? " " : "",
                                 s->plan.parameters[i].name, value);
    }
}

// ---- files ----

static json_t *load(const struct sweep *s, const struct sweep_trial *t, const char *name) {
    char path[SWEEP_PATH];
    sweep_trial_path(s, t, name, path);
    return access(path, F_OK) == 0 ? json_load_file(path, 0, NULL) : NULL;
}

static bool save(const struct sweep *s, const struct sweep_trial *t, const char *name,
                 json_t *object) {
    char path[SWEEP_PATH];
    char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    sweep_trial_path(s, t, name, path);
    bool good = text ? grt_whole_file_save(path, text, strlen(text))
                     : grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    free(text);
    json_decref(object);
    return good;
}

static json_t *number_json(bool known, double value) {
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *parameters_json(const struct sweep *s, const struct sweep_trial *t) {
    json_t *all = json_object();
    for (uint32_t i = 0; i < s->plan.parameter_count; i++) {
        char value[SWEEP_VALUE];
        sweep_sample(&s->plan, i, t->number, value);
        json_object_set_new(all, s->plan.parameters[i].name, table_json_text(value));
    }
    return all;
}

bool sweep_trial_save(const struct sweep *s, const struct sweep_trial *t) {
    if (!sweep_state_final(t->state)) {
        return save(s, t, "state.json",
                    json_pack("{ss si ss sI so}", "schema", "gpurt.trial.state/1", "crashes",
                              (int)t->crashes, "device", t->device, "job", (json_int_t)t->job,
                              "why", table_json_text(t->why)));
    }
    const struct sweep_progress *p = &t->progress;
    return save(s, t, "result.json",
                json_pack("{ss sI ss so ss so sI sI sI sf sI ss ss so}", "schema", "gpurt.trial/1",
                          "trial", (json_int_t)t->number, "state", sweep_state_word(t->state),
                          "parameters", parameters_json(s, t), "metric", s->plan.metric.name,
                          "value", number_json(p->any, p->best), "best_at", (json_int_t)p->best_at,
                          "at", (json_int_t)p->at, "of", (json_int_t)p->whole, "seconds",
                          p->spent + p->seconds, "crashes", (json_int_t)t->crashes, "ended",
                          p->ended, "device", t->device, "why", table_json_text(t->why)));
}

static void take_text(const json_t *object, const char *key, char *text, size_t size) {
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(text, size, "%s", value ? value : "");
}

bool sweep_trial_load(struct sweep *s, struct sweep_trial *t) {
    char path[SWEEP_PATH], word[24];
    json_t *state = load(s, t, "state.json"), *result = load(s, t, "result.json");
    const json_t *of = result ? result : state;
    t->state = SWEEP_WAITING;
    t->crashes = (uint32_t)json_integer_value(json_object_get(of, "crashes"));
    t->job = (unsigned long)json_integer_value(json_object_get(state, "job"));
    take_text(of, "device", t->device, sizeof t->device);
    take_text(of, "why", t->why, sizeof t->why);
    take_text(result, "state", word, sizeof word);
    for (int i = 0; i < SWEEP_STATE_COUNT; i++) {
        if (result && sweep_state_final((enum sweep_state)i) && strcmp(word, states[i].word) == 0) {
            t->state = (enum sweep_state)i;
        }
    }
    json_decref(state);
    json_decref(result);
    sweep_trial_path(s, t, "log.jsonl", path);
    return sweep_progress_read(&t->progress, path, &s->plan.metric);
}

bool sweep_trial_prepare(struct sweep *s, struct sweep_trial *t) {
    char path[SWEEP_PATH], head[128];
    struct grt_config *config = malloc(sizeof *config);
    snprintf(path, sizeof path, "%.3900s/%04u", s->dir, t->number);
    bool good = config || grt_fail(GRT_NO_MEMORY, "no host memory for a config");
    if (good && mkdir(path, 0777) != 0 && errno != EEXIST) {
        good = grt_fail(GRT_NO_OUTPUT, "cannot create %s: %s", path, strerror(errno));
    }
    sweep_trial_path(s, t, "config.yaml", path);
    if (good && access(path, F_OK) != 0) {
        snprintf(head, sizeof head, "trial %u of %.80s", t->number, strrchr(s->dir, '/') + 1);
        good = sweep_settings(&s->plan, t->number, config) && grt_config_write(config, path, head);
    }
    free(config);
    return good;
}

// ---- what an end means ----

// The last thing that gpurt said in a trial's output.
static void last_words(const struct sweep *s, const struct sweep_trial *t, char why[SWEEP_WHY]) {
    char path[SWEEP_PATH], line[1024];
    sweep_trial_path(s, t, "output.txt", path);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "gpurt: ", 7) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(why, SWEEP_WHY, "%.390s", line + 7);
        }
    }
    if (file) {
        fclose(file);
    }
}

// Endings of a log after which there is nothing left to do.
static bool complete(const char *ended) {
    static const char *const words[] = {"epochs",   "max_steps", "iterations",
                                        "max_time", "patience",  "until"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(ended, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void crashed(struct sweep *s, struct sweep_trial *t, struct sweep_end end) {
    t->crashes++;
    if (end.why) {
        snprintf(t->why, sizeof t->why, "%s", end.why);
    } else if (end.code < 0) {
        snprintf(t->why, sizeof t->why, "ended by signal %d, %s", -end.code, strsignal(-end.code));
    } else {
        snprintf(t->why, sizeof t->why, "exit code %d", end.code);
        last_words(s, t, t->why);
    }
    t->state = t->crashes > s->plan.retries ? SWEEP_FAILED : SWEEP_WAITING;
    if (t->state == SWEEP_WAITING) {
        talk_line("trial %u is tried again, %u of %u: %s", t->number, t->crashes, s->plan.retries,
                  t->why);
    }
}

static void done(struct sweep *s, struct sweep_trial *t) {
    const struct sweep_metric *m = &s->plan.metric;
    t->state = SWEEP_DONE;
    t->why[0] = '\0';
    if (t->progress.any) {
        return;
    }
    t->state = SWEEP_FAILED;
    snprintf(t->why, sizeof t->why, "metric '%s' never appeared in its log", m->name);
    if (!s->fatal && m->line) {
        talk_error("%s:%u:%u: metric '%s' never appeared in the log of trial %u; its rows `%s` "
                   "have %s: name one of them",
                   s->plan.path, m->line, m->column, m->name, t->number,
                   grt_run_event_word(m->event), t->progress.had[0] ? t->progress.had : "none");
    } else if (!s->fatal) {
        talk_error("metric '%s' never appeared in the log of trial %u: name another by `metric: "
                   "{name: ...}`",
                   m->name, t->number);
    }
    s->fatal = true;
}

// Codes that the same command would end with again.
static bool hopeless(int code) {
    return code == COMMAND_USAGE || code == COMMAND_DATA || code == COMMAND_NO_INPUT ||
           code == COMMAND_CANNOT_CREATE || code == COMMAND_CONFIG;
}

static void resumable(struct sweep_trial *t) {
    bool idle = t->progress.rows == t->rows_before && t->asked == SWEEP_ASK_NOTHING;
    t->idle = idle ? t->idle + 1 : 0;
    t->state = t->idle >= MOST_IDLE ? SWEEP_FAILED : SWEEP_WAITING;
    if (t->state == SWEEP_FAILED) {
        snprintf(t->why, sizeof t->why, "ended with 75 %d times in a row and did nothing",
                 MOST_IDLE);
    }
}

static void judge(struct sweep *s, struct sweep_trial *t, struct sweep_end end) {
    const struct sweep_progress *p = &t->progress;
    bool whole = complete(p->ended);
    if (end.known && end.code == SPAWN_NO_PROGRAM) {
        t->state = SWEEP_WAITING;
        // Said once, however many slots wanted it.
        s->broken = s->broken || !grt_fail(GRT_NO_INPUT, "%s cannot be started", s->self);
    } else if ((end.known && end.code == COMMAND_OK) || (!end.known && whole)) {
        done(s, t);
    } else if (strcmp(p->ended, "nonfinite") == 0) {
        t->state = SWEEP_NAN;
        last_words(s, t, t->why);
    } else if (t->asked == SWEEP_ASK_HALVE && (!end.known || end.code == COMMAND_RESUMABLE)) {
        t->state = SWEEP_HALVED;
        snprintf(t->why, sizeof t->why, "others were better at %llu",
                 (unsigned long long)s->plan.halving.rungs[t->rungs - 1]);
    } else if (!end.known || end.code == COMMAND_RESUMABLE) {
        resumable(t);
    } else if (end.code == COMMAND_NO_MEMORY) {
        t->state = SWEEP_MEMORY;
        last_words(s, t, t->why);
    } else if (hopeless(end.code)) {
        t->state = SWEEP_FAILED;
        last_words(s, t, t->why);
    } else {
        crashed(s, t, end);
    }
}

bool sweep_ended(struct sweep *s, struct sweep_trial *t, struct sweep_end end) {
    char path[SWEEP_PATH];
    sweep_trial_path(s, t, "log.jsonl", path);
    bool good = sweep_progress_read(&t->progress, path, &s->plan.metric);
    judge(s, t, end);
    t->pid = 0;
    t->job = 0;
    t->asked = SWEEP_ASK_NOTHING;
    good = sweep_trial_save(s, t) && good;
    if (!sweep_state_final(t->state)) {
        sweep_queue_clear(s, t);  // it counts once, also when another process goes on
    }
    if (s->tell) {
        s->tell(s, t);
    }
    return good;
}

// ---- the best ----

bool sweep_better(const struct sweep *s, const struct sweep_trial *a, const struct sweep_trial *b) {
    bool has = a->progress.any && !isnan(a->progress.best);
    bool other = b->progress.any && !isnan(b->progress.best);
    return has && (!other || (s->plan.metric.maximize ? a->progress.best > b->progress.best
                                                      : a->progress.best < b->progress.best));
}

const struct sweep_trial *sweep_best(const struct sweep *s) {
    const struct sweep_trial *best = NULL;
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        const struct sweep_trial *t = &s->trials[i];
        bool has = t->progress.any && !isnan(t->progress.best) &&
                   (t->state == SWEEP_DONE || t->state == SWEEP_HALVED);
        if (has && (!best || sweep_better(s, t, best))) {
            best = t;
        }
    }
    return best;
}
