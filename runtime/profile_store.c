// SPDX-License-Identifier: Apache-2.0
// Profiles on disk: where the user's file lies, reading one, and replacing a setting of it.
//
//     $XDG_CONFIG_HOME/gpurt/opencl-nvidia-h200.profile      (or ~/.config/gpurt/...)
//
// The file is written under a temporary name, brought to the disk and renamed: whoever reads it finds the
// old one or the new one, whole.
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile_file.h"
#include "report.h"

// "NVIDIA A100-SXM4-40GB" of opencl is "opencl-nvidia-a100-sxm4-40gb": the best tile differs between APIs.
static void make_key(const struct grt_dev_info *info, char *key, size_t capacity) {
    size_t used = (size_t)snprintf(key, capacity, "%s-", grt_backend_text(info->backend));
    for (const char *c = info->name; *c && used + 1 < capacity; c++) {
        if (isalnum((unsigned char)*c)) {
            key[used++] = (char)tolower((unsigned char)*c);
        } else if (key[used - 1] != '-') {
            key[used++] = '-';
        }
    }
    while (used > 0 && key[used - 1] == '-') {
        used--;
    }
    key[used] = '\0';
}

static bool config_dir(char *dir, size_t capacity) {
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int length = xdg && xdg[0] == '/'     ? snprintf(dir, capacity, "%s", xdg)
                 : home && home[0] == '/' ? snprintf(dir, capacity, "%s/.config", home)
                                          : -1;
    return length > 0 && (size_t)length < capacity;
}

bool grt_profile_user_path(const struct grt_dev_info *info, char *path, size_t capacity) {
    char dir[PROFILE_PATH - 256];
    char key[200];
    if (!config_dir(dir, sizeof dir)) {
        return false;
    }
    make_key(info, key, sizeof key);
    int length = snprintf(path, capacity, "%s/gpurt/%s.profile", dir, key);
    return length > 0 && (size_t)length < capacity;
}

char *profile_read(const char *path, size_t *size, bool *missing, char why[PROFILE_WHY]) {
    char *text = NULL;
    FILE *file = fopen(path, "rb");
    *missing = !file && (errno == ENOENT || errno == ENOTDIR);
    if (!file) {
        snprintf(why, PROFILE_WHY, "%.400s:0: cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    // One byte more than allowed, so that the parser sees a file that is too long.
    text = malloc(PROFILE_MAX_BYTES + 1);
    *size = text ? fread(text, 1, PROFILE_MAX_BYTES + 1, file) : 0;
    if (!text || ferror(file)) {
        snprintf(why, PROFILE_WHY, "%.400s:0: cannot be read: %s", path,
                 text ? strerror(errno) : "no host memory");
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

// ---- writing ----

static bool make_dir(const char *path) {
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

// A driver's names may hold anything; a row is one line without a comment.
static void copy_line(char *into, const char *from) {
    size_t length = 0;
    for (; from[length] && length + 1 < GRT_PROFILE_TEXT; length++) {
        unsigned char c = (unsigned char)from[length];
        into[length] = (char)(c < ' ' || c == 127 || c == '#' ? ' ' : c);
    }
    into[length] = '\0';
}

static void print_file(FILE *out, const struct grt_dev_info *info,
                       const struct profile_file *file) {
    char name[GRT_PROFILE_TEXT];
    copy_line(name, info->name);
    fprintf(out,
            "gpurt-profile %d\n"
            "# %s through %s. Written by `gpurt tune`, which keeps settings but no comments.\n"
            "# Remove a setting to have the shipped one back.\n"
            "level = user\n",
            PROFILE_VERSION, name, grt_backend_text(info->backend));
    const char *from = "";
    for (uint32_t key = 0; key < GRT_KEY_COUNT; key++) {
        const struct profile_row *row = &file->rows[key];
        const struct grt_profile_key_info *k = grt_profile_key_info((enum grt_profile_key)key);
        if (row->line == 0) {
            continue;
        }
        if (strcmp(from, row->from) != 0) {
            fprintf(out, "\nfrom = %s\n", row->from);
            from = row->from;
        }
        fprintf(out, "%s =", k->key);
        for (uint32_t i = 0; i < row->count; i++) {
            fprintf(out, " %.12g", row->numbers[i]);
        }
        fprintf(out, "  # %s\n", k->numbers);
    }
    fputs("\nend\n", out);
}

static bool write_file(const char *path, const struct grt_dev_info *info,
                       const struct profile_file *file) {
    char temporary[PROFILE_PATH + 8];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkstemp(temporary);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out) {
        grt_fail(GRT_NO_OUTPUT, "cannot create %s: %s", temporary, strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(temporary);
        }
        return false;
    }
    print_file(out, info, file);
    bool written = fflush(out) == 0 && !ferror(out) && fsync(fd) == 0;
    int error = errno;
    written = fclose(out) == 0 && written;
    if (written && rename(temporary, path) == 0) {
        return true;
    }
    grt_fail(GRT_IO, "cannot write %s: %s", path, strerror(written ? errno : error));
    unlink(temporary);
    return false;
}

// What the file holds now; nothing when it is not there.
static bool load_old(const char *path, struct profile_file *file) {
    char why[PROFILE_WHY];
    size_t size = 0;
    bool missing = false;
    char *text = profile_read(path, &size, &missing, why);
    memset(file, 0, sizeof *file);
    if (!text) {
        return missing || grt_fail(GRT_IO, "%s", why);
    }
    bool good = profile_parse(path, text, size, file, why) || grt_fail(GRT_CONFIG, "%s", why);
    free(text);
    return good;
}

bool grt_profile_store(const struct grt_dev_info *info, enum grt_profile_key key,
                       const struct grt_profile_value *value) {
    char path[PROFILE_PATH];
    char dir[PROFILE_PATH];
    if (!info || !value || (unsigned)key >= GRT_KEY_COUNT || value->count != profile_count(key)) {
        return grt_fail(GRT_INVALID, "grt_profile_store: no %s",
                        !info    ? "device"
                        : !value ? "value"
                                 : "such setting, or of other numbers");
    }
    if (!grt_profile_user_path(info, path, sizeof path) || !config_dir(dir, sizeof dir)) {
        return grt_fail(GRT_NO_OUTPUT,
                        "neither XDG_CONFIG_HOME nor HOME names a folder for the profile");
    }
    struct profile_file *file = malloc(sizeof *file);
    if (!file) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for profile %s", path);
    }
    bool good = load_old(path, file);
    if (good) {
        struct profile_row *row = &file->rows[key];
        row->line = 1;
        row->count = value->count;
        memcpy(row->numbers, value->numbers, sizeof row->numbers);
        copy_line(row->from, value->from);
        size_t length = strlen(dir);
        good = make_dir(dir);
        snprintf(dir + length, sizeof dir - length, "/gpurt");
        good = (good && make_dir(dir)) ||
               grt_fail(GRT_NO_OUTPUT, "cannot create the folder %s: %s", dir, strerror(errno));
        good = good && write_file(path, info, file);
    }
    free(file);
    return good;
}
