// SPDX-License-Identifier: Apache-2.0
// What is outside the process: programs that are run and what they say, descriptors by their path,
// and the log where nobody has set one.
#include "harness/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program.h"
#include "base/whole_file.h"

// Runs a line of the shell.
static int shell(const char *line, double seconds, char **said) {
    const char *const argv[] = {"sh", "-c", line, NULL};
    *said = NULL;
    return grt_program_run(argv, seconds, said);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number) {
    (void)number;
    alarms = 1;
}

static void programs(void **state) {
    (void)state;
    char *said = NULL;
    assert_int_equal(shell("echo one; echo two >&2; exit 3", 600, &said), 3);
    assert_string_equal(said, "one\ntwo\n");
    free(said);
    // It reads nothing.
    assert_int_equal(shell("read word && exit 1; exit 0", 600, &said), 0);
    free(said);
    assert_int_equal(shell("kill -9 $$", 600, &said), GRT_PROGRAM_KILLED);
    free(said);
    const char *const none[] = {"gpurt-no-such-program", NULL};
    said = NULL;
    assert_int_equal(grt_program_run(none, 600, &said), GRT_PROGRAM_NONE);
    free(said);
    // One that takes too long is ended, and what it said by then is there.
    double begun = grt_seconds();
    assert_int_equal(shell("echo begun; exec sleep 60", 0.3, &said), GRT_PROGRAM_KILLED);
    assert_true(grt_seconds() - begun >= 0.3 && grt_seconds() - begun < 50);
    free(said);
    // Signals that come meanwhile change nothing.
    struct sigaction old, act = {.sa_handler = on_alarm};
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {0};
    assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    int code = shell("sleep 0.3; echo done; exit 4", 600, &said);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_int_equal(code, 4);
    assert_string_equal(said, "done\n");
    assert_true(alarms > 0);
    free(said);
    // Of very much, the beginning is kept.
    assert_int_equal(shell("yes | head -c 3000000; exit 5", 600, &said), 5);
    assert_true(strlen(said) > 1 << 19 && strlen(said) < 2 << 20);
    free(said);
}

// A file that is open gets the bytes behind those that it has.
static void descriptors(void **state) {
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    fputs("ab", file);
    fflush(file);
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i < 2; i++) {
        char path[64], target[GRT_WHOLE_FILE_PATH];
        snprintf(path, sizeof path, "%s%d", folders[i], fileno(file));
        assert_false(grt_whole_file_makes(path, target));
        assert_true(grt_whole_file_save(path, i ? "ef" : "cd", 2));
    }
    char text[16] = "";
    assert_int_equal(pread(fileno(file), text, sizeof text - 1, 0), 6);
    assert_string_equal(text, "abcdef");
    fclose(file);
}

// A file that is replaced keeps who may read it; a new one has what the process gives.
static void permissions(void **state) {
    (void)state;
    char folder[] = "/tmp/gpurt-outside-XXXXXX", path[64];
    static const mode_t modes[] = {0600, 0640, 0664, 0755};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    mode_t before = umask(027);
    struct stat info = {0};
    assert_true(grt_whole_file_save(path, "new", 3) && stat(path, &info) == 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_true(grt_whole_file_save(path, "next", 4) && stat(path, &info) == 0);
        assert_int_equal(info.st_mode & 0777, modes[i]);
    }
    umask(before);
    assert_true(unlink(path) == 0 && rmdir(folder) == 0);
}

static void log_of_nobody(void **state) {
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    assert_true(before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    grt_log_set(NULL, NULL, GRT_LOG_DEBUG);
    grt_log(GRT_LOG_WARN, "words %d", 7);
    grt_log(GRT_LOG_INFO, "nobody hears this");
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    test_log_install();
    char text[128] = "";
    assert_true(pread(fileno(file), text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, "gpurt: warning: words 7\n");
    fclose(file);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(programs),
    TEST_CASE(descriptors),
    TEST_CASE(permissions),
    TEST_CASE(log_of_nobody),
};
TEST_SUITE(outside, false, cases);
