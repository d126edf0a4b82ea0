// SPDX-License-Identifier: Apache-2.0
// Trained models in files, by the end of the name: checkpoints (.h5, .hdf5), safetensors, where
// tensors have the names that PyTorch's load_state_dict() wants, and ONNX, whose networks
// become lists of layers.
//
//     checkpoint     model/layers.0.weight   data/mean   normalizer/...   optimizer/...   state/...
//                    worlds/...
//     safetensors    layers.0.weight         data/mean   normalizer/...   with `all`, full names
#ifndef GRT_MODEL_FILE_H
#define GRT_MODEL_FILE_H

#include "archive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum grt_model_form {
    GRT_MODEL_UNKNOWN,
    GRT_MODEL_CHECKPOINT,
    GRT_MODEL_SAFETENSORS,
    GRT_MODEL_ONNX
};

GRT_API enum grt_model_form grt_model_form(const char *path);
// Who made what an archive holds, and the same in words: "a policy of `gpurt train es` for
// 'cartpole'".
enum grt_model_maker {
    GRT_MODEL_OF_OTHERS,  // or nothing says so
    GRT_MODEL_OF_SUPERVISED,
    GRT_MODEL_OF_ES,
    GRT_MODEL_OF_PPO
};
#define GRT_MODEL_TEXT 160
GRT_API enum grt_model_maker grt_model_maker(const struct grt_archive *archive,
                                             char text[GRT_MODEL_TEXT]);
// With the names of a checkpoint, whatever the form; one of unknown form is taken for a checkpoint.
// NULL with the sentence.
GRT_API struct grt_archive *grt_model_load(const char *path);
// *left gets the tensors that only going on with the training needs and that stayed behind. False
// with the sentence.
GRT_API bool grt_model_save(const struct grt_archive *archive, const char *path, bool all,
                            uint32_t *left);

#ifdef __cplusplus
}
#endif
#endif
