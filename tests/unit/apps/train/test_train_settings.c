// SPDX-License-Identifier: Apache-2.0
// What trainings take from the command line: settings that are not KEY=VALUE, the device of a
// config beside options, defaults of simclr, files that a run is kept in, what --keys and init say
// of a key, and the GPU that a rank takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "train/init.h"
#include "train/train_config.h"
#include "train/train_file.h"

static char error[1024];

void talk_error(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error, sizeof error, format, list);
    va_end(list);
}

void talk_line(const char *format, ...) {
    (void)format;
}

void talk_progress(const char *format, ...) {
    (void)format;
}

bool talk_shows_progress(void) {
    return false;
}

void talk_clear(void) {}

void talk_stop_by(enum talk_stop how) {
    (void)how;
}

bool talk_stopped(void) {
    return false;
}

void talk_resume(void) {}

void talk_init(void) {}

void talk_set_level(int level) {
    (void)level;
}

void talk_as_rank(unsigned rank) {
    (void)rank;
}

void talk_as_first(void) {}

bool talk_styled(FILE *file) {
    (void)file;
    return false;
}

void talk_at_end(void (*restore)(void)) {
    (void)restore;
}

void talk_restore(void) {}

// ---- settings ----

static struct grt_config config;

static void test_words(void **state) {
    (void)state;
    grt_config_init(&config);
    const char *good[] = {"epochs=3", "seed=4"}, *bad[] = {"epochs=5", "d.h5"};
    assert_int_equal(train_config_settings(&config, NULL, good, 2), COMMAND_OK);
    assert_true(config.epochs == 3 && config.seed == 4);
    assert_int_equal(train_config_settings(&config, NULL, bad, 2), COMMAND_CONFIG);
    assert_string_equal(error, "'d.h5' is not of the form key=value; a file is named with --data "
                               "FILE or --config FILE");
    grt_config_init_for(&config, GRT_CONFIG_OF_ES);
    assert_int_equal(train_config_settings(&config, NULL, bad + 1, 1), COMMAND_CONFIG);
    assert_string_equal(error, "'d.h5' is not of the form key=value; a file is named with --config "
                               "FILE, an environment with --env NAME");
    const char *unknown[] = {"voodoo=1"};
    assert_int_equal(train_config_settings(&config, NULL, unknown, 1), COMMAND_CONFIG);
    assert_int_equal(train_config_settings(&config, "/nowhere/a.yaml", NULL, 0), COMMAND_NO_INPUT);
}

// An option stands above the config, which stands above the environment.
static void test_devices(void **state) {
    (void)state;
    static const struct {
        const char *option, *backend;  // "env": what the environment says
        double fraction;
        const char *c_device, *c_backend;
        double c_fraction;
        const char *device, *of_backend;
        double of_fraction;
    } rows[] = {
        {NULL, "auto", 0, "", "auto", 0, NULL, "auto", 0},
        {NULL, "auto", 0, "ref:0", "auto", 0.5, "ref:0", "auto", 0.5},
        {"vulkan:0", "auto", 0.25, "ref:0", "opencl", 0.5, "vulkan:0", "opencl", 0.25},
        {"vulkan:0", "ref", 0, "", "opencl", 0, "vulkan:0", "ref", 0},
        {"env", "auto", 0, "ref:0", "auto", 0, "ref:0", "auto", 0},
        {"env", "auto", 0, "", "auto", 0, "env", "auto", 0},
        {"env", "auto", 0, "", "opencl", 0, NULL, "opencl", 0},
        {"env", "auto", 0, "ref:0", "opencl", 0, "ref:0", "opencl", 0},
    };
    setenv("GPURT_DEVICE", "env", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct options o = {
            .device = rows[i].option, .backend = rows[i].backend, .mem_fraction = rows[i].fraction};
        if (o.device && strcmp(o.device, "env") == 0) {
            o.device = getenv("GPURT_DEVICE");
        }
        grt_config_init(&config);
        snprintf(config.device, sizeof config.device, "%s", rows[i].c_device);
        snprintf(config.backend, sizeof config.backend, "%s", rows[i].c_backend);
        config.mem_fraction = rows[i].c_fraction;
        train_config_devices(&config, &o);
        if (!rows[i].device) {
            assert_null(o.device);
        } else {
            assert_string_equal(o.device, rows[i].device);
        }
        assert_string_equal(o.backend, rows[i].of_backend);
        assert_true(o.mem_fraction == rows[i].of_fraction);
    }
    unsetenv("GPURT_DEVICE");
}

// Defaults of SimCLR stand where neither the key nor what it goes with is given.
static void test_simclr(void **state) {
    (void)state;
    static const struct {
        const char *given[2];
        const char *model, *loss, *schedule, *rule, *decay_of;
        double rate, decay, split;
        uint64_t epochs;
        bool drops;
    } rows[] = {
        {{"seed=1"},
         "resnet18",
         "nt_xent",
         "cosine",
         "sqrt",
         "matrices",
         0.001,
         1e-4,
         0,
         100,
         true},
        {{"model=small"},
         "small",
         "nt_xent",
         "cosine",
         "sqrt",
         "matrices",
         0.001,
         1e-4,
         0,
         100,
         true},
        {{"model=[{linear: 4}]"},
         "mlp",
         "nt_xent",
         "cosine",
         "sqrt",
         "matrices",
         0.001,
         1e-4,
         0,
         100,
         true},
        {{"max_steps=7"},
         "resnet18",
         "nt_xent",
         "cosine",
         "sqrt",
         "matrices",
         0.001,
         1e-4,
         0,
         10,
         true},
        {{"optimizer=sgd"},
         "resnet18",
         "nt_xent",
         "cosine",
         "sqrt",
         "matrices",
         -1,
         0,
         0,
         100,
         true},
        {{"learning_rate=0.5"},
         "resnet18",
         "nt_xent",
         "cosine",
         "none",
         "matrices",
         0.5,
         1e-4,
         0,
         100,
         true},
        {{"weight_decay=0.25"},
         "resnet18",
         "nt_xent",
         "cosine",
         "sqrt",
         "all",
         0.001,
         0.25,
         0,
         100,
         true},
        {{"validation_split=0.5", "drop_last=false"},
         "resnet18",
         "nt_xent",
         "cosine",
         "sqrt",
         "matrices",
         0.001,
         1e-4,
         0.5,
         100,
         false},
        {{"schedule=linear", "epochs=3"},
         "resnet18",
         "nt_xent",
         "linear",
         "sqrt",
         "matrices",
         0.001,
         1e-4,
         0,
         3,
         true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct grt_config plain;
        grt_config_init(&config);
        grt_config_init(&plain);
        for (int k = 0; k < 2 && rows[i].given[k]; k++) {
            assert_true(grt_config_override(&config, rows[i].given[k]));
        }
        assert_true(train_simclr_settings(&config));
        double rate = rows[i].rate < 0 ? plain.learning_rate : rows[i].rate;
        if (strcmp(config.model, rows[i].model) != 0 || strcmp(config.loss, rows[i].loss) != 0 ||
            strcmp(config.schedule, rows[i].schedule) != 0 ||
            strcmp(config.lr_rule, rows[i].rule) != 0 ||
            strcmp(config.decay_of, rows[i].decay_of) != 0 || config.learning_rate != rate ||
            config.weight_decay != rows[i].decay || config.validation_split != rows[i].split ||
            config.epochs != rows[i].epochs || config.drop_last != rows[i].drops) {
            fail_msg("row %zu: %s %s %s %s %s %g %g %g %u", i, config.model, config.loss,
                     config.schedule, config.lr_rule, config.decay_of, config.learning_rate,
                     config.weight_decay, config.validation_split, (unsigned)config.epochs);
        }
    }
}

// ---- files ----

static void test_files(void **state) {
    (void)state;
    static const struct {
        uint64_t asked, iterations;
        uint32_t turns;
    } turns[] = {{0, 1, 1},    {0, 19, 1},  {0, 20, 2}, {0, 29, 2},
                 {0, 100, 10}, {7, 100, 7}, {1, 5, 1},  {1ull << 40, 5, UINT32_MAX}};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        assert_int_equal(train_file_turns(turns[i].asked, turns[i].iterations), turns[i].turns);
    }
    struct train_file file = {.resume = "r.h5"};
    assert_int_equal(train_file_check(&file), COMMAND_OK);
    assert_int_equal(train_file_keep(&file, NULL, "o.h5"), COMMAND_OK);
    assert_string_equal(file.path, "r.h5");
    assert_int_equal(train_file_keep(&file, "g.h5", "o.h5"), COMMAND_OK);
    assert_string_equal(file.path, "g.h5");
    file.from = "f.h5";
    assert_int_equal(train_file_check(&file), COMMAND_USAGE);
    assert_string_equal(error,
                        "--resume goes on with a run and --from begins one: give one of them");
    file.resume = NULL;
    assert_int_equal(train_file_check(&file), COMMAND_OK);
    assert_int_equal(train_file_keep(&file, NULL, "o.h5"), COMMAND_OK);
    assert_string_equal(file.path, "o.h5");
    char longest[TRAIN_FILE_PATH + 1];
    memset(longest, 'p', sizeof longest);
    for (size_t more = 0; more < 2; more++) {
        longest[TRAIN_FILE_PATH - 1 + more] = '\0';
        assert_int_equal(train_file_keep(&file, longest, "o"),
                         more ? COMMAND_CANNOT_CREATE : COMMAND_OK);
        longest[TRAIN_FILE_PATH - 1] = 'p';
    }
    assert_non_null(strstr(error, "the name of the checkpoint is too long: ppp"));
    // What another environment has left is data; what is missing is not.
    assert_int_equal(train_file_load(&file, "/nowhere/a.h5"), COMMAND_NO_INPUT);
    assert_int_equal(train_file_exit(), COMMAND_NO_INPUT);
    assert_false(grt_config_set(NULL, GRT_CONFIG_SEED, "1"));
    assert_int_equal(train_file_exit(), COMMAND_DATA);
}

// ---- what is said of keys ----

static void test_keys(void **state) {
    (void)state;
    static const struct {
        struct grt_config_key_info info;
        const char *text;
    } rows[] = {
        {{.type = GRT_CONFIG_IS_FLAG, .words = ""}, "true|false"},
        {{.type = GRT_CONFIG_IS_TIME, .max = 9, .words = ""}, "seconds, or 90s, 10m, 1.5h, 2d"},
        {{.type = GRT_CONFIG_IS_AMOUNT, .max = 9, .words = ""},
         "a number, or a share such as 0.1 or 10%"},
        {{.type = GRT_CONFIG_IS_WHOLE, .min = 1, .max = 1048576, .words = ""}, "1 to 1048576"},
        {{.type = GRT_CONFIG_IS_REAL, .min = -0.5, .max = 0.25, .words = ""}, "-0.5 to 0.25"},
        {{.type = GRT_CONFIG_IS_REAL, .min = 0, .max = 0, .words = ""}, ""},
        {{.type = GRT_CONFIG_IS_WORD, .words = "f32=float|f16=half=fp16|bf16"}, "f32|f16|bf16"},
        {{.type = GRT_CONFIG_IS_WORD, .words = "one"}, "one"},
        {{.type = GRT_CONFIG_IS_TREE, .words = "[{linear: 8}]"}, "such as [{linear: 8}]"},
        {{.type = GRT_CONFIG_IS_TEXT, .words = ""}, ""},
    };
    char text[128];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        train_key_values(&rows[i].info, text);
        assert_string_equal(text, rows[i].text);
    }
    // What depends on other things is said; else it is what the reader has, of each kind its own.
    assert_string_equal(train_key_fallback(GRT_CONFIG_KNN_EVERY, GRT_CONFIG_OF_SUPERVISED),
                        "a tenth of all");
    assert_string_equal(train_key_fallback(GRT_CONFIG_EPOCHS, GRT_CONFIG_OF_SUPERVISED), "10");
    assert_string_equal(train_key_fallback(GRT_CONFIG_HIDDEN, GRT_CONFIG_OF_PPO), "64");
    assert_string_equal(train_key_fallback(GRT_CONFIG_ACTIVATION, GRT_CONFIG_OF_PPO), "tanh");
}

// A line of words has 98 characters at most.
static void test_width(void **state) {
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        char *text = NULL, head[128];
        size_t size = 0, second = 48 + more;
        memset(head, 'w', sizeof head);
        head[47] = ' ';
        head[48 + second] = '\0';
        grt_config_init(&config);
        FILE *file = open_memstream(&text, &size);
        init_print(file, &config, head);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(strcspn(text, "\n"), more ? 49 : 98);
        free(text);
    }
}

// A config to begin with: what is given as it is, all else as comments, each below its meaning.
static void test_init(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    grt_config_init(&config);
    assert_true(grt_config_override(&config, "epochs=7") &&
                grt_config_override(&config, "model=[{linear: 8}, relu]"));
    FILE *file = open_memstream(&text, &size);
    char head[400] = "first line\n";
    for (int i = 0; i < 30; i++) {
        snprintf(head + strlen(head), sizeof head - strlen(head), "word%d ", i);
    }
    init_print(file, &config, head);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(strncmp(text, "# first line\n# word0 word1 ", 27), 0);
    assert_non_null(strstr(text, "\ntraining:\n"));
    assert_non_null(strstr(text, "\nmodel:\n"));
    assert_non_null(strstr(text, "\n# scheduler:\n"));  // nothing of it is given
    assert_null(strstr(text, "\nscheduler:\n"));
    assert_non_null(strstr(text, "\n  epochs: 7\n"));
    assert_non_null(strstr(text, "\n  network: [{linear: 8}, relu]\n"));
    assert_non_null(strstr(text, "\n  # shuffle: true  # true|false\n"));
    assert_non_null(strstr(text, "\n  # knn_every:  # 0 to 1000000\n"));
    assert_null(strstr(text, "noise_std"));  // of another kind
    // Lines of words end where the next would be too long.
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        size_t length = strcspn(at, "\n");
        bool meaning = strncmp(at, "# ", 2) == 0 || strncmp(at, "  # ", 4) == 0;
        assert_true(length <= 140 && (!meaning || length <= 98 || strchr(at, ':')));
    }
    const char *wrapped = strstr(text, "word29");
    assert_non_null(wrapped);
    assert_int_equal(strncmp(wrapped, "word29\n", 7), 0);
    // It reads back as what was given, and nothing else.
    static struct grt_config back;
    grt_config_init(&back);
    assert_true(grt_config_parse(&back, "init.yaml", text, size));
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        assert_int_equal(grt_config_given(&back, key), grt_config_given(&config, key));
    }
    assert_true(back.epochs == 7);
    free(text);
}

// ---- ranks ----

static struct grt_dev_info devices[6];
static uint32_t device_count;

struct grt_dev_list *grt_dev_list_create(void) {
    struct grt_dev_list *list = calloc(1, sizeof *list);
    list->count = device_count;
    list->devices = devices;
    return list;
}

void grt_dev_list_destroy(struct grt_dev_list **list) {
    free(*list);
    *list = NULL;
}

static void add_device(const char *selector, enum grt_backend_id backend, const char *pci,
                       uint32_t software) {
    struct grt_dev_info *d = &devices[device_count++];
    *d = (struct grt_dev_info){.backend = backend};
    d->caps.software = software;
    snprintf(d->selector, sizeof d->selector, "%s", selector);
    snprintf(d->pci, sizeof d->pci, "%s", pci);
}

// The GPUs of a machine by turns, each once whichever drivers it has.
static void test_gpus_of_ranks(void **state) {
    (void)state;
    static const struct {
        const char *given, *backend;
        uint32_t number;
        const char *device;
        bool known;
    } rows[] = {
        {NULL, "auto", 0, "vulkan:0", true},
        {NULL, "auto", 1, "vulkan:1", true},
        {NULL, "auto", 2, "vulkan:0", true},
        {NULL, "auto", 5, "vulkan:1", true},
        {NULL, "opencl", 1, "opencl:1", true},
        {NULL, "ref", 0, "", false},
        {"ref:0", "auto", 3, "ref:0", true},
        {"1", "auto", 0, "vulkan:1", true},
        {"1,0", "auto", 1, "vulkan:0", true},
        {"ref,vulkan:1", "auto", 1, "vulkan:1", true},
        {"1", "ref", 0, "", true},
        {"", "auto", 1, "vulkan:1", true},
    };
    device_count = 0;
    add_device("vulkan:0", GRT_BACKEND_VULKAN, "0000:01:00.0", 0);
    add_device("vulkan:1", GRT_BACKEND_VULKAN, "0000:02:00.0", 0);
    add_device("vulkan:2", GRT_BACKEND_VULKAN, "", 1);
    add_device("opencl:0", GRT_BACKEND_OPENCL, "0000:01:00.0", 0);
    add_device("opencl:1", GRT_BACKEND_OPENCL, "0000:02:00.0", 0);
    add_device("ref:0", GRT_BACKEND_REF, "", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char device[32] = "?";
        const struct options o = {.device = rows[i].given, .backend = rows[i].backend};
        bool known = trainer_ranks_device(&o, rows[i].number, device, sizeof device);
        if (known != rows[i].known || strcmp(device, rows[i].device) != 0) {
            fail_msg("row %zu: %s, %d", i, device, known);
        }
    }
    // Two without an address are two.
    device_count = 0;
    add_device("opencl:0", GRT_BACKEND_OPENCL, "", 0);
    add_device("opencl:1", GRT_BACKEND_OPENCL, "", 0);
    char device[32];
    const struct options o = {.backend = "auto"};
    assert_true(trainer_ranks_device(&o, 1, device, sizeof device));
    assert_string_equal(device, "opencl:1");
    const char *words[TRAINER_MPIRUN_WORDS];
    size_t count = trainer_ranks_mpirun(words);
    assert_string_equal(words[0], "mpirun");
    assert_int_equal(count, geteuid() == 0 ? 11 : 10);
    assert_string_equal(words[count - 1], geteuid() == 0 ? "--allow-run-as-root" : "2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),  cmocka_unit_test(test_devices),
        cmocka_unit_test(test_simclr), cmocka_unit_test(test_files),
        cmocka_unit_test(test_keys),   cmocka_unit_test(test_init),
        cmocka_unit_test(test_width),  cmocka_unit_test(test_gpus_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
