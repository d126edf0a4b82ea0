// SPDX-License-Identifier: Apache-2.0
#include "bench_contribute.h"

#include <string.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/talk.h"

const struct option_row bench_contribute_options[] = {
    {.name = "contribute",
     .value = "FILE",
     .help = "with `all`: results to give away, with nothing of you or your machine but the device",
     .read = options_read_text,
     .at = offsetof(struct bench, contribute)},
};

// Of a device. Not: its selector and PCI address, and the profiles, which may be the user's files.
static const char *const device_keys[] = {
    "name",          "vendor",        "driver",         "driver_version", "backend",
    "api_version",   "type",          "memory",         "max_buffer",     "max_binding",
    "align",         "compute_units", "subgroup",       "max_workgroup",  "max_groups",
    "shared_memory", "f16_storage",   "f16_arithmetic", "i16_arithmetic", "bf16",
    "imports_ptx",   "matrix",        "timestamps",
};

// An environment of the user's own: grt_env_open().
static bool is_file(const char *env) {
    size_t length = strlen(env);
    return strchr(env, '/') || (length > 2 && strcmp(env + length - 2, ".k") == 0);
}

int bench_contribute_begin(struct bench *bench, bool all) {
    if (!bench->contribute) {
        return -1;
    }
    if (!all || bench->common.output) {
        talk_error("'--contribute' is of `gpurt bench all`, and names the file to write: no -o");
        return COMMAND_USAGE;
    }
    if (bench->common.monitor || (bench->rollout.env && is_file(bench->rollout.env))) {
        talk_error("'--contribute' takes neither '--monitor' nor an environment of your own");
        return COMMAND_USAGE;
    }
    bench->common.output = bench->contribute;
    bench->common.format = TABLE_JSON;
    return -1;
}

void bench_contribute_desc(const struct bench *bench, struct table_desc *desc) {
    static char verb[] = "bench", kind[] = "all";
    static char *words[] = {verb, kind, NULL};
    json_t *all = devices_json(grt_dev_info(bench->dev)), *device = json_object();
    for (size_t i = 0; i < sizeof device_keys / sizeof *device_keys; i++) {
        json_t *value = json_object_get(all, device_keys[i]);
        if (value) {
            json_object_set(device, device_keys[i], value);
        }
    }
    json_decref(all);
    json_decref(desc->head);
    desc->head = json_pack("{so}", "device", device);
    desc->argc = 2;
    desc->argv = words;
}

void bench_contribute_row(struct table_cell *cells) {
    cells[BENCH_PROFILE].known = false;
}

void bench_contribute_end(const struct bench *bench, int code) {
    if (code == COMMAND_OK && !bench->common.quiet) {
        talk_line("'%s' has the device, its driver and what was measured. To give it away: "
                  "docs/estimates.md",
                  bench->contribute);
    }
}
