// SPDX-License-Identifier: Apache-2.0
// Lists of layers, word by word: which module and which shape each word becomes, what it is when it
// is left out, and the sentence and place of what is none.
#include "kits/ref_kit.h"

#include <stdio.h>
#include <string.h>

#include "gpurt/learner.h"
#include "gpurt/network.h"

// ---- what words become ----

static struct grt_learner *learner_of(const struct grt_network_desc *network,
                                      const struct grt_shape *in) {
    return grt_learner_create(test.dev,
                              grt_learner_desc(.make = grt_network_make, .of = network,
                                               .input = *in, .batch = 2, .inference = true));
}

// "name kind shape parameters; " of each layer but the sequence around all.
static void describe(const struct grt_learner *l, char *text, size_t size) {
    const struct grt_net_layer *layer;
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 1; (layer = grt_learner_layer(l, i)); i++) {
        char shape[GRT_SHAPE_TEXT];
        at += (size_t)snprintf(text + at, size - at, "%s%s %s %s %llu", i > 1 ? "; " : "",
                               layer->name, layer->kind, grt_shape_text(&layer->out, shape),
                               (unsigned long long)layer->parameters);
        assert_int_equal(layer->depth, 1 + (strchr(layer->name, '.') != NULL) +
                                           (strchr(layer->name, '.') &&
                                            strchr(strchr(layer->name, '.') + 1, '.')));
    }
    assert_true(at < size);
}

static void layers_of_words(void **state) {
    (void)state;
    const struct grt_shape image = {3, {9, 7, 3}}, flat = {1, {6}}, points = {2, {4, 6}};
    const struct {
        const char *text;
        const struct grt_shape *in;
        const char *layers;
    } rows[] = {
        {"[{conv: 8}]", &image, "0 conv [9][7][8] 224"},
        {"[{conv: {outputs: 4, size: 5, stride: 2}}]", &image, "0 conv [5][4][4] 304"},
        {"[{conv: {outputs: 4, size: 2}}]", &image, "0 conv [8][6][4] 52"},
        {"[{conv: {outputs: 4, size: 4, padding: 3, bias: false}}]", &image,
         "0 conv [12][10][4] 192"},
        {"[{conv: {outputs: out, padding: 0}}]", &image, "0 conv [7][5][2] 56"},
        {"[{max_pool: 2}, {conv: 1}]", &image, "0 max_pool [4][3][3] 0; 1 conv [4][3][1] 28"},
        {"[{avg_pool: {size: 3, stride: 1, padding: 1}}, flatten, {linear: 2}]", &image,
         "0 avg_pool [9][7][3] 0; 1 flatten [189] 0; 2 linear [2] 380"},
        {"[{avg_pool: {size: 3, padding: 1}}, {conv: {outputs: 1, size: 1}}]", &image,
         "0 avg_pool [3][3][3] 0; 1 conv [3][3][1] 4"},
        {"[{max_pool: {size: 3, stride: 2}}, {linear: 1}]", &image,
         "0 max_pool [4][3][3] 0; 1 linear [4][3][1] 4"},
        {"[{linear: {outputs: 5, bias: no}}, {norm: layer}, {linear: out}]", &flat,
         "0 linear [5] 30; 1 layer_norm [5] 10; 2 linear [2] 12"},
        {"[{linear: {outputs: out, bias: On}}, {norm: batch}]", &flat,
         "0 linear [2] 14; 1 batch_norm [2] 4"},
        {"[{columns: {count: 4}}, {linear: 3}]", &flat, "0 columns [4] 0; 1 linear [3] 15"},
        {"[{columns: {first: 2, count: 4}}, {linear: 3}]", &points,
         "0 columns [4][4] 0; 1 linear [4][3] 15"},
        {"[{columns: {first: 0, count: 1}}, {linear: 1}]", &flat,
         "0 columns [1] 0; 1 linear [1] 2"},
        {"[{repeat: {times: 2, of: [{linear: 3}, tanh]}}]", &flat,
         "0 sequence [3] 33; 0.0 linear [3] 21; 0.1 tanh [3] 0; 0.2 linear [3] 12; 0.3 tanh [3] 0"},
        {"[{residual: [{linear: 6}]}, {linear: 1}]", &flat,
         "0 residual [6] 42; 0.body sequence [6] 42; 0.body.0 linear [6] 42; 1 linear [1] 7"},
        {"[{residual: {of: [{linear: 2}], shortcut: [{linear: {outputs: 2, bias: false}}], "
         "activation: silu}}]",
         &flat,
         "0 residual [2] 26; 0.body sequence [2] 14; 0.body.0 linear [2] 14; 0.shortcut sequence "
         "[2] 12; 0.shortcut.0 linear [2] 12"},
        {"[{branches: [[{linear: 2}], [{linear: 2}]]}]", &flat,
         "0 branches [2] 28; 0.0 sequence [2] 14; 0.0.0 linear [2] 14; 0.1 sequence [2] 14; 0.1.0 "
         "linear [2] 14"},
        {"[{branches: {of: [[{linear: 2}], [{linear: 3}]], merge: concat}}]", &flat,
         "0 concat [5] 35; 0.0 sequence [2] 14; 0.0.0 linear [2] 14; 0.1 sequence [3] 21; 0.1.0 "
         "linear [3] 21"},
        {"[{pool: max}, {linear: 2}]", &points, "0 pool [6] 0; 1 linear [2] 14"},
        {"[{pool: mean}, {linear: 2}]", &image, "0 pool [3] 0; 1 linear [2] 8"},
        {"[{linear: 10}, geglu, {dropout: 0.5}]", &flat,
         "0 linear [10] 70; 1 geglu [5] 0; 2 dropout [5] 0"},
        {"[relu, gelu, tanh, gelu_exact, silu, sigmoid, {linear: 1}]", &flat,
         "0 relu [6] 0; 1 gelu [6] 0; 2 tanh [6] 0; 3 gelu_exact [6] 0; 4 silu [6] 0; 5 sigmoid "
         "[6] 0; 6 linear [1] 7"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc network = {.text = rows[i].text, .outputs = 2};
        struct grt_learner *l = learner_of(&network, rows[i].in);
        assert_non_null(l);
        char text[512];
        describe(l, text, sizeof text);
        assert_string_equal(text, rows[i].layers);
        grt_learner_destroy(&l);
    }
}

// Networks by name end before their last layer where features are wanted, or nothing is given out.
static void named_networks(void **state) {
    (void)state;
    const struct grt_shape image = {3, {16, 16, 3}};
    // Convolutions and norms of a WRN-10-1 by hand: 3 blocks, the last two with a shortcut.
    const uint64_t body = 27 * 16 + (32 + 2304 + 32 + 2304) +
                          (32 + 9 * 16 * 32 + 64 + 9 * 32 * 32 + 16 * 32) +
                          (64 + 9 * 32 * 64 + 128 + 9 * 64 * 64 + 32 * 64) + 128;
    const struct {
        const char *text;
        bool features;
        uint64_t parameters;
        uint32_t outputs;
        const char *first;
    } rows[] = {
        {"[{wideresnet: {depth: 10, width: 1}}]", false, body + 64 * 7 + 7, 7, "conv1.weight"},
        {"[{wideresnet: {depth: 10, width: 1}}]", true, body, 64, "conv1.weight"},
        {"[{wideresnet: {depth: 10, width: 1, outputs: none}}]", false, body, 64, "conv1.weight"},
        {"[{wideresnet: {depth: 10, width: 1, outputs: 3}}]", true, body + 195, 3, "conv1.weight"},
        {"[{wideresnet: {depth: 10, width: 1, outputs: out, dropout: 0.3}}]", true, body + 455, 7,
         "conv1.weight"},
        {"[{wideresnet: {depth: 10, width: 1}}, relu]", false, body + 455, 7, "0.conv1.weight"},
        {"[resnet18]", false, 11168832 + 513 * 7, 7, "conv1.weight"},
        {"[resnet18]", true, 11168832, 512, "conv1.weight"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc network = {
            .text = rows[i].text, .outputs = 7, .features = rows[i].features};
        struct grt_learner *l = learner_of(&network, &image);
        assert_non_null(l);
        assert_int_equal(grt_learner_parameters(l), rows[i].parameters);
        assert_int_equal(grt_learner_outputs(l), rows[i].outputs);
        grt_learner_destroy(&l);
    }
}

// ---- inputs by name ----

static const struct grt_input inputs[] = {
    {"air/wind", 0, {1, {3}}}, {"/lift", 3, {2, {2, 2}}}, {"air/wind", 0, {1, {3}}}};

static void inputs_by_name(void **state) {
    (void)state;
    const struct grt_shape flat = {1, {7}};
    static const struct {
        const char *text, *layers;
        uint32_t count;
    } rows[] = {
        {"[{branches: {merge: concat, of: [[{input: air/wind}], [{input: lift}, flatten]]}}]",
         "0 concat [7] 0; 0.0 sequence [3] 0; 0.0.0 input [3] 0; 0.1 sequence [4] 0; 0.1.0 input "
         "[2][2] 0; 0.1.1 flatten [4] 0",
         2},
        {"[{branches: {merge: concat, of: [[{input: [/air/wind]}], [{input: /lift}, flatten]]}}]",
         "0 concat [7] 0; 0.0 sequence [3] 0; 0.0.0 input [3] 0; 0.1 sequence [4] 0; 0.1.0 input "
         "[2][2] 0; 0.1.1 flatten [4] 0",
         3},
        {"[{input: [air/wind, air/wind]}]", "0 concat [6] 0; 0.0 input [3] 0; 0.1 input [3] 0", 1},
        // A layer without a name takes the whole sample, and so all inputs are used.
        {"[{branches: {merge: concat, of: [[{input: air/wind}], [{linear: 2}]]}}]",
         "0 concat [5] 16; 0.0 sequence [3] 0; 0.0.0 input [3] 0; 0.1 sequence [2] 16; 0.1.0 "
         "linear [2] 16",
         2},
        {"[{residual: [{input: air/wind}, {linear: 7}]}]",
         "0 residual [7] 28; 0.body sequence [7] 28; 0.body.0 input [3] 0; 0.body.1 linear [7] 28",
         2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc network = {
            .text = rows[i].text, .inputs = inputs, .input_count = rows[i].count};
        struct grt_learner *l = learner_of(&network, &flat);
        assert_non_null(l);
        char text[512];
        describe(l, text, sizeof text);
        assert_string_equal(text, rows[i].layers);
        grt_learner_destroy(&l);
    }
    static const struct {
        const char *text, *why;
        uint32_t count;
    } wrong[] = {
        {"[{input: air/wind}]",
         "net.yaml:3:12: the network takes input 'air/wind', and nothing takes input 'lift': begin "
         "a branch with {input: lift}, or leave it out of `inputs`",
         2},
        {"[{input: lift}]",
         "net.yaml:3:12: the network takes input 'lift', and nothing takes input 'air/wind'", 2},
        {"[{input: air/wint}]", "net.yaml:3:12: no input 'air/wint'; did you mean 'air/wind'?", 2},
        {"[{input: heat}]", "net.yaml:3:12: no input 'heat'; inputs are air/wind, lift", 2},
        {"[{input: [lift, heat]}]", "net.yaml:3:19: no input 'heat'; inputs are air/wind, lift", 2},
        {"[{input: []}]", "input wants a name: air/wind, lift", 2},
        {"[{input: {a: b}}]", "input wants a name: air/wind, lift", 2},
        {"[relu, {input: lift}]",
         "net.yaml:3:18: input stands at the beginning of the network, or of its branches: here "
         "another layer comes before",
         2},
        {"[{residual: [{linear: 3}, {input: lift}]}]", "input stands at the beginning", 2},
        {"[{input: lift}]", "input: samples have one input here, which has no name", 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct grt_network_desc network = {.text = wrong[i].text,
                                                 .path = "net.yaml",
                                                 .line = 3,
                                                 .column = 3,
                                                 .inputs = inputs,
                                                 .input_count = wrong[i].count};
        TEST_REFUSED(grt_network_create(&network), GRT_CONFIG, wrong[i].why);
    }
}

// An input that is not where it is said to be, of samples of one axis and of several.
static void inputs_that_are_not_there(void **state) {
    (void)state;
    const struct grt_shape flat = {1, {7}}, points = {2, {4, 5}};
    const struct {
        struct grt_input input;
        const struct grt_shape *in;
        const char *why;  // NULL: it is there
    } rows[] = {
        {{"a", 3, {1, {4}}}, &flat, NULL},
        {{"a", 4, {1, {4}}}, &flat, "input: its [4] from 4 on is not in [7]"},
        {{"a", 1, {2, {2, 3}}}, &flat, NULL},
        {{"a", 2, {2, {2, 3}}}, &flat, "input: its [2][3] from 2 on is not in [7]"},
        {{"a", 2, {2, {4, 3}}}, &points, NULL},
        {{"a", 3, {2, {4, 3}}}, &points, "input: its [4][3] from 3 on is not in [4][5]"},
        {{"a", 0, {2, {3, 3}}}, &points, "input: its [3][3] from 0 on is not in [4][5]"},
        {{"a", 0, {1, {3}}}, &points, "input: its [3] from 0 on is not in [4][5]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc network = {
            .text = "[{input: a}]", .inputs = &rows[i].input, .input_count = 1};
        if (rows[i].why) {
            TEST_REFUSED(learner_of(&network, rows[i].in), GRT_CONFIG, rows[i].why);
            continue;
        }
        struct grt_learner *l = learner_of(&network, rows[i].in);
        assert_non_null(l);
        assert_true(grt_shape_equal(&grt_learner_layer(l, 1)->out, &rows[i].input.shape));
        grt_learner_destroy(&l);
    }
}

// ---- what is none ----

// Texts begin in line 3, column 3.
static void sentences(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"[linear]",
         "net.yaml:3:4: linear wants a value: 256, out, or {outputs: 256, bias: false}"},
        {"[conv]", "conv wants a value: 64, or {outputs: 64, size: 3, stride: 1, padding: 1, bias"},
        {"[norm]", "norm wants a value: layer or batch"},
        {"[dropout]", "dropout wants a value: 0.1"},
        {"[pool]", "pool wants a value: max or mean"},
        {"[max_pool]", "max_pool wants a value: 2, or {size: 3, stride: 2, padding: 1}"},
        {"[avg_pool]", "avg_pool wants a value: 2, or {size: 3, stride: 2, padding: 1}"},
        {"[residual]", "residual wants a value: [layers], or {of: [layers], shortcut: [layers], "
                       "activation: relu}"},
        {"[repeat]", "repeat wants a value: {times: 3, of: [layers]}"},
        {"[branches]", "branches wants a value: [[layers], [layers]], or {of: [[layers], "
                       "[layers]], merge: concat}"},
        {"[columns]", "columns wants a value: {first: 0, count: 3}"},
        {"[input]", "input wants a value: a name of `inputs`, or a list of them"},
        {"[{flatten: 2}]", "net.yaml:3:14: flatten takes no value"},
        {"[{geglu: 2}]", "net.yaml:3:12: geglu takes no value"},
        {"[{sigmoid: 2}]", "net.yaml:3:14: sigmoid takes no value"},
        {"[none]", "no layer 'none'"},
        {"[{residual: {shortcut: [relu]}}]", "residual wants a list of layers under `of`"},
        {"[{residual: {of: [relu], act: tanh}}]", "residual has no key 'act'"},
        {"[{residual: {of: [relu], activation: rely}}]",
         "activation: rely is none of none, relu, gelu, tanh, gelu_exact, silu, sigmoid"},
        {"[{residual: {of: [relu], activation: [relu]}}]", "activation: this is none of none"},
        {"[{residual: {of: relu}}]", "residual wants a list of layers"},
        {"[{residual: {of: [relu], shortcut: relu}}]", "shortcut wants a list of layers"},
        {"[{residual: {of: [relu], shortcut: []}}]", "shortcut wants a list of layers"},
        {"[{repeat: 3}]", "net.yaml:3:13: repeat wants {times: 3, of: [...]}"},
        {"[{repeat: [relu]}]", "repeat wants {times: 3, of: [...]}"},
        {"[{repeat: {}}]", "repeat wants `times` and `of`"},
        {"[{repeat: {of: [relu]}}]", "repeat wants `times` and `of`"},
        {"[{repeat: {time: 3, of: [relu]}}]", "repeat has no key 'time'"},
        {"[{repeat: {times: 0, of: [relu]}}]", "times wants a whole number from 1 to 4096, not 0"},
        {"[{repeat: {times: 4097, of: [relu]}}]", "from 1 to 4096, not 4097"},
        {"[{repeat: {times: 3, of: relu}}]", "repeat wants a list of layers"},
        {"[{branches: relu}]", "net.yaml:3:15: branches wants at least two lists of layers"},
        {"[{branches: {of: [[relu]]}}]", "branches wants at least two lists of layers"},
        {"[{branches: {}}]", "branches wants at least two lists of layers under `of`"},
        {"[{branches: [[relu], relu]}]", "a branch wants a list of layers"},
        {"[{branches: {of: [[relu], [relu]], merge: {a: b}}}]", "merge: this is none of sum, conc"},
        {"[{columns: {first: 1}}]", "columns wants {first: 0, count: 3}"},
        {"[{columns: {first: -1, count: 3}}]", "first wants a whole number from 1 to 1048576, not "
                                               "-1"},
        {"[{columns: {first: [0], count: 3}}]", "first wants a whole number from 1 to 1048576"},
        {"[{columns: {start: 1, count: 3}}]", "columns has no key 'start'"},
        {"[{conv: {outputs: 3, stride: 0}}]", "stride wants a whole number from 1 to 1024, not 0"},
        {"[{conv: {outputs: 3, stride: 1025}}]", "from 1 to 1024, not 1025"},
        {"[{conv: {outputs: 3, size: 4, padding: 4}}]", "3:42: padding must be below the size, 4"},
        {"[{conv: [3]}]", "conv wants a whole number from 1 to 1048576"},
        {"[{max_pool: {size: 3, padding: 2}}]",
         "net.yaml:3:34: padding is at most half the size, 3"},
        {"[{max_pool: {size: 3, strides: 2}}]", "max_pool has no key 'strides'"},
        {"[{max_pool: {padding: 0}}]", "net.yaml:3:15: max_pool wants a size"},
        {"[{max_pool: two}]", "max_pool wants a whole number from 1 to 1024, not two"},
        {"[{pool: [max]}]", "pool: this is none of mean, max"},
        {"[{pool: maximum}]", "net.yaml:3:11: pool: maximum is none of mean, max"},
        {"[{linear: 3x}]", "linear wants a whole number from 1 to 1048576, not 3x"},
        {"[{linear: +3}]", "linear wants a whole number from 1 to 1048576, not +3"},
        {"[{linear: 3.0}]", "not 3.0"},
        {"[{linear: 1e3}]", "not 1e3"},
        {"[{linear: 99999999999999999999}]", "not 99999999999999999999"},
        {"[{linear: {outputs: {a: b}}}]", "linear wants a whole number from 1 to 1048576"},
        {"[{linear: Out}]", "linear wants a whole number from 1 to 1048576, not Out"},
        {"[{linear: {outputs: 3, bias: 2}}]", "bias wants true or false, not '2'"},
        {"[{linear: {outputs: 3, bias: [true]}}]", "bias wants true or false, not ''"},
        {"[{dropout: nan}]", "dropout wants a probability from 0 to below 1, not 'nan'"},
        {"[{dropout: 0x0}]", "not '0x0'"},
        {"[{dropout: 0.5p}]", "not '0.5p'"},
        {"[{dropout: [0.5]}]", "dropout wants a probability from 0 to below 1, not ''"},
        {"[{resnet50: [1]}]", "resnet50 takes keys, such as {resnet50: {outputs: out}}"},
        {"[{resnet34: {zero_init: 2}}]", "zero_init wants true or false, not '2'"},
        {"[{resnet34: {outputs: few}}]",
         "resnet34 wants a whole number from 1 to 1048576, not few"},
        {"[{wideresnet: {depth: 9}}]", "wideresnet: depth is 6 n + 4, such as 16, 22, 28 or 40, "
                                       "and at most 304, not 9"},
        {"[{wideresnet: {depth: 4}}]", "and at most 304, not 4"},
        {"[{wideresnet: {depth: 310}}]", "and at most 304, not 310"},
        {"[{wideresnet: {width: 0}}]", "width wants a whole number from 1 to 1024, not 0"},
        {"[{wideresnet: {width: 1025}}]", "width wants a whole number from 1 to 1024, not 1025"},
        {"[{wideresnet: {stem: cifar}}]", "wideresnet has no key 'stem'"},
        {"[{wideresnet: {dropout: 1}}]", "net.yaml:3:27: dropout wants a probability"},
        {"[{resnet36: 1}]", "no layer 'resnet36'; did you mean 'resnet34'?"},
        {"relu", "net.yaml:3:3: the network wants a list of layers"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc network = {
            .text = rows[i].text, .path = "net.yaml", .line = 3, .column = 3, .outputs = 2};
        TEST_REFUSED(grt_network_create(&network), GRT_CONFIG, rows[i].why);
    }
    // Without a path and a place.
    TEST_REFUSED(grt_network_create(grt_network_desc(.text = "[{linear: 0}]")), GRT_CONFIG,
                 "network at character 11: linear wants");
    TEST_REFUSED(grt_network_create(grt_network_desc(.text = "[relu,\n {linear: 0}]", .name = "n")),
                 GRT_CONFIG, "n at line 2, character 11: linear wants");
    // In other words there: its beginning, or its name alone.
    TEST_REFUSED(
        grt_network_create(grt_network_desc(.text = "[relu, {linear: 0}]", .path = "a.yaml",
                                            .line = 3, .column = 8, .whole = true)),
        GRT_CONFIG, "a.yaml:3:8: linear wants");
    TEST_REFUSED(grt_network_create(grt_network_desc(.text = "[relu, {linear: 0}]", .name = "model",
                                                     .whole = true)),
                 GRT_CONFIG, "model: linear wants");
    TEST_REFUSED(grt_network_create(grt_network_desc(.path = "x")), GRT_INVALID,
                 "network: no text");
    TEST_REFUSED(grt_network_create(grt_network_desc(.text = "[resnet18]")), GRT_CONFIG,
                 "resnet18: nobody says how many `out` are");
}

// The largest network that is taken, and one layer more; the largest and least of what has bounds.
static void limits(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool taken;
    } rows[] = {
        {"[{repeat: {times: 4095, of: [relu]}}]", true},
        {"[{repeat: {times: 4096, of: [relu]}}]", false},
        {"[{wideresnet: {depth: 304, width: 1024}}]", true},
        {"[{wideresnet: {depth: 10, width: 1, dropout: 0}}]", true},
        {"[{conv: {outputs: 1048576, size: 1024, stride: 1024, padding: 1023}}]", true},
        {"[{max_pool: {size: 4, padding: 2}}]", true},
        {"[{max_pool: {size: 4, padding: 3}}]", false},
        {"[{max_pool: {size: 1, padding: 0}}]", true},
        {"[{max_pool: {size: 1, padding: 1}}]", false},
        {"[{columns: {first: 1048576, count: 1}}]", true},
        {"[{columns: {first: 1048577, count: 1}}]", false},
        {"[{dropout: 9.99e-1}]", true},
        {"[{dropout: +.5}]", true},
        {"[{dropout: -0}]", true},
        {"[{dropout: 1e0}]", false},
        {"[{linear: {outputs: 007, bias: YES}}]", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc network = {.text = rows[i].text, .outputs = 2};
        if (rows[i].taken) {
            struct grt_module *module = grt_network_create(&network);
            assert_non_null(module);
            grt_module_destroy(&module);
            assert_null(module);
        } else {
            TEST_REFUSED(grt_network_create(&network), GRT_CONFIG, "network at character ");
        }
    }
}

static const struct CMUnitTest cases[] = {
    REF_CASE(layers_of_words),           REF_CASE(named_networks), REF_CASE(inputs_by_name),
    REF_CASE(inputs_that_are_not_there), REF_CASE(sentences),      REF_CASE(limits),
};
TEST_SUITE(networkwords, false, cases);
