// SPDX-License-Identifier: Apache-2.0
// Files that are written whole, what paths name, locks, what is removed at the end; and the small
// parts of the base: widths of texts, sums in trees, pages and caches.
#define _GNU_SOURCE  // F_SETPIPE_SZ
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/library.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/pile.h"
#include "base/visible.h"
#include "base/whole_file.h"
#include "gpurt/unfinished.h"
#include "kits/cache_kit.h"

static char folder[32];

static int begin(void **state) {
    strcpy(folder, "/tmp/gpurt-whole-XXXXXX");  // which every user may enter
    return mkdtemp(folder) ? test_case_begin(state) : -1;
}

static int end(void **state) {
    kit_remove_tree(folder);
    return test_case_end(state);
}

// A path in the folder; the newest 8 stay.
static const char *in(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text) {
    FILE *file = fopen(in(name), "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void holds(const char *name, const char *want) {
    char text[64] = "";
    FILE *file = fopen(in(name), "rb");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), strlen(want));
    fclose(file);
    assert_string_equal(text, want);
}

static void files_and_links(void) {
    put("file", "old");
    assert_int_equal(mkdir(in("sub"), 0700), 0);
    assert_int_equal(symlink("file", in("link")), 0);
    assert_int_equal(symlink(in("file"), in("sub/far")), 0);
    assert_int_equal(symlink("sub/none", in("empty")), 0);
    assert_int_equal(symlink("sub", in("other")), 0);
    assert_int_equal(symlink("round", in("round")), 0);
    assert_int_equal(link(in("file"), in("twin")), 0);
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
}

// What would be made or replaced where a path leads, and what is in the way of it.
static void what_paths_name(void **state) {
    (void)state;
    static const struct {
        const char *name, *target;  // NULL: no file is made; names that begin with a slash stay
        bool replaces;
        int obstacle;
    } rows[] = {
        {"file", "file", true, 0},
        {"new", "new", false, 0},
        {"link", "file", true, 0},
        {"sub/far", "file", true, 0},
        {"other/far", "file", true, 0},
        {"empty", "sub/none", false, 0},
        {"other/new", "other/new", false, 0},
        {"none/new", "none/new", false, ENOENT},
        {"file/new", "file/new", false, ENOTDIR},
        {"sub", NULL, false, EISDIR},
        {"other", NULL, false, EISDIR},
        {"round", NULL, false, ELOOP},
        {"pipe", NULL, false, 0},
        {"/dev/null", NULL, false, 0},
        {"/dev/fd/0", NULL, false, 0},
        {"/proc/self/fd/0", NULL, false, 0},
        {"/dev/fd/99999999", NULL, false, EBADF},
    };
    files_and_links();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = rows[i].name[0] == '/' ? rows[i].name : in(rows[i].name);
        char made[GRT_WHOLE_FILE_PATH], replaced[GRT_WHOLE_FILE_PATH];
        bool makes = grt_whole_file_makes(path, made);
        if (makes != (rows[i].target != NULL) ||
            grt_whole_file_replaces(path, replaced) != rows[i].replaces ||
            grt_whole_file_obstacle(path) != rows[i].obstacle) {
            fail_msg("%s: %d %d %s", path, makes, grt_whole_file_replaces(path, replaced),
                     strerror(grt_whole_file_obstacle(path)));
        }
        if (makes) {
            assert_string_equal(made, in(rows[i].target));
        }
    }
    char target[GRT_WHOLE_FILE_PATH], longest[GRT_WHOLE_FILE_PATH + 2];
    assert_false(grt_whole_file_makes("-", target));
    memset(longest, 'x', sizeof longest);
    longest[GRT_WHOLE_FILE_PATH] = '\0';
    assert_int_equal(grt_whole_file_obstacle(longest), ENAMETOOLONG);
    // As many links as the kernel follows, one behind the other, and one more.
    for (int i = 1; i <= 41; i++) {
        char name[16], to[16];
        snprintf(name, sizeof name, "l%d", i);
        snprintf(to, sizeof to, i == 1 ? "file" : "l%d", i - 1);
        assert_int_equal(symlink(to, in(name)), 0);
    }
    assert_int_equal(grt_whole_file_obstacle(in("l40")), 0);
    assert_int_equal(grt_whole_file_obstacle(in("l41")), ELOOP);
}

static void paths_of_one_file(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"file", "file", true},    {"file", "./file", true},       {"file", "link", true},
        {"file", "twin", true},    {"sub/far", "link", true},      {"file", "new", false},
        {"new", "new", true},      {"new", "./new", true},         {"new", "newer", false},
        {"sub/new", "new", false}, {"sub/new", "other/new", true}, {"empty", "other/none", true},
        {"empty", "none", false},  {"sub", "sub", false},          {"pipe", "pipe", false},
        {"no/a", "no/a", false},   {"file", "sub", false},
    };
    files_and_links();
    put("third", "old");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(grt_whole_file_same(in(rows[i].a), in(rows[i].b)), rows[i].same);
        assert_int_equal(grt_whole_file_same(in(rows[i].b), in(rows[i].a)), rows[i].same);
    }
    assert_false(grt_whole_file_same(in("file"), in("third")));
    assert_false(grt_whole_file_same("/dev/null", "/dev/null"));
    assert_false(grt_whole_file_same("-", "-"));
}

// Bytes come where the path leads, links stay links, and what is given up leaves all as it was.
static void whole_or_not(void **state) {
    (void)state;
    struct grt_whole_file file;
    struct stat info;
    files_and_links();
    assert_true(grt_whole_file_save(in("sub/far"), "far", 3));
    holds("file", "far");
    holds("twin", "old");  // another name of what was replaced
    assert_true(lstat(in("sub/far"), &info) == 0 && S_ISLNK(info.st_mode));
    assert_true(grt_whole_file_save(in("empty"), "now", 3));
    holds("sub/none", "now");
    assert_true(lstat(in("empty"), &info) == 0 && S_ISLNK(info.st_mode));
    for (int keep = 0; keep < 2; keep++) {
        assert_true(grt_whole_file_open(&file, in("link")));
        assert_true(grt_whole_file_write(&file, "next", 4));
        assert_int_equal(access(file.temporary, F_OK), 0);
        char temporary[GRT_WHOLE_FILE_PATH + 32];
        snprintf(temporary, sizeof temporary, "%s", file.temporary);
        holds("file", "far");
        assert_int_equal(grt_whole_file_close(&file, keep > 0), true);
        assert_int_equal(access(temporary, F_OK), -1);
        assert_int_equal(file.fd, -1);
        assert_false(grt_whole_file_close(&file, true));
        holds("file", keep ? "next" : "far");
    }
    assert_true(grt_whole_file_save(in("file"), "", 0));
    holds("file", "");
    static const struct {
        const char *name, *says;
    } refused[] = {
        {"none/file", "there is no folder "},
        {"sub", "Is a directory"},
        {"round", "Too many levels of symbolic links"},
        {"file/new", "Not a directory"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        TEST_REFUSED(grt_whole_file_save(in(refused[i].name), "x", 1), GRT_NO_OUTPUT,
                     refused[i].says);
        assert_non_null(strstr(grt_last_error(), "cannot create "));
        assert_non_null(strstr(grt_last_error(), in(refused[i].name)));
    }
    TEST_REFUSED(grt_whole_file_refuse("a.h5", ENOENT), GRT_NO_OUTPUT,
                 "cannot create a.h5: No such file or directory");
    TEST_REFUSED(grt_whole_file_refuse("/nowhere/a.h5", ENOENT), GRT_NO_OUTPUT,
                 "cannot create /nowhere/a.h5: there is no folder /nowhere; make it first");
    TEST_REFUSED(grt_whole_file_refuse("/tmp/a.h5", EACCES), GRT_NO_OUTPUT,
                 "cannot create /tmp/a.h5: Permission denied");
    TEST_REFUSED(grt_whole_file_save("/dev/full", "x", 1), GRT_IO,
                 "cannot write /dev/full: No space left on device");
    assert_null(strstr(grt_last_error(), "as it was"));
}

// A library that wants a name gets one in TMPDIR for a pipe, which has the bytes at the end, or
// none.
static void named_files(void **state) {
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        struct grt_whole_file file;
        int ends[2];
        char path[64], text[8] = "";
        assert_int_equal(pipe(ends), 0);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
        assert_true(grt_whole_file_open_named(&file, path));
        char temporary[GRT_WHOLE_FILE_PATH + 32];
        snprintf(temporary, sizeof temporary, "%s", file.temporary);
        FILE *other = fopen(temporary, "wb");
        assert_true(other && fputs("late", other) >= 0 && fclose(other) == 0);
        assert_int_equal(grt_whole_file_close(&file, keep > 0), true);
        assert_int_equal(access(temporary, F_OK), -1);
        close(ends[1]);
        assert_int_equal(read(ends[0], text, sizeof text), keep ? 4 : 0);
        assert_string_equal(text, keep ? "late" : "");
        close(ends[0]);
    }
    // Of a file the name lies beside it.
    struct grt_whole_file file;
    assert_true(grt_whole_file_open_named(&file, in("named")));
    assert_memory_equal(file.temporary, in("named"), strlen(in("named")));
    assert_true(grt_whole_file_close(&file, false));
    assert_int_equal(access(in("named"), F_OK), -1);
    const char *before = getenv("TMPDIR");
    char kept[256], path[64];
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    setenv("TMPDIR", "/nowhere", 1);
    TEST_REFUSED(grt_temporary_file(path, sizeof path) >= 0, GRT_NO_OUTPUT,
                 "no temporary file can be made in /nowhere: No such file or directory; TMPDIR");
    assert_string_equal(path, "");
    setenv("TMPDIR", folder, 1);
    TEST_REFUSED(grt_temporary_file(path, 8) >= 0, GRT_NO_OUTPUT, "File name too long");
    char found[512];
    int fd = grt_temporary_file(found, sizeof found);
    assert_true(fd >= 0 && strncmp(found, folder, strlen(folder)) == 0);
    close(fd);
    grt_unfinished_unlink();  // it was to go with the process
    assert_int_equal(access(found, F_OK), -1);
    grt_unfinished_remove(found);
    if (before) {
        setenv("TMPDIR", kept, 1);
    } else {
        unsetenv("TMPDIR");
    }
}

static void bytes_that_are_read(void **state) {
    (void)state;
    uint64_t size = 7;
    char *bytes;
    put("five", "12345");
    put("none", "");
    for (int any = 0; any < 2; any++) {
        void *(*read_it)(const char *, uint64_t, uint64_t *) =
            any ? grt_whole_file_read_any : grt_whole_file_read;
        bytes = read_it(in("five"), 5, &size);
        assert_non_null(bytes);
        assert_int_equal(size, 5);
        assert_string_equal(bytes, "12345");
        free(bytes);
        TEST_REFUSED(read_it(in("five"), 4, &size), GRT_BAD_DATA,
                     "five has more than the 4 bytes allowed");
        bytes = read_it(in("none"), 4, &size);
        assert_non_null(bytes);
        assert_int_equal(size, 0);
        assert_string_equal(bytes, "");
        free(bytes);
        TEST_REFUSED(read_it(folder, 4, &size), GRT_NO_INPUT, "it is no regular file");
        TEST_REFUSED(read_it(in("gone"), 4, &size), GRT_NO_INPUT,
                     "gone: No such file or directory");
    }
    // A pipe is waited for only by who is to; more than there is room for at first.
    for (uint32_t count = 65536; count <= 65540; count += 4) {
        int ends[2];
        char path[64], *sent = test_alloc(count);
        assert_int_equal(pipe(ends), 0);
        assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 17) > 0);
        for (uint32_t i = 0; i < count; i++) {
            sent[i] = (char)(i * 7);
        }
        assert_int_equal(write(ends[1], sent, count), count);
        close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        TEST_REFUSED(grt_whole_file_read(path, 1 << 20, &size), GRT_NO_INPUT,
                     "it is no regular file");
        bytes = grt_whole_file_read_any(path, count, &size);
        assert_non_null(bytes);
        assert_int_equal(size, count);
        assert_memory_equal(bytes, sent, count);
        assert_int_equal(bytes[count], 0);
        free(bytes);
        free(sent);
        close(ends[0]);
    }
    int ends[2];
    char path[64];
    assert_true(pipe(ends) == 0 && write(ends[1], "12345", 5) == 5);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    TEST_REFUSED(grt_whole_file_read_any(path, 4, &size), GRT_BAD_DATA,
                 "has more than the 4 bytes allowed");
    close(ends[0]);
}

// ---- locks ----

static void locks(void **state) {
    (void)state;
    struct grt_lock one, other, again;
    char says[400], host[200] = "", text[400];
    gethostname(host, sizeof host - 1);
    assert_true(grt_lock_take(&one, in("lock"), "the folder a"));
    assert_true(one.held);
    snprintf(text, sizeof text, "process %ld on %s\n", (long)getpid(), host);
    holds("lock", text);
    snprintf(says, sizeof says,
             "the folder b is in use by process %ld on %s: wait until that run has ended, or name "
             "another",
             (long)getpid(), host);
    for (int i = 0; i < 2; i++) {
        TEST_REFUSED(grt_lock_take(&other, in("lock"), "the folder b"), GRT_NO_OUTPUT, says);
        assert_false(other.held);
        grt_lock_release(&other);
        assert_int_equal(access(in("lock"), F_OK), 0);
    }
    assert_true(grt_lock_take(&again, in("lock2"), "another"));
    grt_lock_release(&one);
    assert_false(one.held);
    assert_int_equal(access(in("lock"), F_OK), -1);
    assert_int_equal(access(in("lock2"), F_OK), 0);
    assert_true(grt_lock_take(&other, in("lock"), "the folder b"));
    grt_lock_release(&one);  // is nobody's any more
    assert_int_equal(access(in("lock"), F_OK), 0);
    grt_lock_release(&other);
    grt_lock_release(&again);
    // One that a killed process left locks nobody out, and is written anew.
    put("lock",
        "process 1 on a host whose name is longer than that of this one, by far, it is so\n");
    assert_true(grt_lock_take(&one, in("lock"), "it"));
    holds("lock", text);
    grt_lock_release(&one);
    // Who has it is said of plain words alone.
    static const char *const words[] = {"", "\n", "a\x1b[31mb", "someone\nelse"};
    for (int i = 0; i < 4; i++) {
        put("lock", words[i]);
        int fd = open(in("lock"), O_RDWR);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        TEST_REFUSED(grt_lock_take(&one, in("lock"), "it"), GRT_NO_OUTPUT,
                     i < 3 ? "it is in use by another process: wait"
                           : "it is in use by someone: wait");
        close(fd);
    }
    char longest[5000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    TEST_REFUSED(grt_lock_take(&one, longest, "it"), GRT_NO_OUTPUT, "it: the path is too long");
    TEST_REFUSED(grt_lock_take(&one, in("none/lock"), "it"), GRT_NO_OUTPUT, "cannot create ");
    assert_int_equal(symlink("elsewhere", in("soft")), 0);
    TEST_REFUSED(grt_lock_take(&one, in("soft"), "it"), GRT_NO_OUTPUT, "cannot create ");
    assert_int_equal(access(in("elsewhere"), F_OK), -1);
}

// What is noted is removed at the end, what was taken back is not; a path that was noted twice is
// taken back twice. Of very many some find no room, and room that was given back is used.
static void unfinished_files(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++) {
        put(names[i], "x");
        grt_unfinished_add(in(names[i]));
    }
    grt_unfinished_add(in("c"));
    grt_unfinished_remove(in("b"));
    grt_unfinished_remove(in("c"));
    grt_unfinished_remove(in("never"));
    grt_unfinished_unlink();
    for (int i = 0; i < 4; i++) {
        assert_int_equal(access(in(names[i]), F_OK) == 0, i == 1);
        grt_unfinished_remove(in(names[i]));
    }
    int kept = 0;
    for (int i = 0; i < 90; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        put(name, "x");
        grt_unfinished_add(in(name));
    }
    grt_unfinished_remove(in("m3"));
    put("late", "x");
    grt_unfinished_add(in("late"));
    grt_unfinished_unlink();
    assert_int_equal(access(in("late"), F_OK), -1);
    assert_int_equal(access(in("m3"), F_OK), 0);
    for (int i = 0; i < 90; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        kept += access(in(name), F_OK) == 0;
        grt_unfinished_remove(in(name));
    }
    grt_unfinished_remove(in("late"));
    assert_in_range(kept, 11, 75);  // 16 rows are left where a process has taken 64 tables
}

// ---- small parts ----

static bool saves_unseen(void) {
    return open(in("blind"), O_RDONLY | O_DIRECTORY) < 0 && errno == EACCES &&
           grt_whole_file_save(in("blind/file"), "news", 4);
}

// A folder that may be written and not read cannot be brought to the disk; what is saved in it is
// whole all the same.
static void folders_that_cannot_be_read(void **state) {
    (void)state;
    assert_int_equal(mkdir(in("blind"), 0700), 0);
    assert_int_equal(chmod(folder, 0711), 0);
    assert_int_equal(chmod(in("blind"), 0333), 0);
    TEST_IN_CHILD(saves_unseen, true);
    assert_int_equal(chmod(in("blind"), 0700), 0);
    holds("blind/file", "news");
}

static void widths(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t columns, bytes, used;
    } rows[] = {
        {"abc", 2, 2, 2},
        {"abc", 3, 3, 3},
        {"abc", 9, 3, 3},
        {"abc", 0, 0, 0},
        {"\xc3\xb6x", 1, 2, 1},   // o with two dots
        {"e\xcc\x81x", 1, 3, 1},  // a mark belongs to the letter before
        {"e\xcc\x81\xcc\x82", 1, 5, 1},
        {"\xcc\x81x", 0, 2, 0},
        {"\xe5\xa4\xa7\xe3\x81\x8d", 2, 3, 2},  // two of two columns each
        {"\xe5\xa4\xa7\xe3\x81\x8d", 3, 3, 2},
        {"\xe5\xa4\xa7\xe3\x81\x8d", 4, 6, 4},
        {"\xe5\xa4\xa7", 1, 0, 0},
        {"\xf0\x9f\x98\x80!", 3, 5, 3},  // a picture
        {"\xff\xfe", 1, 1, 1},           // no UTF-8
        {"\xe4\x84\x80", 2, 3, 2},
        {"\xe1\x84\x80", 1, 0, 0},  // the first wide one
        {"\xe1\x83\xbf", 1, 3, 1},  // and the one before
        {"\xcb\xbf", 0, 0, 0},      // before the first mark
        {"\xcc\x80", 0, 2, 0},      // the first mark
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t used = 77;
        size_t bytes = grt_visible_fit(rows[i].text, rows[i].columns, &used);
        if (bytes != rows[i].bytes || used != rows[i].used) {
            fail_msg("text %zu: %zu bytes of %zu columns", i, bytes, used);
        }
        assert_int_equal(grt_visible_fit(rows[i].text, rows[i].columns, NULL), bytes);
    }
    assert_int_equal(grt_visible_width("e\xcc\x81 \xe5\xa4\xa7\xff"), 5);
}

// Runs of leaves become the largest whole subtrees, each by so many joints.
static void sums_in_trees(void **state) {
    (void)state;
    static const struct {
        uint32_t first, count, joints[8], piles, sizes[4];
    } rows[] = {
        {0, 8, {0, 1, 0, 2, 0, 1, 0, 3}, 1, {8}},
        {0, 5, {0, 1, 0, 2, 0}, 2, {4, 1}},
        {5, 3, {0, 0, 1}, 2, {1, 2}},
        {1, 7, {0, 0, 1, 0, 1, 0, 2}, 3, {1, 2, 4}},
        {6, 6, {0, 1, 0, 1, 0, 2}, 2, {2, 4}},
        {3, 4, {0, 0, 1, 0}, 3, {1, 2, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_pile pile = {0};
        for (uint32_t k = 0; k < rows[i].count; k++) {
            assert_int_equal(grt_pile_add(&pile, rows[i].first + k, 1), rows[i].joints[k]);
        }
        assert_int_equal(pile.count, rows[i].piles);
        uint32_t at = rows[i].first;
        for (uint32_t k = 0; k < pile.count; k++) {
            assert_int_equal(pile.size[k], rows[i].sizes[k]);
            assert_int_equal(pile.first[k], at);
            at += pile.size[k];
        }
    }
    struct grt_pile pile = {0};  // of subtrees
    assert_int_equal(grt_pile_add(&pile, 0, 4), 0);
    assert_int_equal(grt_pile_add(&pile, 4, 2), 0);
    assert_int_equal(grt_pile_add(&pile, 6, 2), 2);
    assert_true(pile.count == 1 && pile.first[0] == 0 && pile.size[0] == 8);
}

static void pages(void **state) {
    (void)state;
    static const uint64_t sizes[][2] = {{1, 4096},
                                        {4097, 4096},
                                        {(2 << 20) - 1, 4096},
                                        {2 << 20, 2 << 20},
                                        {(2 << 20) + 1, 2 << 20}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory = grt_pages_alloc(sizes[i][0]);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % sizes[i][1], 0);
        memory[sizes[i][0] - 1] = 1;
        free(memory);
    }
    assert_null(grt_pages_alloc(0));
    assert_null(grt_pages_alloc(UINT64_MAX));
}

static void places_of_caches(void **state) {
    (void)state;
    static const struct {
        const char *xdg, *home, *base;
        size_t room;
    } rows[] = {
        {"/x", "/h", "/x", 16},       {NULL, "/h", "/h/.cache", 16}, {"", "/h", "/h/.cache", 16},
        {"x", "/h", "/h/.cache", 16}, {"x", "h", NULL, 16},          {NULL, NULL, NULL, 16},
        {NULL, "", NULL, 16},         {"/", NULL, "/", 16},          {"/34567", NULL, "/34567", 7},
        {"/345678", NULL, NULL, 7},
    };
    char base[16];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool found = grt_cache_base(rows[i].xdg, rows[i].home, base, rows[i].room);
        assert_int_equal(found, rows[i].base != NULL);
        if (found) {
            assert_string_equal(base, rows[i].base);
        }
    }
    assert_false(grt_cache_store("key", "", 0));
    assert_false(grt_cache_store("key", NULL, ((size_t)256 << 20) + 1));
    static const struct {
        const char *text;
        double seconds;
    } probes[] = {{"2.5", 2.5}, {"120", 120}, {"0", 10}, {"-1", 10}, {"x", 10}, {"", 10}};
    const char *set = getenv("GPURT_PROBE_SECONDS");
    char before[64];
    snprintf(before, sizeof before, "%s", set ? set : "");
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        setenv("GPURT_PROBE_SECONDS", probes[i].text, 1);
        assert_true(grt_probe_seconds() == probes[i].seconds);
    }
    unsetenv("GPURT_PROBE_SECONDS");
    assert_true(grt_probe_seconds() == 10);
    if (set) {
        setenv("GPURT_PROBE_SECONDS", before, 1);
    }
    // A library that is not there does no harm.
    char problem[256] = "none";
    assert_true(grt_probe_library("libgpurt-nowhere.so", problem));
    assert_string_equal(problem, "none");
}

#define WHOLE_CASE(function)                                                                       \
    { #function, function, begin, end, NULL }

static const struct CMUnitTest cases[] = {
    WHOLE_CASE(what_paths_name),
    WHOLE_CASE(paths_of_one_file),
    WHOLE_CASE(whole_or_not),
    WHOLE_CASE(named_files),
    WHOLE_CASE(bytes_that_are_read),
    WHOLE_CASE(locks),
    WHOLE_CASE(unfinished_files),
    WHOLE_CASE(folders_that_cannot_be_read),
    TEST_CASE(widths),
    TEST_CASE(sums_in_trees),
    TEST_CASE(pages),
    CACHE_CASE(places_of_caches),
};
TEST_SUITE(whole, false, cases);
