// SPDX-License-Identifier: Apache-2.0
// Kernels: OpenCL text compiled at run time, once per set of specialization values.
//
//     key ----> binary on disk ----> program           the quick way
//      '------> source + options --> program --> binary stored for the next time
//
// Specialization values are -D options, as unsigned numbers, which is what they are in the other
// two readings. Arithmetic stays IEEE: no option that relaxes it is ever given, and where the
// device can round division and square root correctly it is told to.
//
// The key names everything a binary depends on. The disk cache guards an entry by a digest, so what
// is handed to the driver is what the driver once gave; a driver that refuses it all the same costs
// one build from source.
//
// A text that says `#pragma gpurt ptx_target sm_90a` is built for that NVIDIA architecture. The
// driver compiles OpenCL C to PTX for the general sm_90, whose assembler refuses the instructions
// of just this one (wgmma, tensormap); but it hands out the PTX it made even then, and takes it
// back as a binary with the other target in its head:
//
//     source --> PTX, .target sm_90 --> .target sm_90a --> program
//
// With `ptx_target any` the PTX is the driver's own: such a text is imported by Vulkan too.
//
// PoCL is left to its own cache (keeps_binaries). A binary would load in 1.3 ms and source takes
// 37, but binaries too pass through the folder of that cache, which processes do not lock: of 170
// processes that started five at once on empty caches 4 were aborted by assertions in PoCL, and
// with source none. (PoCL 3.1, aarch64, 2026-11. Damaging files of that folder aborts either way.)
// Most of those 37 ms go into the header of all built-in functions, which PoCL reads for every text
// before it looks into its cache. A kernel of gpurt is built without it, with the few functions
// that the dialect leaves to the language declared here: a short training starts in 0.30 s of
// processor time in place of 0.69.
#include "opencl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"

#define MAX_OPTIONS 1024
#define MAX_KEY (MAX_OPTIONS + 1024)
#define MAX_LOG_IN_ERROR 600

// What stands before every text; see cl/dialect.h.
static const char prelude[] = "#if defined(GRT_ADDRESSES)\n"
                              "#define GRT_BUFFER(argument)\n"
                              "#define GRT_WHOLE(buffer)\n"
                              "#else\n"
                              "#define GRT_BUFFER(argument) argument,\n"
                              "#define GRT_WHOLE(buffer) (global char *)buffer +\n"
                              "#endif\n"
                              "#if GRT_ASKS\n"
                              "#define GRT_ASK(at) __builtin_prefetch((const void *)(size_t)(at))\n"
                              "#else\n"
                              "#define GRT_ASK(at)\n"
                              "#endif\n"
                              "#if defined(GRT_DECLARE)\n"
                              "#define GRT_PURE __attribute__((overloadable, const))\n"
                              "size_t GRT_PURE get_local_id(uint);\n"
                              "size_t GRT_PURE get_group_id(uint);\n"
                              "size_t GRT_PURE get_num_groups(uint);\n"
                              "float GRT_PURE native_recip(float);\n"
                              "float GRT_PURE native_rsqrt(float);\n"
                              "uint GRT_PURE popcount(uint);\n"
                              "uint4 GRT_PURE convert_uint4(ushort4);\n"
                              "float4 GRT_PURE convert_float4(uint4);\n"
                              "void __attribute__((overloadable, convergent)) barrier(uint);\n"
                              "#endif\n";

// Its header of all functions is passed over by the macro that guards it.
#define NO_HEADER " -D_OPENCL_H_ -DGRT_DECLARE"

static bool make_options(const struct gcl_dev *dev, const struct grt_kernel_info *info,
                         const uint32_t *spec_values, bool by_address, char *options) {
    // PoCL calls a function for fma() and for mad(), which also keeps loops from becoming vectors
    // (PoCL 3.1, aarch64); the compiler's own word for it is one instruction.
    bool pocl = strstr(dev->platform_version, "PoCL") || strstr(dev->platform_version, "pocl");
    // -w: NVIDIA's compiler prints "2 warnings generated." to stderr by itself, and not which
    // (580.159.04).
    int used = snprintf(options, MAX_OPTIONS,
                        "-cl-std=CL1.2 -w -DGRT_FMA=%s -DGRT_ASKS=%d -DGRT_NATIVE=%d%s%s",
                        pocl ? "__builtin_fmaf" : "fma", pocl, !dev->base.info.caps.software,
                        by_address ? " -DGRT_ADDRESSES" : "",
                        dev->exact_divide ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    for (uint32_t i = 0; i < info->spec_count && used < MAX_OPTIONS; i++) {
        used += snprintf(options + used, (size_t)(MAX_OPTIONS - used), " -D%s=%" PRIu32 "u",
                         info->specs[i].name, spec_values[i]);
    }
    return used < MAX_OPTIONS || grt_fail(GRT_INVALID,
                                          "the build options of kernel %s are longer than %d "
                                          "characters; shorten the names of its constants",
                                          info->name, MAX_OPTIONS);
}

static void make_key(const struct gcl_dev *dev, const struct grt_kernel_info *info,
                     const char *options, char *key) {
    snprintf(key, MAX_KEY, "opencl\n%s\n%s\n%s\n%s\n%016" PRIx64, dev->base.info.name,
             dev->base.info.driver_version, dev->platform_version, options,
             grt_digest(info->opencl, strlen(info->opencl), 0));
}

// ---- the disk cache ----

static cl_program load_binary(struct gcl_dev *dev, const struct grt_kernel_info *info,
                              const char *key, const char *options) {
    size_t size = 0;
    void *binary = grt_cache_load(key, &size);
    if (!binary) {
        return NULL;
    }
    const unsigned char *binaries[] = {binary};
    cl_int status = CL_SUCCESS, code = CL_SUCCESS;
    cl_program program = gcl.clCreateProgramWithBinary(dev->context, 1, &dev->device, &size,
                                                       binaries, &status, &code);
    free(binary);
    if (!program) {
        goto refused;
    }
    code = status;
    if (code == CL_SUCCESS) {
        code = gcl.clBuildProgram(program, 1, &dev->device, options, NULL, NULL);
    }
    if (code == CL_SUCCESS) {
        cl_kernel kernel = gcl.clCreateKernel(program, info->name, &code);
        if (kernel) {
            gcl_check_release(gcl.clReleaseKernel(kernel), "kernel");
            grt_log(GRT_LOG_DEBUG, "kernel %s is taken from the cache", info->name);
            return program;
        }
    }
    gcl_check_release(gcl.clReleaseProgram(program), "program");
refused:
    grt_log(GRT_LOG_DEBUG, "the cached binary of kernel %s is refused, %s (%d); building it anew",
            info->name, gcl_error_name(code), (int)code);
    return NULL;
}

// The program as the driver has it, to be freed, with a zero behind; NULL when it gives none.
static char *get_binary(cl_program program, const struct grt_kernel_info *info, size_t *size) {
    *size = 0;
    cl_int code = gcl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *size, size, NULL);
    char *binary = code == CL_SUCCESS && *size > 0 ? calloc(1, *size + 1) : NULL;
    if (binary) {
        unsigned char *binaries[] = {(unsigned char *)binary};
        code = gcl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binaries, binaries, NULL);
    }
    if (code != CL_SUCCESS) {
        grt_log(GRT_LOG_DEBUG, "the driver gives no binary of kernel %s: %s (%d)", info->name,
                gcl_error_name(code), (int)code);
        free(binary);
        binary = NULL;
    }
    return binary;
}

// Failing to store is no failure: the next start builds from source again.
static void store_binary(cl_program program, const struct grt_kernel_info *info, const char *key) {
    size_t size = 0;
    char *binary = get_binary(program, info, &size);
    if (binary) {
        grt_cache_store(key, binary, size);
        free(binary);
    }
}

// ---- building from source ----

// The compiler's words, to be freed; NULL when it said nothing.
static char *build_log(struct gcl_dev *dev, cl_program program) {
    size_t size = 0;
    cl_int code =
        gcl.clGetProgramBuildInfo(program, dev->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *text = code == CL_SUCCESS && size > 1 ? calloc(1, size + 1) : NULL;
    if (text && gcl.clGetProgramBuildInfo(program, dev->device, CL_PROGRAM_BUILD_LOG, size, text,
                                          NULL) != CL_SUCCESS) {
        text[0] = '\0';
    }
    if (text && text[strspn(text, " \n\r\t")] == '\0') {
        free(text);
        text = NULL;
    }
    return text;
}

// Logs the compiler's words line by line and leaves them as one line.
static void log_lines(const struct grt_kernel_info *info, const char *options, char *text) {
    grt_log(GRT_LOG_DEBUG, "build log of kernel %s (%s):", info->name, options);
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        int length = end ? (int)(end - line) : (int)strlen(line);
        if (length > 0) {
            grt_log(GRT_LOG_DEBUG, "    %.*s", length, line);
        }
        if (end) {
            *end = ' ';
        }
    }
}

// The mistake in a compiler's words, with its place in the text.
static void find_mistake(const struct grt_kernel_info *info, const char *text, char *error) {
    unsigned before = 0;
    for (const char *at = prelude; *at; at++) {
        before += *at == '\n';
    }
    grt_program_error(text, error, MAX_LOG_IN_ERROR);
    grt_program_place(info->opencl, before, info->file, error, MAX_LOG_IN_ERROR);
}

// NVIDIA's compiler has no more than a warning for the line that calls an undeclared function, and
// -w keeps it silent: a user's source that fails without a place is built again with warnings.
static void find_warned(struct gcl_dev *dev, const struct grt_kernel_info *info,
                        const char *options, cl_program program, char *error) {
    char loud[MAX_OPTIONS];
    const char *quiet = strstr(options, " -w ");
    if (!quiet) {
        return;
    }
    snprintf(loud, sizeof loud, "%.*s%s", (int)(quiet - options), options, quiet + 3);
    gcl.clBuildProgram(program, 1, &dev->device, loud, NULL, NULL);
    char *text = build_log(dev, program);
    char found[MAX_LOG_IN_ERROR];
    find_mistake(info, text, found);
    if (text) {
        log_lines(info, loud, text);
    }
    if (grt_program_placed(found)) {
        snprintf(error, MAX_LOG_IN_ERROR, "%s", found);
    }
    free(text);
}

// After clBuildProgram(): the log, and when it failed the program's end.
static cl_program built(struct gcl_dev *dev, const struct grt_kernel_info *info,
                        const char *options, cl_program program, cl_int code) {
    char *text = build_log(dev, program);
    char error[MAX_LOG_IN_ERROR];
    find_mistake(info, text, error);
    if (text) {
        log_lines(info, options, text);
    }
    if (code != CL_SUCCESS) {
        enum grt_status status = gcl_status(code, false);
        if (info->source && text && status != GRT_LOST) {
            if (!grt_program_placed(error)) {
                find_warned(dev, info, options, program, error);
            }
            grt_fail(GRT_BAD_DATA, "%s", error);  // the user's file and line
        } else if (status == GRT_NO_MEMORY || status == GRT_LOST) {
            gcl_fail(dev, status, code, "kernel %s cannot be built", info->name);
        } else {
            grt_fail(GRT_COMPILE,
                     "kernel %s does not build with %s on '%s', %s (%d); the compiler says: %.*s",
                     info->name, options, dev->base.info.name, gcl_error_name(code), (int)code,
                     MAX_LOG_IN_ERROR, text ? text : "nothing");
        }
        gcl_check_release(gcl.clReleaseProgram(program), "program");
        program = NULL;
    }
    free(text);
    return program;
}

// The architecture that a text asks for, up to `length` characters, or NULL.
static const char *ptx_target(const struct grt_kernel_info *info, size_t *length) {
    static const char words[] = "#pragma gpurt ptx_target ";
    const char *at = strstr(info->opencl, words);
    at = at ? at + strlen(words) : NULL;
    *length = at ? strcspn(at, " \r\n") : 0;
    return at;
}

// Whether PTX of a text is needed in a form that the driver does not make.
static bool is_retargeted(const struct grt_kernel_info *info) {
    size_t length = 0;
    const char *target = ptx_target(info, &length);
    return target && strncmp(target, "any", length) != 0;
}

// The program's PTX with the last letter of `target`, such as sm_90a, put behind its own sm_90. To
// be freed; NULL, with a sentence, when the driver has no PTX or, then *other, compiles for
// something else.
static char *retarget(cl_program program, const struct grt_kernel_info *info, const char *target,
                      size_t length, size_t *size, bool *other) {
    static const char words[] = "\n.target ";
    char *ptx = get_binary(program, info, size);
    char *at = ptx ? strstr(ptx, words) : NULL;
    at = at ? at + strlen(words) : NULL;
    size_t same = length - 1;
    char *text = NULL;
    *other = at && (strncmp(at, target, same) != 0 || strchr("0123456789", at[same]));
    if (!at) {
        grt_fail(GRT_COMPILE, "the driver makes no PTX of kernel %s", info->name);
    } else if (*other) {
        grt_fail(GRT_UNSUPPORTED, "kernel %s is for %.*s only", info->name, (int)length, target);
    } else if (!(text = malloc(*size + 2))) {
        grt_fail(GRT_NO_MEMORY, "no host memory for kernel %s", info->name);
    } else {
        size_t before = (size_t)(at - ptx) + same;
        memcpy(text, ptx, before);
        text[before] = target[same];
        memcpy(text + before + 1, ptx + before, *size - before + 1);
        (*size)++;
    }
    free(ptx);
    return text;
}

// The program of a kernel's text after its build, whose result is *code.
static cl_program compile(struct gcl_dev *dev, const struct grt_kernel_info *info,
                          const char *options, cl_int *code) {
    const char *sources[] = {prelude, info->opencl};
    cl_program program = gcl.clCreateProgramWithSource(dev->context, 2, sources, NULL, code);
    if (!program) {
        gcl_fail(dev, gcl_status(*code, false), *code, "no program for kernel %s", info->name);
        return NULL;
    }
    *code = CL_BUILD_PROGRAM_FAILURE;
    if (dev->keeps_binaries && !dev->needs_header && !info->source) {
        char brief[MAX_OPTIONS + sizeof NO_HEADER];
        snprintf(brief, sizeof brief, "%s" NO_HEADER, options);
        *code = gcl.clBuildProgram(program, 1, &dev->device, brief, NULL, NULL);
        if (*code == CL_BUILD_PROGRAM_FAILURE) {
            dev->needs_header = true;
            grt_log(GRT_LOG_DEBUG, "kernel %s is built with the header of all functions",
                    info->name);
        }
    }
    // Twice on PoCL: where two processes build the same kernel at once they trip over each other in
    // its cache, and one removes the file that the other is about to remove (seen in 1 of 300
    // starts, five at once, empty cache).
    for (int i = dev->keeps_binaries ? 2 : 1; i > 0 && *code == CL_BUILD_PROGRAM_FAILURE; i--) {
        *code = gcl.clBuildProgram(program, 1, &dev->device, options, NULL, NULL);
    }
    return program;
}

// The PTX of a text that names its target, for that target; to be freed.
static char *make_ptx(struct gcl_dev *dev, const struct grt_kernel_info *info, const char *options,
                      size_t *size, bool *other) {
    size_t length = 0;
    const char *target = ptx_target(info, &length);
    cl_int code = CL_SUCCESS;
    cl_program program = compile(dev, info, options, &code);
    if (!program) {
        return NULL;
    }
    // How that build ended says nothing; whether there is PTX does.
    char *ptx = is_retargeted(info) ? retarget(program, info, target, length, size, other)
                                    : get_binary(program, info, size);
    char *text = ptx ? NULL : build_log(dev, program);
    if (text) {
        log_lines(info, options, text);
        free(text);
    }
    gcl_check_release(gcl.clReleaseProgram(program), "program");
    return ptx;
}

static cl_program build_source(struct gcl_dev *dev, const struct grt_kernel_info *info,
                               const char *options) {
    size_t size = 0;
    bool other = false;
    cl_int code = CL_SUCCESS;
    cl_program program = NULL;
    if (!is_retargeted(info)) {
        program = compile(dev, info, options, &code);
        return program ? built(dev, info, options, program, code) : NULL;
    }
    char *ptx = make_ptx(dev, info, options, &size, &other);
    if (!ptx) {
        return NULL;
    }
    const unsigned char *binaries[] = {(const unsigned char *)ptx};
    cl_int status = CL_SUCCESS;
    program = gcl.clCreateProgramWithBinary(dev->context, 1, &dev->device, &size, binaries, &status,
                                            &code);
    free(ptx);
    if (!program) {
        gcl_fail(dev, gcl_status(code, false), code, "kernel %s is refused as PTX", info->name);
        return NULL;
    }
    code = gcl.clBuildProgram(program, 1, &dev->device, options, NULL, NULL);
    return built(dev, info, options, program, code);
}

// What can only be known of a built kernel: that its arguments are the described ones, and that
// its registers leave room for the workgroup. Found here and not at the first launch.
static bool check(struct gcl_dev *dev, const struct grt_kernel_info *info, cl_program program,
                  uint32_t wg) {
    cl_int code = CL_SUCCESS;
    cl_uint arg_count = 0;
    size_t max_wg = 0;
    bool ok = false;
    cl_kernel kernel = gcl.clCreateKernel(program, info->name, &code);
    if (!kernel) {
        return gcl_fail(dev, gcl_status(code, false), code, "no kernel named %s in its program",
                        info->name);
    }
    code = gcl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof arg_count, &arg_count, NULL);
    if (code == CL_SUCCESS) {
        code = gcl.clGetKernelWorkGroupInfo(kernel, dev->device, CL_KERNEL_WORK_GROUP_SIZE,
                                            sizeof max_wg, &max_wg, NULL);
    }
    cl_uint expected = (dev->by_address ? 0 : info->arg_count) + 1 +  // the places
                       (info->params_size > 0 ? 1 : 0);
    if (code != CL_SUCCESS) {
        gcl_fail(dev, gcl_status(code, false), code, "cannot ask about kernel %s", info->name);
    } else if (arg_count != expected) {
        grt_fail(GRT_COMPILE, "kernel %s has %u arguments in OpenCL and %u in its description",
                 info->name, arg_count, expected);
    } else if (max_wg < wg && !strstr(dev->base.info.vendor, "NVIDIA")) {
        // NVIDIA says 256 of kernels that ask for 288 or 1024 by reqd_work_group_size, and runs
        // them.
        grt_fail(GRT_UNSUPPORTED,
                 "kernel %s can run with workgroups of %zu on '%s', not of %u; choose a smaller WG",
                 info->name, max_wg, dev->base.info.name, wg);
    } else {
        ok = true;
    }
    gcl_check_release(gcl.clReleaseKernel(kernel), "kernel");
    return ok;
}

// ---- slots ----

struct grt_kernel *gcl_kernel_create(struct grt_dev *base, const struct grt_kernel_info *info,
                                     const uint32_t *spec_values) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    char options[MAX_OPTIONS], key[MAX_KEY];
    if (!make_options(dev, info, spec_values, dev->by_address, options)) {
        return NULL;
    }
    struct gcl_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        grt_fail(GRT_NO_MEMORY, "no host memory for kernel %s", info->name);
        return NULL;
    }
    make_key(dev, info, options, key);
    kernel->program = dev->keeps_binaries ? NULL : load_binary(dev, info, key, options);
    if (!kernel->program) {
        kernel->program = build_source(dev, info, options);
        if (!kernel->program) {
            goto undo_memory;
        }
        grt_log(GRT_LOG_DEBUG, "kernel %s is built from source", info->name);
        if (!dev->keeps_binaries) {
            store_binary(kernel->program, info, key);
        }
    }
    if (!check(dev, info, kernel->program, spec_values[0])) {
        goto undo_program;
    }
    return &kernel->base;

undo_program:
    gcl_check_release(gcl.clReleaseProgram(kernel->program), "program");
undo_memory:
    free(kernel);
    return NULL;
}

enum grt_status gcl_kernel_ptx(struct grt_dev *base, const struct grt_kernel_info *info,
                               const uint32_t *spec_values, char **ptx) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    char options[MAX_OPTIONS];
    size_t size = 0;
    bool other = false;
    *ptx = NULL;
    if (!ptx_target(info, &size)) {
        grt_fail(GRT_COMPILE, "kernel %s names no target for its PTX", info->name);
    } else if (make_options(dev, info, spec_values, true, options)) {
        *ptx = make_ptx(dev, info, options, &size, &other);
    }
    return *ptx ? GRT_OK : other ? GRT_UNSUPPORTED : GRT_COMPILE;
}

void gcl_kernel_destroy(struct grt_kernel *base) {
    struct gcl_kernel *kernel = (struct gcl_kernel *)base;
    gcl_check_release(gcl.clReleaseProgram(kernel->program), "program");
    free(kernel);
}
