// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: threads that work for a call or an object, and the turn at the HDF5 library.
#ifndef GRT_THREAD_H
#define GRT_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Signals are for the program's own threads: this one gets none but SIGBUS, whose handler belongs
// to the mapping of data (map.c). False where the system refuses a thread.
bool grt_thread_start(pthread_t *thread, void *(*fn)(void *), void *context);

// Cuts `count` items into a part for each core, none smaller than `least`, calls part() for each at
// the same time, and comes back when all are done. What gets no thread is done by the caller's.
void grt_thread_share(uint64_t count, uint64_t least,
                      void (*part)(void *context, uint64_t first, uint64_t count), void *context);

// HDF5 may be built without locks of its own, and a run's writer calls it beside the program's
// threads. A thread may enter again; fork() waits until nobody is inside, and a child is not.
void grt_hdf5_enter(void);
void grt_hdf5_leave(void);

#endif
