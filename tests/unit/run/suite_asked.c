// SPDX-License-Identifier: Apache-2.0
// What a config says of groups of parameters and of widths; of a task's rows the most frequent
// class, and the memory that they want.
#include "kits/data_kit.h"
#include "kits/ref_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/feed.h"
#include "run/task/task_parts.h"

static void config_of(struct grt_config *c, const char *const *pairs) {
    grt_config_init(c);
    assert_true(grt_config_set(c, GRT_CONFIG_DATA, run_kit_data));
    for (; *pairs; pairs++) {
        if (!grt_config_override(c, *pairs)) {
            fail_msg("%s is refused", *pairs);
        }
    }
}

static struct grt_task task;  // too large for the stack

static bool opens(const char *const *pairs) {
    static struct grt_config c;
    config_of(&c, pairs);
    return grt_task_open(&task, &c, grt_dev_profile(test.dev), NULL);
}

// ---- groups ----

static bool reads(struct grt_config *c, const char *const *pairs, struct grt_optim_desc *d) {
    grt_config_init(c);
    for (; *pairs; pairs++) {
        assert_true(grt_config_override(c, *pairs));
    }
    return grt_task_optimizer(c, d);
}

static void groups(void **state) {
    (void)state;
    static struct grt_config c;
    static struct grt_optim_desc d;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"[{match: a, rate: 1}]", "groups at character 13: groups: no key 'rate'; there are match, "
                                  "learning_rate and weight_decay"},
        {"[{match: a, match: b, lr: 0.1}]",
         "groups at character 13: groups: 'match' was given already"},
        {"[{match: a, lr: 0.1, learning_rate: 0.2}]", "'learning_rate' was given already"},
        {"[{match: a, weight_decay: 0, weight_decay: 0}]", "'weight_decay' was given already"},
        {"[a]", "groups at character 2: groups: an entry is {match: NAME, learning_rate: R, "
                "weight_decay: D}"},
        {"[{lr: 0.1}]", "groups: an entry wants match"},
        {"[{match: a}]", "groups: an entry wants learning_rate or weight_decay"},
        {"[{match: [a], lr: 0.1}]", "groups: match wants a name with * and ?, such as"},
        {"[{match: '', lr: 0.1}]", "groups: match wants a name"},
        {"[{match: a, lr: [1]}]", "groups: learning_rate wants a number from 0 to"},
        {"[{match: a, lr: ''}]", "groups: learning_rate wants a number from 0 to"},
        {"[{match: a, lr: -0.1}]", ", not -0.1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char pair[128];
        snprintf(pair, sizeof pair, "groups=%s", rows[i].text);
        TEST_REFUSED(reads(&c, PAIRS(pair), &d), GRT_CONFIG, rows[i].why);
    }
    // Both ends of a rate, and of a name.
    double most = grt_config_key_info(GRT_CONFIG_LEARNING_RATE)->max;
    for (int above = 0; above < 2; above++) {
        char pair[192], name[98];
        snprintf(pair, sizeof pair, "groups=[{match: a, lr: %.17g}]", most * (1 + 1e-9 * above));
        assert_true(above || (reads(&c, PAIRS(pair), &d) && d.groups[0].lr == most));
        if (above) {
            TEST_REFUSED(reads(&c, PAIRS(pair), &d), GRT_CONFIG, "wants a number from 0 to");
        }
        memset(name, 'n', sizeof name);
        name[GRT_PARAM_NAME - 1 + above] = '\0';
        snprintf(pair, sizeof pair, "groups=[{match: %s, weight_decay: 0}]", name);
        assert_true(above || (reads(&c, PAIRS(pair), &d) && d.groups[0].own_decay));
        if (above) {
            TEST_REFUSED(reads(&c, PAIRS(pair), &d), GRT_CONFIG, "match wants a name");
        } else {
            assert_string_equal(d.groups[0].match, name);
            assert_true(!d.groups[0].own_lr && !d.groups[0].but_last);
        }
        snprintf(pair, sizeof pair, "freeze=%s", name);
        assert_true(above || (reads(&c, PAIRS(pair), &d) && d.groups[0].own_lr));
        if (above) {
            TEST_REFUSED(reads(&c, PAIRS(pair), &d), GRT_CONFIG,
                         "freeze: at most 16 names of up to 95 characters are taken");
        }
    }
    // What stays comes first; a file's place is told.
    assert_true(
        reads(&c, PAIRS("freeze=body,*.bias", "groups=[{match: b, weight_decay: 0.5}]"), &d));
    assert_int_equal(d.group_count, 3);
    assert_string_equal(d.groups[0].match, "*");
    assert_true(d.groups[0].but_last && d.groups[0].own_lr && d.groups[0].lr == 0);
    assert_string_equal(d.groups[1].match, "*.bias");
    assert_true(!d.groups[1].but_last && d.groups[1].own_lr && !d.groups[1].own_decay);
    assert_true(d.groups[2].own_decay && !d.groups[2].own_lr && d.groups[2].weight_decay == 0.5);
    assert_string_equal(d.groups[1].where, "freeze: ");
    static const char file[] = "optimizer:\n  groups:\n    - {match: a.b, lr: 0.25}\n";
    grt_config_init(&c);
    assert_true(grt_config_parse(&c, "net.yaml", file, strlen(file)));
    assert_true(grt_task_optimizer(&c, &d));
    assert_string_equal(d.groups[0].where, "net.yaml:3:15: ");
    assert_true(d.groups[0].lr == 0.25 && d.groups[0].own_lr && d.group_count == 1);
    // Rates of groups follow the batch as that of all does.
    for (int root = 0; root < 2; root++) {
        assert_true(reads(&c,
                          PAIRS("groups=[{match: a, lr: 0.5}]", "batch_size=512", "accumulate=2",
                                "base_batch_size=256", root ? "lr_rule=sqrt" : "lr_rule=none"),
                          &d));
        assert_true(fabs(d.groups[0].lr - (root ? 1 : 0.5)) < 1e-12);
    }
    // Sixteen names and a group are one too many.
    assert_true(reads(&c, PAIRS("freeze=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p"), &d));
    assert_int_equal(d.group_count, 16);
    TEST_REFUSED(
        reads(&c, PAIRS("freeze=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", "groups=[{match: q, lr: 0.1}]"),
              &d),
        GRT_CONFIG, "groups: at most 16 are taken");
    grt_config_init_for(&c, GRT_CONFIG_OF_PPO);
    assert_true(grt_config_override(&c, "optimizer=lars"));
    TEST_REFUSED(grt_task_optimizer(&c, &d), GRT_CONFIG,
                 "optimizer lars is for supervised training");
}

static void widths(void **state) {
    (void)state;
    static struct grt_config c;
    char text[256] = "hidden=[4";
    for (int i = 1; i < GRT_MLP_WIDTHS; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), ", %d", 4 + i % 2);
    }
    for (int more = 0; more < 2; more++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), more ? ", 4]" : "]");
        grt_config_init(&c);
        assert_true(grt_config_override(&c, text));
        if (more) {
            TEST_REFUSED(grt_task_widths(&c), GRT_CONFIG,
                         "hidden has 33 widths; at most 32 are taken");
        } else {
            assert_true(grt_task_widths(&c));
            assert_int_equal(c.depth, 32);
        }
        text[strlen(text) - 1] = '\0';
    }
    static const struct {
        const char *pairs[3];
        bool good;
        uint64_t depth;
    } rows[] = {{{"hidden=[8, 8]", "residual=true"}, true, 2},
                {{"hidden=[8, 9]", "residual=true"}, false, 0},
                {{"hidden=[8, 9]", "depth=2"}, true, 2},
                {{"hidden=[8, 9]", "depth=3"}, false, 0},
                {{"hidden=8", "depth=3"}, true, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        grt_config_init(&c);
        assert_true(grt_config_override(&c, rows[i].pairs[0]) &&
                    grt_config_override(&c, rows[i].pairs[1]));
        if (rows[i].good) {
            assert_true(grt_task_widths(&c));
            assert_int_equal(c.depth, rows[i].depth);
        } else {
            TEST_REFUSED(grt_task_widths(&c), GRT_CONFIG, "hidden");
        }
    }
}

// ---- the most frequent class ----

static double frequent(const double *y, uint64_t rows, uint64_t judged) {
    double *x = test_alloc(rows * sizeof *x), share = -1;
    memset(x, 0, rows * sizeof *x);
    data_kit_write(run_kit_data, true,
                   &(struct data_kit_set){.name = "x", .shape = {rows, 1}, .data = x});
    data_kit_write(
        run_kit_data, false,
        &(struct data_kit_set){.name = "y", .type = H5T_STD_I32LE, .shape = {rows}, .data = y});
    free(x);
    assert_true(opens(PAIRS("validation_split=0", "batch_size=4")));
    struct grt_loader *train = grt_loader_create(
        grt_loader_desc(.data = task.data, .part = GRT_PART_ALL, .batch = 4, .shuffle = true));
    struct grt_loader *check = grt_loader_create(
        grt_loader_desc(.data = task.data, .part = GRT_PART_ALL, .batch = 4, .limit = judged));
    assert_true(train && check);
    assert_true(grt_task_frequent(&task, train, check, &share));
    TEST_REFUSED(grt_task_frequent(&task, train, NULL, &share), GRT_INVALID,
                 "classes and loaders are wanted");
    grt_loader_destroy(&train);
    grt_loader_destroy(&check);
    grt_task_close(&task);
    return share;
}

static void most_frequent(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    static const struct {
        double y[7];
        uint64_t rows, judged;
        double share;
    } rows[] = {
        {{2, 1, 1, 2, 0}, 5, 1, 0},  // of two that are as frequent the first
        {{2, 1, 1, 2, 0}, 5, 2, 0.5},
        {{0, 1, 0, 2, 0}, 5, 4, 0.5},            // the first class
        {{2, 1, 2, 0, 2, 1, 0}, 7, 7, 3.0 / 7},  // and the last
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(frequent(rows[i].y, rows[i].rows, rows[i].judged) == rows[i].share);
    }
    // More rows than are counted at once: the last ones decide.
    enum { MANY = 65536 + 40 };
    double *y = test_alloc(MANY * sizeof *y);
    for (int i = 0; i < MANY; i++) {
        y[i] = i >= MANY / 2 - 10;
    }
    assert_true(frequent(y, MANY, 0) == 0.5 + 10.0 / MANY);
    free(y);
    run_kit_end();
}

// ---- memory ----

// What the feeds have besides: as much again with a validation.
static void besides(void **state) {
    (void)state;
    struct grt_dataset_info info = {.x_width = 5, .y_width = 2, .kept_bytes = 1000};
    const struct grt_learner_desc desc = {.batch = 16, .accumulate = 1};
    uint64_t lanes = grt_dev_lanes(test.dev), each = grt_dev_align(test.dev);
    for (uint64_t feeds = 1; feeds <= 2; feeds++) {
        info.part_rows[GRT_PART_VALIDATION] = feeds - 1;
        struct grt_fit_besides b = grt_task_besides(test.dev, &info, &desc, GRT_CACHE_NONE);
        assert_int_equal(b.bytes, feeds * lanes * 2 * each);
        assert_int_equal(b.row, lanes > 1 ? feeds * lanes * 28 : 0);
        assert_int_equal(b.row_staged, feeds * lanes * 28);
        assert_true(b.shared == 0 && b.first == 0);
        struct grt_fit_besides ram = grt_task_besides(test.dev, &info, &desc, GRT_CACHE_RAM);
        assert_true(ram.bytes == b.bytes && ram.row == b.row);
        b = grt_task_besides(test.dev, &info, &desc, GRT_CACHE_DEVICE);
        uint64_t rows = grt_feed_rows_bytes(test.dev, 16 * 20, 16 * 8, 16, false);
        assert_int_equal(b.bytes, 1000 + feeds * rows);
        assert_true(b.row == 0 && b.row_staged == 0);
    }
    // Eight steps at once on a processor: their samples, or their numbers.
    uint64_t step = grt_dev_align_up(test.dev, 320) + grt_dev_align_up(test.dev, 128);
    uint64_t samples = 8 * step, numbers = 8ull * 4 * 16;
    assert_int_equal(grt_feed_rows_bytes(test.dev, 320, 128, 16, false),
                     (samples > numbers ? samples : numbers) + each);
    assert_int_equal(grt_feed_rows_bytes(test.dev, 320, 128, 16, true), each);
    // 32 MiB at most: of 10 MiB three steps, of 17 MiB none, where the numbers of rows are few.
    assert_int_equal(grt_feed_rows_bytes(test.dev, 10u << 20, 0, 16, false), (30u << 20) + each);
    assert_int_equal(grt_feed_rows_bytes(test.dev, 16u << 20, 0, 16, false), (32u << 20) + each);
    assert_int_equal(grt_feed_rows_bytes(test.dev, 17u << 20, 0, 16, false), numbers + each);
}

// What may be taken is told before any of it is: the rows are part of it.
static void memory_that_is_told(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    assert_true(
        grt_data_make(grt_make_desc(.path = run_kit_data, .samples = 40000, .features = 9)));
    assert_true(opens(PAIRS("batch_size=16", "hidden=8")));
    static const struct {
        uint64_t limit;
        enum grt_cache wanted, got;
        const char *begin, *end;
    } rows[] = {
        {10000000, GRT_CACHE_DEVICE, GRT_CACHE_DEVICE, "1.6 MB, a step ",
         ", and 10.0 MB may be taken of ref:0"},
        {1610000, GRT_CACHE_DEVICE, GRT_CACHE_RAM, "1.6 MB, a step ",
         ", and 1.6 MB may be taken of ref:0"},
        {10000000, GRT_CACHE_RAM, GRT_CACHE_RAM, "", ""},
        {10000000, GRT_CACHE_NONE, GRT_CACHE_NONE, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dev *dev =
            grt_dev_create(grt_dev_desc(.device = "ref:0", .mem_limit = rows[i].limit));
        struct grt_cache_choice choice;
        assert_non_null(dev);
        assert_true(grt_task_choose_cache(dev, &task, &task.learner, rows[i].wanted, &choice));
        assert_int_equal(choice.cache, rows[i].got);
        size_t length = strlen(rows[i].end), all = strlen(choice.why);
        if (strncmp(choice.why, rows[i].begin, strlen(rows[i].begin)) != 0 || all < length ||
            strcmp(choice.why + all - length, rows[i].end) != 0) {
            fail_msg("row %zu: %s", i, choice.why);
        }
        grt_dev_destroy(&dev);
    }
    grt_task_close(&task);
    run_kit_end();
}

// ---- names of columns ----

// Names that a network keeps are of its table: a file of another form has others, unless the caller
// gives them.
static void names_of_data(void **state) {
    (void)state;
    static const struct {
        const char *data, *given, *target;
        bool columns;
        uint32_t inputs, targets;
    } rows[] = {
        {"b.csv", NULL, "y", true, 2, 1},
        {"b.tsv", NULL, "y", true, 2, 1},
        {"b.h5", NULL, "y", true, 0, 0},
        {"b.h5", NULL, "y", false, 2, 1},
        {"b.h5", "inputs=p", "y", true, 1, 0},
        {"b.h5", "targets=q", "y", true, 0, 1},
        {"b.npy", NULL, "y", false, 0, 1},
        {"b.npy", NULL, "t.npy", false, 0, 0},
        {"b.npy", "inputs=p", "t.npy", false, 1, 0},
        {"b.h5", NULL, "t.npy", false, 2, 0},
        {"b.npz", NULL, "y", true, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct grt_config callers;
        char target[32];
        grt_config_init(&callers);
        grt_config_init(&task.config);
        snprintf(target, sizeof target, "targets=%s", rows[i].target);
        assert_true(grt_config_override(&task.config, "inputs=a,b") &&
                    grt_config_override(&task.config, target) &&
                    grt_config_set(&task.config, GRT_CONFIG_DATA, rows[i].data));
        if (rows[i].given) {
            assert_true(grt_config_override(&callers, rows[i].given) &&
                        grt_config_override(&task.config, rows[i].given));
        }
        task_source_names(&task, &callers, rows[i].columns);
        if (task.config.inputs.count != rows[i].inputs ||
            task.config.targets.count != rows[i].targets) {
            fail_msg("row %zu: %u inputs, %u targets", i, task.config.inputs.count,
                     task.config.targets.count);
        }
    }
    static const char *const unnamed[] = {"a.csv", "a.tsv", "a.npy"};
    static const char *const named[] = {"a.npz", "a.h5", "a.hdf5", "csv", "a.csv.h5", "npy"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(task_unnamed(unnamed[i]));
    }
    for (size_t i = 0; i < 6; i++) {
        assert_false(task_unnamed(named[i]));
    }
    // Weights of samples by name, none where there are none.
    grt_config_init(&task.config);
    assert_null(task_weights(&task.config));
    assert_true(grt_config_override(&task.config, "sample_weights=heavy"));
    assert_string_equal(task_weights(&task.config), "heavy");
    assert_true(grt_config_override(&task.config, "sample_weights=none"));
    assert_null(task_weights(&task.config));
}

// A checkpoint keeps names of 60000 bytes, each kind of its own, and says what is too long.
static void names_that_are_kept(void **state) {
    (void)state;
    char *text = test_alloc(GRT_ARCHIVE_MAX_TEXT + 2);
    memset(text, 'n', GRT_ARCHIVE_MAX_TEXT + 1);
    text[GRT_ARCHIVE_MAX_TEXT + 1] = '\0';
    grt_config_init(&task.config);
    assert_true(grt_config_set(&task.config, GRT_CONFIG_DATA, "t.csv"));
    static const char *const what[] = {"inputs", "targets", "classes"};
    for (int i = 0; i < 3; i++) {
        const char **of[] = {&task.source.input_names, &task.source.target_names,
                             &task.source.class_names};
        char want[160];
        task.source = (struct grt_direct){0};
        assert_true(task_source_fits(&task));
        *of[i] = text + 1;
        assert_true(task_source_fits(&task));
        *of[i] = text;
        snprintf(want, sizeof want,
                 "t.csv: the names of its %s have 60001 bytes together, and a checkpoint keeps up "
                 "to 60000: shorten them",
                 what[i]);
        TEST_REFUSED(task_source_fits(&task), GRT_BAD_DATA, want);
    }
    free(text);
    for (int only = 0; only < 2; only++) {
        struct grt_archive *a = grt_archive_create();
        task.source = (struct grt_direct){.input_names = "a\nb",
                                          .target_names = only ? NULL : "c",
                                          .class_names = only ? NULL : "x\ny\nz"};
        assert_true(task_source_keep(&task, a));
        struct grt_direct back = task_source_of(a);
        assert_string_equal(back.input_names, "a\nb");
        assert_true(only ? !back.target_names && !back.class_names
                         : strcmp(back.target_names, "c") == 0 &&
                               strcmp(back.class_names, "x\ny\nz") == 0);
        grt_archive_destroy(&a);
    }
    task.source = (struct grt_direct){0};
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(groups),
    TEST_CASE(widths),
    REF_CASE(most_frequent),
    REF_CASE(besides),
    REF_CASE(memory_that_is_told),
    TEST_CASE(names_of_data),
    TEST_CASE(names_that_are_kept),
};
TEST_SUITE(asked, false, cases);
