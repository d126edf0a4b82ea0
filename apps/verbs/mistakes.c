// SPDX-License-Identifier: Apache-2.0
#include "mistakes.h"

#include <stdio.h>

#include "cli/command.h"
#include "cli/output/sheet.h"
#include "cli/talk.h"

void mistakes_name(const struct grt_file_info *names, uint32_t class, char text[40]) {
    if (names && class < names->class_name_count && names->class_names[class][0]) {
        snprintf(text, 40, "%s", names->class_names[class]);
    } else {
        snprintf(text, 40, "%u", class);
    }
}

int mistakes_draw(const struct grt_classified *c, const struct grt_file_info *names,
                  const char *path) {
    if (c->height == 0 || (c->channels != 1 && c->channels != 3)) {
        talk_line("--mistakes: samples are no images of 1 or 3 channels, so there is no picture");
        return COMMAND_OK;
    }
    if (c->mistake_count == 0) {
        talk_line("--mistakes: there is none, and so no picture");
        return COMMAND_OK;
    }
    struct sheet sheet;
    int code = COMMAND_INTERNAL;
    if (sheet_init(&sheet, c->mistake_count, 1, c->height, c->width)) {
        for (uint32_t i = 0; i < c->mistake_count; i++) {
            const struct grt_mistake *m = &c->mistakes[i];
            char truth[40], guess[40];
            mistakes_name(names, m->truth, truth);
            mistakes_name(names, m->guess, guess);
            snprintf(sheet.texts[i], sizeof sheet.texts[i], "%s %.0f%%, taken for %s %.0f%%", truth,
                     100 * m->truth_share, guess, 100 * m->guess_share);
            if (m->image) {
                sheet_put(&sheet, i, 0, m->image, c->height, c->width, c->channels, 255);
            }
        }
        code = sheet_save(&sheet, path);
    }
    sheet_finish(&sheet);
    return code;
}
