// SPDX-License-Identifier: Apache-2.0
// Files of runs and what is said of them: models as others write them, number by number, names
// without a folder, and data for validation that do not fit.
#include "kits/data_kit.h"
#include "kits/run_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/env.h"
#include "gpurt/model_file.h"
#include "gpurt/runlog.h"
#include "run/run_parts.h"
#include "run/task/task_parts.h"

// Runs `inside` in an empty folder, where names need no folder.
static void in_folder(void (*inside)(void)) {
    char here[4096], folder[] = "/tmp/gpurt-runfacts-XXXXXX", command[64];
    assert_non_null(getcwd(here, sizeof here));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    inside();
    assert_int_equal(chdir(here), 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

// ---- logs ----

static void log_of_one_letter(void) {
    struct grt_runlog *log = grt_runlog_create(grt_runlog_desc(.jsonl = "l", .tensorboard = "b"));
    assert_non_null(log);
    GRT_RUNLOG_ROW(log, "train", 3, {.name = "loss", .number = 0.5});
    assert_false(grt_runlog_failed(log));
    grt_runlog_destroy(&log);
    // Opened again, it goes on behind what there is.
    log = grt_runlog_create(grt_runlog_desc(.jsonl = "l"));
    assert_non_null(log);
    GRT_RUNLOG_ROW(log, "train", 4, {.name = "loss", .number = 0.25});
    grt_runlog_destroy(&log);
    FILE *file = fopen("l", "r");
    assert_non_null(file);
    char line[512];
    for (int i = 0; i < 2; i++) {
        assert_non_null(fgets(line, sizeof line, file));
        assert_non_null(strstr(line, i == 0 ? "\"step\":3" : "\"step\":4"));
        assert_non_null(strstr(line, i == 0 ? "\"loss\":0.5" : "\"loss\":0.25"));
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_int_equal(access("b", R_OK), 0);
    assert_int_equal(remove("l"), 0);
}

static void logs_of_one_letter(void **state) {
    (void)state;
    in_folder(log_of_one_letter);
}

// Up to four terms have the words that a trainer gives them; one without a word its own.
static void terms_here(void) {
    struct grt_run run = {.start.terms = {"near", "far", NULL, "late"}, .start_step = 1};
    run.place.step = run.start_step;
    run.log = grt_runlog_create(grt_runlog_desc(.jsonl = "terms"));
    assert_non_null(run.log);
    struct grt_run_row row = {.event = GRT_RUN_EVALUATE};
    for (uint32_t i = 0; i < 4; i++) {
        grt_run_row_set(&row, (enum grt_run_field)(GRT_FIELD_TERM_1 + i), 0.5 * (i + 1));
    }
    grt_run_row_set(&row, GRT_FIELD_LOSS, 5);
    grt_run_tell(&run, &row);
    grt_runlog_destroy(&run.log);
    FILE *file = fopen("terms", "r");
    char line[512], own[64];
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    snprintf(own, sizeof own, "\"%s\":1.5", grt_run_field_word(GRT_FIELD_TERM_3));
    const char *const told[] = {"\"near\":0.5", "\"far\":1", own, "\"late\":2", "\"loss\":5"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        assert_non_null(strstr(line, told[i]));
    }
    assert_null(strstr(line, grt_run_field_word(GRT_FIELD_TERM_4)));
}

static void words_of_terms(void **state) {
    (void)state;
    in_folder(terms_here);
}

// ---- environments ----

static void names_here(void) {
    // A name is a file's by its end or by a folder in it.
    TEST_REFUSED(grt_env_open("none.k"), GRT_NO_INPUT, "none.k");
    TEST_REFUSED(grt_env_open("./none"), GRT_NO_INPUT, "./none");
    TEST_REFUSED(grt_env_open(".k"), GRT_INVALID, "'.k'");
    TEST_REFUSED(grt_env_open("none"), GRT_INVALID, "'none'");
    const struct grt_env_info *env = grt_env_open("pendulum");
    assert_ptr_equal(env, grt_env_find("pendulum"));
    grt_env_close(&env);
    assert_null(env);
}

static void names_of_environments(void **state) {
    (void)state;
    in_folder(names_here);
}

// ---- models ----

// Two outputs of three channels, 2 x 5 pixels: here [2][2][5][3], elsewhere [2][3][2][5].
static void models_here(void) {
    struct grt_archive *archive = grt_archive_create();
    assert_non_null(archive);
    float weight[2 * 2 * 5 * 3], other[3] = {7, 8, 9};
    for (int i = 0; i < 60; i++) {
        weight[i] = (float)i;
    }
    assert_true(grt_archive_add(archive, "model/c.weight", GRT_F32, 4,
                                (const uint64_t[]){2, 2, 5, 3}, weight));
    assert_true(grt_archive_add(archive, "model/c.bias", GRT_F32, 1, (const uint64_t[]){3}, other));
    static const char *const rest[] = {"optimizer/a", "state/b", "worlds/c", "input/mean"};
    for (int i = 0; i < 4; i++) {
        assert_true(grt_archive_add(archive, rest[i], GRT_F32, 1, (const uint64_t[]){3}, other));
    }
    assert_true(grt_archive_set_whole(archive, "classes", 5) &&
                grt_archive_set_real(archive, "rate", 0.5) &&
                grt_archive_set_text(archive, "kind", "plain"));
    uint32_t left = 9;
    assert_true(grt_model_save(archive, "m.safetensors", false, &left));
    assert_int_equal(left, 3);
    struct grt_archive *got = grt_model_load("m.safetensors");
    assert_non_null(got);
    assert_string_equal(got->path, "m.safetensors");
    assert_int_equal(got->tensor_count, 3);
    const struct grt_archive_tensor *t = grt_archive_find(got, "model/c.weight");
    assert_non_null(t);
    assert_memory_equal(t->shape, ((const uint64_t[]){2, 2, 5, 3}), 4 * sizeof(uint64_t));
    assert_memory_equal(t->data, weight, sizeof weight);
    t = grt_archive_find(got, "model/c.bias");
    assert_non_null(t);
    assert_memory_equal(t->data, other, sizeof other);
    assert_non_null(grt_archive_find(got, "input/mean"));
    grt_archive_destroy(&got);
    // As others see it: a channel's pixels lie together.
    assert_int_equal(rename("m.safetensors", "m.bin"), 0);
    FILE *file = fopen("m.bin", "rb");
    unsigned char bytes[8192];
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    float turned[60];
    unsigned char wanted[sizeof turned];
    for (int o = 0; o < 2; o++) {
        for (int c = 0; c < 3; c++) {
            for (int p = 0; p < 10; p++) {
                turned[(o * 3 + c) * 10 + p] = weight[(o * 10 + p) * 3 + c];
            }
        }
    }
    memcpy(wanted, turned, sizeof wanted);
    bool found = false;
    for (size_t at = 0; at + sizeof turned <= size && !found; at++) {
        found = memcmp(bytes + at, wanted, sizeof wanted) == 0;
    }
    assert_true(found);
    // All of it stays as it is, and of a checkpoint nothing is left behind.
    assert_true(grt_model_save(archive, "a.safetensors", true, &left));
    assert_int_equal(left, 0);
    left = 9;
    assert_true(grt_model_save(archive, "a.h5", false, &left));
    assert_int_equal(left, 0);
    static const char *const whole[] = {"a.safetensors", "a.h5"};
    for (int i = 0; i < 2; i++) {
        got = grt_model_load(whole[i]);
        assert_non_null(got);
        assert_int_equal(got->tensor_count, 6);
        t = grt_archive_find(got, "model/c.weight");
        assert_non_null(t);
        assert_memory_equal(t->data, weight, sizeof weight);
        assert_int_equal(grt_archive_whole(got, "classes", 0), 5);
        assert_true(grt_archive_real(got, "rate", 0) == 0.5);
        assert_string_equal(grt_archive_text(got, "kind", ""), "plain");
        grt_archive_destroy(&got);
    }
    assert_int_equal(grt_model_form("a.h5"), GRT_MODEL_CHECKPOINT);
    assert_int_equal(grt_model_form("a.safetensors"), GRT_MODEL_SAFETENSORS);
    assert_int_equal(grt_model_form("a.onnx"), GRT_MODEL_ONNX);
    assert_int_equal(grt_model_form("a.b"), GRT_MODEL_UNKNOWN);
    TEST_REFUSED(grt_model_load(NULL), GRT_INVALID, "no path of a model");
    TEST_REFUSED(grt_model_save(archive, NULL, false, &left), GRT_INVALID,
                 "an archive and a path of a model are wanted");
    TEST_REFUSED(grt_model_save(NULL, "a.h5", false, &left), GRT_INVALID, "are wanted");
    TEST_REFUSED(grt_model_save(archive, "a.h5", false, NULL), GRT_INVALID, "are wanted");
    // Who made it: each value more tells more.
    static const struct {
        const char *name, *text, *says;
        enum grt_model_maker maker;
    } makers[] = {
        {"kind", "plain", "a model of another program", GRT_MODEL_OF_OTHERS},
        {"config", "depth: 1\n", "a network of `gpurt train supervised`", GRT_MODEL_OF_SUPERVISED},
        {"algo", "ars", "a policy of `gpurt train es` for '?'", GRT_MODEL_OF_ES},
        {"env", "pole", "a policy of `gpurt train es` for 'pole'", GRT_MODEL_OF_ES},
        {"learner", "ppo", "a policy of `gpurt train ppo` for 'pole'", GRT_MODEL_OF_PPO},
    };
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        char text[GRT_MODEL_TEXT];
        assert_true(grt_archive_set_text(archive, makers[i].name, makers[i].text));
        assert_int_equal(grt_model_maker(archive, text), makers[i].maker);
        assert_string_equal(text, makers[i].says);
    }
    grt_archive_destroy(&archive);
}

static void models(void **state) {
    (void)state;
    in_folder(models_here);
}

// ---- data for validation ----

static void write_pair(const char *path, uint64_t rows, uint64_t inputs, uint64_t targets) {
    double *x = test_alloc(rows * inputs * sizeof *x), *y = test_alloc(rows * targets * sizeof *y);
    for (uint64_t i = 0; i < rows * inputs; i++) {
        x[i] = data_kit_value(i) / 251;
    }
    for (uint64_t i = 0; i < rows * targets; i++) {
        y[i] = data_kit_value(i + 7) / 251;
    }
    data_kit_write(path, true,
                   &(struct data_kit_set){.name = "x", .shape = {rows, inputs}, .data = x});
    data_kit_write(path, false,
                   &(struct data_kit_set){.name = "y", .shape = {rows, targets}, .data = y});
    free(x);
    free(y);
}

// The numbers of both files are told, and which is which; one that fits is taken whole.
static void data_apart(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    static const struct { uint64_t inputs, targets; } rows[] = {{4, 2}, {3, 5}, {3, 2}};
    write_pair(run_kit_data, 40, 3, 2);
    for (int i = 0; i < 3; i++) {
        char path[96], pair[128], want[320];
        snprintf(path, sizeof path, "%s/v%d.h5", run_kit_folder, i);
        snprintf(pair, sizeof pair, "validation_data=%s", path);
        snprintf(want, sizeof want,
                 "%s: its samples have %d numbers and %d targets, and those of %s 3 and 2", path,
                 (int)rows[i].inputs, (int)rows[i].targets, run_kit_data);
        write_pair(path, 12, rows[i].inputs, rows[i].targets);
        struct grt_config c = run_kit_config("run", PAIRS(pair));
        struct grt_supervised_desc desc = {.dev = test.dev, .config = &c};
        if (i < 2) {
            TEST_REFUSED(grt_supervised_create(&desc), GRT_BAD_DATA, want);
            continue;
        }
        struct grt_supervised *run = grt_supervised_create(&desc);
        assert_non_null(run);
        grt_supervised_destroy(&run);
    }
    run_kit_end();
}

// ---- losses ----

// A loss is a word, with a number in parentheses or without, and nothing behind it.
static void words_of_losses(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;  // NULL: it is taken
        uint32_t cols;
    } rows[] = {
        {"mse", NULL, 0},
        {"bce(3)", NULL, 3},
        {"cross_entropy(65536)", NULL, 65536},
        {"bce(3)x", "wants a number from 1 to 65536 in parentheses", 0},
        {"bce(3))", "wants a number from 1 to 65536 in parentheses", 0},
        {"bce(0)", "wants a number from 1 to 65536 in parentheses", 0},
        {"bce(65537)", "wants a number from 1 to 65536 in parentheses", 0},
        {"bce()", "wants a number from 1 to 65536 in parentheses", 0},
        {"bce(3", "wants a number from 1 to 65536 in parentheses", 0},
        {"cross_entropy", "wants the number of classes", 0},
        {"cross_entropy(1)", "wants the number of classes", 0},
        {"bces", "is none of mse, huber, l1, bce and cross_entropy(CLASSES)", 0},
        {"nt_xent", "is none of mse, huber, l1, bce and cross_entropy(CLASSES)", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct grt_task task;
        char text[64];
        task = (struct grt_task){0};
        grt_config_init(&task.config);
        snprintf(text, sizeof text, "losses=l1,%s", rows[i].text);
        assert_true(grt_config_override(&task.config, "targets=a,b"));
        assert_true(grt_config_override(&task.config, text));
        if (rows[i].why) {
            TEST_REFUSED(task_read_losses(&task), GRT_CONFIG, rows[i].why);
        } else {
            assert_true(task_read_losses(&task));
            assert_int_equal(task.loss_count, 2);
            assert_int_equal(task.losses[1].cols, rows[i].cols);
        }
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(logs_of_one_letter),
    TEST_CASE(words_of_terms),
    TEST_CASE(names_of_environments),
    TEST_CASE(models),
    TEST_CASE(data_apart),
    TEST_CASE(words_of_losses),
};
TEST_SUITE(runfacts, true, cases);
