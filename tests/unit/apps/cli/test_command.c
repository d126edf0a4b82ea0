// SPDX-License-Identifier: Apache-2.0
// The command's first words, by its own main file: verbs, help in all its forms, versions, and what
// is said of anything else; programs that are started beside it; keys that are given as options.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "unit/apps/caught.h"
#include "cli/options/options.h"
#include "cli/options/watch.h"
#include "cli/spawn.h"

// Its verbs are static there.
int gpurt_main(int argc, char **argv);
#define main gpurt_main
#include "gpurt.c"  // NOLINT(bugprone-suspicious-include)
#undef main

static int runs(char *const *words) {
    char *argv[10] = {"gpurt"}, copies[10][32];
    int argc = 1;
    for (; words[argc - 1]; argc++) {
        snprintf(copies[argc], sizeof *copies, "%s", words[argc - 1]);
        argv[argc] = copies[argc];
    }
    argv[argc] = NULL;
    catch_begin();
    int code = run(argc, argv);
    catch_end();
    return code;
}
#define RUNS(...) runs((char *const[]){__VA_ARGS__, NULL})

static void has(const char *word) {
    if (!strstr(caught, word)) {
        fail_msg("no '%s' in: %s", word, caught);
    }
}

static void first_words(void **state) {
    (void)state;
    assert_int_equal(RUNS(NULL), COMMAND_USAGE);
    assert_memory_equal(caught, "usage: gpurt COMMAND [OPTION...]\n\n", 33);
    has("  devices     list every device and what it can do\n");
    has("  completion  completion of command lines, for bash, zsh and fish\n");
    assert_int_equal(RUNS("--version"), COMMAND_OK);
    assert_string_equal(caught, "gpurt " GPURT_VERSION "\n");
    assert_int_equal(RUNS("-V"), COMMAND_OK);
    assert_string_equal(caught, "gpurt " GPURT_VERSION "\n");
    assert_int_equal(RUNS("version", "--help"), COMMAND_OK);
    assert_string_equal(caught, "usage: gpurt version\n\nPrints the version of gpurt.\n");
    assert_int_equal(RUNS("-V", "more"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: version: 'more' is not expected\n");
    assert_int_equal(RUNS("--nothing"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: no option '--nothing' before the command; see `gpurt "
                                "--help`\n");
    assert_int_equal(RUNS("repotr", "x"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: no command 'repotr'; did you mean 'report'?\n");
    assert_int_equal(RUNS("xyzzyx"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: no command 'xyzzyx'; see `gpurt --help`\n");
}

// Each form of asking for help says the same of the same.
static void help(void **state) {
    char *all, *bench, *mlp;
    (void)state;
    assert_int_equal(RUNS("--help"), COMMAND_OK);
    all = strdup(caught);
    has("gpurt trains on any GPU, through Vulkan or OpenCL.\n\nusage: gpurt COMMAND");
    has("\n`gpurt COMMAND --help` explains one; `man gpurt` explains all.\n\nExit codes:\n    0  "
        "all "
        "went well\n    1  a figure is below");
    has("\n  130  interrupted\n");
    static char *const same[][4] = {
        {"-h"}, {"help"}, {"help", "help"}, {"help", "--help"}, {"help", "-h"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_int_equal(runs(same[i]), COMMAND_OK);
        assert_string_equal(caught, all);
    }
    assert_int_equal(RUNS("compare", "--help"), COMMAND_OK);
    bench = strdup(caught);
    assert_int_equal(RUNS("help", "compare"), COMMAND_OK);
    assert_string_equal(caught, bench);
    assert_int_equal(RUNS("compare", "help"), COMMAND_OK);
    assert_string_equal(caught, bench);
    // Behind a verb without kinds another word is a word.
    assert_int_equal(RUNS("compare", "x", "help"), COMMAND_NO_INPUT);
    assert_int_equal(RUNS("bench", "mlp", "--help"), COMMAND_OK);
    mlp = strdup(caught);
    assert_non_null(strstr(mlp, "usage: gpurt bench mlp"));
    assert_int_equal(RUNS("help", "bench", "mlp"), COMMAND_OK);
    assert_string_equal(caught, mlp);
    assert_int_equal(RUNS("bench", "mlp", "help"), COMMAND_OK);
    assert_string_equal(caught, mlp);
    assert_int_equal(RUNS("help", "train", "ppo"), COMMAND_OK);
    has("usage: gpurt train ppo");
    assert_int_equal(RUNS("train", "ppo", "help"), COMMAND_OK);
    has("usage: gpurt train ppo");
    assert_int_equal(RUNS("sweep", "status", "help"), COMMAND_OK);
    has("usage: gpurt sweep status DIR");
    assert_int_equal(RUNS("help", "bench", "mlp", "more"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: help: 'more' is not expected\n");
    assert_int_equal(RUNS("help", "bnech"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: no command 'bnech'; did you mean 'bench'?\n");
    assert_int_equal(RUNS("help", "--manual", "html"), COMMAND_USAGE);
    has("help --manual 'html': man or md is wanted");
    free(all);
    free(bench);
    free(mlp);
}

// ---- programs beside it ----

static char root[64];

static int begin(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpurt_test_command.XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int end(void **state) {
    char command[128];
    (void)state;
    if (chdir("/") != 0) {
        return -1;
    }
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static const char *read_back(const char *name) {
    static char text[256];
    FILE *file = fopen(name, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file) {
        fclose(file);
    }
    return text;
}

static int ended(pid_t pid) {
    bool known = false;
    int code = 4711;
    assert_true(pid > 0);
    for (int i = 0; i < 30000 && !spawn_ended(pid, &known, &code); i++) {
        usleep(1000);
    }
    assert_true(known);
    return code;
}

// What it writes goes behind what is there, each to its file; it reads nothing, is a group of its
// own, and ignores no signal that this one does.
static void spawned(void **state) {
    char *both[] = {"sh", "-c", "echo out; echo err >&2; cat; exit 3", NULL};
    char *killed[] = {"sh", "-c", "kill -HUP $$; sleep 9", NULL};
    char *group[] = {"sh", "-c", "ps -o pgid= -p $$ | tr -d ' ' >group; echo $$ >pid", NULL};
    char *nowhere[] = {"./nowhere", NULL}, *none[] = {NULL};
    bool known = true;
    int code = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ended(spawn_program(both, "o", "e", -1)), 3);
    }
    assert_string_equal(read_back("o"), "out\nout\n");
    assert_string_equal(read_back("e"), "err\nerr\n");
    signal(SIGHUP, SIG_IGN);
    assert_int_equal(ended(spawn_program(killed, "o2", "o2", -1)), -SIGHUP);
    signal(SIGHUP, SIG_DFL);
    assert_int_equal(ended(spawn_program(group, "o3", "o3", -1)), 0);
    if (read_back("group")[0]) {  // where there is a ps
        char pid[64];
        snprintf(pid, sizeof pid, "%s", read_back("pid"));
        assert_string_equal(read_back("group"), pid);
    }
    assert_int_equal(ended(spawn_program(nowhere, "o4", "o4", -1)), SPAWN_NO_PROGRAM);
    assert_int_equal(spawn_program(none, "o5", "o5", -1), -1);
    assert_int_equal(spawn_program(NULL, "o5", "o5", -1), -1);
    catch_begin();
    assert_int_equal(spawn_program(both, "nowhere/o", "e", -1), -1);
    assert_int_equal(grt_last_status(), GRT_NO_OUTPUT);
    assert_int_equal(spawn_program(both, "o", "nowhere/e", -1), -1);
    catch_end();
    has("cannot create nowhere/e: No such file or directory");
    // A file that is to be kept open in it.
    FILE *file = fopen("held", "w");
    char command[64];
    snprintf(command, sizeof command, "echo kept >&%d", fileno(file));
    char *writes[] = {"sh", "-c", command, NULL};
    fcntl(fileno(file), F_SETFD, FD_CLOEXEC);
    assert_int_equal(ended(spawn_program(writes, "o6", "o6", fileno(file))), 0);
    fclose(file);
    assert_string_equal(read_back("held"), "kept\n");
    // One that another has waited for.
    pid_t pid = spawn_program(both, "o", "e", -1);
    waitpid(pid, NULL, 0);
    assert_true(spawn_ended(pid, &known, &code));
    assert_false(known);
}

// ---- keys as options, and files that are watched ----

static void keys(void **state) {
    static const struct option_row rows[] = {{.name = "runs", .value = "N"}, {.name = "run-all"}};
    static const struct option_list lists[] = {OPTION_LIST("a", rows), OPTION_LIST("b", rows)};
    static const struct {
        const char *given[5], *want[5];
    } cases[] = {{{"x", "--a-b", "1"}, {"x", "a_b=1"}},
                 {{"x", "--a-b=c-d"}, {"x", "a_b=c-d"}},
                 {{"x", "--a-b=", "1"}, {"x", "a_b=", "1"}},
                 {{"x", "--a-b", "-1"}, {"x", "a_b=-1"}},
                 {{"x", "--a-b", "--c", "1"}, {"x", "--a-b", "c=1"}},
                 {{"x", "--a-b"}, {"x", "--a-b"}},
                 {{"x", "--run", "1"}, {"x", "--run", "1"}},  // stands for --runs or --run-all
                 {{"x", "--runs=1"}, {"x", "--runs=1"}},
                 {{"x", "--runsx=1"}, {"x", "runsx=1"}},
                 {{"x", "--=1"}, {"x", "--=1"}},
                 {{"x", "-a", "1"}, {"x", "-a", "1"}},
                 {{"--a", "1"}, {"--a", "1"}},  // the verb's own word
                 {{"x", "--", "--a", "1"}, {"x", "--", "--a", "1"}}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *argv[6];
        int argc = 0;
        for (; argc < 5 && cases[i].given[argc]; argc++) {
            argv[argc] = (char *)(uintptr_t)cases[i].given[argc];
        }
        struct options_keys made;
        assert_true(options_keys_begin(&made, lists, 2, argc, argv));
        int k = 0;
        for (; k < 5 && cases[i].want[k]; k++) {
            assert_string_equal(made.argv[k], cases[i].want[k]);
        }
        assert_int_equal(made.argc, k);
        options_keys_end(&made);
    }
}

// Files that cannot be written are named before the work begins, by their option.
static void watched(void **state) {
    struct options o = {.trace = "t", .memory_snapshot = "m", .metrics = "p"};
    (void)state;
    assert_true(watch_check(&o));
    assert_true(watch_check(&(struct options){0}));
    static const char *const names[] = {"--trace", "--memory-snapshot", "--metrics"};
    for (int i = 0; i < 3; i++) {
        char want[96];
        struct options bad = o;
        *(i == 0 ? &bad.trace : i == 1 ? &bad.memory_snapshot : &bad.metrics) = "nowhere/x";
        catch_begin();
        assert_false(watch_check(&bad));
        catch_end();
        snprintf(want, sizeof want, "%s: nowhere/x cannot be written: No such file or directory",
                 names[i]);
        assert_string_equal(grt_last_error(), want);
        assert_int_equal(grt_last_status(), GRT_NO_OUTPUT);
    }
    assert_true(access("t", F_OK) != 0);  // only looked at
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(first_words), CASE(help), CASE(spawned), CASE(keys), CASE(watched),
    };
    talk_set_level(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
