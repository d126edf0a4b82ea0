// SPDX-License-Identifier: Apache-2.0
// The table of a sweep on a terminal: running trials first, then those at their end, the best
// first, then those that wait.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/talk.h"
#include "monitor/screen.h"
#include "sweep.h"

#define DRAW_SECONDS 0.5

static double drawn;

bool sweep_live_open(void) {
    drawn = 0;
    return screen_open();
}

void sweep_live_close(void) {
    screen_close();
}

static void title(FILE *file, const struct sweep *s) {
    char left[TABLE_SHORT_SIZE], best[160] = "";
    const struct sweep_trial *b = sweep_best(s);
    uint32_t waiting = sweep_count(s, SWEEP_WAITING), running = sweep_count(s, SWEEP_RUNNING);
    table_time_text(sweep_left(s), left);
    fprintf(file, SCREEN_BOLD "gpurt sweep %s\n", s->dir);
    if (b) {
        snprintf(best, sizeof best, ", best %s %.6g of trial %u", s->plan.metric.name,
                 b->progress.best, b->number);
    }
    fprintf(file, SCREEN_PLAIN "%u of %u ended, %u running%s%s%s; Ctrl-C stops, resume goes on\n\n",
            s->plan.trials - waiting - running, s->plan.trials, running, *left ? ", " : "", left,
            *left ? " left" : "");
    if (*best) {
        fprintf(file, SCREEN_PLAIN "%s\n", best + 2);
    }
}

static int group(enum sweep_state state) {
    return state == SWEEP_RUNNING ? 0 : state == SWEEP_WAITING ? 2 : 1;
}

static const struct sweep *compared;

static int by_interest(const void *a, const void *b) {
    const struct sweep_trial *x = &compared->trials[*(const uint32_t *)a];
    const struct sweep_trial *y = &compared->trials[*(const uint32_t *)b];
    int g = group(x->state) - group(y->state);
    if (g == 0 && group(x->state) == 1) {
        g = sweep_better(compared, y, x) - sweep_better(compared, x, y);
    }
    return g ? g : (x->number > y->number) - (x->number < y->number);
}

char *sweep_live_text(const struct sweep *s, int lines, int columns) {
    char *text = NULL, *rows = NULL;
    size_t text_size = 0, rows_size = 0;
    uint32_t *order = calloc(s->plan.trials, sizeof *order);
    struct output output = {.file = open_memstream(&rows, &rows_size)};
    FILE *file = open_memstream(&text, &text_size);
    struct sweep_table table;
    if (order && output.file && file) {
        title(file, s);
        for (uint32_t i = 0; i < s->plan.trials; i++) {
            order[i] = i;
        }
        compared = s;
        qsort(order, s->plan.trials, sizeof *order, by_interest);
        bool good = sweep_table_open(
            &table, s,
            &(struct table_desc){.output = &output, .format = TABLE_PLAIN, .fit = columns});
        for (uint32_t i = 0; good && i < s->plan.trials && i < (uint32_t)lines; i++) {
            good = sweep_table_row(&table, s, &s->trials[order[i]]);
        }
        sweep_table_close(&table);
    }
    if (output.file) {
        fclose(output.file);
    }
    screen_lines(file, rows);
    if (file) {
        fclose(file);
    }
    free(rows);
    free(order);
    return text;
}

bool sweep_live_wait(struct sweep *s, double seconds) {
    bool quit = screen_wait(seconds) == SCREEN_QUIT;
    if (grt_seconds() - drawn >= DRAW_SECONDS) {
        struct screen_size size = screen_size();
        char *text = sweep_live_text(s, size.rows, size.columns);
        if (text) {
            screen_show(text);
        }
        free(text);
        drawn = grt_seconds();
    }
    return !quit;
}
