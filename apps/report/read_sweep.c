// SPDX-License-Identifier: Apache-2.0
#include "read_sweep.h"

#include <math.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

const char *report_read_sweep(struct report *r, uint32_t source, const json_t *head) {
    const json_t *about = json_object_get(head, "sweep");
    const json_t *names = json_object_get(about, "parameters");
    const char *goal = text_of(about, "goal");
    struct report_sweep sweep = {.source = source,
                                 .metric = text_of(about, "metric"),
                                 .maximize = goal && strcmp(goal, "maximize") == 0,
                                 .parameter_count = json_array_size(names)};
    if (!sweep.metric || !goal || sweep.parameter_count == 0) {
        return "a sweep lacks its metric, goal or parameters";
    }
    if (sweep.parameter_count > REPORT_MAX_PARAMETERS) {
        return "a sweep has too many parameters";
    }
    for (size_t i = 0; i < sweep.parameter_count; i++) {
        const json_t *one = json_array_get(names, i);
        sweep.parameters[i] = (struct report_parameter){
            .name = text_of(one, "name"), .log = json_is_true(json_object_get(one, "log"))};
        if (!sweep.parameters[i].name) {
            return "a parameter of a sweep lacks its name";
        }
    }
    return report_add_sweep(r, &sweep) || !report_good(r) ? NULL : "too many sweeps";
}

const char *report_read_trial(struct report *r, const json_t *row) {
    struct report_sweep *s = r->sweep_count ? &r->sweeps[r->sweep_count - 1] : NULL;
    struct report_cell values[REPORT_MAX_PARAMETERS];
    const json_t *number = json_object_get(row, "trial"), *value = json_object_get(row, "value");
    struct report_trial trial = {
        .number = (uint32_t)json_integer_value(number),
        .state = text_of(row, "state"),
        .value = json_is_number(value) ? json_number_value(value) : NAN,
        .values = values,
    };
    if (!s || !json_is_integer(number) || !trial.state) {
        return "a trial lacks its number or state";
    }
    for (size_t i = 0; i < s->parameter_count; i++) {
        const json_t *v = json_object_get(row, s->parameters[i].name);
        values[i] =
            (struct report_cell){.text = json_string_value(v), .number = json_number_value(v)};
        if (!json_is_number(v) && !values[i].text) {
            return "a trial lacks a parameter";
        }
    }
    return report_add_trial(r, s, &trial) || !report_good(r) ? NULL : "too many trials";
}
