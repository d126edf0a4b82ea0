// SPDX-License-Identifier: Apache-2.0
// Recording cannot fail: the first mistake sticks, baking tells it, and the device stays usable.
#include "kits/graph_kit.h"

#include "device/section.h"

// The graph holds one mistake; a second, different one and good work follow. Destroys it.
static void refused(struct grt_graph *graph, enum grt_status status, const char *sentence) {
    grt_graph_phase(graph, NULL);
    grt_graph_fill(graph, kit_whole(kit.a), 1);
    TEST_REFUSED(grt_graph_bake(graph), status, sentence);
    TEST_REFUSED(grt_graph_bake(graph), status, sentence);
    TEST_REFUSED(grt_graph_run(graph), GRT_INVALID, "bake");
    TEST_REFUSED(grt_graph_finish(graph), status, sentence);
    grt_graph_destroy(&graph);
    assert_null(graph);
    test_usable(test.dev);
}

static void dispatch_mistakes(void **state) {
    (void)state;
    struct grt_graph *graph = kit_graph();
    kit_copy(graph, kit_whole(kit.a), kit_whole(kit.up), KIT_WORDS);
    refused(graph, GRT_INVALID, "'x'");
    kit_copy(graph = kit_graph(), kit_whole(kit.down), kit_whole(kit.a), KIT_WORDS);
    refused(graph, GRT_INVALID, "'y'");
    kit_copy(graph = kit_graph(), kit_part(kit.a, grt_dev_info(test.dev)->caps.align / 2, 64),
             kit_whole(kit.b), 4);
    refused(graph, GRT_INVALID, "multiple of");
    kit_copy(graph = kit_graph(), kit_part(kit.a, kit.step, KIT_BYTES), kit_whole(kit.b), 4);
    refused(graph, GRT_INVALID, "16384");
    kit_copy(graph = kit_graph(), kit_part(kit.a, KIT_BYTES, 0), kit_whole(kit.b), 4);
    refused(graph, GRT_INVALID, "16384");
    kit_copy(graph = kit_graph(), kit_part(kit.a, UINT64_MAX - kit.step + 1, 2 * kit.step),
             kit_whole(kit.b), 4);
    refused(graph, GRT_INVALID, "16384");
    kit_copy(graph = kit_graph(), kit_part(kit.a, 0, 2 * kit.step),
             kit_part(kit.a, kit.step, kit.step), kit.step / 4);
    refused(graph, GRT_INVALID, "overlap");
    kit_copy(graph = kit_graph(), kit_whole(kit.a), kit_whole(NULL), 4);
    refused(graph, GRT_INVALID, "no buffer");

    uint32_t params[2] = {4, 0};
    grt_graph_dispatch(graph = kit_graph(),
                       grt_dispatch(.kernel = kit.copy,
                                    .bindings = {kit_whole(kit.a), kit_whole(kit.b)},
                                    .params = params, .params_size = 8));
    refused(graph, GRT_INVALID, "8");
    grt_graph_dispatch(
        graph = kit_graph(),
        grt_dispatch(.kernel = kit.copy, .bindings = {kit_whole(kit.a), kit_whole(kit.b)}));
    refused(graph, GRT_INVALID, "parameters");
    grt_graph_dispatch(graph = kit_graph(), grt_dispatch(.params = params, .params_size = 4));
    refused(graph, GRT_INVALID, "kernel");
    grt_graph_dispatch(graph = kit_graph(), NULL);
    refused(graph, GRT_INVALID, "kernel");
}

static void too_many_groups(void **state) {
    (void)state;
    const uint32_t *limits = grt_dev_info(test.dev)->caps.max_groups;
    for (int axis = 0; axis < 3; axis++) {
        if (limits[axis] == UINT32_MAX) {
            continue;
        }
        uint32_t params[1] = {4};
        struct grt_dispatch dispatch = {.kernel = kit.copy,
                                        .bindings = {kit_whole(kit.a), kit_whole(kit.b)},
                                        .params = params,
                                        .params_size = sizeof params};
        dispatch.groups[axis] = limits[axis] + 1;
        struct grt_graph *graph = kit_graph();
        grt_graph_dispatch(graph, &dispatch);
        refused(graph, GRT_UNSUPPORTED, "workgroups");
    }
}

static void other_device(void **state) {
    (void)state;
    struct grt_buf *foreign = test_buf(test.ref, KIT_BYTES, GRT_BUF_DEVICE);
    struct grt_graph *graph = kit_graph();
    kit_copy(graph, kit_whole(kit.a), kit_whole(foreign), 4);
    refused(graph, GRT_INVALID, "another device");
    grt_graph_copy(graph = kit_graph(), kit_whole(foreign), kit_whole(kit.a));
    refused(graph, GRT_INVALID, "another device");
    uint32_t params[1] = {4};
    const struct grt_kernel *kernel = grt_kernel_get(test.ref, grt_kernel_desc(.name = "copy"));
    grt_graph_dispatch(graph = kit_graph(),
                       grt_dispatch(.kernel = kernel,
                                    .bindings = {kit_whole(kit.a), kit_whole(kit.b)},
                                    .params = params, .params_size = sizeof params));
    refused(graph, GRT_INVALID, "kernel");
    grt_buf_destroy(&foreign);
}

static void copy_and_fill_mistakes(void **state) {
    (void)state;
    struct grt_graph *graph = kit_graph();
    grt_graph_copy(graph, kit_part(kit.a, 2, 4), kit_part(kit.b, 0, 4));
    refused(graph, GRT_INVALID, "multiples of 4");
    grt_graph_copy(graph = kit_graph(), kit_part(kit.a, 0, 6), kit_part(kit.b, 0, 6));
    refused(graph, GRT_INVALID, "multiples of 4");
    grt_graph_copy(graph = kit_graph(), kit_part(kit.a, 0, 8), kit_part(kit.b, 0, 12));
    refused(graph, GRT_INVALID, "12");
    grt_graph_copy(graph = kit_graph(), kit_part(kit.a, 0, 8), kit_part(kit.a, 4, 8));
    refused(graph, GRT_INVALID, "overlap");
    grt_graph_copy(graph = kit_graph(), kit_part(kit.a, 0, 8), kit_part(kit.b, KIT_BYTES - 4, 8));
    refused(graph, GRT_INVALID, "16384");
    grt_graph_copy(graph = kit_graph(), kit_whole(kit.up), kit_whole(kit.a));
    refused(graph, GRT_INVALID, "upload");
    grt_graph_copy(graph = kit_graph(), kit_whole(kit.a), kit_whole(kit.down));
    refused(graph, GRT_INVALID, "readback");
    grt_graph_fill(graph = kit_graph(), kit_whole(kit.down), 0);
    refused(graph, GRT_INVALID, "host");
    grt_graph_fill(graph = kit_graph(), kit_part(kit.a, 1, 4), 0);
    refused(graph, GRT_INVALID, "multiples of 4");
    grt_graph_fill(graph = kit_graph(), kit_whole(NULL), 0);
    refused(graph, GRT_INVALID, "no buffer");
    grt_graph_phase(graph = kit_graph(), "");
    refused(graph, GRT_INVALID, "phase");
    graph = kit_graph();
    for (int i = 0; i <= GRT_MAX_PHASES; i++) {
        grt_graph_phase(graph, "again");
    }
    refused(graph, GRT_INVALID, "phase");
    grt_graph_section(graph = kit_graph(), "");
    refused(graph, GRT_INVALID, "section");
    grt_graph_section(graph = kit_graph(), NULL);
    refused(graph, GRT_INVALID, "section");
    grt_graph_reject(graph = kit_graph(), GRT_UNSUPPORTED, "op %s of %d", "x", 3);
    refused(graph, GRT_UNSUPPORTED, "op x of 3");
}

static void order_of_calls(void **state) {
    (void)state;
    TEST_REFUSED(grt_graph_create(NULL, "x"), GRT_INVALID, "device");
    TEST_REFUSED(grt_graph_bake(NULL), GRT_INVALID, "graph");
    TEST_REFUSED(grt_graph_run(NULL), GRT_INVALID, "graph");
    TEST_REFUSED(grt_graph_finish(NULL), GRT_INVALID, "graph");
    grt_graph_destroy(NULL);
    assert_null(grt_graph_dev(NULL));
    assert_int_equal(grt_graph_times(NULL, NULL, 0), 0);
    struct grt_graph *graph = grt_graph_create(test.dev, NULL);
    assert_non_null(graph);
    TEST_REFUSED(grt_graph_run(graph), GRT_INVALID, "bake");
    assert_true(grt_graph_finish(graph));  // nothing to do is no mistake
    assert_true(grt_graph_finish(graph));
    grt_graph_fill(graph, kit_whole(kit.a), 0);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "after the bake");
    grt_graph_destroy(&graph);
    grt_graph_destroy(&graph);
}

static const struct CMUnitTest cases[] = {
    KIT_CASE(dispatch_mistakes),      KIT_CASE(too_many_groups), KIT_CASE(other_device),
    KIT_CASE(copy_and_fill_mistakes), KIT_CASE(order_of_calls),
};
TEST_SUITE(record, true, cases);
