// SPDX-License-Identifier: Apache-2.0
// A training as `gpurt monitor` sees it, and with --monitor what the sensors of its device told:
// behind each row `train` and `evaluate` of the log a row `monitor`, and the whole at the end.
#include <math.h>
#include <stdio.h>

#include "cli/talk.h"
#include "publish/publish.h"
#include "trainer.h"

static void tell_state(const struct grt_run_row *row) {
    struct state state;
    enum grt_run_field rate = trainer_rate_of(row), score = trainer_score_of(row);
    state_init(&state);
    state.step = (double)row->step;
    state.steps = (double)row->steps;
    if (row->epochs > 0) {
        state.epoch = row->numbers[GRT_FIELD_EPOCH];
        state.epochs = (double)row->epochs;
    }
    state.rate = row->numbers[rate];
    state.score = row->numbers[score];
    snprintf(state.rate_of, STATE_TEXT, "%s", grt_run_field_word(rate));
    snprintf(state.score_of, STATE_TEXT, "%s", grt_run_field_word(score));
    if (row->eta > 0 || row->step == row->steps) {
        state.left = row->eta;
    }
    state.memory = row->numbers[GRT_FIELD_MEMORY];
    publish_tell(&state);
}

static void set_known(struct grt_run_row *row, enum grt_run_field field, double value) {
    if (!isnan(value)) {
        grt_run_row_set(row, field, value);
    }
}

static void log_sensors(struct trainer *t, bool evaluated) {
    struct trainer_sensors *s = &t->sensors;
    struct grt_run_row row = {.event = GRT_RUN_MONITOR};
    struct publish_means means;
    if (!publish_take(&means)) {
        return;
    }
    set_known(&row, GRT_FIELD_UTILISATION, means.utilisation);
    set_known(&row, GRT_FIELD_MEMORY_USED, means.memory_used);
    set_known(&row, GRT_FIELD_POWER, means.power);
    set_known(&row, GRT_FIELD_TEMPERATURE, means.temperature);
    set_known(&row, GRT_FIELD_CLOCK, means.clock);
    set_known(&row, GRT_FIELD_ENERGY, means.energy);
    if (!isnan(means.energy)) {
        s->epoch_energy += means.energy;
        s->energy_known = true;
    }
    if (evaluated) {
        set_known(&row, GRT_FIELD_EPOCH_ENERGY, s->energy_known ? s->epoch_energy : NAN);
        s->epoch_energy = 0;
        s->energy_known = false;
        s->epochs++;
    }
    s->due = false;
    grt_run_tell(t->run, &row);
}

void trainer_monitor_report(struct trainer *t, const struct grt_run_report *r) {
    bool row = r->news == GRT_RUN_NEWS_ROW;
    if (r->news == GRT_RUN_NEWS_PROGRESS || (row && r->row->event == GRT_RUN_TRAIN)) {
        tell_state(r->row);
    }
    // An evaluation ends an epoch, and may be the last of the run; rows `train` may have one behind
    // them.
    bool evaluated = row && r->row->event == GRT_RUN_EVALUATE;
    t->sensors.due = t->sensors.due || (row && r->row->event == GRT_RUN_TRAIN);
    if (t->run && (evaluated || (r->news == GRT_RUN_NEWS_TURN && t->sensors.due))) {
        log_sensors(t, evaluated);
    }
}

void trainer_monitor_end(struct trainer *t) {
    struct publish_means means;
    char text[PUBLISH_TEXT], each[64] = "";
    if (!publish_whole(&means)) {
        return;
    }
    publish_means_text(&means, text);
    if (t->sensors.epochs > 1 && !isnan(means.energy)) {
        snprintf(each, sizeof each, "; %.1f J to each evaluation",
                 means.energy / t->sensors.epochs);
    }
    talk_line("sensors: %s%s", text, each);
    if (t->rows.begun && !t->rows.output.error) {
        table_note(&t->rows.table, "monitor", publish_means_json(&means));
    }
}
