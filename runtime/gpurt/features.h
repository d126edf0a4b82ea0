// SPDX-License-Identifier: Apache-2.0
// What a trained network has learnt, told by what it makes of samples before its last layers:
// nearest neighbours, a linear layer trained on it, or the numbers themselves.
//
//     bank      samples with known classes      x, y of the file
//     queries   samples to be classified        test/x, test/y where the file has them, else a part
//                                               of x and y that the bank then lacks
#ifndef GRT_FEATURES_H
#define GRT_FEATURES_H

#include "comm.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

// Rows of numbers, and their classes where they are known.
struct grt_features {
    uint64_t rows, width;
    float *x;           // [rows][width]
    uint32_t *classes;  // [rows], or NULL
};
GRT_API void grt_features_finish(struct grt_features *features);

// Which samples, and what is measured besides.
struct grt_features_desc {
    const struct grt_archive *model;
    // Where the data are and how they are read; `inputs` and `targets` name the bank.
    const struct grt_config *config;
    bool pixels;         // also the samples themselves
    bool drawn;          // the network as it was drawn, before it learnt anything
    bool (*stop)(void);  // ends it, with false and no sentence; may be NULL
    // Several ranks that take them together: each brings its own batches through the network, and
    // all get all. NULL: alone.
    struct grt_comm *comm;
    // Asked behind each batch, on every rank as often: whether all go on, behind what this rank
    // says of itself. NULL: it goes on where this rank can.
    bool (*meet)(void *context, bool good);
    void *context;
};
struct grt_features_of {
    struct grt_features bank, queries;      // of the network
    struct grt_features bank_x, queries_x;  // the samples themselves, where they are wanted
};
// False with the sentence: GRT_BAD_DATA where the file has no classes.
GRT_API bool grt_features_take(struct grt_dev *dev, const struct grt_features_desc *desc,
                               struct grt_features_of *of);
GRT_API void grt_features_of_finish(struct grt_features_of *of);
// Whether the file of a config has classes for it.
GRT_API bool grt_features_labelled(const struct grt_config *config);

// Every sample of a file, in its order: tensors "embedding" [N][width] f32 and, where the file has
// classes, "class" [N] u32. NULL with the sentence.
GRT_API struct grt_archive *grt_features_archive(struct grt_dev *dev,
                                                 const struct grt_archive *model,
                                                 const struct grt_config *config,
                                                 bool (*stop)(void));

// The share of the queries whose class the `k` rows of the bank with the largest cosines vote for,
// each with the weight exp(cosine / temperature). Products are the device's.
struct grt_knn_desc {
    uint32_t k;          // 0 means 200; no more than the bank has
    double temperature;  // 0 means 0.1
};
GRT_API bool grt_knn(struct grt_dev *dev, const struct grt_features *bank,
                     const struct grt_features *queries, const struct grt_knn_desc *desc,
                     double *accuracy);

// The share that a linear layer finds, trained on the bank, whose numbers get mean 0 and deviation
// 1 each, by cross-entropy.
struct grt_linear_probe_desc {
    uint32_t epochs;       // 0 means 100
    double learning_rate;  // of AdamW; 0 means 0.003
    uint64_t seed;
};
GRT_API bool grt_linear_probe(struct grt_dev *dev, const struct grt_features *bank,
                              const struct grt_features *queries,
                              const struct grt_linear_probe_desc *desc, double *accuracy);

#ifdef __cplusplus
}
#endif
#endif
