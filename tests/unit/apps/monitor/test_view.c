// SPDX-License-Identifier: Apache-2.0
// The screen of `gpurt monitor`, letter by letter, of a look that was made up: blocks, the short
// form, warnings in narrow lines, and every aim on both of its sides.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/view.h"

static struct look look;

static void past(struct look_past *p, size_t count, const double *values) {
    p->count = count;
    memcpy(p->values, values, count * sizeof *values);
}

static struct sensor_device *device(size_t i, const char *name, const char *reader,
                                    const char *pci) {
    struct sensor_device *d = &look.sample.devices[i];
    d->reader = reader;
    snprintf(d->name, sizeof d->name, "%s", name);
    snprintf(d->pci, sizeof d->pci, "%s", pci);
    for (size_t k = 0; k < SENSOR_COUNT; k++) {
        d->values[k] = NAN;
    }
    look.sample.count = i + 1;
    return d;
}

static struct state *process(size_t i, int on, const char *app) {
    struct look_process *p = &look.processes[i];
    state_init(&p->state);
    p->device = on;
    p->cpus = NAN;
    snprintf(p->state.app, sizeof p->state.app, "%s", app);
    look.process_count = i + 1;
    return &p->state;
}

static int begin(void **state) {
    (void)state;
    memset(&look, 0, sizeof look);
    setenv("LC_ALL", "C", 1);
    setenv("COLUMNS", "300", 1);
    // One that tells everything, one that tells nothing.
    double *v = device(0, "Card A", "nvml", "0000:65:00.0")->values;
    v[SENSOR_UTILISATION] = 0.42;
    v[SENSOR_MEMORY_USED] = 3.0 * (1 << 30);
    v[SENSOR_MEMORY_TOTAL] = 4.0 * (1 << 30);
    v[SENSOR_POWER] = 345.6;
    v[SENSOR_POWER_LIMIT] = 700;
    v[SENSOR_TEMPERATURE] = 61;
    v[SENSOR_CLOCK] = 1980;
    device(1, "Card B", "fdinfo", "");
    past(&look.busy[0], 4, (double[]){0, 0.5, NAN, 1});
    past(&look.filled[0], 3, (double[]){0.25, 0.5, 0.75});
    past(&look.busy[1], 1, (double[]){NAN});
    past(&look.filled[1], 1, (double[]){NAN});
    return 0;
}

// The lines behind the first two, which have the time of day in them.
static void shows(int rows, int columns, const char *want) {
    char *text = view_text(&look, (struct screen_size){rows, columns}, 0.5);
    assert_non_null(text);
    assert_ptr_equal(strstr(text, "bgpurt monitor  "), text);
    const char *rest = strstr(text, "  every 0.5 s, q ends\n\n");
    assert_non_null(rest);
    assert_string_equal(rest + strlen("  every 0.5 s, q ends\n\n"), want);
    free(text);
}

static void blocks(void **state) {
    (void)state;
    shows(24, 80,
          "bCard A  (nvml 0000:65:00.0)\n"
          "   busy     42 %                         _= #\n"
          "   memory   75 %  3 GiB of 4 GiB         :=+\n"
          "   power 346 of 700 W, temperature 61 C, clock 1980 MHz; not available: memory clock\n"
          "bCard B  (fdinfo)\n"
          "   busy    not available                  \n"
          "   memory  not available                  \n"
          "   not available: power, temperature, clock, memory clock\n"
          "\n"
          " No gpurt process of this user is running.\n");
}

static void short_form(void **state) {
    (void)state;
    struct state *s = process(0, 0, "train supervised");
    snprintf(s->device, sizeof s->device, "vulkan:0");
    snprintf(s->score_of, sizeof s->score_of, "loss");
    s->pid = 1234;
    s->step = 500;
    s->steps = 1000;
    s->rate = 1250;
    s->score = 0.0175;
    s->left = 3907;
    s->memory = 512.0 * (1 << 20);
    look.processes[0].cpus = 1.5;
    s = process(1, 1, "train ppo");
    s->pid = 77;
    s->step = 9;
    shows(3, 200,
          "bname    by      PCI address    busy       used         of  power W  limit W  temp. C  "
          "clock MHz  memory MHz\n"
          " Card A  nvml    0000:65:00.0    42%      3 GiB      4 GiB      346      700       61  "
          "     1980           -\n"
          " Card B  fdinfo  -                 -          -          -        -        -        -  "
          "        -           -\n"
          "\n"
          "b    pid  app               device    step       rate        score  of    left     CPUs "
          "    memory\n"
          "    1234  train supervised  vulkan:0  500/1000   1.25k/s    0.0175  loss  1:05:07  1.50 "
          "   512 MiB\n"
          "      77  train ppo         -         9          -               -  -     -           - "
          "         -\n"
          "\n"
          "w! Card A: busy 50 % of the time; aim: above 70 %, best above 90 %. Remedy: a larger "
          "batch_size, and more num_workers or cache: ram if it waits for data\n"
          "w! Card A: memory filled by 50 %; aim: 60 to 80 %. Remedy: a larger batch_size\n");
}

static void warnings_of_a_process(void **state) {
    (void)state;
    char text[LOOK_WARNINGS][LOOK_WARNING];
    struct state *s = process(0, 0, "train supervised");
    s->step = 1;
    past(&look.busy[0], 1, (double[]){0.5});
    past(&look.filled[0], 1, (double[]){0.5});
    assert_int_equal(look_warnings(&look, 0, text), 2);
    assert_string_equal(text[0], "busy 50 % of the time; aim: above 70 %, best above 90 %. Remedy: "
                                 "a larger batch_size, and more num_workers or cache: ram if it "
                                 "waits for data");
    assert_string_equal(text[1], "memory filled by 50 %; aim: 60 to 80 %. Remedy: a larger "
                                 "batch_size");
    past(&look.filled[0], 1, (double[]){0.9});
    assert_int_equal(look_warnings(&look, 0, text), 2);
    assert_string_equal(text[1], "memory filled by 90 %; aim: 60 to 80 %. It may run out. Remedy: "
                                 "a smaller batch_size with a larger accumulate");
    snprintf(s->app, sizeof s->app, "train ppo");
    assert_int_equal(look_warnings(&look, 0, text), 2);
    assert_string_equal(text[0], "busy 50 % of the time; aim: above 70 %, best above 90 %. Remedy: "
                                 "a larger num_envs");
    assert_string_equal(text[1], "memory filled by 90 %; aim: 60 to 80 %. It may run out. Remedy: "
                                 "a smaller num_envs");
    // On the edges of the aims nothing is said.
    past(&look.busy[0], 1, (double[]){LOOK_BUSY_LEAST});
    past(&look.filled[0], 1, (double[]){LOOK_FILLED_LEAST});
    assert_int_equal(look_warnings(&look, 0, text), 0);
    past(&look.filled[0], 1, (double[]){LOOK_FILLED_MOST});
    assert_int_equal(look_warnings(&look, 0, text), 0);
    // Nor of what is not told, before the first step, of a CPU, and of a device without a process.
    past(&look.busy[0], 1, (double[]){NAN});
    past(&look.filled[0], 1, (double[]){NAN});
    assert_int_equal(look_warnings(&look, 0, text), 0);
    past(&look.busy[0], 1, (double[]){0.1});
    assert_int_equal(look_warnings(&look, 0, text), 1);
    s->step = 0;
    assert_int_equal(look_warnings(&look, 0, text), 0);
    s->step = 1;
    s->software = 1;
    assert_int_equal(look_warnings(&look, 0, text), 0);
    s->software = 0;
    look.processes[0].device = 1;
    assert_int_equal(look_warnings(&look, 0, text), 0);
}

// Words stay whole in narrow lines.
static void folded(void **state) {
    (void)state;
    struct state *s = process(0, 0, "train es");
    s->step = 1;
    past(&look.filled[0], 1, (double[]){0.7});
    past(&look.busy[0], 1, (double[]){0.5});
    char *text = view_text(&look, (struct screen_size){99, 40}, 1);
    assert_non_null(text);
    assert_non_null(strstr(text, "\nw! Card A: busy 50 % of the time; aim:\n"
                                 "w  above 70 %, best above 90 %. Remedy: a\n"
                                 "w  larger num_envs\n"));
    free(text);
}

static void means_and_courses(void **state) {
    (void)state;
    struct look_past p = {.count = 5, .values = {9, 1, NAN, 2, 6}};
    char text[64];
    assert_true(look_mean(&p, 4) == 3);
    assert_true(look_mean(&p, 5) == 4.5);
    assert_true(look_mean(&p, 6) == 4.5);
    assert_true(look_mean(&p, 1) == 6);
    assert_true(isnan(look_mean(&p, 0)));
    struct look_past q = {
        .count = 10, .values = {-1, 0, 1.0 / 7, 2.0 / 7, 3.0 / 7, 4.0 / 7, 5.0 / 7, 6.0 / 7, 1, 2}};
    view_course(&q, 20, false, text, sizeof text);
    assert_string_equal(text, "__.:-=+*##");
    view_course(&q, 3, false, text, sizeof text);
    assert_string_equal(text, "*##");
    view_course(&q, 3, true, text, sizeof text);
    assert_string_equal(text, "▇██");
    struct sensor_device d = {.values = {[SENSOR_MEMORY_USED] = 3, [SENSOR_MEMORY_TOTAL] = 12}};
    assert_true(look_filled(&d) == 0.25);
    d.values[SENSOR_MEMORY_TOTAL] = 0;
    assert_true(isnan(look_filled(&d)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(blocks, begin),
        cmocka_unit_test_setup(short_form, begin),
        cmocka_unit_test_setup(warnings_of_a_process, begin),
        cmocka_unit_test_setup(folded, begin),
        cmocka_unit_test(means_and_courses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
