// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a config file and as key=value. What is taken must have a text
// that reads back as the same value.
#include <stdlib.h>
#include <string.h>

#include "gpurt/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void quiet(void *context, enum grt_log_level level, const char *line) {
    (void)context;
    (void)level;
    (void)line;
}

static void check_texts(const struct grt_config *config) {
    static char text[65536];
    struct grt_config again;
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        enum grt_config_type type = grt_config_key_info(key)->type;
        // Texts are written in quotes, which only YAML takes off again.
        if (!grt_config_given(config, key) || type == GRT_CONFIG_IS_TEXT ||
            type == GRT_CONFIG_IS_NAMES) {
            continue;
        }
        grt_config_init(&again);
        if (grt_config_value_text(config, key, text, sizeof text) >= sizeof text ||
            !grt_config_set(&again, key, text)) {
            abort();
        }
        char twice[65536];
        grt_config_value_text(&again, key, twice, sizeof twice);
        if (strcmp(text, twice) != 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct grt_config config;
    grt_log_set(quiet, NULL, GRT_LOG_ERROR);
    grt_config_init(&config);
    if (grt_config_parse(&config, "fuzz.yaml", (const char *)data, size)) {
        check_texts(&config);
    }
    char *pair = malloc(size + 1);
    if (pair) {
        memcpy(pair, data, size);
        pair[size] = '\0';
        if (grt_config_override(&config, pair)) {
            check_texts(&config);
        }
        free(pair);
    }
    return 0;
}
