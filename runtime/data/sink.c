// SPDX-License-Identifier: Apache-2.0
#include "sink.h"

#include <string.h>

static const char *class_remedy(const struct grt_sink *sink, int64_t bad) {
    bool none = bad < 0 || sink->classes == GRT_MOST_CLASSES;  // whatever their number
    if (sink->counted) {
        return none ? ": number classes from 0, or learn them as numbers with mse"
                    : ": cross_entropy(N) says how many";
    }
    return none
               ? ": number classes from 0, or `gpurt train supervised` with loss=mse learns numbers"
               : "";
}

// `feature`: of the array, that the numbers begin with.
static bool convert(const struct grt_sink *sink, uint64_t row, uint64_t feature, void *out,
                    const unsigned char *in, uint64_t count, struct grt_fault *fault) {
    enum grt_element_type type = sink->array->element.type;
    int64_t bad = 0;
    switch (sink->as) {
    case GRT_SINK_F32:
        if (sink->norm) {
            grt_element_normalise(type, out, in, count, sink->norm, sink->feature + feature);
        } else {
            grt_element_to_f32(type, out, in, count);
        }
        return true;
    case GRT_SINK_DOUBLE:
        grt_element_to_f64(type, out, in, count);
        return true;
    case GRT_SINK_ELEMENT:
        memcpy(out, in, count * sink->size);
        return true;
    case GRT_SINK_CLASS:
        break;
    }
    return grt_element_to_class(type, out, in, count, sink->classes, &bad) == count ||
           grt_fault(fault, GRT_BAD_DATA, "row %llu of '%s' has class %lld; classes are 0 to %u%s",
                     (unsigned long long)row, sink->array->name, (long long)bad, sink->classes - 1,
                     class_remedy(sink, bad));
}

bool grt_sink_straight(const struct grt_sink *sink) {
    const struct grt_array *array = sink->array;
    return array->element.type == GRT_ELEMENT_F32 && sink->as == GRT_SINK_F32 && !sink->norm &&
           !array->element.swapped && array->tile[1] == array->shape[1] &&
           array->tile_width == array->width && array->tile[2] == array->shape[2] &&
           (array->shape[1] == 1 || array->shape[2] == sink->pitch);
}

// Points that lie one behind the other, of features of tiles c.
static bool put_points(const struct grt_sink *sink, uint64_t row, uint64_t at, uint64_t first_point,
                       uint64_t points, uint64_t c, const unsigned char *slab,
                       struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    uint64_t first_feature = c * array->tile[2], features = array->shape[2] - first_feature;
    features = features < array->tile[2] ? features : array->tile[2];
    unsigned char *out =
        sink->out + (at * sink->width + first_point * sink->pitch + first_feature) * sink->size;
    uint64_t feature = first_feature + first_point * sink->step;
    // Points may lie together on both sides.
    if (features == sink->pitch && features == array->tile[2] &&
        (!sink->norm || points == 1 || sink->step == features)) {
        return convert(sink, row, feature, out, slab, points * features, fault);
    }
    uint64_t slab_pitch = array->tile[2] * grt_element_size(array->element.type);
    bool good = true;
    for (uint64_t p = 0; good && p < points; p++) {
        good = convert(sink, row, feature + p * sink->step, out + p * sink->pitch * sink->size,
                       slab + p * slab_pitch, features, fault);
    }
    return good;
}

bool grt_sink_put(const struct grt_sink *sink, uint64_t row, uint64_t at, uint64_t b, uint64_t c,
                  const unsigned char *slab, struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    uint64_t first_point = b * array->tile[1], points = array->shape[1] - first_point;
    if (array->tile_width == array->width) {
        points = points < array->tile[1] ? points : array->tile[1];
        return put_points(sink, row, at, first_point, points, c, slab, fault);
    }
    // A part of some lines of an image.
    uint64_t across = (array->width + array->tile_width - 1) / array->tile_width;
    uint64_t high = array->tile[1] / array->tile_width, line = b / across * high;
    uint64_t lines = array->shape[1] / array->width - line, first = b % across * array->tile_width;
    uint64_t wide = array->width - first;
    lines = lines < high ? lines : high;
    wide = wide < array->tile_width ? wide : array->tile_width;
    bool good = true;
    for (uint64_t l = 0; good && l < lines; l++) {
        good = put_points(sink, row, at, (line + l) * array->width + first, wide, c,
                          slab + l * (array->slab_bytes / high), fault);
    }
    return good;
}
