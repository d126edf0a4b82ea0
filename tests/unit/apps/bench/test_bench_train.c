// SPDX-License-Identifier: Apache-2.0
// `gpurt bench train` with rows that were made up: every column, the order of rows and what is left
// out of them, what the command line and the config say together, what is recommended in each form,
// files that are written, and exit codes. What rows mean has test_train_advice.c.
#include "unit/apps/made_device.h"

#include "bench/train/bench_train.h"
#include "cli/command.h"
#include "gpurt/make.h"

static char folder[] = "/tmp/gpurt-bench-train-XXXXXX";
static char data[64], other[64], config[64], apply[64];

// ---- in place of the command's and the library's ----

static struct {
    uint32_t oom, few, nan, unsuited, broken;  // the batch of which a row is so; 0: none
    bool fits_device, no_phases;
    double counter, busy;
    uint64_t bytes;  // of memory that a row of a batch takes
    enum grt_cache cache;
} m;

void bench_counter_open(struct bench_counter *counter, const struct grt_dev_info *info) {
    (void)info;
    *counter = (struct bench_counter){0};
}

void bench_counter_close(struct bench_counter *counter) {
    (void)counter;
}

double bench_counter_read(const struct bench_counter *counter) {
    (void)counter;
    return m.counter;
}

bool grt_task_choose_cache(struct grt_dev *dev, const struct grt_task *task,
                           const struct grt_learner_desc *desc, enum grt_cache wanted,
                           struct grt_cache_choice *choice) {
    (void)dev;
    (void)task;
    assert_int_equal(desc->accumulate, 1);
    choice->cache = wanted == GRT_CACHE_DEVICE && !m.fits_device ? GRT_CACHE_RAM : wanted;
    return true;
}

struct grt_loader *grt_loader_create(const struct grt_loader_desc *desc) {
    assert_int_equal(desc->cache, GRT_CACHE_DEVICE);
    return calloc(1, 1);
}

void grt_loader_destroy(struct grt_loader **loader) {
    free(*loader);
    *loader = NULL;
}

// What was asked for, as figures of the row.
void train_measure(struct train_bench *b, struct train_row *row) {
    row->cache = b->kept ? GRT_CACHE_DEVICE : m.cache;
    row->status = row->batch == m.oom        ? TRAIN_OOM
                  : row->batch == m.few      ? TRAIN_FEW_ROWS
                  : row->batch == m.nan      ? TRAIN_NOT_FINITE
                  : row->batch == m.unsuited ? TRAIN_UNSUITED
                  : row->batch == m.broken   ? TRAIN_BROKEN
                                             : TRAIN_OK;
    if (row->status == TRAIN_BROKEN) {
        grt_fail(GRT_LOST, "made up: it broke");
        return;
    }
    row->planned = row->workers == 0;
    row->memory = b->model.depth * 1000 + b->model.hidden + m.bytes * row->batch;
    row->io = 0.0123456;
    row->upload = b->seconds * 1e-3;
    row->input = 0.001;
    row->forward = 0.002;
    row->backward = 0.004;
    row->optimizer = 0.0005;
    row->total = row->batch * 1e-3;
    row->rate = row->batch * 10.0 + row->workers + row->precision;
    row->stall = 0.125;
    row->spread = 0.25;
    row->busy = m.busy;
    row->counter = m.counter;
    row->phases = !m.no_phases;
    row->samples = (uint32_t)b->steps;
    row->variant = row->batch == 8 ? NULL : "fused";
}

static int begin(void **state) {
    memset(&m, 0, sizeof m);
    m.counter = -1;
    m.busy = 0.75;
    made_forks = true;
    return made_begin(state);
}

static int make(void **state) {
    (void)state;
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(data, sizeof data, "%s/d.h5", folder);
    snprintf(other, sizeof other, "%s/e.h5", folder);
    snprintf(config, sizeof config, "%s/c.yaml", folder);
    snprintf(apply, sizeof apply, "%s/a.yaml", folder);
    return grt_data_make(grt_make_desc(.path = data, .samples = 300, .features = 3)) &&
                   grt_data_make(grt_make_desc(.path = other, .samples = 200, .features = 2))
               ? 0
               : -1;
}

static int unmake(void **state) {
    (void)state;
    unlink(data);
    unlink(other);
    unlink(config);
    unlink(apply);
    return rmdir(folder);
}

static int run(const char *words) {
    char line[1024];
    snprintf(line, sizeof line, "train --data %s %s", data, words);
    return made_run(bench_train, line);
}

static void flag(size_t row, const char *key, bool want) {
    assert_true(json_is_boolean(made_cell(row, key)));
    assert_int_equal(json_is_true(made_cell(row, key)), want);
}

// ---- rows ----

static void columns(void **state) {
    (void)state;
    m.counter = 0.5;
    assert_int_equal(run("--batch-sizes 16,8 --num-workers 2 --precision f16 --model "
                         "depth=3,hidden=32 --time 0.25 --steps 12"),
                     0);
    assert_int_equal(made_count(), 2);
    for (size_t i = 0; i < 2; i++) {
        double batch = i ? 16 : 8;
        NUMBER(i, "batch", batch);
        NUMBER(i, "workers", 2);
        TEXT(i, "precision", "f16");
        flag(i, "pin_memory", true);
        TEXT(i, "cache", "none");
        NUMBER(i, "io_ms", 12.35);  // no more digits than it has
        NUMBER(i, "upload_ms", 0.25);
        NUMBER(i, "input_ms", 1);
        NUMBER(i, "forward_ms", 2);
        NUMBER(i, "backward_ms", 4);
        NUMBER(i, "optimizer_ms", 0.5);
        NUMBER(i, "total_ms", batch);
        NUMBER(i, "spread", 0.25);
        NUMBER(i, "samples_per_s", 10 * batch + 2 + GRT_F16);
        NUMBER(i, "input_stall", 0.125);
        NUMBER(i, "device_busy", 0.75);
        NUMBER(i, "driver_busy", 0.5);
        NUMBER(i, "memory_bytes", 3032);
        NUMBER(i, "samples", 12);
        flag(i, "synthetic", false);
        TEXT(i, "status", "ok");
        assert_false(made_known(i, "oom_found_by"));
    }
    assert_false(made_known(0, "variant"));
    TEXT(1, "variant", "fused");
    m.counter = -1;
    m.no_phases = true;
    assert_int_equal(run("--batch-sizes 16 --num-workers 2 --precision f32"), 0);
    assert_false(made_known(0, "driver_busy"));
    assert_false(made_known(0, "upload_ms"));
    static const char *const phases[] = {"input_ms", "forward_ms", "backward_ms", "optimizer_ms"};
    for (int i = 0; i < 4; i++) {
        assert_false(made_known(0, phases[i]));
    }
    assert_string_equal(json_string_value(json_object_get(made_head, "schema")),
                        "gpurt.bench.train/1");
    const json_t *model = json_object_get(made_head, "model");
    assert_int_equal(json_integer_value(json_object_get(model, "depth")), 3);
    assert_int_equal(json_integer_value(json_object_get(model, "hidden")), 64);
}

// Batches ascend within workers, workers within pinned memory, that within types.
static void order(void **state) {
    (void)state;
    assert_int_equal(run("--batch-sizes 16,8 --num-workers 4,0 --precision bf16,f32 --pin-memory "
                         "off,on"),
                     0);
    assert_int_equal(made_count(), 16);
    for (size_t i = 0; i < 16; i++) {
        NUMBER(i, "batch", i % 2 ? 16 : 8);
        NUMBER(i, "workers", i / 2 % 2 ? 0 : 4);
        flag(i, "pin_memory", i / 4 % 2 == 0);
        TEXT(i, "precision", i / 8 ? "bf16" : "f32");
    }
    assert_int_equal(run("--batch-sizes 8 --num-workers 0 --precision f32 --pin-memory off"), 0);
    assert_int_equal(made_count(), 1);
    flag(0, "pin_memory", false);
}

// Behind a batch that cannot be there is no larger one; a loss that is no number says nothing of
// others.
static void what_cannot_be(void **state) {
    (void)state;
    static const char line[] = "--batch-sizes 8,16,32 --num-workers 0,2 --precision f32";
    static const struct {
        uint32_t *of;
        const char *status;
        size_t rows;
    } cases[] = {{&m.oom, "OOM", 4},
                 {&m.few, "few rows", 4},
                 {&m.unsuited, "unsuited", 4},
                 {&m.nan, "NaN", 6}};
    for (size_t i = 0; i < 4; i++) {
        *cases[i].of = 16;
        assert_int_equal(run(line), 0);
        assert_int_equal(made_count(), cases[i].rows);
        size_t second = cases[i].rows / 2 + 1;
        TEXT(1, "status", cases[i].status);
        TEXT(second, "status", cases[i].status);
        static const char *const measured[] = {"io_ms",         "total_ms",  "spread",
                                               "samples_per_s", "samples",   "upload_ms",
                                               "device_busy",   "forward_ms"};
        for (size_t k = 0; k < 8; k++) {
            assert_false(made_known(1, measured[k]));
        }
        if (i == 0) {
            TEXT(1, "oom_found_by", "plan");
            TEXT(second, "oom_found_by", "allocation");
        } else {
            assert_false(made_known(1, "oom_found_by"));
        }
        // Nothing at all that is good is a failure, and memory a reason of its own.
        *cases[i].of = 8;
        assert_int_equal(run("--batch-sizes 8 --num-workers 0 --precision f32"),
                         i == 0 ? COMMAND_NO_MEMORY : COMMAND_INTERNAL);
        assert_int_equal(made_count(), 1);
        *cases[i].of = 0;
    }
    m.broken = 16;
    assert_int_equal(run(line), COMMAND_INTERNAL);
    assert_int_equal(made_count(), 1);
    assert_null(json_object_get(made_notes, "summary"));
}

static void defaults(void **state) {
    (void)state;
    m.few = 1 << 20;
    assert_int_equal(run(""), 0);
    // 256 to 65536 by fours, 0 and 4 workers, f32 and f16, of the config's model, 3 layers of 64.
    assert_int_equal(made_count(), 5 * 2 * 2);
    NUMBER(0, "batch", 256);
    NUMBER(4, "batch", 65536);
    NUMBER(5, "workers", 4);
    TEXT(10, "precision", "f16");
    NUMBER(0, "memory_bytes", 3064);
    NUMBER(0, "samples", 10);
    made_software();
    assert_int_equal(run(""), 0);
    assert_int_equal(made_count(), 4 * 2);
    NUMBER(0, "batch", 64);
    NUMBER(3, "batch", 4096);
    NUMBER(4, "workers", 2);
    NUMBER(0, "memory_bytes", 3064);
    // Rows on the device need no workers, unless some were asked for.
    m.fits_device = true;
    assert_int_equal(run("--batch-sizes 8"), 0);
    assert_int_equal(made_count(), 1);
    TEXT(0, "cache", "device");
    NUMBER(0, "workers", 0);
    assert_int_equal(run("--batch-sizes 8 --num-workers 0,2"), 0);
    assert_int_equal(made_count(), 2);
    m.fits_device = false;
    assert_int_equal(run("--batch-sizes 8 --cache device"), 0);
    assert_int_equal(made_count(), 2);
}

// ---- the config ----

static void write_config(const char *text) {
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int run_config(const char *words) {
    char line[1024];
    snprintf(line, sizeof line, "train --config %s %s", config, words);
    return made_run(bench_train, line);
}

static void of_the_config(void **state) {
    (void)state;
    char text[512];
    snprintf(text, sizeof text,
             "data: %s\nbatch_sizes: [8, 24]\nnum_workers_options: [3]\nsteps_per_test: 7\n"
             "test_mixed_precision: true\ntest_pin_memory: true\ndepth: 4\nhidden: 20\n",
             data);
    write_config(text);
    assert_int_equal(run_config(""), 0);
    assert_int_equal(made_count(), 2 * 2 * 2);
    NUMBER(0, "batch", 8);
    NUMBER(1, "batch", 24);
    NUMBER(0, "workers", 3);
    NUMBER(0, "samples", 7);
    NUMBER(0, "memory_bytes", 4020);
    flag(2, "pin_memory", false);
    TEXT(4, "precision", "f16");
    // The command line stands above it.
    assert_int_equal(run_config("--batch-sizes 40 --num-workers 1 --steps 9 --precision bf16 "
                                "--pin-memory off --model small"),
                     0);
    assert_int_equal(made_count(), 1);
    NUMBER(0, "batch", 40);
    NUMBER(0, "workers", 1);
    NUMBER(0, "samples", 9);
    TEXT(0, "precision", "bf16");
    flag(0, "pin_memory", false);
    NUMBER(0, "memory_bytes", 3016);
    snprintf(text, sizeof text,
             "data: %s\ntest_mixed_precision: false\npin_memory: false\n"
             "model: large\ncache: ram\nsteps_per_test: 1000000\n",
             data);
    write_config(text);
    assert_int_equal(run_config("--batch-sizes 8 --num-workers 0"), 0);
    assert_int_equal(made_count(), 1);
    TEXT(0, "precision", "f32");
    flag(0, "pin_memory", false);
    NUMBER(0, "memory_bytes", 12128);
    NUMBER(0, "samples", 1000);
    // Layers of their own widths are as many as there are widths.
    snprintf(text, sizeof text, "data: %s\nhidden: [20, 30, 40]\n", data);
    write_config(text);
    assert_int_equal(run_config("--batch-sizes 8 --num-workers 0 --precision f32"), 0);
    NUMBER(0, "memory_bytes", 3020);
    const json_t *hidden = json_object_get(json_object_get(made_head, "model"), "hidden");
    assert_int_equal(json_array_size(hidden), 3);
    assert_int_equal(json_integer_value(json_array_get(hidden, 2)), 40);
    // Other data are named on the command line.
    char line[200];
    snprintf(line, sizeof line, "--data %s --batch-sizes 8 --num-workers 0 --precision f32", other);
    assert_int_equal(run_config(line), 0);
    const json_t *about = json_object_get(made_head, "data");
    assert_int_equal(json_integer_value(json_object_get(about, "rows")), 200);
    write_config("batch_sizes: [0]\n");
    assert_int_equal(run_config(""), COMMAND_CONFIG);
    snprintf(line, sizeof line, "%s", config);
    unlink(config);
    assert_int_equal(run_config(""), COMMAND_NO_INPUT);
}

// ---- the end ----

static const json_t *choice(const char *name, const char *key) {
    const json_t *summary = json_object_get(made_notes, "summary");
    return json_object_get(json_object_get(summary, name), key);
}

static void summary(void **state) {
    (void)state;
    m.cache = GRT_CACHE_RAM;
    assert_int_equal(run("--batch-sizes 8,16 --num-workers 2 --precision f16 --pin-memory off"), 0);
    static const char *const names[] = {"highest_throughput", "best_efficiency", "recommended"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(json_integer_value(choice(names[i], "batch")), 16);
        assert_int_equal(json_integer_value(choice(names[i], "workers")), 2);
        assert_string_equal(json_string_value(choice(names[i], "precision")), "f16");
        assert_true(json_is_false(choice(names[i], "pin_memory")));
        assert_string_equal(json_string_value(choice(names[i], "cache")), "ram");
        double rate = 160 + 2 + GRT_F16;
        assert_true(fabs(json_number_value(choice(names[i], "samples_per_s")) - rate) < 1e-3);
        assert_int_equal(json_integer_value(choice(names[i], "memory_bytes")), 3064);
        double efficiency = json_number_value(choice(names[i], "samples_per_s_per_gb"));
        assert_true(fabs(efficiency * 3065e-9 / rate - 1) < 1e-3);
        assert_true(json_number_value(choice(names[i], "device_busy")) == 0.75);
    }
    const json_t *all = json_object_get(made_notes, "summary");
    assert_true(json_array_size(json_object_get(all, "advice")) > 0);
    assert_true(json_is_false(json_object_get(all, "synthetic")));
    assert_true(json_is_false(json_object_get(all, "interrupted")));
    assert_non_null(strstr(json_string_value(json_object_get(all, "next")), "gpurt bench --data "));
    m.oom = 8;
    assert_int_equal(run("--batch-sizes 8 --num-workers 2"), COMMAND_NO_MEMORY);
    all = json_object_get(made_notes, "summary");
    for (int i = 0; i < 3; i++) {
        assert_true(json_is_null(json_object_get(all, names[i])));
    }
}

static void for_people(void **state) {
    (void)state;
    static const struct {
        enum grt_cache cache;
        const char *pin, *data;
    } cases[] = {{GRT_CACHE_NONE, "on", "in the file"},
                 {GRT_CACHE_RAM, "off", "in memory"},
                 {GRT_CACHE_DEVICE, "on", "on the device"}};
    char line[512];
    for (size_t i = 0; i < 3; i++) {
        char part[512];
        m.cache = cases[i].cache;
        snprintf(line, sizeof line,
                 "train --data %s --batch-sizes 16 --num-workers 2 --precision f16 --model "
                 "depth=4,hidden=96 --pin-memory %s",
                 data, cases[i].pin);
        assert_int_equal(made_plain(bench_train, line), 0);
        snprintf(part, sizeof part,
                 "Recommended for training\n  batch size       16\n  workers          2\n"
                 "  precision        f16\n  pin memory       %s\n  data             %s\n"
                 "  throughput       163 samples/s\n  device memory    4 KiB (0.0%%)\n",
                 cases[i].pin, cases[i].data);
        if (!strstr(made_out, part) || !strstr(made_out, "Highest throughput\n  batch size") ||
            !strstr(made_out, "Best efficiency\n  batch size       16") ||
            !strstr(made_out, "\nNext: gpurt bench ") || !strstr(made_out, "\n* ")) {
            fail_msg("no '%s' in: %s", part, made_out);
        }
        assert_null(strstr(made_out, "Data: synthetic"));
        assert_null(strstr(made_out, "driver %"));
        assert_null(strstr(made_out, " Pin "));
    }
    m.counter = 0.5;
    snprintf(line, sizeof line, "train --data %s --batch-sizes 16 --pin-memory on,off", data);
    assert_int_equal(made_plain(bench_train, line), 0);
    assert_non_null(strstr(made_out, "driver %"));
    assert_non_null(strstr(made_out, " Pin "));
    snprintf(line, sizeof line, "train --data %s --batch-sizes 16 --format md", data);
    assert_int_equal(made_plain(bench_train, line), 0);
    assert_non_null(strstr(made_out, "```\nHighest throughput"));
    assert_non_null(strstr(made_out, "\n- "));
    assert_non_null(strstr(made_out, "Next: `gpurt bench "));
    // Of 1 GiB the fastest takes 89 %, more than is safe, and the other one 44.7 %.
    m.bytes = 60000000;
    snprintf(line, sizeof line, "train --data %s --batch-sizes 8,16 --num-workers 2", data);
    assert_int_equal(made_plain(bench_train, line), 0);
    assert_non_null(strstr(made_out, "Highest throughput\n  batch size       16\n"));
    assert_non_null(strstr(made_out, "Recommended for training\n  batch size       8\n"));
    assert_non_null(strstr(made_out, "  device memory    457.8 MiB (44.7%)\n"));
    m.oom = 16;
    m.bytes = 0;
    snprintf(line, sizeof line, "train --data %s --batch-sizes 16 --format md", data);
    assert_int_equal(made_plain(bench_train, line), COMMAND_NO_MEMORY);
    assert_non_null(strstr(made_out, "Recommended for training\n  none\n"));
}

// Without data a file is made, with enough rows for the largest batch, and removed again; the
// network is one that suits the device.
static void synthetic(void **state) {
    (void)state;
    static const struct {
        const char *batches;
        int rows;
    } cases[] = {{"8", 20000}, {"5001", 20004}};
    for (size_t i = 0; i < 2; i++) {
        char line[200];
        setenv("TMPDIR", folder, 1);
        snprintf(line, sizeof line, "train --batch-sizes %s --num-workers 0", cases[i].batches);
        assert_int_equal(made_run(bench_train, line), 0);
        const json_t *about = json_object_get(made_head, "data");
        assert_int_equal(json_integer_value(json_object_get(about, "rows")), cases[i].rows);
        assert_int_equal(json_integer_value(json_object_get(about, "x_width")), 32);
        assert_true(json_is_null(json_object_get(about, "file")));
        const json_t *model = json_object_get(made_head, "model");
        assert_int_equal(json_integer_value(json_object_get(model, "depth")), i ? 3 : 6);
        assert_int_equal(json_integer_value(json_object_get(model, "hidden")), i ? 16 : 64);
        flag(0, "synthetic", true);
        assert_true(
            json_is_true(json_object_get(json_object_get(made_notes, "summary"), "synthetic")));
        unsetenv("TMPDIR");
        made_software();
    }
}

static void applied(void **state) {
    (void)state;
    char line[512], text[8192] = "";
    snprintf(line, sizeof line,
             "--batch-sizes 8,16 --num-workers 2 --precision f16 --pin-memory off --apply %s",
             apply);
    assert_int_equal(run(line), 0);
    FILE *file = fopen(apply, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_non_null(strstr(text, "batch_size: 16\n"));
    assert_non_null(strstr(text, "num_workers: 2\n"));
    assert_non_null(strstr(text, "163 samples/s on Made-up 9000, opencl:0"));
    const json_t *all = json_object_get(made_notes, "summary");
    assert_non_null(strstr(json_string_value(json_object_get(all, "next")),
                           "gpurt train supervised --config "));
    unlink(apply);
    m.oom = 8;
    assert_int_equal(run(line), COMMAND_INTERNAL);
    SAID("is not written: nothing can be recommended");
    assert_true(access(apply, F_OK) != 0);
    // Where it cannot be written nothing is measured first.
    assert_int_equal(run("--batch-sizes 8 --apply /nowhere/best.yaml"), 73);
    SAID("cannot create /nowhere/best.yaml");
    assert_int_equal(made_count(), 0);
    // The same file for two ends.
    snprintf(line, sizeof line, "--batch-sizes 8 --apply %s", data);
    assert_int_equal(run(line), COMMAND_USAGE);
    snprintf(line, sizeof line, "--batch-sizes 8 --apply %s --output %s", apply, apply);
    assert_int_equal(run(line), COMMAND_USAGE);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"--steps 0", "1 to 1000"},
        {"--steps 1001", "1 to 1000"},
        {"--num-workers 257", "0 to 256"},
        {"--cache host", "known are auto, none, ram and device"},
        {"--pin-memory maybe", "on"},
        {"--model big", "small, medium, large, or as in depth=6,hidden=64 is wanted"},
        {"--model small,large", "is wanted"},
        {"--precision f64", "f32"},
        {"--time 0", "above 0"},
        {"memory", "'memory': the kind comes first, as in `gpurt bench memory`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int code = run(cases[i].line);
        if (code != COMMAND_USAGE || !strstr(made_said, cases[i].said)) {
            fail_msg("%s: exit code %d, said: %s", cases[i].line, code, made_said);
        }
    }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(columns), CASE(order),      CASE(what_cannot_be), CASE(defaults), CASE(of_the_config),
        CASE(summary), CASE(for_people), CASE(synthetic),      CASE(applied),  CASE(refused),
    };
#undef CASE
    return cmocka_run_group_tests(cases, make, unmake);
}
