// SPDX-License-Identifier: Apache-2.0
// Reads a profile, strictly: what is not known, given twice, out of range or cut short is refused
// with file and line. See profile.h for the form.
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "profile_file.h"

#define MAX_LINE 512

struct reader {
    const char *path;
    uint32_t line;
    struct profile_file *file;
    char *why;
    uint32_t level_line;  // 0: not given yet
    uint32_t match_lines[16];
    char from[GRT_PROFILE_TEXT];  // "": none yet
    bool ended;
};

static bool wrong(struct reader *r, const char *format, ...) GRT_PRINTF(2, 3);

static bool wrong(struct reader *r, const char *format, ...) {
    int head = snprintf(r->why, PROFILE_WHY, "%.400s:%u: ", r->path, r->line);
    va_list args;
    va_start(args, format);
    if (head > 0 && head < PROFILE_WHY) {
        vsnprintf(r->why + head, (size_t)(PROFILE_WHY - head), format, args);
    }
    va_end(args);
    return false;
}

// ---- settings ----

static bool read_setting(struct reader *r, enum grt_profile_key key, const char *value) {
    struct profile_row *row = &r->file->rows[key];
    char why[PROFILE_WHY];
    if (row->line != 0) {
        return wrong(r, "%s was given in line %u already", grt_profile_key_info(key)->key,
                     row->line);
    }
    if (!r->from[0]) {
        return wrong(r, "no 'from' above %s: where does the number come from?",
                     grt_profile_key_info(key)->key);
    }
    if (!profile_numbers(key, value, row->numbers, why)) {
        return wrong(r, "%s: %s", grt_profile_key_info(key)->key, why);
    }
    row->line = r->line;
    row->count = profile_count(key);
    memcpy(row->from, r->from, sizeof row->from);
    return true;
}

// ---- what stands above the settings ----

static bool is_date(const char *text) {
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; form[i]; i++) {
        if (form[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != form[i]) {
            return false;
        }
    }
    return true;
}

static bool read_from(struct reader *r, const char *value) {
    size_t word = strcspn(value, ":");
    const char *text = value + word + (value[word] == ':');
    text += strspn(text, " ");
    const char *comma = strchr(text, ',');
#define IS(origin) (strlen(origin) == word && strncmp(value, origin, word) == 0)
    if (IS("measured")) {
        if (!is_date(text) || !comma || !strchr(comma + 1, ',')) {
            return wrong(r, "measured wants date, driver and figure, as in 'measured: 2026-11-15, "
                            "NVIDIA 580.95, 45 TFLOP/s'");
        }
    } else if (IS("derived")) {
        if (!*text) {
            return wrong(r, "derived wants from what, as in 'derived: CLBlast 1.6'");
        }
    } else if (!IS("default")) {
        return wrong(r,
                     "'%.*s' is no origin: there are"
#define X(name, origin) " " origin
                     GRT_PROFILE_ORIGINS(X),
#undef X
                     (int)(word < 32 ? word : 32), value);
    }
#undef IS
    if (strlen(value) >= sizeof r->from) {
        return wrong(r, "'from' has more than %zu characters", sizeof r->from - 1);
    }
    snprintf(r->from, sizeof r->from, "%s", value);
    return true;
}

static bool read_level(struct reader *r, const char *value) {
    if (r->level_line != 0) {
        return wrong(r, "level was given in line %u already", r->level_line);
    }
    for (uint32_t i = GRT_PROFILE_CLASS; i <= GRT_PROFILE_USER; i++) {
        if (strcmp(value, grt_profile_level_text((enum grt_profile_level)i)) == 0) {
            r->file->level = (enum grt_profile_level)i;
            r->level_line = r->line;
            return true;
        }
    }
    return wrong(r, "'%.32s' is no level: there are class, vendor, architecture, device, user",
                 value);
}

static bool read_memory(struct reader *r, const char *value) {
    char *end = NULL;
    struct profile_match *match = &r->file->match;
    match->from_gib = strtod(value, &end);
    match->below_gib = *end ? strtod(end, &end) : HUGE_VAL;
    if (end == value || *end || !(match->from_gib >= 0 && match->from_gib < match->below_gib)) {
        return wrong(r,
                     "match.memory wants GiB, from and below, as in '20 36', or '70' for no end");
    }
    return true;
}

// Whether a condition can hold at all; a misspelt one never would, and nobody would notice.
static bool check_condition(struct reader *r, const char *condition, const char *value) {
    bool known = true;
    if (strcmp(condition, "arch") == 0) {
        known = profile_known_arch(value);
    } else if (strcmp(condition, "vendor") == 0) {
        known = profile_known_vendor(value);
    } else if (strcmp(condition, "class") == 0) {
        known = strcmp(value, "gpu") == 0 || strcmp(value, "cpu") == 0;
    } else if (strcmp(condition, "backend") == 0) {
        known = false;
#define X(name, text) known = known || strcmp(value, text) == 0;
        GRT_BACKENDS(X)
#undef X
    } else if (strcmp(condition, "memory") == 0) {
        return read_memory(r, value);
    }
    return known || wrong(r, "no %s '%.64s' is known", condition, value);
}

static bool read_condition(struct reader *r, uint32_t i, const char *condition, char *into,
                           const char *value) {
    if (r->match_lines[i] != 0) {
        return wrong(r, "match.%s was given in line %u already", condition, r->match_lines[i]);
    }
    if (strlen(value) >= PROFILE_WORD) {
        return wrong(r, "match.%s has more than %d characters", condition, PROFILE_WORD - 1);
    }
    r->match_lines[i] = r->line;
    snprintf(into, PROFILE_WORD, "%s", value);
    return check_condition(r, condition, value);
}

// ---- lines ----

static bool read_unknown(struct reader *r, const char *name) {
    static const struct {
        const char *name;
    } names[] = {{"level"},
                 {"from"},
#define X(condition) {"match." #condition},
                 PROFILE_CONDITIONS(X)
#undef X
#define X(id, key, type, numbers, min, max, fallback, meaning) {key},
                     GRT_PROFILE_KEYS(X)
#undef X
    };
    const char *meant = grt_closest(name, names, sizeof names / sizeof *names, sizeof *names);
    return wrong(r, "no setting '%.64s'%s%s%s", name, meant ? "; did you mean '" : "",
                 meant ? meant : "", meant ? "'?" : "");
}

static bool read_pair(struct reader *r, const char *name, const char *value) {
    enum grt_profile_key key = grt_profile_key_find(name);
    if (!*value) {
        return wrong(r, "no value behind '%.64s ='", name);
    }
    if (key != GRT_KEY_COUNT) {
        return read_setting(r, key, value);
    }
    if (strcmp(name, "level") == 0) {
        return read_level(r, value);
    }
    if (strcmp(name, "from") == 0) {
        return read_from(r, value);
    }
    uint32_t i = 0;
#define X(condition)                                                                               \
    if (strcmp(name, "match." #condition) == 0) {                                                  \
        return read_condition(r, i, #condition, r->file->match.condition, value);                  \
    }                                                                                              \
    i++;
    PROFILE_CONDITIONS(X)
#undef X
    return read_unknown(r, name);
}

// Cuts white space off both ends, in place.
static char *trim(char *text) {
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t')) {
        length--;
    }
    text[length] = '\0';
    return text;
}

static bool read_version(struct reader *r, const char *line) {
    uint32_t version = 0;
    char rest = 0;
    if (sscanf(line, "gpurt-profile %u%c", &version, &rest) != 1) {
        return wrong(r, "no profile: the first line must be 'gpurt-profile %d'", PROFILE_VERSION);
    }
    return version == PROFILE_VERSION ||
           wrong(r, "a profile of version %u; this gpurt reads version %d", version,
                 PROFILE_VERSION);
}

static bool read_line(struct reader *r, char *line) {
    if (r->line == 1) {
        return read_version(r, line);
    }
    char *comment = strchr(line, '#');
    if (comment) {
        *comment = '\0';
    }
    line = trim(line);
    if (!*line) {
        return true;
    }
    if (r->ended) {
        return wrong(r, "'%.32s' stands behind 'end'", line);
    }
    if (strcmp(line, "end") == 0) {
        r->ended = true;
        return true;
    }
    char *equals = strchr(line, '=');
    if (!equals) {
        return wrong(r, "'%.64s' is not of the form name = value", line);
    }
    *equals = '\0';
    return read_pair(r, trim(line), trim(equals + 1));
}

// The conditions that a level is about.
static bool check_whole(struct reader *r) {
    const struct profile_match *m = &r->file->match;
    if (!r->ended) {
        return wrong(r, "the file ends without 'end': it may be cut short");
    }
    if (r->level_line == 0) {
        return wrong(r, "no 'level' is given");
    }
    const char *needed[GRT_PROFILE_LEVEL_COUNT] = {
        [GRT_PROFILE_CLASS] = m->class,
        [GRT_PROFILE_VENDOR] = m->vendor,
        [GRT_PROFILE_ARCHITECTURE] = m->arch,
        [GRT_PROFILE_DEVICE] = m->name,
    };
    const char *condition[GRT_PROFILE_LEVEL_COUNT] = {
        [GRT_PROFILE_CLASS] = "class",
        [GRT_PROFILE_VENDOR] = "vendor",
        [GRT_PROFILE_ARCHITECTURE] = "arch",
        [GRT_PROFILE_DEVICE] = "name",
    };
    enum grt_profile_level level = r->file->level;
    if (needed[level] && !needed[level][0]) {
        r->line = r->level_line;
        return wrong(r, "level %s needs match.%s", grt_profile_level_text(level), condition[level]);
    }
    return true;
}

bool profile_parse(const char *path, const char *text, size_t size, struct profile_file *file,
                   char why[PROFILE_WHY]) {
    struct reader r = {.path = path, .line = 1, .file = file, .why = why};
    memset(file, 0, sizeof *file);
    if (size > PROFILE_MAX_BYTES) {
        return wrong(&r, "more than %u bytes", PROFILE_MAX_BYTES);
    }
    for (size_t at = 0; at < size; r.line++) {
        char line[MAX_LINE];
        size_t length = 0;
        for (; at < size && text[at] != '\n'; at++) {
            unsigned char c = (unsigned char)text[at];
            if ((c < ' ' && c != '\t' && !(c == '\r' && at + 1 < size && text[at + 1] == '\n')) ||
                c == 127) {
                return wrong(&r, "a byte %u that is no text: the file is damaged", c);
            }
            if (length + 1 >= sizeof line) {
                return wrong(&r, "a line of more than %d characters", MAX_LINE - 1);
            }
            if (c != '\r') {
                line[length++] = (char)c;
            }
        }
        at++;
        line[length] = '\0';
        if (!read_line(&r, line)) {
            return false;
        }
    }
    if (size == 0) {
        return wrong(&r, "the file is empty");
    }
    r.line--;
    return check_whole(&r);
}
