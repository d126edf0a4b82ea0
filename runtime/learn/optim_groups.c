// SPDX-License-Identifier: Apache-2.0
// Groups of parameters: which learning rate and weight decay each parameter has, as a table for the
// update.
//
//     | lr, decay of row 0 | lr, decay of row 1 | ... | row of unit 0 | row of unit 1 | ...
//
// Two rows for each group and two for the parameters of none: with decay, and without for what is
// no matrix. LARS has a row for each parameter, and behind the table the first element of each and
// how many it has, 0 of what is no matrix.
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/optim.h"

#define MOST_ROWS 1024  // of LARS: 12 KiB of shared memory

uint64_t grt_optim_rate_rows(const struct grt_optim_desc *d, const struct grt_params *params) {
    return d->kind == GRT_OPTIM_LARS                 ? params->count
           : d->group_count > 0 || d->decay_matrices ? 2 * ((uint64_t)d->group_count + 1)
                                                     : 0;
}

uint64_t grt_optim_rate_words(const struct grt_optim_desc *d, const struct grt_params *params) {
    uint64_t rows = grt_optim_rate_rows(d, params), lars = d->kind == GRT_OPTIM_LARS;
    return rows > 0 ? 2 * rows * (1 + lars) + params->elements / params->unit : 0;
}

// Whether a parameter is one of the last layer: "fc.weight" where the last one is "fc.bias".
static bool is_last(const struct grt_params *params, const char *name) {
    const char *last = params->list[params->count - 1]->name, *dot = strrchr(last, '.');
    if (!dot) {
        return strcmp(last, name) == 0;
    }
    size_t length = (size_t)(dot - last) + 1;
    return strncmp(last, name, length) == 0 && !strchr(name + length, '.');
}

static bool matches(const struct grt_optim_group *g, const struct grt_params *params,
                    const char *name) {
    return fnmatch(g->match, name, 0) == 0 && !(g->but_last && is_last(params, name));
}

// The first group that a name matches; group_count: none.
static uint32_t group_of(const struct grt_optim_desc *d, const struct grt_params *params,
                         const char *name) {
    uint32_t g = 0;
    while (g < d->group_count && !matches(&d->groups[g], params, name)) {
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
        taken |= matches(group, params, params->list[k]->name);
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

static double rate_of(const struct grt_optim_desc *d, uint32_t group) {
    bool own = group < d->group_count && d->groups[group].own_lr;
    return own ? d->groups[group].lr : d->lr;
}

// `flat`: of a parameter that decay_matrices leaves out.
static double decay_of(const struct grt_optim_desc *d, uint32_t group, bool flat) {
    bool own = group < d->group_count && d->groups[group].own_decay;
    return own ? d->groups[group].weight_decay : flat ? 0.0 : d->weight_decay;
}

static void put_row(uint32_t *words, uint64_t row, double lr, double decay) {
    words[2 * row] = bits(lr);
    words[2 * row + 1] = bits(decay);
}

bool grt_optim_rates(const struct grt_optim_desc *d, const struct grt_params *params,
                     uint32_t *words) {
    uint64_t rows = grt_optim_rate_rows(d, params), units = params->elements / params->unit;
    uint64_t members[GRT_OPTIM_GROUPS + 1] = {0};
    bool lars = d->kind == GRT_OPTIM_LARS;
    if (lars && rows > MOST_ROWS) {
        return grt_fail(GRT_UNSUPPORTED, "lars takes at most %d tensors of parameters; here are %u",
                        MOST_ROWS, params->count);
    }
    for (uint32_t i = 0; i < params->count && rows > 0; i++) {
        const struct grt_param *p = params->list[i];
        uint32_t g = group_of(d, params, p->name);
        bool flat = p->rank < 2, out = (d->decay_matrices || lars) && flat;
        uint32_t row = lars ? i : 2 * g + out;
        members[g]++;
        uint64_t first = p->first / params->unit;
        uint64_t end = first + (p->count + params->unit - 1) / params->unit;
        for (uint64_t unit = first; words && unit < end; unit++) {
            words[2 * rows + unit] = row;
        }
        if (words && lars) {
            put_row(words, i, rate_of(d, g), decay_of(d, g, out));
            words[2 * rows + units + 2 * i] = (uint32_t)p->first;
            words[2 * rows + units + 2 * i + 1] = flat ? 0 : (uint32_t)p->count;
        }
    }
    for (uint32_t g = 0; g <= d->group_count && rows > 0; g++) {
        if (g < d->group_count && members[g] == 0) {
            return refuse(&d->groups[g], params);
        }
        for (uint32_t flat = 0; words && !lars && flat < 2; flat++) {
            put_row(words, 2 * g + flat, rate_of(d, g), decay_of(d, g, flat != 0));
        }
    }
    return true;
}
