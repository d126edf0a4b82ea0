// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "plan.h"

// Whether a is better than b. What is no number is worse than any.
static bool better(double a, double b, bool maximize) {
    return !isnan(a) && (isnan(b) || (maximize ? a > b : a < b));
}

bool sweep_goes_on(const struct sweep_rung_value *all, uint32_t count, struct sweep_rung_value own,
                   double eta, bool maximize) {
    uint32_t there = 0, ahead = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].time <= own.time) {
            there++;
            ahead += better(all[i].value, own.value, maximize);
        }
    }
    double places = floor(there / eta);
    return !isnan(own.value) && ahead < (places > 1 ? places : 1);
}
