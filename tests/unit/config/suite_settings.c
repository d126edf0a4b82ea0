// SPDX-License-Identifier: Apache-2.0
// Training configs as a whole: writing one that reads back the same, keys without an effect, and
// configs in gpurt's own memory.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/config.h"

// ---- writing ----

// A value for every key that differs from its default where it can.
static const char *other_value(const struct grt_config_key_info *info, char text[64]) {
    switch (info->type) {
    case GRT_CONFIG_IS_WHOLE:
        snprintf(text, 64, "%.0f", info->max < 100 ? info->max : info->min + 7);
        return text;
    case GRT_CONFIG_IS_REAL:
        snprintf(text, 64, "%.17g", info->min + (info->max - info->min) / 3);
        return text;
    case GRT_CONFIG_IS_TIME:
        return "1.7h";
    case GRT_CONFIG_IS_AMOUNT:
        return "12.5%";
    case GRT_CONFIG_IS_FLAG:
        return strcmp(info->fallback, "true") == 0 ? "false" : "true";
    case GRT_CONFIG_IS_WORD:
        snprintf(text, 64, "%s", strrchr(info->words, '|') + 1);
        text[strcspn(text, "=")] = '\0';
        return text;
    case GRT_CONFIG_IS_TEXT:
        return "a \"b\" \\ c: # d";
    case GRT_CONFIG_IS_NAMES:
        return "/g/a, - b,c \"d\"";
    case GRT_CONFIG_IS_WHOLES:
        return "3,1,2";
    case GRT_CONFIG_IS_TREE:
        return "[{linear: 8}, relu, {residual: [{linear: 8}]}, {linear: out}]";
    default:
        return "0.125,0.3333333333333333";
    }
}

static void written(void **state) {
    (void)state;
    struct grt_config a;
    struct grt_config b;
    char path[] = "/tmp/gpurt-config-XXXXXX";
    close(mkstemp(path));
    grt_config_init(&a);
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        char text[64];
        enum grt_config_key key = (enum grt_config_key)i;
        if (key != GRT_CONFIG_MODEL) {  // another way to say the network
            assert_true(grt_config_set(&a, key, other_value(grt_config_key_info(key), text)));
        }
    }
    assert_true(grt_config_write(&a, path, "written by a test\nof two lines"));
    grt_config_init_for(&b, GRT_CONFIG_OF_ALL);
    assert_true(grt_config_read(&b, path));
    // Every field, whatever its type: the fields lie before the places. Where a list of layers or
    // groups stood is known of a file.
    assert_true(b.network.line > 1 && b.network.column > 1);
    assert_true(b.groups.line > b.network.line && b.groups.column > 1);
    assert_true(b.actor.line > 1 && b.critic_network.line > b.actor.line);
    b.transform.line = b.transform.column = 0;
    b.eval_transform.line = b.eval_transform.column = 0;
    b.network.line = b.network.column = b.groups.line = b.groups.column = 0;
    b.actor.line = b.actor.column = b.critic_network.line = b.critic_network.column = 0;
    assert_memory_equal(&a, &b, offsetof(struct grt_config, places));
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        assert_true(i == GRT_CONFIG_MODEL || grt_config_given(&b, (enum grt_config_key)i));
    }
    // What was not given is not written.
    grt_config_init(&a);
    assert_true(grt_config_set(&a, GRT_CONFIG_LEARNING_RATE, "0.00015"));
    assert_true(grt_config_write(&a, path, NULL));
    char text[256] = "";
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, "optimizer:\n  learning_rate: 0.00015\n");
    // Long lists are written whole.
    static char layers[GRT_CONFIG_TREE_SIZE], numbers[GRT_CONFIG_NUMBERS * 8];
    snprintf(layers, sizeof layers, "[relu");
    for (size_t i = 0; i < 1000; i++) {
        snprintf(layers + 5 + 6 * i, sizeof layers - 5 - 6 * i, ", relu");
    }
    snprintf(layers + 6005, sizeof layers - 6005, "]");
    for (size_t i = 0; i < 200; i++) {
        snprintf(numbers + 8 * i, sizeof numbers - 8 * i, "%s%04zu.25", i ? "," : " ", i);
    }
    assert_true(grt_config_set(&a, GRT_CONFIG_NETWORK, layers));
    assert_true(grt_config_set(&a, GRT_CONFIG_CLASS_WEIGHTS, numbers));
    assert_true(grt_config_write(&a, path, NULL));
    grt_config_init(&b);
    assert_true(grt_config_read(&b, path));
    assert_string_equal(b.network.text, layers);
    assert_int_equal(b.class_weights.count, a.class_weights.count);
    assert_memory_equal(b.class_weights.values, a.class_weights.values,
                        a.class_weights.count * sizeof *a.class_weights.values);
    unlink(path);
    TEST_REFUSED(grt_config_write(&a, "/nowhere/at/all.yaml", NULL), GRT_NO_OUTPUT,
                 "/nowhere/at/all.yaml");
    grt_config_init(&b);
    TEST_REFUSED(grt_config_read(&b, "/nowhere/at/all.yaml"), GRT_NO_INPUT, "/nowhere/at/all.yaml");
    TEST_REFUSED(grt_config_read(&b, "/tmp"), GRT_NO_INPUT, "no regular file");
    assert_int_equal(grt_config_value_text(&a, GRT_CONFIG_LEARNING_RATE, text, 4), 7);
    assert_string_equal(text, "0.0");
    // How long it is can be asked without room for it.
    text[0] = '!';
    assert_int_equal(grt_config_value_text(&a, GRT_CONFIG_LEARNING_RATE, text + 1, 0), 7);
    assert_memory_equal(text, "!.0", 4);
}

// ---- keys without an effect ----

static void effects(void **state) {
    (void)state;
    // A key, the setting with which it counts, and one with which it does not.
    static const struct {
        const char *key, *with, *without;
    } rows[] = {
        {"huber_delta=2", "loss=huber", "loss=mse"},
        {"label_smoothing=0.1", "loss=cross_entropy", "loss=bce"},
        {"huber_delta=2", "losses=mse,huber(3)", "losses=mse,l1"},
        {"label_smoothing=0.1", "losses=cross_entropy(5),mse", "losses=bce,mse"},
        {"class_weights=1,2", "loss=cross_entropy", "losses=cross_entropy(2),mse"},
        {"class_weights=1,2", "loss=cross_entropy", "loss=l1"},
        {"pooling=mean", "model=points", "model=mlp"},
        {"head_depth=2", "model=points", "model=mlp"},
        {"momentum=0.9", "optimizer=sgd", "optimizer=adam"},
        {"nesterov=true", "optimizer=sgd", "optimizer=adamw"},
        {"betas=0.9,0.95", "optimizer=adam", "optimizer=sgd"},
        {"eps=1e-6", "optimizer=adamw", "optimizer=sgd"},
        {"decay_of=matrices", "weight_decay=0.1", "weight_decay=0"},
        {"base_batch_size=64", "lr_rule=sqrt", "lr_rule=none"},
        {"min_learning_rate=1e-5", "schedule=cosine", "schedule=step"},
        {"min_learning_rate=1e-5", "schedule=linear", "schedule=constant"},
        {"lr_step=2", "schedule=step", "schedule=cosine"},
        {"gamma=0.5", "schedule=step", "schedule=constant"},
        {"loss_scale=1024", "precision=f16", "precision=bf16"},
        {"growth_interval=100", "precision=f16", "precision=f32"},
        {"min_delta=0.1", "patience=3", "patience=0"},
        {"autotune_seconds=5", "autotune=true", "autotune=false"},
        {"temperature=0.25", "loss=nt_xent", "loss=mse"},
        {"projection=64", "loss=nt_xent", "loss=cross_entropy"},
        {"accumulate_exact=true", "loss=nt_xent", "loss=l1"},
        {"knn_every=3", "loss=nt_xent", "loss=bce"},
        {"trust_coefficient=0.01", "optimizer=lars", "optimizer=sgd"},
        {"momentum=0.9", "optimizer=lars", "optimizer=adamw"},
        {"nesterov=true", "optimizer=lars", "optimizer=adam"},
        {"betas=0.9,0.95", "optimizer=adamw", "optimizer=lars"},
        {"eps=1e-6", "optimizer=adam", "optimizer=lars"},
        {"div_factor=10", "schedule=one_cycle", "schedule=cosine"},
        {"final_div_factor=10", "schedule=one_cycle", "schedule=linear"},
        {"min_learning_rate=1e-5", "schedule=plateau", "schedule=one_cycle"},
        {"plateau_factor=0.5", "schedule=plateau", "schedule=cosine"},
        {"plateau_patience=3", "schedule=plateau", "schedule=step"},
        {"plateau_threshold=0.1", "schedule=plateau", "schedule=linear"},
        {"plateau_cooldown=3", "schedule=plateau", "schedule=constant"},
    };
    static struct grt_config c;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        grt_config_init(&c);
        assert_true(grt_config_override(&c, rows[i].key));
        assert_true(grt_config_override(&c, rows[i].with));
        assert_true(grt_config_effective(&c));
        assert_true(grt_config_override(&c, rows[i].without));
        char wanted[64];
        snprintf(wanted, sizeof wanted, "%.*s has no effect with %.*s ",
                 (int)strcspn(rows[i].key, "="), rows[i].key, (int)strcspn(rows[i].without, "="),
                 rows[i].without);
        TEST_REFUSED(grt_config_effective(&c), GRT_CONFIG, wanted);
    }
    grt_config_init(&c);
    assert_true(grt_config_override(&c, "loss_weights=1,2"));
    TEST_REFUSED(grt_config_effective(&c), GRT_CONFIG, "loss_weights has no effect with losses");
    assert_true(grt_config_override(&c, "losses=bce,mse"));
    assert_true(grt_config_effective(&c));
    grt_config_init(&c);
    assert_true(grt_config_override(&c, "histograms=true"));
    TEST_REFUSED(grt_config_effective(&c), GRT_CONFIG, "histograms has no effect with tensorboard");
    assert_true(grt_config_override(&c, "tensorboard=board"));
    assert_true(grt_config_effective(&c));
    // By the name that was given, with its place, and with what would make it count.
    static const char text[] = "loss: mse\noptimizer: adam\ntraining:\n  smoothing: 0.1\n";
    grt_config_init(&c);
    assert_true(grt_config_parse(&c, "a.yaml", text, strlen(text)));
    TEST_REFUSED(grt_config_effective(&c), GRT_CONFIG,
                 "a.yaml:4:3: smoothing has no effect with loss mse: leave it out, or give loss "
                 "cross_entropy");
    // What switches off may stand anywhere.
    grt_config_init(&c);
    assert_true(grt_config_override(&c, "loss=mse"));
    assert_true(grt_config_override(&c, "label_smoothing=0.0"));
    assert_true(grt_config_override(&c, "momentum=0"));
    assert_true(grt_config_override(&c, "nesterov=false"));
    assert_true(grt_config_effective(&c));
    // AdamW decays by itself.
    grt_config_init(&c);
    assert_true(grt_config_override(&c, "decay_of=matrices"));
    assert_true(grt_config_override(&c, "optimizer=adamw"));
    assert_true(grt_config_effective(&c));
    assert_true(grt_config_override(&c, "optimizer=sgd"));
    TEST_REFUSED(grt_config_effective(&c), GRT_CONFIG,
                 "decay_of has no effect with weight_decay 0");
    TEST_REFUSED(grt_config_effective(NULL), GRT_INVALID, "no config");
}

// In memory of gpurt's: the same defaults, of its kind.
static void made(void **state) {
    (void)state;
    static struct grt_config plain;
    struct grt_config *c = grt_config_create(GRT_CONFIG_OF_CLASSIFY);
    assert_non_null(c);
    grt_config_init_for(&plain, GRT_CONFIG_OF_CLASSIFY);
    assert_memory_equal(c, &plain, sizeof plain);
    grt_config_destroy(&c);
    assert_null(c);
    grt_config_destroy(&c);
    grt_config_destroy(NULL);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(written),
    TEST_CASE(effects),
    TEST_CASE(made),
};
TEST_SUITE(settings, false, cases);
