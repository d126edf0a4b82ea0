// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: memory in large pages where the system has them. Each page that a processor has to
// look up costs as much as a row of 100 bytes.
#ifndef GRT_PAGES_H
#define GRT_PAGES_H

#include <stdint.h>

// Aligned to a page, one of the large ones where there is one to fill; not zeros. NULL without a
// word where there is no such memory. Freed by free().
void *grt_pages_alloc(uint64_t bytes);

#endif
