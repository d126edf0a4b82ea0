// SPDX-License-Identifier: Apache-2.0
// Last words of a process that crashes: drivers run inside it, and some end it when memory runs
// out.
#ifndef APPS_CRASH_H
#define APPS_CRASH_H

// From here on a crash says which signal it was, which driver was in use, and whether memory is
// limited; then it takes its course, core file and all.
void crash_init(void);

#endif
