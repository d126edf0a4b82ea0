// SPDX-License-Identifier: Apache-2.0
// The names of the closed sets in the public headers.
#include "gpurt/device.h"
#include "gpurt/gemm.h"
#include "gpurt/loss.h"

const char *grt_backend_text(enum grt_backend_id id) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_BACKENDS(X)
#undef X
    };
    return (unsigned)id < GRT_BACKEND_COUNT ? texts[id] : "unknown backend";
}

const char *grt_dtype_text(enum grt_dtype dtype) {
    static const char *const texts[] = {
#define X(name, text, size) text,
        GRT_DTYPES(X)
#undef X
    };
    return (unsigned)dtype < GRT_DTYPE_COUNT ? texts[dtype] : "unknown type";
}

uint32_t grt_dtype_size(enum grt_dtype dtype) {
    static const uint32_t sizes[] = {
#define X(name, text, size) size,
        GRT_DTYPES(X)
#undef X
    };
    return (unsigned)dtype < GRT_DTYPE_COUNT ? sizes[dtype] : 0;
}

const char *grt_act_text(enum grt_act act) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_ACTS(X)
#undef X
    };
    return (unsigned)act < GRT_ACT_COUNT ? texts[act] : "unknown activation";
}

const char *grt_loss_text(enum grt_loss loss) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_LOSSES(X)
#undef X
    };
    return (unsigned)loss < GRT_LOSS_COUNT ? texts[loss] : "unknown loss";
}
