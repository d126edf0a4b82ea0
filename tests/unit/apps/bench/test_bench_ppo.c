// SPDX-License-Identifier: Apache-2.0
// `gpurt bench ppo` with a learner that was made up: the iteration in the middle and its phases,
// rows of each loop, type and size, what it says of both loops, what does not fit and what fails.
#include "unit/apps/made_device.h"

#include "bench/bench_more.h"
#include "cli/command.h"
#include "train/train_ppo.h"

// ---- in place of the command's and the library's ----

static struct {
    double seconds[8];  // of an iteration, one after the other; 0: the end
    double host;        // times as long by the host
    double acting, environment, rows, value_loss;
    uint64_t most;  // copies that fit
    uint32_t turns, fails_at, made;
    enum grt_status failure;
} m;

int train_ppo_settings(struct train_ppo *t, const char *only, const char **words, size_t count) {
    struct grt_config *c = &t->trainer.config.settings;
    assert_null(only);
    grt_config_init(c);
    for (size_t i = 0; i < count; i++) {
        bool envs = strncmp(words[i], "num_envs=", 9) == 0;
        if (!(envs ? grt_config_set(c, GRT_CONFIG_NUM_ENVS, words[i] + 9)
                   : grt_config_override(c, words[i]))) {
            return COMMAND_CONFIG;
        }
    }
    t->info = grt_env_find(t->env ? t->env : "cartpole");
    t->steps = 8;
    return COMMAND_OK;
}

int train_ppo_make(struct train_ppo *t) {
    m.made++;
    m.turns = 0;
    if (t->trainer.config.settings.num_envs > m.most) {
        grt_fail(GRT_NO_MEMORY, "made up");
        return COMMAND_NO_MEMORY;
    }
    t->task = calloc(1, sizeof *t->task);
    t->task->ppo = (struct grt_ppo *)t;
    t->task->worlds = (struct grt_worlds *)t;
    return COMMAND_OK;
}

void train_ppo_unmake(struct train_ppo *t) {
    free(t->task);
    t->task = NULL;
}

void train_ppo_close(void *self) {
    train_ppo_unmake(self);
}

const struct grt_worlds_sizes *grt_worlds_sizes(const struct grt_worlds *worlds) {
    static const struct grt_worlds_sizes sizes = {.agents = 3};
    assert_non_null(worlds);
    return &sizes;
}

struct grt_ppo_size grt_ppo_size(const struct grt_ppo *ppo) {
    const struct train_ppo *t = (const struct train_ppo *)ppo;
    return (struct grt_ppo_size){.bytes = 100 + t->trainer.config.settings.num_envs};
}

static bool iterate(const struct grt_ppo *ppo, double times, struct grt_ppo_report *report) {
    const struct train_ppo *t = (const struct train_ppo *)ppo;
    size_t count = 0;
    while (count < 8 && m.seconds[count] > 0) {
        count++;
    }
    double seconds = times * m.seconds[m.turns % count];
    *report = (struct grt_ppo_report){
        .seconds = seconds,
        .rows = m.rows * (double)t->trainer.config.settings.num_envs,
        .acting = m.acting * seconds,
        .valuing = m.acting > 0 ? 0.125 * seconds : 0,
        .update = m.acting > 0 ? 0.25 * seconds : 0,
        .value_loss = m.value_loss,
    };
    made.now += seconds;
    return ++m.turns != m.fails_at || grt_fail(m.failure, "made up");
}

bool grt_ppo_iterate(struct grt_ppo *ppo, struct grt_ppo_report *report) {
    return iterate(ppo, 1, report);
}

bool grt_ppo_environment(struct grt_ppo *ppo, double *seconds) {
    (void)ppo;
    *seconds = m.environment;
    return true;
}

bool grt_ppo_iterate_by_host(struct grt_ppo *ppo, struct grt_ppo_report *report,
                             struct grt_ppo_times *times) {
    bool good = iterate(ppo, m.host, report);
    *times =
        (struct grt_ppo_times){.seconds = {0.5 * report->seconds, 0, 0, 0.25 * report->seconds},
                               .busy = {0.25 * report->seconds, 0, 0, 0}};
    return good;
}

static int begin(void **state) {
    memset(&m, 0, sizeof m);
    m.seconds[0] = 0.5;
    m.host = 1;
    m.acting = 0.5;
    m.environment = 0.0625;
    m.rows = 20;
    m.value_loss = 1;
    m.most = 1 << 20;
    return made_begin(state);
}

// The i-th row of this kind.
static size_t nth(const char *kind, size_t n) {
    for (size_t i = 0; i < made_count(); i++) {
        if (strcmp(json_string_value(made_cell(i, "kind")), kind) == 0 && n-- == 0) {
            return i;
        }
    }
    fail_msg("no such row");
    return 0;
}

static size_t rows_of(const char *kind) {
    size_t count = 0;
    for (size_t i = 0; i < made_count(); i++) {
        count += strcmp(json_string_value(made_cell(i, "kind")), kind) == 0;
    }
    return count;
}

// ---- rows ----

static void figures(void **state) {
    (void)state;
    m.host = 4;
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --num-envs 2,5 --time 1 "), 0);
    assert_int_equal(rows_of("iteration"), 3);
    for (size_t i = 0; i < 3; i++) {
        size_t r = nth("iteration", i);
        double envs = i == 0 ? 1 : i == 1 ? 2 : 5, seconds = i == 0 ? 2 : 0.5;
        TEXT(r, "loop", i ? "device" : "host");
        TEXT(r, "env", "cartpole");
        NUMBER(r, "num_envs", envs);
        NUMBER(r, "agents", 3);
        NUMBER(r, "rollout_steps", 8);
        TEXT(r, "precision", "f32");
        NUMBER(r, "seconds", seconds);
        NUMBER(r, "agent_steps_per_s", 20 * envs / seconds);
        NUMBER(r, "env_steps_per_s", 8 * envs / seconds);
        NUMBER(r, "memory", 100 + envs);
        NUMBER(r, "samples", 3);
        NUMBER(r, "spread", 0);
        TEXT(r, "check", "ok");
        if (i) {
            NUMBER(r, "speedup", 4 * envs);
            NUMBER(r, "gpu", 0.5 + 0.125 + 0.25);
        } else {
            assert_false(made_known(r, "speedup"));
            NUMBER(r, "gpu", 0.25);
        }
    }
    // Phases of the second: environment, actions, advantages, update, host, whole.
    static const double parts[] = {0.0625, 0.1875, 0.0625, 0.125, 0.0625, 0.5};
    static const double busy[] = {1, 1, 1, 1, 0, 0.875};
    for (size_t i = 0; i < 6; i++) {
        size_t r = nth("phase", 6 + i);
        NUMBER(r, "seconds", parts[i]);
        NUMBER(r, "share", parts[i] / 0.5);
        NUMBER(r, "num_envs", 2);
        TEXT(r, "loop", "device");
        if (busy[i] > 0) {
            NUMBER(r, "gpu", busy[i]);
        }
    }
    TEXT(nth("phase", 6), "phase", "environment");
    TEXT(nth("phase", 11), "phase", "whole");
    assert_int_equal(rows_of("phase"), 18);
    assert_true(made.closed);
}

// The first iteration does not count; of the others the one in the middle is shown.
static void middle(void **state) {
    (void)state;
    static const double turns[] = {9, 0.3, 0.1, 0.2, 0.5, 0.4};
    memcpy(m.seconds, turns, sizeof turns);
    assert_int_equal(
        made_run(bench_ppo, "ppo --env cartpole --num-envs 2 --loop device --time 1.4"), 0);
    NUMBER(0, "samples", 5);
    NUMBER(0, "seconds", 0.3);
    NUMBER(0, "agent_steps_per_s", 40 / 0.3);
    NUMBER(0, "spread", (0.4 - 0.2) / 2 / 0.3);
    NUMBER(nth("phase", 5), "seconds", 0.3);
    // Three at least, 63 at most; of an even number the later of both in the middle.
    assert_int_equal(
        made_run(bench_ppo, "ppo --env cartpole --num-envs 2 --loop device --time 0.1"), 0);
    NUMBER(0, "samples", 3);
    NUMBER(0, "seconds", 0.2);
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --num-envs 2 --loop device --time 1"),
                     0);
    NUMBER(0, "samples", 4);
    NUMBER(0, "seconds", 0.3);
    m.seconds[0] = 0.01;
    m.seconds[1] = 0;
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --num-envs 2 --loop device --time 9"),
                     0);
    NUMBER(0, "samples", 63);
}

static void lists(void **state) {
    (void)state;
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --num-envs 2,3 --precision bf16,f32"),
                     0);
    assert_int_equal(rows_of("iteration"), 6);
    for (size_t i = 0; i < 6; i++) {
        TEXT(nth("iteration", i), "precision", i / 3 ? "bf16" : "f32");
        TEXT(nth("iteration", i), "loop", i % 3 ? "device" : "host");
    }
    // Against the host's loop of the same types.
    NUMBER(nth("iteration", 5), "speedup", 3);
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop device precision=f16"), 0);
    assert_int_equal(rows_of("iteration"), 3);
    NUMBER(0, "num_envs", 1024);
    NUMBER(2, "num_envs", 16384);
    TEXT(0, "precision", "f16");
    assert_false(made_known(0, "speedup"));
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop device --num-envs 7"), 0);
    assert_int_equal(rows_of("iteration"), 1);
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop host num_envs=7"), 0);
    NUMBER(0, "num_envs", 1);
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop device num_envs=7"), 0);
    NUMBER(0, "num_envs", 7);
    made_software();
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop device"), 0);
    assert_int_equal(rows_of("iteration"), 1);
    NUMBER(0, "num_envs", 16);
    // Without a clock there are no phases.
    m.acting = 0;
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop device"), 0);
    assert_int_equal(rows_of("phase"), 0);
    assert_false(made_known(0, "gpu"));
}

static void out_has(const char *part, bool wanted) {
    if (!strstr(made_out, part) == wanted) {
        fail_msg("'%s' is %sthere: %s", part, wanted ? "not " : "", made_out);
    }
}

static void words(void **state) {
    (void)state;
    m.host = 4;
    assert_int_equal(made_plain(bench_ppo, "ppo --env cartpole --num-envs 5,2,5"), 0);
    out_has("PPO of cartpole on opencl:0: Made-up 9000, none 0.1", true);
    out_has("an iteration of 1 environment, f32, loop of the host", true);
    out_has("an iteration of 5 environments, f32, loop of the device", true);
    out_has("before, one environment with the host in every step: 10 agent steps/s; after, 5 "
            "recorded on the device: 200, 20.0 times as many",
            true);
    assert_int_equal(made_plain(bench_ppo, "ppo --env cartpole --num-envs 5 --loop device"), 0);
    out_has("before, one environment", false);
}

static void endings(void **state) {
    (void)state;
    m.most = 4;
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --num-envs 4,5"), 0);
    assert_int_equal(rows_of("iteration"), 3);
    TEXT(nth("iteration", 2), "check", "no memory");
    assert_false(made_known(nth("iteration", 2), "seconds"));
    assert_false(made_known(nth("iteration", 2), "memory"));
    assert_false(made_known(nth("iteration", 2), "agents"));
    assert_int_equal(rows_of("phase"), 12);
    assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop device --num-envs 5"),
                     COMMAND_INTERNAL);
    for (int i = 0; i < 2; i++) {
        m.rows = i ? 20 : 0;
        m.value_loss = i ? NAN : 1;
        assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop device --num-envs 4"), 70);
        TEXT(0, "check", "FAILED");
        SAID("ppo: an iteration learnt from ");
    }
    m.value_loss = 1;
    m.rows = 20;
    static const struct {
        enum grt_status status;
        int code;
    } rows[] = {{GRT_LOST, 70}, {GRT_IO, 74}, {GRT_UNSUPPORTED, 69}};
    for (size_t i = 0; i < 3; i++) {
        for (m.fails_at = 1; m.fails_at < 4; m.fails_at++) {
            m.failure = rows[i].status;
            assert_int_equal(made_run(bench_ppo, "ppo --env cartpole --loop device --num-envs 4"),
                             rows[i].code);
            assert_int_equal(made_count(), 0);
            assert_true(made.closed);
        }
    }
}

static void refused(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"ppo --env cartpole --num-envs 16777217", "1 to 16777216"},
        {"ppo --env cartpole --num-envs 0", "1 to 16777216"},
        {"ppo --env cartpole --loop gpu", "host"},
        {"ppo --env cartpole --precision f8", "f32"},
        {"ppo --env cartpole --time 0", "above 0"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int code = made_run(bench_ppo, lines[i][0]);
        if (code != COMMAND_USAGE || !strstr(made_said, lines[i][1])) {
            fail_msg("%s: exit code %d, said: %s", lines[i][0], code, made_said);
        }
    }
    assert_int_equal(m.made, 0);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(figures), CASE(middle), CASE(lists), CASE(words), CASE(endings), CASE(refused),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
