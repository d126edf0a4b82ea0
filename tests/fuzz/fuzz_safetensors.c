// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a safetensors file. What is taken must be what its shapes say, and
// all of it within the file.
#include <stdlib.h>
#include <string.h>

#include "gpurt/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void quiet(void *context, enum grt_log_level level, const char *line) {
    (void)context;
    (void)level;
    (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    grt_log_set(quiet, NULL, GRT_LOG_ERROR);
    struct grt_archive *archive = grt_safetensors_parse("fuzz.safetensors", data, size);
    uint64_t total = 0;
    for (uint32_t i = 0; archive && i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *t = &archive->tensors[i];
        uint64_t bytes = grt_dtype_size(t->dtype);
        for (uint32_t k = 0; k < t->rank; k++) {
            bytes *= t->shape[k];
        }
        total += t->bytes;
        if (bytes != t->bytes || total > size || strlen(t->name) >= GRT_ARCHIVE_NAME) {
            abort();
        }
    }
    grt_archive_destroy(&archive);
    return 0;
}
