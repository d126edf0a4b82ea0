// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk, as a user meets them: every run is a process of its own that computes
// with a few kernels, and what it finds in the cache folder may save time and nothing else.
//
//     run -> entries -> whole, damaged, cut off, of another driver, refused -> run -> same results
//
// OpenCL keeps an entry per kernel, Vulkan one per device unless the driver has nothing to keep
// (lavapipe of Mesa 22.3), ref none. PoCL is left to its own cache and has none here; so that
// OpenCL's are tested where no GPU is, oclgrind.sh runs this suite on the simulator, to gpurt a
// driver like any other.
#include "kits/cache_kit.h"

#include <dirent.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cache.h"

#define KERNELS 3
#define MAX_ENTRIES 8
#define HEADER 32
#define WORDS 4099  // no multiple of a workgroup

// ---- the run ----

struct counts {
    uint32_t taken;  // from the cache
    uint32_t built;  // from source; Vulkan's drivers tell neither
};

static void count_line(void *context, enum grt_log_level level, const char *line) {
    struct counts *counts = context;
    if (level == GRT_LOG_ERROR) {
        print_error("# gpurt: %s\n", line);
    }
    counts->taken += strstr(line, "is taken from the cache") != NULL;
    counts->built += strstr(line, "is built from source") != NULL;
}

// A kernel, with constants that matter to the result: copies each of the words, once.
static void copy_words(uint32_t wg, uint32_t words) {
    uint32_t *in = test_alloc(words * sizeof *in), *out = test_alloc(words * sizeof *out);
    uint64_t state = wg;
    for (uint32_t i = 0; i < words; i++) {
        in[i] = test_next(&state);
    }
    struct test_tensor x = test_tensor(test.dev, GRT_U32, words, 0);
    struct test_tensor y = test_tensor(test.dev, GRT_U32, words, 0);
    test_tensor_write(&x, in);
    const struct grt_kernel *copy =
        grt_kernel_get(test.dev, grt_kernel_desc(.name = "copy", .specs = {{"WG", wg}}));
    assert_non_null(copy);
    struct grt_graph *graph = grt_graph_create(test.dev, "copy");
    grt_graph_dispatch(graph,
                       grt_dispatch(.kernel = copy, .bindings = {x.tensor.range, y.tensor.range},
                                    .params = &words, .params_size = sizeof words,
                                    .groups = {(words + wg - 1) / wg}));
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    test_tensor_read(&y, out);
    assert_memory_equal(in, out, words * sizeof *in);
    test_tensor_end(&x);
    test_tensor_end(&y);
    free(in);
    free(out);
}

static void computes(void **state) {
    (void)state;
    struct counts counts = {0};
    grt_log_set(count_line, &counts, GRT_LOG_DEBUG);
    for (uint32_t i = 0; i < KERNELS; i++) {
        copy_words(32u << i, WORDS);
    }
    test_log_install();
    print_message("# kernels: %u taken, %u built\n", counts.taken, counts.built);
}

// ---- running it ----

// Starts this program again with that case alone; its words go to the file `name` in the case's
// folder. Without root's right to write what is read-only.
static pid_t start(const char *name) {
    char words[300];
    snprintf(words, sizeof words, "%s/%s", kit_cache, name);
    FILE *file = fopen(words, "w");
    assert_non_null(file);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fileno(file), STDOUT_FILENO);
        dup2(fileno(file), STDERR_FILENO);
        if (geteuid() != 0 || prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0) {
            execl("/proc/self/exe", "gpurt-test", "--device", test.selector, "--case", "computes",
                  "binaries", (char *)NULL);
        }
        _exit(126);
    }
    fclose(file);
    return pid;
}

static struct counts finish(const char *name, pid_t pid) {
    char path[300], words[4096];
    struct counts counts = {0};
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    snprintf(path, sizeof path, "%s/%s", kit_cache, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(words, 1, sizeof words - 1, file);
    fclose(file);
    words[size] = '\0';
    const char *said = strstr(words, "# kernels: ");
    if (status != 0 || !said ||
        sscanf(said, "# kernels: %u taken, %u built", &counts.taken, &counts.built) != 2) {
        print_error("%s ended with status %d and said: %s\n", name, status, words);
        fail();
    }
    return counts;
}

static struct counts run(void) {
    return finish("run", start("run"));
}

// ---- what it leaves ----

struct entry {
    char path[512];
    char *key, *payload;
    size_t key_size, payload_size;
    struct stat stat;
};

struct entries {
    struct entry e[MAX_ENTRIES];
    uint32_t count;
};

static void read_entry(const char *path, struct entry *e) {
    uint64_t header[HEADER / 8];  // see cache.h: magic and version, the lengths, the digest
    snprintf(e->path, sizeof e->path, "%s", path);
    assert_int_equal(stat(path, &e->stat), 0);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(header, 1, sizeof header, file), sizeof header);
    e->key_size = header[1];
    e->payload_size = header[2];
    assert_int_equal((uint64_t)e->stat.st_size, sizeof header + e->key_size + e->payload_size);
    e->key = test_alloc(e->key_size + 1);
    e->payload = test_alloc(e->payload_size);
    assert_int_equal(fread(e->key, 1, e->key_size, file), e->key_size);
    assert_int_equal(fread(e->payload, 1, e->payload_size, file), e->payload_size);
    e->key[e->key_size] = '\0';
    fclose(file);
    size_t size = 0;
    void *loaded = grt_cache_load(e->key, &size);
    assert_non_null(loaded);
    assert_int_equal(size, e->payload_size);
    free(loaded);
}

// All entries, each of them whole; fails the case when one was left half-written.
static struct entries look(void) {
    struct entries all = {0};
    char dir[300], path[400];
    snprintf(dir, sizeof dir, "%s/gpurt", kit_cache);
    DIR *open = opendir(dir);
    for (struct dirent *row = open ? readdir(open) : NULL; row; row = readdir(open)) {
        const char *ending = strstr(row->d_name, ".bin");
        if (ending) {
            assert_string_equal(ending, ".bin");
            assert_in_range(all.count, 0, MAX_ENTRIES - 1);
            snprintf(path, sizeof path, "%s/%.64s", dir, row->d_name);
            read_entry(path, &all.e[all.count++]);
        }
    }
    if (open) {
        closedir(open);
    }
    return all;
}

static void forget(struct entries *all) {
    for (uint32_t i = 0; i < all->count; i++) {
        free(all->e[i].key);
        free(all->e[i].payload);
    }
}

// How many entries runs leave, at most; all of them but on Vulkan.
static uint32_t entries_kept(void) {
    const struct grt_dev_info *info = grt_dev_info(test.dev);
    bool pocl = strstr(info->driver, "Portable Computing Language") != NULL;
    return info->backend == GRT_BACKEND_VULKAN            ? 1
           : info->backend == GRT_BACKEND_OPENCL && !pocl ? KERNELS
                                                          : 0;
}

static void expect_entries(const struct entries *all) {
    bool vulkan = grt_dev_info(test.dev)->backend == GRT_BACKEND_VULKAN;
    assert_in_range(all->count, vulkan ? 0 : entries_kept(), entries_kept());
}

static void expect_counts(struct counts got, bool from_cache) {
    bool told = grt_dev_info(test.dev)->backend == GRT_BACKEND_OPENCL;
    bool taken = from_cache && entries_kept() > 0;
    assert_int_equal(got.taken, told && taken ? KERNELS : 0);
    assert_int_equal(got.built, told && !taken ? KERNELS : 0);
}

// The first run, into an empty folder. Where nothing is kept there is nothing to spoil, which
// second_process_takes_them() makes sure of.
static struct entries first_run(bool to_spoil) {
    if (to_spoil && entries_kept() == 0) {
        return (struct entries){0};
    }
    expect_counts(run(), false);
    struct entries all = look();
    expect_entries(&all);
    return all;
}

// After the entries were spoilt: right results, from source, and entries that serve the next run.
static void expect_made_anew(struct entries *spoilt) {
    if (spoilt->count == 0) {
        return;
    }
    expect_counts(run(), false);
    struct entries now = look();
    assert_in_range(now.count, spoilt->count, MAX_ENTRIES);
    for (uint32_t i = 0; i < spoilt->count; i++) {
        size_t size = 0;
        void *payload = grt_cache_load(spoilt->e[i].key, &size);
        assert_non_null(payload);
        free(payload);
    }
    forget(&now);
    forget(spoilt);
    expect_counts(run(), true);
}

// ---- cases ----

static void second_process_takes_them(void **state) {
    (void)state;
    struct entries first = first_run(false);
    expect_counts(run(), true);
    struct entries second = look();
    assert_int_equal(second.count, first.count);
    for (uint32_t i = 0; i < first.count; i++) {
        // What served is not written again, which would make another file of that name.
        struct stat now;
        assert_int_equal(stat(first.e[i].path, &now), 0);
        assert_int_equal(now.st_ino, first.e[i].stat.st_ino);
    }
    forget(&first);
    forget(&second);
}

// The middle of the payload, its end, the key; suite_cache.c goes through every byte.
static void damaged(void **state) {
    (void)state;
    struct entries all = first_run(true);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct entry *e = &all.e[i];
        const long places[] = {(long)(e->stat.st_size - (off_t)e->payload_size / 2),
                               (long)e->stat.st_size - 1, HEADER + 8};
        long at = places[i % 3];
        FILE *file = fopen(e->path, "r+b");
        assert_non_null(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        int byte = fgetc(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        assert_int_equal(fputc(byte ^ 0x10, file), byte ^ 0x10);
        assert_int_equal(fclose(file), 0);
    }
    expect_made_anew(&all);
}

static void cut_off(void **state) {
    (void)state;
    struct entries all = first_run(true);
    for (uint32_t i = 0; i < all.count; i++) {
        // Within the payload, all of it, and all of the file.
        const off_t left[] = {all.e[i].stat.st_size / 2, HEADER + (off_t)all.e[i].key_size, 0};
        assert_int_equal(truncate(all.e[i].path, left[i % 3]), 0);
    }
    expect_made_anew(&all);
}

// What another version of the driver left: under its own name it is passed by, and under this
// one's, as after a collision of hashes, too.
static void of_another_driver_version(void **state) {
    (void)state;
    struct entries all = first_run(true);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct entry *e = &all.e[i];
        char *key = test_alloc(e->key_size + 1);
        memcpy(key, e->key, e->key_size + 1);
        // API, device, driver version
        char *version = strchr(strchr(key, '\n') + 1, '\n') + 1;
        assert_memory_equal(version, grt_dev_info(test.dev)->driver_version,
                            strlen(grt_dev_info(test.dev)->driver_version));
        version[0] ^= 1;
        assert_int_equal(remove(e->path), 0);
        assert_true(grt_cache_store(key, e->payload, e->payload_size));
        if (i % 2 == 0) {
            char theirs[400];
            snprintf(theirs, sizeof theirs, "%s/gpurt/%016llx.bin", kit_cache,
                     (unsigned long long)grt_digest(key, e->key_size, 0));
            assert_int_equal(rename(theirs, e->path), 0);
        }
        free(key);
    }
    expect_made_anew(&all);
}

// Whole entries that the driver cannot use: the last word is its own.
static void refused_by_the_driver(void **state) {
    (void)state;
    struct entries all = first_run(true);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct entry *e = &all.e[i];
        memset(e->payload, 'x', e->payload_size);
        assert_true(grt_cache_store(e->key, e->payload, i % 2 ? 1 : e->payload_size));
    }
    expect_made_anew(&all);
}

static void several_at_once(void **state) {
    (void)state;
    if (entries_kept() == 0) {
        return;  // they would share nothing of ours
    }
    static const char *const names[] = {"one", "two", "three"};
    enum { COUNT = sizeof names / sizeof names[0] };
    pid_t pids[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pids[i] = start(names[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        finish(names[i], pids[i]);  // each takes what another has stored by then
    }
    struct entries all = look();
    expect_entries(&all);
    forget(&all);
    expect_counts(run(), true);
}

// Costs time and nothing else; what is there already serves all the same.
static void folder_cannot_be_written(void **state) {
    (void)state;
    char dir[300];
    snprintf(dir, sizeof dir, "%s/gpurt", kit_cache);
    assert_int_equal(mkdir(dir, 0500), 0);
    expect_counts(run(), false);
    struct entries all = look();
    assert_int_equal(all.count, 0);
    assert_int_equal(chmod(dir, 0700), 0);
    all = first_run(true);
    assert_int_equal(chmod(dir, 0500), 0);
    if (all.count > 0) {
        expect_counts(run(), true);
    }
    forget(&all);
    assert_int_equal(chmod(dir, 0700), 0);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(computes),
    CACHE_CASE(second_process_takes_them),
    CACHE_CASE(damaged),
    CACHE_CASE(cut_off),
    CACHE_CASE(of_another_driver_version),
    CACHE_CASE(refused_by_the_driver),
    CACHE_CASE(several_at_once),
    CACHE_CASE(folder_cannot_be_written),
};
TEST_SUITE(binaries, true, cases);
