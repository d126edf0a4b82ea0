// SPDX-License-Identifier: Apache-2.0
// The folder of a sweep: made, found again, and locked. What it was made from is copied into it;
// going on wants the same.
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "cli/command.h"
#include "cli/options/spread.h"
#include "cli/talk.h"
#include "gpurt/device.h"
#include "gpurt/runlog.h"
#include "sweep.h"

#define MOST_BYTES ((uint64_t)GRT_CONFIG_MAX_BYTES)

static int failed(void) {
    return command_exit_of(grt_last_status());
}

static void folder_path(const struct sweep *s, const char *name, char path[SWEEP_PATH]) {
    snprintf(path, SWEEP_PATH, "%.3900s/%s", s->dir, name);
}

const struct sweep_executor *sweep_executor_named(const char *name) {
    return strcmp(name, sweep_local.name) == 0   ? &sweep_local
           : strcmp(name, sweep_slurm.name) == 0 ? &sweep_slurm
           : strcmp(name, sweep_ssh.name) == 0   ? &sweep_ssh
                                                 : NULL;
}

// ---- slots ----

bool sweep_devices(struct sweep *s, const char *text) {
    struct grt_dev_list *list = NULL;
    bool good = true;
    s->slots = 0;
    while (good && text) {
        char word[SWEEP_NAME];
        size_t length = strcspn(text, ",");
        if (length == 0 || length >= sizeof word || s->slots == SWEEP_DEVICES) {
            good = grt_fail(GRT_CONFIG, "devices: from 1 to %d names with commas between",
                            SWEEP_DEVICES);
            break;
        }
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (strspn(word, "0123456789") == length) {
            list = list ? list : grt_dev_list_create();
            good = list && devices_number(list, s->plan.base.backend, word, s->devices[s->slots],
                                          SWEEP_NAME);
        } else {
            snprintf(s->devices[s->slots], SWEEP_NAME, "%s", word);
        }
        s->slots++;
        text = text[length] ? text + length + 1 : NULL;
    }
    grt_dev_list_destroy(&list);
    return good;
}

static bool find_slots(struct sweep *s, const struct sweep_new *desc) {
    char text[SWEEP_DEVICES * SWEEP_NAME] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < s->plan.device_count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "",
                                 s->plan.devices[i]);
    }
    const char *devices = desc->devices ? desc->devices : *text ? text : NULL;
    // A queue has its own devices.
    if (desc->executor != &sweep_local) {
        s->slots = desc->slots;
        return !desc->devices ||
               grt_fail(GRT_CONFIG, "--devices are slots of this machine; %s chooses by itself",
                        desc->executor->name);
    }
    if (devices && !sweep_devices(s, devices)) {
        return false;
    }
    uint32_t named = s->slots;
    s->slots = desc->slots ? desc->slots : named ? named : 1;
    // More slots than devices share them in turns.
    for (uint32_t i = named; named && i < s->slots; i++) {
        memcpy(s->devices[i], s->devices[i % named], SWEEP_NAME);
    }
    return true;
}

// ---- a new one ----

static char *read_text(const char *path) {
    uint64_t size = 0;
    char *text = grt_whole_file_read_any(path, MOST_BYTES, &size);
    if (text && strlen(text) != size) {
        grt_fail(GRT_CONFIG, "%s: a byte 0 that is no text", path);
        free(text);
        text = NULL;
    }
    return text;
}

// Every trial is made once before the first begins, so that none is refused in the middle.
static bool check_trials(struct sweep *s) {
    struct grt_config *config = malloc(sizeof *config);
    bool good = config || grt_fail(GRT_NO_MEMORY, "no host memory for a config");
    for (uint32_t i = 0; i < s->plan.trials && good; i++) {
        good = sweep_settings(&s->plan, i, config);
    }
    free(config);
    return good;
}

static bool make_trials(struct sweep *s) {
    s->trials = calloc(s->plan.trials, sizeof *s->trials);
    for (uint32_t i = 0; s->trials && i < s->plan.trials; i++) {
        s->trials[i].number = i;
    }
    return s->trials || grt_fail(GRT_NO_MEMORY, "no host memory for %u trials", s->plan.trials);
}

// A key that trials have values of their own for is none for all of them.
static bool is_common(const struct sweep_plan *plan, const char *word) {
    char name[SWEEP_NAME];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    enum grt_config_key key = grt_config_key_find(plan->kind->scope, name);
    for (uint32_t i = 0; key != GRT_CONFIG_KEY_COUNT && i < plan->parameter_count; i++) {
        const struct sweep_parameter *p = &plan->parameters[i];
        if (grt_config_key_find(plan->kind->scope, p->name) == key) {
            return grt_fail(GRT_CONFIG, "%s: %s:%u:%u has %s already, as a parameter", word,
                            plan->path, p->line, p->column, p->name);
        }
    }
    return true;
}

int sweep_plan_new(struct sweep *s, const struct sweep_new *desc) {
    char *text = read_text(desc->yaml);
    struct grt_config *base = &s->plan.base;
    bool good = text && sweep_plan_read(&s->plan, desc->yaml, text);
    free(text);
    for (size_t i = 0; good && i < desc->word_count; i++) {
        good = is_common(&s->plan, desc->words[i]) && grt_config_override(base, desc->words[i]);
    }
    good = good && (!desc->data || is_common(&s->plan, "data")) &&
           (!desc->data || grt_config_set(base, GRT_CONFIG_DATA, desc->data)) && check_trials(s) &&
           make_trials(s);
    s->executor = desc->executor;
    s->extra_count = (uint32_t)desc->extra_count;
    if (desc->extra_count > 0) {
        memcpy(s->extra, desc->extra, desc->extra_count * sizeof *desc->extra);
    }
    return good ? COMMAND_OK : failed();
}

// sweep.yaml -> sweep, in the folder where the command runs.
static void name_folder(const struct sweep_new *desc, char dir[SWEEP_PATH]) {
    const char *slash = strrchr(desc->yaml, '/'), *name = slash ? slash + 1 : desc->yaml;
    const char *dot = strrchr(name, '.');
    if (desc->dir) {
        snprintf(dir, SWEEP_PATH, "%s", desc->dir);
    } else {
        snprintf(dir, SWEEP_PATH, "%.*s%s", dot ? (int)(dot - name) : (int)strlen(name), name,
                 dot && dot > name ? "" : ".sweep");
    }
}

static bool lock_folder(struct sweep *s) {
    char path[SWEEP_PATH], what[SWEEP_PATH];
    folder_path(s, "sweep.lock", path);
    snprintf(what, sizeof what, "the sweep %.3900s", s->dir);
    return grt_lock_take(&s->lock, path, what);
}

static json_t *words_json(const char *const *words, size_t count) {
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(all, table_json_text(words[i]));
    }
    return all;
}

static bool save_about(struct sweep *s, const char *yaml, const char *text) {
    char path[SWEEP_PATH], here[SWEEP_PATH], whole[SWEEP_PATH];
    json_t *devices = json_array();
    for (uint32_t i = 0; i < s->slots && i < SWEEP_DEVICES; i++) {
        json_array_append_new(devices, table_json_text(s->devices[i]));
    }
    if (!getcwd(here, sizeof here) || !realpath(yaml, whole)) {
        json_decref(devices);
        return grt_fail(GRT_IO, "the folder of this command is not known: %s", strerror(errno));
    }
    s->about = json_pack(
        "{ss ss so so sI ss sI so so}", "schema", "gpurt.sweep.folder/1", "gpurt", GPURT_VERSION,
        "yaml", table_json_text(whole), "folder", table_json_text(here), "crc32c",
        (json_int_t)grt_crc32c(text, strlen(text), 0), "executor", s->executor->name, "slots",
        (json_int_t)s->slots, "devices", devices, "extra", words_json(s->extra, s->extra_count));
    char *dump = s->about ? json_dumps(s->about, JSON_INDENT(1)) : NULL;
    folder_path(s, "sweep.json", path);
    bool good = dump ? grt_whole_file_save(path, dump, strlen(dump))
                     : grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    free(dump);
    return good;
}

// Files that are there before sweep.json, and what writing them may leave: sweep.yaml.4711.tmp.
static bool of_beginning(const char *name) {
    static const char *const first[] = {"sweep.yaml", "config.yaml", "sweep.json"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        size_t length = strlen(first[i]), all = strlen(name);
        if (strncmp(name, first[i], length) == 0 &&
            (all == length || (name[length] == '.' && strcmp(name + all - 4, ".tmp") == 0))) {
            return true;
        }
    }
    return false;
}

// Another sweep's folder, or one of other files, stays as it is. `begun`: a sweep that was killed
// before it had its sweep.json has left its lock there, and what it has left besides is no loss.
static bool is_free(const struct sweep *s, const char *dir, bool begun) {
    char path[SWEEP_PATH];
    folder_path(s, "sweep.json", path);
    if (access(path, F_OK) == 0) {
        talk_error("there is a sweep in %s already: `gpurt sweep resume %s` goes on with it, --dir "
                   "names another folder",
                   dir, dir);
        return false;
    }
    DIR *folder = opendir(s->dir);
    const struct dirent *entry = NULL;
    bool empty = folder != NULL;
    while (empty && (entry = readdir(folder))) {
        const char *name = entry->d_name;
        empty = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                strcmp(name, "sweep.lock") == 0 || (begun && of_beginning(name));
    }
    if (!empty) {
        talk_error("%s is not an empty folder: --dir names another one for the sweep", dir);
    }
    if (folder) {
        closedir(folder);
    }
    return empty;
}

// Removes what stands in the way of the next who begins there.
static void clear_beginning(const struct sweep *s) {
    DIR *folder = opendir(s->dir);
    const struct dirent *entry = NULL;
    while (folder && (entry = readdir(folder))) {
        if (of_beginning(entry->d_name)) {
            unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

int sweep_folder_new(struct sweep *s, const struct sweep_new *desc) {
    char dir[SWEEP_PATH], path[SWEEP_PATH];
    if (!find_slots(s, desc) || !s->executor->open(s)) {
        return failed();
    }
    name_folder(desc, dir);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        talk_error("cannot create %s: %s", dir, strerror(errno));
        return COMMAND_CANNOT_CREATE;
    }
    if (!realpath(dir, s->dir) || strlen(s->dir) > 3800) {
        talk_error("cannot find %s: %s", dir, strerror(errno));
        return COMMAND_CANNOT_CREATE;
    }
    folder_path(s, "sweep.lock", path);
    bool begun = access(path, F_OK) == 0;
    if (!is_free(s, dir, begun)) {
        return COMMAND_CANNOT_CREATE;
    }
    if (!lock_folder(s)) {
        return failed();
    }
    // Again: until the lock another process may have made its sweep there.
    if (!is_free(s, dir, begun)) {
        return COMMAND_CANNOT_CREATE;
    }
    char *text = read_text(desc->yaml);
    if (begun && text) {
        clear_beginning(s);
    }
    folder_path(s, "sweep.yaml", path);
    bool good = text && grt_whole_file_save(path, text, strlen(text));
    folder_path(s, "config.yaml", path);
    good = good && grt_config_write(&s->plan.base, path, "what all trials have in common") &&
           save_about(s, desc->yaml, text);
    free(text);
    if (!good && !begun) {
        clear_beginning(s);
    }
    return good ? COMMAND_OK : failed();
}

// ---- one that is there ----

static bool read_about(struct sweep *s, const char *dir) {
    char path[SWEEP_PATH];
    folder_path(s, "sweep.json", path);
    s->about = access(path, F_OK) == 0 ? json_load_file(path, 0, NULL) : NULL;
    const char *executor = json_string_value(json_object_get(s->about, "executor"));
    const char *schema = json_string_value(json_object_get(s->about, "schema"));
    s->executor = executor ? sweep_executor_named(executor) : NULL;
    if (!s->executor || !schema || strcmp(schema, "gpurt.sweep.folder/1") != 0) {
        return grt_fail(GRT_NO_INPUT, "%s is no folder of a sweep", dir);
    }
    s->slots = (uint32_t)json_integer_value(json_object_get(s->about, "slots"));
    s->slots = s->slots < SWEEP_DEVICES ? s->slots : SWEEP_DEVICES;
    size_t i = 0;
    json_t *word = NULL;
    json_array_foreach(json_object_get(s->about, "devices"), i, word) {
        const char *text = json_string_value(word);
        if (i < SWEEP_DEVICES && text) {
            snprintf(s->devices[i], SWEEP_NAME, "%s", text);
        }
    }
    json_array_foreach(json_object_get(s->about, "extra"), i, word) {
        if (i < SWEEP_EXTRA && json_is_string(word)) {
            s->extra[s->extra_count++] = json_string_value(word);
        }
    }
    return true;
}

// The base is what the first command made of it: the file that `config` names may be gone.
static bool read_plan(struct sweep *s) {
    char path[SWEEP_PATH];
    folder_path(s, "sweep.yaml", path);
    char *text = read_text(path);
    uint32_t crc = text ? grt_crc32c(text, strlen(text), 0) : 0;
    bool good = text != NULL;
    if (good && crc != (uint32_t)json_integer_value(json_object_get(s->about, "crc32c"))) {
        good = grt_fail(GRT_CONFIG,
                        "%s was changed: its trials would be others; `gpurt sweep %s --dir DIR` "
                        "begins another sweep",
                        path, path);
    }
    const char *here = json_string_value(json_object_get(s->about, "folder"));
    if (good && (!here || chdir(here) != 0)) {
        good = grt_fail(GRT_NO_INPUT, "the folder %s, where the sweep was begun, is not there",
                        here ? here : "");
    }
    good = good && sweep_plan_read(&s->plan, path, text);
    free(text);
    folder_path(s, "config.yaml", path);
    struct grt_config *base = &s->plan.base;
    if (good) {
        grt_config_init_for(base, s->plan.kind->scope);
        good = grt_config_read(base, path);
        base->path[0] = '\0';
        for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
            base->places[i].file = false;
        }
    }
    return good && make_trials(s);
}

int sweep_folder_open(struct sweep *s, const char *dir, bool lock) {
    if (!realpath(dir, s->dir) || strlen(s->dir) > 3800) {
        talk_error("cannot read %s: %s", dir, strerror(errno));
        return COMMAND_NO_INPUT;
    }
    bool good = read_about(s, dir) && (!lock || lock_folder(s)) && read_plan(s);
    for (uint32_t i = 0; good && i < s->plan.trials; i++) {
        good = sweep_trial_load(s, &s->trials[i]);
    }
    return good ? COMMAND_OK : failed();
}

int sweep_unchanged(const struct sweep *s) {
    const char *yaml = json_string_value(json_object_get(s->about, "yaml"));
    char *text = yaml && access(yaml, F_OK) == 0 ? read_text(yaml) : NULL;
    uint32_t crc = text ? grt_crc32c(text, strlen(text), 0) : 0;
    bool same = !text || crc == (uint32_t)json_integer_value(json_object_get(s->about, "crc32c"));
    free(text);
    if (!same) {
        talk_error("%s has changed since the sweep began: its trials would be others; --dir DIR "
                   "begins another sweep, and %s/sweep.yaml is what this one is of",
                   yaml, s->dir);
    }
    return same ? COMMAND_OK : COMMAND_CONFIG;
}

void sweep_close(struct sweep *s) {
    for (uint32_t i = 0; s->trials && i < s->plan.trials; i++) {
        sweep_progress_finish(&s->trials[i].progress);
    }
    free(s->trials);
    s->trials = NULL;
    sweep_plan_finish(&s->plan);
    json_decref(s->about);
    s->about = NULL;
    grt_lock_release(&s->lock);
}
