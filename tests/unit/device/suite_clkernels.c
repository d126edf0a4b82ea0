// SPDX-License-Identifier: Apache-2.0
// What the OpenCL backend makes of errors, kernels, buffers and marks: options and texts that the
// compiler gets, binaries from the cache, which answers are refusals. The driver is made up.
#include "harness/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"
#include "kits/cache_kit.h"

#define NUMBER(handle) ((unsigned)(uintptr_t)(handle))

static struct gcl_api before;
static char said[4096];
static int alive;       // programs, kernels, buffers and events
static int calls_left;  // until one is refused; below 0: never
static cl_int refusal;

static void say(const char *format, ...) GRT_PRINTF(1, 2);
static void say(const char *format, ...) {
    size_t used = strlen(said);
    va_list list;
    va_start(list, format);
    vsnprintf(said + used, sizeof said - used, format, list);
    va_end(list);
}
static void expect_said(const char *want) {
    assert_string_equal(said, want);
    said[0] = '\0';
}
static cl_int call(void) {
    return calls_left-- == 0 ? refusal : CL_SUCCESS;
}

// ---- errors ----

static void errors(void **state) {
    (void)state;
    static const struct {
        cl_int code;
        enum grt_status running, idle;
        const char *name;
    } rows[] = {
        {CL_SUCCESS, GRT_OK, GRT_OK, "CL_SUCCESS"},
        {CL_OUT_OF_RESOURCES, GRT_LOST, GRT_NO_MEMORY, "CL_OUT_OF_RESOURCES"},
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, GRT_NO_MEMORY, GRT_NO_MEMORY,
         "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {CL_OUT_OF_HOST_MEMORY, GRT_NO_MEMORY, GRT_NO_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
        {CL_INVALID_BUFFER_SIZE, GRT_NO_MEMORY, GRT_NO_MEMORY, "CL_INVALID_BUFFER_SIZE"},
        {CL_MAP_FAILURE, GRT_NO_MEMORY, GRT_NO_MEMORY, "CL_MAP_FAILURE"},
        {CL_DEVICE_NOT_AVAILABLE, GRT_LOST, GRT_LOST, "CL_DEVICE_NOT_AVAILABLE"},
        {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, GRT_LOST, GRT_LOST,
         "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
        {CL_INVALID_COMMAND_QUEUE, GRT_LOST, GRT_LOST, "CL_INVALID_COMMAND_QUEUE"},
        {CL_INVALID_CONTEXT, GRT_LOST, GRT_LOST, "CL_INVALID_CONTEXT"},
        {-9999, GRT_LOST, GRT_LOST, "NVIDIA_ILLEGAL_READ_OR_WRITE"},
        {CL_DEVICE_NOT_FOUND, GRT_NO_DEVICE, GRT_NO_DEVICE, "CL_DEVICE_NOT_FOUND"},
        {-1001, GRT_NO_DEVICE, GRT_NO_DEVICE, "CL_PLATFORM_NOT_FOUND_KHR"},
        {CL_BUILD_PROGRAM_FAILURE, GRT_COMPILE, GRT_COMPILE, "CL_BUILD_PROGRAM_FAILURE"},
        {CL_INVALID_BINARY, GRT_COMPILE, GRT_COMPILE, "CL_INVALID_BINARY"},
        {CL_INVALID_BUILD_OPTIONS, GRT_COMPILE, GRT_COMPILE, "CL_INVALID_BUILD_OPTIONS"},
        {CL_INVALID_KERNEL_NAME, GRT_COMPILE, GRT_COMPILE, "CL_INVALID_KERNEL_NAME"},
        {CL_INVALID_VALUE, GRT_UNSUPPORTED, GRT_UNSUPPORTED, "CL_INVALID_VALUE"},
        {CL_INVALID_WORK_GROUP_SIZE, GRT_UNSUPPORTED, GRT_UNSUPPORTED,
         "CL_INVALID_WORK_GROUP_SIZE"},
        {-12345, GRT_UNSUPPORTED, GRT_UNSUPPORTED, "unknown OpenCL error"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(gcl_status(rows[i].code, true), rows[i].running);
        assert_int_equal(gcl_status(rows[i].code, false), rows[i].idle);
        assert_string_equal(gcl_error_name(rows[i].code), rows[i].name);
    }
    struct gcl_dev dev = {0};
    TEST_REFUSED(gcl_fail(&dev, GRT_COMPILE, -11, "kernel %d", 3), GRT_COMPILE,
                 "kernel 3: CL_BUILD_PROGRAM_FAILURE (-11)");
    assert_null(strstr(grt_last_error(), "opened again"));
    assert_int_equal(dev.base.status, GRT_OK);
    TEST_REFUSED(gcl_fail(&dev, GRT_LOST, -36, "it"), GRT_LOST,
                 "it: CL_INVALID_COMMAND_QUEUE (-36); the device must be opened again");
    assert_int_equal(dev.base.status, GRT_LOST);
    TEST_REFUSED(gcl_fail(NULL, GRT_LOST, -36, "it"), GRT_LOST, "it: ");
}

// ---- kernels ----

static struct {
    cl_int build[4];  // answers of builds, in turn
    uint32_t builds;
    const char *log[4];  // what the compiler says of each
    const char *binary;  // what the driver gives of a program
    size_t size;
    cl_uint args;
    size_t max_wg;
    cl_int binary_status;  // of a program made of one
    char taken[512];       // a binary that the driver got
} driver;

static cl_program CL_API_CALL from_source(cl_context context, cl_uint count, const char **texts,
                                          const size_t *lengths, cl_int *code) {
    (void)context;
    assert_true(count == 2 && !lengths);
    assert_non_null(strstr(texts[0], "#define GRT_BUFFER(argument)"));
    say(" source(%s)", texts[1]);
    *code = call();
    alive += *code == CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_program)(uintptr_t)5 : NULL;
}
static cl_program CL_API_CALL from_binary(cl_context context, cl_uint count,
                                          const cl_device_id *devices, const size_t *lengths,
                                          const unsigned char **binaries, cl_int *status,
                                          cl_int *code) {
    (void)context, (void)devices;
    assert_int_equal(count, 1);
    say(" binary(%zu)", lengths[0]);
    snprintf(driver.taken, sizeof driver.taken, "%.*s", (int)lengths[0], (const char *)binaries[0]);
    *status = driver.binary_status;
    *code = call();
    alive += *code == CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_program)(uintptr_t)6 : NULL;
}
static cl_int CL_API_CALL build_it(cl_program program, cl_uint count, const cl_device_id *list,
                                   const char *options, void(CL_CALLBACK *then)(cl_program, void *),
                                   void *user) {
    (void)count, (void)list, (void)then, (void)user;
    say(" build(%u: %s)", NUMBER(program), options);
    return driver.build[driver.builds++ % 4];
}
static cl_int CL_API_CALL build_info(cl_program program, cl_device_id device,
                                     cl_program_build_info what, size_t size, void *value,
                                     size_t *got) {
    (void)program, (void)device;
    assert_int_equal(what, CL_PROGRAM_BUILD_LOG);
    const char *text = driver.builds > 0 ? driver.log[(driver.builds - 1) % 4] : NULL;
    text = text ? text : "";
    if (got) {
        *got = strlen(text) + 1;
    }
    if (value) {
        snprintf(value, size, "%s", text);
    }
    return CL_SUCCESS;
}
static cl_int CL_API_CALL program_info(cl_program program, cl_program_info what, size_t size,
                                       void *value, size_t *got) {
    (void)program, (void)got, (void)size;
    if (what == CL_PROGRAM_BINARY_SIZES) {
        memcpy(value, &driver.size, sizeof driver.size);
    } else {
        memcpy(*(unsigned char **)value, driver.binary, driver.size);
    }
    return driver.binary ? CL_SUCCESS : CL_INVALID_VALUE;
}
static cl_int CL_API_CALL end_program(cl_program program) {
    (void)program;
    alive--;
    return CL_SUCCESS;
}
static cl_kernel CL_API_CALL make_kernel(cl_program program, const char *name, cl_int *code) {
    (void)program;
    say(" kernel(%s)", name);
    *code = call();
    alive += *code == CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_kernel)(uintptr_t)8 : NULL;
}
static cl_int CL_API_CALL end_kernel(cl_kernel kernel) {
    (void)kernel;
    alive--;
    return CL_SUCCESS;
}
static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size,
                                      void *value, size_t *got) {
    (void)kernel, (void)size, (void)got;
    assert_int_equal(what, CL_KERNEL_NUM_ARGS);
    memcpy(value, &driver.args, sizeof driver.args);
    return call();
}
static cl_int CL_API_CALL group_info(cl_kernel kernel, cl_device_id device,
                                     cl_kernel_work_group_info what, size_t size, void *value,
                                     size_t *got) {
    (void)kernel, (void)device, (void)size, (void)got;
    assert_int_equal(what, CL_KERNEL_WORK_GROUP_SIZE);
    memcpy(value, &driver.max_wg, sizeof driver.max_wg);
    return call();
}

static struct gcl_dev *made_up(void) {
    static struct gcl_dev dev;
    dev = (struct gcl_dev){.base.info = {.name = "card",
                                         .driver_version = "1.2",
                                         .vendor = "Maker",
                                         .caps = {.max_buffer = 4096}},
                           .platform_version = "OpenCL 3.0"};
    for (uintptr_t i = 0; i < 2; i++) {
        dev.lanes[i].queue = (cl_command_queue)(1 + i);
    }
    dev.queue = dev.lanes[0].queue;
    memset(&driver, 0, sizeof driver);
    driver.args = 3;
    driver.max_wg = 96;
    said[0] = '\0';
    alive = 0;
    calls_left = -1;
    refusal = CL_OUT_OF_HOST_MEMORY;
    return &dev;
}

static int begin(void **state) {
    before = gcl;
    gcl.clCreateProgramWithSource = from_source;
    gcl.clCreateProgramWithBinary = from_binary;
    gcl.clBuildProgram = build_it;
    gcl.clGetProgramBuildInfo = build_info;
    gcl.clGetProgramInfo = program_info;
    gcl.clReleaseProgram = end_program;
    gcl.clCreateKernel = make_kernel;
    gcl.clReleaseKernel = end_kernel;
    gcl.clGetKernelInfo = kernel_info;
    gcl.clGetKernelWorkGroupInfo = group_info;
    return kit_cache_begin(state);
}
static int end(void **state) {
    gcl = before;
    return kit_cache_end(state);
}
#define CL_CASE(function)                                                                          \
    { #function, function, begin, end, NULL }

static const struct grt_arg_info args[] = {{"x", "float", GRT_UPDATE}};
static const struct grt_spec_info specs[] = {{"WG", 64}, {"BN", 128}};
static struct grt_kernel_info info = {.name = "k",
                                      .args = args,
                                      .arg_count = 1,
                                      .params_size = 4,
                                      .specs = specs,
                                      .spec_count = 2,
                                      .opencl = "text"};
static const uint32_t values[] = {96, 7};

static struct grt_kernel *make(struct gcl_dev *dev) {
    return gcl_kernel_create(&dev->base, &info, values);
}

#define USUAL "-cl-std=CL1.2 -w -DGRT_FMA=fma -DGRT_ASKS=0 -DGRT_NATIVE=1"
#define SPECS " -DWG=96u -DBN=7u"

// Options say what the device is; a binary of the same options is taken from the disk.
static void options(void **state) {
    (void)state;
    static const struct {
        uint32_t software;
        bool by_address, exact;
        cl_uint args;
        const char *platform, *options;
    } rows[] = {
        {0, false, false, 3, "OpenCL 3.0", USUAL SPECS},
        {1, false, false, 3, "OpenCL 3.0",
         "-cl-std=CL1.2 -w -DGRT_FMA=fma -DGRT_ASKS=0 -DGRT_NATIVE=0" SPECS},
        {0, true, false, 2, "OpenCL 3.0", USUAL " -DGRT_ADDRESSES" SPECS},
        {0, false, true, 3, "OpenCL 3.0", USUAL " -cl-fp32-correctly-rounded-divide-sqrt" SPECS},
        {0, false, false, 3, "OpenCL 3.0 PoCL 3.1",
         "-cl-std=CL1.2 -w -DGRT_FMA=__builtin_fmaf -DGRT_ASKS=1 -DGRT_NATIVE=1" SPECS},
        {0, false, false, 3, "pocl",
         "-cl-std=CL1.2 -w -DGRT_FMA=__builtin_fmaf -DGRT_ASKS=1"
         " -DGRT_NATIVE=1" SPECS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int again = 0; again < 2; again++) {
            struct gcl_dev *dev = made_up();
            char want[512];
            dev->base.info.caps.software = rows[i].software;
            dev->by_address = rows[i].by_address;
            dev->exact_divide = rows[i].exact;
            snprintf(dev->platform_version, sizeof dev->platform_version, "%s", rows[i].platform);
            driver.args = rows[i].args;
            driver.binary = "made of it";
            driver.size = 10;
            struct grt_kernel *kernel = make(dev);
            assert_non_null(kernel);
            snprintf(want, sizeof want,
                     again ? " binary(10) build(6: %s) kernel(k) kernel(k)"
                           : " source(text) build(5: %s) kernel(k)",
                     rows[i].options);
            expect_said(want);
            assert_true(!again || strcmp(driver.taken, "made of it") == 0);
            assert_int_equal(alive, 1);
            gcl_kernel_destroy(kernel);
            assert_int_equal(alive, 0);
        }
    }
    // Anything that a binary depends on makes another one.
    for (int i = 0; i < 5; i++) {
        struct gcl_dev *dev = made_up();
        if (i == 0) {
            strcpy(dev->base.info.name, "other");
        } else if (i == 1) {
            strcpy(dev->base.info.driver_version, "1.3");
        } else if (i == 2) {
            strcpy(dev->platform_version, "OpenCL 3.1");
        } else if (i == 3) {
            info.opencl = "texts";
        }
        struct grt_kernel *kernel = make(dev);
        assert_non_null(kernel);
        assert_int_equal(strncmp(said, " binary", 7) == 0, i == 4);
        gcl_kernel_destroy(kernel);
        info.opencl = "text";
    }
}

// A binary that the driver refuses, at whatever call, costs a build from the source.
static void binaries_refused(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct gcl_dev *dev = made_up();
        driver.binary = "made of it";
        driver.size = 10;
        struct grt_kernel *kernel = make(dev);
        assert_non_null(kernel);
        gcl_kernel_destroy(kernel);
        said[0] = '\0';
        driver.builds = 0;
        calls_left = i == 0 ? 0 : i == 3 ? 1 : -1;
        driver.binary_status = i == 1 ? CL_INVALID_BINARY : CL_SUCCESS;
        driver.build[0] = i == 2 ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
        kernel = make(dev);
        assert_non_null(kernel);
        assert_non_null(strstr(said, " source(text) build(5: "));
        assert_int_equal(alive, 1);
        gcl_kernel_destroy(kernel);
        assert_int_equal(alive, 0);
    }
}

static void builds_refused(void **state) {
    (void)state;
    // What the compiler says is told, and that it said nothing too.
    struct gcl_dev *dev = made_up();
    driver.build[0] = CL_BUILD_PROGRAM_FAILURE;
    TEST_REFUSED(make(dev), GRT_COMPILE,
                 "kernel k does not build with " USUAL SPECS
                 " on 'card', CL_BUILD_PROGRAM_FAILURE (-11); the compiler says: nothing");
    assert_int_equal(alive, 0);
    driver.builds = 0;
    driver.log[0] = "one\ntwo\n";
    TEST_REFUSED(make(dev), GRT_COMPILE, "the compiler says: one two ");
    driver.builds = 0;
    driver.log[0] = " \n\t\r";
    TEST_REFUSED(make(dev), GRT_COMPILE, "the compiler says: nothing");
    driver.builds = 0;
    driver.build[0] = CL_OUT_OF_HOST_MEMORY;
    TEST_REFUSED(make(dev), GRT_NO_MEMORY, "kernel k cannot be built: CL_OUT_OF_HOST_MEMORY (-6)");
    assert_int_equal(alive, 0);
    // The program, its kernel object, and the two questions about it.
    static const char *const words[] = {"no program for kernel k",
                                        "no kernel named k in its program",
                                        "cannot ask about kernel k", "cannot ask about kernel k"};
    for (int i = 0; i < 4; i++) {
        dev = made_up();
        calls_left = i;
        TEST_REFUSED(make(dev), GRT_NO_MEMORY, words[i]);
        assert_int_equal(alive, 0);
    }
    dev = made_up();
    driver.args = 4;
    TEST_REFUSED(make(dev), GRT_COMPILE,
                 "kernel k has 4 arguments in OpenCL and 3 in its description");
    driver.args = 3;
    info.params_size = 0;
    TEST_REFUSED(make(dev), GRT_COMPILE,
                 "kernel k has 3 arguments in OpenCL and 2 in its description");
    info.params_size = 4;
    driver.max_wg = 95;
    TEST_REFUSED(make(dev), GRT_UNSUPPORTED,
                 "kernel k can run with workgroups of 95 on 'card', not of 96; choose a smaller");
    assert_int_equal(alive, 0);
    strcpy(dev->base.info.vendor, "NVIDIA Corporation");
    struct grt_kernel *kernel = make(dev);
    assert_non_null(kernel);
    gcl_kernel_destroy(kernel);
}

// PoCL is spared its header; where it needs it after all the device is told so once, and a build
// that fails is tried twice. Its binaries stay its own.
static void pocl(void **state) {
    (void)state;
    static const char brief[] = " build(5: " USUAL SPECS " -D_OPENCL_H_ -DGRT_DECLARE)";
    static const char whole[] = " build(5: " USUAL SPECS ")";
    struct gcl_dev *dev = made_up();
    char want[1024];
    dev->keeps_binaries = true;
    driver.binary = "made of it";
    driver.size = 10;
    for (int i = 0; i < 2; i++) {
        struct grt_kernel *kernel = make(dev);
        assert_non_null(kernel);
        snprintf(want, sizeof want, " source(text)%s kernel(k)", brief);
        expect_said(want);
        gcl_kernel_destroy(kernel);
    }
    assert_false(dev->needs_header);
    driver.builds = 0;
    driver.build[0] = driver.build[1] = CL_BUILD_PROGRAM_FAILURE;
    struct grt_kernel *kernel = make(dev);
    assert_non_null(kernel);
    snprintf(want, sizeof want, " source(text)%s%s%s kernel(k)", brief, whole, whole);
    expect_said(want);
    assert_true(dev->needs_header);
    gcl_kernel_destroy(kernel);
    driver.builds = 2;
    kernel = make(dev);
    snprintf(want, sizeof want, " source(text)%s kernel(k)", whole);
    expect_said(want);
    gcl_kernel_destroy(kernel);
    driver.builds = 0;
    TEST_REFUSED((driver.build[2] = CL_BUILD_PROGRAM_FAILURE, make(dev)), GRT_COMPILE,
                 "does not build");
    assert_int_equal(driver.builds, 2);
    assert_int_equal(alive, 0);
}

// PTX gets the letter of its target; what is made for another chip is of no use, and for good.
static void targets(void **state) {
    (void)state;
    static const struct {
        const char *pragma, *ptx, *made, *said;
        enum grt_status status;
    } rows[] = {
        {"#pragma gpurt ptx_target sm_90a\n", ".version 8\n.target sm_90, x\nrest",
         ".version 8\n.target sm_90a, x\nrest", NULL, GRT_OK},
        {"#pragma gpurt ptx_target sm_90a\n", ".version 8\n.target sm_80\n", NULL,
         "kernel k is for sm_90a only", GRT_UNSUPPORTED},
        {"#pragma gpurt ptx_target sm_90a\n", ".version 8\n.target sm_900\n", NULL,
         "kernel k is for sm_90a only", GRT_UNSUPPORTED},
        {"#pragma gpurt ptx_target sm_90a\n", "ELF", NULL, "the driver makes no PTX of kernel k",
         GRT_COMPILE},
        {"#pragma gpurt ptx_target any\n", ".version 8\n.target sm_80\n",
         ".version 8\n.target sm_80\n", NULL, GRT_OK},
        {"", ".version 8\n.target sm_90\n", NULL, "kernel k names no target for its PTX",
         GRT_COMPILE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gcl_dev *dev = made_up();
        char *ptx = NULL;
        info.opencl = rows[i].pragma;
        driver.binary = rows[i].ptx;
        driver.size = strlen(rows[i].ptx);
        if (rows[i].said) {
            enum grt_status status = GRT_OK;
            TEST_REFUSED((status = gcl_kernel_ptx(&dev->base, &info, values, &ptx)) == GRT_OK,
                         rows[i].status, rows[i].said);
            assert_int_equal(status, rows[i].status);
            assert_null(ptx);
        } else {
            assert_int_equal(gcl_kernel_ptx(&dev->base, &info, values, &ptx), GRT_OK);
            assert_string_equal(ptx, rows[i].made);
            assert_non_null(strstr(said, "-DGRT_ADDRESSES"));
        }
        free(ptx);
        assert_int_equal(alive, 0);
    }
    // The same for OpenCL itself: the PTX goes back as a binary.
    struct gcl_dev *dev = made_up();
    info.opencl = rows[0].pragma;
    driver.binary = rows[0].ptx;
    driver.size = strlen(rows[0].ptx);
    struct grt_kernel *kernel = make(dev);
    info.opencl = "text";
    assert_non_null(kernel);
    assert_string_equal(driver.taken, rows[0].made);
    gcl_kernel_destroy(kernel);
    assert_int_equal(alive, 0);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(errors),       CL_CASE(options), CL_CASE(binaries_refused),
    CL_CASE(builds_refused), CL_CASE(pocl),    CL_CASE(targets),
};
TEST_SUITE(clkernels, false, cases);
