// SPDX-License-Identifier: Apache-2.0
// How trials of a sweep are started: devices of slots, the command of a trial word by word, the GPU
// that Slurm gave, and jobs. The trainer and Slurm's programs are scripts that write down what they
// are called with.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "sweep/sweep.h"

static char root[64], dir[96];
static struct sweep *sweep;

static void silent(void *context, enum grt_log_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, 0755);
}

// What a script has written, without that from then on; "": nothing.
static const char *taken(const char *name) {
    static char text[4096];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file) {
        fclose(file);
        unlink(path);
    }
    return text;
}

// A script that writes down its words, one a line, in NAME.words, and then does more.
static void program(const char *name, const char *more) {
    char text[512], path[64];
    snprintf(text, sizeof text, "#!/bin/sh\nprintf '%%s\\n' \"$@\" >>'%s/%s.words'\n%s\n", root,
             name, more);
    snprintf(path, sizeof path, "bin/%s", name);
    put(path, text);
}

static int begin(void **state) {
    char path[4096];
    static char before[2048];
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpurt_test_runs.XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(dir, sizeof dir, "%s/d", root);
    snprintf(path, sizeof path, "%s/bin", root);
    assert_int_equal(mkdir(path, 0777), 0);
    if (!before[0]) {
        snprintf(before, sizeof before, "%s", getenv("PATH"));
    }
    snprintf(path, sizeof path, "%s/bin:%s", root, before);
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/bin/trainer", root);
    setenv("GPURT_SWEEP_COMMAND", path, 1);
    unsetenv("SLURM_JOB_GPUS");
    unsetenv("GPURT_DEVICE");
    put("s.yaml", "lr: [1, 2]\n");
    program("trainer", "exit 75");
    sweep = calloc(1, sizeof *sweep);
    assert_non_null(sweep);
    return 0;
}

static int end(void **state) {
    char command[128];
    (void)state;
    sweep_close(sweep);
    free(sweep);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void make(struct sweep_new desc) {
    static char yaml[96];
    snprintf(yaml, sizeof yaml, "%s/s.yaml", root);
    desc.yaml = yaml;
    desc.dir = dir;
    desc.executor = desc.executor ? desc.executor : &sweep_local;
    assert_int_equal(sweep_plan_new(sweep, &desc), COMMAND_OK);
    assert_int_equal(sweep_folder_new(sweep, &desc), COMMAND_OK);
    assert_true(sweep_self(sweep));
    assert_true(sweep_trial_prepare(sweep, &sweep->trials[0]));
}
#define MAKE(...) make((struct sweep_new){__VA_ARGS__})

static void again(void **state) {
    end(state);
    begin(state);
}

// ---- slots ----

// More slots than devices share them in turns; what the folder keeps is the same.
static void slots(void **state) {
    static const struct {
        const char *devices;
        uint32_t slots, count;
        const char *are[5];
    } rows[] = {{NULL, 0, 1, {""}},
                {NULL, 2, 2, {"", ""}},
                {"a,b,c", 0, 3, {"a", "b", "c"}},
                {"a,b,c", 2, 2, {"a", "b"}},
                {"a,b,c", 5, 5, {"a", "b", "c", "a", "b"}},
                {"a", 3, 3, {"a", "a", "a"}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        again(state);
        MAKE(.devices = rows[i].devices, .slots = rows[i].slots);
        for (int kept = 0; kept < 2; kept++) {
            assert_int_equal(sweep->slots, rows[i].count);
            for (uint32_t k = 0; k < rows[i].count; k++) {
                assert_string_equal(sweep->devices[k], rows[i].are[k]);
            }
            if (!kept) {
                sweep_close(sweep);
                memset(sweep, 0, sizeof *sweep);
                assert_int_equal(sweep_folder_open(sweep, dir, true), COMMAND_OK);
            }
        }
    }
}

// ---- the command of a trial ----

// Runs trial 0 on this machine until it has ended.
static void run(void) {
    struct sweep_trial *t = &sweep->trials[0];
    assert_true(sweep_local.start(sweep, t));
    t->state = SWEEP_RUNNING;
    for (int i = 0; i < 3000 && t->state == SWEEP_RUNNING; i++) {
        usleep(10000);
        sweep_local.look(sweep);
    }
    assert_int_equal(t->state, SWEEP_WAITING);
}

static void called_with(const char *format, ...) GRT_PRINTF(1, 2);
static void called_with(const char *format, ...) {
    char want[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(want, sizeof want, format, list);
    va_end(list);
    assert_string_equal(taken("trainer.words"), want);
}

#define FIRST "train\n%s\n--config\n%s/0000/config.yaml\n--log\n%s/0000/log.jsonl\n"

static void words_of_a_trial(void **state) {
    (void)state;
    MAKE(.devices = "ref:0");
    run();
    called_with(FIRST "checkpoint_dir=%s/0000/checkpoints\n--resume\n--device\nref:0\n",
                "supervised", dir, dir, dir);
    // The config's own device is not said again.
    again(state);
    const char *words[] = {"tensorboard=board", "device=ref:0"};
    MAKE(.words = words, .word_count = 2);
    run();
    called_with(FIRST "checkpoint_dir=%s/0000/checkpoints\n--resume\n--tensorboard\n%s/0000/"
                      "tensorboard\n",
                "supervised", dir, dir, dir, dir);
    assert_string_equal(sweep->trials[0].device, "ref:0");
    // What is kept in one file is gone on with where it is there.
    again(state);
    put("s.yaml", "kind: es\nenv: cartpole\nseed: [1, 2]\n");
    MAKE(.slots = 1);
    run();
    called_with(FIRST "--checkpoint\n%s/0000/checkpoint.h5\n", "es", dir, dir, dir);
    put("d/0000/checkpoint.h5", "");
    run();
    called_with(FIRST "--resume\n%s/0000/checkpoint.h5\n", "es", dir, dir, dir);
}

// The GPU that Slurm gave, where neither settings nor the environment name one and it is there.
static void gpus_of_slurm(void **state) {
    static const struct {
        const char *gpus, *other;
        const char *words;
    } rows[] = {{NULL, NULL, ""},       {"", NULL, ""},         {"0", NULL, "ref:0"},
                {"0,1", NULL, "ref:0"}, {"0-3", NULL, "ref:0"}, {"7", NULL, ""},
                {"0", "vulkan:0", ""}};
    const char *words[] = {"backend=ref"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        again(state);
        MAKE(.words = words, .word_count = 1);
        if (rows[i].gpus) {
            setenv("SLURM_JOB_GPUS", rows[i].gpus, 1);
        }
        if (rows[i].other) {
            setenv("GPURT_DEVICE", rows[i].other, 1);
        }
        assert_int_equal(sweep_trial_run(sweep, 0), COMMAND_RESUMABLE);
        called_with(FIRST "checkpoint_dir=%s/0000/checkpoints\n--resume\n%s%s%s", "supervised", dir,
                    dir, dir, *rows[i].words ? "--device\n" : "", rows[i].words,
                    *rows[i].words ? "\n" : "");
    }
}

// A queue's run ends as its trainer did, and its file says so; one that is to stop before it began
// does not begin, and the queue does not run it again.
static void ends_of_a_run(void **state) {
    static const struct {
        const char *trainer;
        bool stop;
        int code, kept;
    } rows[] = {{"exit 0", false, 0, 0},
                {"exit 5", false, 5, 5},
                {"exit 75", false, 75, 75},
                {"exit 75", true, COMMAND_OK, COMMAND_RESUMABLE},
                {"kill -9 $$", false, COMMAND_INTERNAL, -9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        again(state);
        program("trainer", rows[i].trainer);
        MAKE(.slots = 1);
        if (rows[i].stop) {
            assert_true(sweep_stop_write(sweep, &sweep->trials[0]));
        }
        assert_int_equal(sweep_trial_run(sweep, 0), rows[i].code);
        struct sweep_end end = sweep_exit_read(sweep, &sweep->trials[0]);
        assert_true(end.known);
        assert_int_equal(end.code, rows[i].kept);
        assert_int_equal(taken("trainer.words")[0] == '\0', rows[i].stop);
    }
}

// ---- jobs ----

static void make_jobs(const char *answer) {
    static const char *extra[] = {"--gres=gpu:1", "a'b"};
    char more[256];
    program("sinfo", "");
    snprintf(more, sizeof more, "echo '%s'", answer);
    program("sbatch", more);
    snprintf(more, sizeof more, "cat '%s/queue'", root);
    program("squeue", more);
    program("scancel", "");
    program("scontrol", "");
    MAKE(.executor = &sweep_slurm, .extra = extra, .extra_count = 2);
}

static void jobs_begin(void **state) {
    char want[1024];
    struct sweep_trial *t;
    make_jobs("17;cluster");
    t = &sweep->trials[0];
    assert_int_equal(sweep_slurm.room(sweep), 1000);
    assert_true(sweep_slurm.start(sweep, t));
    assert_int_equal(t->job, 17);
    assert_string_equal(t->device, "job 17");
    snprintf(want, sizeof want,
             "--parsable\n--job-name\nd-0000\n--output\n%s/0000/job.txt\n--open-mode=append\n"
             "--requeue\n--gres=gpu:1\na'b\n--wrap\nexec '%s/bin/trainer' sweep trial '%s' 0\n",
             dir, root, dir);
    assert_string_equal(taken("sbatch.words"), want);
    sweep_slurm.stop(sweep, t);
    assert_string_equal(taken("scancel.words"), "--state=PENDING\n17\n");
    snprintf(want, sizeof want, "%s/0000/stop", dir);
    assert_int_equal(access(want, F_OK), 0);
    // The next run does not find the stop of the one before.
    assert_true(sweep_slurm.start(sweep, t));
    assert_int_equal(access(want, F_OK), -1);
    t->state = SWEEP_RUNNING;
    sweep->slots = 1;
    assert_int_equal(sweep_slurm.room(sweep), 0);
    sweep->slots = 3;
    assert_int_equal(sweep_slurm.room(sweep), 2);
    again(state);
    make_jobs("no number");
    assert_false(sweep_slurm.start(sweep, &sweep->trials[0]));
    program("sbatch", "echo it is closed; exit 3");
    assert_false(sweep_slurm.start(sweep, &sweep->trials[0]));
}

// A job is in the queue under its own number only. Without an answer nothing is concluded.
static void jobs_in_the_queue(void **state) {
    static const struct {
        const char *queue, *exit;
        bool there;
        enum sweep_state is;
        uint32_t crashes;
        const char *device;
        bool begun;  // told to begin at once
    } rows[] = {
        {"17|RUNNING|None|n3\n", NULL, true, SWEEP_RUNNING, 0, "n3", false},
        {"170|RUNNING|None|n0\n17|PENDING|Priority|\n", NULL, true, SWEEP_RUNNING, 0, "x", false},
        {"17|PENDING|BeginTime|\n", NULL, true, SWEEP_RUNNING, 0, "x", true},
        {"170|RUNNING|None|n0\n1|RUNNING|None|n0\n", NULL, false, SWEEP_WAITING, 1, "x", false},
        {"", "{\"code\": 75}", false, SWEEP_WAITING, 0, "x", false},
        {"", NULL, false, SWEEP_WAITING, 1, "x", false},
        {NULL, NULL, true, SWEEP_RUNNING, 0, "x", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        again(state);
        make_jobs("17");
        sweep->plan.retries = 2;
        struct sweep_trial *t = &sweep->trials[0];
        t->job = 17;
        t->state = SWEEP_RUNNING;
        snprintf(t->device, sizeof t->device, "x");
        if (rows[i].queue) {
            put("queue", rows[i].queue);
        }
        if (rows[i].exit) {
            put("d/0000/exit.json", rows[i].exit);
        }
        assert_int_equal(sweep_slurm.adopt(sweep, t), rows[i].there);
        sweep_slurm.look(sweep);
        assert_int_equal(t->state, rows[i].is);
        assert_int_equal(t->crashes, rows[i].crashes);
        assert_string_equal(t->device, rows[i].device);
        assert_string_equal(taken("scontrol.words"),
                            rows[i].begun ? "update\nJobId=17\nStartTime=now\n" : "");
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(slots),         CASE(words_of_a_trial), CASE(gpus_of_slurm),
        CASE(ends_of_a_run), CASE(jobs_begin),       CASE(jobs_in_the_queue),
    };
    grt_log_set(silent, NULL, GRT_LOG_ERROR);
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
