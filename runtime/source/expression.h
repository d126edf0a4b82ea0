// SPDX-License-Identifier: Apache-2.0
// Constant expressions of C, as #if and the lists of the dialect have them: numbers, names,
// arithmetic, comparison, logic, ?:.
#ifndef GRT_EXPRESSION_H
#define GRT_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

// The value of a name; false when there is none.
typedef bool grt_expression_name_fn(void *context, const char *name, size_t length, double *value);

// False when the text is no expression; `why` (128 bytes) then says what stands in the way. A
// quotient of two whole numbers is cut to a whole one.
bool grt_expression(const char *text, grt_expression_name_fn *name, void *context, double *value,
                    char *why);

#endif
