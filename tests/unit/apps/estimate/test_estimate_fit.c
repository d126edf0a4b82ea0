// SPDX-License-Identifier: Apache-2.0
// Shares that a fit must find again in results that the model itself made of them, and how far off
// it says that it is for cards and cases that it was not fitted to.
#include "round_card.h"

#include <stdio.h>

#include "report/read.h"

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

// GFLOP/s of a product that the model makes of shares.
static double rate_of(const char *shape, const struct roof_shares *shares) {
    struct report_cell cells[] = {{.key = "shape", .text = shape},
                                  {.key = "batch", .number = 1},
                                  {.key = "precision", .text = "f16"}};
    struct report_row row = {.cells = cells, .cell_count = 3};
    struct roof_work work;
    double amount;
    assert_true(suite_of("gemm")->count(&row, &round_card, &work, &amount));
    return amount / roof_time(&round_card, 1e-12, &work, shares).seconds / 1e9;
}

// The fit of Round Card's results by `shares` and of Other Card's two, at these GFLOP/s. The report
// is the caller's to finish.
static void fit_two_more(struct report *report, const struct cards *cards, struct fit *fit,
                         const struct roof_shares *shares, double thousand, double two_thousand) {
    char text[8192], why[REPORT_WHY];
    report_init(report);
    records_of("Round Card", &cards->list[0], shares, 1e-12, text, sizeof text);
    assert_true(report_read_text(report, "a", text, strlen(text), false, why));
    snprintf(text, sizeof text,
             "{\"schema\":\"gpurt.bench/1\",\"device\":{\"name\":\"Other Card\",\"backend\":"
             "\"vulkan\"},\"rows\":[{\"kind\":\"gemm\",\"shape\":\"1024x1024x1024\",\"batch\":1,"
             "\"precision\":\"f16\",\"trans\":\"nn\",\"gflop_per_s\":%.17g,\"check\":\"ok\"},"
             "{\"kind\":\"gemm\",\"shape\":\"2048x2048x2048\",\"batch\":1,\"precision\":\"f16\","
             "\"trans\":\"nn\",\"gflop_per_s\":%.17g,\"check\":\"ok\"}]}",
             thousand, two_thousand);
    assert_true(report_read_text(report, "b", text, strlen(text), false, why));
    report_settle(report);
    assert_true(fit_suite(suite_of("gemm"), "vulkan", report, cards, fit));
    assert_int_equal(fit->samples, 10);
    assert_int_equal(fit->left_out, 1);
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
    fit_two_more(&report, &cards, &fit, &shares, 1600, 1600);
    assert_int_equal(fit.cards, 2);
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

// Cases of two cards stand in turns. The second card's are predicted without any of its own, also
// behind a case of the first that was left out by itself: three times as slow is three times off.
static void test_cards_in_turns(void **state) {
    (void)state;
    const struct roof_shares shares = {
        .plain = 0.5, .matrix = 0.4, .bytes = 0.7, .hidden = 1, .cycles = 2, .launch = 1};
    struct card list[] = {round_card, round_card};
    list[1].name = "Other Card";
    struct cards cards = {.list = list, .count = 2};
    struct report report;
    struct fit fit;
    fit_two_more(&report, &cards, &fit, &shares, rate_of("1024x1024x1024", &shares),
                 rate_of("2048x2048x2048", &shares) / 3);
    assert_true(fabs(fit.worst - 3) < 0.1);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_leave_card_out),
        cmocka_unit_test(test_too_few_without_a_card),
        cmocka_unit_test(test_cards_in_turns),
        cmocka_unit_test(test_guide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
