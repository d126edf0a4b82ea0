// SPDX-License-Identifier: Apache-2.0
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "gpurt/unfinished.h"
#include "whole_file.h"

#define CACHE_MAGIC 0x65686361u  // "ache", little-endian: a file of the other byte order is foreign
#define CACHE_VERSION 1u
#define CACHE_MAX_ENTRY ((uint64_t)256 << 20)

struct header {
    uint32_t magic;
    uint32_t version;
    uint64_t key_size;
    uint64_t payload_size;
    uint64_t digest;  // of key and payload
};

uint64_t grt_digest(const void *data, size_t size, uint64_t seed) {
    const unsigned char *bytes = data;
    uint64_t hash = seed ? seed : 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

static bool make_dir(const char *path) {
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

// What lies there runs as code: nobody else but root may have put it there.
static const char *why_untrusted(const struct stat *info) {
    return info->st_uid != geteuid() && info->st_uid != 0 ? "belongs to another user"
           : (info->st_mode & (S_IWGRP | S_IWOTH)) != 0   ? "can be written by others"
                                                          : NULL;
}

// Of a folder that is there; said once, for it costs time at every start.
static bool trusted_dir(const char *dir, char *why) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct stat info;
    const char *reason = stat(dir, &info) == 0 ? why_untrusted(&info) : NULL;
    if (!reason) {
        return true;
    }
    snprintf(why, 256, "%.160s %s", dir, reason);
    if (!atomic_flag_test_and_set(&said)) {
        grt_log(
            GRT_LOG_WARN,
            "the cache %s %s and is not used; XDG_CACHE_HOME names another folder, or chown and "
            "chmod go-w mend this one",
            dir, reason);
    }
    return false;
}

// Finds the folder, and makes it to write to. Parents are made one by one: a fresh HOME has no
// .cache.
static bool find_dir(bool to_write, char *dir, size_t capacity, char *why) {
    char base[3072];
    if (!grt_cache_base(getenv("XDG_CACHE_HOME"), getenv("HOME"), base, sizeof base)) {
        snprintf(why, 256, "neither XDG_CACHE_HOME nor HOME names a folder");
        return false;
    }
    snprintf(dir, capacity, "%s/gpurt", base);
    bool made = !to_write || (make_dir(base) && make_dir(dir));
    if (made && !trusted_dir(dir, why)) {
        return false;
    }
    if (!made || (to_write && access(dir, W_OK | X_OK) != 0)) {
        snprintf(why, 256, "%.160s cannot be written: %s", dir, strerror(errno));
        return false;
    }
    return true;
}

const char *grt_cache_dir(char *why) {
    static _Thread_local char dir[4096];
    char reason[256] = "";
    bool found = find_dir(true, dir, sizeof dir, reason);
    if (why) {
        memcpy(why, reason, sizeof reason);
    }
    return found ? dir : NULL;
}

bool grt_cache_temp_dir(char *dir, size_t capacity) {
    const char *temp = getenv("TMPDIR");
    int length = snprintf(dir, capacity, "%s/gpurt-%lu", temp && temp[0] ? temp : "/tmp",
                          (unsigned long)getuid());
    struct stat st;
    return length > 0 && (size_t)length < capacity && make_dir(dir) && lstat(dir, &st) == 0 &&
           S_ISDIR(st.st_mode) && st.st_uid == getuid() && (st.st_mode & 077) == 0;
}

// Where the entry of a key lies, or would; false when there is no cache folder. One that cannot be
// written may still hold entries: an image of a container, say.
static bool entry_path(const char *key, bool to_write, char *path, size_t capacity) {
    char why[256], dir[4096];
    if (!find_dir(to_write, dir, sizeof dir, why)) {
        static atomic_flag said = ATOMIC_FLAG_INIT;
        if (!atomic_flag_test_and_set(&said)) {
            grt_log(GRT_LOG_DEBUG, "compiled kernels are not kept: %s", why);
        }
        return false;
    }
    int length =
        snprintf(path, capacity, "%s/%016" PRIx64 ".bin", dir, grt_digest(key, strlen(key), 0));
    return length > 0 && (size_t)length < capacity;
}

static bool read_all(FILE *file, void *data, uint64_t size) {
    return fread(data, 1, size, file) == size;
}

void *grt_cache_load(const char *key, size_t *size) {
    char path[4200];
    if (!entry_path(key, false, path, sizeof path)) {
        return NULL;
    }
    struct stat info;
    const char *why = NULL;
    int fd = grt_open_regular(path, &info, &why);
    FILE *file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (!file) {
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    void *data = NULL;
    struct header header;
    uint64_t key_size = strlen(key);
    if (why_untrusted(&info) || !read_all(file, &header, sizeof header) ||
        header.magic != CACHE_MAGIC || header.version != CACHE_VERSION ||
        header.key_size != key_size || header.payload_size == 0 ||
        header.payload_size > CACHE_MAX_ENTRY) {
        goto damaged;
    }
    unsigned char *bytes = malloc(key_size + header.payload_size);
    if (!bytes) {
        goto close_file;
    }
    if (!read_all(file, bytes, key_size + header.payload_size) ||
        memcmp(bytes, key, key_size) != 0 ||
        grt_digest(bytes, key_size + header.payload_size, 0) != header.digest) {
        free(bytes);
        goto damaged;
    }
    memmove(bytes, bytes + key_size, header.payload_size);
    *size = header.payload_size;
    data = bytes;
    goto close_file;
damaged:
    grt_log(GRT_LOG_DEBUG, "cache entry %s is damaged or foreign; it is made anew", path);
close_file:
    fclose(file);
    return data;
}

bool grt_cache_store(const char *key, const void *payload, size_t size) {
    char path[4200];
    char temporary[4232];
    if (size == 0 || size > CACHE_MAX_ENTRY || !entry_path(key, true, path, sizeof path)) {
        return false;
    }
    // Not with whole_file.h: an entry that a crash cuts short is a miss, so fsync() would only cost
    // time, and several threads may store one key, so each writer needs a name of its own.
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkstemp(temporary);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!file) {
        if (fd >= 0) {
            close(fd);
            unlink(temporary);
        }
        return false;
    }
    grt_unfinished_add(temporary);
    struct header header = {
        .magic = CACHE_MAGIC,
        .version = CACHE_VERSION,
        .key_size = strlen(key),
        .payload_size = size,
        .digest = grt_digest(payload, size, grt_digest(key, strlen(key), 0)),
    };
    bool written = fwrite(&header, sizeof header, 1, file) == 1 &&
                   fwrite(key, 1, header.key_size, file) == header.key_size &&
                   fwrite(payload, 1, size, file) == size;
    written = fclose(file) == 0 && written;
    written = written && rename(temporary, path) == 0;
    if (!written) {
        unlink(temporary);
    }
    grt_unfinished_remove(temporary);
    return written;
}
