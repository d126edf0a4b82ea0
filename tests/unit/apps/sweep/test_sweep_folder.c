// SPDX-License-Identifier: Apache-2.0
// The folder of a sweep, its slots, and machines that ssh reaches by GNU parallel, which is a
// script here that writes down what it is called with.
#include "sweep_folder.h"

#include <signal.h>

#include "gpurt/runlog.h"

// ---- names, slots ----

static void names(void **state) {
    static const struct {
        const char *yaml, *dir;
    } rows[] = {{"s.yaml", "s"},
                {"in/two.yaml", "two"},
                {"in/a.b.yml", "a.b"},
                {"in/plain", "plain.sweep"},
                {"in/.hidden", ".sweep"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[128];
        again(state);
        assert_int_equal(mkdir("in", 0777), 0);
        put(rows[i].yaml, "lr: [1, 2]\n");
        assert_int_equal(MADE(.yaml = rows[i].yaml), COMMAND_OK);
        snprintf(want, sizeof want, "%s/%s", root, rows[i].dir);
        assert_string_equal(sweep->dir, want);
        snprintf(want, sizeof want, "%s/sweep.json", rows[i].dir);
        assert_true(there(want));
    }
}

static void devices(void **state) {
    static const struct {
        const char *text;
        uint32_t count;  // 0: refused
        const char *last;
    } rows[] = {{"a", 1, "a"},
                {"a,b:1,c", 3, "c"},
                {"", 0, ""},
                {",a", 0, ""},
                {"a,,b", 0, ""},
                {"a,", 0, ""},
                {"x,012345678901234567890123456789012345678901234567890123456789abc", 2,
                 "012345678901234567890123456789012345678901234567890123456789abc"},
                {"x,012345678901234567890123456789012345678901234567890123456789abcd", 0, ""}};
    char many[256] = "v";
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(sweep_devices(sweep, rows[i].text), rows[i].count > 0);
        if (rows[i].count) {
            assert_int_equal(sweep->slots, rows[i].count);
            assert_string_equal(sweep->devices[rows[i].count - 1], rows[i].last);
        } else {
            assert_string_equal(grt_last_error(),
                                "devices: from 1 to 64 names with commas between");
        }
    }
    for (int i = 1; i < 64; i++) {
        strcat(many, ",v");
    }
    assert_true(sweep_devices(sweep, many));
    assert_int_equal(sweep->slots, 64);
    assert_false(sweep_devices(sweep, strcat(many, ",v")));
    assert_string_equal(sweep_executor_named("slurm")->name, "slurm");
    assert_true(sweep_executor_named("local") == &sweep_local);
    assert_true(sweep_executor_named("ssh") == &sweep_ssh);
    assert_null(sweep_executor_named("SSH"));
}

// Slots of the file, which the command line's words replace; a queue has none but a number.
static void slots(void **state) {
    put("s.yaml", "lr: [1, 2]\ndevice: [p, q]\n");
    assert_int_equal(MADE(.dir = dir), COMMAND_OK);
    assert_int_equal(sweep->slots, 2);
    assert_string_equal(sweep->devices[1], "q");
    again(state);
    put("s.yaml", "lr: [1, 2]\ndevice: [p, q]\n");
    assert_int_equal(MADE(.dir = dir, .devices = "x"), COMMAND_OK);
    assert_int_equal(sweep->slots, 1);
    assert_string_equal(sweep->devices[0], "x");
    again(state);
    static const char *login[] = {"--sshlogin", "1/a"};
    put("s.yaml", "lr: [1, 2]\ndevice: [p, q]\n");
    assert_int_equal(
        MADE(.dir = dir, .executor = &sweep_ssh, .slots = 7, .extra = login, .extra_count = 2),
        COMMAND_OK);
    assert_int_equal(sweep->slots, 7);
    assert_int_equal(opened(dir, false), COMMAND_OK);
    assert_int_equal(sweep->slots, 7);
    assert_true(sweep->executor == &sweep_ssh);
    assert_int_equal(sweep->extra_count, 2);
    assert_string_equal(sweep->extra[1], "1/a");
    again(state);
    assert_int_equal(MADE(.dir = dir, .executor = &sweep_slurm, .devices = "0"), COMMAND_CONFIG);
    assert_string_equal(grt_last_error(),
                        "--devices are slots of this machine; slurm chooses by itself");
    assert_false(there("d"));
}

// Trials run in the first slot that is free, and say on which device.
static void free_slots(void **state) {
    program("trainer", "exec sleep 9");
    assert_int_equal(MADE(.dir = dir, .devices = "a,b"), COMMAND_OK);
    assert_true(sweep_self(sweep));
    for (uint32_t i = 0; i < 2; i++) {
        struct sweep_trial *t = &sweep->trials[i];
        assert_int_equal(sweep_local.room(sweep), 2 - i);
        assert_true(sweep_trial_prepare(sweep, t));
        assert_false(sweep_trial_alive(sweep, t));
        assert_true(sweep_local.start(sweep, t));
        assert_true(sweep_trial_alive(sweep, t));
        assert_int_equal(t->slot, i);
        assert_string_equal(t->device, i ? "b" : "a");
        t->state = SWEEP_RUNNING;
    }
    assert_int_equal(sweep_local.room(sweep), 0);
    pid_t child = sweep->trials[1].pid;
    assert_true(sweep_local.adopt(sweep, &sweep->trials[1]));
    assert_int_equal(sweep->trials[1].pid, 0);   // no child of the process that finds it
    sweep_local.stop(sweep, &sweep->trials[1]);  // nobody to ask
    sweep->trials[1].pid = child;
    assert_int_equal(sweep->on[1]->number, 1);
    sweep_local.stop(sweep, &sweep->trials[0]);
    for (int i = 0; i < 3000 && sweep->trials[0].state == SWEEP_RUNNING; i++) {
        usleep(1000);
        sweep_local.look(sweep);
    }
    assert_null(sweep->on[0]);
    assert_int_equal(sweep->trials[0].crashes, 1);
    assert_non_null(strstr(sweep->trials[0].why, "ended by signal 15"));
    assert_int_equal(sweep_local.room(sweep), 1);
    sweep_local.stop(sweep, &sweep->trials[1]);
    for (int i = 0; i < 3000 && sweep->trials[1].state == SWEEP_RUNNING; i++) {
        usleep(1000);
        sweep_local.look(sweep);
    }
    assert_int_equal(sweep_local.room(sweep), 2);
    (void)state;
}

// A run of a queue that is asked to stop: by a signal it ends as its trainer does, by the file the
// queue is not to run it again.
static void asked_while_it_runs(void **state) {
    (void)state;
    talk_init();
    for (int by_file = 0; by_file < 2; by_file++) {
        char more[256];
        again(state);
        snprintf(more, sizeof more, "trap 'exit 75' TERM\n%s%s%s\nwhile :; do sleep 0.01; done",
                 by_file ? ": >" : "kill -TERM $PPID", by_file ? dir : "",
                 by_file ? "/0000/stop" : "");
        program("trainer", more);
        assert_int_equal(MADE(.dir = dir), COMMAND_OK);
        talk_set_level(-1);
        grt_log_set(silent, NULL, GRT_LOG_ERROR);
        assert_int_equal(sweep_trial_run(sweep, 0), by_file ? COMMAND_OK : COMMAND_RESUMABLE);
        struct sweep_end is = sweep_exit_read(sweep, &sweep->trials[0]);
        assert_true(is.known && is.code == COMMAND_RESUMABLE);
        assert_false(talk_stopped());  // it was obeyed
    }
}

// ---- the folder ----

static void about(void **state) {
    static const char *extra[] = {"-S", "a b"};
    static const char text[] = "lr: [1, 2]\n";
    char whole[128];
    (void)state;
    assert_int_equal(MADE(.dir = "d", .executor = &sweep_ssh, .extra = extra, .extra_count = 2),
                     COMMAND_OK);
    json_t *json = json_loads(read_back("d/sweep.json"), 0, NULL);
    snprintf(whole, sizeof whole, "%s/s.yaml", root);
    static const struct {
        const char *key, *is;
    } rows[] = {{"schema", "gpurt.sweep.folder/1"},
                {"gpurt", GPURT_VERSION},
                {"yaml", NULL},
                {"folder", root},
                {"executor", "ssh"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(json_string_value(json_object_get(json, rows[i].key)),
                            rows[i].is ? rows[i].is : whole);
    }
    assert_true(json_integer_value(json_object_get(json, "crc32c")) ==
                (json_int_t)grt_crc32c(text, strlen(text), 0));
    assert_int_equal(json_array_size(json_object_get(json, "extra")), 2);
    json_decref(json);
    assert_string_equal(read_back("d/sweep.yaml"), text);
    assert_non_null(strstr(read_back("d/config.yaml"), "# what all trials have in common\n"));
}

// A sweep.json that is not one, and one of another place.
static void opening(void **state) {
    static const struct {
        const char *from, *to;  // a word of sweep.json, and what stands there instead
        int code;
        const char *said;
    } rows[] = {
        {"gpurt.sweep.folder/1", "gpurt.sweep.folder/2", COMMAND_NO_INPUT, "is no folder of a "},
        {"\"local\"", "\"cloud\"", COMMAND_NO_INPUT, "is no folder of a sweep"},
        {"\"executor\"", "\"executer\"", COMMAND_NO_INPUT, "is no folder of a sweep"},
        {"\"folder\": \"/", "\"folder\": \"/nowhere/", COMMAND_NO_INPUT,
         "where the sweep was begun, is not there"},
        {"\"folder\":", "\"folders\":", COMMAND_NO_INPUT, "where the sweep was begun"},
        {"\"crc32c\": ", "\"crc32c\": 1", COMMAND_CONFIG,
         "was changed: its trials would be others"},
        {"\"slots\": 1", "\"slots\": 100", COMMAND_OK, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        again(state);
        assert_int_equal(MADE(.dir = "d"), COMMAND_OK);
        char text[2048];
        const char *all = read_back("d/sweep.json"), *at = strstr(all, rows[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - all), all, rows[i].to,
                 at + strlen(rows[i].from));
        put("d/sweep.json", text);
        assert_int_equal(opened("d", false), rows[i].code);
        if (rows[i].said) {
            assert_non_null(strstr(grt_last_error(), rows[i].said));
        } else {
            assert_int_equal(sweep->slots, 64);
        }
    }
    assert_int_equal(opened("nowhere", false), COMMAND_NO_INPUT);
    assert_string_equal(caught, "gpurt: cannot read nowhere: No such file or directory\n");
}

// What trials have in common is kept, also where the config it is from is gone; the file that the
// sweep was made from may be gone, but not another one.
static void going_on(void **state) {
    const char *words[] = {"epochs=7"};
    (void)state;
    put("base.yaml", "batch_size: 33\n");
    put("s.yaml", "config: base.yaml\nlr: [1, 2]\n");
    assert_int_equal(MADE(.dir = "d", .words = words, .word_count = 1, .data = "x.h5"), COMMAND_OK);
    assert_int_equal(sweep_unchanged(sweep), COMMAND_OK);
    assert_int_equal(opened("d", true), COMMAND_OK);
    assert_int_equal(sweep->plan.base.epochs, 7);
    assert_int_equal(sweep->plan.base.batch_size, 33);
    assert_string_equal(sweep->plan.base.data, "x.h5");
    static struct grt_config config;
    assert_true(sweep_settings(&sweep->plan, 1, &config));
    assert_int_equal(config.batch_size, 33);
    assert_true(config.learning_rate == 2);
    // One process at a time; who only looks needs no lock.
    struct sweep *other = calloc(1, sizeof *other);
    catch_begin();
    assert_int_equal(sweep_folder_open(other, "d", false), COMMAND_OK);
    sweep_close(other);
    memset(other, 0, sizeof *other);
    assert_int_equal(sweep_folder_open(other, "d", true), COMMAND_CANNOT_CREATE);
    catch_end();
    sweep_close(other);
    free(other);
    assert_non_null(strstr(grt_last_error(), "the sweep "));
    put("s.yaml", "config: base.yaml\nlr: [1, 3]\n");
    catch_begin();
    assert_int_equal(sweep_unchanged(sweep), COMMAND_CONFIG);
    catch_end();
    assert_non_null(strstr(caught, "/s.yaml has changed since the sweep began: its trials would be "
                                   "others; --dir DIR begins another sweep, and "));
    assert_int_equal(unlink("s.yaml"), 0);
    assert_int_equal(sweep_unchanged(sweep), COMMAND_OK);
}

static void not_made(void **state) {
    static const struct {
        const char *yaml;
        const char *word, *data;
        int code;
        const char *said;  // of the last error
    } rows[] = {
        {"lr: [1]\n", "lr=3", NULL, COMMAND_CONFIG, "lr=3: s.yaml:1:1 has lr already, as a"},
        {"lr: [1]\n", "learning_rate=3", NULL, COMMAND_CONFIG, "has lr already, as a parameter"},
        {"data: [a, b]\n", NULL, "x.h5", COMMAND_CONFIG, "data: s.yaml:1:1 has data already"},
        {"lr: [1]\n", "epoch=3", NULL, COMMAND_CONFIG, "epoch"},
        {"lr: [1]\nhuber_delta: [1, 2]\nloss: mse\n", NULL, NULL, COMMAND_CONFIG, "s.yaml:2:1: "},
        {"lr: [1]\n", "epochs=3", "x.h5", COMMAND_OK, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        again(state);
        put("s.yaml", rows[i].yaml);
        const char *words[] = {rows[i].word};
        assert_int_equal(MADE(.dir = "d", .words = words, .word_count = rows[i].word != NULL,
                              .data = rows[i].data),
                         rows[i].code);
        assert_int_equal(there("d"), rows[i].code == COMMAND_OK);
        if (rows[i].said) {
            assert_non_null(strstr(grt_last_error(), rows[i].said));
        }
    }
    again(state);
    FILE *file = fopen("s.yaml", "w");
    fwrite("lr: [1]\n\0x", 1, 10, file);
    fclose(file);
    assert_int_equal(MADE(.dir = "d"), COMMAND_CONFIG);
    assert_string_equal(grt_last_error(), "s.yaml: a byte 0 that is no text");
    put("s.yaml", "lr: [1]\n");
    put("file", "");
    assert_int_equal(MADE(.dir = "file/d"), COMMAND_CANNOT_CREATE);
    assert_string_equal(caught, "gpurt: cannot create file/d: Not a directory\n");
}

// A folder of other files stays as it is; what a sweep that was killed left before its sweep.json
// does not stand in the way.
static void folders_that_are_there(void **state) {
    static const struct {
        const char *files[4];
        int code;
        const char *said;
    } rows[] = {
        {{NULL}, COMMAND_OK, NULL},
        {{"sweep.lock"}, COMMAND_OK, NULL},
        {{"sweep.lock", "sweep.yaml", "config.yaml", "sweep.json.7.tmp"}, COMMAND_OK, NULL},
        {{"sweep.lock", "sweep.yaml.tmp2"}, COMMAND_CANNOT_CREATE, "d is not an empty folder: "},
        {{"sweep.lock", "0000"}, COMMAND_CANNOT_CREATE, "d is not an empty folder: --dir names"},
        {{"sweep.yaml"}, COMMAND_CANNOT_CREATE, "d is not an empty folder: --dir names another"},
        {{"sweep.lock", "sweep.json"},
         COMMAND_CANNOT_CREATE,
         "there is a sweep in d already: `gpurt sweep resume d` goes on with it, --dir names "
         "another folder\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        again(state);
        assert_int_equal(mkdir(dir, 0777), 0);
        for (int k = 0; k < 4 && rows[i].files[k]; k++) {
            char name[64];
            snprintf(name, sizeof name, "d/%s", rows[i].files[k]);
            put(name, "kept");
        }
        assert_int_equal(MADE(.dir = "d"), rows[i].code);
        if (rows[i].said) {
            assert_non_null(strstr(caught, rows[i].said));
        }
        for (int k = 0; k < 4 && rows[i].files[k] && rows[i].code; k++) {
            char name[64];
            snprintf(name, sizeof name, "d/%s", rows[i].files[k]);
            assert_string_equal(read_back(name), "kept");
        }
        assert_false(there("d/sweep.json.7.tmp"));
    }
}

// ---- machines that ssh reaches ----

static void machines(void **state) {
    static const struct {
        const char *word;
        bool good;
    } rows[] = {{"--sshlogin", true},
                {"--sshlogin=2/a", true},
                {"--sshloginfile", true},
                {"--slf", true},
                {"-S", true},
                {"-Sa", true},
                {"--ssh", false},
                {"-s", false},
                {"a", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sweep->extra[0] = "--progress";
        sweep->extra[1] = rows[i].word;
        sweep->extra_count = 2;
        assert_int_equal(sweep_ssh.open(sweep), rows[i].good);
    }
    assert_string_equal(grt_last_error(),
                        "--executor ssh wants to know the machines, as GNU parallel does: -- "
                        "--sshlogin 2/first,2/second");
}

static void make_ssh(const char *more) {
    static const char *extra[] = {"-S", "2/a b"};
    put("s.yaml", "lr: [1, 2, 3]\n");
    program("parallel", more);
    assert_int_equal(MADE(.dir = dir, .executor = &sweep_ssh, .extra = extra, .extra_count = 2),
                     COMMAND_OK);
    assert_true(sweep_self(sweep));
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(sweep_trial_prepare(sweep, &sweep->trials[i]));
    }
}

static void begin_ssh(uint32_t number) {
    struct sweep_trial *t = &sweep->trials[number];
    assert_true(sweep_ssh.start(sweep, t));
    assert_string_equal(t->device, "ssh");
    t->state = SWEEP_RUNNING;
}

static void look_ssh(void) {
    for (int i = 0; i < 3000 && (sweep->parallel > 0 || i < 1); i++) {
        sweep_ssh.look(sweep);
        usleep(1000);
    }
}

// One process of it for all that wait: its words, what it may begin in the meantime, and those that
// it ended without.
static void by_parallel(void **state) {
    char want[1024], more[256];
    (void)state;
    snprintf(more, sizeof more, "echo '{\"code\": 75}' >'%s/d/0002/exit.json'", root);
    make_ssh(more);
    assert_int_equal(sweep_ssh.room(sweep), 3);
    sweep_ssh.look(sweep);  // nothing runs: nothing is started
    assert_int_equal(sweep->parallel, 0);
    put("d/0000/exit.json", "{\"code\": 3}");
    put("d/0000/stop", "");
    begin_ssh(0);
    assert_false(there("d/0000/exit.json") || there("d/0000/stop"));
    begin_ssh(2);
    sweep_ssh.look(sweep);
    assert_true(sweep->parallel > 0);
    assert_int_equal(sweep_ssh.room(sweep), 0);
    look_ssh();
    snprintf(
        want, sizeof want,
        "--will-cite\n--quote\n--workdir\n%s\n-S\n2/a b\n%s/bin/trainer\nsweep\ntrial\n%s\n{}\n"
        ":::\n0\n2\n",
        root, root, dir);
    assert_string_equal(read_back("parallel.words"), want);
    assert_int_equal(sweep->parallel, 0);
    assert_int_equal(sweep->trials[0].state, SWEEP_WAITING);
    assert_int_equal(sweep->trials[0].crashes, 1);
    snprintf(want, sizeof want, "parallel ended without it; see %s/parallel.txt", dir);
    assert_string_equal(sweep->trials[0].why, want);
    assert_int_equal(sweep->trials[2].state, SWEEP_WAITING);
    assert_int_equal(sweep->trials[2].crashes, 0);
    assert_int_equal(sweep->trials[1].crashes, 0);
    assert_true(there("d/parallel.txt"));
    assert_int_equal(sweep_ssh.room(sweep), 3);
    assert_false(sweep_ssh.adopt(sweep, &sweep->trials[0]));
}

static volatile sig_atomic_t hangups;
static void count_hangup(int number) {
    (void)number;
    hangups++;
}

// Asked to stop, a trial finds a file; parallel is told to begin no more only where all are to end.
static void stopped_ssh(void **state) {
    (void)state;
    make_ssh("trap 'echo hup >>hup; exit 0' HUP\necho ready >ready\nwhile :; do sleep 0.01; done");
    begin_ssh(0);
    begin_ssh(1);
    sweep_ssh.look(sweep);
    for (int i = 0; i < 3000 && !there("ready"); i++) {
        usleep(1000);
    }
    sweep->plan.halving = (struct sweep_halving){.count = 1, .rungs = {3}};
    sweep->trials[0].rungs = 1;
    sweep->trials[0].asked = SWEEP_ASK_HALVE;
    // This process in its place: a signal to oneself has come when the call returns.
    pid_t parallel = sweep->parallel;
    signal(SIGHUP, count_hangup);
    sweep->parallel = getpid();
    sweep_ssh.stop(sweep, &sweep->trials[0]);
    assert_true(there("d/0000/stop"));
    assert_int_equal(hangups, 0);
    sweep->trials[1].asked = SWEEP_ASK_HALT;
    sweep_ssh.stop(sweep, &sweep->trials[1]);
    assert_int_equal(hangups, 1);
    signal(SIGHUP, SIG_DFL);
    sweep->parallel = parallel;
    sweep_ssh.stop(sweep, &sweep->trials[1]);
    look_ssh();
    assert_string_equal(read_back("hup"), "hup\n");
    assert_int_equal(sweep->trials[0].state, SWEEP_HALVED);
    assert_int_equal(sweep->trials[1].state, SWEEP_WAITING);
    assert_int_equal(sweep->trials[1].crashes, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(names),
        CASE(devices),
        CASE(slots),
        CASE(free_slots),
        CASE(asked_while_it_runs),
        CASE(about),
        CASE(opening),
        CASE(going_on),
        CASE(not_made),
        CASE(machines),
        CASE(by_parallel),
        CASE(stopped_ssh),
        CASE(folders_that_are_there),
    };
    grt_log_set(silent, NULL, GRT_LOG_ERROR);
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
