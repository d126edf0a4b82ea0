// SPDX-License-Identifier: Apache-2.0
// What a checkpoint of PPO says to a later run: keys that were not given, the number of parts, the
// average of its weights, and settings of the environment.
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include "gpurt/ppo_task.h"

static struct grt_archive *archive_with(const char *const *pairs) {
    struct grt_archive *a = grt_archive_create();
    assert_non_null(a);
    for (; *pairs; pairs += 2) {
        assert_true(grt_archive_set_text(a, pairs[0], pairs[1]));
    }
    return a;
}
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void keys(void **state) {
    (void)state;
    static struct grt_config c;
    for (int resume = 0; resume < 2; resume++) {
        struct grt_archive *a = archive_with(
            PAIRS("config_clip", "0.3", "config_num_envs", "12", "config_discount", "0.5",
                  "config_max_time", "3600", "config_patience", "7", "config_log", "old.jsonl",
                  "config_device", "\"ref:9\"", "config_checkpoint_file", "old.h5",
                  "config_micro_batches", "4", "config_hidden", "[8, 9]", "config_seed", "5"));
        grt_config_init_for(&c, GRT_CONFIG_OF_PPO);
        assert_true(grt_config_override(&c, "discount=0.25"));
        assert_true(grt_ppo_task_recall(&c, a, resume));
        assert_true(c.clip == 0.3 && c.num_envs == 12 && c.seed == 5);
        assert_true(c.discount == 0.25);  // what is given stays
        assert_true(c.hidden.count == 2 && c.hidden.values[1] == 9);
        // These a run is told anew.
        assert_true(c.max_time == 0 && c.patience == 0);
        assert_string_equal(c.log, "");
        assert_string_equal(c.device, "");
        assert_false(grt_config_given(&c, GRT_CONFIG_CHECKPOINT_FILE));
        // Parts are of the run itself; another one has its own.
        assert_int_equal(c.micro_batches, resume ? 4 : 0);
        assert_int_equal(grt_config_given(&c, GRT_CONFIG_MICRO_BATCHES), resume);
        grt_archive_destroy(&a);
        // A file that does not say how many has one.
        a = archive_with(PAIRS("config_clip", "0.3"));
        grt_config_init_for(&c, GRT_CONFIG_OF_PPO);
        assert_true(grt_ppo_task_recall(&c, a, resume));
        assert_int_equal(c.micro_batches, resume ? 1 : 0);
        // One that is given is meant.
        grt_config_init_for(&c, GRT_CONFIG_OF_PPO);
        assert_true(grt_config_override(&c, "micro_batches=2"));
        assert_true(grt_ppo_task_recall(&c, a, resume));
        assert_int_equal(c.micro_batches, 2);
        grt_archive_destroy(&a);
    }
    struct grt_archive *a = archive_with(PAIRS("config_clip", "many"));
    grt_config_init_for(&c, GRT_CONFIG_OF_PPO);
    TEST_REFUSED(grt_ppo_task_recall(&c, a, false), GRT_CONFIG, "clip=many: clip wants a number");
    TEST_REFUSED(grt_ppo_task_recall(NULL, a, false), GRT_INVALID,
                 "a config and a checkpoint of PPO are wanted");
    TEST_REFUSED(grt_ppo_task_recall(&c, NULL, false), GRT_INVALID, "of PPO are wanted");
    TEST_REFUSED(grt_ppo_task_save(NULL, "cartpole", a), GRT_INVALID,
                 "a task of PPO, its environment and an archive are wanted");
    grt_archive_destroy(&a);
}

// With another average it would be another run; only one that goes on is asked.
static void averages(void **state) {
    (void)state;
    static const struct {
        const char *theirs, *ours, *path;
        const char *why;  // of a resumed run; NULL: it is the same
    } rows[] = {
        {NULL, NULL, "", NULL},
        {"0.5", NULL, "", NULL},  // it is not given, and becomes that
        {"0.5", "ema=0.5", "", NULL},
        {NULL, "ema=0", "", NULL},
        {"0.5", "ema=0.75", "a.h5",
         "a.h5 was made with ema=0.5; here it is 0.75, which is another"},
        {"0.5", "ema=0", "",
         "checkpoint was made with ema=0.5; here it is 0, which is another run"},
        {NULL, "ema=0.25", "", "checkpoint was made with ema=0; here it is 0.25"},
    };
    static struct grt_config c;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int resume = 0; resume < 2; resume++) {
            struct grt_archive *a = archive_with(PAIRS("config_clip", "0.3"));
            assert_true(!rows[i].theirs || grt_archive_set_text(a, "config_ema", rows[i].theirs));
            snprintf(a->path, sizeof a->path, "%s", rows[i].path);
            grt_config_init_for(&c, GRT_CONFIG_OF_PPO);
            assert_true(!rows[i].ours || grt_config_override(&c, rows[i].ours));
            if (rows[i].why && resume) {
                TEST_REFUSED(grt_ppo_task_recall(&c, a, resume), GRT_CONFIG, rows[i].why);
            } else {
                assert_true(grt_ppo_task_recall(&c, a, resume));
            }
            grt_archive_destroy(&a);
        }
    }
}

// In the order of the file, whatever else it has, and of each form of number.
static void settings(void **state) {
    (void)state;
    struct grt_archive *a =
        archive_with(PAIRS("setting_wind", "2.5", "config_clip", "0.3", "setting_", "7"));
    struct grt_env_value value = {"-", -1};
    assert_true(grt_archive_set_whole(a, "setting_birds", 12) &&
                grt_archive_set_real(a, "setting_rain", 0.1));
    static const struct {
        const char *name;
        double value;
    } want[] = {{"wind", 2.5}, {"", 7}, {"birds", 12}, {"rain", 0.1}};
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(grt_ppo_task_setting(a, i, &value));
        assert_string_equal(value.name, want[i].name);
        assert_true(value.value == want[i].value);
    }
    assert_false(grt_ppo_task_setting(a, 4, &value));
    assert_false(grt_ppo_task_setting(NULL, 0, &value));
    assert_false(grt_ppo_task_setting(a, 0, NULL));
    grt_archive_destroy(&a);
}

static const struct CMUnitTest cases[] = {TEST_CASE(keys), TEST_CASE(averages),
                                          TEST_CASE(settings)};
TEST_SUITE(recalled, false, cases);
