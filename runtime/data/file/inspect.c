// SPDX-License-Identifier: Apache-2.0
// The HDF5 library's part, done in a child process (inspect_apart.c): it opens a file, says what is
// in it and where the bytes lie, and is closed. No element is ever read through it, so no filter
// plugin is loaded and no other file is opened: what could lead there (external storage, virtual
// data sets, links) is refused by its description, in the order in which asking is safe.
//
// Sizes are believed only as far as the file goes: every tile lies within it, all tiles together
// take no more bytes than it has, and deflate makes at most 1032 bytes of one. So a small file
// cannot ask for much memory.
#include "filter.h"
#include "hdf5_put.h"
#include "inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/log.h"

#define MAX_TILES (1u << 22)
// Tiles, from which on the list is kept for the next run: the library takes 1.7 s for 16,000 of
// them (1.10.8, where every question walks the index).
#define LIST_KEEP_FROM 2048

// ---- the file ----

static herr_t keep_innermost(unsigned n, const H5E_error2_t *error, void *text) {
    (void)n;
    char *into = text;
    if (into[0] == '\0' && error->desc) {
        snprintf(into, 160, "%s", error->desc);
    }
    return 0;
}

// What the library says was wrong, or "".
static const char *library_says(char text[160]) {
    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, text);
    return text;
}

bool grt_inspect_file(const char *path, struct grt_file *file, struct grt_fault *fault) {
    // A pipe must not make the call wait.
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0) {
        return grt_fault(fault, GRT_NO_INPUT, "cannot be opened: %s", strerror(errno));
    }
    struct stat state = {0};
    if (fstat(file->fd, &state) != 0 || !S_ISREG(state.st_mode)) {
        return grt_fault(fault, GRT_NO_INPUT,
                         S_ISDIR(state.st_mode) ? "is a folder: name a file in it; `gpurt data "
                                                  "import` makes one of a folder of images"
                                                : "is not a file");
    }
    file->bytes = (uint64_t)state.st_size;
    file->device = (uint64_t)state.st_dev;
    file->inode = (uint64_t)state.st_ino;
    file->changed = (int64_t)state.st_mtim.tv_sec;
    file->changed_ns = (int64_t)state.st_mtim.tv_nsec;
    return true;
}

// The library opens by name: what it has opened must be the file whose bytes we will read.
static bool same_file(hid_t id, hid_t access, const struct grt_file *file) {
    void *handle = NULL;
    struct stat state;
    return H5Fget_vfd_handle(id, access, &handle) >= 0 && handle &&
           fstat(*(int *)handle, &state) == 0 && (uint64_t)state.st_dev == file->device &&
           (uint64_t)state.st_ino == file->inode;
}

static bool plain_file(hid_t id, hid_t access, const struct grt_file *file,
                       struct grt_fault *fault) {
    if (!same_file(id, access, file)) {
        return grt_fault(fault, GRT_IO, "was replaced while it was being opened");
    }
    hsize_t user_block = 0;
    hid_t creation = H5Fget_create_plist(id);
    bool known = creation >= 0 && H5Pget_userblock(creation, &user_block) >= 0;
    H5Pclose(creation);
    if (!known || user_block > 0) {
        return grt_fault(fault, GRT_BAD_DATA,
                         "begins with a user block of %llu bytes; take it off with h5unjam",
                         (unsigned long long)user_block);
    }
    return true;
}

hid_t grt_inspect_open(const char *path, const struct grt_file *file, struct grt_fault *fault) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_sec2(access);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    hid_t id = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (id < 0) {
        char why[160];
        grt_fault(fault, GRT_BAD_DATA, "is not an HDF5 file that can be read: %s",
                  library_says(why));
    } else if (!plain_file(id, access, file, fault)) {
        H5Fclose(id);
        id = -1;
    }
    H5Pclose(access);
    return id;
}

// ---- one data set ----

#define MOST_LINKS 8  // one behind the other
#define NAME_SIZE 256

// A name leads to its data set through hard links, and soft ones, which are names of the same file;
// an external one opens another.
static bool links_are_known(hid_t file, const char *name, uint32_t depth, struct grt_fault *fault) {
    char path[NAME_SIZE], target[NAME_SIZE], whole[2 * NAME_SIZE + 2];
    size_t length = strlen(name);
    if (length >= sizeof path) {
        return grt_fault(fault, GRT_BAD_DATA, "a name of %zu characters", length);
    }
    for (size_t end = 1; end <= length; end++) {
        if (name[end] != '/' && name[end] != '\0') {
            continue;
        }
        memcpy(path, name, end);
        path[end] = '\0';
        H5L_info_t info;
        if (H5Lget_info(file, path, &info, H5P_DEFAULT) < 0 && depth > 0) {
            return grt_fault(fault, GRT_BAD_DATA, "a link leads to '%s', which is not there", name);
        }
        if (H5Lget_info(file, path, &info, H5P_DEFAULT) < 0) {
            return grt_fault(fault, GRT_BAD_DATA,
                             "has no data set '%s'; `gpurt data info` lists those that it has, "
                             "inputs and targets name the ones to use",
                             name);
        }
        if (info.type == H5L_TYPE_SOFT) {
            bool read = info.u.val_size > 1 && info.u.val_size <= sizeof target &&
                        H5Lget_val(file, path, target, sizeof target, H5P_DEFAULT) >= 0;
            if (!read || depth == MOST_LINKS) {
                return grt_fault(fault, GRT_BAD_DATA, "'%s' is a link that leads nowhere", path);
            }
            target[info.u.val_size - 1] = '\0';
            char *slash = strrchr(path, '/');
            size_t folder = target[0] == '/' || !slash ? 0 : (size_t)(slash - path) + 1;
            snprintf(whole, sizeof whole, "%.*s%s%s", (int)folder, path, target, name + end);
            return links_are_known(file, whole, depth + 1, fault);
        }
        if (info.type != H5L_TYPE_HARD) {
            return grt_fault(fault, GRT_BAD_DATA, "'%s' is %s link and not followed", path,
                             info.type == H5L_TYPE_EXTERNAL ? "an external" : "a user-defined");
        }
    }
    return true;
}

// A byte that is FALSE or TRUE.
static bool is_bool(hid_t type) {
    static const char *const names[] = {"FALSE", "TRUE"};
    bool is =
        H5Tget_class(type) == H5T_ENUM && H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2;
    for (unsigned i = 0; is && i < 2; i++) {
        char *name = H5Tget_member_name(type, i);
        int8_t value = -1;
        is = name && strcmp(name, names[i]) == 0 && H5Tget_member_value(type, i, &value) >= 0 &&
             value == (int8_t)i;
        H5free_memory(name);
    }
    return is;
}

static bool find_element(hid_t type, struct grt_element *element) {
    hid_t halves[2] = {grt_half_type(H5T_IEEE_F32LE), grt_half_type(H5T_IEEE_F32BE)};
    const hid_t types[GRT_ELEMENT_COUNT][2] = {
        [GRT_ELEMENT_F16] = {halves[0], halves[1]},
        [GRT_ELEMENT_F32] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE},
        [GRT_ELEMENT_F64] = {H5T_IEEE_F64LE, H5T_IEEE_F64BE},
        [GRT_ELEMENT_U8] = {H5T_STD_U8LE, H5T_STD_U8BE},
        [GRT_ELEMENT_I32] = {H5T_STD_I32LE, H5T_STD_I32BE},
        [GRT_ELEMENT_I64] = {H5T_STD_I64LE, H5T_STD_I64BE},
        [GRT_ELEMENT_I8] = {H5T_STD_I8LE, H5T_STD_I8BE},
        [GRT_ELEMENT_I16] = {H5T_STD_I16LE, H5T_STD_I16BE},
        [GRT_ELEMENT_U16] = {H5T_STD_U16LE, H5T_STD_U16BE},
        [GRT_ELEMENT_U32] = {H5T_STD_U32LE, H5T_STD_U32BE},
        [GRT_ELEMENT_BOOL] = {-1, -1},  // no type of the library
    };
    if (is_bool(type)) {
        *element = (struct grt_element){.type = GRT_ELEMENT_BOOL};
    }
    const union {
        uint16_t word;
        uint8_t first;
    } order = {1};
    bool big = order.first == 0, found = is_bool(type);
    for (int i = 0; !found && i < GRT_ELEMENT_BOOL; i++) {
        for (int k = 0; !found && k < 2; k++) {
            found = H5Tequal(type, types[i][k]) > 0;
            if (found) {
                element->type = (enum grt_element_type)i;
                element->swapped = (k == 1) != big && grt_element_size(element->type) > 1;
            }
        }
    }
    H5Tclose(halves[0]);
    H5Tclose(halves[1]);
    return found;
}

static bool multiply(uint64_t *product, uint64_t factor) {
    if (factor != 0 && *product > UINT64_MAX / factor) {
        return false;
    }
    *product *= factor;
    return true;
}

// The shape on three axes, and that all its bytes can be counted.
static bool read_shape(hid_t space, struct grt_array *array, struct grt_fault *fault) {
    hsize_t dims[GRT_DATA_MAX_RANK] = {0};
    int rank = H5Sget_simple_extent_ndims(space);
    if (H5Sget_simple_extent_type(space) != H5S_SIMPLE || rank < 1 || rank > GRT_DATA_MAX_RANK) {
        return grt_fault(fault, GRT_BAD_DATA,
                         "'%s' has %d axes; [N], [N][D], [N][P][D] and [N][H][W][C] can be read",
                         array->name, rank < 0 ? 0 : rank);
    }
    H5Sget_simple_extent_dims(space, dims, NULL);
    array->rank = (uint32_t)rank;
    array->shape[0] = dims[0];
    array->shape[1] = rank >= 3 ? dims[1] : 1;
    array->shape[2] = rank == 1 ? 1 : dims[rank - 1];
    array->width = array->shape[1];
    uint64_t bytes = grt_element_size(array->element.type);
    bool countable = true;
    if (rank == 4) {
        array->width = dims[2];
        countable = multiply(&array->shape[1], dims[2]);
    }
    for (int i = 0; i < 3; i++) {
        if (array->shape[i] == 0) {
            return grt_fault(fault, GRT_BAD_DATA, "'%s' has no rows or no columns", array->name);
        }
        countable = countable && multiply(&bytes, array->shape[i]);
    }
    return (countable && array->shape[1] * array->shape[2] <= UINT32_MAX / 8) ||
           grt_fault(fault, GRT_BAD_DATA,
                     "'%s' claims %llu rows of %llu x %llu elements, more than can be counted",
                     array->name, (unsigned long long)array->shape[0],
                     (unsigned long long)array->shape[1], (unsigned long long)array->shape[2]);
}

static bool too_large(const struct grt_array *array, uint64_t wanted, const struct grt_file *file,
                      struct grt_fault *fault) {
    return grt_fault(fault, GRT_BAD_DATA,
                     "'%s' claims %llu bytes and the file has %llu: it is truncated or damaged",
                     array->name, (unsigned long long)wanted, (unsigned long long)file->bytes);
}

static bool find_contiguous(hid_t set, const struct grt_file *file, struct grt_array *array,
                            struct grt_fault *fault) {
    memcpy(array->tile, array->shape, sizeof array->tile);
    array->tile_width = array->width;
    array->tile_bytes =
        array->shape[0] * array->shape[1] * array->shape[2] * grt_element_size(array->element.type);
    haddr_t offset = H5Dget_offset(set);
    if (offset == HADDR_UNDEF) {
        return grt_fault(fault, GRT_BAD_DATA, "'%s' was never written", array->name);
    }
    if (array->tile_bytes > file->bytes || offset > file->bytes - array->tile_bytes) {
        return too_large(array, array->tile_bytes, file, fault);
    }
    array->tiles = calloc(1, sizeof *array->tiles);
    if (!array->tiles) {
        return grt_fault(fault, GRT_NO_MEMORY, "no host memory");
    }
    array->tiles->offset = offset;
    array->grid[0] = array->grid[1] = array->grid[2] = 1;
    return true;
}

static bool filter_of(H5Z_filter_t id, enum grt_filter *filter) {
    static const struct {
        H5Z_filter_t id;
        enum grt_filter filter;
    } known[] = {{H5Z_FILTER_SHUFFLE, GRT_FILTER_SHUFFLE},
                 {H5Z_FILTER_DEFLATE, GRT_FILTER_DEFLATE},
                 {H5Z_FILTER_SZIP, GRT_FILTER_SZIP},
                 {GRT_FILTER_LZF_ID, GRT_FILTER_LZF}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].id == id) {
            *filter = known[i].filter;
            return true;
        }
    }
    return false;
}

static bool packed(const struct grt_array *array) {
    return array->filter_count > 0 && array->filters[array->filter_count - 1] != GRT_FILTER_SHUFFLE;
}

static bool read_filters(hid_t creation, struct grt_array *array, struct grt_fault *fault) {
    int count = H5Pget_nfilters(creation);
    for (int i = 0; i < count; i++) {
        unsigned flags = 0, config = 0;
        unsigned of[4] = {0};
        size_t values = 4;
        char name[64] = "";
        H5Z_filter_t id =
            H5Pget_filter2(creation, (unsigned)i, &flags, &values, of, sizeof name, name, &config);
        enum grt_filter filter = GRT_FILTER_SHUFFLE;
        bool known = filter_of(id, &filter), szip = known && filter == GRT_FILTER_SZIP;
        if (szip && !grt_filter_szip_found()) {
            return grt_fault(fault, GRT_BAD_DATA,
                             "'%s' uses the filter szip, and its library libsz is missing: install "
                             "it, or h5repack -f SHUF -f GZIP=4 elsewhere",
                             array->name);
        }
        known = known && (!szip || grt_filter_szip_usable(of));
        if (!known || packed(array) || array->filter_count == GRT_MAX_FILTERS) {
            name[sizeof name - 1] = '\0';
            for (char *c = name; *c; c++) {
                *c = (unsigned char)*c < ' ' || (unsigned char)*c > '~' ? '?' : *c;
            }
            return grt_fault(
                fault, GRT_BAD_DATA,
                "'%s' uses the filter %d%s%s%s; shuffle and then deflate, lzf or szip can "
                "be read: h5repack -f SHUF -f GZIP=4 makes it so",
                array->name, (int)id, *name ? " (" : "", name,
                !*name  ? ""
                : known ? ") in an unusual order"
                        : ")");
        }
        array->filters[array->filter_count++] = filter;
        if (szip) {
            memcpy(array->szip, of, sizeof array->szip);
        }
    }
    return true;
}

static uint64_t tiles_along(uint64_t extent, uint64_t tile) {
    return tile == 0 ? 0 : extent / tile + (extent % tile != 0);
}

// Shape of a tile and of the grid, and that the file can hold so many.
static bool read_chunk_shape(hid_t creation, const struct grt_file *file, struct grt_array *array,
                             struct grt_fault *fault) {
    hsize_t dims[GRT_DATA_MAX_RANK] = {0};
    if (H5Pget_chunk(creation, GRT_DATA_MAX_RANK, dims) != (int)array->rank) {
        return grt_fault(fault, GRT_BAD_DATA, "'%s' has chunks of another rank", array->name);
    }
    array->tile[0] = dims[0];
    array->tile[1] = array->rank >= 3 ? dims[1] : 1;
    array->tile[2] = array->rank == 1 ? 1 : dims[array->rank - 1];
    array->tile_width = array->tile[1];
    array->tile_bytes = grt_element_size(array->element.type);
    uint64_t count = 1, lines = array->shape[1] / array->width;
    bool countable = true;
    if (array->rank == 4) {
        array->tile_width = dims[2];
        countable = multiply(&array->tile[1], dims[2]);
    }
    for (int i = 0; i < 3; i++) {
        uint64_t tile = array->tile[i];
        array->grid[i] = tiles_along(array->shape[i], tile);
        if (i == 1 && array->rank == 4) {
            array->grid[i] = tiles_along(lines, dims[1]);
            countable = countable && multiply(&array->grid[i], tiles_along(array->width, dims[2]));
        }
        countable = countable && tile > 0 && multiply(&array->tile_bytes, tile) &&
                    multiply(&count, array->grid[i]);
    }
    // 4 GiB is HDF5's own limit.
    if (!countable || array->tile_bytes > UINT32_MAX || count > MAX_TILES) {
        return grt_fault(fault, GRT_BAD_DATA,
                         "'%s' claims %llu chunks of %llu bytes; %u chunks of up to 4 GiB can be "
                         "read: h5repack -l CHUNK= makes larger ones",
                         array->name, (unsigned long long)count,
                         (unsigned long long)array->tile_bytes, MAX_TILES);
    }
    uint64_t least = packed(array) ? array->tile_bytes / grt_filter_most(array) : array->tile_bytes;
    least = least > 0 ? least : 1;
    if (count > file->bytes / least) {
        return too_large(array, count * least, file, fault);
    }
    return true;
}

// Asked of each tile, wherever its place came from.
static bool tile_is_sound(const struct grt_array *array, uint64_t offset, uint64_t stored,
                          const struct grt_file *file) {
    bool plain = array->filter_count == 0;
    uint64_t most = plain ? 1 : grt_filter_most(array);
    return stored > 0 && stored <= UINT32_MAX && stored <= file->bytes &&
           offset <= file->bytes - stored && (!plain || stored == array->tile_bytes) &&
           array->tile_bytes <= stored * most + most;
}

static void list_key(const struct grt_file *file, const struct grt_array *array, char key[512]) {
    snprintf(key, 512, "gpurt tiles 1\n%llu %llu %llu %lld.%09lld\n%s",
             (unsigned long long)file->device, (unsigned long long)file->inode,
             (unsigned long long)file->bytes, (long long)file->changed, (long long)file->changed_ns,
             array->name);
}

static bool list_kept(const struct grt_file *file, struct grt_array *array) {
    char key[512];
    size_t size = 0;
    list_key(file, array, key);
    struct grt_tile *tiles = grt_cache_load(key, &size);
    bool good = tiles && size == grt_array_tiles(array) * sizeof *tiles;
    for (uint64_t i = 0; good && i < grt_array_tiles(array); i++) {
        good = tile_is_sound(array, tiles[i].offset, tiles[i].stored, file);
    }
    if (good) {
        memcpy(array->tiles, tiles, size);
    }
    free(tiles);
    return good;
}

static bool list_tiles(hid_t set, const struct grt_file *file, struct grt_array *array,
                       struct grt_fault *fault) {
    uint64_t i = 0, total = 0;
    hsize_t at[GRT_DATA_MAX_RANK] = {0};
    const uint64_t *g = array->grid;
    uint64_t across = tiles_along(array->width, array->tile_width);
    across = across > 0 ? across : 1;
    for (uint64_t a = 0; a < g[0]; a++) {
        for (uint64_t b = 0; b < g[1]; b++) {
            for (uint64_t c = 0; c < g[2]; c++, i++) {
                at[0] = a * array->tile[0];
                at[1] = b * array->tile[1];
                if (array->rank == 4) {
                    at[1] = b / across * (array->tile[1] / array->tile_width);
                    at[2] = b % across * array->tile_width;
                }
                at[array->rank == 1 ? 2 : array->rank - 1] = c * array->tile[2];
                unsigned skipped = 0;
                haddr_t offset = HADDR_UNDEF;
                hsize_t stored = 0;
                if (H5Dget_chunk_info_by_coord(set, at, &skipped, &offset, &stored) < 0 ||
                    offset == HADDR_UNDEF) {
                    return grt_fault(fault, GRT_BAD_DATA, "chunk %llu of '%s' was never written",
                                     (unsigned long long)i, array->name);
                }
                total += stored;
                if (!tile_is_sound(array, offset, stored, file) || total > file->bytes) {
                    return grt_fault(fault, GRT_BAD_DATA,
                                     "chunk %llu of '%s' claims %llu bytes at %llu, the file has "
                                     "%llu: it is truncated or damaged",
                                     (unsigned long long)i, array->name, (unsigned long long)stored,
                                     (unsigned long long)offset, (unsigned long long)file->bytes);
                }
                array->tiles[i] = (struct grt_tile){offset, (uint32_t)stored, skipped};
            }
        }
    }
    return true;
}

static bool find_chunks(hid_t set, hid_t creation, hid_t space, const struct grt_file *file,
                        struct grt_array *array, struct grt_fault *fault) {
    if (!read_filters(creation, array, fault) || !read_chunk_shape(creation, file, array, fault)) {
        return false;
    }
    hsize_t written = 0;
    uint64_t count = grt_array_tiles(array);
    if (H5Dget_num_chunks(set, space, &written) < 0 || written < count) {
        return grt_fault(fault, GRT_BAD_DATA,
                         "'%s' has %llu of its %llu chunks: the rest was "
                         "never written",
                         array->name, (unsigned long long)written, (unsigned long long)count);
    }
    array->tiles = calloc(count + 1, sizeof *array->tiles);
    if (!array->tiles) {
        return grt_fault(fault, GRT_NO_MEMORY, "no host memory for %llu chunks",
                         (unsigned long long)count);
    }
    bool keep = count >= LIST_KEEP_FROM;
    if (keep && list_kept(file, array)) {
        return true;
    }
    if (!list_tiles(set, file, array, fault)) {
        return false;
    }
    char key[512];
    list_key(file, array, key);
    if (keep) {
        grt_cache_store(key, array->tiles, count * sizeof *array->tiles);
    }
    return true;
}

// The layout comes before the shape: asked for its shape, the library opens the sources of a
// virtual data set.
static bool find_bytes(hid_t set, hid_t creation, const struct grt_file *file,
                       struct grt_array *array, struct grt_fault *fault) {
    H5D_layout_t layout = H5Pget_layout(creation);
    if (layout == H5D_VIRTUAL || H5Pget_external_count(creation) != 0) {
        return grt_fault(fault, GRT_BAD_DATA, "'%s' %s: only what lies in the file itself is read",
                         array->name,
                         layout == H5D_VIRTUAL ? "is a virtual data set" : "has external storage");
    }
    if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) {
        return grt_fault(fault, GRT_BAD_DATA,
                         "'%s' is stored in its header (compact); h5repack -l CONTI makes it "
                         "readable",
                         array->name);
    }
    hid_t type = H5Dget_type(set);
    bool known = type >= 0 && find_element(type, &array->element);
    if (!known) {
        grt_inspect_refuse_type(type, array->name, fault);
    }
    H5Tclose(type);
    if (!known) {
        return false;
    }
    hid_t space = H5Dget_space(set);
    bool found = read_shape(space, array, fault) &&
                 (layout == H5D_CHUNKED ? find_chunks(set, creation, space, file, array, fault)
                                        : find_contiguous(set, file, array, fault));
    H5Sclose(space);
    array->slab_bytes = array->tile[1] * array->tile[2] * grt_element_size(array->element.type);
    return found;
}

bool grt_inspect_array(hid_t id, const struct grt_file *file, const char *name, const char *key,
                       struct grt_array *array, struct grt_fault *fault) {
    *array = (struct grt_array){0};
    while (name[0] == '/') {
        name++;
    }
    if (!name[0]) {
        return grt_fault(fault, GRT_BAD_DATA, "a data set without a name");
    }
    if (!links_are_known(id, name, 0, fault)) {
        return false;
    }
    snprintf(array->name, sizeof array->name, "%s", name);
    hid_t set = H5Dopen2(id, name, H5P_DEFAULT);
    if (set < 0) {
        grt_inspect_refuse(id, name, key, fault);
        return false;
    }
    hid_t creation = H5Dget_create_plist(set);
    bool found = creation >= 0 ? find_bytes(set, creation, file, array, fault)
                               : grt_fault(fault, GRT_BAD_DATA, "'%s' cannot be described", name);
    H5Pclose(creation);
    H5Dclose(set);
    if (!found) {
        free(array->tiles);
        array->tiles = NULL;
    }
    return found;
}
