// SPDX-License-Identifier: Apache-2.0
// The shares of a suite (roofline.h), fitted to measured rows, and how far off they are where they
// were not fitted. Rows of one API are one fit: drivers differ more than cards of a maker.
//
// What is left out to find the error: each measured card in turn, or, where the other cards have
// fewer results than there are shares to fit, each case of the card in turn.
#ifndef APPS_ESTIMATE_FIT_H
#define APPS_ESTIMATE_FIT_H

#include "suite.h"

#define FIT_MAX_SAMPLES 400
#define FIT_MAX_CARDS 64  // more are fitted to, and not told apart

struct fit {
    const struct suite *suite;
    const char *backend;
    struct roof_shares shares;
    double launch;   // seconds of an empty dispatch, measured
    size_t samples;  // 0: nothing was measured
    size_t cards;    // that they are of
    const struct card *of[FIT_MAX_CARDS];
    const struct card *measured;  // the one with most samples
    size_t left_out;              // cards that were left out to find the error
    // Factors, 1.2: 20 % too much or too little. Of predictions without what was left out.
    double typical;  // e to the root of the mean square of their logarithms
    double worst;
    const char *worst_case;  // a row's subject
};

// Fits a suite to the settled report's measured rows by `backend` whose device is one of the cards.
// Of several rows of a case the best counts. False when memory is out.
bool fit_suite(const struct suite *suite, const char *backend, const struct report *report,
               const struct cards *cards, struct fit *fit);
// Whether a card of this maker was measured.
bool fit_knows(const struct fit *fit, const char *vendor);

#endif
