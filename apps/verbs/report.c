// SPDX-License-Identifier: Apache-2.0
// `gpurt report` and `gpurt compare`: results of benches and logs of training, from any machines,
// side by side, and against a baseline.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/output/files.h"
#include "cli/talk.h"
#include "report/read.h"
#include "report/text.h"
#include "report/write.h"
#include "sweep/sweep.h"

struct report_options {
    struct options common;  // first: see options.h
    const char *html, *md, *csv;
    const char *baseline;
    const char *title;
    double fail_under;
    int argc;  // the command line, for the record
    char **argv;
};

#define AT(field) offsetof(struct report_options, field)
static const struct option_row report_own[] = {
    {.name = "html",
     .value = "FILE",
     .help = "one page with charts, which needs no network",
     .read = options_read_text,
     .at = AT(html)},
    {.name = "md",
     .value = "FILE",
     .help = "Markdown, for a job summary",
     .read = options_read_text,
     .at = AT(md)},
    {.name = "csv",
     .value = "FILE",
     .help = "every figure, one line each",
     .read = options_read_text,
     .at = AT(csv)},
    {.name = "baseline",
     .value = "FILE",
     .help = "results that all others are compared with",
     .read = options_read_text,
     .at = AT(baseline)},
    {.name = "title",
     .value = "TEXT",
     .help = "heading of the report",
     .fallback = "gpurt: devices compared",
     .read = options_read_text,
     .at = AT(title)},
};
static const struct option_row fail_option[] = {
    {.name = "fail-under",
     .value = "SHARE",
     .help = "exit 1 when a figure is below this share of the baseline: 0.95",
     .read = options_read_positive,
     .at = AT(fail_under)},
};

// ---- what both verbs do ----

// Names what is below, one line each; returns the exit code.
static int say_below(const struct report *r, const struct report_changes *changes,
                     double fail_under) {
    for (size_t i = 0; i < changes->count; i++) {
        const struct report_change *c = &changes->list[i];
        const char *label = r->contenders[c->after->contender].label;
        if (c->below && c->verdict == REPORT_BROKEN) {
            talk_error("%s %s on %s: was right, is '%s'", c->after->bench->name, c->after->subject,
                       label, c->after->check);
        } else if (c->below) {
            talk_error("%s %s on %s: %.3f of the baseline, at most %.3f with the spread of both",
                       c->after->bench->name, c->after->subject, label, c->share, c->high);
        }
    }
    if (changes->below) {
        talk_error("%zu of %zu figures below %g of the baseline", changes->below, changes->count,
                   fail_under);
        return COMMAND_BELOW;
    }
    if (fail_under > 0 && changes->count == 0) {
        talk_error("nothing to compare: no figure of the baseline is in another file");
        return COMMAND_DATA;
    }
    return COMMAND_OK;
}

static int write_form(const char *path, void (*write)(FILE *, const struct report_view *),
                      const struct report_view *view) {
    struct output output;
    int code = path ? output_open(&output, path) : COMMAND_OK;
    if (!path || code) {
        return code;
    }
    write(output.file, view);
    return output_close(&output, !talk_stopped());
}

// ---- gpurt report ----

static int write_forms(const struct report_options *o, const struct report_view *view) {
    const struct {
        const char *path;
        void (*write)(FILE *, const struct report_view *);
    } forms[] = {
        {o->html, report_write_html}, {o->md, report_write_markdown}, {o->csv, report_write_csv}};
    int code = COMMAND_OK;
    bool any = o->html || o->md || o->csv;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && !code; i++) {
        code = write_form(forms[i].path, forms[i].write, view);
    }
    return any ? code : write_form("-", report_write_plain, view);
}

static int make(const struct report_options *o, struct report *r) {
    struct report_summary summary;
    struct report_changes changes = {0};
    report_settle(r);
    bool good = report_summarize(r, &summary);
    good = good && (!o->baseline || report_compare(r, o->fail_under, &changes));
    if (!good || !report_good(r)) {
        talk_error("out of memory");
        free(changes.list);
        return COMMAND_INTERNAL;
    }
    struct report_view view = {.report = r,
                               .summary = &summary,
                               .changes = o->baseline ? &changes : NULL,
                               .fail_under = o->fail_under,
                               .title = o->title};
    int code = write_forms(o, &view);
    if (!code && o->baseline) {
        code = say_below(r, &changes, o->fail_under);
    }
    free(changes.list);
    return code;
}

// What is written clashes with nothing that is read.
static int names_apart(const struct report_options *o, const char **words, size_t count) {
    struct file_named *files = calloc(count + 4, sizeof *files);
    if (!files) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    for (size_t i = 0; i < count; i++) {
        files[i] = (struct file_named){FILE_READ, "FILE", words[i]};
    }
    files[count] = (struct file_named){FILE_READ, "--baseline", o->baseline};
    files[count + 1] = (struct file_named){FILE_WRITTEN, "--md", o->md};
    files[count + 3] = (struct file_named){FILE_WRITTEN, "--html", o->html};
    files[count + 2] = (struct file_named){FILE_WRITTEN, "--csv", o->csv};
    int code = files_apart(files, count + 4);
    free(files);
    return code;
}

// A file, or the folder of a sweep.
static int read_one(struct report *report, const char *path, bool baseline) {
    struct stat info;
    char why[REPORT_WHY];
    int code = COMMAND_OK;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return report_read(report, path, baseline);
    }
    char *text = sweep_report_text(path, &code);
    if (text && !report_read_text(report, path, text, strlen(text), baseline, why)) {
        talk_error("'%s': %s", path, why);
        code = COMMAND_DATA;
    }
    free(text);
    return code;
}

static int run_report(const struct report_options *o, const char **words, size_t count) {
    struct report report;
    if (count == 0) {
        talk_error(
            "report: files of `gpurt bench --format json` or `gpurt train --log`, or the folder "
            "of a sweep, are wanted");
        return COMMAND_USAGE;
    }
    if (o->fail_under > 0 && !o->baseline) {
        talk_error("'--fail-under' is a share of a baseline: name one with --baseline FILE");
        return COMMAND_USAGE;
    }
    int code = names_apart(o, words, count);
    report_init(&report);
    if (!code && o->baseline) {
        code = read_one(&report, o->baseline, true);
    }
    for (size_t i = 0; i < count && !code; i++) {
        // The baseline may stand among the files too: `report *.json --baseline old.json`.
        bool again = o->baseline && strcmp(o->baseline, words[i]) == 0;
        code = again ? COMMAND_OK : read_one(&report, words[i], false);
    }
    code = code ? code : make(o, &report);
    report_finish(&report);
    return code;
}

static const char report_about[] =
    "Puts results of `gpurt bench --format json` or jsonl, of any kinds and machines, logs of\n"
    "`gpurt train --log`, snapshots of memory (--memory-snapshot) and folders of `gpurt sweep` "
    "into one\n"
    "report: which device leads in what, charts, every figure, and the record of each machine. "
    "Without\n"
    "--html, --md or --csv the summary is printed. Of several results of one case and device the "
    "newest counts.\n";

// Reads the command line and runs; both verbs.
static int main_of(const struct options_desc *desc, struct report_options *options, int argc,
                   char **argv, int (*run)(const struct report_options *, const char **, size_t)) {
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t count = 0;
    options->argc = argc;
    options->argv = argv;
    if (!words) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    int code = options_parse(desc, argc, argv, &options->common, words, &count);
    if (code < 0) {
        code = run(options, words, count);
    }
    free(words);
    return code;
}

int cmd_report(int argc, char **argv) {
    struct report_options options = {0};
    struct option_list lists[] = {
        OPTION_LIST("Report options", report_own),
        OPTION_LIST("Regressions", fail_option),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "report",
                                .words = "FILE...",
                                .about = report_about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    return main_of(&desc, &options, argc, argv, run_report);
}

// ---- gpurt compare ----

// X(name, key, heading, unit, type, precision, width)
#define COMPARE_COLUMNS(X)                                                                         \
    X(BENCH, "bench", "bench", NULL, TEXT, 0, 0)                                                   \
    X(CASE, "case", "case", NULL, TEXT, 0, 30)                                                     \
    X(BEFORE, "before", "before", NULL, NUMBER, 0, 0)                                              \
    X(AFTER, "after", "after", NULL, NUMBER, 0, 0)                                                 \
    X(UNIT, "unit", "unit", NULL, TEXT, 0, 0)                                                      \
    X(BEFORE_TEXT, NULL, "before", NULL, TEXT, 0, 9)                                               \
    X(AFTER_TEXT, NULL, "after", NULL, TEXT, 0, 9)                                                 \
    X(SHARE, "share", "share", NULL, NUMBER, 3, 6)                                                 \
    X(SPREAD, "spread", "within", NULL, SHARE, 1, 6)                                               \
    X(VERDICT, "verdict", "", NULL, TEXT, 0, 6)                                                    \
    X(BELOW, "below", "below", NULL, FLAG, 0, 0)

enum { COMPARE_COLUMNS(TABLE_ENTRY) COLUMN_COUNT };
static const struct table_column columns[] = {COMPARE_COLUMNS(TABLE_COLUMN)};

static bool print_change(struct table *table, const struct report_change *c) {
    char before[REPORT_QUANTITY] = "-", after[REPORT_QUANTITY] = "-", verdict[32];
    if (c->before->good) {
        report_quantity(c->before->value, "", before);
    }
    if (c->after->good) {
        report_quantity(c->after->value, "", after);
    }
    snprintf(verdict, sizeof verdict, "%s%s", report_verdict_text(c->verdict), c->below ? "!" : "");
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_BENCH] = TABLE_CELL(.text = c->after->bench->name),
        [COLUMN_CASE] = TABLE_CELL(.text = c->after->subject),
        [COLUMN_BEFORE] = {.known = c->before->good, .number = c->before->value},
        [COLUMN_AFTER] = {.known = c->after->good, .number = c->after->value},
        [COLUMN_UNIT] = TABLE_CELL(.text = c->after->bench->unit),
        [COLUMN_BEFORE_TEXT] = TABLE_CELL(.text = before),
        [COLUMN_AFTER_TEXT] = TABLE_CELL(.text = after),
        [COLUMN_SHARE] = {.known = c->share > 0, .number = c->share},
        [COLUMN_SPREAD] = {.known = c->share > 0, .number = (c->high - c->low) / 2 / c->share},
        [COLUMN_VERDICT] = TABLE_CELL(.text = verdict),
        [COLUMN_BELOW] = TABLE_CELL(.count = c->below),
    };
    return table_row(table, cells);
}

static bool print_changes(struct table *table, const struct report_changes *changes) {
    const uint64_t shown = 1u << COLUMN_CASE | 1u << COLUMN_BEFORE_TEXT | 1u << COLUMN_AFTER_TEXT |
                           1u << COLUMN_SHARE | 1u << COLUMN_SPREAD | 1u << COLUMN_VERDICT;
    const struct report_bench *bench = NULL;
    bool good = true;
    for (size_t i = 0; i < changes->count && good; i++) {
        const struct report_change *c = &changes->list[i];
        if (i == 0 || c->after->bench != bench) {
            char title[128];
            bench = c->after->bench;
            snprintf(title, sizeof title, "%s, %s", bench->title, bench->unit);
            good = table_section(table, title, shown, NULL, 0);
        }
        good = good && print_change(table, c);
    }
    return good;
}

static int print_comparison(const struct report_options *o, const struct report_changes *changes) {
    struct output output;
    struct table table;
    struct table_column own[COLUMN_COUNT];
    int code = output_open(&output, o->common.output);
    if (code) {
        return code;
    }
    memcpy(own, columns, sizeof own);
    own[COLUMN_CASE].limit = 33;
    bool good = table_open(&table, &(struct table_desc){.output = &output,
                                                        .format = o->common.format,
                                                        .columns = own,
                                                        .column_count = COLUMN_COUNT,
                                                        .schema = "gpurt.compare/1",
                                                        .argc = o->argc,
                                                        .argv = o->argv});
    if (good) {
        good = print_changes(&table, changes);
        good = table_close(&table) && good;
    }
    code = output_close(&output, !talk_stopped());
    if (!code && !o->common.quiet) {
        talk_line(
            "%zu better, %zu worse, %zu the same within their spread, %zu broken, %zu mended; "
            "%zu missing, %zu new",
            changes->verdicts[REPORT_FASTER], changes->verdicts[REPORT_SLOWER],
            changes->verdicts[REPORT_SAME], changes->verdicts[REPORT_BROKEN],
            changes->verdicts[REPORT_MENDED], changes->missing, changes->added);
    }
    return code;
}

static int run_compare(const struct report_options *o, const char **words, size_t count) {
    struct report report;
    struct report_changes changes = {0};
    if (count != 2) {
        talk_error("compare: two files are wanted, the old one and the new one");
        return COMMAND_USAGE;
    }
    const char *old = words[0], *new = words[1];
    int code = FILES_APART({FILE_READ, "OLD", old}, {FILE_READ, "NEW", new},
                           {FILE_WRITTEN, "--output", o->common.output});
    report_init(&report);
    code = code ? code : report_read(&report, old, true);
    code = code ? code : report_read(&report, new, false);
    if (!code) {
        report_settle(&report);
        if (!report_compare(&report, o->fail_under, &changes)) {
            talk_error("out of memory");
            code = COMMAND_INTERNAL;
        }
    }
    if (!code && changes.count == 0) {
        talk_error("nothing to compare: no case of '%s' is in '%s'", old, new);
        code = COMMAND_DATA;
    }
    code = code ? code : print_comparison(o, &changes);
    code = code ? code : say_below(&report, &changes, o->fail_under);
    free(changes.list);
    report_finish(&report);
    return code;
}

static const char compare_about[] = "Compares what two files of `gpurt bench --format json` or "
                                    "jsonl have in common. A share above\n"
                                    "1 is better. A figure is better or worse when the spread of "
                                    "both leaves that; `within` is how\n"
                                    "far the share is known.\n";

int cmd_compare(int argc, char **argv) {
    struct report_options options = {0};
    struct option_list lists[] = {
        OPTION_LIST("Regressions", fail_option),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "compare",
                                .words = "OLD NEW",
                                .about = compare_about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    return main_of(&desc, &options, argc, argv, run_compare);
}
