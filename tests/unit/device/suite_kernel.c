// SPDX-License-Identifier: Apache-2.0
// Every kernel of the list builds on the device; wrong names and sizes are refused.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "device/internal.h"
#include "shaders/kernels.h"

static void list_names_every_kernel(void **state) {
    (void)state;
    static const char *const names[] = {
#define X(readings, folder, name) #name,
#define OF_ENV(readings, folder, env, user) (#env "_" #user),
#define ENV(kind, name) GRT_OF_ENV(OF_ENV, kind, name)
        GRT_KERNELS(X) GRT_ENVS(ENV)
#undef X
    };
    uint32_t count = sizeof names / sizeof names[0];
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(grt_kernel_name(i), names[i]);
        const struct grt_kernel_info *info = grt_kernel_table[i];
        assert_string_equal(info->name, names[i]);
        // Three readings, or one of a GPU language; parameters that fit every push constant block;
        // and WG first.
        assert_true(info->lane == NULL || (info->spirv && info->opencl[0]));
        if (info->spirv) {
            assert_int_equal(info->spirv[0], 0x07230203);
        }
        assert_in_range(info->params_size, 4, GRT_MAX_PARAMS);
        assert_int_equal(info->params_size % 4, 0);
        assert_in_range(info->arg_count, 1, GRT_MAX_BINDINGS);
        assert_in_range(info->spec_count, 1, GRT_MAX_SPECS);
        assert_string_equal(info->specs[0].name, "WG");
        bool writes = false;
        for (uint32_t a = 0; a < info->arg_count; a++) {
            writes = writes || info->args[a].access != GRT_READ;
        }
        assert_true(writes);
    }
    assert_null(grt_kernel_name(count));
    assert_null(grt_kernel_name(UINT32_MAX));
}

// What a device lacks for a kernel with its default constants, as the refusal words it, or NULL:
// some are made for large workgroups or much shared memory. For any other reason none may fail.
static const char *lacking(const struct grt_kernel_info *info) {
    const struct grt_caps *caps = &grt_dev_info(test.dev)->caps;
    uint32_t values[GRT_MAX_SPECS] = {0};
    for (uint32_t i = 0; i < info->spec_count; i++) {
        values[i] = info->specs[i].value;
    }
    if (values[0] > caps->max_wg) {
        return "workgroup";
    }
    if (info->shmem(info, values) > caps->shmem) {
        return "shared memory";
    }
    for (uint32_t a = 0; a < info->arg_count; a++) {
        if (strcmp(info->args[a].type, "u16") == 0 && !caps->f16_storage) {
            return "16-bit";
        }
        if (strcmp(info->args[a].type, "texels") == 0 && caps->max_texels == 0) {
            return "texel buffers";
        }
    }
    return NULL;
}

static void count_headers(void *context, enum grt_log_level level, const char *line) {
    (void)level;
    if (strstr(line, "is built with the header of all functions")) {
        print_error("%s\n", line);
        ++*(uint32_t *)context;
    }
}

// On PoCL without the header of all of OpenCL's functions, which costs ten times the rest.
static void every_kernel_builds(void **state) {
    (void)state;
    uint32_t headers = 0;
    for (uint32_t i = 0; grt_kernel_name(i); i++) {
        const char *name = grt_kernel_name(i);
        if (!grt_kernel_exists(test.dev, name)) {
            assert_null(grt_kernel_table[i]->lane);
            TEST_REFUSED(grt_kernel_get(test.dev, grt_kernel_desc(.name = name)), GRT_UNSUPPORTED,
                         "does not run on");
            continue;
        }
        if (grt_kernel_table[i]->vendor) {
            // not for all of a vendor's devices, nor with any constants: see suite_gemm.c
            continue;
        }
        const char *lack = lacking(grt_kernel_table[i]);
        if (lack) {
            TEST_REFUSED(grt_kernel_get(test.dev, grt_kernel_desc(.name = name)), GRT_UNSUPPORTED,
                         lack);
            continue;
        }
        grt_log_set(count_headers, &headers, GRT_LOG_DEBUG);
        const struct grt_kernel *kernel = grt_kernel_get(test.dev, grt_kernel_desc(.name = name));
        test_log_install();
        if (!kernel) {
            print_error("%s does not build on %s: %s\n", name, test.selector, grt_last_error());
        }
        assert_non_null(kernel);
    }
    // Another PoCL may want it; it is asked once.
    const bool known = strncmp(grt_dev_info(test.dev)->driver_version, "3.1", 3) == 0;
    assert_true(headers <= (known ? 0u : 1u));
}

// Every shape of workgroup a device allows, up to its limit.
static void workgroup_sizes(void **state) {
    (void)state;
    uint32_t limit = grt_dev_info(test.dev)->caps.max_wg;
    for (uint32_t wg = 1; wg <= limit && wg <= 1024; wg *= test.small ? 16 : 4) {
        assert_non_null(
            grt_kernel_get(test.dev, grt_kernel_desc(.name = "copy", .specs = {{"WG", wg}})));
    }
    assert_non_null(
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "copy", .specs = {{"WG", 96}})));
    TEST_REFUSED(
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "copy", .specs = {{"WG", limit + 1}})),
        GRT_UNSUPPORTED, "copy");
    TEST_REFUSED(grt_kernel_get(test.dev, grt_kernel_desc(.name = "copy", .specs = {{"WG", 0}})),
                 GRT_UNSUPPORTED, "copy");
    test_usable(test.dev);
}

static void shared_memory_limit(void **state) {
    (void)state;
    // A tile of 4 x 1000 x 1001 bytes fits into no workgroup's shared memory.
    TEST_REFUSED(
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "transpose", .specs = {{"TILE", 1000}})),
        GRT_UNSUPPORTED, "shared memory");
    test_usable(test.dev);
}

// A device without 16-bit storage, as far as the runtime knows.
static void no_16_bit_storage(void **state) {
    (void)state;
    uint32_t had = test.dev->info.caps.f16_storage;
    test.dev->info.caps.f16_storage = 0;
    test_refusal_begin();
    uint32_t errors = test_log.lines[GRT_LOG_ERROR];
    const struct grt_kernel *kernel =
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "widen", .specs = {{"WG", 3}}));
    test.dev->info.caps.f16_storage = had;
    test_check_refused(!kernel, GRT_UNSUPPORTED, "16-bit", errors, __FILE__, __LINE__);
}

static void kept_by_the_device(void **state) {
    (void)state;
    const struct grt_kernel *a = grt_kernel_get(test.dev, grt_kernel_desc(.name = "reduce"));
    const struct grt_kernel *b = grt_kernel_get(test.dev, grt_kernel_desc(.name = "reduce"));
    assert_true(a && a == b);
    // Written out, the default is the same kernel; another value is another one.
    const struct grt_kernel *c =
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "reduce", .specs = {{"OP", 0}}));
    assert_ptr_equal(a, c);
    const struct grt_kernel *d =
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "reduce", .specs = {{"OP", 1}}));
    assert_true(d && d != a);
    const struct grt_kernel *e = grt_kernel_get(
        test.dev, grt_kernel_desc(.name = "reduce", .specs = {{"OP", 1}, {"WG", 64}}));
    assert_ptr_equal(d, e);
    assert_ptr_equal(grt_kernel_get(test.ref, grt_kernel_desc(.name = "reduce"))->dev, test.ref);
}

static void refusals(void **state) {
    (void)state;
    TEST_REFUSED(grt_kernel_get(test.dev, grt_kernel_desc(.name = "copyy")), GRT_INVALID, "copyy");
    TEST_REFUSED(grt_kernel_get(test.dev, grt_kernel_desc(.name = "")), GRT_INVALID, "kernel");
    TEST_REFUSED(grt_kernel_get(test.dev, grt_kernel_desc(.name = "copy", .specs = {{"TILE", 8}})),
                 GRT_INVALID, "TILE");
    TEST_REFUSED(grt_kernel_get(NULL, grt_kernel_desc(.name = "copy")), GRT_INVALID, "device");
    TEST_REFUSED(grt_kernel_get(test.dev, NULL), GRT_INVALID, "kernel");
    TEST_REFUSED(grt_kernel_get(test.dev, grt_kernel_desc(.name = NULL)), GRT_INVALID, "kernel");
    test_usable(test.dev);
}

// The negative control of the checkers (oclgrind.sh, gpu_assisted.sh): a kernel that reads and
// writes far past its buffers. Only on their demand, for a driver without a checker may crash.
static void strays_on_purpose(void **state) {
    (void)state;
    const char *wanted = getenv("GPURT_TEST_STRAY");
    if (!wanted || strcmp(wanted, "1") != 0) {
        return;
    }
    struct grt_buf *x = test_buf(test.dev, 64, GRT_BUF_DEVICE);
    struct grt_buf *y = test_buf(test.dev, 64, GRT_BUF_DEVICE);
    const struct grt_kernel *copy = grt_kernel_get(test.dev, grt_kernel_desc(.name = "copy"));
    const uint32_t words = 4096;
    struct grt_graph *graph = grt_graph_create(test.dev, "stray");
    grt_graph_dispatch(graph, grt_dispatch(.kernel = copy, .bindings = {{x}, {y}}, .params = &words,
                                           .params_size = sizeof words));
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    grt_buf_destroy(&x);
    grt_buf_destroy(&y);
}

struct built {
    uint32_t count;
    char names[4][16];
    uint32_t nth[4], of[4];
};

static void on_build(void *context, const char *name, uint32_t nth, uint32_t of) {
    struct built *b = context;
    assert_true(b->count < 4);
    snprintf(b->names[b->count], sizeof b->names[0], "%s", name);
    b->nth[b->count] = nth;
    b->of[b->count++] = of;
}

// What is recorded is built at the bake, each once, and how many there are is known then.
static void built_when_baked(void **state) {
    (void)state;
    struct built built = {0};
    bool told = grt_dev_info(test.dev)->backend != GRT_BACKEND_REF;
    const struct grt_kernel *copy =
        grt_kernel_promise(test.dev, grt_kernel_desc(.name = "copy", .specs = {{"WG", 7}}));
    const struct grt_kernel *fill =
        grt_kernel_promise(test.dev, grt_kernel_desc(.name = "fill", .specs = {{"WG", 7}}));
    assert_true(copy && fill && copy->promised && fill->promised && copy != fill);
    struct grt_cmd cmds[4] = {{.kind = GRT_CMD_DISPATCH, .kernel = copy},
                              {.kind = GRT_CMD_FILL},
                              {.kind = GRT_CMD_DISPATCH, .kernel = fill},
                              {.kind = GRT_CMD_DISPATCH, .kernel = copy}};
    grt_kernel_watch(on_build, &built);
    assert_true(grt_kernels_keep_promises(test.dev, cmds, 4));
    assert_true(!cmds[0].kernel->promised && cmds[0].kernel == cmds[3].kernel);
    assert_true(!cmds[2].kernel->promised && cmds[2].kernel != cmds[0].kernel);
    assert_int_equal(built.count, told ? 2 : 0);
    for (uint32_t i = 0; i < built.count; i++) {
        assert_string_equal(built.names[i], i ? "fill" : "copy");
        assert_true(built.nth[i] == i + 1 && built.of[i] == 2);
    }
    // They are there now.
    assert_ptr_equal(
        grt_kernel_promise(test.dev, grt_kernel_desc(.name = "copy", .specs = {{"WG", 7}})),
        cmds[0].kernel);
    assert_int_equal(built.count, told ? 2 : 0);
    grt_kernel_watch(NULL, NULL);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(built_when_baked), TEST_CASE(list_names_every_kernel), TEST_CASE(every_kernel_builds),
    TEST_CASE(workgroup_sizes),  TEST_CASE(shared_memory_limit),     TEST_CASE(kept_by_the_device),
    TEST_CASE(refusals),         TEST_CASE(no_16_bit_storage),       TEST_CASE(strays_on_purpose),
};
TEST_SUITE(kernel, true, cases);
