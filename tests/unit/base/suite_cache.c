// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk: a damaged, foreign or half-written entry is a miss, never a wrong
// answer. Each case has a cache folder of its own.
#include "kits/cache_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/digest.h"

// Path of the one entry in the cache; fails the case when there are several, or files left over.
static void only_entry(char *path, size_t capacity) {
    const char *dir = grt_cache_dir(NULL);
    assert_non_null(dir);
    DIR *open = opendir(dir);
    assert_non_null(open);
    uint32_t count = 0;
    for (struct dirent *row = readdir(open); row; row = readdir(open)) {
        if (row->d_name[0] != '.') {
            snprintf(path, capacity, "%s/%s", dir, row->d_name);
            count++;
        }
    }
    closedir(open);
    assert_int_equal(count, 1);
}

static size_t read_file(const char *path, unsigned char *data, size_t capacity) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(data, 1, capacity, file);
    fclose(file);
    return size;
}

static void write_file(const char *path, const unsigned char *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static bool loads(const char *key, const void *payload, size_t size) {
    size_t got = 0;
    void *data = grt_cache_load(key, &got);
    bool same = data && got == size && memcmp(data, payload, size) == 0;
    free(data);
    return same;
}

static bool misses(const char *key) {
    size_t got = 0;
    void *data = grt_cache_load(key, &got);
    if (!data) {
        return true;
    }
    free(data);
    return false;
}

static void digest(void **state) {
    (void)state;
    // FNV-1a, 64 bits: the published value of "foobar".
    assert_true(grt_digest("foobar", 6, 0) == 0x85944171f73967e8);
    assert_true(grt_digest("bar", 3, grt_digest("foo", 3, 0)) == 0x85944171f73967e8);
}

// Of lists of 0 to 9, with empty ones, small ones and one that is much larger among them.
static void digests_of_several(void **state) {
    (void)state;
    static unsigned char bytes[9000];
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)test_next(&seed);
    }
    for (uint32_t trial = 0; trial < 200; trial++) {
        struct grt_bytes lists[9];
        uint64_t digests[9];
        uint32_t count = trial % 10;
        for (uint32_t i = 0; i < count; i++) {
            size_t size = test_next(&seed) % 3 ? test_next(&seed) % 40 : 0;
            lists[i] =
                (struct grt_bytes){bytes + test_next(&seed) % 100, i == trial % 7 ? 8000 : size};
        }
        grt_digest_each(lists, count, digests);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(digests[i] == grt_digest(lists[i].data, lists[i].size, 0));
        }
    }
}

// So many bytes that several threads make them.
static void digests_by_threads(void **state) {
    (void)state;
    enum { LISTS = 7, MOST = 3 << 20 };
    unsigned char *bytes = test_alloc(MOST);
    uint64_t seed = 11, digests[LISTS];
    struct grt_bytes lists[LISTS];
    for (size_t i = 0; i < MOST; i++) {
        bytes[i] = (unsigned char)test_next(&seed);
    }
    for (uint32_t i = 0; i < LISTS; i++) {
        lists[i] = (struct grt_bytes){bytes + i, i == 3 ? 0 : MOST - 1000u * i - 7};
    }
    grt_digest_each(lists, LISTS, digests);
    for (uint32_t i = 0; i < LISTS; i++) {
        assert_true(digests[i] == grt_digest(lists[i].data, lists[i].size, 0));
    }
    free(bytes);
}

// Known answers by a program of its own in Python 3. A flipped bit, two flipped signs of numbers,
// and a zero more or less are noticed.
static void wide_digest(void **state) {
    (void)state;
    static const struct {
        size_t size;
        uint64_t digest;
    } known[] = {{0, 0x9258c1e6dff637f5},
                 {1, 0x7bed34fee7a19236},
                 {32, 0x9d81cb2841ef9521},
                 {100, 0x3e07b8dd0f7b6713}};
    unsigned char bytes[101];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(7 * i + 3);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_true(grt_digest_wide(bytes, known[i].size) == known[i].digest);
    }
    for (size_t i = 0; i < 800; i++) {
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_true(grt_digest_wide(bytes, 100) != known[3].digest);
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    for (size_t i = 3; i < 100; i += 4) {
        for (size_t k = i + 4; k < 100; k += 4) {
            bytes[i] ^= 0x80;
            bytes[k] ^= 0x80;
            assert_true(grt_digest_wide(bytes, 100) != known[3].digest);
            bytes[i] ^= 0x80;
            bytes[k] ^= 0x80;
        }
    }
    bytes[100] = 0;
    assert_true(grt_digest_wide(bytes, 101) != known[3].digest);
}

static void store_and_load(void **state) {
    (void)state;
    assert_true(misses("nothing yet"));
    assert_true(grt_cache_store("key", "payload", 7));
    assert_true(loads("key", "payload", 7));
    assert_true(misses("key2"));
    assert_true(misses("ke"));
    assert_true(grt_cache_store("key", "other", 5));
    assert_true(loads("key", "other", 5));
    char path[512];
    only_entry(path, sizeof path);

    size_t big = 3000017;
    unsigned char *bytes = test_alloc(big);
    for (size_t i = 0; i < big; i++) {
        bytes[i] = (unsigned char)(i * 31 >> 3);
    }
    assert_true(grt_cache_store("big", bytes, big));
    assert_true(loads("big", bytes, big));
    free(bytes);
    char long_key[5000];
    memset(long_key, 'k', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = '\0';
    assert_true(grt_cache_store(long_key, "x", 1));
    assert_true(loads(long_key, "x", 1));
}

static void any_damaged_byte_is_a_miss(void **state) {
    (void)state;
    assert_true(grt_cache_store("key of a kernel", "a few bytes of one payload", 26));
    char path[512];
    only_entry(path, sizeof path);
    unsigned char bytes[4096];
    size_t size = read_file(path, bytes, sizeof bytes);
    assert_in_range(size, 41, sizeof bytes - 1);
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 1; bit < 256; bit *= 4) {
            bytes[i] ^= (unsigned char)bit;
            write_file(path, bytes, size);
            if (!misses("key of a kernel")) {
                print_error("byte %zu of %zu, bit %u: the damage was not seen\n", i, size, bit);
                fail();
            }
            bytes[i] ^= (unsigned char)bit;
        }
    }
    write_file(path, bytes, size);
    assert_true(loads("key of a kernel", "a few bytes of one payload", 26));
}

static void any_truncation_is_a_miss(void **state) {
    (void)state;
    assert_true(grt_cache_store("key", "payload", 7));
    char path[512];
    only_entry(path, sizeof path);
    unsigned char bytes[4096];
    size_t size = read_file(path, bytes, sizeof bytes);
    for (size_t i = 0; i < size; i++) {
        write_file(path, bytes, i);
        assert_true(misses("key"));
    }
    // The next store repairs it.
    assert_true(grt_cache_store("key", "payload", 7));
    assert_true(loads("key", "payload", 7));
}

// An entry under another key's name, as after a collision of hashes.
static void foreign_entry_is_a_miss(void **state) {
    (void)state;
    assert_true(grt_cache_store("kex", "payload", 7));
    char path[512];
    only_entry(path, sizeof path);
    unsigned char bytes[4096];
    size_t size = read_file(path, bytes, sizeof bytes);
    remove(path);
    assert_true(grt_cache_store("key", "payload", 7));
    only_entry(path, sizeof path);
    write_file(path, bytes, size);
    assert_true(misses("key"));
}

static bool no_folder(void) {
    char why[256] = "";
    return !grt_cache_dir(why) && why[0] && !grt_cache_store("key", "payload", 7) && misses("key");
}

static bool no_home(void) {
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    return no_folder();
}

// XDG says that a relative path is to be ignored.
static bool relative_folder(void) {
    unsetenv("HOME");
    setenv("XDG_CACHE_HOME", "cache", 1);
    return no_folder();
}

static bool below_a_file(void) {
    char path[300];
    snprintf(path, sizeof path, "%s/file", kit_cache);
    FILE *file = fopen(path, "w");
    if (!file || fclose(file) != 0) {
        return false;
    }
    setenv("XDG_CACHE_HOME", path, 1);
    return no_folder();
}

static void count_line(void *context, enum grt_log_level level, const char *line) {
    (void)line;
    *(uint32_t *)context += level == GRT_LOG_DEBUG ? 1 : 0;
}

// A program that compiles fifty kernels hears once that none of them is kept.
static bool said_once(void) {
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    uint32_t lines = 0;
    grt_log_set(count_line, &lines, GRT_LOG_DEBUG);
    for (int i = 0; i < 3; i++) {
        if (grt_cache_store("key", "payload", 7) || !misses("key")) {
            return false;
        }
    }
    return lines == 1;
}

static bool fresh_home(void) {
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", kit_cache, 1);
    return grt_cache_store("key", "payload", 7) && loads("key", "payload", 7);
}

static void folders(void **state) {
    (void)state;
    TEST_IN_CHILD(no_home, false);
    TEST_IN_CHILD(said_once, false);
    TEST_IN_CHILD(relative_folder, false);
    TEST_IN_CHILD(below_a_file, false);
    TEST_IN_CHILD(fresh_home, false);
    assert_int_equal(chmod(kit_cache, 0555), 0);
    TEST_IN_CHILD(no_folder, true);
    assert_int_equal(chmod(kit_cache, 0755), 0);
}

static void count_lines(void *context, enum grt_log_level level, const char *line) {
    if (level <= GRT_LOG_WARN && strstr(line, "and is not used")) {
        ++*(int *)context;
    }
}

// Whether the cache is used while its folder, or the entry, is not to be trusted; said once.
static bool untrusted(void) {
    int said = 0;
    char why[256] = "";
    grt_log_set(count_lines, &said, GRT_LOG_WARN);
    bool used = !misses("key") || grt_cache_store("key", "mine", 4) || grt_cache_dir(why);
    used = !misses("key") || used;
    test_log_install();
    return !used && said == 1 && why[0] == '/';
}

// What others can write, or wrote, is not run here; what is no file is not waited for.
static void strangers(void **state) {
    (void)state;
    char entry[512], folder[512];
    struct stat info;
    assert_true(grt_cache_store("key", "payload", 7));
    only_entry(entry, sizeof entry);
    snprintf(folder, sizeof folder, "%s", grt_cache_dir(NULL));
    assert_int_equal(stat(entry, &info), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    TEST_IN_CHILD(untrusted, false);
    assert_int_equal(chmod(folder, 0770), 0);
    TEST_IN_CHILD(untrusted, false);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_true(loads("key", "payload", 7));
    assert_int_equal(chmod(entry, 0666), 0);
    assert_true(misses("key"));
    assert_int_equal(chmod(entry, 0644), 0);
    assert_true(loads("key", "payload", 7));
    if (geteuid() == 0) {
        assert_int_equal(chown(entry, 4321, 4321), 0);
        assert_true(misses("key"));
        assert_int_equal(chown(entry, 0, 0), 0);
        assert_int_equal(chown(folder, 4321, 4321), 0);
        TEST_IN_CHILD(untrusted, false);
        assert_int_equal(chown(folder, 0, 0), 0);
    }
    assert_true(loads("key", "payload", 7));
    assert_int_equal(unlink(entry), 0);
    assert_int_equal(mkfifo(entry, 0600), 0);
    alarm(20);  // a pipe without a writer
    assert_true(misses("key"));
    alarm(0);
    assert_true(grt_cache_store("key", "payload", 7));
    assert_true(loads("key", "payload", 7));
}

#define RACE_BYTES 65536

static void race_fill(unsigned char *bytes, unsigned char writer) {
    for (size_t i = 0; i < RACE_BYTES; i++) {
        bytes[i] = (unsigned char)(writer + i * 7);
    }
}

// Two processes store different payloads under one key while this one reads: every load is one of
// the two, whole, and nothing is left over.
static void two_writers(void **state) {
    (void)state;
    static unsigned char payload[2][RACE_BYTES];
    race_fill(payload[0], 1);
    race_fill(payload[1], 2);
    assert_true(grt_cache_store("key", payload[0], RACE_BYTES));
    pid_t writers[2];
    for (int w = 0; w < 2; w++) {
        writers[w] = fork();
        assert_true(writers[w] >= 0);
        if (writers[w] == 0) {
            bool stored = true;
            for (int i = 0; i < 200; i++) {
                stored = grt_cache_store("key", payload[w], RACE_BYTES) && stored;
            }
            _exit(stored ? 0 : 1);
        }
    }
    for (int i = 0; i < 200; i++) {
        size_t size = 0;
        unsigned char *data = grt_cache_load("key", &size);
        assert_non_null(data);
        assert_int_equal(size, RACE_BYTES);
        assert_memory_equal(data, payload[data[0] - 1], RACE_BYTES);
        free(data);
    }
    for (int w = 0; w < 2; w++) {
        int status = 1;
        assert_int_equal(waitpid(writers[w], &status, 0), writers[w]);
        assert_int_equal(status, 0);
    }
    char path[512];
    only_entry(path, sizeof path);
}

// A folder for temporary files is the user's alone, whoever made it.
static void temporary_folder(void **state) {
    (void)state;
    char folder[512], dir[600], wanted[600];
    const char *usual = getenv("TMPDIR");
    char kept[512] = "";
    snprintf(kept, sizeof kept, "%s", usual ? usual : "");
    snprintf(folder, sizeof folder, "%s/temporary", kit_cache);
    assert_int_equal(mkdir(folder, 0700), 0);
    setenv("TMPDIR", folder, 1);
    snprintf(wanted, sizeof wanted, "%s/gpurt-%lu", folder, (unsigned long)getuid());
    assert_true(grt_cache_temp_dir(dir, sizeof dir) && grt_cache_temp_dir(dir, sizeof dir));
    assert_string_equal(dir, wanted);
    assert_false(grt_cache_temp_dir(dir, strlen(wanted)));  // no room for its end
    static const mode_t others[] = {0750, 0705, 0701};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(chmod(wanted, others[i]), 0);
        assert_false(grt_cache_temp_dir(dir, sizeof dir));
    }
    // A link to a folder is none.
    assert_true(rmdir(wanted) == 0 && symlink(folder, wanted) == 0);
    assert_false(grt_cache_temp_dir(dir, sizeof dir));
    assert_true(unlink(wanted) == 0 && rmdir(folder) == 0);
    if (usual) {
        setenv("TMPDIR", kept, 1);
    } else {
        unsetenv("TMPDIR");
    }
}

static const struct CMUnitTest cases[] = {
    CACHE_CASE(digest),
    CACHE_CASE(digests_of_several),
    CACHE_CASE(digests_by_threads),
    CACHE_CASE(wide_digest),
    CACHE_CASE(store_and_load),
    CACHE_CASE(any_damaged_byte_is_a_miss),
    CACHE_CASE(any_truncation_is_a_miss),
    CACHE_CASE(foreign_entry_is_a_miss),
    CACHE_CASE(folders),
    CACHE_CASE(two_writers),
    CACHE_CASE(strangers),
    CACHE_CASE(temporary_folder),
};
TEST_SUITE(cache, false, cases);
