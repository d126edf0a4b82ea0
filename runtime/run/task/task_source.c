// SPDX-License-Identifier: Apache-2.0
// The data of a task: an HDF5 file, or one of another form that is read into one. A network that
// was trained on a table keeps the names of its columns and classes, so that another table is read
// the same way, whatever else it has.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "task_parts.h"

#define COLUMNS "columns"
#define TARGET_COLUMNS "target_columns"
#define CLASS_NAMES "class_names"

// Names as a list of pointers into a copy; both to be freed.
struct lines {
    char *text;
    const char **names;
    uint32_t count;
};

static bool split(const char *text, struct lines *l) {
    uint32_t most = 1;
    for (const char *c = text ? text : ""; *c; c++) {
        most += *c == '\n';
    }
    *l = (struct lines){.text = strdup(text ? text : ""), .names = calloc(most, sizeof *l->names)};
    if (!l->text || !l->names) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for names of columns");
    }
    for (char *at = l->text; *at;) {
        char *end = strchr(at, '\n');
        l->names[l->count++] = at;
        at = end ? end + 1 : at + strlen(at);
        if (end) {
            *end = '\0';
        }
    }
    return true;
}

static void finish(struct lines *l) {
    free(l->text);
    free(l->names);
}

// What the config says, else what is known of the columns already.
static bool names_of(const struct grt_config_names *given, const char *known, struct lines *l) {
    char text[GRT_CONFIG_NAMES * (GRT_CONFIG_NAME + 1)] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < given->count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", given->values[i]);
    }
    return split(given->count > 0 ? text : known, l);
}

static bool ends(const char *path, const char *with) {
    const char *ending = strrchr(path, '.');
    return ending && strcmp(ending, with) == 0;
}

static bool is_table(const char *path) {
    return ends(path, ".csv") || ends(path, ".tsv");
}

bool task_unnamed(const char *path) {
    return is_table(path) || ends(path, ".npy");
}

void task_source_names(struct grt_task *task, const struct grt_config *callers, bool columns) {
    struct grt_config *c = &task->config;
    bool other = columns && !is_table(c->data);
    if (!grt_config_given(callers, GRT_CONFIG_INPUTS) && (other || ends(c->data, ".npy"))) {
        c->inputs.count = 0;
    }
    if (!grt_config_given(callers, GRT_CONFIG_TARGETS) &&
        (other || (c->targets.count > 0 && ends(c->targets.values[0], ".npy")))) {
        c->targets.count = 0;
    }
}

const char *task_weights(const struct grt_config *c) {
    return c->sample_weights[0] && strcmp(c->sample_weights, "none") != 0 ? c->sample_weights
                                                                          : NULL;
}

bool task_source(struct grt_task *task, const struct task_opening *opening, bool no_targets) {
    const struct grt_config *c = &task->config;
    struct lines inputs = {0}, targets = {0}, classes = {0};
    if (c->fill[0] && !is_table(c->data)) {
        return grt_fail(GRT_CONFIG,
                        "fill is for .csv and .tsv, and the data are in %s; on_nan is "
                        "for numbers that are not finite",
                        c->data);
    }
    bool table = is_table(c->data);
    bool good =
        names_of(&c->inputs, table ? opening->like.input_names : NULL, &inputs) &&
        names_of(&c->targets, table ? opening->like.target_names : NULL, &targets) &&
        split(opening->like.class_names, &classes) &&
        grt_direct(grt_direct_desc(.path = c->data, .inputs = inputs.names,
                                   .input_count = inputs.count, .targets = targets.names,
                                   .target_count = targets.count, .no_targets = no_targets,
                                   .weights = no_targets || task->features ? NULL : task_weights(c),
                                   .fill = c->fill, .class_names = classes.names,
                                   .class_count = classes.count),
                   &task->source);
    if (good && opening->classes > 0 && classes.count == 0 && task->source.class_names) {
        good = grt_fail(GRT_BAD_DATA,
                        "%s: its classes are words, and the network knows classes by numbers "
                        "alone: write those into the table",
                        c->data);
    }
    finish(&inputs);
    finish(&targets);
    finish(&classes);
    return good;
}

struct grt_direct task_source_of(const struct grt_archive *archive) {
    return (struct grt_direct){.input_names = grt_archive_text(archive, COLUMNS, NULL),
                               .target_names = grt_archive_text(archive, TARGET_COLUMNS, NULL),
                               .class_names = grt_archive_text(archive, CLASS_NAMES, NULL)};
}

static bool fits(const struct grt_task *task, const char *text, const char *what) {
    return !text || strlen(text) <= GRT_ARCHIVE_MAX_TEXT ||
           grt_fail(GRT_BAD_DATA,
                    "%s: the names of its %s have %zu bytes together, and a checkpoint keeps up to "
                    "%d: shorten them, or `gpurt data import` it, of which none are kept",
                    task->config.data, what, strlen(text), GRT_ARCHIVE_MAX_TEXT);
}

bool task_source_fits(const struct grt_task *task) {
    const struct grt_direct *s = &task->source;
    return fits(task, s->input_names, "inputs") && fits(task, s->target_names, "targets") &&
           fits(task, s->class_names, "classes");
}

static bool keep(struct grt_archive *archive, const char *name, const char *text) {
    return !text || grt_archive_set_text(archive, name, text);
}

bool task_source_keep(const struct grt_task *task, struct grt_archive *archive) {
    const struct grt_direct *s = &task->source;
    return keep(archive, COLUMNS, s->input_names) &&
           keep(archive, TARGET_COLUMNS, s->target_names) &&
           keep(archive, CLASS_NAMES, s->class_names);
}
