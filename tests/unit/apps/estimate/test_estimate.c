// SPDX-License-Identifier: Apache-2.0
// Estimates against numbers computed by hand: made-up cards on which work is bound by bandwidth,
// compute, latency or launches alone, shares that a fit must find again, and files of cards that
// are broken or meant to do harm.
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
#include "report/read.h"

// 10 units at 1 GHz, 1 TFLOP/s, 8 TFLOP/s of matrix units, 100 GB/s.
static const struct card round_card = {.id = "round",
                                       .name = "Round Card",
                                       .vendor = "nvidia",
                                       .source = "made up",
                                       .units = 10,
                                       .clock = 1e9,
                                       .plain = 1e12,
                                       .matrix = 8e12,
                                       .bandwidth = 1e11,
                                       .memory = 1e9};
static const struct roof_shares half_shares = {
    .plain = 0.5, .matrix = 0.25, .bytes = 0.8, .hidden = 1, .cycles = 4, .launch = 2};

static void near_(double a, double b, int line) {
    if (!(fabs(a - b) <= 1e-9 * fabs(b))) {
        fail_msg("line %d: %.12g is not %.12g", line, a, b);
    }
}
#define NEAR(a, b) near_(a, b, __LINE__)

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

static const struct suite *suite_of(const char *name) {
    for (size_t i = 0; i < suite_count; i++) {
        if (strcmp(suites[i].name, name) == 0) {
            return &suites[i];
        }
    }
    fail_msg("no suite %s", name);
    return NULL;
}

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

// ---- fitting ----

// Results that the model itself made of known shares: the fit finds them, and leaves no error.
static void records_of(const char *device, const struct card *card,
                       const struct roof_shares *shares, double launch, char *text, size_t room) {
    static const char *const shapes[] = {"128x128x128",    "512x512x512",    "1024x1024x1024",
                                         "2048x2048x2048", "4096x4096x4096", "65536x64x64",
                                         "65536x256x16",   "128x65536x32"};
    size_t used =
        (size_t)snprintf(text, room,
                         "{\"schema\":\"gpurt.bench/"
                         "1\",\"device\":{\"name\":\"%s\",\"backend\":\"vulkan\"},\"rows\":["
                         "{\"kind\":\"launch\",\"test\":\"in "
                         "order\",\"dispatches\":1,\"us\":%.17g,\"check\":\"ok\"}",
                         device, launch * 1e6);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct report_cell cells[] = {{.key = "shape", .text = shapes[i]},
                                      {.key = "batch", .number = 1},
                                      {.key = "precision", .text = "f16"}};
        struct report_row row = {.cells = cells, .cell_count = 3};
        struct roof_work work;
        double amount;
        assert_true(suite_of("gemm")->count(&row, card, &work, &amount));
        double time = roof_time(card, launch, &work, shares).seconds;
        used += (size_t)snprintf(text + used, room - used,
                                 ",{\"kind\":\"gemm\",\"shape\":\"%s\",\"batch\":1,\"precision\":"
                                 "\"f16\",\"trans\":\"nn\",\"gflop_per_s\":%.17g,\"check\":\"ok\"}",
                                 shapes[i], amount / time / 1e9);
    }
    snprintf(text + used, room - used, "]}");
}

// The fit of what the cards made, Round Card by `of_round` and, unless NULL, Other Card by
// `of_other`. The report is the caller's to finish.
static void fit_known(struct report *report, const struct cards *cards, struct fit *fit,
                      const struct roof_shares *of_round, const struct roof_shares *of_other,
                      double launch) {
    char text[8192], why[REPORT_WHY];
    report_init(report);
    records_of("Round Card", &cards->list[0], of_round, launch, text, sizeof text);
    assert_true(report_read_text(report, "a", text, strlen(text), false, why));
    if (of_other) {
        records_of("Other Card", &cards->list[1], of_other, launch, text, sizeof text);
        assert_true(report_read_text(report, "b", text, strlen(text), false, why));
    }
    report_settle(report);
    assert_true(fit_suite(suite_of("gemm"), "vulkan", report, cards, fit));
}

static void test_fit(void **state) {
    (void)state;
    const struct roof_shares true_shares = {
        .plain = 0.5, .matrix = 0.4, .bytes = 0.7, .hidden = 0.5, .cycles = 2, .launch = 1.5};
    struct card other = round_card;
    other.id = "other";
    other.name = "Other Card";
    other.matrix *= 3;
    other.bandwidth *= 2;
    struct card list[] = {round_card, other};
    struct cards cards = {.list = list, .count = 2};
    struct report report;
    struct fit fit;
    fit_known(&report, &cards, &fit, &true_shares, NULL, 2e-6);
    assert_int_equal(fit.samples, 8);
    assert_int_equal(fit.cards, 1);
    NEAR(fit.launch, 2e-6);
    assert_ptr_equal(fit.measured, &list[0]);
    assert_true(fabs(fit.shares.matrix / true_shares.matrix - 1) < 0.05);
    assert_true(fabs(fit.shares.bytes / true_shares.bytes - 1) < 0.1);
    assert_true(fit.worst < 1.2);
    // Nothing by the other API.
    assert_true(fit_suite(suite_of("gemm"), "opencl", &report, &cards, &fit));
    assert_int_equal(fit.samples, 0);
    report_finish(&report);
}

// Two cards, one half as good as its numbers: each is predicted by the other, a factor of two off.
static void test_leave_card_out(void **state) {
    (void)state;
    const struct roof_shares good = {
        .plain = 0.5, .matrix = 0.4, .bytes = 0.7, .hidden = 1, .cycles = 2, .launch = 1};
    struct roof_shares bad = good;
    bad.matrix /= 2;
    bad.bytes /= 2;
    struct card other = round_card;
    other.id = "other";
    other.name = "Other Card";
    struct card list[] = {round_card, other};
    struct cards cards = {.list = list, .count = 2};
    struct report report;
    struct fit fit;
    fit_known(&report, &cards, &fit, &good, &bad, 1e-12);
    assert_int_equal(fit.samples, 16);
    assert_int_equal(fit.cards, 2);
    assert_true(fabs(fit.typical - 2) < 0.1);
    assert_true(fit.worst > 1.9 && fit.worst < 2.3);
    report_finish(&report);
}

// A second card with two results, fewer than there are shares to fit: the first one's cases are
// predicted one by one, and the second card as a whole. Its maker is known though it has the least.
static void test_too_few_without_a_card(void **state) {
    (void)state;
    const struct roof_shares shares = {
        .plain = 0.5, .matrix = 0.4, .bytes = 0.7, .hidden = 1, .cycles = 2, .launch = 1};
    struct card list[] = {round_card, round_card, round_card, round_card};
    list[1].name = "Other Card";
    list[1].vendor = "amd";
    list[2].vendor = "amd";
    list[3].vendor = "intel";
    struct cards cards = {.list = list, .count = 2};
    struct report report;
    struct fit fit;
    char text[8192], why[REPORT_WHY];
    report_init(&report);
    records_of("Round Card", &list[0], &shares, 1e-12, text, sizeof text);
    assert_true(report_read_text(&report, "a", text, strlen(text), false, why));
    static const char two[] =
        "{\"schema\":\"gpurt.bench/1\",\"device\":{\"name\":\"Other "
        "Card\",\"backend\":\"vulkan\"},\"rows\":[{\"kind\":\"gemm\",\"shape\":\"1024x1024x1024\","
        "\"batch\":1,\"precision\":\"f16\",\"trans\":\"nn\",\"gflop_per_s\":1600,\"check\":\"ok\"},"
        "{\"kind\":\"gemm\",\"shape\":\"2048x2048x2048\",\"batch\":1,\"precision\":\"f16\","
        "\"trans\":"
        "\"nn\",\"gflop_per_s\":1600,\"check\":\"ok\"}]}";
    assert_true(report_read_text(&report, "b", two, strlen(two), false, why));
    report_settle(&report);
    assert_true(fit_suite(suite_of("gemm"), "vulkan", &report, &cards, &fit));
    assert_int_equal(fit.samples, 10);
    assert_int_equal(fit.cards, 2);
    assert_int_equal(fit.left_out, 1);
    assert_ptr_equal(fit.measured, &list[0]);
    assert_true(fit.worst < 3);  // two cases would have left the first card's ones to chance
    struct report_cell cells[] = {{.key = "shape", .text = "1024x1024x1024"},
                                  {.key = "batch", .number = 1},
                                  {.key = "precision", .text = "f16"}};
    struct report_row row = {.cells = cells, .cell_count = 3};
    struct estimate same, other;
    assert_true(estimate_row(&fit, suite_of("gemm"), &list[2], &row, &same));
    assert_true(estimate_row(&fit, suite_of("gemm"), &list[3], &row, &other));
    NEAR(same.factor, fit.worst);
    NEAR(other.factor, fit.worst * ESTIMATE_OTHER_MAKER);
    report_finish(&report);
}

// The guide's question, of the records and cards that come with gpurt: at 128 environments in
// chunks of 8 directions an A100 is no faster than the laptop, all at once it is.
static void test_guide(void **state) {
    (void)state;
    struct cards cards;
    struct report report;
    struct fit fit;
    char why[REPORT_WHY];
    cards_init(&cards);
    report_init(&report);
    assert_true(cards_read(&cards, estimate_cards, strlen(estimate_cards), why));
    for (const struct estimate_text *r = estimate_records; r->name; r++) {
        assert_true(report_read_text(&report, r->name, r->text, strlen(r->text), false, why));
    }
    report_settle(&report);
    for (size_t b = 0; b < ESTIMATE_BACKENDS; b++) {
        assert_true(fit_suite(suite_of("rollout"), estimate_backends[b], &report, &cards, &fit));
        assert_true(fit.samples >= 18 && fit.worst < 1.6);
        double rate[2][2];
        for (int big = 0; big < 2; big++) {
            struct report_cell cells[] = {{.key = "test", .text = "standing"},
                                          {.key = "policy", .text = "linear"},
                                          {.key = "num_envs", .number = big ? 1024 : 128},
                                          {.key = "num_dirs", .number = big ? 64 : 16},
                                          {.key = "dir_chunk", .number = big ? 64 : 8}};
            struct report_row row = {.cells = cells, .cell_count = 5};
            struct estimate e;
            for (int laptop = 0; laptop < 2; laptop++) {
                const struct card *card = cards_find(&cards, laptop ? "rtx-3060-laptop" : "a100");
                assert_true(estimate_row(&fit, suite_of("rollout"), card, &row, &e));
                assert_true(e.low <= e.value && e.value <= e.high);
                assert_int_equal(e.bound, big ? ROOF_COMPUTE : ROOF_LATENCY);
                rate[big][laptop] = e.value;
            }
        }
        // By the clocks, 1410 and 1425 MHz; then by the f32 rates, 19.5 and 10.94 TFLOP/s.
        assert_true(fabs(rate[0][0] / rate[0][1] - 1410.0 / 1425) < 0.01);
        assert_true(fabs(rate[1][0] / rate[1][1] - 19.5 / 10.94) < 0.01);
    }
    report_finish(&report);
    cards_finish(&cards);
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
        cmocka_unit_test(test_waits),          cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_overlap),        cmocka_unit_test(test_no_matrix_units),
        cmocka_unit_test(test_range),          cmocka_unit_test(test_cards),
        cmocka_unit_test(test_broken_cards),   cmocka_unit_test(test_too_many_cards),
        cmocka_unit_test(test_counts),         cmocka_unit_test(test_fit),
        cmocka_unit_test(test_leave_card_out), cmocka_unit_test(test_too_few_without_a_card),
        cmocka_unit_test(test_guide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
