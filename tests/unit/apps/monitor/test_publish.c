// SPDX-License-Identifier: Apache-2.0
// What goes on beside the work of a command: what it tells is published, the sensors of its device
// are summed, and metrics are written. The GPU is that of tests/drivers/fake_nvml.c, which uses 50
// J from one reading to the next; the test finds it by LD_LIBRARY_PATH.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "publish/publish.h"
#include "runtime_folder.h"
#include "train/trainer.h"

// Whether the metrics have a number of this process.
static bool holds(const char *path, const char *name, int value) {
    static char text[8192];
    char words[128];
    snprintf(words, sizeof words, "%s{pid=\"%ld\",app=\"train x\",device=\"vulkan:0\"} %d\n", name,
             (long)getpid(), value);
    FILE *file = fopen(path, "r");
    if (!file) {
        return false;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return strstr(text, words) != NULL;
}

static void near(double got, double want) {
    if (!(fabs(got - want) < 1e-9 * fabs(want))) {
        fail_msg("%.17g, wanted %.17g", got, want);
    }
}

static void gpu(void **context) {
    (void)context;
    struct grt_dev_info info = {
        .selector = "vulkan:0", .name = "NVIDIA Fake", .pci = "0000:65:00.0"};
    struct publish_means means;
    struct state state, seen[STATE_MOST];
    char metrics[128], text[PUBLISH_TEXT];
    snprintf(metrics, sizeof metrics, "%s/metrics.prom", root);
    assert_false(publish_take(&means));
    publish_end();  // of nothing
    publish_begin(&(struct publish_desc){"train x", &info, true, metrics});
    state_init(&state);
    state.step = 7;
    snprintf(state.app, STATE_TEXT, "another");
    publish_tell(&state);
    for (int i = 0; i < 600 && !(state_read_all(seen) == 1 && seen[0].step == 7); i++) {
        usleep(100000);
    }
    assert_true(seen[0].step == 7 && seen[0].software == 0);
    assert_string_equal(seen[0].app, "train x");
    assert_string_equal(seen[0].pci, "0000:65:00.0");
    for (int i = 0; i < 600 && !holds(metrics, "gpurt_step", 7); i++) {
        usleep(100000);
    }
    assert_true(holds(metrics, "gpurt_running", 1));
    // From the second sample on each is 50 J; what was taken is not taken again.
    usleep(100000);
    assert_true(publish_take(&means));
    assert_true(means.samples >= 2);
    near(means.utilisation, 0.42);
    near(means.power, 345.678);
    near(means.temperature, 61);
    near(means.clock, 1980);
    near(means.memory_used, 72.0 * 1073741824.0);
    near(means.memory_total, 80.0 * 1073741824.0);
    near(means.energy, 50.0 * (means.samples - 1));
    assert_string_equal(means.reader, "nvml");
    uint32_t before = means.samples;
    usleep(100000);
    assert_true(publish_take(&means));
    assert_true(means.samples >= 1);
    near(means.energy, 50.0 * means.samples);
    before += means.samples;
    assert_true(publish_whole(&means));
    assert_true(means.samples >= before);
    near(means.energy, 50.0 * (means.samples - 1));
    publish_means_text(&means, text);
    assert_non_null(strstr(text, "busy 42 %, memory 72.00 GiB, power 346 W, temperature 61 C"));
    json_t *json = publish_means_json(&means);
    near(json_number_value(json_object_get(json, "power")), 345.678);
    json_decref(json);
    publish_restart();
    usleep(100000);
    assert_true(publish_whole(&means));
    near(means.energy, 50.0 * means.samples);
    publish_end();
    assert_int_equal(state_read_all(seen), 0);
    assert_true(holds(metrics, "gpurt_running", 0));
    assert_false(publish_take(&means));
}

// A device that nobody tells anything of; and one without --monitor.
static void unknown(void **context) {
    (void)context;
    struct grt_dev_info info = {.selector = "vulkan:1", .name = "Other", .pci = "0000:77:00.0"};
    struct publish_means means;
    char text[PUBLISH_TEXT];
    publish_begin(&(struct publish_desc){"bench", &info, true, NULL});
    assert_true(publish_whole(&means));
    assert_true(isnan(means.energy) && isnan(means.utilisation) && means.reader[0] == '\0');
    publish_means_text(&means, text);
    assert_non_null(strstr(text, "not available: busy, memory, power, temperature, clock, energy"));
    json_t *json = publish_means_json(&means);
    assert_true(json_is_null(json_object_get(json, "energy")));
    json_decref(json);
    publish_end();
    publish_begin(&(struct publish_desc){"bench", &info, false, NULL});
    assert_false(publish_whole(&means));
    publish_end();
}

// Metrics that cannot be written do not hinder those of the next one.
static void one_after_another(void **context) {
    (void)context;
    struct grt_dev_info info = {
        .selector = "vulkan:0", .name = "NVIDIA Fake", .pci = "0000:65:00.0"};
    char metrics[128];
    snprintf(metrics, sizeof metrics, "%s/nowhere/metrics.prom", root);
    publish_begin(&(struct publish_desc){"train x", &info, true, metrics});
    publish_end();
    snprintf(metrics, sizeof metrics, "%s/second.prom", root);
    publish_begin(&(struct publish_desc){"train x", &info, true, metrics});
    publish_end();
    assert_true(holds(metrics, "gpurt_running", 0));
    assert_int_equal(unlink(metrics), 0);
}

// Of a card that counts no energy it is its power by the time between two looks.
static void energy_of_power(void **context) {
    (void)context;
    struct grt_dev_info info = {
        .selector = "vulkan:0", .name = "NVIDIA Fake", .pci = "0000:65:00.0"};
    struct publish_means means;
    setenv("FAKE_NVML_NO_ENERGY", "1", 1);
    publish_begin(&(struct publish_desc){"train x", &info, true, NULL});
    double before = grt_seconds();
    assert_true(publish_take(&means));
    double begun = grt_seconds();
    usleep(100000);
    double ended = grt_seconds();
    assert_true(publish_take(&means));
    double behind = grt_seconds();
    publish_end();
    unsetenv("FAKE_NVML_NO_ENERGY");
    // What was seen last before the first call is at most so old.
    double seconds = means.energy / 345.678;
    assert_true(seconds > 0.9 * (ended - begun) - 0.02 && seconds < behind - before + 0.02);
}

// ---- rows of a log ----

static struct {
    struct grt_run_row rows[8];
    size_t count;
} told;

static void note(void *context, const struct grt_run_report *r) {
    (void)context;
    if (r->news == GRT_RUN_NEWS_ROW && told.count < 8) {
        told.rows[told.count++] = *r->row;
    }
}

// Rows `monitor` behind rows `train` and `evaluate`: the energy of an epoch is that of the rows
// since the last evaluation.
static void energy_of_epochs(void **context) {
    (void)context;
    static const enum grt_run_event events[] = {GRT_RUN_TRAIN, GRT_RUN_TRAIN, GRT_RUN_EVALUATE,
                                                GRT_RUN_TRAIN, GRT_RUN_EVALUATE};
    const size_t count = sizeof events / sizeof *events;
    struct grt_dev_info info = {
        .selector = "vulkan:0", .name = "NVIDIA Fake", .pci = "0000:65:00.0"};
    char kept[128];
    struct trainer t = {0};
    snprintf(kept, sizeof kept, "%s/kept.h5", root);
    told.count = 0;
    t.run = grt_run_create(&(struct grt_run_desc){.file = kept, .report = note});
    assert_non_null(t.run);
    publish_begin(&(struct publish_desc){"train x", &info, true, NULL});
    usleep(50000);
    for (size_t i = 0; i < count; i++) {
        struct grt_run_row row = {.event = events[i]};
        struct grt_run_report news = {.news = GRT_RUN_NEWS_ROW, .row = &row};
        trainer_monitor_report(&t, &news);
        news.news = GRT_RUN_NEWS_TURN;
        trainer_monitor_report(&t, &news);
        usleep(30000);
    }
    publish_end();
    grt_run_destroy(&t.run);
    assert_int_equal(t.sensors.epochs, 2);
    assert_int_equal(told.count, count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct grt_run_row *row = &told.rows[i];
        assert_int_equal(row->event, GRT_RUN_MONITOR);
        assert_true(grt_run_row_has(row, GRT_FIELD_ENERGY));
        sum += row->numbers[GRT_FIELD_ENERGY];
        assert_int_equal(grt_run_row_has(row, GRT_FIELD_EPOCH_ENERGY),
                         events[i] == GRT_RUN_EVALUATE);
        if (events[i] == GRT_RUN_EVALUATE) {
            near(row->numbers[GRT_FIELD_EPOCH_ENERGY], sum);
            sum = 0;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gpu, begin, end),
        cmocka_unit_test_setup_teardown(unknown, begin, end),
        cmocka_unit_test_setup_teardown(one_after_another, begin, end),
        cmocka_unit_test_setup_teardown(energy_of_power, begin, end),
        cmocka_unit_test_setup_teardown(energy_of_epochs, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
