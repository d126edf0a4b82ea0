// SPDX-License-Identifier: Apache-2.0
// Trainings of `gpurt bench scaling`: the command itself, by mpirun, and the rows of its logs.
//
//     together   mpirun -n N gpurt train ...                          steps of all ranks
//     alone      mpirun -n 1 gpurt train ... : -n 1 gpurt train ...   N of an N-th each, at once,
//                                                                     which do not know each other
//
// In turns, some rounds of both: a machine is not as quick at all times, and an exchange is the
// difference of two times.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "bench_scaling.h"
#include "cli/command.h"
#include "cli/talk.h"
#include "gpurt/config.h"
#include "gpurt/env.h"
#include "gpurt/rollout.h"
#include "train/trainer.h"

#define PPO_BATCHES 4  // of an epoch, unless batch_size says otherwise (runtime/run/ppo_task.c)
#define MOST_SECONDS 3600.0  // of a training: one that hangs does not keep the bench for ever

const struct scaling_kind *scaling_kind_of(const char *name) {
    static const struct scaling_kind kinds[] = {
        {"supervised", SCALING_GRADIENTS, false, 1024, "samples"},
        {"classify", SCALING_GRADIENTS, false, 1024, "samples"},
        {"es", SCALING_RESULTS, true, 64, "directions"},
        {"ppo", SCALING_MINIBATCHES, true, 64, "copies"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

// ---- command lines ----

// Words with the texts that were made for them.
struct line {
    const char **words;
    size_t count, room;
    char (*texts)[640];
    size_t text_count, text_room;
};

static bool line_make(struct line *line, size_t ranks, size_t given) {
    line->room = TRAINER_MPIRUN_WORDS + ranks * (2 * given + 32) + 1;
    line->text_room = ranks * (given + 10);
    line->words = calloc(line->room, sizeof *line->words);
    line->texts = calloc(line->text_room, sizeof *line->texts);
    return (line->words && line->texts) || grt_fail(GRT_NO_MEMORY, "no host memory for a command");
}

static void line_free(struct line *line) {
    free(line->words);
    free(line->texts);
}

static void word(struct line *line, const char *text) {
    if (line->count + 1 < line->room) {
        line->words[line->count++] = text;
    }
}

static const char *text(struct line *line, const char *format, ...) GRT_PRINTF(2, 3);
static const char *text(struct line *line, const char *format, ...) {
    char *into = line->texts[line->text_count++ % line->text_room];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(into, sizeof *line->texts, format, arguments);
    va_end(arguments);
    return into;
}

// One training with this batch, or these directions or copies; its log is FOLDER/NAME.jsonl, with a
// row for `interval` steps.
static void training(const struct scaling_bench *b, struct line *l, uint32_t batch,
                     const char *device, const char *name, int interval) {
    word(l, b->self);
    word(l, "train");
    word(l, b->kind->name);
    word(l, "--backend");
    word(l, b->common.backend);
    if (device && *device) {
        word(l, "--device");
        word(l, device);
    }
    word(l, "--log");
    word(l, text(l, "%s/%s.jsonl", b->folder, name));
    if (b->kind->iterates) {
        bool ppo = b->kind->exchange == SCALING_MINIBATCHES;
        word(l, text(l, "--checkpoint=%s/%s.h5", b->folder, name));
        word(l, text(l, "--iterations=%u", b->steps));
        word(l, text(l, "--evaluate-every=%u", b->steps));
        word(l, text(l, "--%s=%u", ppo ? "num-envs" : "num-dirs", batch));
        word(l, text(l, "--env=%s", b->env));
        if (ppo) {
            word(l, text(l, "--checkpoint-interval=%u", b->steps));
        }
    } else {
        word(l, "--data");
        word(l, b->source.path);
        word(l, text(l, "checkpoint_dir=%s/%s", b->folder, name));
        word(l, text(l, "batch_size=%u", batch));
        word(l, text(l, "max_steps=%u", b->steps));
        word(l, text(l, "log_interval=%d", interval));
        word(l, "epochs=1000000");
        word(l, "cache=ram");
        word(l, "num_workers=1");
    }
    for (size_t i = 0; i < b->word_count; i++) {
        word(l, b->words[i]);
    }
}

// The last thing that a rank said.
static void last_words(const char *said, char why[300]) {
    snprintf(why, 300, "it said nothing");
    for (const char *at = said; at && *at;) {
        size_t length = strcspn(at, "\n");
        if (strncmp(at, "gpurt: ", 7) == 0) {
            size_t skip = strncmp(at + 7, "error: ", 7) == 0 ? 14 : 7;
            snprintf(why, 300, "%.*s", (int)(length - skip), at + skip);
        }
        at += length + (at[length] == '\n');
    }
}

static bool run(const char *what, const struct line *line) {
    char *said = NULL, why[300];
    int code = grt_program_run(line->words, MOST_SECONDS, &said);
    bool good = code == 0;
    if (talk_stopped()) {
        good = false;
    } else if (code == GRT_PROGRAM_NONE) {
        grt_fail(GRT_NO_DEVICE, "several ranks want mpirun, and it cannot be started. Debian: apt "
                                "install openmpi-bin");
    } else if (!good) {
        last_words(said, why);
        grt_fail(code == COMMAND_CONFIG || code == COMMAND_USAGE ? GRT_CONFIG : GRT_IO,
                 "%s ended with %d: %s", what, code, why);
    }
    free(said);
    return good;
}

// ---- logs ----

struct series {
    double seconds[STATS_MAX_SAMPLES];  // of a step, in the order of time
    size_t count;
    double parameters, batch;  // as the first row of the log has them
};

static double field(const json_t *row, const char *key) {
    return json_number_value(json_object_get(row, key));
}

// Seconds of a step that ends a row. Supervised rows of a queued segment are told in one burst, so
// that the time between them is that of the log: their rate shares the segment's time out. A row
// of fewer steps than a whole one has the shorter batch that ends an epoch. Iterations are waited
// for one by one.
static double step_seconds(const json_t *row, double batch, double steps, double passed,
                           int interval) {
    if (json_object_get(row, "samples_per_s")) {
        double rate = field(row, "samples_per_s");
        return rate > 0 && steps == interval ? batch / rate : 0;
    }
    return steps > 0 ? passed / steps : 0;
}

// Rows that follow a row of the same epoch. The first pair still meets new graphs.
static void read_rows(FILE *file, struct series *s, int interval) {
    double step = 0, seconds = 0, epoch = 0;
    bool any = false, first = true;
    char line[4096];
    while (fgets(line, sizeof line, file)) {
        json_t *row = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(row, "event"));
        bool trains = event && strcmp(event, "train") == 0;
        if (event && strcmp(event, "start") == 0) {
            s->parameters = field(row, "parameters");
            s->batch = field(row, "batch");
        }
        double took = step_seconds(row, s->batch, field(row, "step") - step,
                                   field(row, "seconds") - seconds, interval);
        if (trains && any && field(row, "epoch") == epoch && took > 0 &&
            s->count < STATS_MAX_SAMPLES) {
            s->seconds[s->count] = took;
            s->count += !first;
            first = false;
        }
        any = trains;
        step = field(row, "step");
        seconds = field(row, "seconds");
        epoch = field(row, "epoch");
        json_decref(row);
    }
}

static bool read_log(const struct scaling_bench *b, const char *name, struct series *s,
                     int interval) {
    char path[640];
    *s = (struct series){.count = 0};
    snprintf(path, sizeof path, "%s/%s.jsonl", b->folder, name);
    FILE *file = fopen(path, "r");
    if (file) {
        read_rows(file, s, interval);
        fclose(file);
    }
    return s->count >= 2 ||
           grt_fail(GRT_IO, "%s has no steps to time: more are wanted (--steps)", path);
}

// ---- one number of ranks ----

static bool together(struct scaling_bench *b, uint32_t ranks, struct series *s) {
    struct line line = {0};
    char name[32], count[16];
    snprintf(name, sizeof name, "together-%u", ranks);
    snprintf(count, sizeof count, "%u", ranks);
    bool good = line_make(&line, 1, b->word_count);
    if (good) {
        if (ranks > 1) {
            line.count = trainer_ranks_mpirun(line.words);
            word(&line, "-n");
            word(&line, count);
        }
        char device[64];
        bool known = ranks == 1 && trainer_ranks_device(&b->common, 0, device, sizeof device);
        training(b, &line, b->batch,
                 ranks > 1 ? b->common.device
                 : known   ? device
                           : NULL,
                 name, SCALING_CHUNK);
        good = run("the training of all ranks", &line) && read_log(b, name, s, SCALING_CHUNK);
    }
    line_free(&line);
    return good;
}

// Of PPO, the user's words that count over all ranks: a rank's share of them.
static void share_words(const struct scaling_bench *b, struct line *line, uint32_t ranks) {
    static const char *const keys[] = {"batch_size=", "micro_batches="};
    for (size_t i = 0; b->kind->exchange == SCALING_MINIBATCHES && i < b->word_count; i++) {
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            size_t length = strlen(keys[k]);
            unsigned long all = strtoul(b->words[i] + strnlen(b->words[i], length), NULL, 10);
            if (strncmp(b->words[i], keys[k], length) == 0 && all >= ranks) {
                word(line, text(line, "%s%lu", keys[k], all / ranks));
            }
        }
    }
}

// Steps of ranks one behind the other, as many of each as all have: false with the sentence.
static bool read_steps(const struct scaling_bench *b, uint32_t ranks, struct series *s,
                       double *steps, size_t *count) {
    bool good = true;
    *count = STATS_MAX_SAMPLES;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t r = 0; good && r < ranks; r++) {
            char name[32];
            snprintf(name, sizeof name, "alone-%u-%u", ranks, r);
            good = read_log(b, name, s, 1);
            *count = good && s->count < *count ? s->count : *count;
            if (good && pass > 0) {
                memcpy(steps + r * *count, s->seconds, *count * sizeof *steps);
            }
        }
    }
    return good;
}

static bool read_ranks(const struct scaling_bench *b, uint32_t ranks, struct scaling_alone *into) {
    struct series *s = malloc(sizeof *s);
    double *steps = calloc((size_t)ranks * STATS_MAX_SAMPLES, sizeof *steps);
    size_t count = 0;
    bool good = s && steps ? read_steps(b, ranks, s, steps, &count)
                           : grt_fail(GRT_NO_MEMORY, "no host memory for the steps of ranks");
    if (good) {
        size_t chunk = b->kind->iterates ? 1 : SCALING_CHUNK;
        *into = scaling_alone_of(steps, ranks, count, chunk);
    }
    free(steps);
    free(s);
    return good;
}

// A step of the slowest, and what its ranks would wait for each other.
static bool alone(struct scaling_bench *b, uint32_t ranks, struct scaling_alone *into) {
    struct line line = {0};
    char(*devices)[64] = calloc(ranks, sizeof *devices);
    bool good = devices && line_make(&line, ranks, b->word_count);
    line.count = good ? trainer_ranks_mpirun(line.words) : 0;
    for (uint32_t r = 0; good && r < ranks; r++) {
        // Without mpirun's word on how many there are, each is alone. Its steps are those of ranks,
        // one by one, gradients and update apart: what they take longer so is no exchange.
        static const char *const before[] = {
            "-n", "1", "env", "-u", "OMPI_COMM_WORLD_SIZE", "GPURT_AS_RANK=1"};
        if (r > 0) {
            word(&line, ":");
        }
        for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
            word(&line, before[i]);
        }
        trainer_ranks_device(&b->common, r, devices[r], sizeof *devices);
        training(b, &line, b->batch / ranks, devices[r], text(&line, "alone-%u-%u", ranks, r), 1);
        share_words(b, &line, ranks);
    }
    good = good && run("a training without the others", &line) && read_ranks(b, ranks, into);
    line_free(&line);
    free(devices);
    return good;
}

// A whole number among the words for the training, or its fallback; 0 where it is none, which the
// training refuses.
static double given(const struct scaling_bench *b, enum grt_config_key key) {
    const char *value = grt_config_key_fallback(key, GRT_CONFIG_OF_PPO);
    for (size_t i = 0; i < b->word_count; i++) {
        char name[64];
        size_t length = strcspn(b->words[i], "=");
        snprintf(name, sizeof name, "%.*s", (int)length, b->words[i]);
        if (b->words[i][length] && grt_config_key_find(GRT_CONFIG_OF_PPO, name) == key) {
            value = b->words[i] + length + 1;
        }
    }
    return value ? fmax(strtod(value, NULL), 0) : 0;
}

// Exchanges of an iteration of PPO: its epochs and, of the rows of a rank's part, its minibatches.
static double minibatches(const struct scaling_bench *b, uint32_t ranks, double rows) {
    double each = ceil(rows / ranks), size = given(b, GRT_CONFIG_BATCH_SIZE);
    double batch = ceil(size > 0 ? size / ranks : each / PPO_BATCHES);
    return given(b, GRT_CONFIG_UPDATE_EPOCHS) * ceil(each / fmax(batch, 1));
}

// What all directions tell: results, and two sums of each observation, of both sides. A file of the
// user's, which is not read here, counts as cart-pole.
static double es_bytes(const struct scaling_bench *b) {
    const struct grt_env_info *env = grt_env_find(b->env);
    return 4.0 * 2 * (GRT_ROLLOUT_RESULTS + 2.0 * (env ? env->obs : 4)) * b->batch;
}

// Updates that end early exchange less, by what they learn.
static bool can_count(const struct scaling_bench *b) {
    return b->kind->exchange != SCALING_MINIBATCHES || given(b, GRT_CONFIG_TARGET_KL) == 0 ||
           grt_fail(GRT_CONFIG, "target_kl ends updates early, so their exchanges cannot be "
                                "counted before: leave it out here");
}

// What all rounds told. Of several ranks every second sample is fitted to, and the others are what
// is shown.
struct rounds {
    struct series last;
    double halves[2][STATS_MAX_SAMPLES];
    size_t counts[2];
    double alone[SCALING_ROUNDS], wait[SCALING_ROUNDS];
};

static void keep_samples(struct rounds *r, uint32_t ranks) {
    for (size_t i = 0; i < r->last.count; i++) {
        size_t half = ranks > 1 ? i % 2 : 0;
        if (r->counts[half] < STATS_MAX_SAMPLES) {
            r->halves[half][r->counts[half]++] = r->last.seconds[i];
        }
    }
}

static bool run_rounds(struct scaling_bench *b, uint32_t ranks, struct rounds *r) {
    bool good = true;
    for (uint32_t i = 0; good && i < b->rounds; i++) {
        struct scaling_alone a = {0};
        good = together(b, ranks, &r->last) && (ranks == 1 || alone(b, ranks, &a));
        if (good) {
            keep_samples(r, ranks);
            r->alone[i] = a.step;
            r->wait[i] = a.wait;
            scaling_empty(b);
        }
    }
    return good;
}

bool scaling_train(struct scaling_bench *b, struct scaling_row *row) {
    if (!can_count(b)) {
        return false;
    }
    struct rounds *r = calloc(1, sizeof *r);
    if (!r) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for the steps of ranks");
    }
    bool good = run_rounds(b, row->ranks, r);
    if (good) {
        struct stats shown = stats_of(r->halves[0], r->counts[0]);
        row->seconds = row->alone = shown.min;
        row->spread = shown.spread;
        row->samples = (uint32_t)shown.count;
        row->parameters = r->last.parameters;
        bool results = b->kind->exchange == SCALING_RESULTS;
        row->exchanges = b->kind->exchange == SCALING_MINIBATCHES
                             ? minibatches(b, row->ranks, r->last.batch)
                             : 1;
        row->bytes = results ? es_bytes(b) : 4 * row->parameters * row->exchanges;
    }
    if (good && row->ranks > 1) {
        row->alone = stats_of(r->alone, b->rounds).min;
        row->wait = stats_of(r->wait, b->rounds).median;
        good = scaling_predict(b, row);
        double other = stats_of(r->halves[1], r->counts[1]).min;
        row->exchange = fmax(0, row->seconds - row->alone);
        row->fitted_overlap =
            scaling_overlap(other, row->alone + row->wait, scaling_sum(&row->parts));
    }
    // All but the last bucket can be summed while backward still runs.
    bool hides = b->kind->exchange == SCALING_GRADIENTS;
    row->hidden = scaling_hidden(row->alone, row->parts.host + row->parts.network,
                                 hides ? row->overlap * (1 - 1 / scaling_buckets(row->bytes)) : 0);
    row->predicted = row->alone + row->wait + scaling_sum(&row->parts) - row->hidden;
    free(r);
    return good;
}

// ---- the probe ----

static bool probe(struct scaling_bench *b, uint32_t ranks, double bytes, double seconds[4],
                  double *overlap) {
    static const char *const keys[] = {"readback_ms", "host_ms", "network_ms", "upload_ms"};
    struct line line = {0};
    bool good = line_make(&line, 1, 0);
    if (good) {
        line.count = trainer_ranks_mpirun(line.words);
        word(&line, "-n");
        word(&line, text(&line, "%u", ranks));
        word(&line, b->self);
        word(&line, "bench");
        word(&line, "scaling");
        word(&line, text(&line, "--train=%s", b->kind->name));
        word(&line, text(&line, "--probe=%.0f", bytes));
        word(&line, text(&line, "--backend=%s", b->common.backend));
        if (b->common.device) {
            word(&line, "--device");
            word(&line, b->common.device);
        }
        word(&line, "--format=json");
        word(&line, text(&line, "--output=%s/probe.json", b->folder));
        good = run("the exchange alone", &line);
    }
    char path[640];
    snprintf(path, sizeof path, "%s/probe.json", b->folder);
    json_t *object = good ? json_load_file(path, 0, NULL) : NULL;
    const json_t *row = json_array_get(json_object_get(object, "rows"), 0);
    for (int i = 0; i < 4; i++) {
        seconds[i] = field(row, keys[i]) / 1e3;
    }
    *overlap = field(row, "overlap");
    good = good && (row || grt_fail(GRT_IO, "%s has no row", path));
    json_decref(object);
    line_free(&line);
    return good;
}

// Of a quarter and of half the bytes: the whole exchange is foreseen, not measured twice.
bool scaling_predict(struct scaling_bench *b, struct scaling_row *row) {
    double each = row->bytes / row->exchanges;
    double bytes[2] = {fmax(64, each / 4), fmax(128, each / 2)}, seconds[2][4], overlaps[2];
    double *parts[4] = {&row->parts.readback, &row->parts.host, &row->parts.network,
                        &row->parts.upload};
    if (!probe(b, row->ranks, bytes[0], seconds[0], &overlaps[0]) ||
        !probe(b, row->ranks, bytes[1], seconds[1], &overlaps[1])) {
        return false;
    }
    // One bucket has nothing beside it.
    bool both = bytes[0] >= SCALING_BUCKET;
    row->overlap = both ? (overlaps[0] + overlaps[1]) / 2 : overlaps[1];
    for (int i = 0; i < 4; i++) {
        struct scaling_line line = scaling_line_of(bytes, (double[]){seconds[0][i], seconds[1][i]});
        *parts[i] = row->exchanges * scaling_line_at(&line, each);
    }
    if (b->kind->exchange == SCALING_MINIBATCHES) {
        row->parts.readback = row->parts.upload = 0;  // a rank alone makes these copies too
    }
    return true;
}
