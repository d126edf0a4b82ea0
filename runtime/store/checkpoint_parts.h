// SPDX-License-Identifier: Apache-2.0
// Inside runtime/store: what writing and reading of checkpoints share.
#ifndef GRT_CHECKPOINT_PARTS_H
#define GRT_CHECKPOINT_PARTS_H

#include <hdf5.h>

#include "gpurt/checkpoint.h"

#define CHECKPOINT_SCHEMA "gpurt.checkpoint/1"

// Behind the HDF5 file, where HDF5 does not look: the digest of all bytes before. A damaged file is
// found by it before HDF5 reads a single address in it; a file that another program wrote anew has
// none. The first kind is of older versions, by grt_digest(): half of the 350 ms that a file of 90
// MB took.
#define CHECKPOINT_SEAL "gpurt-digest-2\n"
#define CHECKPOINT_SEAL_1 "gpurt-digest-1\n"
struct checkpoint_seal {
    char magic[16];
    unsigned char digest[8];  // little-endian
};

// HDF5's own lines on stderr are switched off while a call of ours runs.
struct checkpoint_errors {
    H5E_auto2_t fn;
    void *data;
};
struct checkpoint_errors checkpoint_errors_off(void);
void checkpoint_errors_restore(const struct checkpoint_errors *before);

// The type that elements have in a file; closed by the caller.
hid_t checkpoint_file_type(enum grt_dtype dtype);
// Where a tensor lies: "model/layers.0.weight" is the data set "weight" in group "model/layers.0",
// and its state_dict name is "layers.0.weight".
struct checkpoint_place {
    char group[GRT_ARCHIVE_NAME + 2];  // "/model/layers.0", "/" at least
    char leaf[GRT_ARCHIVE_NAME];
    const char *name;  // within the tensor's own name
};
struct checkpoint_place checkpoint_place(const char *name);

// Of everything in an archive that a file must give back; the order does not matter, since HDF5
// lists by name. Each tensor's own digest lies in `digests`.
uint64_t checkpoint_digest(const struct grt_archive *archive, const uint64_t *digests);

// grt_checkpoint_save() with a second name, or NULL: see whole_file.h.
bool checkpoint_save(const struct grt_archive *archive, const char *path, const char *twin);

#endif
