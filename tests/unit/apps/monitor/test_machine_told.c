// SPDX-License-Identifier: Apache-2.0
// What is told of devices and processes, in tables, JSON, on the screen, as means and as metrics:
// of made-up numbers, each under its own name.
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

#include "monitor/rows.h"
#include "monitor/view.h"
#include "publish/metrics.h"
#include "publish/publish.h"
#include "runtime_folder.h"
#include "sensors/reader.h"

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12)) {
        fail_msg("%.17g, wanted %.17g", got, want);
    }
}

static void has(const char *text, const char *word) {
    if (!strstr(text, word)) {
        fail_msg("no '%s' in: %s", word, text);
    }
}

static struct look made;

static void make_look(void) {
    memset(&made, 0, sizeof made);
    struct sensor_device *d = sensor_add(&made.sample, "nvml");
    snprintf(d->name, sizeof d->name, "Card");
    snprintf(d->pci, sizeof d->pci, "0000:01:00.0");
    for (int i = 0; i < SENSOR_COUNT; i++) {
        d->values[i] = i + 1.5;
    }
    d = sensor_add(&made.sample, "fdinfo");
    snprintf(d->name, sizeof d->name, "Bare");
    struct look_process *p = &made.processes[0];
    state_init(&p->state);
    p->state.pid = 12;
    p->state.step = 3;
    p->state.steps = 40;
    p->state.epoch = 5;
    p->state.epochs = 6;
    p->state.rate = 7;
    p->state.score = -0.5;
    p->state.left = 9;
    p->state.memory = 1024;
    p->cpus = 1.25;
    snprintf(p->state.app, STATE_TEXT, "an app");
    snprintf(p->state.device, STATE_TEXT, "vulkan:0");
    snprintf(p->state.name, STATE_TEXT, "Card");
    snprintf(p->state.pci, STATE_TEXT, "a:b");
    snprintf(p->state.rate_of, STATE_TEXT, "steps_per_s");
    snprintf(p->state.score_of, STATE_TEXT, "return");
    made.process_count = 1;
}

static char *table_of(enum table_format format) {
    char *text = NULL;
    size_t size = 0;
    struct output output = {.file = open_memstream(&text, &size)};
    struct table table;
    struct table_desc desc = {.output = &output, .format = format, .fit = 300};
    assert_true(monitor_table_open(&table, &desc));
    assert_true(monitor_print_devices(&table, &made));
    assert_true(monitor_print_processes(&table, &made));
    assert_true(table_close(&table));
    fclose(output.file);
    return text;
}

static void rows(void **state) {
    static const char *const device[] = {"\"utilisation\":1.5", "\"memory_used\":2",
                                         "\"memory_total\":3",  "\"power\":4.5",
                                         "\"power_limit\":5.5", "\"temperature\":6.5",
                                         "\"clock\":7.5",       "\"memory_clock\":8.5",
                                         "\"energy\":9.5",      "\"pci\":\"0000:01:00.0\"",
                                         "\"name\":\"Card\"",   "\"reader\":\"nvml\""};
    static const char *const process[] = {
        "\"pid\":12",     "\"app\":\"an app\"", "\"name\":\"Card\"", "\"device\":\"vulkan:0\"",
        "\"step\":3",     "\"steps\":40",       "\"epoch\":5",       "\"epochs\":6",
        "\"rate\":7",     "\"left\":9",         "\"cpus\":1.25",     "\"rate_of\":\"steps_per_s\"",
        "\"score\":-0.5", "\"memory\":1024",    "\"pci\":\"a:b\"",   "\"score_of\":\"return\""};
    (void)state;
    make_look();
    char *text = table_of(TABLE_JSONL);
    has(text, "\"schema\":\"gpurt.monitor/1\"");
    char *first = strchr(text, '\n') + 1, *second = strchr(first, '\n') + 1;
    char *third = strchr(second, '\n') + 1;
    second[-1] = third[-1] = '\0';
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) {
        has(first, device[i]);
    }
    has(first, "\"kind\":\"device\"");
    has(second, "\"utilisation\":null");
    has(second, "\"pci\":null");
    for (size_t i = 0; i < sizeof process / sizeof *process; i++) {
        has(third, process[i]);
    }
    has(third, "\"kind\":\"process\"");
    free(text);
    // People see a short form; of steps without an end the number alone.
    text = table_of(TABLE_PLAIN);
    has(text, "3/40");
    has(text, "7/s");
    has(text, "0:09");
    free(text);
    made.processes[0].state.steps = NAN;
    text = table_of(TABLE_PLAIN);
    has(text, "vulkan:0  3  ");
    free(text);
    made.processes[0].state.steps = 0;  // no end either
    text = table_of(TABLE_PLAIN);
    has(text, "vulkan:0  3  ");
    free(text);
    made.processes[0].state.steps = NAN;
    made.processes[0].state.step = 0;
    made.processes[0].state.memory = -1;
    text = table_of(TABLE_JSONL);
    has(text, "\"step\":0,\"steps\":null");
    has(text, "\"memory\":0");
    free(text);
    made.process_count = 0;
    text = table_of(TABLE_PLAIN);
    assert_null(strstr(text, "pid"));
    free(text);
}

// What a device tells in part: a limit without power, use without a total, and the locale.
static void screens(void **state) {
    (void)state;
    make_look();
    double *v = made.sample.devices[0].values;
    for (int i = 0; i < SENSOR_COUNT; i++) {
        v[i] = NAN;
    }
    v[SENSOR_POWER_LIMIT] = 300;
    v[SENSOR_MEMORY_USED] = 1 << 20;
    v[SENSOR_MEMORY_CLOCK] = 5;
    made.busy[0] = (struct look_past){.count = 1, .values = {0.5}};
    made.process_count = 0;
    setenv("LC_ALL", "C", 1);
    char *text = view_text(&made, (struct screen_size){50, 60}, 2);
    has(text, "every 2 s, q ends\n");
    has(text, "   memory  not available  1 MiB");
    has(text, "   memory clock 5 MHz; not available: power, temperature, clock\n");
    has(text, "=\n");
    free(text);
    v[SENSOR_POWER] = 20;
    setenv("LC_ALL", "", 1);
    setenv("LC_CTYPE", "de_DE.UTF-8", 1);
    text = view_text(&made, (struct screen_size){50, 60}, 2);
    has(text, "power 20 of 300 W, memory clock 5 MHz;");
    has(text, "▅\n");
    free(text);
    unsetenv("LC_CTYPE");
    setenv("LC_ALL", "C", 1);
    // Exactly as many rows as there are lines: blocks; one fewer: a line for each device.
    text = view_text(&made, (struct screen_size){99, 80}, 2);
    int lines = 0;
    for (const char *at = text; *at; at++) {
        lines += *at == '\n';
    }
    free(text);
    text = view_text(&made, (struct screen_size){lines, 80}, 2);
    has(text, "bCard  (nvml 0000:01:00.0)\n");
    free(text);
    text = view_text(&made, (struct screen_size){lines - 1, 80}, 2);
    has(text, "bname");
    free(text);
}

static void means(void **state) {
    struct publish_means m = {.seconds = 12.34,
                              .samples = 5,
                              .utilisation = 0.934,
                              .power = 512.4,
                              .clock = 1980,
                              .temperature = 61.4,
                              .memory_used = 3.0 * (1 << 29),
                              .memory_total = 4.0 * (1 << 30),
                              .energy = 1234.56,
                              .reader = "nvml"};
    char text[PUBLISH_TEXT];
    (void)state;
    publish_means_text(&m, text);
    assert_string_equal(text, "busy 93 %, memory 1.50 GiB, power 512 W, temperature 61 C, clock "
                              "1980 MHz, energy 1234.6 J in 12.3 s");
    json_t *json = publish_means_json(&m);
    static const struct {
        const char *key;
        double value;
    } rows_[] = {{"seconds", 12.34},
                 {"samples", 5},
                 {"utilisation", 0.934},
                 {"power", 512.4},
                 {"clock", 1980},
                 {"temperature", 61.4},
                 {"energy", 1234.56},
                 {"memory_used", 3.0 * (1 << 29)},
                 {"memory_total", 4.0 * (1 << 30)}};
    for (size_t i = 0; i < sizeof rows_ / sizeof *rows_; i++) {
        near(json_number_value(json_object_get(json, rows_[i].key)), rows_[i].value);
    }
    assert_string_equal(json_string_value(json_object_get(json, "reader")), "nvml");
    json_decref(json);
    m.power = m.energy = NAN;
    publish_means_text(&m, text);
    assert_string_equal(text,
                        "busy 93 %, memory 1.50 GiB, temperature 61 C, clock 1980 MHz in 12.3 "
                        "s; not available: power, energy");
    m.utilisation = m.memory_used = m.temperature = m.clock = NAN;
    publish_means_text(&m, text);
    assert_string_equal(text, "in 12.3 s; not available: busy, memory, power, temperature, clock, "
                              "energy");
}

// Every number of a process and of a device as one line, under its own name.
static void metrics(void **state) {
    static char text[16384];
    char path[128], line[256];
    (void)state;
    make_look();
    struct state *s = &made.processes[0].state;
    s->updated = 11;
    snprintf(path, sizeof path, "%s/m.prom", root);
    assert_true(metrics_write(path, s, &made.sample, false));
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    static const struct {
        const char *name, *of;
        double value;
    } numbers[] = {{"gpurt_running", "", 0},
                   {"gpurt_updated_seconds", "", 11},
                   {"gpurt_step", "", 3},
                   {"gpurt_steps", "", 40},
                   {"gpurt_epoch", "", 5},
                   {"gpurt_epochs", "", 6},
                   {"gpurt_rate", ",of=\"steps_per_s\"", 7},
                   {"gpurt_score", ",of=\"return\"", -0.5},
                   {"gpurt_left_seconds", "", 9},
                   {"gpurt_memory_bytes", "", 1024}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(line, sizeof line,
                 "# TYPE %s gauge\n%s{pid=\"%ld\",app=\"an app\",device=\"vulkan:0\"%s} %.15g\n",
                 numbers[i].name, numbers[i].name, (long)getpid(), numbers[i].of, numbers[i].value);
        has(text, line);
    }
    static const char *const names[] = {
        "utilisation_ratio", "memory_used_bytes", "memory_total_bytes",
        "power_watts",       "power_limit_watts", "temperature_celsius",
        "clock_mhz",         "memory_clock_mhz",  "energy_joules_total"};
    for (int i = 0; i < SENSOR_COUNT; i++) {
        snprintf(line, sizeof line,
                 "# TYPE gpurt_device_%s %s\ngpurt_device_%s{pid=\"%ld\",name=\"Card\",pci=\""
                 "0000:01:00.0\",reader=\"nvml\"} %.15g\n",
                 names[i], i == SENSOR_ENERGY ? "counter" : "gauge", names[i], (long)getpid(),
                 i + 1.5);
        has(text, line);
    }
    assert_null(strstr(text, "Bare"));
    // Of two devices that tell the same there is one head.
    made.sample.devices[1].values[SENSOR_POWER] = 1;
    made.sample.devices[1].values[SENSOR_CLOCK] = INFINITY;
    s->rate = INFINITY;
    assert_true(metrics_write(path, s, &made.sample, true));
    file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_null(strstr(text, " inf"));
    assert_null(strstr(text, "gpurt_rate"));
    char *head = strstr(text, "# TYPE gpurt_device_power_watts");
    assert_non_null(head);
    assert_null(strstr(head + 1, "# TYPE gpurt_device_power_watts"));
    has(head, "name=\"Bare\",pci=\"\",reader=\"fdinfo\"} 1\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {CASE(rows), CASE(screens), CASE(means), CASE(metrics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
