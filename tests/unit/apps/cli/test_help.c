// SPDX-License-Identifier: Apache-2.0
// What is offered at the end of a command line, and the man page and the table of options, of verbs
// that were made up: each kind of value, words behind words, what may not be offered.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/apps/caught.h"
#include "cli/command.h"
#include "cli/help/complete.h"
#include "cli/help/manual.h"
#include "cli/options/options.h"
#include "cli/talk.h"

struct values {
    struct options common;
    const char *text;
    uint32_t flag;
};
#define AT(field) offsetof(struct values, field)

static const struct option_row own[] = {
    {.name = "mode",
     .letter = "m",
     .value = "fast|slow=idle|NAME",
     .help = "how",
     .read = options_read_text,
     .at = AT(text)},
    {.name = "kinds",
     .value = "one,two,three",
     .help = "which",
     .fallback = "one",
     .read = options_read_text,
     .at = AT(text)},
    {.name = "data", .value = "FILE", .help = "from", .read = options_read_text, .at = AT(text)},
    {.name = "into",
     .value = "FILE",
     .help = "a <b> | \\ -c",
     .env = "SOME_ENV",
     .read = options_read_text,
     .at = AT(text)},
    {.name = "number", .value = "N", .help = "many", .read = options_read_text, .at = AT(text)},
    {.name = "flag", .letter = "f", .help = "a flag", .at = AT(flag)},
};
static const struct option_row secret[] = {
    {.name = "secret", .help = "unseen", .at = AT(flag)},
};

static char asked[128];
static int work(int argc, char **argv) {
    struct option_list lists[] = {OPTION_LIST("Own", own), OPTION_LIST("Hidden", secret),
                                  OPTION_LIST("General options", options_general)};
    lists[1].hidden = true;
    struct options_desc desc = {.verb = "work",
                                .words = "IN OUT [KEY=VALUE...]",
                                .about = "Works.\n",
                                .lists = lists,
                                .list_count = 3};
    struct values values = {0};
    const char *words[16];
    size_t count = 0;
    asked[0] = '\0';
    for (int i = 0; i < argc; i++) {
        snprintf(asked + strlen(asked), sizeof asked - strlen(asked), "%s%s", i ? " " : "",
                 argv[i]);
    }
    int code = options_parse(&desc, argc, argv, &values.common, words, &count);
    return code < 0 ? COMMAND_OK : code;
}

static int plain(int argc, char **argv) {
    struct option_list lists[] = {OPTION_LIST("General options", options_general)};
    struct options_desc desc = {
        .verb = "plain", .about = "Plain.\n", .lists = lists, .list_count = 1};
    struct values values = {0};
    const char *words[16];
    size_t count = 0;
    int code = options_parse(&desc, argc, argv, &values.common, words, &count);
    return code < 0 ? COMMAND_OK : code;
}

static const struct command_word kinds[] = {{"alpha", "the first", NULL},
                                            {"beta", "the second", NULL},
                                            {"inner", "behind alpha", "alpha"},
                                            {NULL, NULL, NULL}};
static const struct command_verb verbs[] = {
    {"work", "works", work, .words = kinds},
    {"wait", "waits", plain, .words = kinds, .wants_word = true},
    {"play", "plays", plain, .takes_env = true},
    {"completion", "completes", plain},
    {"help", "helps", plain},
};
#define VERBS (sizeof verbs / sizeof *verbs)

// What is offered behind these words, the last of which may be "".
static const char *offers(char *const *words) {
    char *argv[12] = {"completion", "--"};
    int argc = 2;
    for (; words[argc - 2]; argc++) {
        argv[argc] = words[argc - 2];
    }
    argv[argc] = NULL;
    catch_begin();
    int code = complete_main(verbs, VERBS, argc, argv);
    catch_end();
    assert_int_equal(code, COMMAND_OK);
    return caught;
}
#define OFFERS(want, ...) assert_string_equal(offers((char *const[]){__VA_ARGS__, NULL}), want)

static void has(const char *word) {
    if (!strstr(caught, word)) {
        fail_msg("no '%s' in: %s", word, caught);
    }
}
static void lacks(const char *word) {
    if (strstr(caught, word)) {
        fail_msg("'%s' is in: %s", word, caught);
    }
}

static void verbs_and_words(void **state) {
    (void)state;
    OFFERS("work\tworks\nwait\twaits\n", "w");
    OFFERS("--help\tlist the commands\n--version\tprint the version\n", "--");
    OFFERS("", "x");
    OFFERS("", "x", "");
    OFFERS("work\tworks\nwait\twaits\n", "help", "w");
    OFFERS("alpha\tthe first\nbeta\tthe second\n", "help", "work", "");
    OFFERS("beta\tthe second\n", "help", "wait", "b");
    OFFERS("alpha\tthe first\nbeta\tthe second\n", "wait", "");
    OFFERS("inner\tbehind alpha\n:files\n", "work", "alpha", "inn");
    OFFERS(":files\n", "work", "beta", "inn");
    OFFERS("bash\tsource <(gpurt completion bash)\n", "completion", "b");
    OFFERS("standing\tenvironment\n", "play", "stand");
    OFFERS("", "play", "standing", "stand");
    // A verb is asked with the words that stand before its options.
    offers((char *const[]){"work", "alpha", "inner", "--flag", "beta", "", NULL});
    assert_string_equal(asked, "work alpha inner --help");
}

static void options_and_values(void **state) {
    (void)state;
    OFFERS("--mode\thow\n", "work", "--mo");
    OFFERS("", "work", "--secr");
    OFFERS("--data\tfrom\n", "work", "--dat");
    OFFERS("fast\t\nslow\t\n", "work", "--mode", "");
    OFFERS("slow\t\n", "work", "-m", "s");
    OFFERS("--mode=fast\t\n", "work", "--mode=f");
    OFFERS("one\t\ntwo\t\nthree\t\n", "work", "--kinds", "");
    OFFERS("one,two\t\none,three\t\n", "work", "--kinds", "one,t");
    OFFERS("--kinds=two,one\t\n", "work", "--kinds=two,o");
    OFFERS(":files h5 hdf5 csv tsv npy npz\n", "work", "--data", "");
    OFFERS(":files\n", "work", "--into", "a");
    OFFERS("", "work", "--number", "");
    // A flag takes no value: what may stand anywhere is offered.
    offers((char *const[]){"work", "--flag", "--k", NULL});
    assert_string_equal(caught, "--kinds\twhich\n");
    offers((char *const[]){"work", "--", "--k", NULL});
    assert_string_equal(caught, "--kinds\twhich\n");
    offers((char *const[]){"work", "", NULL});
    has("alpha\tthe first\n");
    has("--flag\ta flag\n");
    has("--help\t");
    has("batch_size=\t");
    has(":files\n");
    lacks("rollout_steps=");  // of another kind of training
    lacks("inner");
    offers((char *const[]){"work", "-", NULL});
    lacks("batch_size=");
    lacks(":files");
    OFFERS("pin_memory=true\t\npin_memory=false\t\n", "work", "pin_memory=");
    OFFERS("true\t\n", "work", "--pin-memory", "t");
    OFFERS("--pin-memory=false\t\n", "work", "--pin-memory=f");
    OFFERS(":files h5 hdf5 csv tsv npy npz\n", "work", "data=x");
    OFFERS("", "work", "nothing=");
    OFFERS("", "work", "epochs=");
    // A verb without keys has none, and its words are no files.
    offers((char *const[]){"play", "", NULL});
    lacks("batch_size=");
    lacks(":files");
    OFFERS("", "play", "pin_memory=");
}

static int completes(char *const *words) {
    char *argv[8] = {"completion"};
    int argc = 1;
    for (; words[argc - 1]; argc++) {
        argv[argc] = words[argc - 1];
    }
    argv[argc] = NULL;
    catch_begin();
    int code = complete_main(verbs, VERBS, argc, argv);
    catch_end();
    return code;
}
#define COMPLETES(...) completes((char *const[]){__VA_ARGS__, NULL})

static void scripts(void **state) {
    (void)state;
    assert_int_equal(COMPLETES("bash"), COMMAND_OK);
    assert_string_equal(caught, complete_bash);
    assert_int_equal(COMPLETES("zsh"), COMMAND_OK);
    assert_string_equal(caught, complete_zsh);
    assert_int_equal(COMPLETES("fish"), COMMAND_OK);
    assert_string_equal(caught, complete_fish);
    assert_int_equal(COMPLETES("bsh"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: no shell 'bsh'; did you mean 'bash'?\n");
    assert_int_equal(COMPLETES("bash", "zsh"), COMMAND_USAGE);
    has("usage: gpurt completion bash|zsh|fish\n");
    assert_int_equal(COMPLETES("-x"), COMMAND_USAGE);
    assert_int_equal(COMPLETES(NULL), COMMAND_USAGE);
    assert_int_equal(COMPLETES("--"), COMMAND_USAGE);
    assert_int_equal(COMPLETES("--help"), COMMAND_OK);
    has("  bash   source <(gpurt completion bash)\n");
    assert_int_equal(COMPLETES("-h"), COMMAND_OK);
}

// A template on stdin as the page in one form.
static int manual(const char *template, const char *form) {
    FILE *file = tmpfile();
    fputs(template, file);
    rewind(file);
    int in = dup(0);
    dup2(fileno(file), 0);
    clearerr(stdin);
    catch_begin();
    int code = manual_print(verbs, VERBS, form);
    catch_end();
    dup2(in, 0);
    close(in);
    fclose(file);
    return code;
}

static void manuals(void **state) {
    (void)state;
    assert_int_equal(manual("a line\nof @VERSION@ here\n", "man"), COMMAND_OK);
    assert_string_equal(caught, "a line\nof " GPURT_VERSION " here\n");
    assert_int_equal(manual("@OPTIONS@\n", "md"), COMMAND_OK);
    has("\n### Device options\n\n| option | meaning |\n|---|---|\n| `--backend auto\\|vulkan\\|"
        "opencl\\|ref` | the GPU API (default: auto) |\n");
    has("\n### gpurt work\n\n");
    has("| `-m`, `--mode fast\\|slow=idle\\|NAME` | how |\n");
    has("| `--kinds one,two,three` | which (default: one) |\n");
    has("| `--into FILE` | a &lt;b> \\| \\ -c (default: $SOME_ENV) |\n");
    has("| `-f`, `--flag` | a flag |\n");
    has("\nShared: General options.\n");
    lacks("secret");
    lacks("gpurt play");  // it has shared options only
    lacks("gpurt completion");
    lacks("gpurt work alpha");  // the same options, shown before
    char *first = strstr(caught, "### General options");
    assert_non_null(first);
    assert_null(strstr(first + 1, "### General options"));
    assert_int_equal(manual("@OPTIONS@\n", "man"), COMMAND_OK);
    has(".SS gpurt work\n");
    has(".TP\n\\fB\\-f\\fR, \\fB\\-\\-flag\\fR\na flag\n");
    has("\\fB\\-\\-kinds\\fR \\fIone,two,three\\fR\nwhich (default: one)\n");
    has(".PP\nShared: General options.\n");
    assert_int_equal(manual("@SYNOPSIS@\n", "man"), COMMAND_OK);
    has(".B gpurt work\n.RI \"\" \"IN OUT [KEY=VALUE...] [OPTION...]\"\n.br\n");
    has(".B gpurt wait alpha\n.RI \"\" \"[OPTION...]\"\n.br\n");
    has(".B gpurt wait beta\n");
    has(".B gpurt play\n");
    lacks("gpurt wait\n");
    lacks("gpurt work alpha\n");
    lacks("inner");
    has(".B gpurt completion bash|zsh|fish\n.br\n");
    assert_int_equal(manual("@EXITS@\n", "md"), COMMAND_OK);
    has("| 0 | all went well |\n");
    has("| 75 | interrupted; can be resumed |\n");
    has("| 130 | interrupted |\n");
    assert_int_equal(manual("@EXITS@\n", "man"), COMMAND_OK);
    has(".TP\n.B 64\nthe command line is wrong\n");
    assert_int_equal(manual("x\n", "html"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: help --manual 'html': man or md is wanted\n");
    // Nothing is left of it: --help prints again.
    char *argv[] = {"work", "--help", NULL};
    catch_begin();
    assert_int_equal(work(2, argv), COMMAND_OK);
    catch_end();
    has("usage: gpurt work IN OUT [KEY=VALUE...] [OPTION...]\n\nWorks.\n\nOwn:\n  -m, --mode "
        "fast|slow=idle|NAME         how\n      --kinds one,two,three              which (default: "
        "one)\n");
    has(" (default: $SOME_ENV)\n");
    lacks("secret");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_and_words),
        cmocka_unit_test(options_and_values),
        cmocka_unit_test(scripts),
        cmocka_unit_test(manuals),
    };
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
