// SPDX-License-Identifier: Apache-2.0
// Buffers, marks and clocks of the OpenCL backend: every call with its arguments, what is given
// back when one is refused, and which mark stands for one that is long gone. The driver is made up.
#include "harness/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

#define NUMBER(handle) ((unsigned)(uintptr_t)(handle))

static struct gcl_api before;
static char said[1024];
static int memories, events, mapped;  // alive
static unsigned newest_event;
static int calls_left;  // until one is refused; below 0: never
static cl_int refusal, state_of_events;
static char memory[64];

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

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size,
                                        void *from, cl_int *code) {
    assert_true(NUMBER(context) == 3 && !from);
    say(" memory(%u, %zu)", (unsigned)flags, size);
    *code = call();
    memories += *code == CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_mem)(uintptr_t)9 : NULL;
}
static cl_int CL_API_CALL release_buffer(cl_mem handle) {
    (void)handle;
    say(" -memory");
    memories--;
    return CL_SUCCESS;
}
static cl_int CL_API_CALL migrate(cl_command_queue queue, cl_uint count, const cl_mem *list,
                                  cl_mem_migration_flags flags, cl_uint waits, const cl_event *wait,
                                  cl_event *event) {
    (void)wait, (void)event;
    assert_true(NUMBER(queue) == 1 && count == 1 && NUMBER(list[0]) == 9 && waits == 0);
    assert_int_equal(flags, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
    say(" move");
    return call();
}
static cl_int CL_API_CALL finish(cl_command_queue queue) {
    say(" q%u!", NUMBER(queue));
    return call();
}
static cl_int CL_API_CALL flush(cl_command_queue queue) {
    say(" q%u.", NUMBER(queue));
    return call();
}
static void *CL_API_CALL map(cl_command_queue queue, cl_mem handle, cl_bool blocking,
                             cl_map_flags flags, size_t offset, size_t size, cl_uint count,
                             const cl_event *wait, cl_event *event, cl_int *code) {
    (void)queue, (void)handle, (void)wait, (void)event;
    assert_true(blocking && offset == 0 && count == 0);
    assert_int_equal(flags, CL_MAP_READ | CL_MAP_WRITE);
    say(" map(%zu)", size);
    *code = call();
    mapped += *code == CL_SUCCESS;
    return *code == CL_SUCCESS ? memory : NULL;
}
static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem handle, void *at, cl_uint count,
                                const cl_event *wait, cl_event *event) {
    (void)queue, (void)handle, (void)wait, (void)event;
    assert_true(at == memory && count == 0);
    say(" unmap");
    mapped--;
    return CL_SUCCESS;
}
static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem handle, cl_bool blocking,
                                       size_t offset, size_t size, const void *from, cl_uint count,
                                       const cl_event *wait, cl_event *event) {
    (void)handle, (void)wait, (void)event;
    assert_true(blocking && count == 0 && NUMBER(queue) == 1 && from == (const void *)memory);
    say(" write(%zu: %zu)", offset, size);
    return call();
}
static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem handle, cl_bool blocking,
                                      size_t offset, size_t size, void *to, cl_uint count,
                                      const cl_event *wait, cl_event *event) {
    (void)handle, (void)wait, (void)event;
    assert_true(blocking && count == 0 && NUMBER(queue) == 1 && to == (void *)memory);
    say(" read(%zu: %zu)", offset, size);
    return call();
}
static cl_int CL_API_CALL mark(cl_command_queue queue, cl_uint count, const cl_event *wait,
                               cl_event *event) {
    (void)wait;
    assert_int_equal(count, 0);
    say(" q%u mark", NUMBER(queue));
    cl_int code = call();
    if (code == CL_SUCCESS) {
        *event = (cl_event)(uintptr_t)++newest_event;
        events++;
    }
    return code;
}
static cl_int CL_API_CALL barrier(cl_command_queue queue, cl_uint count, const cl_event *wait,
                                  cl_event *event) {
    assert_true(count == 1 && !event);
    say(" q%u after(%u)", NUMBER(queue), NUMBER(wait[0]));
    return call();
}
static cl_int CL_API_CALL wait_events(cl_uint count, const cl_event *list) {
    assert_int_equal(count, 1);
    say(" wait(%u)", NUMBER(list[0]));
    return call();
}
static cl_int CL_API_CALL release_event(cl_event event) {
    (void)event;
    events--;
    return CL_SUCCESS;
}
static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t size, void *value,
                                     size_t *got) {
    (void)got;
    assert_true(what == CL_EVENT_COMMAND_EXECUTION_STATUS && size == sizeof(cl_int));
    say(" state(%u)", NUMBER(event));
    memcpy(value, &state_of_events, size);
    return CL_SUCCESS;
}
static cl_int CL_API_CALL release_queue(cl_command_queue queue) {
    say(" -q%u", NUMBER(queue));
    return CL_SUCCESS;
}

// ---- clocks ----

static struct {
    cl_ulong at[5];
    double late[5];
    uint32_t tries;
    double begun;  // of the third
    double off;    // of the driver's pair
    const char *version;
} clocks;

static cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem handle, const void *pattern,
                               size_t length, size_t offset, size_t size, cl_uint count,
                               const cl_event *wait, cl_event *event) {
    (void)queue, (void)handle, (void)pattern, (void)wait;
    assert_true(length == 4 && offset == 0 && size == 4 && count == 0);
    cl_int code = call();
    if (code == CL_SUCCESS) {
        *event = (cl_event)(uintptr_t)++newest_event;
        events++;
    }
    double begun = grt_seconds();
    while (grt_seconds() < begun + clocks.late[clocks.tries % 5]) {
    }
    clocks.begun = clocks.tries == 2 ? begun : clocks.begun;
    return code;
}
static cl_int CL_API_CALL wait_quietly(cl_uint count, const cl_event *list) {
    (void)count, (void)list;
    return call();
}
static cl_int CL_API_CALL profiling(cl_event event, cl_profiling_info what, size_t size,
                                    void *value, size_t *got) {
    (void)event, (void)got;
    assert_true(what == CL_PROFILING_COMMAND_END && size == sizeof(cl_ulong));
    memcpy(value, &clocks.at[clocks.tries++ % 5], size);
    return call();
}
static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *got) {
    (void)device;
    assert_int_equal(what, CL_DEVICE_VERSION);
    snprintf(value, size, "%s", clocks.version);
    *got = strlen(clocks.version) + 1;
    return CL_SUCCESS;
}
static cl_int CL_API_CALL timers(cl_device_id device, cl_ulong *at, cl_ulong *host) {
    (void)device;
    *host = 1;
    // By now so much time has passed since the third try, of which the device tells.
    *at = clocks.at[2] + (cl_ulong)(cl_long)(1e9 * (grt_seconds() - clocks.begun + clocks.off));
    return CL_SUCCESS;
}

static struct gcl_dev *made_up(void) {
    static struct gcl_dev dev;
    dev = (struct gcl_dev){.base = {.info = {.name = "card", .caps = {.max_buffer = 4096}}},
                           .context = (cl_context)(uintptr_t)3};
    for (uintptr_t i = 0; i < 2; i++) {
        dev.lanes[i].queue = (cl_command_queue)(1 + i);
    }
    dev.queue = dev.lanes[0].queue;
    memset(&clocks, 0, sizeof clocks);
    clocks.version = "OpenCL 2.1 card";
    said[0] = '\0';
    memories = events = mapped = 0;
    newest_event = 0;
    calls_left = -1;
    refusal = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return &dev;
}

static int begin(void **state) {
    before = gcl;
    gcl.clCreateBuffer = create_buffer;
    gcl.clReleaseMemObject = release_buffer;
    gcl.clEnqueueMigrateMemObjects = migrate;
    gcl.clFinish = finish;
    gcl.clFlush = flush;
    gcl.clEnqueueMapBuffer = map;
    gcl.clEnqueueUnmapMemObject = unmap;
    gcl.clEnqueueWriteBuffer = write_buffer;
    gcl.clEnqueueReadBuffer = read_buffer;
    gcl.clEnqueueMarkerWithWaitList = mark;
    gcl.clEnqueueBarrierWithWaitList = barrier;
    gcl.clWaitForEvents = wait_events;
    gcl.clReleaseEvent = release_event;
    gcl.clGetEventInfo = event_info;
    gcl.clReleaseCommandQueue = release_queue;
    gcl.clEnqueueFillBuffer = fill;
    gcl.clGetEventProfilingInfo = profiling;
    gcl.clGetDeviceInfo = device_info;
    gcl.clGetDeviceAndHostTimer = timers;
    return test_case_begin(state);
}
static int end(void **state) {
    gcl = before;
    return test_case_end(state);
}
#define CL_CASE(function)                                                                          \
    { #function, function, begin, end, NULL }

// ---- cases ----

static void buffers(void **state) {
    (void)state;
    // A GPU is asked for its memory at once; the host's is mapped for good.
    static const struct {
        enum grt_buf_kind kind;
        uint32_t software;
        const char *made, *ended;
    } rows[] = {
        {GRT_BUF_DEVICE, 0, " q1! q2! memory(1, 64) move q1!", " -memory"},
        {GRT_BUF_DEVICE, 1, " q1! q2! memory(1, 64)", " -memory"},
        {GRT_BUF_UPLOAD, 0, " q1! q2! memory(17, 64) map(64)", " unmap q1. -memory"},
        {GRT_BUF_READBACK, 1, " q1! q2! memory(17, 64) map(64)", " unmap q1. -memory"},
    };
    for (size_t i = 0; i < 4; i++) {
        struct gcl_dev *dev = made_up();
        dev->base.info.caps.software = rows[i].software;
        struct grt_buf *buf = gcl_buf_create(&dev->base, 64, rows[i].kind);
        assert_non_null(buf);
        expect_said(rows[i].made);
        assert_ptr_equal(buf->host, rows[i].kind == GRT_BUF_DEVICE ? NULL : (void *)memory);
        buf->dev = &dev->base;
        gcl_buf_destroy(buf);
        expect_said(rows[i].ended);
        assert_true(memories == 0 && mapped == 0);
    }
    static const struct {
        int left;
        enum grt_buf_kind kind;
        enum grt_status status;
        cl_int code;
        const char *why;
    } refused[] = {
        {0, GRT_BUF_DEVICE, GRT_LOST, CL_OUT_OF_RESOURCES, "the work queued on 'card' did not fin"},
        {1, GRT_BUF_DEVICE, GRT_LOST, CL_OUT_OF_RESOURCES, "the work queued on 'card' did not fin"},
        {2, GRT_BUF_DEVICE, GRT_NO_MEMORY, CL_OUT_OF_RESOURCES,
         "no device buffer of 64 bytes; the driver allows 4096 bytes in one buffer"},
        {2, GRT_BUF_UPLOAD, GRT_NO_MEMORY, CL_OUT_OF_HOST_MEMORY,
         "no pinned host buffer of 64 bytes; the driver allows 4096 bytes in one buffer"},
        {3, GRT_BUF_DEVICE, GRT_NO_MEMORY, CL_OUT_OF_RESOURCES,
         "no device memory for a buffer of 64 bytes"},
        {4, GRT_BUF_DEVICE, GRT_NO_MEMORY, CL_OUT_OF_RESOURCES,
         "no device memory for a buffer of 64 bytes"},
        {3, GRT_BUF_READBACK, GRT_NO_MEMORY, CL_MAP_FAILURE,
         "cannot map 64 bytes of pinned host memory"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct gcl_dev *dev = made_up();
        calls_left = refused[i].left;
        refusal = refused[i].code;
        TEST_REFUSED(gcl_buf_create(&dev->base, 64, refused[i].kind), refused[i].status,
                     refused[i].why);
        assert_true(memories == 0 && mapped == 0);
        assert_int_equal(dev->base.status, refused[i].status == GRT_LOST ? GRT_LOST : GRT_OK);
    }
}

static void transfers(void **state) {
    (void)state;
    struct gcl_dev *dev = made_up();
    struct gcl_buf buf = {.base = {.dev = &dev->base, .size = 64}, .handle = (cl_mem)(uintptr_t)9};
    assert_true(gcl_buf_write(&buf.base, 5, memory, 7) && gcl_buf_read(&buf.base, 11, memory, 13));
    expect_said(" write(5: 7) read(11: 13)");
    calls_left = 0;
    TEST_REFUSED(gcl_buf_write(&buf.base, 5, memory, 7), GRT_NO_MEMORY,
                 "cannot write 7 bytes at 5 of a buffer of 64 bytes");
    calls_left = 0;
    refusal = CL_OUT_OF_RESOURCES;
    TEST_REFUSED(gcl_buf_read(&buf.base, 11, memory, 13), GRT_LOST,
                 "cannot read 13 bytes at 11 of a buffer of 64 bytes");
    assert_int_equal(dev->base.status, GRT_LOST);
}

// The newest 32 are remembered; an older one has the oldest of these in its place, one that is not
// there yet the newest.
static void marks(void **state) {
    (void)state;
    struct gcl_dev *dev = made_up();
    struct grt_dev *base = &dev->base;
    // Before any there is nothing to wait for.
    assert_true(gcl_lane_after(base, GRT_LANE_MAIN, 1) && gcl_lane_wait(base, GRT_LANE_MAIN, 1) &&
                gcl_lane_passed(base, GRT_LANE_MAIN, 1));
    expect_said("");
    assert_int_equal(gcl_lane_mark(base, GRT_LANE_ASIDE), 1);
    expect_said(" q2 mark q2.");
    assert_true(gcl_lane_after(base, GRT_LANE_MAIN, 1));
    expect_said(" q1 after(1)");  // of the other lane
    assert_true(gcl_lane_after(base, GRT_LANE_ASIDE, 1));
    expect_said("");
    for (uint64_t i = 1; i <= 40; i++) {
        assert_int_equal(gcl_lane_mark(base, GRT_LANE_MAIN), i);
        assert_int_equal(events, 1 + (i < GCL_MARKS ? i : GCL_MARKS));
    }
    // Mark i is event 1 + i; marks 9 to 40 are kept.
    static const struct {
        uint64_t mark;
        unsigned event;
    } rows[] = {{40, 41}, {39, 40}, {9, 10}, {8, 10}, {1, 10}, {41, 41}, {1000, 41}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[64];
        said[0] = '\0';
        state_of_events = CL_COMPLETE;
        assert_true(gcl_lane_wait(base, GRT_LANE_MAIN, rows[i].mark));
        assert_true(gcl_lane_passed(base, GRT_LANE_MAIN, rows[i].mark));
        state_of_events = CL_RUNNING;
        assert_false(gcl_lane_passed(base, GRT_LANE_MAIN, rows[i].mark));
        assert_true(gcl_lane_after(base, GRT_LANE_ASIDE, rows[i].mark));
        snprintf(want, sizeof want, " wait(%u) state(%u) state(%u) q2 after(%u)", rows[i].event,
                 rows[i].event, rows[i].event, rows[i].event);
        expect_said(want);
    }
    // A marker or its flush that is refused is none; the others stay.
    refusal = CL_OUT_OF_HOST_MEMORY;
    calls_left = 0;
    TEST_REFUSED(gcl_lane_mark(base, GRT_LANE_MAIN), GRT_NO_MEMORY, "cannot mark a place in a que");
    assert_int_equal(dev->lanes[GRT_LANE_MAIN].marked, 40);
    calls_left = 0;
    TEST_REFUSED(gcl_lane_after(base, GRT_LANE_ASIDE, 40), GRT_NO_MEMORY,
                 "a queue cannot wait for");
    calls_left = 0;
    refusal = CL_OUT_OF_RESOURCES;
    TEST_REFUSED(gcl_lane_wait(base, GRT_LANE_MAIN, 40), GRT_LOST,
                 "the work queued on 'card' did not finish");
    said[0] = '\0';
    gcl_lanes_destroy(dev);
    expect_said(" -q1 -q2");
    assert_int_equal(events, 0);
    gcl_lanes_destroy(dev);
    expect_said("");
}

// Of five tries the quickest counts; the driver's pair where it lies within that.
static void clocks_are_read(void **state) {
    (void)state;
    static const struct {
        const char *version;
        double off;
        bool taken;
    } rows[] = {
        {"OpenCL 2.1 card", 0, true},
        {"OpenCL 3.0", 0, true},
        {"OpenCL 2.0", 0, false},
        {"OpenCL 1.2", 0, false},
        {"OpenCL", 0, false},
        {"OpenCL 2.1 card", 5e-3, false},
        {"OpenCL 2.1 card", -5e-3, false},
    };
    gcl.clWaitForEvents = wait_quietly;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gcl_dev *dev = NULL;
        bool good = false;
        // A loaded machine may come between: then once more.
        for (int again = 0; again < 20 && !good; again++) {
            double device = -1, host = -1;
            dev = made_up();
            for (int k = 0; k < 5; k++) {
                clocks.late[k] = k == 2 ? 4e-4 : 1.5e-3;
                clocks.at[k] = 7000 + (cl_ulong)k;
            }
            clocks.version = rows[i].version;
            clocks.off = rows[i].off;
            assert_true(gcl_clocks(&dev->base, &device, &host));
            double behind = host - clocks.begun;  // else the middle
            good =
                device == 0 && dev->origin == 7002 && dev->origin_known &&
                (rows[i].taken ? behind > -1e-4 && behind < 1e-4 : behind > 1e-4 && behind < 1e-3);
        }
        assert_true(good);
        assert_true(events == 0 && memories == 0);
        // Later times are counted from the same moment.
        assert_true(gcl_clock_seconds(dev, 7002 + 3000) == 1e-9 * 3000);
        assert_true(gcl_clock_seconds(dev, 7002 - 1000) == -1e-9 * 1000);
    }
    // Memory, a fill, its wait and its time; a driver that tells none.
    for (int refused = 0; refused < 5; refused++) {
        struct gcl_dev *dev = made_up();
        double device = 0, host = 0;
        clocks.at[0] = refused < 4;
        calls_left = refused < 4 ? refused : -1;
        refusal = CL_OUT_OF_HOST_MEMORY;
        TEST_REFUSED(gcl_clocks(&dev->base, &device, &host),
                     refused < 4 ? GRT_NO_MEMORY : GRT_UNSUPPORTED,
                     "the device's clock cannot be read");
        assert_true(events == 0 && memories == 0 && !dev->origin_known);
    }
}

static const struct CMUnitTest cases[] = {
    CL_CASE(buffers),
    CL_CASE(transfers),
    CL_CASE(marks),
    CL_CASE(clocks_are_read),
};
TEST_SUITE(clmakes, false, cases);
