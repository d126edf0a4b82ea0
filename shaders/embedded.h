// SPDX-License-Identifier: Apache-2.0
// Sources of the dialect as text, for what is compiled at run time: the preludes of the readings,
// the libraries and the kernels that use environments. shaders/kernels.cmake lists them.
#ifndef GRT_SHADERS_EMBEDDED_H
#define GRT_SHADERS_EMBEDDED_H

struct grt_embedded {
    const char *path;  // in the tree: "shaders/lib/math.k"; NULL ends the table
    const char *text;
};

extern const struct grt_embedded grt_embedded[];

#endif
