// SPDX-License-Identifier: Apache-2.0
// Machines with GPUs and what lies between them, by published numbers: a list that comes with gpurt
// (links.json), and a file of the user's in its place. A file comes from anywhere: see card.h.
#ifndef APPS_ESTIMATE_LINK_H
#define APPS_ESTIMATE_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "card.h"

#define LINK_MAX 64

struct link {
    const char *id;  // "pcie4-100gbe"; first: see grt_closest()
    const char *name;
    const char *source;
    double gpus;     // of a machine
    double copy;     // B/s between a GPU and its host, each way
    double memory;   // B/s of the host's memory
    double network;  // B/s of all ports of a machine, each way
    double latency;  // s of a message between machines
};

struct links {
    struct link list[LINK_MAX];
    size_t count;
    void *text;  // that the links' texts are in
};

extern const char *const estimate_links;  // made by the build: links.json

// False with what is wrong in `why`.
bool links_read(struct links *links, const char *text, size_t size, char why[CARD_WHY]);
void links_finish(struct links *links);

#endif
