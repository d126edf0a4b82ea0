// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: whether a variant of an op computes right on a device.
//
// A driver may build a kernel and still run it wrong. So the first time a variant would be used for
// a case of its kind, it does a small one whose result is known. The verdict is kept with the
// device and, under the driver's name and version, in the cache folder: a variant that was wrong
// stays out until the driver changes or the folder is removed, and one that was right is not asked
// again. One that loses the device is wrong from the next start on; where memory was short there is
// no verdict.
#ifndef GRT_VERDICT_H
#define GRT_VERDICT_H

#include "device/internal.h"

enum grt_verdict {
    // there was no memory for the small case, or it is nothing for the variant
    GRT_VERDICT_UNKNOWN,
    GRT_VERDICT_RIGHT,
    GRT_VERDICT_WRONG,
};

// What a device knows already.
struct grt_verdict_row {
    uint64_t of;       // digest of op, variant and case
    uint64_t variant;  // of op and variant
    enum grt_verdict verdict;
};

struct grt_check {
    const char *op;       // "gemm": its kernels are those named gemm_...
    const char *variant;  // its name
    const char *what;     // all else that the verdict depends on, in words: "small, f16, nn"
    // Does the small case. `fault`: takes one number of the result for wrong. Says nothing.
    enum grt_verdict (*run)(const void *subject, bool fault);
    const void *subject;
};

// Whether the variant may serve; warns when it may not, once for all its cases.
bool grt_check_trusts(struct grt_dev *dev, const struct grt_check *check);

// For tests: from here on, checks of this variant of the op on this device, or of all ("*"), see a
// wrong number. NULL ends it.
void grt_check_fault(struct grt_dev *dev, const char *op, const char *variant);
// And how many variants and cases the device has found wrong.
uint32_t grt_check_failures(const struct grt_dev *dev);

#endif
