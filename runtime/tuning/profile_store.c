// SPDX-License-Identifier: Apache-2.0
// Profiles on disk: where the user's file lies, reading one, and replacing a setting of it.
//
//     $XDG_CONFIG_HOME/gpurt/opencl-nvidia-h200.profile      (or ~/.config/gpurt/...)
//
// Whoever reads the file finds the old one or the new one, whole. It is the user's: only the line
// of the setting changes, and what else stands there, comments too, stays.
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile_file.h"
#include "base/log.h"
#include "base/whole_file.h"

// "NVIDIA A100-SXM4-40GB" of opencl is "opencl-nvidia-a100-sxm4-40gb": the best tile differs
// between APIs.
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
    struct stat info;
    const char *reason = NULL;
    int fd = grt_open_regular(path, &info, &reason);
    *missing = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    FILE *file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    // One byte more than allowed, so that the parser sees a file that is too long.
    char *text = file ? malloc(PROFILE_MAX_BYTES + 1) : NULL;
    *size = text ? fread(text, 1, PROFILE_MAX_BYTES + 1, file) : 0;
    if (!text || ferror(file)) {
        reason = reason ? reason : text ? strerror(errno) : "no host memory";
        snprintf(why, PROFILE_WHY, "%.400s: cannot be read: %s", path, reason);
        free(text);
        text = NULL;
    }
    if (file) {
        fclose(file);
    } else if (fd >= 0) {
        close(fd);
    }
    return text;
}

// ---- writing ----

static bool make_dir(const char *path) {
    struct stat there;
    if (mkdir(path, 0700) == 0) {
        return true;
    }
    if (errno != EEXIST || stat(path, &there) != 0) {
        return false;
    }
    errno = ENOTDIR;
    return S_ISDIR(there.st_mode);
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

static void print_setting(FILE *out, enum grt_profile_key key, const struct profile_row *row) {
    const struct grt_profile_key_info *info = grt_profile_key_info(key);
    fprintf(out, "from = %s\n%s =", row->from, info->key);
    for (uint32_t i = 0; i < row->count; i++) {
        fprintf(out, " %.12g", row->numbers[i]);
    }
    fprintf(out, "  # %s\n", info->numbers);
}

static void print_new(FILE *out, const struct grt_dev_info *info, enum grt_profile_key key,
                      const struct profile_row *row) {
    char name[GRT_PROFILE_TEXT];
    copy_line(name, info->name);
    fprintf(out,
            "gpurt-profile %d\n"
            "# %s through %s. Written by `gpurt tune`, which keeps what else you write here.\n"
            "# Remove a setting to have the shipped one back.\n"
            "level = user\n\n",
            PROFILE_VERSION, name, grt_backend_text(info->backend));
    print_setting(out, key, row);
    fputs("end\n", out);
}

// ---- replacing a line of a file ----

// Its first word, if that is `word`: "from" of "  from = default".
static bool begins_with(const char *line, const char *word) {
    line += strspn(line, " \t");
    size_t length = strlen(word);
    return strncmp(line, word, length) == 0 && strchr(" \t\r\n=#", line[length]) != NULL;
}

// Line number `number`, from 1; its length with the end in *length.
static const char *line_at(const char *text, uint32_t number, size_t *length) {
    for (; number > 1; number--) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    *length = strcspn(text, "\n");
    *length += text[*length] == '\n';
    return text;
}

// The `from` that the setting of this line has for itself, or 0.
static uint32_t own_from(const char *text, const struct profile_file *file, uint32_t line) {
    size_t length = 0;
    uint32_t from = line - 1;
    while (!begins_with(line_at(text, from, &length), "from")) {
        from--;
    }
    uint32_t next = line + 1;
    while (!begins_with(line_at(text, next, &length), "from") &&
           !begins_with(line_at(text, next, &length), "end")) {
        next++;
    }
    for (uint32_t key = 0; key < GRT_KEY_COUNT; key++) {
        uint32_t other = file->rows[key].line;
        if (other > from && other < next && other != line) {
            return 0;
        }
    }
    return from;
}

// The old text with another value of the setting, at the end; whatever else stands there stays.
static void print_changed(FILE *out, const char *text, const struct profile_file *file,
                          enum grt_profile_key key, const struct profile_row *row) {
    uint32_t old = file->rows[key].line;
    uint32_t from = old ? own_from(text, file, old) : 0;
    size_t length = 0;
    for (uint32_t number = 1; *line_at(text, number, &length); number++) {
        const char *line = line_at(text, number, &length);
        if (begins_with(line, "end")) {
            print_setting(out, key, row);
        }
        if (number != old && number != from) {
            fwrite(line, 1, length, out);
        }
    }
}

// The text of the file and what it holds; "" and nothing when it is not there. To be freed; NULL
// when it cannot be understood.
static char *load_old(const char *path, struct profile_file *file) {
    char why[PROFILE_WHY];
    size_t size = 0;
    bool missing = false;
    char *text = profile_read(path, &size, &missing, why);
    memset(file, 0, sizeof *file);
    if (!text && missing) {
        text = calloc(1, 1);
    } else if (!text) {
        grt_fail(GRT_IO, "%s", why);
    } else if (!profile_parse(path, text, size, file, why)) {
        grt_fail(GRT_CONFIG, "%s", why);
        free(text);
        text = NULL;
    } else {
        text[size] = '\0';  // the parser takes less than there is room for
    }
    return text;
}

static bool replace(const char *path, const struct grt_dev_info *info, enum grt_profile_key key,
                    const struct profile_row *row) {
    struct profile_file *file = malloc(sizeof *file);
    char *old = file ? load_old(path, file) : NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *out = old ? open_memstream(&text, &size) : NULL;
    bool good = false;
    if (out) {
        if (*old) {
            print_changed(out, old, file, key, row);
        } else {
            print_new(out, info, key, row);
        }
        good = fclose(out) == 0 && (size <= PROFILE_MAX_BYTES ||
                                    grt_fail(GRT_CONFIG, "%s: no room for another setting", path));
        good = good && grt_whole_file_save(path, text, size);
    } else if (!file || old) {
        grt_fail(GRT_NO_MEMORY, "no host memory for profile %s", path);
    }
    free(text);
    free(old);
    free(file);
    return good;
}

// The folder of profiles, made when it is not there; its name in `dir`.
static bool make_folder(char dir[PROFILE_PATH]) {
    char above[PROFILE_PATH - 8];
    if (!config_dir(above, sizeof above)) {
        return grt_fail(GRT_NO_OUTPUT,
                        "neither XDG_CONFIG_HOME nor HOME names a folder for the profile");
    }
    snprintf(dir, PROFILE_PATH, "%s/gpurt", above);
    bool good = make_dir(above) && make_dir(dir);
    return good || grt_fail(GRT_NO_OUTPUT, "cannot create the folder %s: %s", dir, strerror(errno));
}

bool grt_profile_storable(const struct grt_dev_info *info) {
    char dir[PROFILE_PATH];
    if (!info) {
        return grt_fail(GRT_INVALID, "grt_profile_storable: no device");
    }
    return make_folder(dir) &&
           (access(dir, W_OK) == 0 ||
            grt_fail(GRT_NO_OUTPUT,
                     "profiles cannot be stored in %s: %s; XDG_CONFIG_HOME names "
                     "another folder",
                     dir, strerror(errno)));
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
    if (!make_folder(dir)) {
        return false;
    }
    if (!grt_profile_user_path(info, path, sizeof path)) {
        return grt_fail(GRT_NO_OUTPUT, "%s: too long for the name of a profile", dir);
    }
    struct profile_row row = {.line = 1, .count = value->count};
    memcpy(row.numbers, value->numbers, sizeof row.numbers);
    copy_line(row.from, value->from);
    // Two that tune at once wait for each other here, so that neither loses what the other found.
    // Where a folder cannot be locked nobody waits.
    int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0) {
        flock(lock, LOCK_EX);
    }
    bool good = replace(path, info, key, &row);
    if (lock >= 0) {
        close(lock);
    }
    return good;
}
