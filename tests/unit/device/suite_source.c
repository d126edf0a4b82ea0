// SPDX-License-Identifier: Apache-2.0
// Kernels from source at run time: they compute, and their mistakes are said with file and line.
#include "harness/harness.h"
#include "harness/open_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kits/kernel_kit.h"

// Weighted sums of neighbours through shared memory: a barrier, constants, parameters, a library, a
// macro of its own.
static const char blur[] = "#include \"lib/math.k\"\n"
                           "STRUCT(blur_params) { uint count; float side; };\n"
                           "#define blur_specs(X) X(1, REACH, 1) X(2, PADS, 2)\n"
                           "#define blur_args(R, W, U) R(0, float, given) W(1, float, made)\n"
                           "#define blur_shmem(X) X(float, tile, WG + PADS * REACH)\n"
                           "#define AT(i) ((i) < p.count ? given[i] : 0.0f)\n"
                           "FN float blend(float a, float b, float side) {\n"
                           "    EXACT float sum = a + b * side;\n"
                           "    return sum;\n"
                           "}\n"
                           "KERNEL(blur, blur_params, blur_specs, blur_args, blur_shmem)\n"
                           "    uint i = GROUP(0) * WG + LID;\n"
                           "    tile[LID] = AT(i);\n"
                           "    if (LID < PADS * REACH) {\n"
                           "        tile[WG + LID] = AT(GROUP(0) * WG + WG + LID);\n"
                           "    }\n"
                           "    BARRIER();\n"
                           "    if (i < p.count) {\n"
                           "        made[i] = blend(tile[LID], tile[LID + REACH], p.side);\n"
                           "    }\n"
                           "END_KERNEL\n";

static void computes(void **state) {
    (void)state;
    enum { COUNT = 150, REACH = 3 };
    static float given[COUNT];
    const uint32_t open = open_files();
    const struct {
        uint32_t count;
        float side;
    } params = {COUNT, 0.25f};
    for (uint32_t i = 0; i < COUNT; i++) {
        given[i] = (float)((i * 37u) % 101u) - 50.0f;
    }
    struct grt_source *source = grt_source_create(grt_source_desc(.text = blur));
    assert_non_null(source);
    assert_string_equal(grt_source_kernel(source), "blur");
    struct kernel_case c = {
        .desc = {.name = "blur", .specs = {{"WG", 32}, {"REACH", REACH}}, .source = source},
        .params = &params,
        .params_size = sizeof params,
        .groups = (COUNT + 31) / 32,
        .buffers = {{given, COUNT}, {NULL, COUNT}}};
    kernel_same_as_ref(&c);

    // And against the formula.
    struct grt_buf *in = grt_buf_create(test.dev, grt_buf_desc(.size = sizeof given));
    struct grt_buf *out = grt_buf_create(test.dev, grt_buf_desc(.size = sizeof given));
    assert_true(in && out && grt_buf_write(in, 0, given, sizeof given));
    struct grt_graph *graph = grt_graph_create(test.dev, "blur");
    grt_graph_dispatch(graph,
                       grt_dispatch(.kernel = grt_kernel_get(test.dev, &c.desc),
                                    .bindings = {{in, 0, 0}, {out, 0, 0}}, .params = &params,
                                    .params_size = sizeof params, .groups = {c.groups, 1, 1}));
    // Devices keep what they use of a source.
    grt_source_destroy(&source);
    assert_null(source);
    assert_true(grt_graph_finish(graph));
    float made[COUNT];
    assert_true(grt_buf_read(out, 0, made, sizeof made));
    for (uint32_t i = 0; i < COUNT; i++) {
        float beside = i + REACH < COUNT ? given[i + REACH] : 0.0f;
        if (made[i] != given[i] + 0.25f * beside) {
            print_error("%s: element %u is %g and not %g\n", test.selector, i, (double)made[i],
                        (double)(given[i] + 0.25f * beside));
        }
        assert_true(made[i] == given[i] + 0.25f * beside);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&in);
    grt_buf_destroy(&out);
    // Drivers open what they like.
    assert_true(!test.on_ref || open_files() == open);
}

// A text with one thing replaced; to be freed.
static char *changed(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    char *all = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(all);
    sprintf(all, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return all;
}

// A function of OpenCL's own, which gpurt declares to no driver: the driver's header does.
static void functions_of_the_language(void **state) {
    (void)state;
    if (grt_dev_info(test.dev)->backend != GRT_BACKEND_OPENCL) {
        return;
    }
    static const char text[] = "STRUCT(long_params) { uint count; };\n"
                               "#define long_specs(X)\n"
                               "#define long_args(R, W, U) R(0, float, given) W(1, float, made)\n"
                               "#define long_shmem(X)\n"
                               "KERNEL(longest, long_params, long_specs, long_args, long_shmem)\n"
                               "    if (LID < p.count) {\n"
                               "        made[LID] = hypot(given[LID], 4.0f);\n"
                               "    }\n"
                               "END_KERNEL\n";
    const uint32_t count = 2;
    const float given[] = {3.0f, -7.5f};
    float made[2] = {0};
    struct grt_source *source = grt_source_create(grt_source_desc(.text = text));
    assert_non_null(source);
    struct grt_buf *in = grt_buf_create(test.dev, grt_buf_desc(.size = sizeof given));
    struct grt_buf *out = grt_buf_create(test.dev, grt_buf_desc(.size = sizeof given));
    assert_true(in && out && grt_buf_write(in, 0, given, sizeof given));
    const struct grt_kernel *kernel = grt_kernel_get(
        test.dev, grt_kernel_desc(.name = "longest", .specs = {{"WG", 32}}, .source = source));
    assert_non_null(kernel);
    struct grt_graph *graph = grt_graph_create(test.dev, "longest");
    grt_graph_dispatch(graph, grt_dispatch(.kernel = kernel, .bindings = {{in, 0, 0}, {out, 0, 0}},
                                           .params = &count, .params_size = sizeof count,
                                           .groups = {1, 1, 1}));
    assert_true(grt_graph_finish(graph));
    assert_true(grt_buf_read(out, 0, made, sizeof made));
    assert_float_equal(made[0], 5.0f, 1e-6f);
    assert_float_equal(made[1], 8.5f, 1e-6f);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&in);
    grt_buf_destroy(&out);
    grt_source_destroy(&source);
}

// The same name with another text is another kernel, in one device and in the cache.
static void same_name(void **state) {
    (void)state;
    char *other = changed(blur, "a + b * side", "a - b * side");
    struct grt_source *one = grt_source_create(grt_source_desc(.text = blur));
    struct grt_source *two = grt_source_create(grt_source_desc(.text = other));
    const struct grt_kernel *a =
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "blur", .source = one));
    const struct grt_kernel *b =
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "blur", .source = two));
    assert_true(a && b && a != b);
    assert_ptr_equal(a, grt_kernel_get(test.dev, grt_kernel_desc(.name = "blur", .source = one)));
    grt_source_destroy(&one);
    grt_source_destroy(&two);
    free(other);
}

static void mistakes(void **state) {
    (void)state;
    // Found by the compiler of the device.
    const struct {
        const char *from, *to, *said;
    } rows[] = {
        {"tile[LID], tile[LID + REACH]", "tile[LID], tiles[LID + REACH]", "here.k:19:"},
        {"uint i = GROUP(0)", "uint i = GROUP(0) )", "here.k:12:"},
        {"side) {", "side) { a = missing;", "here.k:7:"},
        // NVIDIA's compiler of OpenCL only warns of an undeclared function, and its linker, which
        // does not find it, knows no lines.
        {"made[i] = blend", "made[i] = bland", "here.k:19:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = changed(blur, rows[i].from, rows[i].to);
        struct grt_source *source =
            grt_source_create(grt_source_desc(.text = text, .file = "here.k"));
        assert_non_null(source);
        TEST_REFUSED(grt_kernel_get(test.dev, grt_kernel_desc(.name = "blur", .source = source)),
                     GRT_BAD_DATA, rows[i].said);
        grt_source_destroy(&source);
        free(text);
    }
    // Found before.
    const struct {
        const char *from, *to, *said;
    } early[] = {
        {"lib/math.k", "lib/maths.k", "here.k:1: "},
        {"lib/math.k", "here.k", "here.k:1: "},
        {"#define AT(i)", "#define AT(i", "here.k:6: "},
        {"#define AT(i)", "#if 1\n#define AT(i)", "here.k:6: "},
        {"#define AT(i)", "#if 1 +\n#endif\n#define AT(i)", "here.k:6: "},
        {"#define AT(i)", "#deffine AT(i)", "deffine"},
        {"AT(i);", "AT(i, i);", "here.k:13: "},
        {"X(2, PADS, 2)", "X(3, PADS, 2)", "PADS"},
        {"R(0, float, given)", "R(0, double, given)", "double"},
        {"R(0, float, given)", "R(1, float, given)",
         "buffer given is number 1; they are counted from 0, to at most 11"},
        {"uint count;", "char count;", "char"},
        {"KERNEL(blur,", "KERNELS(blur,", "no kernel"},
        {"KERNEL(blur,", "KERNEL(7,", "KERNEL(7, blur_params, ...) does not name a kernel"},
        {"KERNEL(blur, blur_params", "KERNEL(blur, 7", "does not name a kernel"},
        {"STRUCT(blur_params)", "STRUCT(params)", "blur_params"},
        {"X(2, PADS, 2)", "X(2, PADS, (2", "here.k: a list of the kernel does not end"},
    };
    for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
        char *text = changed(blur, early[i].from, early[i].to);
        TEST_REFUSED(grt_source_create(grt_source_desc(.text = text, .file = "here.k")),
                     GRT_BAD_DATA, early[i].said);
        free(text);
    }
    TEST_REFUSED(grt_source_create(grt_source_desc(.file = "/nonexistent/x.k")), GRT_NO_INPUT,
                 "/nonexistent/x.k");
    TEST_REFUSED(grt_source_create(NULL), GRT_INVALID, "grt_source_create");
    TEST_REFUSED(grt_source_create(grt_source_desc(.text = NULL)), GRT_INVALID, "text");
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(computes),
    TEST_CASE(same_name),
    TEST_CASE(mistakes),
    TEST_CASE(functions_of_the_language),
};
TEST_SUITE(source, true, cases);
