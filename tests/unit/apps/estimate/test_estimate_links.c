// SPDX-License-Identifier: Apache-2.0
// What exchanges between GPUs take, by numbers worked out by hand on a link whose rates are round;
// files of links and of cards at the bounds of their numbers; rows that suites are made of.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "estimate/estimate.h"
#include "estimate/scaling.h"
#include "gpurt/env.h"

static void near_(double a, double b, int line) {
    if (!(fabs(a - b) <= 1e-9 * fabs(b) + 1e-18)) {
        fail_msg("line %d: %.12g is not %.12g", line, a, b);
    }
}
#define NEAR(a, b) near_(a, b, __LINE__)

// Four GPUs of a machine; what is reached: copies of 10 GB/s, memory of 100, a network of 1.
static const struct link round_link = {.id = "round",
                                       .gpus = 4,
                                       .copy = 1e10 / SCALING_COPY_SHARE,
                                       .memory = 1e11 / SCALING_MEMORY_SHARE,
                                       .network = 1e9 / SCALING_NETWORK_SHARE,
                                       .latency = 1e-5};

// ---- lines ----

static void lines(void **state) {
    (void)state;
    static const struct {
        double bytes[2], seconds[2], latency, rate;
    } rows[] = {
        {{100, 200}, {3, 5}, 1, 50},           // 1 s, and 50 bytes a second
        {{100, 200}, {2, 4}, 0, 50},           // through nothing
        {{100, 200}, {2, 4.5}, 0, 200 / 4.5},  // below it: by the second
        {{100, 200}, {4, 4}, 0, 50},           // no longer
        {{100, 200}, {5, 4}, 0, 50},           // shorter
        {{100, 100}, {2, 4}, 0, 25},           // the same size
        {{100, 200}, {0, 0}, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scaling_line line = scaling_line_of(rows[i].bytes, rows[i].seconds);
        NEAR(line.latency, rows[i].latency);
        NEAR(line.rate, rows[i].rate);
    }
    NEAR(scaling_line_at(&(struct scaling_line){1, 50}, 400), 9);
    NEAR(scaling_line_at(&(struct scaling_line){1, 0}, 400), 1);
    NEAR(scaling_sum(&(struct scaling_parts){1, 20, 300, 4000}), 4321);
}

static void shares(void **state) {
    (void)state;
    // 10 s of a step, 6 of them alone, and 8 for the exchange alone: half of it is hidden.
    NEAR(scaling_overlap(10, 6, 8), 0.5);
    NEAR(scaling_overlap(6, 6, 8), 1);
    NEAR(scaling_overlap(5, 6, 8), 1);
    NEAR(scaling_overlap(14, 6, 8), 0);
    NEAR(scaling_overlap(15, 6, 8), 0);
    NEAR(scaling_overlap(10, 6, 0), 0);
    NEAR(scaling_efficiency(8, 4, 2), 1);
    NEAR(scaling_efficiency(8, 8, 2), 0.5);
    // No more than backward, which is two thirds.
    NEAR(scaling_hidden(9, 4, 0.5), 2);
    NEAR(scaling_hidden(9, 100, 0.5), 6);
    NEAR(scaling_hidden(9, 12, 0.5), 6);
    NEAR(scaling_hidden(9, 4, 0), 0);
    NEAR(scaling_buckets(1), 1);
    NEAR(scaling_buckets(4194304), 1);
    NEAR(scaling_buckets(6291456), 1.5);
    NEAR(scaling_buckets(24 * 4194304.0), 24);
    NEAR(scaling_buckets(25 * 4194304.0), 24);
}

// ---- machines ----

static void sums_of_one_machine(void **state) {
    (void)state;
    // 4 GB each: 0.4 s for a copy. Two ranks pass five times over 8 GB, four five and a quarter
    // times over 16, in memory of 100 GB/s.
    struct scaling_parts two = scaling_cluster_sum(&round_link, 2, 4e9, 1, 0);
    NEAR(two.readback, 0.4);
    NEAR(two.upload, 0.4);
    NEAR(two.host, 5 * 8e9 / 1e11);
    NEAR(two.network, ceil(4e9 / 1048576) * SCALING_INNER_LATENCY);
    struct scaling_parts four = scaling_cluster_sum(&round_link, 4, 4e9, 1, 0);
    NEAR(four.host, 5.25 * 16e9 / 1e11);
    NEAR(four.network, 2 * ceil(4e9 / 1048576) * SCALING_INNER_LATENCY);
    // Passes of the caller's own; more pieces than there are MiB.
    NEAR(scaling_cluster_sum(&round_link, 2, 4e9, 1, 3).host, 8 * 8e9 / 1e11);
    NEAR(scaling_cluster_sum(&round_link, 2, 1048576, 7, 0).network, 7e-6);
    NEAR(scaling_cluster_sum(&round_link, 2, 1048577, 1, 0).network, 2e-6);
    NEAR(scaling_cluster_sum(&round_link, 2, 1048576, 1, 0).network, 1e-6);
}

static void sums_of_several(void **state) {
    (void)state;
    // Eight GPUs: 3 passes over seven eighths, 2 over one, 2 over all, of 16 GB of a machine.
    struct scaling_parts p = scaling_cluster_sum(&round_link, 8, 4e9, 5, 1);
    NEAR(p.readback, 0.4);
    NEAR(p.host, 16e9 * (1 + 3 * 7 / 8.0 + 2 / 8.0 + 2) / 1e11);
    // Messages to seven others and three of a tree for each piece; slices of the three here by the
    // memory, read and written, of the four there by the network, and both twice.
    double inner = 2 * 16e9 * 3 / 8, outer = 16e9 * 4 / 8;
    NEAR(p.network, 5 * (7 + 3) * 1e-5 + 2 * (inner / 1e11 + outer / 1e9));
    NEAR(p.upload, 0.4);
}

static void gathers(void **state) {
    (void)state;
    struct scaling_parts p = scaling_cluster_gather(&round_link, 4, 1e6);
    NEAR(p.network, 2 * SCALING_INNER_LATENCY + 2 * 4 * 4 * 1e6 / 1e11);
    assert_true(p.readback == 0 && p.host == 0 && p.upload == 0);
    p = scaling_cluster_gather(&round_link, 16, 1e6);
    NEAR(p.network, 4e-5 + 2 * 4 * 16 * 1e6 / 1e11 + 4 * 12 * 1e6 / 1e9);
    NEAR(scaling_cluster_gather(&round_link, 1, 0).network, 0);
}

// ---- files of links ----

#define LINK(id, gpus, copy, memory, network, latency, more)                                       \
    "{\"id\":\"" id "\",\"name\":\"n\",\"source\":\"s\",\"gpus\":" gpus ",\"copy_gb_per_s\":" copy \
    ",\"memory_gb_per_s\":" memory ",\"network_gb_per_s\":" network                                \
    ",\"latency_us\":" latency more "}"
#define GOOD(id) LINK(id, "8", "31.5", "409.6", "3.125", "20", "")
#define LIST(links) "{\"schema\":\"gpurt.links/1\",\"links\":[" links "]}"

static bool read(const char *text, struct links *links, char why[CARD_WHY]) {
    why[0] = '\0';
    return links_read(links, text, strlen(text), why);
}

static void links(void **state) {
    (void)state;
    struct links list;
    char why[CARD_WHY];
    assert_true(read(LIST(GOOD("a") "," LINK("b-2", "1", "1", "2", "3", "4", "")), &list, why));
    assert_int_equal(list.count, 2);
    NEAR(list.list[0].gpus, 8);
    NEAR(list.list[0].copy, 31.5e9);
    NEAR(list.list[0].memory, 409.6e9);
    NEAR(list.list[0].network, 3.125e9);
    NEAR(list.list[0].latency, 20e-6);
    assert_string_equal(list.list[1].id, "b-2");
    links_finish(&list);
    assert_int_equal(list.count, 0);
    static const char *const good[] = {
        LIST(LINK("a", "1024", "1e6", "1e6", "1e6", "1e6", "")),
        LIST(LINK("a", "1", "1e-3", "1e-3", "1e-6", "0", "")),
    };
    for (size_t i = 0; i < 2; i++) {
        assert_true(read(good[i], &list, why));
        links_finish(&list);
    }
}

static void broken_links(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "line "},
        {"[]", "schema gpurt.links/1 with 1 to "},
        {LIST(""), "schema gpurt.links/1 with 1 to "},
        {"{\"schema\":\"gpurt.links/2\",\"links\":[" GOOD("a") "]}", "schema gpurt.links/1"},
        {LIST(LINK("a", "0", "1", "1", "1", "1", "")), "link 1: 'a': a number is out of bounds"},
        {LIST(LINK("a", "1025", "1", "1", "1", "1", "")), "'a': a number is out of bounds"},
        {LIST(LINK("a", "1.5", "1", "1", "1", "1", "")), "out of bounds"},
        {LIST(LINK("a", "1", "9e-4", "1", "1", "1", "")), "out of bounds"},
        {LIST(LINK("a", "1", "1000001", "1", "1", "1", "")), "out of bounds"},
        {LIST(LINK("a", "1", "1", "9e-4", "1", "1", "")), "out of bounds"},
        {LIST(LINK("a", "1", "1", "1000001", "1", "1", "")), "out of bounds"},
        {LIST(LINK("a", "1", "1", "1", "9e-7", "1", "")), "out of bounds"},
        {LIST(LINK("a", "1", "1", "1", "1000001", "1", "")), "out of bounds"},
        {LIST(LINK("a", "1", "1", "1", "1", "-1", "")), "out of bounds"},
        {LIST(LINK("a", "1", "1", "1", "1", "1000001", "")), "out of bounds"},
        {LIST(LINK("A", "1", "1", "1", "1", "1", "")), "link 1: id 'A' is to have a-z, 0-9 and -"},
        {LIST(LINK("", "1", "1", "1", "1", "1", "")), "id '' is to have"},
        {LIST(GOOD("a") "," LINK("b c", "1", "1", "1", "1", "1", "")), "link 2: id 'b c'"},
        {LIST(LINK("a", "1", "1", "1", "1", "1", ",\"speed\":1")), "link 1: "},
        {LIST("{\"id\":\"a\"}"), "link 1: "},
        {LIST(LINK("a", "\"1\"", "1", "1", "1", "1", "")), "link 1: "},
        {LIST(LINK("a", "1", "1", "1", "1", "1", ",\"gpus\":2")), "line 1: duplicate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct links list;
        char why[CARD_WHY];
        if (read(rows[i].text, &list, why) || !strstr(why, rows[i].why)) {
            fail_msg("row %zu: '%s' says '%s'", i, rows[i].text, why);
        }
        links_finish(&list);
    }
    // Names of 60 letters, and as many links as there is room for.
    char name[128], text[1 << 16], why[CARD_WHY];
    struct links list;
    for (int length = 60; length <= 61; length++) {
        memset(name, 'a', sizeof name);
        name[length] = '\0';
        snprintf(text, sizeof text,
                 "{\"schema\":\"gpurt.links/1\",\"links\":[{\"id\":\"%s\",\"name\":\"n\","
                 "\"source\":\"s\",\"gpus\":1,\"copy_gb_per_s\":1,\"memory_gb_per_s\":1,"
                 "\"network_gb_per_s\":1,\"latency_us\":1}]}",
                 name);
        assert_int_equal(read(text, &list, why), length == 60);
        links_finish(&list);
    }
    for (int more = 0; more <= 1; more++) {
        size_t used =
            (size_t)snprintf(text, sizeof text, "{\"schema\":\"gpurt.links/1\",\"links\":[");
        for (int i = 0; i < LINK_MAX + more; i++) {
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "", GOOD("a"));
        }
        snprintf(text + used, sizeof text - used, "]}");
        assert_int_equal(read(text, &list, why), !more);
        links_finish(&list);
    }
}

// ---- cards ----

static bool card(const char *key, const char *value, char why[CARD_WHY]) {
    static const char *const keys[] = {"units",         "clock_mhz",          "fp32_tflops",
                                       "matrix_tflops", "bandwidth_gb_per_s", "memory_gib"};
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "{\"schema\":\"gpurt.cards/1\",\"cards\":[{\"id\":\"a\","
                                   "\"name\":\"N\",\"vendor\":\"v\",\"source\":\"s\"");
    for (size_t i = 0; i < 6; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, ",\"%s\":%s", keys[i],
                                 strcmp(keys[i], key) == 0 ? value : "4");
    }
    snprintf(text + used, sizeof text - used, "}]}");
    struct cards cards;
    cards_init(&cards);
    bool good = cards_read(&cards, text, strlen(text), why);
    cards_finish(&cards);
    return good;
}

static void bounds_of_cards(void **state) {
    (void)state;
    static const struct {
        const char *key, *below, *least, *most, *above;
    } rows[] = {
        {"units", "0.9", "1", "1e5", "100001"},
        {"clock_mhz", "0.9", "1", "1e5", "100001"},
        {"fp32_tflops", "0.9e-4", "1e-4", "1e6", "1000001"},
        {"matrix_tflops", "0.9e-4", "1e-4", "1e7", "10000001"},
        {"bandwidth_gb_per_s", "0.009", "0.01", "1e6", "1000001"},
        {"memory_gib", "0.009", "0.01", "1e5", "100001"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[CARD_WHY] = "";
        assert_true(card(rows[i].key, rows[i].least, why));
        assert_true(card(rows[i].key, rows[i].most, why));
        assert_false(card(rows[i].key, rows[i].below, why));
        assert_non_null(strstr(why, rows[i].key));
        assert_non_null(strstr(why, " is allowed"));
        assert_false(card(rows[i].key, rows[i].above, why));
        assert_non_null(strstr(why, "card 1: "));
    }
}

// What drivers put in parentheses, between letters and in capitals makes no other card.
static void names(void **state) {
    (void)state;
    struct card list[] = {{.id = "a", .name = "NVIDIA A100-SXM4-80GB"},
                          {.id = "b", .name = "AMD Radeon RX 6800"},
                          {.id = "c", .name = "AMD Radeon RX 6800 XT"}};
    const struct cards cards = {.list = list, .count = 3};
    static const struct {
        const char *name, *id;
    } rows[] = {
        {"NVIDIA A100-SXM4-80GB", "a"},
        {"nvidia a100 sxm4 80gb (driver 5)", "a"},
        {"(a (b) c) NVIDIA A100SXM480GB", "a"},
        {"NVIDIA A100-SXM4-80G", NULL},
        {"NVIDIA A100-SXM4-80GBB", NULL},
        {"AMD Radeon RX 6800 (RADV NAVI21)", "b"},
        {"AMD Radeon RX 6800) XT", "c"},
        {"AMD Radeon RX 6800 XT", "c"},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct card *found = cards_named(&cards, rows[i].name);
        if ((found == NULL) != (rows[i].id == NULL) ||
            (found && strcmp(found->id, rows[i].id) != 0)) {
            fail_msg("'%s' is %s", rows[i].name, found ? found->id : "none");
        }
    }
}

// ---- rows of suites ----

static const struct report_cell *cell(const struct report_cell *cells, size_t count,
                                      const char *key) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cells[i].key, key) == 0) {
            return &cells[i];
        }
    }
    fail_msg("no %s", key);
    return NULL;
}

static void rows_of_suites(void **state) {
    (void)state;
    static const struct {
        const char *suite, *bench;
        size_t rows, sizes;
        const char *key;  // that runs through sizes
        double first, last;
    } rows[] = {
        {"rollout", "rollout", 4 * 7, 7, "num_envs", 64, 4096},
        {"ppo", "ppo", 4, 4, "num_envs", 256, 16384},
        {"mlp", "mlp", 3 * 5, 5, "batch", 128, 65536},
        {"train", "train", 5, 5, "batch", 256, 65536},
        {"gemm", "gemm", 7, 0, "batch", 1, 1},
        {"gemm-f32", "gemm", 7, 0, "batch", 1, 1},
        {"conv", "conv", 12, 0, NULL, 0, 0},
        {"images", "images", 2 * 4, 4, "batch", 32, 1024},
    };
    assert_int_equal(suite_count, sizeof rows / sizeof *rows);
    for (size_t s = 0; s < suite_count; s++) {
        struct report_cell cells[SUITE_CELLS];
        size_t count = 0, n = 0;
        assert_string_equal(suites[s].name, rows[s].suite);
        assert_string_equal(suites[s].bench, rows[s].bench);
        assert_int_equal(suites[s].sizes, rows[s].sizes);
        while (suites[s].row(n, 0, cells) > 0) {
            n++;
        }
        assert_int_equal(n, rows[s].rows);
        count = suites[s].row(0, 0, cells);
        if (rows[s].key) {
            NEAR(cell(cells, count, rows[s].key)->number, rows[s].first);
            count = suites[s].row(n - 1, 0, cells);
            NEAR(cell(cells, count, rows[s].key)->number, rows[s].last);
        }
        if (rows[s].sizes) {  // what was asked for takes the place of the suite's own
            count = suites[s].row(n - 1, 12345, cells);
            NEAR(cell(cells, count, rows[s].key)->number, 12345);
        }
    }
    struct report_cell cells[SUITE_CELLS];
    size_t count = suites[0].row(27, 0, cells);
    assert_string_equal(cell(cells, count, "policy")->text, "mlp256");
    NEAR(cell(cells, count, "num_dirs")->number, 64);
    NEAR(cell(cells, count, "dir_chunk")->number, 64);
    count = suites[0].row(14, 0, cells);
    NEAR(cell(cells, count, "dir_chunk")->number, 8);
    count = suites[2].row(14, 0, cells);
    assert_string_equal(cell(cells, count, "model")->text, "large");
    NEAR(cell(cells, count, "depth")->number, 12);
    count = suites[6].row(11, 0, cells);
    assert_string_equal(cell(cells, count, "test")->text, "weight");
    assert_string_equal(cell(cells, count, "images")->text, "128x4x4x512x512");
    count = suites[5].row(0, 0, cells);
    assert_string_equal(cell(cells, count, "precision")->text, "f32");
    count = suites[7].row(4, 0, cells);
    NEAR(cell(cells, count, "resolution")->number, 96);
}

static void counted(void **state) {
    (void)state;
    const struct card with = {.name = "Round", .matrix = 1e12, .units = 10};
    struct card without = with;
    struct roof_work work;
    double amount;
    without.matrix = 0;
    // Three hidden layers of 200, which are too wide for one kernel: each a dispatch five times.
    struct report_cell mlp[] = {{.key = "depth", .number = 3},
                                {.key = "hidden", .number = 200},
                                {.key = "batch", .number = 10},
                                {.key = "precision", .text = "f16"}};
    struct report_row row = {.cells = mlp, .cell_count = 4};
    assert_true(suites[2].count(&row, &with, &work, &amount));
    NEAR(work.launches, 5 * 3 + 9);
    assert_true(work.serial == 0);
    NEAR(work.matrix, 20.0 * (3 * (2 * 200 * 200 + 200) + 2 * 32 * 200));
    mlp[1].number = 128;
    assert_true(suites[2].count(&row, &with, &work, &amount));
    NEAR(work.launches, 4);
    NEAR(work.serial, 3 * 128);
    mlp[1].number = 129;
    assert_true(suites[2].count(&row, &with, &work, &amount));
    NEAR(work.launches, 24);
    assert_false(suites[2].count(&row, &without, &work, &amount));
    mlp[3].text = "f32";
    assert_false(suites[2].count(&row, &with, &work, &amount));
    mlp[3].text = "f16";
    mlp[2].number = 0;
    assert_false(suites[2].count(&row, &with, &work, &amount));
    // ResNet-18 with the stem of 3x3 up to 64 pixels, of 7x7 and a pool beyond.
    struct report_cell images[] = {{.key = "model", .text = "resnet18"},
                                   {.key = "resolution", .number = 64},
                                   {.key = "batch", .number = 1},
                                   {.key = "precision", .text = "f16"}};
    row.cells = images;
    assert_true(suites[7].count(&row, &with, &work, &amount));
    double small = work.matrix;
    images[1].number = 32;
    assert_true(suites[7].count(&row, &with, &work, &amount));
    assert_true(fabs(small / work.matrix - 4) < 0.001);
    images[1].number = 66;
    assert_true(suites[7].count(&row, &with, &work, &amount));
    assert_true(work.matrix < small / 5);
    NEAR(work.launches, 262);
    images[0].text = "resnet34";
    assert_false(suites[7].count(&row, &with, &work, &amount));
    // A rollout that was not measured has the environment's length and operations of today.
    struct report_cell rollout[] = {{.key = "test", .text = "standing"},
                                    {.key = "policy", .text = "linear"},
                                    {.key = "num_envs", .number = 8},
                                    {.key = "num_dirs", .number = 17},
                                    {.key = "dir_chunk", .number = 16}};
    row = (struct report_row){.cells = rollout, .cell_count = 5};
    assert_true(suites[0].count(&row, &without, &work, &amount));
    const struct grt_env_info *env = grt_env_find("standing");
    NEAR(amount, 2.0 * 8 * 17 * env->length);
    NEAR(work.launches, 2);
    rollout[1].text = "nothing";
    assert_false(suites[0].count(&row, &without, &work, &amount));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(shares),
        cmocka_unit_test(sums_of_one_machine),
        cmocka_unit_test(sums_of_several),
        cmocka_unit_test(gathers),
        cmocka_unit_test(links),
        cmocka_unit_test(broken_links),
        cmocka_unit_test(bounds_of_cards),
        cmocka_unit_test(names),
        cmocka_unit_test(rows_of_suites),
        cmocka_unit_test(counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
