// SPDX-License-Identifier: Apache-2.0
// Kernels that reach a Vulkan device as PTX: where the text comes from, that the disk keeps it, and that one with more
// shared memory than the device has is never launched. Both devices are made up, since no CPU driver
// takes PTX; each case has a cache folder of its own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_kit.h"
#include "runtime/graph_parts.h"
#include "runtime/import.h"
#include "runtime/report.h"

#define PTX_HEAD ".version 9.0\n.target sm_90a, texmode_independent\n"

// ---- a device that takes PTX, and one that makes it ----

static struct world {
    const char *text;  // what the compiler makes; NULL: it cannot
    enum grt_status refusal;
    uint32_t made, imported;
    char got[512];
} world;

static enum grt_status make(struct grt_dev *dev, const struct grt_kernel_info *info,
                            const uint32_t *values, char **ptx) {
    (void)dev, (void)values;
    world.made += 1;
    *ptx = world.text ? strdup(world.text) : NULL;
    if (!world.text) {
        grt_fail(world.refusal, "kernel %s is not made", info->name);
    }
    return world.text ? GRT_OK : world.refusal;
}

static struct grt_kernel *take(struct grt_dev *dev, const struct grt_kernel_info *info,
                               const uint32_t *values, const char *ptx) {
    (void)dev, (void)info, (void)values;
    world.imported += 1;
    snprintf(world.got, sizeof world.got, "%s", ptx);
    return calloc(1, sizeof(struct grt_kernel));
}

static const struct grt_dev_fns maker_fns = {.kernel_ptx = make};
static const struct grt_dev_fns taker_fns = {.kernel_import = take};
static struct grt_dev maker, taker;
static const struct grt_spec_info specs[] = {{"WG", 64}, {"BN", 128}};
static const struct grt_kernel_info kernel = {
    .name = "made_up", .specs = specs, .spec_count = 2, .opencl = "text", .imports = true};

static void begin(const char *text) {
    world = (struct world){.text = text, .refusal = GRT_UNSUPPORTED};
    maker = (struct grt_dev){.fns = &maker_fns};
    taker = (struct grt_dev){.fns = &taker_fns,
                             .compiler = &maker,
                             .info = {.name = "Made Up 1",
                                      .driver_version = "1.0",
                                      .selector = "vulkan:9",
                                      .caps = {.imports = 1, .shmem = 49152}}};
}

static bool imports(uint32_t bn) {
    const uint32_t values[] = {64, bn};
    struct grt_kernel *made = grt_import_kernel(&taker, &kernel, values);
    free(made);
    return made != NULL;
}

// ---- cases ----

static void shared_memory_is_counted(void **state) {
    (void)state;
    assert_int_equal(grt_ptx_shared(PTX_HEAD), 0);
    assert_int_equal(grt_ptx_shared(PTX_HEAD "\t.shared .align 4 .u32 last;\n"), 8);
    assert_int_equal(grt_ptx_shared(PTX_HEAD "\t.shared .align 4 .b8 few[20];\n"
                                             ".shared .align 1024 .b8 ring[45056];\n"
                                             "ld.shared.u32 %r1, [ring];\n"),
                     1024 + 45056);
}

static void the_text_is_made_once(void **state) {
    (void)state;
    begin(PTX_HEAD "one");
    assert_true(imports(128));
    assert_string_equal(world.got, PTX_HEAD "one");
    assert_true(imports(128));
    assert_int_equal(world.made, 1);
    assert_int_equal(world.imported, 2);

    // Another constant, another driver, another text: made anew.
    world.text = PTX_HEAD "two";
    assert_true(imports(256));
    assert_string_equal(world.got, PTX_HEAD "two");
    strcpy(taker.info.driver_version, "1.1");
    assert_true(imports(256));
    assert_int_equal(world.made, 3);
}

static void too_much_shared_memory_is_refused(void **state) {
    (void)state;
    begin(PTX_HEAD ".shared .align 1024 .b8 ring[49152];\n");
    assert_true(imports(128));
    world.text = PTX_HEAD ".shared .align 1024 .b8 ring[49152];\n.shared .align 8 .b8 more[8];\n";
    TEST_REFUSED(imports(256), GRT_UNSUPPORTED, "49160 bytes of shared memory");
    assert_int_equal(world.imported, 1);
}

static void what_a_device_cannot_is_remembered(void **state) {
    (void)state;
    begin(NULL);
    TEST_REFUSED(imports(128), GRT_UNSUPPORTED, "is not made");
    TEST_REFUSED(imports(128), GRT_UNSUPPORTED, "not for Made Up 1");
    assert_int_equal(world.made, 1);

    // A failure that may pass is not, nor does it matter whether anybody hears of it.
    world.refusal = GRT_COMPILE;
    TEST_REFUSED(imports(256), GRT_COMPILE, "is not made");
    bool before = grt_quiet(true);
    assert_false(imports(256));
    grt_quiet(before);
    assert_int_equal(world.made, 3);
    world.text = PTX_HEAD;
    assert_true(imports(256));
}

static void without_a_compiler_there_is_no_kernel(void **state) {
    (void)state;
    begin(PTX_HEAD);
    taker.compiler = NULL;
    taker.no_compiler = true;
    TEST_REFUSED(imports(128), GRT_UNSUPPORTED, "does not know 'Made Up 1'");
    assert_int_equal(world.imported, 0);
}

// Two products that touch nothing in common, by one kernel: of PTX they wait for each other, else not.
static void launches_of_one_kernel_wait(void **state) {
    (void)state;
    static const struct grt_arg_info args[] = {{"y", "float", GRT_WRITE}};
    struct grt_kernel_info info = {.name = "made_up", .args = args, .arg_count = 1};
    struct grt_kernel one = {.info = &info}, another = {.info = &info};
    struct grt_buf buf = {.size = 1024};
    for (uint32_t i = 0; i < 4; i++) {
        info.imports = i % 2 == 1;
        struct grt_cmd cmds[2] = {
            {.kind = GRT_CMD_DISPATCH, .kernel = &one, .bindings = {{&buf, 0, 256}}},
            {.kind = GRT_CMD_DISPATCH, .kernel = &one, .bindings = {{&buf, 256, 256}}}};
        cmds[1].kernel = i < 2 ? &one : &another;
        bool waits = info.imports && i < 2;
        assert_int_equal(grt_find_hazards(cmds, 2), waits);
        assert_int_equal(cmds[1].sync, waits ? 0 : -1);
    }
}

static const struct CMUnitTest cases[] = {
    CACHE_CASE(shared_memory_is_counted),
    CACHE_CASE(the_text_is_made_once),
    CACHE_CASE(too_much_shared_memory_is_refused),
    CACHE_CASE(what_a_device_cannot_is_remembered),
    CACHE_CASE(without_a_compiler_there_is_no_kernel),
    CACHE_CASE(launches_of_one_kernel_wait),
};
TEST_SUITE(import, false, cases);
