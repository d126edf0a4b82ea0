// SPDX-License-Identifier: Apache-2.0
// What `gpurt report` and `gpurt compare` make of made-up results: which figures count, who leads,
// what changed, and the sentences, tables and exit codes of that.
#include "report_made.h"

#include <unistd.h>

#include "unit/apps/caught.h"
#include "cli/command.h"
#include "cli/talk.h"

// ---- which figures count ----

static void judged(void **state) {
    static const struct {
        const char *more;
        bool good;
        double spread, low, high;  // of 100 GFLOP/s, in GFLOP/s
        const char *check;
    } rows[] = {
        {"", true, 0, 100, 100, "ok"},
        {",\"check\":\"ok\"", true, 0, 100, 100, "ok"},
        {",\"check\":\"FAILED\"", false, 0, 0, 0, "FAILED"},
        {",\"status\":\"skipped\"", false, 0, 0, 0, "skipped"},
        {",\"status\":\"skipped\",\"check\":\"ok\"", true, 0, 100, 100, "ok"},
        {",\"spread\":0.25", true, 0.25, 75, 125, "ok"},
        {",\"spread\":-0.25", true, 0, 100, 100, "ok"},
        {",\"spread\":\"x\"", true, 0, 100, 100, "ok"},
        {",\"spread\":3", true, 3, 10, 190, "ok"},  // says nothing beyond 90 %
        {",\"low\":80,\"high\":130", true, 0, 100, 100, "ok"},
        {",\"spread\":0.5,\"check\":\"bad\"", false, 0, 0, 0, "bad"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        end(NULL);
        begin(NULL);
        snprintf(text, sizeof text, A ROW("8", "100", "%s"), rows[i].more);
        add("x", text, false);
        const struct report_row *row = &r.rows[0];
        assert_int_equal(row->good, rows[i].good);
        near_to(row->spread, rows[i].spread);
        near_to(row->low, rows[i].low * 1e9);
        near_to(row->high, rows[i].high * 1e9);
        near_to(row->value, rows[i].good ? 100e9 : 0);
        assert_string_equal(row->check, rows[i].check);
    }
    add("x", A ROW("0", "0", "") ROW("1", "-1", "") "{\"kind\":\"gemm\",\"shape\":\"2\"}\n", false);
    for (size_t i = 1; i < 4; i++) {
        assert_false(r.rows[i].good);
        assert_string_equal(r.rows[i].check, "no figure");
    }
    // Between which figures a prediction lies; where that is odd its spread counts.
    static const struct {
        const char *more;
        double low, high;
    } predicted[] = {{",\"low\":80,\"high\":130", 80, 130},
                     {",\"low\":100,\"high\":100", 100, 100},
                     {",\"low\":101,\"high\":130,\"spread\":0.1", 90, 110},
                     {",\"low\":80,\"high\":99,\"spread\":0.1", 90, 110},
                     {",\"low\":0,\"high\":130,\"spread\":0.1", 90, 110},
                     {",\"low\":80", 100, 100}};
    for (size_t i = 0; i < sizeof predicted / sizeof *predicted; i++) {
        char text[1024];
        end(NULL);
        begin(NULL);
        snprintf(text, sizeof text, PREDICTED ROW("8", "100", "%s"), predicted[i].more);
        add("x", text, false);
        near_to(r.rows[0].low, predicted[i].low * 1e9);
        near_to(r.rows[0].high, predicted[i].high * 1e9);
    }
    near_to(r.rows[0].spread + 1, 1);
}

// The newest counts though it failed; of one time one that is right, of those the best, of equals
// the first file's.
static void chosen(void **state) {
    static const struct {
        const char *first, *second;
        double value;  // of the one that counts, in GFLOP/s
    } rows[] = {
        {A ROW("8", "5", ""), HEAD("A", "vulkan", "2026-01-02") ROW("8", "4", ""), 4},
        {HEAD("A", "vulkan", "2026-01-02") ROW("8", "4", ""), A ROW("8", "5", ""), 4},
        {A ROW("8", "5", ""), HEAD("A", "vulkan", "2026-01-02") ROW("8", "4", ",\"check\":\"x\""),
         0},
        {A ROW("8", "5", ",\"check\":\"x\""), A ROW("8", "4", ""), 4},
        {A ROW("8", "5", ""), A ROW("8", "6", ""), 6},
        {A ROW("8", "6", ""), A ROW("8", "5", ""), 6},
        {A LAUNCH("6"), A LAUNCH("5"), 5e-15},
        {A LAUNCH("5"), A LAUNCH("6"), 5e-15},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        end(NULL);
        begin(NULL);
        add("a", rows[i].first, false);
        add("b", rows[i].second, false);
        settle(0);
        assert_int_equal(r.rows[0].chosen + r.rows[1].chosen, 1);
        near_to(r.rows[0].value, rows[i].value * 1e9);
        assert_true(r.rows[0].chosen);
        assert_int_equal(report_case_end(&r, 0), 2);
        assert_int_equal(r.rows[0].rivals, rows[i].value > 0);
    }
    end(NULL);
    begin(NULL);
    add("a", A ROW("8", "5", ""), false);
    add("b", A ROW("8", "5", ""), false);
    settle(0);
    assert_string_equal(r.sources[r.rows[0].source].file, "a");
}

// Shares are of the best of those that were measured; predictions have a best of their own.
static void shares(void **state) {
    (void)state;
    add("a", A ROW("8", "50", "") LAUNCH("4"), false);
    add("b", B ROW("8", "100", "") ROW("9", "7", "") LAUNCH("2"), false);
    add("p", PREDICTED ROW("8", "400", ""), false);
    add("p",
        "{\"schema\":\"gpurt.bench/1\",\"nature\":\"predicted\",\"device\":{\"name\":\"Q\"}}\n" ROW(
            "8", "100", ""),
        false);
    settle(0);
    static const struct {
        const char *name;
        double of_best;
        uint32_t rivals;
    } rows[] = {{"A", 0.5, 2}, {"B", 1, 2},   {"P", 1, 2}, {"Q", 0.25, 2},
                {"B", 1, 1},   {"A", 0.5, 2}, {"B", 1, 2}};
    assert_int_equal(r.row_count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_string_equal(r.contenders[r.rows[i].contender].name, rows[i].name);
        near_to(r.rows[i].of_best, rows[i].of_best);
        assert_int_equal(r.rows[i].rivals, rows[i].rivals);
    }
    // A prediction leads nothing.
    assert_int_equal(summary.count, 2);
    assert_int_equal(summary.leads[0].count, 2);
    assert_int_equal(summary.leads[0].standings[0].alone, 1);
    near_to(summary.leads[0].best->value, 100e9);
}

static void sentences(void **state) {
    char text[REPORT_SENTENCE];
    (void)state;
    add("a", A ROW("8", "50", "") ROW("7", "80", ""), false);
    add("b", B ROW("9", "7", ""), false);
    settle(0);
    report_lead_text(&r, &summary.leads[0], text);
    assert_string_equal(text, "No two contenders have the same products. The best figure is 80.0 "
                              "GFLOP/s, of A · vulkan: 7 f32.");
    near_to(summary.leads[0].standings[0].relative + 1, 1);
    assert_int_equal(summary.leads[0].standings[0].alone, 2);
    add("b", B ROW("8", "20", ""), false);
    free(changes.list);
    settle(0);
    report_lead_text(&r, &summary.leads[0], text);
    assert_string_equal(text, "A · vulkan leads in the one case that several have, by 2.50 times: "
                              "8 f32.");
    add("c", HEAD("C", "opencl", "") ROW("8", "10", "") ROW("9", "28", "") ROW("7", "8", ""),
        false);
    free(changes.list);
    settle(0);
    // A leads by 2.5 and by 10, so by 5 on the mean.
    report_lead_text(&r, &summary.leads[0], text);
    assert_string_equal(text, "A · vulkan leads in 2 of 3 products, by 5.00 times at the geometric "
                              "mean, at most by 10.0 times: 7 f32.");
    assert_int_equal(summary.leads[0].standings[1].leads, 1);
}

// ---- against the baseline ----

static void compared(void **state) {
    static const struct {
        const char *before, *after;
        double fail_under;
        enum report_verdict verdict;
        bool below;
        double share, low, high;
    } rows[] = {
        {ROW("8", "100", ""), ROW("8", "50", ""), 0, REPORT_SLOWER, false, 0.5, 0.5, 0.5},
        {ROW("8", "100", ""), ROW("8", "50", ""), 0.5, REPORT_SLOWER, false, 0.5, 0.5, 0.5},
        {ROW("8", "100", ""), ROW("8", "50", ""), 0.51, REPORT_SLOWER, true, 0.5, 0.5, 0.5},
        {ROW("8", "100", ""), ROW("8", "100", ""), 1, REPORT_SAME, false, 1, 1, 1},
        {ROW("8", "100", ",\"spread\":0.1"), ROW("8", "120", ",\"spread\":0.2"), 0, REPORT_SAME,
         false, 1.2, 1.2 * 0.8 / 1.1, 1.2 * 1.2 / 0.9},
        {ROW("8", "100", ",\"spread\":5"), ROW("8", "100", ",\"spread\":0.95"), 0, REPORT_SAME,
         false, 1, 0.1 / 1.9, 1.9 / 0.1},
        {LAUNCH("2"), LAUNCH("4"), 0.6, REPORT_SLOWER, true, 0.5, 0.5, 0.5},
        {LAUNCH("4"), LAUNCH("2"), 0, REPORT_FASTER, false, 2, 2, 2},
        {ROW("8", "100", ""), ROW("8", "1", ",\"check\":\"x\""), 0, REPORT_BROKEN, false, 0, 0, 0},
        {ROW("8", "100", ""), ROW("8", "1", ",\"check\":\"x\""), 0.1, REPORT_BROKEN, true, 0, 0, 0},
        {ROW("8", "0", ""), ROW("8", "1", ""), 2, REPORT_MENDED, false, 0, 0, 0},
        {ROW("8", "0", ""), ROW("8", "0", ""), 2, REPORT_SAME, false, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        end(NULL);
        begin(NULL);
        snprintf(text, sizeof text, "%s%s", A, rows[i].before);
        add("old", text, true);
        snprintf(text, sizeof text, "%s%s", A, rows[i].after);
        add("new", text, false);
        settle(rows[i].fail_under);
        assert_int_equal(changes.count, 1);
        const struct report_change *c = &changes.list[0];
        assert_int_equal(c->verdict, rows[i].verdict);
        assert_int_equal(c->below, rows[i].below);
        assert_int_equal(changes.below, rows[i].below);
        assert_int_equal(changes.verdicts[rows[i].verdict], 1);
        near_to(c->share, rows[i].share);
        near_to(c->low, rows[i].low);
        near_to(c->high, rows[i].high);
        assert_int_equal(changes.missing + changes.added, 0);
    }
    static const char *const words[] = {"same", "better", "worse", "broken", "mended"};
    for (int i = 0; i < REPORT_VERDICT_COUNT; i++) {
        assert_string_equal(report_verdict_text((enum report_verdict)i), words[i]);
    }
}

// The same device by the same API first; without it the first of the baseline; predictions never.
static void whose_baseline(void **state) {
    (void)state;
    add("old",
        HEAD("A", "opencl", "") ROW("8", "10", "") HEAD("A", "vulkan", "") ROW("8", "20", "")
            PREDICTED ROW("8", "1", "") HEAD("A", "vulkan", "") ROW("only", "1", ""),
        true);
    add("new",
        HEAD("A", "vulkan", "") ROW("8", "40", "") HEAD("A", "opencl", "") ROW("8", "30", "")
            HEAD("Z", "vulkan", "") ROW("8", "40", "") ROW("mine", "3", "") ROW("own", "3", "")
                PREDICTED ROW("8", "7", ""),
        false);
    settle(0);
    static const double shares[] = {2, 3, 4};
    assert_int_equal(changes.count, 3);
    for (size_t i = 0; i < 3; i++) {
        near_to(changes.list[i].share, shares[i]);
    }
    assert_int_equal(changes.missing, 1);
    assert_int_equal(changes.added, 2);
    // Curves of a log join the device's figures of the same side only.
    add("log",
        "{\"event\":\"start\",\"kind\":\"es\",\"device\":\"Z\"}\n{\"event\":\"evaluate\","
        "\"step\":1,\"return\":2}\n",
        true);
    report_settle(&r);
    assert_string_equal(r.contenders[r.curves[0].contender].label, "Z (baseline)");
}

// Colours go to who has the most figures and curves; curves of a device join its own figures, not
// those of a peer beside it; logs of one device in two files are two sources.
static void logs_and_figures(void **state) {
    (void)state;
    static const char run[] = "{\"event\":\"start\",\"kind\":\"es\",\"device\":\"B\"}\n"
                              "{\"event\":\"evaluate\",\"step\":1,\"return\":2}\n"
                              "{\"event\":\"train\",\"step\":1,\"return\":2}\n";
    add("a", A ROW("8", "1", ""), false);
    add("b", B ROW("8", "1", ",\"variant\":\"openblas\"") ROW("9", "1", ""), false);
    add("log", run, false);
    add("log2", run, false);
    settle(0);
    assert_int_equal(r.source_count, 4);
    assert_string_equal(r.sources[3].file, "log2");
    assert_string_equal(r.contenders[r.curves[0].contender].label, "B · vulkan");
    assert_int_equal(r.contenders[r.curves[3].contender].color, 0);
    assert_int_equal(r.contenders[0].color, 1);  // of the same weight the first
    end(NULL);
    begin(NULL);
    add("a", A ROW("8", "1", "") ROW("9", "1", ""), false);
    add("log", run, false);
    add("log2", run, false);
    settle(0);
    assert_int_equal(r.contenders[1].color, 0);  // four curves before two figures
    assert_int_equal(r.contenders[0].color, 1);
    end(NULL);
    begin(NULL);
    add("log", run, false);
    add("log2", run, false);
    assert_int_equal(r.source_count, 2);
}

// ---- forms ----

static void plain(void **state) {
    (void)state;
    settle(0);
    char *text = form(report_write_plain, 0);
    assert_string_equal(text, "There is no figure to compare. --html FILE shows what the files "
                              "have.\n");
    free(text);
    add("snapshot.json",
        "{\"schema\":\"gpurt.memory/1\",\"device\":{\"name\":\"A\"},\"seconds\":10,\"peak\":2048,"
        "\"peak_at\":0.25,\"allocations\":[{\"label\":\"x\",\"kind\":\"device\",\"size\":1,"
        "\"begin\":1,\"end\":2}]}",
        false);
    settle(0);
    text = form(report_write_plain, 0);
    assert_string_equal(text, "Device memory of A: at most 2.00 KiB, after 0.25 s; 1 allocations\n"
                              "    (snapshot.json)\n");
    free(text);
    // Eighty columns are full, 81 are not.
    for (size_t more = 0; more < 2; more++) {
        static const char rest[] = "Sweep : 1 trials; the best m is 5, of trial 0 with a=1";
        char name[96] = "";
        memset(name, 'n', 80 + more - strlen(rest));
        end(NULL);
        begin(NULL);
        add(name,
            "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{\"metric\":\"m\",\"goal\":\"minimize\","
            "\"parameters\":[{\"name\":\"a\"}]}}\n"
            "{\"trial\":0,\"state\":\"done\",\"value\":5,\"a\":1}\n",
            false);
        settle(0);
        text = form(report_write_plain, 0);
        assert_int_equal(count_of(text, "\n"), 1 + more);
        assert_int_equal(count_of(text, "\n    a=1\n"), more);
        free(text);
    }
}

static void sweeps(void **state) {
    static const char trials[] =
        "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{\"metric\":\"return\",\"goal\":\"maximize\","
        "\"parameters\":[{\"name\":\"lr\",\"log\":true},{\"name\":\"act\"}]}}\n"
        "{\"trial\":0,\"state\":\"done\",\"value\":1,\"lr\":0.1,\"act\":\"relu\"}\n"
        "{\"trial\":1,\"state\":\"halved\",\"value\":5,\"lr\":0.2,\"act\":\"tanh\"}\n"
        "{\"trial\":2,\"state\":\"failed\",\"value\":9,\"lr\":0.3,\"act\":\"tanh\"}\n"
        "{\"trial\":3,\"state\":\"running\",\"value\":8,\"lr\":0.4,\"act\":\"tanh\"}\n";
    (void)state;
    add("s", trials, false);
    settle(0);
    const struct report_sweep *s = &r.sweeps[0];
    assert_int_equal(report_sweep_best(s)->number, 1);
    assert_true(s->parameters[0].log && !s->parameters[1].log);
    char *text = form(report_write_plain, 0);
    // By hand: ranks 1 2 4 3 of lr's four values explain all; relu has rank 1, tanh 3 on the mean:
    // (9/4 + 3/4) / 5.
    assert_string_equal(text, "Sweep s: 4 trials; the best return is 5, of trial 1 with lr=0.2 "
                              "act=tanh;\n    importance: lr 1.00, act 0.60\n");
    free(text);
    end(NULL);
    begin(NULL);
    add("s",
        "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{\"metric\":\"m\",\"goal\":\"minimize\","
        "\"parameters\":[{\"name\":\"a\",\"log\":true}]}}\n"
        "{\"trial\":0,\"state\":\"waiting\",\"a\":0}\n",
        false);
    settle(0);
    assert_null(report_sweep_best(&r.sweeps[0]));
    assert_false(r.sweeps[0].parameters[0].log);  // 0 has no place on such an axis
    text = form(report_write_plain, 0);
    assert_string_equal(text, "Sweep s: 1 trials\n");
    free(text);
}

// A baseline, a figure below it, one that broke, one that is new: in all three forms.
static void baseline_forms(void **state) {
    (void)state;
    add("old", A ROW("6", "10", "") ROW("8", "100", "") ROW("9", "5", "") ROW("7", "3", ""), true);
    add("new",
        HEAD("A", "vulkan", "2026-03-01T00:00:00Z") ROW("8", "50",
                                                        ",\"spread\":0.01,\"of_peak\":"
                                                        "0.125") ROW("9", "5", "")
            ROW("6", "10", ",\"check\":\"BAD\"") ROW("1", "9", ""),
        false);
    settle(0.9);
    char *text = form(report_write_markdown, 0.9);
    has(text, "# A\\|B\n");
    has(text, "3 figures: 0 better, 1 worse, 1 the same within their spread, 1 broken, 0 mended. 1 "
              "of the baseline are missing, 1 are new.\n");
    has(text, "\n**2 below 0.9 of the baseline.**\n");
    has(text, "| gemm | 6 f32 | A · vulkan | 10.0 GFLOP/s | BAD | - | broken, **below** |\n");
    has(text, "| gemm | 8 f32 | A · vulkan | 100 GFLOP/s | 50.0 GFLOP/s | 0.500 (0.495 to 0.505) | "
              "worse, **below** |\n");
    assert_int_equal(count_of(text, "| gemm | 9 f32"), 0);  // what is the same is not told
    has(text, "| A · vulkan (baseline) |  | 0.1.0 | 2026-01-01T00:00:00Z | gpurt bench | old |\n");
    has(text, "| 8 f32 | A · vulkan | 50.0 GFLOP/s | 50 % | 1.0 % | measured |\n");
    has(text, "| 9 f32 | A · vulkan | 5.00 GFLOP/s | 100 % |  | measured |\n");
    has(text, "| 6 f32 | A · vulkan | BAD |  |  | measured |\n");
    has(text, "\n## Matrix products\n\n| case | device | FLOP/s | of best | spread | kind |\n");
    assert_true(strstr(text, "## Summary") < strstr(text, "## Against the baseline"));
    assert_true(strstr(text, "## Against") < strstr(text, "## Machines"));
    free(text);
    text = form(report_write_csv, 0.9);
    has(text, "\ngemm,8 f32,A,vulkan,5e+10,FLOP/s,0.01,0.5,1,measured,ok,0.5,worse,"
              "2026-03-01T00:00:00Z,0.1.0,new\n");
    has(text, "\ngemm,6 f32,A,vulkan,,FLOP/s,,,1,measured,BAD,,broken,");
    has(text, "\ngemm,9 f32,A,vulkan,5e+09,FLOP/s,,1,1,measured,ok,1,same,");
    has(text, "\ngemm,7 f32,A,vulkan,3e+09,FLOP/s,,1,1,measured,ok,,,2026-01-01T00:00:00Z,");
    has(text, "\ngemm,1 f32,A,vulkan,9e+09,FLOP/s,,1,1,measured,ok,,,2026-03-01T00:00:00Z,");
    assert_int_equal(count_of(text, "\n"), 9);
    free(text);
    text = form(report_write_html, 0.9);
    has(text, "<h1>A|B</h1>");
    has(text, "8 figures and 0 learning curves from 2 commands, measured 2026-01-01T00:00:00Z to "
              "2026-03-01T00:00:00Z.</p>");
    has(text, "<a href=\"#changes\">Baseline</a>");
    has(text, "3 figures: 0 better, 1 worse, 1 the same within their spread, 1 broken, 0 mended. 1 "
              "of the baseline are missing, 1 are new.</p>");
    has(text, "<p class=\"below\">2 below 0.9 of the baseline.</p>");
    has(text, "<td class=\"n\">0.500</td><td class=\"n\">0.495 to 0.505</td><td class=\"below\">"
              "worse, below</td></tr>");
    has(text, "<td class=\"n\" data-v=\"1e+10\">10.0 GFLOP/s</td><td class=\"n\" data-v=\"\">BAD"
              "</td><td class=\"n\">-</td><td class=\"n\">-</td><td class=\"below\">broken, below");
    has(text, "<td class=\"soft\">same</td>");
    // Of best, of peak, spread.
    has(text, "data-v=\"5e+10\">50.0 GFLOP/s</td><td class=\"n share\" data-v=\"0.5\">50.0 %</td>"
              "<td class=\"n\" data-v=\"0.125\">12.5 %</td><td class=\"n\" data-v=\"0.01\">1.0 %");
    has(text, "<tr class=\"lead\"><td>gemm</td><td class=\"case\">8 f32</td><td class=\"device\">A "
              "· vulkan (baseline)</td>");
    has(text, "<option>gemm</option></select>");
    has(text, "<span class=\"soft\">1 command</span></summary>");
    free(text);
}

// What the page says of contenders and machines; less than a hundredth of the best has digits.
static void page(void **state) {
    (void)state;
    add("a",
        "{\"schema\":\"gpurt.bench/"
        "1\",\"date\":\"2026-01-01\",\"gpurt\":\"1\",\"device\":{\"name\":"
        "\"A\",\"memory\":1048576,\"count\":7,\"driver_version\":\"d|1\"}}\n" ROW("8", "100", "")
            ROW("7", "100", ""),
        false);
    add("a2",
        "{\"schema\":\"gpurt.bench/1\",\"date\":\"2026-01-02\",\"gpurt\":\"2\",\"partial\":true,"
        "\"device\":{\"name\":\"A\",\"memory\":2097152}}\n",
        false);
    add("b", HEAD("B", "vulkan", "") ROW("8", "50", "") ROW("5", "1", ""), false);
    add("c", HEAD("C", "vulkan", "") ROW("8", "5", "") ROW("7", "5", ""), false);
    add("d", HEAD("D", "vulkan", "") ROW("8", "0.4", ""), false);
    add("e", HEAD("E", "vulkan", "") ROW("4", "1", ""), false);
    add("s",
        "{\"schema\":\"gpurt.static/1\",\"rows\":[{\"device\":\"G\",\"target\":\"t\",\"kernel\":"
        "\"k\",\"registers\":40,\"spilled\":3,\"occupancy\":0.5,\"check\":\"ok\"},{\"device\":"
        "\"G\",\"target\":\"t\",\"kernel\":\"l\",\"shared_bytes\":2,\"instructions\":9,"
        "\"check\":\"ok\"}]}",
        false);
    // An older answer of a compiler is told no more.
    add("s0",
        "{\"schema\":\"gpurt.static/1\",\"rows\":[{\"device\":\"G\",\"target\":\"t\","
        "\"kernel\":\"k\",\"registers\":41,\"check\":\"ok\"}]}",
        false);
    add("peer", HEAD("B", "vulkan", "") ROW("3", "1", ",\"variant\":\"openblas\""), false);
    settle(0);
    char *text = form(report_write_csv, 0);
    has(text, "\ngemm,3 f32,B,openblas,1e+09,");
    has(text, "\ngemm,8 f32,B,vulkan,5e+10,");
    free(text);
    text = form(report_write_html, 0);
    assert_int_equal(count_of(text, "<tr class=\"lead\">"), 2);
    assert_int_equal(count_of(text, "<td class=\"n\">41</td>"), 0);
    has(text, "<b>A</b><span>leads in 2 of 2, at 100 % of the best</span><div><i class=\"c0\" "
              "style=\"width:100.0%\"></i></div>");
    has(text, "<b>B · vulkan</b><span>leads in 0 of 1, at 50 % of the best</span>");
    has(text, "<b>C · vulkan</b><span>leads in 0 of 2, at 5.0 % of the best</span>");
    has(text, "<b>D · vulkan</b><span>leads in 0 of 1, at 0.40 % of the best</span>");
    has(text, "<b>E · vulkan</b><span>1 cases of its own</span><div></div>");
    assert_int_equal(count_of(text, "id=\"changes\""), 0);
    assert_int_equal(count_of(text, "href=\"#changes\""), 0);
    has(text, ", measured 2026-01-01 to 2026-01-02.</p>");
    // The newest record of a device, and all its commands.
    has(text, "<summary>A <span class=\"soft\">2 commands</span></summary>\n<dl><dt>name</dt><dd>A"
              "</dd><dt>memory</dt><dd>2097152 <span class=\"soft\">2.00 MiB</span></dd></dl>");
    has(text, "<td class=\"date\">2026-01-02</td><td>2</td><td class=\"n\">0, partial</td><td>"
              "measured</td><td><code>gpurt.bench/1</code></td><td><code>a2</code></td></tr>");
    has(text, "<td class=\"n\">2</td><td>measured</td>");
    has(text, "<summary>Devices that are not here <span class=\"soft\">2 commands</span>");
    has(text, "<td class=\"device\">G</td><td class=\"case\">t k</td><td class=\"n\">40</td><td "
              "class=\"n\">3</td><td class=\"n\"></td><td class=\"n\">0.5</td><td class=\"n\"></td>"
              "<td>ok</td></tr>");
    has(text, "t l</td><td class=\"n\"></td><td class=\"n\"></td><td class=\"n\">2</td><td class="
              "\"n\"></td><td class=\"n\">9</td><td>ok</td></tr>");
    free(text);
    text = form(report_write_markdown, 0);
    has(text, "| A | d\\|1 | 1 | 2026-01-01 |  | a |\n");
    has(text, "| A |  | 2 | 2026-01-02 |  | a2, partial |\n");
    has(text, "| static |  |  |  |  | s |\n");
    assert_int_equal(count_of(text, "## Against"), 0);
    free(text);
}

// ---- the commands ----

static int run(int (*verb)(int, char **), char *const *words) {
    char *argv[16];
    int argc = 0;
    for (; words[argc]; argc++) {
        argv[argc] = words[argc];
    }
    argv[argc] = NULL;
    talk_set_level(0);
    catch_begin();
    int code = verb(argc, argv);
    catch_end();
    talk_set_level(-1);
    return code;
}
#define SAYS(code_, text, verb, ...)                                                               \
    do {                                                                                           \
        int got_ = run(verb, (char *const[]){__VA_ARGS__, NULL});                                  \
        if (got_ != (code_)) {                                                                     \
            fail_msg("exit %d, wanted %d: %s", got_, code_, caught);                               \
        }                                                                                          \
        has(caught, text);                                                                         \
    } while (0)

static void put(const char *name, const char *text) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void commands(void **state) {
    char root[] = "/tmp/gpurt_test_report.XXXXXX", command[64];
    (void)state;
    assert_non_null(mkdtemp(root));
    assert_int_equal(chdir(root), 0);
    put("old", A ROW("8", "100", "") ROW("9", "5", "") ROW("7", "0", "") LAUNCH("2"));
    put("new",
        A ROW("8", "50", "") ROW("9", "5", "") ROW("7", "3", "") LAUNCH("1") ROW("1", "1", ""));
    put("bad", A ROW("8", "50", ",\"check\":\"WRONG\""));
    put("other", A ROW("1", "1", ""));
    SAYS(COMMAND_OK, "1 better, 1 worse", cmd_compare, "compare", "old", "new", "-o", "x");
    SAYS(
        COMMAND_OK,
        "1 better, 1 worse, 1 the same within their spread, 0 broken, 1 mended; 0 missing, 1 new\n",
        cmd_compare, "compare", "old", "new");
    has(caught, "Matrix products, FLOP/s\n");
    has(caught, "Cost of a dispatch, s\n");
    has(caught, "mended");
    SAYS(COMMAND_BELOW, "worse!", cmd_compare, "compare", "old", "new", "--fail-under", "0.6");
    has(caught, "gpurt: gemm 8 f32 on A · vulkan: 0.500 of the baseline, at most 0.500 with the "
                "spread of both\n");
    has(caught, "gpurt: 1 of 4 figures below 0.6 of the baseline\n");
    SAYS(COMMAND_BELOW, "gpurt: gemm 8 f32 on A · vulkan: was right, is 'WRONG'\n", cmd_compare,
         "compare", "old", "bad", "--fail-under", "0.1", "--quiet");
    assert_null(strstr(caught, "missing"));
    SAYS(COMMAND_DATA, "gpurt: nothing to compare: no case of 'bad' is in 'other'\n", cmd_compare,
         "compare", "bad", "other");
    SAYS(COMMAND_USAGE, "gpurt: compare: two files are wanted, the old one and the new one\n",
         cmd_compare, "compare", "a", "b", "c");
    SAYS(COMMAND_OK, "bench,case,before,after,unit,share,spread,verdict,below\n", cmd_compare,
         "compare", "old", "new", "--format", "csv");
    has(caught, "gemm,8 f32,1e+11,5e+10,FLOP/s,0.5,0,worse,0\n");
    has(caught, "launch,x x 1,2e-06,1e-06,s,2,0,better,0\n");
    has(caught, "gemm,7 f32,,3e+09,FLOP/s,,,mended,0\n");
    SAYS(COMMAND_USAGE, "gpurt: report: files of `gpurt bench --format json`", cmd_report,
         "report");
    SAYS(COMMAND_USAGE,
         "gpurt: '--fail-under' is a share of a baseline: name one with --baseline "
         "FILE\n",
         cmd_report, "report", "old", "--fail-under", "1");
    SAYS(COMMAND_DATA, "gpurt: nothing to compare: no figure of the baseline is in another file\n",
         cmd_report, "report", "other", "--baseline", "bad", "--fail-under", "1");
    SAYS(COMMAND_OK, "", cmd_report, "report", "other", "--baseline", "bad");
    SAYS(COMMAND_BELOW, "gpurt: 1 of 4 figures below 0.6", cmd_report, "report", "new", "old",
         "--baseline", "old", "--fail-under", "0.6", "--csv", "y");
    SAYS(COMMAND_USAGE, "--baseline", cmd_report, "report", "new", "--baseline", "old", "--html",
         "old");
    SAYS(COMMAND_USAGE, "FILE", cmd_report, "report", "new", "--csv", "new");
    SAYS(COMMAND_USAGE, "--html", cmd_report, "report", "new", "--csv", "z", "--html", "z");
    SAYS(COMMAND_CANNOT_CREATE, "nowhere", cmd_report, "report", "new", "--md", "nowhere/x");
    put("half", "{\"schema\":");
    SAYS(COMMAND_DATA, "gpurt: 'half': line 1: ", cmd_report, "report", "new", "half");
    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(judged),   CASE(chosen),         CASE(shares),           CASE(sentences),
        CASE(compared), CASE(whose_baseline), CASE(logs_and_figures), CASE(plain),
        CASE(sweeps),   CASE(page),           CASE(baseline_forms),   CASE(commands),
    };
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
