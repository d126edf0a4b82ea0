// SPDX-License-Identifier: Apache-2.0
// `gpurt data`: makes data with a known answer, imports images, and describes files.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "gpurt/dataset.h"
#include "gpurt/direct.h"
#include "gpurt/make.h"
#include "cli/output/files.h"
#include "cli/options/options.h"
#include "cli/talk.h"
#include "data_import.h"
#include "data_order.h"
#include "data_preview.h"

struct data_options {
    struct options common;  // first: see options.h
    uint64_t samples, features, points, classes, pixels, chunk, deflate, seed;
    double noise;
    uint64_t size;
    uint32_t gray;
    uint64_t workers;
    const char *inputs, *targets, *fill;
};

static bool read_samples(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 1, 1ull << 40, into, why);
}

static bool read_some(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 1, 1u << 20, into, why);
}

static bool read_pixels(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 8, 1024, into, why);
}

static bool read_level(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 0, 9, into, why);
}

static bool read_seed(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 0, 0, into, why);
}

static bool read_noise(const char *text, void *into, char why[RANGES_WHY]) {
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value < 1e30)) {
        snprintf(why, RANGES_WHY, "a number from 0 on is wanted");
        return false;
    }
    *(double *)into = value;
    return true;
}

#define AT(field) offsetof(struct data_options, field)

static const struct option_row make_options[] = {
    {.name = "samples",
     .value = "N",
     .help = "rows",
     .fallback = "10000",
     .read = read_samples,
     .at = AT(samples)},
    {.name = "features",
     .value = "D",
     .help = "numbers of a row, or of a point",
     .fallback = "32",
     .read = read_some,
     .at = AT(features)},
    {.name = "points",
     .value = "P",
     .help = "points: of a row",
     .fallback = "64",
     .read = read_some,
     .at = AT(points)},
    {.name = "classes",
     .value = "C",
     .help = "classification, shapes (at most 10): how many",
     .fallback = "10",
     .read = read_some,
     .at = AT(classes)},
    {.name = "pixels",
     .value = "N",
     .help = "shapes: of a side",
     .fallback = "16",
     .read = read_pixels,
     .at = AT(pixels)},
    {.name = "noise",
     .value = "F",
     .help = "deviation of what no model can know (default: 0.1, classification 1)",
     .read = read_noise,
     .at = AT(noise)},
    {.name = "seed",
     .value = "N",
     .help = "another seed, other data",
     .fallback = "0",
     .read = read_seed,
     .at = AT(seed)},
    {.name = "chunk",
     .value = "ROWS",
     .help = "store in chunks of so many rows",
     .read = read_samples,
     .at = AT(chunk)},
    {.name = "deflate",
     .value = "0-9",
     .help = "compress, after shuffling bytes",
     .fallback = "0",
     .read = read_level,
     .at = AT(deflate)},
};

static bool read_size(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 1, 4096, into, why);
}

static bool read_workers(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 1, 16, into, why);
}

static const struct option_row import_options[] = {
    {.name = "size",
     .value = "N",
     .help = "of files of any size: N x N pixels, the shorter side scaled, the middle taken",
     .read = read_size,
     .at = AT(size)},
    {.name = "gray", .help = "of files: one channel, not three", .at = AT(gray)},
    {.name = "workers",
     .value = "N",
     .help = "threads that decode files (default: one for each processor, at most 16)",
     .read = read_workers,
     .at = AT(workers)},
    {.name = "inputs",
     .value = "NAMES",
     .help = "of tables: columns a,b,c by name or number (default: all others)",
     .read = options_read_text,
     .at = AT(inputs)},
    {.name = "targets",
     .value = "NAMES",
     .help = "of tables: the same for y (default: the last column)",
     .read = options_read_text,
     .at = AT(targets)},
    {.name = "fill",
     .value = "X|mean",
     .help = "of tables: stands for missing inputs (default: they are refused)",
     .read = options_read_text,
     .at = AT(fill)},
};

// ---- make ----

static void show_progress(uint64_t done, uint64_t of) {
    talk_progress("making data: %" PRIu64 " of %" PRIu64 " rows", done, of);
}

static const struct kind {
    const char *name;
} kinds[] = {
#define X(name, text) {text},
    GRT_MAKES(X)
#undef X
};

static int make(const struct data_options *options, const char *word) {
    size_t kind = 0;
    while (kind < GRT_MAKE_COUNT && strcmp(word, kinds[kind].name) != 0) {
        kind++;
    }
    if (kind == GRT_MAKE_COUNT) {
        struct command_unknown unknown = {"kind of data", word, NULL, "gpurt data --help"};
        return command_unknown(&unknown, kinds, GRT_MAKE_COUNT, sizeof *kinds);
    }
    if (!options->common.output) {
        talk_error("data make: -o FILE says where to");
        return COMMAND_USAGE;
    }
    if (kind == GRT_MAKE_SHAPES && options->classes > GRT_MAKE_SHAPE_COUNT) {
        talk_error("--classes %" PRIu64 ": %s has at most %d", options->classes, word,
                   GRT_MAKE_SHAPE_COUNT);
        return COMMAND_USAGE;
    }
    int code = FILES_APART({FILE_WRITTEN, "--output", options->common.output});
    if (code) {
        return code;
    }
    if (!data_named(options->common.output)) {
        return COMMAND_USAGE;
    }
    bool made = grt_data_make(
        grt_make_desc(.path = options->common.output, .make = (enum grt_make)kind,
                      .samples = options->samples, .features = (uint32_t)options->features,
                      .points = (uint32_t)options->points, .classes = (uint32_t)options->classes,
                      .pixels = (uint32_t)options->pixels, .noise = options->noise,
                      .seed = options->seed, .chunk = options->chunk,
                      .deflate = (uint32_t)options->deflate, .stop = talk_stopped,
                      .progress = show_progress));
    talk_clear();
    return made ? COMMAND_OK : command_exit_of(grt_last_status());
}

// ---- info ----

#define INFO_COLUMNS(X)                                                                            \
    X(NAME, "name", "data set", TEXT)                                                              \
    X(DTYPE, "dtype", "type", TEXT)                                                                \
    X(SHAPE, "shape", "shape", TEXT)                                                               \
    X(CHUNK, "chunk", "chunk", TEXT)                                                               \
    X(FILTERS, "filters", "filters", TEXT)                                                         \
    X(BYTES, "bytes", "size", BYTES)                                                               \
    X(STORED, "stored_bytes", "stored", BYTES)                                                     \
    X(PROBLEM, "problem", "problem", TEXT)

enum info_column {
#define X(name, key, heading, type) INFO_##name,
    INFO_COLUMNS(X)
#undef X
        INFO_COLUMN_COUNT,
};

static const struct table_column columns[] = {
#define X(name, key, heading, type) {key, heading, NULL, TABLE_##type, 0, 0, 0},
    INFO_COLUMNS(X)
#undef X
};

static void shape_text(const uint64_t *shape, char text[80]) {
    int n = 0;
    text[0] = '\0';
    for (int i = 0; i < GRT_DATA_MAX_RANK && shape[i] > 0; i++) {
        n += snprintf(text + n, 80 - (size_t)n, "%s%" PRIu64, i ? " x " : "", shape[i]);
    }
}

struct info_texts {
    char shape[80], chunk[80];
};

static void fill_cells(const struct grt_array_info *array, struct info_texts *texts,
                       struct table_cell *cells) {
    bool good = !array->problem[0];
    shape_text(array->shape, texts->shape);
    shape_text(array->chunk, texts->chunk);
    cells[INFO_NAME] = TABLE_CELL(.text = array->name);
    cells[INFO_DTYPE] = (struct table_cell){.known = good, .text = array->dtype};
    cells[INFO_SHAPE] = (struct table_cell){.known = good, .text = texts->shape};
    cells[INFO_CHUNK] = (struct table_cell){.known = array->chunks > 0, .text = texts->chunk};
    cells[INFO_FILTERS] =
        (struct table_cell){.known = array->filters[0] != '\0', .text = array->filters};
    cells[INFO_BYTES] = (struct table_cell){.known = good, .count = array->bytes};
    cells[INFO_STORED] = (struct table_cell){.known = good, .count = array->stored};
    cells[INFO_PROBLEM] = (struct table_cell){.known = !good, .text = array->problem};
}

static void title_text(const char *path, const struct grt_file_info *info,
                       char text[TABLE_TEXT_SIZE]) {
    char size[TABLE_TEXT_SIZE];
    table_bytes_text(info->bytes, size);
    int n = snprintf(text, TABLE_TEXT_SIZE, "%.500s: %.20s", path, size);
    if (info->made_by[0]) {
        n += snprintf(text + n, TABLE_TEXT_SIZE - (size_t)n, ", made by gpurt: %s", info->made_by);
    }
    if (info->noise_floor >= 0) {
        n += snprintf(text + n, TABLE_TEXT_SIZE - (size_t)n, ", noise floor %g", info->noise_floor);
    }
    if (info->classes > 0) {
        snprintf(text + n, TABLE_TEXT_SIZE - (size_t)n, ", %u classes", info->classes);
    }
}

static json_t *info_head(const char *path, const struct grt_file_info *info) {
    json_t *head = json_pack("{soss}", "file", table_json_text(path), "made_by", info->made_by);
    json_object_set_new(head, "bytes", json_integer((json_int_t)info->bytes));
    if (info->noise_floor >= 0) {
        json_object_set_new(head, "noise_floor", json_real(info->noise_floor));
    }
    if (info->classes > 0) {
        json_object_set_new(head, "classes", json_integer(info->classes));
    }
    return head;
}

static bool print_info(struct output *output, const struct data_options *options, const char *path,
                       const struct grt_file_info *info, int argc, char **argv) {
    struct table table;
    struct info_texts *texts = calloc(info->count + 1, sizeof *texts);
    struct table_cell(*cells)[INFO_COLUMN_COUNT] = calloc(info->count + 1, sizeof *cells);
    char title[TABLE_TEXT_SIZE];
    bool any_problem = false;
    for (uint32_t i = 0; texts && cells && i < info->count; i++) {
        fill_cells(&info->arrays[i], &texts[i], cells[i]);
        any_problem = any_problem || info->arrays[i].problem[0];
    }
    title_text(path, info, title);
    uint64_t shown = (1u << INFO_COLUMN_COUNT) - 1;
    shown &= any_problem ? shown : ~(1ull << INFO_PROBLEM);
    bool good = texts && cells &&
                table_open(&table, &(struct table_desc){.output = output,
                                                        .format = options->common.format,
                                                        .columns = columns,
                                                        .column_count = INFO_COLUMN_COUNT,
                                                        .schema = "gpurt.data/1",
                                                        .argc = argc,
                                                        .argv = argv,
                                                        .head = info_head(path, info)});
    if (good) {
        good = table_section(&table, title, shown, cells[0], info->count);
        for (uint32_t i = 0; good && i < info->count; i++) {
            good = table_row(&table, cells[i]);
        }
        good = table_close(&table) && good;
    }
    free(texts);
    free(cells);
    return good;
}

static bool is_picture(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".png") == 0 || strcmp(dot, ".svg") == 0);
}

static int info(const struct data_options *options, const char *path, int argc, char **argv) {
    struct output output;
    int code =
        FILES_APART({FILE_READ, "FILE", path}, {FILE_WRITTEN, "--output", options->common.output});
    if (code) {
        return code;
    }
    if (options->common.output && is_picture(options->common.output)) {
        return data_sheet(path, options->common.output);
    }
    code = output_open(&output, options->common.output);
    if (code) {
        return code;
    }
    const char *file = data_direct(&(struct data_import){.source = path,
                                                         .inputs = options->inputs,
                                                         .targets = options->targets,
                                                         .fill = options->fill},
                                   &code);
    struct grt_file_info *info = file && !code ? grt_file_info_create(file) : NULL;
    if (info) {
        print_info(&output, options, path, info, argc, argv);
    } else if (!code) {
        code = command_exit_of(grt_last_status());
    }
    grt_file_info_destroy(&info);
    int written = output_close(&output, !code && !talk_stopped());
    return code ? code : written;
}

// ---- the verb ----

static const char about[] =
    "  data make KIND                               writes x and y with a known answer; kinds: "
    "regression,\n"
    "                                               classification, points, and shapes, which are "
    "images\n"
    "  data import SOURCE [LABELS.npy]              images of other programs: a folder with "
    "CIFAR-10,\n"
    "                                               CIFAR-100 or STL-10, one of folders of .png "
    "and\n"
    "                                               .jpg, a .npy or .npz; x and y, test/x and "
    "test/y\n"
    "                                               or tables, .csv and .tsv, with x and y by "
    "columns\n"
    "  data info FILE                               describes an HDF5 file, a table or arrays; "
    "-o\n"
    "                                               with .png or .svg draws images of each class\n"
    "  data preview --data FILE -o OUT.png          images beside what a transform makes of "
    "them;\n"
    "                                               see `gpurt data preview --help`\n"
    "  data order --data FILE                       rows of an epoch, in the order of a "
    "training\n\n"
    "The loss that the best model reaches is kept by make in the file, as the attribute "
    "noise_floor.\n";

static int run(const struct data_options *options, const char **words, size_t count, int argc,
               char **argv) {
    static const char *const known[] = {"make", "import", "info", "preview", "order"};
    if (count == 2 && strcmp(words[0], "make") == 0) {
        return make(options, words[1]);
    }
    if (count == 2 && strcmp(words[0], "info") == 0) {
        return info(options, words[1], argc, argv);
    }
    if ((count == 2 || count == 3) && strcmp(words[0], "import") == 0) {
        return data_import(&(struct data_import){.source = words[1],
                                                 .labels = count == 3 ? words[2] : NULL,
                                                 .output = options->common.output,
                                                 .size = (uint32_t)options->size,
                                                 .gray = options->gray,
                                                 .workers = (uint32_t)options->workers,
                                                 .inputs = options->inputs,
                                                 .targets = options->targets,
                                                 .fill = options->fill});
    }
    for (size_t i = 0; count > 0 && i < sizeof known / sizeof *known; i++) {
        if (strcmp(words[0], known[i]) == 0) {
            count = 0;
        }
    }
    if (count > 0) {
        struct command_unknown unknown = {"command", words[0], "data ", "gpurt data --help"};
        return command_unknown(&unknown, known, sizeof known / sizeof *known, sizeof *known);
    }
    talk_error(
        "data: `make KIND`, `import SOURCE`, `info FILE`, `preview` or `order` is wanted; see "
        "`gpurt data --help`");
    return COMMAND_USAGE;
}

const struct command_word cmd_data_words[] = {
    {"make", "data with a known answer", NULL},
    {"import", "images and tables of other programs", NULL},
    {"info", "describe a file", NULL},
    {"preview", "images beside what a transform makes of them", NULL},
    {"order", "rows of an epoch, in the order of a training", NULL},
#define X(name, word) {word, "a kind of data", "make"},
    GRT_MAKES(X)
#undef X
        {NULL, NULL, NULL},
};

int cmd_data(int argc, char **argv) {
    struct data_options options = {.noise = -1};
    if (argc > 1 && strcmp(argv[1], "preview") == 0) {
        return data_preview(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "order") == 0) {
        return data_order(argc - 1, argv + 1);
    }
    struct option_list lists[] = {
        OPTION_LIST("Options of make", make_options),
        OPTION_LIST("Options of import, and of info those of tables", import_options),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "data",
                                .words = "make KIND | import SOURCE | info FILE | preview | order",
                                .about = about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    static const char *const owners[] = {"make", "import"};
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t count = 0;
    if (!words) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    int code = options_parse(&desc, argc, argv, &options.common, words, &count);
    for (size_t i = 0; code < 0 && i < sizeof owners / sizeof *owners; i++) {
        bool described = i == 1 && count > 1 && strcmp(words[0], "info") == 0 && !options.size &&
                         !options.gray && !options.workers;
        if (count > 1 && lists[i].given && strcmp(words[0], owners[i]) != 0 && !described) {
            talk_error("'--%s' is an option of `gpurt data %s`", lists[i].given, owners[i]);
            code = COMMAND_USAGE;
        }
    }
    if (code < 0) {
        code = run(&options, words, count, argc, argv);
    }
    free(words);
    return code;
}
