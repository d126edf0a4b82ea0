// SPDX-License-Identifier: Apache-2.0
// What trials are judged by, and when they end early.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "plan_parts.h"

// Fields of which more is better; less is better of all others.
static const char *const more_is_better[] = {
    "accuracy",  "knn",     "top5",   "return",        "best_return", "good_rate",
    "explained", "entropy", "length", "samples_per_s", "steps_per_s", "episodes",
};

static bool known_field(const char *word) {
    for (int i = 0; i < GRT_FIELD_COUNT; i++) {
        if (strcmp(word, grt_run_field_word((enum grt_run_field)i)) == 0) {
            return true;
        }
    }
    return false;
}

static bool grows(const char *field) {
    for (size_t i = 0; i < sizeof more_is_better / sizeof *more_is_better; i++) {
        if (strcmp(field, more_is_better[i]) == 0) {
            return true;
        }
    }
    return false;
}

// "val_loss", "val/loss" and "evaluate_loss" are the loss of evaluations, and so is "loss";
// "train_loss" and "train/loss" that of training, as evaluations tell it, else of the rows `train`.
static void find_rows(struct sweep_metric *m) {
    static const char *const evaluations[] = {"val",      "valid", "validation",
                                              "evaluate", "eval",  "test"};
    const char *slash = strpbrk(m->name, "_/.");
    size_t before = slash ? (size_t)(slash - m->name) : 0;
    m->event = GRT_RUN_EVALUATE;
    snprintf(m->field, sizeof m->field, "%s", m->name);
    for (size_t i = 0; i < sizeof evaluations / sizeof *evaluations && before; i++) {
        if (strlen(evaluations[i]) == before && strncmp(m->name, evaluations[i], before) == 0) {
            snprintf(m->field, sizeof m->field, "%s", slash + 1);
        }
    }
    if (before == 5 && strncmp(m->name, "train", 5) == 0) {
        bool loss = strcmp(slash + 1, "loss") == 0;
        m->event = loss ? GRT_RUN_EVALUATE : GRT_RUN_TRAIN;
        snprintf(m->field, sizeof m->field, "%s", loss ? "train_loss" : slash + 1);
    }
    if (strcmp(m->field, "acc") == 0) {
        snprintf(m->field, sizeof m->field, "accuracy");
    }
}

void plan_metric_default(struct sweep_plan *plan) {
    struct sweep_metric *m = &plan->metric;
    const char *name = plan->kind->scope & GRT_CONFIG_OF_SUPERVISED ? "val_loss" : "return";
    snprintf(m->name, sizeof m->name, "%s",
             strcmp(plan->kind->name, "simclr") == 0 ? "train_loss" : name);
    find_rows(m);
    m->maximize = grows(m->field);
}

bool plan_metric(struct sweep_plan *plan, const struct grt_node *entry) {
    struct sweep_metric *m = &plan->metric;
    const struct grt_node *name = NULL, *goal = NULL;
    const struct grt_node *map = entry->first;
    // `metric: val_loss` is its name.
    if (map->kind == GRT_NODE_TEXT) {
        name = entry;
    } else if (map->kind != GRT_NODE_MAP) {
        return plan_wrong(plan, map, "metric wants {name: val_loss, goal: minimize}");
    }
    for (const struct grt_node *e = name ? NULL : map->first; e; e = e->next) {
        if (strcmp(e->text, "name") == 0) {
            name = e;
        } else if (strcmp(e->text, "goal") == 0) {
            goal = e;
        } else if (strcmp(e->text, "target") != 0 && strcmp(e->text, "impute") != 0) {
            return plan_wrong(plan, e, "metric: no '%s'; there are name and goal", e->text);
        } else {
            return plan_wrong(
                plan, e, "metric: '%s' is not taken: leave it out%s", e->text,
                strcmp(e->text, "target") == 0 ? "; target_loss of the config ends a trial" : "");
        }
    }
    if (!name) {
        return plan_wrong(plan, entry, "metric wants a name, such as val_loss");
    }
    const char *text = plan_text(plan, name), *word = goal ? plan_text(plan, goal) : "";
    if (!text || !word) {
        return false;
    }
    if (!*text || strlen(text) >= sizeof m->name) {
        return plan_wrong(plan, name->first, "metric: a name of 1 to %d characters is wanted",
                          SWEEP_NAME - 1);
    }
    snprintf(m->name, sizeof m->name, "%s", text);
    m->line = name->first->line;
    m->column = name->first->column;
    find_rows(m);
    // Environments of PPO have fields of their own, by names that only they know.
    if (!known_field(m->field) && plan->kind->scope != GRT_CONFIG_OF_PPO) {
        const char *fields[GRT_FIELD_COUNT];
        for (int i = 0; i < GRT_FIELD_COUNT; i++) {
            fields[i] = grt_run_field_word((enum grt_run_field)i);
        }
        const char *close = grt_closest(m->field, fields, GRT_FIELD_COUNT, sizeof *fields);
        return plan_wrong(plan, name->first,
                          "no metric '%s'%s%s%s: logs have val_loss, train_loss, val_accuracy, "
                          "knn, top5, return and good_rate",
                          text, close ? "; did you mean '" : "", close ? close : "",
                          close ? "'?" : "");
    }
    bool up = strcmp(word, "maximize") == 0, down = strcmp(word, "minimize") == 0;
    if (goal && !up && !down) {
        return plan_wrong(plan, goal->first, "goal is minimize or maximize, not '%s'", word);
    }
    m->maximize = goal ? up : grows(m->field);
    return true;
}

// ---- early_terminate ----

static bool add_rung(struct sweep_halving *h, double at) {
    uint64_t rung = (uint64_t)(at + 0.5);
    bool more = h->count < SWEEP_RUNGS && at < 1e15;
    if (more && rung > 0 && (h->count == 0 || rung > h->rungs[h->count - 1])) {
        h->rungs[h->count++] = rung;
    }
    return more;
}

bool plan_halving(struct sweep_plan *plan, const struct grt_node *entry) {
    struct sweep_halving *h = &plan->halving;
    const struct grt_node *first = NULL, *last = NULL, *type = NULL;
    uint64_t min_iter = 0, max_iter = 0, s = 0;
    bool good = true;
    h->eta = 3;
    if (entry->first->kind != GRT_NODE_MAP) {
        return plan_wrong(plan, entry->first,
                          "early_terminate wants {type: hyperband, min_iter: 3, eta: 3}");
    }
    for (const struct grt_node *e = entry->first->first; e && good; e = e->next) {
        if (strcmp(e->text, "type") == 0) {
            type = e;
            const char *word = plan_text(plan, e);
            good = word && (strcmp(word, "hyperband") == 0 ||
                            plan_wrong(plan, e->first,
                                       "early_terminate: no type '%s'; there is "
                                       "hyperband",
                                       word));
        } else if (strcmp(e->text, "min_iter") == 0) {
            first = e;
            good = plan_whole(plan, e, 1, 1e9, &min_iter);
        } else if (strcmp(e->text, "max_iter") == 0) {
            last = e;
            good = plan_whole(plan, e, 1, 1e9, &max_iter);
        } else if (strcmp(e->text, "s") == 0) {
            good = plan_whole(plan, e, 1, SWEEP_RUNGS, &s);
        } else if (strcmp(e->text, "eta") == 0) {
            good = plan_number(plan, e, &h->eta) &&
                   ((h->eta > 1 && h->eta <= 1000) ||
                    plan_wrong(plan, e->first, "eta is above 1: one of eta trials goes on"));
        } else if (strcmp(e->text, "strict") == 0) {
            const char *word = plan_text(plan, e);
            good = word && (grt_flag_of(word) >= 0 ||
                            plan_wrong(plan, e->first, "strict is true or false"));
        } else {
            good = plan_wrong(plan, e,
                              "early_terminate: no '%s'; there are type, min_iter, max_iter, s, "
                              "eta and strict",
                              e->text);
        }
    }
    if (good && !type) {
        return plan_wrong(plan, entry, "early_terminate wants type: hyperband");
    }
    if (good && (!first == !last || (s && !last))) {
        return plan_wrong(plan, entry,
                          "early_terminate wants min_iter, the epochs before the first decision, "
                          "or max_iter and s");
    }
    for (double at = (double)min_iter; good && first && add_rung(h, at); at *= h->eta) {
    }
    for (uint64_t k = s ? s : 1; good && last && k > 0; k--) {
        add_rung(h, (double)max_iter / pow(h->eta, (double)k));
    }
    return good;
}
