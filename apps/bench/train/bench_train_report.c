// SPDX-License-Identifier: Apache-2.0
// The end of `gpurt bench train`: summary and advice, for people or as members of the JSON report.
#include <stdio.h>

#include "bench_train.h"
#include "cli/talk.h"

static void print_choice(FILE *file, const char *title, const struct train_row *row,
                         const char *more) {
    fprintf(file, "%s\n", title);
    if (!row) {
        fputs("  none\n", file);
        return;
    }
    fprintf(file, "  batch size       %u\n  workers          %u\n  precision        %s\n",
            row->batch, row->workers, grt_dtype_text(row->precision));
    fprintf(file, "  pin memory       %s\n  data             %s\n", row->pin ? "on" : "off",
            row->cache == GRT_CACHE_DEVICE ? "on the device"
            : row->cache == GRT_CACHE_RAM  ? "in memory"
                                           : "in the file");
    fprintf(file, "  throughput       %.0f samples/s\n", row->rate);
    char size[TABLE_TEXT_SIZE];
    table_bytes_text(row->memory, size);
    fprintf(file, "  device memory    %.20s%s\n", size, more);
}

static void print_text(const struct train_bench *bench, const struct train_summary *s,
                       const struct train_advice *advice) {
    FILE *file = bench->table.desc.output->file;
    char more[64] = "";
    uint64_t memory = train_memory(bench);
    bool md = bench->common.format == TABLE_MD;
    const char *fence = md ? "```\n" : "";
    fprintf(file, "\n%s", fence);
    print_choice(file, "Highest throughput", s->fastest, "");
    if (s->efficient) {
        snprintf(more, sizeof more, ", %.0f samples/s per GB", train_efficiency(s->efficient));
    }
    print_choice(file, "Best efficiency", s->efficient, more);
    if (s->recommended && memory > 0) {
        snprintf(more, sizeof more, " (%.1f%%)",
                 100 * (double)s->recommended->memory / (double)memory);
    }
    print_choice(file, "Recommended for training", s->recommended, memory > 0 ? more : "");
    fprintf(file, "%s\n", fence);
    for (size_t i = 0; i < advice->count; i++) {
        output_line(file, "%s%s", md ? "- " : "* ", advice->texts[i]);
    }
    fputs("\n", file);
    output_line(file, "Next: %s%s%s", md ? "`" : "", advice->next, md ? "`" : "");
    if (bench->source.synthetic) {
        fputs("Data: synthetic; with --data FILE the numbers are those of your own.\n", file);
    }
}

static json_t *choice_json(const struct train_row *row) {
    return row ? json_pack("{s:i, s:i, s:s, s:b, s:s, s:f, s:I, s:f, s:f}", "batch",
                           (int)row->batch, "workers", (int)row->workers, "precision",
                           grt_dtype_text(row->precision), "pin_memory", row->pin, "cache",
                           grt_cache_text(row->cache), "samples_per_s", row->rate, "memory_bytes",
                           (json_int_t)row->memory, "samples_per_s_per_gb", train_efficiency(row),
                           "device_busy", row->busy)
               : json_null();
}

bool train_report(struct train_bench *bench, const struct train_summary *s) {
    struct train_advice advice;
    train_advise(bench, s, &advice);
    json_t *texts = json_array();
    for (size_t i = 0; i < advice.count; i++) {
        json_array_append_new(texts, json_string(advice.texts[i]));
    }
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o, s:s, s:b, s:b}", "highest_throughput",
                  choice_json(s->fastest), "best_efficiency", choice_json(s->efficient),
                  "recommended", choice_json(s->recommended), "advice", texts, "next", advice.next,
                  "synthetic", bench->source.synthetic, "interrupted", talk_stopped());
    enum table_format format = bench->common.format;
    if (format == TABLE_PLAIN || format == TABLE_MD) {
        print_text(bench, s, &advice);
    }
    return table_note(&bench->table, "summary", json);
}
