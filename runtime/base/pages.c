// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE  // madvise
#include "pages.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096u
#define HUGE_PAGE (2u << 20)

void *grt_pages_alloc(uint64_t bytes) {
    uint64_t page = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
    uint64_t size = bytes <= SIZE_MAX - page ? (bytes + page - 1) / page * page : 0;
    void *memory = size > 0 ? aligned_alloc(page, size) : NULL;
    if (memory && page == HUGE_PAGE) {
        madvise(memory, size, MADV_HUGEPAGE);
    }
    return memory;
}
