// SPDX-License-Identifier: Apache-2.0
// `gpurt bench rollout` on a made-up device: what two settings and every list come to, what held
// them back, steps that were not taken, returns that differ, worlds in memory, and what is refused.
#include "unit/apps/made_device.h"

#include "bench/bench.h"
#include "cli/command.h"
#include "gpurt/es.h"

#define QUICK " --time 0.001 --samples 3"

// ---- in place of the library's ----

struct grt_es {
    struct grt_es_desc desc;
};

static struct {
    double rate, busy;      // steps a second of a whole device, and its share of the wall
    double lost;            // share of the steps that are not taken
    double by_chunk;        // what the mean return has of the chunk
    enum grt_status fails;  // what cannot be made; 0: all can
    uint32_t most_envs;     // of what can
    bool stops;
    struct grt_es_sizes sizes;
    bool varies;  // iterations take once, twice and three times as long
    uint32_t turns;
} es;

struct grt_es_sizes grt_es_sizes(const struct grt_profile *profile,
                                 const struct grt_dev_info *info) {
    assert_non_null(profile);
    assert_ptr_equal(info, &made.info);
    return es.sizes;
}

struct grt_es *grt_es_create(struct grt_dev *dev, const struct grt_es_desc *desc) {
    (void)dev;
    if (es.fails && desc->num_envs > es.most_envs) {
        grt_fail(es.fails, "made up: no learner");
        return NULL;
    }
    struct grt_es *made_es = calloc(1, sizeof *made_es);
    made_es->desc = *desc;
    assert_true(desc->restart);
    if (!made_es->desc.episode_length) {
        made_es->desc.episode_length = desc->env->length;
    }
    return made_es;
}

void grt_es_destroy(struct grt_es **e) {
    free(*e);
    *e = NULL;
}

const struct grt_es_desc *grt_es_desc_of(const struct grt_es *e) {
    return &e->desc;
}

bool grt_es_iterate(struct grt_es *e, struct grt_es_report *report) {
    const struct grt_es_desc *d = &e->desc;
    double steps = 2.0 * d->num_dirs * d->num_envs * d->episode_length;
    // Few at once take as long as all.
    double seconds = steps / es.rate * d->num_dirs / d->dir_chunk;
    seconds *= es.varies ? 1 + es.turns++ % 3 : 1;
    *report = (struct grt_es_report){.steps = steps * (1 - es.lost),
                                     .seconds = seconds,
                                     .busy = es.busy * seconds,
                                     .mean_return = (float)(1 + es.by_chunk * d->dir_chunk),
                                     .stopped = es.stops};
    made.now += seconds;
    return true;
}

struct grt_es_size grt_es_size(const struct grt_es *e) {
    return (struct grt_es_size){.bytes = 1000 + e->desc.dir_chunk};
}

// ---- worlds in memory ----

struct grt_worlds {
    struct grt_worlds_desc desc;
    struct grt_worlds_sizes sizes;
    uint32_t steps;
    struct grt_plan *plan;
};
static double step_seconds, reset_seconds;
static uint32_t steps_lost;
static struct grt_worlds *stepped;

struct grt_worlds *grt_worlds_create(struct grt_dev *dev, const struct grt_worlds_desc *desc) {
    struct grt_worlds *w = calloc(1, sizeof *w);
    (void)dev;
    *w = (struct grt_worlds){.desc = *desc, .sizes = {.agents = 3, .obs = 4, .choices = 5}};
    for (uint32_t i = 0; i < desc->setting_count; i++) {
        if (strcmp(desc->settings[i].name, "num_uavs") == 0) {
            w->sizes.agents = (uint32_t)desc->settings[i].value;
        } else if (strcmp(desc->settings[i].name, "map") != 0) {
            grt_fail(GRT_CONFIG, "made up: no setting '%s'", desc->settings[i].name);
            free(w);
            return NULL;
        }
    }
    return w;
}

void grt_worlds_destroy(struct grt_worlds **worlds) {
    free(*worlds);
    *worlds = NULL;
}

const struct grt_worlds_sizes *grt_worlds_sizes(const struct grt_worlds *worlds) {
    return &worlds->sizes;
}

void grt_worlds_declare(struct grt_worlds *worlds, struct grt_plan *plan) {
    worlds->plan = plan;
    grt_plan_tensor(plan, grt_tensor_desc(.label = "state", .group = "worlds", .shape = {10}));
    grt_plan_tensor(plan, grt_tensor_desc(.label = "book", .group = "worlds", .dtype = GRT_U32,
                                          .shape = {3, worlds->desc.copies}));
}

static void do_reset(const struct made_work *work) {
    (void)work;
    stepped->steps = 0;
}

static void do_step(const struct made_work *work) {
    (void)work;
    stepped->steps++;
}

static void do_nothing(const struct made_work *work) {
    (void)work;
}

void grt_op_worlds_reset(struct grt_graph *graph, struct grt_worlds *worlds,
                         struct grt_range control) {
    (void)control;
    stepped = worlds;
    made_add(graph, &(struct made_work){.run = do_reset, .seconds = reset_seconds});
}

void grt_op_worlds_observe(struct grt_graph *graph, struct grt_worlds *worlds,
                           const struct grt_observe_desc *desc) {
    (void)worlds;
    assert_non_null(desc->obs.buf);
    assert_null(desc->global.buf);  // there is none
    made_add(graph, &(struct made_work){.run = do_nothing});
}

void grt_op_worlds_random(struct grt_graph *graph, struct grt_worlds *worlds,
                          const struct grt_world_random_desc *desc) {
    (void)worlds;
    assert_true(desc->advance);
    made_add(graph, &(struct made_work){.run = do_nothing});
}

void grt_op_worlds_step(struct grt_graph *graph, struct grt_worlds *worlds,
                        const struct grt_world_step_desc *desc) {
    (void)desc;
    made_add(graph,
             &(struct made_work){.run = do_step, .seconds = step_seconds * worlds->desc.copies});
}

// Steps of ended episodes, and of each copy: resets, steps of its episode, and whether that has
// ended, when they are among the first.
static void do_totals(const struct made_work *work) {
    uint32_t copies = stepped->desc.copies, steps = stepped->steps - steps_lost;
    const struct grt_tensor *book = grt_plan_at(stepped->plan, "worlds", 1);
    uint32_t resets = steps / 3, newest = steps / 4;
    float whole = 0;
    for (uint32_t i = 0; i < copies; i++) {
        uint32_t words[3] = {resets, newest, i == 1};
        for (uint32_t k = 0; k < 3; k++) {
            memcpy(made_at(&book->range) + 4 * (k * copies + i), &words[k], 4);
        }
        whole += (float)(steps - resets - (i == 1 ? 0 : newest));
    }
    memcpy(made_at(&work->at) + 8, &whole, 4);
}

void grt_op_worlds_totals(struct grt_graph *graph, struct grt_worlds *worlds,
                          struct grt_range out) {
    (void)worlds;
    made_add(graph, &(struct made_work){.run = do_totals, .at = out});
}

static int begin(void **state) {
    memset(&es, 0, sizeof es);
    es.rate = 1e6;
    es.busy = 0.9;
    es.sizes = (struct grt_es_sizes){512, 32, 32};
    step_seconds = 1e-5;
    reset_seconds = 1e-3;
    steps_lost = 0;
    return made_begin(state);
}

static void out_has(const char *part, bool wanted) {
    if (!strstr(made_out, part) == wanted) {
        fail_msg("'%s' is %sthere: %s", part, wanted ? "not " : "", made_out);
    }
}

// ---- evolution strategies ----

// What a program had before it was tuned, and the device's profile.
static void two_settings(void **state) {
    (void)state;
    const struct grt_env_info *env = grt_env_find("standing");
    assert_int_equal(made_run(cmd_bench, "bench rollout --episode-length 7" QUICK), 0);
    assert_int_equal(made_count(), 2);
    static const double sizes[2][3] = {{128, 16, 8}, {512, 32, 32}};
    for (size_t i = 0; i < 2; i++) {
        double rate = i ? 1e6 : 1e6 * 8 / 16;
        double steps = 2 * sizes[i][0] * sizes[i][1] * 7;
        TEXT(i, "kind", "rollout");
        TEXT(i, "test", "standing");
        TEXT(i, "policy", "linear");
        NUMBER(i, "num_envs", sizes[i][0]);
        NUMBER(i, "num_dirs", sizes[i][1]);
        NUMBER(i, "dir_chunk", sizes[i][2]);
        NUMBER(i, "total_batch", 2 * sizes[i][0] * sizes[i][1]);
        NUMBER(i, "steps_per_s", rate);
        NUMBER(i, "substeps_per_s", rate * env->substeps);
        NUMBER(i, "ms", 1e3 * steps / rate);
        NUMBER(i, "gpu", 0.9);
        NUMBER(i, "memory", 1000 + sizes[i][2]);
        double operations = grt_policy_operations(&(struct grt_policy){0}, env);
        NUMBER(i, "gflop_per_s", rate * operations / 1e9);
        NUMBER(i, "of_peak", rate * operations / (2e12 / 0.5));
        TEXT(i, "timer", "wall");
        TEXT(i, "check", "ok");
    }
    assert_false(made_known(0, "speedup"));
    NUMBER(1, "speedup", 2);
}

// Of three samples the one between; the device's share is of all of them.
static void middle(void **state) {
    (void)state;
    es.varies = true;
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4,5" QUICK), 0);
    for (size_t i = 0; i < 2; i++) {
        NUMBER(i, "steps_per_s", 0.5e6);
        NUMBER(i, "spread", 0.25);
        NUMBER(i, "gpu", 0.9);
    }
    NUMBER(1, "speedup", 1);
    static const double slower[] = {1, 2, 3};
    memcpy(made.slower, slower, sizeof slower);
    made.submit = 0;
    assert_int_equal(
        made_run(cmd_bench, "bench rollout --env uav --policy random --num-envs 2" QUICK), 0);
    NUMBER(0, "steps_per_s", 1.5e5);
    NUMBER(0, "ms", 2 * 2e-2);
    NUMBER(0, "spread", 0.25);
}

// The device that is faster than its clock says is all busy; a device without one says nothing.
static void busy(void **state) {
    (void)state;
    es.busy = 1.01;
    assert_int_equal(made_run(cmd_bench, "bench rollout --num-envs 4" QUICK), 0);
    NUMBER(0, "gpu", 1);
    es.busy = 0;
    assert_int_equal(made_run(cmd_bench, "bench rollout --num-envs 4" QUICK), 0);
    assert_false(made_known(0, "gpu"));
}

// A list has the profile's numbers where it is not given, and a chunk of more than all directions
// is all of them, once.
static void every_list(void **state) {
    (void)state;
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4,5 --num-dirs "
                                         "3,6 --dir-chunk 1,3,9,12 --policy linear,mlp16" QUICK),
                     0);
    // Of three directions chunks of 1 and 3, of six of 1, 3 and 6.
    assert_int_equal(made_count(), 2 * 2 * (2 + 3));
    static const double chunks[] = {1, 3, 1, 3, 6};
    for (size_t i = 0; i < made_count(); i++) {
        double dirs = i % 5 < 2 ? 3 : 6;
        TEXT(i, "policy", i < 10 ? "linear" : "mlp16");
        NUMBER(i, "num_envs", i / 5 % 2 ? 5 : 4);
        NUMBER(i, "num_dirs", dirs);
        NUMBER(i, "dir_chunk", chunks[i % 5]);
        double rate = 1e6 * chunks[i % 5] / dirs;
        NUMBER(i, "steps_per_s", rate);
        if (i % 10 == 0) {
            assert_false(made_known(i, "speedup"));
        } else {
            NUMBER(i, "speedup", rate / (1e6 / 3));  // of the first of the policy
        }
    }
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-dirs 5" QUICK), 0);
    assert_int_equal(made_count(), 1);
    NUMBER(0, "num_envs", 512);
    NUMBER(0, "dir_chunk", 5);
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --dir-chunk 2" QUICK), 0);
    NUMBER(0, "num_dirs", 32);
}

// What held both settings back.
static void story(void **state) {
    (void)state;
    static const char line[] = "bench rollout --env cartpole" QUICK;
    es.busy = 0.79;
    assert_int_equal(made_plain(cmd_bench, line), 0);
    out_has("128 x 16, 8 at once, was held back by launches and the host's reading; 512 x 32, 32 "
            "at once, by launches and the host's reading: 2.0 times the steps",
            true);
    // 2 x 8 x 128 lanes of 256 on 8 units, and 32,768.
    es.busy = 0.8;
    made.info.caps.compute_units = 8;
    assert_int_equal(made_plain(cmd_bench, line), 0);
    out_has("was held back by the physics' arithmetic; 512 x 32, 32 at once, by the physics'",
            true);
    made.info.caps.compute_units = 9;
    assert_int_equal(made_plain(cmd_bench, line), 0);
    out_has("was held back by too few environments at once to fill the device; 512 x 32, 32 at "
            "once, by the physics'",
            true);
    // A CPU is full with one environment a core; without a clock nothing is said of launches.
    es.busy = 0;
    made.info.caps.compute_units = 2048;
    made.info.caps.software = 1;
    assert_int_equal(made_plain(cmd_bench, line), 0);
    out_has("was held back by the physics' arithmetic", true);
    made.info.caps.compute_units = 2049;
    assert_int_equal(made_plain(cmd_bench, line), 0);
    out_has("was held back by too few environments", true);
    // Lists that have both settings are followed by it, and no others.
    assert_int_equal(made_plain(cmd_bench, "bench rollout --env cartpole --num-envs 128,512 "
                                           "--num-dirs 16,32 --dir-chunk 8,32" QUICK),
                     0);
    out_has("512 x 32, 32 at once, by", true);
    assert_int_equal(made_plain(cmd_bench, "bench rollout --env cartpole --num-envs 128 "
                                           "--num-dirs 16 --dir-chunk 8" QUICK),
                     0);
    out_has("held back", false);
}

static void wrong_returns(void **state) {
    (void)state;
    es.lost = 2e-6;
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4 --num-dirs 2 "
                                         "--episode-length 1000" QUICK),
                     COMMAND_INTERNAL);
    TEXT(0, "check", "FAILED");
    SAID("cartpole: 16000 steps were taken and not 16000");
    es.lost = -2e-6;
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4" QUICK), 70);
    es.lost = 0.5e-6;  // a sum in f32
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4" QUICK), 0);
    es.lost = -0.5e-6;
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4" QUICK), 0);
    es.lost = 0;
    es.by_chunk = 0.25;
    static const char chunks[] = "bench rollout --env cartpole --num-envs 4,5 --num-dirs 4 "
                                 "--dir-chunk 1,2,4" QUICK;
    assert_int_equal(made_run(cmd_bench, chunks), COMMAND_INTERNAL);
    SAID("cartpole: the mean return is 1.5 and with another chunk 1.25");
    SAID("cartpole: the mean return is 2 and with another chunk 1.25");
    for (size_t i = 0; i < 6; i++) {
        TEXT(i, "check", i % 3 ? "FAILED" : "ok");  // other environments may have another
    }
    es.by_chunk = NAN;
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4" QUICK), 70);
    TEXT(0, "check", "FAILED");
}

static void no_learner(void **state) {
    (void)state;
    static const struct {
        enum grt_status status;
        const char *check;
        int some, none;
    } rows[] = {{GRT_NO_MEMORY, "no memory", 0, 71}, {GRT_UNSUPPORTED, "unsuited", 0, 69}};
    for (size_t i = 0; i < 2; i++) {
        es.fails = rows[i].status;
        es.most_envs = 100;
        assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4,200" QUICK),
                         rows[i].some);
        TEXT(0, "check", "ok");
        TEXT(1, "check", rows[i].check);
        NUMBER(1, "num_envs", 200);
        assert_false(made_known(1, "steps_per_s"));
        assert_false(made_known(1, "memory"));
        assert_false(made_known(1, "speedup"));
        es.most_envs = 0;
        assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4" QUICK),
                         rows[i].none);
    }
    es.fails = GRT_LOST;
    assert_int_equal(made_run(cmd_bench, "bench rollout --env cartpole --num-envs 4,5" QUICK), 70);
    assert_int_equal(made_count(), 0);
}

// ---- worlds ----

static void worlds(void **state) {
    (void)state;
    made.submit = 0;
    assert_int_equal(
        made_run(cmd_bench, "bench rollout --env uav --policy random --num-envs 2,5" QUICK), 0);
    assert_int_equal(made_count(), 2);
    for (size_t i = 0; i < 2; i++) {
        double copies = i ? 5 : 2;
        TEXT(i, "test", "uav");
        TEXT(i, "policy", "random");
        NUMBER(i, "num_envs", copies);
        NUMBER(i, "total_batch", 3 * copies);
        NUMBER(i, "steps_per_s", 3e5);  // of three agents
        NUMBER(i, "ms", copies * 1e-2);
        TEXT(i, "timer", "wall");
        // control, observations, masks, actions, rewards, ends, sums; and the worlds' own.
        double words = 4 + copies * 1 + copies * 3 * (4 + 1 + 1 + 1 + 1) + 3 + 10 + 3 * copies;
        NUMBER(i, "memory", 4 * words);
        TEXT(i, "check", "ok");
    }
    // Without --num-envs 64 copies and the profile's.
    assert_int_equal(made_run(cmd_bench, "bench rollout --env uav --policy random --set "
                                         "num_uavs=7,map=12" QUICK),
                     0);
    assert_int_equal(made_count(), 2);
    NUMBER(0, "num_envs", 64);
    NUMBER(0, "total_batch", 7 * 64);
    NUMBER(1, "num_envs", 512);
    steps_lost = 1;
    assert_int_equal(
        made_run(cmd_bench, "bench rollout --env uav --policy random --num-envs 2" QUICK), 70);
    TEXT(0, "check", "FAILED");
    SAID("2 copies: ");
    assert_false(made_known(0, "steps_per_s"));
    steps_lost = 0;
    made.memory = 500;
    assert_int_equal(
        made_run(cmd_bench, "bench rollout --env uav --policy random --num-envs 2,90" QUICK), 0);
    TEXT(0, "check", "ok");
    TEXT(1, "check", "no memory");
    assert_int_equal(
        made_run(cmd_bench, "bench rollout --env uav --policy random --set nosuch=1" QUICK), 78);
    assert_int_equal(made_count(), 0);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *said;
    } rows[] = {
        {"bench rollout --env none", 64, "none"},
        {"bench rollout --policy mlp17", 64, "17 hidden units"},
        {"bench rollout --policy linear,none", 64, "none"},
        {"bench rollout --num-envs 1048577", 64, "1 to 1048576"},
        {"bench rollout --num-dirs 0", 64, "1 to 1048576"},
        {"bench rollout --dir-chunk 0", 64, "1 to 1048576"},
        {"bench rollout --set map=4", 64, "--set map=4: environment 'standing' has no settings"},
        {"bench rollout --env cartpole --set map=4", 64, "environment 'cartpole' has no settings"},
        {"bench rollout --env uav --num-dirs 4", 64, "are of evolution strategies; environment "},
        {"bench rollout --env uav --dir-chunk 4", 64, "are of evolution strategies; environment "},
        {"bench rollout --env uav --policy linear", 64, "--policy linear: "},
        {"bench rollout --env uav --policy random,", 64, "with random actions or with the actor"},
        {"bench rollout --env uav --set =4", 64, "--set =4: settings are NAME=VALUE, with commas"},
        {"bench rollout --env uav --set map", 64, "--set map: settings are NAME=VALUE"},
        {"bench rollout --env uav --set map=", 64, "--set map=: the value is no number"},
        {"bench rollout --env uav --set map=4x", 64, "--set map=4x: the value is no number"},
        {"bench rollout --env uav --set map=4,num_uavs=b", 64, "--set num_uavs=b: the value is no"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code = made_run(cmd_bench, rows[i].line);
        if (code != rows[i].code || !strstr(made_said, rows[i].said)) {
            fail_msg("%s: exit code %d, said: %s", rows[i].line, code, made_said);
        }
    }
}

// Names of 47 letters and 20 settings are the most.
static void settings(void **state) {
    (void)state;
    struct bench_worlds_settings s;
    char text[1024] = "";
    assert_true(bench_worlds_settings(NULL, &s) && s.count == 0);
    assert_true(bench_worlds_settings("a=-1.5,bc=2e3", &s));
    assert_int_equal(s.count, 2);
    assert_string_equal(s.values[0].name, "a");
    assert_true(s.values[0].value == -1.5);
    assert_string_equal(s.values[1].name, "bc");
    assert_true(s.values[1].value == 2000);
    for (int i = 0; i < GRT_ENV_SETTINGS; i++) {
        sprintf(text + strlen(text), "%ss%d=%d", i ? "," : "", i, i);
    }
    assert_true(bench_worlds_settings(text, &s));
    assert_int_equal(s.count, GRT_ENV_SETTINGS);
    assert_true(s.values[19].value == 19);
    assert_string_equal(s.values[19].name, "s19");
    strcat(text, ",t=1");
    assert_false(bench_worlds_settings(text, &s));
    memset(text, 'x', 47);
    strcpy(text + 47, "=1");
    assert_true(bench_worlds_settings(text, &s));
    strcpy(text + 47, "x=1");
    assert_false(bench_worlds_settings(text, &s));
    assert_int_equal(bench_worlds_policies(NULL), 3);
    assert_int_equal(bench_worlds_policies("random"), BENCH_WORLDS_RANDOM);
    assert_int_equal(bench_worlds_policies("actor"), BENCH_WORLDS_ACTOR);
    assert_int_equal(bench_worlds_policies("actor,random"), 3);
}

// A short look at everything: short episodes, the profile's setting alone, and what was given.
static void a_short_look(void **state) {
    (void)state;
    static const char line[] = "bench all --shape 8 --count 1 --size 1000" QUICK;
    assert_int_equal(made_run(cmd_bench, line), 0);
    assert_int_equal(made_count(), 4 + 4 + 2 + 1);
    TEXT(10, "kind", "rollout");
    NUMBER(10, "num_envs", 512);
    NUMBER(10, "ms", 1e3 * 2 * 512 * 32 * 100 / 1e6);
    assert_false(made_known(10, "speedup"));
    assert_int_equal(made_run(cmd_bench, "bench all --shape 8 --size 1000 --env uav --policy random"
                                         " --episode-length 5" QUICK),
                     0);
    // 1, 64 and 1024 dispatches.
    assert_int_equal(made_count(), 4 + 10 + 2 + 1);
    NUMBER(4, "dispatches", 1);
    NUMBER(5, "dispatches", 64);
    NUMBER(6, "dispatches", 1024);
    NUMBER(16, "num_envs", 64);
    made_software();
    made.memory = 16 << 20;
    assert_int_equal(made_run(cmd_bench, "bench all --shape 8 --count 1 --num-envs 4" QUICK), 0);
    NUMBER(0, "size", 4 << 20);
    TEXT(1, "test", "driver copy");
}

// A file to give away, which is said only when it is whole.
static void contributed(void **state) {
    (void)state;
    char path[64], line[200];
    snprintf(path, sizeof path, "/tmp/gpurt-contributed-%d.json", (int)getpid());
    snprintf(line, sizeof line,
             "bench all --shape 8 --count 1 --size 1000" QUICK " --contribute %s", path);
    assert_int_equal(made_run(cmd_bench, line), 0);
    SAID("' has the device, its driver and what was measured");
    json_t *file = json_load_file(path, 0, NULL);
    const json_t *device = json_object_get(file, "device");
    assert_string_equal(json_string_value(json_object_get(device, "name")), "Made-up 9000");
    assert_null(json_object_get(device, "selector"));
    assert_null(json_object_get(device, "pci"));
    assert_null(json_object_get(device, "profiles"));
    assert_int_equal(json_array_size(json_object_get(file, "command")), 3);
    assert_int_equal(json_array_size(json_object_get(file, "rows")), 11);
    json_decref(file);
    made.wrong = 1;
    assert_int_equal(made_run(cmd_bench, line), COMMAND_INTERNAL);
    NOT_SAID("has the device");
    made.wrong = 0;
    strcat(line, " -q");
    assert_int_equal(made_run(cmd_bench, line), 0);
    NOT_SAID("has the device");
    unlink(path);
    static const char *const lines[][2] = {
        {"bench all --contribute a.json -o b.json", "and names the file to write: no -o"},
        {"bench memory launch --contribute a.json", "is of `gpurt bench all`"},
        {"bench all --contribute a.json --monitor", "takes neither '--monitor' nor"},
        {"bench all --contribute a.json --env ./mine.k", "nor an environment of your own"},
        {"bench all --contribute a.json --env x.k", "nor an environment of your own"},
        {"bench all --contribute a.json --env a/b", "nor an environment of your own"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(made_run(cmd_bench, lines[i][0]), COMMAND_USAGE);
        SAID(lines[i][1]);
    }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(two_settings), CASE(middle),        CASE(busy),         CASE(every_list),
        CASE(story),        CASE(wrong_returns), CASE(no_learner),   CASE(worlds),
        CASE(refused),      CASE(settings),      CASE(a_short_look), CASE(contributed),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
