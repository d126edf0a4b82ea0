// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a profile of a device. What is taken has finite numbers, as many
// as the setting has; what is refused has a sentence that begins with the file's name.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/profile_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rows(const struct profile_file *file) {
    for (uint32_t i = 0; i < GRT_KEY_COUNT; i++) {
        const struct profile_row *row = &file->rows[i];
        if (row->line > 0 && row->count != profile_count((enum grt_profile_key)i)) {
            abort();
        }
        for (uint32_t k = 0; row->line > 0 && k < row->count; k++) {
            if (!isfinite(row->numbers[k])) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct profile_file file;
    char why[PROFILE_WHY] = "";
    memset(&file, 0, sizeof file);
    if (profile_parse("fuzz.profile", (const char *)data, size, &file, why)) {
        check_rows(&file);
    } else if (strncmp(why, "fuzz.profile", 12) != 0) {
        abort();
    }
    return 0;
}
