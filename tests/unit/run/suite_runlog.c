// SPDX-License-Identifier: Apache-2.0
// The log of a run: checksums against published vectors, event files read by a reader of this
// file's own, which knows protocol buffers and not the writer, and JSON lines.
#include "harness/harness.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "gpurt/config.h"
#include "gpurt/runlog.h"

static void checksums(void **state) {
    (void)state;
    // RFC 3720 (iSCSI), B.4, and the check value of every catalogue of CRCs.
    unsigned char bytes[48];
    memset(bytes, 0, 32);
    assert_int_equal(grt_crc32c(bytes, 32, 0), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(grt_crc32c(bytes, 32, 0), 0x62a8ab43);
    for (uint32_t i = 0; i < 32; i++) {
        bytes[i] = (unsigned char)i;
    }
    assert_int_equal(grt_crc32c(bytes, 32, 0), 0x46dd794e);
    for (uint32_t i = 0; i < 32; i++) {
        bytes[i] = (unsigned char)(31 - i);
    }
    assert_int_equal(grt_crc32c(bytes, 32, 0), 0x113fdb5c);
    const unsigned char read_command[48] = {
        0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 4, 0,
        0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 2,    0, 0, 0, 0, 0, 0, 0,
    };
    assert_int_equal(grt_crc32c(read_command, 48, 0), 0xd9963a56);
    assert_int_equal(grt_crc32c("123456789", 9, 0), 0xe3069283);
    assert_int_equal(grt_crc32c("6789", 4, grt_crc32c("12345", 5, 0)), 0xe3069283);
    assert_int_equal(grt_crc32c("", 0, 0), 0);
    // The mask of TFRecord: rotated right by 15, plus a constant.
    assert_int_equal(grt_crc32c_masked("", 0), 0xa282ead8);
    uint32_t crc = 0xe3069283;
    assert_int_equal(grt_crc32c_masked("123456789", 9),
                     (uint32_t)(((crc >> 15) | (crc << 17)) + 0xa282ead8ul));
}

// ---- a reader of event files ----

struct field {
    uint32_t number, wire;
    uint64_t bits;  // varint, fixed64 or fixed32
    const unsigned char *data;
    size_t size;  // length-delimited
};

static uint64_t varint(const unsigned char **at, const unsigned char *end) {
    uint64_t value = 0;
    for (uint32_t shift = 0; *at < end && shift < 64; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return value;
        }
    }
    fail();
    return 0;
}

static uint64_t little(const unsigned char *bytes, uint32_t size) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++) {
        value |= (uint64_t)bytes[i] << 8 * i;
    }
    return value;
}

static bool next_field(const unsigned char **at, const unsigned char *end, struct field *f) {
    if (*at == end) {
        return false;
    }
    uint64_t key = varint(at, end);
    *f = (struct field){.number = (uint32_t)(key >> 3), .wire = key & 7};
    uint32_t fixed = f->wire == 1 ? 8 : f->wire == 5 ? 4 : 0;
    if (f->wire == 0) {
        f->bits = varint(at, end);
    } else if (fixed) {
        assert_true(*at + fixed <= end);
        f->bits = little(*at, fixed);
        *at += fixed;
    } else {
        assert_int_equal(f->wire, 2);
        f->size = varint(at, end);
        assert_true(f->size <= (size_t)(end - *at));
        f->data = *at;
        *at += f->size;
    }
    return true;
}

struct scalar {
    char tag[64];
    float value;
    uint64_t step;
};

static float as_float(uint64_t bits) {
    return test_as_f32((uint32_t)bits);
}

static void read_value(const struct field *value, struct scalar *scalar) {
    struct field f;
    for (const unsigned char *at = value->data, *end = at + value->size;
         next_field(&at, end, &f);) {
        if (f.number == 1) {
            snprintf(scalar->tag, sizeof scalar->tag, "%.*s", (int)f.size, (const char *)f.data);
        } else {
            assert_true(f.number == 2 && f.wire == 5);
            scalar->value = as_float(f.bits);
        }
    }
}

// One Event; returns how many scalars it has.
static uint32_t read_event(const unsigned char *at, size_t size, bool first,
                           struct scalar *scalars) {
    struct field f;
    uint32_t count = 0;
    uint64_t step = 0;
    bool timed = false;
    bool version = false;
    for (const unsigned char *end = at + size; next_field(&at, end, &f);) {
        if (f.number == 1) {
            double time = 0;
            memcpy(&time, &f.bits, sizeof time);
            timed = f.wire == 1 && time > 1.5e9 && time < 1e11;
        } else if (f.number == 2) {
            step = f.bits;
        } else if (f.number == 3) {
            version = f.size == 13 && memcmp(f.data, "brain.Event:2", 13) == 0;
        } else {
            assert_int_equal(f.number, 5);
            struct field value;
            for (const unsigned char *in = f.data, *stop = in + f.size;
                 next_field(&in, stop, &value);) {
                assert_int_equal(value.number, 1);
                read_value(&value, &scalars[count++]);
            }
        }
    }
    assert_true(timed && version == first);
    for (uint32_t i = 0; i < count; i++) {
        scalars[i].step = step;
    }
    return count;
}

static uint32_t mask(uint32_t crc) {
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint32_t read_events(const char *path, struct scalar *scalars) {
    unsigned char bytes[8192];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    uint32_t count = 0;
    for (size_t at = 0; at < size;) {
        assert_true(at + 16 <= size);
        uint64_t length = little(bytes + at, 8);
        assert_true(at + 16 + length <= size);
        assert_int_equal(little(bytes + at + 8, 4), mask(grt_crc32c(bytes + at, 8, 0)));
        assert_int_equal(little(bytes + at + 12 + length, 4),
                         mask(grt_crc32c(bytes + at + 12, length, 0)));
        count += read_event(bytes + at + 12, length, at == 0, scalars + count);
        at += 16 + length;
    }
    return count;
}

// ---- rows ----

static void find_events(const char *board, char *path, size_t capacity) {
    DIR *dir = opendir(board);
    uint32_t files = 0;
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strncmp(entry->d_name, "events.out.tfevents.", 20) == 0) {
            snprintf(path, capacity, "%.200s/%.200s", board, entry->d_name);
            files++;
        }
    }
    closedir(dir);
    assert_int_equal(files, 1);
}

static void rows(void **state) {
    (void)state;
    char folder[] = "/tmp/gpurt-runlog-XXXXXX";
    char jsonl[128];
    char events[512] = "";
    assert_non_null(mkdtemp(folder));
    snprintf(jsonl, sizeof jsonl, "%s/log.jsonl", folder);
    char board[128];
    snprintf(board, sizeof board, "%s/board/run", folder);
    struct grt_runlog *log =
        grt_runlog_create(grt_runlog_desc(.jsonl = jsonl, .tensorboard = board));
    assert_non_null(log);
    GRT_RUNLOG_ROW(log, "train", 1, {.name = "loss", .number = 0.125},
                   {.name = "device", .text = "a \"b\""}, {.name = "lr", .number = 1e-3});
    GRT_RUNLOG_ROW(log, "validation", 300000000000ull, {.name = "loss", .number = NAN},
                   {.name = "count", .number = 20000});
    GRT_RUNLOG_ROW(log, "note", 5, {.name = "text", .text = "only"});
    grt_runlog_destroy(&log);
    assert_null(log);

    find_events(board, events, sizeof events);
    struct scalar scalars[8] = {0};
    assert_int_equal(read_events(events, scalars), 4);
    assert_string_equal(scalars[0].tag, "train/loss");
    assert_true(scalars[0].value == 0.125f && scalars[0].step == 1);
    assert_string_equal(scalars[1].tag, "train/lr");
    assert_true(scalars[1].value == 1e-3f);
    assert_string_equal(scalars[2].tag, "validation/loss");
    assert_true(isnan(scalars[2].value) && scalars[2].step == 300000000000ull);
    assert_true(scalars[3].value == 20000.0f);

    // JSON: a second run appends.
    log = grt_runlog_create(grt_runlog_desc(.jsonl = jsonl));
    GRT_RUNLOG_ROW(log, "train", 2, {.name = "loss", .number = -INFINITY});
    grt_runlog_destroy(&log);
    FILE *file = fopen(jsonl, "r");
    char line[1024];
    uint32_t lines = 0;
    while (fgets(line, sizeof line, file)) {
        json_error_t error;
        json_t *row = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        assert_non_null(row);
        const char *event = json_string_value(json_object_get(row, "event"));
        assert_true(event && json_is_real(json_object_get(row, "time")));
        if (lines == 0) {
            assert_int_equal(json_integer_value(json_object_get(row, "step")), 1);
            assert_true(json_real_value(json_object_get(row, "loss")) == 0.125);
            assert_string_equal(json_string_value(json_object_get(row, "device")), "a \"b\"");
        } else if (lines == 1) {
            assert_string_equal(json_string_value(json_object_get(row, "loss")), "NaN");
            assert_int_equal(json_integer_value(json_object_get(row, "count")), 20000);
        } else if (lines == 3) {
            assert_string_equal(json_string_value(json_object_get(row, "loss")), "-Infinity");
        }
        json_decref(row);
        lines++;
    }
    fclose(file);
    assert_int_equal(lines, 4);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

// ---- histograms ----

// The bytes of a HistogramProto: five doubles, then 30 ends of bins and what is in each.
static size_t histogram_bytes(const double heads[5], const double *ends, const double *counts,
                              unsigned char *bytes) {
    size_t size = 0;
    for (unsigned char i = 0; i < 5; i++) {
        bytes[size++] = (unsigned char)((i + 1) << 3 | 1);
        memcpy(bytes + size, &heads[i], 8);
        size += 8;
    }
    for (unsigned char i = 6; i < 8; i++) {
        const unsigned char head[] = {(unsigned char)(i << 3 | 2), 240, 1};  // 30 * 8 = 240
        memcpy(bytes + size, head, 3);
        memcpy(bytes + size + 3, i == 6 ? ends : counts, 240);
        size += 243;
    }
    return size;
}

static bool has_bytes(const unsigned char *in, size_t size, const unsigned char *part,
                      size_t length) {
    bool found = false;
    for (size_t at = 0; at + length <= size && !found; at++) {
        found = memcmp(in + at, part, length) == 0;
    }
    return found;
}

// Numbers that are not finite are in no bin, and count nowhere; numbers that are all alike have
// bins that rise too; of none there is no histogram.
static void histograms(void **state) {
    (void)state;
    char folder[] = "/tmp/gpurt-runlog-XXXXXX", path[512] = "", command[64];
    assert_non_null(mkdtemp(folder));
    struct grt_runlog *log = grt_runlog_create(grt_runlog_desc(.tensorboard = folder));
    assert_non_null(log);
    static const float numbers[] = {NAN, -1, INFINITY, 2, 0, 0.5f, -INFINITY, 2};
    static const float same[] = {7, 7}, none[] = {NAN, INFINITY};
    grt_runlog_histogram(log, 3, "some", numbers, 8);
    grt_runlog_histogram(log, 3, "same", same, 2);
    grt_runlog_histogram(log, 3, "none", none, 2);
    assert_false(grt_runlog_failed(log));
    grt_runlog_destroy(&log);
    find_events(folder, path, sizeof path);
    static unsigned char bytes[8192], wanted[1024];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    double ends[30], counts[30] = {[0] = 1, [10] = 1, [15] = 1, [29] = 2};
    for (int i = 0; i < 30; i++) {
        ends[i] = -1 + (3.0 / 30) * (i + 1);
    }
    ends[29] = 2;
    const double heads[5] = {-1, 2, 5, 3.5, 9.25};
    size_t length = histogram_bytes(heads, ends, counts, wanted);
    assert_true(has_bytes(bytes, size, wanted, length));
    double ends_of_one[30], counts_of_one[30] = {[0] = 2};
    for (int i = 0; i < 30; i++) {
        ends_of_one[i] = 7.0 + (i + 1);
    }
    const double heads_of_one[5] = {7, 7, 2, 14, 98};
    length = histogram_bytes(heads_of_one, ends_of_one, counts_of_one, wanted);
    assert_true(has_bytes(bytes, size, wanted, length));
    assert_true(has_bytes(bytes, size, (const unsigned char *)"same", 4));
    assert_false(has_bytes(bytes, size, (const unsigned char *)"none", 4));
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static size_t read_file(const char *path, unsigned char *bytes, size_t most) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, most, file);
    fclose(file);
    return size;
}

// What was given is told with its type, but for paths, and how it ended.
static void settings(void **state) {
    (void)state;
    for (int good = 0; good < 2; good++) {
        char folder[] = "/tmp/gpurt-runlog-XXXXXX", path[512] = "", command[64];
        static unsigned char bytes[8192];
        assert_non_null(mkdtemp(folder));
        static struct grt_config c;
        grt_config_init(&c);
        static const char *const pairs[] = {
            "epochs=7",      "residual=true", "optimizer=adam",      "data=secret.h5",
            "hidden=[8, 9]", "gamma=0.25",    "checkpoint_dir=here", "log=there.jsonl"};
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            assert_true(grt_config_override(&c, pairs[i]));
        }
        struct grt_runlog *log = grt_runlog_create(grt_runlog_desc(.tensorboard = folder));
        assert_non_null(log);
        grt_runlog_settings(log, &c);
        grt_runlog_settings(log, NULL);
        grt_runlog_ended(log, good);
        grt_runlog_destroy(&log);
        find_events(folder, path, sizeof path);
        size_t size = read_file(path, bytes, sizeof bytes);
        // A name, then its value: a number, a flag, a text.
        static const struct {
            const char *bytes;
            size_t length;
            bool there;
        } parts[] = {
            {"\x0a\x06"
             "epochs\x12\x09\x11\0\0\0\0\0\0\x1c\x40",
             19, true},
            {"\x0a\x08"
             "residual\x12\x02\x20\x01",
             14, true},
            {"\x0a\x09"
             "optimizer\x12\x06\x1a\x04"
             "adam",
             19, true},
            {"\x0a\x06"
             "hidden\x12\x08\x1a\x06[8, 9]",
             18, true},
            {"\x0a\x05"
             "gamma\x12\x09\x11\0\0\0\0\0\0\xd0\x3f",
             18, true},
            {"_hparams_/session_start_info", 28, true},
            {"_hparams_/session_end_info", 26, true},
            {"secret", 6, false},
            {"checkpoint_dir", 14, false},
            {"there.jsonl", 11, false},
            {"learning_rate", 13, false},
            {"\x22\x0b\x08\x01\x11", 5, true},
            {"\x22\x0b\x08\x02\x11", 5, true},
        };
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            bool there = parts[i].there;
            there = i == 11 ? good : i == 12 ? !good : there;
            if (has_bytes(bytes, size, (const unsigned char *)parts[i].bytes, parts[i].length) !=
                there) {
                fail_msg("part %zu", i);
            }
        }
        snprintf(command, sizeof command, "rm -r %s", folder);
        assert_int_equal(system(command), 0);
    }
    grt_runlog_settings(NULL, NULL);
    grt_runlog_ended(NULL, true);
    grt_runlog_histogram(NULL, 1, "n", NULL, 0);
}

// Numbers as JSON has them: whole ones as such as far as a double tells them, texts as they are.
static void numbers_of_rows(void **state) {
    (void)state;
    char path[] = "/tmp/gpurt-runlog-XXXXXX";
    static const struct {
        double number;
        bool whole;
        const char *text;
    } rows[] = {{5, true, NULL},
                {-5, true, NULL},
                {0.1, false, NULL},
                {0.123456789012, false, NULL},
                {8999999999999999.0, true, NULL},
                {9e15, false, NULL},
                {-9e15, false, NULL},
                {1e300, false, NULL},
                {INFINITY, false, "Infinity"},
                {-INFINITY, false, "-Infinity"},
                {NAN, false, "NaN"}};
    int made = mkstemp(path);
    assert_true(made >= 0 && close(made) == 0);
    struct grt_runlog *log = grt_runlog_create(grt_runlog_desc(.jsonl = path));
    assert_non_null(log);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        GRT_RUNLOG_ROW(log, "e", i, {.name = "n", .number = rows[i].number});
    }
    grt_runlog_destroy(&log);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[512];
        assert_non_null(fgets(line, sizeof line, file));
        json_t *row = json_loads(line, 0, NULL), *n = json_object_get(row, "n");
        assert_non_null(row);
        assert_int_equal(json_integer_value(json_object_get(row, "step")), i);
        assert_string_equal(json_string_value(json_object_get(row, "event")), "e");
        if (rows[i].text) {
            assert_string_equal(json_string_value(n), rows[i].text);
        } else {
            assert_int_equal(json_is_integer(n), rows[i].whole);
            assert_true(json_number_value(n) == rows[i].number);
        }
        json_decref(row);
    }
    fclose(file);
    unlink(path);
    // A folder that is not there yet is made, with those above it.
    char folder[] = "/tmp/gpurt-runlog-XXXXXX", board[96], command[64];
    assert_non_null(mkdtemp(folder));
    snprintf(board, sizeof board, "%s/a/b/c/", folder);
    assert_true(grt_runlog_check(&(struct grt_runlog_desc){.tensorboard = board}));
    snprintf(board, sizeof board, "%s/new.jsonl", folder);
    assert_true(grt_runlog_check(&(struct grt_runlog_desc){.jsonl = board}));
    assert_int_equal(access(board, F_OK), -1);  // nothing is made
    assert_true(grt_runlog_check(&(struct grt_runlog_desc){.jsonl = "", .tensorboard = ""}));
    assert_true(grt_runlog_check(&(struct grt_runlog_desc){.jsonl = "some.jsonl"}));
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void refusals(void **state) {
    (void)state;
    TEST_REFUSED(grt_runlog_create(grt_runlog_desc(.jsonl = "/nowhere/at/all")), GRT_NO_OUTPUT,
                 "cannot create /nowhere/at/all: there is no folder /nowhere/at; make it first");
    TEST_REFUSED(grt_runlog_create(grt_runlog_desc(.tensorboard = "/dev/null/a")), GRT_NO_OUTPUT,
                 "/dev/null");
    // The same before a run begins, with the reason.
    TEST_REFUSED(grt_runlog_check(&(struct grt_runlog_desc){.jsonl = "/tmp"}), GRT_NO_OUTPUT,
                 "cannot create /tmp: Is a directory");
    TEST_REFUSED(grt_runlog_check(&(struct grt_runlog_desc){.jsonl = "/nowhere/at/all"}),
                 GRT_NO_OUTPUT,
                 "cannot create /nowhere/at/all: there is no folder /nowhere/at; make it first");
    TEST_REFUSED(grt_runlog_check(&(struct grt_runlog_desc){.tensorboard = "/dev/null/a"}),
                 GRT_NO_OUTPUT, "cannot make the folder /dev/null/a: Not a directory");
    // No files: rows are taken and forgotten.
    struct grt_runlog *log = grt_runlog_create(NULL);
    assert_non_null(log);
    GRT_RUNLOG_ROW(log, "train", 1, {.name = "loss", .number = 1});
    grt_runlog_row(NULL, "train", 1, NULL, 0);
    grt_runlog_destroy(&log);
    if (access("/dev/full", W_OK) == 0) {
        log = grt_runlog_create(grt_runlog_desc(.jsonl = "/dev/full"));
        assert_non_null(log);
        test_log.quiet = true;
        uint32_t errors = test_log.lines[GRT_LOG_ERROR];
        assert_false(grt_runlog_failed(log));
        for (uint32_t i = 0; i < 3; i++) {
            GRT_RUNLOG_ROW(log, "train", i, {.name = "loss", .number = 1});
        }
        test_log.quiet = false;
        assert_int_equal(test_log.lines[GRT_LOG_ERROR], errors + 1);  // said once
        test_log.expected++;
        assert_true(grt_runlog_failed(log));
        grt_runlog_destroy(&log);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(checksums),       TEST_CASE(rows),     TEST_CASE(histograms), TEST_CASE(settings),
    TEST_CASE(numbers_of_rows), TEST_CASE(refusals),
};
TEST_SUITE(runlog, false, cases);
