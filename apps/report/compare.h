// SPDX-License-Identifier: Apache-2.0
// Figures against those of the baseline. A difference counts only where the spreads of both leave
// it: with the figure a share s of the baseline's, spreads p and q of them, the true share lies
// between s (1 - p) / (1 + q) and s (1 + p) / (1 - q).
#ifndef APPS_REPORT_COMPARE_H
#define APPS_REPORT_COMPARE_H

#include "model.h"

#define REPORT_VERDICTS(X)                                                                         \
    X(SAME, "same")                                                                                \
    X(FASTER, "better")                                                                            \
    X(SLOWER, "worse")                                                                             \
    X(BROKEN, "broken") /* right before, and now not */                                            \
    X(MENDED, "mended")

enum report_verdict {
#define X(name, text) REPORT_##name,
    REPORT_VERDICTS(X)
#undef X
        REPORT_VERDICT_COUNT,
};
const char *report_verdict_text(enum report_verdict verdict);

struct report_change {
    const struct report_row *before;
    const struct report_row *after;
    double share;  // above 1: better; 0 unless both are good
    double low, high;
    enum report_verdict verdict;
    bool below;  // even `high` is under what was asked for, or it is broken
};

struct report_changes {
    struct report_change *list;
    size_t count;
    size_t verdicts[REPORT_VERDICT_COUNT];
    size_t below;
    size_t missing;  // figures of the baseline that nobody else has
    size_t added;    // and of others that it has not
};

// Compares what is settled; fail_under 0: nothing is below. False when memory is out. The list is
// the caller's, to free().
bool report_compare(const struct report *report, double fail_under, struct report_changes *changes);

#endif
