// SPDX-License-Identifier: Apache-2.0
// Networks by name, in a list of layers or alone: a row of the table each.
#include <string.h>

#include "network_parts.h"

// The outputs under their key, `out` without it; `outputs: none` leaves out the last layer.
static bool read_outputs(const struct network_reading *r, const struct grt_node *value,
                         const char *name, uint32_t *outputs) {
    const struct grt_node *given = value ? network_entry(value, "outputs") : NULL;
    const struct grt_node out = {.kind = GRT_NODE_TEXT,
                                 .text = (char[]){"out"},
                                 .line = r->desc->line,
                                 .column = r->desc->column};
    bool none = given ? given->kind == GRT_NODE_TEXT && strcmp(given->text, "none") == 0
                      : r->desc->features;
    if (none) {
        *outputs = 0;
        return true;
    }
    return network_width(r, given ? given : &out, name, outputs);
}

static struct grt_module *make_resnet(const struct network_reading *r, const char *name,
                                      const struct grt_node *value, uint32_t depth) {
    static const char *const keys[] = {"stem", "zero_init", "outputs", NULL};
    static const char *const stems[] = {
#define X(name, text) text,
        GRT_STEMS(X)
#undef X
    };
    struct grt_resnet_desc desc = {.depth = depth};
    const struct grt_node *stem = value ? network_entry(value, "stem") : NULL;
    int word = stem ? network_word(r, stem, "stem", stems, GRT_STEM_COUNT) : GRT_STEM_AUTO;
    if (word < 0 || (value && (!network_only(r, value, name, keys) ||
                               !network_flag(r, value, "zero_init", &desc.zero_init)))) {
        return NULL;
    }
    desc.stem = (enum grt_stem)word;
    return read_outputs(r, value, name, &desc.outputs) ? grt_resnet_create(&desc) : NULL;
}

static struct grt_module *make_wide(const struct network_reading *r, const char *name,
                                    const struct grt_node *value, uint32_t depth) {
    static const char *const keys[] = {"depth", "width", "dropout", "outputs", NULL};
    struct grt_wideresnet_desc desc = {.depth = depth};
    const struct grt_node *dropout = value ? network_entry(value, "dropout") : NULL;
    if ((value && (!network_only(r, value, name, keys) ||
                   !network_number(r, value, "depth", 1, &desc.depth) ||
                   !network_number(r, value, "width", 1, &desc.width))) ||
        (dropout && !network_share(r, dropout, "dropout", &desc.dropout))) {
        return NULL;
    }
    if (desc.depth < 10 || desc.depth > 304 || desc.depth % 6 != 4) {
        return network_wrong(r, network_entry(value, "depth"),
                             "wideresnet: depth is 6 n + 4, such as 16, 22, 28 or 40, and at most "
                             "304, not %u",
                             desc.depth);
    }
    return read_outputs(r, value, name, &desc.outputs) ? grt_wideresnet_create(&desc) : NULL;
}

static const struct {
    const char *name;
    struct grt_module *(*make)(const struct network_reading *r, const char *name,
                               const struct grt_node *value, uint32_t depth);
    uint32_t depth;
} networks[] = {
    {"resnet18", make_resnet, 18},   {"resnet34", make_resnet, 34},   {"resnet50", make_resnet, 50},
    {"resnet101", make_resnet, 101}, {"resnet152", make_resnet, 152}, {"wideresnet", make_wide, 28},
};

const char *network_name(uint32_t i) {
    return i < sizeof networks / sizeof *networks ? networks[i].name : NULL;
}

struct grt_module *network_named(struct network_reading *r, const char *name,
                                 const struct grt_node *value, bool *known) {
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        if (strcmp(networks[i].name, name) == 0) {
            *known = true;
            return value && value->kind != GRT_NODE_MAP
                       ? network_wrong(r, value, "%s takes keys, such as {%s: {outputs: out}}",
                                       name, name)
                       : networks[i].make(r, name, value, networks[i].depth);
        }
    }
    *known = false;
    return NULL;
}
