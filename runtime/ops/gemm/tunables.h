// SPDX-License-Identifier: Apache-2.0
// What the variants of matrix products let the tuner choose; each stands in the file of its
// variant.
#ifndef GRT_GEMM_TUNABLES_H
#define GRT_GEMM_TUNABLES_H

#include "gpurt/tunable.h"

extern const struct grt_tunable gemm_tiled_f32_tunable;
extern const struct grt_tunable gemm_tiled_16_tunable;
extern const struct grt_tunable gemm_plain_tunable;
extern const struct grt_tunable gemm_panel_tunable;
extern const struct grt_tunable gemm_coop_tunable;
extern const struct grt_tunable gemm_split_tunable;
extern const struct grt_tunable gemm_split_wgmma_tunable;
extern const struct grt_tunable gemm_split_mma_tunable;
extern const struct grt_tunable gemm_mma_tunable;
extern const struct grt_tunable gemm_wgmma_tunable;
extern const struct grt_tunable gemm_wgmma_48k_tunable;

#endif
