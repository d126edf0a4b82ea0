// SPDX-License-Identifier: Apache-2.0
// A folder of the test's own with a sweep's file and a trainer in it, a script that writes down
// what it is called with; for the tests of sweeps.
#ifndef TEST_APPS_SWEEP_FOLDER_H
#define TEST_APPS_SWEEP_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/apps/caught.h"
#include "cli/command.h"
#include "cli/talk.h"
#include "sweep/sweep.h"

static char root[64], dir[96], before[2048];
static struct sweep *sweep;

static inline void silent(void *context, enum grt_log_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

static inline void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, 0755);
}

static inline bool there(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

static inline const char *read_back(const char *name) {
    static char text[8192];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file) {
        fclose(file);
    }
    return text;
}

static inline void program(const char *name, const char *more) {
    char text[512], path[64];
    snprintf(text, sizeof text, "#!/bin/sh\nprintf '%%s\\n' \"$@\" >>'%s/%s.words'\n%s\n", root,
             name, more);
    snprintf(path, sizeof path, "bin/%s", name);
    put(path, text);
}

static inline int begin(void **state) {
    char path[4096];
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpurt_test_folder.XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(dir, sizeof dir, "%s/d", root);
    snprintf(path, sizeof path, "%s/bin", root);
    assert_int_equal(mkdir(path, 0777), 0);
    if (!before[0]) {
        snprintf(before, sizeof before, "%s", getenv("PATH"));
    }
    snprintf(path, sizeof path, "%s/bin:%s", root, before);
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/bin/trainer", root);
    setenv("GPURT_SWEEP_COMMAND", path, 1);
    unsetenv("GPURT_DEVICE");
    assert_int_equal(chdir(root), 0);
    put("s.yaml", "lr: [1, 2]\n");
    program("trainer", "exit 0");
    sweep = calloc(1, sizeof *sweep);
    assert_non_null(sweep);
    return 0;
}

static inline int end(void **state) {
    char command[128];
    (void)state;
    sweep_close(sweep);
    free(sweep);
    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static inline void again(void **state) {
    end(state);
    begin(state);
}

// What making a sweep comes to; what is said is in `caught`.
static inline int made(struct sweep_new desc) {
    desc.yaml = desc.yaml ? desc.yaml : "s.yaml";
    desc.executor = desc.executor ? desc.executor : &sweep_local;
    catch_begin();
    int code = sweep_plan_new(sweep, &desc);
    code = code ? code : sweep_folder_new(sweep, &desc);
    catch_end();
    return code;
}
#define MADE(...) made((struct sweep_new){__VA_ARGS__})

static inline int opened(const char *name, bool lock) {
    sweep_close(sweep);
    memset(sweep, 0, sizeof *sweep);
    catch_begin();
    int code = sweep_folder_open(sweep, name, lock);
    catch_end();
    return code;
}

#endif
