// SPDX-License-Identifier: Apache-2.0
// Attributes of the HDF5 files that gpurt writes. Each returns whether HDF5 took it.
#ifndef GRT_ATTRIBUTES_H
#define GRT_ATTRIBUTES_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#define GRT_ATTRIBUTE_MOST 60000  // bytes: HDF5 keeps attributes below 64 KiB

bool grt_attribute_put(hid_t file, const char *name, hid_t type, const void *value);
bool grt_attribute_put_text(hid_t file, const char *name, const char *text);
// Texts of one length, the shorter ones padded; `fits` (may be NULL) is false, and nothing written,
// where they are too long for an attribute.
bool grt_attribute_put_texts(hid_t file, const char *name, const char *const *texts, uint32_t count,
                             bool *fits);

#endif
