// SPDX-License-Identifier: Apache-2.0
// `gpurt data order`: which rows of a file an epoch of a training takes, in their order, for who
// checks a run by other means. Nothing is trained, and values of rows are looked at only where some
// are to be left out.
#include "data_order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output/table.h"
#include "cli/talk.h"
#include "gpurt/task.h"
#include "train/train_config.h"

struct order {
    struct train_config config;  // first: see train_config.h
    uint32_t epoch;
    const char *part;
};

#define AT(field) offsetof(struct order, field)

static const struct option_row order_options[] = {
    {.name = "epoch",
     .value = "N",
     .help = "from 1 on, as in the log",
     .fallback = "1",
     .read = options_read_count,
     .at = AT(epoch)},
    {.name = "part",
     .value = "PART",
     .help = "train or validation",
     .fallback = "train",
     .read = options_read_text,
     .at = AT(part)},
};

#define ORDER_COLUMNS(X)                                                                           \
    X(STEP, "step", "step", NULL, COUNT, 0, 8)                                                     \
    X(ROW, "row", "row", NULL, COUNT, 0, 12)

enum order_column {
#define X(name, ...) ORDER_##name,
    ORDER_COLUMNS(X)
#undef X
        ORDER_COLUMN_COUNT,
};
static const struct table_column columns[] = {ORDER_COLUMNS(TABLE_COLUMN)};

#define ROWS 4096  // asked for at once

static bool print_rows(struct table *table, const struct grt_task *task,
                       const struct grt_loader *loader, uint64_t epoch) {
    uint64_t all = grt_loader_info(loader).rows, batch = task->learner.batch;
    uint32_t rows[ROWS];
    bool good = true;
    for (uint64_t first = 0; good && first < all && !talk_stopped(); first += ROWS) {
        uint64_t count = all - first < ROWS ? all - first : ROWS;
        good = grt_loader_order(loader, epoch, first, count, rows);
        for (uint64_t i = 0; good && i < count; i++) {
            const struct table_cell cells[ORDER_COLUMN_COUNT] = {
                TABLE_CELL(.count = (first + i) / batch + 1), TABLE_CELL(.count = rows[i])};
            good = table_row(table, cells);
        }
    }
    return good;
}

static int print(const struct order *o, const struct grt_task *task,
                 const struct grt_loader *loader, int argc, char **argv) {
    struct output output;
    struct table table;
    int code = output_open(&output, o->config.common.output);
    if (code) {
        return code;
    }
    bool good = table_open(&table, &(struct table_desc){.output = &output,
                                                        .format = o->config.common.format,
                                                        .columns = columns,
                                                        .column_count = ORDER_COLUMN_COUNT,
                                                        .schema = "gpurt.order/1",
                                                        .verb = "data order",
                                                        .argc = argc,
                                                        .argv = argv}) &&
                table_section(&table, NULL, (1u << ORDER_COLUMN_COUNT) - 1, NULL, 0) &&
                print_rows(&table, task, loader, o->epoch - 1);
    good = table_close(&table) && good;
    int written = output_close(&output, good && !talk_stopped());
    return good ? written : COMMAND_IO;
}

static int run(void *values, int argc, char **argv) {
    struct order *o = values;
    struct grt_config *c = &o->config.settings;
    bool validates = strcmp(o->part, "validation") == 0;
    if (o->epoch == 0 || (!validates && strcmp(o->part, "train") != 0)) {
        talk_error("data order: epochs count from 1, and --part is train or validation");
        return COMMAND_USAGE;
    }
    int code = train_config_apart(&o->config, o->config.common.output);
    struct grt_dev *dev = code ? NULL : train_config_device(&o->config);
    struct grt_task *task = calloc(1, sizeof *task);
    struct grt_loader *loader = NULL;
    if (!code && !task) {
        talk_error("out of memory");
        code = COMMAND_INTERNAL;
    }
    struct grt_task_look look = {.late = strcmp(c->on_nan, "drop") != 0};
    c->validation_split = c->validation_data[0] || c->overfit_batches > 0 ? 0 : c->validation_split;
    // The rows stay where they are.
    bool good = !code && dev && grt_config_set(c, GRT_CONFIG_CACHE, "none") &&
                grt_config_set(c, GRT_CONFIG_NUM_WORKERS, "0") &&
                grt_task_open(task, c, grt_dev_profile(dev), &look);
    if (good) {
        task->config.pin_memory = false;
        loader =
            grt_task_loader(task, dev, validates ? GRT_PART_VALIDATION : GRT_PART_TRAIN, 1, NULL);
    }
    if (!code) {
        code = loader ? print(o, task, loader, argc, argv) : command_exit_of(grt_last_status());
    }
    grt_loader_destroy(&loader);
    if (good) {
        grt_task_close(task);
    }
    free(task);
    grt_dev_destroy(&dev);
    return code;
}

int data_order(int argc, char **argv) {
    struct option_list lists[] = {
        OPTION_LIST("Options", order_options),
        OPTION_LIST("Settings", train_config_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    const struct train_config_verb verb = {
        .options = {.verb = "data order",
                    .words = "[KEY=VALUE...]",
                    .about = "  The rows of a file, from 0 on, that an epoch of `gpurt train "
                             "supervised` with these\n  settings takes, in their order, each with "
                             "its step of the epoch. Seed, batch_size,\n  accumulate, shuffle, "
                             "validation_split, limit_train_batches and overfit_batches say "
                             "which.\n",
                    .lists = lists,
                    .list_count = sizeof lists / sizeof *lists},
        .size = sizeof(struct order),
        .run = run};
    return train_config_main(&verb, argc, argv);
}
