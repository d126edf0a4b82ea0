// SPDX-License-Identifier: Apache-2.0
// Estimates against numbers computed by hand: made-up cards on which work is bound by bandwidth,
// compute, latency or launches alone, and files of cards that are broken or meant to do harm.
#include "round_card.h"

#include <stdio.h>
#include <stdlib.h>

#include "estimate/scaling.h"

static const struct roof_shares half_shares = {
    .plain = 0.5, .matrix = 0.25, .bytes = 0.8, .hidden = 1, .cycles = 4, .launch = 2};

static double seconds(const struct roof_work *work, enum roof_bound *bound) {
    struct roof_time time = roof_time(&round_card, 1e-6, work, &half_shares);
    *bound = time.bound;
    return time.seconds;
}

static void test_bounds(void **state) {
    (void)state;
    enum roof_bound bound;
    // 8 GB at 0.8 of 100 GB/s.
    NEAR(seconds(&(struct roof_work){.bytes = 8e9, .plain = 1e9}, &bound), 0.1);
    assert_int_equal(bound, ROOF_MEMORY);
    // 1e12 operations at 0.5 of 1e12 a second.
    NEAR(seconds(&(struct roof_work){.bytes = 8e9, .plain = 1e12}, &bound), 2);
    assert_int_equal(bound, ROOF_COMPUTE);
    // 1e12 of matrix units at a quarter of 8e12, and 1e11 beside them.
    NEAR(seconds(&(struct roof_work){.matrix = 1e12, .plain = 1e11}, &bound), 0.7);
    assert_int_equal(bound, ROOF_COMPUTE);
    // Two workgroups on ten units: five times as long.
    NEAR(seconds(&(struct roof_work){.plain = 1e12, .groups = 2}, &bound), 10);
    // More than there are units: no longer than that.
    NEAR(seconds(&(struct roof_work){.plain = 1e12, .groups = 20}, &bound), 2);
    // 1000 dispatches of 1 us, twice that each.
    NEAR(seconds(&(struct roof_work){.launches = 1000, .bytes = 8e3}, &bound), 2e-3 + 1e-7);
    assert_int_equal(bound, ROOF_LAUNCH);
    // 1e6 dependent steps of four cycles at 1 GHz, behind which 1 ms of work is hidden.
    NEAR(seconds(&(struct roof_work){.chain = 1e6, .plain = 5e8}, &bound), 4e-3);
    assert_int_equal(bound, ROOF_LATENCY);
    // The same steps where nothing hides them.
    NEAR(seconds(&(struct roof_work){.serial = 1e6, .plain = 5e8}, &bound), 5e-3);
    assert_int_equal(bound, ROOF_LATENCY);
}

static void test_overlap(void **state) {
    (void)state;
    struct roof_shares shares = half_shares;
    struct roof_work work = {.bytes = 8e9, .plain = 1e12};
    shares.hidden = 0;  // one after the other: 2 s and 0.1 s
    NEAR(roof_time(&round_card, 0, &work, &shares).seconds, 2.1);
    shares.hidden = 0.5;
    NEAR(roof_time(&round_card, 0, &work, &shares).seconds, 2.05);
}

static void test_no_matrix_units(void **state) {
    (void)state;
    struct card plain = round_card;
    plain.matrix = 0;
    struct roof_work work = {.matrix = 1};
    assert_true(isinf(roof_time(&plain, 0, &work, &half_shares).seconds));
}

// A card with a quarter of the f32 rate and a tenth of the bandwidth: work of both lies between 4
// and 10 times as long, whatever it was bound by.
static void test_range(void **state) {
    (void)state;
    struct card slow = round_card;
    slow.plain /= 4;
    slow.bandwidth /= 10;
    struct roof_work work = {.bytes = 8e9, .plain = 1e12, .launches = 1000};
    struct roof_range range = roof_range(&slow, &round_card, 1e-6, &work, &half_shares);
    NEAR(range.low, 2e-3 + 4 * 2);
    NEAR(range.high, 2e-3 + 10 * 2);
    double time = roof_time(&slow, 1e-6, &work, &half_shares).seconds;
    assert_true(range.low <= time && time <= range.high);
    range = roof_range(&round_card, &round_card, 1e-6, &work, &half_shares);
    NEAR(range.low, range.high);
    // As many groups as the measured card has units fill a quarter of one with four times as many:
    // what takes 2 s here takes 8 there, and the other way round a quarter.
    struct card wide = round_card;
    wide.units *= 4;
    work = (struct roof_work){.plain = 1e12, .groups = round_card.units};
    range = roof_range(&wide, &round_card, 0, &work, &half_shares);
    NEAR(range.low, 8);
    NEAR(range.high, 8);
    NEAR(roof_time(&wide, 0, &work, &half_shares).seconds, 8);
    range = roof_range(&round_card, &wide, 0, &work, &half_shares);
    NEAR(range.low, 2);
    NEAR(range.high, 2);
}

// ---- files of cards ----

#define CARD(id, more)                                                                             \
    "{\"id\":\"" id "\",\"name\":\"N\",\"vendor\":\"v\",\"source\":\"s\",\"units\":4,"             \
    "\"clock_mhz\":1000,\"fp32_tflops\":2,\"bandwidth_gb_per_s\":300,\"memory_gib\":8" more "}"
#define LIST(cards) "{\"schema\":\"gpurt.cards/1\",\"cards\":[" cards "]}"

static void test_cards(void **state) {
    (void)state;
    struct cards cards;
    char why[CARD_WHY];
    cards_init(&cards);
    const char *text = LIST(CARD("a", "") "," CARD("b", ",\"matrix_tflops\":16"));
    assert_true(cards_read(&cards, text, strlen(text), why));
    assert_int_equal(cards.count, 2);
    NEAR(cards_find(&cards, "a")->plain, 2e12);
    NEAR(cards_find(&cards, "a")->matrix, 0);
    NEAR(cards_find(&cards, "b")->matrix, 16e12);
    NEAR(cards_find(&cards, "b")->clock, 1e9);
    NEAR(cards_find(&cards, "b")->bandwidth, 3e11);
    NEAR(cards_find(&cards, "b")->memory, 8589934592.0);
    assert_null(cards_find(&cards, "c"));
    // The same id again takes the place of the first.
    const char *again = LIST(CARD("a", ",\"matrix_tflops\":1"));
    assert_true(cards_read(&cards, again, strlen(again), why));
    assert_int_equal(cards.count, 2);
    NEAR(cards_find(&cards, "a")->matrix, 1e12);
    cards_finish(&cards);
    // Those that come with gpurt, each with the documents that its numbers are of.
    assert_true(cards_read(&cards, estimate_cards, strlen(estimate_cards), why));
    static const char *const wanted[] = {"a100",     "rtx-3060-laptop", "rtx-3060",
                                         "rtx-4090", "rx-7900-xtx",     "arc-a770"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_non_null(cards_find(&cards, wanted[i]));
    }
    for (size_t i = 0; i < cards.count; i++) {
        assert_null(strstr(cards.list[i].source, "//"));
    }
    cards_finish(&cards);
}

static void test_broken_cards(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "line"},
        {"[", "line 1"},
        {"[]", "schema"},
        {"{\"schema\":\"gpurt.cards/2\",\"cards\":[]}", "schema gpurt.cards/1"},
        {LIST(""), "a list of 1"},
        {LIST("7"), "card 1: is no object"},
        {LIST(CARD("a", ",\"units\":5")), "duplicate"},
        {LIST(CARD("a", ",\"colour\":5")), "card 1: 'colour' is not known"},
        {LIST(CARD("a", "") "," CARD("a", "")), "card 2: 'a' stands twice"},
        {LIST(CARD("A B", "")), "other than a-z"},
        {LIST(CARD("<b>", "")), "other than a-z"},
        {LIST(CARD("a\\u001b[2J", "")), "id is wanted"},
        {LIST(CARD("", "")), "id is wanted"},
        {LIST(CARD("a", ",\"matrix_tflops\":0")), "matrix_tflops is 0"},
        {LIST(CARD("a", ",\"matrix_tflops\":-1")), "matrix_tflops is -1"},
        {LIST(CARD("a", ",\"matrix_tflops\":1e300")), "matrix_tflops is 1e+300"},
        {LIST(CARD("a", ",\"matrix_tflops\":1e400")), "line"},
        {LIST(CARD("a", ",\"matrix_tflops\":\"7\"")), "matrix_tflops is no number"},
        {LIST("{\"id\":\"a\",\"name\":\"n\",\"vendor\":\"v\",\"source\":\"s\"}"),
         "units is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cards cards;
        char why[CARD_WHY] = "";
        cards_init(&cards);
        if (cards_read(&cards, cases[i].text, strlen(cases[i].text), why) || cards.count != 0 ||
            !strstr(why, cases[i].why)) {
            fail_msg("case %zu: '%s' says '%s', not '%s'", i, cases[i].text, why, cases[i].why);
        }
        cards_finish(&cards);
    }
}

static void test_too_many_cards(void **state) {
    (void)state;
    char *text = malloc(300 * (CARD_MAX + 2)), why[CARD_WHY];
    size_t used = (size_t)sprintf(text, "{\"schema\":\"gpurt.cards/1\",\"cards\":[");
    for (int i = 0; i <= CARD_MAX; i++) {
        used +=
            (size_t)sprintf(text + used,
                            "%s{\"id\":\"c%d\",\"name\":\"N\",\"vendor\":\"v\",\"source\":\"s\","
                            "\"units\":4,\"clock_mhz\":1,\"fp32_tflops\":2,"
                            "\"bandwidth_gb_per_s\":3,\"memory_gib\":8}",
                            i ? "," : "", i);
    }
    memcpy(text + used, "]}", sizeof "]}");
    struct cards cards;
    cards_init(&cards);
    assert_false(cards_read(&cards, text, strlen(text), why));
    assert_non_null(strstr(why, "1 to 200"));
    cards_finish(&cards);
    free(text);
}

// ---- counting ----

static const struct card *counted = &round_card;

static bool count(const char *suite, const char *bench, struct report_cell *cells, size_t n,
                  struct roof_work *work, double *amount) {
    struct report_row row = {.cells = cells, .cell_count = n};
    for (size_t i = 0; i < report_bench_count; i++) {
        row.bench = strcmp(report_benches[i].name, bench) == 0 ? &report_benches[i] : row.bench;
    }
    return suite_of(suite)->count(&row, counted, work, amount);
}

static void test_counts(void **state) {
    (void)state;
    struct roof_work work;
    double amount;
    struct report_cell gemm[] = {{.key = "shape", .text = "256x128x64"},
                                 {.key = "batch", .number = 3},
                                 {.key = "precision", .text = "f16"}};
    assert_true(count("gemm", "gemm", gemm, 3, &work, &amount));
    NEAR(amount, 2.0 * 256 * 128 * 64 * 3);
    NEAR(work.matrix, amount);
    NEAR(work.bytes, 2.0 * 3 * (256 * 64 + 64 * 128 + 256 * 128));
    NEAR(work.groups, 2 * 3);
    assert_false(count("gemm-f32", "gemm", gemm, 3, &work, &amount));
    gemm[0].text = "256x128x64x2";
    assert_false(count("gemm", "gemm", gemm, 3, &work, &amount));
    gemm[0].text = "256x128x-64";
    assert_false(count("gemm", "gemm", gemm, 3, &work, &amount));

    // One hidden layer of 64 behind 32 inputs, one output: the gradient of the inputs is not made.
    struct report_cell mlp[] = {{.key = "depth", .number = 1},
                                {.key = "hidden", .number = 64},
                                {.key = "batch", .number = 10},
                                {.key = "precision", .text = "f16"}};
    assert_true(count("mlp", "mlp", mlp, 4, &work, &amount));
    NEAR(amount, 10);
    NEAR(work.matrix, 10.0 * (2 * 2 * 32 * 64 + 3 * 2 * 64));
    NEAR(work.bytes, 10.0 * 12 * (32 + 64));
    NEAR(work.launches, 4);

    // The same as a step of a whole training, which finds its rows by a dispatch of its own.
    struct report_cell train[] = {{.key = "depth", .number = 1},
                                  {.key = "hidden", .number = 64},
                                  {.key = "batch", .number = 10},
                                  {.key = "precision", .text = "f16"},
                                  {.key = "cache", .text = "device"}};
    assert_true(count("train", "train", train, 5, &work, &amount));
    NEAR(amount, 10);
    NEAR(work.matrix, 10.0 * (2 * 2 * 32 * 64 + 3 * 2 * 64));
    NEAR(work.launches, 5);
    assert_true(work.serial == 0);
    train[4].text = "none";  // bound by the loader
    assert_false(count("train", "train", train, 5, &work, &amount));

    // 48 directions, 16 at once: three dispatches of 2 x 8 x 16 lanes and 1000 steps.
    struct report_cell rollout[] = {
        {.key = "test", .text = "standing"}, {.key = "policy", .text = "linear"},
        {.key = "num_envs", .number = 8},    {.key = "num_dirs", .number = 48},
        {.key = "dir_chunk", .number = 16},  {.key = "steps_per_s", .number = 768e3},
        {.key = "ms", .number = 1000},       {.key = "gflop_per_s", .number = 7.68}};
    assert_true(count("rollout", "rollout", rollout, 8, &work, &amount));
    NEAR(work.launches, 3);
    NEAR(amount, 768e3);                 // 1000 steps of 2 x 8 x 48
    NEAR(work.plain, 768e3 * 1e4);       // 10,000 operations a step
    NEAR(work.chain, 3.0 * 1000 * 1e4);  // of one lane, three times
    // 40 directions: the last dispatch has half of the lanes, and takes as long.
    rollout[3].number = 40;
    rollout[5].number = 640e3;
    rollout[7].number = 6.4;
    assert_true(count("rollout", "rollout", rollout, 8, &work, &amount));
    NEAR(work.launches, 3);
    NEAR(amount, 640e3);
    NEAR(work.plain, 640e3 * 1e4);
    NEAR(work.chain, 3.0 * 1000 * 1e4);
    rollout[0].text = "uav";
    assert_false(count("rollout", "rollout", rollout, 8, &work, &amount));

    // Two copies of ten UAVs for 8 steps: 160 rows, forward once and in 4 epochs forward and back.
    struct report_cell ppo[] = {{.key = "env", .text = "uav"},
                                {.key = "loop", .text = "device"},
                                {.key = "precision", .text = "f16"},
                                {.key = "num_envs", .number = 2},
                                {.key = "agents", .number = 10},
                                {.key = "rollout_steps", .number = 8},
                                {.key = "agent_steps_per_s", .number = 500},
                                {.key = "seconds", .number = 0.25}};
    assert_true(count("ppo", "ppo", ppo, 8, &work, &amount));
    NEAR(amount, 125);  // as many moved
    NEAR(work.matrix, 160.0 * 2 * 37130 * 13);
    NEAR(work.bytes, 160.0 * 2 * 162 * 5);
    NEAR(work.launches, 8 + 32);
    assert_true(count("ppo", "ppo", ppo, 6, &work, &amount));
    NEAR(amount, 0.55 * 160);
    ppo[1].text = "host";
    assert_false(count("ppo", "ppo", ppo, 8, &work, &amount));
    ppo[1].text = "device";
    ppo[4].number = 3;  // other networks
    assert_false(count("ppo", "ppo", ppo, 8, &work, &amount));

    // Two images of 8x8 and 32 channels, windows of 3x3 two apart: 4x4 of 8 channels come out.
    struct report_cell conv[] = {{.key = "test", .text = "forward"},
                                 {.key = "images", .text = "2x8x8x32x8"},
                                 {.key = "window", .text = "3x3/2+1"},
                                 {.key = "precision", .text = "f16"}};
    assert_false(count("conv", "conv", conv, 4, &work, &amount));  // no Hopper
    struct card hopper = round_card;
    hopper.name = "NVIDIA H200";
    hopper.memory = 140e9;
    counted = &hopper;
    assert_true(count("conv", "conv", conv, 4, &work, &amount));
    NEAR(amount, 2.0 * 2 * 4 * 4 * 8 * 32 * 9);
    NEAR(work.matrix, amount);
    NEAR(work.bytes, 2.0 * (2 * 8 * 8 * 32 + 2 * 4 * 4 * 8 + 32 * 8 * 9));
    NEAR(work.groups, 1);
    NEAR(work.launches, 1);
    conv[1].text = "2x8x8x3x8";  // pictures
    assert_false(count("conv", "conv", conv, 4, &work, &amount));
    // 64 x 64 pixels by 256 channels, in tiles of 128; 64 x 16 by 300 come out.
    conv[1].text = "64x8x8x256x300";
    assert_true(count("conv", "conv", conv, 4, &work, &amount));
    NEAR(work.groups, 8 * 3);
    conv[0].text = "data";
    assert_true(count("conv", "conv", conv, 4, &work, &amount));
    NEAR(work.groups, 32 * 2);
    conv[0].text = "weight";
    assert_true(count("conv", "conv", conv, 4, &work, &amount));
    assert_true(work.groups == 0 && work.launches == 2);
    static const char *const broken[] = {"3x3/0+1", "3x3", "3x3/1+1x", "99x99/1+0", "3x3/-1+1"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        conv[2].text = broken[i];
        assert_false(count("conv", "conv", conv, 4, &work, &amount));
    }

    counted = &round_card;

    // What `gpurt bench images` counted of ResNet-18 at 32x32 on 2026-11-17: 3.348 GFLOP an image.
    struct report_cell images[] = {{.key = "model", .text = "resnet18"},
                                   {.key = "resolution", .number = 32},
                                   {.key = "batch", .number = 32},
                                   {.key = "precision", .text = "f16"}};
    assert_true(count("images", "images", images, 4, &work, &amount));
    assert_true(fabs(work.matrix / (0.025504322e12 * 4.2010015) - 1) < 0.01);
}

// The quickest two steps in a row, of the slower rank; and what it waits, in the quickest two of
// both.
static void test_waits(void **state) {
    (void)state;
    const double steps[] = {
        9, 9, 3, 5, 4, 6, 1,  // 4 a step; a single last step is no pair
        5, 6, 6, 4, 4, 4, 9,  // 4 too
    };
    struct scaling_alone alone = scaling_alone_of(steps, 2, 7, 2);
    assert_true(alone.step == 4 && alone.wait == 1);  // 4 and 6 beside 4 and 4
    alone = scaling_alone_of(steps, 2, 7, 1);
    assert_true(alone.step == 4 && alone.wait == 0);                  // 1 and 4, and 4 beside 4
    alone = scaling_alone_of((const double[]){1, 3, 3, 1}, 2, 2, 4);  // fewer than a chunk
    assert_true(alone.step == 2 && alone.wait == 1);
    alone = scaling_alone_of(steps, 1, 7, 2);
    assert_true(alone.step == 4 && alone.wait == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits),        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_overlap),      cmocka_unit_test(test_no_matrix_units),
        cmocka_unit_test(test_range),        cmocka_unit_test(test_cards),
        cmocka_unit_test(test_broken_cards), cmocka_unit_test(test_too_many_cards),
        cmocka_unit_test(test_counts),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
