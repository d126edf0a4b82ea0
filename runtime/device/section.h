// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: what the commands of a graph are for, as traces tell it (gpurt/timeline.h).
#ifndef GRT_SECTION_H
#define GRT_SECTION_H

struct grt_graph;

// What is recorded from here on stands under this name, as the commands of a phase do, and those
// before the first name under the graph's label. No barrier, no time of its own: it costs nothing.
// 31 bytes of a name count.
void grt_graph_section(struct grt_graph *graph, const char *name);

#endif
