// SPDX-License-Identifier: Apache-2.0
// What running processes say of themselves: what is written is read, what the dead left is removed,
// and a folder or file that is not what it should be is left alone.
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/open_files.h"
#include "publish/metrics.h"
#include "publish/state.h"
#include "runtime_folder.h"

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/gpurt/%s", root, name);
    return path;
}

static bool is_there(const char *name) {
    struct stat info;
    return lstat(in_folder(name), &info) == 0;
}

// A file of the folder; with `lock` of a living process.
static int put(const char *name, const char *text, size_t size, bool lock) {
    char folder[STATE_PATH];
    assert_true(state_folder(folder));
    int fd = open(in_folder(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, text, size) == (ssize_t)size);
    if (lock) {
        assert_int_equal(flock(fd, LOCK_EX), 0);
        return fd;
    }
    close(fd);
    return -1;
}

static struct state some(double step) {
    struct state state;
    state_init(&state);
    snprintf(state.app, STATE_TEXT, "train supervised");
    snprintf(state.pci, STATE_TEXT, "0000:65:00.0");
    snprintf(state.score_of, STATE_TEXT, "loss");
    state.step = step;
    state.steps = 1e6;
    state.score = 0.125;
    return state;
}

static void there_and_back(void **context) {
    (void)context;
    struct state_file file = STATE_FILE;
    struct state states[STATE_MOST], state = some(3);
    uint32_t before = open_files();
    assert_true(state_publish(&file, &state));
    struct stat info;
    assert_int_equal(stat(file.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    uint32_t published = open_files();
    // Replaced while it is read: there is always one, and it is whole. None is left open.
    for (int i = 4; i < 200; i++) {
        state = some(i);
        assert_true(state_publish(&file, &state));
        assert_int_equal(state_read_all(states), 1);
        assert_true(states[0].step == i && states[0].pid == (double)getpid());
    }
    assert_int_equal(open_files(), published);
    assert_string_equal(states[0].app, "train supervised");
    assert_string_equal(states[0].score_of, "loss");
    assert_string_equal(states[0].device, "");
    assert_true(states[0].steps == 1e6 && states[0].score == 0.125 && isnan(states[0].left));
    state_withdraw(&file);
    assert_int_equal(open_files(), before);
    assert_int_equal(state_read_all(states), 0);
    char name[32];
    snprintf(name, sizeof name, "%d.json", (int)getpid());
    assert_false(is_there(name));
}

// Another process publishes while this one reads; it is killed, and another reader cleans up.
static void killed(void **context) {
    (void)context;
    struct state states[STATE_MOST];
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct state_file file = STATE_FILE;
        for (double i = 0;; i++) {
            struct state state = some(i);
            if (!state_publish(&file, &state) || (i == 0 && write(pipes[1], "x", 1) != 1)) {
                _exit(1);
            }
        }
    }
    char byte = 0;
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    // A reader that takes it for dead removes the file, and so misses it. Some file systems may
    // leave a name out that is renamed while the folder is read: rarely.
    int missed = 0, twice = 0;
    for (int i = 0; i < 2000; i++) {
        size_t count = state_read_all(states);
        missed += count == 0;
        twice += count > 1;
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_in_range(missed, 0, 20);
    assert_int_equal(twice, 0);
    char name[32];
    snprintf(name, sizeof name, "%d.json", (int)child);
    assert_true(is_there(name));
    assert_int_equal(state_read_all(states), 0);
    assert_false(is_there(name));
    // What was killed before its file had a name is removed after a while.
    put(".77.json", "{", 1, false);
    assert_int_equal(state_read_all(states), 0);
    assert_true(is_there(".77.json"));
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, in_folder(".77.json"), times, 0), 0);
    assert_int_equal(state_read_all(states), 0);
    assert_false(is_there(".77.json"));
    close(pipes[0]);
    close(pipes[1]);
}

static void hostile_files(void **context) {
    (void)context;
    struct state states[STATE_MOST];
    static const struct {
        const char *text;
        bool shown;
    } files[] = {
        {"", false},
        {"{", false},
        {"[1, 2]", false},
        {"{\"step\": 1, \"step\": 2}", false},
        {"{\"step\": 1e999}", false},
        {"{\"app\": \"\\u0000\"}", false},
        {"{\"step\": \"many\", \"app\": 7, \"pid\": 1}", true},
        {"{\"app\": \"\\u001b[2J\\u202e\", \"step\": -1e300, \"other\": {\"deep\": []}}", true},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int fd = put("424242.json", files[i].text, strlen(files[i].text), true);
        size_t count = state_read_all(states);
        if (count != files[i].shown) {
            fail_msg("%s: %zu", files[i].text, count);
        }
        if (count) {
            assert_true(states[0].pid == 424242);
            assert_true(isnan(states[0].step) || states[0].step == -1e300);
        }
        close(fd);
    }
    // Too large, too deep, a text that is too long.
    static char large[8192];
    memset(large, '[', sizeof large);
    int fd = put("1.json", large, sizeof large, true);
    int deep = put("2.json", large, 4000, true);
    memset(large, 'a', sizeof large);
    int length = snprintf(large, sizeof large, "{\"app\": \"%0*d\"}", 2000, 7);
    int wide = put("3.json", large, (size_t)length, true);
    assert_int_equal(state_read_all(states), 1);
    assert_int_equal(strlen(states[0].app), STATE_TEXT - 1);
    close(fd);
    close(deep);
    close(wide);
    assert_int_equal(state_read_all(states), 0);
}

// Links, pipes and folders are neither followed, waited for nor removed; nor are other names.
static void what_is_no_file(void **context) {
    (void)context;
    struct state states[STATE_MOST];
    char folder[STATE_PATH], secret[128];
    assert_true(state_folder(folder));
    snprintf(secret, sizeof secret, "%s/secret", root);
    FILE *file = fopen(secret, "w");
    fputs("{\"app\": \"secret\"}", file);
    fclose(file);
    assert_int_equal(symlink(secret, in_folder("11.json")), 0);
    assert_int_equal(mkfifo(in_folder("12.json"), 0600), 0);
    assert_int_equal(mkdir(in_folder("13.json"), 0700), 0);
    put("notes.json", "{}", 2, false);
    put("14.json.bak", "{}", 2, false);
    put("99999999999999999999.json", "{}", 2, false);
    assert_int_equal(state_read_all(states), 0);
    assert_true(is_there("11.json") && is_there("12.json") && is_there("13.json"));
    assert_true(is_there("notes.json") && is_there("14.json.bak"));
    assert_true(is_there("99999999999999999999.json"));
    assert_int_equal(access(secret, F_OK), 0);
    // A link in place of the file that is to be written is replaced, not followed.
    char name[32], temporary[48];
    snprintf(name, sizeof name, "%d.json", (int)getpid());
    snprintf(temporary, sizeof temporary, ".%s", name);
    assert_int_equal(symlink(secret, in_folder(name)), 0);
    assert_int_equal(symlink(secret, in_folder(temporary)), 0);
    struct state_file mine = STATE_FILE;
    struct state state = some(1);
    assert_true(state_publish(&mine, &state));
    struct stat info;
    assert_true(stat(secret, &info) == 0 && info.st_size == 17);
    assert_int_equal(state_read_all(states), 1);
    state_withdraw(&mine);
    assert_int_equal(access(secret, F_OK), 0);
}

// A folder that others can write, or that is a link, is not used.
static void hostile_folder(void **context) {
    (void)context;
    struct state states[STATE_MOST];
    struct state_file file = STATE_FILE;
    struct state state = some(1);
    char folder[STATE_PATH], elsewhere[128], long_path[600];
    assert_true(state_folder(folder));
    assert_int_equal(chmod(folder, 0770), 0);
    assert_false(state_publish(&file, &state));
    assert_int_equal(state_read_all(states), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_true(state_publish(&file, &state));
    state_withdraw(&file);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", root);
    assert_int_equal(rename(folder, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, folder), 0);
    assert_false(state_publish(&file, &state));
    assert_int_equal(state_read_all(states), 0);
    memset(long_path, 'x', sizeof long_path);
    long_path[0] = '/';
    long_path[599] = '\0';
    setenv("XDG_RUNTIME_DIR", long_path, 1);
    assert_false(state_publish(&file, &state));
    // Another user's folder, where this one can make such.
    if (geteuid() == 0) {
        unlink(folder);
        setenv("XDG_RUNTIME_DIR", root, 1);
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_true(chown(folder, 4242, 4242) != 0 || !state_publish(&file, &state));
    }
}

static void which_device(void **context) {
    (void)context;
    struct sensor_sample sample = {.count = 3};
    struct state state = some(1);
    sample.devices[0] =
        (struct sensor_device){.reader = "nvml", .name = "A", .pci = "0000:01:00.0"};
    sample.devices[1] =
        (struct sensor_device){.reader = "nvml", .name = "B", .pci = "0000:65:00.0"};
    sample.devices[2] = (struct sensor_device){.reader = "cpu", .name = "C"};
    assert_int_equal(state_device(&state, &sample), 1);
    state.pci[0] = '\0';
    assert_int_equal(state_device(&state, &sample), -1);
    snprintf(state.name, STATE_TEXT, "A");
    assert_int_equal(state_device(&state, &sample), 0);
    state.software = 1;
    assert_int_equal(state_device(&state, &sample), 2);
}

// ---- metrics ----

static void metrics(void **context) {
    (void)context;
    struct sensor_sample sample = {.count = 1};
    struct state state = some(7);
    char path[128], text[4096];
    sample.devices[0] = (struct sensor_device){.reader = "x", .name = "a \"b\" \\ \n", .pci = "p"};
    for (size_t i = 0; i < SENSOR_COUNT; i++) {
        sample.devices[0].values[i] = NAN;
    }
    sample.devices[0].values[SENSOR_POWER] = 9;
    sample.devices[0].values[SENSOR_ENERGY] = 12345.5;
    snprintf(path, sizeof path, "%s/metrics.prom", root);
    assert_true(metrics_write(path, &state, &sample, true));
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    // Behind the name and the number of the process.
    static const char *const lines[][2] = {
        {"# TYPE gpurt_step gauge\ngpurt_step", "app=\"train supervised\",device=\"\"} 7\n"},
        {"gpurt_running", "app=\"train supervised\",device=\"\"} 1\n"},
        {"gpurt_score", "app=\"train supervised\",device=\"\",of=\"loss\"} 0.125\n"},
        {"gpurt_device_power_watts",
         "name=\"a \\\"b\\\" \\\\ \\\\x0a\",pci=\"p\",reader=\"x\"} 9\n"},
        {"# TYPE gpurt_device_energy_joules_total counter\ngpurt_device_energy_joules_total",
         "name="},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[256];
        snprintf(line, sizeof line, "%s{pid=\"%ld\",%s", lines[i][0], (long)getpid(), lines[i][1]);
        if (!strstr(text, line)) {
            fail_msg("no %s in\n%s", line, text);
        }
    }
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "temperature"));
    assert_false(metrics_write("/nowhere/metrics", &state, &sample, true));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(there_and_back, begin, end),
        cmocka_unit_test_setup_teardown(killed, begin, end),
        cmocka_unit_test_setup_teardown(hostile_files, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_file, begin, end),
        cmocka_unit_test_setup_teardown(hostile_folder, begin, end),
        cmocka_unit_test_setup_teardown(which_device, begin, end),
        cmocka_unit_test_setup_teardown(metrics, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
