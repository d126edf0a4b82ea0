// SPDX-License-Identifier: Apache-2.0
// Every call that the OpenCL backend makes of a list of commands, and what it does with the
// answers: arguments, events, times, refusals. The driver is made up. A word for each call:
//
//     run(k 4 6,5,7/2,1,1)   kernel object 4, global and local sizes; + behind it: with an event
//     write(3+8:20 < 5)      into memory 3 from byte 8 on, 20 bytes, from place 5 of the host
#include "harness/harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

#define NUMBER(handle) ((unsigned)(uintptr_t)(handle))

static struct gcl_api before;
static char said[2048];
static int kernels, memories, events;  // alive
static unsigned newest_kernel, newest_event;
static int calls_left;  // until one is refused; below 0: never
static cl_int refusal, finish_answer, profiling_answer;
static char host[9 << 20];

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
static cl_int with_event(cl_event *event) {
    cl_int code = call();
    if (event && code == CL_SUCCESS) {
        *event = (cl_event)(uintptr_t)++newest_event;
        events++;
    }
    say("%s", event ? "+" : "");
    return code;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *code) {
    say(" kernel(%u, %s)", NUMBER(program), name);
    *code = call();
    kernels += *code == CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_kernel)(uintptr_t)++newest_kernel : NULL;
}
static cl_int CL_API_CALL retain_kernel(cl_kernel kernel) {
    say(" again(%u)", NUMBER(kernel));
    kernels++;
    return CL_SUCCESS;
}
static cl_int CL_API_CALL release_kernel(cl_kernel kernel) {
    (void)kernel;
    kernels--;
    return CL_SUCCESS;
}
static cl_int CL_API_CALL set_arg(cl_kernel kernel, cl_uint at, size_t size, const void *value) {
    cl_ulong word = 0;
    memcpy(&word, value, size < 8 ? size : 8);
    say(" arg(%u.%u: %zu, %llu)", NUMBER(kernel), at, size, (unsigned long long)word);
    return call();
}
static cl_int CL_API_CALL run(cl_command_queue queue, cl_kernel kernel, cl_uint axes,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint count, const cl_event *wait, cl_event *event) {
    (void)wait;
    assert_true(axes == 3 && !offset && count == 0);
    say(" q%u run(%u %zu,%zu,%zu/%zu,%zu,%zu)", NUMBER(queue), NUMBER(kernel), global[0], global[1],
        global[2], local[0], local[1], local[2]);
    return with_event(event);
}
static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                       size_t offset, size_t size, const void *from, cl_uint count,
                                       const cl_event *wait, cl_event *event) {
    (void)wait;
    assert_true(!blocking && count == 0);
    say(" q%u write(%u+%zu:%zu < %d)", NUMBER(queue), NUMBER(memory), offset, size,
        (int)((const char *)from - host));
    return with_event(event);
}
static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                      size_t offset, size_t size, void *to, cl_uint count,
                                      const cl_event *wait, cl_event *event) {
    (void)wait;
    assert_true(!blocking && count == 0);
    say(" q%u read(%u+%zu:%zu > %d)", NUMBER(queue), NUMBER(memory), offset, size,
        (int)((char *)to - host));
    return with_event(event);
}
static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem src, cl_mem dst, size_t from,
                                      size_t to, size_t size, cl_uint count, const cl_event *wait,
                                      cl_event *event) {
    (void)wait;
    assert_int_equal(count, 0);
    say(" q%u copy(%u+%zu > %u+%zu: %zu)", NUMBER(queue), NUMBER(src), from, NUMBER(dst), to, size);
    return with_event(event);
}
static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem memory, const void *pattern,
                                      size_t length, size_t offset, size_t size, cl_uint count,
                                      const cl_event *wait, cl_event *event) {
    cl_uint value = 0;
    (void)wait;
    assert_true(length == 4 && count == 0);
    memcpy(&value, pattern, 4);
    say(" q%u fill(%u+%zu:%zu, %u)", NUMBER(queue), NUMBER(memory), offset, size, value);
    return with_event(event);
}
static cl_int CL_API_CALL flush(cl_command_queue queue) {
    say(" q%u.", NUMBER(queue));
    return call();
}
static cl_int CL_API_CALL finish(cl_command_queue queue) {
    say(" q%u!", NUMBER(queue));
    return finish_answer;
}
static cl_int CL_API_CALL release_event(cl_event event) {
    (void)event;
    events--;
    return CL_SUCCESS;
}
static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size,
                                        void *from, cl_int *code) {
    (void)context;
    assert_true(flags == CL_MEM_READ_WRITE && !from);
    say(" memory(%zu)", size);
    *code = call();
    memories += *code == CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_mem)(uintptr_t)99 : NULL;
}
static cl_int CL_API_CALL release_buffer(cl_mem memory) {
    (void)memory;
    memories--;
    return CL_SUCCESS;
}
static cl_int CL_API_CALL wait_events(cl_uint count, const cl_event *list) {
    assert_int_equal(count, 1);
    say(" wait(%u)", NUMBER(list[0]));
    return call();
}
// Event i is from 1000 i to 1000 i + 600 ns.
static cl_int CL_API_CALL profiling(cl_event event, cl_profiling_info what, size_t size,
                                    void *value, size_t *got) {
    (void)got;
    assert_true(size == sizeof(cl_ulong));
    assert_true(what == CL_PROFILING_COMMAND_START || what == CL_PROFILING_COMMAND_END);
    cl_ulong at = 1000 * NUMBER(event) + (what == CL_PROFILING_COMMAND_END ? 600 : 0);
    memcpy(value, &at, sizeof at);
    return profiling_answer;
}
static cl_int CL_API_CALL marker(cl_command_queue queue, cl_uint count, const cl_event *wait,
                                 cl_event *event) {
    (void)wait;
    assert_int_equal(count, 0);
    say(" q%u mark", NUMBER(queue));
    return with_event(event);
}
static cl_int CL_API_CALL barrier(cl_command_queue queue, cl_uint count, const cl_event *wait,
                                  cl_event *event) {
    assert_true(count == 1 && !event);
    say(" q%u after(%u)", NUMBER(queue), NUMBER(wait[0]));
    return call();
}
static cl_int state_of_events;
static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t size, void *value,
                                     size_t *got) {
    (void)got;
    assert_true(what == CL_EVENT_COMMAND_EXECUTION_STATUS && size == sizeof(cl_int));
    say(" state(%u)", NUMBER(event));
    memcpy(value, &state_of_events, size);
    return CL_SUCCESS;
}
static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *code) {
    (void)context, (void)count, (void)texts, (void)lengths;
    *code = CL_SUCCESS;
    return (cl_program)(uintptr_t)55;
}
static cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id *list,
                                        const char *options,
                                        void(CL_CALLBACK *then)(cl_program, void *), void *user) {
    (void)program, (void)count, (void)list, (void)options, (void)then, (void)user;
    say(" build");
    return call();
}
static cl_int CL_API_CALL release_program(cl_program program) {
    say(" -program(%u)", NUMBER(program));
    return CL_SUCCESS;
}

static struct gcl_dev *made_up(void) {
    static struct gcl_dev dev;
    dev = (struct gcl_dev){
        .base = {.lanes = 2,
                 .info = {.name = "card", .selector = "opencl:9", .caps = {.max_wg = 64}}},
        .fill_reach = 1 << 20};
    for (uintptr_t i = 0; i < 2; i++) {
        dev.lanes[i].queue = (cl_command_queue)(1 + i);
    }
    dev.queue = dev.lanes[0].queue;
    said[0] = '\0';
    newest_kernel = newest_event = 0;
    kernels = memories = events = 0;
    calls_left = -1;
    refusal = CL_OUT_OF_HOST_MEMORY;
    finish_answer = profiling_answer = CL_SUCCESS;
    return &dev;
}

static int begin(void **state) {
    before = gcl;
    gcl.clCreateKernel = create_kernel;
    gcl.clRetainKernel = retain_kernel;
    gcl.clReleaseKernel = release_kernel;
    gcl.clSetKernelArg = set_arg;
    gcl.clEnqueueNDRangeKernel = run;
    gcl.clEnqueueWriteBuffer = write_buffer;
    gcl.clEnqueueReadBuffer = read_buffer;
    gcl.clEnqueueCopyBuffer = copy_buffer;
    gcl.clEnqueueFillBuffer = fill_buffer;
    gcl.clFlush = flush;
    gcl.clFinish = finish;
    gcl.clReleaseEvent = release_event;
    gcl.clCreateBuffer = create_buffer;
    gcl.clReleaseMemObject = release_buffer;
    gcl.clWaitForEvents = wait_events;
    gcl.clGetEventProfilingInfo = profiling;
    gcl.clEnqueueMarkerWithWaitList = marker;
    gcl.clEnqueueBarrierWithWaitList = barrier;
    gcl.clGetEventInfo = event_info;
    gcl.clCreateProgramWithSource = create_program;
    gcl.clBuildProgram = build_program;
    gcl.clReleaseProgram = release_program;
    return test_case_begin(state);
}
static int end(void **state) {
    gcl = before;
    return test_case_end(state);
}
#define CL_CASE(function)                                                                          \
    { #function, function, begin, end, NULL }

// ---- commands ----

static struct gcl_buf mem[2] = {{.handle = (cl_mem)(uintptr_t)31},
                                {.handle = (cl_mem)(uintptr_t)32}};
static struct gcl_buf up = {.base.host = host + 100}, down = {.base.host = host + 1000};
static const struct grt_arg_info args[] = {{"x", "float", GRT_READ}, {"y", "float", GRT_WRITE}};
static const struct grt_kernel_info info = {
    .name = "k", .args = args, .arg_count = 2, .params_size = 8};
static struct gcl_kernel kernel = {.base = {.info = &info, .spec_values = {2}},
                                   .program = (cl_program)(uintptr_t)7};

static struct grt_cmd launch(unsigned char param) {
    return (struct grt_cmd){.kind = GRT_CMD_DISPATCH,
                            .kernel = &kernel.base,
                            .bindings = {{&mem[0].base, 64, 8}, {&mem[1].base, 0, 8}},
                            .groups = {3, 5, 7},
                            .params_size = 8,
                            .params = {param}};
}
static struct grt_cmd fill(uint64_t offset, uint64_t size) {
    return (struct grt_cmd){.kind = GRT_CMD_FILL, .dst = {&mem[0].base, offset, size}, .value = 6};
}
static struct grt_cmd copy(struct gcl_buf *dst, uint64_t to, struct gcl_buf *src, uint64_t from,
                           uint64_t size) {
    return (struct grt_cmd){
        .kind = GRT_CMD_COPY, .dst = {&dst->base, to, size}, .src = {&src->base, from, size}};
}
static struct grt_cmd phase(uint32_t number) {
    return (struct grt_cmd){.kind = GRT_CMD_PHASE, .phase = number};
}

static void arguments(void **state) {
    (void)state;
    struct gcl_dev *dev = made_up();
    const struct grt_cmd cmds[] = {launch(9),
                                   fill(12, 20),
                                   copy(&mem[1], 8, &mem[0], 4, 16),
                                   copy(&mem[1], 8, &up, 5, 24),
                                   copy(&down, 8, &mem[0], 16, 28),
                                   launch(9),
                                   launch(10)};
    void *list = gcl_cmds_create(&dev->base, cmds, 7, 0, GRT_LANE_MAIN, false);
    assert_non_null(list);
    char want[512];
    snprintf(want, sizeof want,
             " kernel(7, k) arg(1.0: 8, 31) arg(1.1: 8, 32) arg(1.2: %zu, 64) arg(1.3: 8, 9)"
             " again(1)"
             " kernel(7, k) arg(2.0: 8, 31) arg(2.1: 8, 32) arg(2.2: %zu, 64) arg(2.3: 8, 10)",
             (size_t)GRT_MAX_BINDINGS * 8, (size_t)GRT_MAX_BINDINGS * 8);
    expect_said(want);
    assert_int_equal(kernels, 3);
    assert_true(gcl_cmds_run(&dev->base, list));
    expect_said(" q1 run(1 6,5,7/2,1,1) q1 fill(31+12:20, 6) q1 copy(31+4 > 32+8: 16)"
                " q1 write(32+8:24 < 105) q1 read(31+16:28 > 1008)"
                " q1 run(1 6,5,7/2,1,1) q1 run(2 6,5,7/2,1,1) q1.");
    assert_int_equal(events, 0);
    gcl_cmds_destroy(&dev->base, list);
    assert_int_equal(kernels, 0);
    // By addresses: no buffer is an argument, the places are where they lie.
    dev->by_address = true;
    mem[0].address = 4096;
    mem[1].address = 8192;
    said[0] = '\0';
    list = gcl_cmds_create(&dev->base, cmds, 1, 0, GRT_LANE_ASIDE, false);
    snprintf(want, sizeof want, " kernel(7, k) arg(3.0: %zu, 4160) arg(3.1: 8, 9)",
             (size_t)GRT_MAX_BINDINGS * 8);
    expect_said(want);
    assert_true(gcl_cmds_run(&dev->base, list));
    expect_said(" q2 run(3 6,5,7/2,1,1) q2.");
    gcl_cmds_destroy(&dev->base, list);
    mem[0].address = mem[1].address = 0;
}

// Between two buffers of the host: in pieces of 4 MiB through one of the device.
static void through_the_device(void **state) {
    (void)state;
    static const struct {
        uint64_t size;
        const char *said;
    } rows[] = {
        {4, " q1 write(99+0:4 < 103) q1 read(99+0:4 > 1007) q1."},
        {4 << 20, " q1 write(99+0:4194304 < 103) q1 read(99+0:4194304 > 1007) q1."},
        {(4 << 20) + 4, " q1 write(99+0:4194304 < 103) q1 read(99+0:4194304 > 1007)"
                        " q1 write(99+0:4 < 4194407) q1 read(99+0:4 > 4195311) q1."},
    };
    for (size_t i = 0; i < 3; i++) {
        struct gcl_dev *dev = made_up();
        const struct grt_cmd cmd = copy(&down, 7, &up, 3, rows[i].size);
        void *list = gcl_cmds_create(&dev->base, &cmd, 1, 0, GRT_LANE_MAIN, false);
        expect_said(" memory(4194304)");
        assert_true(gcl_cmds_run(&dev->base, list));
        expect_said(rows[i].said);
        gcl_cmds_destroy(&dev->base, list);
        assert_int_equal(memories, 0);
    }
    struct gcl_dev *dev = made_up();
    const struct grt_cmd cmd = copy(&down, 0, &up, 0, 4);
    calls_left = 0;
    TEST_REFUSED(gcl_cmds_create(&dev->base, &cmd, 1, 0, GRT_LANE_MAIN, false), GRT_NO_MEMORY,
                 "no device buffer of 4194304 bytes to copy between host buffers");
}

// The kernel that fills takes up to 2048 groups; words, not bytes.
static void fills_beyond_the_reach(void **state) {
    (void)state;
    static const struct {
        uint64_t offset, size;
        uint32_t max_wg;
        const char *made, *run;
    } rows[] = {
        {0, 1 << 20, 64, "", " q1 fill(31+0:1048576, 6) q1."},
        {4, 1 << 20, 64,
         " build kernel(55, fill) arg(1.0: 8, 31) arg(1.1: 8, 1)"
         " arg(1.2: 8, 262144) arg(1.3: 4, 6)",
         " q1 run(1 131072,1,1/64,1,1) q1."},
        {1 << 20, 4, 512,
         " build kernel(55, fill) arg(1.0: 8, 31) arg(1.1: 8, 262144)"
         " arg(1.2: 8, 1) arg(1.3: 4, 6)",
         " q1 run(1 256,1,1/256,1,1) q1."},
        {1 << 20, 4 * 257, 512,
         " build kernel(55, fill) arg(1.0: 8, 31) arg(1.1: 8, 262144)"
         " arg(1.2: 8, 257) arg(1.3: 4, 6)",
         " q1 run(1 512,1,1/256,1,1) q1."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gcl_dev *dev = made_up();
        dev->base.info.caps.max_wg = rows[i].max_wg;
        const struct grt_cmd cmd = fill(rows[i].offset, rows[i].size);
        void *list = gcl_cmds_create(&dev->base, &cmd, 1, 0, GRT_LANE_MAIN, false);
        expect_said(rows[i].made);
        assert_true(gcl_cmds_run(&dev->base, list));
        expect_said(rows[i].run);
        gcl_cmds_destroy(&dev->base, list);
        assert_int_equal(kernels, 0);
        // It is built once.
        const struct grt_cmd again = fill(2 << 20, 4);
        list = i > 0 ? gcl_cmds_create(&dev->base, &again, 1, 0, GRT_LANE_MAIN, false) : NULL;
        assert_true(!strstr(said, "build"));
        if (list) {
            gcl_cmds_destroy(&dev->base, list);
        }
        said[0] = '\0';
        gcl_fills_destroy(dev);
        expect_said(i > 0 ? " -program(55)" : "");
        gcl_fills_destroy(dev);
        expect_said("");
    }
    for (int refused = 0; refused < 6; refused++) {
        struct gcl_dev *dev = made_up();
        const struct grt_cmd cmd = fill(1 << 20, 4);
        calls_left = refused;
        TEST_REFUSED(gcl_cmds_create(&dev->base, &cmd, 1, 0, GRT_LANE_MAIN, false), GRT_NO_MEMORY,
                     refused < 2 ? "no kernel that fills buffers"
                                 : "the kernel that fills buffers refuses one");
        assert_int_equal(kernels, 0);
        assert_int_equal(dev->fill != NULL, refused > 0);
    }
}

// ---- times ----

static bool near(double got, double want) {
    return fabs(got - want) < 1e-15;
}

// The first and last call of a phase have events, or one where both are the same; a run gives back
// those of the run before.
static void phases(void **state) {
    (void)state;
    struct gcl_dev *dev = made_up();
    const struct grt_cmd cmds[] = {fill(0, 4),  phase(1), fill(4, 4), fill(8, 4),
                                   fill(12, 4), phase(2), phase(0),   fill(16, 4)};
    double from[3], to[3];
    void *list = gcl_cmds_create(&dev->base, cmds, 8, 3, GRT_LANE_MAIN, false);
    TEST_REFUSED(gcl_cmds_times(&dev->base, list, from, to), GRT_UNSUPPORTED,
                 "no times for phase 0 of 3; did the list run?: "
                 "CL_PROFILING_INFO_NOT_AVAILABLE (-7)");
    for (int i = 0; i < 3; i++) {
        said[0] = '\0';
        assert_true(gcl_cmds_run(&dev->base, list));
        expect_said(
            " q1 fill(31+0:4, 6) q1 fill(31+4:4, 6)+ q1 fill(31+8:4, 6) q1 fill(31+12:4, 6)+"
            " q1 fill(31+16:4, 6)+ q1.");
        assert_int_equal(events, 3);
    }
    // Events 7, 8 and 9; phase 0 stands last, and seconds are from its beginning on.
    assert_true(gcl_cmds_times(&dev->base, list, from, to));
    assert_true(near(from[0], 0) && near(to[0], 600e-9));
    assert_true(near(from[1], -2000e-9) && near(to[1], -400e-9));
    assert_true(near(from[2], to[2]));
    profiling_answer = CL_PROFILING_INFO_NOT_AVAILABLE;
    TEST_REFUSED(gcl_cmds_times(&dev->base, list, from, to), GRT_UNSUPPORTED, "phase 0 of 3");
    gcl_cmds_destroy(&dev->base, list);
    assert_int_equal(events, 0);
}

// Commands that are chosen have events, of all of their calls; phases have theirs besides.
static void stamps(void **state) {
    (void)state;
    struct gcl_dev *dev = made_up();
    const struct grt_cmd cmds[] = {fill(0, 4),  copy(&down, 0, &up, 0, (4 << 20) + 4),
                                   phase(0),    fill(8, 4),
                                   fill(12, 4), fill(16, 4)};
    double from[6], to[6];
    struct grt_stamps times = {.begin = from, .end = to, .host = true};
    dev->origin = 500;
    void *list = gcl_cmds_create(&dev->base, cmds, 6, 1, GRT_LANE_MAIN, true);
    assert_true(gcl_cmds_run(&dev->base, list));
    assert_int_equal(events, 8);
    said[0] = '\0';
    assert_true(gcl_cmds_stamps(&dev->base, list, &times));
    expect_said(" wait(8)");
    assert_false(times.host);
    assert_true(near(from[0], 500e-9) && near(to[0], 1100e-9));
    assert_true(near(from[1], 1500e-9) && near(to[1], 5100e-9));  // from the first to the last
    assert_true(isnan(from[2]));
    assert_true(near(from[5], 7500e-9) && near(to[5], 8100e-9));
    const bool chosen[6] = {false, true, false, false, false, false};
    gcl_cmds_choose(&dev->base, list, chosen);
    assert_true(gcl_cmds_run(&dev->base, list));
    assert_int_equal(events, 4 + 2);
    said[0] = '\0';
    assert_true(gcl_cmds_stamps(&dev->base, list, &times));
    expect_said(" wait(14)");
    assert_true(isnan(from[0]) && !isnan(from[1]) && isnan(from[4]));
    assert_true(!isnan(from[3]) && !isnan(from[5]));  // those of the phase
    // The newest that has an event is waited for.
    const struct grt_cmd plain[] = {fill(0, 4), fill(4, 4), fill(8, 4)};
    gcl_cmds_destroy(&dev->base, list);
    list = gcl_cmds_create(&dev->base, plain, 3, 0, GRT_LANE_MAIN, true);
    gcl_cmds_choose(&dev->base, list, (const bool[3]){false, true, false});
    assert_true(gcl_cmds_run(&dev->base, list));
    said[0] = '\0';
    assert_true(gcl_cmds_stamps(&dev->base, list, &times));
    expect_said(" wait(15)");
    gcl_cmds_choose(&dev->base, list, (const bool[3]){false, false, false});
    assert_true(gcl_cmds_run(&dev->base, list));
    said[0] = '\0';
    assert_true(gcl_cmds_stamps(&dev->base, list, &times));
    expect_said("");
    gcl_cmds_choose(&dev->base, list, (const bool[3]){true, true, true});
    assert_true(gcl_cmds_run(&dev->base, list));
    calls_left = 0;
    refusal = CL_OUT_OF_RESOURCES;
    TEST_REFUSED(gcl_cmds_stamps(&dev->base, list, &times), GRT_LOST,
                 "no times for a list of 3 calls: CL_OUT_OF_RESOURCES (-5)");
    gcl_cmds_destroy(&dev->base, list);
    assert_int_equal(events, 0);
}

// ---- refusals ----

// What is refused is named, with its place. If the queue does not finish either, a kernel crashed.
static void calls_refused(void **state) {
    (void)state;
    static const char *const words[] = {"launch of kernel k, call 1 of 5", "fill, call 2 of 5",
                                        "copy, call 3 of 5", "write, call 4 of 5",
                                        "read, call 5 of 5"};
    for (int crashed = 0; crashed < 2; crashed++) {
        for (int i = 0; i < 5; i++) {
            struct gcl_dev *dev = made_up();
            const struct grt_cmd cmds[] = {launch(9), fill(0, 4), copy(&mem[1], 0, &mem[0], 0, 4),
                                           copy(&mem[1], 0, &up, 0, 4),
                                           copy(&down, 0, &mem[0], 0, 4)};
            void *list = gcl_cmds_create(&dev->base, cmds, 5, 0, GRT_LANE_ASIDE, false);
            char want[96];
            snprintf(want, sizeof want, "%s in a list, refused: CL_OUT_OF_RESOURCES (-5)%s",
                     words[i], crashed ? "; the device must be opened again" : "");
            calls_left = i;
            refusal = CL_OUT_OF_RESOURCES;
            finish_answer = crashed ? CL_INVALID_COMMAND_QUEUE : CL_SUCCESS;
            said[0] = '\0';
            TEST_REFUSED(gcl_cmds_run(&dev->base, list), crashed ? GRT_LOST : GRT_NO_MEMORY, want);
            assert_non_null(strstr(said, " q2!"));
            assert_int_equal(dev->base.status, crashed ? GRT_LOST : GRT_OK);
            gcl_cmds_destroy(&dev->base, list);
        }
    }
    struct gcl_dev *dev = made_up();
    const struct grt_cmd cmd = fill(0, 4);
    void *list = gcl_cmds_create(&dev->base, &cmd, 1, 0, GRT_LANE_MAIN, false);
    calls_left = 1;
    refusal = CL_OUT_OF_RESOURCES;
    TEST_REFUSED(gcl_cmds_run(&dev->base, list), GRT_LOST, "cannot start a list of 1 calls");
    gcl_cmds_destroy(&dev->base, list);
    // While a list is made: an object, two buffers, where they begin, parameters.
    static const char *const making[] = {
        "no kernel object for k", "kernel k refuses x, argument 0 of 8 bytes",
        "kernel k refuses y, argument 1 of 8 bytes", "kernel k refuses its bindings' places, argum",
        "kernel k refuses its parameters, argument 3 of 8 bytes"};
    for (int i = 0; i < 5; i++) {
        dev = made_up();
        const struct grt_cmd bad = launch(9);
        calls_left = i;
        refusal = CL_INVALID_ARG_VALUE;
        TEST_REFUSED(gcl_cmds_create(&dev->base, &bad, 1, 0, GRT_LANE_MAIN, false), GRT_UNSUPPORTED,
                     making[i]);
        assert_int_equal(kernels, 0);
    }
}

static const struct CMUnitTest cases[] = {
    CL_CASE(arguments),
    CL_CASE(through_the_device),
    CL_CASE(fills_beyond_the_reach),
    CL_CASE(phases),
    CL_CASE(stamps),
    CL_CASE(calls_refused),
};
TEST_SUITE(clcalls, false, cases);
