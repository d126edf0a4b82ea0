// SPDX-License-Identifier: Apache-2.0
// `gpurt bench scaling` with made-up trainings: every word of the command lines that it starts,
// what it reads from their logs, the verdict of its rows, what ends it, and the files it leaves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "bench/scaling/bench_scaling.h"
#include "cli/command.h"
#include "gpurt/device.h"

#define MOST_RUNS 8

// ---- in place of other programs ----

static struct {
    double together[9];  // seconds of a step of so many ranks
    double alone;        // of a rank's part
    double overlap;
    double slower[MOST_RUNS];  // of each run, how much; 0: as above
    int code;                  // of a training that fails, the fail_at-th; 0: none
    const char *last;          // what it says
    int fail_at, runs;
    int rows;     // of a log
    bool no_row;  // of the probe
    char lines[MOST_RUNS][8192];
    char folder[512];
} m;

// A row for four steps of all ranks, or for each of one alone.
static void write_log(const char *path, double seconds, int rows, bool together) {
    int rank = together ? 0 : atoi(strrchr(path, '-') + 1);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{\"event\":\"start\",\"parameters\":1000,\"batch\":32}\n");
    // The first pair still meets new graphs; of all together 40 % slower ones between, of those
    // alone a tenth slower and quicker in turns, when one is slow the next rank is quick.
    for (int i = 0; i < rows; i++) {
        double turn = together ? (i % 2 ? 1.4 : 1) : (i + rank) % 2 ? 1.1 : 0.9;
        double took = seconds * (i == 1 ? 9 : turn);
        fprintf(
            file,
            "{\"event\":\"train\",\"step\":%d,\"epoch\":1,\"seconds\":%d,\"samples_per_s\":%.9g}"
            "\n",
            (together ? 4 : 1) * (i + 1), i, 32 / took);
    }
    fclose(file);
}

int grt_program_run(const char *const *argv, double seconds, char **said) {
    char *line = m.lines[m.runs % MOST_RUNS];
    double slower = m.slower[m.runs % MOST_RUNS] > 0 ? m.slower[m.runs % MOST_RUNS] : 1;
    m.runs++;
    assert_true(seconds == 3600);
    *said = NULL;
    line[0] = '\0';
    for (int i = 0; argv[i]; i++) {
        size_t used = strlen(line);
        snprintf(line + used, 8192 - used, "%s%s", i ? " " : "", argv[i]);
        if (strcmp(argv[i], "--log") == 0) {
            const char *name = strrchr(argv[i + 1], '/') + 1;
            snprintf(m.folder, sizeof m.folder, "%.*s", (int)(name - argv[i + 1] - 1), argv[i + 1]);
            int ranks = atoi(strchr(name, '-') + 1);
            bool together = name[0] == 't';
            write_log(argv[i + 1], slower * (together ? m.together[ranks] : m.alone), m.rows,
                      together);
        }
        if (strncmp(argv[i], "--output=", 9) == 0) {
            FILE *file = fopen(argv[i] + 9, "w");
            fprintf(file, "{\"rows\":[");
            if (!m.no_row) {
                fprintf(file,
                        "{\"readback_ms\":1,\"host_ms\":2,\"network_ms\":3,\"upload_ms\":4,"
                        "\"overlap\":%g}",
                        m.overlap);
            }
            fprintf(file, "]}");
            fclose(file);
        }
    }
    if (m.runs == m.fail_at) {
        *said = m.last ? strdup(m.last) : NULL;
        return m.code;
    }
    return 0;
}

// No device is looked for.
struct grt_dev_list *grt_dev_list_create(void) {
    return calloc(1, sizeof(struct grt_dev_list));
}

void grt_dev_list_destroy(struct grt_dev_list **list) {
    free(*list);
    *list = NULL;
}

static json_t *rows, *notes;
static char said[8192];

static int run(const char *line) {
    char words[1024], path[] = "/tmp/gpurt-scaling-out-XXXXXX";
    char *argv[64] = {NULL};
    int argc = 0, file = mkstemp(path);
    assert_true(file >= 0);
    const char *once = strstr(line, "--rounds") ? "" : " --rounds 1";
    snprintf(words, sizeof words, "scaling %s%s --format jsonl -o %s", line, once, path);
    for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest)) && argc < 63;) {
        argv[argc++] = word;
    }
    FILE *err = tmpfile();
    int keep = dup(2);
    fflush(NULL);
    dup2(fileno(err), 2);
    m.runs = 0;
    int code = bench_scaling(argc, argv);
    fflush(NULL);
    dup2(keep, 2);
    close(keep);
    rewind(err);
    said[fread(said, 1, sizeof said - 1, err)] = '\0';
    fclose(err);
    json_decref(rows);
    json_decref(notes);
    rows = json_array();
    notes = json_object();
    FILE *out = fdopen(file, "r");
    FILE *again = fopen(path, "r");
    char text[8192];
    while (again && fgets(text, sizeof text, again)) {
        json_t *row = json_loads(text, 0, NULL);
        if (json_object_get(row, "kind")) {
            json_array_append(rows, row);
        } else if (row) {
            json_object_update(notes, row);
        }
        json_decref(row);
    }
    if (again) {
        fclose(again);
    }
    fclose(out);
    unlink(path);
    return code;
}

static int begin(void **state) {
    (void)state;
    memset(&m, 0, sizeof m);
    m.together[1] = 0.008;
    m.together[2] = 0.006;
    m.together[4] = 0.005;
    m.alone = 0.004;
    m.overlap = 0.5;
    m.rows = 10;
    unsetenv("TMPDIR");
    return 0;
}

static double number(size_t row, const char *key) {
    const json_t *cell = json_object_get(json_array_get(rows, row), key);
    if (!cell || json_is_null(cell)) {
        fail_msg("row %zu has no %s", row, key);
    }
    return json_number_value(cell);
}

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-6 * fabs(want) + 1e-12)) {
        fail_msg("%.9g, not %.9g", got, want);
    }
}

static void line_has(int run_, const char *part, bool wanted) {
    if (!strstr(m.lines[run_], part) == wanted) {
        fail_msg("'%s' is %sin: %s", part, wanted ? "not " : "", m.lines[run_]);
    }
}

// ---- rows ----

static void figures(void **state) {
    (void)state;
    assert_int_equal(run("-n 1,2,4 --batch-size 32"), 0);
    assert_int_equal(json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        double ranks = 1 << i, step = m.together[1 << i];
        near(number(i, "ranks"), ranks);
        near(number(i, "batch"), 32);
        near(number(i, "parameters"), 1000);
        near(number(i, "step_ms"), 1e3 * step);
        near(number(i, "samples_per_s"), 32 / step);
        near(number(i, "efficiency"), 0.008 / step / ranks);
        // Of ten rows nine follow another, and the first of those is left out; of several ranks
        // every second one is what is fitted to.
        near(number(i, "samples"), i ? 4 : 8);
        if (i == 0) {
            near(number(i, "spread"), 0.4 / 2 / 1.2);
            static const char *const several[] = {"alone_ms", "exchange_ms", "host_ms", "overlap"};
            for (size_t k = 0; k < 4; k++) {
                assert_true(json_is_null(json_object_get(json_array_get(rows, i), several[k])) ||
                            !json_object_get(json_array_get(rows, i), several[k]));
            }
            continue;
        }
        near(number(i, "spread"), 0);
        near(number(i, "alone_ms"), 4);
        near(number(i, "exchange_ms"), 1e3 * step - 4);
        near(number(i, "wait_ms"), 0.4);  // for the slower of each step
        // Both probes say the same, so that more bytes take more time in no way but by the rate:
        // half of the bytes take so long, all of them twice that.
        near(number(i, "readback_ms"), 2);
        near(number(i, "host_ms"), 4);
        near(number(i, "network_ms"), 6);
        near(number(i, "upload_ms"), 8);
        near(number(i, "overlap"), 0.5);
        near(number(i, "hidden_ms"), 0);  // a bucket
        near(number(i, "predicted_exchange_ms"), 20.4);
        near(number(i, "predicted_ms"), 24.4);
        near(number(i, "exchange_bytes"), 4000);
        // The other half of the samples is 1.4 times as slow.
        double fitted = fmin(1, fmax(0, 1 - (1.4 * step - 0.0044) / 0.02));
        near(number(i, "fitted_overlap"), fitted);
    }
    // Each of two ranks: together, alone, and the exchange twice.
    assert_int_equal(m.runs, 1 + 4 + 4);
    assert_true(access(m.folder, F_OK) != 0);
}

// Steps are the quickest of all rounds, together and alone; a wait is that of the round in the
// middle.
static void rounds(void **state) {
    (void)state;
    static const double slower[] = {1.2, 1.1, 1, 1.3, 1.5, 1};
    memcpy(m.slower, slower, sizeof slower);
    assert_int_equal(run("-n 2 --batch-size 32 --rounds 3"), 0);
    assert_int_equal(m.runs, 3 * 2 + 2);
    for (int i = 0; i < 6; i++) {
        line_has(i, i % 2 ? "/alone-2-1.jsonl " : "/together-2.jsonl ", true);
    }
    near(number(0, "step_ms"), 6);
    near(number(0, "alone_ms"), 4);
    near(number(0, "exchange_ms"), 2);
    near(number(0, "wait_ms"), 0.44);
    near(number(0, "predicted_exchange_ms"), 20.44);
    near(number(0, "samples"), 12);
    near(number(0, "spread"), 0.5 * (9 - 6) / 7.2);
    assert_true(access(m.folder, F_OK) != 0);
    // One rank has nobody to wait for.
    memset(m.slower, 0, sizeof m.slower);
    m.slower[1] = 0.5;
    assert_int_equal(run("-n 1 --batch-size 32 --rounds 16"), 0);
    assert_int_equal(m.runs, 16);
    near(number(0, "step_ms"), 4);
    near(number(0, "samples"), 16 * 8);
    m.slower[1] = 0;
    assert_int_equal(run("-n 1 --batch-size 32 --rounds 2"), 0);
    near(number(0, "samples"), 16);
    // A round that fails ends them.
    m.fail_at = 4;
    m.code = 70;
    assert_int_equal(run("-n 2 --batch-size 32 --rounds 3"), COMMAND_IO);
    assert_int_equal(m.runs, 4);
    assert_int_equal(json_array_size(rows), 0);
}

static void verdicts(void **state) {
    (void)state;
    static const struct {
        double two, four;
        const char *part;
    } cases[] = {
        {0.006, 0.005,
         "several devices pay for this model: 4 ranks are 1.60 times as fast as one, "
         "a step in 5 ms"},
        {0.0066, 0.0067, "4 ranks"},
        {0.0066, 0.007, "2 ranks are 1.21 times as fast as one"},
        {0.0067, 0.007,
         "several devices do not pay for this model: a step of 2 ranks takes 6.7 ms,"
         " and of one 8; use the devices as slots"},
        {0.0034, 0.007, "2 ranks are 2.35 times as fast"},
        {0.0033, 0.007, "not judged: 2 ranks cannot be 2.42 times as fast as one"},
        {0.006, 0.0016, "not judged: 4 ranks cannot be 5.00 times"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        m.together[2] = cases[i].two;
        m.together[4] = cases[i].four;
        assert_int_equal(run("-n 1,2,4 --batch-size 32"), 0);
        const char *text = json_string_value(json_object_get(notes, "verdict"));
        bool wanted = i != 1;
        if (!text || !strstr(text, cases[i].part) == wanted) {
            fail_msg("case %zu: %s", i, text ? text : "-");
        }
    }
    // Without one rank, or without several, there is none.
    assert_int_equal(run("-n 2,4 --batch-size 32"), 0);
    assert_null(json_object_get(notes, "verdict"));
    assert_int_equal(run("-n 1 --batch-size 32"), 0);
    assert_null(json_object_get(notes, "verdict"));
    assert_int_equal(m.runs, 1);
    near(number(0, "efficiency"), 1);
}

// ---- command lines ----

static void words_of_a_training(void **state) {
    (void)state;
    assert_int_equal(run("-n 1,2 --batch-size 32 --steps 20 --backend ref hidden=8 depth=3"), 0);
    assert_int_equal(strncmp(m.lines[0], "mpirun", 6) == 0, false);
    for (int i = 0; i < 2; i++) {
        line_has(i, " train supervised --backend ref ", true);
        line_has(i, i ? "/together-2.jsonl --data " : "/together-1.jsonl --data ", true);
        line_has(i,
                 i ? "/together-2 batch_size=32 max_steps=20 log_interval=4 epochs=1000000 "
                     "cache=ram num_workers=1 hidden=8 depth=3"
                   : "/together-1 batch_size=32 max_steps=20",
                 true);
    }
    line_has(1, " -n 2 ", true);
    // Alone: each of both has half, and knows nothing of the other.
    line_has(2, " -n 1 env -u OMPI_COMM_WORLD_SIZE GPURT_AS_RANK=1 ", true);
    assert_non_null(strstr(m.lines[2], " : -n 1 env -u OMPI_COMM_WORLD_SIZE GPURT_AS_RANK=1 "));
    line_has(2, "/alone-2-0.jsonl ", true);
    line_has(2, "/alone-2-1.jsonl ", true);
    line_has(2, "batch_size=16 ", true);
    line_has(2, "batch_size=32", false);
    line_has(2, "log_interval=1 ", true);
    line_has(2, "hidden=8 depth=3", true);
    // A quarter and half of the bytes.
    line_has(3, " -n 2 ", true);
    line_has(3, " bench scaling --train=supervised --probe=1000 --backend=ref --format=json ",
             true);
    line_has(4, "--probe=2000 ", true);
    line_has(4, "hidden", false);
    // Others: iterations have options of their own, and no data.
    assert_int_equal(run("-n 2 --train ppo --env pendulum --batch-size 8 --steps 16 batch_size=24 "
                         "micro_batches=1 rollout_steps=16"),
                     0);
    line_has(0, " train ppo ", true);
    line_has(0,
             "--iterations=16 --evaluate-every=16 --num-envs=8 --env=pendulum "
             "--checkpoint-interval=16 batch_size=24 micro_batches=1 rollout_steps=16",
             true);
    line_has(0, "--data", false);
    // A rank's share of the user's numbers stands behind them; one piece is not cut.
    line_has(1,
             "--num-envs=4 --env=pendulum --checkpoint-interval=16 batch_size=24 "
             "micro_batches=1 rollout_steps=16 batch_size=12",
             true);
    line_has(1, "batch_size=12 micro", false);
    assert_int_equal(run("-n 2 --train es --steps 16 batch_size=24"), 0);
    line_has(0, " train es ", true);
    line_has(0, "--num-dirs=64 --env=cartpole batch_size=24", true);
    line_has(0, "--checkpoint-interval", false);
    line_has(1, "--num-dirs=32 --env=cartpole batch_size=24 :", true);
    // Two sides, five results and two sums of each of four numbers, of 64 directions.
    near(number(0, "exchange_bytes"), 4 * 2 * (5 + 2 * 4) * 64);
    assert_int_equal(run("-n 1"), 0);
    line_has(0, "batch_size=1024 max_steps=48 ", true);
    assert_int_equal(run("-n 1,2 --device ref:0,ref:0 --batch-size 32"), 0);
    line_has(0, " --device ref:0 --log", true);
    line_has(1, " --device ref:0,ref:0 --log", true);
    line_has(2, " --device ref:0 --log", true);
    line_has(3, " --device ref:0,ref:0 --format", true);
}

// Exchanges of an iteration: epochs by minibatches of a rank's rows.
static void minibatches(void **state) {
    (void)state;
    static const struct {
        const char *words;
        double exchanges;
    } cases[] = {
        {"update_epochs=3", 3 * 4},                // of 16 rows four of 4
        {"update_epochs=3 batch_size=10", 3 * 4},  // of 5: 5 + 5 + 5 + 1
        {"update_epochs=1 batch_size=16", 2},
        {"update_epochs=1 batch_size=2", 16},
        {"update_epochs=2 batch_size=1000", 2},
        {"hidden=2", 4 * 4},  // four epochs of four
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[200];
        snprintf(line, sizeof line, "-n 2 --train ppo --batch-size 4 %s", cases[i].words);
        assert_int_equal(run(line), 0);
        near(number(0, "exchange_bytes"), 4000 * cases[i].exchanges);
        near(number(0, "host_ms"), cases[i].exchanges * 2 * 2);
        assert_true(number(0, "readback_ms") == 0 && number(0, "upload_ms") == 0);
        near(number(0, "hidden_ms"), 0);
    }
    assert_int_equal(run("-n 2 --train ppo --batch-size 4 target_kl=0"), 0);
    assert_int_equal(run("-n 2 --train ppo --batch-size 4 target_kl=0.01"), COMMAND_CONFIG);
    assert_non_null(strstr(said, "target_kl ends updates early"));
    assert_int_equal(m.runs, 0);
    assert_int_equal(run("-n 2 --batch-size 4 target_kl=0.01"), 0);
}

// ---- what ends it ----

static void endings(void **state) {
    (void)state;
    static const struct {
        int at, code;
        const char *last;
        int wanted;
        const char *part;
    } cases[] = {
        {1, 78, "gpurt: error: no key x\n", 78,
         "the training of all ranks ended with 78: no key x"},
        {1, 64, "gpurt: that is wrong\nmpirun: words\n", 78, "ended with 64: that is wrong"},
        {1, 70, "gpurt: first\nnoise\ngpurt: error: second\n", 74, "ended with 70: second"},
        {1, 70, "noise\n", 74, "ended with 70: it said nothing"},
        {1, 70, NULL, 74, "ended with 70: it said nothing"},
        {2, 70, "gpurt: x\n", 74, "a training without the others ended with 70: x"},
        {3, 70, "gpurt: x\n", 74, "the exchange alone ended with 70: x"},
        {4, 78, "gpurt: x\n", 78, "the exchange alone ended with 78: x"},
        {1, GRT_PROGRAM_NONE, NULL, 69, "several ranks want mpirun"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        m.fail_at = cases[i].at;
        m.code = cases[i].code;
        m.last = cases[i].last;
        int code = run("-n 2 --batch-size 32");
        if (code != cases[i].wanted || !strstr(said, cases[i].part)) {
            fail_msg("case %zu: exit code %d, said: %s", i, code, said);
        }
        assert_int_equal(json_array_size(rows), 0);
        assert_true(access(m.folder, F_OK) != 0);
    }
    m.fail_at = 0;
    // A first pair, and two more.
    m.rows = 3;
    assert_int_equal(run("-n 1 --batch-size 32"), COMMAND_IO);
    assert_non_null(strstr(said, "has no steps to time: more are wanted (--steps)"));
    m.rows = 4;
    assert_int_equal(run("-n 1 --batch-size 32"), 0);
    near(number(0, "samples"), 2);
    m.no_row = true;
    m.rows = 10;
    assert_int_equal(run("-n 2 --batch-size 32"), COMMAND_IO);
    assert_non_null(strstr(said, "/probe.json has no row"));
    // The first number of ranks is told, the second is not.
    assert_int_equal(run("-n 1,2 --batch-size 32"), COMMAND_IO);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"-n 3 --batch-size 33", "33 samples are not shared out over 3 ranks equally, whose number "
                                 "is a power of two"},
        {"-n 2 --batch-size 33", "33 samples are not shared out over 2 ranks equally"},
        {"-n 1,4 --train ppo --batch-size 6", "6 copies are not shared out over 4 ranks equally"},
        {"-n 5 --train es --batch-size 32",
         "32 directions are not shared out over 5 ranks equally"},
        {"-n 0", "1 to 256"},
        {"-n 257", "1 to 256"},
        {"--batch-size 0", "1 to 16777216"},
        {"--batch-size 16777217", "1 to 16777216"},
        {"--steps 15", "16 to 100000"},
        {"--steps 100001", "16 to 100000"},
        {"--rounds 0", "1 to 16"},
        {"--rounds 17", "1 to 16"},
        {"--train rl", "known are supervised, classify, es and ppo"},
        {"--train classify", "--train classify wants --data FILE"},
        {"--probe 3", "from 4 bytes to 8 GiB are wanted"},
        {"--probe 8589934593", "from 4 bytes to 8 GiB are wanted"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int code = run(cases[i].line);
        if (code != COMMAND_USAGE || !strstr(said, cases[i].part)) {
            fail_msg("%s: exit code %d, said: %s", cases[i].line, code, said);
        }
        assert_int_equal(m.runs, 0);
    }
    // Results of directions are gathered by any number.
    m.together[3] = 0.005;
    assert_int_equal(run("-n 3 --train es --batch-size 33"), 0);
    setenv("TMPDIR", "/nowhere/at/all", 1);
    assert_int_equal(run("-n 1"), COMMAND_CANNOT_CREATE);
    assert_non_null(strstr(said, "no folder for the trainings can be made"));
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(figures),     CASE(rounds),  CASE(verdicts), CASE(words_of_a_training),
        CASE(minibatches), CASE(endings), CASE(refused),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
