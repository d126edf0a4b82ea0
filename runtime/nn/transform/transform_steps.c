// SPDX-License-Identifier: Apache-2.0
// The steps of a list of transforms: which there are, and what their values mean.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "transform_parts.h"
#include "shaders/host.h"
#include "shaders/image/lib/transform_params.k"

// The value of a step by its name, or by its number where it has none.
static const struct grt_node *argument(const struct grt_node *map, const char *key,
                                       const char *number) {
    const struct grt_node *named = map ? network_entry(map, key) : NULL;
    return named || !map ? named : network_entry(map, number);
}

// As many numbers as there are, or `least` of one; 0 with the sentence said.
static uint32_t read_reals(const struct network_reading *r, const struct grt_node *value,
                           const char *what, double low, double high, double *numbers,
                           uint32_t most) {
    const struct grt_node *one = value->kind == GRT_NODE_LIST ? value->first : value;
    uint32_t count = 0;
    for (; one && count < most; one = value->kind == GRT_NODE_LIST ? one->next : NULL) {
        const char *text = one->kind == GRT_NODE_TEXT ? one->text : "";
        char *end = NULL;
        double number = strtod(text, &end);
        if (!text[0] || *end || strspn(text, "0123456789.eE+-") != strlen(text) ||
            !(number >= low && number <= high)) {
            network_wrong(r, one, "%s wants numbers from %g to %g, not '%.40s'", what, low, high,
                          text);
            return 0;
        }
        numbers[count++] = number;
    }
    if (one || count == 0) {
        network_wrong(r, value, "%s wants 1 to %u numbers", what, most);
        return 0;
    }
    return count;
}

// Two numbers, the second not below the first.
static bool read_range(const struct network_reading *r, const struct grt_node *value,
                       const char *what, double low, double high, double range[2]) {
    if (!value) {
        return true;
    }
    uint32_t count = read_reals(r, value, what, low, high, range, 2);
    return count == 2 && range[0] <= range[1]
               ? true
               : count > 0 && network_wrong(r, value, "%s wants two numbers, (0.5, 1)", what);
}

static bool read_size(const struct network_reading *r, const struct grt_node *value,
                      const struct transform_step *step, uint32_t size[2]) {
    double sides[2] = {0};
    uint32_t count = read_reals(r, value, step->name, 1, TRANSFORM_SIDE, sides, 2);
    if (count > 0 && (sides[0] != floor(sides[0]) || sides[1] != floor(sides[1]))) {
        return network_wrong(r, value, "%s wants whole pixels", step->name) != NULL;
    }
    size[0] = (uint32_t)sides[0];
    size[1] = (uint32_t)sides[count == 2];
    return count > 0;
}

static bool wants_size(const struct network_reading *r, const struct grt_node *at,
                       const struct grt_node *map, struct transform_step *step) {
    const struct grt_node *size = argument(map, "size", "0");
    return size ? read_size(r, size, step, step->size)
                : network_wrong(r, at, "%s wants a size: %s(32)", step->name, step->name) != NULL;
}

static bool read_resize(const struct network_reading *r, const struct grt_node *at,
                        const struct grt_node *map, struct transform_step *step) {
    const struct grt_node *size = argument(map, "size", "0");
    step->box = BOX_WHOLE;
    if (!wants_size(r, at, map, step)) {
        return false;
    }
    if (size->kind != GRT_NODE_LIST) {
        step->shorter = step->size[0];
    }
    return true;
}

static bool read_center_crop(const struct network_reading *r, const struct grt_node *at,
                             const struct grt_node *map, struct transform_step *step) {
    step->box = BOX_MIDDLE;
    return wants_size(r, at, map, step);
}

static bool read_random_crop(const struct network_reading *r, const struct grt_node *at,
                             const struct grt_node *map, struct transform_step *step) {
    static const char *const modes[] = {"constant", "reflect"};
    const struct grt_node *size = argument(map, "size", "0");
    const struct grt_node *padding = argument(map, "padding", "1");
    const struct grt_node *mode = argument(map, "padding_mode", "2");
    double around = 0;
    int word = mode ? network_word(r, mode, "padding_mode", modes, 2) : 0;
    (void)at;
    step->box = BOX_CROP;
    if (word < 0 || (size && !read_size(r, size, step, step->size)) ||
        (padding && read_reals(r, padding, "padding", 0, TRANSFORM_SIDE, &around, 1) == 0)) {
        return false;
    }
    if (around != floor(around)) {
        return network_wrong(r, padding, "padding wants whole pixels") != NULL;
    }
    step->reflect = word == 1;
    step->padding = (uint32_t)around;
    return true;
}

// A probability.
static bool read_p(const struct network_reading *r, const struct grt_node *p,
                   struct transform_step *step) {
    return !p || read_reals(r, p, "p", 0, 1, &step->p, 1) > 0;
}

static bool read_flip(const struct network_reading *r, const struct grt_node *at,
                      const struct grt_node *map, struct transform_step *step) {
    (void)at;
    step->kind = TRANSFORM_FLIP;
    step->p = 0.5;
    return read_p(r, argument(map, "p", "0"), step);
}

static bool read_resized_crop(const struct network_reading *r, const struct grt_node *at,
                              const struct grt_node *map, struct transform_step *step) {
    step->box = BOX_RESIZED;
    step->area[0] = 0.08;
    step->area[1] = 1;
    step->ratio[0] = 3.0 / 4;
    step->ratio[1] = 4.0 / 3;
    return wants_size(r, at, map, step) &&
           read_range(r, argument(map, "scale", "1"), "scale", 1e-6, 1, step->area) &&
           read_range(r, argument(map, "ratio", "2"), "ratio", 1e-3, 1e3, step->ratio);
}

// One number for all channels, or one each; how many is kept, for the images to be compared with.
static bool read_channels(const struct network_reading *r, const struct grt_node *value,
                          const char *what, double low, struct transform_step *step,
                          double numbers[TRANSFORM_CHANNELS]) {
    uint32_t count = value ? read_reals(r, value, what, low, 1e6, numbers, TRANSFORM_CHANNELS)
                           : TRANSFORM_CHANNELS;
    if (value && count > 1) {
        if (step->channels > 0 && step->channels != count) {
            return network_wrong(r, value, "%s is for %u channels, and what stands before for %u",
                                 what, count, step->channels) != NULL;
        }
        step->channels = count;
    }
    for (uint32_t i = count; count > 0 && i < TRANSFORM_CHANNELS; i++) {
        numbers[i] = numbers[count - 1];
    }
    return count > 0;
}

// Numbers of bytes are from 0 to 255; torchvision's mean and std are of numbers from 0 to 1.
static bool read_normalize(const struct network_reading *r, const struct grt_node *at,
                           const struct grt_node *map, struct transform_step *step) {
    double mean[TRANSFORM_CHANNELS] = {0.485, 0.456, 0.406, 0.5},
           std[TRANSFORM_CHANNELS] = {0.229, 0.224, 0.225, 0.25};
    double range = 255;
    const struct grt_node *most = argument(map, "range", "2");
    (void)at;
    step->kind = TRANSFORM_NORMALIZE;
    if (!read_channels(r, argument(map, "mean", "0"), "mean", -1e6, step, mean) ||
        !read_channels(r, argument(map, "std", "1"), "std", 1e-6, step, std) ||
        (most && read_reals(r, most, "range", 1e-6, 1e6, &range, 1) == 0)) {
        return false;
    }
    for (uint32_t i = 0; i < TRANSFORM_CHANNELS; i++) {
        step->scale[i] = 1 / (range * std[i]);
        step->shift[i] = -mean[i] / std[i];
    }
    step->range = range;
    return true;
}

// A strength s, for factors from 1 - s to 1 + s but not below `low`, or the range itself.
static bool read_factors(const struct network_reading *r, const struct grt_node *map,
                         struct transform_step *step, uint32_t operation) {
    static const char *const names[] = {"brightness", "contrast", "saturation", "hue"};
    static const char *const numbers[] = {"0", "1", "2", "3"};
    const struct grt_node *value = argument(map, names[operation], numbers[operation]);
    double *range = step->factors[operation], given[2];
    bool hue = operation + 1 == COLOUR_HUE;
    range[0] = range[1] = hue ? 0 : 1;
    if (!value) {
        return true;
    }
    bool one = value->kind != GRT_NODE_LIST;
    uint32_t count =
        read_reals(r, value, names[operation], hue && !one ? -0.5 : 0, hue ? 0.5 : 1e3, given, 2);
    if (count == 0) {
        return false;
    }
    if (!one && (count != 2 || given[0] > given[1])) {
        return network_wrong(r, value, "%s wants a strength, or two numbers: (%s)",
                             names[operation], hue ? "-0.1, 0.1" : "0.5, 1.5") != NULL;
    }
    double middle = range[0];
    range[0] = one ? middle - given[0] : given[0];
    range[1] = one ? middle + given[0] : given[1];
    if (!hue && range[0] < 0) {
        range[0] = 0;
    }
    step->operations |= range[0] != middle || range[1] != middle ? 1u << operation : 0;
    return true;
}

static bool read_jitter(const struct network_reading *r, const struct grt_node *at,
                        const struct grt_node *map, struct transform_step *step) {
    step->kind = TRANSFORM_JITTER;
    step->p = 1;
    for (uint32_t i = 0; i < 4; i++) {
        if (!read_factors(r, map, step, i)) {
            return false;
        }
    }
    return read_p(r, argument(map, "p", "4"), step) &&
           (step->operations != 0 ||
            network_wrong(r, at, "color_jitter changes nothing: color_jitter(0.4, 0.4, 0.4, 0.1)"));
}

static bool read_grey(const struct network_reading *r, const struct grt_node *at,
                      const struct grt_node *map, struct transform_step *step) {
    (void)at;
    step->kind = TRANSFORM_GREY;
    step->p = 0.1;
    return read_p(r, argument(map, "p", "0"), step);
}

static bool read_blur(const struct network_reading *r, const struct grt_node *at,
                      const struct grt_node *map, struct transform_step *step) {
    const struct grt_node *taps = argument(map, "kernel_size", "0");
    const struct grt_node *sigma = argument(map, "sigma", "1");
    double count = 0;
    step->kind = TRANSFORM_BLUR;
    step->p = 1;
    step->sigma[0] = 0.1;
    step->sigma[1] = 2;
    if (!taps) {
        return network_wrong(r, at, "gaussian_blur wants a size: gaussian_blur(9)") != NULL;
    }
    if (read_reals(r, taps, "kernel_size", 1, BLUR_TAPS, &count, 1) == 0) {
        return false;
    }
    if (fmod(count, 2) != 1) {
        return network_wrong(r, taps, "kernel_size wants an odd number, not %g", count) != NULL;
    }
    step->taps = (uint32_t)count;
    if (sigma && sigma->kind != GRT_NODE_LIST) {
        if (read_reals(r, sigma, "sigma", 1e-3, 1e3, step->sigma, 1) == 0) {
            return false;
        }
        step->sigma[1] = step->sigma[0];
    } else if (!read_range(r, sigma, "sigma", 1e-3, 1e3, step->sigma)) {
        return false;
    }
    return read_p(r, argument(map, "p", "2"), step);
}

static bool read_erasing(const struct network_reading *r, const struct grt_node *at,
                         const struct grt_node *map, struct transform_step *step) {
    (void)at;
    step->kind = TRANSFORM_ERASE;
    step->erase = ERASE_AREA;
    step->p = 0.5;
    step->area[0] = 0.02;
    step->area[1] = 0.33;
    step->ratio[0] = 0.3;
    step->ratio[1] = 3.3;
    return read_p(r, argument(map, "p", "0"), step) &&
           read_range(r, argument(map, "scale", "1"), "scale", 1e-6, 1, step->area) &&
           read_range(r, argument(map, "ratio", "2"), "ratio", 1e-3, 1e3, step->ratio) &&
           read_channels(r, argument(map, "value", "3"), "value", -1e6, step, step->fill);
}

static bool read_cutout(const struct network_reading *r, const struct grt_node *at,
                        const struct grt_node *map, struct transform_step *step) {
    step->kind = TRANSFORM_ERASE;
    step->erase = ERASE_SQUARE;
    step->p = 1;
    if (!wants_size(r, at, map, step)) {
        return false;
    }
    if (step->size[0] != step->size[1]) {
        return network_wrong(r, at, "cutout wants one size, of a square") != NULL;
    }
    return read_p(r, argument(map, "p", "1"), step) &&
           read_channels(r, argument(map, "value", "2"), "value", -1e6, step, step->fill);
}

static bool read_mixup(const struct network_reading *r, const struct grt_node *at,
                       const struct grt_node *map, struct transform_step *step) {
    const struct grt_node *alpha = argument(map, "alpha", "0");
    (void)at;
    step->kind = TRANSFORM_MIX;
    step->alpha = 1;
    return !alpha || read_reals(r, alpha, "alpha", 0.01, 1000, &step->alpha, 1) > 0;
}

static bool read_cutmix(const struct network_reading *r, const struct grt_node *at,
                        const struct grt_node *map, struct transform_step *step) {
    step->cut = true;
    return read_mixup(r, at, map, step);
}

// A step is a row here.
static const struct step_row {
    const char *name;
    const char *const keys[6];  // in the order in which they may stand without
    bool (*read)(const struct network_reading *r, const struct grt_node *at,
                 const struct grt_node *map, struct transform_step *step);
} step_rows[] = {
    {"resize", {"size"}, read_resize},
    {"center_crop", {"size"}, read_center_crop},
    {"random_crop", {"size", "padding", "padding_mode"}, read_random_crop},
    {"random_horizontal_flip", {"p"}, read_flip},
    {"random_resized_crop", {"size", "scale", "ratio"}, read_resized_crop},
    {"color_jitter", {"brightness", "contrast", "saturation", "hue", "p"}, read_jitter},
    {"random_grayscale", {"p"}, read_grey},
    {"gaussian_blur", {"kernel_size", "sigma", "p"}, read_blur},
    {"random_erasing", {"p", "scale", "ratio", "value"}, read_erasing},
    {"cutout", {"size", "p", "value"}, read_cutout},
    {"normalize", {"mean", "std", "range"}, read_normalize},
    {"mixup", {"alpha"}, read_mixup},
    {"cutmix", {"alpha"}, read_cutmix},
};
#define ROW_COUNT (sizeof step_rows / sizeof *step_rows)

static bool unknown(const struct network_reading *r, const struct grt_node *at, const char *name) {
    const char *closest = grt_closest(name, step_rows, ROW_COUNT, sizeof *step_rows);
    char list[240] = "";
    size_t used = 0;
    for (size_t i = 0; i < ROW_COUNT && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 step_rows[i].name);
    }
    return closest ? network_wrong(r, at, "no transform '%.40s'; did you mean '%s'?", name, closest)
                   : network_wrong(r, at, "no transform '%.40s'; there are %s", name, list);
}

// `normalize`, or `resize: {size: 32}`, or `resize: 32`.
bool transform_step_read(const struct network_reading *r, const struct grt_node *node,
                         struct transform_step *step) {
    const struct grt_node *one = node->kind == GRT_NODE_MAP ? node->first : NULL;
    if (node->kind == GRT_NODE_LIST || (node->kind == GRT_NODE_MAP && (!one || one->next))) {
        return network_wrong(r, node, "a transform is one word, or one word with its values") !=
               NULL;
    }
    const char *name = one ? one->text : node->text;
    const struct step_row *row = step_rows;
    while (row < step_rows + ROW_COUNT && strcmp(row->name, name) != 0) {
        row++;
    }
    if (row == step_rows + ROW_COUNT) {
        return unknown(r, node, name);
    }
    // A value alone is the first one.
    struct grt_node first = {.kind = GRT_NODE_MAP, .text = (char[]){"0"}};
    struct grt_node alone = {.kind = GRT_NODE_MAP, .first = &first};
    const struct grt_node *map = one ? one->first : NULL;
    if (map && map->kind != GRT_NODE_MAP) {
        first.first = (struct grt_node *)(uintptr_t)map;
        map = &alone;
    }
    for (const struct grt_node *e = map ? map->first : NULL; e; e = e->next) {
        bool known = false;
        for (size_t i = 0; row->keys[i]; i++) {
            const char number[] = {(char)('0' + i), 0};
            bool placed = strcmp(number, e->text) == 0;
            if (placed && network_entry(map, row->keys[i])) {
                return network_wrong(r, e, "%s has two values for %s", name, row->keys[i]) != NULL;
            }
            known = known || placed || strcmp(row->keys[i], e->text) == 0;
        }
        if (!known) {
            return network_wrong(r, e, "%s has no value '%.40s'", name, e->text) != NULL;
        }
    }
    *step = (struct transform_step){.name = row->name};
    return row->read(r, node, map, step);
}
