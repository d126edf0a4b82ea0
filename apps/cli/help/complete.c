// SPDX-License-Identifier: Apache-2.0
// What may stand at the end of a command line, see complete.h. A verb is run with --help, whose
// table of options is read instead of being printed.
#include "complete.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/talk.h"
#include "gpurt/env.h"

static const struct shell {
    const char *name;
    const char *help;
    const char *text;
} shells[] = {
    {"bash", "source <(gpurt completion bash)", complete_bash},
    {"zsh", "gpurt completion zsh >FOLDER_OF_FPATH/_gpurt", complete_zsh},
    {"fish", "gpurt completion fish | source", complete_fish},
};
#define SHELL_COUNT (sizeof shells / sizeof *shells)

// The words of a command line behind `gpurt`; the last one is completed.
struct line {
    char **words;
    size_t count;
    const struct command_verb *verb;
};

// Ends of the names of files that an option or a key takes; of others any file serves.
static const struct ends {
    const char *name;
    const char *ends;
} file_ends[] = {
    {"config", "yaml yml"},
    {"data", "h5 hdf5 csv tsv npy npz"},
    {"validation_data", "h5 hdf5 csv tsv npy npz"},
    {"checkpoint", "h5 safetensors"},
    {"resume", "h5"},
    {"from", "h5 safetensors onnx"},
    {"apply", "yaml yml"},
};

static const char *current(const struct line *line) {
    return line->words[line->count - 1];
}

// Prints a word that begins as the last one does. `kept` bytes of that stand before the word.
static void offer(const struct line *line, size_t kept, const char *word, size_t length,
                  const char *help) {
    const char *typed = current(line) + kept;
    if (strncmp(word, typed, strlen(typed)) == 0 && strlen(typed) <= length) {
        printf("%.*s%.*s\t%s\n", (int)kept, current(line), (int)length, word, help);
    }
}

static void offer_text(const struct line *line, size_t kept, const char *word, const char *help) {
    offer(line, kept, word, strlen(word), help);
}

static void offer_files(const char *name) {
    const char *ends = "";
    for (size_t i = 0; name && i < sizeof file_ends / sizeof *file_ends; i++) {
        ends = strcmp(file_ends[i].name, name) == 0 ? file_ends[i].ends : ends;
    }
    printf(":files%s%s\n", *ends ? " " : "", ends);
}

static void offer_environments(const struct line *line, size_t kept) {
    for (uint32_t i = 0; grt_env_at(i); i++) {
        offer_text(line, kept, grt_env_at(i)->name, "environment");
    }
}

static void offer_devices(const struct line *line, size_t kept) {
    struct grt_dev_list *list = grt_dev_list_create();
    for (uint32_t i = 0; list && i < list->count; i++) {
        offer_text(line, kept, list->devices[i].selector, list->devices[i].name);
    }
    grt_dev_list_destroy(&list);
    offer_text(line, kept, "auto", "the best device of any");
    offer_text(line, kept, "cpu", "the fastest driver that runs on the processor");
    offer_text(line, kept, "gpu", "the best GPU");
}

// Words of a closed set, "a|b=c|d", of which b stands for c too. What has capitals is no word but
// the name of something.
static void offer_set(const struct line *line, size_t kept, const char *set, char between) {
    char ends[] = {between, '=', '\0'}, next[] = {between, '\0'};
    for (const char *at = set; *at; at += *at == between) {
        size_t length = strcspn(at, ends);
        bool plain = length > 0;
        for (size_t i = 0; i < length; i++) {
            plain = plain && !isupper((unsigned char)at[i]);
        }
        if (plain) {
            offer(line, kept, at, length, "");
        }
        at += strcspn(at, next);
    }
}

// How much of the last word stands before the part behind its last comma.
static size_t behind_comma(const struct line *line, size_t kept) {
    const char *comma = strrchr(current(line) + kept, ',');
    return comma ? (size_t)(comma + 1 - current(line)) : kept;
}

static void offer_value(const struct line *line, size_t kept, const struct option_row *row) {
    const char *value = row->value;
    if (strcmp(row->name, "device") == 0) {
        offer_devices(line, kept);
    } else if (strcmp(row->name, "devices") == 0) {
        offer_devices(line, behind_comma(line, kept));
    } else if (strcmp(row->name, "env") == 0) {
        offer_environments(line, kept);
        printf(":files k\n");
    } else if (strchr(value, '|')) {
        offer_set(line, kept, value, '|');
    } else if (strchr(value, ',')) {
        offer_set(line, behind_comma(line, kept), value, ',');
    }
    if (strncmp(value, "FILE", 4) == 0 || strcmp(value, "PATH") == 0 || strcmp(value, "DIR") == 0) {
        offer_files(row->name);
    }
}

static void offer_key_value(const struct line *line, size_t kept, enum grt_config_key key) {
    const struct grt_config_key_info *info = grt_config_key_info(key);
    if (info->type == GRT_CONFIG_IS_FLAG) {
        offer_set(line, kept, "true|false", '|');
    } else if (info->type == GRT_CONFIG_IS_WORD) {
        offer_set(line, kept, info->words, '|');
    } else if (info->type == GRT_CONFIG_IS_TEXT && strcmp(info->name, "env") == 0) {
        offer_environments(line, kept);
        printf(":files k\n");
    } else if (info->type == GRT_CONFIG_IS_TEXT) {
        offer_files(info->name);
    }
}

// The key that a config of the verb takes by that name, which may have hyphens.
static enum grt_config_key find_key(const struct options_desc *desc, const char *name,
                                    size_t length) {
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)length, name);
    for (char *c = key; *c; c++) {
        *c = *c == '-' ? '_' : *c;
    }
    if (!desc->words || !strstr(desc->words, "KEY=VALUE")) {
        return GRT_CONFIG_KEY_COUNT;
    }
    return grt_config_key_find(desc->keys ? desc->keys : GRT_CONFIG_OF_SUPERVISED, key);
}

static void offer_keys(const struct line *line, const struct options_desc *desc) {
    enum grt_config_scope scope = desc->keys ? desc->keys : GRT_CONFIG_OF_SUPERVISED;
    for (uint32_t key = 0; key < GRT_CONFIG_KEY_COUNT; key++) {
        const struct grt_config_key_info *info = grt_config_key_info((enum grt_config_key)key);
        char text[80];
        snprintf(text, sizeof text, "%s=", info->name);
        if (grt_config_key_scope((enum grt_config_key)key) & scope) {
            offer_text(line, 0, text, info->help);
        }
    }
}

// The row of "--name" or "-n"; NULL: there is none.
static const struct option_row *find_row(const struct options_desc *desc, const char *word,
                                         size_t length) {
    for (size_t i = 0; i < desc->list_count; i++) {
        for (size_t k = 0; k < desc->lists[i].count; k++) {
            const struct option_row *row = &desc->lists[i].rows[k];
            const char *name = word[1] == '-' ? row->name : row->letter;
            size_t dashes = word[1] == '-' ? 2 : 1;
            if (name && strlen(name) + dashes == length &&
                strncmp(name, word + dashes, length - dashes) == 0) {
                return row;
            }
        }
    }
    return NULL;
}

// The value of an option or of a key that is an option; false: it takes none.
static bool offer_value_of(const struct line *line, const struct options_desc *desc,
                           const char *option, size_t length, size_t kept) {
    const struct option_row *row = find_row(desc, option, length);
    enum grt_config_key key = GRT_CONFIG_KEY_COUNT;
    if (!row && length > 2 && option[1] == '-') {
        key = find_key(desc, option + 2, length - 2);
    }
    if (row && row->value) {
        offer_value(line, kept, row);
    } else if (key != GRT_CONFIG_KEY_COUNT) {
        offer_key_value(line, kept, key);
    }
    return (row && row->value) || key != GRT_CONFIG_KEY_COUNT;
}

static void offer_words(const struct line *line) {
    const struct command_word *word = line->verb->words;
    const char *before = line->words[line->count - 2];
    bool first = line->count == 2;
    for (; word && word->name; word++) {
        // Several kinds of benchmarks may stand side by side.
        bool here = word->after ? strcmp(word->after, before) == 0
                                : first || strcmp(line->verb->name, "bench") == 0;
        if (here) {
            offer_text(line, 0, word->name, word->help);
        }
    }
    if (line->verb->takes_env && first) {
        offer_environments(line, 0);
    }
}

static void offer_options(const struct line *line, const struct options_desc *desc) {
    for (size_t i = 0; i < desc->list_count; i++) {
        for (size_t k = 0; k < desc->lists[i].count && !desc->lists[i].hidden; k++) {
            char text[80];
            snprintf(text, sizeof text, "--%s", desc->lists[i].rows[k].name);
            offer_text(line, 0, text, desc->lists[i].rows[k].help);
        }
    }
}

// With the table of the verb's options.
static void complete_verb(const struct options_desc *desc, void *context) {
    const struct line *line = context;
    const char *word = current(line), *before = line->words[line->count - 2];
    size_t name = strcspn(word, "=");
    if (before[0] == '-' && before[1] != '\0' && strcmp(before, "--") != 0 &&
        offer_value_of(line, desc, before, strlen(before), 0)) {
        return;
    }
    if (word[name] == '=') {
        enum grt_config_key key =
            word[0] == '-' ? GRT_CONFIG_KEY_COUNT : find_key(desc, word, name);
        if (word[0] == '-') {
            offer_value_of(line, desc, word, name, name + 1);
        } else if (key != GRT_CONFIG_KEY_COUNT) {
            offer_key_value(line, name + 1, key);
        }
        return;
    }
    offer_words(line);
    offer_options(line, desc);
    if (word[0] == '-') {
        return;
    }
    if (desc->words && strstr(desc->words, "KEY=VALUE")) {
        offer_keys(line, desc);
    }
    static const char *const files[] = {"FILE", "CONFIG", "IN OUT", "OLD NEW", "DIR", "SOURCE"};
    for (size_t i = 0; desc->words && i < sizeof files / sizeof *files; i++) {
        if (strstr(desc->words, files[i])) {
            offer_files(NULL);
            return;
        }
    }
}

static const struct command_verb *find_verb(const struct command_verb *verbs, size_t count,
                                            const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

static int complete_words(const struct command_verb *verbs, size_t count, struct line *line) {
    bool help = line->count > 1 && strcmp(line->words[0], "help") == 0;
    if (line->count == 1 || (help && line->count == 2)) {
        for (size_t i = 0; i < count; i++) {
            offer_text(line, 0, verbs[i].name, verbs[i].help);
        }
        if (!help) {
            offer_text(line, 0, "--help", "list the commands");
            offer_text(line, 0, "--version", "print the version");
        }
        return COMMAND_OK;
    }
    line->verb = find_verb(verbs, count, line->words[help ? 1 : 0]);
    if (!line->verb) {
        return COMMAND_OK;
    }
    for (size_t i = 0; strcmp(line->words[0], "completion") == 0 && i < SHELL_COUNT; i++) {
        offer_text(line, 0, shells[i].name, shells[i].help);
    }
    if (help || (line->verb->wants_word && line->count == 2)) {
        line->words += help ? 1 : 0;
        line->count -= help ? 1 : 0;
        offer_words(line);
        return COMMAND_OK;
    }
    // Words in front of all options say which options there are.
    char *argv[8] = {line->words[0]}, asked[] = "--help";
    int argc = 1;
    for (size_t i = 1; i + 1 < line->count && argc < 6 && line->words[i][0] != '-'; i++) {
        argv[argc++] = line->words[i];
    }
    argv[argc++] = asked;
    static const char *const without[] = {"completion", "help", "version"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        if (strcmp(line->verb->name, without[i]) == 0) {
            return COMMAND_OK;
        }
    }
    options_show_by(complete_verb, line);
    (void)line->verb->run(argc, argv);
    options_show_by(NULL, NULL);
    return COMMAND_OK;
}

static void print_help(FILE *file) {
    fputs("usage: gpurt completion bash|zsh|fish\n\n"
          "Prints the script that completes command lines of gpurt in a shell:\n\n",
          file);
    for (size_t i = 0; i < SHELL_COUNT; i++) {
        fprintf(file, "  %-6s %s\n", shells[i].name, shells[i].help);
    }
    fputs("\nThe scripts ask `gpurt completion -- WORD...` what the last of these words can "
          "become.\n",
          file);
}

int complete_main(const struct command_verb *verbs, size_t count, int argc, char **argv) {
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help(stdout);
        return COMMAND_OK;
    }
    if (argc > 2 && strcmp(argv[1], "--") == 0) {
        struct line line = {.words = argv + 2, .count = (size_t)argc - 2};
        talk_set_level(-1);
        return complete_words(verbs, count, &line);
    }
    for (size_t i = 0; argc == 2 && i < SHELL_COUNT; i++) {
        if (strcmp(argv[1], shells[i].name) == 0) {
            fputs(shells[i].text, stdout);
            return COMMAND_OK;
        }
    }
    if (argc == 2 && argv[1][0] != '-') {
        struct command_unknown unknown = {"shell", argv[1], NULL, "gpurt completion --help"};
        return command_unknown(&unknown, shells, SHELL_COUNT, sizeof *shells);
    }
    print_help(stderr);
    return COMMAND_USAGE;
}
