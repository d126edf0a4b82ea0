// SPDX-License-Identifier: Apache-2.0
// Checkpoints: archives as HDF5 files that h5py reads, and a folder of them.
//
//     /model/layers.0/weight      a data set; its attribute "name" is PyTorch's state_dict name
//     /model/layers.0/bias        "layers.0.weight"; "digest" is that of its bytes
//     /optimizer/...              f16 is IEEE half; bf16 is uint16 with attribute "dtype" = "bf16"
//     attributes of /             schema, values, and a digest over names, shapes, digests, values
//
// A file is made in memory, written under a temporary name, brought to the disk and renamed, and
// then the folder is brought to the disk: whoever looks finds the old one or the new one, whole. A
// file counts as whole only when every digest is right, since HDF5 reads many a damaged file
// without complaint.
//
//     FOLDER/step-000000001200.h5   the newest `keep` of them
//     FOLDER/best.h5                and what else the program saves under a name of its own
#ifndef GRT_CHECKPOINT_H
#define GRT_CHECKPOINT_H

#include "archive.h"

#ifdef __cplusplus
extern "C" {
#endif

// Replaces the file or leaves what was there, with path and reason: GRT_NO_OUTPUT when it cannot be
// created, GRT_IO when it cannot be written (a full disk, say).
GRT_API bool grt_checkpoint_save(const struct grt_archive *archive, const char *path);
// All of it, with every digest checked; NULL with path and reason otherwise (GRT_NO_INPUT when it
// cannot be read, GRT_BAD_DATA when it is damaged or no checkpoint).
GRT_API struct grt_archive *grt_checkpoint_load(const char *path);

struct grt_checkpoint_dir {
    const char *dir;  // made when missing
    uint32_t keep;    // newest files that stay; 0: all
    // A second name for what is saved, in the folder, or NULL. Where the file system has no such
    // names, or a file of other permissions has that one, it is not made.
    const char *twin;
};
// Saves as the checkpoint of a step and removes the oldest ones beyond `keep`, and what killed
// processes left half written.
GRT_API bool grt_checkpoint_store(const struct grt_checkpoint_dir *dir,
                                  const struct grt_archive *archive, uint64_t step);
// The newest whole one of a folder; a damaged newer one is passed over with a warning. NULL when
// there is none (GRT_NO_INPUT).
GRT_API struct grt_archive *grt_checkpoint_newest(const char *dir);
// Writes the path of a step's file; false when it is too long.
GRT_API bool grt_checkpoint_path(const char *dir, uint64_t step, char *path, size_t capacity);
// Whether a folder has any checkpoint, whole or not.
GRT_API bool grt_checkpoint_any(const char *dir);
// Moves all of them, and best.h5, to a new folder inside it, earlier-1, earlier-2, ..., whose path
// is written.
GRT_API bool grt_checkpoint_set_aside(const char *dir, char *path, size_t capacity);
// Removes what killed processes left half written of a file.
GRT_API void grt_checkpoint_clean(const char *path);
// Makes a folder, and its parents, when missing.
GRT_API bool grt_checkpoint_make_dir(const char *dir);

#ifdef __cplusplus
}
#endif
#endif
