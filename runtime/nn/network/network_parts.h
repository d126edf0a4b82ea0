// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: what reads a list of layers shares.
#ifndef GRT_NN_NETWORK_PARTS_H
#define GRT_NN_NETWORK_PARTS_H

#include "gpurt/network.h"
#include "config/tree.h"

#define NETWORK_MOST_WIDTH 1048576
#define NETWORK_MOST_WINDOW 1024

struct network_reading {
    const struct grt_network_desc *desc;
    struct grt_tree_source source;
    uint32_t made;
    bool inside;  // a layer stands before: what comes in here is no sample
    bool whole;   // a layer takes samples with all their inputs
    bool taken[GRT_NETWORK_INPUTS];
    uint32_t line, column;  // of the first layer `input`
};

// Where the text of a desc is from, by its name or else this one.
struct grt_tree_source network_source(const struct grt_network_desc *desc, const char *otherwise);
// Says the place and what is wrong; NULL, for whoever makes a module.
struct grt_module *network_wrong(const struct network_reading *r, const struct grt_node *at,
                                 const char *format, ...) GRT_PRINTF(3, 4);
// A whole number from 1 on.
bool network_whole(const struct network_reading *r, const struct grt_node *value, const char *what,
                   uint32_t most, uint32_t *whole);
// The width of a layer: a number, or `out`.
bool network_width(const struct network_reading *r, const struct grt_node *value, const char *what,
                   uint32_t *width);
// The number of a word in a list of texts, or -1 with the sentence said.
int network_word(const struct network_reading *r, const struct grt_node *value, const char *what,
                 const char *const *words, uint32_t count);
// The value of a key of a map, or NULL.
const struct grt_node *network_entry(const struct grt_node *map, const char *key);
// Whether a map has no other keys than these, ended by NULL; false with the sentence said.
bool network_only(const struct network_reading *r, const struct grt_node *map, const char *what,
                  const char *const *keys);
// A flag, a number from `least` on, or a share from 0 to below 1 under a key, or as it was without
// the key.
bool network_flag(const struct network_reading *r, const struct grt_node *map, const char *key,
                  bool *flag);
bool network_number(const struct network_reading *r, const struct grt_node *map, const char *key,
                    uint32_t least, uint32_t *number);
bool network_share(const struct network_reading *r, const struct grt_node *value, const char *what,
                   double *share);

// Networks by name (network_named.c): NULL where `name` is none, *known false then.
struct grt_module *network_named(struct network_reading *r, const char *name,
                                 const struct grt_node *value, bool *known);
// Their names, in turn; NULL behind the last.
const char *network_name(uint32_t i);

#endif
