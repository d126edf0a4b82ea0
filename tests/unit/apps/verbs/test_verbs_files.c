// SPDX-License-Identifier: Apache-2.0
// Verbs that read and write files and want no device: what convert, data, predict, report and
// compare take and refuse, in which words and with which exit codes, and what they say of what they
// made.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/apps/made_run.h"

#include "cli/command.h"

static char folder[] = "/tmp/gpurt-verbs-XXXXXX", before[4096];

static int make(void **state) {
    (void)state;
    return getcwd(before, sizeof before) && mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int unmake(void **state) {
    char line[64];
    (void)state;
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return chdir(before) == 0 && system(line) == 0 ? 0 : -1;
}

static void put(const char *name, const char *text) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

typedef int verb_fn(int argc, char **argv);
struct refusal {
    verb_fn *verb;
    const char *line;
    int code;
    const char *said;
};

static void all_refused(const struct refusal *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int code = made_plain(rows[i].verb, rows[i].line);
        if (code != rows[i].code || !strstr(made_said, rows[i].said)) {
            fail_msg("%s: exit code %d, said: %s", rows[i].line, code, made_said);
        }
    }
}
#define REFUSED(rows) all_refused(rows, sizeof(rows) / sizeof *(rows))

// ---- convert ----

static void convert(void **state) {
    (void)state;
    assert_int_equal(made_plain(cmd_data, "data make regression --samples 9 --features 2 -o d.h5"),
                     0);
    const struct refusal rows[] = {
        {cmd_convert, "convert a.h5", 64, "two names are wanted, IN and OUT"},
        {cmd_convert, "convert a.h5 b.onnx c.onnx", 64, "two names are wanted, IN and OUT"},
        {cmd_convert, "convert a.pt b.onnx", 64, "'a.pt': the name must end in .h5, .safetensors"},
        {cmd_convert, "convert a.h5 b.pt", 64, "'b.pt': the name must end in .h5, .safetensors"},
        {cmd_convert, "convert a.h5 b.h5", 64, "both are of the same form"},
        {cmd_convert, "convert a.onnx b.onnx", 64, "both are of the same form"},
        {cmd_convert, "convert a.h5 b.onnx --all", 64, "--all is for safetensors"},
        {cmd_convert, "convert a.h5 b.safetensors --probabilities", 64,
         "--probabilities is for names that end in .onnx"},
        {cmd_convert, "convert a.h5 b.safetensors --embeddings", 64,
         "--embeddings is for names that end in .onnx"},
        {cmd_convert, "convert a.onnx b.h5 --embeddings --probabilities", 64,
         "--probabilities is for names that end in .onnx"},
        {cmd_convert, "convert a.h5 b.onnx --embeddings --probabilities", 64,
         "embeddings have no probabilities"},
        {cmd_convert, "convert none.h5 b.onnx", 66, "none.h5"},
        {cmd_convert, "convert none.safetensors b.h5 --all", 66, "none.safetensors"},
        {cmd_convert, "convert d.h5 b.safetensors", 65, "d.h5"},
        {cmd_convert, "convert d.h5 b.onnx", 65, "d.h5"},
    };
    REFUSED(rows);
    assert_true(access("b.onnx", F_OK) != 0 && access("b.safetensors", F_OK) != 0);
}

// ---- data ----

static void data_refused(void **state) {
    (void)state;
    put("t.csv", "a,b,c\n1,2,3\n4,5,6\n");
    const struct refusal rows[] = {
        {cmd_data, "data make regression", 64, "data make: -o FILE says where to"},
        {cmd_data, "data make regression -o no.csv", 64,
         "'no.csv': the name must end in .h5 or .hdf5"},
        {cmd_data, "data make regression -o no.h5.npz", 64,
         "'no.h5.npz': the name must end in .h5 or .hdf5"},
        {cmd_data, "data import t.csv -o no.npz", 64,
         "'no.npz': the name must end in .h5 or .hdf5"},
        {cmd_data, "data make cubes -o x.h5", 64, "no kind of data 'cubes'"},
        {cmd_data, "data make regresion -o x.h5", 64, "did you mean 'regression'?"},
        {cmd_data, "data make shapes --samples 0 -o x.h5", 64, "samples"},
        {cmd_data, "data make points --points 0 -o x.h5", 64, "1 to 1048576"},
        {cmd_data, "data make points --features 1048577 -o x.h5", 64, "1 to 1048576"},
        {cmd_data, "data make shapes --pixels 7 -o x.h5", 64, "8 to 1024"},
        {cmd_data, "data make shapes --pixels 1025 -o x.h5", 64, "8 to 1024"},
        {cmd_data, "data make shapes --deflate 10 -o x.h5", 64, "0 to 9"},
        {cmd_data, "data make shapes --noise -0.1 -o x.h5", 64, "a number from 0 on is wanted"},
        {cmd_data, "data make shapes --noise 1e30 -o x.h5", 64, "a number from 0 on is wanted"},
        {cmd_data, "data make shapes --noise nan -o x.h5", 64, "a number from 0 on is wanted"},
        {cmd_data, "data make shapes --noise 1x -o x.h5", 64, "a number from 0 on is wanted"},
        {cmd_data, "data import t.csv --size 4097 -o x.h5", 64, "1 to 4096"},
        {cmd_data, "data import t.csv --workers 17 -o x.h5", 64, "1 to 16"},
        {cmd_data, "data import t.csv", 64, "data import: -o FILE says where to"},
        {cmd_data, "data import t.csv --size 8 -o x.h5", 64,
         "data import: LABELS, --size and --gray are for images"},
        {cmd_data, "data import t.csv --gray -o x.h5", 64,
         "data import: LABELS, --size and --gray are for images"},
        {cmd_data, "data import t.csv l.npy -o x.h5", 64,
         "data import: LABELS, --size and --gray are for images"},
        {cmd_data, "data import pictures --inputs a -o x.h5", 64,
         "data import: --inputs, --targets and --fill are for .csv and .tsv"},
        {cmd_data, "data import pictures --fill 0 -o x.h5", 64, "are for .csv and .tsv"},
        {cmd_data, "data import pictures --targets a -o x.h5", 64, "are for .csv and .tsv"},
        {cmd_data, "data import t.csv --fill 1x -o x.h5", 64,
         "--fill is a number or mean, not '1x'"},
        {cmd_data, "data import t.csv --fill inf -o x.h5", 64, "--fill is a number or mean"},
        {cmd_data, "data import t.csv --fill means -o x.h5", 64, "--fill is a number or mean"},
        {cmd_data, "data import t.csv -o t.csv", 64, "t.csv"},
        {cmd_data, "data import none.csv -o x.h5", 66, "none.csv"},
        {cmd_data, "data info d.h5 --inputs a", 64,
         "data info: --inputs, --targets and --fill are for .csv and .tsv"},
        {cmd_data, "data info t.csv --size 8", 64, "'--size' is an option of `gpurt data import`"},
        {cmd_data, "data info d.h5 --samples 8", 64,
         "'--samples' is an option of `gpurt data make`"},
        {cmd_data, "data make shapes --gray -o x.h5", 64,
         "'--gray' is an option of `gpurt data import`"},
        {cmd_data, "data info t.csv --gray", 64, "'--gray' is an option of `gpurt data import`"},
        {cmd_data, "data import t.csv --pixels 8 -o x.h5", 64,
         "'--pixels' is an option of `gpurt data make`"},
        {cmd_data, "data", 64, "`make KIND`, `import SOURCE`, `info FILE`, `preview` or `order`"},
        {cmd_data, "data make", 64, "`make KIND`, `import SOURCE`"},
        {cmd_data, "data info", 64, "`make KIND`, `import SOURCE`"},
        {cmd_data, "data info a b", 64, "`make KIND`, `import SOURCE`"},
        {cmd_data, "data mkae x", 64, "did you mean 'data make'?"},
        {cmd_data, "data info none.h5", 66, "none.h5"},
    };
    REFUSED(rows);
    assert_true(access("x.h5", F_OK) != 0);
}

static void tables(void **state) {
    (void)state;
    put("w.csv", "a,b,kind\n1,2,x\n3,,y\n5,6,x\n");
    assert_int_equal(made_plain(cmd_data, "data import w.csv --fill 0 -o w.h5"), 0);
    SAID("a table: 3 rows of 2 inputs in w.h5");
    SAID("y has 2 classes; loss=mse takes them for numbers");
    SAID("1 missing values were filled");
    assert_int_equal(made_plain(cmd_data, "data import w.csv --inputs a --targets kind -o w.h5"),
                     0);
    SAID("a table: 3 rows of 1 inputs in w.h5");
    NOT_SAID("missing values");
    assert_int_equal(made_plain(cmd_data, "data import w.csv --inputs a --targets a -o w2.h5"), 65);
    put("n.csv", "a,b\n1,2.5\n3,-4\n");
    assert_int_equal(made_plain(cmd_data, "data import n.csv --fill mean -o n.h5"), 0);
    SAID("a table: 2 rows of 1 inputs in n.h5");
    NOT_SAID("classes");
}

static void info(void **state) {
    (void)state;
    assert_int_equal(made_plain(cmd_data, "data make classification --samples 40 --features 3 "
                                          "--classes 4 --chunk 16 --deflate 5 -o c.h5"),
                     0);
    assert_int_equal(made_run(cmd_data, "data info c.h5"), 0);
    assert_int_equal(made_count(), 2);
    TEXT(0, "name", "x");
    TEXT(0, "dtype", "f32");
    TEXT(0, "shape", "40 x 3");
    TEXT(0, "chunk", "16 x 3");
    NUMBER(0, "bytes", 40 * 3 * 4);
    assert_true(made_known(0, "filters") && made_known(0, "stored_bytes"));
    assert_false(made_known(0, "problem"));
    TEXT(1, "name", "y");
    TEXT(1, "shape", "40");
    assert_int_equal(json_integer_value(json_object_get(made_head, "classes")), 4);
    assert_non_null(json_object_get(made_head, "noise_floor"));
    assert_non_null(
        strstr(json_string_value(json_object_get(made_head, "made_by")), "classification"));
    assert_int_equal(made_plain(cmd_data, "data info c.h5"), 0);
    assert_non_null(strstr(made_out, ", made by gpurt: "));
    assert_non_null(strstr(made_out, ", noise floor "));
    assert_non_null(strstr(made_out, ", 4 classes"));
    assert_null(strstr(made_out, "problem"));
    assert_int_equal(made_plain(cmd_data, "data make regression --samples 8 -o r.h5"), 0);
    assert_int_equal(made_run(cmd_data, "data info r.h5"), 0);
    assert_null(json_object_get(made_head, "classes"));
    TEXT(0, "shape", "8 x 32");
    assert_false(made_known(0, "chunk"));
    assert_false(made_known(0, "filters"));
}

// ---- predict, eval, model: before a device is wanted ----

static void networks(void **state) {
    (void)state;
    const struct refusal rows[] = {
        {cmd_predict, "predict --data d.h5", 64, "no file for the predictions: name one with"},
        {cmd_predict, "predict --data d.h5 -o p.txt", 64,
         "'p.txt': the name must end in .h5, .hdf5, .csv or .npy, or --format h5|csv|npy says"},
        {cmd_predict, "predict --data d.h5 -o a.csv/p.txt", 64, "the name must end in"},
        {cmd_predict, "predict --data d.h5 -o p.csv --format xls", 64, "format"},
        {cmd_eval, "eval --part some", 64, "known are train validation all"},
        {cmd_eval, "eval --data d.h5 --mistakes m.jpg", 64, "m.jpg"},
        {cmd_eval, "eval d.h5", 64, "'d.h5' is no environment; the trained network is named with"},
        {cmd_model, "model --batch 0", 64, "wants a whole number from 1 to 1073741824"},
        {cmd_model, "model --batch 1073741825", 64, "wants a whole number from 1 to 1073741824"},
        {cmd_model, "model --batch 8x", 64, "wants a whole number from 1 to 1073741824"},
        {cmd_model, "model --batch -8", 64, "wants a whole number from 1 to 1073741824"},
        {cmd_monitor, "monitor --interval 0.04", 64, "seconds from 0.05 to 3600 are wanted"},
        {cmd_monitor, "monitor --interval 3601", 64, "seconds from 0.05 to 3600 are wanted"},
        {cmd_monitor, "monitor --format json", 64, "is one object, so it wants --once"},
    };
    REFUSED(rows);
}

// ---- report and compare ----

static void results(const char *name, double first, double second, const char *check) {
    char text[2048];
    snprintf(text, sizeof text,
             "{\"schema\":\"gpurt.bench/1\",\"gpurt\":\"0.1.0\",\"date\":\"2026-01-01T00:00:00Z\","
             "\"device\":{\"name\":\"Card\",\"backend\":\"vulkan\"}}\n"
             "{\"kind\":\"gemm\",\"shape\":\"8x8x8\",\"batch\":1,\"precision\":\"f32\",\"trans\":"
             "\"nn\",\"gflop_per_s\":%g,\"spread\":0,\"check\":\"ok\"}\n"
             "{\"kind\":\"gemm\",\"shape\":\"9x9x9\",\"batch\":1,\"precision\":\"f32\",\"trans\":"
             "\"nn\",\"gflop_per_s\":%g,\"spread\":0,\"check\":\"%s\"}\n",
             first, second, check);
    put(name, text);
}

static void compared(void **state) {
    (void)state;
    results("old.jsonl", 100, 50, "ok");
    results("new.jsonl", 90, 55, "ok");
    results("broken.jsonl", 100, 50, "FAILED");
    assert_int_equal(made_run(cmd_compare, "compare old.jsonl new.jsonl"), 0);
    assert_int_equal(made_count(), 2);
    for (size_t i = 0; i < 2; i++) {
        bool first = strstr(json_string_value(made_cell(i, "case")), "8x8x8") != NULL;
        NUMBER(i, "share", first ? 0.9 : 1.1);
        NUMBER(i, "before", first ? 100e9 : 50e9);
        NUMBER(i, "after", first ? 90e9 : 55e9);
        assert_true(json_is_false(made_cell(i, "below")));
    }
    SAID("1 better, 1 worse, 0 the same within their spread, 0 broken, 0 mended; 0 missing, 0 new");
    results("better.jsonl", 110, 60, "ok");
    assert_int_equal(made_run(cmd_compare, "compare old.jsonl better.jsonl"), 0);
    SAID("2 better, 0 worse, 0 the same");
    assert_int_equal(made_run(cmd_compare, "compare better.jsonl old.jsonl"), 0);
    SAID("0 better, 2 worse, 0 the same");
    // Nine tenths are no less than nine tenths.
    assert_int_equal(made_run(cmd_compare, "compare old.jsonl new.jsonl --fail-under 0.9"), 0);
    assert_int_equal(made_run(cmd_compare, "compare old.jsonl new.jsonl --fail-under 0.91"), 1);
    SAID("gemm 8x8x8");
    SAID(" on Card");
    SAID("0.900 of the baseline, at most 0.900 with the spread of both");
    SAID("1 of 2 figures below 0.91 of the baseline");
    assert_int_equal(made_run(cmd_compare, "compare old.jsonl broken.jsonl --fail-under 0.5"), 1);
    SAID("was right, is 'FAILED'");
    SAID("0 better, 0 worse, 1 the same within their spread, 1 broken, 0 mended");
    assert_int_equal(made_run(cmd_compare, "compare broken.jsonl old.jsonl --fail-under 0.5"), 0);
    SAID("0 broken, 1 mended");
    assert_int_equal(made_run(cmd_compare, "compare old.jsonl new.jsonl -q"), 0);
    NOT_SAID("better");
    assert_int_equal(
        made_plain(cmd_report, "report new.jsonl --baseline old.jsonl --fail-under 0.91"), 1);
    SAID("1 of 2 figures below 0.91 of the baseline");
    assert_int_equal(
        made_plain(cmd_report, "report old.jsonl new.jsonl --baseline old.jsonl --fail-under 0.9"),
        0);
    assert_int_equal(made_plain(cmd_report, "report old.jsonl --csv r.csv --md r.md"), 0);
    assert_string_equal(made_out, "");
    assert_true(access("r.csv", F_OK) == 0 && access("r.md", F_OK) == 0);
    put("empty.jsonl", "{\"schema\":\"gpurt.bench/1\",\"gpurt\":\"0.1.0\",\"device\":{\"name\":"
                       "\"Card\",\"backend\":\"vulkan\"}}\n");
    const struct refusal rows[] = {
        {cmd_compare, "compare old.jsonl", 64, "compare: two files are wanted, the old one and"},
        {cmd_compare, "compare a b c", 64, "compare: two files are wanted, the old one and"},
        {cmd_compare, "compare old.jsonl none.jsonl", 66, "none.jsonl"},
        {cmd_compare, "compare old.jsonl new.jsonl -o new.jsonl", 64, "new.jsonl"},
        {cmd_compare, "compare old.jsonl new.jsonl --fail-under 0", 64, "above 0"},
        {cmd_report, "report", 64, "report: files of `gpurt bench --format json`"},
        {cmd_report, "report old.jsonl --fail-under 0.9", 64,
         "'--fail-under' is a share of a baseline: name one with --baseline FILE"},
        {cmd_report, "report old.jsonl --md old.jsonl", 64, "old.jsonl"},
        {cmd_report, "report old.jsonl --md a.txt --csv a.txt", 64, "a.txt"},
        {cmd_report, "report old.jsonl --html a.txt --csv a.txt", 64, "a.txt"},
        {cmd_report, "report old.jsonl --baseline new.jsonl --html new.jsonl", 64, "new.jsonl"},
        {cmd_report, "report none.jsonl", 66, "none.jsonl"},
    };
    REFUSED(rows);
}

// ---- estimate ----

static void estimates(void **state) {
    (void)state;
    const struct refusal rows[] = {
        {cmd_estimate, "estimate --gpus 8", 64, "are for --scaling, which is not given"},
        {cmd_estimate, "estimate --overlap 0.5", 64, "are for --scaling, which is not given"},
        {cmd_estimate, "estimate --links x.json", 64, "are for --scaling, which is not given"},
        {cmd_estimate, "estimate --scaling --overlap 1.1", 64, "overlap"},
        {cmd_estimate, "estimate --scaling --overlap 0", 64, "overlap"},
        {cmd_estimate, "estimate --scaling --gpus 6", 64, "6 is no power of two: sums are made in"},
        {cmd_estimate, "estimate --scaling --gpus 131072", 64, "1 to 65536"},
        {cmd_estimate, "estimate --batch-sizes 0", 64, "1 to 1073741824"},
        {cmd_estimate, "estimate --card none", 64, "no card 'none'; see `gpurt estimate --list`"},
        {cmd_estimate, "estimate --card a100,", 0, ""},
        {cmd_estimate, "estimate --scaling --links none.json", 66, "none.json"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].code) {
            all_refused(&rows[i], 1);
        }
    }
    // The list needs no results: numbers of a card in the units of its file.
    assert_int_equal(made_run(cmd_estimate, "estimate --list --card a100,rx-6800"), 0);
    assert_int_equal(made_count(), 2);
    TEXT(0, "id", "a100");
    NUMBER(0, "units", 108);
    NUMBER(0, "clock_mhz", 1410);
    NUMBER(0, "fp32_tflops", 19.5);
    NUMBER(0, "matrix_tflops", 312);
    NUMBER(0, "bandwidth_gb_per_s", 2039);
    NUMBER(0, "memory", 80.0 * (1ull << 30));
    TEXT(1, "id", "rx-6800");
    assert_false(made_known(1, "matrix_tflops"));
    assert_int_equal(made_plain(cmd_estimate, "estimate --list --card a100"), 0);
    assert_null(strstr(made_out, "datasheet"));
    assert_int_equal(made_plain(cmd_estimate, "estimate --list --card a100 -v"), 0);
    assert_non_null(strstr(made_out, "datasheet"));
    assert_non_null(strstr(made_out, "NVIDIA A100-SXM4-80GB"));
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(convert),   cmocka_unit_test(data_refused), cmocka_unit_test(tables),
        cmocka_unit_test(info),      cmocka_unit_test(networks),     cmocka_unit_test(compared),
        cmocka_unit_test(estimates),
    };
    return cmocka_run_group_tests(cases, make, unmake);
}
