// SPDX-License-Identifier: Apache-2.0
// The dialect of kernels as it is read at run time: the preprocessor, expressions, what
// environments say of themselves, and the words of compilers. What the lists of the dialect say is
// what the C compiler makes of them, for every kernel of gpurt.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "base/whole_file.h"
#include "shaders/kernels.h"
#include "source/describe.h"
#include "source/expression.h"
#include "source/preprocess.h"

// ---- the preprocessor ----

static bool open_none(void *context, const char *from, const char *name, struct grt_pp_file *file) {
    (void)context;
    (void)from;
    (void)name;
    (void)file;
    return false;
}

// Words without lines and spaces.
static void squeeze(char *text) {
    char *to = text;
    for (char *at = text; *at; at++) {
        if (strncmp(at, "#line", 5) == 0) {
            at += strcspn(at, "\n");
        }
        if (*at != ' ' && *at != '\n') {
            *to++ = *at;
        }
    }
    *to = '\0';
}

static void preprocessor(void **state) {
    (void)state;
    // Examples of C11, 6.10.3, and what lists need.
    const struct {
        const char *text, *made;
    } rows[] = {
        {"#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z "
         "z[0]\n"
         "#define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\n"
         "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1); g(x+(3,4)-w) | h 5) & m(f)^m(m);\n",
         "f(2*(y+1))+f(2*(f(2*(z[0]))))%f(2*(0))+t(1);f(2*(2+(3,4)-0,1))|f(2*(~5))&f(2*(0,1))^m(0,"
         "1);"},
        {"#define str(s) # s\n#define xstr(s) str(s)\n#define glue(a, b) a ## b\n"
         "#define xglue(a, b) glue(a, b)\n#define HIGHLOW \"hello\"\n#define LOW LOW \", world\"\n"
         "xstr(INC(2).h) glue(HIGH, LOW); xglue(HIGH, LOW) str(\"a\\n\")",
         "\"INC(2).h\"\"hello\";\"hello\"\", world\"\"\\\"a\\\\n\\\"\""},
        {"#define last(x) x #\n#define no_call #\nlast(1) no_call", "1##"},
        {"#define L(X) X(0, a) X(1, b)\n#define ROW(i, n) n##_##i = i;\nL(ROW)", "a_0=0;b_1=1;"},
        {"#if defined(A) || 2 * 3 == 6 && !0\nyes\n#elif 1\nno\n#else\nno\n#endif\n#ifdef A\nno\n"
         "#if 1\nno\n#endif\n#else\nelse\n#endif\n#ifndef A\n#define A 1\n#endif\n#if A - "
         "1\nno\n#endif",
         "yeselse"},
        {"a /* b\n */ c // d \\\n e\nf", "acf"},
        {"#define E\n#define F() one\nE F E () E F() end", "F()oneend"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *made = grt_preprocess("t.k", rows[i].text, open_none, NULL);
        assert_non_null(made);
        squeeze(made);
        char *wanted = strdup(rows[i].made);
        squeeze(wanted);
        assert_string_equal(made, wanted);
        free(made);
        free(wanted);
    }
}

static bool seven(void *context, const char *name, size_t length, double *value) {
    (void)context;
    *value = 7;
    return length == 5 && memcmp(name, "SEVEN", 5) == 0;
}

static void expressions(void **state) {
    (void)state;
    const struct {
        const char *text;
        double value;
    } rows[] = {{"1 + 2 * 3 - 4 / 3", 6},
                {"(1u << 4) | 0x10", 16},
                {"SEVEN / 2 * 2 % 4", 2},
                {"SEVEN > 6 ? 10 : 20", 10},
                {"1.0f / 4.0f", 0.25},
                {"-3 + +1 - !0", -3},
                {"1 == 1 && 2 != 2 || 3 <= 3", 1},
                {"0 +1 +1 +1", 3},
                {"0.05f", 0.05},
                // Every operator at its turning point.
                {"2 < 2", 0},
                {"2 < 3", 1},
                {"2 <= 2", 1},
                {"3 <= 2", 0},
                {"3 > 3", 0},
                {"4 > 3", 1},
                {"3 >= 3", 1},
                {"2 >= 3", 0},
                {"2 == 3", 0},
                {"2 != 3", 1},
                {"1 && 0", 0},
                {"0.5 && 2", 1},
                {"0 || 0", 0},
                {"0 || 2", 1},
                {"6 & 3", 2},
                {"6 | 3", 7},
                {"6 ^ 3", 5},
                {"1 << 3", 8},
                {"16 >> 2", 4},
                {"~0 & 255", 255},
                {"!5", 0},
                {"!0", 1},
                {"-(-3)", 3},
                {"7 % 4", 3},
                {"-7 % 3", -1},
                {"-7 / 2", -3},
                {"7.0 / 2", 3.5},
                {"7 / 2.0", 3.5},
                {"7 / 2", 3},
                {"1e1 / 4", 2.5},
                {".5 * 4", 2},
                {"0x1F", 31},
                {"3uL", 3},
                // What compares or denies is whole, whatever it compares.
                {"!0.0 / 2", 0},
                {"(0.5 < 1.5) / 2", 0},
                {"(1.0 == 1.0) / 2", 0},
                {"-1.0 / 2", -0.5},
                {"(1.5 && 1) / 2", 0},
                {"(1 ? 1.0 : 2) / 2", 0.5},
                // Tighter binds first, and of the same the left one.
                {"1 | 2 ^ 3 & 2", 1},
                {"2 + 3 << 1", 10},
                {"1 < 2 == 1", 1},
                {"8 / 2 / 2", 2},
                {"8 - 4 - 2", 2},
                {"2 - 3 * 4", -10},
                {"1 || 0 && 0", 1},
                {"0 ? 1 : 0 ? 2 : 3", 3},
                {"1 ? 0 ? 4 : 5 : 6", 5}};
    char why[128];
    double value = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(grt_expression(rows[i].text, seven, NULL, &value, why));
        assert_true(value == rows[i].value);
    }
    const char *wrong[][2] = {{"", "no number at ''"},
                              {"1 +", "no number at ''"},
                              {"(1", "no ) before ''"},
                              {"EIGHT", "unknown name 'EIGHT'"},
                              {"1 2", "no operator at '2'"},
                              {"3x", "no number: '3x'"},
                              {"1 / 0", "division by zero: '/'"},
                              {"4 % 0", "division by zero: '%'"},
                              {"1 ? 2", "no : before ''"},
                              {"1 +* 2", "no number at '* 2'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(grt_expression(wrong[i][0], seven, NULL, &value, why));
        assert_string_equal(why, wrong[i][1]);
    }
    // As many in one another as there may be, and one more.
    char deep[512];
    for (int many = 199; many < 201; many++) {
        memset(deep, '(', (size_t)many);
        deep[many] = '1';
        memset(deep + many + 1, ')', (size_t)many);
        deep[2 * many + 1] = '\0';
        assert_true(grt_expression(deep, seven, NULL, &value, why) == (many == 199));
    }
    assert_string_equal(why, "too deep at '1)))))))))))))))))))))))))))))))))))))))'");
}

// ---- what an environment says of itself ----

static char heard[512];
static const char *ends_at;  // a name at which a listener has heard enough

static bool hear(const char *before, const char *name, const char *after) {
    size_t used = strlen(heard);
    snprintf(heard + used, sizeof heard - used, "%s%s%s", before, name, after);
    return !ends_at || strcmp(name, ends_at) != 0;
}

static bool hear_fact(void *context, const char *name, double value) {
    (void)context;
    char after[40];
    snprintf(after, sizeof after, "=%g;", value);
    return hear("", name, after);
}

static bool hear_state(void *context, const char *name) {
    (void)context;
    return hear("<", name, ">");
}

static bool hear_row(void *context, const char *list, const char *const texts[GRT_DESCRIBE_TEXTS],
                     uint32_t count) {
    (void)context;
    hear("", list, "(");
    for (uint32_t i = 0; i < count; i++) {
        hear(i ? "," : "", texts[i], "");
    }
    assert_true(count == GRT_DESCRIBE_TEXTS || !texts[count]);
    return hear(")", "", "");
}

static bool describe(const char *text) {
    static struct grt_describe_env env;
    env = (struct grt_describe_env){.fact = hear_fact, .state = hear_state, .row = hear_row};
    heard[0] = '\0';
    bool ok = grt_describe_env(&env, "here.k", text);
    assert_true(!ok || strcmp(env.name, "tide") == 0);
    return ok;
}

static void environments(void **state) {
    (void)state;
    ends_at = NULL;
    assert_true(
        describe("something grt_env tide { grt_fact ( obs , 2 + 2 ) grt_state ( 0 , x ) "
                 "grt_state ( 1 , speed ) grt_setting ( uint , map , 32 , 4 , 128 , \"cells\" ) "
                 "grt_fact ( dt , 1.0f / 4 ) grt_state ( 2 , z ) } behind"));
    assert_string_equal(heard, "obs=4;<x><speed>grt_setting(uint,map,32,4,128,cells)dt=0.25;<z>");
    static const char *const wrong[][2] = {
        {"nothing", "here.k: no environment: it defines ENV"},
        {"grt_env ENV {", "here.k: no environment"},
        {"grt_env tide ( }", "here.k: '{' is expected in a list of the kernel, not '('"},
        {"grt_env tide { grt_state ( 1 , x ) }",
         "here.k: ENV_STATE counts its numbers from 0 without gaps; x is 1"},
        {"grt_env tide { grt_state ( 0 , x ) grt_state ( 0 , y ) }", "without gaps; y is 0"},
        {"grt_env tide { grt_state ( 0 , x ) grt_state ( 2 , y ) }", "without gaps; y is 2"},
        {"grt_env tide { grt_state ( 0 ) }", "'0' in a list of the environment has no two parts"},
        {"grt_env tide { grt_fact ( a , 1 , 2 ) }", "'a' in a list of the environment has no two"},
        {"grt_env tide { grt_fact ( a , b ) }", "here.k: "},
        {"grt_env tide { grt_state ( b , a ) }", "here.k: "},
        {"grt_env tide { grt_rule ( 1 , 2 , 3 , 4 , 5 , 6 , 7 ) }",
         "here.k: a row of a list of the environment does not end"},
        {"grt_env a23456789012345678901234567890123456789012345678 { }",
         "is longer than 47 characters"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TEST_REFUSED(describe(wrong[i][0]), GRT_BAD_DATA, wrong[i][1]);
    }
    // Who listens may end it.
    static const char *const enough[] = {"b", "y", ""};
    for (size_t i = 0; i < sizeof enough / sizeof *enough; i++) {
        ends_at = enough[i];
        assert_false(
            describe("grt_env tide { grt_fact ( b , 1 ) grt_state ( 0 , y ) grt_rule ( c ) "
                     "grt_fact ( d , 1 ) }"));
        assert_null(strstr(heard, "d="));
    }
    ends_at = NULL;
}

// ---- every kernel of gpurt ----

static bool open_tree(void *context, const char *from, const char *name, struct grt_pp_file *file) {
    static char names[64][256];
    static uint32_t count;
    (void)context;
    (void)from;
    const char *folders[] = {"", "shaders/", "cl/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char *path = names[count++ % 64];
        uint64_t size = 0;
        snprintf(path, sizeof names[0], "%s/%s%s", GPURT_SOURCE_DIR, folders[i], name);
        if (access(path, R_OK) == 0 && (file->text = grt_whole_file_read(path, 1 << 22, &size))) {
            file->name = path;
            return true;
        }
    }
    return false;
}

static void check_lists(const char *root, const char *name) {
    const struct grt_kernel_info *info = NULL;
    for (uint32_t i = 0; grt_kernel_table[i]; i++) {
        info = strcmp(grt_kernel_table[i]->name, name) == 0 ? grt_kernel_table[i] : info;
    }
    if (!info) {
        fail_msg("no kernel %s", name);
        return;
    }
    struct grt_described d = {0};
    char *text = grt_preprocess("root", root, open_tree, NULL);
    assert_non_null(text);
    assert_true(grt_describe_kernel(&d, name, text));
    free(text);
    assert_string_equal(d.info.name, info->name);
    assert_int_equal(d.info.params_size, info->params_size);
    assert_int_equal(d.info.spec_count, info->spec_count);
    assert_int_equal(d.info.arg_count, info->arg_count);
    uint32_t values[GRT_MAX_SPECS] = {0}, doubled[GRT_MAX_SPECS] = {0};
    for (uint32_t i = 0; i < info->spec_count; i++) {
        assert_string_equal(d.info.specs[i].name, info->specs[i].name);
        assert_int_equal(d.info.specs[i].value, info->specs[i].value);
        values[i] = info->specs[i].value;
        doubled[i] = 2 * values[i];
    }
    for (uint32_t i = 0; i < info->arg_count; i++) {
        assert_string_equal(d.info.args[i].name, info->args[i].name);
        assert_string_equal(d.info.args[i].type, info->args[i].type);
        assert_int_equal(d.info.args[i].access, info->args[i].access);
    }
    assert_int_equal(d.info.shmem(&d.info, values), info->shmem(info, values));
    assert_int_equal(d.info.shmem(&d.info, doubled), info->shmem(info, doubled));
    grt_describe_finish(&d);
}

static void lists_agree(void **state) {
    (void)state;
    char root[512];
    if (access(GPURT_SOURCE_DIR "/shaders/kernels.h", R_OK) != 0) {
        skip();  // the tests run elsewhere, without the tree
    }
#define X(readings, folder, name)                                                                  \
    snprintf(root, sizeof root,                                                                    \
             "#include \"shaders/describe.h\"\n#include \"" #folder "/" #name ".k\"\n");           \
    check_lists(root, #name);
#define OF_ENV(readings, folder, env, user)                                                        \
    snprintf(root, sizeof root,                                                                    \
             "#include \"shaders/describe.h\"\n#include \"env/" #env ".k\"\n"                      \
             "#include \"" #folder "/" #user ".k\"\n");                                            \
    check_lists(root, #env "_" #user);
#define ENV(kind, name) GRT_OF_ENV(OF_ENV, kind, name)
    GRT_KERNELS(X)
    GRT_ENVS(ENV)
#undef X
}

// ---- words of compilers ----

// A compiler that passes over #line counts the lines of all it was given.
static void places(void **state) {
    (void)state;
    static const char text[] =
        "first;\n#line 7 \"one.k\"\nseven;\neight;\n#line 3 \"two.k\"\nthree;\ngusty(gust(0));\n";
    static const struct {
        const char *said, *want;
    } rows[] = {
        {"<kernel>:5:2: error: a", "one.k:7:2: error: a"},
        {"<kernel>:6:20: error: b", "one.k:8:20: error: b"},
        {"<kernel>:8:1: error: c", "two.k:3:1: error: c"},
        {"<kernel>:3:1: error: of no file", "<kernel>:3:1: error: of no file"},
        {"<kernel>:1:1: error: before it", "<kernel>:1:1: error: before it"},
        {"two.k:3:1: error: as it is", "two.k:3:1: error: as it is"},
        // Words of linkers: the first use of the function, and not of one whose name begins so.
        {"ptxas fatal   : Unresolved extern function 'gust'",
         "two.k:4: Unresolved extern function 'gust'"},
        {"error   : Undefined reference to 'gust' in ''",
         "two.k:4: Undefined reference to 'gust' in ''"},
        {"ptxas fatal   : Unresolved extern function 'gus'",
         "me.k: ptxas fatal   : Unresolved extern function 'gus'"},
        {"Unresolved extern function ''", "me.k: Unresolved extern function ''"},
        {"ptxas input, line 55; error   : x", "me.k: ptxas input, line 55; error   : x"},
        {"", "me.k: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "%s", rows[i].said);
        grt_program_place(text, 2, "me.k", line, sizeof line);
        assert_string_equal(line, rows[i].want);
    }
}

// Which of a compiler's lines is the mistake.
static void errors(void **state) {
    (void)state;
    static const struct {
        const char *said, *want;
    } rows[] = {
        {"a.k:3:1: warning: unused\na.k:4:2: error: no 'x'\na.k:9:1: error: more\n",
         "a.k:4:2: error: no 'x'"},
        {"ERROR: a.k:7: 'y' : undeclared identifier\n", "a.k:7: 'y' : undeclared identifier"},
        {"\n<kernel>:2:1: warning: unused\n<kernel>:8:3: warning: implicit declaration of function "
         "'gust' is invalid in OpenCL\n\nptxas fatal   : Unresolved extern function 'gust'\n",
         "<kernel>:8:3: warning: implicit declaration of function 'gust' is invalid in OpenCL"},
        {"<kernel>:8:3: warning: implicit declaration of function 'gust' is invalid in C99\n"
         "Error: link failed\n",
         "<kernel>:8:3: warning: implicit declaration of function 'gust' is invalid in C99"},
        // NVIDIA's OpenCL with -w, then without: words without a place are no mistakes.
        {"(): Warning: Function blur is a kernel, so overriding noinline attribute. The function "
         "may "
         "be inlined when called.\n\nptxas fatal   : Unresolved extern function 'gust'\n",
         "ptxas fatal   : Unresolved extern function 'gust'"},
        {"<kernel>:19:27: warning: implicit declaration of function 'gust' is invalid in OpenCL\n"
         "made[i] = gust(1);\n          ^\n"
         "(): Warning: Function blur is a kernel, so overriding noinline attribute.\n",
         "<kernel>:19:27: warning: implicit declaration of function 'gust' is invalid in OpenCL"},
        {"(): Warning: Function blur is a kernel, so overriding noinline attribute.\n"
         "<kernel>:12:5: error: use of undeclared identifier 'tiles'\n",
         "<kernel>:12:5: error: use of undeclared identifier 'tiles'"},
        {"error   : Undefined reference to 'gust' in ''\n<kernel>:3:1: error: x\n",
         "<kernel>:3:1: error: x"},
        {"(): Warning: Function blur is a kernel, so overriding noinline attribute.\n",
         "the compiler refuses it and names no mistake: is every function defined?"},
        {"a.k:2:1: warning: unused\nit is too long\n", "it is too long"},
        {"\nno such program\n", "no such program"},
        {"", "the compiler said nothing"},
        {NULL, "the compiler said nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[128];
        grt_program_error(rows[i].said, line, sizeof line);
        assert_string_equal(line, rows[i].want);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(preprocessor), TEST_CASE(expressions), TEST_CASE(environments),
    TEST_CASE(lists_agree),  TEST_CASE(places),      TEST_CASE(errors),
};
TEST_SUITE(dialect, false, cases);
