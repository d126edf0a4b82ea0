// SPDX-License-Identifier: Apache-2.0
// How important a parameter of a sweep is: the share of the variance of the metric's ranks that it
// explains alone. For a parameter of many numbers that is the square of the rank correlation
// (Spearman); for one of words, or of at most FEW values, the correlation ratio, the variance of
// the means of its values' trials. Ranks, so that one trial that diverged does not decide.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "summary.h"

#define FEW 5
#define LEAST_TRIALS 4

static bool same(const struct report_cell *a, const struct report_cell *b) {
    return a->text && b->text ? strcmp(a->text, b->text) == 0
                              : !a->text && !b->text && a->number == b->number;
}

// Words have the places 0, 1, ... in the order in which trials have them.
static void find_places(struct report_sweep *s, size_t parameter) {
    double kinds = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct report_cell *own = &s->trials[i].values[parameter];
        size_t k = 0;
        s->trials[i].places[parameter] = own->number;
        if (s->parameters[parameter].words) {
            while (k < i && !same(own, &s->trials[k].values[parameter])) {
                k++;
            }
            s->trials[i].places[parameter] = k < i ? s->trials[k].places[parameter] : kinds++;
        }
    }
}

const struct report_trial *report_sweep_best(const struct report_sweep *s) {
    const struct report_trial *best = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const struct report_trial *t = &s->trials[i];
        bool judged = strcmp(t->state, "done") == 0 || strcmp(t->state, "halved") == 0;
        if (judged && !isnan(t->value) &&
            (!best || (s->maximize ? t->value > best->value : t->value < best->value))) {
            best = t;
        }
    }
    return best;
}

// Ranks from 1, the mean of them for equal values.
static void ranks_of(const double *values, size_t count, double *ranks) {
    for (size_t i = 0; i < count; i++) {
        double below = 0, equal = 0;
        for (size_t k = 0; k < count; k++) {
            below += values[k] < values[i];
            equal += values[k] == values[i];
        }
        ranks[i] = below + (equal + 1) / 2;
    }
}

static double mean_of(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

static double squared_correlation(const double *a, const double *b, size_t count) {
    double mean_a = mean_of(a, count), mean_b = mean_of(b, count), ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < count; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return aa > 0 && bb > 0 ? ab * ab / (aa * bb) : NAN;
}

// Of ranks b by the groups of equal places a.
static double correlation_ratio(const double *a, const double *b, size_t count) {
    double mean = mean_of(b, count), between = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        double sum = 0, members = 0;
        for (size_t k = 0; k < count; k++) {
            sum += a[k] == a[i] ? b[k] : 0;
            members += a[k] == a[i];
        }
        between += (sum / members - mean) * (sum / members - mean);
        all += (b[i] - mean) * (b[i] - mean);
    }
    return all > 0 ? between / all : NAN;
}

static size_t distinct(const double *places, size_t count) {
    size_t kinds = 0;
    for (size_t i = 0; i < count; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++) {
            first = places[k] != places[i];
        }
        kinds += first;
    }
    return kinds;
}

static double importance(const struct report_sweep *s, size_t parameter, double *room) {
    double *places = room, *values = room + s->count, *ranks = room + 2 * s->count,
           *own = room + 3 * s->count;
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (!isnan(s->trials[i].value)) {
            places[count] = s->trials[i].places[parameter];
            values[count++] = s->trials[i].value;
        }
    }
    size_t kinds = distinct(places, count);
    if (count < LEAST_TRIALS || kinds < 2) {
        return NAN;
    }
    ranks_of(values, count, ranks);
    if (s->parameters[parameter].words || kinds <= FEW) {
        return correlation_ratio(places, ranks, count);
    }
    ranks_of(places, count, own);
    return squared_correlation(own, ranks, count);
}

void report_sweep_settle(struct report_sweep *s) {
    double *room = calloc(4 * s->count + 1, sizeof *room);
    for (size_t p = 0; p < s->parameter_count; p++) {
        struct report_parameter *parameter = &s->parameters[p];
        for (size_t i = 0; i < s->count; i++) {
            const struct report_cell *v = &s->trials[i].values[p];
            parameter->words = parameter->words || v->text;
            parameter->log = parameter->log && !v->text && v->number > 0;
        }
        find_places(s, p);
        parameter->importance = room ? importance(s, p, room) : NAN;
    }
    free(room);
}

void report_sweep_text(const struct report *r, const struct report_sweep *s,
                       char text[REPORT_SENTENCE]) {
    const struct report_trial *best = report_sweep_best(s);
    size_t used = (size_t)snprintf(text, REPORT_SENTENCE, "Sweep %s: %zu trials",
                                   r->sources[s->source].file, s->count);
    if (best) {
        used += (size_t)snprintf(text + used, REPORT_SENTENCE - used,
                                 "; the best %s is %.6g, of trial %u with", s->metric, best->value,
                                 best->number);
    }
    for (size_t i = 0; best && i < s->parameter_count && used < REPORT_SENTENCE; i++) {
        const struct report_cell *v = &best->values[i];
        used += v->text ? (size_t)snprintf(text + used, REPORT_SENTENCE - used, " %s=%s",
                                           s->parameters[i].name, v->text)
                        : (size_t)snprintf(text + used, REPORT_SENTENCE - used, " %s=%.6g",
                                           s->parameters[i].name, v->number);
    }
    const char *before = "; importance:";
    for (size_t i = 0; i < s->parameter_count && used < REPORT_SENTENCE; i++) {
        if (!isnan(s->parameters[i].importance)) {
            used += (size_t)snprintf(text + used, REPORT_SENTENCE - used, "%s %s %.2f", before,
                                     s->parameters[i].name, s->parameters[i].importance);
            before = ",";
        }
    }
}
