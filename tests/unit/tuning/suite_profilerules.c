// SPDX-License-Identifier: Apache-2.0
// The rules of profiles at their limits: the largest and the smallest of all that a file may hold,
// what a device is by the names of its driver, where the user's file lies, which setting suits a
// product, and what is too much for a lane.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpurt/tunable.h"
#include "kits/profile_kit.h"
#include "tuning/profile_file.h"

// ---- files ----

#define FIRST "gpurt-profile 1\n"
#define HEAD FIRST "level = user\nfrom = default\n"

// NULL: it is read; else what the sentence has.
// Without its zero.
static void put(char *to, const char *text) {
    while (*text) {
        *to++ = *text++;
    }
}

static void reads(const char *text, const char *part) {
    struct profile_file file;
    char why[PROFILE_WHY] = "";
    bool good = profile_parse("p", text, strlen(text), &file, why);
    if (good != (part == NULL) || (part && !strstr(why, part))) {
        fail_msg("'%s' is %s: '%s', wanted '%s'", text, good ? "read" : "refused", why,
                 part ? part : "-");
    }
}

static void both_sides(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        {HEAD "gemm.plain = 1\nend\n", NULL},
        {HEAD "gemm.plain = 1024\nend\n", NULL},
        {HEAD "gemm.plain = 0\nend\n", "p:4: gemm.plain: 0 is not between 1 and 1024"},
        {HEAD "gemm.plain = 1025\nend\n", "p:4: gemm.plain: 1025 is not between 1 and 1024"},
        {HEAD "gemm.plain = 8.0\nend\n", NULL},
        {HEAD "gemm.plain = 8.\nend\n", NULL},
        {HEAD "gemm.plain = 1e2\nend\n", "'1e2' is no number"},
        {HEAD "gemm.plain = 8..\nend\n", "'8..' is no number"},
        {HEAD "gemm.plain = +8\nend\n", "'+8' is no number"},
        {HEAD "gemm.plain = inf\nend\n", "'inf' is no number"},
        {HEAD "gemm.split.use = 1\nend\n", NULL},
        {HEAD "gemm.split.use = 2\nend\n", "p:4: gemm.split.use: 2 is not between 0 and 1"},
        {HEAD "gemm.mma.ragged = 1 100 1.5\nend\n", NULL},
        {HEAD "gemm.mma.ragged = 1 100.5 1.5\nend\n", "100.5 is not between 1 and 100"},
        {HEAD "gemm.mma.ragged = 1 2\nend\n", "takes 3 numbers, bytes_8 bytes_4 bytes_2"},
        {HEAD "gemm.mma.ragged = 1 2 3 4\nend\n", "takes 3 numbers"},
        {HEAD "gemm.plain = 8\tend\n", "takes 1 numbers"},
        {HEAD "match.memory = 20\nend\n", NULL},
        {HEAD "match.memory = 0 0.5\nend\n", NULL},
        {HEAD "match.memory = 20 20\nend\n", "GiB, from and below"},
        {HEAD "match.memory = -1 20\nend\n", "GiB, from and below"},
        {HEAD "match.memory = 20 30 40\nend\n", "GiB, from and below"},
        {HEAD "match.memory = big\nend\n", "GiB, from and below"},
        {HEAD "match.memory = 20\nmatch.memory = 30\nend\n",
         "p:5: match.memory was given in line 4"},
        {HEAD "match.class = gpu\nmatch.class = gpu\nend\n",
         "p:5: match.class was given in line 4"},
        {HEAD "match.arch = hopper\nend\n", NULL},
        {HEAD "match.arch = pocl\nend\n", NULL},
        {HEAD "match.arch = Hopper\nend\n", "no arch 'Hopper' is known"},
        {HEAD "match.vendor = nvidia\nend\n", NULL},
        {HEAD "match.vendor = NVIDIA\nend\n", "no vendor 'NVIDIA' is known"},
        {HEAD "match.class = cpu\nend\n", NULL},
        {HEAD "match.class = GPU\nend\n", "no class 'GPU' is known"},
        {HEAD "match.backend = ref\nend\n", NULL},
        {HEAD "match.backend = cuda\nend\n", "no backend 'cuda' is known"},
        {FIRST "level = class\nmatch.class = gpu\nend\n", NULL},
        {FIRST "level = class\nmatch.vendor = amd\nend\n", "p:2: level class needs match.class"},
        {FIRST "level = vendor\nmatch.vendor = amd\nend\n", NULL},
        {FIRST "match.class = gpu\nlevel = vendor\nend\n", "p:3: level vendor needs match.vendor"},
        {FIRST "level = architecture\nmatch.arch = ada\nend\n", NULL},
        {FIRST "level = architecture\nend\n", "p:2: level architecture needs match.arch"},
        {FIRST "level = device\nmatch.name = X\nend\n", NULL},
        {FIRST "level = default\nend\n", "'default' is no level"},
        {FIRST "level = named\nend\n", "'named' is no level"},
        {FIRST "level = user\nend\nend\n", "p:4: 'end' stands behind 'end'"},
        {FIRST "level = user\n  end  # the last\n", NULL},
        {FIRST "# one\n\tlevel\t=\tuser\t\nend\n", NULL},
        {FIRST "level = user\r\nend\r\n", NULL},
        {FIRST "level = us\rer\nend\n", "a byte 13 that is no text"},
        {FIRST "level = user\nend\n\x7f", "a byte 127 that is no text"},
        {FIRST "level = user\n# \xc3\xbc\nend\n", NULL},
        {" " FIRST "end\n", "p:1: no profile"},
        {"gpurt-profile 0\n", "a profile of version 0; this gpurt reads version 1"},
        {HEAD "from = measured: 2026-11-15, a, b\nend\n", NULL},
        {HEAD "from = measured:2026-11-15,a,b\nend\n", NULL},
        {HEAD "from = measured: 2026-11-15, a\nend\n", "date, driver and figure"},
        {HEAD "from = measured: 2026-1-15, a, b\nend\n", "date, driver and figure"},
        {HEAD "from = measured: 2026/11/15, a, b\nend\n", "date, driver and figure"},
        {HEAD "from = measured\nend\n", "date, driver and figure"},
        {HEAD "from = derived: x\nend\n", NULL},
        {HEAD "from = derived\nend\n", "from what"},
        {HEAD "from = default: because\nend\n", NULL},
        {HEAD "from = defaults\nend\n", "'defaults' is no origin"},
        {HEAD "from = Derived: x\nend\n", "'Derived' is no origin"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reads(rows[i].text, rows[i].part);
    }
}

// A text with so many letters in place of %.
static void long_text(const char *before, int letters, const char *after, const char *part) {
    static char text[PROFILE_MAX_BYTES + 4096];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", before);
    memset(text + used, 'x', (size_t)letters);
    snprintf(text + used + letters, sizeof text - used - (size_t)letters, "%s", after);
    reads(text, part);
}

static void lengths(void **state) {
    (void)state;
    long_text(HEAD "#", 510, "\nend\n", NULL);
    long_text(HEAD "#", 511, "\nend\n", "p:4: a line of more than 511 characters");
    long_text(HEAD "match.name = ", PROFILE_WORD - 1, "\nend\n", NULL);
    long_text(HEAD "match.name = ", PROFILE_WORD, "\nend\n", "match.name has more than 95");
    long_text(HEAD "from = derived: ", GRT_PROFILE_TEXT - 10, "\nend\n", NULL);
    long_text(HEAD "from = derived: ", GRT_PROFILE_TEXT - 9, "\nend\n", "'from' has more than");
    // As many bytes as are allowed, and one more.
    static char text[PROFILE_MAX_BYTES + 2];
    for (size_t more = 0; more < 2; more++) {
        size_t size = PROFILE_MAX_BYTES + more;
        struct profile_file file;
        char why[PROFILE_WHY];
        memset(text, '\n', size);
        put(text, HEAD);
        put(text + size - 4, "end\n");
        assert_int_equal(profile_parse("p", text, size, &file, why), more == 0);
        if (more) {
            assert_string_equal(why, "p:1: more than 65536 bytes");
        }
    }
}

// ---- what a device is ----

static void kinds(void **state) {
    (void)state;
    static const struct {
        const char *name, *vendor, *kind, *arch;
    } rows[] = {
        {"NVIDIA RTX 2000 Ada Generation", "NVIDIA Corporation", "nvidia", "ada"},
        {"NVIDIA GeForce RTX 2080", "NVIDIA", "nvidia", "turing"},
        {"Tesla T4", "NVIDIA", "nvidia", "turing"},
        {"Tesla V100-SXM2-16GB", "NVIDIA", "nvidia", "volta"},
        {"NVIDIA L4", "NVIDIA", "nvidia", "ada"},
        {"NVIDIA A10", "NVIDIA", "nvidia", "ampere-consumer"},
        {"NVIDIA A100", "NVIDIA", "nvidia", "ampere"},
        {"NVIDIA A2", "NVIDIA", "nvidia", "ampere-consumer"},
        {"NVIDIA GH200 480GB", "NVIDIA", "nvidia", "hopper"},
        {"NVIDIA H20", "NVIDIA", "nvidia", "hopper"},
        {"NVIDIA GB200", "NVIDIA", "nvidia", "blackwell"},
        {"NVIDIA GeForce RTX 3060 (GA106)", "NVIDIA", "nvidia", "ampere-consumer"},
        {"nvidia geforce rtx 4090", "nvidia", "nvidia", "ada"},
        {"NVIDIA XA100", "NVIDIA", "nvidia", ""},  // no beginning of a word
        {"NVIDIA Titan Q", "NVIDIA", "nvidia", ""},
        // Another maker's words say nothing of this one's chips.
        {"Radeon A100", "AMD", "amd", ""},
        {"Radeon RX 6800", "Advanced Micro Devices, Inc.", "amd", "rdna2"},
        {"AMD Radeon PRO W7900", "AMD", "amd", "rdna3"},
        {"AMD VANGOGH", "AMD", "amd", "rdna2"},
        {"Intel(R) Arc(TM) A770 Graphics", "Intel", "intel", "dg2"},
        {"Intel(R) Graphics [0x56a0]", "Intel(R) Corporation", "intel", "dg2"},
        {"Intel(R) Graphics [0xe20b]", "Intel", "intel", "battlemage"},
        {"Intel(R) UHD Graphics", "Intel", "intel", ""},
        {"Apple M2", "Apple", "apple", "apple"},
        {"Adreno (TM) 740", "Qualcomm", "qualcomm", "adreno"},
        {"Mali-G710", "Arm", "arm", "mali"},
        // A vendor that is not told follows from the chip.
        {"NVIDIA H200", "", "nvidia", "hopper"},
        {"Voodoo", "3dfx", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dev_info info = kit_gpu(rows[i].name, rows[i].vendor, 8);
        struct profile_kind kind = profile_kind_of(&info);
        if (strcmp(kind.vendor, rows[i].kind) != 0 || strcmp(kind.arch, rows[i].arch) != 0 ||
            strcmp(kind.class, "gpu") != 0) {
            fail_msg("%s of %s: '%s', '%s', '%s'", rows[i].name, rows[i].vendor, kind.vendor,
                     kind.arch, kind.class);
        }
    }
    // CPUs by their driver's whole name; their maker's GPUs have nothing to do with it.
    static const char *const drivers[][2] = {{"Portable Computing Language", "pocl"},
                                             {"portable computing language", "pocl"},
                                             {"llvmpipe", "lavapipe"},
                                             {"ref", "ref"},
                                             {"refx", ""},
                                             {"llvm", ""}};
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        struct grt_dev_info info = kit_gpu("NVIDIA A100", "NVIDIA", 8);
        info.caps.software = 1;
        snprintf(info.driver, sizeof info.driver, "%s", drivers[i][0]);
        struct profile_kind kind = profile_kind_of(&info);
        assert_string_equal(kind.vendor, "");
        assert_string_equal(kind.arch, drivers[i][1]);
        assert_string_equal(kind.class, "cpu");
    }
}

// ---- the user's file ----

static void places(void **state) {
    (void)state;
    struct grt_dev_info info = {.backend = GRT_BACKEND_OPENCL};
    char path[4096], home[4096];
    snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "");
    static const struct {
        const char *name, *key;
    } rows[] = {
        {"NVIDIA A100-SXM4-40GB", "opencl-nvidia-a100-sxm4-40gb"},
        {"  Card (#9) / x ", "opencl-card-9-x"},
        {"Ünï", "opencl-n"},
        {"---", "opencl"},
        {"", "opencl"},
    };
    setenv("XDG_CONFIG_HOME", "/x", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[256];
        snprintf(info.name, sizeof info.name, "%s", rows[i].name);
        snprintf(want, sizeof want, "/x/gpurt/%s.profile", rows[i].key);
        assert_true(grt_profile_user_path(&info, path, sizeof path));
        assert_string_equal(path, want);
        // Room for all of it and its end, and not.
        assert_true(grt_profile_user_path(&info, path, strlen(want) + 1));
        assert_false(grt_profile_user_path(&info, path, strlen(want)));
    }
    // Paths that are not whole are not taken: then the home's, or none.
    static const struct {
        const char *xdg, *home, *want;
    } homes[] = {{"x", "/h", "/h/.config/gpurt/opencl.profile"},
                 {"", "/h", "/h/.config/gpurt/opencl.profile"},
                 {NULL, "/h", "/h/.config/gpurt/opencl.profile"},
                 {"x", "h", NULL},
                 {NULL, NULL, NULL}};
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        unsetenv("XDG_CONFIG_HOME");
        unsetenv("HOME");
        if (homes[i].xdg) {
            setenv("XDG_CONFIG_HOME", homes[i].xdg, 1);
        }
        if (homes[i].home) {
            setenv("HOME", homes[i].home, 1);
        }
        assert_int_equal(grt_profile_user_path(&info, path, sizeof path), homes[i].want != NULL);
        if (homes[i].want) {
            assert_string_equal(path, homes[i].want);
        } else {
            TEST_REFUSED(grt_profile_storable(&info), GRT_NO_OUTPUT,
                         "neither XDG_CONFIG_HOME nor HOME names a folder");
        }
    }
    unsetenv("XDG_CONFIG_HOME");
    if (home[0]) {
        setenv("HOME", home, 1);
    }
}

// A file that is as full as it may be takes no other setting, and stays as it is.
static void full_file(void **state) {
    (void)state;
    static char text[PROFILE_MAX_BYTES + 1];
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("Card", "3dfx", 4);
    struct grt_profile_value value = {.count = 1, .numbers = {8}, .from = "default"};
    // What is added: "from = default\ngemm.plain = 8  # WG\n".
    for (int more = 0; more < 2; more++) {
        size_t size = PROFILE_MAX_BYTES - strlen("from = default\ngemm.plain = 8  # WG\n");
        size += (size_t)more;
        memset(text, '#', size);
        for (size_t at = 500; at < size; at += 500) {
            text[at] = '\n';
        }
        text[size - 5] = '\n';
        put(text, HEAD);
        put(text + size - 4, "end\n");
        text[size] = '\0';
        kit_write_user_file(&info, text);
        if (more) {
            TEST_REFUSED(grt_profile_store(&info, GRT_KEY_GEMM_PLAIN, &value), GRT_CONFIG,
                         "no room for another setting");
        } else {
            assert_true(grt_profile_store(&info, GRT_KEY_GEMM_PLAIN, &value));
        }
        struct grt_profile *profile = grt_profile_create(&info);
        kit_expect(profile, GRT_KEY_GEMM_PLAIN, more ? 64 : 8);
        grt_profile_destroy(&profile);
    }
    kit_remove_user_file(&info);
    kit_leave_home();
}

// ---- getting ----

static void what_is_asked(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("Voodoo 9", "3dfx", 0.5);
    struct grt_profile *profile = grt_profile_create(&info);
    struct grt_profile_part part;
    assert_non_null(profile);
    TEST_REFUSED(grt_profile_get(profile, GRT_KEY_COUNT), GRT_INVALID, "no such setting");
    TEST_REFUSED(grt_profile_get(NULL, GRT_KEY_GEMM_PLAIN), GRT_INVALID, "no profile");
    TEST_REFUSED(grt_profile_create(NULL), GRT_INVALID, "no device");
    assert_false(grt_profile_part(NULL, 0, &part));
    assert_false(grt_profile_part(profile, 0, NULL));
    assert_null(grt_profile_key_info(GRT_KEY_COUNT));
    assert_int_equal(grt_profile_whole(profile, GRT_KEY_GEMM_PLAIN), 64);
    // Said once, and again behind a change.
    assert_true(grt_profile_first_time(profile, GRT_KEY_GEMM_PLAIN));
    assert_false(grt_profile_first_time(profile, GRT_KEY_GEMM_PLAIN));
    assert_true(grt_profile_first_time(profile, GRT_KEY_AUTOTUNE));
    struct grt_profile_value value = {.count = 1, .numbers = {16}, .from = "default"};
    assert_true(profile_set(profile, GRT_KEY_GEMM_PLAIN, &value));
    kit_expect(profile, GRT_KEY_GEMM_PLAIN, 16);
    assert_true(grt_profile_first_time(profile, GRT_KEY_GEMM_PLAIN));
    value.count = 2;
    TEST_REFUSED(profile_set(profile, GRT_KEY_GEMM_PLAIN, &value), GRT_INVALID, "other numbers");
    TEST_REFUSED(profile_set(profile, GRT_KEY_COUNT, &value), GRT_INVALID, "no such setting");
    kit_expect(profile, GRT_KEY_GEMM_PLAIN, 16);
    grt_profile_destroy(&profile);
    assert_null(profile);
    grt_profile_destroy(&profile);
    static const struct {
        enum grt_profile_level level;
        const char *text;
    } levels[] = {{GRT_PROFILE_CLASS, "class"},
                  {GRT_PROFILE_VENDOR, "vendor"},
                  {GRT_PROFILE_DEVICE, "device"},
                  {GRT_PROFILE_USER, "user"},
                  {GRT_PROFILE_LEVEL_COUNT, "unknown level"}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        assert_string_equal(grt_profile_level_text(levels[i].level), levels[i].text);
    }
    assert_string_equal(grt_size_class_text(GRT_SIZE_LARGE), "large");
    assert_string_equal(grt_size_class_text(GRT_SIZE_SMALL), "small");
    assert_string_equal(grt_size_class_text(GRT_SIZE_COUNT), "unknown size");
    kit_leave_home();
}

// ---- settings for a product ----

static bool too_wide(const struct grt_dev_info *info, const uint32_t *values,
                     char why[GRT_TUNABLE_WHY]) {
    snprintf(why, GRT_TUNABLE_WHY, "made up: %u rows", values[0]);
    return values[0] <= info->caps.max_wg;
}

static uint32_t second(const uint32_t *values) {
    return values[1];
}

static uint32_t third(const uint32_t *values) {
    return values[2];
}

// Tiles of 128, 64 and 32 of a device's profile.
static const struct grt_tunable tiles = {.op = "gemm",
                                         .variant = "made up",
                                         .key = GRT_KEY_GEMM_TILED_LARGE,
                                         .classes = 3,
                                         .possible = too_wide,
                                         .lanes = second,
                                         .registers = third};

static void sensible(void **state) {
    (void)state;
    struct grt_dev_info info = kit_gpu("Card", "3dfx", 4);
    char why[GRT_TUNABLE_WHY];
    static const struct {
        uint32_t lanes, registers;
        bool gpu;
    } rows[] = {{64, 255, true},  {64, 256, false},  {257, 255, true}, {258, 255, false},
                {1024, 64, true}, {1024, 65, false}, {1025, 64, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t values[GRT_PROFILE_NUMBERS] = {1, rows[i].lanes, rows[i].registers};
        info.caps.software = 0;
        assert_int_equal(grt_tunable_sensible(&tiles, &info, values, why), rows[i].gpu);
        if (!rows[i].gpu) {
            assert_non_null(strstr(why, "would spill"));
        }
        info.caps.software = 1;  // it has no such registers
        assert_true(grt_tunable_sensible(&tiles, &info, values, why));
    }
    const uint32_t wide[GRT_PROFILE_NUMBERS] = {1025, 1, 1};
    assert_false(grt_tunable_sensible(&tiles, &info, wide, why));
    assert_string_equal(why, "made up: 1025 rows");
}

static void picked(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("Voodoo 9", "3dfx", 0.5);
    kit_write_user_file(&info, HEAD "gemm.tiled.large = 128 128 16 8 8\ngemm.tiled.medium = 64 64 "
                                    "16 4 4\ngemm.tiled.small = 32 16 16 4 4\nend\n");
    struct grt_profile *profile = grt_profile_create(&info);
    static const struct {
        uint32_t units;
        uint64_t rows, columns, batch;
        enum grt_size_class size;
    } rows[] = {
        {16, 512, 512, 1, GRT_SIZE_LARGE},   // 4 x 4 tiles on 16 units
        {17, 512, 512, 1, GRT_SIZE_MEDIUM},  // one too few
        {17, 513, 512, 1, GRT_SIZE_LARGE},   // a fifth row of tiles, cut
        {64, 512, 512, 1, GRT_SIZE_MEDIUM},
        {65, 512, 512, 1, GRT_SIZE_SMALL},
        {65, 512, 512, 5, GRT_SIZE_LARGE},  // of a batch
        {0, 512, 512, 1, GRT_SIZE_LARGE},   // 16 where nothing is said
        {0, 512, 384, 1, GRT_SIZE_MEDIUM},
        // Many in a batch, each no larger than the next smaller tile.
        {1, 64, 512, 999, GRT_SIZE_MEDIUM},
        {1, 65, 65, 999, GRT_SIZE_LARGE},
        {1, 512, 64, 999, GRT_SIZE_MEDIUM},
        {1, 32, 512, 999, GRT_SIZE_SMALL},
        {1, 512, 16, 999, GRT_SIZE_SMALL},
        {1, 33, 17, 999, GRT_SIZE_MEDIUM},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_pick pick;
        info.caps.compute_units = rows[i].units;
        assert_true(grt_tunable_pick(&tiles, &info, profile, rows[i].rows, rows[i].columns,
                                     rows[i].batch, &pick));
        if (pick.size != rows[i].size || pick.values[0] != 128u >> rows[i].size) {
            fail_msg("row %zu: %s", i, grt_size_class_text(pick.size));
        }
    }
    // What a device cannot run is passed over, which is said once.
    struct grt_pick pick;
    info.caps.max_wg = 100;
    uint32_t warned = test_log.lines[GRT_LOG_WARN];
    for (int i = 0; i < 2; i++) {
        assert_true(grt_tunable_pick(&tiles, &info, profile, 4096, 4096, 1, &pick));
        assert_int_equal(pick.size, GRT_SIZE_MEDIUM);
        assert_int_equal(test_log.lines[GRT_LOG_WARN], warned + 1);
    }
    assert_non_null(strstr(test_log.newest, "gemm.tiled.large of profile "));
    assert_non_null(strstr(test_log.newest, " is passed over on vulkan:0: made up: 128 rows"));
    info.caps.max_wg = 10;
    assert_false(grt_tunable_pick(&tiles, &info, profile, 4096, 4096, 1, &pick));
    assert_int_equal(pick.values[0], 0);
    assert_int_equal(test_log.lines[GRT_LOG_WARN], warned + 3);
    grt_profile_destroy(&profile);
    kit_remove_user_file(&info);
    kit_leave_home();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(both_sides), TEST_CASE(lengths),       TEST_CASE(kinds),    TEST_CASE(places),
    TEST_CASE(full_file),  TEST_CASE(what_is_asked), TEST_CASE(sensible), TEST_CASE(picked),
};
TEST_SUITE(profilerules, false, cases);
