// SPDX-License-Identifier: Apache-2.0
#include "ref_kit.h"

int ref_case_begin(void **state) {
    test.dev = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    test.on_ref = true;
    return test.dev ? test_case_begin(state) : -1;
}

int ref_case_end(void **state) {
    int rc = test_case_end(state);
    grt_dev_destroy(&test.dev);
    test.on_ref = false;
    return rc;
}
