// SPDX-License-Identifier: Apache-2.0
// Settings of `gpurt train es` and `gpurt train ppo`: which value each key fills in, what stands
// above what, which words are settings of the environment, and what is refused, with its sentence.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/command.h"
#include "train/train_es.h"
#include "train/train_ppo.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// ---- what is said ----

static char sentence[2048];
static FILE *kept;
static int error_was = -1;

static void listen(void) {
    kept = tmpfile();
    assert_non_null(kept);
    fflush(stderr);
    error_was = dup(2);
    assert_true(error_was >= 0 && dup2(fileno(kept), 2) == 2);
}

static void heard(void) {
    fflush(stderr);
    assert_int_equal(dup2(error_was, 2), 2);
    close(error_was);
    rewind(kept);
    sentence[fread(sentence, 1, sizeof sentence - 1, kept)] = '\0';
    fclose(kept);
}

static void said(const char *part) {
    if (!strstr(sentence, part)) {
        fail_msg("'%s' is not said: %s", part, sentence);
    }
}

// ---- evolution strategies ----

static const struct train_kind es_kind = {.verb = "train es", .keys = GRT_CONFIG_OF_ES};

static struct train_es es_begun(void) {
    struct train_es t = {.trainer.kind = &es_kind};
    t.trainer.config.common.backend = "auto";
    return t;
}

static int es_read(struct train_es *t, const char *only, const char **words, size_t count) {
    listen();
    int code = train_es_settings(t, only, words, count);
    heard();
    return code;
}

// Each key its own value, all in one line; those of options that were given before stay.
static void es_keys(void **state) {
    (void)state;
    const char *words[] = {"env=pendulum",
                           "phase=2",
                           "policy=mlp20",
                           "algo=es",
                           "num_envs=3",
                           "num_dirs=5",
                           "dir_chunk=7",
                           "top_dirs=11",
                           "step_size=0.25",
                           "noise_std=0.125",
                           "episode_length=13",
                           "iterations=17",
                           "until=0.75",
                           "baselines=true",
                           "evaluate_every=19",
                           "checkpoint_file=a.h5",
                           "checkpoint_every=23",
                           "ema=0.5",
                           "seed=29",
                           "from=b.h5",
                           "directions=d.csv",
                           "normalize_observations=false"};
    struct train_es t = es_begun();
    assert_int_equal(es_read(&t, NULL, words, COUNT(words)), COMMAND_OK);
    assert_string_equal(t.env, "pendulum");
    assert_string_equal(t.policy, "mlp20");
    assert_string_equal(t.algo, "es");
    assert_string_equal(t.trainer.config.checkpoint, "a.h5");
    assert_string_equal(t.file.from, "b.h5");
    assert_string_equal(t.trainer.config.settings.directions, "d.csv");
    assert_true(t.phase == 2 && t.num_envs == 3 && t.num_dirs == 5 && t.dir_chunk == 7 &&
                t.top_dirs == 11 && t.episode_length == 13 && t.iterations == 17);
    assert_true(t.step_size == 0.25 && t.noise_std == 0.125 && t.until == 0.75 && t.ema == 0.5);
    assert_true(t.baselines == 1 && t.file.evaluate_every == 19 && t.checkpoint_every == 23);
    assert_true(t.seed == 29 && t.seed_given && t.no_normalise == 1);
    struct train_es o = es_begun();
    o.env = "cartpole";
    o.policy = "linear";
    o.algo = "ars";
    o.phase = o.num_envs = o.num_dirs = o.dir_chunk = o.top_dirs = o.episode_length = 4;
    o.step_size = o.noise_std = o.until = 0.5;
    o.iterations = o.checkpoint_every = o.file.evaluate_every = 6;
    o.seed_given = true;
    o.trainer.config.checkpoint = "own.h5";
    o.file.from = "own-from.h5";
    o.directions_path = "own.csv";
    assert_int_equal(es_read(&o, NULL, words, COUNT(words)), COMMAND_OK);
    assert_string_equal(o.env, "cartpole");
    assert_string_equal(o.policy, "linear");
    assert_string_equal(o.algo, "ars");
    assert_string_equal(o.trainer.config.checkpoint, "own.h5");
    assert_string_equal(o.file.from, "own-from.h5");
    assert_string_equal(o.trainer.config.settings.directions, "own.csv");
    assert_true(o.phase == 4 && o.num_envs == 4 && o.num_dirs == 4 && o.dir_chunk == 4 &&
                o.top_dirs == 4 && o.episode_length == 4 && o.iterations == 6);
    assert_true(o.step_size == 0.5 && o.noise_std == 0.5 && o.until == 0.5);
    assert_true(o.seed == 0 && o.file.evaluate_every == 6 && o.checkpoint_every == 6);
}

static void es_without_keys(void **state) {
    (void)state;
    struct train_es t = es_begun();
    assert_int_equal(es_read(&t, NULL, NULL, 0), COMMAND_OK);
    assert_true(!t.env && !t.policy && !t.algo && !t.file.from && !t.trainer.config.checkpoint);
    assert_true(t.iterations == 100 && t.checkpoint_every == 10 && t.file.evaluate_every == 0);
    assert_true(t.phase == 0 && t.num_envs == 0 && t.top_dirs == 0 && t.step_size == 0 &&
                t.until == 0 && t.ema == 0 && t.baselines == 0);
    assert_true(!t.seed_given && t.no_normalise == 0);
    // Steps alone are as many iterations; beside these they are a limit.
    static const struct {
        const char *words[2];
        size_t count;
        uint32_t given, want;
    } rows[] = {{{"max_steps=7"}, 1, 0, 7},
                {{"max_steps=7", "iterations=5"}, 2, 0, 5},
                {{"max_steps=7"}, 1, 9, 9},
                {{"max_steps=99999999999"}, 1, 0, UINT32_MAX},
                {{"max_steps=0"}, 1, 0, 100}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *words[2] = {rows[i].words[0], rows[i].words[1]};
        t = es_begun();
        t.iterations = rows[i].given;
        assert_int_equal(es_read(&t, NULL, words, rows[i].count), COMMAND_OK);
        assert_int_equal(t.iterations, rows[i].want);
    }
    // What is resumed begins with nothing else.
    const char *from[] = {"from=b.h5"};
    t = es_begun();
    t.file.resume = "c.h5";
    assert_int_equal(es_read(&t, NULL, from, 1), COMMAND_OK);
    assert_null(t.file.from);
}

static void es_refused(void **state) {
    (void)state;
    static const struct {
        const char *only, *word, *said;
        int code;
    } rows[] = {
        {NULL, "seed=4294967295", NULL, COMMAND_OK},
        {NULL, "seed=4294967296",
         "seed: 4294967296 is above 4294967295, the largest of evolution strategies",
         COMMAND_CONFIG},
        {"standing", "env=standing", NULL, COMMAND_OK},
        {"standing", "env=cartpole",
         "env: cartpole is not for `gpurt train es`, which trains standing; use `gpurt train es`",
         COMMAND_CONFIG},
        {NULL, "cartpole", "'cartpole' is not of the form key=value", COMMAND_CONFIG},
        {NULL, "ema=1", "ema", COMMAND_CONFIG},
        {NULL, "until=1.01", "until", COMMAND_CONFIG},
        {NULL, "algo=sgd", "algo", COMMAND_CONFIG},
        {NULL, "step_size=0", "step_size", COMMAND_CONFIG},
        {NULL, "rollout_steps=3", "rollout_steps", COMMAND_CONFIG},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *words[] = {rows[i].word};
        struct train_es t = es_begun();
        assert_int_equal(es_read(&t, rows[i].only, words, 1), rows[i].code);
        assert_true(rows[i].said || !sentence[0]);
        said(rows[i].said ? rows[i].said : "");
        if (rows[i].only && rows[i].code == COMMAND_OK) {
            assert_string_equal(t.env, rows[i].only);
        }
    }
}

// ---- PPO ----

static const struct train_kind ppo_kind = {.verb = "train uav", .keys = GRT_CONFIG_OF_PPO};

static struct train_ppo ppo_begun(void) {
    struct train_ppo t = {.trainer.kind = &ppo_kind};
    t.trainer.config.common.backend = "auto";
    return t;
}

static int ppo_read(struct train_ppo *t, const char *only, const char **words, size_t count) {
    listen();
    int code = train_ppo_settings(t, only, words, count);
    heard();
    return code;
}

static double setting(const struct train_ppo *t, const char *name) {
    for (uint32_t i = 0; i < t->setting_count; i++) {
        if (strcmp(t->settings[i].name, name) == 0) {
            return t->settings[i].value;
        }
    }
    fail_msg("no setting %s", name);
    return 0;
}

// Keys are keys wherever they stand; the others are settings, of which the last word counts.
static void ppo_words(void **state) {
    (void)state;
    const char *words[] = {"collision=0.5", "num_envs=6", "map=12",         "collision=0.75",
                           "gamma=0.5",     "team=-2",    "seed=4294967295"};
    struct train_ppo t = ppo_begun();
    assert_int_equal(ppo_read(&t, "uav", words, COUNT(words)), COMMAND_OK);
    assert_string_equal(sentence, "");
    assert_string_equal(t.env, "uav");
    assert_string_equal(t.info->name, "uav");
    const struct grt_config *c = &t.trainer.config.settings;
    assert_true(c->num_envs == 6 && c->map == 12);
    assert_true(c->discount == 0.5);
    assert_true(c->seed == 4294967295u);
    assert_int_equal(t.setting_count, 3);
    assert_true(setting(&t, "map") == 12 && setting(&t, "collision") == 0.75);
    assert_true(setting(&t, "team") == -2);
    train_ppo_close(&t);
    // Settings of a list, which words stand above; keys of an environment that has no settings.
    const char *list[] = {"settings=window=3,team=0.5", "window=5", "num_uavs=4",
                          "num_obstacles=0"};
    t = ppo_begun();
    assert_int_equal(ppo_read(&t, NULL, list, COUNT(list)), COMMAND_USAGE);
    said("which environment? --env NAME; see `gpurt train uav --help`");
    train_ppo_close(&t);
    t = ppo_begun();
    t.env = "uav";
    const char *again[] = {"settings=window=3,team=0.5", "window=5", "num_uavs=4",
                           "num_obstacles=0"};
    assert_int_equal(ppo_read(&t, NULL, again, COUNT(again)), COMMAND_OK);
    assert_true(setting(&t, "window") == 5 && setting(&t, "team") == 0.5 &&
                setting(&t, "num_uavs") == 4 && setting(&t, "num_obstacles") == 0);
    assert_int_equal(t.setting_count, 4);
    train_ppo_close(&t);
    const char *named[] = {"env=pendulum", "rollout_steps=9"};
    t = ppo_begun();
    assert_int_equal(ppo_read(&t, NULL, named, COUNT(named)), COMMAND_OK);
    assert_string_equal(t.info->name, "pendulum");
    assert_true(t.setting_count == 0 && t.trainer.config.settings.rollout_steps == 9);
    train_ppo_close(&t);
    // An option stands above the key.
    t = ppo_begun();
    t.env = "cartpole";
    const char *other[] = {"env=pendulum"};
    assert_int_equal(ppo_read(&t, NULL, other, 1), COMMAND_OK);
    assert_string_equal(t.info->name, "cartpole");
    train_ppo_close(&t);
}

static void ppo_refused(void **state) {
    (void)state;
    static const struct {
        const char *only, *word, *said;
        int code;
    } rows[] = {
        {"uav", "collision=", "collision=: a setting of the environment is NAME=NUMBER, and 24",
         COMMAND_CONFIG},
        {"uav", "collision=x", "collision=x: a setting of the environment is NAME=NUMBER",
         COMMAND_CONFIG},
        {"uav", "collision=1x", "collision=1x: a setting of the environment is NAME=NUMBER",
         COMMAND_CONFIG},
        {"uav", "settings=collision", "collision: a setting of the environment is NAME=NUMBER",
         COMMAND_CONFIG},
        {"uav", "settings==3", "=3: a setting of the environment is NAME=NUMBER", COMMAND_CONFIG},
        {"uav", "colision=3", "no key 'colision'", COMMAND_CONFIG},
        {"uav", "mapp=3", "did you mean 'map'?", COMMAND_CONFIG},
        {"uav", "uav", "'uav' is not of the form key=value", COMMAND_CONFIG},
        {"uav", "env=cartpole",
         "env: cartpole is not for `gpurt train uav`, which trains uav; use `gpurt train ppo`",
         COMMAND_CONFIG},
        {"uav", "env=uav", NULL, COMMAND_OK},
        {NULL, "env=cartpol", "did you mean 'cartpole'?", COMMAND_USAGE},
        {"uav", "seed=4294967296", "seed: 4294967296 is above 4294967295, the largest of PPO",
         COMMAND_CONFIG},
        {"uav", "gamma=1.5", "gamma", COMMAND_CONFIG},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *words[] = {rows[i].word};
        struct train_ppo t = ppo_begun();
        if (ppo_read(&t, rows[i].only, words, 1) != rows[i].code) {
            fail_msg("%s: another exit code; said: %s", rows[i].word, sentence);
        }
        said(rows[i].said ? rows[i].said : "");
        assert_true(rows[i].said || !sentence[0]);
        train_ppo_close(&t);
    }
}

static void turns(void **state) {
    (void)state;
    static const struct {
        uint64_t asked, iterations;
        uint32_t want;
    } rows[] = {{0, 1, 1},    {0, 19, 1},  {0, 20, 2},     {0, 100, 10},
                {0, 109, 10}, {7, 100, 7}, {500, 20, 500}, {1ull << 40, 20, UINT32_MAX}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(train_file_turns(rows[i].asked, rows[i].iterations), rows[i].want);
    }
}

// Where a run is kept: in the file that is named, else in that which is resumed.
static void files(void **state) {
    (void)state;
    static const struct {
        const char *resume, *given, *want;
    } rows[] = {{NULL, NULL, "env.h5"},
                {"r.h5", NULL, "r.h5"},
                {NULL, "g.h5", "g.h5"},
                {"r.h5", "g.h5", "g.h5"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct train_file file = {.resume = rows[i].resume};
        assert_int_equal(train_file_keep(&file, rows[i].given, "env.h5"), COMMAND_OK);
        assert_string_equal(file.path, rows[i].want);
    }
    char name[TRAIN_FILE_PATH + 1];
    for (int long_ = 0; long_ < 2; long_++) {
        struct train_file file = {0};
        memset(name, 'n', sizeof name);
        name[TRAIN_FILE_PATH - 1 + long_] = '\0';
        listen();
        int code = train_file_keep(&file, name, NULL);
        heard();
        assert_int_equal(code, long_ ? COMMAND_CANNOT_CREATE : COMMAND_OK);
        said(long_ ? "the name of the checkpoint is too long: nnn" : "");
    }
    for (int both = 0; both < 4; both++) {
        struct train_file file = {.resume = both & 1 ? "r" : NULL, .from = both & 2 ? "f" : NULL};
        listen();
        int code = train_file_check(&file);
        heard();
        assert_int_equal(code, both == 3 ? COMMAND_USAGE : COMMAND_OK);
        said(both == 3 ? "--resume goes on with a run and --from begins one: give one of them"
                       : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(es_keys),     cmocka_unit_test(es_without_keys),
        cmocka_unit_test(es_refused),  cmocka_unit_test(ppo_words),
        cmocka_unit_test(ppo_refused), cmocka_unit_test(turns),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
