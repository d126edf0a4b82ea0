// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: how long something took.
#ifndef GRT_CLOCK_H
#define GRT_CLOCK_H

// Seconds since some fixed time; never goes back.
double grt_seconds(void);

#endif
