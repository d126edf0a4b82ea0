// SPDX-License-Identifier: Apache-2.0
// Trained models in files, by the end of the name: checkpoints (.h5, .hdf5), safetensors, where
// tensors have the names that PyTorch's load_state_dict() wants, and ONNX, whose networks
// become lists of layers.
//
//     checkpoint     model/layers.0.weight   data/mean   normalizer/...   optimizer/...   state/...
//                    worlds/...
//     safetensors    layers.0.weight         data/mean   normalizer/...   with `all`, full names
#ifndef APPS_MODEL_FILE_H
#define APPS_MODEL_FILE_H

#include <stdbool.h>

#include "gpurt/archive.h"

enum model_form { MODEL_UNKNOWN, MODEL_CHECKPOINT, MODEL_SAFETENSORS, MODEL_ONNX };

enum model_form model_file_form(const char *path);
// With the names of a checkpoint, whatever the form; one of unknown form is taken for a checkpoint.
// NULL with the sentence.
struct grt_archive *model_file_load(const char *path);
// *left gets the tensors that only going on with the training needs and that stayed behind. False
// with the sentence.
bool model_file_save(const struct grt_archive *archive, const char *path, bool all, uint32_t *left);

#endif
