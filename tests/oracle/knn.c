// SPDX-License-Identifier: Apache-2.0
// Nearest neighbours by looking for the nearest one again and again, unless all are wanted.
#include <math.h>
#include <stdlib.h>

#include "oracle.h"

static double cosine(const float *a, const float *b, size_t width) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < width; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

uint32_t oracle_knn(const float *bank, const uint32_t *classes, size_t rows, const float *query,
                    size_t width, size_t k, double tau) {
    double *cosines = calloc(rows, sizeof *cosines), votes[16] = {0};
    bool *taken = calloc(rows, sizeof *taken);
    uint32_t best = 0;
    for (size_t i = 0; cosines && i < rows; i++) {
        cosines[i] = cosine(bank + i * width, query, width);
    }
    for (size_t turn = 0; cosines && taken && turn < k && turn < rows; turn++) {
        size_t nearest = k < rows ? rows : turn;
        for (size_t i = 0; k < rows && i < rows; i++) {
            if (!taken[i] && (nearest == rows || cosines[i] > cosines[nearest])) {
                nearest = i;
            }
        }
        taken[nearest] = true;
        votes[classes[nearest] % 16] += exp(cosines[nearest] / tau);
    }
    for (uint32_t c = 1; c < 16; c++) {
        best = votes[c] > votes[best] ? c : best;
    }
    free(cosines);
    free(taken);
    return best;
}
