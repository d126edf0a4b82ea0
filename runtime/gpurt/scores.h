// SPDX-License-Identifier: Apache-2.0
// Scores of a trained network besides its loss, as scikit-learn defines them: of numbers
// mean_absolute_error, mean_squared_error and r2_score; of classes accuracy, f1_score and
// roc_auc_score. Double precision, on the host.
#ifndef GRT_SCORES_H
#define GRT_SCORES_H

#include "supervised.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_scores {
    uint64_t samples;
    uint32_t classes;  // 0: targets are numbers, and have the first three
    // Means over the outputs; of binary cross-entropy over probabilities. r2 of an output whose
    // targets are all alike is 1 where they are met, else 0.
    double mae, mse, r2;
    double accuracy;
    double f1;   // mean over the classes that there are, or that were said
    double auc;  // of two classes, the second's; else the mean over classes, each against the rest
};

// y and targets [rows][width]; logits [rows][classes] and classes [rows]; weights [rows] from 0 on,
// scikit-learn's sample_weight, or NULL. A class without samples, or that all samples are of, has
// no area; auc is NAN without any. False with the sentence.
GRT_API bool grt_scores_numbers(const float *y, const float *targets, const float *weights,
                                uint64_t rows, uint32_t width, struct grt_scores *scores);
GRT_API bool grt_scores_classes(const float *logits, const uint32_t *truth, const float *weights,
                                uint64_t rows, uint32_t classes, struct grt_scores *scores);
// Of a trained model over a part of a file; `stop` (may be NULL) ends it, with false and no
// sentence. Of classes it keeps what the network says of all samples.
GRT_API bool grt_score(struct grt_dev *dev, const struct grt_archive *model,
                       const struct grt_config *config, enum grt_part part, bool (*stop)(void),
                       struct grt_scores *scores);

#ifdef __cplusplus
}
#endif
#endif
