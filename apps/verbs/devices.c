// SPDX-License-Identifier: Apache-2.0
// `gpurt devices`: every device of every backend, and which one would be taken.
//
// One list of columns says what is known about a device. People see the few that fit a line, -v
// shows all of them as a block, CSV and JSON have them all under their keys. Columns without a key
// are summaries for people. Zero means unknown, as in struct grt_caps.
#include "cli/devices.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/output/matrix_text.h"
#include "cli/output/table.h"
#include "cli/talk.h"

// X(name, key, heading, type, longest text in a line)
#define DEVICE_COLUMNS(X)                                                                          \
    X(MARK, NULL, "", TEXT, 0)                                                                     \
    X(SELECTOR, "selector", "device", TEXT, 0)                                                     \
    X(DEFAULT, "default", "default", FLAG, 0)                                                      \
    X(NAME, "name", "name", TEXT, 30)                                                              \
    X(VENDOR, "vendor", "vendor", TEXT, 0)                                                         \
    X(DRIVER_SHORT, NULL, "driver", TEXT, 28)                                                      \
    X(DRIVER, "driver", "driver", TEXT, 0)                                                         \
    X(DRIVER_VERSION, "driver_version", "driver version", TEXT, 0)                                 \
    X(BACKEND, "backend", "backend", TEXT, 0)                                                      \
    X(API_VERSION, "api_version", "API version", TEXT, 0)                                          \
    X(TYPE, "type", "type", TEXT, 0)                                                               \
    X(PCI, "pci", "PCI address", TEXT, 0)                                                          \
    X(MEMORY, "memory", "memory", BYTES, 0)                                                        \
    X(MAX_BUFFER, "max_buffer", "largest buffer", BYTES, 0)                                        \
    X(MAX_BINDING, "max_binding", "largest binding", BYTES, 0)                                     \
    X(ALIGN, "align", "binding alignment", BYTES, 0)                                               \
    X(UNITS, "compute_units", "compute units", COUNT, 0)                                           \
    X(SUBGROUP, "subgroup", "subgroup", COUNT, 0)                                                  \
    X(MAX_WG, "max_workgroup", "largest workgroup", COUNT, 0)                                      \
    X(MAX_GROUPS, "max_groups", "most workgroups", TEXT, 0)                                        \
    X(SHMEM, "shared_memory", "shared memory", BYTES, 0)                                           \
    X(HALF, NULL, "fp16", TEXT, 0)                                                                 \
    X(F16_STORAGE, "f16_storage", "fp16 storage", FLAG, 0)                                         \
    X(F16_ARITH, "f16_arithmetic", "fp16 arithmetic", FLAG, 0)                                     \
    X(I16_ARITH, "i16_arithmetic", "int16 arithmetic", FLAG, 0)                                    \
    X(BF16, "bf16", "bf16", FLAG, 0)                                                               \
    X(IMPORTS, "imports_ptx", "PTX kernels", FLAG, 0)                                              \
    X(MATRIX_SHORT, NULL, "matrix", TEXT, 0)                                                       \
    X(MATRIX, "matrix", "matrix shapes", TEXT, 0)                                                  \
    X(TIMESTAMPS, "timestamps", "timestamps", FLAG, 0)                                             \
    X(PROFILES, "profiles", "profiles", TEXT, 0)

enum {
#define X(name, key, heading, type, limit) DEVICE_##name,
    DEVICE_COLUMNS(X)
#undef X
        DEVICE_COLUMN_COUNT,
};

static const struct table_column columns[] = {
#define X(name, key, heading, type, limit) {key, heading, NULL, TABLE_##type, 0, 0, limit},
    DEVICE_COLUMNS(X)
#undef X
};

#define BIT(name) (1ull << DEVICE_##name)
static const uint64_t in_line = BIT(MARK) | BIT(SELECTOR) | BIT(NAME) | BIT(DRIVER_SHORT) |
                                BIT(TYPE) | BIT(MEMORY) | BIT(HALF) | BIT(MATRIX_SHORT);
#undef BIT

// Text that the cells of one device point to.
struct device_text {
    char driver[96];
    char groups[40];
    char matrix_short[64];
    char matrix[TABLE_TEXT_SIZE];
    char profiles[TABLE_TEXT_SIZE];
};

static json_t *matrix_json(const struct grt_caps *caps) {
    json_t *shapes = json_array();
    for (uint32_t i = 0; i < caps->matrix_shape_count; i++) {
        const struct grt_matrix_shape *s = &caps->matrix_shapes[i];
        json_array_append_new(shapes,
                              json_pack("{si si si ss ss}", "m", s->m, "n", s->n, "k", s->k, "in",
                                        grt_dtype_text(s->in), "out", grt_dtype_text(s->out)));
    }
    return shapes;
}

// The profiles whose numbers the device gets, the most specific first, and why; returns the same
// for JSON.
static json_t *describe_profiles(const struct grt_dev_info *info, char text[TABLE_TEXT_SIZE]) {
    struct grt_profile *profile = grt_profile_create(info);
    struct grt_profile_part part;
    json_t *all = json_array();
    size_t used = 0;
    if (!profile) {
        snprintf(text, TABLE_TEXT_SIZE, "none: %s", grt_last_error());
    }
    for (uint32_t i = 0; grt_profile_part(profile, i, &part); i++) {
        json_array_append_new(all, json_pack("{so ss so}", "name", table_json_text(part.name),
                                             "level", grt_profile_level_text(part.level), "why",
                                             table_json_text(part.why)));
        if (used < TABLE_TEXT_SIZE) {
            used += (size_t)snprintf(text + used, TABLE_TEXT_SIZE - used, "%s%s (%s)",
                                     i ? ", then " : "", part.name, part.why);
        }
    }
    grt_profile_destroy(&profile);
    return all;
}

static struct table_cell text_cell(const char *text) {
    return (struct table_cell){.known = *text != '\0', .text = text};
}

static struct table_cell count_cell(uint64_t count) {
    return (struct table_cell){.known = count != 0, .count = count};
}

// cells: DEVICE_COLUMN_COUNT; they point into info and text, and own the JSON of three of them.
static void describe(const struct grt_dev_info *info, bool chosen, struct device_text *text,
                     struct table_cell *cells) {
    const struct grt_caps *caps = &info->caps;
    *text = (struct device_text){0};
    // The version shall be seen, so a long name gives way.
    snprintf(text->driver, sizeof text->driver, "%.14s%s %s", info->driver,
             strlen(info->driver) > 14 ? ".." : "", info->driver_version);
    snprintf(text->groups, sizeof text->groups, "%u x %u x %u", caps->max_groups[0],
             caps->max_groups[1], caps->max_groups[2]);
    matrix_text(caps, text->matrix_short, sizeof text->matrix_short, text->matrix,
                sizeof text->matrix);

    cells[DEVICE_MARK] = TABLE_CELL(.text = chosen ? "*" : " ");
    cells[DEVICE_SELECTOR] = text_cell(info->selector);
    cells[DEVICE_DEFAULT] = TABLE_CELL(.count = chosen);
    cells[DEVICE_NAME] = text_cell(info->name);
    cells[DEVICE_VENDOR] = text_cell(info->vendor);
    cells[DEVICE_DRIVER_SHORT] = text_cell(text->driver);
    cells[DEVICE_DRIVER] = text_cell(info->driver);
    cells[DEVICE_DRIVER_VERSION] = text_cell(info->driver_version);
    cells[DEVICE_BACKEND] = text_cell(grt_backend_text(info->backend));
    cells[DEVICE_API_VERSION] = text_cell(info->api_version);
    cells[DEVICE_TYPE] =
        text_cell(caps->software ? "software" : (caps->integrated ? "integrated" : "gpu"));
    cells[DEVICE_PCI] = text_cell(info->pci);
    cells[DEVICE_MEMORY] = count_cell(caps->memory);
    cells[DEVICE_MAX_BUFFER] = count_cell(caps->max_buffer);
    cells[DEVICE_MAX_BINDING] = count_cell(caps->max_binding);
    cells[DEVICE_ALIGN] = count_cell(caps->align);
    cells[DEVICE_UNITS] = count_cell(caps->compute_units);
    cells[DEVICE_SUBGROUP] = count_cell(caps->subgroup);
    cells[DEVICE_MAX_WG] = count_cell(caps->max_wg);
    cells[DEVICE_MAX_GROUPS] = text_cell(text->groups);
    cells[DEVICE_MAX_GROUPS].json =
        json_pack("[III]", (json_int_t)caps->max_groups[0], (json_int_t)caps->max_groups[1],
                  (json_int_t)caps->max_groups[2]);
    cells[DEVICE_SHMEM] = count_cell(caps->shmem);
    cells[DEVICE_HALF] = text_cell(caps->f16_arith ? "full" : (caps->f16_storage ? "storage" : ""));
    cells[DEVICE_F16_STORAGE] = TABLE_CELL(.count = caps->f16_storage);
    cells[DEVICE_F16_ARITH] = TABLE_CELL(.count = caps->f16_arith);
    cells[DEVICE_I16_ARITH] = TABLE_CELL(.count = caps->i16_arith);
    cells[DEVICE_IMPORTS] = TABLE_CELL(.count = caps->imports > 0);
    cells[DEVICE_BF16] = TABLE_CELL(.count = caps->bf16);
    cells[DEVICE_MATRIX_SHORT] = text_cell(text->matrix_short);
    cells[DEVICE_MATRIX] = text_cell(text->matrix);
    cells[DEVICE_MATRIX].json = matrix_json(caps);
    cells[DEVICE_TIMESTAMPS] = TABLE_CELL(.count = caps->timestamps);
    json_t *profiles = describe_profiles(info, text->profiles);
    cells[DEVICE_PROFILES] = text_cell(text->profiles);
    cells[DEVICE_PROFILES].json = profiles;
}

static void forget(struct table_cell *cells) {
    for (size_t i = 0; i < DEVICE_COLUMN_COUNT; i++) {
        json_decref(cells[i].json);
    }
}

json_t *devices_json(const struct grt_dev_info *info) {
    struct device_text text;
    struct table_cell cells[DEVICE_COLUMN_COUNT];
    describe(info, false, &text, cells);
    cells[DEVICE_DEFAULT].known = false;  // says nothing about a device that was asked for
    json_t *json = table_object(columns, DEVICE_COLUMN_COUNT, cells);
    forget(cells);
    return json;
}

static bool wanted(const char *backend, enum grt_backend_id id) {
    return strcmp(backend, "auto") == 0 || strcmp(backend, grt_backend_text(id)) == 0;
}

// Members of the JSON head: how each backend answered.
static json_t *head_json(const struct grt_dev_list *list, const char *backend) {
    json_t *reports = json_array();
    for (uint32_t i = 0; i < GRT_BACKEND_COUNT; i++) {
        const struct grt_backend_report *report = &list->reports[i];
        if (!wanted(backend, report->backend)) {
            continue;
        }
        json_t *one = json_pack("{ss si}", "backend", grt_backend_text(report->backend), "devices",
                                (int)report->device_count);
        json_object_set_new(one, "problem", table_json_text(report->problem));
        json_object_set_new(one, "note", table_json_text(report->note));
        json_array_append_new(reports, one);
    }
    return json_pack("{so}", "backends", reports);
}

// Under a table for people: what is missing from it and why.
static void print_problems(struct output *output, const struct grt_dev_list *list,
                           const struct options *options) {
    bool any = false, advise = false;
    for (uint32_t i = 0; i < GRT_BACKEND_COUNT; i++) {
        const struct grt_backend_report *report = &list->reports[i];
        const char *name = grt_backend_text(report->backend);
        if (!wanted(options->backend, report->backend)) {
            continue;
        }
        const char *const lines[] = {report->problem, report->note};
        for (int k = 0; k < 2; k++) {
            if (lines[k][0]) {
                fputs(any ? "" : "\n", output->file);
                output_line(output->file, "%s: %s", name, lines[k]);
                any = true;
            }
        }
        advise = advise || report->problem[0];
    }
    if (advise) {
        fprintf(output->file, "For a remedy run `gpurt doctor`.\n");
    }
}

static bool print_list(struct table *table, const struct grt_dev_list *list,
                       const struct options *options) {
    struct table_cell *cells = calloc((size_t)list->count * DEVICE_COLUMN_COUNT + 1, sizeof *cells);
    struct device_text *texts = calloc(list->count + 1, sizeof *texts);
    const struct grt_dev_info *chosen =
        grt_dev_choose(list, grt_dev_desc(.device = getenv("GPURT_DEVICE")));
    size_t rows = 0;
    bool good = cells && texts;
    for (uint32_t i = 0; good && i < list->count; i++) {
        const struct grt_dev_info *info = &list->devices[i];
        if (!wanted(options->backend, info->backend)) {
            continue;
        }
        describe(info, info == chosen, &texts[rows], &cells[rows * DEVICE_COLUMN_COUNT]);
        rows++;
    }
    good = good && table_section(table, NULL, in_line, cells, rows);
    for (size_t i = 0; i < rows; i++) {
        good = good && table_row(table, &cells[i * DEVICE_COLUMN_COUNT]);
        forget(&cells[i * DEVICE_COLUMN_COUNT]);
    }
    free(texts);
    free(cells);
    return good;
}

static const char about[] =
    "Lists every device of every backend. The one marked * is taken when none is named;\n"
    "GPURT_DEVICE changes that. With -v everything that is known about each.\n";

int cmd_devices(int argc, char **argv) {
    struct options options = {0};
    struct option_list lists[] = {
        {"Device options", options_device, 1, NULL},  // --backend alone: nothing is opened
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "devices", .about = about, .lists = lists, .list_count = 3};
    size_t word_count = 0;
    int code = options_parse(&desc, argc, argv, &options, NULL, &word_count);
    if (code >= 0) {
        return code;
    }
    struct output output;
    code = output_open(&output, options.output);
    if (code) {
        return code;
    }
    talk_progress("asking the drivers for their devices");
    struct grt_dev_list *list = grt_dev_list_create();
    if (list) {
        struct table table;
        bool good =
            table_open(&table, &(struct table_desc){
                                   .output = &output,
                                   .format = options.format,
                                   .columns = columns,
                                   .column_count = DEVICE_COLUMN_COUNT,
                                   .schema = "gpurt.devices/1",
                                   .argc = argc,
                                   .argv = argv,
                                   .head = head_json(list, options.backend),
                                   .blocks = options.verbose && options.format == TABLE_PLAIN,
                               });
        good = good && print_list(&table, list, &options);
        if (good && (options.format == TABLE_PLAIN || options.format == TABLE_MD)) {
            print_problems(&output, list, &options);
        }
        table_close(&table);
    }
    talk_clear();
    code = list ? COMMAND_OK : command_exit_of(grt_last_status());
    grt_dev_list_destroy(&list);
    int written = output_close(&output, code == COMMAND_OK && !talk_stopped());
    return code ? code : written;
}
