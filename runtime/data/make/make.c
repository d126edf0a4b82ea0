// SPDX-License-Identifier: Apache-2.0
// Making data whose answer is known.
//
//     regression      y = sum_k s_k tanh(w_k . x) / 2 + noise, 4 directions w_k of length 1
//     points          the same, the mean of it over the points of a sample, which lie around a
//                     centre
//     classification  x = centre of its class + noise; with classes of equal size and round noise
//                     the nearest centre is the best guess, so rows nearest to another are the
//                     floor
//     shapes          images, make_shapes.c
#include "gpurt/make.h"

#include <errno.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/whole_file.h"
#include "data/file/hdf5_put.h"
#include "make_parts.h"

#define DIRECTIONS 4
#define BLOCK_BYTES (4u << 20)  // rows made and written at once

const char *grt_make_text(enum grt_make make) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_MAKES(X)
#undef X
    };
    return (unsigned)make < GRT_MAKE_COUNT ? texts[make] : "unknown kind of data";
}

// ---- random numbers ----

static uint64_t next_bits(struct grt_make_source *source) {
    uint64_t x = source->state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

double grt_make_uniform(struct grt_make_source *source) {
    return ((double)(next_bits(source) >> 11) + 0.5) * 0x1p-53;
}

double grt_make_normal(struct grt_make_source *source) {
    source->has_spare = !source->has_spare;
    if (!source->has_spare) {
        return source->spare;
    }
    double radius = sqrt(-2.0 * log(grt_make_uniform(source)));
    double angle = 6.283185307179586 * grt_make_uniform(source);
    source->spare = radius * sin(angle);
    return radius * cos(angle);
}

struct grt_make_source grt_make_source(uint64_t seed, uint64_t row) {
    struct grt_make_source source = {.state = seed};
    source.state = next_bits(&source) + row * 0xd1342543de82ef95u;
    return source;
}

// ---- rows ----

struct making {
    struct grt_make_desc desc;  // defaults filled in
    uint64_t width;             // numbers of a row's x
    uint32_t size;              // bytes of one
    double *directions;         // [DIRECTIONS][features], or [classes][features] centres
    double signs[DIRECTIONS];
    uint64_t missed;  // classification: rows nearest to another centre
};

static double teach(const struct making *m, const float *x) {
    double sum = 0;
    for (int k = 0; k < DIRECTIONS; k++) {
        double dot = 0;
        for (uint32_t i = 0; i < m->desc.features; i++) {
            dot += m->directions[(size_t)k * m->desc.features + i] * x[i];
        }
        sum += m->signs[k] * tanh(dot);
    }
    return sum / 2;
}

static uint32_t nearest(const struct making *m, const float *x) {
    double best = INFINITY;
    uint32_t found = 0;
    for (uint32_t c = 0; c < m->desc.classes; c++) {
        double distance = 0;
        for (uint32_t i = 0; i < m->desc.features; i++) {
            double d = x[i] - m->directions[(size_t)c * m->desc.features + i];
            distance += d * d;
        }
        found = distance < best ? c : found;
        best = distance < best ? distance : best;
    }
    return found;
}

static void make_row(struct making *m, uint64_t row, void *into, void *y) {
    const struct grt_make_desc *d = &m->desc;
    struct grt_make_source source = grt_make_source(d->seed, row + 1);
    float *x = into;
    if (d->make == GRT_MAKE_SHAPES) {
        int32_t class = (int32_t)(grt_make_uniform(&source) * d->classes);
        grt_make_shape(&source, (uint32_t) class, d->pixels, d->noise, into);
        memcpy(y, &class, sizeof class);
        return;
    }
    if (d->make == GRT_MAKE_CLASSIFICATION) {
        int32_t class = (int32_t)(grt_make_uniform(&source) * d->classes);
        const double *centre = m->directions + (size_t) class * d->features;
        for (uint32_t i = 0; i < d->features; i++) {
            x[i] = (float)(centre[i] + d->noise * grt_make_normal(&source));
        }
        m->missed += nearest(m, x) != (uint32_t) class;
        memcpy(y, &class, sizeof class);
        return;
    }
    double sum = 0;
    uint32_t points = d->make == GRT_MAKE_POINTS ? d->points : 1;
    for (uint32_t p = 0; p < points; p++) {
        float *at = x + (size_t)p * d->features;
        struct grt_make_source centre = grt_make_source(d->seed ^ 0x5bd1e995u, row + 1);
        for (uint32_t i = 0; i < d->features; i++) {
            at[i] =
                (float)(points == 1 ? grt_make_normal(&source)
                                    : grt_make_normal(&centre) + 0.5 * grt_make_normal(&source));
        }
        sum += teach(m, at);
    }
    float value = (float)(sum / points + d->noise * grt_make_normal(&source));
    memcpy(y, &value, sizeof value);
}

// Directions have length 1; centres are normal in each feature.
static void draw_answer(struct making *m) {
    struct grt_make_source source = grt_make_source(m->desc.seed, 0);
    bool classes = m->desc.make == GRT_MAKE_CLASSIFICATION;
    uint32_t count = classes ? m->desc.classes : DIRECTIONS;
    for (uint32_t k = 0; k < count; k++) {
        double *w = m->directions + (size_t)k * m->desc.features, square = 0;
        for (uint32_t i = 0; i < m->desc.features; i++) {
            w[i] = grt_make_normal(&source);
            square += w[i] * w[i];
        }
        for (uint32_t i = 0; !classes && i < m->desc.features; i++) {
            w[i] /= sqrt(square);
        }
    }
    for (int k = 0; k < DIRECTIONS; k++) {
        m->signs[k] = k % 2 == 0 ? 1.0 : -1.0;
    }
}

// ---- the file ----

static bool has_classes(const struct grt_make_desc *d) {
    return d->make == GRT_MAKE_CLASSIFICATION || d->make == GRT_MAKE_SHAPES;
}

// Of shapes nobody knows the floor.
static bool put_attributes(hid_t file, const struct making *m) {
    const struct grt_make_desc *d = &m->desc;
    bool shapes = d->make == GRT_MAKE_SHAPES;
    double floor = d->make == GRT_MAKE_CLASSIFICATION ? (double)m->missed / (double)d->samples
                                                      : d->noise * d->noise;
    return grt_attribute_put_text(file, "gpurt_make", grt_make_text(d->make)) &&
           grt_attribute_put(file, "seed", H5T_NATIVE_UINT64, &d->seed) &&
           grt_attribute_put(file, "noise", H5T_NATIVE_DOUBLE, &d->noise) &&
           (shapes || grt_attribute_put(file, "noise_floor", H5T_NATIVE_DOUBLE, &floor)) &&
           (!has_classes(d) ||
            grt_attribute_put(file, "classes", H5T_NATIVE_UINT32, &d->classes)) &&
           (!shapes ||
            grt_attribute_put_texts(file, "class_names", grt_make_shape_names, d->classes, NULL));
}

static hid_t create_set(hid_t file, const char *name, hid_t type, int rank, const hsize_t *shape,
                        const struct grt_make_desc *d) {
    hid_t space = H5Screate_simple(rank, shape, NULL);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (d->chunk > 0) {
        hsize_t chunk[4] = {d->chunk < d->samples ? d->chunk : d->samples, shape[1], shape[2],
                            shape[3]};
        H5Pset_chunk(creation, rank, chunk);
        if (d->deflate > 0) {
            H5Pset_shuffle(creation);
            H5Pset_deflate(creation, d->deflate);
        }
    }
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Pclose(creation);
    H5Sclose(space);
    return set;
}

// Whole chunks at a time: a chunk written twice is compressed twice.
static uint64_t block_rows(const struct making *m) {
    uint64_t rows = BLOCK_BYTES / (m->width * m->size),
             chunk = m->desc.chunk > 0 ? m->desc.chunk : 1;
    rows = rows < chunk ? chunk : rows - rows % chunk;
    return rows < m->desc.samples ? rows : m->desc.samples;
}

static bool write_sets(hid_t file, struct making *m, bool *stopped) {
    const struct grt_make_desc *d = &m->desc;
    bool points = d->make == GRT_MAKE_POINTS, shapes = d->make == GRT_MAKE_SHAPES;
    bool classes = has_classes(d);
    const hsize_t flat[4] = {d->samples, points ? d->points : d->features, d->features};
    const hsize_t images[4] = {d->samples, d->pixels, d->pixels, 3};
    const hsize_t *x_shape = shapes ? images : flat;
    const hsize_t y_shape[4] = {d->samples, 1};
    int x_rank = shapes ? 4 : points ? 3 : 2, y_rank = classes ? 1 : 2;
    hid_t x_type = shapes ? H5T_NATIVE_UINT8 : H5T_NATIVE_FLOAT;
    hid_t y_type = classes ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT;
    hid_t x_set = create_set(file, "x", shapes ? H5T_STD_U8LE : H5T_IEEE_F32LE, x_rank, x_shape, d);
    hid_t y_set =
        create_set(file, "y", classes ? H5T_STD_I32LE : H5T_IEEE_F32LE, y_rank, y_shape, d);
    uint64_t block = block_rows(m);
    uint64_t row_bytes = m->width * m->size;
    unsigned char *x = malloc(block * row_bytes);
    uint32_t *y = malloc(block * sizeof *y);
    bool good = x_set >= 0 && y_set >= 0 && x && y;
    for (uint64_t first = 0; good && first < d->samples; first += block) {
        uint64_t count = d->samples - first < block ? d->samples - first : block;
        for (uint64_t i = 0; i < count; i++) {
            make_row(m, first + i, x + i * row_bytes, y + i);
        }
        good = grt_rows_put(x_set, x_type, x_rank, x_shape, first, count, x) &&
               grt_rows_put(y_set, y_type, y_rank, y_shape, first, count, y);
        if (good && d->progress) {  // what it calls would hide the reason of a failure
            d->progress(first + count, d->samples);
        }
        *stopped = d->stop && d->stop();
        good = good && !*stopped;
    }
    free(x);
    free(y);
    good = H5Dclose(x_set) >= 0 && good;
    return H5Dclose(y_set) >= 0 && good;
}

// Known before hours are spent on it; of compressed data nobody knows.
static bool enough_room(const struct making *m, const char *temporary) {
    const struct grt_make_desc *d = &m->desc;
    struct statvfs disk;
    double needed = (double)d->samples * (double)(m->width * m->size + 4);
    bool known = d->deflate == 0 && statvfs(temporary, &disk) == 0;
    double left = known ? (double)disk.f_bavail * (double)disk.f_frsize : needed;
    return left >= needed || grt_fail(GRT_IO, "%s: needs %.1f MB, and %.1f MB are left on the disk",
                                      d->path, needed / 1e6, left / 1e6);
}

static bool write_hdf5(struct making *m, const char *path) {
    bool good = false, stopped = false;
    errno = 0;
    grt_hdf5_enter();
    H5E_BEGIN_TRY {
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        good = file >= 0 && write_sets(file, m, &stopped) && put_attributes(file, m);
        good = file >= 0 && H5Fclose(file) >= 0 && good;
    }
    H5E_END_TRY;
    grt_hdf5_leave();
    int error = stopped ? 0 : errno;
    return good || grt_fail(GRT_IO, "%s: %s%s%s", m->desc.path,
                            stopped ? "not written: interrupted" : "cannot be written",
                            error ? ": " : "", error ? strerror(error) : "");
}

static bool check_desc(const struct grt_make_desc *d) {
    const char *why = !d                                    ? "no desc"
                      : !d->path || !d->path[0]             ? "no path"
                      : (unsigned)d->make >= GRT_MAKE_COUNT ? "unknown kind of data"
                      : d->samples == 0 || d->features == 0 ? "no samples or no features"
                      : d->features > 1u << 20 || d->points > 1u << 20 || d->classes > 1u << 20
                          ? "more than 2^20 features, points or classes"
                      : d->pixels > 1024 || (d->pixels > 0 && d->pixels < 8)
                          ? "not 8 to 1024 pixels a side"
                      : d->make == GRT_MAKE_SHAPES && d->classes > GRT_MAKE_SHAPE_COUNT
                          ? "more than 10 classes of shapes"
                      : d->samples > 1ull << 40 ? "more than 2^40 samples"
                      : d->deflate > 9          ? "deflate above 9"
                                                : NULL;
    return !why || grt_fail(GRT_INVALID, "grt_data_make: %s", why);
}

bool grt_data_make(const struct grt_make_desc *desc) {
    if (!check_desc(desc)) {
        return false;
    }
    struct making m = {.desc = *desc};
    struct grt_make_desc *d = &m.desc;
    bool centres = d->make == GRT_MAKE_CLASSIFICATION, shapes = d->make == GRT_MAKE_SHAPES;
    d->points = d->points > 0 ? d->points : 64;
    d->classes = d->classes > 0 ? d->classes : 10;
    d->pixels = d->pixels > 0 ? d->pixels : 16;
    d->noise = d->noise >= 0 ? d->noise : centres ? 1.0 : 0.1;
    d->chunk = d->chunk == 0 && d->deflate > 0 ? 1024 : d->chunk;
    m.width = shapes ? (uint64_t)d->pixels * d->pixels * 3
                     : (uint64_t)d->features * (d->make == GRT_MAKE_POINTS ? d->points : 1);
    m.size = shapes ? 1 : 4;
    uint64_t largest = UINT32_MAX / (m.width * m.size);  // rows of a chunk: HDF5 allows 4 GiB
    d->chunk = d->chunk < largest ? d->chunk : largest;
    m.directions =
        calloc((size_t)(centres ? d->classes : DIRECTIONS) * d->features, sizeof *m.directions);
    if (!m.directions) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to make data");
    }
    struct grt_whole_file file;
    bool good = grt_whole_file_open_named(&file, d->path);
    if (good) {
        draw_answer(&m);
        good = enough_room(&m, file.temporary) && write_hdf5(&m, file.temporary);
        good = grt_whole_file_close(&file, good) && good;
    }
    free(m.directions);
    return good;
}
