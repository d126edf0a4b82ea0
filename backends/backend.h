// SPDX-License-Identifier: Apache-2.0
// The seam between runtime/ and a GPU API, one page. The runtime checks arguments, keeps the
// account, finds hazards and decides; a backend translates and does nothing else.
//
// A backend's objects begin with the public struct, so a pointer to one is a pointer to the other:
//     struct gvk_buf { struct grt_buf base; VkBuffer handle; };
#ifndef GRT_BACKEND_H
#define GRT_BACKEND_H

#include "gpurt/graph.h"
#include "kernel_info.h"

// ---- kernels ----

struct grt_kernel {
    struct grt_dev *dev;
    const struct grt_kernel_info *info;
    uint32_t spec_values[GRT_MAX_SPECS];
    struct grt_kernel *next;  // the device's list
    bool promised;            // recorded and not built yet; no backend sees such a one
};

// ---- memory ----

struct grt_buf {
    struct grt_dev *dev;
    uint64_t size;  // a multiple of 4
    enum grt_buf_kind kind;
    void *host;           // upload and readback: set by buf_create, stays for the buffer's life
    uint32_t refs;        // owner and baked graphs
    uint32_t account;     // row of the account
    uint64_t allocation;  // of the timeline that was going, or 0
};

// ---- commands ----

enum grt_cmd_kind { GRT_CMD_DISPATCH, GRT_CMD_COPY, GRT_CMD_FILL, GRT_CMD_PHASE };

struct grt_cmd {
    enum grt_cmd_kind kind;
    int32_t sync;  // newest earlier command it must wait for, -1 when none since the
                   // last command with one
    const struct grt_kernel *kernel;              // dispatch
    struct grt_range bindings[GRT_MAX_BINDINGS];  // dispatch, in full; sizes are never 0
    uint32_t groups[3];                           // dispatch
    uint32_t params_size;                         // dispatch
    unsigned char params[GRT_MAX_PARAMS];         // dispatch
    struct grt_range dst, src;                    // copy; fill uses dst
    uint32_t value;                               // fill
    uint32_t phase;                               // phase: its number, counted from 0
    double operations;  // dispatch: floating-point operations, for rates; 0: not known
    uint64_t samples;   // dispatch: that it transforms; 0: not known
};

// Times of the commands of a list, in seconds.
struct grt_stamps {
    double *begin, *end;  // [count]
    bool host;            // by grt_seconds(): the host did the work; else by the device's clock
};

// ---- one device ----

// Unless a slot says otherwise it is called from one thread at a time, arguments are valid, and a
// failure is reported with grt_fail() before false or NULL is returned.
struct grt_dev_fns {
    // Called once, when everything made on the device is gone and the queue is idle.
    void (*destroy)(struct grt_dev *dev);

    // Fills base.host for upload and readback buffers; the runtime fills the rest of base.
    // Contents are undefined. NULL with GRT_NO_MEMORY when the driver refuses.
    struct grt_buf *(*buf_create)(struct grt_dev *dev, uint64_t size, enum grt_buf_kind kind);
    void (*buf_destroy)(struct grt_buf *buf);
    // Device buffers only (the runtime serves the others by memcpy), queue idle; blocking. The
    // offset and size may be any number of bytes.
    bool (*buf_write)(struct grt_buf *buf, uint64_t offset, const void *data, uint64_t size);
    bool (*buf_read)(struct grt_buf *buf, uint64_t offset, void *data, uint64_t size);

    // Compiles for spec_values (info->spec_count of them); the runtime fills the rest of base.
    struct grt_kernel *(*kernel_create)(struct grt_dev *dev, const struct grt_kernel_info *info,
                                        const uint32_t *spec_values);
    void (*kernel_destroy)(struct grt_kernel *kernel);
    // The PTX that the driver makes of a kernel's OpenCL reading, to be freed, with a zero behind.
    // GRT_OK; GRT_UNSUPPORTED when the kernel is for another kind of device, which will not change;
    // or why not this time. NULL as a slot where the driver is not NVIDIA's.
    enum grt_status (*kernel_ptx)(struct grt_dev *dev, const struct grt_kernel_info *info,
                                  const uint32_t *spec_values, char **ptx);
    // As kernel_create(), from PTX; NULL as a slot where the API does not take it.
    struct grt_kernel *(*kernel_import)(struct grt_dev *dev, const struct grt_kernel_info *info,
                                        const uint32_t *spec_values, const char *ptx);

    // Translates a command list once. The list is not kept. Time slots of phases are numbered
    // 0 .. phase_count - 1; a list begins as if everything queued before it had finished.
    // On the upload queue it has copies from upload to device buffers only, and no phases.
    // `timed`: cmds_stamps() will be asked for the times of each command.
    void *(*cmds_create)(struct grt_dev *dev, const struct grt_cmd *cmds, uint32_t count,
                         uint32_t phase_count, enum grt_lane lane, bool timed);
    // Of a list that was made `timed`: from its next run on only these commands need times. Its
    // times were read. NULL where a list is timed whole.
    void (*cmds_choose)(struct grt_dev *dev, void *native, const bool *chosen);
    // The list is not running.
    void (*cmds_destroy)(struct grt_dev *dev, void *native);
    // Queues the list behind what was queued before on its lane, starts it and returns; must not
    // allocate. Where there is no upload queue, its lists may copy at once, on the calling thread.
    bool (*cmds_run)(struct grt_dev *dev, void *native);
    // Device seconds of the newest run: begin[i] and end[i] of each phase relative to any common
    // start. Queue idle. NULL when caps.timestamps is 0.
    bool (*cmds_times)(struct grt_dev *dev, void *native, double *begin, double *end);
    // Waits for the newest run of a list that was made `timed`, then fills in when each of its
    // commands began and ended. Commands of a list do not overlap: of two that ran side by side the
    // second begins when the first has ended. begin is NAN for a command without a time. NULL when
    // caps.timestamps is 0.
    bool (*cmds_stamps)(struct grt_dev *dev, void *native, struct grt_stamps *stamps);
    // The device's clock and the host's (grt_seconds()) at the same moment, as nearly as the driver
    // can tell. The device's counts seconds since the first call, as those of cmds_stamps() do.
    // Queue idle; called when a timeline begins and ends. NULL with cmds_stamps.
    bool (*clocks)(struct grt_dev *dev, double *device, double *host);
    // Returns when everything queued has finished, on all lanes.
    bool (*wait)(struct grt_dev *dev);

    // On: lists of the main lane may wait for each other and go to the driver together, until
    // something is waited for or it is switched off or on again. False, and the device is lost,
    // where the driver refuses them. NULL where nothing is gained.
    bool (*hold)(struct grt_dev *dev, bool on);

    // Marks of lanes (see device.h), from 1 on and growing; several times a step. All four are NULL
    // where cmds_run has finished the list when it returns. lane_after is called only when
    // base.lanes is 2.
    uint64_t (*lane_mark)(struct grt_dev *dev, enum grt_lane lane);
    bool (*lane_after)(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);
    bool (*lane_passed)(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);
    bool (*lane_wait)(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);

    // Bytes of device memory that the driver could still give. NULL when the driver cannot tell.
    uint64_t (*mem_free)(struct grt_dev *dev);
};

#define GRT_MAX_ACCOUNTS 64

struct grt_profile;
struct grt_verdict_row;

struct grt_dev {
    const struct grt_dev_fns *fns;
    struct grt_dev_info info;
    struct grt_dev_desc desc;  // defaults filled in; strings are not kept
    enum grt_status status;    // GRT_OK until the device is lost
    uint32_t complaints;       // of the validation layer
    bool validated;            // the validation layer watches; set by open()
    uint32_t lanes;            // 2 when uploads have a lane of their own; set by open()
    uint32_t objects;          // buffers and graphs alive
    struct grt_kernel *kernels;
    struct grt_kernel *promises;  // see grt_kernel_promise()
    struct grt_profile *profile;
    const struct grt_kernel_info *refused[8];  // that grt_kernel_builds() could not build
    uint32_t refused_count;
    struct grt_dev
        *compiler;     // makes PTX for this one, and goes with it; see runtime/device/import.c
    bool no_compiler;  // looked for, and there is none
    struct grt_verdict_row *verdicts;  // see runtime/ops/verdict.h
    uint32_t verdict_count, verdict_room;
    const char *fault_op, *fault_variant;  // whose checks are made to fail, for tests
    uint32_t eights;                       // of a check, see runtime/nn/eights.h
    struct grt_buf *unused;                // dummy for bindings that a kernel does not use
    struct grt_mem_use total;
    struct grt_mem_use accounts[GRT_MAX_ACCOUNTS];
    uint32_t account_count;
    struct grt_graph *timed_graphs;  // see runtime/device/timed.c
    bool holds;                      // see grt_dev_hold()
    double held;                     // seconds that what is held takes, as far as known
};

// ---- one backend ----

struct grt_backend {
    // Lists devices into infos (up to capacity) and returns how many there are; -1 with a sentence
    // in `problem` (256 bytes) when the API is not usable here at all. Logs nothing. Runs in a
    // child process first. The runtime fills backend, index and selector.
    int32_t (*list)(struct grt_dev_info *infos, uint32_t capacity, char *problem);
    // Called at most once, when list() found no hardware device: makes known, to this process only,
    // a driver that is installed but that the API's loader did not find. True when it did. `note`
    // (256 bytes, "" at first) gets a sentence on what was done, or else on the library that was
    // left out because opening it crashes; *anew (true at first) is cleared when an earlier process
    // has left the file for the driver. NULL when there is nothing of that kind.
    bool (*add_drivers)(char *note, bool *anew);
    // Where the API's loader can be told to leave a driver out, else NULL: the file that names its
    // driver i into `file` (256 bytes), false beyond the last; and to load, from here on in this
    // process, only those whose bit in `keep` is set. Both before the loader was opened.
    bool (*driver)(uint32_t i, char *file);
    bool (*keep_drivers)(uint32_t keep);
    // Opens the device info->index. The result begins with struct grt_dev, all zero but for fns;
    // the runtime fills the rest. desc has its defaults filled in.
    struct grt_dev *(*open)(const struct grt_dev_info *info, const struct grt_dev_desc *desc);
};

// One per backend, in the order of GRT_BACKENDS.
extern const struct grt_backend grt_backend_vulkan;
extern const struct grt_backend grt_backend_opencl;
extern const struct grt_backend grt_backend_ref;

#endif
