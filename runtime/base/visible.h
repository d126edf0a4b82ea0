// SPDX-License-Identifier: Apache-2.0
// Text of unknown origin (names in files, values, drivers' words, arguments) for a terminal or a
// table: what would act on a terminal instead of being seen there is written as \xNN.
#ifndef GRT_VISIBLE_H
#define GRT_VISIBLE_H

#include <stddef.h>

#include "gpurt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Puts `text` into `into`, cut at a whole character where it does not fit, and returns its length.
// UTF-8 stays as it is; control characters (of C0, DEL and C1, newline too), those that end a line
// or turn its direction, and bytes that are no UTF-8 do not. What is visible already does not
// change.
size_t grt_visible(const char *text, char *into, size_t capacity);

// Columns that a text takes on a terminal, whatever the locale: East Asian wide characters and
// pictures two, combining marks none. A byte that is no UTF-8 counts as one.
size_t grt_visible_width(const char *text);
// Bytes of the longest beginning that takes at most so many columns, with the marks that belong to
// its last character; *used (may be NULL) the columns that it takes, one less where a wide
// character does not fit.
size_t grt_visible_fit(const char *text, size_t columns, size_t *used);

#ifdef __cplusplus
}
#endif
#endif
