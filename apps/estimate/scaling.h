// SPDX-License-Identifier: Apache-2.0
// What an exchange between ranks takes, as gpurt makes it (runtime/comm): every rank reads its
// gradients back, gives slices of them to the others, sums its own slice of all, gathers the sums,
// and sends them to its device. Results of evolution strategies are gathered alone.
//
//     readback = latency + bytes / rate                        device to host, and upload back
//     host     = bytes / rate                                  reads and writes of the host
//     network  = latency + bytes / rate                        slices to all, sums from all
//     wait     for the slowest rank of each step, where steps were measured
//     step     = compute + wait + readback + host + network + upload
#ifndef APPS_ESTIMATE_SCALING_H
#define APPS_ESTIMATE_SCALING_H

#include <stdbool.h>
#include <stddef.h>

#include "link.h"

// Time as a straight line over bytes.
struct scaling_line {
    double latency;  // s
    double rate;     // B/s
};
double scaling_line_at(const struct scaling_line *line, double bytes);
// The line through two points, times of two sizes. What is measured may say that more bytes take
// less time: then the latency is 0 and the rate that of the second.
struct scaling_line scaling_line_of(const double bytes[2], const double seconds[2]);

struct scaling_parts {
    double readback, host, network, upload;  // s
};
double scaling_sum(const struct scaling_parts *parts);
// How much of an exchange was hidden, from 0 to 1: `alone` is what it takes by itself.
double scaling_overlap(double step, double compute, double alone);

// ---- steps of ranks that ran at once and did not wait for each other ----

struct scaling_alone {
    double step;  // s, of the slowest rank
    double wait;  // s, that a step takes longer where all wait for the slowest of each step
};
// Of the quickest `chunk` steps in a row of each, as other work of a machine only adds.
// steps[rank * count + i]; of fewer than a chunk, all.
struct scaling_alone scaling_alone_of(const double *steps, size_t ranks, size_t count,
                                      size_t chunk);

// ---- machines that are not here ----

// Shares of published rates. Copies: 51.3 and 52.5 GB/s of PCIe's 63 on an H200 (2026-11-15); the
// others are assumed.
#define SCALING_COPY_SHARE 0.82
#define SCALING_MEMORY_SHARE 0.5
#define SCALING_NETWORK_SHARE 0.8
#define SCALING_INNER_LATENCY 1e-6  // of a message within a machine
#define SCALING_BACKWARD (2.0 / 3)  // of a step: no more of an exchange than that is hidden

// Gradients are exchanged in so many pieces of so many bytes (runtime/learn/share.c).
#define SCALING_BUCKET (4.0 * 1048576)
#define SCALING_BUCKETS 24
double scaling_buckets(double bytes);

// Sums of `bytes` of every one of `gpus` GPUs, a power of two, in so many pieces, by the exchange
// of runtime/comm; `passes` are those of the caller over the bytes on the host, besides.
//
//     copy     bytes / copy rate, twice
// N GPUs of one machine, in memory that they share:
//     host     of all: reads the bytes, writes them into a box, reads two boxes and writes the sum,
//              5 passes; more than two ranks also write their slice into the box, 1 / N
//     network  waits for all, one for every MiB, and two where there are more than two
// of several machines, which know nothing of who is near:
//     host     of all GPUs of a machine: 3 passes over what is added up, (N - 1) / N, 2 over the
//              own slice, 1 / N, 2 over the sums
//     network  (N - 1 + log2 N) messages a piece, and twice the slices of others: of G GPUs of a
//              machine (G - 1) / N by the memory, read and written, and (N - G) / N by the network
struct scaling_parts scaling_cluster_sum(const struct link *link, double gpus, double bytes,
                                         double pieces, double passes);
// Every GPU gets the `bytes` of all others.
struct scaling_parts scaling_cluster_gather(const struct link *link, double gpus, double bytes);
// Seconds of an exchange behind backward.
double scaling_hidden(double compute, double exchange, double overlap);

// ---- shares ----

// Of N ranks that share one step out: 1 where N take an N-th of the time.
double scaling_efficiency(double one, double several, double ranks);

#endif
