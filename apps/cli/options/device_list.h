// SPDX-License-Identifier: Apache-2.0
// Several devices as people write them: "vulkan:0,vulkan:1".
#ifndef APPS_DEVICE_LIST_H
#define APPS_DEVICE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How many devices a list names. A comma within parentheses is part of a name.
uint32_t devices_count(const char *list);
// Whether every word of a list says something; false with the sentence said.
bool devices_named(const char *list);
// The i-th of them, which begin anew behind the last.
void devices_word(const char *list, uint32_t i, char *word, size_t size);

#endif
