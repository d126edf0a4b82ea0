// SPDX-License-Identifier: Apache-2.0
// What sensors told over a time, for people and for programs.
#include <math.h>
#include <stdio.h>

#include "publish.h"

void publish_means_text(const struct publish_means *means, char text[PUBLISH_TEXT]) {
    const double gib = 1024.0 * 1024.0 * 1024.0;
    const struct {
        const char *name, *unit;
        double value;
        int digits;
    } rows[] = {
        {"busy", " %", 100 * means->utilisation, 0},
        {"memory", " GiB", means->memory_used / gib, 2},
        {"power", " W", means->power, 0},
        {"temperature", " C", means->temperature, 0},
        {"clock", " MHz", means->clock, 0},
        {"energy", " J", means->energy, 1},
    };
    size_t count = sizeof rows / sizeof *rows, used = 0;
    const char *before = "";
    for (size_t i = 0; i < count; i++) {
        if (!isnan(rows[i].value)) {
            used += (size_t)snprintf(text + used, PUBLISH_TEXT - used, "%s%s %.*f%s", before,
                                     rows[i].name, rows[i].digits, rows[i].value, rows[i].unit);
            before = ", ";
        }
    }
    used += (size_t)snprintf(text + used, PUBLISH_TEXT - used, "%sin %.1f s", used ? " " : "",
                             means->seconds);
    before = "; not available: ";
    for (size_t i = 0; i < count; i++) {
        if (isnan(rows[i].value)) {
            used +=
                (size_t)snprintf(text + used, PUBLISH_TEXT - used, "%s%s", before, rows[i].name);
            before = ", ";
        }
    }
}

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *publish_means_json(const struct publish_means *means) {
    return json_pack("{ss sf si so so so so so so so}", "reader", means->reader, "seconds",
                     means->seconds, "samples", (int)means->samples, "utilisation",
                     number(means->utilisation), "memory_used", number(means->memory_used),
                     "memory_total", number(means->memory_total), "power", number(means->power),
                     "temperature", number(means->temperature), "clock", number(means->clock),
                     "energy", number(means->energy));
}
