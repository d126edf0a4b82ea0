// SPDX-License-Identifier: Apache-2.0
// Values: from texts into the fields of a config, and back.
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config_parts.h"
#include "tree.h"

#define WHY(...) (snprintf(why, CONFIG_WHY, __VA_ARGS__), false)

static const char *type_text(enum grt_config_type type) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_CONFIG_TYPES(X)
#undef X
    };
    return texts[type];
}

// ---- single values ----

// A finite number in the range and nothing behind it; strtod alone would take nan, inf and
// hexadecimal numbers.
static bool read_number(const struct grt_config_key_info *info, const char *text, double *number,
                        char *why) {
    char *end = NULL;
    double value = strtod(text, &end);
    if (!*text || *end || strspn(text, "0123456789.eE+-") != strlen(text) || !isfinite(value)) {
        return WHY("%s wants %s, not '%.64s'", info->name, type_text(info->type), text);
    }
    if (value < info->min || value > info->max) {
        return WHY("%s: %.64s is not between %.12g and %.16g", info->name, text, info->min,
                   info->max);
    }
    *number = value;
    return true;
}

// Seconds, or a number of another unit.
static bool read_time(const struct grt_config_key_info *info, const char *text, double *seconds,
                      char *why) {
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char number[64];
    size_t length = strlen(text);
    double unit = 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (length > 1 && text[length - 1] == units[i].letter) {
            unit = units[i].seconds;
            length--;
            break;
        }
    }
    // The range is one of seconds.
    struct grt_config_key_info in_unit = *info;
    in_unit.min /= unit;
    in_unit.max /= unit;
    snprintf(number, sizeof number, "%.*s", (int)(length < 63 ? length : 63), text);
    if (length > 63 || !read_number(&in_unit, number, seconds, why)) {
        return WHY("%s wants %s, of %.12g to %.12g seconds, not '%.64s'", info->name,
                   type_text(info->type), info->min, info->max, text);
    }
    *seconds *= unit;
    return true;
}

static bool read_whole(const struct grt_config_key_info *info, const char *text, uint64_t *whole,
                       char *why) {
    double number = 0;
    if (!read_number(info, text, &number, why)) {
        return false;
    }
    if (number != floor(number)) {
        return WHY("%s: %.64s is not whole", info->name, text);
    }
    // Of digits alone every one counts: a double has 16 of them.
    bool digits = strspn(text, "0123456789") == strlen(text);
    uint64_t value = digits ? strtoull(text, NULL, 10) : (uint64_t)number;
    if (value > (uint64_t)info->max) {
        return WHY("%s: %.64s is not between %.12g and %.16g", info->name, text, info->min,
                   info->max);
    }
    *whole = value;
    return true;
}

// A number of digits alone counts; any other is a share of all.
static bool read_amount(const struct grt_config_key_info *info, const char *text, double *amount,
                        char *why) {
    char number[64];
    double value = 0;
    size_t length = strlen(text);
    bool percent = length > 1 && text[length - 1] == '%';
    bool count = strspn(text, "0123456789") == length;
    snprintf(number, sizeof number, "%.*s", (int)(length - percent), text);
    if (length >= sizeof number || !read_number(info, number, &value, why)) {
        return length < sizeof number && count
                   ? false
                   : WHY("%s wants %s, not '%.64s'", info->name, type_text(info->type), text);
    }
    value = percent ? value / 100 : value;
    if (!count && value > 1) {
        return WHY("%s: %.64s is neither a whole number nor a share of at most 1.0", info->name,
                   text);
    }
    // All: 0 where that is no limit, and as many as there can be where 0 switches off.
    if (!count && value == 1) {
        value = info == &config_keys[GRT_CONFIG_OVERFIT_BATCHES].info ? info->max : 0;
    }
    *amount = value;
    return true;
}

static bool read_flag(const struct grt_config_key_info *info, const char *text, bool *flag,
                      char *why) {
    int value = grt_flag_of(text);
    if (value < 0) {
        return WHY("%s wants true or false, not '%.64s'", info->name, text);
    }
    *flag = value != 0;
    return true;
}

// Looks a text up in "word=synonym=synonym|word|..." and gives the word.
static bool match_word(const char *words, const char *text, grt_config_WORD word) {
    while (*words) {
        size_t group = strcspn(words, "|");
        size_t first = strcspn(words, "=|");
        for (size_t at = 0; at < group;) {
            size_t length = strcspn(words + at, "=|");
            if (strlen(text) == length && strncasecmp(text, words + at, length) == 0) {
                snprintf(word, sizeof(grt_config_WORD), "%.*s", (int)first, words);
                return true;
            }
            at += length + 1;
        }
        words += group + (words[group] == '|');
    }
    return false;
}

// The words themselves, without synonyms: "f32, f16, bf16".
static void list_words(const char *words, char *list, size_t capacity) {
    size_t used = 0;
    list[0] = '\0';
    while (*words && used < capacity) {
        used += (size_t)snprintf(list + used, capacity - used, "%s%.*s", used ? ", " : "",
                                 (int)strcspn(words, "=|"), words);
        words += strcspn(words, "|");
        words += *words == '|';
    }
}

static bool read_word(const struct grt_config_key_info *info, const char *text,
                      grt_config_WORD word, char *why) {
    int flag = grt_flag_of(text);
    if (match_word(info->words, text, word) ||
        (flag >= 0 && match_word(info->words, flag ? "true" : "false", word))) {
        return true;
    }
    char list[256];
    list_words(info->words, list, sizeof list);
    return WHY("%s: no '%.64s'; there are %s", info->name, text, list);
}

static bool read_text(const struct grt_config_key_info *info, const char *text, char *into,
                      size_t capacity, char *why) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 127) {
            return WHY("%s: a byte %u that is no text", info->name, *c);
        }
    }
    if (strlen(text) >= capacity) {
        return WHY("%s has more than %zu characters", info->name, capacity - 1);
    }
    memcpy(into, text, strlen(text) + 1);
    return true;
}

// ---- lists ----

static bool read_entry(const struct grt_config_key_info *info, void *field, uint32_t i,
                       const char *text, char *why) {
    switch (info->type) {
    case GRT_CONFIG_IS_NAMES:
        if (!*text) {
            return WHY("%s: an empty name", info->name);
        }
        return read_text(info, text, ((struct grt_config_names *)field)->values[i], GRT_CONFIG_NAME,
                         why);
    case GRT_CONFIG_IS_WHOLES:
        return read_whole(info, text, &((struct grt_config_wholes *)field)->values[i], why);
    default:
        return read_number(info, text, &((struct grt_config_reals *)field)->values[i], why);
    }
}

static bool read_entries(const struct grt_config_key_info *info, void *field,
                         const struct config_given *given, char *why) {
    uint32_t most = info->type == GRT_CONFIG_IS_NAMES ? GRT_CONFIG_NAMES : GRT_CONFIG_NUMBERS;
    if (given->count == 0) {
        return WHY("%s: the list is empty", info->name);
    }
    if (given->count > most) {
        return WHY("%s takes at most %u entries", info->name, most);
    }
    for (uint32_t i = 0; i < given->count; i++) {
        if (!read_entry(info, field, i, given->texts[i], why)) {
            return false;
        }
    }
    *(uint32_t *)field = (uint32_t)given->count;  // first in all three
    return true;
}

// In quotes, as YAML has it: makes the text of it, and leaves *at behind the last quote. NULL: it
// has none.
static char *unquote(char **at) {
    char quote = **at, *entry = *at + 1, *to = entry;
    for (char *from = entry; *from; from++) {
        bool doubled = quote == '\'' && from[0] == quote && from[1] == quote;
        bool escaped = quote == '"' && from[0] == '\\' && (from[1] == quote || from[1] == '\\');
        if (*from == quote && !doubled) {
            *at = from + 1;
            *to = '\0';
            return entry;
        }
        from += doubled || escaped;
        *to++ = *from;
    }
    return NULL;
}

// "128, 256" or "[128, 256]": a list as one text, cut at commas. In brackets a name may stand in
// quotes, commas and all: ["one, two", three].
static bool read_split(const struct grt_config_key_info *info, void *field, const char *text,
                       char *why) {
    char copy[GRT_CONFIG_NAMES * GRT_CONFIG_NAME];
    const char *texts[GRT_CONFIG_NUMBERS + 1];
    size_t count = 0;
    if (strlen(text) >= sizeof copy) {
        return WHY("%s has more than %zu characters", info->name, sizeof copy - 1);
    }
    memcpy(copy, text, strlen(text) + 1);
    char *at = copy + strspn(copy, " ");
    size_t length = strlen(at);
    bool quotes = false;
    if (length >= 2 && at[0] == '[' && at[length - 1] == ']') {
        at[length - 1] = '\0';
        at++;
        quotes = info->type == GRT_CONFIG_IS_NAMES;
    }
    while (count <= GRT_CONFIG_NUMBERS) {
        char *first = at + strspn(at, " ");
        if (quotes && (*first == '"' || *first == '\'')) {
            char quote = *first;
            texts[count] = unquote(&first);
            first += texts[count] ? strspn(first, " ") : 0;
            if (!texts[count++] || (*first && *first != ',')) {
                return WHY("%s: a name that begins with %c ends with it, and a comma is behind it",
                           info->name, quote);
            }
            if (!*first) {
                break;
            }
            at = first + 1;
            continue;
        }
        size_t size = strcspn(at, ",");
        bool more = at[size] == ',';
        at[size] = '\0';
        char *entry = at + strspn(at, " ");
        for (char *end = entry + strlen(entry); end > entry && end[-1] == ' '; end--) {
            end[-1] = '\0';
        }
        texts[count++] = entry;
        if (!more) {
            break;
        }
        at += size + 1;
    }
    return read_entries(info, field, &(struct config_given){texts, count, true}, why);
}

// As it stands; what it means is found out when the network is made.
static bool read_tree(const struct grt_config_key_info *info, const struct config_given *given,
                      struct grt_config_tree *tree, char *why) {
    const char *text = given->texts[0];
    if (strlen(text) >= sizeof tree->text) {
        return WHY("%s has more than %zu characters", info->name, sizeof tree->text - 1);
    }
    bool steps = info == &config_keys[GRT_CONFIG_TRANSFORM].info ||
                 info == &config_keys[GRT_CONFIG_EVAL_TRANSFORM].info;
    if (isalpha((unsigned char)text[0]) && (steps || strchr(text, '('))) {
        *tree = (struct grt_config_tree){given->line, given->column, 1, ""};
        return config_calls(text, tree->text, sizeof tree->text, why);
    }
    // As YAML has it: "[a]", or lines that begin with a dash of their own, which "-1" does not.
    const char *first = text + strspn(text, " \t\n");
    if (*first != '[' && (*first != '-' || !strchr(" \n", first[1]))) {
        return WHY("%s wants a list, such as %s", info->name, info->words);
    }
    *tree = (struct grt_config_tree){given->line, given->column, 0, ""};
    memcpy(tree->text, text, strlen(text) + 1);
    return true;
}

// Appends, as long as there is room, and counts on.
static void append(char *text, size_t capacity, size_t *used, const char *more) {
    for (; *more; more++, (*used)++) {
        if (*used + 1 < capacity) {
            text[*used] = *more;
        }
    }
}

// A device, or one for each rank: "[0, 1]" and a list become "0,1".
static bool read_devices(const struct grt_config_key_info *info, char *field,
                         const struct config_given *given, char why[CONFIG_WHY]) {
    char text[GRT_CONFIG_TEXT_SIZE];
    size_t used = 0;
    for (uint32_t i = 0; i < given->count; i++) {
        const char *at = given->texts[i];
        bool listed = given->list || (at[0] == '[' && at[strlen(at) - 1] == ']');
        if (i > 0) {
            append(text, sizeof text, &used, ",");
        }
        for (; *at; at++) {
            if (!listed || !strchr("[] ", *at)) {
                append(text, sizeof text, &used, (char[]){*at, '\0'});
            }
        }
    }
    text[used < sizeof text ? used : sizeof text - 1] = '\0';
    if (used == 0 || used >= sizeof text) {
        return WHY("%s %s", info->name, used == 0 ? "has no value" : "has too many of them");
    }
    return read_text(info, text, field, sizeof text, why);
}

bool config_read_value(struct grt_config *config, enum grt_config_key key,
                       const struct config_given *given, char why[CONFIG_WHY]) {
    const struct grt_config_key_info *info = &config_keys[key].info;
    void *field = (char *)config + config_keys[key].offset;
    bool takes_list = info->type == GRT_CONFIG_IS_NAMES || info->type == GRT_CONFIG_IS_WHOLES ||
                      info->type == GRT_CONFIG_IS_REALS;
    if (key == GRT_CONFIG_DEVICE) {
        return read_devices(info, field, given, why);
    }
    if (given->list && takes_list) {
        return read_entries(info, field, given, why);
    }
    bool several = key == GRT_CONFIG_LOSS && (given->list || strchr(given->texts[0], ','));
    if (several || (given->list && info->type != GRT_CONFIG_IS_TREE)) {
        return WHY("%s wants %s, not a list%s", info->name, type_text(info->type),
                   several ? ": losses has one for each of targets" : "");
    }
    const char *text = given->texts[0];
    if (!*text) {
        return WHY("%s has no value", info->name);
    }
    switch (info->type) {
    case GRT_CONFIG_IS_WHOLE:
        return read_whole(info, text, field, why);
    case GRT_CONFIG_IS_REAL:
        return read_number(info, text, field, why);
    case GRT_CONFIG_IS_TIME:
        return read_time(info, text, field, why);
    case GRT_CONFIG_IS_AMOUNT:
        return read_amount(info, text, field, why);
    case GRT_CONFIG_IS_FLAG:
        return read_flag(info, text, field, why);
    case GRT_CONFIG_IS_WORD:
        return read_word(info, text, field, why);
    case GRT_CONFIG_IS_TEXT:
        return read_text(info, text, field, GRT_CONFIG_TEXT_SIZE, why);
    case GRT_CONFIG_IS_TREE:
        return read_tree(info, given, field, why);
    default:
        return read_split(info, field, text, why);
    }
}

// ---- back to text ----

// The shortest decimal that reads back as the same number.
static void number_text(double number, char *text, size_t capacity) {
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, capacity, "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            return;
        }
    }
}

// In double quotes, so that no text is taken for something else.
static void append_quoted(char *text, size_t capacity, size_t *used, const char *more) {
    append(text, capacity, used, "\"");
    for (; *more; more++) {
        if (*more == '"' || *more == '\\') {
            append(text, capacity, used, "\\");
        }
        append(text, capacity, used, (char[]){*more, '\0'});
    }
    append(text, capacity, used, "\"");
}

static void append_list(const struct config_key *key, const void *field, char *text,
                        size_t capacity, size_t *used) {
    uint32_t count = *(const uint32_t *)field;
    // One number alone reads back as a list of one.
    bool alone = count == 1 && key->info.type != GRT_CONFIG_IS_NAMES;
    char entry[64];
    append(text, capacity, used, alone ? "" : "[");
    for (uint32_t i = 0; i < count; i++) {
        append(text, capacity, used, i ? ", " : "");
        if (key->info.type == GRT_CONFIG_IS_NAMES) {
            const struct grt_config_names *names = field;
            append_quoted(text, capacity, used, names->values[i]);
            continue;
        }
        number_text(key->info.type == GRT_CONFIG_IS_WHOLES
                        ? (double)((const struct grt_config_wholes *)field)->values[i]
                        : ((const struct grt_config_reals *)field)->values[i],
                    entry, sizeof entry);
        append(text, capacity, used, entry);
    }
    append(text, capacity, used, alone ? "" : "]");
}

// In one line, whichever way it was written.
static size_t tree_text(const struct grt_config_tree *tree, char *text, size_t capacity) {
    const struct grt_tree_source source = {.name = "network", .column = tree->column};
    struct grt_node *node = tree->text[0] ? grt_tree_create(&source, tree->text) : NULL;
    size_t length = node ? grt_tree_text(node, text, capacity) : 0;
    if (!node && capacity > 0) {
        text[0] = '\0';
    }
    grt_tree_destroy(&node);
    return length;
}

size_t grt_config_value_text(const struct grt_config *config, enum grt_config_key key, char *text,
                             size_t capacity) {
    size_t used = 0;
    char number[64];
    if ((unsigned)key >= GRT_CONFIG_KEY_COUNT) {
        return 0;
    }
    const struct config_key *k = &config_keys[key];
    const void *field = (const char *)config + k->offset;
    switch (k->info.type) {
    case GRT_CONFIG_IS_WHOLE:
        snprintf(number, sizeof number, "%llu", (unsigned long long)*(const uint64_t *)field);
        append(text, capacity, &used, number);
        break;
    case GRT_CONFIG_IS_REAL:
    case GRT_CONFIG_IS_TIME:
        number_text(*(const double *)field, number, sizeof number);
        append(text, capacity, &used, number);
        break;
    case GRT_CONFIG_IS_AMOUNT:
        number_text(*(const double *)field, number, sizeof number);
        // What counts is digits alone.
        if (*(const double *)field >= 1) {
            snprintf(number, sizeof number, "%.0f", *(const double *)field);
        }
        append(text, capacity, &used, number);
        break;
    case GRT_CONFIG_IS_FLAG:
        append(text, capacity, &used, *(const bool *)field ? "true" : "false");
        break;
    case GRT_CONFIG_IS_WORD:
        append(text, capacity, &used, field);
        break;
    case GRT_CONFIG_IS_TEXT:
        append_quoted(text, capacity, &used, field);
        break;
    case GRT_CONFIG_IS_TREE:
        return tree_text(field, text, capacity);
    default:
        append_list(k, field, text, capacity, &used);
    }
    if (capacity > 0) {
        text[used < capacity ? used : capacity - 1] = '\0';
    }
    return used;
}
