// SPDX-License-Identifier: Apache-2.0
// Cards by their published numbers: a list that comes with gpurt (cards.json), and files of the
// user's behind it. A file comes from anywhere: its size, count and every number are bounded, keys
// that are not known or stand twice are refused, and what is wrong is one sentence with the place.
#ifndef APPS_ESTIMATE_CARD_H
#define APPS_ESTIMATE_CARD_H

#include <stdbool.h>
#include <stddef.h>

#define CARD_MAX 200
#define CARD_MAX_FILE (1u << 20)
#define CARD_WHY 300

struct card {
    const char *id;      // "a100"; first: see grt_closest()
    const char *name;    // as its driver says it: "NVIDIA A100-SXM4-80GB"
    const char *vendor;  // "nvidia"
    const char *source;  // the documents that its numbers are of
    double units;        // compute units: SM, CU, Xe core
    double clock;        // Hz
    double plain;        // FLOP/s in f32, outside matrix units
    double matrix;       // FLOP/s in f16 with sums in f32; 0: it has no matrix units
    double bandwidth;    // B/s of its memory
    double memory;       // B
};

struct cards {
    struct card *list;
    size_t count;
    void **texts;  // that the cards' texts are in
    size_t text_count;
};

void cards_init(struct cards *cards);
void cards_finish(struct cards *cards);
// Adds the cards of a text; one with the id of another takes its place. False with what is wrong in
// `why`; then none was added.
bool cards_read(struct cards *cards, const char *text, size_t size, char why[CARD_WHY]);
// NULL: there is none.
const struct card *cards_find(const struct cards *cards, const char *id);
// The one with this name of a device, whatever the driver has beside letters and digits, or in
// parentheses; NULL: there is none.
const struct card *cards_named(const struct cards *cards, const char *name);

#endif
