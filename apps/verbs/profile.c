// SPDX-License-Identifier: Apache-2.0
// `gpurt profile`: every setting that a device gets, and where it comes from. With --as the same
// for a device that is not here, by its name: what would be shipped to it.
#include <string.h>

#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/output/files.h"
#include "cli/output/table.h"
#include "cli/talk.h"
#include "gpurt/tunable.h"

// X(name, key, heading, type, width)
#define PROFILE_COLUMNS(X)                                                                         \
    X(SETTING, "setting", "setting", TEXT, 23)                                                     \
    X(VALUE, "value", "value", TEXT, 35)                                                           \
    X(NUMBERS, "numbers", "numbers", TEXT, 14)                                                     \
    X(WORKGROUP, "workgroup", "workgroup", COUNT, 0)                                               \
    X(PLACE, "profile", "profile", TEXT, 14)                                                       \
    X(FROM, "from", "from", TEXT, 0)                                                               \
    X(MEANING, "meaning", "meaning", TEXT, 0)

enum {
#define X(name, key, heading, type, width) COLUMN_##name,
    PROFILE_COLUMNS(X)
#undef X
        COLUMN_COUNT,
};

static const struct table_column columns[] = {
#define X(name, key, heading, type, width) {key, heading, NULL, TABLE_##type, 0, width, 0},
    PROFILE_COLUMNS(X)
#undef X
};

struct profile_options {
    struct options common;  // first: see options.h
    const char *as;
    uint64_t memory;
};

static bool read_name(const char *text, void *into, char why[RANGES_WHY]) {
    *(const char **)into = text;
    if (*text) {
        return true;
    }
    snprintf(why, RANGES_WHY, "a name is wanted, such as 'NVIDIA A100'");
    return false;
}

static bool read_memory(const char *text, void *into, char why[RANGES_WHY]) {
    return ranges_parse_size(text, into, why);
}

static const struct option_row own_options[] = {
    {.name = "as",
     .value = "NAME",
     .help = "a GPU of this name instead",
     .read = read_name,
     .at = offsetof(struct profile_options, as)},
    {.name = "memory",
     .value = "SIZE",
     .help = "its memory, with --as: 24GiB",
     .read = read_memory,
     .at = offsetof(struct profile_options, memory)},
};

// Lanes of a workgroup with this setting; 0 for one that is about something else.
static uint32_t workgroup(enum grt_profile_key key, const struct grt_profile_value *value) {
    uint32_t values[GRT_PROFILE_NUMBERS] = {0};
    for (uint32_t i = 0; i < value->count; i++) {
        values[i] = (uint32_t)value->numbers[i];
    }
    for (uint32_t t = 0; grt_tunable(t); t++) {
        const struct grt_tunable *tunable = grt_tunable(t);
        if (key >= tunable->key && key < tunable->key + tunable->classes) {
            return tunable->lanes(values);
        }
    }
    return 0;
}

static bool print_settings(struct table *table, const struct grt_profile *profile) {
    bool good = true;
    for (uint32_t key = 0; good && key < GRT_KEY_COUNT; key++) {
        const struct grt_profile_key_info *info = grt_profile_key_info((enum grt_profile_key)key);
        const struct grt_profile_value *value = grt_profile_get(profile, (enum grt_profile_key)key);
        uint32_t lanes = workgroup((enum grt_profile_key)key, value);
        char numbers[128];
        size_t used = 0;
        for (uint32_t i = 0; i < value->count && used < sizeof numbers; i++) {
            used += (size_t)snprintf(numbers + used, sizeof numbers - used, "%s%.12g", i ? " " : "",
                                     value->numbers[i]);
        }
        struct table_cell cells[COLUMN_COUNT] = {
            [COLUMN_SETTING] = TABLE_CELL(.text = info->key),
            [COLUMN_VALUE] = TABLE_CELL(.text = numbers),
            [COLUMN_NUMBERS] = TABLE_CELL(.text = info->numbers),
            [COLUMN_WORKGROUP] = {.known = lanes > 0, .count = lanes},
            [COLUMN_PLACE] = TABLE_CELL(.text = value->profile),
            [COLUMN_FROM] = TABLE_CELL(.text = value->from),
            [COLUMN_MEANING] = TABLE_CELL(.text = info->meaning),
        };
        good = table_row(table, cells);
    }
    return good;
}

// The device that is meant; its driver is asked, but not opened.
static bool find(const struct profile_options *options, struct grt_dev_info *info) {
    *info = (struct grt_dev_info){.selector = "none", .caps.memory = options->memory};
    if (options->as) {
        if (!options->memory && !options->common.quiet) {
            talk_error(
                "its memory is not known, so settings by memory are left out; --memory 12GiB");
        }
        snprintf(info->name, sizeof info->name, "%s", options->as);
        if (strcmp(options->common.backend, grt_backend_text(GRT_BACKEND_OPENCL)) == 0) {
            info->backend = GRT_BACKEND_OPENCL;
        }
        return true;
    }
    struct grt_dev_list *list = grt_dev_list_create();
    struct grt_dev_desc desc = options_device_desc(&options->common);
    const struct grt_dev_info *chosen = list ? grt_dev_choose(list, &desc) : NULL;
    if (chosen) {
        *info = *chosen;
    }
    grt_dev_list_destroy(&list);
    return chosen != NULL;
}

static bool print(struct output *output, const struct profile_options *options,
                  const struct grt_profile *profile, const char *name, int argc, char **argv) {
    struct table table;
    uint64_t shown =
        1u << COLUMN_SETTING | 1u << COLUMN_VALUE | 1u << COLUMN_PLACE | 1u << COLUMN_FROM;
    shown |= options->common.verbose ? ~0u : 0;
    bool good = table_open(&table, &(struct table_desc){.output = output,
                                                        .format = options->common.format,
                                                        .columns = columns,
                                                        .column_count = COLUMN_COUNT,
                                                        .schema = "gpurt.profile/1",
                                                        .argc = argc,
                                                        .argv = argv});
    good = good && table_section(&table, name, shown, NULL, 0) && print_settings(&table, profile);
    return table_close(&table) && good;
}

static const char about[] =
    "Shows every setting that a device gets, from which profile, and where its numbers come from:\n"
    "measured, derived or default. `gpurt tune` measures better ones.\n";

int cmd_profile(int argc, char **argv) {
    struct profile_options options = {0};
    struct option_list lists[] = {
        OPTION_LIST("Profile options", own_options),
        {"Device options", options_device, 2, NULL},  // --backend and --device: nothing is opened
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "profile",
                                .about = about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    size_t word_count = 0;
    struct grt_dev_info info;
    struct output output;
    char path[4096];
    int code = options_parse(&desc, argc, argv, &options.common, NULL, &word_count);
    if (code >= 0) {
        return code;
    }
    if (options.memory && !options.as) {
        talk_error("'--memory' is of a GPU that is not here: give its name too, --as NAME");
        return COMMAND_USAGE;
    }
    struct grt_profile *profile = find(&options, &info) ? grt_profile_create(&info) : NULL;
    bool users = profile && grt_profile_user_path(&info, path, sizeof path);
    code = FILES_APART({FILE_READ, "the device's profile", users ? path : NULL},
                       {FILE_WRITTEN, "--output", options.common.output});
    code = code ? code : output_open(&output, options.common.output);
    if (code) {
        grt_profile_destroy(&profile);
        return code;
    }
    if (profile) {
        print(&output, &options, profile, info.name, argc, argv);
    } else {
        code = command_exit_of(grt_last_status());
    }
    grt_profile_destroy(&profile);
    int written = output_close(&output, !code && !talk_stopped());
    return code ? code : written;
}
