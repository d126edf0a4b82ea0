// SPDX-License-Identifier: Apache-2.0
// `gpurt eval` and `predict` of what a network is made to say: which columns there are, scores that
// are not defined, what was taken for what, trials of features, and each form of predictions.
#define _GNU_SOURCE  // memmem
#include "unit/apps/made_device.h"

#include "cli/command.h"
#include "gpurt/features.h"
#include "gpurt/model_file.h"
#include "gpurt/scores.h"

static char folder[] = "/tmp/gpurt-eval-XXXXXX", before[4096];

// ---- in place of the library's ----

static struct {
    struct grt_evaluation evaluation;
    struct grt_scores scores;
    uint32_t classes, mistakes, pictures;
    enum grt_part part;
    int features, k, epochs;
    double temperature, rate;
    struct grt_archive *said;
} m;

struct grt_archive *grt_model_load(const char *path) {
    assert_string_equal(path, "m.h5");
    struct grt_archive *archive = grt_archive_create();
    grt_archive_set_whole(archive, "classes", m.classes);
    grt_archive_set_text(archive, "class_names", "cat\ndog\n\nbird");
    return archive;
}

bool grt_evaluate(struct grt_dev *dev, const struct grt_archive *model,
                  const struct grt_config *config, enum grt_part part, bool (*stop)(void),
                  struct grt_evaluation *evaluation) {
    (void)dev;
    (void)model;
    (void)config;
    (void)stop;
    m.part = part;
    *evaluation = m.evaluation;
    return true;
}

bool grt_score(struct grt_dev *dev, const struct grt_archive *model,
               const struct grt_config *config, enum grt_part part, bool (*stop)(void),
               struct grt_scores *scores) {
    (void)dev;
    (void)model;
    (void)config;
    (void)part;
    (void)stop;
    *scores = m.scores;
    return true;
}

static struct grt_classified classified;
static uint64_t confusion[25 * 25];

struct grt_classified *grt_classified_create(struct grt_dev *dev, const struct grt_archive *model,
                                             const struct grt_config *config, enum grt_part part,
                                             bool (*stop)(void)) {
    (void)dev;
    (void)model;
    (void)config;
    (void)stop;
    m.part = part;
    classified = (struct grt_classified){.evaluation = m.evaluation,
                                         .baseline = 0.4,
                                         .classes = m.classes,
                                         .confusion = confusion,
                                         .height = m.pictures,
                                         .width = 2,
                                         .channels = 3,
                                         .mistake_count = m.mistakes};
    for (uint32_t i = 0; i < m.classes * m.classes; i++) {
        confusion[i] = 100 + i;
    }
    return &classified;
}

void grt_classified_destroy(struct grt_classified **c) {
    *c = NULL;
}

bool grt_features_take(struct grt_dev *dev, const struct grt_features_desc *desc,
                       struct grt_features_of *of) {
    (void)dev;
    assert_int_equal(desc->drawn, m.features > 0);
    assert_int_equal(desc->pixels, m.features > 0);
    m.features++;
    *of = (struct grt_features_of){.bank = {.rows = 70, .width = desc->drawn ? 6 : 5},
                                   .queries = {.rows = 30, .width = 5},
                                   .bank_x = {.rows = 71, .width = 9},
                                   .queries_x = {.rows = 31, .width = 9}};
    return true;
}

void grt_features_of_finish(struct grt_features_of *of) {
    (void)of;
}

bool grt_knn(struct grt_dev *dev, const struct grt_features *bank,
             const struct grt_features *queries, const struct grt_knn_desc *desc,
             double *accuracy) {
    (void)dev;
    m.k = (int)desc->k;
    m.temperature = desc->temperature;
    *accuracy = (double)queries->rows / (double)bank->rows;
    return true;
}

bool grt_linear_probe(struct grt_dev *dev, const struct grt_features *bank,
                      const struct grt_features *queries, const struct grt_linear_probe_desc *desc,
                      double *accuracy) {
    (void)dev;
    m.epochs = (int)desc->epochs;
    m.rate = desc->learning_rate;
    *accuracy = 0.01 * (double)(bank->width + queries->width);
    return true;
}

static struct grt_archive *predictions(void) {
    static const float y[6] = {0.1f, 1, -2, 3e10f, 0.25f, -0.5f};
    static const uint32_t classes[3] = {7, 4000000000u, 0};
    struct grt_archive *archive = grt_archive_create();
    assert_non_null(grt_archive_add(archive, "y", GRT_F32, 2, (uint64_t[]){3, 2}, y));
    assert_non_null(grt_archive_add(archive, "class", GRT_U32, 1, (uint64_t[]){3}, classes));
    return archive;
}

struct grt_archive *grt_predict(struct grt_dev *dev, const struct grt_archive *model,
                                const struct grt_config *config, bool (*stop)(void)) {
    (void)dev;
    (void)model;
    (void)config;
    (void)stop;
    return predictions();
}

struct grt_archive *grt_features_archive(struct grt_dev *dev, const struct grt_archive *model,
                                         const struct grt_config *config, bool (*stop)(void)) {
    (void)dev;
    (void)model;
    (void)config;
    (void)stop;
    static const float x[2] = {1.5f, 2.5f};
    struct grt_archive *archive = grt_archive_create();
    assert_non_null(grt_archive_add(archive, "embedding", GRT_F32, 2, (uint64_t[]){2, 1}, x));
    return archive;
}

static int begin(void **state) {
    memset(&m, 0, sizeof m);
    m.evaluation = (struct grt_evaluation){
        .samples = 40, .loss = 0.5, .accuracy = -1, .top5 = -1, .seconds = 2};
    return made_begin(state);
}

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

#define EVAL "eval --data d.h5 --checkpoint m.h5"

static void has(const char *key, bool wanted) {
    if (made_known(0, key) != wanted) {
        fail_msg("%s is %sthere", key, wanted ? "not " : "");
    }
}

// ---- eval ----

static void numbers(void **state) {
    (void)state;
    assert_int_equal(made_run(cmd_eval, EVAL), 0);
    NUMBER(0, "samples", 40);
    NUMBER(0, "loss", 0.5);
    NUMBER(0, "samples_per_s", 20);
    static const char *const others[] = {"accuracy", "top5",   "most_frequent", "mae",
                                         "r2",       "f1",     "auc",           "loss_1",
                                         "loss_2",   "loss_3", "loss_4"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        has(others[i], false);
    }
    assert_int_equal(m.part, GRT_PART_ALL);
    m.scores = (struct grt_scores){.mae = 0.25, .r2 = NAN, .f1 = 9, .auc = 9};
    assert_int_equal(made_run(cmd_eval, EVAL " --scores --part validation"), 0);
    assert_int_equal(m.part, GRT_PART_VALIDATION);
    NUMBER(0, "mae", 0.25);
    has("r2", false);
    has("f1", false);
    has("auc", false);
    assert_int_equal(made_plain(cmd_eval, EVAL " --scores"), 0);
    assert_null(strstr(made_out, "nan"));
    m.evaluation.loss_count = 2;
    m.evaluation.losses[0] = 3;
    m.evaluation.losses[1] = 4;
    m.evaluation.losses[2] = 5;
    m.evaluation.seconds = 0;
    assert_int_equal(made_run(cmd_eval, EVAL " --part train --mistakes m.svg"), 0);
    NUMBER(0, "loss_1", 3);
    NUMBER(0, "loss_2", 4);
    has("loss_3", false);
    has("samples_per_s", false);
    SAID("--mistakes: targets are no classes, so there is no picture");
    assert_int_equal(m.part, GRT_PART_TRAIN);
}

static void classes(void **state) {
    (void)state;
    m.classes = 4;
    m.evaluation.accuracy = 0.75;
    m.scores = (struct grt_scores){.classes = 4, .mae = 9, .r2 = 9, .f1 = 0.5, .auc = 0.875};
    assert_int_equal(made_run(cmd_eval, EVAL " --scores"), 0);
    NUMBER(0, "accuracy", 0.75);
    NUMBER(0, "most_frequent", 0.4);
    NUMBER(0, "f1", 0.5);
    NUMBER(0, "auc", 0.875);
    has("mae", false);
    has("r2", false);
    has("top5", false);
    const json_t *rows = json_object_get(made_notes, "confusion");
    const json_t *names = json_object_get(made_notes, "class_names");
    for (size_t r = 0; r < 4; r++) {
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(json_integer_value(json_array_get(json_array_get(rows, r), k)),
                             100 + 4 * r + k);
        }
    }
    assert_string_equal(json_string_value(json_array_get(names, 1)), "dog");
    assert_string_equal(json_string_value(json_array_get(names, 2)), "2");  // it has no name
    assert_string_equal(json_string_value(json_array_get(names, 3)), "bird");
    assert_int_equal(made_plain(cmd_eval, EVAL), 0);
    assert_non_null(strstr(made_out, "what samples are, and what they were taken for:\n"));
    assert_non_null(strstr(made_out, "\n        cat   dog     2  bird\ncat     100   101   102"));
    assert_non_null(strstr(made_out, "\nbird    112   113   114   115\n"));
    m.evaluation.top5 = 0.875;
    m.classes = 20;
    assert_int_equal(made_run(cmd_eval, EVAL), 0);
    NUMBER(0, "top5", 0.875);
    assert_int_equal(made_plain(cmd_eval, EVAL), 0);
    assert_non_null(strstr(made_out, "taken for:"));
    m.classes = 21;
    assert_int_equal(made_plain(cmd_eval, EVAL), 0);
    assert_non_null(strstr(made_out, "21 classes: --format json has what was taken for what"));
    assert_null(strstr(made_out, "taken for:"));
}

static void pictures(void **state) {
    (void)state;
    m.classes = 2;
    m.evaluation.accuracy = 1;
    assert_int_equal(made_run(cmd_eval, EVAL " --mistakes m.svg"), 0);
    SAID("--mistakes: samples are no images of 1 or 3 channels, so there is no picture");
    m.pictures = 2;
    assert_int_equal(made_run(cmd_eval, EVAL " --mistakes m.svg"), 0);
    SAID("--mistakes: there is none, and so no picture");
    assert_true(access("m.svg", F_OK) != 0);
    m.mistakes = 1;
    assert_int_equal(made_run(cmd_eval, EVAL " --mistakes m.svg"), 0);
    assert_true(access("m.svg", F_OK) == 0);
}

static void trials(void **state) {
    (void)state;
    assert_int_equal(made_run(cmd_eval, "eval knn --data d.h5 --checkpoint m.h5"), 0);
    assert_int_equal(made_count(), 3);
    static const char *const names[] = {"learned", "untrained", "raw pixels"};
    static const double widths[] = {5, 6, 9}, banks[] = {70, 70, 71}, queries[] = {30, 30, 31};
    for (size_t i = 0; i < 3; i++) {
        TEXT(i, "features", names[i]);
        NUMBER(i, "width", widths[i]);
        NUMBER(i, "bank", banks[i]);
        NUMBER(i, "queries", queries[i]);
        NUMBER(i, "accuracy", queries[i] / banks[i]);
    }
    assert_int_equal(m.k, 200);
    assert_true(m.temperature == 0.1);
    m.features = 0;
    assert_int_equal(made_run(cmd_eval, "eval linear --data d.h5 --checkpoint m.h5 --no-baseline "
                                        "--epochs 7 --learning-rate 0.25"),
                     0);
    assert_int_equal(made_count(), 1);
    assert_int_equal(m.features, 1);
    NUMBER(0, "accuracy", 0.1);
    assert_int_equal(m.epochs, 7);
    assert_true(m.rate == 0.25);
    m.features = 0;
    assert_int_equal(made_run(cmd_eval, "eval knn --data d.h5 --checkpoint m.h5 --k 3 "
                                        "--temperature 0.5 --no-baseline"),
                     0);
    assert_int_equal(m.k, 3);
    assert_true(m.temperature == 0.5);
    assert_int_equal(made_run(cmd_eval, "eval knn --k 0"), COMMAND_USAGE);
    assert_int_equal(made_run(cmd_eval, "eval knn --temperature 0"), COMMAND_USAGE);
    assert_int_equal(made_run(cmd_eval, "eval linear --k 3"), COMMAND_USAGE);
}

// ---- predict ----

static size_t file_is(const char *name, char *text, size_t size) {
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    size_t count = fread(text, 1, size, file);
    fclose(file);
    return count;
}

#define PREDICT "predict --data d.h5 --checkpoint m.h5 -o "

static void forms(void **state) {
    (void)state;
    static char text[1 << 14];
    static const char csv[] =
        "y0,y1,class\n0.100000001,1,7\n-2,3.0000001e+10,4000000000\n0.25,-0.5,0\n";
    assert_int_equal(made_plain(cmd_predict, PREDICT "p.csv"), 0);
    SAID("3 predictions in p.csv");
    text[file_is("p.csv", text, sizeof text - 1)] = '\0';
    assert_string_equal(text, csv);
    assert_int_equal(made_plain(cmd_predict, PREDICT "p.txt --format csv"), 0);
    text[file_is("p.txt", text, sizeof text - 1)] = '\0';
    assert_string_equal(text, csv);
    assert_int_equal(made_plain(cmd_predict, PREDICT "p.npy"), 0);
    assert_int_equal(file_is("p.npy", text, sizeof text), 128 + 24);
    assert_memory_equal(text, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, ",
                        50);
    assert_non_null(memmem(text, 128, "'shape': (3, 2), }", 18));
    assert_int_equal(text[127], '\n');
    float y[6];
    memcpy(y, text + 128, sizeof y);
    assert_true(y[0] == 0.1f && y[3] == 3e10f && y[5] == -0.5f);
    assert_int_equal(made_plain(cmd_predict, PREDICT "p.hdf5"), 0);
    assert_int_equal(file_is("p.hdf5", text, 8), 8);
    assert_memory_equal(text + 1, "HDF", 3);
    assert_int_equal(made_plain(cmd_predict, PREDICT "plain"), 0);  // no ending: HDF5
    assert_int_equal(file_is("plain", text, 8), 8);
    assert_memory_equal(text + 1, "HDF", 3);
    // What is asked for stands above the name.
    assert_int_equal(made_plain(cmd_predict, PREDICT "q.csv --format npy"), 0);
    assert_int_equal(file_is("q.csv", text, sizeof text), 128 + 24);
    assert_int_equal(made_plain(cmd_predict, PREDICT "e.csv --embeddings"), 0);
    SAID("2 embeddings in e.csv");
    text[file_is("e.csv", text, sizeof text - 1)] = '\0';
    assert_string_equal(text, "embedding\n1.5\n2.5\n");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(numbers), CASE(classes), CASE(pictures), CASE(trials), CASE(forms),
    };
#undef CASE
    return cmocka_run_group_tests(cases, make, unmake);
}
