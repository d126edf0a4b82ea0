// SPDX-License-Identifier: Apache-2.0
#include "ref_kit.h"

static int begin(void **state, bool as_gpu) {
    test.dev = grt_dev_create(grt_dev_desc(.device = "ref:0", .as_gpu = as_gpu));
    test.ref = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    test.on_ref = true;
    if (!test.dev || !test.ref) {
        return -1;
    }
    return test_case_begin(state);
}

int ref_case_begin(void **state) {
    return begin(state, false);
}

int ref_gpu_case_begin(void **state) {
    return begin(state, true);
}

int ref_case_end(void **state) {
    int rc = test_case_end(state);
    grt_dev_destroy(&test.dev);
    grt_dev_destroy(&test.ref);
    test.on_ref = false;
    return rc;
}
