// SPDX-License-Identifier: Apache-2.0
#include "link.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

// As a number of the file, then in its base unit.
static bool bounded(double *value, double least, double most, double scale) {
    bool good = *value >= least && *value <= most;
    *value *= scale;
    return good;
}

static bool read_link(json_t *object, struct link *link, char why[CARD_WHY]) {
    json_error_t error;
    // Every key is wanted, and none is known besides.
    if (json_unpack_ex(object, &error, JSON_STRICT, "{s:s, s:s, s:s, s:F, s:F, s:F, s:F, s:F}",
                       "id", &link->id, "name", &link->name, "source", &link->source, "gpus",
                       &link->gpus, "copy_gb_per_s", &link->copy, "memory_gb_per_s", &link->memory,
                       "network_gb_per_s", &link->network, "latency_us", &link->latency) != 0) {
        snprintf(why, CARD_WHY, "%.200s", error.text);
        return false;
    }
    if (!link->id[0] || strlen(link->id) > 60 ||
        strspn(link->id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(link->id)) {
        snprintf(why, CARD_WHY, "id '%.40s' is to have a-z, 0-9 and - alone", link->id);
        return false;
    }
    if (!bounded(&link->gpus, 1, 1024, 1) || link->gpus != (double)(int)link->gpus ||
        !bounded(&link->copy, 1e-3, 1e6, 1e9) || !bounded(&link->memory, 1e-3, 1e6, 1e9) ||
        !bounded(&link->network, 1e-6, 1e6, 1e9) || !bounded(&link->latency, 0, 1e6, 1e-6)) {
        snprintf(why, CARD_WHY, "'%.40s': a number is out of bounds", link->id);
        return false;
    }
    return true;
}

bool links_read(struct links *links, const char *text, size_t size, char why[CARD_WHY]) {
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *list = json_object_get(root, "links");
    *links = (struct links){.text = root};
    if (!root) {
        snprintf(why, CARD_WHY, "line %d: %.160s", error.line, error.text);
        return false;
    }
    if (!schema || strcmp(schema, "gpurt.links/1") != 0 || json_array_size(list) == 0 ||
        json_array_size(list) > LINK_MAX) {
        snprintf(why, CARD_WHY, "schema gpurt.links/1 with 1 to %d links is wanted", LINK_MAX);
        return false;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        char inner[CARD_WHY];
        if (!read_link(json_array_get(list, i), &links->list[i], inner)) {
            snprintf(why, CARD_WHY, "link %zu: %.250s", i + 1, inner);
            return false;
        }
        links->count++;
    }
    return true;
}

void links_finish(struct links *links) {
    json_decref(links->text);
    *links = (struct links){0};
}
