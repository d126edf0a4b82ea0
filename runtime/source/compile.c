// SPDX-License-Identifier: Apache-2.0
// Both compilers read a temporary file and write one. They run as programs, and not as libraries of
// this process: what a compiler does with a user's mistake cannot harm the training, and one way
// serves every system.
#include "compile.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/log.h"
#include "base/program.h"
#include "gpurt/unfinished.h"
#include "base/whole_file.h"

#define MAX_PATH 512
#define MAX_NAMES 4
#define MAX_ARGS 24
#define MAX_RESULT ((uint64_t)64 << 20)
#define SECONDS 120.0

#ifndef GPURT_GLSLANG
#define GPURT_GLSLANG "glslang"
#endif

struct compiler {
    const char *programs[MAX_NAMES];  // the first that there is
    const char *args[MAX_ARGS];       // "IN" and "OUT" stand for the files
    const char *ending;               // of the text's file
    const char *missing;              // what to say when there is none
};

// The build's own glslang first: it is known to take the dialect.
static const struct compiler glsl = {
    .programs = {GPURT_GLSLANG, "glslang", "glslangValidator"},
    .args = {"--quiet", "-V", "--target-env", "vulkan1.1", "-S", "comp", "-o", "OUT", "IN"},
    .missing = "Vulkan needs the program glslang for it, and there is none: install glslang-tools "
               "(Debian, Ubuntu) or glslang (Fedora, Arch), or choose opencl",
};
static const struct compiler c = {
    .programs = {"cc", "gcc", "clang"},
    .args = {"-x", "c", "-std=c11", "-O2", "-ffp-contract=off", "-fPIC", "-shared",
             "-Werror=implicit-function-declaration", "-Werror=implicit-int",
             "-Werror=int-conversion", "-Werror=incompatible-pointer-types", "-o", "OUT", "IN",
             "-lm"},
    .missing = "ref needs a C compiler for it, and there is none: install gcc or clang, or choose "
               "opencl or vulkan",
};

// Closes and removes a temporary file.
static void remove_file(int fd, char *path) {
    if (fd >= 0) {
        close(fd);
        unlink(path);
        grt_unfinished_remove(path);
    }
}

static bool write_all(int fd, const void *data, size_t size) {
    for (const char *at = data; size > 0;) {
        ssize_t n = write(fd, at, size);
        if (n <= 0) {
            return grt_fail(GRT_IO, "a temporary file cannot be written");
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

// Runs the first program that there is. False with the sentence.
static bool run(const struct compiler *compiler, const char *file, const char *text, const char *in,
                const char *out) {
    int code = GRT_PROGRAM_NONE;
    char *said = NULL;
    for (uint32_t i = 0; code == GRT_PROGRAM_NONE && i < MAX_NAMES && compiler->programs[i]; i++) {
        const char *argv[MAX_ARGS + 2] = {compiler->programs[i]};
        for (uint32_t a = 0; a < MAX_ARGS && compiler->args[a]; a++) {
            const char *arg = compiler->args[a];
            argv[a + 1] = strcmp(arg, "IN") == 0 ? in : strcmp(arg, "OUT") == 0 ? out : arg;
        }
        free(said);
        code = grt_program_run(argv, SECONDS, &said);
    }
    if (said && said[0]) {
        grt_log(GRT_LOG_DEBUG, "compiling %s: %s", file, said);
    }
    if (code == GRT_PROGRAM_NONE) {
        grt_fail(GRT_UNSUPPORTED, "%s is compiled at run time: %s", file, compiler->missing);
    } else if (code == GRT_PROGRAM_KILLED) {
        grt_fail(GRT_COMPILE, "%s: the compiler crashed or took more than %.0f s", file, SECONDS);
    } else if (code != 0) {
        char line[512];
        grt_program_error(said, line, sizeof line);
        grt_program_place(text, 0, file, line, sizeof line);
        grt_fail(GRT_BAD_DATA, "%s", line);
    }
    free(said);
    return code == 0;
}

// What a compiler makes of a text: from the cache, or made and kept there. To be freed.
static void *make(const struct compiler *compiler, const char *kind, const char *file,
                  const char *text, size_t *size) {
    char key[MAX_PATH + 256], in[MAX_PATH], out[MAX_PATH];
    struct utsname system = {.machine = "?"};
    uint64_t options = 0;
    uname(&system);
    for (uint32_t i = 0; i < MAX_ARGS && compiler->args[i]; i++) {
        options = grt_digest(compiler->args[i], strlen(compiler->args[i]) + 1, options);
    }
    snprintf(key, sizeof key, "source\n%s\n%s\n%s\n%016" PRIx64 "\n%016" PRIx64 " %zu", kind,
             compiler->programs[0], system.machine, options, grt_digest(text, strlen(text), 0),
             strlen(text));
    void *result = grt_cache_load(key, size);
    if (result) {
        return result;
    }
    int in_fd = grt_temporary_file(in, sizeof in);
    int out_fd = in_fd >= 0 ? grt_temporary_file(out, sizeof out) : -1;
    if (out_fd >= 0 && write_all(in_fd, text, strlen(text)) && run(compiler, file, text, in, out)) {
        uint64_t bytes = 0;
        result = grt_whole_file_read(out, MAX_RESULT, &bytes);
        *size = (size_t)bytes;
    }
    remove_file(in_fd, in);
    remove_file(out_fd, out);
    if (result) {
        grt_cache_store(key, result, *size);
    }
    return result;
}

uint32_t *grt_compile_glsl(const char *file, const char *text, size_t *size) {
    static const char head[] = "#version 460\n"
                               "#extension GL_GOOGLE_cpp_style_line_directive : require\n";
    char *all = malloc(sizeof head + strlen(text));
    if (!all) {
        grt_fail(GRT_NO_MEMORY, "no host memory to compile %s", file);
        return NULL;
    }
    memcpy(all, head, sizeof head - 1);
    memcpy(all + sizeof head - 1, text, strlen(text) + 1);
    uint32_t *spirv = make(&glsl, "spirv", file, all, size);
    free(all);
    return spirv;
}

void *grt_compile_c(const char *file, const char *text) {
    char path[MAX_PATH];
    size_t size = 0;
    void *library = NULL;
    void *object = make(&c, "object", file, text, &size);
    int fd = object ? grt_temporary_file(path, sizeof path) : -1;
    if (fd >= 0 && write_all(fd, object, size)) {
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            grt_fail(GRT_COMPILE, "%s: what the C compiler made of it cannot be opened: %s", file,
                     dlerror());
        }
    }
    remove_file(fd, path);
    free(object);
    return library;
}
