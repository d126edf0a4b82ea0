// SPDX-License-Identifier: Apache-2.0
// Estimates of suites on cards: measured rows that come with gpurt, and the user's, fitted once;
// then one figure with its interval for each row of a suite.
#ifndef APPS_ESTIMATE_ESTIMATE_H
#define APPS_ESTIMATE_ESTIMATE_H

#include "fit.h"

// Texts that come with gpurt, made by the build: cards.json, and the records that shares are fitted
// to.
struct estimate_text {
    const char *name;
    const char *text;
};
extern const struct estimate_text estimate_records[];  // ends with NULL
extern const char *const estimate_cards;

// Where no card of its maker was measured, the interval is wider by this factor: a guess.
#define ESTIMATE_OTHER_MAKER 2.0

#define ESTIMATE_BACKENDS 2
extern const char *const estimate_backends[ESTIMATE_BACKENDS];

struct estimate {
    double value, low, high;  // in the unit of the bench
    double seconds;
    double factor;  // the fit's worst error and this guess: what is not known of any card
    enum roof_bound bound;
};

// How good the row is on the card; false where the suite says nothing of it.
bool estimate_row(const struct fit *fit, const struct suite *suite, const struct card *card,
                  const struct report_row *row, struct estimate *estimate);

#endif
