// SPDX-License-Identifier: Apache-2.0
// What the suites about profiles share: a home without anybody's tuning, and devices that are not
// here.
#ifndef TEST_PROFILE_KIT_H
#define TEST_PROFILE_KIT_H

#include "backends/backend.h"
#include "harness/harness.h"

// Makes an empty folder the user's configuration; leave removes it with what a suite left there.
void kit_enter_home(void);
void kit_leave_home(void);
extern char kit_home[];
void kit_write(const char *path, const char *text);
void kit_write_user_file(const struct grt_dev_info *info, const char *text);
void kit_remove_user_file(const struct grt_dev_info *info);

// A GPU as Vulkan lists it.
struct grt_dev_info kit_gpu(const char *name, const char *vendor, double gib);
// An H200 as both APIs list it, with what ships about it; the caller destroys its profile.
struct grt_dev kit_h200(void);
// The first number of a setting.
void kit_expect(const struct grt_profile *profile, enum grt_profile_key key, double want);

#endif
