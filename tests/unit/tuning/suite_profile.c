// SPDX-License-Identifier: Apache-2.0
// Profiles: reading them, which of them a device gets, and the user's file.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kits/profile_kit.h"
#include "tuning/profile_file.h"

// ---- reading ----

#define HEAD "gpurt-profile 1\nlevel = user\nfrom = default\n"

static void accept(const char *text) {
    struct profile_file file;
    char why[PROFILE_WHY] = "";
    if (!profile_parse("some.profile", text, strlen(text), &file, why)) {
        print_error("refused: %s\n", why);
        fail();
    }
}

// Refused at that line with a sentence that has `part`.
static void refuse(const char *text, uint32_t line, const char *part) {
    struct profile_file file;
    char why[PROFILE_WHY] = "";
    char place[32];
    snprintf(place, sizeof place, "some.profile:%u: ", line);
    bool good = profile_parse("some.profile", text, strlen(text), &file, why);
    if (good || strncmp(why, place, strlen(place)) != 0 || !strstr(why, part)) {
        print_error("%s: '%s', wanted '%s...%s...'\n", good ? "accepted" : "refused", why, place,
                    part);
        fail();
    }
}

static void forms(void **state) {
    (void)state;
    accept(HEAD "end\n");
    accept(HEAD "end");
    accept("gpurt-profile 1\r\nlevel = user\r\nfrom = default\r\nend\r\n");
    accept(HEAD "# a comment\n\n  gemm.plain   =  8   # another\nend\n# and one more\n");
    accept(HEAD "mem_fraction = 0.875\nfrom = derived: the one above\nautotune = 3\nend\n");
    accept(HEAD "from = measured: 2026-11-15, driver 1.2, 3 GFLOP/s\ngemm.plain = 1\nend\n");
    struct profile_file file;
    char why[PROFILE_WHY];
    const char *text = HEAD "gemm.tiled.large = 128 64\t32 8 4\nend\n";
    assert_true(profile_parse("a", text, strlen(text), &file, why));
    const double want[] = {128, 64, 32, 8, 4};
    assert_int_equal(file.rows[GRT_KEY_GEMM_TILED_LARGE].line, 4);
    assert_memory_equal(file.rows[GRT_KEY_GEMM_TILED_LARGE].numbers, want, sizeof want);
}

static void mistakes(void **state) {
    (void)state;
    refuse("", 1, "empty");
    refuse("hello\n", 1, "gpurt-profile 1");
    refuse("gpurt-profile 2\nend\n", 1, "version 2");
    refuse("gpurt-profile 1x\nend\n", 1, "first line");
    refuse("gpurt-profile 1\nend\n", 2, "level");
    refuse(HEAD, 3, "cut short");
    refuse(HEAD "gemm.plain = 8\n", 4, "cut short");
    refuse(HEAD "end\ngemm.plain = 8\n", 5, "behind 'end'");
    refuse(HEAD "gemm.plain\nend\n", 4, "name = value");
    refuse(HEAD "gemm.plain =\nend\n", 4, "no value");
    refuse(HEAD "gemm.plian = 8\nend\n", 4, "did you mean 'gemm.plain'?");
    refuse(HEAD "gemm.tiled.lrage = 8\nend\n", 4, "did you mean 'gemm.tiled.large'?");
    refuse(HEAD "match.vendr = amd\nend\n", 4, "did you mean 'match.vendor'?");
    refuse(HEAD "nonsense = 8\nend\n", 4, "no setting 'nonsense'");
    refuse(HEAD "gemm.plain = 8\n\ngemm.plain = 8\nend\n", 6, "line 4 already");
    refuse(HEAD "level = user\nend\n", 4, "line 2 already");
    refuse(HEAD "gemm.plain = eight\nend\n", 4, "'eight' is no number");
    refuse(HEAD "gemm.plain = 0x10\nend\n", 4, "'0x10' is no number");
    refuse(HEAD "gemm.plain = -8\nend\n", 4, "'-8' is no number");
    refuse(HEAD "gemm.plain = nan\nend\n", 4, "no number");
    refuse(HEAD "gemm.plain = 1.5\nend\n", 4, "not whole");
    refuse(HEAD "gemm.plain = 99999\nend\n", 4, "between 1 and 1024");
    refuse(HEAD "mem_fraction = 1.5\nend\n", 4, "between");
    refuse(HEAD "gemm.plain = 8 8\nend\n", 4, "takes 1 numbers");
    refuse(HEAD "gemm.tiled.large = 128 128 16 8\nend\n", 4, "BM BN BK TM TN");
    refuse("gpurt-profile 1\nlevel = user\ngemm.plain = 8\nend\n", 3, "no 'from'");
    refuse("gpurt-profile 1\nlevel = high\nend\n", 2, "no level");
    refuse("gpurt-profile 1\nlevel = device\nend\n", 2, "needs match.name");
    refuse("gpurt-profile 1\nlevel = vendor\nmatch.vendor = voodoo\nend\n", 3, "voodoo");
    refuse("gpurt-profile 1\nlevel = class\nmatch.class = tpu\nend\n", 3, "tpu");
    refuse(HEAD "match.memory = 30 20\nend\n", 4, "GiB");
    refuse(HEAD "from = guessed\nend\n", 4, "no origin");
    refuse(HEAD "from = measured: yesterday\nend\n", 4, "date, driver and figure");
    refuse(HEAD "from = derived:\nend\n", 4, "from what");
    refuse(HEAD "gemm.plain = 8\1\nend\n", 4, "damaged");
    char longer[700];
    memset(longer, 'x', sizeof longer);
    memcpy(longer, HEAD, strlen(HEAD));
    longer[sizeof longer - 1] = '\0';
    refuse(longer, 4, "more than 511 characters");
}

// Every cut and every flipped byte is refused or read, and nothing else.
static void damage(void **state) {
    (void)state;
    const char *text = HEAD "gemm.tiled.large = 128 128 16 8 8\ngemm.plain = 8\nend\n";
    char copy[256];
    struct profile_file file;
    char why[PROFILE_WHY];
    for (size_t size = 0; size + 1 < strlen(text); size++) {
        assert_false(profile_parse("cut", text, size, &file, why));
    }
    for (size_t i = 0; text[i]; i++) {
        for (int bit = 0; bit < 8; bit++) {
            snprintf(copy, sizeof copy, "%s", text);
            copy[i] = (char)(copy[i] ^ (1 << bit));
            (void)profile_parse("flipped", copy, strlen(text), &file, why);
        }
    }
}

// ---- precedence ----

static void parts_are(const struct grt_profile *profile, const char *const *names, uint32_t count) {
    struct grt_profile_part part;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(grt_profile_part(profile, i, &part));
        assert_string_equal(part.name, names[i]);
        assert_true(part.why[0] != '\0');
    }
    assert_false(grt_profile_part(profile, count, &part));
}

static void precedence(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("NVIDIA A100-SXM4-40GB", "NVIDIA", 39.4);
    struct grt_profile *profile = grt_profile_create(&info);
    const char *const parts[] = {"nvidia-a100", "nvidia", "gpu-40g", "gpu"};
    parts_are(profile, parts, 4);
    kit_expect(profile, GRT_KEY_NUM_ENVS, 1024);     // device over class
    kit_expect(profile, GRT_KEY_SMALL_BATCH, 2048);  // class with memory over class
    kit_expect(profile, GRT_KEY_STREAM_WG, 256);     // nobody: the default
    assert_string_equal(grt_profile_get(profile, GRT_KEY_STREAM_WG)->profile, "default");
    assert_non_null(strstr(grt_profile_get(profile, GRT_KEY_NUM_ENVS)->from, "derived"));
    grt_profile_destroy(&profile);
    // A laptop with the same first words is another device; so is one of an unknown maker.
    info = kit_gpu("NVIDIA GeForce RTX 3060 Laptop GPU", "NVIDIA", 5.8);
    profile = grt_profile_create(&info);
    const char *const laptop[] = {"nvidia-rtx-3060-laptop", "nvidia", "gpu-6g", "gpu"};
    parts_are(profile, laptop, 4);
    grt_profile_destroy(&profile);
    info = kit_gpu("Voodoo 9", "3dfx", 0.5);
    profile = grt_profile_create(&info);
    const char *const unknown[] = {"gpu"};
    parts_are(profile, unknown, 1);
    grt_profile_destroy(&profile);
    // The maker of a CPU is not the maker of a GPU.
    info = kit_gpu("pthread-cortex-a72", "ARM", 8);
    info.caps.software = 1;
    snprintf(info.driver, sizeof info.driver, "Portable Computing Language");
    profile = grt_profile_create(&info);
    const char *const pocl[] = {"pocl", "cpu"};
    parts_are(profile, pocl, 2);
    grt_profile_destroy(&profile);
    kit_leave_home();
}

static void user_overlay(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("NVIDIA A100-SXM4-80GB", "NVIDIA", 79);
    char path[PROFILE_PATH];
    assert_true(grt_profile_user_path(&info, path, sizeof path));
    assert_non_null(strstr(path, "/gpurt/vulkan-nvidia-a100-sxm4-80gb.profile"));
    kit_write_user_file(&info, HEAD "train.num_envs = 77\ngemm.plain = 32\nend\n");
    struct grt_profile *profile = grt_profile_create(&info);
    kit_expect(profile, GRT_KEY_NUM_ENVS, 77);
    kit_expect(profile, GRT_KEY_NUM_DIRS, 64);
    kit_expect(profile, GRT_KEY_GEMM_PLAIN, 32);
    assert_non_null(strstr(grt_profile_get(profile, GRT_KEY_NUM_ENVS)->profile, path));
    grt_profile_destroy(&profile);
    // Another API of the same device has a file of its own.
    struct grt_dev_info other = info;
    other.backend = GRT_BACKEND_OPENCL;
    profile = grt_profile_create(&other);
    kit_expect(profile, GRT_KEY_NUM_ENVS, 1024);
    grt_profile_destroy(&profile);
    // A named file stands above it; it must be there.
    char named[64];
    snprintf(named, sizeof named, "%s/named.profile", kit_home);
    kit_write(named, HEAD "gemm.plain = 16\nend\n");
    setenv("GPURT_PROFILE", named, 1);
    profile = grt_profile_create(&info);
    kit_expect(profile, GRT_KEY_GEMM_PLAIN, 16);
    kit_expect(profile, GRT_KEY_NUM_ENVS, 77);
    grt_profile_destroy(&profile);
    unlink(named);
    TEST_REFUSED(grt_profile_create(&info), GRT_CONFIG,
                 "named.profile: cannot be read: No such file or directory; name another or unset "
                 "GPURT_PROFILE");
    unsetenv("GPURT_PROFILE");
    // What is wrong in it is told with its line, and the device is not opened half tuned.
    kit_write_user_file(&info, HEAD "gemm.plain = 32\ngemm.tild.large = 1\nend\n");
    TEST_REFUSED(grt_profile_create(&info), GRT_CONFIG, ".profile:5: no setting");
    kit_remove_user_file(&info);
    kit_leave_home();
}

static void storing(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("Card # 9\n", "3dfx", 4);
    struct grt_profile_value value = {.count = 5, .numbers = {64, 32, 16, 8, 4}};
    snprintf(value.from, sizeof value.from, "measured: 2026-11-15, driver #7\n, 5 GFLOP/s~\x7fx");
    assert_true(grt_profile_store(&info, GRT_KEY_GEMM_TILED_LARGE, &value));
    // In a folder of the user's own.
    char path[4096];
    struct stat folder;
    assert_true(grt_profile_user_path(&info, path, sizeof path));
    *strrchr(path, '/') = '\0';
    assert_int_equal(stat(path, &folder), 0);
    assert_int_equal(folder.st_mode & 07777, 0700);
    value = (struct grt_profile_value){.count = 1, .numbers = {0.625}, .from = "default"};
    assert_true(grt_profile_store(&info, GRT_KEY_MEM_FRACTION, &value));
    value.numbers[0] = 0.75;
    assert_true(grt_profile_store(&info, GRT_KEY_MEM_FRACTION, &value));
    struct grt_profile *profile = grt_profile_create(&info);
    assert_non_null(profile);
    kit_expect(profile, GRT_KEY_GEMM_TILED_LARGE, 64);
    kit_expect(profile, GRT_KEY_MEM_FRACTION, 0.75);
    // One line without a comment, whatever the driver's name holds.
    assert_string_equal(grt_profile_get(profile, GRT_KEY_GEMM_TILED_LARGE)->from,
                        "measured: 2026-11-15, driver  7 , 5 GFLOP/s~ x");
    grt_profile_destroy(&profile);
    value.count = 2;
    TEST_REFUSED(grt_profile_store(&info, GRT_KEY_MEM_FRACTION, &value), GRT_INVALID, "numbers");
    // A file that cannot be understood is not overwritten.
    kit_write_user_file(&info, "mine\n");
    value.count = 1;
    TEST_REFUSED(grt_profile_store(&info, GRT_KEY_MEM_FRACTION, &value), GRT_CONFIG, ".profile:1:");
    kit_remove_user_file(&info);
    kit_leave_home();
}

static struct grt_profile_value number(double x) {
    return (struct grt_profile_value){.count = 1, .numbers = {x}, .from = "default"};
}

// Whether the user's file is this text.
static void file_is(const struct grt_dev_info *info, const char *want) {
    char path[4096];
    char got[4096] = "";
    assert_true(grt_profile_user_path(info, path, sizeof path));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(got, want);
}

// A setting that was renamed is read by its earlier name too, and both are one.
static void earlier_names(void **state) {
    (void)state;
    struct profile_file file;
    char why[PROFILE_WHY];
    const char *text = HEAD "gemm.wgmma_lean = 128 256 5 3\ngemm.wgmma_lean.step = 3 2 1\n"
                            "gemm.wgmma_lean.ends = 6 5 4\nend\n";
    assert_true(profile_parse("a", text, strlen(text), &file, why));
    assert_true(file.rows[GRT_KEY_GEMM_WGMMA_48K].numbers[1] == 256);
    assert_true(file.rows[GRT_KEY_GEMM_WGMMA_48K_STEP].numbers[0] == 3);
    assert_true(file.rows[GRT_KEY_GEMM_WGMMA_48K_ENDS].numbers[2] == 4);
    refuse(HEAD "gemm.wgmma_lean = 0 0 0 0\ngemm.wgmma_48k = 0 0 0 0\nend\n", 5, "line 4 already");
    // A search that writes the setting replaces the line, by its name of today.
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("Card", "3dfx", 4);
    kit_write_user_file(&info, HEAD "gemm.wgmma_lean = 128 256 5 3\nend\n");
    struct grt_profile_value value = {.numbers = {128, 128, 4, 2}, .count = 4, .from = "default"};
    assert_true(grt_profile_store(&info, GRT_KEY_GEMM_WGMMA_48K, &value));
    file_is(&info, HEAD "gemm.wgmma_48k = 128 128 4 2  # BM BN STAGES AHEAD\nend\n");
    kit_remove_user_file(&info);
    kit_leave_home();
}

// The file is the user's: his comments and the order of his lines stay, and no `from` is left
// without a setting.
static void comments_stay(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("Card", "3dfx", 4);
    kit_write_user_file(&info, "gpurt-profile 1\n# mine\nlevel = user\nfrom = default\n"
                               "mem_fraction = 0.5  # the display needs the rest\n"
                               "autotune = 1\n\nfrom = derived: a guess\n# why not\n"
                               "gemm.plain = 8\nend\n# the last word\n");
    struct grt_profile_value value = number(0.25);
    assert_true(grt_profile_store(&info, GRT_KEY_MEM_FRACTION, &value));
    file_is(&info, "gpurt-profile 1\n# mine\nlevel = user\nfrom = default\n"
                   "autotune = 1\n\nfrom = derived: a guess\n# why not\n"
                   "gemm.plain = 8\nfrom = default\nmem_fraction = 0.25  # share\nend\n"
                   "# the last word\n");
    value = number(16);
    assert_true(grt_profile_store(&info, GRT_KEY_GEMM_PLAIN, &value));
    value = number(0.75);
    assert_true(grt_profile_store(&info, GRT_KEY_MEM_FRACTION, &value));
    file_is(&info, "gpurt-profile 1\n# mine\nlevel = user\nfrom = default\n"
                   "autotune = 1\n\n# why not\nfrom = default\ngemm.plain = 16  # WG\n"
                   "from = default\nmem_fraction = 0.75  # share\nend\n# the last word\n");
    // A link stays one.
    char path[4096];
    char other[4096];
    assert_true(grt_profile_user_path(&info, path, sizeof path));
    snprintf(other, sizeof other, "%.4000s.there", path);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    value = number(0.375);
    assert_true(grt_profile_store(&info, GRT_KEY_MEM_FRACTION, &value));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(other, path), 0);
    struct grt_profile *profile = grt_profile_create(&info);
    assert_non_null(profile);
    kit_expect(profile, GRT_KEY_MEM_FRACTION, 0.375);
    grt_profile_destroy(&profile);
    kit_remove_user_file(&info);
    kit_leave_home();
}

// Processes that store at once: none loses what another has stored.
static void stored_at_once(void **state) {
    (void)state;
    kit_enter_home();
    static const enum grt_profile_key keys[] = {GRT_KEY_GEMM_PLAIN, GRT_KEY_AUTOTUNE,
                                                GRT_KEY_NUM_ENVS, GRT_KEY_NUM_DIRS};
    struct grt_dev_info info = kit_gpu("Card", "3dfx", 4);
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            bool good = true;
            for (int round = 0; round <= 20; round++) {
                struct grt_profile_value value = number(round % 4);
                value.numbers[0] += keys[i] != GRT_KEY_AUTOTUNE;
                good = good && grt_profile_store(&info, keys[i], &value);
            }
            _exit(good ? 0 : 1);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status = 1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    struct grt_profile *profile = grt_profile_create(&info);
    assert_non_null(profile);
    for (int i = 0; i < 4; i++) {
        kit_expect(profile, keys[i], keys[i] != GRT_KEY_AUTOTUNE);
        assert_non_null(strstr(grt_profile_get(profile, keys[i])->profile, ".profile:"));
    }
    grt_profile_destroy(&profile);
    kit_remove_user_file(&info);
    kit_leave_home();
}

// A folder that cannot be had is said before anything is measured.
static void nowhere_to_store(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("Card", "3dfx", 4);
    char path[4096];
    assert_true(grt_profile_storable(&info));
    snprintf(path, sizeof path, "%.4000s/gpurt", kit_home);
    assert_int_equal(rmdir(path), 0);
    kit_write(path, "a file where the folder should be");
    TEST_REFUSED(grt_profile_storable(&info), GRT_NO_OUTPUT, "/gpurt");
    struct grt_profile_value value = number(1);
    TEST_REFUSED(grt_profile_store(&info, GRT_KEY_AUTOTUNE, &value), GRT_NO_OUTPUT, "/gpurt");
    TEST_REFUSED(grt_profile_storable(NULL), GRT_INVALID, "no device");
    assert_int_equal(unlink(path), 0);
    kit_leave_home();
}

// A pipe where the user's profile should be is said, and not waited for.
static void no_file(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev_info info = kit_gpu("Card", "3dfx", 4);
    char path[4096];
    assert_true(grt_profile_storable(&info));
    assert_true(grt_profile_user_path(&info, path, sizeof path));
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    TEST_REFUSED(grt_profile_create(&info), GRT_CONFIG, "no regular file");
    setenv("GPURT_PROFILE", path, 1);
    TEST_REFUSED(grt_profile_create(&info), GRT_CONFIG, "no regular file");
    unsetenv("GPURT_PROFILE");
    alarm(0);
    assert_int_equal(unlink(path), 0);
    kit_leave_home();
}

// The sentence of all conditions, with the longest name: it fits.
static void reasons(void **state) {
    (void)state;
    struct profile_match match = {
        .arch = "hopper",
        .vendor = "nvidia",
        .class = "gpu",
        .backend = "vulkan",
        .memory = "0.5 9",
        .from_gib = 0.5,
        .below_gib = 9,
    };
    struct grt_dev_info info = {
        .backend = GRT_BACKEND_VULKAN, .vendor = "NVIDIA", .caps = {.memory = 1 << 30}};
    memset(match.name, 'x', sizeof match.name - 1);
    snprintf(info.name, sizeof info.name, "H200 %s", match.name);
    char why[GRT_PROFILE_TEXT], want[2 * GRT_PROFILE_TEXT];
    snprintf(want, sizeof want,
             "its name has '%s', architecture 'hopper', vendor 'nvidia', class 'gpu', backend "
             "'vulkan', memory '0.5 to 9 GiB'",
             match.name);
    uint32_t conditions = 0;
    assert_true(profile_matches(&match, &info, why, &conditions));
    assert_int_equal(conditions, 6);
    assert_string_equal(why, want);
    // A name of one letter, the second of two.
    struct profile_match letter = {.name = "K | Q "};
    snprintf(info.name, sizeof info.name, "Made Q 100");
    assert_true(profile_matches(&letter, &info, why, &conditions));
    assert_string_equal(why, "its name has 'Q'");
    snprintf(info.name, sizeof info.name, "H200 %s", match.name);
    // Memory from the first number on and below the second.
    info.caps.memory = 8ull << 30;
    match.from_gib = 8;
    match.below_gib = 9;
    assert_true(profile_matches(&match, &info, why, &conditions));
    match.below_gib = 8;
    assert_false(profile_matches(&match, &info, why, &conditions));
    match.below_gib = 9;
    match.from_gib = 8.5;
    assert_false(profile_matches(&match, &info, why, &conditions));
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(forms),          TEST_CASE(mistakes),
    TEST_CASE(damage),         TEST_CASE(precedence),
    TEST_CASE(user_overlay),   TEST_CASE(storing),
    TEST_CASE(earlier_names),  TEST_CASE(comments_stay),
    TEST_CASE(stored_at_once), TEST_CASE(nowhere_to_store),
    TEST_CASE(no_file),        TEST_CASE(reasons),
};
TEST_SUITE(profile, false, cases);
