// SPDX-License-Identifier: Apache-2.0
// `gpurt sweep` as a person calls it: what it refuses, what it says of a folder, and its rows.
#include "sweep_folder.h"

static int command(char *const *words) {
    char *argv[90];
    int argc = 1;
    static char verb[] = "sweep";
    argv[0] = verb;
    while (words[argc - 1]) {
        argv[argc] = words[argc - 1];
        argc++;
    }
    argv[argc] = NULL;
    talk_set_level(0);
    catch_begin();
    int code = cmd_sweep(argc, argv);
    catch_end();
    talk_set_level(-1);
    grt_log_set(silent, NULL, GRT_LOG_ERROR);
    assert_int_equal(chdir(root), 0);
    return code;
}
#define COMMAND(...) command((char *const[]){__VA_ARGS__, NULL})
#define SAYS(code_, text, ...)                                                                     \
    do {                                                                                           \
        int got_ = COMMAND(__VA_ARGS__);                                                           \
        if (got_ != (code_) || !strstr(caught, text)) {                                            \
            print_error("exit %d, wanted %d: %s\nwanted: %s\n", got_, code_, caught, text);        \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

static void refused(void **state) {
    char *many[70] = {"s.yaml", "--executor", "ssh", "--"};
    (void)state;
    SAYS(COMMAND_USAGE,
         "gpurt: sweep: the file of a sweep is wanted, or status, best, resume or "
         "stop; see `gpurt sweep --help`\n",
         NULL);
    SAYS(COMMAND_USAGE, "gpurt: sweep: the file of a sweep is wanted", "lr=3");
    SAYS(COMMAND_USAGE,
         "gpurt: what stands behind -- is for sbatch or parallel: --executor slurm "
         "or ssh\n",
         "s.yaml", "--", "-S");
    SAYS(COMMAND_USAGE, "gpurt: sweep status: the folder of a sweep is wanted, and nothing else\n",
         "status");
    SAYS(COMMAND_USAGE, "sweep best: the folder of a sweep is wanted", "best", "a", "b");
    SAYS(COMMAND_USAGE, "sweep resume: the folder", "resume");
    SAYS(COMMAND_USAGE, "sweep stop: the folder", "stop");
    SAYS(COMMAND_USAGE, "--slots", "s.yaml", "--slots", "0");
    SAYS(COMMAND_USAGE, "--slots", "s.yaml", "--slots", "65");
    SAYS(COMMAND_USAGE, "known are local slurm ssh", "s.yaml", "--executor", "here");
    SAYS(COMMAND_USAGE, "s.yaml", "s.yaml", "--output", "s.yaml", "--dry-run");
    SAYS(COMMAND_NO_INPUT, "nowhere", "status", "nowhere");
    for (int i = 4; i < 68; i++) {
        many[i] = "-x";
    }
    assert_int_equal(command(many), COMMAND_CONFIG);  // 64 words are taken, none names a machine
    many[68] = "-x";
    assert_int_equal(command(many), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: more than 64 words behind --\n");
}

static void looked_at(void **state) {
    char want[256];
    (void)state;
    SAYS(COMMAND_OK, "0,waiting,", "s.yaml", "--dry-run", "--format", "csv");
    assert_non_null(strstr(caught, "1,waiting,"));
    assert_false(there("s"));
    assert_int_equal(MADE(.dir = "d"), COMMAND_OK);
    sweep_close(sweep);
    memset(sweep, 0, sizeof *sweep);
    SAYS(COMMAND_USAGE,
         "gpurt: sweep trial: the folder of a sweep and the number of a trial are "
         "wanted\n",
         "trial", "d");
    SAYS(COMMAND_USAGE, "the number of a trial", "trial", "d", "1x");
    SAYS(COMMAND_USAGE, "the number of a trial", "trial", "d", "");
    SAYS(COMMAND_USAGE, "gpurt: sweep trial: d has 2 trials\n", "trial", "d", "2");
    SAYS(COMMAND_DATA, "gpurt: no trial of d has come to an end with val_loss yet\n", "best", "d");
    SAYS(COMMAND_OK, "no process runs the sweep d\n", "stop", "d");
    assert_false(there("d/stop"));
    assert_int_equal(mkdir("d/0001", 0777), 0);
    put("d/0001/result.json", "{\"state\": \"done\"}");
    put("d/0001/log.jsonl",
        "{\"event\": \"evaluate\", \"epoch\": 1, \"step\": 1, \"loss\": 0.125}");
    SAYS(COMMAND_DATA, "no trial of d", "best", "d");  // half a line
    put("d/0001/log.jsonl",
        "{\"event\": \"evaluate\", \"epoch\": 1, \"step\": 1, \"loss\": 0.125}\n");
    SAYS(COMMAND_OK, "1,done,0.125,", "best", "d", "--format", "csv", "--apply", "best.yaml");
    assert_null(strstr(caught, "waiting"));
    snprintf(want, sizeof want, "its checkpoints are in %s/d/0001/checkpoints\n", root);
    assert_non_null(strstr(caught, want));
    assert_non_null(strstr(read_back("best.yaml"), "# trial 1 of d: val_loss 0.125\n"));
    assert_non_null(strstr(read_back("best.yaml"), "learning_rate: 2\n"));
    SAYS(COMMAND_OK, "best: val_loss 0.125, trial 1: lr=2\n", "status", "d");
    SAYS(COMMAND_OK, "0,waiting", "status", "d", "--format", "csv");
    assert_null(strstr(caught, "best:"));
    // One whose lock is held runs.
    struct grt_lock lock = {0};
    assert_int_equal(mkdir("d/0000", 0777), 0);
    assert_true(grt_lock_take(&lock, "d/0000/trial.lock", "x"));
    SAYS(COMMAND_OK, "0,running", "status", "d", "--format", "csv");
    grt_lock_release(&lock);
    // One at its end does not, whoever has its lock.
    assert_true(grt_lock_take(&lock, "d/0001/trial.lock", "x"));
    SAYS(COMMAND_OK, "1,done", "status", "d", "--format", "csv");
    grt_lock_release(&lock);
    SAYS(COMMAND_OK, "0,waiting", "status", "d", "--format", "csv");
    SAYS(COMMAND_CANNOT_CREATE, "nowhere/x", "best", "d", "--apply", "nowhere/x");
    // What a report is made of; the folder where it is read from stays this one.
    int code = -1;
    char *text = sweep_report_text("d", &code), here[256];
    assert_int_equal(code, COMMAND_OK);
    json_t *json = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 2);
    json_decref(json);
    free(text);
    catch_begin();
    assert_null(sweep_report_text("nowhere", &code));
    catch_end();
    assert_int_equal(code, COMMAND_NO_INPUT);
    assert_string_equal(getcwd(here, sizeof here), root);
}

// ---- rows ----

static const char *word(const json_t *json, const char *key) {
    return json_string_value(json_object_get(json, key));
}

// The rows of a sweep of these values, as JSON.
static json_t *rows_of(const char *text) {
    static char verb[] = "sweep";
    char *argv[] = {verb, NULL}, *json = NULL;
    size_t size = 0;
    struct sweep_table *table = calloc(1, sizeof *table);
    struct output output = {.file = open_memstream(&json, &size)};
    assert_non_null(table);
    sweep_plan_finish(&sweep->plan);
    free(sweep->trials);
    assert_true(sweep_plan_read(&sweep->plan, "s.yaml", text));
    sweep->trials = calloc(sweep->plan.trials, sizeof *sweep->trials);
    assert_true(sweep_table_open(
        table, sweep,
        &(struct table_desc){.output = &output, .format = TABLE_JSON, .argc = 1, .argv = argv}));
    for (uint32_t i = 0; i < sweep->plan.trials; i++) {
        sweep->trials[i].number = i;
        assert_true(sweep_table_row(table, sweep, &sweep->trials[i]));
    }
    assert_true(sweep_table_close(table));
    fclose(output.file);
    json_t *all = json_loads(json, 0, NULL);
    assert_non_null(all);
    free(json);
    free(table);
    return all;
}

// Numbers are numbers where they are ones that JSON has; the head says what the sweep is.
static void cells(void **state) {
    static const char *const words[] = {"5",    "-3",  "0.5", "1e3", "1e16",
                                        "0x10", "inf", "nan", "3a"};
    static const char kinds[] = "iirirssss";
    (void)state;
    snprintf(sweep->dir, sizeof sweep->dir, "%s", root);
    json_t *all = rows_of("data: ['5', '-3', '0.5', '1e3', '1e16', '0x10', 'inf', 'nan', "
                          "'3a']\n");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const json_t *cell =
            json_object_get(json_array_get(json_object_get(all, "rows"), i), "data");
        assert_true(kinds[i] == (json_is_integer(cell)  ? 'i'
                                 : json_is_real(cell)   ? 'r'
                                 : json_is_string(cell) ? 's'
                                                        : '?'));
        if (json_is_string(cell)) {
            assert_string_equal(json_string_value(cell), words[i]);
        } else {
            assert_true(json_number_value(cell) == strtod(words[i], NULL));
        }
    }
    const json_t *head = json_object_get(all, "sweep");
    assert_string_equal(word(all, "schema"), "gpurt.sweep/1");
    assert_string_equal(word(head, "dir"), root);
    assert_string_equal(word(head, "kind"), "supervised");
    assert_string_equal(word(head, "metric"), "val_loss");
    assert_string_equal(word(head, "goal"), "minimize");
    json_decref(all);
    snprintf(sweep->dir, sizeof sweep->dir, "nowhere");
    all = rows_of("method: random\nrun_cap: 1\nkind: es\nmetric: {name: return}\nparameters: "
                  "{step_size: {min: 0.1, max: 1, distribution: log_uniform_values}, seed: {min: "
                  "1, max: 4}, noise: {distribution: log_normal, mu: -5}}\n");
    head = json_object_get(all, "sweep");
    assert_string_equal(word(head, "dir"), "-");
    assert_string_equal(word(head, "kind"), "es");
    assert_string_equal(word(head, "goal"), "maximize");
    const json_t *names = json_object_get(head, "parameters");
    assert_int_equal(json_array_size(names), 3);
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const are[] = {"step_size", "seed", "noise"};
        assert_string_equal(word(json_array_get(names, i), "name"), are[i]);
        assert_int_equal(json_is_true(json_object_get(json_array_get(names, i), "log")), i != 1);
    }
    json_decref(all);
    // What people see: steps of es are no epochs.
    snprintf(sweep->dir, sizeof sweep->dir, "%s", root);
    char *text = sweep_live_text(sweep, 5, 100);
    assert_non_null(strstr(text, "return  step "));
    assert_null(strstr(text, "epoch"));
    assert_null(strstr(text, " left;"));
    assert_null(strstr(text, "best "));
    free(text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(refused),
        CASE(looked_at),
        CASE(cells),
    };
    grt_log_set(silent, NULL, GRT_LOG_ERROR);
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
