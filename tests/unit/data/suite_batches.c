// SPDX-License-Identifier: Apache-2.0
// Loaders on both sides of what is allowed, what they say, and the second time: a second epoch, a
// second binding, a second device. Other facts of loaders, on every device: suite_loader.c.
#include "kits/data_kit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/learner.h"

enum { ROWS = 20, WIDTH = 3 };

static struct grt_dev *dev;

static int begin(void **state) {
    if (data_kit_begin(state)) {
        return -1;
    }
    dev = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    return dev ? 0 : -1;
}

static int end(void **state) {
    grt_dev_destroy(&dev);
    return data_kit_end(state);
}

// x [ROWS][WIDTH] and y [ROWS], numbers or classes.
static struct grt_dataset *open_rows(bool classes, double split) {
    const char *path = data_kit_path("rows.h5");
    double y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        y[i] = classes ? i % 4 : 100 + i;
    }
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {ROWS, WIDTH}});
    data_kit_write(
        path, false,
        &(struct data_kit_set){
            .name = "y", .type = classes ? H5T_STD_I32LE : 0, .shape = {ROWS}, .data = y});
    struct grt_dataset *data =
        grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = classes,
                                          .validation_split = split, .seed = 2));
    assert_non_null(data);
    return data;
}

static void descs(void **state) {
    (void)state;
    struct grt_dataset *data = open_rows(false, 0.2);
    const struct {
        struct grt_loader_desc desc;
        enum grt_status status;
        const char *says;  // NULL: it is made
    } rows[] = {
        {{.batch = 1, .part = GRT_PART_COUNT}, GRT_INVALID, "unknown part"},
        {{.batch = 1, .cache = GRT_CACHE_COUNT}, GRT_INVALID, "unknown cache"},
        {{.batch = 1, .workers = 257}, GRT_INVALID, "over 256 workers"},
        {{.batch = 1, .turns = 3}, GRT_INVALID, "over 2 turns"},
        {{.batch = 1, .turns = 2}, GRT_OK, NULL},
        {{.batch = 1, .cache = GRT_CACHE_DEVICE}, GRT_INVALID, "no device for the cache"},
        {{.batch = 1, .dev = dev, .cache = GRT_CACHE_DEVICE, .share = {0, 1, 2}},
         GRT_INVALID,
         "a share of rows on the device"},
        {{.batch = 1, .share = {0, 1, 2}}, GRT_OK, NULL},
        {{.batch = 1, .share = {1, 1, 2}}, GRT_OK, NULL},
        {{.batch = 1, .share = {1, 2, 2}}, GRT_INVALID, "a share that is no part of the step"},
        {{.batch = 17, .drop_last = true},
         GRT_BAD_DATA,
         "rows.h5: 16 rows for training do not fill one batch of 17"},
        {{.batch = 16, .drop_last = true}, GRT_OK, NULL},
        {{.batch = 5, .part = GRT_PART_VALIDATION, .drop_last = true},
         GRT_BAD_DATA,
         "rows.h5: 4 rows for validation do not fill one batch of 5"},
        {{.batch = 4, .part = GRT_PART_VALIDATION, .drop_last = true}, GRT_OK, NULL},
        {{.batch = 3, .limit = 2, .drop_last = true},
         GRT_BAD_DATA,
         "2 rows for training do not fill one batch of 3"},
        {{.batch = 4, .start = {.batch = 4}},
         GRT_INVALID,
         "position 4 of epoch 0: an epoch has 4 batches"},
        {{.batch = 4, .start = {.batch = 3}}, GRT_OK, NULL},
        {{.batch = 4, .start = {.epoch = UINT64_MAX / 8}},
         GRT_INVALID,
         "position 0 of epoch 2305843009213693951: an epoch has 4 batches"},
        {{.batch = 4, .start = {.epoch = UINT64_MAX / 8 - 1}}, GRT_OK, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_loader_desc desc = rows[i].desc;
        desc.data = data;
        if (rows[i].says) {
            TEST_REFUSED(grt_loader_create(&desc), rows[i].status, rows[i].says);
            continue;
        }
        struct grt_loader *loader = grt_loader_create(&desc);
        assert_non_null(loader);
        assert_int_equal(grt_loader_info(loader).next.epoch, desc.start.epoch);
        assert_int_equal(grt_loader_info(loader).next.batch, desc.start.batch);
        assert_int_equal(grt_loader_info(loader).threads_started, 0);
        grt_loader_destroy(&loader);
        assert_null(loader);
        grt_loader_destroy(&loader);
    }
    assert_int_equal(grt_loader_info(NULL).rows, 0);
    // Slots are those of the workers and the held ones, a multiple of the turns.
    static const uint32_t slots[][5] = {{0, 0, 0, 0, 2}, {0, 0, 1, 0, 1}, {0, 7, 3, 0, 3},
                                        {1, 1, 2, 2, 4}, {1, 1, 1, 2, 2}, {0, 0, 1, 2, 2},
                                        {2, 3, 1, 1, 7}};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        struct grt_loader *loader = grt_loader_create(
            grt_loader_desc(.data = data, .batch = 2, .workers = slots[i][0],
                            .prefetch = slots[i][1], .held = slots[i][2], .turns = slots[i][3]));
        assert_non_null(loader);
        assert_int_equal(grt_loader_info(loader).slots, slots[i][4]);
        assert_int_equal(grt_loader_info(loader).threads_started, slots[i][0]);
        assert_int_equal(grt_loader_info(loader).host_bytes, slots[i][4] * 512);
        grt_loader_destroy(&loader);
    }
    grt_dataset_close(&data);
}

// Calls without what they are about.
static void calls_of_nothing(void **state) {
    (void)state;
    struct grt_dataset *data = open_rows(false, 0);
    struct grt_loader *loader =
        grt_loader_create(grt_loader_desc(.data = data, .batch = 6, .dev = dev, .turns = 2));
    struct grt_batch batch = {0};
    struct grt_tensor x, y;
    struct grt_range norm;
    uint32_t rows[ROWS];
    assert_non_null(loader);
    TEST_REFUSED(grt_loader_next(NULL, &batch), GRT_INVALID, "grt_loader_next: no loader");
    TEST_REFUSED(grt_loader_next(loader, NULL), GRT_INVALID, "grt_loader_next: no batch");
    TEST_REFUSED(grt_loader_seek(NULL, (struct grt_loader_position){0}), GRT_INVALID, "no loader");
    TEST_REFUSED(grt_loader_order(NULL, 0, 0, 1, rows), GRT_INVALID, "no loader or no rows");
    TEST_REFUSED(grt_loader_order(loader, 0, 0, 1, NULL), GRT_INVALID, "no loader or no rows");
    TEST_REFUSED(grt_loader_order(loader, 0, 1, ROWS, rows), GRT_INVALID, "more rows than");
    assert_true(grt_loader_order(loader, 0, ROWS, 0, rows));
    TEST_REFUSED(grt_loader_device(NULL, &x, &y, &norm), GRT_INVALID, "no loader");
    TEST_REFUSED(grt_loader_device(loader, NULL, &y, &norm), GRT_INVALID, "no tensor to fill");
    TEST_REFUSED(grt_loader_device(loader, &x, NULL, &norm), GRT_INVALID, "no tensor to fill");
    TEST_REFUSED(grt_loader_device(loader, &x, &y, NULL), GRT_INVALID, "no tensor to fill");
    TEST_REFUSED(grt_loader_device(loader, &x, &y, &norm), GRT_INVALID,
                 "its cache is not the device");
    assert_false(grt_loader_peek(NULL));
    TEST_REFUSED(grt_loader_bind(NULL, 0, &x, &y), GRT_INVALID, "grt_loader_bind: no loader");
    TEST_REFUSED(grt_loader_bind(loader, 0, NULL, &y), GRT_INVALID, "grt_loader_bind: no x");
    TEST_REFUSED(grt_loader_bind(loader, 2, &x, &y), GRT_INVALID, "grt_loader_bind: no such turn");
    TEST_REFUSED(grt_loader_upload(NULL, &batch, 0), GRT_INVALID, "grt_loader_upload: no loader");
    TEST_REFUSED(grt_loader_upload(loader, NULL, 0), GRT_INVALID, "grt_loader_upload: no batch");
    batch.slot = grt_loader_info(loader).slots;
    TEST_REFUSED(grt_loader_upload(loader, &batch, 0), GRT_INVALID, "no such slot or part");
    grt_loader_release(loader, &batch);
    grt_loader_release(NULL, &batch);
    grt_loader_release(loader, NULL);
    grt_loader_destroy(&loader);
    loader = grt_loader_create(grt_loader_desc(.data = data, .batch = 6));
    TEST_REFUSED(grt_loader_bind(loader, 0, &x, &y), GRT_INVALID, "grt_loader_bind: no device");
    grt_loader_destroy(&loader);
    grt_dataset_close(&data);
}

// To look whether there is a next batch takes none; where there will be none it says so without a
// sentence, and the call that wants it has one.
static void a_look_ahead(void **state) {
    (void)state;
    for (uint32_t workers = 0; workers < 3; workers++) {
        struct grt_dataset *data = open_rows(false, 0);
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .batch = 6, .workers = workers));
        struct grt_batch batch;
        assert_non_null(loader);
        for (uint64_t i = 0; i < 6; i++) {
            assert_true(grt_loader_peek(loader) && grt_loader_peek(loader));
            assert_true(grt_loader_next(loader, &batch));
            assert_int_equal(batch.position.epoch * 4 + batch.position.batch, i);
            assert_int_equal(batch.rows, i % 4 == 3 ? 2 : 6);
            assert_true((double)batch.x[0] == data_kit_value(i % 4 * 6 * WIDTH));
            // Behind the rows of a last batch stands nothing of those before, x nor y.
            for (uint32_t k = batch.rows; k < 6; k++) {
                assert_true(((const float *)batch.y)[k] == 0 && batch.x[k * WIDTH] == 0 &&
                            batch.x[k * WIDTH + WIDTH - 1] == 0);
            }
            grt_loader_release(loader, &batch);
        }
        grt_loader_destroy(&loader);
        assert_int_equal(truncate(data_kit_path("rows.h5"), 1000), 0);
        loader = grt_loader_create(grt_loader_desc(.data = data, .batch = 6, .workers = workers));
        uint32_t errors = test_log.lines[GRT_LOG_ERROR];
        assert_false(grt_loader_peek(loader));
        assert_int_equal(test_log.lines[GRT_LOG_ERROR], errors);
        TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "rows.h5: the file ends at");
        struct grt_loader_raw raw = {0};
        TEST_REFUSED(grt_loader_raw(loader, 2, 0, &raw), GRT_BAD_DATA, "rows.h5: the file ends at");
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
    }
}

// A batch that was given back twice, or that came before a seek, takes nobody's slot.
static void released_twice(void **state) {
    (void)state;
    struct grt_dataset *data = open_rows(false, 0);
    struct grt_loader *loader =
        grt_loader_create(grt_loader_desc(.data = data, .batch = 5, .held = 2));
    struct grt_batch first, second, third;
    assert_true(loader && grt_loader_next(loader, &first));
    grt_loader_release(loader, &first);
    grt_loader_release(loader, &first);
    assert_true(grt_loader_seek(loader, (struct grt_loader_position){3, 1}));
    assert_true(grt_loader_next(loader, &first) && grt_loader_next(loader, &second));
    assert_int_equal(first.position.epoch, 3);
    assert_int_equal(first.position.batch, 1);
    assert_int_equal(second.position.batch, 2);
    assert_int_not_equal(first.slot, second.slot);
    TEST_REFUSED(grt_loader_next(loader, &third), GRT_INVALID,
                 "2 batches are held, the desc's `held` is 2");
    grt_loader_release(loader, &second);
    // Slots come in turn: the first is still held.
    TEST_REFUSED(grt_loader_next(loader, &third), GRT_INVALID, "batches are held");
    TEST_REFUSED(grt_loader_seek(loader, (struct grt_loader_position){0}), GRT_INVALID,
                 "a batch is held");
    grt_loader_release(loader, &first);
    assert_true(grt_loader_next(loader, &third));
    assert_int_equal(third.position.batch, 3);
    grt_loader_destroy(&loader);
    grt_dataset_close(&data);
}

// Short workers end with their epoch, and as many begin the next; others stay, but for a seek.
static void workers_of_epochs(void **state) {
    (void)state;
    struct grt_dataset *data = open_rows(false, 0);
    for (int is_short = 0; is_short < 2; is_short++) {
        struct grt_loader *loader = grt_loader_create(
            grt_loader_desc(.data = data, .batch = 5, .workers = 2, .short_workers = is_short > 0));
        assert_non_null(loader);
        for (uint64_t i = 0; i < 12; i++) {
            struct grt_batch batch;
            assert_true(grt_loader_next(loader, &batch));
            assert_int_equal(batch.position.epoch, i / 4);
            grt_loader_release(loader, &batch);
            assert_int_equal(grt_loader_info(loader).threads_started,
                             is_short ? 2 * (i / 4 + 1) : 2);
        }
        assert_true(grt_loader_seek(loader, (struct grt_loader_position){7, 3}));
        assert_int_equal(grt_loader_info(loader).threads_started, is_short ? 8 : 4);
        struct grt_batch batch;
        for (int i = 0; i < 2; i++) {
            assert_true(grt_loader_next(loader, &batch));
            assert_int_equal(batch.position.epoch, 7 + i);
            grt_loader_release(loader, &batch);
        }
        assert_int_equal(grt_loader_info(loader).threads_started, is_short ? 10 : 4);
        grt_loader_destroy(&loader);
    }
    grt_dataset_close(&data);
}

// Every epoch as the first, where that is asked for; else each of its own.
static void epochs_that_are_the_same(void **state) {
    (void)state;
    struct grt_dataset *data = open_rows(false, 0);
    for (int same = 0; same < 2; same++) {
        uint32_t rows[3][ROWS];
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .batch = 5, .shuffle = true, .seed = 4,
                                              .same = same > 0));
        assert_non_null(loader);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            assert_true(grt_loader_order(loader, epoch * 5, 0, ROWS, rows[epoch]));
        }
        assert_int_equal(memcmp(rows[0], rows[1], sizeof rows[0]) == 0, same);
        assert_int_equal(memcmp(rows[0], rows[2], sizeof rows[0]) == 0, same);
        grt_loader_destroy(&loader);
    }
    grt_dataset_close(&data);
}

// Of an epoch that is limited the first rows of its order come, another epoch's are others.
static void rows_of_a_limit(void **state) {
    (void)state;
    struct grt_dataset *data = open_rows(false, 0);
    struct grt_loader_desc desc = {.data = data, .batch = 4, .shuffle = true, .seed = 6};
    struct grt_loader *all = grt_loader_create(&desc);
    desc.limit = 7;
    struct grt_loader *some = grt_loader_create(&desc);
    assert_true(all && some);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        uint32_t wanted[ROWS], seen = 0;
        assert_true(grt_loader_order(all, epoch, 0, ROWS, wanted));
        for (int i = 0; i < 2; i++) {
            struct grt_batch batch;
            assert_true(grt_loader_next(some, &batch));
            assert_int_equal(batch.position.epoch, epoch);
            assert_int_equal(batch.rows, i ? 3 : 4);
            for (uint32_t k = 0; k < batch.rows; k++, seen++) {
                assert_true(((const float *)batch.y)[k] == (float)(100 + wanted[seen]));
            }
            grt_loader_release(some, &batch);
        }
    }
    grt_loader_destroy(&all);
    grt_loader_destroy(&some);
    grt_dataset_close(&data);
}

// ---- on the device ----

static struct grt_tensor tensor_of(enum grt_dtype dtype, uint64_t rows, uint64_t cols) {
    struct grt_tensor t = {.dtype = dtype, .rank = 2, .shape = {rows, cols}};
    uint64_t bytes = rows * cols * 4;
    t.range = (struct grt_range){grt_buf_create(dev, grt_buf_desc(.size = bytes)), 0, bytes};
    assert_non_null(t.range.buf);
    return t;
}

// Places on the device: of the right type and size, each turn its own; bound to other parts they
// are all to be bound anew.
static void places_of_turns(void **state) {
    (void)state;
    for (int classes = 0; classes < 2; classes++) {
        struct grt_dataset *data = open_rows(classes, 0);
        enum grt_dtype type = classes ? GRT_U32 : GRT_F32, other = classes ? GRT_F32 : GRT_U32;
        struct grt_tensor x[2], y[2], wrong = tensor_of(other, 6, 1), parts[2], aims[2];
        for (int i = 0; i < 2; i++) {
            x[i] = tensor_of(GRT_F32, 6, WIDTH);
            y[i] = tensor_of(type, 6, 1);
            parts[i] = tensor_of(GRT_F32, 4, WIDTH);
            aims[i] = tensor_of(type, 4, 1);
        }
        for (int pin = 0; pin < 2; pin++) {
            struct grt_loader *loader =
                grt_loader_create(grt_loader_desc(.data = data, .batch = 6, .dev = dev, .turns = 2,
                                                  .held = 2, .pin = pin > 0));
            struct grt_batch batches[2];
            assert_non_null(loader);
            const char *says = classes ? "y must be u32 with 6 elements in 6 rows, allocated"
                                       : "y must be f32 with 6 elements in 6 rows, allocated";
            TEST_REFUSED(grt_loader_bind(loader, 0, &x[0], &wrong), GRT_INVALID, says);
            TEST_REFUSED(grt_loader_bind(loader, 0, &x[0], NULL), GRT_INVALID, says);
            TEST_REFUSED(grt_loader_bind(loader, 0, &y[0], &y[0]), GRT_INVALID,
                         "x must be f32 with 18 elements in 6 rows, allocated");
            struct grt_tensor nowhere = x[0];
            nowhere.range.buf = NULL;
            TEST_REFUSED(grt_loader_bind(loader, 0, &nowhere, &y[0]), GRT_INVALID, "x must be f32");
            assert_true(grt_loader_bind(loader, 0, &x[0], &y[0]));
            for (int i = 0; i < 2; i++) {
                assert_true(grt_loader_next(loader, &batches[i]));
                assert_int_equal(grt_loader_turn(loader, &batches[i], 0), i);
            }
            assert_true(grt_loader_upload(loader, &batches[0], 0));
            TEST_REFUSED(grt_loader_upload(loader, &batches[1], 0), GRT_INVALID,
                         "grt_loader_bind() was not called");
            TEST_REFUSED(grt_loader_upload(loader, &batches[0], 1), GRT_INVALID,
                         "no such slot or part");
            assert_true(grt_loader_bind(loader, 1, &x[1], &y[1]));
            assert_true(grt_loader_upload(loader, &batches[1], 0));
            assert_true(grt_dev_wait(dev));
            for (int i = 0; i < 2; i++) {
                float got[6 * WIDTH];
                uint32_t words[6];
                assert_true(grt_buf_read(x[i].range.buf, 0, got, sizeof got));
                assert_true(grt_buf_read(y[i].range.buf, 0, words, sizeof words));
                assert_memory_equal(got, batches[i].x, sizeof got);
                assert_memory_equal(words, batches[i].y, sizeof words);
            }
            // In parts of four rows: the second has two, and goes to the other turn.
            assert_true(grt_loader_bind(loader, 0, &parts[0], &aims[0]));
            TEST_REFUSED(grt_loader_upload(loader, &batches[0], 1), GRT_INVALID,
                         "grt_loader_bind() was not called");
            assert_true(grt_loader_bind(loader, 1, &parts[1], &aims[1]));
            for (uint32_t part = 0; part < 2; part++) {
                assert_int_equal(grt_loader_turn(loader, &batches[1], part), part);
                assert_true(grt_loader_upload(loader, &batches[1], part));
                assert_true(grt_dev_wait(dev));
                float got[4 * WIDTH];
                uint32_t words[4];
                assert_true(grt_buf_read(parts[part].range.buf, 0, got, sizeof got));
                assert_true(grt_buf_read(aims[part].range.buf, 0, words, sizeof words));
                assert_memory_equal(got, batches[1].x + part * 4 * WIDTH,
                                    (part ? 2 : 4) * WIDTH * 4);
                assert_memory_equal(words, (const uint32_t *)batches[1].y + part * 4,
                                    part ? 8 : 16);
            }
            TEST_REFUSED(grt_loader_upload(loader, &batches[1], 2), GRT_INVALID,
                         "no such slot or part");
            grt_loader_destroy(&loader);
        }
        for (int i = 0; i < 2; i++) {
            grt_buf_destroy(&x[i].range.buf);
            grt_buf_destroy(&y[i].range.buf);
            grt_buf_destroy(&parts[i].range.buf);
            grt_buf_destroy(&aims[i].range.buf);
        }
        grt_buf_destroy(&wrong.range.buf);
        grt_dataset_close(&data);
    }
}

// What is said of rows on the device: types, shapes, and no buffer where there is nothing.
static void rows_on_a_device(void **state) {
    (void)state;
    hid_t half = data_kit_half(false);
    const char *path = data_kit_path("forms.h5");
    const struct data_kit_set sets[] = {
        {.name = "bytes", .type = H5T_STD_U8LE, .shape = {7, 3}},
        {.name = "halves", .type = half, .shape = {7, 5}},
        {.name = "points", .shape = {7, 2, 3}},
        {.name = "images", .type = H5T_STD_U8LE, .shape = {7, 2, 2, 3}},
        {.name = "classes", .type = H5T_STD_U8LE, .shape = {7}},
        {.name = "two", .type = H5T_STD_U8LE, .shape = {7, 2}},
        {.name = "one", .shape = {7}},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        data_kit_write(path, i == 0, &sets[i]);
    }
    static const struct {
        const char *x, *y, *w;
        bool classes, normalise;
        enum grt_dtype x_type, y_type;
        uint32_t x_rank, y_rank;
        uint64_t x_shape[3], y_shape[2], x_bytes, y_bytes, norm_bytes;
    } rows[] = {
        {"bytes", NULL, NULL, false, false, GRT_U8, GRT_F32, 2, 0, {7, 3}, {0}, 24, 0, 0},
        {"bytes", "one", NULL, false, true, GRT_U8, GRT_F32, 2, 2, {7, 3}, {7, 1}, 24, 28, 24},
        {"halves", "two", NULL, false, true, GRT_F16, GRT_U8, 2, 2, {7, 5}, {7, 2}, 72, 16, 40},
        {"points",
         "halves",
         NULL,
         false,
         true,
         GRT_F32,
         GRT_F16,
         3,
         2,
         {7, 2, 3},
         {7, 5},
         168,
         72,
         0},
        {"images", "classes", NULL, true, true, GRT_U8, GRT_U32, 3, 1, {7, 4, 3}, {7}, 84, 28, 24},
        {"images",
         "classes",
         "one",
         true,
         false,
         GRT_U8,
         GRT_U32,
         3,
         2,
         {7, 4, 3},
         {7, 2},
         84,
         56,
         0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dataset *data = grt_dataset_open(
            grt_dataset_desc(.path = path, .inputs = &rows[i].x, .input_count = 1,
                             .targets = &rows[i].y, .target_count = rows[i].y != NULL,
                             .no_targets = !rows[i].y, .weights = rows[i].w,
                             .class_targets = rows[i].classes, .classes = rows[i].classes ? 250 : 0,
                             .normalise = rows[i].normalise));
        struct grt_loader *loader = grt_loader_create(
            grt_loader_desc(.data = data, .batch = 2, .dev = dev, .cache = GRT_CACHE_DEVICE));
        struct grt_tensor x, y;
        struct grt_range norm;
        assert_true(loader && grt_loader_device(loader, &x, &y, &norm));
        assert_int_equal(x.dtype, rows[i].x_type);
        assert_int_equal(x.rank, rows[i].x_rank);
        assert_int_equal(y.rank, rows[i].y_rank);
        assert_int_equal(y.range.buf != NULL, rows[i].y != NULL);
        assert_true(!rows[i].y || y.dtype == rows[i].y_type);
        assert_memory_equal(x.shape, rows[i].x_shape, sizeof rows[i].x_shape);
        assert_memory_equal(y.shape, rows[i].y_shape, sizeof rows[i].y_shape);
        assert_int_equal(x.range.size, rows[i].x_bytes);  // whole words
        assert_int_equal(y.range.size, rows[i].y_bytes);
        assert_int_equal(norm.size, rows[i].norm_bytes);
        assert_int_equal(norm.buf != NULL, rows[i].norm_bytes > 0);
        assert_string_equal(x.label, "data x");
        assert_string_equal(y.label, "data y");
        if (norm.buf) {
            float both[10];
            struct grt_dataset_info info = grt_dataset_info(data);
            assert_true(grt_buf_read(norm.buf, 0, both, norm.size));
            for (uint32_t k = 0; k < info.features; k++) {
                assert_true(both[k] == (float)info.mean[k]);
                assert_true(both[info.features + k] == (float)(1 / info.std[k]));
            }
        }
        grt_loader_destroy(&loader);
        assert_int_equal(grt_dev_mem_use(dev, "data").current, 0);
        grt_dataset_close(&data);
    }
    H5Tclose(half);
}

// Rows are on one device at a time. One that has no room for them leaves nothing behind: another
// gets them then, and what it had is given back.
static void one_device_at_a_time(void **state) {
    (void)state;
    struct grt_dataset *data = open_rows(false, 0);
    struct grt_dev *small =
        grt_dev_create(grt_dev_desc(.device = "ref:0", .mem_limit = ROWS * 4 * 4 - 1));
    struct grt_dev *enough =
        grt_dev_create(grt_dev_desc(.device = "ref:0", .mem_limit = ROWS * 4 * 4));
    struct grt_loader_desc desc = {
        .data = data, .batch = 5, .dev = small, .cache = GRT_CACHE_DEVICE};
    assert_true(small && enough);
    for (int i = 0; i < 2; i++) {
        TEST_REFUSED(grt_loader_create(&desc), GRT_NO_MEMORY, "use cache: ram");
        assert_int_equal(grt_dev_mem_use(small, NULL).current, 0);
    }
    desc.dev = enough;
    struct grt_loader *first = grt_loader_create(&desc), *second = grt_loader_create(&desc);
    assert_true(first && second);
    assert_int_equal(grt_dev_mem_use(enough, NULL).current, ROWS * 4 * 4);
    desc.dev = dev;
    TEST_REFUSED(grt_loader_create(&desc), GRT_INVALID, "rows.h5 is on another device already");
    grt_loader_destroy(&first);
    TEST_REFUSED(grt_loader_create(&desc), GRT_INVALID, "rows.h5 is on another device already");
    grt_loader_destroy(&second);
    assert_int_equal(grt_dev_mem_use(enough, NULL).current, 0);
    first = grt_loader_create(&desc);
    assert_non_null(first);
    grt_loader_destroy(&first);
    // Rows that cannot be read leave no buffer.
    assert_int_equal(truncate(data_kit_path("rows.h5"), 1000), 0);
    for (int i = 0; i < 2; i++) {
        TEST_REFUSED(grt_loader_create(&desc), GRT_BAD_DATA, "rows.h5: the file ends at byte 1000");
        assert_int_equal(grt_dev_mem_use(dev, NULL).current, 0);
    }
    grt_dev_destroy(&small);
    grt_dev_destroy(&enough);
    grt_dataset_close(&data);
}

// ---- the measures ----

// The measure of memory: rows and bytes of so many batches, each time.
static void what_is_copied(void **state) {
    (void)state;
    struct grt_dataset *data = open_rows(false, 0);
    for (uint32_t batch = 6; batch <= 7; batch++) {
        struct grt_loader *loader = data_kit_load(data, batch);
        struct grt_copier *copier = grt_copier_create(loader);
        assert_non_null(copier);
        for (uint32_t i = 1; i < 4; i++) {
            struct grt_loader_raw raw = {0};
            assert_true(grt_copier_run(copier, i, 10 * i, &raw));
            assert_int_equal(raw.rows, 10 * i * batch);
            assert_int_equal(raw.bytes, 10 * i * batch * (WIDTH + 1) * 4);
            assert_true(raw.seconds > 0);
        }
        grt_copier_destroy(&copier);
        assert_null(copier);
        grt_copier_destroy(&copier);
        grt_loader_destroy(&loader);
    }
    grt_dataset_close(&data);
}

#define BATCHES_CASE(function)                                                                     \
    { #function, function, begin, end, NULL }

static const struct CMUnitTest cases[] = {
    BATCHES_CASE(descs),
    BATCHES_CASE(calls_of_nothing),
    BATCHES_CASE(a_look_ahead),
    BATCHES_CASE(released_twice),
    BATCHES_CASE(workers_of_epochs),
    BATCHES_CASE(epochs_that_are_the_same),
    BATCHES_CASE(rows_of_a_limit),
    BATCHES_CASE(places_of_turns),
    BATCHES_CASE(rows_on_a_device),
    BATCHES_CASE(one_device_at_a_time),
    BATCHES_CASE(what_is_copied),
};
TEST_SUITE(batches, false, cases);
