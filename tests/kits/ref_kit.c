// SPDX-License-Identifier: Apache-2.0
#include "ref_kit.h"

int ref_kit_begin(void **state) {
    test.dev = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    return test.dev ? test_case_begin(state) : -1;
}

int ref_kit_end(void **state) {
    int rc = test_case_end(state);
    grt_dev_destroy(&test.dev);
    return rc;
}
