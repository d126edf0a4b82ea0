// SPDX-License-Identifier: Apache-2.0
// Counts what gpurt and its tests allocate, and refuses one of them where a test asks for it: the
// linker turns their calls, and not those of drivers, to these functions (--wrap, see
// CMakeLists.txt).
#include <stdatomic.h>
#include <stdlib.h>

#include "harness.h"

static atomic_ullong count;
static atomic_ullong refused;  // the count that is refused; 0: none

uint64_t test_allocations(void) {
    return count;
}

void test_refuse_allocation(uint64_t from_now) {
    refused = from_now > 0 ? count + from_now : 0;
}

static bool is_refused(void) {
    return ++count == refused;
}

// The linker's names.
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size) {
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t items, size_t size) {
    return is_refused() ? NULL : __real_calloc(items, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return is_refused() ? NULL : __real_realloc(memory, size);
}
