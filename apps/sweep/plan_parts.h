// SPDX-License-Identifier: Apache-2.0
// Inside the reading of a sweep's file: what plan.c and plan_parameter.c share.
#ifndef APPS_SWEEP_PLAN_PARTS_H
#define APPS_SWEEP_PLAN_PARTS_H

#include "config/tree.h"
#include "plan.h"

// False with "path:line:column: " and the sentence said; the place is that of the node.
bool plan_wrong(const struct sweep_plan *plan, const struct grt_node *at, const char *format, ...)
    GRT_PRINTF(3, 4);
// The value of a map's entry as a number, finite, or as a whole number from `min` to `max`.
bool plan_number(const struct sweep_plan *plan, const struct grt_node *entry, double *number);
bool plan_whole(const struct sweep_plan *plan, const struct grt_node *entry, double min, double max,
                uint64_t *whole);
// The value of an entry as one word.
const char *plan_text(const struct sweep_plan *plan, const struct grt_node *entry);

// An entry below `parameters`: its name is `section`, where that is not "", a dot, and the entry's.
bool plan_parameter(struct sweep_plan *plan, const char *section, const struct grt_node *entry);
// A parameter with the values of a list, which stands behind the entry's name in a config.
bool plan_list(struct sweep_plan *plan, const char *section, const struct grt_node *entry);
// `metric` and `early_terminate`.
bool plan_metric(struct sweep_plan *plan, const struct grt_node *entry);
bool plan_halving(struct sweep_plan *plan, const struct grt_node *entry);
// The metric of a kind whose file names none.
void plan_metric_default(struct sweep_plan *plan);

#endif
