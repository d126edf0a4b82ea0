// SPDX-License-Identifier: Apache-2.0
// The charts of `gpurt report` over made-up results: which figures they show, in which place and by
// which name, and what they leave out.
#include "report_made.h"

#include "report/svg.h"

// Of 16 cases two are left out: of those that nobody else has the last.
static void dots(void **state) {
    char rows[4096] = A, *text;
    size_t panels;
    (void)state;
    for (int i = 0; i < 16; i++) {
        char row[160];
        snprintf(row, sizeof row, ROW("%d", "%d", "%s"), i, 10 + i,
                 i == 3 ? ",\"of_peak\":0.5,\"spread\":0.2" : "");
        strcat(rows, row);
    }
    add("a", rows, false);
    add("b", B ROW("15", "30", ""), false);
    settle(0);
    text = chart("gemm", &panels);
    assert_int_equal(panels, 1);
    has(text, "<p class=\"more\">2 more in the table.</p>");
    assert_int_equal(count_of(text, "<g class=\"mark"), 15);
    assert_int_equal(count_of(text, ">12</text>"), 1);
    assert_int_equal(count_of(text, ">13</text>") + count_of(text, ">14</text>"), 0);
    assert_int_equal(count_of(text, ">15</text>"), 1);
    has(text, "<li><i class=\"key stroke\"></i>peak of the device</li>");
    has(text, "A · vulkan, 3 f32: 13.0 GFLOP/s ± 20.0 % (measured)");
    assert_int_equal(count_of(text, "class=\"peak "), 1);
    assert_int_equal(count_of(text, "class=\"spread "), 1);
    has(text, ">30.0 GFLOP/s</text>");  // beside a case stands its best
    has(text, ">FLOP/s</text>");
    free(text);
    end(NULL);
    begin(NULL);
    add("a", A ROW("8", "1", "") ROW("9", "8.5", ""), false);
    add("l", A LAUNCH("3"), false);
    settle(0);
    text = chart("gemm", &panels);
    has(text, ">FLOP/s, logarithmic</text>");
    assert_int_equal(count_of(text, "more in the table"), 0);
    assert_int_equal(count_of(text, "peak of the device"), 0);
    free(text);
    text = chart("launch", &panels);
    has(text, ">s, less is better</text>");
    free(text);
    end(NULL);
    begin(NULL);
    add("a", PREDICTED ROW("8", "100", ",\"low\":80,\"high\":130"), false);
    settle(0);
    text = chart("predicted-gemm", &panels);
    has(text, "P · vulkan (predicted), 8 f32: 100 GFLOP/s, between 80.0 G and 130 G (predicted)");
    free(text);
}

#define TRAIN_HEAD(name)                                                                           \
    "{\"schema\":\"gpurt.bench.train/1\",\"device\":{\"name\":\"" name "\"},\"model\":{\"depth\":" \
    "2,\"hidden\":8}}\n"
#define TRAIN(batch, rate, more)                                                                   \
    "{\"batch\":" batch ",\"precision\":\"f32\",\"samples_per_s\":" rate more "}\n"

// Of several settings at one batch the best; a batch of 0 has no place on such an axis; memory is
// told where the chart is of that. A chart of one place is none.
static void lines(void **state) {
    size_t panels;
    (void)state;
    add("a",
        TRAIN_HEAD("A") TRAIN("64", "100", ",\"workers\":0,\"memory_bytes\":1048576")
            TRAIN("64", "150", ",\"workers\":2,\"memory_bytes\":2097152")
                TRAIN("64", "120", ",\"workers\":4") TRAIN("128", "200", ",\"workers\":2")
                    TRAIN("0", "999", ",\"workers\":2"),
        false);
    add("b", TRAIN_HEAD("B") TRAIN("64", "10", ",\"workers\":2"), false);
    settle(0);
    char *text = chart("train-batch", &panels);
    assert_int_equal(panels, 1);
    assert_int_equal(count_of(text, "<g class=\"mark"), 3);
    has(text, "A, 2x8 batch 64 f32 workers 2: 150 samples/s (measured)");
    assert_int_equal(count_of(text, "999"), 0);
    assert_int_equal(count_of(text, "<polyline class=\"line"), 2);
    has(text, "id=\"train-batch-1\"");
    has(text, ">64</text>");
    has(text, ">128</text>");
    has(text, ">samples/s</text>");  // no more than twenty times apart
    has(text, ">batch size</text>");
    free(text);
    text = chart("train-workers", &panels);
    assert_int_equal(panels, 1);
    has(text, ">0</text>");  // workers may be none
    has(text, ": 100 samples/s");
    has(text, ": 999 samples/s");
    free(text);
    text = chart("train-memory", &panels);
    assert_int_equal(panels, 0);  // one batch only has it
    free(text);
    add("a", TRAIN_HEAD("A") TRAIN("256", "1", ",\"workers\":2,\"memory_bytes\":4194304"), false);
    free(changes.list);
    settle(0);
    text = chart("train-memory", &panels);
    assert_int_equal(panels, 1);
    has(text, "A, 2x8 batch 256 f32 workers 2: 4.00 MiB</title>");
    has(text, "A, 2x8 batch 64 f32 workers 2: 2.00 MiB</title>");
    has(text, ">B</text>");
    free(text);
}

// What a chart of predictions says of its two ends.
static void notes(void **state) {
    size_t panels;
    (void)state;
    static const char head[] = "{\"schema\":\"gpurt.bench.mlp/1\",\"nature\":\"predicted\","
                               "\"device\":{\"name\":\"%s\"}}\n"
                               "{\"batch\":64,\"msamples_per_s\":%d}\n"
                               "{\"batch\":128,\"msamples_per_s\":500}\n"
                               "{\"batch\":256,\"msamples_per_s\":%d}\n";
    static const int rates[][2] = {{6, 100}, {3, 800}, {4, 200}};
    for (int i = 0; i < 3; i++) {
        char text[512], name[2] = {(char)('A' + i), '\0'};
        snprintf(text, sizeof text, head, name, rates[i][0], rates[i][1]);
        add(name, text, false);
    }
    settle(0);
    char *text = chart("predicted-mlp", &panels);
    has(text, "<p class=\"note\">At 64 batch size A (predicted) is 2.0 times B (predicted). At 256 "
              "batch size B (predicted) is 8.0 times A (predicted). A small batch takes as long");
    has(text, ">samples/s, logarithmic</text>");
    free(text);
}

// Where time goes: parts of the fastest settings of a batch, in their shares.
static void stacks(void **state) {
    size_t panels;
    (void)state;
    add("a",
        TRAIN_HEAD("A") TRAIN("64", "100", ",\"workers\":0,\"io_ms\":9,\"forward_ms\":1")
            TRAIN("64", "150",
                  ",\"workers\":2,\"io_ms\":1,\"forward_ms\":2,\"backward_ms\":4,"
                  "\"optimizer_ms\":1") TRAIN("128", "100", ",\"workers\":2"),
        false);
    settle(0);
    char *text = chart("train-phases", &panels);
    assert_int_equal(panels, 1);
    assert_int_equal(count_of(text, "<rect class=\"part"), 4);
    static const char *const parts[] = {
        "<rect class=\"part p0\" x=\"10.00\" y=\"22.0\" width=\"50.00\" height=\"14\"><title>io: "
        "1.00 ms, 12.5 %</title>",
        "<rect class=\"part p3\" x=\"60.00\" y=\"22.0\" width=\"100.00\" height=\"14\"><title>"
        "forward: 2.00 ms, 25.0 %",
        "<rect class=\"part p4\" x=\"160.00\" y=\"22.0\" width=\"200.00\" height=\"14\"><title>"
        "backward: 4.00 ms, 50.0 %",
        "<rect class=\"part p5\" x=\"360.00\" y=\"22.0\" width=\"50.00\" height=\"14\"><title>"
        "optimizer: 1.00 ms, 12.5 %"};
    for (size_t i = 0; i < 4; i++) {
        has(text, parts[i]);
    }
    has(text, ">8.00 ms</text>");
    has(text, ">batch 64 · A</text>");
    has(text, "<i class=\"key p5\"></i>optimizer</li></ul>");
    assert_int_equal(count_of(text, "class=\"key "), 4);
    assert_int_equal(count_of(text, ">50 %</text>"), 1);
    free(text);
    end(NULL);
    begin(NULL);
    add("p",
        "{\"schema\":\"gpurt.bench.ppo/1\",\"device\":{\"name\":\"A\"}}\n"
        "{\"kind\":\"phase\",\"num_envs\":4,\"phase\":\"update\",\"seconds\":3}\n"
        "{\"kind\":\"phase\",\"num_envs\":4,\"phase\":\"host\",\"seconds\":1}\n"
        "{\"kind\":\"phase\",\"num_envs\":4,\"phase\":\"other\",\"seconds\":5}\n",
        false);
    settle(0);
    text = chart("ppo-phases", &panels);
    assert_int_equal(count_of(text, "<rect class=\"part"), 2);
    has(text, "update: 3 s, 75.0 %");
    has(text, "host: 1 s, 25.0 %");
    has(text, ">4 s</text>");
    free(text);
}

// A case with one setting has its parts too, and the words of a sweep lie between the ends.
static void alone(void **state) {
    size_t panels, size = 0;
    (void)state;
    add("a", TRAIN_HEAD("A") TRAIN("64", "100", ",\"io_ms\":3,\"forward_ms\":1"), false);
    add("s",
        "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{\"metric\":\"m\",\"goal\":\"minimize\","
        "\"parameters\":[{\"name\":\"act\"}]}}\n"
        "{\"trial\":0,\"state\":\"done\",\"value\":1,\"act\":\"relu\"}\n"
        "{\"trial\":1,\"state\":\"done\",\"value\":2,\"act\":\"tanh\"}\n",
        false);
    settle(0);
    char *text = chart("train-phases", &panels);
    assert_int_equal(count_of(text, "<rect class=\"part"), 2);
    has(text, "io: 3.00 ms, 75.0 %");
    free(text);
    text = NULL;
    FILE *file = open_memstream(&text, &size);
    chart_sweeps(file, &r);
    fclose(file);
    // A quarter of the way up, and three.
    has(text, "y=\"177.0\" text-anchor=\"start\">relu</text>");
    has(text, "y=\"79.0\" text-anchor=\"start\">tanh</text>");
    free(text);
    // Numbers of 16 bits are half the bytes: 2 64 / 6 operations for each.
    end(NULL);
    begin(NULL);
    add("a",
        A "{\"kind\":\"gemm\",\"shape\":\"64x64x64\",\"precision\":\"f16\",\"gflop_per_s\":100,"
          "\"of_peak\":0.5}\n{\"kind\":\"memory\",\"test\":\"device copy\",\"gb_per_s\":10}\n",
        false);
    settle(0);
    text = chart("roofline", &panels);
    char mark[64];
    // From 10 to 50 operations a byte, as a square of the second type.
    snprintf(mark, sizeof mark, "<path d=\"M%.1f",
             52 + (420 - 12 - 52) * log(128.0 / 6 / 10) / log(5) - 3.5);
    has(text, mark);
    has(text, "<i class=\"key c1 s1\"></i>f16</li>");
    free(text);
}

// Only with a copy, a peak and a product: operations a byte of 64x64x64 in f32 are 2 64 / 12.
static void roof(void **state) {
    static const struct {
        const char *text;
        size_t panels;
    } rows[] = {
        {A ROW("64x64x64", "100", ",\"of_peak\":0.5"), 0},
        {A ROW("64x64x64", "100", "") "{\"kind\":\"memory\",\"test\":\"device copy\",\"gb_per_s\":"
                                      "10}\n",
         0},
        {A ROW("64x64x64", "100", ",\"of_peak\":0.5") "{\"kind\":\"memory\",\"test\":\"upload\","
                                                      "\"gb_per_s\":10}\n",
         0},
        {A ROW("64", "100", ",\"of_peak\":0.5") "{\"kind\":\"memory\",\"test\":\"device copy\","
                                                "\"gb_per_s\":10}\n",
         0},
        {A ROW("64x64x64", "100", ",\"of_peak\":0.5") "{\"kind\":\"memory\",\"test\":\"device copy"
                                                      "\",\"size\":1,\"gb_per_s\":10}\n{\"kind\":"
                                                      "\"memory\",\"test\":\"device copy\",\"size"
                                                      "\":2,\"gb_per_s\":12}\n",
         1},
    };
    size_t panels;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        end(NULL);
        begin(NULL);
        add("a", rows[i].text, false);
        settle(0);
        char *text = chart("roofline", &panels);
        assert_int_equal(panels, rows[i].panels);
        if (panels) {
            has(text, "1 products, bandwidth 12 GB/s, highest peak 200 GFLOP/s");
            has(text, ">A · vulkan</p>");
            has(text, "<i class=\"key c0 s0\"></i>f32</li>");
            assert_int_equal(count_of(text, "f16</li>"), 0);
            assert_int_equal(count_of(text, "class=\"roof\""), 1);
            assert_int_equal(count_of(text, "class=\"roof c0\""), 1);
            // From 5 to 20 operations a byte: 10.67 lies log(10.67 / 5) / log(4) across.
            char mark[64];
            snprintf(mark, sizeof mark, "<circle cx=\"%.1f\"",
                     52 + (420 - 12 - 52) * log(128.0 / 12 / 5) / log(4));
            has(text, mark);
        }
        free(text);
    }
}

// A loss that falls by more than fifty has a logarithmic axis, a return has not. Of many points a
// part is drawn.
static void curves(void **state) {
    char text[60000];
    size_t panels;
    (void)state;
    for (int count = 499; count <= 1000; count += 501) {
        size_t used = (size_t)sprintf(text, "{\"event\":\"start\",\"kind\":\"es\",\"device\":\"A\","
                                            "\"seed\":7,\"phase\":2}\n");
        for (int i = 1; i <= count; i++) {
            used += (size_t)sprintf(text + used,
                                    "{\"event\":\"evaluate\",\"step\":%d,\"seconds\":%d,"
                                    "\"loss\":1}\n",
                                    i, i);
        }
        end(NULL);
        begin(NULL);
        add("log", text, false);
        settle(0);
        char *drawn = chart("learning", &panels);
        const char *points = strstr(drawn, "points=\"");
        size_t commas = 0;
        for (points += 8; *points != '"'; points++) {
            commas += *points == ',';
        }
        assert_int_equal(commas, count == 499 ? 499 : 334);
        has(drawn, "<title>A, phase 2 seed 7</title>");
        has(drawn, count == 499 ? "1 runs, from 1 to 1, over 499 seconds"
                                : "1 runs, from 1 to 1, over 1000 seconds");
        has(drawn, "<p class=\"panel\">es: loss</p>");
        free(drawn);
    }
}

// Labels of an axis stay inside the picture, which is 420 wide.
static void ends_of_an_axis(void **state) {
    char text[4096] = "";
    (void)state;
    FILE *file = fmemopen(text, sizeof text, "w");
    svg_axis_x(file, &(struct svg_axis){.min = 0, .max = 1000, .from = 0, .to = 420}, 0, 100, "t");
    fclose(file);
    double half = svg_text_width("1000") / 2;
    char want[96];
    snprintf(want, sizeof want, "x=\"%.1f\" y=\"117.0\" text-anchor=\"middle\">1000<",
             420 - 2 - half);
    assert_non_null(strstr(text, want));
    snprintf(want, sizeof want, "x=\"%.1f\" y=\"117.0\" text-anchor=\"middle\">0<",
             2 + svg_text_width("0") / 2);
    assert_non_null(strstr(text, want));
    assert_non_null(strstr(text, "x=\"210.0\" y=\"133.0\" text-anchor=\"middle\">t<"));
}

// Sensors of a device beside the curves of its training, each by its own name.
static void monitored(void **state) {
    static const char *const what[] = {"loss", "utilisation of the device", "power in W",
                                       "energy of an epoch in J"};
    static const double values[] = {5, 0.5, 100, 70};
    (void)state;
    add("log",
        "{\"event\":\"monitor\",\"utilisation\":1}\n"
        "{\"event\":\"start\",\"time\":5,\"kind\":\"supervised\",\"device\":\"A\",\"api\":"
        "\"opencl\"}"
        "\n{\"event\":\"evaluate\",\"step\":1,\"loss\":5,\"seconds\":2}\n"
        "{\"event\":\"monitor\",\"step\":1,\"utilisation\":0.5,\"power\":100,\"epoch_energy\":70,"
        "\"seconds\":3}\n",
        false);
    assert_int_equal(r.curve_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(r.curves[i].what, what[i]);
        assert_int_equal(r.curves[i].count, 1);
        near_to(r.curves[i].points[0].value, values[i]);
        near_to(r.curves[i].points[0].step, 1);
        near_to(r.curves[i].points[0].seconds, i ? 3 : 2);
        assert_string_equal(r.curves[i].group, "supervised");
        assert_string_equal(r.contenders[r.curves[i].contender].label, "A · opencl");
    }
    assert_string_equal(r.sources[0].date, "1970-01-01T00:00:05Z");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(dots),  CASE(lines), CASE(notes),  CASE(stacks),    CASE(ends_of_an_axis),
        CASE(alone), CASE(roof),  CASE(curves), CASE(monitored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
