// SPDX-License-Identifier: Apache-2.0
// Files that lie: each is made here, with the HDF5 library or by damaging what it wrote, and must
// be refused with a sentence, before memory for the data is asked for and without another file
// being opened.
#include "harness/data_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/child.h"
#include "data/file/filter.h"
#include "gpurt/checkpoint.h"

static struct grt_dataset *open_x(const char *path) {
    return grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true));
}

static hid_t create(const char *path) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

// A data set "x" that is never written.
static void empty_set(hid_t file, hid_t type, int rank, const hsize_t *shape, hid_t creation) {
    hid_t space = rank > 0 ? H5Screate_simple(rank, shape, NULL) : H5Screate(H5S_SCALAR);
    hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

static void not_there_and_not_hdf5(void **state) {
    (void)state;
    TEST_REFUSED(open_x(data_kit_path("nothing.h5")), GRT_NO_INPUT, "No such file");
    TEST_REFUSED(open_x(data_kit_path("")), GRT_NO_INPUT, "not a file");
    const char *pipe = data_kit_path("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    TEST_REFUSED(open_x(pipe), GRT_NO_INPUT, "not a file");
    const char *text = data_kit_path("text.h5");
    FILE *file = fopen(text, "w");
    fputs("x,y\n1,2\n", file);
    fclose(file);
    TEST_REFUSED(open_x(text), GRT_BAD_DATA, "not an HDF5 file");
    file = fopen(text, "w");
    fclose(file);
    TEST_REFUSED(open_x(text), GRT_BAD_DATA, "not an HDF5 file");
}

static void external_storage(void **state) {
    (void)state;
    const char *secret = data_kit_path("secret");
    FILE *out = fopen(secret, "w");
    fputs("sixteen bytes!!!", out);
    fclose(out);
    const char *path = data_kit_path("external.h5");
    hid_t file = create(path), creation = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_external(creation, secret, 0, 16) >= 0);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){2, 2}, creation);
    H5Pclose(creation);
    H5Fclose(file);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "external storage");
}

static void virtual_data_set(void **state) {
    (void)state;
    const char *source = data_kit_path("source.h5"), *path = data_kit_path("virtual.h5");
    data_kit_write(source, true, &(struct data_kit_set){.name = "x", .shape = {4, 2}});
    hid_t file = create(path), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, (hsize_t[]){4, 2}, NULL);
    assert_true(H5Pset_virtual(creation, space, source, "x", space) >= 0);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, creation);
    H5Sclose(space);
    H5Pclose(creation);
    H5Fclose(file);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "virtual data set");
}

static void links(void **state) {
    (void)state;
    const char *other = data_kit_path("other.h5"), *path = data_kit_path("links.h5");
    data_kit_write(other, true, &(struct data_kit_set){.name = "x", .shape = {4, 2}});
    hid_t file = create(path);
    H5Lcreate_external(other, "x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(other, "/", file, "group", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/group/x", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("round", file, "round", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nothing", file, "dangling", H5P_DEFAULT, H5P_DEFAULT);
    hid_t inner = H5Gcreate2(file, "inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/", inner, "loop", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(inner);
    H5Fclose(file);
    static const struct {
        const char *name, *says;
    } rows[] = {
        {"x", "'x' is an external link"},
        {"group/x", "'group' is an external link"},
        {"soft", "'/group' is an external link"},
        {"inner/loop/inner/loop/soft", "'/group' is an external link"},
        {"round", "leads nowhere"},
        {"dangling", "a link leads to '/nothing'"},
        {"inner", "'inner' is not a data set"},
        {"inner/nothing", "no data set 'inner/nothing'"},
        {"nothing", "no data set 'nothing'"},
        {"/", "without a name"},
        {"", "without a name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .inputs = &rows[i].name,
                                                       .input_count = 1, .no_targets = true)),
                     GRT_BAD_DATA, rows[i].says);
    }
    char name[400];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *names[] = {name};
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .inputs = names, .input_count = 1,
                                                   .no_targets = true)),
                 GRT_BAD_DATA, "399 characters");
    // Listing names the links and follows none; a cycle of groups ends.
    struct grt_file_info *info = grt_file_info_create(path);
    assert_non_null(info);
    assert_true(info->count >= 3);
    for (uint32_t i = 0; i < info->count; i++) {
        assert_non_null(strstr(info->arrays[i].problem, "link"));
    }
    grt_file_info_destroy(&info);
}

static size_t keep_bytes(unsigned flags, size_t cd_count, const unsigned cd[], size_t bytes,
                         size_t *size, void **buf) {
    (void)flags, (void)cd_count, (void)cd, (void)size, (void)buf;
    return bytes;
}

static void filters(void **state) {
    (void)state;
    const H5Z_class2_t class = {H5Z_CLASS_T_VERS, 333, 1, 1, "ours alone", NULL, NULL, keep_bytes};
    assert_true(H5Zregister(&class) >= 0);
    static const struct {
        int filters[5];  // -1: fletcher32
        const char *says;
    } rows[] = {
        {{333}, "filter 333 (ours alone)"},
        {{H5Z_FILTER_DEFLATE, 333}, "filter 333"},
        {{-1}, "filter 3"},
        {{H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE}, "unusual order"},
        {{H5Z_FILTER_DEFLATE, H5Z_FILTER_DEFLATE}, "unusual order"},
        {{H5Z_FILTER_SHUFFLE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_SHUFFLE,
          H5Z_FILTER_SHUFFLE},
         "unusual order"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = data_kit_path("filters.h5");
        hid_t file = create(path), creation = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(creation, 2, (hsize_t[]){2, 2});
        for (int k = 0; k < 5 && rows[i].filters[k]; k++) {
            const unsigned level[] = {4};
            if (rows[i].filters[k] < 0) {
                H5Pset_fletcher32(creation);
            } else {
                H5Pset_filter(creation, rows[i].filters[k], 0, 1, level);
            }
        }
        empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, creation);
        H5Pclose(creation);
        H5Fclose(file);
        TEST_REFUSED(open_x(path), GRT_BAD_DATA, rows[i].says);
    }
    H5Zunregister(333);
}

static void types_and_shapes(void **state) {
    (void)state;
    hid_t text = H5Tcopy(H5T_C_S1), list = H5Tvlen_create(H5T_NATIVE_FLOAT);
    H5Tset_size(text, H5T_VARIABLE);
    hid_t pair = H5Tcreate(H5T_COMPOUND, 8), odd = H5Tcopy(H5T_STD_I32LE);
    H5Tinsert(pair, "a", 0, H5T_NATIVE_FLOAT);
    H5Tset_precision(odd, 20);
    const hid_t types[] = {text, list, pair, odd, H5T_STD_U64LE, H5T_STD_REF_OBJ};
    const char *path = data_kit_path("types.h5");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        hid_t file = create(path);
        empty_set(file, types[i], 1, (hsize_t[]){4}, H5P_DEFAULT);
        H5Fclose(file);
        TEST_REFUSED(open_x(path), GRT_BAD_DATA, "elements of another type");
    }
    static const struct {
        int rank;
        hsize_t shape[5];
        const char *says;
    } shapes[] = {
        {0, {0}, "0 axes"},
        {5, {2, 2, 2, 2, 2}, "5 axes"},
        {2, {0, 3}, "no rows"},
        {2, {3, 0}, "no rows or no columns"},
        {2, {1ull << 40, 1ull << 40}, "more than can be counted"},
        {3, {1ull << 30, 1ull << 30, 1ull << 30}, "more than can be counted"},
        {4, {2, 1ull << 40, 1ull << 40, 2}, "more than can be counted"},
        {4, {2, 3, 0, 2}, "no rows or no columns"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        hid_t file = create(path), creation = H5Pcreate(H5P_DATASET_CREATE);
        hsize_t chunk[5] = {1, 1, 1, 1, 1};
        if (shapes[i].rank > 0) {
            H5Pset_chunk(creation, shapes[i].rank, chunk);
        }
        empty_set(file, H5T_IEEE_F32LE, shapes[i].rank, shapes[i].shape, creation);
        H5Pclose(creation);
        H5Fclose(file);
        TEST_REFUSED(open_x(path), GRT_BAD_DATA, shapes[i].says);
    }
    H5Tclose(text);
    H5Tclose(list);
    H5Tclose(pair);
    H5Tclose(odd);
}

static void never_written(void **state) {
    (void)state;
    const char *path = data_kit_path("empty.h5");
    hid_t file = create(path);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, H5P_DEFAULT);
    H5Fclose(file);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "never written");
    // A small file that claims 2^40 floats, and one of whose chunks some are missing.
    static const hsize_t shapes[2][2] = {{1ull << 40, 1}, {64, 8}};
    static const char *const says[] = {"claims", "0 of its 8 chunks"};
    for (int i = 0; i < 2; i++) {
        file = create(path);
        hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(creation, 2, (hsize_t[]){8, i == 0 ? 1 : 8});
        H5Pset_deflate(creation, 1);
        empty_set(file, H5T_IEEE_F32LE, 2, shapes[i], creation);
        H5Pclose(creation);
        H5Fclose(file);
        TEST_REFUSED(open_x(path), GRT_BAD_DATA, says[i]);
    }
    file = create(path);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(creation, H5D_COMPACT);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, creation);
    H5Pclose(creation);
    H5Fclose(file);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "compact");
    creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(creation, 512);
    file = H5Fcreate(path, H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, H5P_DEFAULT);
    H5Pclose(creation);
    H5Fclose(file);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "user block of 512 bytes");
}

static off_t size_of(const char *path) {
    struct stat state;
    assert_int_equal(stat(path, &state), 0);
    return state.st_size;
}

static void truncated_before(void **state) {
    (void)state;
    const char *path = data_kit_path("cut.h5");
    for (int chunked = 0; chunked < 2; chunked++) {
        data_kit_write(path, true,
                       &(struct data_kit_set){.name = "x",
                                              .shape = {1000, 8},
                                              .chunk = {chunked ? 64 : 0, 8},
                                              .deflate = chunked});
        off_t whole = size_of(path);
        for (int part = 0; part < 10; part++) {
            assert_int_equal(truncate(path, whole * (9 - part) / 10), 0);
            TEST_REFUSED(open_x(path), GRT_BAD_DATA, "not an HDF5 file that can be read");
        }
    }
}

// Every byte of small files changed in turn: each reading is refused or gives rows, nothing worse.
// The memory that may be taken is limited, so that believing a size is found out.
static void every_byte_damaged(void **state) {
    (void)state;
    if (test.small) {
        skip();
    }
    const char *path = data_kit_path("flip.h5");
    uint32_t refused = 0, read = 0;
    for (int chunked = 0; chunked < 2; chunked++) {
        data_kit_write(path, true,
                       &(struct data_kit_set){.name = "x",
                                              .shape = {24, 2},
                                              .chunk = {chunked ? 8 : 0, 2},
                                              .shuffle = chunked,
                                              .deflate = chunked});
        off_t size = size_of(path);
        int fd = open(path, O_RDWR);
        assert_true(fd >= 0);
        for (off_t at = 0; at < size; at++) {
            unsigned char byte, other;
            assert_int_equal(pread(fd, &byte, 1, at), 1);
            if (byte == 0 && at % 7 != 0) {
                continue;  // most of the file is empty room; a part of it is enough
            }
            other = (unsigned char)(byte ^ (1 + at % 255));
            assert_int_equal(pwrite(fd, &other, 1, at), 1);
            test_refusal_begin();
            struct grt_dataset *data = open_x(path);
            struct grt_loader *loader =
                data ? grt_loader_create(grt_loader_desc(.data = data, .batch = 24)) : NULL;
            struct grt_batch batch;
            bool good = loader && grt_loader_next(loader, &batch);
            refused += !good;
            read += good;
            grt_loader_destroy(&loader);
            grt_dataset_close(&data);
            test_log.expected = test_log.lines[GRT_LOG_ERROR];
            test_log.quiet = false;
            assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        }
        close(fd);
    }
    assert_true(refused > 100 && read > 100);
    struct grt_dataset *data = open_x(path);  // all bytes are back
    assert_non_null(data);
    grt_dataset_close(&data);
}

// A file of x [77][3] and y [77], with bytes changed so far behind where x's layout begins: version
// 3, contiguous, an address of 8 bytes, then the size.
static const char *with_layout(off_t behind, const void *bytes, size_t size) {
    const char *path = data_kit_path("newer.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {77, 3}});
    data_kit_write(path, false, &(struct data_kit_set){.name = "y", .shape = {77}});
    unsigned char file[8192];
    int fd = open(path, O_RDWR);
    ssize_t count = pread(fd, file, sizeof file, 0), at = 0;
    const unsigned char wanted[8] = {77 * 3 * 4 % 256, 77 * 3 * 4 / 256};
    while (at + 18 < count && !(file[at] == 3 && file[at + 1] == 1 &&
                                memcmp(file + at + 10, wanted, sizeof wanted) == 0)) {
        at++;
    }
    assert_true(at + 18 < count);
    assert_int_equal(pwrite(fd, bytes, size, at + behind), size);
    close(fd);
    return path;
}

// Rows that end with the file, and at addresses behind: a byte, the file's end, the largest ones.
static void addresses_behind_the_end(void **state) {
    (void)state;
    uint64_t last = (uint64_t)size_of(with_layout(0, "\x03", 1)) - 77 * 3 * 4;
    const uint64_t addresses[] = {last + 1, last + 924, 1ull << 62, UINT64_MAX - 1};
    struct grt_dataset *data = open_x(with_layout(2, &last, sizeof last));
    assert_non_null(data);
    grt_dataset_close(&data);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        TEST_REFUSED(open_x(with_layout(2, &addresses[i], 8)), GRT_BAD_DATA,
                     "truncated or damaged");
    }
}

// A layout of a later version than this library knows: said, and listed with the others.
static void a_newer_format(void **state) {
    (void)state;
    const char *path = with_layout(0, "\x7f", 1);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "where a newer library wrote it");
    struct grt_file_info *info = grt_file_info_create(path);
    assert_non_null(info);
    assert_int_equal(info->count, 2);
    assert_string_equal(info->arrays[0].name, "x");
    assert_non_null(strstr(info->arrays[0].problem, "where a newer library"));
    assert_string_equal(info->arrays[1].problem, "");
    grt_file_info_destroy(&info);
}

// The chunk's own bytes: what zlib cannot inflate, or to another size.
static void damaged_chunks(void **state) {
    (void)state;
    const char *path = data_kit_path("chunk.h5");
    data_kit_write(
        path, true,
        &(struct data_kit_set){
            .name = "x", .shape = {64, 4}, .chunk = {16, 4}, .shuffle = true, .deflate = 1});
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), set = H5Dopen2(file, "x", H5P_DEFAULT);
    static const unsigned char noise[40] = {1, 2, 3, 4};
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[]){32, 0}, sizeof noise, noise) >= 0);
    H5Dclose(set);
    H5Fclose(file);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "a chunk of 'x' is damaged");
    struct grt_dataset *data =
        grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true, .check_late = true));
    assert_non_null(data);
    struct grt_loader *loader = grt_loader_create(grt_loader_desc(.data = data, .batch = 16));
    struct grt_batch batch;
    for (int i = 0; i < 2; i++) {
        assert_true(grt_loader_next(loader, &batch));
        grt_loader_release(loader, &batch);
    }
    TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "a chunk of 'x' is damaged");
    TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "a chunk of 'x' is damaged");
    grt_loader_destroy(&loader);
    // All of it at once, into memory: the file first, then what is wrong with it.
    TEST_REFUSED(
        grt_loader_create(grt_loader_desc(.data = data, .batch = 16, .cache = GRT_CACHE_RAM)),
        GRT_BAD_DATA, "chunk.h5: a chunk of 'x' is damaged");
    // A chunk that no filter was applied to is as good as any; one of the wrong size is not.
    float plain[64];
    for (int i = 0; i < 64; i++) {
        plain[i] = (float)i;
    }
    grt_dataset_close(&data);
    // Whole in every byte and number, but for the sum that zlib keeps of it.
    unsigned char packed[512];
    uLongf length = sizeof packed;
    assert_int_equal(compress(packed, &length, (const Bytef *)plain, sizeof plain), Z_OK);
    packed[length - 1] ^= 1;
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(file, "x", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[]){32, 0}, length, packed) >= 0);
    H5Dclose(set);
    H5Fclose(file);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "a chunk of 'x' is damaged");
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(file, "x", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 3, (hsize_t[]){32, 0}, sizeof plain, plain) >= 0);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 3, (hsize_t[]){48, 0}, 128, plain) >= 0);
    H5Dclose(set);
    H5Fclose(file);
    TEST_REFUSED(open_x(path), GRT_BAD_DATA, "128 bytes in place of 256");
    data = grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true, .check_late = true));
    assert_non_null(data);
    loader = grt_loader_create(grt_loader_desc(.data = data, .batch = 16, .start = {.batch = 2}));
    assert_true(grt_loader_next(loader, &batch));
    assert_memory_equal(batch.x, plain, sizeof plain);
    TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "128 bytes in place of 256");
    grt_loader_destroy(&loader);
    grt_dataset_close(&data);
}

// ---- bytes by the hundred ----

// A file as people have them: groups, several data sets, chunks enough for an index of two levels,
// attributes, deflate and shuffle.
static void write_rich(const char *path) {
    const struct data_kit_set sets[] = {
        {.name = "x", .shape = {300, 4}, .chunk = {3, 2}, .deflate = 4, .shuffle = true},
        {.name = "y", .shape = {300, 1}},
        {.name = "wide", .shape = {20, 5, 3}, .chunk = {4, 5, 3}},
        {.name = "counts", .type = H5T_STD_I32LE, .shape = {50}},
    };
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        data_kit_write(path, i == 0, &sets[i]);
    }
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "group %d", i);
        H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute =
        H5Acreate2(file, "noise_floor", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    double floor = 0.25;
    H5Awrite(attribute, H5T_NATIVE_DOUBLE, &floor);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Fclose(file);
}

// Where the library keeps its own things: bytes of numbers are mostly data. Flips, and words at the
// limits.
static void damage(unsigned char *bytes, size_t size, uint64_t *seed) {
    uint32_t count = 1 + test_next(seed) % 12;
    for (uint32_t i = 0; i < count; i++) {
        size_t at = test_next(seed) % size;
        switch (test_next(seed) % 4) {
        case 0:
            bytes[at] = (unsigned char)test_next(seed);
            break;
        case 1:
            bytes[at] ^= (unsigned char)(1u << test_next(seed) % 8);
            break;
        case 2:
            memset(bytes + at, 0xff, size - at < 8 ? size - at : 8);
            break;
        default:
            memmove(bytes + at, bytes + test_next(seed) % size % (size - (size > 64 ? 64 : 0)),
                    size - at < 64 ? size - at : 64);
        }
    }
}

// Opens a damaged file in every way that gpurt has; what comes of it is a result or a sentence, and
// the process goes on. How often the library crashed on the way depends on its version.
static void hundreds_damaged(void **state) {
    (void)state;
    const char *good = data_kit_path("rich.h5"), *bad = data_kit_path("bad.h5");
    const char *good_kept = data_kit_path("kept.h5");
    write_rich(good);
    struct grt_archive *archive = grt_archive_create();
    const uint64_t shape[2] = {30, 20};
    assert_non_null(grt_archive_add(archive, "model/layers.0.weight", GRT_F32, 2, shape, NULL));
    assert_true(grt_archive_set_whole(archive, "step", 7));
    assert_true(grt_checkpoint_save(archive, good_kept));
    grt_archive_destroy(&archive);
    uint32_t given = 0, refused = 0, crashed = 0;
    uint64_t seed = 2026;
    for (uint32_t round = 0; round < (test.small ? 20 : 300); round++) {
        bool kept = round % 4 == 3;
        size_t size = (size_t)size_of(kept ? good_kept : good);
        unsigned char *bytes = test_alloc(size);
        int fd = open(kept ? good_kept : good, O_RDONLY);
        assert_true(fd >= 0 && read(fd, bytes, size) == (ssize_t)size);
        close(fd);
        // Without its seal, of 24 bytes, a checkpoint is one that h5py could have written.
        size = kept ? size - 24 : size;
        damage(bytes, size, &seed);
        fd = open(bad, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
        close(fd);
        free(bytes);
        test_refusal_begin();
        bool was_given = false;
        if (kept) {
            struct grt_archive *loaded = grt_checkpoint_load(bad);
            was_given = loaded != NULL;
            grt_archive_destroy(&loaded);
        } else {
            struct grt_file_info *info = grt_file_info_create(bad);
            crashed += !info && strstr(grt_last_error(), "signal") != NULL;
            struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = bad));
            was_given = info && data;
            grt_file_info_destroy(&info);
            grt_dataset_close(&data);
        }
        enum grt_status status = grt_last_status();
        assert_true(was_given || status == GRT_BAD_DATA || status == GRT_IO ||
                    status == GRT_NO_INPUT || status == GRT_NO_MEMORY);
        crashed += !was_given && strstr(grt_last_error(), "signal") != NULL;
        given += was_given;
        refused += !was_given;
        test_log.expected = test_log.lines[GRT_LOG_ERROR];
        test_log.quiet = false;
    }
    print_message("# %u read, %u refused; the HDF5 library crashed %u times\n", given, refused,
                  crashed);
    assert_true(refused > given / 20);
}

static void dies(void *context) {
    (void)context;
    abort();
}

static void sleeps(void *context) {
    (void)context;
    for (;;) {
        pause();
    }
}

static void comes_back(void *context) {
    *(int *)context = 5;  // of the child's own copy
}

// Calls that crash or hang cost a sentence.
static void trials(void **state) {
    (void)state;
    char how[160] = "";
    int number = 0;
    assert_false(grt_child_survives(dies, NULL, 10, how));
    assert_non_null(strstr(how, "crashed (signal 6"));
    assert_false(grt_child_survives(sleeps, NULL, 0.05, how));
    assert_non_null(strstr(how, "did not come back within 0.05 s"));
    assert_true(grt_child_survives(comes_back, &number, 10, how));
    assert_int_equal(number, 0);
}

// Numbers that szip's library would be given: bits of a pixel, pixels of a block and of a line.
// What it does not know is not handed to it.
static void numbers_of_szip(void **state) {
    (void)state;
    static const struct {
        unsigned szip[4];  // options, block, bits, line
        bool usable;
    } cases[] = {
        {{4, 8, 1, 16}, true},    {{4, 8, 24, 16}, true},  {{4, 8, 32, 16}, true},
        {{4, 8, 64, 16}, true},   {{4, 8, 0, 16}, false},  {{4, 8, 25, 16}, false},
        {{4, 8, 31, 16}, false},  {{4, 8, 33, 16}, false}, {{4, 8, 65, 16}, false},
        {{4, 2, 8, 1}, true},     {{4, 32, 8, 1}, true},   {{4, 0, 8, 1}, false},
        {{4, 3, 8, 1}, false},    {{4, 34, 8, 1}, false},  {{4, 8, 8, 4096}, true},
        {{4, 8, 8, 4097}, false}, {{4, 8, 8, 0}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        // Without the library none is.
        bool want = cases[i].usable && grt_filter_szip_found();
        assert_int_equal(grt_filter_szip_usable(cases[i].szip), want);
    }
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(hundreds_damaged),
    DATA_CASE(trials),
    DATA_CASE(not_there_and_not_hdf5),
    DATA_CASE(external_storage),
    DATA_CASE(virtual_data_set),
    DATA_CASE(links),
    DATA_CASE(filters),
    DATA_CASE(types_and_shapes),
    DATA_CASE(never_written),
    DATA_CASE(truncated_before),
    DATA_CASE(every_byte_damaged),
    DATA_CASE(addresses_behind_the_end),
    DATA_CASE(a_newer_format),
    DATA_CASE(damaged_chunks),
    DATA_CASE(numbers_of_szip),
};
TEST_SUITE(hostile, false, cases);
