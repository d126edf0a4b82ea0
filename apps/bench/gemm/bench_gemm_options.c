// SPDX-License-Identifier: Apache-2.0
// How the options of `gpurt bench gemm` are read.
#include "bench/bench.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk.h"

#define MAX_EXTENT (1u << 24)
#define COUNT(array) (sizeof(array) / sizeof *(array))

// ---- lists of words, each a bit ----

struct words {
    const char *const *names;
    size_t count;
    bool one;  // a single word is wanted
};

// The bit of the word that begins at `text` and has `length` letters, or 0.
static uint32_t bit_of(const struct words *words, const char *text, size_t length) {
    for (size_t i = 0; i < words->count; i++) {
        if (strlen(words->names[i]) == length && memcmp(words->names[i], text, length) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

static bool read_words(const char *text, const struct words *words, void *into,
                       char why[RANGES_WHY]) {
    uint32_t bits = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        uint32_t bit = words->one && at[length] ? 0 : bit_of(words, at, length);
        if (!bit) {
            int n = snprintf(why, RANGES_WHY, "%sknown are", words->one ? "one is wanted, " : "");
            for (size_t i = 0; i < words->count && n > 0 && n < RANGES_WHY; i++) {
                n += snprintf(why + n, (size_t)(RANGES_WHY - n), " %s", words->names[i]);
            }
            return false;
        }
        bits |= bit;
        at += length;
        if (!*at) {
            break;
        }
    }
    *(uint32_t *)into = bits;
    return true;
}

#define X(name, text) text,
static const char *const precision_names[] = {BENCH_GEMM_PRECISIONS(X)};
static const char *const trans_names[] = {BENCH_GEMM_TRANS(X)};
#undef X
static const char *const out_names[] = {"same", "f32"};
static const char *const peer_names[] = {"openblas"};

#define WORD_READER(name, only_one)                                                                \
    static bool read_##name(const char *text, void *into, char why[RANGES_WHY]) {                  \
        return read_words(text, &(struct words){name##_names, COUNT(name##_names), only_one},      \
                          into, why);                                                              \
    }
WORD_READER(precision, false)
WORD_READER(trans, false)
WORD_READER(out, true)
WORD_READER(peer, true)
#undef WORD_READER

// ---- shapes ----

// A number from 1 to MAX_EXTENT; moves `at` past it.
static bool read_extent(const char **at, uint64_t *value) {
    const char *digits = *at;
    *value = 0;
    while (isdigit((unsigned char)**at) && *value <= MAX_EXTENT) {
        *value = *value * 10 + (uint64_t)(*(*at)++ - '0');
    }
    return *at > digits && *value >= 1 && *value <= MAX_EXTENT;
}

// "MxNxK", or "N" for a cube.
static bool read_shape(const char **at, struct bench_gemm_shape *shape) {
    if (!read_extent(at, &shape->m)) {
        return false;
    }
    shape->n = shape->k = shape->m;
    if (**at != 'x') {
        return true;
    }
    ++*at;
    if (!read_extent(at, &shape->n) || **at != 'x') {
        return false;
    }
    ++*at;
    return read_extent(at, &shape->k);
}

// Behind those of an earlier --shape.
static bool read_shapes(const char *text, void *into, char why[RANGES_WHY]) {
    struct bench_gemm_shapes *shapes = into;
    size_t most = shapes->count + 1;
    for (const char *at = text; *at; at++) {
        most += *at == ',';
    }
    struct bench_gemm_shape *values = realloc(shapes->values, most * sizeof *values);
    if (!values) {
        snprintf(why, RANGES_WHY, "out of memory");
        return false;
    }
    shapes->values = values;
    for (const char *at = text;; at++) {
        const char *begin = at;
        struct bench_gemm_shape *shape = &values[shapes->count++];
        *shape = (struct bench_gemm_shape){0};
        if (!read_shape(&at, shape) || (*at && *at != ',')) {
            snprintf(why, RANGES_WHY,
                     "at character %td: MxNxK is wanted, as in 4096x4096x64, or N for NxNxN, each "
                     "from 1 to %u",
                     begin - text + 1, MAX_EXTENT);
            return false;
        }
        if (!*at) {
            return true;
        }
    }
}

static bool read_batches(const char *text, void *into, char why[RANGES_WHY]) {
    ranges_destroy(into);
    return ranges_parse(text, &(struct ranges_rule){.min = 1, .max = MAX_EXTENT}, into, why);
}

static bool read_variants(const char *text, void *into, char why[RANGES_WHY]) {
    *(const char **)into = text;
    if (*text && !strstr(text, ",,") && *text != ',' && text[strlen(text) - 1] != ',') {
        return true;
    }
    snprintf(why, RANGES_WHY, "auto, all, or names with commas between");
    return false;
}

#define AT(field) offsetof(struct bench, gemm.field)

const struct option_row bench_gemm_options[7] = {
    {.name = "shape",
     .value = "MxNxK,...",
     .help = "shapes, N for NxNxN; may be repeated (default: by device)",
     .read = read_shapes,
     .at = AT(shapes),
     .each = true},
    {.name = "batch-count",
     .value = "LIST",
     .help = "products of one batch",
     .fallback = "1",
     .read = read_batches,
     .at = AT(batches)},
    {.name = "precision",
     .value = "f32,f16,bf16",
     .help = "types of the operands (default: by device)",
     .read = read_precision,
     .at = AT(precisions)},
    {.name = "trans",
     .value = "nn,nt,tn,tt",
     .help = "which operands are stored transposed",
     .fallback = "nn",
     .read = read_trans,
     .at = AT(trans)},
    {.name = "out",
     .value = "same|f32",
     .help = "type of the result",
     .fallback = "same",
     .read = read_out,
     .at = AT(out)},
    {.name = "variant",
     .value = "auto|all|NAME,...",
     .help = "the best kernel, every one, or these",
     .fallback = "auto",
     .read = read_variants,
     .at = AT(variants)},
    {.name = "peer",
     .value = "openblas",
     .help = "measure it in turns on this CPU, f32",
     .read = read_peer,
     .at = AT(peer)},
};

void bench_gemm_options_end(struct bench_gemm_options *options) {
    free(options->shapes.values);
    ranges_destroy(&options->batches);
    *options = (struct bench_gemm_options){0};
}

bool bench_gemm_defaults(struct bench_gemm_options *options, bool software, bool quick) {
    static const char *const shapes[2][2] = {{"1024,2048,4096,8192", "4096"}, {"512,1024", "512"}};
    char why[RANGES_WHY];
    if (!options->precisions) {
        options->precisions = software ? 1 : 3;  // f32; f32 and f16
    }
    if (options->shapes.count || read_shapes(shapes[software][quick], &options->shapes, why)) {
        return true;
    }
    talk_error("%s", why);
    return false;
}
