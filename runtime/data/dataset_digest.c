// SPDX-License-Identifier: Apache-2.0
// A digest of what a run is trained on: names, types and shapes of its arrays, and the numbers of a
// sample of rows. All rows of a small file are in it; of a large one as many as take no time,
// evenly spread, the first and the last among them. How the file stores them, where it lies and
// when it was written do not matter.
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/log.h"
#include "dataset_parts.h"

#define ALL_ROWS 4096u  // of a file with no more than these, every one
#define SPREAD_ROWS 256u
#define BLOCK_NUMBERS (1u << 20)  // read at once

static uint64_t digest_heads(const struct grt_dataset *data) {
    uint64_t digest = 0;
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        const struct grt_array *a = &data->arrays[i];
        const char *type = grt_element_text(a->element.type);
        digest = grt_digest(a->name, strlen(a->name) + 1, digest);
        digest = grt_digest(type, strlen(type) + 1, digest);
        digest = grt_digest(a->shape, sizeof a->shape, digest);
    }
    return digest;
}

bool grt_dataset_digest(struct grt_dataset *data, uint64_t *digest) {
    const struct grt_dataset_info *info = &data->info;
    uint64_t all = info->file_rows;
    uint32_t count = all <= ALL_ROWS ? (uint32_t)all : SPREAD_ROWS;
    uint64_t width = (uint64_t)info->x_width + info->y_width;
    uint32_t block = width < BLOCK_NUMBERS ? (uint32_t)(BLOCK_NUMBERS / width) : 1;
    block = block < count ? block : count;
    uint64_t rows[ALL_ROWS];
    struct grt_fault fault = {.status = GRT_OK};
    struct grt_reader *reader = grt_reader_create(data);
    double *numbers = malloc(block * width * sizeof *numbers);
    bool good = reader && numbers;
    if (!good) {
        grt_fault(&fault, GRT_NO_MEMORY, "no host memory for a sample of rows");
    }
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = count == all ? i : (uint64_t)((double)i / (count - 1) * (double)(all - 1));
    }
    *digest = digest_heads(data);
    for (uint32_t first = 0; good && first < count; first += block) {
        uint32_t n = count - first < block ? count - first : block;
        double *y = info->y_width > 0 ? numbers + (uint64_t)n * info->x_width : NULL;
        good = grt_reader_read(reader, GRT_READ_WIDE, rows + first, n, numbers, y, &fault);
        *digest = good ? grt_digest(numbers, n * width * sizeof *numbers, *digest) : 0;
    }
    free(numbers);
    grt_reader_destroy(&reader);
    return good || grt_fail(fault.status, "%s: %s", data->path, fault.text);
}
