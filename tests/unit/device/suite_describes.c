// SPDX-License-Identifier: Apache-2.0
// What is read out of a kernel's text before any compiler sees it: its lists to the last number,
// what each refusal says, and files that include one another. No device is asked.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/graph.h"
#include "source/describe.h"
#include "source/preprocess.h"

// ---- lists ----

static bool read(struct grt_described *d, const char *text) {
    *d = (struct grt_described){.memory = NULL};
    return grt_describe_kernel(d, "k.k", text);
}

static void parameters(void **state) {
    (void)state;
    static const struct {
        const char *members;
        uint32_t size;  // 0: refused
        const char *why;
    } rows[] = {
        {"uint n ;", 4, NULL},
        {"uint n ; float a ; int b ;", 12, NULL},
        {"uint n , m ;", 8, NULL},
        {"float a [ 3 ] ;", 12, NULL},
        {"float a [ 2 ] , b [ 3 ] ; uint n ;", 24, NULL},
        {"float a [ 2 ] , b ;", 12, NULL},
        {"float a , b [ 2 + 2 ] ;", 20, NULL},
        {"float a [ 2 ] [ 3 ] ;", 24, NULL},
        {"inner a ; uint n ;", 12, NULL},
        {"inner a [ 3 ] ;", 24, NULL},
        {"float a [ 32 ] ;", 128, NULL},
        {"inner a [ 16 ] ;", 128, NULL},
        {"float a [ 33 ] ;", 0, "k.k: parameters of a kernel are 1 to 128 bytes"},
        {"float a [ 32 ] ; uint n ;", 0, "k.k: parameters of a kernel are 1 to 128 bytes"},
        {"float a [ 32 ] , b ;", 0, "k.k: parameters of a kernel are 1 to 128 bytes"},
        {"inner a [ 17 ] ;", 0, "k.k: parameters of a kernel are 1 to 128 bytes"},
        {"float a [ 0 ] ;", 0, "k.k: parameters of a kernel are 1 to 128 bytes"},
        {"float a [ 1 << 30 ] ;", 0, "k.k: parameters of a kernel are 1 to 128 bytes"},
        {"float a [ N ] ;", 0, "k.k: the length of an array is no number: unknown name 'N'"},
        {"float a [ 3 ;", 0, "k.k: "},
        {"u16 a ;", 0, "k.k: parameters of a kernel are float, uint or int, not 'u16'"},
        {"f32x4 a ;", 0, "k.k: parameters of a kernel are float, uint or int, not 'f32x4'"},
        {"outer a ;", 0, "k.k: parameters of a kernel are float, uint or int, not 'outer'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_described d;
        char text[512];
        snprintf(text, sizeof text,
                 "grt_struct inner { float x , y ; } ; grt_struct p { %s } ; grt_kernel k p { }",
                 rows[i].members);
        if (rows[i].size > 0) {
            assert_true(read(&d, text));
            assert_int_equal(d.info.params_size, rows[i].size);
        } else {
            TEST_REFUSED(read(&d, text), GRT_BAD_DATA, rows[i].why);
        }
        grt_describe_finish(&d);
    }
}

#define BEFORE "grt_struct p { uint n ; } ; grt_kernel k p { "

static void lists(void **state) {
    (void)state;
    struct grt_described d;
    assert_true(read(&d,
                     BEFORE "grt_spec ( 1 , BN , 8 * 16 ) grt_spec ( 2 , DEEP , 3 )"
                            " grt_read ( 0 , float , x ) grt_write ( 1 , u16 , y )"
                            " grt_update ( 2 , u32x4 , z ) grt_read ( 3 , texels , t )"
                            " grt_shmem ( float , tile , WG + BN ) grt_shmem ( u16 , row , DEEP )"
                            " grt_shmem ( f32x4 , one , 1 ) }"));
    assert_string_equal(d.info.name, "k");
    assert_int_equal(d.info.params_size, 4);
    static const struct grt_spec_info specs[] = {{"WG", 64}, {"BN", 128}, {"DEEP", 3}};
    assert_int_equal(d.info.spec_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(d.info.specs[i].name, specs[i].name);
        assert_int_equal(d.info.specs[i].value, specs[i].value);
    }
    static const struct grt_arg_info args[] = {{"x", "float", GRT_READ},
                                               {"y", "u16", GRT_WRITE},
                                               {"z", "u32x4", GRT_UPDATE},
                                               {"t", "texels", GRT_READ}};
    assert_int_equal(d.info.arg_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(d.info.args[i].name, args[i].name);
        assert_string_equal(d.info.args[i].type, args[i].type);
        assert_int_equal(d.info.args[i].access, args[i].access);
    }
    // Each row begins at a multiple of 16 bytes.
    const uint32_t usual[] = {64, 128, 3}, other[] = {1, 2, 8};
    assert_int_equal(d.info.shmem(&d.info, usual), 192 * 4 + 16 + 16);
    assert_int_equal(d.info.shmem(&d.info, other), 16 + 16 + 16);
    grt_describe_finish(&d);
    assert_null(d.memory);
    // What cannot be computed, or is beyond all, fits nowhere.
    assert_true(read(&d, BEFORE "grt_spec ( 1 , A , 0 ) grt_shmem ( float , t , 64 / A ) }"));
    const uint32_t zero[] = {64, 0}, two[] = {64, 2};
    assert_int_equal(d.info.shmem(&d.info, zero), UINT32_MAX);
    assert_int_equal(d.info.shmem(&d.info, two), 128);
    grt_describe_finish(&d);
    assert_true(read(&d, BEFORE "grt_shmem ( float , t , 1 << 30 ) grt_shmem ( uint , s , 4 ) }"));
    assert_int_equal(d.info.shmem(&d.info, usual), UINT32_MAX);
    grt_describe_finish(&d);
}

static void refused_lists(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "k.k: no kernel: it begins with KERNEL(name, ...)"},
        {"grt_kernel k q { }", "k.k: no STRUCT(q) for the parameters of a kernel"},
        {BEFORE "} grt_kernel again p { }", "k.k: more than one kernel; each wants a text"},
        {BEFORE "grt_other ( 1 ) }", "k.k: 'grt_other' in the lists of kernel k"},
        {BEFORE "grt_read 1 }", "k.k: '(' is expected in a list of the kernel, not '1'"},
        {BEFORE "grt_read ( 0 , float ) }",
         "k.k: ',' is expected in a list of the kernel, not ')'"},
        {BEFORE "grt_read ( 0 , float , x , y ) }",
         "k.k: ')' is expected in a list of the kernel, not ','"},
        {BEFORE "grt_read ( 1 , float , x ) }",
         "k.k: buffer x is number 1; they are counted from 0, to at most 11"},
        {BEFORE "grt_read ( 0 , half , x ) }",
         "k.k: buffer x is of 'half'; there are float, uint, int, u16, f32x4, u32x4"},
        {BEFORE "grt_read ( N , float , x ) }", "k.k: x is no number: unknown name 'N'"},
        {BEFORE "grt_spec ( 0 , A , 1 ) }",
         "k.k: constant A is number 0; they are counted from 1, to at most 23"},
        {BEFORE "grt_spec ( 1 , A , B ) }", "k.k: A is no number: unknown name 'B'"},
        {BEFORE "grt_shmem ( texels , s , 4 ) }", "k.k: shared memory s of 'texels': no such type"},
        {BEFORE "grt_shmem ( float , s , ( 4 }", "k.k: a list of the kernel does not end"},
    };
    struct grt_described d;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TEST_REFUSED(read(&d, rows[i].text), GRT_BAD_DATA, rows[i].why);
        grt_describe_finish(&d);
    }
    // As many as there may be, and one more.
    static const struct {
        uint32_t most, from;
        const char *form, *why;
    } counts[] = {
        {GRT_MAX_BINDINGS, 0, "grt_read ( %u , float , x ) ", "buffer x is number 12;"},
        {GRT_MAX_SPECS - 1, 1, "grt_spec ( %u , A , 1 ) ", "constant A is number 24;"},
        {GRT_MAX_SHMEM, 0, "grt_shmem ( float , s , %u ) ",
         "shared memory s of 'float': too many rows"},
    };
    for (size_t i = 0; i < 3; i++) {
        for (uint32_t more = 0; more < 2; more++) {
            char text[2048] = BEFORE;
            for (uint32_t k = 0; k < counts[i].most + more; k++) {
                size_t used = strlen(text);
                snprintf(text + used, sizeof text - used, counts[i].form, counts[i].from + k);
            }
            strcat(text, "}");
            if (more) {
                TEST_REFUSED(read(&d, text), GRT_BAD_DATA, counts[i].why);
            } else {
                assert_true(read(&d, text));
            }
            grt_describe_finish(&d);
        }
    }
}

// ---- files and directives ----

static uint32_t opened;
// A name of a number includes the file of the number below, 0 the last; "me" has itself.
static bool open_number(void *context, const char *from, const char *name,
                        struct grt_pp_file *file) {
    (void)from;
    char text[64];
    unsigned number = 0;
    opened++;
    if (sscanf(name, "%u.k", &number) != 1 && strcmp(name, "me.k") != 0) {
        return false;
    }
    snprintf(text, sizeof text, "in %u\n#include \"%u.k\"\nout %u", number, number - 1, number);
    static char names[64][8];
    snprintf(names[number % 64], sizeof names[0], "%u.k", number);
    file->name = strcmp(name, "me.k") == 0 ? "me.k" : names[number % 64];
    file->text = strdup(strcmp(name, "me.k") == 0 ? "#include \"me.k\"\n"
                        : number > 0              ? text
                                                  : (const char *)context);
    return file->text != NULL;
}

static void expect(const char *text, const char *want) {
    char *got = grt_preprocess("t.k", text, open_number, "last");
    assert_non_null(got);
    assert_string_equal(got, want);
    free(got);
}

// Lines keep their numbers: a few are left empty, of more the next is counted anew.
static void lines(void **state) {
    (void)state;
    expect("a\nb", "#line 1 \"t.k\"\n a\nb\n");
    expect("a b(c)", "#line 1 \"t.k\"\n a b ( c )\n");
    expect("a\n\n\n\n\n\n\n\nb", "#line 1 \"t.k\"\n a\n\n\n\n\n\n\n\nb\n");
    expect("a\n\n\n\n\n\n\n\n\nb", "#line 1 \"t.k\"\n a\n#line 10 \"t.k\"\n b\n");
    expect("x\n#include \"1.k\"\ny",
           "#line 1 \"t.k\"\n x\n#line 1 \"1.k\"\n in 1\n#line 1 \"0.k\"\n last\n"
           "#line 3 \"1.k\"\n out 1\n#line 3 \"t.k\"\n y\n");
    expect("#pragma once  upon\nx", "#line 1 \"t.k\"\n#pragma once upon\n x\n");
    expect("#include <a.h>\nx", "#line 1 \"t.k\"\n#include <a.h>\n x\n");
    char *got = grt_preprocess("a\"b\\c\n.k", "x", open_number, NULL);
    assert_string_equal(got, "#line 1 \"a_b_c_.k\"\n x\n");
    free(got);
}

static void refused_texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"a\n#if 1\nb", "t.k:2: error: no #endif for this condition"},
        {"#ifdef A\n#if 1\n#endif\nb", "t.k:1: error: no #endif for this condition"},
        {"a\n\n#else", "t.k:3: error: no #if before 'else'"},
        {"#endif", "t.k:1: error: no #if before 'endif'"},
        {"#elif 1", "t.k:1: error: no #if before 'elif'"},
        {"#if\n#endif", "t.k:1: error: no condition: no number at ''"},
        {"#if 1 2\n#endif", "t.k:1: error: no condition: no operator at '2"},
        {"#if defined(\n#endif", "t.k:1: error: "},
        {"#include x", "t.k:1: error: #include wants \"a file\""},
        {"#include", "t.k:1: error: #include wants \"a file\""},
        {"#include \"\"", "t.k:1: error: #include wants \"a file\""},
        {"\n#include \"none.k\"", "t.k:2: error: there is no file '\"none.k\"'"},
        {"#include \"me.k\"",
         "me.k:1: error: files that include one another without end: '\"me.k\"'"},
        {"#error at once", "t.k:1: error: #error 'at'"},
        {"#error", "t.k:1: error: #error"},
        {"#wrong", "t.k:1: error: unknown directive 'wrong'"},
        {"#define", "error: #define wants a name"},
        {"#define 3", "t.k:1: error: #define wants a name"},
        {"#define f(a, 3) a", "t.k:1: error: no parameter of a macro: '3'"},
        {"#define f(a", "t.k:1: error: no ) in #define 'f'"},
        {"#define f(a) a\n\nf(1", "t.k:3: error: no ) after the arguments of 'f'"},
        {"#define f(a) a\nf(1, 2)", "t.k:2: error: wrong number of arguments of 'f'"},
        {"#define f(a, b) a\nf(1)", "t.k:2: error: wrong number of arguments of 'f'"},
        {"#define f() a\nf(1)", "t.k:2: error: wrong number of arguments of 'f'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TEST_REFUSED(grt_preprocess("t.k", rows[i].text, open_number, "last"), GRT_BAD_DATA,
                     rows[i].why);
    }
    // Wrong words where nothing is read are no mistakes.
    expect("#if 0\n#wrong\n#error\n#include \"none.k\"\n#if\n#endif\n#endif\na",
           "#line 8 \"t.k\"\n a\n");
    expect("#\na", "#line 2 \"t.k\"\n a\n");
    expect("#define f(a) a\nf (2) f", "#line 2 \"t.k\"\n 2 f\n");
    expect("#define f(a, b) b a\nf((1, 2), 3)", "#line 2 \"t.k\"\n 3 ( 1 , 2 )\n");
    expect("#define f() a\nf()", "#line 2 \"t.k\"\n a\n");
    // The deepest that is read, and one more.
    for (int more = 0; more < 2; more++) {
        char text[4096] = "";
        for (int i = 0; i < 64 + more; i++) {
            strcat(text, "#if 1\n");
        }
        strcat(text, "x\n");
        for (int i = 0; i < 64 + more; i++) {
            strcat(text, "#endif\n");
        }
        char *made = NULL;
        if (more) {
            TEST_REFUSED(grt_preprocess("t.k", text, open_number, NULL), GRT_BAD_DATA,
                         "t.k:65: error: too many #if in one another");
        } else {
            made = grt_preprocess("t.k", text, open_number, NULL);
            assert_string_equal(made, "#line 65 \"t.k\"\n x\n");
            free(made);
        }
        snprintf(text, sizeof text, "#include \"%d.k\"\n", 31 + more);
        if (more) {
            TEST_REFUSED(grt_preprocess("t.k", text, open_number, "last"), GRT_BAD_DATA,
                         "error: files that include one another without end: '\"0.k\"'");
        } else {
            made = grt_preprocess("t.k", text, open_number, "last");
            assert_non_null(strstr(made, " last\n"));
            free(made);
        }
        // Sixteen parameters.
        strcpy(text, "#define f(a1");
        for (int i = 2; i <= 16 + more; i++) {
            snprintf(text + strlen(text), 16, ", a%d", i);
        }
        strcat(text, ") a16\nf(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,x)");
        if (more) {
            TEST_REFUSED(grt_preprocess("t.k", text, open_number, NULL), GRT_BAD_DATA,
                         "t.k:1: error: no parameter of a macro: 'a17'");
        } else {
            expect(text, "#line 2 \"t.k\"\n x\n");
        }
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(parameters), TEST_CASE(lists),         TEST_CASE(refused_lists),
    TEST_CASE(lines),      TEST_CASE(refused_texts),
};
TEST_SUITE(describes, false, cases);
