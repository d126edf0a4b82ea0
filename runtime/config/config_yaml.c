// SPDX-License-Identifier: Apache-2.0
// Reads a config file by YAML's events. The tree of libyaml (yaml_parser_load) is not used: it
// takes 37 seconds for 100 kB of "[", events take 2 ms.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "config_parts.h"

#define MAX_NAME 64

struct reader {
    struct grt_config *config;
    const char *path;
    yaml_parser_t parser;
    yaml_event_t event;  // the newest; type YAML_NO_EVENT when it was taken away
    uint32_t depth;
    uint32_t section_lines[64];  // where each section began; 0: not yet
    const char *text;
};

static bool wrong(const struct reader *r, yaml_mark_t mark, const char *format, ...)
    GRT_PRINTF(3, 4);

static bool wrong(const struct reader *r, yaml_mark_t mark, const char *format, ...) {
    char text[CONFIG_WHY];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return grt_fail(GRT_CONFIG, "%s:%zu:%zu: %s", r->path, mark.line + 1, mark.column + 1, text);
}

static bool next(struct reader *r) {
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event)) {
        return true;
    }
    memset(&r->event, 0, sizeof r->event);
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t mark = p->problem_mark;
    if (p->error == YAML_READER_ERROR) {
        // The reader knows bytes only, and its mark is where the scanner stands.
        return wrong(r, p->mark, "not YAML: %s at byte %zu", p->problem ? p->problem : "unreadable",
                     p->problem_offset);
    }
    return wrong(r, mark, "not YAML: %s%s%s", p->problem ? p->problem : "out of memory",
                 p->context ? ", " : "", p->context ? p->context : "");
}

// The text of a scalar, if it has no 0 inside.
static const char *scalar_text(const struct reader *r) {
    const char *text = (const char *)r->event.data.scalar.value;
    if (strlen(text) == r->event.data.scalar.length) {
        return text;
    }
    wrong(r, r->event.start_mark, "a byte 0 that is no text");
    return NULL;
}

static bool deeper(struct reader *r) {
    return ++r->depth <= GRT_CONFIG_MAX_DEPTH ||
           wrong(r, r->event.start_mark, "nested deeper than %d", GRT_CONFIG_MAX_DEPTH);
}

// ---- values ----

// The entries of a list, the event being its start; each is copied.
static bool read_list(struct reader *r, const char *name, char **texts, size_t *count) {
    for (;;) {
        if (!next(r)) {
            return false;
        }
        if (r->event.type == YAML_SEQUENCE_END_EVENT) {
            return true;
        }
        if (r->event.type != YAML_SCALAR_EVENT) {
            return wrong(r, r->event.start_mark, "%s: an entry of a list must be one value", name);
        }
        const char *text = scalar_text(r);
        if (!text) {
            return false;
        }
        if (*count == GRT_CONFIG_NUMBERS) {
            return wrong(r, r->event.start_mark, "%s takes at most %d entries", name,
                         GRT_CONFIG_NUMBERS);
        }
        texts[*count] = strdup(text);
        if (!texts[*count]) {
            return grt_fail(GRT_NO_MEMORY, "no host memory for %s", r->path);
        }
        ++*count;
    }
}

static bool store(struct reader *r, enum grt_config_key key, const char *name, yaml_mark_t at,
                  yaml_mark_t value_at, const struct config_given *given) {
    struct grt_config_place *place = &r->config->places[key];
    const char *own = config_keys[key].info.name;
    char why[CONFIG_WHY];
    if (!config_takes(r->config, key, name, why)) {
        return wrong(r, at, "%s", why);
    }
    if (place->file) {
        if (strcmp(name, place->name) == 0) {
            return wrong(r, at, "%s was given in line %u already", name, place->line);
        }
        return wrong(r, at, "%s means %s, which was given as %s in line %u already", name, own,
                     place->name, place->line);
    }
    if (!config_read_value(r->config, key, given, why)) {
        return wrong(r, value_at, "%s", why);
    }
    *place = (struct grt_config_place){.line = (uint32_t)at.line + 1,
                                       .column = (uint32_t)at.column + 1,
                                       .value_line = (uint32_t)value_at.line + 1,
                                       .value_column = (uint32_t)value_at.column + 1,
                                       .given = true,
                                       .file = true};
    snprintf(place->name, sizeof place->name, "%.47s", name);
    return true;
}

// Marks count characters; this is the byte where the index-th begins.
static size_t byte_of(const char *text, size_t index) {
    const char *at = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
    for (; *at && index > 0; index--) {
        do {
            at++;
        } while ((*at & 0xc0) == 0x80);
    }
    return (size_t)(at - text);
}

// A list of whatever, as it stands in the file: from its start, which is the newest event, to its
// end.
static bool read_tree(struct reader *r, enum grt_config_key key, const char *name, yaml_mark_t at) {
    yaml_mark_t begin = r->event.start_mark;
    for (uint32_t open = 1; open > 0;) {
        if (!next(r)) {
            return false;
        }
        if (r->event.type == YAML_ALIAS_EVENT) {
            return wrong(r, r->event.start_mark, "references are not taken; write the value");
        }
        bool starts =
            r->event.type == YAML_SEQUENCE_START_EVENT || r->event.type == YAML_MAPPING_START_EVENT;
        bool ends =
            r->event.type == YAML_SEQUENCE_END_EVENT || r->event.type == YAML_MAPPING_END_EVENT;
        open += starts ? 1u : 0u;
        open -= ends ? 1u : 0u;
        if (r->depth + open > GRT_CONFIG_MAX_DEPTH) {
            return wrong(r, r->event.start_mark, "nested deeper than %d", GRT_CONFIG_MAX_DEPTH);
        }
    }
    size_t first = byte_of(r->text, begin.index);
    char *text = strndup(r->text + first, byte_of(r->text, r->event.end_mark.index) - first);
    if (!text) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", r->path);
    }
    const char *texts = text;
    bool good = store(r, key, name, at, begin,
                      &(struct config_given){.texts = &texts,
                                             .count = 1,
                                             .line = (uint32_t)begin.line + 1,
                                             .column = (uint32_t)begin.column + 1});
    free(text);
    return good;
}

static bool read_value(struct reader *r, enum grt_config_key key, const char *name,
                       yaml_mark_t at) {
    char *texts[GRT_CONFIG_NUMBERS];
    size_t count = 0;
    yaml_mark_t value_at = r->event.start_mark;
    bool scalar = r->event.type == YAML_SCALAR_EVENT;
    key = config_key_for(key, scalar ? (const char *)r->event.data.scalar.value : NULL);
    if (config_keys[key].info.type == GRT_CONFIG_IS_TREE &&
        r->event.type == YAML_SEQUENCE_START_EVENT) {
        return read_tree(r, key, name, at);
    }
    if (scalar) {
        const char *text = scalar_text(r);
        return text && store(r, key, name, at, value_at,
                             &(struct config_given){.texts = &text,
                                                    .count = 1,
                                                    .line = (uint32_t)value_at.line + 1,
                                                    .column = (uint32_t)value_at.column + 1});
    }
    bool good = deeper(r) && read_list(r, name, texts, &count) &&
                store(r, key, name, at, value_at,
                      &(struct config_given){(const char *const *)texts, count, true});
    r->depth--;
    while (count > 0) {
        free(texts[--count]);
    }
    return good;
}

// ---- sections ----

static bool enter_section(struct reader *r, const char *name, yaml_mark_t at) {
    uint32_t i = 0;
    uint32_t *line = NULL;
#define X(section)                                                                                 \
    line = strcmp(name, section) == 0 ? &r->section_lines[i] : line;                               \
    i++;
    GRT_CONFIG_SECTIONS(X)
#undef X
    if (line && *line) {
        return wrong(r, at, "section %s was given in line %u already", name, *line);
    }
    if (line) {
        *line = (uint32_t)at.line + 1;
    }
    return line != NULL;
}

static bool unknown(struct reader *r, const char *name, yaml_mark_t at) {
    const char *closest = config_closest(r->config->scope, name);
    bool section = r->event.type == YAML_MAPPING_START_EVENT;
    if (!section && config_is_section(name)) {
        return wrong(r, at, "'%s' is a section: keys stand below it, and it has no value", name);
    }
    return wrong(r, at, "no %s '%s'%s%s%s", section ? "section" : "key", name,
                 closest ? "; did you mean '" : "", closest ? closest : "", closest ? "'?" : "");
}

static bool read_mapping(struct reader *r, const char *section);

// What stands behind a name; the event is the first of it.
static bool read_behind(struct reader *r, const char *section, const char *name, yaml_mark_t at) {
    enum grt_config_key key = config_find(r->config->scope, section, name);
    bool known_section = config_is_section(name);
    // `model:` with a list below it is no section.
    if (r->event.type == YAML_SEQUENCE_START_EVENT && key == GRT_CONFIG_KEY_COUNT &&
        strcmp(name, "model") == 0) {
        key = GRT_CONFIG_MODEL;
    }
    switch (r->event.type) {
    case YAML_ALIAS_EVENT:
        return wrong(r, r->event.start_mark, "references (*%.32s) are not taken; write the value",
                     (const char *)r->event.data.alias.anchor);
    case YAML_MAPPING_START_EVENT:
        if (!known_section && key != GRT_CONFIG_KEY_COUNT) {
            bool names = config_keys[key].info.type == GRT_CONFIG_IS_NAMES;
            return wrong(r, r->event.start_mark, "%s wants a %s, not a section", name,
                         names ? "list, such as [A, B]" : "value");
        }
        if (!known_section) {
            return unknown(r, name, at);
        }
        return enter_section(r, name, at) && read_mapping(r, name);
    case YAML_SCALAR_EVENT:
        // `data:` with nothing below it but comments.
        if (known_section && r->event.data.scalar.length == 0 &&
            r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
            return enter_section(r, name, at);
        }
        break;
    default:
        break;
    }
    return key != GRT_CONFIG_KEY_COUNT ? read_value(r, key, name, at) : unknown(r, name, at);
}

// A mapping whose start was the newest event, to its end.
static bool read_mapping(struct reader *r, const char *section) {
    char inside[MAX_NAME];
    snprintf(inside, sizeof inside, "%.63s", section);
    if (!deeper(r)) {
        return false;
    }
    for (;;) {
        if (!next(r)) {
            return false;
        }
        if (r->event.type == YAML_MAPPING_END_EVENT) {
            r->depth--;
            return true;
        }
        yaml_mark_t at = r->event.start_mark;
        if (r->event.type != YAML_SCALAR_EVENT) {
            return wrong(r, at, "a key must be one word");
        }
        const char *text = scalar_text(r);
        char name[MAX_NAME];
        if (!text) {
            return false;
        }
        if (strlen(text) >= sizeof name) {
            return wrong(r, at, "a key of more than %d characters", MAX_NAME - 1);
        }
        memcpy(name, text, strlen(text) + 1);
        if (!next(r) || !read_behind(r, inside, name, at)) {
            return false;
        }
    }
}

static bool expect(struct reader *r, yaml_event_type_t type, const char *otherwise) {
    if (!next(r)) {
        return false;
    }
    return r->event.type == type || wrong(r, r->event.start_mark, "%s", otherwise);
}

static bool read_stream(struct reader *r) {
    if (!next(r) || !next(r)) {  // the stream's start, then a document's
        return false;
    }
    if (r->event.type == YAML_STREAM_END_EVENT) {
        return true;  // empty, or comments only: everything at its default
    }
    if (!next(r)) {
        return false;
    }
    bool nothing = r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.length == 0;
    if (!nothing && r->event.type != YAML_MAPPING_START_EVENT) {
        return wrong(r, r->event.start_mark, "keys with values are wanted, as in 'epochs: 10'");
    }
    return (nothing || read_mapping(r, "")) &&
           expect(r, YAML_DOCUMENT_END_EVENT, "the document should end here") &&
           expect(r, YAML_STREAM_END_EVENT, "a second document; one is taken");
}

bool grt_config_parse(struct grt_config *config, const char *path, const char *text, size_t size) {
    struct reader r = {.config = config, .path = path, .text = text};
    _Static_assert(sizeof r.section_lines / sizeof *r.section_lines >= 0
#define X(name) +1
                       GRT_CONFIG_SECTIONS(X)
#undef X
                       ,
                   "a line for each section");
    if (!config || !path || (!text && size > 0)) {
        return grt_fail(GRT_INVALID, "a config, a path and a text are wanted");
    }
    if (config->path[0]) {
        return grt_fail(GRT_INVALID, "%s was read into this config already", config->path);
    }
    if (size > GRT_CONFIG_MAX_BYTES) {
        return grt_fail(GRT_CONFIG, "%s:1:1: more than %d bytes", path, GRT_CONFIG_MAX_BYTES);
    }
    if (!yaml_parser_initialize(&r.parser)) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text ? text : ""), size);
    bool good = read_stream(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (good) {
        snprintf(config->path, sizeof config->path, "%.1023s", path);
    }
    return good;
}

bool grt_config_read(struct grt_config *config, const char *path) {
    uint64_t size = 0;
    if (!config || !path) {
        return grt_fail(GRT_INVALID, "a config and a path are wanted");
    }
    // Larger than allowed, so that a file that is too long is said with its place.
    char *text = grt_whole_file_read_any(path, (uint64_t)1 << 30, &size);
    if (!text) {
        return false;
    }
    bool good = grt_config_parse(config, path, text, size);
    free(text);
    return good;
}
