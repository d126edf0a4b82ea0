// SPDX-License-Identifier: Apache-2.0
// Profiles at their limits: which devices a condition is for and what it says then, the longest and
// largest that are read, what is refused in each line, the name of the user's file, and which sizes
// a product gets. Devices and tunables are made up.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/tunable.h"
#include "kits/profile_kit.h"
#include "tuning/profile_file.h"

// ---- conditions ----

#define GIB ((uint64_t)1 << 30)

static struct grt_dev_info card(void) {
    struct grt_dev_info info = {.backend = GRT_BACKEND_VULKAN,
                                .name = "NVIDIA A100-SXM4",
                                .vendor = "NVIDIA",
                                .selector = "vulkan:9",
                                .caps = {.memory = 40 * GIB}};
    return info;
}

static void conditions(void **state) {
    (void)state;
    static const struct {
        struct profile_match match;
        const char *why;  // NULL: it is not for the device
        uint32_t count;
    } rows[] = {
        {{.class = "gpu"}, "class 'gpu'", 1},
        {{.class = "cpu"}, NULL, 0},
        {{.vendor = "nvidia", .class = "gpu"}, "vendor 'nvidia', class 'gpu'", 2},
        {{.vendor = "amd"}, NULL, 0},
        {{.arch = "ampere", .vendor = "nvidia"}, "architecture 'ampere', vendor 'nvidia'", 2},
        {{.arch = "hopper"}, NULL, 0},
        {{.backend = "vulkan"}, "backend 'vulkan'", 1},
        {{.backend = "opencl"}, NULL, 0},
        {{.name = "A100"}, "its name has 'A100'", 1},
        {{.name = "a100"}, "its name has 'a100'", 1},
        {{.name = "H200 | A100 "}, "its name has 'A100'", 1},
        {{.name = "A100|SXM4"}, "its name has 'A100'", 1},
        {{.name = "XM4"}, NULL, 0},  // not at the beginning of a word
        {{.name = "100"}, NULL, 0},
        {{.name = "A1000"}, NULL, 0},
        {{.name = " | "}, NULL, 0},
        {{.name = "NVIDIA A100-SXM4", .backend = "vulkan"},
         "its name has 'NVIDIA A100-SXM4', backend 'vulkan'",
         2},
        {{.memory = "x", .from_gib = 40, .below_gib = 80}, "memory '40 to 80 GiB'", 1},
        {{.memory = "x", .from_gib = 20, .below_gib = 40}, NULL, 0},
        {{.memory = "x", .from_gib = 40.5, .below_gib = 80}, NULL, 0},
        {{.memory = "x", .from_gib = 40, .below_gib = HUGE_VAL}, "memory '40 GiB or more'", 1},
        {{.memory = "x", .from_gib = 41, .below_gib = HUGE_VAL}, NULL, 0},
        {{.name = "A100", .class = "gpu", .memory = "x", .from_gib = 0, .below_gib = 40.25},
         "its name has 'A100', class 'gpu', memory '0 to 40.25 GiB'",
         3},
        {{.name = ""}, "", 0},
    };
    const struct grt_dev_info info = card();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[GRT_PROFILE_TEXT] = "before";
        uint32_t count = 77;
        bool good = profile_matches(&rows[i].match, &info, why, &count);
        if (good != (rows[i].why != NULL) || (good && strcmp(why, rows[i].why) != 0)) {
            fail_msg("row %zu: %d, '%s'", i, good, why);
        }
        assert_true(!good || count == rows[i].count);
    }
}

// A chip is looked for among those of its maker; without one it tells the maker.
static void kinds(void **state) {
    (void)state;
    static const struct {
        const char *name, *vendor, *maker, *arch;
    } rows[] = {
        {"Tesla T4", "NVIDIA", "nvidia", "turing"},
        {"NVIDIA GeForce GTX 1660", "NVIDIA", "nvidia", "turing"},
        {"Tesla V100-PCIE", "NVIDIA", "nvidia", "volta"},
        {"NVIDIA TITAN V", "NVIDIA", "nvidia", "volta"},
        {"NVIDIA GeForce RTX 4090", "NVIDIA", "nvidia", "ada"},
        {"NVIDIA L4", "NVIDIA", "nvidia", "ada"},
        {"NVIDIA GeForce RTX 3060", "NVIDIA", "nvidia", "ampere-consumer"},
        {"NVIDIA A800", "NVIDIA", "nvidia", "ampere"},
        {"NVIDIA A30", "NVIDIA", "nvidia", "ampere"},
        {"NVIDIA A40", "NVIDIA", "nvidia", "ampere-consumer"},
        {"NVIDIA A16", "NVIDIA", "nvidia", "ampere-consumer"},
        {"NVIDIA H800", "NVIDIA", "nvidia", "hopper"},
        {"NVIDIA H20", "NVIDIA", "nvidia", "hopper"},
        {"NVIDIA B100", "NVIDIA", "nvidia", "blackwell"},
        {"NVIDIA GB200", "NVIDIA", "nvidia", "blackwell"},
        {"NVIDIA B200", "NVIDIA", "nvidia", "blackwell"},
        {"NVIDIA GeForce RTX 5090", "NVIDIA", "nvidia", "blackwell"},
        {"AMD Radeon RX 6800", "AMD", "amd", "rdna2"},
        {"AMD Radeon PRO W6800", "AMD", "amd", "rdna2"},
        {"gfx1030", "AMD", "amd", "rdna2"},
        {"RADV NAVI21", "AMD", "amd", "rdna2"},
        {"AMD Radeon (RADV PHOENIX)", "AMD", "amd", "rdna3"},
        {"gfx90a", "AMD", "amd", "cdna2"},
        {"AMD Instinct MI250X", "AMD", "amd", "cdna2"},
        {"Intel(R) Arc A750", "Intel", "intel", "dg2"},
        {"Intel DG2", "Intel", "intel", "dg2"},
        {"Intel Arc B580", "Intel", "intel", "battlemage"},
        {"Intel Battlemage", "Intel", "intel", "battlemage"},
        {"RX 7900", "somebody", "amd", "rdna3"},
        {"Apple M2", "", "apple", "apple"},
        {"RX 7900", "Intel", "intel", ""},  // a card of another maker's name
        {"NVIDIA GA106", "NVIDIA", "nvidia", ""},
        {"XA100", "NVIDIA", "nvidia", ""},
        {"a card", "MyNVIDIA", "", ""},
        {"a card", "", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dev_info info = kit_gpu(rows[i].name, rows[i].vendor, 8);
        struct profile_kind kind = profile_kind_of(&info);
        if (strcmp(kind.vendor, rows[i].maker) != 0 || strcmp(kind.arch, rows[i].arch) != 0) {
            fail_msg("%s: %s '%s'", rows[i].name, kind.vendor, kind.arch);
        }
    }
    struct grt_dev_info cpu = kit_gpu("C", "", 8);
    cpu.caps.software = 1;
    snprintf(cpu.driver, sizeof cpu.driver, "REF");
    assert_string_equal(profile_kind_of(&cpu).arch, "ref");
    assert_true(profile_known_arch("ref") && profile_known_arch("pocl"));
    assert_true(profile_known_arch("mali") && profile_known_arch("battlemage"));
    assert_true(profile_known_vendor("arm") && profile_known_vendor("amd"));
    assert_false(profile_known_arch("nvidia") || profile_known_arch(""));
    assert_false(profile_known_vendor("ampere") || profile_known_vendor("AMD"));
}

// ---- the form ----

#define HEAD "gpurt-profile 1\nlevel = user\nfrom = default\n"

// "" when it is read, else what is wrong.
static const char *wrong_with(const char *text, size_t size, struct profile_file *file) {
    static char why[PROFILE_WHY];
    why[0] = '\0';
    bool good = profile_parse("p", text, size, file, why);
    assert_true(good == (why[0] == '\0'));
    return why;
}

static void sentences(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"gpurt-profile 1\nlevel = class\nend\n", "p:2: level class needs match.class"},
        {"gpurt-profile 1\nlevel = vendor\nend\n", "p:2: level vendor needs match.vendor"},
        {"gpurt-profile 1\n\nlevel = architecture\nend\n",
         "p:3: level architecture needs match.arch"},
        {"gpurt-profile 1\nlevel = device\nmatch.class = gpu\nend\n",
         "p:2: level device needs match.name"},
        {"gpurt-profile 1\nlevel = class\nmatch.class = gpu\nend\n", ""},
        {"gpurt-profile 1\nlevel = vendor\nmatch.vendor = arm\nend\n", ""},
        {"gpurt-profile 1\nlevel = architecture\nmatch.arch = lavapipe\nend\n", ""},
        {"gpurt-profile 1\nlevel = device\nmatch.name = x\nend\n", ""},
        {"gpurt-profile 1\nlevel = named\nend\n",
         "p:2: 'named' is no level: there are class, vendor, architecture, device, user"},
        {"gpurt-profile 1\nlevel = default\nend\n",
         "p:2: 'default' is no level: there are class, vendor, architecture, device, user"},
        {HEAD "match.arch = nvidia\nend\n", "p:4: no arch 'nvidia' is known"},
        {HEAD "match.backend = cuda\nend\n", "p:4: no backend 'cuda' is known"},
        {HEAD "match.backend = ref\nend\n", ""},
        {HEAD "match.class = cpu\nend\n", ""},
        {HEAD "match.name = a\nmatch.name = b\nend\n",
         "p:5: match.name was given in line 4 already"},
        {HEAD "match.arch = ada\nmatch.arch = ada\nend\n",
         "p:5: match.arch was given in line 4 already"},
        {HEAD "match.vendor = amd\nmatch.vendor = amd\nend\n",
         "p:5: match.vendor was given in line 4 already"},
        {HEAD "match.class = cpu\nmatch.class = cpu\nend\n",
         "p:5: match.class was given in line 4 already"},
        {HEAD "match.backend = ref\nmatch.backend = ref\nend\n",
         "p:5: match.backend was given in line 4 already"},
        {HEAD "match.memory = 1\nmatch.memory = 1\nend\n",
         "p:5: match.memory was given in line 4 already"},
        {HEAD "match.memory = 0\nend\n", ""},
        {HEAD "match.memory = 20 20\nend\n", "p:4: match.memory wants GiB, from and below"},
        {HEAD "match.memory = -1 20\nend\n", "p:4: match.memory wants GiB, from and below"},
        {HEAD "match.memory = 1 2 3\nend\n", "p:4: match.memory wants GiB, from and below"},
        {HEAD "match.memory = much\nend\n", "p:4: match.memory wants GiB, from and below"},
        {HEAD "match.memory = nan\nend\n", "p:4: match.memory wants GiB, from and below"},
        {HEAD "from = measured: 2026-11-15, driver\nend\n", "p:4: measured wants date, driver and"},
        {HEAD "from = measured: 2026-1-15, driver, 3\nend\n", "p:4: measured wants date, driver"},
        {HEAD "from = measured: 2026-11-15, driver, 3\nend\n", ""},
        {HEAD "from = defaults\nend\n",
         "p:4: 'defaults' is no origin: there are measured derived default"},
        {HEAD "from = derived: x\nend\n", ""},
        {HEAD "gemm.plain = 0\nend\n", "p:4: gemm.plain: 0 is not between 1 and 1024"},
        {HEAD "gemm.plain = 1\nend\n", ""},
        {HEAD "gemm.plain = 1024\nend\n", ""},
        {HEAD "gemm.plain = 1025\nend\n", "p:4: gemm.plain: 1025 is not between 1 and 1024"},
        {HEAD "gemm.plain = 8.5\nend\n", "p:4: gemm.plain: 8.5 is not whole"},
        {HEAD "gemm.plain = 8 9\nend\n", "p:4: gemm.plain: gemm.plain takes 1 numbers, WG"},
        {"gpurt-profile 1\r\nlevel = user\rend\n", "p:2: a byte 13 that is no text"},
        {HEAD "\177\nend\n", "p:4: a byte 127 that is no text"},
        {HEAD "end\n# more\n\n", ""},
        {HEAD "end\nend\n", "p:5: 'end' stands behind 'end'"},
        {HEAD "= 3\nend\n", "p:4: no setting ''"},
    };
    struct profile_file *file = test_alloc(sizeof *file);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = wrong_with(rows[i].text, strlen(rows[i].text), file);
        if (strncmp(why, rows[i].why, strlen(rows[i].why)) != 0 || (!rows[i].why[0] && why[0])) {
            fail_msg("'%s': '%s', wanted '%s'", rows[i].text, why, rows[i].why);
        }
    }
    // What was read lies in its own field.
    static const char all[] = "gpurt-profile 1\nlevel = device\nmatch.name = A | B\n"
                              "match.arch = ada\nmatch.vendor = arm\nmatch.class = cpu\n"
                              "match.backend = ref\nmatch.memory = 20.5 36\n"
                              "from = derived: y\nautotune = 3\nend\n";
    assert_string_equal(wrong_with(all, strlen(all), file), "");
    assert_int_equal(file->level, GRT_PROFILE_DEVICE);
    assert_string_equal(file->match.name, "A | B");
    assert_string_equal(file->match.arch, "ada");
    assert_string_equal(file->match.vendor, "arm");
    assert_string_equal(file->match.class, "cpu");
    assert_string_equal(file->match.backend, "ref");
    assert_true(file->match.from_gib == 20.5 && file->match.below_gib == 36);
    assert_string_equal(file->rows[GRT_KEY_AUTOTUNE].from, "derived: y");
    assert_int_equal(file->rows[GRT_KEY_AUTOTUNE].line, 10);
    assert_int_equal(file->rows[GRT_KEY_AUTOTUNE].count, 1);
    assert_true(file->rows[GRT_KEY_AUTOTUNE].numbers[0] == 3);
    free(file);
}

// The longest line, word, origin and file that are read, and one more.
static void lengths(void **state) {
    (void)state;
    struct profile_file *file = test_alloc(sizeof *file);
    char *text = test_alloc(PROFILE_MAX_BYTES + 64);
    for (int more = 0; more < 2; more++) {
        // A comment fills its line.
        int used = sprintf(text, HEAD "#%0*d\nend\n", 510 + more, 0);
        assert_string_equal(wrong_with(text, (size_t)used, file),
                            more ? "p:4: a line of more than 511 characters" : "");
        used = sprintf(text, HEAD "match.name = %0*d\nend\n", PROFILE_WORD - 1 + more, 0);
        assert_string_equal(wrong_with(text, (size_t)used, file),
                            more ? "p:4: match.name has more than 95 characters" : "");
        char want[64];
        snprintf(want, sizeof want, "p:4: 'from' has more than %d characters",
                 GRT_PROFILE_TEXT - 1);
        used = sprintf(text, HEAD "from = derived: %0*d\nend\n", GRT_PROFILE_TEXT - 10 + more, 0);
        assert_string_equal(wrong_with(text, (size_t)used, file), more ? want : "");
        // As many bytes as a profile may have.
        size_t size = (size_t)sprintf(text, HEAD "end\n");
        for (; size < PROFILE_MAX_BYTES + (size_t)more; size++) {
            text[size] = size % 2 ? '\n' : '#';
        }
        assert_string_equal(wrong_with(text, size, file), more ? "p:1: more than 65536 bytes" : "");
    }
    free(text);
    free(file);
}

// ---- the user's file ----

static void names_of_files(void **state) {
    (void)state;
    static const struct {
        const char *name, *file;
        enum grt_backend_id backend;
    } rows[] = {
        {"NVIDIA A100-SXM4-40GB", "opencl-nvidia-a100-sxm4-40gb", GRT_BACKEND_OPENCL},
        {"Made  (Up) 7 ", "vulkan-made-up-7", GRT_BACKEND_VULKAN},
        {"(Up)", "ref-up", GRT_BACKEND_REF},
        {"..", "ref", GRT_BACKEND_REF},
        {"../../x", "ref-x", GRT_BACKEND_REF},
    };
    kit_enter_home();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dev_info info = {.backend = rows[i].backend};
        char path[PROFILE_PATH], want[256];
        snprintf(info.name, sizeof info.name, "%s", rows[i].name);
        assert_true(grt_profile_user_path(&info, path, sizeof path));
        snprintf(want, sizeof want, "/gpurt/%s.profile", rows[i].file);
        assert_true(strlen(path) > strlen(want));
        assert_string_equal(path + strlen(path) - strlen(want), want);
        // Room for all of it and the zero behind, and not.
        size_t length = strlen(path);
        assert_true(grt_profile_user_path(&info, path, length + 1));
        assert_false(grt_profile_user_path(&info, path, length));
    }
    kit_leave_home();
    struct grt_profile_value value = {.count = 2};
    struct grt_dev_info info = card();
    TEST_REFUSED(grt_profile_store(NULL, GRT_KEY_AUTOTUNE, &value), GRT_INVALID, "no device");
    TEST_REFUSED(grt_profile_store(&info, GRT_KEY_AUTOTUNE, NULL), GRT_INVALID, "no value");
    TEST_REFUSED(grt_profile_store(&info, GRT_KEY_AUTOTUNE, &value), GRT_INVALID,
                 "no such setting, or of other numbers");
    TEST_REFUSED(grt_profile_storable(NULL), GRT_INVALID, "no device");
    TEST_REFUSED(grt_profile_get(NULL, GRT_KEY_AUTOTUNE), GRT_INVALID, "no profile");
}

// ---- sizes of products ----

static uint32_t rows_that_are_too_many;
static bool possible(const struct grt_dev_info *info, const uint32_t *values,
                     char why[GRT_TUNABLE_WHY]) {
    (void)info;
    bool good = rows_that_are_too_many == 0 || values[0] < rows_that_are_too_many;
    if (!good) {
        snprintf(why, GRT_TUNABLE_WHY, "%u rows are too many", values[0]);
    }
    return good;
}
static uint32_t lanes_of_all, registers_of_all;
static uint32_t lanes(const uint32_t *values) {
    (void)values;
    return lanes_of_all;
}
static uint32_t registers(const uint32_t *values) {
    (void)values;
    return registers_of_all;
}
static const struct grt_tunable tunable = {.key = GRT_KEY_GEMM_TILED_LARGE,
                                           .classes = 3,
                                           .possible = possible,
                                           .lanes = lanes,
                                           .registers = registers};

static void spills(void **state) {
    (void)state;
    static const struct {
        uint32_t registers, lanes, software;
        bool good;
    } rows[] = {{255, 257, 0, true}, {256, 1, 0, false},   {255, 258, 0, false},
                {64, 1024, 0, true}, {65, 1024, 0, false}, {256, 1, 1, true}};
    const uint32_t values[5] = {1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[GRT_TUNABLE_WHY] = "", want[GRT_TUNABLE_WHY];
        struct grt_dev_info info = {.caps = {.software = rows[i].software}};
        registers_of_all = rows[i].registers;
        lanes_of_all = rows[i].lanes;
        assert_int_equal(grt_tunable_sensible(&tunable, &info, values, why), rows[i].good);
        snprintf(want, sizeof want, "about %u registers a lane with %u lanes would spill",
                 rows[i].registers, rows[i].lanes);
        assert_string_equal(why, rows[i].good ? "" : want);
    }
    assert_string_equal(grt_size_class_text(GRT_SIZE_LARGE), "large");
    assert_string_equal(grt_size_class_text(GRT_SIZE_MEDIUM), "medium");
    assert_string_equal(grt_size_class_text(GRT_SIZE_SMALL), "small");
    assert_string_equal(grt_size_class_text(GRT_SIZE_COUNT), "unknown size");
}

// The large one where it fills the units and the next smaller would not hold the product.
static void sizes(void **state) {
    (void)state;
    static const char text[] = HEAD "gemm.tiled.large = 64 32 8 4 4\n"
                                    "gemm.tiled.medium = 32 16 8 4 4\n"
                                    "gemm.tiled.small = 16 8 8 4 4\nend\n";
    static const struct {
        uint32_t units;
        uint64_t rows, columns, batch;
        enum grt_size_class size;
    } rows[] = {
        {4, 128, 64, 1, GRT_SIZE_LARGE},  // four tiles
        {4, 65, 33, 1, GRT_SIZE_LARGE},   {4, 64, 64, 1, GRT_SIZE_MEDIUM},
        {4, 64, 64, 2, GRT_SIZE_LARGE},   {5, 128, 64, 1, GRT_SIZE_MEDIUM},
        {1, 33, 17, 1, GRT_SIZE_LARGE},   {1, 32, 640, 1, GRT_SIZE_MEDIUM},
        {1, 640, 16, 1, GRT_SIZE_MEDIUM}, {1, 16, 640, 1, GRT_SIZE_SMALL},
        {1, 640, 8, 1, GRT_SIZE_SMALL},   {1, 17, 9, 1, GRT_SIZE_MEDIUM},
        {2, 17, 9, 1, GRT_SIZE_SMALL},    {0, 256, 128, 1, GRT_SIZE_LARGE},  // 16, if not known
        {0, 256, 96, 1, GRT_SIZE_MEDIUM},
    };
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("NVIDIA Made Up", "NVIDIA", 8);
    snprintf(info.selector, sizeof info.selector, "vulkan:9");
    kit_write_user_file(&info, text);
    struct grt_profile *profile = grt_profile_create(&info);
    assert_non_null(profile);
    struct grt_pick pick;
    rows_that_are_too_many = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        info.caps.compute_units = rows[i].units;
        assert_true(grt_tunable_pick(&tunable, &info, profile, rows[i].rows, rows[i].columns,
                                     rows[i].batch, &pick));
        if (pick.size != rows[i].size || pick.values[0] != 64u >> pick.size ||
            pick.values[1] != 32u >> pick.size) {
            fail_msg("row %zu: %u, %u", i, (unsigned)pick.size, pick.values[0]);
        }
    }
    // What the device cannot run is passed over, and said once.
    info.caps.compute_units = 1;
    rows_that_are_too_many = 64;
    uint32_t warned = test_log.lines[GRT_LOG_WARN];
    test_log.quiet = true;
    for (int again = 0; again < 2; again++) {
        assert_true(grt_tunable_pick(&tunable, &info, profile, 640, 640, 1, &pick));
        assert_int_equal(pick.size, GRT_SIZE_MEDIUM);
        assert_int_equal(test_log.lines[GRT_LOG_WARN] - warned, 1);
    }
    assert_non_null(strstr(test_log.newest, "gemm.tiled.large of profile "));
    assert_non_null(strstr(test_log.newest, ":4 is passed over on vulkan:9: 64 rows are too many"));
    rows_that_are_too_many = 1;
    assert_false(grt_tunable_pick(&tunable, &info, profile, 640, 640, 1, &pick));
    assert_int_equal(pick.values[0], 0);
    assert_int_equal(test_log.lines[GRT_LOG_WARN] - warned, 3);
    test_log.quiet = false;
    grt_profile_destroy(&profile);
    kit_remove_user_file(&info);
    kit_leave_home();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(conditions),     TEST_CASE(kinds),  TEST_CASE(sentences), TEST_CASE(lengths),
    TEST_CASE(names_of_files), TEST_CASE(spills), TEST_CASE(sizes),
};
TEST_SUITE(matches, false, cases);
