// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: a short text of YAML as a tree, each node with its place in the file that the text
// is from.
#ifndef GRT_CONFIG_TREE_H
#define GRT_CONFIG_TREE_H

#include <stddef.h>

#include "gpurt/config.h"

enum grt_node_kind { GRT_NODE_TEXT, GRT_NODE_LIST, GRT_NODE_MAP };

struct grt_node {
    enum grt_node_kind kind;
    uint32_t line, column;   // from 1
    char *text;              // of a text, or the key of a map's entry
    struct grt_node *first;  // entry of a list or a map; an entry of a map has its key in `text`,
                             // and its value is `first`
    struct grt_node *next;   // entry behind this one
};

// Where a text is from.
struct grt_tree_source {
    const char *path;       // of the file; NULL: of none
    const char *name;       // what the text is called where it is of no file
    uint32_t line, column;  // where it begins there, from 1; 0 means 1
    bool whole;             // it was written in other words there: only its beginning is known
};
// The place of a node for messages: "run.yaml:3:5: ", or "model at character 5: ".
void grt_tree_where(const struct grt_tree_source *source, uint32_t line, uint32_t column,
                    char *text, size_t size);
// NULL with the place and what is wrong said.
struct grt_node *grt_tree_create(const struct grt_tree_source *source, const char *text);
void grt_tree_destroy(struct grt_node **tree);
// The tree in one line; the length that it has, as snprintf gives it.
size_t grt_tree_text(const struct grt_node *tree, char *text, size_t capacity);

// YAML 1.1's words for true (1) and false (0), which PyYAML takes, in any case; -1: it is none.
int grt_flag_of(const char *text);

#endif
