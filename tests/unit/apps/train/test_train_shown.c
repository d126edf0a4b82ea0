// SPDX-License-Identifier: Apache-2.0
// What a training shows of the rows of its log: cells of the table, lines between them, progress on
// a terminal, the state for `gpurt monitor` and what sensors told, from rows that were made up.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/talk.h"
#include "publish/publish.h"
#include "train/trainer.h"

// ---- in place of the terminal, the table and the sensors ----

static bool terminal;
static char line[512], error[512], progress[512];
static uint32_t lines, errors, cleared, resumed;
static enum talk_stop stops;

static void keep(char *into, const char *format, va_list list) {
    vsnprintf(into, sizeof line, format, list);
}

void talk_line(const char *format, ...) {
    va_list list;
    va_start(list, format);
    keep(line, format, list);
    va_end(list);
    lines++;
}

void talk_error(const char *format, ...) {
    va_list list;
    va_start(list, format);
    keep(error, format, list);
    va_end(list);
    errors++;
}

void talk_progress(const char *format, ...) {
    va_list list;
    va_start(list, format);
    keep(progress, format, list);
    va_end(list);
}

bool talk_shows_progress(void) {
    return terminal;
}

void talk_clear(void) {
    cleared++;
}

void talk_stop_by(enum talk_stop how) {
    stops = how;
}

bool talk_stopped(void) {
    return false;
}

void talk_resume(void) {
    resumed++;
}

bool talk_styled(FILE *file) {
    (void)file;
    return false;
}

static struct table_cell cells[TRAIN_MAX_COLUMNS];
static uint32_t table_rows, spoken;

void train_rows_add(struct train_rows *rows, const struct table_cell *of) {
    (void)rows;
    memcpy(cells, of, sizeof cells);
    table_rows++;
}

void trainer_ranks_speak(struct trainer *t) {
    (void)t;
    spoken++;
}

static struct state told;
static uint32_t states;
static bool sampled;
static struct publish_means means;

void publish_tell(const struct state *state) {
    told = *state;
    states++;
}

bool publish_take(struct publish_means *m) {
    *m = means;
    return sampled;
}

bool publish_whole(struct publish_means *m) {
    *m = means;
    return sampled;
}

static struct grt_run_row logged;
static uint32_t logs;

void grt_run_tell(struct grt_run *run, struct grt_run_row *row) {
    (void)run;
    logged = *row;
    logs++;
}

// ---- a kind ----

// X(name, event, field, key, heading, unit, type, precision, width)
#define COLUMNS(X)                                                                                 \
    X(STEP, EVALUATE, STEP, "step", "step", NULL, COUNT, 0, 0)                                     \
    X(LOSS, EVALUATE, LOSS, "loss", "loss", NULL, NUMBER, 4, 0)                                    \
    X(SHARE, EVALUATE, ACCURACY, "accuracy", "accuracy", NULL, SHARE, 2, 0)                        \
    X(BEST, EVALUATE, BEST, "best", "best", NULL, TEXT, 0, 0)                                      \
    X(EPISODES, EVALUATE, EPISODES, "episodes", "episodes", NULL, COUNT, 0, 0)                     \
    X(SECONDS, EVALUATE, SECONDS, "seconds", "s", NULL, NUMBER, 2, 0)                              \
    X(NAME, BASELINE, BASELINE, "name", "name", NULL, TEXT, 0, 0)
#define OF_TRAIN(X) X(TRAINED, TRAIN, LOSS, "trained", "trained", NULL, NUMBER, 4, 0)

enum column {
#define X(name, event, field, key, heading, unit, type, precision, width) COLUMN_OF_##name,
    COLUMNS(X) OF_TRAIN(X)
#undef X
        COLUMN_COUNT,
};
static const struct train_column columns[] = {COLUMNS(TRAIN_COLUMN) OF_TRAIN(TRAIN_COLUMN)};

static struct train_kind kind;
static struct trainer trainer;  // too large for the stack

static int begin(void **state) {
    (void)state;
    kind = (struct train_kind){.verb = "train", .columns = columns, .column_count = COLUMN_COUNT};
    memset(&trainer, 0, sizeof trainer);
    trainer.kind = &kind;
    trainer.rows.begun = true;
    terminal = sampled = false;
    line[0] = error[0] = progress[0] = '\0';
    lines = errors = table_rows = states = logs = 0;
    memset(cells, 0, sizeof cells);
    return 0;
}

static void tell(enum grt_run_news news, const struct grt_run_row *row, const char *text) {
    trainer_report(&trainer,
                   &(struct grt_run_report){
                       .news = news, .step = row ? row->step : 9, .row = row, .text = text});
}

// ---- the table ----

static void test_cells(void **state) {
    (void)state;
    kind.column_count = COLUMN_OF_NAME;  // no column names a baseline, and none is of steps
    struct grt_run_row row = {.event = GRT_RUN_EVALUATE, .step = 12};
    grt_run_row_set(&row, GRT_FIELD_LOSS, 0.5);
    grt_run_row_set(&row, GRT_FIELD_ACCURACY, NAN);
    grt_run_row_set(&row, GRT_FIELD_BEST, 1);
    grt_run_row_set(&row, GRT_FIELD_SECONDS, 3.5);
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    assert_int_equal(table_rows, 0);  // the rest of its step may come
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_int_equal(table_rows, 1);
    assert_true(cells[COLUMN_OF_STEP].known && cells[COLUMN_OF_STEP].count == 12);
    assert_true(cells[COLUMN_OF_LOSS].known && cells[COLUMN_OF_LOSS].number == 0.5);
    assert_false(cells[COLUMN_OF_SHARE].known);  // JSON has no NaN
    assert_string_equal(cells[COLUMN_OF_BEST].text, "*");
    assert_false(cells[COLUMN_OF_EPISODES].known);
    assert_true(cells[COLUMN_OF_SECONDS].number == 3.5);
    // Nothing is left for the next row.
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_int_equal(table_rows, 1);
    row = (struct grt_run_row){.event = GRT_RUN_EVALUATE, .step = 13};
    grt_run_row_set(&row, GRT_FIELD_BEST, 0);
    grt_run_row_set(&row, GRT_FIELD_EPISODES, 7);
    grt_run_row_set(&row, GRT_FIELD_LOSS, INFINITY);
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_true(table_rows == 2 && cells[COLUMN_OF_BEST].known);
    assert_string_equal(cells[COLUMN_OF_BEST].text, "");
    assert_true(cells[COLUMN_OF_EPISODES].count == 7 && !cells[COLUMN_OF_LOSS].known);
    assert_false(cells[COLUMN_OF_SECONDS].known);
    // Step and time alone make no row, nor does a baseline that no column names.
    row = (struct grt_run_row){.event = GRT_RUN_START, .step = 1};
    grt_run_row_set(&row, GRT_FIELD_SECONDS, 1);
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    row = (struct grt_run_row){.event = GRT_RUN_BASELINE, .step = 1};
    grt_run_row_set(&row, GRT_FIELD_ACCURACY, 0.25);
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_int_equal(table_rows, 2);
    // Where one does, it has the columns of an evaluation.
    kind.column_count = COLUMN_OF_NAME + 1;
    grt_run_row_text(&row, GRT_FIELD_BASELINE, "frequent");
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_true(table_rows == 3 && cells[COLUMN_OF_SHARE].number == 0.25);
    assert_string_equal(cells[COLUMN_OF_NAME].text, "frequent");
    // Before the table begins there is no row of it.
    trainer.rows.begun = false;
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_int_equal(table_rows, 3);
}

// A row of a step and one of its evaluation are one row of the table; the next step's is another.
static void test_rows_of_steps(void **state) {
    (void)state;
    struct grt_run_row step = {.event = GRT_RUN_TRAIN, .step = 1, .steps = 9};
    struct grt_run_row judged = {.event = GRT_RUN_EVALUATE, .step = 1};
    grt_run_row_set(&step, GRT_FIELD_LOSS, 2);
    grt_run_row_set(&judged, GRT_FIELD_LOSS, 3);
    tell(GRT_RUN_NEWS_ROW, &step, NULL);
    tell(GRT_RUN_NEWS_ROW, &judged, NULL);
    assert_int_equal(table_rows, 0);
    step.step = 2;
    tell(GRT_RUN_NEWS_ROW, &step, NULL);
    assert_true(table_rows == 1 && cells[COLUMN_OF_STEP].count == 1);
    assert_true(cells[COLUMN_OF_LOSS].number == 3 && cells[COLUMN_OF_TRAINED].number == 2);
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_true(table_rows == 2 && cells[COLUMN_OF_STEP].count == 2);
    assert_false(cells[COLUMN_OF_LOSS].known);
    assert_int_equal(lines, 0);  // the table has them
    trainer_tell(&trainer, &judged);
    assert_true(logs == 1 && logged.event == GRT_RUN_EVALUATE);
}

// ---- lines ----

static void test_lines(void **state) {
    (void)state;
    kind.column_count = COLUMN_OF_NAME;
    struct grt_run_row row = {
        .event = GRT_RUN_TRAIN, .step = 5, .steps = 12, .epochs = 3, .eta = 75};
    grt_run_row_set(&row, GRT_FIELD_EPOCH, 2);
    grt_run_row_set(&row, GRT_FIELD_LOSS, 0.125);
    grt_run_row_set(&row, GRT_FIELD_SAMPLES_PER_S, 1234.4);
    grt_run_row_set(&row, GRT_FIELD_DATA_SHARE, 0.25);
    grt_run_row_set(&row, GRT_FIELD_LOSS_SCALE, 1024);
    grt_run_row_set(&row, GRT_FIELD_SKIPPED, 3);
    snprintf(trainer.config.settings.precision, sizeof trainer.config.settings.precision, "f32");
    tell(GRT_RUN_NEWS_PROGRESS, &row, NULL);
    assert_int_equal(lines, 0);  // between the rows of the log there are none
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    assert_string_equal(line, "epoch 2/3, step 5/12: loss 0.125, 1234 samples/s, data 25% compute "
                              "75%, 1:15 left");
    snprintf(trainer.config.settings.precision, sizeof trainer.config.settings.precision, "f16");
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    assert_string_equal(line, "epoch 2/3, step 5/12: loss 0.125, 1234 samples/s, data 25% compute "
                              "75%, scale 1024, 3 skipped, 1:15 left");
    terminal = true;
    tell(GRT_RUN_NEWS_PROGRESS, &row, NULL);
    assert_string_equal(progress, "epoch 2/3 step 5/12 loss 0.125 1.234k/s data 25% scale 1024 "
                                  "1:15 left");
    assert_string_equal(trainer.progress, progress);
    assert_int_equal(lines, 2);
    // Of policies: a return, and steps of environments, without epochs.
    terminal = false;
    row = (struct grt_run_row){.event = GRT_RUN_TRAIN, .step = 5, .steps = 12, .eta = 3};
    grt_run_row_set(&row, GRT_FIELD_RETURN, -7.5);
    grt_run_row_set(&row, GRT_FIELD_STEPS_PER_S, 2e6);
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    assert_string_equal(line, "step 5/12: return -7.5, 2000000 steps/s, 0:03 left");
    terminal = true;
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    assert_string_equal(progress, "step 5/12 return -7.5 2M/s 0:03 left");
    assert_int_equal(lines, 3);
    // What is long stays within what there is, and ends.
    row.steps = UINT64_MAX;
    row.step = UINT64_MAX;
    row.epochs = UINT64_MAX;
    grt_run_row_set(&row, GRT_FIELD_EPOCH, 1e300);
    tell(GRT_RUN_NEWS_PROGRESS, &row, NULL);
    assert_int_equal(strlen(trainer.progress), sizeof trainer.progress - 1);
}

// A row of the table that is printed puts the progress back behind it.
static void test_progress_behind_rows(void **state) {
    (void)state;
    terminal = true;
    struct grt_run_row row = {.event = GRT_RUN_TRAIN, .step = 1, .steps = 2};
    grt_run_row_set(&row, GRT_FIELD_LOSS, 1);
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    progress[0] = '\0';
    uint32_t before = cleared;
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_int_equal(cleared, before + 1);
    assert_string_equal(progress, trainer.progress);
    assert_true(progress[0] != '\0');
}

static void test_news(void **state) {
    (void)state;
    uint32_t before = spoken;
    tell(GRT_RUN_NEWS_WORK, NULL, "looking");
    assert_string_equal(progress, "looking");
    tell(GRT_RUN_NEWS_RESUMED, NULL, "a.h5");
    assert_string_equal(line, "resumed from a.h5: step 9");
    tell(GRT_RUN_NEWS_NOTE, NULL, "a note");
    assert_string_equal(line, "a note");
    assert_int_equal(errors, 0);
    tell(GRT_RUN_NEWS_FAULT, NULL, "a fault");
    assert_string_equal(error, "a fault");
    stops = TALK_STOP_AT_ONCE;
    tell(GRT_RUN_NEWS_BEGUN, NULL, NULL);
    assert_int_equal(stops, TALK_STOP_AFTER_STEP);
    tell(GRT_RUN_NEWS_CHECKPOINT, NULL, "a.h5");
    assert_true(lines == 2 && errors == 1 && spoken == before + 6);
}

// ---- for others ----

static void test_states(void **state) {
    (void)state;
    struct grt_run_row row = {
        .event = GRT_RUN_TRAIN, .step = 5, .steps = 12, .epochs = 3, .eta = 60};
    grt_run_row_set(&row, GRT_FIELD_EPOCH, 2);
    grt_run_row_set(&row, GRT_FIELD_LOSS, 0.5);
    grt_run_row_set(&row, GRT_FIELD_SAMPLES_PER_S, 70);
    grt_run_row_set(&row, GRT_FIELD_MEMORY, 4096);
    tell(GRT_RUN_NEWS_PROGRESS, &row, NULL);
    assert_true(states == 1 && told.step == 5 && told.steps == 12 && told.epoch == 2);
    assert_true(told.epochs == 3 && told.rate == 70 && told.score == 0.5 && told.left == 60);
    assert_true(told.memory == 4096);
    assert_string_equal(told.rate_of, "samples_per_s");
    assert_string_equal(told.score_of, "loss");
    // Unknown is not 0: the time that is left, unless it is the end, and epochs.
    row = (struct grt_run_row){.event = GRT_RUN_TRAIN, .step = 11, .steps = 12};
    grt_run_row_set(&row, GRT_FIELD_RETURN, -3);
    grt_run_row_set(&row, GRT_FIELD_STEPS_PER_S, 9);
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    assert_true(states == 2 && isnan(told.left) && isnan(told.epoch) && isnan(told.epochs));
    assert_true(told.score == -3 && told.rate == 9);
    assert_string_equal(told.rate_of, "steps_per_s");
    assert_string_equal(told.score_of, "return");
    row.step = 12;
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    assert_true(states == 3 && told.left == 0);
    row.event = GRT_RUN_EVALUATE;
    tell(GRT_RUN_NEWS_ROW, &row, NULL);
    assert_int_equal(states, 3);
}

static double number(enum grt_run_field field) {
    return grt_run_row_has(&logged, field) ? logged.numbers[field] : NAN;
}

static void test_sensors(void **state) {
    (void)state;
    static int some;  // a run is only passed on
    trainer.run = (struct grt_run *)(void *)&some;
    sampled = true;
    means = (struct publish_means){.utilisation = 0.5,
                                   .power = 100,
                                   .clock = NAN,
                                   .temperature = 60,
                                   .memory_used = 8,
                                   .energy = 40};
    struct grt_run_row step = {.event = GRT_RUN_TRAIN, .step = 1, .steps = 9};
    struct grt_run_row judged = {.event = GRT_RUN_EVALUATE, .step = 1};
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_int_equal(logs, 0);  // nothing was told of
    tell(GRT_RUN_NEWS_ROW, &step, NULL);
    assert_int_equal(logs, 0);
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_true(logs == 1 && logged.event == GRT_RUN_MONITOR);
    assert_true(number(GRT_FIELD_UTILISATION) == 0.5 && number(GRT_FIELD_POWER) == 100);
    assert_true(number(GRT_FIELD_TEMPERATURE) == 60 && number(GRT_FIELD_MEMORY_USED) == 8);
    assert_true(number(GRT_FIELD_ENERGY) == 40 && isnan(number(GRT_FIELD_CLOCK)));
    assert_true(isnan(number(GRT_FIELD_EPOCH_ENERGY)));
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_int_equal(logs, 1);  // once for a row
    // An evaluation has what all rows since the one before came to.
    means.energy = 2;
    tell(GRT_RUN_NEWS_ROW, &step, NULL);
    tell(GRT_RUN_NEWS_ROW, &judged, NULL);
    assert_true(logs == 2 && number(GRT_FIELD_ENERGY) == 2);
    assert_true(number(GRT_FIELD_EPOCH_ENERGY) == 42);
    tell(GRT_RUN_NEWS_TURN, NULL, NULL);
    assert_int_equal(logs, 2);
    means.energy = NAN;
    tell(GRT_RUN_NEWS_ROW, &judged, NULL);
    assert_true(logs == 3 && isnan(number(GRT_FIELD_EPOCH_ENERGY)));
    assert_true(isnan(number(GRT_FIELD_ENERGY)));
    assert_int_equal(trainer.sensors.epochs, 2);
    means.energy = 5;
    tell(GRT_RUN_NEWS_ROW, &judged, NULL);
    assert_true(logs == 4 && number(GRT_FIELD_EPOCH_ENERGY) == 5);
    // At the end the whole, and of several evaluations the mean.
    trainer.rows.begun = false;
    trainer.sensors.epochs = 2;
    means.energy = 30;
    trainer_monitor_end(&trainer);
    const char *end = strstr(line, "; 15.0 J to each evaluation");
    assert_true(strncmp(line, "sensors: ", 9) == 0 && end && strlen(end) == 27);
    trainer.sensors.epochs = 1;
    trainer_monitor_end(&trainer);
    assert_null(strstr(line, "to each evaluation"));
    trainer.sensors.epochs = 2;
    means.energy = NAN;
    trainer_monitor_end(&trainer);
    assert_null(strstr(line, "to each evaluation"));
    // Without sensors nothing is told.
    sampled = false;
    lines = 0;
    tell(GRT_RUN_NEWS_ROW, &judged, NULL);
    trainer_monitor_end(&trainer);
    assert_true(logs == 4 && lines == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_cells, begin),
        cmocka_unit_test_setup(test_rows_of_steps, begin),
        cmocka_unit_test_setup(test_lines, begin),
        cmocka_unit_test_setup(test_progress_behind_rows, begin),
        cmocka_unit_test_setup(test_news, begin),
        cmocka_unit_test_setup(test_states, begin),
        cmocka_unit_test_setup(test_sensors, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
