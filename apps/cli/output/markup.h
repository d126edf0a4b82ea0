// SPDX-License-Identifier: Apache-2.0
#ifndef APPS_MARKUP_H
#define APPS_MARKUP_H

#include <stdio.h>

// Text from anywhere that never becomes markup of HTML or SVG, as text or inside "".
void markup_text(FILE *file, const char *text);

#endif
