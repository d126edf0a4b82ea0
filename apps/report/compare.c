// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <stdlib.h>
#include <string.h>

const char *report_verdict_text(enum report_verdict verdict) {
    static const char *const texts[] = {
#define X(name, text) text,
        REPORT_VERDICTS(X)
#undef X
    };
    return texts[verdict];
}

// A spread of 90 % and more says nothing, and would divide by less than nothing.
static double bounded(double spread) {
    return spread > 0.9 ? 0.9 : spread;
}

static void judge(struct report_change *c, double fail_under) {
    if (!c->before->good || !c->after->good) {
        c->verdict = c->before->good ? REPORT_BROKEN : c->after->good ? REPORT_MENDED : REPORT_SAME;
        c->below = fail_under > 0 && c->verdict == REPORT_BROKEN;
        return;
    }
    double p = bounded(c->after->spread), q = bounded(c->before->spread);
    c->share = report_share(c->before->bench, c->after->value, c->before->value);
    c->low = c->share * (1 - p) / (1 + q);
    c->high = c->share * (1 + p) / (1 - q);
    c->verdict = c->low > 1 ? REPORT_FASTER : c->high < 1 ? REPORT_SLOWER : REPORT_SAME;
    c->below = fail_under > 0 && c->high < fail_under;
}

// Rows of one case, [first, last): the row of the baseline that `after` is compared with, which is
// the same device's where there is one, else the first.
static const struct report_row *baseline_of(const struct report *r, size_t first, size_t last,
                                            const struct report_row *after) {
    const struct report_row *found = NULL;
    const struct report_contender *mine = &r->contenders[after->contender];
    for (size_t i = first; i < last; i++) {
        const struct report_row *row = &r->rows[i];
        const struct report_contender *c = &r->contenders[row->contender];
        bool same_peer = (c->peer != NULL) == (mine->peer != NULL);
        if (!row->chosen || !c->baseline || !same_peer || c->predicted) {
            continue;
        }
        if (strcmp(c->name, mine->name) == 0 && strcmp(c->backend, mine->backend) == 0) {
            return row;
        }
        found = found ? found : row;
    }
    return found;
}

static void compare_case(const struct report *r, size_t first, size_t last, double fail_under,
                         struct report_changes *out) {
    size_t before = 0, after = 0;
    for (size_t i = first; i < last; i++) {
        const struct report_row *row = &r->rows[i];
        if (!row->chosen || row->nature == REPORT_PREDICTED) {
            continue;
        }
        if (r->contenders[row->contender].baseline) {
            before++;
            continue;
        }
        after++;
        struct report_change change = {.after = row, .before = baseline_of(r, first, last, row)};
        if (!change.before) {
            continue;
        }
        judge(&change, fail_under);
        out->verdicts[change.verdict]++;
        out->below += change.below;
        out->list[out->count++] = change;
    }
    out->missing += after ? 0 : before;
    out->added += before ? 0 : after;
}

bool report_compare(const struct report *report, double fail_under,
                    struct report_changes *changes) {
    const struct report *r = report;
    *changes = (struct report_changes){.list = calloc(r->row_count + 1, sizeof *changes->list)};
    if (!changes->list) {
        return false;
    }
    for (size_t first = 0, last; first < r->row_count; first = last) {
        last = report_case_end(r, first);
        if (r->rows[first].bench->compared) {
            compare_case(r, first, last, fail_under, changes);
        }
    }
    return true;
}
