// SPDX-License-Identifier: Apache-2.0
#include "estimate.h"

#include <math.h>

const char *const estimate_backends[ESTIMATE_BACKENDS] = {"vulkan", "opencl"};

bool estimate_row(const struct fit *fit, const struct suite *suite, const struct card *card,
                  const struct report_row *row, struct estimate *estimate) {
    struct roof_work work;
    double amount = 0;
    if (fit->samples < 2 || !suite->count(row, card, &work, &amount)) {
        return false;
    }
    struct roof_time time = roof_time(card, fit->launch, &work, &fit->shares);
    struct roof_range range = roof_range(card, fit->measured, fit->launch, &work, &fit->shares);
    bool other = !fit_knows(fit, card->vendor);
    double wider = fit->worst * (other ? ESTIMATE_OTHER_MAKER : 1);
    *estimate = (struct estimate){
        .value = amount / time.seconds,
        .low = amount / (range.high * wider),
        .high = amount / range.low * wider,
        .seconds = time.seconds,
        .factor = wider,
        .bound = time.bound,
    };
    return isfinite(time.seconds) && time.seconds > 0;
}
