// SPDX-License-Identifier: Apache-2.0
// Files that were whole: cut off, with bytes changed where a case says or by the hundred. Each must
// be refused with a sentence, or read; where the library crashes or hangs on one, the process goes
// on.
#include "kits/data_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/child.h"
#include "data/file/filter.h"
#include "gpurt/checkpoint.h"

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
            TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "not an HDF5 file that can be read");
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
            struct grt_dataset *data = data_kit_open_x(path);
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
    struct grt_dataset *data = data_kit_open_x(path);  // all bytes are back
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
    struct grt_dataset *data = data_kit_open_x(with_layout(2, &last, sizeof last));
    assert_non_null(data);
    grt_dataset_close(&data);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        TEST_REFUSED(data_kit_open_x(with_layout(2, &addresses[i], 8)), GRT_BAD_DATA,
                     "truncated or damaged");
    }
}

// A layout of a later version than this library knows: said, and listed with the others.
static void a_newer_format(void **state) {
    (void)state;
    const char *path = with_layout(0, "\x7f", 1);
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "where a newer library wrote it");
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
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "a chunk of 'x' is damaged");
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
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "a chunk of 'x' is damaged");
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(file, "x", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 3, (hsize_t[]){32, 0}, sizeof plain, plain) >= 0);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 3, (hsize_t[]){48, 0}, 128, plain) >= 0);
    H5Dclose(set);
    H5Fclose(file);
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "128 bytes in place of 256");
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

// LZF by hand: runs of bytes, and pieces of what came before. What would begin before the first
// byte or end behind the last is damage, and nothing behind the chunk is written.
static void pieces_of_lzf(void **state) {
    (void)state;
    enum { BYTES = 12, BEHIND = 16, PIECE = 7 << 5 };
    static const struct {
        unsigned char in[16];
        uint32_t size;
        const char *wrong;  // NULL: twelve letters
    } rows[] = {
        {{11, 'a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c'}, 13, NULL},
        {{2, 'a', 'b', 'c', PIECE, 0, 2}, 7, NULL},
        {{2, 'a', 'b', 'c', 4 << 5, 2, 2, 'a', 'b', 'c'}, 10, NULL},
        {{12, 'a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c', 'a'}, 14, "0 of 12"},
        {{2, 'a', 'b', 'c', PIECE, 1, 2}, 7, "3 of 12"},  // ten where nine are left
        {{2, 'a', 'b', 'c', PIECE, 255, 2}, 7, "3 of 12"},
        {{2, 'a', 'b', 'c', PIECE, 0, 3}, 7, "3 of 12"},      // from before the first
        {{2, 'a', 'b', 'c', PIECE + 1, 0, 0}, 7, "3 of 12"},  // 257 bytes back
        {{2, 'a', 'b', 'c', 6 << 5, 2}, 6, "11 of 12"},
        {{2, 'a', 'b', 'c', PIECE, 0}, 6, "3 of 12"},
        {{2, 'a', 'b', 'c', 6 << 5}, 5, "3 of 12"},
        {{5, 'a', 'b'}, 3, "0 of 12"},
        {{0}, 0, "0 of 12"},
    };
    const struct grt_array array = {.name = "x",
                                    .element = {.type = GRT_ELEMENT_U8},
                                    .tile_bytes = BYTES,
                                    .filter_count = 1,
                                    .filters = {GRT_FILTER_LZF}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char out[BYTES + BEHIND], spare[BYTES], *stored = test_alloc(rows[i].size + 1);
        struct grt_fault fault = {0};
        memset(out, 0xee, sizeof out);
        memcpy(stored, rows[i].in, rows[i].size);
        const struct grt_tile tile = {.stored = rows[i].size};
        bool good = grt_filter_undo(&array, &tile, stored, out, spare, &fault);
        free(stored);
        assert_int_equal(good, rows[i].wrong == NULL);
        if (!rows[i].wrong) {
            assert_memory_equal(out, "abcabcabcabc", BYTES);
        } else {
            assert_int_equal(fault.status, GRT_BAD_DATA);
            assert_non_null(strstr(fault.text, "a chunk of 'x' is damaged: "));
            assert_non_null(strstr(fault.text, rows[i].wrong));
        }
        for (uint32_t k = BYTES; k < sizeof out; k++) {
            assert_int_equal(out[k], 0xee);
        }
    }
}

// Tensors together have no more bytes than the file: one that is never written, which HDF5 would
// give out as zeros, fits behind none that is.
static void larger_than_the_file(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    enum { SEAL_BYTES = 24 };
    const char *path = data_kit_path("z.h5");
    const uint64_t count = COUNT;
    struct grt_archive *archive = grt_archive_create();
    assert_non_null(grt_archive_add(archive, "a", GRT_F32, 1, &count, NULL));
    assert_true(grt_checkpoint_save(archive, path));
    assert_int_equal(truncate(path, size_of(path) - SEAL_BYTES), 0);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t a = H5Dopen2(file, "a", H5P_DEFAULT), space = H5Dget_space(a), type = H5Dget_type(a);
    hid_t b = H5Dcreate2(file, "b", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(b >= 0);
    // Of the same zeros, so of the same digest; only the name is another.
    static const char *const names[] = {"dtype", "digest", "name"};
    for (int i = 0; i < 3; i++) {
        char value[64] = "";
        hid_t from = H5Aopen(a, names[i], H5P_DEFAULT);
        hid_t of = H5Aget_type(from), scalar = H5Aget_space(from);
        hid_t to = H5Acreate2(b, names[i], of, scalar, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Tget_size(of) <= sizeof value && H5Aread(from, of, value) >= 0);
        value[0] = (char)(i == 2 ? 'b' : value[0]);
        assert_true(H5Awrite(to, of, value) >= 0);
        H5Aclose(from);
        H5Aclose(to);
        H5Tclose(of);
        H5Sclose(scalar);
    }
    H5Dclose(a);
    H5Dclose(b);
    H5Sclose(space);
    H5Tclose(type);
    H5Fclose(file);
    TEST_REFUSED(grt_checkpoint_load(path), GRT_BAD_DATA, "a data set larger than the file at b");
    grt_archive_destroy(&archive);
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(hundreds_damaged),         DATA_CASE(trials),
    DATA_CASE(truncated_before),         DATA_CASE(every_byte_damaged),
    DATA_CASE(addresses_behind_the_end), DATA_CASE(a_newer_format),
    DATA_CASE(damaged_chunks),           DATA_CASE(pieces_of_lzf),
    DATA_CASE(larger_than_the_file),
};
TEST_SUITE(damaged, false, cases);
