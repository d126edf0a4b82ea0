// SPDX-License-Identifier: Apache-2.0
// The shares are few, and positive but for `hidden`: each is moved up and down by a factor while
// that helps, and the factor becomes smaller when nothing does. Two beginnings, the better end.
#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_COUNT (sizeof(struct roof_shares) / sizeof(double))
#define BYTES_MOST 1.5  // of the bandwidth: what caches may add
#define STEP_FIRST 2.0
#define STEP_LAST 1.002
#define ROUNDS 4000

struct sample {
    struct roof_work work;
    double seconds;
    const struct card *card;
    const char *subject;
};

struct samples {
    struct sample list[FIT_MAX_SAMPLES];
    size_t count;
    double launch;
};

// Sum of squared logarithms of predicted over measured, without those of `without` (a card) or the
// one at `at`.
static double misfit(const struct samples *s, const struct roof_shares *shares,
                     const struct card *without, size_t at) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct sample *sample = &s->list[i];
        if (i != at && sample->card != without) {
            double time = roof_time(sample->card, s->launch, &sample->work, shares).seconds;
            double off = log(time / sample->seconds);
            sum += off * off;
        }
    }
    return sum;
}

static void moved(const struct roof_shares *from, size_t which, double factor, double step,
                  struct roof_shares *to) {
    *to = *from;
    if (which == offsetof(struct roof_shares, hidden) / sizeof(double)) {
        double by = (step - 1) / 2;
        to->hidden = fmin(1, fmax(0, from->hidden + (factor > 1 ? by : -by)));
        return;
    }
    double numbers[SHARE_COUNT];
    memcpy(numbers, from, sizeof numbers);
    numbers[which] *= factor;
    memcpy(to, numbers, sizeof numbers);
    to->plain = fmin(1, to->plain);
    to->matrix = fmin(1, to->matrix);
    to->bytes = fmin(BYTES_MOST, to->bytes);
    to->launch = fmax(1e-3, to->launch);
}

static double descend(const struct samples *s, uint32_t free, const struct card *without, size_t at,
                      struct roof_shares *shares) {
    double least = misfit(s, shares, without, at), step = STEP_FIRST;
    for (int round = 0; round < ROUNDS && step > STEP_LAST; round++) {
        bool better = false;
        for (size_t which = 0; which < SHARE_COUNT; which++) {
            for (int down = 0; down < 2 && free >> which & 1; down++) {
                struct roof_shares tried;
                moved(shares, which, down ? 1 / step : step, step, &tried);
                double off = misfit(s, &tried, without, at);
                if (off < least - 1e-12) {
                    *shares = tried;
                    least = off;
                    better = true;
                }
            }
        }
        step = better ? step : sqrt(step);
    }
    return least;
}

static struct roof_shares fitted(const struct samples *s, uint32_t free, const struct card *without,
                                 size_t at) {
    static const struct roof_shares begin[] = {
        {.plain = 0.5, .matrix = 0.6, .bytes = 0.8, .hidden = 1, .cycles = 2, .launch = 1},
        {.plain = 0.5, .matrix = 0.3, .bytes = 0.4, .hidden = 0.5, .cycles = 20, .launch = 0.5},
    };
    struct roof_shares best = begin[0];
    double least = INFINITY;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) {
        // What is not fitted is as in the first.
        double numbers[SHARE_COUNT], first[SHARE_COUNT];
        struct roof_shares shares;
        memcpy(numbers, &begin[i], sizeof numbers);
        memcpy(first, &begin[0], sizeof first);
        for (size_t k = 0; k < SHARE_COUNT; k++) {
            numbers[k] = free >> k & 1 ? numbers[k] : first[k];
        }
        memcpy(&shares, numbers, sizeof shares);
        double off = descend(s, free, without, at, &shares);
        if (off < least) {
            least = off;
            best = shares;
        }
    }
    return best;
}

// ---- what was measured ----

static bool of_backend(const struct report *report, const struct report_row *row,
                       const char *backend) {
    const struct report_contender *contender = &report->contenders[row->contender];
    return row->good && row->nature == REPORT_MEASURED && !contender->peer &&
           strcmp(contender->backend, backend) == 0;
}

// An empty dispatch behind another, of many at once; the cards' least.
static double launch_cost(const struct report *report, const struct cards *cards,
                          const char *backend) {
    double least = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        const struct report_row *row = &report->rows[i];
        const struct report_cell *test = report_cell(row, "test");
        if (strcmp(row->bench->name, "launch") == 0 && of_backend(report, row, backend) && test &&
            test->text && strcmp(test->text, "in order") == 0 &&
            cards_named(cards, report->contenders[row->contender].name) &&
            (least == 0 || row->value < least)) {
            least = row->value;
        }
    }
    return least;
}

static void collect(const struct suite *suite, const char *backend, const struct report *report,
                    const struct cards *cards, struct samples *s) {
    s->count = 0;
    s->launch = launch_cost(report, cards, backend);
    for (size_t i = 0; i < report->row_count && s->count < FIT_MAX_SAMPLES; i++) {
        const struct report_row *row = &report->rows[i];
        const char *name = report->contenders[row->contender].name;
        const struct card *card = cards_named(cards, name);
        struct sample sample = {.card = card, .subject = row->subject};
        double amount = 0;
        if (!card || strcmp(row->bench->name, suite->bench) != 0 ||
            !of_backend(report, row, backend) || !suite->count(row, card, &sample.work, &amount)) {
            continue;
        }
        sample.seconds = amount / row->value;
        struct sample *last = s->count ? &s->list[s->count - 1] : NULL;
        if (last && last->card == card && strcmp(last->subject, sample.subject) == 0) {
            *last = sample.seconds < last->seconds ? sample : *last;
        } else {
            s->list[s->count++] = sample;
        }
    }
}

static size_t samples_of(const struct samples *s, const struct card *card) {
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        count += s->list[i].card == card;
    }
    return count;
}

static void find_cards(const struct samples *s, struct fit *fit) {
    size_t most = 0;
    for (size_t i = 0; i < s->count && fit->cards < FIT_MAX_CARDS; i++) {
        size_t k = 0, count = samples_of(s, s->list[i].card);
        while (k < fit->cards && fit->of[k] != s->list[i].card) {
            k++;
        }
        if (k == fit->cards) {
            fit->of[fit->cards++] = s->list[i].card;
        }
        if (count > most) {
            most = count;
            fit->measured = s->list[i].card;
        }
    }
}

bool fit_knows(const struct fit *fit, const char *vendor) {
    bool known = false;
    for (size_t i = 0; i < fit->cards; i++) {
        known = known || strcmp(fit->of[i]->vendor, vendor) == 0;
    }
    return known;
}

// Whether there is enough to fit to without a card.
static bool can_do_without(const struct samples *s, uint32_t free, const struct card *card) {
    size_t shares = 0;
    for (size_t which = 0; which < SHARE_COUNT; which++) {
        shares += free >> which & 1;
    }
    return s->count - samples_of(s, card) >= shares;
}

static void find_error(const struct samples *s, struct fit *fit) {
    double sum = 0, worst = 0;
    const struct card *last = NULL;
    struct roof_shares shares = fit->shares;
    for (size_t i = 0; i < fit->cards; i++) {
        fit->left_out += can_do_without(s, fit->suite->free, fit->of[i]);
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct sample *sample = &s->list[i];
        if (!can_do_without(s, fit->suite->free, sample->card)) {
            shares = fitted(s, fit->suite->free, NULL, i);
            last = NULL;
        } else if (sample->card != last) {
            shares = fitted(s, fit->suite->free, sample->card, s->count);
            last = sample->card;
        }
        double off = fabs(log(roof_time(sample->card, s->launch, &sample->work, &shares).seconds /
                              sample->seconds));
        sum += off * off;
        if (off >= worst) {
            worst = off;
            fit->worst_case = sample->subject;
        }
    }
    fit->typical = exp(sqrt(sum / (double)s->count));
    fit->worst = exp(worst);
}

bool fit_suite(const struct suite *suite, const char *backend, const struct report *report,
               const struct cards *cards, struct fit *fit) {
    struct samples *s = malloc(sizeof *s);
    *fit = (struct fit){.suite = suite, .backend = backend};
    if (!s) {
        return false;
    }
    collect(suite, backend, report, cards, s);
    fit->launch = s->launch;
    fit->samples = s->count;
    if (s->count > 1) {
        find_cards(s, fit);
        fit->shares = fitted(s, suite->free, NULL, s->count);
        find_error(s, fit);
    }
    free(s);
    return true;
}
