// SPDX-License-Identifier: Apache-2.0
#include "roofline.h"

#include <math.h>

const char *roof_bound_text(enum roof_bound bound) {
    static const char *const texts[] = {
#define X(name, text) text,
        ROOF_BOUNDS(X)
#undef X
    };
    return texts[bound];
}

static double over(double amount, double rate) {
    return amount > 0 ? (rate > 0 ? amount / rate : INFINITY) : 0;
}

struct roof_time roof_time(const struct card *card, double launch, const struct roof_work *work,
                           const struct roof_shares *shares) {
    double fill = work->groups > 0 && work->groups < card->units ? work->groups / card->units : 1;
    double compute = (over(work->plain, shares->plain * card->plain) +
                      over(work->matrix, shares->matrix * card->matrix)) /
                     fill;
    double memory = over(work->bytes, shares->bytes * card->bandwidth);
    double longer = fmax(compute, memory), shorter = fmin(compute, memory);
    double step = shares->cycles / card->clock;
    double launches = work->launches * shares->launch * launch;
    double serial = work->serial * step;
    struct roof_time time = {
        .through = longer + (1 - shares->hidden) * shorter,
        .fixed = launches + serial,
        .latency = work->chain * step,
    };
    double most = fmax(time.through, time.latency);
    time.seconds = time.fixed + most;
    if (time.latency + serial >= time.through && time.latency + serial >= launches) {
        time.bound = ROOF_LATENCY;
    } else if (launches >= most) {
        time.bound = ROOF_LAUNCH;
    } else {
        time.bound = compute >= memory ? ROOF_COMPUTE : ROOF_MEMORY;
    }
    return time;
}

struct roof_range roof_range(const struct card *card, const struct card *measured, double launch,
                             const struct roof_work *work, const struct roof_shares *shares) {
    struct roof_time here = roof_time(card, launch, work, shares);
    struct roof_time there = roof_time(measured, launch, work, shares);
    double fill = 1, least = INFINITY, most = 0;
    if (work->groups > 0) {
        fill = fmin(1, work->groups / measured->units) / fmin(1, work->groups / card->units);
    }
    const struct {
        double amount, ratio;
    } parts[] = {
        {work->plain, measured->plain / card->plain * fill},
        {work->matrix, card->matrix > 0 ? measured->matrix / card->matrix * fill : INFINITY},
        {work->bytes, measured->bandwidth / card->bandwidth},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].amount > 0) {
            least = fmin(least, parts[i].ratio);
            most = fmax(most, parts[i].ratio);
        }
    }
    least = isfinite(least) ? least : 1;
    return (struct roof_range){
        .low = here.fixed + fmax(here.latency, least * there.through),
        .high = here.fixed + fmax(here.latency, most * there.through),
    };
}
