// SPDX-License-Identifier: Apache-2.0
// Counts what gpurt and its tests allocate: the linker turns their calls, and not those of drivers,
// to these functions (--wrap, see CMakeLists.txt).
#include <stdatomic.h>
#include <stdlib.h>

#include "harness.h"

static atomic_ullong count;

uint64_t test_allocations(void) {
    return count;
}

// The linker's names.
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size) {
    count++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t items, size_t size) {
    count++;
    return __real_calloc(items, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    count++;
    return __real_realloc(memory, size);
}
