// SPDX-License-Identifier: Apache-2.0
// Groups of parameters: which learning rate and weight decay each parameter has, as a table for the
// update.
//
//     | lr, decay of row 0 | lr, decay of row 1 | ... | row of unit 0 | row of unit 1 | ...
//
// Two rows for each group and two for the parameters of none: with decay, and without for what is
// no matrix.
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/optim.h"

static uint64_t row_count(const struct grt_optim_desc *d) {
    return d->group_count > 0 || d->decay_matrices ? 2 * ((uint64_t)d->group_count + 1) : 0;
}

uint64_t grt_optim_rate_words(const struct grt_optim_desc *d, const struct grt_params *params) {
    uint64_t rows = row_count(d);
    return rows > 0 ? 2 * rows + params->elements / params->unit : 0;
}

// The first group that a name matches; group_count: none.
static uint32_t group_of(const struct grt_optim_desc *d, const char *name) {
    uint32_t g = 0;
    while (g < d->group_count && fnmatch(d->groups[g].match, name, 0) != 0) {
        g++;
    }
    return g;
}

static bool refuse(const struct grt_optim_group *group, const struct grt_params *params) {
    char names[200] = "";
    size_t used = 0;
    uint32_t i = 0;
    for (; i < params->count && used + 40 < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.36s", i ? ", " : "",
                                 params->list[i]->name);
    }
    bool taken = false;
    for (uint32_t k = 0; k < params->count; k++) {
        taken |= fnmatch(group->match, params->list[k]->name, 0) == 0;
    }
    return grt_fail(group->where[0] ? GRT_CONFIG : GRT_INVALID,
                    "%sgroups: %s '%s'; parameters are %s%s", group->where,
                    taken ? "groups before it take all parameters of" : "no parameter matches",
                    group->match, names, i < params->count ? ", ..." : "");
}

static uint32_t bits(double number) {
    float f = (float)number;
    uint32_t word;
    memcpy(&word, &f, sizeof word);
    return word;
}

bool grt_optim_rates(const struct grt_optim_desc *d, const struct grt_params *params,
                     uint32_t *words) {
    uint64_t rows = row_count(d);
    uint64_t members[GRT_OPTIM_GROUPS + 1] = {0};
    for (uint32_t i = 0; i < params->count && rows > 0; i++) {
        const struct grt_param *p = params->list[i];
        uint32_t g = group_of(d, p->name);
        uint32_t row = 2 * g + (d->decay_matrices && p->rank < 2);
        members[g]++;
        uint64_t first = p->first / params->unit;
        uint64_t end = first + (p->count + params->unit - 1) / params->unit;
        for (uint64_t unit = first; words && unit < end; unit++) {
            words[2 * rows + unit] = row;
        }
    }
    for (uint32_t g = 0; g <= d->group_count && rows > 0; g++) {
        const struct grt_optim_group *own = g < d->group_count ? &d->groups[g] : NULL;
        if (own && members[g] == 0) {
            return refuse(own, params);
        }
        double lr = own && own->own_lr ? own->lr : d->lr;
        bool decides = own && own->own_decay;
        for (uint32_t flat = 0; words && flat < 2; flat++) {
            words[2 * (2 * g + flat)] = bits(lr);
            words[2 * (2 * g + flat) + 1] = bits(decides     ? own->weight_decay
                                                 : flat == 0 ? d->weight_decay
                                                             : 0.0);
        }
    }
    return true;
}
