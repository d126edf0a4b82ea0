// SPDX-License-Identifier: Apache-2.0
// The host's reading of what it shares with kernels: structs of push constants, and the numbers of
// words in buffers. Files *params.k, *words.k and *limits.k hold nothing else, so that both sides
// are compiled from one text. The host fills the structs in by the names of their members, never by
// place.
#ifndef GRT_SHADERS_HOST_H
#define GRT_SHADERS_HOST_H

#include <stdint.h>

typedef uint32_t uint;

#define STRUCT(name)                                                                               \
    typedef struct name name;                                                                      \
    struct name

#endif
