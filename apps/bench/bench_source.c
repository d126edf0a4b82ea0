// SPDX-License-Identifier: Apache-2.0
// What a benchmark of training works on: the model, and the rows that it reads, of a file of the
// user's or one made for the occasion.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_more.h"
#include "gpurt/loader.h"
#include "gpurt/direct.h"
#include "gpurt/make.h"
#include "cli/talk.h"
#include "gpurt/unfinished.h"
#include "base/whole_file.h"

bool bench_model(const char **at, struct bench_model *model) {
    static const struct bench_model known[] = {
        {"small", 3, 16}, {"medium", 6, 64}, {"large", 12, 128}};
    size_t word = strcspn(*at, ",");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) == word && memcmp(known[i].name, *at, word) == 0) {
            *model = known[i];
            *at += word;
            return true;
        }
    }
    unsigned depth = 0, hidden = 0;
    int length = 0;
    bool both = sscanf(*at, "depth=%4u,hidden=%6u%n", &depth, &hidden, &length) == 2 ||
                sscanf(*at, "hidden=%6u,depth=%4u%n", &hidden, &depth, &length) == 2;
    if (!both || depth < 1 || depth > 256 || hidden < 1 || hidden > 65536) {
        return false;
    }
    *model = (struct bench_model){"own", depth, hidden};
    *at += length;
    return true;
}

bool bench_read_batches(const char *text, void *into, char why[RANGES_WHY]) {
    ranges_destroy(into);
    return ranges_parse(text, &(struct ranges_rule){.min = 1, .max = 1u << 24}, into, why);
}

bool bench_read_workers(const char *text, void *into, char why[RANGES_WHY]) {
    ranges_destroy(into);
    return ranges_parse(text, &(struct ranges_rule){.min = 0, .max = 256}, into, why);
}

bool bench_read_any_cache(const char *text, void *into, char why[RANGES_WHY]) {
    for (int i = 0; i < GRT_CACHE_COUNT; i++) {
        if (strcmp(text, grt_cache_text((enum grt_cache)i)) == 0) {
            *(enum grt_cache *)into = (enum grt_cache)i;
            return true;
        }
    }
    snprintf(why, RANGES_WHY, "known are none, ram and device");
    return false;
}

// Without a device there is none to keep data on.
bool bench_read_cache(const char *text, void *into, char why[RANGES_WHY]) {
    enum grt_cache cache;
    bool good = bench_read_any_cache(text, &cache, why) && cache != GRT_CACHE_DEVICE;
    if (good) {
        *(enum grt_cache *)into = cache;
    } else {
        snprintf(why, RANGES_WHY, "known are none and ram");
    }
    return good;
}

struct names {
    char text[1024];
    const char *values[GRT_DATA_MAX_ARRAYS];
    uint32_t count;
};

static bool split(const char *text, struct names *names) {
    names->count = 0;
    if (!text) {
        return true;
    }
    snprintf(names->text, sizeof names->text, "%s", text);
    char *rest = NULL;
    for (char *name = strtok_r(names->text, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (names->count == GRT_DATA_MAX_ARRAYS) {
            talk_error("at most %d names of data sets can be given", GRT_DATA_MAX_ARRAYS);
            return false;
        }
        names->values[names->count++] = name;
    }
    return true;
}

bool bench_source_make(struct bench_source *source, uint64_t rows, uint32_t features) {
    source->synthetic = !source->path;
    if (source->path) {
        return true;
    }
    int fd = grt_temporary_file(source->made, sizeof source->made);
    if (fd < 0) {
        return false;
    }
    close(fd);
    talk_progress("making synthetic data");
    bool made =
        grt_data_make(grt_make_desc(.path = source->made, .samples = rows, .features = features,
                                    .noise = -1, .stop = talk_stopped));
    talk_clear();
    source->path = source->made;
    return made;
}

struct grt_dataset *bench_source_open(const struct bench_source *source) {
    struct names inputs, targets;
    if (!split(source->inputs, &inputs) || !split(source->targets, &targets)) {
        return NULL;
    }
    struct grt_direct direct;
    if (!grt_direct(grt_direct_desc(.path = source->path, .inputs = inputs.values,
                                    .input_count = inputs.count, .targets = targets.values,
                                    .target_count = targets.count),
                    &direct)) {
        return NULL;
    }
    bool named = !direct.columns;
    return grt_dataset_open(
        grt_dataset_desc(.path = direct.path, .shown = source->path, .inputs = inputs.values,
                         .input_count = named ? inputs.count : 0, .targets = targets.values,
                         .target_count = named ? targets.count : 0, .check_late = true));
}

void bench_source_end(struct bench_source *source) {
    if (source->made[0]) {
        unlink(source->made);
        grt_unfinished_remove(source->made);
    }
    source->made[0] = '\0';
}

json_t *bench_source_json(const struct bench_source *source, const struct grt_dataset *data) {
    struct grt_dataset_info info = grt_dataset_info(data);
    json_t *json = json_pack("{s:o, s:b, s:I, s:I, s:i, s:i, s:b}", "file",
                             source->synthetic ? json_null() : table_json_text(source->path),
                             "synthetic", source->synthetic, "rows", (json_int_t)info.rows,
                             "row_bytes", (json_int_t)info.row_bytes, "x_width", (int)info.x_width,
                             "y_width", (int)info.y_width, "compressed", info.filtered);
    return json_pack("{s:o}", "data", json);
}
