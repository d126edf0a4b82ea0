// SPDX-License-Identifier: Apache-2.0
// Lanes: two queues in order. A mark is the event of a marker, numbered; the newest GCL_MARKS are
// kept. An older one has a later one of its lane in its place, which is passed no sooner.
//
//     main    step 0 M1 | step 1 M2 | ...      lane_after(): a barrier that waits for one event
//     aside   up 1 | (after M1) up 2 M1 | ...
//
// A queue is flushed behind each marker: who waits for an event in another queue would wait for
// ever for a marker that the driver still holds back.
#include "opencl.h"

bool gcl_lanes_create(struct gcl_dev *dev, const char *name) {
    for (int i = 0; i < GRT_LANE_COUNT; i++) {
        cl_int code = CL_SUCCESS;
        dev->lanes[i].queue =
            gcl.clCreateCommandQueue(dev->context, dev->device, GCL_QUEUE_PROPERTIES, &code);
        if (!dev->lanes[i].queue) {
            gcl_fail(NULL, gcl_status(code, false), code, "no command queue on '%s'", name);
            gcl_lanes_destroy(dev);
            return false;
        }
    }
    dev->queue = dev->lanes[GRT_LANE_MAIN].queue;
    dev->base.lanes = 2;
    return true;
}

// Also of lanes that are only half made.
void gcl_lanes_destroy(struct gcl_dev *dev) {
    for (int i = 0; i < GRT_LANE_COUNT; i++) {
        struct gcl_lane *lane = &dev->lanes[i];
        for (uint32_t k = 0; k < GCL_MARKS; k++) {
            if (lane->marks[k]) {
                gcl_check_release(gcl.clReleaseEvent(lane->marks[k]), "event");
            }
        }
        if (lane->queue) {
            gcl_check_release(gcl.clReleaseCommandQueue(lane->queue), "command queue");
        }
        *lane = (struct gcl_lane){0};
    }
}

// The event of a mark or of one behind it.
static cl_event event_of(const struct gcl_lane *lane, uint64_t mark) {
    if (mark > lane->marked) {
        mark = lane->marked;
    } else if (mark + GCL_MARKS <= lane->marked) {
        mark = lane->marked + 1 - GCL_MARKS;
    }
    return lane->marks[mark % GCL_MARKS];
}

uint64_t gcl_lane_mark(struct grt_dev *base, enum grt_lane which) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    struct gcl_lane *lane = &dev->lanes[which];
    cl_event event = NULL;
    cl_int code = gcl.clEnqueueMarkerWithWaitList(lane->queue, 0, NULL, &event);
    code = code == CL_SUCCESS ? gcl.clFlush(lane->queue) : code;
    if (code != CL_SUCCESS || !event) {
        gcl_fail(dev, gcl_status(code, true), code, "cannot mark a place in a queue");
        return 0;
    }
    cl_event *place = &lane->marks[++lane->marked % GCL_MARKS];
    if (*place) {
        gcl_check_release(gcl.clReleaseEvent(*place), "event");
    }
    *place = event;
    return lane->marked;
}

bool gcl_lane_after(struct grt_dev *base, enum grt_lane which, uint64_t mark) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    cl_event event = event_of(&dev->lanes[which == GRT_LANE_MAIN], mark);
    if (!event) {
        return true;
    }
    cl_int code = gcl.clEnqueueBarrierWithWaitList(dev->lanes[which].queue, 1, &event, NULL);
    if (code != CL_SUCCESS) {
        return gcl_fail(dev, gcl_status(code, true), code, "a queue cannot wait for another");
    }
    return true;
}

bool gcl_lane_passed(struct grt_dev *base, enum grt_lane which, uint64_t mark) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    cl_event event = event_of(&dev->lanes[which], mark);
    cl_int status = CL_COMPLETE;
    if (event) {
        gcl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    }
    return status == CL_COMPLETE;
}

bool gcl_lane_wait(struct grt_dev *base, enum grt_lane which, uint64_t mark) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    cl_event event = event_of(&dev->lanes[which], mark);
    cl_int code = event ? gcl.clWaitForEvents(1, &event) : CL_SUCCESS;
    return code == CL_SUCCESS ||
           gcl_fail(dev, gcl_status(code, true), code, "the work queued on '%s' did not finish",
                    dev->base.info.name);
}

bool gcl_wait(struct grt_dev *base) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < GRT_LANE_COUNT && code == CL_SUCCESS; i++) {
        code = gcl.clFinish(dev->lanes[i].queue);
    }
    if (code != CL_SUCCESS) {
        return gcl_fail(
            dev, gcl_status(code, true), code,
            "the work queued on '%s' did not finish: a kernel read or wrote outside its "
            "buffers, or ran longer than the system allows",
            dev->base.info.name);
    }
    return true;
}
