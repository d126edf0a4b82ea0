// SPDX-License-Identifier: Apache-2.0
// Safetensors files in and out. The form:
//
//     | length of the header, 8 bytes | header, JSON | elements of all tensors, without gaps |
//     {"__metadata__": {text: text}, NAME: {"dtype": "F32", "shape": [6], "data_offsets": [0, 24]}}
//
// Everything is checked before anything is allocated: the header's length against the file's, types
// and shapes against offsets, offsets against each other (no gap, no overlap) and against the
// file's end.
#ifndef GRT_SAFETENSORS_H
#define GRT_SAFETENSORS_H

#include "archive.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_SAFETENSORS_MAX_HEADER 16777216  // bytes; that of 16384 tensors has 4 MB

// Names are kept as they are; values become texts of __metadata__.
GRT_API bool grt_safetensors_save(const struct grt_archive *archive, const char *path);
// NULL with path and reason (GRT_NO_INPUT, GRT_BAD_DATA).
GRT_API struct grt_archive *grt_safetensors_load(const char *path);
// The same of bytes in memory; `path` only names them in messages.
GRT_API struct grt_archive *grt_safetensors_parse(const char *path, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
