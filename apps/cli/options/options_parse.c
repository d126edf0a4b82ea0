// SPDX-License-Identifier: Apache-2.0
// Walks option rows: makes argtable's table from them, parses, and turns each text into its value.
// argtable does what getopt does (order, abbreviations, -abc, --name=value); checking values and
// wording mistakes is ours: argtable's own messages name neither the value nor what is allowed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cli/command.h"
#include "cli/output/files.h"
#include "cli/talk.h"
#include "options.h"

#define MAX_ROWS 47  // below the first digit and letter: argtable reports both as one number

// One row of the verb with what argtable made for it.
struct slot {
    const char *name;  // first, for command_unknown()
    const struct option_row *row;
    struct option_list *list;
    struct arg_lit *flag;
    struct arg_str *text;
};

struct parser {
    const struct options_desc *desc;
    struct slot slots[MAX_ROWS];
    size_t count;
    struct arg_str *words;
    struct arg_end *end;
    void *table[MAX_ROWS + 2];  // slots, words, end
};

// ---- help ----

static void print_row(const struct option_row *row) {
    char left[80];
    snprintf(left, sizeof left, "%s%s%s--%s%s%s", row->letter ? "-" : "    ",
             row->letter ? row->letter : "", row->letter ? ", " : "", row->name,
             row->value ? " " : "", row->value ? row->value : "");
    printf("  %-38s %s", left, row->help);
    if (row->fallback || row->env) {
        printf(" (default: %s%s)", row->env ? "$" : "", row->env ? row->env : row->fallback);
    }
    putchar('\n');
}

static void print_help(const struct options_desc *desc) {
    printf("usage: gpurt %s%s%s [OPTION...]\n\n%s", desc->verb, desc->words ? " " : "",
           desc->words ? desc->words : "", desc->about);
    for (size_t i = 0; i < desc->list_count; i++) {
        if (desc->lists[i].hidden) {
            continue;
        }
        printf("\n%s:\n", desc->lists[i].title);
        for (size_t k = 0; k < desc->lists[i].count; k++) {
            print_row(&desc->lists[i].rows[k]);
        }
    }
}

static options_show_fn *shown_by;
static void *shown_to;

void options_show_by(options_show_fn *show, void *context) {
    shown_by = show;
    shown_to = context;
}

// ---- argtable ----

static bool make_table(struct parser *p, int argc) {
    bool whole = true;
    for (size_t i = 0; i < p->desc->list_count; i++) {
        struct option_list *list = &p->desc->lists[i];
        list->given = NULL;
        for (size_t k = 0; k < list->count && p->count < MAX_ROWS; k++) {
            const struct option_row *row = &list->rows[k];
            struct slot *slot = &p->slots[p->count];
            *slot = (struct slot){.name = row->name, .row = row, .list = list};
            // argc is more often than anything can be given: the last one counts.
            if (row->read) {
                slot->text = arg_strn(row->letter, row->name, row->value, 0, argc, row->help);
            } else {
                slot->flag = arg_litn(row->letter, row->name, 0, argc, row->help);
            }
            p->table[p->count++] = row->read ? (void *)slot->text : (void *)slot->flag;
            whole = whole && p->table[p->count - 1];
        }
    }
    p->words = arg_strn(NULL, NULL, "WORD", 0, argc, NULL);
    // Only the first mistake is said. Two: a second would overwrite the only one, and with an odd
    // number argtable2 misaligns its pointers.
    p->end = arg_end(2);
    p->table[p->count] = p->words;
    p->table[p->count + 1] = p->end;
    return whole && p->words && p->end;
}

// True when a verb that takes KEY=VALUE was given a key as an option: --batch-size for batch_size.
static bool is_setting(const struct parser *p, const char *word, char key[64]) {
    snprintf(key, 64, "%s", word);
    for (char *c = key; *c; c++) {
        *c = *c == '-' ? '_' : *c;
    }
    enum grt_config_scope keys = p->desc->keys ? p->desc->keys : GRT_CONFIG_OF_SUPERVISED;
    enum grt_config_key found = grt_config_key_find(keys, key);
    return p->desc->words && strstr(p->desc->words, "KEY=VALUE") && found != GRT_CONFIG_KEY_COUNT &&
           (grt_config_key_scope(found) & keys);
}

// Says argtable's first complaint. An unknown long option and a missing value come with their text,
// an unknown letter as its code, and a flag that was given a value as the number of its row.
static int say_mistake(const struct parser *p, char **argv) {
    const char *verb = p->desc->verb;
    const char *text = p->end->argval[0];
    int code = p->end->error[0];
    char name[64] = "";
    char key[64];
    char help[64];
    snprintf(help, sizeof help, "gpurt %s --help", verb);
    if (text) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    }
    // A value that is there and empty stands for its option, which is the word before.
    for (int i = 1; text && !*text && !name[0] && argv[i]; i++) {
        if (!*argv[i]) {
            snprintf(name, sizeof name, "%s", argv[i - 1]);
        }
    }
    const char *word = name + strspn(name, "-");
    struct command_unknown unknown = {"option", word, "--", help};
    if (code == ARG_EMISSARG && text) {
        talk_error("'%s' needs a value; see `%s`", name, help);
    } else if (code == ARG_ELONGOPT && text && is_setting(p, word, key)) {
        talk_error("no option '--%s'; it is a setting: give it as %s=VALUE", word, key);
    } else if (code == ARG_ELONGOPT && text) {
        return command_unknown(&unknown, p->slots, p->count, sizeof *p->slots);
    } else if (code > MAX_ROWS && code < 127) {
        talk_error("no option '-%c'; see `%s`", code, help);
    } else if (code >= 0 && (size_t)code < p->count) {
        talk_error("'--%s' takes no value; see `%s`", p->slots[code].name, help);
    } else {
        talk_error("the options cannot be read; see `%s`", help);
    }
    return COMMAND_USAGE;
}

// The row that a word names, in full or cut short; NULL: none, or more than one. Of letters in one
// word the last, where that takes the next word as its value.
static const struct slot *slot_of(const struct parser *p, const char *word) {
    const struct slot *found = NULL;
    if (word[0] != '-' || word[1] == '\0') {
        return NULL;
    }
    bool brief = word[1] != '-';
    const char *name = word + 2;
    size_t length = strlen(name), matches = 0;
    for (const char *c = word + 1; brief && *c && !(found && found->text); c++) {
        found = NULL;
        for (size_t i = 0; i < p->count; i++) {
            const char *letter = p->slots[i].row->letter;
            found = letter && *letter == *c ? &p->slots[i] : found;
        }
        if (!found || (found->text && c[1])) {
            return NULL;
        }
    }
    for (size_t i = 0; !brief && i < p->count; i++) {
        if (strcmp(p->slots[i].name, name) == 0) {
            return &p->slots[i];
        }
        if (strncmp(p->slots[i].name, name, length) == 0) {
            found = &p->slots[i];
            matches++;
        }
    }
    return brief || matches == 1 ? found : NULL;
}

// A word that argtable takes as the value of the option before it, and that is none: it begins with
// --, or has letters of options. NULL: there is none. Meant as a value it stands behind a =.
static const char *taken_for_value(const struct parser *p, int argc, char **argv,
                                   const char **option) {
    for (int i = 1; i + 1 < argc && strcmp(argv[i], "--") != 0; i++) {
        const struct slot *slot = slot_of(p, argv[i]);
        const char *next = argv[i + 1];
        if (slot && slot->text) {
            if (strncmp(next, "--", 2) == 0 || slot_of(p, next)) {
                *option = argv[i];
                return next;
            }
            i++;
        }
    }
    return NULL;
}

// The value of one row: from the command line, the environment, or the row itself.
static bool fill(struct slot *slot, struct options *values) {
    const struct option_row *row = slot->row;
    void *into = (char *)values + row->at;
    char why[RANGES_WHY] = "";
    const char *text = row->fallback;
    const char *from = row->env ? getenv(row->env) : NULL;
    if (slot->flag) {
        *(uint32_t *)into = (uint32_t)slot->flag->count;
        slot->list->given = slot->flag->count ? row->name : slot->list->given;
        return true;
    }
    // A backend that was named, in an earlier row, stands above a device of the environment.
    if (from && *from && (!values->backend || strcmp(values->backend, "auto") == 0)) {
        text = from;
    }
    if (slot->text->count) {
        text = slot->text->sval[slot->text->count - 1];
        slot->list->given = row->name;
    }
    for (int i = 0; row->each && i + 1 < slot->text->count; i++) {
        if (!row->read(slot->text->sval[i], into, why)) {
            talk_error("--%s '%s': %s", row->name, slot->text->sval[i], why);
            return false;
        }
    }
    if (!text || row->read(text, into, why)) {
        return true;
    }
    if (slot->text->count) {
        talk_error("--%s '%s': %s", row->name, text, why);
    } else {
        talk_error("%s '%s': %s", row->env, text, why);
    }
    return false;
}

// Whether a word NAME=VALUE gives an option as if it were a setting. Environments have settings
// with the names of options, so words of PPO are left to it.
static bool is_option(const struct parser *p, const char *word, char name[64]) {
    char key[64];
    snprintf(name, 64, "%.*s", (int)strcspn(word, "="), word);
    bool known = is_setting(p, name, key);
    for (char *c = name; *c; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    for (size_t i = 0; !known && strchr(word, '=') && i < p->count; i++) {
        if (p->slots[i].text && strcmp(p->slots[i].name, name) == 0) {
            return !(p->desc->keys & GRT_CONFIG_OF_PPO);
        }
    }
    return false;
}

static int parse(struct parser *p, int argc, char **argv, struct options *values,
                 const char **words, size_t *word_count) {
    if (!make_table(p, argc)) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    const char *option = NULL, *taken = taken_for_value(p, argc, argv, &option);
    int mistakes = arg_parse(argc, argv, p->table);
    for (size_t i = 0; i < p->count; i++) {
        // Asked for help, the other options do not matter, right or wrong.
        if (p->slots[i].row->at == offsetof(struct options, help) && p->slots[i].flag &&
            p->slots[i].flag->count) {
            if (shown_by) {
                shown_by(p->desc, shown_to);
            } else {
                print_help(p->desc);
            }
            return COMMAND_OK;
        }
    }
    if (taken) {
        talk_error("'%s' needs a value before '%s'; see `gpurt %s --help`", option, taken,
                   p->desc->verb);
        return COMMAND_USAGE;
    }
    if (mistakes) {
        return say_mistake(p, argv);
    }
    for (size_t i = 0; i < p->count; i++) {
        if (!fill(&p->slots[i], values)) {
            return COMMAND_USAGE;
        }
    }
    if (p->words->count && !p->desc->words) {
        talk_error("%s: '%s' is not expected; see `gpurt %s --help`", p->desc->verb,
                   p->words->sval[0], p->desc->verb);
        return COMMAND_USAGE;
    }
    *word_count = (size_t)p->words->count;
    for (size_t i = 0; i < *word_count; i++) {
        char name[64];
        words[i] = p->words->sval[i];
        if (is_option(p, words[i], name)) {
            talk_error("'%s': it is an option: give it as --%s VALUE", words[i], name);
            return COMMAND_USAGE;
        }
    }
    talk_set_level(values->quiet ? -1 : (int)values->verbose);
    values->verb = p->desc->verb;
    return -1;
}

int options_parse(const struct options_desc *desc, int argc, char **argv, struct options *values,
                  const char **words, size_t *word_count) {
    struct parser p = {.desc = desc};
    int code = parse(&p, argc, argv, values, words, word_count);
    arg_freetable(p.table, sizeof p.table / sizeof *p.table);
    if (code < 0 &&
        FILES_APART({FILE_WRITTEN, "--output", values->output}, FILES_WATCHED(values))) {
        code = COMMAND_USAGE;
    }
    return code;
}
