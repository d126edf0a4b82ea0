// SPDX-License-Identifier: Apache-2.0
// The man page and the table of options, see manual.h. Each verb, and each word behind a verb that
// has options of its own, is asked for --help, and its table read instead of being printed.
#include "manual.h"

#include <stdio.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/options/watch.h"
#include "cli/talk.h"

// How a form writes things.
struct form {
    const char *name;
    void (*heading)(const char *text);
    void (*row)(const struct option_row *row);
    void (*text)(const char *text);  // a paragraph
};

#define MOST_LISTS 16
#define MOST_TABLES 64

// Lists that many commands share are shown once.
static const struct shared {
    const struct option_row *rows;
    size_t count;
    const char *title;
} shared[] = {
    {options_device, OPTIONS_DEVICE_COUNT, "Device options"},
    {options_output, OPTIONS_OUTPUT_COUNT, "Output options"},
    {watch_options, WATCH_OPTIONS_COUNT, "Where time and memory go"},
    {options_general, OPTIONS_GENERAL_COUNT, "General options"},
};
#define SHARED_COUNT (sizeof shared / sizeof *shared)

// The state of one walk over all commands.
struct walk {
    const struct form *form;
    bool synopsis;         // that, or the options
    const char *words[3];  // of the command that is asked
    // What was shown: lists of a command that has the same as an earlier one are not repeated.
    const struct option_row *tables[MOST_TABLES][MOST_LISTS];
    size_t table_count;
};

// ---- man ----

// Text with what roff takes for itself spelled out.
static void put_roff(const char *text) {
    for (const char *c = text; *c; c++) {
        if (c == text && (*c == '.' || *c == '\'')) {
            fputs("\\&", stdout);
        }
        if (*c == '-' || *c == '\\') {
            fputs(*c == '-' ? "\\-" : "\\e", stdout);
        } else if (*c == '\'' || *c == '`') {
            fputs(*c == '\'' ? "\\(aq" : "\\(ga", stdout);
        } else {
            putchar(*c);
        }
    }
}

static void man_heading(const char *text) {
    fputs(".SS ", stdout);
    put_roff(text);
    putchar('\n');
}

static void man_text(const char *text) {
    put_roff(text);
    putchar('\n');
}

static void put_default(const struct option_row *row, void (*put)(const char *text)) {
    if (row->fallback || row->env) {
        fputs(" (default: ", stdout);
        put(row->env ? "$" : "");
        put(row->env ? row->env : row->fallback);
        putchar(')');
    }
}

static void man_row(const struct option_row *row) {
    fputs(".TP\n", stdout);
    if (row->letter) {
        printf("\\fB\\-%s\\fR, ", row->letter);
    }
    fputs("\\fB\\-\\-", stdout);
    put_roff(row->name);
    fputs("\\fR", stdout);
    if (row->value) {
        fputs(" \\fI", stdout);
        put_roff(row->value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put_roff(row->help);
    put_default(row, put_roff);
    putchar('\n');
}

// ---- Markdown ----

// Of a cell of a table: the bar would end it, and an angle bracket begin a tag.
static void put_cell(const char *text) {
    for (const char *c = text; *c; c++) {
        if (*c == '|') {
            fputs("\\|", stdout);
        } else if (*c == '<') {
            fputs("&lt;", stdout);
        } else {
            putchar(*c);
        }
    }
}

static void md_heading(const char *text) {
    printf("\n### %s\n\n| option | meaning |\n|---|---|\n", text);
}

static void md_text(const char *text) {
    printf("\n%s\n", text);
}

static void md_row(const struct option_row *row) {
    printf("| %s%s%s`--%s", row->letter ? "`-" : "", row->letter ? row->letter : "",
           row->letter ? "`, " : "", row->name);
    if (row->value) {
        putchar(' ');
        put_cell(row->value);
    }
    fputs("` | ", stdout);
    put_cell(row->help);
    put_default(row, put_cell);
    fputs(" |\n", stdout);
}

static const struct form forms[] = {
    {"man", man_heading, man_row, man_text},
    {"md", md_heading, md_row, md_text},
};

// ---- the walk ----

static bool is_shared(const struct option_list *list) {
    for (size_t i = 0; i < SHARED_COUNT; i++) {
        if (list->rows == shared[i].rows) {
            return true;
        }
    }
    return false;
}

// Whether a command with the same rows was shown; notes these if not.
static bool shown_before(struct walk *walk, const struct options_desc *desc) {
    const struct option_row *rows[MOST_LISTS] = {0};
    size_t used = 0;
    for (size_t i = 0; i < desc->list_count && used < MOST_LISTS; i++) {
        if (!desc->lists[i].hidden && !is_shared(&desc->lists[i])) {
            rows[used++] = desc->lists[i].rows;
        }
    }
    for (size_t i = 0; i < walk->table_count; i++) {
        if (used && memcmp(walk->tables[i], rows, sizeof rows) == 0) {
            return true;
        }
    }
    if (walk->table_count < MOST_TABLES) {
        memcpy(walk->tables[walk->table_count++], rows, sizeof rows);
    }
    return false;
}

static void command_text(const struct walk *walk, char text[96]) {
    snprintf(text, 96, "gpurt %s%s%s", walk->words[0], walk->words[1] ? " " : "",
             walk->words[1] ? walk->words[1] : "");
}

static void show_synopsis(const struct walk *walk, const struct options_desc *desc) {
    char command[96];
    command_text(walk, command);
    fputs(".B ", stdout);
    put_roff(command);
    fputs("\n.RI ", stdout);
    // Words in capitals are names of things; a quote keeps the line one argument.
    printf("\"\" \"");
    put_roff(desc->words ? desc->words : "");
    printf("%s[OPTION...]\"\n.br\n", desc->words ? " " : "");
}

// With the table of one command.
static void show(const struct options_desc *desc, void *context) {
    struct walk *walk = context;
    char text[256];
    if (walk->synopsis) {
        show_synopsis(walk, desc);
        return;
    }
    if (shown_before(walk, desc)) {
        return;
    }
    command_text(walk, text);
    bool any = false;
    for (size_t i = 0; i < desc->list_count; i++) {
        const struct option_list *list = &desc->lists[i];
        if (list->hidden || is_shared(list)) {
            continue;
        }
        if (!any) {
            walk->form->heading(text);
        }
        any = true;
        for (size_t k = 0; k < list->count; k++) {
            walk->form->row(&list->rows[k]);
        }
    }
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < desc->list_count; i++) {
        const struct option_list *list = &desc->lists[i];
        if (is_shared(list)) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                                     list->title);
        }
    }
    if (any && used) {
        char line[320];
        snprintf(line, sizeof line, "Shared: %s.", text);
        fputs(walk->form->text == man_text ? ".PP\n" : "", stdout);
        walk->form->text(line);
    }
}

static void ask(const struct command_verb *verb, const char *word, struct walk *walk) {
    char name[32], kind[32], help[] = "--help";
    snprintf(name, sizeof name, "%s", verb->name);
    snprintf(kind, sizeof kind, "%s", word ? word : "");
    char *argv[] = {name, word ? kind : help, word ? help : NULL, NULL};
    walk->words[0] = verb->name;
    walk->words[1] = word;
    (void)verb->run(word ? 3 : 2, argv);
}

static void each_command(const struct command_verb *verbs, size_t count, struct walk *walk) {
    static const char *const without[] = {"completion", "version", "help"};
    options_show_by(show, walk);
    for (size_t i = 0; i < count; i++) {
        bool table = true;
        for (size_t k = 0; k < sizeof without / sizeof *without; k++) {
            table = table && strcmp(verbs[i].name, without[k]) != 0;
        }
        if (!table) {
            continue;
        }
        if (!verbs[i].wants_word) {
            ask(&verbs[i], NULL, walk);
        }
        for (const struct command_word *w = verbs[i].words; w && w->name; w++) {
            // In the synopsis one line stands for all kinds. `bench all` has the options of its
            // kinds, each of which is shown.
            if (!w->after && (!walk->synopsis || verbs[i].wants_word) &&
                strcmp(w->name, "all") != 0) {
                ask(&verbs[i], w->name, walk);
            }
        }
        if (verbs[i].takes_env && !walk->synopsis) {
            ask(&verbs[i], "uav", walk);
        }
    }
    options_show_by(NULL, NULL);
}

static void print_options(const struct command_verb *verbs, size_t count, const struct form *form) {
    struct walk walk = {.form = form};
    for (size_t i = 0; i < SHARED_COUNT; i++) {
        form->heading(shared[i].title);
        for (size_t k = 0; k < shared[i].count; k++) {
            form->row(&shared[i].rows[k]);
        }
    }
    each_command(verbs, count, &walk);
}

static void print_exits(const struct form *form) {
    bool man = form->text == man_text;
#define X(name, code, text)                                                                        \
    printf(man ? ".TP\n.B %d\n" : "| %d | ", code);                                                \
    (man ? put_roff : put_cell)(text);                                                             \
    fputs(man ? "\n" : " |\n", stdout);
    COMMAND_EXITS(X)
#undef X
}

static void print_line(const struct command_verb *verbs, size_t count, const struct form *form,
                       const char *line) {
    const char *version = strstr(line, "@VERSION@");
    if (strcmp(line, "@SYNOPSIS@\n") == 0) {
        each_command(verbs, count, &(struct walk){.form = form, .synopsis = true});
        fputs(".B gpurt completion bash|zsh|fish\n.br\n.B gpurt version\n.br\n.B gpurt help\n"
              ".RI [ COMMAND \" [\" KIND ]]\n",
              stdout);
    } else if (strcmp(line, "@OPTIONS@\n") == 0) {
        print_options(verbs, count, form);
    } else if (strcmp(line, "@EXITS@\n") == 0) {
        print_exits(form);
    } else if (version) {
        printf("%.*s%s%s", (int)(version - line), line, GPURT_VERSION,
               version + strlen("@VERSION@"));
    } else {
        fputs(line, stdout);
    }
}

int manual_print(const struct command_verb *verbs, size_t count, const char *form) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char line[4096];
        if (strcmp(form, forms[i].name) != 0) {
            continue;
        }
        while (fgets(line, sizeof line, stdin)) {
            print_line(verbs, count, &forms[i], line);
        }
        return COMMAND_OK;
    }
    talk_error("help --manual '%s': man or md is wanted", form);
    return COMMAND_USAGE;
}
