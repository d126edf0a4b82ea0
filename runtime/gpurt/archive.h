// SPDX-License-Identifier: Apache-2.0
// An archive: named tensors in host memory, and named values beside them. What a checkpoint and a
// safetensors file hold; both are loaded into one and saved from one.
//
//     tensor  "model/layers.0.weight"   [out][in] f32      a group, then PyTorch's state_dict name
//     tensor  "optimizer/layers.0.weight.exp_avg"
//     value   "step" = 1200   "loss" = 0.0173   "config" = "..."
#ifndef GRT_ARCHIVE_H
#define GRT_ARCHIVE_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_ARCHIVE_NAME 192       // bytes of a tensor's name, its end included
#define GRT_ARCHIVE_PARTS 31       // of a name, with slashes between them
#define GRT_ARCHIVE_VALUE_NAME 64  // of a value's name
#define GRT_ARCHIVE_MAX_TENSORS 16384
#define GRT_ARCHIVE_MAX_VALUES 1024
#define GRT_ARCHIVE_MAX_TEXT 60000  // bytes of a text value: HDF5 keeps attributes below 64 KiB

struct grt_archive_tensor {
    char name[GRT_ARCHIVE_NAME];
    enum grt_dtype dtype;
    uint32_t rank;  // 0: a scalar
    uint64_t shape[GRT_MAX_RANK];
    uint64_t bytes;
    void *data;  // belongs to the archive, unless it is lent
    bool lent;
};

#define GRT_ARCHIVE_VALUE_TYPES(X)                                                                 \
    X(WHOLE)                                                                                       \
    X(REAL)                                                                                        \
    X(TEXT)

enum grt_archive_value_type {
#define X(name) GRT_ARCHIVE_##name,
    GRT_ARCHIVE_VALUE_TYPES(X)
#undef X
};

struct grt_archive_value {
    char name[GRT_ARCHIVE_VALUE_NAME];
    enum grt_archive_value_type type;
    int64_t whole;
    double real;
    char *text;  // belongs to the archive
};

struct grt_archive {
    uint32_t tensor_count;
    struct grt_archive_tensor *tensors;  // in the order they were added
    uint32_t value_count;
    struct grt_archive_value *values;
    char path[1024];  // where it was loaded from, or ""
    // Called with `lender` when the archive is destroyed, and so the lent tensors are no longer
    // read; NULL: nothing is lent.
    void (*give_back)(void *lender);
    void *lender;
};

// NULL only when out of host memory.
GRT_API struct grt_archive *grt_archive_create(void);
GRT_API void grt_archive_destroy(struct grt_archive **archive);

// Adds a tensor and copies its elements; data NULL leaves them zero, to be filled through the
// result. NULL when the name is in use or not allowed (empty, "..", a byte below space), or out of
// memory.
GRT_API struct grt_archive_tensor *grt_archive_add(struct grt_archive *archive, const char *name,
                                                   enum grt_dtype dtype, uint32_t rank,
                                                   const uint64_t *shape, const void *data);
// Adds a tensor whose elements stay where they are, and are not changed, until the archive is
// destroyed.
GRT_API struct grt_archive_tensor *grt_archive_lend(struct grt_archive *archive, const char *name,
                                                    enum grt_dtype dtype, uint32_t rank,
                                                    const uint64_t *shape, void *data);
GRT_API struct grt_archive_tensor *grt_archive_find(const struct grt_archive *archive,
                                                    const char *name);

// Sets a value, replacing one of that name.
GRT_API bool grt_archive_set_whole(struct grt_archive *archive, const char *name, int64_t whole);
GRT_API bool grt_archive_set_real(struct grt_archive *archive, const char *name, double real);
GRT_API bool grt_archive_set_text(struct grt_archive *archive, const char *name, const char *text);
// NULL when there is none of that name.
GRT_API const struct grt_archive_value *grt_archive_value(const struct grt_archive *archive,
                                                          const char *name);
// The value, or `otherwise` when there is none of that name and type.
GRT_API int64_t grt_archive_whole(const struct grt_archive *archive, const char *name,
                                  int64_t otherwise);
GRT_API double grt_archive_real(const struct grt_archive *archive, const char *name,
                                double otherwise);
GRT_API const char *grt_archive_text(const struct grt_archive *archive, const char *name,
                                     const char *otherwise);

// Copies a device's tensor into the archive under this name, after all that is queued.
GRT_API bool grt_archive_take(struct grt_archive *archive, const char *name,
                              const struct grt_tensor *tensor);
// Whether the archive has a tensor of this name, type and shape; else false with GRT_BAD_DATA and a
// sentence that names both shapes.
GRT_API bool grt_archive_fits(const struct grt_archive *archive, const char *name,
                              enum grt_dtype dtype, uint32_t rank, const uint64_t *shape);
// Copies the archive's tensor of this name to the device, where it fits.
GRT_API bool grt_archive_give(const struct grt_archive *archive, const char *name,
                              const struct grt_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
