// SPDX-License-Identifier: Apache-2.0
// Loaders: the same batches whoever makes them and wherever they land, from any position on.
#include "kits/data_kit.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/make.h"

enum { ROWS = 500, FEATURES = 5 };

static const char *make(const char *name, uint32_t deflate) {
    const char *path = data_kit_path(name);
    assert_true(
        grt_data_make(grt_make_desc(.path = path, .samples = ROWS, .features = FEATURES,
                                    .noise = -1, .deflate = deflate, .chunk = deflate ? 48 : 0)));
    return path;
}

static struct grt_dataset *open_split(const char *path) {
    struct grt_dataset *data =
        grt_dataset_open(grt_dataset_desc(.path = path, .validation_split = 0.2, .seed = 1));
    assert_non_null(data);
    return data;
}

// `count` batches one behind the other: x and y of full batches, zeros included.
static float *stream(const struct grt_loader_desc *desc, uint32_t count) {
    struct grt_loader *loader = grt_loader_create(desc);
    assert_non_null(loader);
    uint64_t width = FEATURES + 1, batch_floats = desc->batch * width;
    float *all = test_alloc(count * batch_floats * sizeof *all);
    for (uint32_t i = 0; i < count; i++) {
        struct grt_batch batch;
        assert_true(grt_loader_next(loader, &batch));
        memcpy(all + i * batch_floats, batch.x, desc->batch * FEATURES * 4ull);
        memcpy(all + i * batch_floats + desc->batch * (uint64_t)FEATURES, batch.y,
               desc->batch * 4ull);
        if (desc->pin) {
            assert_ptr_equal(grt_buf_host(batch.x_range.buf), batch.x);
            assert_ptr_equal((char *)grt_buf_host(batch.y_range.buf) + batch.y_range.offset,
                             batch.y);
        }
        grt_loader_release(loader, &batch);
    }
    grt_loader_destroy(&loader);
    return all;
}

static void workers_pins_and_caches_change_nothing(void **state) {
    (void)state;
    for (uint32_t deflate = 0; deflate < 2; deflate++) {
        struct grt_dataset *data = open_split(make("same.h5", deflate));
        for (int variant = 0; variant < 4; variant++) {
            struct grt_loader_desc desc = {.data = data, .batch = 64, .dev = test.dev, .seed = 3};
            desc.shuffle = variant & 1;
            desc.drop_last = variant & 2;
            const uint32_t count = 17;  // more than two epochs
            const size_t bytes = count * 64ul * (FEATURES + 1) * 4;
            float *want = stream(&desc, count);
            static const struct {
                uint32_t workers, prefetch, held;
                bool pin, short_workers;
                enum grt_cache cache;
            } ways[] = {
                {0, 0, 1, true, false, GRT_CACHE_NONE}, {1, 1, 1, false, false, GRT_CACHE_NONE},
                {3, 2, 2, true, false, GRT_CACHE_NONE}, {2, 3, 1, true, true, GRT_CACHE_NONE},
                {0, 0, 1, false, false, GRT_CACHE_RAM}, {2, 1, 3, true, false, GRT_CACHE_RAM},
                {8, 4, 2, false, true, GRT_CACHE_NONE},
            };
            for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++) {
                desc.workers = ways[k].workers;
                desc.prefetch = ways[k].prefetch;
                desc.held = ways[k].held;
                desc.pin = ways[k].pin;
                desc.short_workers = ways[k].short_workers;
                desc.cache = ways[k].cache;
                float *got = stream(&desc, count);
                assert_memory_equal(got, want, bytes);
                free(got);
            }
            free(want);
        }
        grt_dataset_close(&data);
    }
}

static void any_position_continues_the_stream(void **state) {
    (void)state;
    for (uint32_t deflate = 0; deflate < 2; deflate++) {
        struct grt_dataset *data = open_split(make("resume.h5", deflate));
        struct grt_loader_desc desc = {
            .data = data, .batch = 30, .shuffle = true, .seed = 5, .dev = test.dev};
        const size_t batch_bytes = 30 * (FEATURES + 1) * 4;
        const uint32_t count = 40;
        float *want = stream(&desc, count);
        struct grt_loader *loader = grt_loader_create(&desc);
        assert_non_null(loader);
        uint64_t per_epoch = grt_loader_info(loader).batches_per_epoch;
        grt_loader_destroy(&loader);
        desc.workers = 2;
        for (uint32_t from = 0; from < count; from += 3) {
            desc.start = (struct grt_loader_position){from / per_epoch, from % per_epoch};
            float *got = stream(&desc, count - from);
            assert_memory_equal(got, (char *)want + from * batch_bytes,
                                (count - from) * batch_bytes);
            free(got);
        }
        // Going back and forth within one loader, and what it says of its place.
        desc.start = (struct grt_loader_position){0};
        loader = grt_loader_create(&desc);
        assert_non_null(loader);
        static const uint32_t places[] = {7, 0, 39, 20, 20};
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            struct grt_loader_position place = {places[i] / per_epoch, places[i] % per_epoch};
            struct grt_batch batch;
            assert_true(grt_loader_seek(loader, place));
            assert_int_equal(grt_loader_info(loader).next.epoch, place.epoch);
            assert_int_equal(grt_loader_info(loader).next.batch, place.batch);
            assert_true(grt_loader_next(loader, &batch));
            assert_memory_equal(batch.x, (char *)want + places[i] * batch_bytes, 30 * FEATURES * 4);
            TEST_REFUSED(grt_loader_seek(loader, place), GRT_INVALID, "a batch is held");
            assert_int_equal(grt_loader_info(loader).next.epoch, (places[i] + 1) / per_epoch);
            assert_int_equal(grt_loader_info(loader).next.batch, (places[i] + 1) % per_epoch);
            grt_loader_release(loader, &batch);
        }
        TEST_REFUSED(grt_loader_seek(loader, (struct grt_loader_position){0, per_epoch}),
                     GRT_INVALID, "an epoch has");
        grt_loader_destroy(&loader);
        free(want);
        grt_dataset_close(&data);
    }
}

// What arrives on the device is what the batch holds, with and without pinned memory, many in
// flight.
static void uploads(void **state) {
    (void)state;
    struct grt_dataset *data = open_split(make("upload.h5", 0));
    for (int pin = 0; pin < 2; pin++) {
        struct grt_loader *loader = grt_loader_create(
            grt_loader_desc(.data = data, .dev = test.dev, .batch = 64, .workers = 2, .held = 4,
                            .pin = pin, .shuffle = true));
        assert_non_null(loader);
        struct test_tensor x = test_tensor(test.dev, GRT_F32, 64, FEATURES);
        struct test_tensor y = test_tensor(test.dev, GRT_F32, 64, 1);
        struct grt_batch batch;
        assert_true(grt_loader_next(loader, &batch));
        TEST_REFUSED(grt_loader_upload(loader, &batch, 0), GRT_INVALID, "grt_loader_bind");
        grt_loader_release(loader, &batch);
        TEST_REFUSED(grt_loader_bind(loader, 0, &y.tensor, &y.tensor), GRT_INVALID, "320 elements");
        assert_true(grt_loader_bind(loader, 0, &x.tensor, &y.tensor));
        for (int round = 0; round < 10; round++) {
            test_tensor_prefill(&x, test_prefills[round % TEST_PREFILLS]);
            test_tensor_prefill(&y, test_prefills[round % TEST_PREFILLS]);
            struct grt_batch three[3];
            for (int i = 0; i < 3; i++) {
                assert_true(grt_loader_next(loader, &three[i]) &&
                            grt_loader_upload(loader, &three[i], 0));
            }
            float got_x[64 * FEATURES], got_y[64];
            test_tensor_read(&x, got_x);
            test_tensor_read(&y, got_y);
            assert_memory_equal(got_x, three[2].x, sizeof got_x);
            assert_memory_equal(got_y, three[2].y, sizeof got_y);
            for (int i = 0; i < 3; i++) {
                grt_loader_release(loader, &three[i]);
            }
        }
        // In parts of 24 rows: the last has 16, and what lies behind them stays.
        struct test_tensor part_x = test_tensor(test.dev, GRT_F32, 24, FEATURES);
        struct test_tensor part_y = test_tensor(test.dev, GRT_F32, 24, 1);
        struct grt_batch batch_of_parts;
        assert_true(grt_loader_bind(loader, 0, &part_x.tensor, &part_y.tensor));
        assert_true(grt_loader_next(loader, &batch_of_parts));
        for (uint32_t part = 0; part < 3; part++) {
            float got_x[24 * FEATURES], got_y[24], were_x[24 * FEATURES], were_y[24];
            uint32_t rows = part < 2 ? 24 : 16;
            test_tensor_read(&part_x, were_x);
            test_tensor_read(&part_y, were_y);
            memcpy(were_x, batch_of_parts.x + part * 24 * FEATURES, rows * FEATURES * 4);
            memcpy(were_y, (const float *)batch_of_parts.y + part * 24, rows * 4);
            assert_true(grt_loader_upload(loader, &batch_of_parts, part));
            test_tensor_read(&part_x, got_x);
            test_tensor_read(&part_y, got_y);
            assert_memory_equal(got_x, were_x, sizeof got_x);
            assert_memory_equal(got_y, were_y, sizeof got_y);
        }
        TEST_REFUSED(grt_loader_upload(loader, &batch_of_parts, 3), GRT_INVALID,
                     "no such slot or part");
        grt_loader_release(loader, &batch_of_parts);
        grt_loader_destroy(&loader);
        test_tensor_end(&part_x);
        test_tensor_end(&part_y);
        test_tensor_end(&x);
        test_tensor_end(&y);
    }
    grt_dataset_close(&data);
}

static void rows_on_the_device(void **state) {
    (void)state;
    const char *path = make("device.h5", 1);
    struct grt_dataset *data = open_split(path);
    struct grt_mem_use before = grt_dev_mem_use(test.dev, NULL);
    struct grt_loader *loader = grt_loader_create(
        grt_loader_desc(.data = data, .dev = test.dev, .batch = 64, .cache = GRT_CACHE_DEVICE,
                        .shuffle = true, .seed = 2, .workers = 2));
    assert_non_null(loader);
    struct grt_tensor x, y;
    struct grt_range norm;
    assert_true(grt_loader_device(loader, &x, &y, &norm));
    assert_null(norm.buf);
    assert_int_equal(grt_tensor_count(&x), ROWS * FEATURES);
    assert_int_equal(grt_tensor_count(&y), ROWS);
    assert_int_equal(grt_loader_info(loader).device_bytes, ROWS * (FEATURES + 1) * 4);
    float got[ROWS * FEATURES];
    assert_true(grt_buf_read(x.range.buf, x.range.offset, got, sizeof got));
    float *want = data_kit_read(path, "x");
    assert_memory_equal(got, want, sizeof got);
    free(want);
    // Its order is that of a loader that makes batches.
    struct grt_loader *other =
        grt_loader_create(grt_loader_desc(.data = data, .batch = 64, .shuffle = true, .seed = 2));
    uint32_t rows[64];
    struct grt_batch batch;
    for (uint64_t i = 0; i < 8; i++) {
        assert_true(grt_loader_next(other, &batch));
        assert_true(grt_loader_order(loader, batch.position.epoch, batch.position.batch * 64,
                                     batch.rows, rows));
        for (uint32_t k = 0; k < batch.rows; k++) {
            assert_memory_equal(batch.x + k * FEATURES, got + rows[k] * FEATURES, FEATURES * 4);
        }
        grt_loader_release(other, &batch);
    }
    grt_loader_destroy(&other);
    TEST_REFUSED(grt_loader_order(loader, 0, grt_loader_info(loader).rows, 1, rows), GRT_INVALID,
                 "more rows");
    TEST_REFUSED(grt_loader_next(loader, &batch), GRT_INVALID, "on the device");
    TEST_REFUSED(grt_loader_bind(loader, 0, &x, &y), GRT_INVALID, "on the device");
    grt_loader_destroy(&loader);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before.current);
    grt_dataset_close(&data);
}

// The file loses its end under the workers: batches made before are delivered, then the sentence
// comes, every time it is asked.
static void truncated_while_reading(void **state) {
    (void)state;
    for (uint32_t deflate = 0; deflate < 2; deflate++) {
        for (uint32_t workers = 0; workers < 3; workers++) {
            const char *path = make("cut.h5", deflate);
            struct grt_dataset *data = open_split(path);
            struct grt_loader *loader =
                grt_loader_create(grt_loader_desc(.data = data, .dev = test.dev, .batch = 50,
                                                  .workers = workers, .pin = true));
            assert_non_null(loader);
            struct grt_batch batch;
            assert_true(grt_loader_next(loader, &batch));
            grt_loader_release(loader, &batch);
            assert_int_equal(truncate(path, 4096), 0);
            bool good = true;
            test_refusal_begin();
            for (int i = 0; good && i < 100; i++) {
                good = grt_loader_next(loader, &batch);
                if (good) {
                    grt_loader_release(loader, &batch);
                }
            }
            // Decoded chunks may serve small compressed files to the end.
            test_log.expected = test_log.lines[GRT_LOG_ERROR];
            test_log.quiet = false;
            assert_true(!good || deflate);
            if (!good) {
                assert_int_equal(grt_last_status(), GRT_BAD_DATA);
                TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA,
                             "it was truncated while it was being read");
            }
            grt_loader_destroy(&loader);
            grt_dataset_close(&data);
        }
    }
    test_usable(test.dev);
}

static void held_batches(void **state) {
    (void)state;
    struct grt_dataset *data = open_split(make("held.h5", 0));
    // What is made ahead where nothing is said: more with a worker for every processor.
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    for (uint32_t workers = 1; workers <= 2 && workers <= processors; workers++) {
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .batch = 64, .workers = workers));
        assert_non_null(loader);
        assert_int_equal(grt_loader_info(loader).slots,
                         workers * (workers == processors ? 4 : 2) + 2);
        grt_loader_destroy(&loader);
    }
    for (uint32_t workers = 0; workers < 2; workers++) {
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .batch = 64, .workers = workers,
                                              .prefetch = 1, .held = 2));
        assert_non_null(loader);
        uint32_t slots = grt_loader_info(loader).slots;
        assert_int_equal(slots, workers + 2);
        struct grt_batch batches[3], more;
        for (uint32_t i = 0; i < slots; i++) {
            assert_true(grt_loader_next(loader, &batches[i]));
        }
        TEST_REFUSED(grt_loader_next(loader, &more), GRT_INVALID,
                     workers ? "3 batches are held, the desc's `held` is 2"
                             : "2 batches are held, the desc's `held` is 2");
        for (uint32_t i = 0; i < slots; i++) {
            grt_loader_release(loader, &batches[i]);
        }
        assert_true(grt_loader_next(loader, &more));
        // The last batch of an epoch is filled up with zeros.
        assert_int_equal(grt_loader_info(loader).rows, 400);
        while (more.position.batch != 6) {
            grt_loader_release(loader, &more);
            assert_true(grt_loader_next(loader, &more));
        }
        assert_int_equal(more.rows, 400 - 6 * 64);
        for (uint32_t i = more.rows * FEATURES; i < 64 * FEATURES; i++) {
            assert_true(more.x[i] == 0);
        }
        grt_loader_destroy(&loader);  // a batch may still be held, and workers busy
    }
    grt_dataset_close(&data);
}

// What an epoch has: rows behind the last whole batch, or step of all ranks, are left out or not;
// and the memory of its batches.
static void sizes_of_an_epoch(void **state) {
    (void)state;
    static const struct {
        uint32_t batch;
        uint64_t limit;
        struct grt_loader_share share;
        struct {
            uint64_t rows, batches;
        } kept, dropped;
    } epochs[] = {
        {64, 0, {0, 0, 0}, {500, 8}, {448, 7}},   {50, 0, {0, 0, 0}, {500, 10}, {500, 10}},
        {64, 100, {0, 0, 0}, {100, 2}, {64, 1}},  {50, 0, {0, 2, 4}, {500, 6}, {400, 4}},
        {50, 0, {2, 2, 4}, {500, 6}, {400, 4}},   {64, 0, {1, 1, 3}, {500, 3}, {384, 2}},
        {50, 450, {0, 2, 4}, {450, 6}, {400, 4}},
    };
    struct grt_dataset *data =
        grt_dataset_open(grt_dataset_desc(.path = make("sizes.h5", 0), .seed = 1));
    assert_non_null(data);
    for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++) {
        for (int drop = 0; drop < 2; drop++) {
            for (int ram = 0; ram < 2; ram++) {
                struct grt_loader *loader = grt_loader_create(
                    grt_loader_desc(.data = data, .part = GRT_PART_ALL, .batch = epochs[i].batch,
                                    .limit = epochs[i].limit, .share = epochs[i].share,
                                    .drop_last = drop > 0, .held = 3,
                                    .cache = ram ? GRT_CACHE_RAM : GRT_CACHE_NONE));
                assert_non_null(loader);
                struct grt_loader_info info = grt_loader_info(loader);
                uint64_t batch = epochs[i].batch;
                assert_int_equal(info.rows, drop ? epochs[i].dropped.rows : epochs[i].kept.rows);
                assert_int_equal(info.batches_per_epoch,
                                 drop ? epochs[i].dropped.batches : epochs[i].kept.batches);
                // Inputs and targets of a batch begin at multiples of 256 bytes.
                uint64_t x = (batch * FEATURES * 4 + 255) / 256, y = (batch * 4 + 255) / 256;
                assert_int_equal(info.host_bytes,
                                 3 * 256 * (x + y) + (ram ? ROWS * (FEATURES + 1) * 4 : 0));
                assert_int_equal(info.device_bytes, 0);
                grt_loader_destroy(&loader);
            }
        }
    }
    grt_dataset_close(&data);
}

// Rows that were brought to memory or to the device are there until the last loader of them has
// ended, and nobody reads the file again.
static void kept_until_the_last(void **state) {
    (void)state;
    const char *path = make("kept.h5", 0);
    struct grt_dataset *data = open_split(path);
    uint64_t before = grt_dev_mem_use(test.dev, NULL).current;
    struct grt_loader_desc desc = {
        .data = data, .batch = 400, .dev = test.dev, .shuffle = true, .seed = 3};
    float *want = stream(&desc, 2);
    desc.cache = GRT_CACHE_RAM;
    struct grt_loader *first = grt_loader_create(&desc);
    desc.cache = GRT_CACHE_DEVICE;
    struct grt_loader *second = grt_loader_create(&desc), *third = grt_loader_create(&desc);
    desc.cache = GRT_CACHE_RAM;
    struct grt_loader *last = grt_loader_create(&desc);
    assert_true(first && second && third && last);
    assert_int_equal(grt_loader_info(third).device_bytes, ROWS * (FEATURES + 1) * 4);
    grt_loader_destroy(&first);
    grt_loader_destroy(&second);
    assert_int_equal(truncate(path, 4096), 0);
    for (int epoch = 0; epoch < 2; epoch++) {
        struct grt_batch batch;
        assert_true(grt_loader_next(last, &batch));
        assert_memory_equal(batch.x, want + (size_t)epoch * 400 * (FEATURES + 1),
                            400 * FEATURES * 4);
        grt_loader_release(last, &batch);
    }
    struct grt_tensor x, y;
    struct grt_range norm;
    uint32_t rows[400];
    float numbers[ROWS * FEATURES];
    assert_true(grt_loader_device(third, &x, &y, &norm));
    TEST_REFUSED(grt_loader_order(third, 0, 1, 400, rows), GRT_INVALID, "more rows than an epoch");
    TEST_REFUSED(grt_loader_order(third, 0, 401, 0, rows), GRT_INVALID, "more rows than an epoch");
    assert_true(grt_loader_order(third, 0, 0, 400, rows));
    assert_true(grt_buf_read(x.range.buf, x.range.offset, numbers, sizeof numbers));
    for (int i = 0; i < 400; i++) {
        assert_memory_equal(numbers + rows[i] * FEATURES, want + (size_t)i * FEATURES,
                            FEATURES * 4);
    }
    grt_loader_destroy(&last);
    assert_true(grt_dev_mem_use(test.dev, NULL).current > before);
    grt_loader_destroy(&third);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before);
    free(want);
    grt_dataset_close(&data);
}

static hsize_t stored_bytes(const char *path, const char *name) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hsize_t bytes = H5Dget_storage_size(set);
    H5Dclose(set);
    H5Fclose(file);
    return bytes;
}

// What a loader is measured by: as many rows as batches have, and every byte of the file that they
// lie in, of each column of chunks; chunks of a compressed array once.
static void rows_read_as_they_are(void **state) {
    (void)state;
    static const struct {
        struct data_kit_set x;
        uint64_t row_bytes;  // of x, where it is not compressed
    } files[] = {
        {{.name = "x", .shape = {30, 5}}, 20},
        {{.name = "x", .shape = {30, 5}, .chunk = {7, 2}}, 3 * 8},  // the last column is half empty
        {{.name = "x", .shape = {30, 5}, .chunk = {7, 5}, .deflate = 1}, 0},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = data_kit_path("raw.h5");
        data_kit_write(path, true, &files[i].x);
        data_kit_write(path, false, &(struct data_kit_set){.name = "y", .shape = {30, 1}});
        struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path));
        assert_non_null(data);
        struct grt_loader *loader = data_kit_load(data, 7);
        for (uint32_t threads = 1; threads < 4; threads += 2) {
            for (uint64_t batches = 0; batches < 7; batches += 2) {
                struct grt_loader_raw raw = {0};
                assert_true(grt_loader_raw(loader, threads, batches, &raw));
                // Five batches an epoch, the last of two rows.
                bool all = batches == 0 || batches == 6 || files[i].x.deflate;
                uint64_t next = grt_loader_info(loader).slots, rows = all ? 30 : 0;
                for (uint64_t b = 0; !all && b < batches; b++) {
                    rows += (next + b) % 5 == 4 ? 2 : 7;
                }
                assert_int_equal(raw.rows, rows);
                assert_int_equal(raw.bytes,
                                 rows * 4 + (files[i].x.deflate ? stored_bytes(path, "x")
                                                                : rows * files[i].row_bytes));
                assert_true(raw.seconds > 0);
            }
        }
        // The loader is where it was.
        struct grt_batch batch;
        assert_true(grt_loader_next(loader, &batch));
        assert_int_equal(batch.position.batch, 0);
        grt_loader_release(loader, &batch);
        TEST_REFUSED(grt_loader_raw(loader, 1, 0, NULL), GRT_INVALID, "grt_loader_raw");
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
    }
}

// ---- signals ----

enum { MOST_THREADS = 512 };

// Threads of this process, by number.
static uint32_t list_threads(long *ids) {
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    uint32_t count = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] != '.' && count < MOST_THREADS) {
            ids[count++] = strtol(entry->d_name, NULL, 10);
        }
    }
    closedir(dir);
    return count;
}

// Signals that a thread does not take, bit i - 1 for signal i.
static unsigned long long blocked_by(long id) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", id);
    unsigned long long blocked = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "SigBlk:", 7) == 0) {
            blocked = strtoull(line + 7, NULL, 16);
        }
    }
    fclose(file);
    return blocked;
}

// Workers take no signal but the one of a file that became shorter; the caller keeps all of its.
static void workers_take_no_signals(void **state) {
    (void)state;
    if (!test.on_ref) {
        return;  // drivers start threads of their own when they like
    }
    struct grt_dataset *data = open_split(make("signals.h5", 0));
    static long before[MOST_THREADS], after[MOST_THREADS];
    uint32_t old = list_threads(before);
    unsigned long long own = blocked_by(getpid());
    assert_false(own >> (SIGINT - 1) & 1);  // nor by the cases before
    struct grt_loader *loader =
        grt_loader_create(grt_loader_desc(.data = data, .batch = 64, .dev = test.dev, .workers = 3,
                                          .prefetch = 2, .held = 1));
    assert_non_null(loader);
    struct grt_batch batch;
    assert_true(grt_loader_next(loader, &batch));
    uint32_t now = list_threads(after), fresh = 0;
    for (uint32_t i = 0; i < now; i++) {
        bool known = false;
        for (uint32_t k = 0; k < old; k++) {
            known = known || before[k] == after[i];
        }
        if (!known) {
            fresh++;
            unsigned long long blocked = blocked_by(after[i]);
            // Until it has begun, a thread takes none at all.
            for (int wait = 0; wait < 60000 && (blocked >> (SIGBUS - 1) & 1); wait++) {
                usleep(1000);
                blocked = blocked_by(after[i]);
            }
            static const int others[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD};
            for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
                assert_true(blocked >> (others[k] - 1) & 1);
            }
            assert_false(blocked >> (SIGBUS - 1) & 1);
        }
    }
    assert_int_equal(fresh, 3);
    assert_true(blocked_by(getpid()) == own);
    grt_loader_release(loader, &batch);
    grt_loader_destroy(&loader);
    grt_dataset_close(&data);
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(workers_pins_and_caches_change_nothing),
    DATA_CASE(any_position_continues_the_stream),
    DATA_CASE(uploads),
    DATA_CASE(rows_on_the_device),
    DATA_CASE(truncated_while_reading),
    DATA_CASE(held_batches),
    DATA_CASE(sizes_of_an_epoch),
    DATA_CASE(kept_until_the_last),
    DATA_CASE(rows_read_as_they_are),
    DATA_CASE(workers_take_no_signals),
};
TEST_SUITE(loader, true, cases);
