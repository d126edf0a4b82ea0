// SPDX-License-Identifier: Apache-2.0
// Training configs: the list of keys itself, what a file may say, where and how a mistake in one is
// said, values on the command line, and lists of layers.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/config.h"

// ---- the list ----

static void keys(void **state) {
    (void)state;
    struct grt_config config;
    grt_config_init_for(&config, GRT_CONFIG_OF_ALL);
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        const struct grt_config_key_info *info = grt_config_key_info((enum grt_config_key)i);
        assert_int_equal(grt_config_key_find(info->scope, info->name), i);
        assert_true(info->help[0] != '\0');
        assert_false(grt_config_given(&config, (enum grt_config_key)i));
        // The default that --keys prints is the fallback, unless the help says what it depends on:
        // then the fallback is what a run without the key has, and may be given as well.
        bool depends = strstr(info->help, "default: ") != NULL;
        struct grt_config same = config;
        if (!depends && info->fallback[0]) {
            assert_true(grt_config_set(&same, (enum grt_config_key)i, info->fallback));
        }
        memcpy(same.places, config.places, sizeof same.places);
        assert_memory_equal(&same, &config, sizeof same);
        if (!depends && !info->fallback[0] && info->type != GRT_CONFIG_IS_TEXT) {
            print_error("%s: no word of what stands when it is not given\n", info->name);
            fail();
        }
        // Every other name leads to this key and to no other.
        char aliases[1024];
        snprintf(aliases, sizeof aliases, "%s", info->aliases);
        for (char *name = strtok(aliases, " "); name; name = strtok(NULL, " ")) {
            if (grt_config_key_find(info->scope, name) != i) {
                print_error("%s is not found as %s\n", name, info->name);
                fail();
            }
        }
    }
    assert_null(grt_config_key_info(GRT_CONFIG_KEY_COUNT));
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_SUPERVISED, "voodoo"), GRT_CONFIG_KEY_COUNT);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_SUPERVISED, ""), GRT_CONFIG_KEY_COUNT);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_SUPERVISED, "data.batch_size"),
                     GRT_CONFIG_BATCH_SIZE);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_SUPERVISED, "voodoo.batch_size"),
                     GRT_CONFIG_KEY_COUNT);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_SUPERVISED, "benchmark.num_workers"),
                     GRT_CONFIG_NUM_WORKERS_OPTIONS);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_SUPERVISED, "num_workers"),
                     GRT_CONFIG_NUM_WORKERS);
    // A kind that takes keys of others: its own names come first, and it has its own fallbacks.
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_PPO, "gamma"), GRT_CONFIG_DISCOUNT);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_SUPERVISED, "gamma"), GRT_CONFIG_GAMMA);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_PPO, "horizon"), GRT_CONFIG_ROLLOUT_STEPS);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_ES, "horizon"), GRT_CONFIG_EPISODE_LENGTH);
    assert_int_equal(grt_config_key_find(GRT_CONFIG_OF_PPO, "lr"), GRT_CONFIG_LEARNING_RATE);
    struct grt_config ppo;
    grt_config_init_for(&ppo, GRT_CONFIG_OF_PPO);
    assert_true(ppo.learning_rate == 3e-4 && ppo.max_grad_norm == 0.5 && ppo.discount == 0.99);
    assert_string_equal(config.optimizer, "adamw");
    assert_int_equal(config.epochs, 10);
    assert_int_equal(config.batch_size, 0);
    assert_true(config.eps == 1e-8 && config.mem_fraction == 0);
    assert_true(config.betas.count == 2 && config.betas.values[1] == 0.999);
}

// ---- files ----

static struct grt_config accept(const char *text) {
    struct grt_config config;
    grt_config_init(&config);
    if (!grt_config_parse(&config, "f.yaml", text, strlen(text))) {
        fail();
    }
    return config;
}

// The configs of the guides that users come from.
static void guides(void **state) {
    (void)state;
    struct grt_config c = accept("benchmark:\n"
                                 "  # powers of two\n"
                                 "  batch_sizes: [1, 2, 4, 8192]\n"
                                 "  \n"
                                 "  num_workers_options: [0, 2, 16]\n"
                                 "  steps_per_test: 10\n"
                                 "  test_mixed_precision: true\n"
                                 "  test_pin_memory: true\n");
    assert_true(c.batch_sizes.count == 4 && c.batch_sizes.values[3] == 8192);
    assert_true(c.num_workers_options.count == 3 && c.num_workers_options.values[0] == 0);
    assert_true(c.steps_per_test == 10 && c.test_mixed_precision && c.test_pin_memory);

    c = accept("data:\n  batch_size: 256       # or 512\n  num_workers: 8\n  pin_memory: true\n\n"
               "training:\n  use_amp: true\n  learning_rate: 0.00015\n"
               "  gradient_accumulation_steps: 4  # effective batch: 1024\n");
    assert_true(c.batch_size == 256 && c.num_workers == 8 && c.pin_memory);
    assert_string_equal(c.precision, "f16");
    assert_true(c.learning_rate == 0.00015 && c.accumulate == 4);

    // A device for each rank.
    c = accept("device: [0, 1, vulkan:0]\n");
    assert_string_equal(c.device, "0,1,vulkan:0");
    assert_true(grt_config_override(&c, "device=[2, 3]"));
    assert_string_equal(c.device, "2,3");
    assert_true(grt_config_override(&c, "device=Some [GPU] of name"));
    assert_string_equal(c.device, "Some [GPU] of name");

    c = accept("gpu:\n  mixed_precision: true\n  gradient_accumulation: 4\n"
               "  cudnn_benchmark: true\n  empty_cache_freq: 5\n");
    assert_string_equal(c.precision, "f16");
    assert_true(c.accumulate == 4 && c.autotune && c.empty_cache_freq == 5);

    c = accept("batch_size: 64\ngradient_accumulation_steps: 2\nnum_workers: 4\npin_memory: true\n"
               "persistent_workers: true\nuse_amp: false\n");
    assert_true(c.batch_size == 64 && c.accumulate == 2 && c.persistent_workers);
    assert_string_equal(c.precision, "f32");
}

static void forms(void **state) {
    (void)state;
    accept("");
    accept("# nothing\n");
    accept("---\n...\n");
    accept("data:\n  # nothing\ntraining:\n");
    struct grt_config c = accept("{data: {batch_size: 7}, lr: 1e-3, inputs: [a, \"b c\"], "
                                 "betas: [0.5, 0.6], targets: 'y'}");
    assert_true(c.batch_size == 7 && c.learning_rate == 1e-3 && c.inputs.count == 2);
    assert_string_equal(c.inputs.values[1], "b c");
    assert_string_equal(c.targets.values[0], "y");
    assert_true(c.betas.values[0] == 0.5 && c.betas.values[1] == 0.6);
    c = accept("optimizer: sgd\nmodel: large\nscheduler: {type: cosine, eta_min: 1e-5}\n");
    assert_string_equal(c.optimizer, "sgd");
    assert_string_equal(c.model, "large");
    assert_string_equal(c.schedule, "cosine");
    c = accept("optimizer:\n  name: Adam\n  lr: 0.1\nmodel:\n  type: mlp\n  depth: 6\n"
               "benchmark:\n  num_workers: [1, 2]\n");
    assert_string_equal(c.optimizer, "adam");
    assert_true(c.depth == 6 && c.num_workers == 0 && c.num_workers_options.count == 2);
    // One width, or one for each hidden layer.
    c = accept("hidden: 24\n");
    assert_true(c.hidden.count == 1 && c.hidden.values[0] == 24);
    char text[32];
    grt_config_value_text(&c, GRT_CONFIG_HIDDEN, text, sizeof text);
    assert_string_equal(text, "24");
    c = accept("model: {hidden: [24, 7]}\n");
    assert_true(c.hidden.count == 2 && c.hidden.values[0] == 24 && c.hidden.values[1] == 7);
    grt_config_value_text(&c, GRT_CONFIG_HIDDEN, text, sizeof text);
    assert_string_equal(text, "[24, 7]");
    // PyTorch's classes.
    c = accept("criterion: SmoothL1Loss\nscheduler: StepLR\noptimizer: SGD\nnesterov: true\n"
               "activation: GELU\n");
    assert_string_equal(c.loss, "huber");
    assert_string_equal(c.schedule, "step");
    assert_string_equal(c.optimizer, "sgd");
    assert_string_equal(c.activation, "gelu");
    assert_true(c.nesterov);
    assert_string_equal(accept("loss: CrossEntropyLoss\n").loss, "cross_entropy");
    assert_string_equal(accept("loss: BCEWithLogitsLoss\n").loss, "bce");
    assert_string_equal(accept("loss: MSELoss\n").loss, "mse");
    assert_string_equal(accept("schedule: CosineAnnealingLR\n").schedule, "cosine");
    // The words of YAML 1.1 for true and false, and what people write for precisions.
    assert_true(accept("shuffle: Off\n").shuffle == false);
    assert_true(accept("residual: YES\n").residual == true);
    assert_string_equal(accept("mixed_precision: 'no'\n").precision, "f32");
    assert_string_equal(accept("mixed_precision: bf16\n").precision, "bf16");
    assert_string_equal(accept("amp_dtype: float16\n").precision, "f16");
    assert_true(accept("max_steps: 1e6\n").max_steps == 1000000);
    // Times, and early stopping as other tools have it.
    assert_true(accept("max_time: 90\n").max_time == 90);
    assert_true(accept("max_time: 90s\n").max_time == 90);
    assert_true(accept("time_limit: 10m\n").max_time == 600);
    assert_true(accept("max_time: 1.5h\n").max_time == 5400);
    assert_true(accept("max_time: 2d\n").max_time == 172800);
    c = accept("early_stopping:\n  patience: 4\n  min_delta: 1e-3\n  stopping_threshold: 0.1\n");
    assert_true(c.patience == 4 && c.min_delta == 1e-3 && c.target_loss == 0.1);
    c = accept("early_stopping_patience: 4\nearly_stopping_threshold: 0.5\n");
    assert_true(c.patience == 4 && c.min_delta == 0.5);
    c = accept("\n\n  batch: 3\n");
    assert_true(c.places[GRT_CONFIG_BATCH_SIZE].line == 3);
    assert_true(c.places[GRT_CONFIG_BATCH_SIZE].column == 3);
    assert_string_equal(c.places[GRT_CONFIG_BATCH_SIZE].name, "batch");
    assert_true(grt_config_given(&c, GRT_CONFIG_BATCH_SIZE));
    assert_false(grt_config_given(&c, GRT_CONFIG_EPOCHS));
}

// Refused at that line and column with a sentence that has `part`.
static void refuse(const char *text, uint32_t line, uint32_t column, const char *part) {
    struct grt_config config;
    char place[64];
    snprintf(place, sizeof place, "f.yaml:%u:%u: ", line, column);
    grt_config_init(&config);
    TEST_REFUSED(grt_config_parse(&config, "f.yaml", text, strlen(text)), GRT_CONFIG, part);
    if (strncmp(grt_last_error(), place, strlen(place)) != 0) {
        print_error("'%s', wanted '%s...%s...'\n", grt_last_error(), place, part);
        fail();
    }
}

static void mistakes(void **state) {
    (void)state;
    // unknown
    refuse("batch_szie: 4\n", 1, 1, "no key 'batch_szie'; did you mean 'batch_size'?");
    refuse("data:\n  num_worker: 4\n", 2, 3, "did you mean 'num_workers'?");
    refuse("gradient_acumulation_steps: 4\n", 1, 1, "did you mean 'gradient_accumulation_steps'?");
    refuse("epochs: 3\nvoodoo: 4\n", 2, 1, "no key 'voodoo'");
    refuse("traning:\n  epochs: 4\n", 1, 1, "no section 'traning'; did you mean 'training'?");
    refuse("data:\n  name: x\n", 2, 3, "no key 'name'");
    refuse("dataloader:\n  train: basic\n", 2, 3, "'train' is a section");
    refuse("data.batch_size: 3\n", 1, 1, "no key 'data.batch_size'");
    refuse("? [a, b]\n: 3\n", 1, 3, "a key must be one word");
    // twice
    refuse("epochs: 3\nepochs: 3\n", 2, 1, "epochs was given in line 1 already");
    refuse("epochs: 3\ntraining:\n    epochs: 3\n", 3, 5, "line 1 already");
    refuse("use_amp: true\n\nmixed_precision: true\n", 3, 1,
           "mixed_precision means precision, which was given as use_amp in line 1 already");
    refuse("data:\n  shuffle: on\ndata:\n  drop_last: on\n", 3, 1,
           "section data was given in line 1 already");
    // values
    refuse("batch_size: 0\n", 1, 13, "batch_size: 0 is not between 1 and 1048576");
    refuse("batch_size: many\n", 1, 13, "batch_size wants a whole number, not 'many'");
    refuse("batch_size: 1.5\n", 1, 13, "1.5 is not whole");
    refuse("batch_size: -4\n", 1, 13, "-4 is not between");
    refuse("batch_size: 0x10\n", 1, 13, "not '0x10'");
    refuse("batch_size: 1 2\n", 1, 13, "not '1 2'");
    refuse("batch_size:\n", 1, 12, "batch_size has no value");
    refuse("batch_size: [1, 2]\n", 1, 13, "batch_size wants a whole number, not a list");
    refuse("batch_size:\n  a: 1\n", 2, 3, "batch_size wants a value, not a section");
    refuse("losses: {pose: mse}\n", 1, 9, "losses wants a list, such as [A, B], not a section");
    refuse("loss: [mse, cross_entropy(5)]\n", 1, 7,
           "loss wants a word, not a list: losses has one for each of targets");
    refuse("loss: mse,l1\n", 1, 7, "a word, not a list: losses has one for each of targets");
    refuse("lr: nan\n", 1, 5, "not 'nan'");
    refuse("lr: .inf\n", 1, 5, "not '.inf'");
    refuse("lr: 1e999\n", 1, 5, "not '1e999'");
    refuse("validation_split: 1\n", 1, 19, "not between 0 and 0.9");
    refuse("max_time: 5 minutes\n", 1, 11, "max_time wants a time such as 90, 90s");
    refuse("max_time: h\n", 1, 11, "not 'h'");
    refuse("max_time: -3s\n", 1, 11, "not '-3s'");
    refuse("max_time: 99999d\n", 1, 11, "of 0 to 1000000000 seconds");
    refuse("early_stopping: true\n", 1, 1, "'early_stopping' is a section");
    refuse("shuffle: perhaps\n", 1, 10, "shuffle wants true or false, not 'perhaps'");
    refuse("optimizer: lion\n", 1, 12, "optimizer: no 'lion'; there are sgd, adam, adamw");
    refuse("precision: f64\n", 1, 12, "there are f32, f16, bf16");
    refuse("batch_sizes: []\n", 1, 14, "the list is empty");
    refuse("batch_sizes: [1, [2]]\n", 1, 18, "an entry of a list must be one value");
    refuse("batch_sizes: [1, two]\n", 1, 14, "not 'two'");
    refuse("inputs: [a, '']\n", 1, 9, "an empty name");
    refuse("data_path: \"a\\0b\"\n", 1, 12, "a byte 0 that is no text");
    refuse("data_path: \"a\\x01b\"\n", 1, 12, "a byte 1 that is no text");
    // YAML
    refuse("epochs: [1, 2\n", 2, 1, "not YAML");
    refuse("epochs: 3\n  keep: 4\n", 1, 9, "epochs wants a whole number, not '3 keep'");
    refuse("\tepochs: 3\n", 1, 1, "not YAML");
    refuse("epochs: \"3\n", 2, 1, "not YAML");
    refuse("- epochs\n", 1, 1, "keys with values are wanted");
    refuse("epochs\n", 1, 1, "keys with values are wanted");
    refuse("a: &x 3\nepochs: *x\n", 1, 1, "no key 'a'");
    refuse("keep: &x 3\nepochs: *x\n", 2, 9, "references (*x) are not taken");
    refuse("epochs: 3\n---\nkeep: 3\n", 2, 1, "a second document");
    refuse("epochs: \xff\xfe\n", 1, 1, "not YAML");
    refuse("<<: {epochs: 3}\n", 1, 1, "no section '<<'");
}

// The keys of one kind of training are not those of another, whichever names they are given by.
static void kinds(void **state) {
    (void)state;
    struct grt_config c;
    grt_config_init_for(&c, GRT_CONFIG_OF_ES);
    const char *text = "es:\n  sigma: 0.1\n  num_envs: 8\n  learning_rate: 0.5\nseed: 3\n"
                       "early_stopping: {patience: 2}\ngpu: {backend: ref}\n";
    assert_true(grt_config_parse(&c, "es.yaml", text, strlen(text)));
    assert_true(c.noise_std == 0.1 && c.num_envs == 8 && c.step_size == 0.5);
    assert_true(c.seed == 3 && c.patience == 2);
    TEST_REFUSED(grt_config_override(&c, "batch_size=4"), GRT_CONFIG,
                 "batch_size is a key of supervised training, and this is a config of evolution");
    TEST_REFUSED(grt_config_override(&c, "nois_std=4"), GRT_CONFIG, "did you mean 'noise_std'?");
    // What is close to a key of another kind only is close to nothing.
    TEST_REFUSED(grt_config_override(&c, "batch_szie=4"), GRT_CONFIG, "no key 'batch_szie'");
    assert_null(strstr(grt_last_error(), "batch_size'"));
    assert_true(grt_config_override(&c, "target_return=-200"));
    assert_true(c.target_return == -200);
    refuse("epochs: 3\nes:\n  sigma: 0.1\n", 3, 3,
           "sigma is a key of evolution strategies, and this is a config of supervised training");
    refuse("es:\n  num_env: 8\n", 2, 3, "no key 'num_env'");
}

static void limits(void **state) {
    (void)state;
    // A hundred kilobytes of opening brackets, and sections without end: refused in no time.
    size_t size = 100000;
    char *text = test_alloc(size + 1);
    memset(text, '[', size);
    text[size] = '\0';
    refuse(text, 1, 1, "keys with values are wanted");
    memset(text, '{', size);
    refuse(text, 1, 2, "a key must be one word");
    memcpy(text, "batch_sizes: ", 13);
    memset(text + 13, '[', size - 13);
    refuse(text, 1, 15, "an entry of a list must be one value");
    size_t used = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        used += (size_t)snprintf(text + used, size - used, "{data: {gpu: ");
    }
    refuse(text, 1, 15, "section data was given in line 1 already");
    free(text);
    text = test_alloc(GRT_CONFIG_MAX_BYTES + 2);
    memset(text, '#', GRT_CONFIG_MAX_BYTES + 1);
    text[GRT_CONFIG_MAX_BYTES + 1] = '\0';
    refuse(text, 1, 1, "more than 262144 bytes");
    text[GRT_CONFIG_MAX_BYTES] = '\0';
    accept(text);
    free(text);
    char many[1024] = "batch_sizes: [1";
    for (uint32_t i = 0; i < 256; i++) {
        snprintf(many + 15 + 3 * i, sizeof many - 15 - 3 * i, ", 1]\n");
    }
    refuse(many, 1, 783, "at most 256 entries");
    char name[200];
    memset(name, 'k', sizeof name);
    name[70] = ':';
    name[71] = '\0';
    refuse(name, 1, 1, "a key of more than 63 characters");
}

// ---- the command line ----

static void overrides(void **state) {
    (void)state;
    struct grt_config c = accept("batch_size: 64\nuse_amp: true\n");
    assert_true(grt_config_override(&c, "batch_size=128"));
    assert_true(grt_config_override(&c, "data.batch_size=256"));
    assert_true(grt_config_override(&c, "mixed_precision=off"));
    assert_true(grt_config_override(&c, "batch_sizes=1,2, 3"));
    assert_true(grt_config_override(&c, "num_workers_options=[0,4]"));
    assert_true(grt_config_override(&c, "inputs=a,b"));
    assert_true(grt_config_override(&c, "data=some file=1.h5"));
    assert_true(grt_config_set(&c, GRT_CONFIG_DEPTH, "9"));
    assert_true(c.batch_size == 256 && c.batch_sizes.count == 3 && c.depth == 9);
    assert_true(c.num_workers_options.count == 2 && c.num_workers_options.values[1] == 4);
    assert_string_equal(c.precision, "f32");
    assert_string_equal(c.inputs.values[1], "b");
    assert_string_equal(c.data, "some file=1.h5");
    assert_false(c.places[GRT_CONFIG_BATCH_SIZE].file);
    // All, by a share: no limit, each epoch, and for overfit_batches not the 0 of none.
    char text[32], pair[64];
    assert_true(grt_config_override(&c, "limit_train_batches=1.0"));
    assert_true(grt_config_override(&c, "val_check_interval=100%"));
    assert_true(grt_config_override(&c, "overfit_batches=100%"));
    assert_true(c.limit_train_batches == 0 && c.val_check_interval == 0);
    assert_true(c.overfit_batches == 1e12);
    grt_config_value_text(&c, GRT_CONFIG_OVERFIT_BATCHES, text, sizeof text);
    snprintf(pair, sizeof pair, "overfit_batches=%s", text);
    assert_true(grt_config_override(&c, "overfit_batches=1") && c.overfit_batches == 1);
    assert_true(grt_config_override(&c, pair) && c.overfit_batches == 1e12);
    TEST_REFUSED(grt_config_override(&c, "batch_size"), GRT_CONFIG, "not of the form key=value");
    TEST_REFUSED(grt_config_override(&c, "=3"), GRT_CONFIG, "not of the form key=value");
    TEST_REFUSED(grt_config_override(&c, "batch_size="), GRT_CONFIG, "batch_size has no value");
    TEST_REFUSED(grt_config_override(&c, "batch_size=no"), GRT_CONFIG,
                 "batch_size=no: batch_size wants a whole number");
    TEST_REFUSED(grt_config_override(&c, "epoch=no"), GRT_CONFIG, "did you mean 'epochs'?");
    TEST_REFUSED(grt_config_override(&c, "data.epoch=no"), GRT_CONFIG, "no key 'data.epoch'");
    TEST_REFUSED(grt_config_override(&c, NULL), GRT_INVALID, "key=value");
    TEST_REFUSED(grt_config_set(&c, GRT_CONFIG_KEY_COUNT, "1"), GRT_INVALID, "a key");
    assert_int_equal(c.batch_size, 256);
    TEST_REFUSED(grt_config_parse(&c, "again", "", 0), GRT_INVALID, "already");
}

// ---- lists of layers ----

static void layers(void **state) {
    (void)state;
    static struct grt_config c;
    // Characters of several bytes before the list do not move its place.
    const char *text =
        "# größer\ntraining:\n  epochs: 3\nmodel:\n  - linear: 8\n  - residual: [{linear: 8}, "
        "relu]  # \xc3\xa9\n  - linear: out\nseed: 5\n";
    grt_config_init(&c);
    assert_true(grt_config_parse(&c, "a.yaml", text, strlen(text)));
    assert_true(grt_config_given(&c, GRT_CONFIG_NETWORK) &&
                !grt_config_given(&c, GRT_CONFIG_MODEL));
    assert_int_equal(c.network.line, 5);
    assert_int_equal(c.network.column, 3);
    assert_int_equal(c.seed, 5);
    char value[256];
    grt_config_value_text(&c, GRT_CONFIG_NETWORK, value, sizeof value);
    assert_string_equal(value, "[{linear: 8}, {residual: [{linear: 8}, relu]}, {linear: out}]");
    // The later of the two ways counts.
    assert_true(grt_config_override(&c, "model=large"));
    assert_false(grt_config_given(&c, GRT_CONFIG_NETWORK));
    assert_true(grt_config_override(&c, "model=[{linear: 4}, tanh]"));
    assert_true(grt_config_given(&c, GRT_CONFIG_NETWORK) &&
                !grt_config_given(&c, GRT_CONFIG_MODEL));
    // A name with keys in parentheses is a list of it.
    assert_true(grt_config_override(&c, "model=wideresnet(depth=28, width=2)"));
    assert_string_equal(c.network.text, "[{wideresnet: {depth: 28, width: 2}}]");
    assert_true(grt_config_override(&c, "network=a(1, b = [2,3], c=(.5, -1e3)) | d | e()"));
    assert_string_equal(c.network.text, "[{a: {\"0\": 1, b: [2, 3], c: [.5, -1e3]}}, d, {e: {}}]");
    assert_true(grt_config_override(&c, "transform=flip | normalize"));
    assert_string_equal(c.transform.text, "[flip, normalize]");
    static const struct {
        const char *text, *why;
    } calls[] = {
        {"model=a(", "a value is wanted at character 3 of 'a('"},
        {"model=a(b=)", "a value is wanted at character 5"},
        {"model=a(b=(1, 2)", "',' or ')' is wanted at character 11"},
        {"model=a(b=(1]", "')' is wanted at character 7"},
        {"model=a(1) b", "'|' or the end is wanted at character 6"},
        {"model=a(1) | ", "a name is wanted at character 8"},
        {"model=a(1 2)", "',' or ')' is wanted at character 5"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        TEST_REFUSED(grt_config_override(&c, calls[i].text), GRT_CONFIG, calls[i].why);
    }
    TEST_REFUSED(grt_config_override(&c, "network=mlp"), GRT_CONFIG,
                 "network wants a list, such as [{linear: 64}, relu, {linear: out}]");
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"model: [a, {b: [c}]\n", "a.yaml:1:"},
        {"transform: {train: \"a | b(\"}\n", "a.yaml:1:20: a value is wanted"},
        {"epochs: 1\nmodel: a(b=)\n", "a.yaml:2:8: a value is wanted"},
        {"model: [*a]\n", "a.yaml:1:"},
        {"model: [relu]\nnetwork: [tanh]\n", "given as model in line 1 already"},
        {"epochs: [1, 2]\n", "a.yaml:1:9: epochs wants a whole number, not a list"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        grt_config_init(&c);
        TEST_REFUSED(grt_config_parse(&c, "a.yaml", rows[i].text, strlen(rows[i].text)), GRT_CONFIG,
                     rows[i].why);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(keys),  TEST_CASE(guides), TEST_CASE(forms),     TEST_CASE(mistakes),
    TEST_CASE(kinds), TEST_CASE(limits), TEST_CASE(overrides), TEST_CASE(layers),
};
TEST_SUITE(config, false, cases);
