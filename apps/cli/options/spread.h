// SPDX-License-Identifier: Apache-2.0
// A command on several devices at once: `--device vulkan:0,vulkan:1` of `gpurt bench` and `gpurt
// tune` is one process a device, as trials of a sweep are.
#ifndef APPS_SPREAD_H
#define APPS_SPREAD_H

#include "device_list.h"
#include "gpurt/device.h"

// "1" is the second device of the API that would be chosen: its selector. False with the sentence.
bool devices_number(const struct grt_dev_list *list, const char *backend, const char *word,
                    char *name, size_t size);

// Where the words of `verb` name several devices: runs it once on each, all at the same time, and
// writes what they wrote, one behind the other, in the order of the devices. Returns the first exit
// code that is not 0, or 0; -1: they do not. argv[0] is passed over.
int spread_devices(const char *verb, int argc, char **argv);

#endif
