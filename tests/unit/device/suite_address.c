// SPDX-License-Identifier: Apache-2.0
// OpenCL's buffers by their addresses (backends/opencl/address.c) and as arguments give the same
// results; where a driver hands out addresses, GPURT_ADDRESSES chooses. Its events are counted, and
// so are its own fills, which end at a reach.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

#define COUNT 1000u

// c = 2 a + c in two buffers, each range with something before and behind it.
static void run_on(struct grt_dev *dev) {
    struct grt_buf *bufs[2];
    float values[3 * COUNT], got[3 * COUNT];
    uint64_t at = COUNT * sizeof(float) / 256 * 256, size = COUNT * sizeof(float);
    uint64_t first = at / sizeof(float);
    for (uint32_t i = 0; i < 3 * COUNT; i++) {
        values[i] = (float)i;
    }
    for (uint32_t i = 0; i < 2; i++) {
        bufs[i] = grt_buf_create(dev, grt_buf_desc(.size = sizeof values, .label = "here"));
        assert_non_null(bufs[i]);
        assert_true(grt_buf_write(bufs[i], 0, values, sizeof values));
    }
    struct grt_tensor a = {.label = "a", .rank = 1, .shape = {COUNT}, .range = {bufs[0], at, size}};
    struct grt_tensor c = {.label = "c", .rank = 1, .shape = {COUNT}, .range = {bufs[1], 0, size}};
    struct grt_graph *graph = grt_graph_create(dev, "addresses");
    grt_op_map(graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &c, .a = &a, .b = &c, .alpha = 2.0f,
                                   .beta = 1.0f));
    assert_true(grt_graph_finish(graph));
    assert_true(grt_buf_read(bufs[1], 0, got, sizeof got));
    for (uint32_t i = 0; i < 3 * COUNT; i++) {
        float want = i < COUNT ? 2.0f * (float)(i + first) + (float)i : (float)i;
        assert_true(got[i] == want);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&bufs[0]);
    grt_buf_destroy(&bufs[1]);
}

static void either_way(void **state) {
    (void)state;
    const char *before = getenv("GPURT_ADDRESSES");
    char kept[16] = "";
    strncpy(kept, before ? before : "", sizeof kept - 1);
    for (int ask = 0; ask < 2; ask++) {
        setenv("GPURT_ADDRESSES", ask ? "1" : "0", 1);
        struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "opencl"));
        if (!dev) {
            skip();
            return;  // skip() does not come back: for the analyzer
        }
        // PoCL and NVIDIA hand addresses out.
        assert_int_equal(((struct gcl_dev *)dev)->by_address, ask);
        run_on(dev);
        grt_dev_destroy(&dev);
    }
    if (before) {
        setenv("GPURT_ADDRESSES", kept, 1);
    } else {
        unsetenv("GPURT_ADDRESSES");
    }
}

// ---- events ----

static struct {
    struct gcl_api own;
    int alive, made;
    size_t filled;  // bytes by the driver's own fills
    size_t end;     // of the furthest
} events;

static cl_int note_made(cl_int code, cl_event *event) {
    if (code == CL_SUCCESS && event) {
        events.alive++;
        events.made++;
    }
    return code;
}

static cl_int CL_API_CALL mark_noted(cl_command_queue queue, cl_uint count, const cl_event *wait,
                                     cl_event *event) {
    return note_made(events.own.clEnqueueMarkerWithWaitList(queue, count, wait, event), event);
}

static cl_int CL_API_CALL fill_noted(cl_command_queue queue, cl_mem buf, const void *pattern,
                                     size_t length, size_t offset, size_t size, cl_uint count,
                                     const cl_event *wait, cl_event *event) {
    events.filled += size;
    events.end = offset + size > events.end ? offset + size : events.end;
    return note_made(events.own.clEnqueueFillBuffer(queue, buf, pattern, length, offset, size,
                                                    count, wait, event),
                     event);
}

static cl_int CL_API_CALL release_noted(cl_event event) {
    events.alive--;
    return events.own.clReleaseEvent(event);
}

static struct grt_dev *opencl_here(void) {
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "opencl"));
    if (!dev) {
        skip();
    }
    return dev;
}

// Phases have two events a run, and a lane keeps so many marks: none outlives graph and device.
static void events_are_given_back(void **state) {
    (void)state;
    struct grt_dev *dev = opencl_here();
    events.own = gcl;
    gcl.clEnqueueMarkerWithWaitList = mark_noted;
    gcl.clEnqueueFillBuffer = fill_noted;
    gcl.clReleaseEvent = release_noted;
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = 4096, .label = "here"));
    assert_non_null(buf);
    struct grt_graph *graph = grt_graph_create(dev, "events");
    grt_graph_phase(graph, "one");
    grt_graph_fill(graph, (struct grt_range){buf, 0, 1024}, 1);
    grt_graph_fill(graph, (struct grt_range){buf, 1024, 1024}, 2);
    grt_graph_fill(graph, (struct grt_range){buf, 2048, 1024}, 3);
    grt_graph_phase(graph, "two");
    grt_graph_fill(graph, (struct grt_range){buf, 3072, 1024}, 4);
    assert_true(grt_graph_bake(graph));
    for (int i = 0; i < 5; i++) {
        assert_true(grt_graph_run(graph));
        // One phase has a first and a last, the other one that is both.
        assert_int_equal(events.alive, 3);
    }
    assert_int_equal(events.made, 15);
    grt_graph_destroy(&graph);
    assert_int_equal(events.alive, 0);
    for (int i = 0; i < 3 * GCL_MARKS; i++) {
        assert_int_equal(grt_dev_mark(dev, GRT_LANE_MAIN), i + 1);
        assert_int_equal(events.alive, i < GCL_MARKS ? i + 1 : GCL_MARKS);
    }
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
    gcl.clEnqueueMarkerWithWaitList = events.own.clEnqueueMarkerWithWaitList;
    gcl.clEnqueueFillBuffer = events.own.clEnqueueFillBuffer;
    gcl.clReleaseEvent = events.own.clReleaseEvent;
    assert_int_equal(events.alive, 0);
}

static int mapped;

static void *CL_API_CALL map_noted(cl_command_queue queue, cl_mem buf, cl_bool blocking,
                                   cl_map_flags flags, size_t offset, size_t size, cl_uint count,
                                   const cl_event *wait, cl_event *event, cl_int *code) {
    mapped++;
    return events.own.clEnqueueMapBuffer(queue, buf, blocking, flags, offset, size, count, wait,
                                         event, code);
}

static cl_int CL_API_CALL unmap_noted(cl_command_queue queue, cl_mem buf, void *at, cl_uint count,
                                      const cl_event *wait, cl_event *event) {
    mapped--;
    return events.own.clEnqueueUnmapMemObject(queue, buf, at, count, wait, event);
}

// Host memory is mapped for the life of its buffer, and no longer.
static void mapped_memory_is_given_back(void **state) {
    (void)state;
    struct grt_dev *dev = opencl_here();
    events.own = gcl;
    gcl.clEnqueueMapBuffer = map_noted;
    gcl.clEnqueueUnmapMemObject = unmap_noted;
    static const enum grt_buf_kind kinds[] = {GRT_BUF_DEVICE, GRT_BUF_UPLOAD, GRT_BUF_READBACK};
    for (int i = 0; i < 3; i++) {
        // A large one of the device is mapped for its pages, while it is made.
        uint64_t size = kinds[i] == GRT_BUF_DEVICE ? 8u << 20 : 4096;
        struct grt_buf *buf =
            grt_buf_create(dev, grt_buf_desc(.size = size, .kind = kinds[i], .label = "mapped"));
        assert_non_null(buf);
        assert_int_equal(mapped, kinds[i] != GRT_BUF_DEVICE);
        grt_buf_destroy(&buf);
        assert_int_equal(mapped, 0);
    }
    grt_dev_destroy(&dev);
    gcl.clEnqueueMapBuffer = events.own.clEnqueueMapBuffer;
    gcl.clEnqueueUnmapMemObject = events.own.clEnqueueUnmapMemObject;
}

// Ranges of words with distinct values: up to the reach, across it and behind it, one longer than a
// grid. The driver's own fills end there, and every word is what it was told to be.
static void far_fills(void **state) {
    (void)state;
    enum { REACH = 1000, WORDS = 3 << 20 };
    static const uint32_t begins[] = {3, 990, 1004, 2000, WORDS - 5, WORDS};
    struct grt_dev *dev = opencl_here();
    assert_true(((struct gcl_dev *)dev)->fill_reach <= (uint64_t)1 << 33);
    ((struct gcl_dev *)dev)->fill_reach = (uint64_t)REACH * 4;
    memset(&events, 0, sizeof events);
    events.own = gcl;
    gcl.clEnqueueFillBuffer = fill_noted;
    struct grt_buf *buf =
        grt_buf_create(dev, grt_buf_desc(.size = (uint64_t)WORDS * 4, .label = "far"));
    uint32_t *words = calloc(WORDS, sizeof *words);
    assert_true(buf && words && grt_buf_write(buf, 0, words, (uint64_t)WORDS * 4));
    struct grt_graph *graph = grt_graph_create(dev, "fills");
    grt_graph_phase(graph, "all");
    for (uint32_t i = 0; i < 5; i++) {
        // A word between two of them stays.
        uint64_t size = 4 * (uint64_t)(begins[i + 1] - begins[i] - 1);
        grt_graph_fill(graph, (struct grt_range){buf, 4 * (uint64_t)begins[i], size}, 100 + i);
    }
    assert_true(grt_graph_finish(graph));
    assert_true(grt_graph_finish(graph));
    assert_true(grt_buf_read(buf, 0, words, (uint64_t)WORDS * 4));
    for (uint32_t i = 0, k = 0; i < WORDS; i++) {
        k += k < 5 && i == begins[k];  // 1 + the newest that has begun
        bool between = k == 0 || i + 1 == begins[k];
        assert_int_equal(words[i], between ? 0 : 99 + k);
    }
    assert_int_equal(events.filled, 2 * 4 * (begins[1] - begins[0] - 1));
    assert_in_range(events.end, 1, (size_t)REACH * 4);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
    gcl.clEnqueueFillBuffer = events.own.clEnqueueFillBuffer;
    free(words);
}

// ---- kernel objects ----

static int objects_made, objects_alive;

static cl_kernel CL_API_CALL create_noted(cl_program program, const char *name, cl_int *code) {
    objects_made++;
    objects_alive++;
    return events.own.clCreateKernel(program, name, code);
}

static cl_int CL_API_CALL retain_noted(cl_kernel kernel) {
    objects_alive++;
    return events.own.clRetainKernel(kernel);
}

static cl_int CL_API_CALL release_kernel_noted(cl_kernel kernel) {
    objects_alive--;
    return events.own.clReleaseKernel(kernel);
}

// Equal launches that follow each other have one object, the first of a list too; another launch
// has its own; and all are given back.
static void equal_launches_share_an_object(void **state) {
    (void)state;
    struct grt_dev *dev = opencl_here();
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = 4096, .label = "here"));
    assert_non_null(buf);
    struct grt_tensor a = {.label = "a", .rank = 1, .shape = {64}, .range = {buf, 0, 256}};
    struct grt_tensor c = {.label = "c", .rank = 1, .shape = {64}, .range = {buf, 2048, 256}};
    struct grt_graph *graph = NULL;
    for (int equal = 0; equal < 4; equal++) {
        // The first graph builds the kernel and is not counted.
        if (equal == 1) {
            events.own = gcl;
            gcl.clCreateKernel = create_noted;
            gcl.clRetainKernel = retain_noted;
            gcl.clReleaseKernel = release_kernel_noted;
        }
        graph = grt_graph_create(dev, "equal");
        for (int i = 0; i < 1 + equal; i++) {
            grt_op_map(graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &c, .a = &a, .b = &c,
                                           .alpha = 2.0f, .beta = 1.0f));
        }
        if (equal == 3) {
            grt_op_map(graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &c, .a = &a, .b = &c,
                                           .alpha = 3.0f, .beta = 1.0f));
        }
        assert_true(grt_graph_bake(graph));
        if (equal > 0) {
            assert_int_equal(objects_made, equal == 3 ? 2 : 1);
            assert_int_equal(objects_alive, 1 + equal + (equal == 3));
        }
        assert_true(grt_graph_run(graph));
        grt_graph_destroy(&graph);
        assert_int_equal(objects_alive, 0);
        objects_made = 0;
    }
    gcl.clCreateKernel = events.own.clCreateKernel;
    gcl.clRetainKernel = events.own.clRetainKernel;
    gcl.clReleaseKernel = events.own.clReleaseKernel;
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

// ---- queues ----

static struct {
    cl_command_queue queues[8];
    uint32_t count;
} finished;

static cl_int CL_API_CALL finish_noted(cl_command_queue queue) {
    finished.queues[finished.count++ % 8] = queue;
    return events.own.clFinish(queue);
}

// A wait for the device is one for each of its queues.
static void all_queues_are_waited_for(void **state) {
    (void)state;
    struct grt_dev *base = opencl_here();
    const struct gcl_dev *dev = (struct gcl_dev *)base;
    events.own = gcl;
    gcl.clFinish = finish_noted;
    finished.count = 0;
    assert_true(grt_dev_wait(base));
    gcl.clFinish = events.own.clFinish;
    assert_int_equal(finished.count, GRT_LANE_COUNT);
    for (int i = 0; i < GRT_LANE_COUNT; i++) {
        assert_true(finished.queues[i] == dev->lanes[i].queue);
    }
    grt_dev_destroy(&base);
}

// A phase without commands lasts no time, wherever it stands.
static void empty_phases(void **state) {
    (void)state;
    struct grt_dev *dev = opencl_here();
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = 1 << 20, .label = "here"));
    assert_non_null(buf);
    struct grt_graph *graph = grt_graph_create(dev, "phases");
    for (int i = 0; i < 5; i++) {
        grt_graph_phase(graph, i % 2 ? "work" : "none");
        if (i % 2) {
            grt_graph_fill(graph, (struct grt_range){buf, 0, 1 << 20}, 1);
        }
    }
    struct grt_phase_time times[5] = {0};
    assert_true(grt_graph_finish(graph));
    assert_int_equal(grt_graph_times(graph, times, 5), 5);
    for (int i = 0; i < 5; i++) {
        assert_true(i % 2 ? times[i].seconds > 0 : times[i].seconds == 0);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

// A CPU driver takes memory at the first use, and would end the process there.
static void memory_that_the_host_has_not(void **state) {
    (void)state;
    struct grt_dev *dev = opencl_here();
    if (!grt_dev_info(dev)->caps.software) {
        grt_dev_destroy(&dev);
        skip();
    }
    test_refuse_allocation(1);
    TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = 1 << 20, .label = "here")), GRT_NO_MEMORY,
                 "no host memory for a buffer of 1048576 bytes");
    test_refuse_allocation(0);
    grt_dev_destroy(&dev);
}

static const struct CMUnitTest cases[] = {TEST_CASE(all_queues_are_waited_for),
                                          TEST_CASE(empty_phases),
                                          TEST_CASE(memory_that_the_host_has_not),
                                          cmocka_unit_test(equal_launches_share_an_object),
                                          cmocka_unit_test(either_way),
                                          cmocka_unit_test(events_are_given_back),
                                          cmocka_unit_test(mapped_memory_is_given_back),
                                          cmocka_unit_test(far_fills)};
TEST_SUITE(address, false, cases);
