// SPDX-License-Identifier: Apache-2.0
// szip by the library that HDF5 itself has it from, opened when a file first wants it: gpurt is
// built and runs without.
//
//     a chunk   bytes before packing, u32 little-endian | what SZ_BufftoBuffDecompress() takes
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "filter.h"

// As the library's header has it.
struct szip_desc {
    int options, bits_per_pixel, pixels_per_block, pixels_per_line;
};
typedef int szip_fn(void *to, size_t *to_size, const void *from, size_t from_size,
                    struct szip_desc *desc);

enum { OPTIONS, BLOCK, BITS, LINE };  // of grt_array.szip

static pthread_once_t once = PTHREAD_ONCE_INIT;
static szip_fn *unpack;

static void find_library(void) {
    static const char *const names[] = {"libsz.so.2", "libsz.so"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    void *symbol = library ? dlsym(library, "SZ_BufftoBuffDecompress") : NULL;
    memcpy(&unpack, &symbol, sizeof unpack);
}

bool grt_filter_szip_found(void) {
    pthread_once(&once, find_library);
    return unpack != NULL;
}

bool grt_filter_szip_usable(const unsigned szip[4]) {
    bool bits = (szip[BITS] >= 1 && szip[BITS] <= 24) || szip[BITS] == 32 || szip[BITS] == 64;
    return grt_filter_szip_found() && bits && szip[BLOCK] >= 2 && szip[BLOCK] <= 32 &&
           szip[BLOCK] % 2 == 0 && szip[LINE] >= 1 && szip[LINE] <= 32 * 128;
}

bool grt_filter_szip(const struct grt_array *array, const unsigned char *in, uint64_t in_size,
                     unsigned char *out, struct grt_fault *fault) {
    size_t size = array->tile_bytes;
    struct szip_desc desc = {(int)array->szip[OPTIONS], (int)array->szip[BITS],
                             (int)array->szip[BLOCK], (int)array->szip[LINE]};
    uint64_t said = 0;
    for (uint32_t i = 0; i < 4 && i < in_size; i++) {
        said |= (uint64_t)in[i] << 8 * i;
    }
    bool good = in_size > 4 && said == size && grt_filter_szip_usable(array->szip) &&
                unpack(out, &size, in + 4, in_size - 4, &desc) == 0 && size == array->tile_bytes;
    return good || grt_fault(fault, GRT_BAD_DATA,
                             "a chunk of '%s' is damaged: szip does not take it", array->name);
}
