// SPDX-License-Identifier: Apache-2.0
// `gpurt init KIND`: looks at a data file, or an environment, and at the device, and writes a
// config with which `gpurt train KIND --config FILE` runs as it is.
#include "init.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/output/files.h"
#include "cli/output/output.h"
#include "cli/talk.h"
#include "gpurt/direct.h"
#include "gpurt/env.h"
#include "gpurt/es.h"
#include "gpurt/task.h"
#include "train_config.h"

// X(name, scope, wants data, environment that is meant, help)
#define INIT_KINDS(X)                                                                              \
    X(supervised, SUPERVISED, true, NULL, "a network on samples with targets: --data FILE")        \
    X(classify, CLASSIFY, true, NULL, "classes of images: --data FILE")                            \
    X(simclr, SUPERVISED, true, NULL, "samples without targets: --data FILE")                      \
    X(es, ES, false, "cartpole", "a policy by evolution strategies: --env NAME")                   \
    X(ppo, PPO, false, "cartpole", "a policy by proximal policy optimization: --env NAME")         \
    X(uav, PPO, false, "uav", "UAVs that fly to their targets")

static const struct kind {
    const char *name;
    enum grt_config_scope scope;
    bool data;
    const char *env;
} kinds[] = {
#define X(name, scope, data, env, help) {#name, GRT_CONFIG_OF_##scope, data, env},
    INIT_KINDS(X)
#undef X
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

const struct command_word cmd_init_words[] = {
#define X(name, scope, data, env, help) {#name, help, NULL},
    INIT_KINDS(X)
#undef X
        {NULL, NULL, NULL},
};

struct init {
    struct options common;  // first: see options.h
    const char *data, *env;
    const char *inputs, *targets, *fill;
    uint32_t force;
    const struct kind *kind;
    const char *path;  // that is written
    struct grt_dev *dev;
    struct grt_config *config;
    char about[1024];  // what was seen, for the head of the file
};

static const struct option_row init_options[] = {
    {.name = "data",
     .value = "FILE",
     .help = "the samples, which are looked at",
     .read = options_read_text,
     .at = offsetof(struct init, data)},
    {.name = "inputs",
     .value = "NAMES",
     .help = "its inputs a,b,c: data sets, of tables columns (default: by looking)",
     .read = options_read_text,
     .at = offsetof(struct init, inputs)},
    {.name = "targets",
     .value = "NAMES",
     .help = "its targets",
     .read = options_read_text,
     .at = offsetof(struct init, targets)},
    {.name = "fill",
     .value = "VALUE",
     .help = "of tables: a number or mean for missing values of inputs",
     .read = options_read_text,
     .at = offsetof(struct init, fill)},
    {.name = "env",
     .value = "NAME|FILE.k",
     .help = "es, ppo: the environment (default: cartpole)",
     .read = options_read_text,
     .at = offsetof(struct init, env)},
    {.name = "force", .help = "replace a file that is there", .at = offsetof(struct init, force)},
    {.name = "output",
     .letter = "o",
     .value = "FILE",
     .help = "where the config is written (default: KIND.yaml)",
     .read = options_read_text,
     .at = offsetof(struct options, output)},
};

static bool set(struct init *init, enum grt_config_key key, const char *text) {
    return grt_config_set(init->config, key, text);
}

static bool set_whole(struct init *init, enum grt_config_key key, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return set(init, key, text);
}

// ---- data ----

static bool is_whole(const struct grt_array_info *array) {
    return array->dtype[0] == 'i' || array->dtype[0] == 'u' || array->dtype[0] == 'b';
}

// One number a row.
static bool is_single(const struct grt_array_info *array) {
    return array->rank == 1 || (array->rank == 2 && array->shape[1] == 1);
}

// A name of targets that people give, in any letters.
static bool is_target_name(const char *name) {
    static const char *const names[] = {"y",       "label", "labels",  "target",
                                        "targets", "class", "classes", "output"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t k = 0;
        while (name[k] && tolower((unsigned char)name[k]) == names[i][k]) {
            k++;
        }
        if (!name[k] && !names[i][k]) {
            return true;
        }
    }
    return false;
}

// Arrays of the file that are samples: readable, at its top, and as many rows as the first.
static const struct grt_array_info *sample_array(const struct grt_file_info *file, uint32_t i) {
    const struct grt_array_info *array = &file->arrays[i];
    const char *name = array->name + (array->name[0] == '/');
    return array->problem[0] || strchr(name, '/') ? NULL : array;
}

static const char *name_of(const struct grt_array_info *array) {
    return array->name + (array->name[0] == '/');
}

// The target: one that is called so, else the last that has a single number a row; NULL: none.
static const struct grt_array_info *find_target(const struct grt_file_info *file) {
    const struct grt_array_info *single = NULL;
    for (uint32_t i = 0; i < file->count; i++) {
        const struct grt_array_info *array = sample_array(file, i);
        if (array && is_target_name(name_of(array))) {
            return array;
        }
        single = array && is_single(array) ? array : single;
    }
    return single;
}

#define LIST_SIZE ((size_t)GRT_CONFIG_NAMES * GRT_CONFIG_NAME)

// A name more in a list as YAML has it, in quotes: `["a", "b, c"]`.
static bool append(char list[LIST_SIZE], const char *name) {
    size_t used = strlen(list), length = strlen(name);
    if (used + 2 * length + sizeof "[\"\", ]" > LIST_SIZE) {
        return false;
    }
    char *to = list + (used ? used - 1 : 0);  // in place of the bracket
    to = stpcpy(to, used ? ", \"" : "[\"");
    for (; *name; name++) {
        if (*name == '"' || *name == '\\') {
            *to++ = '\\';
        }
        *to++ = *name;
    }
    memcpy(to, "\"]", sizeof "\"]");
    return true;
}

static bool is_in(const struct grt_config_names *names, const char *name) {
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->values[i], name) == 0) {
            return true;
        }
    }
    return false;
}

// Inputs and targets by name, where the command line names none, and the loss that the target
// wants. `first` becomes the first input. Of a table x and y are what was named.
static int choose_arrays(struct init *init, const struct grt_file_info *file, bool table,
                         const struct grt_array_info **first) {
    const struct grt_config_names *inputs_named = &init->config->inputs;
    const struct grt_array_info *target = NULL, *x = NULL;
    bool given = init->inputs && !table, aimed = init->targets && !table;
    for (uint32_t i = 0; aimed && !target && i < file->count; i++) {
        const struct grt_array_info *array = sample_array(file, i);
        target = array && is_in(&init->config->targets, name_of(array)) ? array : NULL;
    }
    target = aimed ? target : find_target(file);
    // A .npy is one array without a name, and its targets are another one.
    const char *ending = strrchr(init->data, '.');
    bool nameless = ending && strcmp(ending, ".npy") == 0;
    bool alone = strcmp(init->kind->name, "simclr") == 0;
    char inputs[LIST_SIZE] = "", aims[LIST_SIZE] = "";
    uint32_t count = 0;
    for (uint32_t i = 0; i < file->count; i++) {
        const struct grt_array_info *array = sample_array(file, i);
        x = array && strcmp(name_of(array), "x") == 0 ? array : x;
    }
    for (uint32_t i = 0; i < file->count; i++) {
        const struct grt_array_info *array = sample_array(file, i);
        bool input = array && array != target &&
                     (given ? is_in(inputs_named, name_of(array)) : !x || array == x);
        if (input && *first && array->shape[0] != (*first)->shape[0]) {
            talk_line("%s has %llu rows and %s %llu: it is left out", name_of(array),
                      (unsigned long long)array->shape[0], name_of(*first),
                      (unsigned long long)(*first)->shape[0]);
        } else if (input && count < GRT_DATA_MAX_ARRAYS) {
            *first = *first ? *first : array;
            count++;
            if (!append(inputs, name_of(array))) {
                talk_error("%s: the names of its data sets are too long", init->data);
                return COMMAND_DATA;
            }
        }
    }
    bool missing = *first ? aimed : given;  // what is wanted was named
    if (missing && (!*first || (!alone && !target))) {
        const char *wanted = *first ? init->targets : init->inputs;
        bool comma = false;
        for (uint32_t i = 0; i < file->count; i++) {
            const struct grt_array_info *array = sample_array(file, i);
            comma = comma || (array && strchr(wanted, ',') && strcmp(name_of(array), wanted) == 0);
        }
        if (comma) {
            talk_error("'%s' is read as several names: one with a comma stands in quotes and "
                       "brackets, --%s '[\"%s\"]'",
                       wanted, *first ? "targets" : "inputs", wanted);
            return COMMAND_DATA;
        }
        talk_error("%s has no data set '%s'; `gpurt data info %s` lists what it has", init->data,
                   wanted, init->data);
        return COMMAND_DATA;
    }
    if (!*first || (!alone && !target)) {
        talk_error("%s has no data sets that could be %s; `gpurt data info %s` lists what it has",
                   init->data, *first ? "targets" : "inputs", init->data);
        return COMMAND_DATA;
    }
    bool classes = target && is_whole(target) && is_single(target);
    if (target && strcmp(init->kind->name, "classify") == 0 && !classes) {
        talk_error("%s: %s is %s, and classes are whole numbers; `gpurt init supervised` has other "
                   "targets",
                   init->data, name_of(target), target->dtype);
        return COMMAND_DATA;
    }
    bool good = set(init, GRT_CONFIG_DATA, init->data) &&
                (given || nameless || set(init, GRT_CONFIG_INPUTS, inputs));
    bool looks = classes && strcmp(init->kind->name, "supervised") == 0;  // how many there are
    if (!alone) {
        good = good &&
               (aimed || nameless ||
                (append(aims, name_of(target)) && set(init, GRT_CONFIG_TARGETS, aims))) &&
               set(init, GRT_CONFIG_LOSS,
                   looks     ? "auto"
                   : classes ? "cross_entropy"
                             : "mse");
    }
    return good ? COMMAND_OK : command_exit_of(grt_last_status());
}

// Of a table the columns by their names, of which `lines` has one each.
static bool set_columns(struct init *init, enum grt_config_key key, const char *lines) {
    char list[LIST_SIZE] = "";
    for (const char *at = lines; *at;) {
        char name[GRT_CONFIG_TEXT_SIZE];
        size_t length = strcspn(at, "\n");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (length >= sizeof name || !append(list, name)) {
            talk_error("%s: the names of its columns are too long: write `%s` by hand", init->data,
                       grt_config_key_info(key)->name);
            return false;
        }
        at += length + (at[length] == '\n');
    }
    return set(init, key, list);
}

// Whether inputs are far from mean 0 and deviation 1.
static bool are_raw(const struct grt_dataset_info *info) {
    for (uint32_t i = 0; info->mean && i < info->features; i++) {
        double mean = info->mean[i], std = info->std[i];
        if (mean > 0.5 || mean < -0.5 || (std > 0 && (std < 0.5 || std > 2))) {
            return true;
        }
    }
    return false;
}

// What training itself would choose for these data on this device, by the same calls.
static bool choose_by_device(struct init *init, const struct grt_array_info *first) {
    struct grt_task *task = calloc(1, sizeof *task);
    struct grt_cache_choice choice;
    bool plain = strcmp(init->kind->name, "supervised") == 0;
    if (!task) {
        talk_error("out of memory");
        return false;
    }
    bool good = !plain || set(init, GRT_CONFIG_NORMALIZE, "true");
    good = good && grt_task_open(task, init->config, grt_dev_profile(init->dev), NULL);
    if (good) {
        const struct grt_dataset_info *info = &task->info;
        char classes[48] = "";
        if (info->classes) {
            snprintf(classes, sizeof classes, " in %u classes", info->classes);
        }
        snprintf(init->about, sizeof init->about, "%s: %llu samples of %u numbers%s%s.", init->data,
                 (unsigned long long)info->rows, info->x_width,
                 first->rank == 4   ? ", images"
                 : first->rank == 3 ? ", point sets"
                                    : "",
                 classes);
        good = set_whole(init, GRT_CONFIG_BATCH_SIZE, task->config.batch_size) &&
               set_whole(init, GRT_CONFIG_ACCUMULATE, task->config.accumulate) &&
               set_whole(init, GRT_CONFIG_NUM_WORKERS, task->config.num_workers) &&
               (!plain || (set(init, GRT_CONFIG_LOSS, task->config.loss) &&
                           set(init, GRT_CONFIG_NORMALIZE, are_raw(info) ? "true" : "false"))) &&
               grt_task_choose_cache(init->dev, task, &task->learner, GRT_CACHE_DEVICE, &choice) &&
               set(init, GRT_CONFIG_CACHE, grt_cache_text(choice.cache));
    }
    grt_task_close(task);
    free(task);
    return good;
}

static int look_at_data(struct init *init) {
    const struct grt_array_info *first = NULL;
    struct grt_direct direct;
    const char *inputs[GRT_CONFIG_NAMES], *targets[GRT_CONFIG_NAMES];
    const struct grt_config *c = init->config;
    bool named = (!init->inputs || set(init, GRT_CONFIG_INPUTS, init->inputs)) &&
                 (!init->targets || set(init, GRT_CONFIG_TARGETS, init->targets)) &&
                 (!init->fill || set(init, GRT_CONFIG_FILL, init->fill));
    for (uint32_t i = 0; i < GRT_CONFIG_NAMES; i++) {
        inputs[i] = c->inputs.values[i];
        targets[i] = c->targets.values[i];
    }
    struct grt_file_info *file =
        named && grt_direct(grt_direct_desc(.path = init->data, .inputs = inputs,
                                            .input_count = c->inputs.count, .targets = targets,
                                            .target_count = c->targets.count, .fill = c->fill),
                            &direct)
            ? grt_file_info_create(direct.path)
            : NULL;
    if (!file) {
        return command_exit_of(grt_last_status());
    }
    int code = choose_arrays(init, file, direct.columns, &first);
    bool plain = strcmp(init->kind->name, "supervised") == 0;
    bool good = !code;
    if (good && direct.input_names && direct.target_names &&
        !(set_columns(init, GRT_CONFIG_INPUTS, direct.input_names) &&
          set_columns(init, GRT_CONFIG_TARGETS, direct.target_names))) {
        code = COMMAND_DATA;
        good = false;
    }
    if (good && plain) {
        good = set(init, GRT_CONFIG_MODEL,
                   first->rank == 4   ? "resnet18"
                   : first->rank == 3 ? "points"
                                      : "mlp");
    }
    if (good && strcmp(init->kind->name, "simclr") == 0) {
        good = train_simclr_settings(init->config);
    }
    if (good && plain) {
        good = set(init, GRT_CONFIG_EPOCHS, "10");
    }
    good = good && choose_by_device(init, first);
    grt_file_info_destroy(&file);
    return code ? code : good ? COMMAND_OK : command_exit_of(grt_last_status());
}

// ---- environments ----

static int look_at_env(struct init *init) {
    const char *name = init->env ? init->env : init->kind->env;
    const struct grt_env_info *env = grt_env_open(name);
    const struct grt_dev_info *dev = grt_dev_info(init->dev);
    bool es = init->kind->scope == GRT_CONFIG_OF_ES;
    if (!env || (es && !grt_env_in_registers(env, "evolution strategies"))) {
        int code = command_exit_of_input(grt_last_status());
        grt_env_close(&env);
        return code;
    }
    if (env->world) {  // its settings say how many numbers
        snprintf(init->about, sizeof init->about, "%s: its state lies in device memory.", name);
    } else {
        snprintf(init->about, sizeof init->about,
                 "%s: %u numbers of an observation, %u of an action.", name, env->obs, env->act);
    }
    struct grt_es_sizes sizes = grt_es_sizes(grt_dev_profile(init->dev), dev);
    bool good = strcmp(init->kind->name, "uav") == 0 || set(init, GRT_CONFIG_ENV, name);
    good = good && set(init, GRT_CONFIG_ITERATIONS, "100");
    if (es) {
        good = good && set_whole(init, GRT_CONFIG_NUM_ENVS, sizes.num_envs) &&
               set_whole(init, GRT_CONFIG_NUM_DIRS, sizes.num_dirs);
    } else {
        good = good && set_whole(init, GRT_CONFIG_NUM_ENVS, dev->caps.software ? 64 : 4096) &&
               set(init, GRT_CONFIG_ROLLOUT_STEPS, "128") &&
               set(init, GRT_CONFIG_NORMALIZE_OBSERVATIONS, env->normalise ? "true" : "false");
    }
    grt_env_close(&env);
    return good ? COMMAND_OK : command_exit_of(grt_last_status());
}

// ---- the file ----

static int write_config(struct init *init) {
    const struct grt_dev_info *dev = grt_dev_info(init->dev);
    char head[sizeof init->about + 512];
    struct output output;
    snprintf(head, sizeof head,
             "gpurt train %s --config %s\n%s\nFor %s: %s. Another device wants other sizes: `gpurt "
             "bench` finds them.\nKeys behind # have the default that stands there; sections are "
             "for the eye.",
             init->kind->name, strcmp(init->path, "-") == 0 ? "FILE" : init->path, init->about,
             dev->selector, dev->name);
    int code = output_open(&output, init->path);
    if (!code) {
        init_print(output.file, init->config, head);
        code = output_close(&output, true);
    }
    if (!code && strcmp(init->path, "-") != 0) {
        talk_line("%s is written; `gpurt train %s --config %s` trains with it", init->path,
                  init->kind->name, init->path);
    }
    return code;
}

static int run(struct init *init) {
    init->dev = options_open_device(&init->common);
    init->config = init->dev ? grt_config_create(init->kind->scope) : NULL;
    if (!init->config) {
        return command_exit_of(grt_last_status());
    }
    int code = init->kind->data ? look_at_data(init) : look_at_env(init);
    return code ? code : write_config(init);
}

// Whether the command line makes sense. Returns an exit code, the mistake said.
static int check(struct init *init) {
    const char *name = init->kind->name;
    if (init->kind->data && !init->data) {
        talk_error("init %s: --data FILE is wanted, which is looked at", name);
        return COMMAND_USAGE;
    }
    if (!init->kind->data && (init->inputs || init->targets || init->fill)) {
        talk_error("init %s takes no --inputs, --targets and --fill, which are of data", name);
        return COMMAND_USAGE;
    }
    if ((!init->kind->data && init->data) ||
        (init->env && (init->kind->data || strcmp(name, "uav") == 0))) {
        talk_error("init %s takes no --%s", name, init->env ? "env" : "data");
        return COMMAND_USAGE;
    }
    if (access(init->path, F_OK) == 0 && !init->force) {
        talk_error("%s is there already; --force replaces it", init->path);
        return COMMAND_CANNOT_CREATE;
    }
    return FILES_APART({FILE_READ, "--data", init->data}, {FILE_READ, "--env", init->env},
                       {FILE_WRITTEN, "--output", init->path});
}

int cmd_init(int argc, char **argv) {
    struct init init = {0};
    struct option_list lists[] = {
        OPTION_LIST("Options", init_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {
        .verb = "init",
        .words = "KIND",
        .about =
            "Writes a config for `gpurt train KIND --config FILE`, which runs as it is: inputs, "
            "targets and loss\nby the data, batch size, workers and cache by the device, and "
            "every other key as a comment,\nwith its meaning and its default. Kinds: "
#define X(name, scope, data, env, help) #name " "
        INIT_KINDS(X)
#undef X
            "\n",
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists};
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    char path[64];
    size_t count = 0;
    if (!words) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    int code = options_parse(&desc, argc, argv, &init.common, words, &count);
    for (size_t i = 0; code < 0 && count == 1 && i < KIND_COUNT; i++) {
        init.kind = strcmp(words[0], kinds[i].name) == 0 ? &kinds[i] : init.kind;
    }
    if (code < 0 && count == 1 && !init.kind) {
        struct command_unknown unknown = {"kind of config", words[0], NULL, "gpurt init --help"};
        code = command_unknown(&unknown, kinds, KIND_COUNT, sizeof *kinds);
    } else if (code < 0 && count != 1) {
        talk_error("init: one KIND is wanted, such as supervised; see `gpurt init --help`");
        code = COMMAND_USAGE;
    }
    if (code < 0) {
        snprintf(path, sizeof path, "%s.yaml", init.kind->name);
        init.path = init.common.output ? init.common.output : path;
        code = check(&init);
        code = code ? code : run(&init);
    }
    grt_config_destroy(&init.config);
    grt_dev_destroy(&init.dev);
    free(words);
    return code;
}
