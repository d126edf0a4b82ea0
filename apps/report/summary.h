// SPDX-License-Identifier: Apache-2.0
// Who leads in what, and by how much. Only cases that several contenders have are counted.
#ifndef APPS_REPORT_SUMMARY_H
#define APPS_REPORT_SUMMARY_H

#include "model.h"

struct report_standing {
    uint32_t contender;
    size_t cases;     // that others have too
    size_t leads;     // of them
    size_t alone;     // cases that nobody else has
    double relative;  // geometric mean of its shares of the best; 0 without cases
};

struct report_lead {
    const struct report_bench *bench;
    struct report_standing *standings;  // the best first: by leads, then by `relative`
    size_t count;
    size_t shared;  // cases of several contenders
    double times;   // geometric mean, of the leader to the next, where it leads
    double most;    // the largest of them
    const struct report_row *most_of;
    const struct report_row *best;  // the best figure of all
};

struct report_summary {
    struct report_lead *leads;  // benches that the report has, in their order
    size_t count;
};

// Of a settled report; all lives in the report's memory. False when that is out.
bool report_summarize(struct report *report, struct report_summary *summary);

#define REPORT_SENTENCE 2048
// One sentence about a bench.
void report_lead_text(const struct report *report, const struct report_lead *lead,
                      char text[REPORT_SENTENCE]);

// A sweep in a sentence: its best trial and what matters.
void report_sweep_text(const struct report *report, const struct report_sweep *sweep,
                       char text[REPORT_SENTENCE]);

#endif
