// SPDX-License-Identifier: Apache-2.0
// What the OpenCL backend reads out of a driver's answers. The drivers are made up: a CPU has no
// PCI place, no subgroups and none of the vendors' extensions. A question without an answer leaves
// rubbish behind, as drivers may.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

// ---- answers ----

struct answer {
    cl_device_info what;
    const void *bytes;
    size_t size;
};
// An answer of one number, and a text.
#define NUMBER(type, what, value)                                                                  \
    { what, &(const type){value}, sizeof(type) }
#define TEXT(what, text)                                                                           \
    { what, text, sizeof text }

static const struct answer *answers;
static size_t answer_count;

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *got) {
    (void)device;
    for (size_t i = 0; i < answer_count; i++) {
        if (answers[i].what == what) {
            size_t fits = answers[i].size < size ? answers[i].size : size;
            if (value) {
                memcpy(value, answers[i].bytes, fits);
            }
            if (got) {
                *got = answers[i].size;
            }
            return CL_SUCCESS;
        }
    }
    if (value) {
        memset(value, 0x5a, size);
    }
    return CL_INVALID_VALUE;
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
                                        void *value, size_t *got) {
    (void)platform, (void)got;
    assert_int_equal(what, CL_PLATFORM_NAME);
    snprintf(value, size, "Made Up OpenCL\n");
    return CL_SUCCESS;
}

static void describe(const struct answer *list, size_t count, struct grt_dev_info *info) {
    struct gcl_api before = gcl;
    gcl.clGetDeviceInfo = device_info;
    gcl.clGetPlatformInfo = platform_info;
    answers = list;
    answer_count = count;
    bool ok = gcl_describe(&(struct gcl_found){0}, info);
    gcl = before;
    assert_true(ok);
    assert_string_equal(info->driver, "Made Up OpenCL");
}
#define DESCRIBE(list, info) describe(list, sizeof(list) / sizeof *(list), info)

static void nvidia(void **state) {
    (void)state;
    struct answer list[] = {
        TEXT(CL_DEVICE_NAME, "  Made Up H "),
        TEXT(CL_DEVICE_VENDOR, "NVIDIA Corporation"),
        TEXT(CL_DRIVER_VERSION, "580.1"),
        TEXT(CL_DEVICE_VERSION, "OpenCL 3.0"),
        TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_fp16_not cl_nv_device_attribute_query"),
        NUMBER(cl_uint, CL_DEVICE_VENDOR_ID, 0x10de),
        {CL_DEVICE_MAX_WORK_ITEM_SIZES, (const size_t[]){1024, 512, 64}, 3 * sizeof(size_t)},
        NUMBER(size_t, CL_DEVICE_MAX_WORK_GROUP_SIZE, 2048),
        NUMBER(cl_uint, CL_DEVICE_ADDRESS_BITS, 64),
        NUMBER(cl_ulong, CL_DEVICE_LOCAL_MEM_SIZE, 49152),
        NUMBER(cl_uint, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4096),
        NUMBER(cl_ulong, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 1ull << 35),
        NUMBER(cl_ulong, CL_DEVICE_GLOBAL_MEM_SIZE, 1ull << 37),
        NUMBER(cl_device_type, CL_DEVICE_TYPE, CL_DEVICE_TYPE_GPU),
        NUMBER(cl_uint, CL_DEVICE_HOST_UNIFIED_MEMORY, 0),
        NUMBER(cl_uint, CL_DEVICE_MAX_COMPUTE_UNITS, 132),
        NUMBER(cl_uint, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 1),
        NUMBER(cl_uint, CL_DEVICE_WARP_SIZE_NV, 32),
        NUMBER(cl_uint, 0x4008, 0x65),        // the bus
        NUMBER(cl_uint, 0x4009, 5 << 3 | 3),  // device and function
        NUMBER(cl_uint, 0x400a, 0x10002),     // the domain
    };
    struct grt_dev_info info;
    DESCRIBE(list, &info);
    assert_string_equal(info.name, "Made Up H");
    assert_string_equal(info.vendor, "NVIDIA Corporation");
    assert_string_equal(info.driver_version, "580.1");
    assert_string_equal(info.api_version, "OpenCL 3.0");
    assert_string_equal(info.pci, "0002:65:05.3");
    const struct grt_caps *caps = &info.caps;
    assert_int_equal(caps->max_wg, 1024);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(caps->max_groups[i], INT32_MAX);
    }
    assert_int_equal(caps->shmem, 49152 - 1024);
    assert_int_equal(caps->align, 512);
    assert_true(!caps->software && !caps->integrated && !caps->f16_arith && caps->f16_storage);
    assert_int_equal(caps->vector, 0);
    assert_int_equal(caps->subgroup, 32);
    assert_int_equal(caps->compute_units, 132);
    assert_true(caps->max_binding == 1ull << 35 && caps->max_buffer == 1ull << 35);
    assert_true(caps->max_texels == 1ull << 31 && caps->memory == 1ull << 37);
    // With no more than is set aside, nothing is.
    cl_ulong little = 1024;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (list[i].what == CL_DEVICE_LOCAL_MEM_SIZE) {
            list[i].bytes = &little;
        }
    }
    DESCRIBE(list, &info);
    assert_int_equal(info.caps.shmem, 1024);
    little = 1025;
    DESCRIBE(list, &info);
    assert_int_equal(info.caps.shmem, 1);
}

static void amd(void **state) {
    (void)state;
    unsigned char place[24] = {1};
    place[21] = 3;
    place[22] = 31;
    place[23] = 7;
    const struct answer list[] = {
        TEXT(CL_DEVICE_NAME, "gfx1100"),
        TEXT(CL_DEVICE_BOARD_NAME_AMD, "Made Up XT"),
        TEXT(CL_DEVICE_EXTENSIONS, "cl_amd_device_attribute_query cl_khr_fp16"),
        NUMBER(cl_uint, CL_DEVICE_VENDOR_ID, 0x1002),
        NUMBER(size_t, CL_DEVICE_MAX_WORK_GROUP_SIZE, 256),
        NUMBER(cl_uint, CL_DEVICE_ADDRESS_BITS, 32),
        NUMBER(cl_ulong, CL_DEVICE_LOCAL_MEM_SIZE, 65536),
        NUMBER(cl_uint, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 8),
        NUMBER(cl_device_type, CL_DEVICE_TYPE, CL_DEVICE_TYPE_GPU),
        NUMBER(cl_uint, CL_DEVICE_HOST_UNIFIED_MEMORY, 1),
        NUMBER(cl_uint, CL_DEVICE_WAVEFRONT_WIDTH_AMD, 64),
        {CL_DEVICE_TOPOLOGY_AMD, place, sizeof place},
    };
    struct grt_dev_info info;
    DESCRIBE(list, &info);
    assert_string_equal(info.name, "Made Up XT (gfx1100)");
    assert_string_equal(info.pci, "0000:03:1f.7");
    assert_int_equal(info.caps.max_wg, 256);
    assert_int_equal(info.caps.max_groups[0], UINT32_MAX / 256);
    assert_int_equal(info.caps.shmem, 65536);
    assert_int_equal(info.caps.align, 4);
    assert_int_equal(info.caps.subgroup, 64);
    assert_true(info.caps.integrated && info.caps.f16_arith);
    // What it does not answer is nothing.
    assert_string_equal(info.vendor, "");
    assert_int_equal(info.caps.compute_units, 0);
    assert_true(info.caps.memory == 0 && info.caps.max_buffer == 0);
    // A place that is not on PCI Express is none.
    place[0] = 2;
    DESCRIBE(list, &info);
    assert_string_equal(info.pci, "");
}

static void intel(void **state) {
    (void)state;
    const size_t sizes[9] = {8, 16, 32};
    const cl_device_pci_bus_info_khr place = {0x1234, 0xab, 2, 0};
    struct answer list[] = {
        {CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizes, 3 * sizeof *sizes},
        TEXT(CL_DEVICE_EXTENSIONS, "cl_intel_required_subgroup_size cl_khr_pci_bus_info"),
        {CL_DEVICE_PCI_BUS_INFO_KHR, &place, sizeof place},
        {CL_DEVICE_MAX_WORK_ITEM_SIZES, (const size_t[]){4096, 4096, 4096}, 3 * sizeof(size_t)},
        NUMBER(size_t, CL_DEVICE_MAX_WORK_GROUP_SIZE, 512),
        NUMBER(cl_device_type, CL_DEVICE_TYPE, CL_DEVICE_TYPE_CPU),
        NUMBER(cl_uint, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 8),
        NUMBER(cl_ulong, CL_DEVICE_MAX_COMPUTE_UNITS, 77),  // more bytes than were asked for
    };
    struct grt_dev_info info;
    DESCRIBE(list, &info);
    assert_string_equal(info.pci, "1234:ab:02.0");
    assert_int_equal(info.caps.subgroup, 16);
    assert_int_equal(info.caps.max_wg, 512);
    assert_true(info.caps.software);
    assert_int_equal(info.caps.vector, 8);
    assert_int_equal(info.caps.compute_units, 0);
    // One size, and more than there is room for.
    list[0].size = sizeof *sizes;
    DESCRIBE(list, &info);
    assert_int_equal(info.caps.subgroup, 8);
    list[0].size = sizeof sizes;
    DESCRIBE(list, &info);
    assert_int_equal(info.caps.subgroup, 0);
}

#define FILES "OCL_ICD_FILENAMES"

// Platforms 1 to 3 of which the second fails; devices 10 to 14 of the first, of which 11 is not
// available and 12 has no compiler; 30 of the third.
static cl_int CL_API_CALL platform_ids(cl_uint room, cl_platform_id *list, cl_uint *count) {
    assert_true(room >= 3);
    getenv(FILES)[3] = '\0';  // as a loader does
    for (uintptr_t i = 0; i < 3; i++) {
        list[i] = (cl_platform_id)(i + 1);
    }
    *count = 3;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_ids(cl_platform_id platform, cl_device_type type, cl_uint room,
                                     cl_device_id *list, cl_uint *count) {
    uintptr_t number = (uintptr_t)platform;
    assert_true(type == CL_DEVICE_TYPE_ALL && room >= 5);
    *count = number == 1 ? 5 : 1;
    for (uintptr_t i = 0; i < *count; i++) {
        list[i] = (cl_device_id)(10 * number + i);
    }
    return number == 2 ? CL_DEVICE_NOT_FOUND : CL_SUCCESS;
}

static cl_int CL_API_CALL one_is_there(cl_device_id device, cl_device_info what, size_t size,
                                       void *value, size_t *got) {
    uintptr_t without = what == CL_DEVICE_AVAILABLE ? 11 : 12;
    assert_true(size >= sizeof(cl_bool));
    memcpy(value, &(cl_bool){(uintptr_t)device != without}, sizeof(cl_bool));
    *got = sizeof(cl_bool);
    return CL_SUCCESS;
}

static void walk(void **state) {
    (void)state;
    struct gcl_api before = gcl;
    struct gcl_found found[GCL_MAX_DEVICES];
    cl_int code = -1;
    const char *files = getenv(FILES);
    char *kept = files ? strdup(files) : NULL;
    assert_int_equal(setenv(FILES, "one:two", 1), 0);
    gcl.clGetPlatformIDs = platform_ids;
    gcl.clGetDeviceIDs = device_ids;
    gcl.clGetDeviceInfo = one_is_there;
    uint32_t count = gcl_find_devices(found, &code);
    gcl = before;
    assert_int_equal(code, CL_SUCCESS);
    // What is started behind it has all names of drivers.
    assert_string_equal(getenv(FILES), "one:two");
    assert_int_equal(kept ? setenv(FILES, kept, 1) : unsetenv(FILES), 0);
    free(kept);
    static const uintptr_t want[][2] = {{1, 10}, {1, 13}, {1, 14}, {3, 30}};
    assert_int_equal(count, 4);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal((uintptr_t)found[i].platform, want[i][0]);
        assert_int_equal((uintptr_t)found[i].device, want[i][1]);
    }
}

// ---- queues ----

static uintptr_t queues, most_queues, released;

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties,
                                                 cl_int *code) {
    assert_true((uintptr_t)context == 3 && (uintptr_t)device == 4);
    assert_int_equal(properties, GCL_QUEUE_PROPERTIES);
    *code = queues < most_queues ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    return queues < most_queues ? (cl_command_queue)(++queues) : NULL;
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue) {
    released = 10 * released + (uintptr_t)queue;
    return CL_SUCCESS;
}

// A driver that gives one queue and refuses the next: the one is given back, once, and the line
// names the device.
static void no_queue(void **state) {
    (void)state;
    struct gcl_api before = gcl;
    static struct gcl_dev dev;
    dev = (struct gcl_dev){.context = (cl_context)3, .device = (cl_device_id)4};
    gcl.clCreateCommandQueue = create_queue;
    gcl.clReleaseCommandQueue = release_queue;
    most_queues = 2;
    assert_true(gcl_lanes_create(&dev, "Made Up"));
    assert_int_equal((uintptr_t)dev.queue, 1);
    assert_int_equal((uintptr_t)dev.lanes[GRT_LANE_ASIDE].queue, 2);
    assert_int_equal(dev.base.lanes, 2);
    gcl_lanes_destroy(&dev);
    assert_int_equal(released, 12);
    queues = released = 0;
    most_queues = 1;
    TEST_REFUSED(gcl_lanes_create(&dev, "Made Up"), GRT_NO_MEMORY, "no command queue on 'Made Up'");
    assert_int_equal(released, 1);
    assert_null(dev.lanes[GRT_LANE_MAIN].queue);
    gcl = before;
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(no_queue), TEST_CASE(nvidia), TEST_CASE(amd), TEST_CASE(intel), TEST_CASE(walk),
};
TEST_SUITE(clcaps, false, cases);
