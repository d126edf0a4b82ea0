// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any text as a list of numbers or sizes on the command line. The first byte
// chooses the rule. What is taken obeys it; what is refused has a sentence and leaves no list.
#include <stdlib.h>
#include <string.h>

#include "cli/options/ranges.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct ranges_rule rules[] = {
        {.min = 1, .max = 1 << 20}, {.max = 256}, {.bytes = true, .min = 1}, {.bytes = true}};
    const struct ranges_rule *rule = &rules[size > 0 ? data[0] % 4 : 0];
    char *text = malloc(size + 1);
    if (!text) {
        return 0;
    }
    size_t length = size > 0 ? size - 1 : 0;
    memcpy(text, size > 0 ? data + 1 : data, length);
    text[length] = '\0';
    struct ranges list = {0};
    char why[RANGES_WHY] = "";
    if (ranges_parse(text, rule, &list, why)) {
        if (list.count == 0 || list.count > RANGES_MAX) {
            abort();
        }
        uint64_t most = rule->max ? rule->max : rule->bytes ? RANGES_MAX_BYTES : UINT64_MAX;
        for (size_t i = 0; i < list.count; i++) {
            if (list.values[i] < rule->min || list.values[i] > most) {
                abort();
            }
        }
    } else if (!why[0] || list.values || list.count > 0) {
        abort();
    }
    ranges_destroy(&list);
    uint64_t bytes = 0;
    why[0] = '\0';
    bool sized = ranges_parse_size(text, &bytes, why);
    if (sized ? bytes > RANGES_MAX_BYTES : !why[0]) {
        abort();
    }
    free(text);
    return 0;
}
