// SPDX-License-Identifier: Apache-2.0
// The suites of work that is estimated: each counts a row of its bench, measured or not, as
// operations, bytes and dispatches.
#ifndef APPS_ESTIMATE_SUITE_H
#define APPS_ESTIMATE_SUITE_H

#include <stdint.h>

#include "report/model.h"
#include "roofline.h"

#define SUITE_CELLS 12
#define SUITE_SHARE(name) (1u << (offsetof(struct roof_shares, name) / sizeof(double)))

struct suite {
    const char *name;  // "rollout"; first: see grt_closest()
    const char *help;
    const char *bench;  // of a report
    uint32_t free;      // shares that are fitted, by SUITE_SHARE()
    // Counts a row as work for the card, and what of the bench's figure one run of it makes: steps,
    // samples, operations. False: it is no row of this suite, or nobody knows it for this card.
    bool (*count)(const struct report_row *row, const struct card *card, struct roof_work *work,
                  double *amount);
    // The i-th row to estimate, into as many cells as it has; 0 past the last. `size` is what the
    // user asked for instead of the i-th of its sizes; 0: the suite's own.
    size_t (*row)(size_t i, double size, struct report_cell cells[SUITE_CELLS]);
    size_t sizes;  // that its rows run through, innermost; 0: they are shapes
};

extern const struct suite suites[];
extern const size_t suite_count;

#endif
