// SPDX-License-Identifier: Apache-2.0
// Writing a checkpoint; checkpoint_load.c reads, checkpoint_dir.c keeps a folder of them. The HDF5
// file is made in memory (core driver) and written by us: on a full disk the library's own writing
// fails and its close and flush return success all the same.
#include "gpurt/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/digest.h"
#include "gpurt/gpurt.h"
#include "base/log.h"
#include "base/pages.h"
#include "base/thread.h"
#include "base/whole_file.h"
#include "checkpoint_parts.h"

#define GROWTH (1u << 20)  // steps in which HDF5 asks for the memory of a file
#define MANY_BYTES (8u << 20)
#define HEAD_BYTES 4096u  // what HDF5 says of a tensor, about

// ---- what both directions share ----

struct checkpoint_errors checkpoint_errors_off(void) {
    struct checkpoint_errors before = {0};
    H5Eget_auto2(H5E_DEFAULT, &before.fn, &before.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return before;
}

void checkpoint_errors_restore(const struct checkpoint_errors *before) {
    H5Eset_auto2(H5E_DEFAULT, before->fn, before->data);
}

// IEEE half, which h5py and NumPy call float16.
static hid_t half_type(void) {
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    if (H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || H5Tset_ebias(type, 15) < 0 ||
        H5Tset_size(type, 2) < 0) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

hid_t checkpoint_file_type(enum grt_dtype dtype) {
    switch (dtype) {
    case GRT_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case GRT_F16:
        return half_type();
    case GRT_BF16:
        return H5Tcopy(H5T_STD_U16LE);
    case GRT_U32:
        return H5Tcopy(H5T_STD_U32LE);
    case GRT_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case GRT_I8:
        return H5Tcopy(H5T_STD_I8LE);
    case GRT_U8:
        return H5Tcopy(H5T_STD_U8LE);
    case GRT_DTYPE_COUNT:
        break;
    }
    return -1;
}

struct checkpoint_place checkpoint_place(const char *name) {
    struct checkpoint_place place;
    const char *slash = strrchr(name, '/');
    place.name = slash ? slash + 1 : name;
    const char *dot = strrchr(place.name, '.');
    // A name that ends or begins with its only dot is a leaf as it is.
    const char *cut = dot && dot > place.name && dot[1] ? dot : slash;
    snprintf(place.group, sizeof place.group, "/%.*s", (int)(cut ? cut - name : 0), name);
    snprintf(place.leaf, sizeof place.leaf, "%s", cut ? cut + 1 : name);
    return place;
}

static uint64_t value_digest(const struct grt_archive_value *value) {
    uint64_t digest = grt_digest(value->name, strlen(value->name) + 1, 0);
    switch (value->type) {
    case GRT_ARCHIVE_WHOLE:
        return grt_digest(&value->whole, sizeof value->whole, digest);
    case GRT_ARCHIVE_REAL:
        return grt_digest(&value->real, sizeof value->real, digest);
    case GRT_ARCHIVE_TEXT:
        return grt_digest(value->text, strlen(value->text) + 1, digest);
    }
    return digest;
}

uint64_t checkpoint_digest(const struct grt_archive *archive, const uint64_t *digests) {
    uint64_t sum = ((uint64_t)archive->tensor_count << 32) + archive->value_count;
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *t = &archive->tensors[i];
        uint32_t head[2] = {(uint32_t)t->dtype, t->rank};
        uint64_t digest = grt_digest(t->name, strlen(t->name) + 1, digests[i]);
        digest = grt_digest(head, sizeof head, digest);
        sum += grt_digest(t->shape, t->rank * sizeof *t->shape, digest);
    }
    for (uint32_t i = 0; i < archive->value_count; i++) {
        sum += value_digest(&archive->values[i]);
    }
    return sum;
}

// ---- writing ----

static bool write_attribute(hid_t object, const char *name, hid_t file_type, hid_t memory_type,
                            const void *value) {
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, memory_type, value) >= 0;
    if (attribute >= 0) {
        H5Aclose(attribute);
    }
    H5Sclose(space);
    return good;
}

static bool write_text(hid_t object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    bool good = H5Tset_size(type, strlen(text) + 1) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
                write_attribute(object, name, type, type, text);
    H5Tclose(type);
    return good;
}

static bool write_digest(hid_t object, uint64_t digest) {
    return write_attribute(object, "digest", H5T_STD_U64LE, H5T_NATIVE_UINT64, &digest);
}

// How tensors are made, for all of a file: to make these lists anew for each took longer than a
// small tensor.
struct making {
    hid_t file, links, creation;
};

static bool write_tensor(const struct making *m, const struct grt_archive_tensor *tensor,
                         uint64_t digest) {
    struct checkpoint_place place = checkpoint_place(tensor->name);
    char path[2 * GRT_ARCHIVE_NAME + 4];
    hsize_t shape[GRT_MAX_RANK] = {0};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        shape[i] = tensor->shape[i];
    }
    snprintf(path, sizeof path, "%s%s%s", place.group, place.group[1] ? "/" : "", place.leaf);
    hid_t space =
        tensor->rank ? H5Screate_simple((int)tensor->rank, shape, NULL) : H5Screate(H5S_SCALAR);
    hid_t type = checkpoint_file_type(tensor->dtype);
    hid_t set = H5Dcreate2(m->file, path, type, space, m->links, m->creation, H5P_DEFAULT);
    bool good = set >= 0 &&
                (tensor->bytes == 0 ||
                 H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor->data) >= 0) &&
                write_text(set, "name", place.name) &&
                write_text(set, "dtype", grt_dtype_text(tensor->dtype)) &&
                write_digest(set, digest);
    if (set >= 0) {
        H5Dclose(set);
    }
    H5Tclose(type);
    H5Sclose(space);
    return good || grt_fail(GRT_INVALID, "HDF5 cannot hold tensor %s", tensor->name);
}

static bool write_value(hid_t file, const struct grt_archive_value *value) {
    bool good = false;
    switch (value->type) {
    case GRT_ARCHIVE_WHOLE:
        good = write_attribute(file, value->name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value->whole);
        break;
    case GRT_ARCHIVE_REAL:
        good = write_attribute(file, value->name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value->real);
        break;
    case GRT_ARCHIVE_TEXT:
        good = write_text(file, value->name, value->text);
        break;
    }
    return good || grt_fail(GRT_INVALID, "HDF5 cannot hold value %s", value->name);
}

// Of each tensor; freed by the caller.
static uint64_t *digests_of(const struct grt_archive *archive) {
    uint32_t count = archive->tensor_count;
    uint64_t *digests = calloc(count + 1, sizeof *digests);
    struct grt_bytes *bytes = calloc(count + 1, sizeof *bytes);
    if (!digests || !bytes) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a checkpoint");
        free(digests);
        free(bytes);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (struct grt_bytes){archive->tensors[i].data, archive->tensors[i].bytes};
    }
    grt_digest_each(bytes, count, digests);
    free(bytes);
    return digests;
}

static bool write_all(hid_t file, const struct grt_archive *archive) {
    uint64_t *digests = digests_of(archive);
    if (!digests) {
        return false;
    }
    struct making m = {file, H5Pcreate(H5P_LINK_CREATE), H5Pcreate(H5P_DATASET_CREATE)};
    // No times inside: equal archives make equal files.
    bool good = (H5Pset_create_intermediate_group(m.links, 1) >= 0 &&
                 H5Pset_obj_track_times(m.creation, 0) >= 0) ||
                grt_fail(GRT_NO_MEMORY, "HDF5 has no memory for a checkpoint");
    for (uint32_t i = 0; good && i < archive->tensor_count; i++) {
        good = write_tensor(&m, &archive->tensors[i], digests[i]);
    }
    H5Pclose(m.creation);
    H5Pclose(m.links);
    good = good && ((write_text(file, "schema", CHECKPOINT_SCHEMA) &&
                     write_text(file, "gpurt", grt_version()) &&
                     write_digest(file, checkpoint_digest(archive, digests))) ||
                    grt_fail(GRT_INVALID, "HDF5 cannot hold the head of a checkpoint"));
    for (uint32_t i = 0; good && i < archive->value_count; i++) {
        good = write_value(file, &archive->values[i]);
    }
    free(digests);
    return good;
}

// ---- the file in memory ----

// It lies in memory of ours, which HDF5 asks for more of: a copy of the 90 MB of a ResNet-18 with
// its optimizer, and pages for both, took a third of the time (Neoverse N1, 2026-11).
struct image {
    unsigned char *bytes;
    size_t size;   // of the file
    size_t asked;  // by HDF5, which writes that many
    size_t room;
};

static void *grow_image(void *bytes, size_t size, H5FD_file_image_op_t op, void *context) {
    struct image *image = context;
    (void)bytes;
    (void)op;
    if (size > image->room) {
        unsigned char *more = realloc(image->bytes, size);
        if (!more) {
            return NULL;
        }
        image->bytes = more;
        image->room = size;
    }
    image->asked = size;
    return image->bytes;
}

// What HDF5 would free stays.
static herr_t keep_image(void *bytes, H5FD_file_image_op_t op, void *context) {
    (void)bytes;
    (void)op;
    (void)context;
    return 0;
}

static void *same_context(void *context) {
    return context;
}

static herr_t keep_context(void *context) {
    (void)context;
    return 0;
}

// Of many bytes there is room at once, in large pages where the system has them. Where there is no
// memory for that nothing is said: HDF5 will ask.
static void prepare_image(struct image *image, const struct grt_archive *archive) {
    uint64_t bytes = (uint64_t)archive->tensor_count * HEAD_BYTES;
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        bytes += archive->tensors[i].bytes;
    }
    bytes = (bytes + GROWTH - 1) / GROWTH * GROWTH;
    image->bytes = bytes >= MANY_BYTES ? grt_pages_alloc(bytes) : NULL;
    image->room = image->bytes ? bytes : 0;
}

// The file as HDF5 makes it; image->bytes are freed by the caller, whatever happens.
static bool make_image(const struct grt_archive *archive, const char *path, struct image *image) {
    H5FD_file_image_callbacks_t ours = {.image_realloc = grow_image,
                                        .image_free = keep_image,
                                        .udata_copy = same_context,
                                        .udata_free = keep_context,
                                        .udata = image};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    bool good = false;
    prepare_image(image, archive);
    H5Pset_fapl_core(access, GROWTH, 0);
    // The library looks first whether there is such a file, and opens it: a pipe's reader would be
    // gone then. Below a device there never is one.
    hid_t file = H5Pset_file_image_callbacks(access, &ours) >= 0
                     ? H5Fcreate("/dev/null/in-memory", H5F_ACC_TRUNC, H5P_DEFAULT, access)
                     : -1;
    if (file < 0) {
        grt_fail(GRT_NO_MEMORY, "HDF5 cannot make a file in memory for %s", path);
        goto close_access;
    }
    if (write_all(file, archive)) {
        ssize_t length =
            H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? H5Fget_file_image(file, NULL, 0) : -1;
        good = (length > 0 && (size_t)length <= image->asked) ||
               grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
        image->size = good ? (size_t)length : 0;
    }
    H5Fclose(file);
close_access:
    H5Pclose(access);
    return good;
}

// The digest is made while the disk is at work.
static bool write_sealed(const char *path, const char *twin, const struct image *image) {
    struct grt_whole_file file;
    struct checkpoint_seal seal = {.magic = CHECKPOINT_SEAL};
    if (!grt_whole_file_open(&file, path)) {
        return false;
    }
    file.twin = twin;
    bool written = grt_whole_file_write(&file, image->bytes, image->size);
    uint64_t digest = grt_digest_wide(image->bytes, image->size);
    for (uint32_t i = 0; i < 8; i++) {
        seal.digest[i] = (unsigned char)(digest >> 8 * i);
    }
    written = written && grt_whole_file_write(&file, &seal, sizeof seal);
    return grt_whole_file_close(&file, written) && written;
}

bool checkpoint_save(const struct grt_archive *archive, const char *path, const char *twin) {
    struct image image = {0};
    if (!archive || !path) {
        return grt_fail(GRT_INVALID, "an archive and a path are wanted");
    }
    grt_hdf5_enter();
    struct checkpoint_errors before = checkpoint_errors_off();
    bool good = make_image(archive, path, &image);
    checkpoint_errors_restore(&before);
    grt_hdf5_leave();
    good = good && write_sealed(path, twin, &image);
    free(image.bytes);
    return good;
}

bool grt_checkpoint_save(const struct grt_archive *archive, const char *path) {
    return checkpoint_save(archive, path, NULL);
}
