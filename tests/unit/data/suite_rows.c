// SPDX-License-Identifier: Apache-2.0
// Rows of every type and layout, from the file, from memory and on the device: the same bits, those
// that the HDF5 library and plain arithmetic in double give; and files that lose their end while
// they are read.
#include "kits/data_kit.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/file/map.h"
#include "nn/layer_ops.h"
#include "gpurt/learner.h"

enum { ROWS = 300, WIDTH = 6, BATCH = 64, BATCHES = 11 };

struct layout {
    const char *name;
    hsize_t chunk[3];
    int deflate;
    bool points;
};
static const struct layout layouts[] = {
    {"in one piece", {0}, 0, false},
    {"in chunks", {32, 4}, 0, false},
    {"in two rows of chunks", {ROWS / 2, 4}, 0, false},
    {"compressed", {32, 6}, 1, false},
    {"points", {0}, 0, true},
};

enum { TYPES = 8 };
static const char *const type_names[TYPES] = {"u8",          "i32", "i64",         "f16",
                                              "f16 swapped", "f32", "f32 swapped", "f64"};
static hid_t type_of(int i) {
    static const int half = 3;
    return i == half || i == half + 1 ? data_kit_half(i == half + 1)
           : i == 0                   ? H5Tcopy(H5T_STD_U8LE)
           : i == 1                   ? H5Tcopy(H5T_STD_I32LE)
           : i == 2                   ? H5Tcopy(H5T_STD_I64LE)
           : i == 5                   ? H5Tcopy(H5T_IEEE_F32LE)
           : i == 6                   ? H5Tcopy(H5T_IEEE_F32BE)
                                      : H5Tcopy(H5T_IEEE_F64LE);
}
static bool is_wide(int type) {
    return type == 1 || type == 2 || type == 7;
}

// "signal" of the type, "extra" of f32 beside it where `mixed`, "level" as target, of the same
// type.
static const char *write_file(int type, const struct layout *layout, bool mixed) {
    const char *path = data_kit_path("rows.h5");
    static double x[ROWS * WIDTH], y[ROWS];
    double far = type == 1 ? 2e9 : type == 2 ? 1.7e15 : type == 7 ? 1.7e9 : 0;
    for (uint64_t i = 0; i < (uint64_t)ROWS * WIDTH; i++) {
        uint64_t row = i / WIDTH;
        x[i] = i % (layout->points ? 2 : WIDTH) == 1 ? far + (double)row : (double)(i * 37 % 251);
    }
    // Some of f16 are subnormal.
    for (uint64_t i = 2; (type == 3 || type == 4) && i < (uint64_t)ROWS * WIDTH; i += WIDTH) {
        x[i] *= 0x1p-24;
    }
    for (uint64_t i = 0; i < ROWS; i++) {
        y[i] = (double)(i * 11 % 200);
    }
    hid_t id = type_of(type);
    struct data_kit_set set = {.name = "signal", .type = id, .shape = {ROWS, WIDTH}, .data = x};
    if (layout->points) {
        set.shape[1] = 3;
        set.shape[2] = 2;
    }
    memcpy(set.chunk, layout->chunk, sizeof set.chunk);
    set.deflate = layout->deflate;
    data_kit_write(path, true, &set);
    if (mixed) {
        data_kit_write(path, false, &(struct data_kit_set){.name = "extra", .shape = {ROWS, 2}});
    }
    data_kit_write(
        path, false,
        &(struct data_kit_set){.name = "level", .type = id, .shape = {ROWS, 1}, .data = y});
    H5Tclose(id);
    return path;
}

static struct grt_dataset *open_file(const char *path, bool mixed, bool normalise) {
    static const char *const inputs[] = {"signal", "extra"}, *const targets[] = {"level"};
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .inputs = inputs, .input_count = mixed ? 2 : 1,
                         .targets = targets, .target_count = 1, .normalise = normalise,
                         .validation_split = 0.1, .seed = 5));
    assert_non_null(data);
    return data;
}

// Batches one behind the other, x and then y of each.
static float *stream(const struct grt_loader_desc *desc) {
    struct grt_dataset_info info = grt_dataset_info(desc->data);
    uint64_t xs = (uint64_t)BATCH * info.x_width, ys = (uint64_t)BATCH * info.y_width;
    float *all = test_alloc(BATCHES * (xs + ys) * 4);
    struct grt_loader *loader = grt_loader_create(desc);
    assert_non_null(loader);
    for (uint64_t i = 0; i < BATCHES; i++) {
        struct grt_batch batch;
        assert_true(grt_loader_next(loader, &batch));
        memcpy(all + i * (xs + ys), batch.x, xs * 4);
        memcpy(all + i * (xs + ys) + xs, batch.y, ys * 4);
        grt_loader_release(loader, &batch);
    }
    grt_loader_destroy(&loader);
    return all;
}

// The first epoch against the library's numbers, in double.
static void check_values(const char *path, struct grt_dataset *data, int type,
                         const struct grt_loader_desc *desc, const float *got) {
    struct grt_dataset_info info = grt_dataset_info(data);
    struct grt_loader *loader = grt_loader_create(desc);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, "signal", H5P_DEFAULT);
    static double x[ROWS * WIDTH];
    assert_true(H5Dread(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Dclose(id);
    H5Fclose(file);
    uint32_t rows[BATCH];
    uint32_t features = info.features, own = info.points > 0 ? 2 : WIDTH;
    assert_true(grt_loader_order(loader, 0, 0, BATCH, rows));
    for (uint64_t i = 0; i < BATCH; i++) {
        for (uint64_t k = 0; k < WIDTH; k++) {
            uint64_t point = k / own, feature = k % own;
            double raw = x[rows[i] * WIDTH + k], want = (double)(float)raw, slack = 0;
            if (info.mean) {
                want = (raw - info.mean[feature]) / info.std[feature];
                slack = fabs(want) * 0x1p-22 + 0x1p-40;
            }
            double is = got[i * info.x_width + point * features + feature];
            if (!(fabs(is - want) <= slack)) {
                fail_msg("%s row %u column %llu: %.9g, wanted %.9g", type_names[type], rows[i],
                         (unsigned long long)k, is, want);
            }
        }
    }
    grt_loader_destroy(&loader);
}

// ---- rows on the device ----

static void record_gather(struct grt_graph *graph, void *context) {
    grt_op_gather(graph, context);
}

// The same batches as the device's kernel makes them of rows that are there.
static float *stream_device(const struct grt_loader_desc *desc) {
    struct grt_dataset_info info = grt_dataset_info(desc->data);
    uint64_t xs = (uint64_t)BATCH * info.x_width, ys = (uint64_t)BATCH * info.y_width;
    float *all = test_alloc(BATCHES * (xs + ys) * 4);
    memset(all, 0, BATCHES * (xs + ys) * 4);
    struct grt_loader *loader = grt_loader_create(desc);
    assert_non_null(loader);
    struct grt_step_rows rows = {.record = (uint32_t)grt_loader_record(loader)};
    assert_true(grt_loader_device(loader, &rows.x, &rows.y, &rows.norm));
    struct test_tensor table = test_tensor(test.dev, GRT_U32, rows.record, 0);
    struct test_tensor state = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    struct test_tensor x = test_tensor(test.dev, GRT_F32, BATCH, info.x_width);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, BATCH, info.y_width);
    rows.order = table.tensor;
    uint32_t *words = test_alloc(4 * (size_t)rows.record);
    uint64_t per_epoch = grt_loader_info(loader).batches_per_epoch,
             of = grt_loader_info(loader).rows;
    for (uint64_t i = 0; i < BATCHES; i++) {
        uint64_t first = i % per_epoch * BATCH, count = of - first < BATCH ? of - first : BATCH;
        grt_loader_words(loader, i / per_epoch, words);
        test_tensor_write(&table, words);
        struct grt_learn_state learn = {.cursor = (uint32_t)first};
        test_tensor_write(&state, &learn);
        struct grt_gathering g = {.from = &rows,
                                  .state = &state.tensor,
                                  .rows = count,
                                  .batch = count,
                                  .x_step = count * info.x_width * 4,
                                  .y_step = count * info.y_width * 4,
                                  .x = x.tensor.range,
                                  .y = y.tensor.range};
        test_run(test.dev, record_gather, &g);
        assert_true(grt_buf_read(x.tensor.range.buf, x.tensor.range.offset, all + i * (xs + ys),
                                 g.x_step) &&
                    grt_buf_read(y.tensor.range.buf, y.tensor.range.offset,
                                 all + i * (xs + ys) + xs, g.y_step));
    }
    free(words);
    test_tensor_end(&table);
    test_tensor_end(&state);
    test_tensor_end(&x);
    test_tensor_end(&y);
    grt_loader_destroy(&loader);
    return all;
}

static void every_type_from_every_place(void **state) {
    (void)state;
    static const struct {
        uint32_t workers;
        bool pin;
        enum grt_cache cache;
    } ways[] = {{2, true, GRT_CACHE_NONE},
                {0, false, GRT_CACHE_RAM},
                {3, true, GRT_CACHE_RAM},
                {2, false, GRT_CACHE_DEVICE}};
    for (int type = 0; type < TYPES; type++) {
        for (size_t k = 0; k < sizeof layouts / sizeof layouts[0]; k++) {
            for (int variant = 0; variant < 4; variant++) {
                // A slow checker sees each of them, and a fifth of how they meet.
                if (test.small && ((size_t)(type + variant) + k) % 5 != 0) {
                    continue;
                }
                bool mixed = variant & 1 && !layouts[k].points, normalise = variant & 2;
                const char *path = write_file(type, &layouts[k], mixed);
                // f32 beside whole numbers of 2e9 apart by 1 is what the warning is for.
                uint32_t warnings = test_log.lines[GRT_LOG_WARN];
                struct grt_dataset *data = open_file(path, mixed, normalise);
                assert_int_equal(test_log.lines[GRT_LOG_WARN] - warnings,
                                 is_wide(type) && !normalise);
                test_log.lines[GRT_LOG_WARN] = warnings;
                struct grt_loader_desc desc = {
                    .data = data, .dev = test.dev, .batch = BATCH, .shuffle = true, .seed = 3};
                struct grt_dataset_info info = grt_dataset_info(data);
                uint64_t bytes = (uint64_t)BATCHES * BATCH * (info.x_width + info.y_width) * 4;
                float *want = stream(&desc);
                check_values(path, data, type, &desc, want);
                for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
                    desc.workers = ways[w].workers;
                    desc.pin = ways[w].pin;
                    desc.cache = ways[w].cache;
                    float *got =
                        desc.cache == GRT_CACHE_DEVICE ? stream_device(&desc) : stream(&desc);
                    if (memcmp(got, want, bytes) != 0) {
                        fail_msg(
                            "%s %s, mixed %d, normalise %d: other bits with %u workers, cache %s",
                            type_names[type], layouts[k].name, mixed, normalise, desc.workers,
                            grt_cache_text(desc.cache));
                    }
                    free(got);
                }
                free(want);
                grt_dataset_close(&data);
            }
        }
    }
}

// u8 and f16 take a quarter and half of what f32 does in memory.
static void memory_of_narrow_rows(void **state) {
    (void)state;
    static const struct {
        int type;
        uint64_t bytes;
    } sizes[] = {{0, 1}, {3, 2}, {4, 2}, {1, 4}, {2, 4}, {5, 4}, {7, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct grt_dataset *data =
            open_file(write_file(sizes[i].type, &layouts[0], false), false, true);
        struct grt_loader *none = grt_loader_create(grt_loader_desc(.data = data, .batch = BATCH));
        struct grt_loader *ram = grt_loader_create(
            grt_loader_desc(.data = data, .batch = BATCH, .cache = GRT_CACHE_RAM));
        struct grt_loader *device =
            grt_loader_create(grt_loader_desc(.data = data, .dev = test.dev, .batch = BATCH,
                                              .cache = GRT_CACHE_DEVICE));
        assert_true(none && ram && device);
        assert_int_equal(grt_loader_info(device).device_bytes, sizes[i].bytes * ROWS * (WIDTH + 1));
        // Targets are rounded up to whole words; means and scales lie beside narrow inputs.
        uint64_t beside = sizes[i].bytes < 4 ? 2ull * WIDTH * 4 : 0;
        assert_int_equal(grt_dev_mem_use(test.dev, "data").current,
                         grt_loader_info(device).device_bytes + beside);
        grt_loader_destroy(&device);
        assert_int_equal(grt_loader_info(ram).host_bytes - grt_loader_info(none).host_bytes,
                         sizes[i].bytes * ROWS * (WIDTH + 1));
        grt_loader_destroy(&none);
        grt_loader_destroy(&ram);
        grt_dataset_close(&data);
    }
}

// Rows fit where inputs and targets do together, to the byte.
static void memory_that_is_left(void **state) {
    (void)state;
    struct grt_dataset *data = open_file(write_file(1, &layouts[0], false), false, true);
    const uint64_t bytes = 4ull * ROWS * (WIDTH + 1);
    for (uint64_t less = 0; less < 8; less += 4) {
        struct grt_dev *dev =
            grt_dev_create(grt_dev_desc(.device = test.selector, .mem_limit = bytes - less));
        char why[GRT_CACHE_WHY];
        assert_non_null(dev);
        assert_int_equal(grt_cache_fits(data, dev, GRT_CACHE_DEVICE, why), less == 0);
        assert_int_equal(strstr(why, "may be taken") != NULL, less > 0);
        grt_dev_destroy(&dev);
    }
    grt_dataset_close(&data);
}

// Rows go to the device in pieces of 8 MB: behind the first they are those of the file too, inputs
// as well as targets.
static void rows_of_several_pieces(void **state) {
    (void)state;
    enum { LONG = 66000, WIDE = 32 };
    const char *path = data_kit_path("pieces.h5");
    double *rows = test_alloc((size_t)LONG * WIDE * sizeof *rows);
    for (uint32_t i = 0; i < LONG * WIDE; i++) {
        rows[i] = i;
    }
    struct data_kit_set set = {.name = "x", .shape = {LONG, WIDE}, .data = rows};
    data_kit_write(path, true, &set);
    set.name = "y";
    data_kit_write(path, false, &set);
    struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path));
    assert_non_null(data);
    struct grt_loader *loader = grt_loader_create(
        grt_loader_desc(.data = data, .dev = test.dev, .batch = 8, .cache = GRT_CACHE_DEVICE));
    struct grt_tensor on_device[2];
    struct grt_range norm;
    assert_non_null(loader);
    assert_true(grt_loader_device(loader, &on_device[0], &on_device[1], &norm));
    float *got = test_alloc((size_t)LONG * WIDE * sizeof *got);
    for (int k = 0; k < 2; k++) {
        const struct grt_range *range = &on_device[k].range;
        assert_int_equal(range->size, (uint64_t)LONG * WIDE * sizeof *got);
        assert_true(grt_buf_read(range->buf, range->offset, got, range->size));
        for (uint32_t i = 0; i < LONG * WIDE; i++) {
            assert_true((double)got[i] == rows[i]);
        }
    }
    free(got);
    free(rows);
    grt_loader_destroy(&loader);
    grt_dataset_close(&data);
}

// ---- windows ----

static uint32_t pieces_of(const uint32_t *rows, uint32_t count, uint32_t piece) {
    bool seen[2048] = {false};
    uint32_t pieces = 0;
    for (uint32_t i = 0; i < count; i++) {
        pieces += !seen[rows[i] / piece];
        seen[rows[i] / piece] = true;
    }
    return pieces;
}

// Rows of a window come from 16 pieces of the file, mixed; every row comes once; the next epoch has
// another order; and where batches are made from changes nothing.
static void windows_of_a_file(void **state) {
    (void)state;
    enum { MANY = 20011, WINDOW = 1600, PIECE = WINDOW / 16 };
    static const char *const inputs[] = {"signal"}, *const targets[] = {"level"};
    data_kit_write(data_kit_path("many.h5"), true,
                   &(struct data_kit_set){.name = "signal", .shape = {MANY, WIDTH}});
    const char *path = data_kit_path("many.h5");
    data_kit_write(path, false, &(struct data_kit_set){.name = "level", .shape = {MANY, 1}});
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .inputs = inputs, .input_count = 1, .targets = targets,
                         .target_count = 1, .validation_split = 0.1, .shuffle_window = WINDOW));
    assert_non_null(data);
    struct grt_dataset_info info = grt_dataset_info(data);
    assert_int_equal(info.window_rows, WINDOW);
    struct grt_loader_desc desc = {
        .data = data, .dev = test.dev, .batch = BATCH, .shuffle = true, .seed = 9};
    struct grt_loader *loader = grt_loader_create(&desc);
    assert_non_null(loader);
    static uint32_t rows[2][MANY], count;
    count = (uint32_t)info.part_rows[GRT_PART_TRAIN];
    static bool seen[MANY];
    memset(seen, 0, sizeof seen);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        assert_true(grt_loader_order(loader, epoch, 0, count, rows[epoch]));
    }
    assert_true(memcmp(rows[0], rows[1], count * 4) != 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_false(seen[rows[0][i]]);
        seen[rows[0][i]] = true;
    }
    for (uint32_t first = 0; first + WINDOW <= count / WINDOW * WINDOW; first += WINDOW) {
        assert_int_equal(pieces_of(rows[0] + first, WINDOW, PIECE), 16);
        // Already the first tenth is from most of them.
        assert_true(pieces_of(rows[0] + first, WINDOW / 10, PIECE) >= 14);
    }
    grt_loader_destroy(&loader);
    float *want = stream(&desc);
    for (int way = 0; way < 2; way++) {
        desc.workers = 3;
        desc.cache = way ? GRT_CACHE_RAM : GRT_CACHE_NONE;
        float *got = stream(&desc);
        assert_memory_equal(got, want, (size_t)BATCHES * BATCH * (WIDTH + 1) * 4);
        free(got);
    }
    free(want);
    grt_dataset_close(&data);
    // A window that holds all is no window.
    data = grt_dataset_open(grt_dataset_desc(.path = path, .inputs = inputs, .input_count = 1,
                                             .no_targets = true, .shuffle_window = MANY));
    assert_non_null(data);
    assert_int_equal(grt_dataset_info(data).window_rows, 0);
    grt_dataset_close(&data);
}

// ---- a file that loses its end ----

static sigjmp_buf back;
static volatile sig_atomic_t theirs;
static void on_their_fault(int number) {
    (void)number;
    theirs = theirs + 1;
    siglongjmp(back, 1);
}

static const char *write_many(uint64_t rows) {
    const char *path = data_kit_path("many.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "signal", .shape = {rows, WIDTH}});
    data_kit_write(path, false, &(struct data_kit_set){.name = "level", .shape = {rows, 1}});
    return path;
}

// Rows far behind the new end, whose pages nobody has seen yet: the fault is ours to report, at any
// size, and whoever reads. The numbers of batches given before are those of the file.
static void cut_anywhere(void **state) {
    (void)state;
    enum { MANY = 20000 };
    for (uint32_t workers = 0; workers < 3; workers++) {
        for (int cut = 0; cut < 4; cut++) {
            const char *path = write_many(MANY);
            struct grt_dataset *data = open_file(path, false, false);
            float *x = data_kit_read(path, "signal");
            struct grt_loader *loader = grt_loader_create(
                grt_loader_desc(.data = data, .batch = 500, .workers = workers, .shuffle = true));
            assert_non_null(loader);
            struct grt_batch batch;
            uint32_t rows[500];
            bool good = true;
            test_refusal_begin();
            for (uint32_t i = 0; good && i < 200; i++) {
                if (i == 3) {
                    assert_int_equal(truncate(path, cut == 0 ? 0 : cut * 100001), 0);
                }
                good = grt_loader_next(loader, &batch);
                if (!good) {
                    break;
                }
                assert_true(grt_loader_order(loader, batch.position.epoch,
                                             batch.position.batch * 500, batch.rows, rows));
                for (uint32_t k = 0; k < batch.rows; k++) {
                    assert_memory_equal(batch.x + (size_t)k * WIDTH, x + (size_t)rows[k] * WIDTH,
                                        WIDTH * 4);
                }
                grt_loader_release(loader, &batch);
            }
            test_log.expected = test_log.lines[GRT_LOG_ERROR];
            test_log.quiet = false;
            assert_false(good);
            assert_int_equal(grt_last_status(), GRT_BAD_DATA);
            TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA,
                         "it was truncated while it was being read");
            free(x);
            grt_loader_destroy(&loader);
            grt_dataset_close(&data);
        }
    }
}

// Faults of memory that is not the loader's go where they went before, and do so again when it is
// closed.
static void faults_of_others(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = on_their_fault, .sa_flags = SA_NODEFER}, before, now;
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGBUS, &action, &before), 0);
    struct grt_dataset *data = open_file(write_many(100), false, false);
    const char *path = data_kit_path("other");
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0 && ftruncate(fd, 8192) == 0);
    volatile char *memory = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(memory != MAP_FAILED && ftruncate(fd, 0) == 0);
    theirs = 0;
    if (sigsetjmp(back, 1) == 0) {
        fail_msg("byte %d of a file that has none", memory[4096]);
    }
    assert_int_equal(theirs, 1);
    grt_dataset_close(&data);
    assert_int_equal(sigaction(SIGBUS, &before, &now), 0);
    assert_true(now.sa_handler == on_their_fault);
    munmap((void *)memory, 8192);
    close(fd);
}

// A handler that somebody put over ours, for one fault as LLVM does, is gone with the next batch.
static void handler_over_ours(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = on_their_fault, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    int fd = open(data_kit_path("covered"), O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0 && ftruncate(fd, 8192) == 0);
    struct grt_fault fault = {0};
    struct grt_file_map *map = grt_map_create(fd, 8192);
    assert_non_null(map);
    assert_int_equal(sigaction(SIGBUS, &action, NULL), 0);
    assert_true(grt_map_check(map, &fault));
    assert_int_equal(ftruncate(fd, 0), 0);
    theirs = 0;
    if (sigsetjmp(back, 1) == 0) {
        const volatile unsigned char *bytes = grt_map_bytes(map);
        assert_int_equal(bytes[4096], 0);
    }
    assert_int_equal(theirs, 0);
    assert_false(grt_map_check(map, &fault));
    assert_int_equal(fault.status, GRT_BAD_DATA);
    grt_map_destroy(&map);
    close(fd);
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(every_type_from_every_place),
    DATA_CASE(memory_of_narrow_rows),
    DATA_CASE(memory_that_is_left),
    DATA_CASE(rows_of_several_pieces),
    DATA_CASE(windows_of_a_file),
    DATA_CASE(cut_anywhere),
    DATA_CASE(faults_of_others),
    DATA_CASE(handler_over_ours),
};
TEST_SUITE(rows, true, cases);
