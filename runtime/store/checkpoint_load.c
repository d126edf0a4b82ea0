// SPDX-License-Identifier: Apache-2.0
// Reading a checkpoint. The file is read into memory first, and HDF5 sees only that; objects that
// would make it open other files (external storage, virtual data sets, links to elsewhere) are
// refused, and no tensor can be larger than the file, so a small file cannot ask for much memory.
//
// A damaged file can make the library crash, hang, or lose count of what it has open. So a child
// reads it first and leaves its verdict in memory that both see; the process itself reads only what
// went well there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cache.h"
#include "base/digest.h"
#include "base/child.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/whole_file.h"
#include "checkpoint_parts.h"

#define MAX_FILE ((uint64_t)1 << 40)
#define MAX_DEPTH (GRT_ARCHIVE_PARTS + 1)  // of groups, the root among them
#define TRIAL_SECONDS 300.0
#define MAX_LINKS (4 * GRT_ARCHIVE_MAX_TENSORS)  // groups may be their own members

// How reading ended: the first reason, whoever found it.
struct verdict {
    enum grt_status status;
    char text[2 * GRT_ARCHIVE_NAME + 128];
};

struct loader {
    struct grt_archive *archive;
    struct verdict *verdict;
    uint64_t left;      // bytes that tensors may still have
    uint64_t *digests;  // of the tensors, as the file says
    uint32_t depth;
    uint32_t links;
    char at[2 * GRT_ARCHIVE_NAME];  // path within the file: "model/layers.0"
};

static bool damaged(const struct loader *l, const char *what) {
    if (l->verdict->status == GRT_OK) {
        l->verdict->status = GRT_BAD_DATA;
        snprintf(l->verdict->text, sizeof l->verdict->text, "%s%s%s", what, l->at[0] ? " at " : "",
                 l->at);
    }
    return false;
}

// ---- attributes ----

static bool is_scalar(hid_t attribute) {
    hid_t space = H5Aget_space(attribute);
    bool scalar = H5Sget_simple_extent_type(space) == H5S_SCALAR;
    H5Sclose(space);
    return scalar;
}

// A text of fixed length; freed by the caller.
static char *attribute_text(hid_t attribute) {
    hid_t type = H5Aget_type(attribute);
    size_t size = H5Tget_size(type);
    char *text = NULL;
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && is_scalar(attribute) &&
        size <= GRT_ARCHIVE_MAX_TEXT + 1) {
        text = calloc(1, size + 1);
        if (text && H5Aread(attribute, type, text) < 0) {
            free(text);
            text = NULL;
        }
    }
    H5Tclose(type);
    return text;
}

static bool attribute_digest(hid_t object, uint64_t *digest) {
    hid_t attribute = H5Aexists(object, "digest") > 0 ? H5Aopen(object, "digest", H5P_DEFAULT) : -1;
    if (attribute < 0) {
        return false;
    }
    hid_t type = H5Aget_type(attribute);
    bool good = is_scalar(attribute) && H5Tequal(type, H5T_STD_U64LE) > 0 &&
                H5Aread(attribute, H5T_NATIVE_UINT64, digest) >= 0;
    H5Tclose(type);
    H5Aclose(attribute);
    return good;
}

static char *named_text(hid_t object, const char *name) {
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    char *text = attribute >= 0 ? attribute_text(attribute) : NULL;
    if (attribute >= 0) {
        H5Aclose(attribute);
    }
    return text;
}

// An attribute of the root: a value, unless it is part of the head.
static herr_t read_value(hid_t object, const char *name, const H5A_info_t *info, void *context) {
    (void)info;
    struct loader *l = context;
    if (strcmp(name, "schema") == 0 || strcmp(name, "gpurt") == 0 || strcmp(name, "digest") == 0) {
        return 0;
    }
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0) {
        return -1;
    }
    hid_t type = H5Aget_type(attribute);
    bool good = false;
    int64_t whole = 0;
    double real = 0;
    if (H5Tequal(type, H5T_STD_I64LE) > 0 && is_scalar(attribute)) {
        good = H5Aread(attribute, H5T_NATIVE_INT64, &whole) >= 0 &&
               grt_archive_set_whole(l->archive, name, whole);
    } else if (H5Tequal(type, H5T_IEEE_F64LE) > 0 && is_scalar(attribute)) {
        good = H5Aread(attribute, H5T_NATIVE_DOUBLE, &real) >= 0 &&
               grt_archive_set_real(l->archive, name, real);
    } else {
        char *text = attribute_text(attribute);
        good = text && grt_archive_set_text(l->archive, name, text);
        free(text);
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return good ? 0 : -1;
}

// ---- tensors ----

// The type that "dtype" names, if elements in the file have it.
static enum grt_dtype dtype_of(hid_t set) {
    char *text = named_text(set, "dtype");
    hid_t type = H5Dget_type(set);
    enum grt_dtype found = GRT_DTYPE_COUNT;
    for (uint32_t i = 0; text && i < GRT_DTYPE_COUNT; i++) {
        hid_t ours = checkpoint_file_type((enum grt_dtype)i);
        if (strcmp(text, grt_dtype_text((enum grt_dtype)i)) == 0 && H5Tequal(type, ours) > 0) {
            found = (enum grt_dtype)i;
        }
        H5Tclose(ours);
    }
    H5Tclose(type);
    free(text);
    return found;
}

// Stored inside this file, in one piece.
static bool plain_storage(hid_t set) {
    hid_t creation = H5Dget_create_plist(set);
    H5D_layout_t layout = H5Pget_layout(creation);
    bool plain = H5Pget_external_count(creation) == 0 && H5Pget_nfilters(creation) == 0 &&
                 (layout == H5D_CONTIGUOUS || layout == H5D_COMPACT);
    H5Pclose(creation);
    return plain;
}

// "model/layers.0/weight" whose state_dict name is "layers.0.weight" is "model/layers.0.weight".
static bool full_name(const struct loader *l, const char *name, char full[GRT_ARCHIVE_NAME]) {
    size_t path = strlen(l->at);
    size_t tail = strlen(name);
    if (tail > path || tail == 0) {
        return false;
    }
    int length = snprintf(full, GRT_ARCHIVE_NAME, "%.*s%s", (int)(path - tail), l->at, name);
    if (length < 0 || length >= GRT_ARCHIVE_NAME) {
        return false;
    }
    struct checkpoint_place place = checkpoint_place(full);
    char back[2 * GRT_ARCHIVE_NAME + 4];
    snprintf(back, sizeof back, "%s%s%s", place.group, place.group[1] ? "/" : "", place.leaf);
    return strcmp(back + 1, l->at) == 0;
}

static bool read_shape(hid_t set, uint32_t *rank, uint64_t *shape) {
    hid_t space = H5Dget_space(set);
    hsize_t sizes[GRT_MAX_RANK] = {0};
    int dims = H5Sget_simple_extent_ndims(space);
    H5S_class_t class = H5Sget_simple_extent_type(space);
    bool good = dims >= 0 && dims <= GRT_MAX_RANK && (class == H5S_SIMPLE || class == H5S_SCALAR) &&
                (dims == 0 || H5Sget_simple_extent_dims(space, sizes, NULL) == dims);
    H5Sclose(space);
    *rank = good ? (uint32_t)dims : 0;
    for (uint32_t i = 0; i < *rank; i++) {
        shape[i] = sizes[i];
    }
    return good;
}

// Whether a tensor of this shape can lie in what is left of the file.
static bool shape_fits(const struct loader *l, enum grt_dtype dtype, uint32_t rank,
                       const uint64_t *shape) {
    uint64_t bytes = grt_dtype_size(dtype);
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] != 0 && bytes > l->left / shape[i]) {
            return false;
        }
        bytes *= shape[i];
    }
    return bytes <= l->left;
}

static bool read_tensor(struct loader *l, hid_t set) {
    uint32_t rank = 0;
    uint64_t shape[GRT_MAX_RANK] = {0};
    char full[GRT_ARCHIVE_NAME];
    uint64_t digest = 0;
    enum grt_dtype dtype = dtype_of(set);
    if (dtype == GRT_DTYPE_COUNT || !plain_storage(set) || !read_shape(set, &rank, shape)) {
        return damaged(l, "a data set that gpurt does not write");
    }
    char *name = named_text(set, "name");
    bool named = name && full_name(l, name, full);
    free(name);
    if (!named || !attribute_digest(set, &digest)) {
        return damaged(l, "a data set without its name or digest");
    }
    if (!shape_fits(l, dtype, rank, shape)) {
        return damaged(l, "a data set larger than the file");
    }
    struct grt_archive_tensor *t = grt_archive_add(l->archive, full, dtype, rank, shape, NULL);
    if (!t) {
        return false;
    }
    l->left -= t->bytes;
    l->digests[l->archive->tensor_count - 1] = digest;
    hid_t type = checkpoint_file_type(dtype);
    bool read = t->bytes == 0 || H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->data) >= 0;
    H5Tclose(type);
    if (!read) {
        return damaged(l, "a data set that cannot be read");
    }
    return grt_digest(t->data, t->bytes, 0) == digest ||
           damaged(l, "a tensor whose digest is wrong");
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *context);

static bool read_object(struct loader *l, hid_t object) {
    hsize_t index = 0;
    switch (H5Iget_type(object)) {
    case H5I_GROUP:
        if (++l->depth > MAX_DEPTH) {
            return damaged(l, "groups nested too deep");
        }
        bool good = H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, &index, visit, l) >= 0;
        l->depth--;
        return good;
    case H5I_DATASET:
        return read_tensor(l, object);
    default:
        return damaged(l, "an object that gpurt does not write");
    }
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    struct loader *l = context;
    size_t length = strlen(l->at);
    if (++l->links > MAX_LINKS || info->type != H5L_TYPE_HARD ||
        length + strlen(name) + 2 > sizeof l->at) {
        return damaged(l, "a link that gpurt does not write") ? 0 : -1;
    }
    snprintf(l->at + length, sizeof l->at - length, "%s%s", length ? "/" : "", name);
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    bool good =
        object >= 0 ? read_object(l, object) : damaged(l, "an object that cannot be opened");
    if (object >= 0) {
        H5Oclose(object);
    }
    l->at[length] = '\0';
    return good ? 0 : -1;
}

// ---- the file ----

static bool read_file(struct loader *l, hid_t file) {
    uint64_t digest = 0;
    hsize_t index = 0;
    char *schema = named_text(file, "schema");
    bool known = schema && strcmp(schema, CHECKPOINT_SCHEMA) == 0;
    free(schema);
    if (!known) {
        return damaged(l, "no checkpoint of gpurt (attribute schema is not " CHECKPOINT_SCHEMA ")");
    }
    if (!attribute_digest(file, &digest) ||
        H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, &index, read_value, l) < 0) {
        return damaged(l, "an attribute that gpurt does not write");
    }
    hid_t root = H5Oopen(file, "/", H5P_DEFAULT);
    bool good = root >= 0 && read_object(l, root);
    if (root >= 0) {
        H5Oclose(root);
    }
    return good && (checkpoint_digest(l->archive, l->digests) == digest ||
                    damaged(l, "tensors or values are missing or changed: the digest is wrong"));
}

// False when the file has a seal and its bytes have another digest.
static bool seal_holds(const unsigned char *bytes, uint64_t *size) {
    struct checkpoint_seal seal;
    uint64_t digest = 0;
    if (*size < sizeof seal) {
        return true;
    }
    memcpy(&seal, bytes + *size - sizeof seal, sizeof seal);
    bool wide = memcmp(seal.magic, CHECKPOINT_SEAL, sizeof seal.magic) == 0;
    if (!wide && memcmp(seal.magic, CHECKPOINT_SEAL_1, sizeof seal.magic) != 0) {
        return true;
    }
    *size -= sizeof seal;
    for (uint32_t i = 0; i < 8; i++) {
        digest |= (uint64_t)seal.digest[i] << 8 * i;
    }
    return (wide ? grt_digest_wide(bytes, *size) : grt_digest(bytes, *size, 0)) == digest;
}

static bool load_image(struct loader *l, void *image, uint64_t size) {
    if (!seal_holds(image, &size)) {
        return damaged(l, "damaged: the digest of the file is wrong");
    }
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    bool good =
        H5Pset_fapl_core(access, 1u << 20, 0) >= 0 && H5Pset_file_image(access, image, size) >= 0;
    // HDF5 refuses an image under the name of a file that exists; this one cannot.
    hid_t file = good ? H5Fopen("/dev/null/image", H5F_ACC_RDONLY, access) : -1;
    good = file >= 0 ? read_file(l, file) : damaged(l, "no HDF5 file, or damaged");
    if (file >= 0) {
        H5Fclose(file);
    }
    H5Pclose(access);
    return good;
}

// What a file asks of the HDF5 library, once: into an archive, or for a trial into none that is
// kept.
struct load {
    void *image;
    uint64_t size;
    struct verdict *verdict;
    struct grt_archive *archive;
};

static void load(void *context) {
    struct load *load = context;
    bool before = grt_quiet(true);
    *load->verdict = (struct verdict){.status = GRT_OK};
    struct loader l = {
        .verdict = load->verdict, .left = load->size, .archive = grt_archive_create()};
    l.digests = calloc(GRT_ARCHIVE_MAX_TENSORS, sizeof *l.digests);
    grt_hdf5_enter();
    struct checkpoint_errors errors = checkpoint_errors_off();
    bool memory = l.archive && l.digests;
    bool good = memory && load_image(&l, load->image, load->size);
    checkpoint_errors_restore(&errors);
    grt_hdf5_leave();
    grt_quiet(before);
    if (!good) {
        grt_archive_destroy(&l.archive);
        // Not every failure is one of ours: HDF5 gives up, a name is none, a tensor comes twice.
        if (l.verdict->status == GRT_OK) {
            damaged(&l, memory ? "damaged" : "no host memory to read it");
            l.verdict->status = memory ? GRT_BAD_DATA : GRT_NO_MEMORY;
        }
    }
    free(l.digests);
    load->archive = l.archive;
}

struct grt_archive *grt_checkpoint_load(const char *path) {
    char how[160];
    if (!path) {
        grt_fail(GRT_INVALID, "a path is wanted");
        return NULL;
    }
    struct load work = {.image = NULL};
    work.image = grt_whole_file_read(path, MAX_FILE, &work.size);
    if (!work.image) {
        return NULL;
    }
    work.verdict =
        mmap(NULL, sizeof *work.verdict, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (work.verdict == MAP_FAILED) {
        grt_fail(GRT_NO_MEMORY, "no host memory to read %s", path);
        goto free_image;
    }
    if (!grt_child_survives(load, &work, TRIAL_SECONDS, how)) {
        grt_fail(GRT_BAD_DATA, "%s: damaged: the HDF5 library %s while it read it", path, how);
        goto free_verdict;
    }
    if (work.verdict->status == GRT_OK) {
        load(&work);
    }
    if (work.archive) {
        snprintf(work.archive->path, sizeof work.archive->path, "%.1023s", path);
    } else {
        grt_fail(work.verdict->status, "%s: %s", path, work.verdict->text);
    }
free_verdict:
    munmap(work.verdict, sizeof *work.verdict);
free_image:
    free(work.image);
    return work.archive;
}
