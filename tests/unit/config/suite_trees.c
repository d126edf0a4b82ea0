// SPDX-License-Identifier: Apache-2.0
// Short texts of YAML as trees, each node with its place, and back to text; and what a config says
// of a key: where it was given, by which name, and what stands where it was not.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config_parts.h"
#include "config/tree.h"

// ---- trees ----

static struct grt_node *tree_of(const char *text, uint32_t line, uint32_t column) {
    const struct grt_tree_source source = {.path = "f", .line = line, .column = column};
    return grt_tree_create(&source, text);
}

static void texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *line;
    } rows[] = {
        {"[a, b]", "[a, b]"},
        {"- a\n- {b: 1, c: [2, 3]}\n", "[a, {b: 1, c: [2, 3]}]"},
        {"a: 1\nb: {}\nc: []\n", "{a: 1, b: {}, c: []}"},
        {"word_1.5+-x", "word_1.5+-x"},
        {"-x", "\"-x\""},  // one that begins with a dash would be an entry
        {"''", "\"\""},
        {"a b", "\"a b\""},
        {"'say \"a\\b\"'", "\"say \\\"a\\\\b\\\"\""},
        {"{'x y': '*.bias'}", "{\"x y\": \"*.bias\"}"},
        {"[[[a]]]", "[[[a]]]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128], little[4] = "???";
        struct grt_node *tree = tree_of(rows[i].text, 1, 1);
        assert_non_null(tree);
        size_t length = strlen(rows[i].line);
        assert_int_equal(grt_tree_text(tree, text, sizeof text), length);
        assert_string_equal(text, rows[i].line);
        // The length is that of the whole text; just enough room is enough.
        assert_int_equal(grt_tree_text(tree, little, 3), length);
        assert_true(strlen(little) == (length < 2 ? length : 2) && little[3] == '\0');
        assert_int_equal(grt_tree_text(tree, NULL, 0), length);
        char *exact = test_alloc(length + 1);
        assert_int_equal(grt_tree_text(tree, exact, length + 1), length);
        assert_string_equal(exact, rows[i].line);
        free(exact);
        // And it reads back as the same.
        struct grt_node *again = tree_of(text, 1, 1);
        char second[128];
        assert_true(again && grt_tree_text(again, second, sizeof second) == length);
        assert_string_equal(second, text);
        grt_tree_destroy(&again);
        grt_tree_destroy(&tree);
        assert_null(tree);
    }
    grt_tree_destroy(NULL);
}

static void expect(const struct grt_node *node, enum grt_node_kind kind, const char *text,
                   uint32_t line, uint32_t column) {
    assert_non_null(node);
    assert_int_equal(node->kind, kind);
    assert_true(text ? node->text && strcmp(node->text, text) == 0 : !node->text);
    if (node->line != line || node->column != column) {
        fail_msg("%s: %u:%u, wanted %u:%u", text ? text : "-", node->line, node->column, line,
                 column);
    }
}

// Places are those of the file that the text is from.
static void places(void **state) {
    (void)state;
    struct grt_node *t = tree_of("[a, {b: c},\n d]", 7, 5);
    expect(t, GRT_NODE_LIST, NULL, 7, 5);
    const struct grt_node *a = t->first, *map = a->next, *d = map->next;
    expect(a, GRT_NODE_TEXT, "a", 7, 6);
    expect(map, GRT_NODE_MAP, NULL, 7, 9);
    expect(map->first, GRT_NODE_MAP, "b", 7, 10);
    expect(map->first->first, GRT_NODE_TEXT, "c", 7, 13);
    expect(d, GRT_NODE_TEXT, "d", 8, 2);
    assert_null(d->next);
    grt_tree_destroy(&t);
    t = tree_of("a", 0, 0);
    expect(t, GRT_NODE_TEXT, "a", 1, 1);
    grt_tree_destroy(&t);
    t = tree_of("a", 3, 0);
    expect(t, GRT_NODE_TEXT, "a", 3, 1);
    grt_tree_destroy(&t);
}

static void mistakes(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "there is nothing here"},
        {"# nothing", "there is nothing here"},
        {"[a]\n---\n[b]", "f:4:1: something stands behind the end"},
        {"[*a]", "f:3:6: a list, a map or a value is wanted; references are not taken"},
        {"{[a]: b}", "f:3:6: a key must be one word"},
        {"{a: *b}", "references are not taken"},
        {"[\"a\\0b\"]", "f:3:6: a byte 0 that is no text"},
        {"{\"a\\0b\": 1}", "f:3:6: a byte 0 that is no text"},
        {"[a", "f:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TEST_REFUSED(tree_of(rows[i].text, 3, 5), GRT_CONFIG, rows[i].why);
    }
    // Of no file: by characters, and what is not closed by the end.
    const struct grt_tree_source none = {.name = "model"};
    static const struct {
        const char *text, *why;
    } lines[] = {{"[a, *b]", "model at character 5: "},
                 {"[a,\n *b]", "model at line 2, character 2: "},
                 {"[a, b", "model at its end: "},
                 {"[a,\nb", "model at its end: "},
                 {"", "model at its end: there is nothing here"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        TEST_REFUSED(grt_tree_create(&none, lines[i].text), GRT_CONFIG, lines[i].why);
    }
    // Just as deep as is allowed, and one deeper.
    char deep[2 * GRT_CONFIG_MAX_DEPTH + 4];
    for (size_t more = 0; more < 2; more++) {
        size_t depth = GRT_CONFIG_MAX_DEPTH + more;
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        deep[2 * depth] = '\0';
        if (more) {
            TEST_REFUSED(tree_of(deep, 1, 1), GRT_CONFIG, "f:1:33: nested too deep");
        } else {
            struct grt_node *tree = tree_of(deep, 1, 1);
            assert_non_null(tree);
            grt_tree_destroy(&tree);
        }
    }
    // One behind the other is not deep.
    char wide[3 * 40 + 4] = "[";
    for (int i = 0; i < 40; i++) {
        snprintf(wide + 1 + 3 * i, sizeof wide - 1 - 3 * (size_t)i, "[],");
    }
    wide[1 + 3 * 40 - 1] = ']';
    struct grt_node *tree = tree_of(wide, 1, 1);
    assert_non_null(tree);
    grt_tree_destroy(&tree);
    // Trees of a file are as deep, its own map counted.
    for (int more = 0; more < 2; more++) {
        static struct grt_config c;
        char file[128] = "network: ";
        size_t depth = GRT_CONFIG_MAX_DEPTH - 1 + (size_t)more;
        memset(file + 9, '[', depth);
        memset(file + 9 + depth, ']', depth);
        grt_config_init(&c);
        if (more) {
            TEST_REFUSED(grt_config_parse(&c, "f.yaml", file, strlen(file)), GRT_CONFIG,
                         "nested deeper than 32");
        } else {
            assert_true(grt_config_parse(&c, "f.yaml", file, strlen(file)));
        }
    }
}

static void flags(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int flag;
    } rows[] = {{"true", 1}, {"Yes", 1}, {"ON", 1}, {"False", 0},  {"no", 0}, {"off", 0},
                {"y", -1},   {"", -1},   {"1", -1}, {"truee", -1}, {"o", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(grt_flag_of(rows[i].text), rows[i].flag);
    }
}

// ---- what is known of a key ----

static void given(void **state) {
    (void)state;
    static struct grt_config c, other;
    char where[GRT_CONFIG_WHERE];
    static const char text[] = "training:\n  lr: 0.5\n";
    grt_config_init(&c);
    assert_true(grt_config_parse(&c, "a.yaml", text, strlen(text)));
    assert_true(grt_config_override(&c, "seed=9"));
    static const struct {
        enum grt_config_key key;
        const char *where, *source;
        bool given;
    } rows[] = {
        {GRT_CONFIG_LEARNING_RATE, "a.yaml:2:3: ", "a.yaml", true},
        {GRT_CONFIG_SEED, "", "seed", true},
        {GRT_CONFIG_EPOCHS, "", "epochs", false},
        {GRT_CONFIG_KEY_COUNT, "", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        grt_config_where(&c, rows[i].key, where);
        assert_string_equal(where, rows[i].where);
        assert_string_equal(grt_config_source(&c, rows[i].key), rows[i].source);
        assert_int_equal(grt_config_given(&c, rows[i].key), rows[i].given);
        const char *file = grt_config_file(&c, rows[i].key);
        assert_string_equal(file ? file : "", rows[i].where[0] ? rows[i].source : "");
    }
    const struct grt_config_place *lr = &c.places[GRT_CONFIG_LEARNING_RATE];
    assert_true(lr->value_line == 2 && lr->value_column == 7);
    assert_int_equal(c.places[GRT_CONFIG_SEED].value_line, 0);
    grt_config_where(NULL, GRT_CONFIG_SEED, where);
    assert_string_equal(where, "");
    assert_string_equal(grt_config_source(NULL, GRT_CONFIG_SEED), "");
    assert_null(grt_config_file(NULL, GRT_CONFIG_SEED));
    assert_false(grt_config_given(NULL, GRT_CONFIG_SEED));
    assert_null(grt_config_value(NULL, GRT_CONFIG_SEED));
    assert_null(grt_config_value(&c, GRT_CONFIG_KEY_COUNT));
    assert_ptr_equal(grt_config_value(&c, GRT_CONFIG_SEED), &c.seed);
    assert_int_equal(grt_config_value_text(&c, GRT_CONFIG_KEY_COUNT, where, 4), 0);
    // A value goes with its place, and nothing else does.
    grt_config_init(&other);
    assert_true(grt_config_override(&c, "learning_rate=0.25"));
    grt_config_copy(&other, &c, GRT_CONFIG_SEED);
    assert_true(other.seed == 9 && grt_config_given(&other, GRT_CONFIG_SEED));
    assert_string_equal(other.places[GRT_CONFIG_SEED].name, "seed");
    assert_false(grt_config_given(&other, GRT_CONFIG_LEARNING_RATE));
    // A list of layers and a kind of model are one thing: the later stands, of the other nothing.
    grt_config_init(&other);
    assert_true(grt_config_override(&other, "model=large") &&
                grt_config_override(&other, "model=[relu]"));
    assert_string_equal(other.model, "mlp");
    assert_false(grt_config_given(&other, GRT_CONFIG_MODEL));
    assert_true(grt_config_override(&other, "model=small"));
    assert_string_equal(other.network.text, "");
    assert_string_equal(other.model, "small");
    // What the command line says later has no place in the file.
    grt_config_where(&c, GRT_CONFIG_LEARNING_RATE, where);
    assert_string_equal(where, "");
    assert_true(c.learning_rate == 0.25);
}

// Keys of others, each kind by its name.
static void kinds(void **state) {
    (void)state;
    static struct grt_config c;
    static const struct {
        enum grt_config_scope scope;
        const char *pair, *why;
    } rows[] = {
        {GRT_CONFIG_OF_ES, "model=mlp",
         "model is a key of supervised training, and this is a config of evolution strategies: its "
         "network is `policy`"},
        {GRT_CONFIG_OF_PPO, "model=mlp",
         "model is a key of supervised training, and this is a config of PPO: its networks are "
         "`actor` and `critic_network`"},
        {GRT_CONFIG_OF_PPO, "momentum_of_nothing=1", "no key 'momentum_of_nothing'"},
        {GRT_CONFIG_OF_SUPERVISED, "clip=0.2",
         "clip is a key of PPO, and this is a config of supervised training"},
        {GRT_CONFIG_OF_CLASSIFY, "clip=0.2",
         "clip is a key of PPO, and this is a config of classification"},
        {GRT_CONFIG_OF_CLASSIFY, "noise_std=0.2", "noise_std is a key of evolution strategies"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        grt_config_init_for(&c, rows[i].scope);
        TEST_REFUSED(grt_config_override(&c, rows[i].pair), GRT_CONFIG, rows[i].why);
    }
    // A name of 127 characters may be one, of 128 is none.
    char pair[160];
    for (size_t more = 0; more < 2; more++) {
        memset(pair, 'k', sizeof pair);
        snprintf(pair + 127 + more, sizeof pair - 127 - more, "=1");
        grt_config_init(&c);
        TEST_REFUSED(grt_config_override(&c, pair), GRT_CONFIG,
                     more ? "is not of the form key=value" : "no key 'kkk");
    }
}

// Images have defaults of their own, which go together: what is given besides decides.
static void settled(void **state) {
    (void)state;
    static struct grt_config c, plain;
    static const struct {
        const char *pairs[2];
        bool sgd, normal, ratio;  // as images have it; else as supervised training
    } rows[] = {
        {{"seed=1"}, true, true, true},
        {{"optimizer=adam"}, false, true, true},
        {{"optimizer=adamw"}, false, true, true},
        {{"optimizer=lars"}, true, true, true},
        {{"transform=[normalize]"}, true, false, true},
        {{"warmup_steps=3"}, true, true, false},
        {{"schedule=one_cycle"}, true, true, false},
        {{"schedule=linear"}, true, true, true},
    };
    grt_config_init(&plain);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct grt_config own;
        grt_config_init_for(&own, GRT_CONFIG_OF_CLASSIFY);
        grt_config_init_for(&c, GRT_CONFIG_OF_CLASSIFY);
        assert_true(grt_config_override(&c, rows[i].pairs[0]));
        grt_config_settle(&c);
        const struct grt_config *sgd = rows[i].sgd ? &own : &plain;
        assert_true(c.learning_rate == sgd->learning_rate && c.momentum == sgd->momentum);
        assert_true(c.nesterov == sgd->nesterov && c.weight_decay == sgd->weight_decay);
        assert_int_equal(c.normalize, rows[i].normal ? own.normalize : plain.normalize);
        assert_true(c.warmup_ratio == (rows[i].ratio ? own.warmup_ratio : plain.warmup_ratio));
        // What is given stays.
        assert_true(grt_config_override(&c, "learning_rate=0.75") &&
                    grt_config_override(&c, "momentum=0.5") &&
                    grt_config_override(&c, "warmup_ratio=0.25") &&
                    grt_config_override(&c, "normalize=true"));
        grt_config_settle(&c);
        assert_true(c.learning_rate == 0.75 && c.momentum == 0.5 && c.warmup_ratio == 0.25);
        assert_true(c.normalize);
    }
    assert_true(plain.momentum == 0 && plain.warmup_ratio == 0);
    // Of other kinds nothing is changed.
    grt_config_init(&c);
    assert_true(grt_config_override(&c, "optimizer=adam"));
    plain = c;
    grt_config_settle(&c);
    assert_memory_equal(&c, &plain, sizeof c);
    grt_config_settle(NULL);
}

// ---- lists ----

static void lists(void **state) {
    (void)state;
    static struct grt_config c;
    char *text = test_alloc(GRT_CONFIG_NAMES * GRT_CONFIG_NAME + 64);
    // As many numbers as there may be, and one more; and names.
    static const struct {
        const char *key, *entry, *most;
        uint32_t count;
    } rows[] = {{"batch_sizes", "1", "batch_sizes takes at most 256 entries", 256},
                {"class_weights", "2", "class_weights takes at most 256 entries", 256},
                {"inputs", "n", "inputs takes at most 16 entries", 16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint32_t more = 0; more < 2; more++) {
            size_t used = (size_t)sprintf(text, "%s=", rows[i].key);
            for (uint32_t k = 0; k < rows[i].count + more; k++) {
                used += (size_t)sprintf(text + used, "%s%s", k ? "," : "", rows[i].entry);
            }
            grt_config_init(&c);
            if (more) {
                TEST_REFUSED(grt_config_override(&c, text), GRT_CONFIG, rows[i].most);
            } else {
                assert_true(grt_config_override(&c, text));
            }
        }
    }
    assert_int_equal(c.inputs.count, 0);
    // A name as long as there is room for, and one longer.
    for (size_t more = 0; more < 2; more++) {
        size_t used = (size_t)sprintf(text, "inputs=a,");
        memset(text + used, 'b', GRT_CONFIG_NAME);
        text[used + GRT_CONFIG_NAME - 1 + more] = '\0';
        grt_config_init(&c);
        if (more) {
            TEST_REFUSED(grt_config_override(&c, text), GRT_CONFIG,
                         "inputs has more than 127 characters");
        } else {
            assert_true(grt_config_override(&c, text));
            assert_int_equal(strlen(c.inputs.values[1]), 127);
        }
    }
    // And a list of layers.
    char *layers = test_alloc(GRT_CONFIG_TREE_SIZE + 16);
    for (size_t more = 0; more < 2; more++) {
        memset(layers, ' ', GRT_CONFIG_TREE_SIZE + 8);
        layers[0] = '[';
        layers[GRT_CONFIG_TREE_SIZE - 2 + more] = ']';
        layers[GRT_CONFIG_TREE_SIZE - 1 + more] = '\0';
        grt_config_init(&c);
        if (more) {
            TEST_REFUSED(grt_config_set(&c, GRT_CONFIG_NETWORK, layers), GRT_CONFIG,
                         "network has more than 8191 characters");
        } else {
            assert_true(grt_config_set(&c, GRT_CONFIG_NETWORK, layers));
        }
    }
    free(layers);
    free(text);
}

// Names that end up in calls, in as much room as there is.
static void calls(void **state) {
    (void)state;
    static const struct {
        const char *text, *list;
    } rows[] = {
        {"a()", "[{a: {}}]"},
        {"a", "[a]"},
        {" a | b ", "[a, b]"},
        {"a(1,2)", "[{a: {\"0\": 1, \"1\": 2}}]"},
        {"a( x = 1 , 2 )", "[{a: {x: 1, \"1\": 2}}]"},
        {"a(b=[1])|c", "[{a: {b: [1]}}, c]"},
        {"a(b=(-1e-3, +2))", "[{a: {b: [-1e-3, +2]}}]"},
    };
    char list[64], why[CONFIG_WHY];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = strlen(rows[i].list);
        assert_true(config_calls(rows[i].text, list, sizeof list, why));
        assert_string_equal(list, rows[i].list);
        assert_true(config_calls(rows[i].text, list, length + 1, why));
        assert_string_equal(list, rows[i].list);
        assert_false(config_calls(rows[i].text, list, length, why));
        assert_non_null(strstr(why, "' is too long"));
    }
}

// ---- writing ----

static void heads(void **state) {
    (void)state;
    static struct grt_config c;
    char path[] = "/tmp/gpurt-config-XXXXXX", text[256] = "";
    int made = mkstemp(path);
    assert_true(made >= 0 && close(made) == 0);
    grt_config_init(&c);
    assert_true(grt_config_override(&c, "epochs=7") && grt_config_override(&c, "lr=0.1") &&
                grt_config_override(&c, "seed=3"));
    assert_true(grt_config_write(&c, path, "one\n\nthree\n"));
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, "# one\n# \n# three\ntraining:\n  seed: 3\n  epochs: 7\noptimizer:\n"
                              "  learning_rate: 0.1\n");
    TEST_REFUSED(grt_config_write(NULL, path, NULL), GRT_INVALID, "a config and a path are wanted");
    TEST_REFUSED(grt_config_write(&c, NULL, NULL), GRT_INVALID, "a config and a path are wanted");
    TEST_REFUSED(grt_config_read(&c, NULL), GRT_INVALID, "a config and a path are wanted");
    unlink(path);
}

// A list begins with a bracket, or with a dash that is a word by itself: a number below 0 is none.
static void dashes(void **state) {
    (void)state;
    static const char *const lists[] = {"[relu]", " [relu]", "- relu", "-\n  relu"};
    static const char *const none[] = {"-00..9", "-1", "--", "-relu", "relu", "{a: 1}"};
    struct grt_config c;
    char text[64];
    grt_config_init(&c);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_true(grt_config_set(&c, GRT_CONFIG_NETWORK, lists[i]));
        grt_config_value_text(&c, GRT_CONFIG_NETWORK, text, sizeof text);
        assert_string_equal(text, "[relu]");
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        TEST_REFUSED(grt_config_set(&c, GRT_CONFIG_NETWORK, none[i]), GRT_CONFIG, "wants a list");
    }
    grt_config_value_text(&c, GRT_CONFIG_NETWORK, text, sizeof text);
    assert_string_equal(text, "[relu]");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(dashes), TEST_CASE(texts), TEST_CASE(places), TEST_CASE(mistakes),
    TEST_CASE(flags),  TEST_CASE(given), TEST_CASE(kinds),  TEST_CASE(settled),
    TEST_CASE(lists),  TEST_CASE(calls), TEST_CASE(heads),
};
TEST_SUITE(trees, false, cases);
