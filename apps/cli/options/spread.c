// SPDX-License-Identifier: Apache-2.0
#include "spread.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "cli/command.h"
#include "cli/output/output.h"
#include "cli/spawn.h"
#include "cli/talk.h"

#define MOST_DEVICES 64
#define MOST_BYTES (256u << 20)  // of what one of them writes

bool devices_number(const struct grt_dev_list *list, const char *backend, const char *word,
                    char *name, size_t size) {
    const struct grt_dev_info *best =
        grt_dev_choose(list, &(struct grt_dev_desc){.backend = backend, .device = NULL});
    if (!best) {
        return false;
    }
    snprintf(name, size, "%s:%.32s", grt_backend_text(best->backend), word);
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->devices[i].selector, name) == 0) {
            return true;
        }
    }
    return grt_fail(GRT_NO_DEVICE, "no device %s: there is no %s; `gpurt devices` lists them", word,
                    name);
}

// ---- the command line ----

struct line {
    const char *device, *output;  // the last of each; NULL: none
    const char *backend;
    const char *bad;  // an option whose file two processes would write
    bool csv, help;
    char **rest;  // without --device and --output
    int count;
};

// The value of an option, in the same word or the next; NULL: this is another word. Names may be
// cut short, as everywhere: whether the rest is needed to tell two apart, the processes say.
static const char *value_of(const char *name, int argc, char **argv, int *i) {
    const char *word = argv[*i];
    bool brief = name[1] != '-';
    size_t length = brief ? 2 : strcspn(word ? word : "", "=");
    if (!word || length < (brief ? 2 : 3) || strncmp(word, name, length) != 0) {
        return NULL;
    }
    if (word[length] != '\0') {
        return word + length + !brief;
    }
    return *i + 1 < argc ? argv[++*i] : NULL;
}

static void read_line(struct line *line, int argc, char **argv) {
    static const char *const files[] = {"--trace", "--memory-snapshot", "--metrics", "--contribute",
                                        "--apply"};
    for (int i = 1; i < argc; i++) {
        const char *value = NULL;
        int at = i;
        if ((value = value_of("--device", argc, argv, &i))) {
            line->device = value;
            continue;
        }
        if ((value = value_of("--output", argc, argv, &i)) ||
            (value = value_of("-o", argc, argv, &i))) {
            line->output = value;
            continue;
        }
        line->rest[line->count++] = argv[at];
        int next = at;
        value = value_of("--backend", argc, argv, &next);
        line->backend = value ? value : line->backend;
        line->help = line->help || strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0;
        value = value_of("--format", argc, argv, &at);
        line->csv = line->csv || (value && strcmp(value, "csv") == 0);
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            at = i;
            line->bad = value_of(files[k], argc, argv, &at) ? files[k] : line->bad;
        }
    }
}

// ---- processes ----

struct child {
    char device[96], path[2][640];  // what it writes: results, and words to people
    pid_t pid;
    int code;
};

// Names of all, numbers told.
static bool name_devices(struct child *children, uint32_t count, const struct line *line) {
    struct grt_dev_list *list = NULL;
    bool good = true;
    for (uint32_t i = 0; i < count && good; i++) {
        char word[sizeof children->device];
        devices_word(line->device, i, word, sizeof word);
        if (strspn(word, "0123456789") == strlen(word)) {
            list = list ? list : grt_dev_list_create();
            good = list && devices_number(list, line->backend, word, children[i].device,
                                          sizeof children[i].device);
        } else {
            snprintf(children[i].device, sizeof children[i].device, "%s", word);
        }
    }
    grt_dev_list_destroy(&list);
    return good;
}

static bool begin(struct child *c, const char *self, const char *verb, const struct line *line) {
    char **argv = calloc((size_t)line->count + 6, sizeof *argv);
    int n = 0;
    if (!argv) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a command");
    }
    argv[n++] = (char *)(uintptr_t)self;
    argv[n++] = (char *)(uintptr_t)verb;
    for (int i = 0; i < line->count; i++) {
        argv[n++] = line->rest[i];
    }
    argv[n++] = (char *)(uintptr_t) "--device";
    argv[n++] = c->device;
    c->pid = spawn_program(argv, c->path[0], c->path[1], -1);
    free(argv);
    return c->pid > 0;
}

static void await(struct child *children, uint32_t count) {
    const struct timespec nap = {.tv_nsec = 20000000};
    bool asked = false;
    for (uint32_t left = count; left > 0;) {
        left = 0;
        for (uint32_t i = 0; i < count; i++) {
            struct child *c = &children[i];
            bool known = false;
            if (c->pid > 0 && spawn_ended(c->pid, &known, &c->code)) {
                c->pid = 0;
                c->code = known && c->code >= 0 ? c->code : COMMAND_INTERNAL;
            }
            left += c->pid > 0;
        }
        for (uint32_t i = 0; !asked && talk_stopped() && i < count; i++) {
            if (children[i].pid > 0) {
                kill(children[i].pid, SIGTERM);
            }
        }
        asked = talk_stopped();
        talk_progress("%u of %u devices are at work", left, count);
        nanosleep(&nap, NULL);
    }
    talk_clear();
}

// What a device's process wrote. False with the sentence.
static bool tell(const struct child *c, FILE *results) {
    for (int i = 0; i < 2; i++) {
        uint64_t size = 0;
        char *text = grt_whole_file_read_any(c->path[i], MOST_BYTES, &size);
        if (!text) {
            return false;
        }
        if (i == 0) {
            fwrite(text, 1, (size_t)size, results);
        }
        char *rest = NULL;
        for (char *at = i ? strtok_r(text, "\n", &rest) : NULL; at;
             at = strtok_r(NULL, "\n", &rest)) {
            talk_line("%s: %s", c->device, at);
        }
        free(text);
    }
    return true;
}

static int run(struct child *children, uint32_t count, const char *verb, const struct line *line) {
    char self[4096], folder[512];
    const char *above = getenv("TMPDIR");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    struct output output;
    int code = output_open(&output, line->output);
    if (code) {
        return code;
    }
    self[length > 0 ? length : 0] = '\0';
    snprintf(folder, sizeof folder, "%.400s/gpurt-devices-XXXXXX",
             above && *above ? above : "/tmp");
    if (length <= 0 || !mkdtemp(folder)) {
        talk_error("no folder for the results of several devices can be made");
        return output_end(&output, false, COMMAND_CANNOT_CREATE);
    }
    bool good = true;
    talk_stop_by(TALK_STOP_AFTER_STEP);
    for (uint32_t i = 0; i < count && good; i++) {
        snprintf(children[i].path[0], sizeof children[i].path[0], "%s/%u.out", folder, i);
        snprintf(children[i].path[1], sizeof children[i].path[1], "%s/%u.err", folder, i);
        good = begin(&children[i], self, verb, line);
    }
    // Where one cannot be started, there are no results.
    for (uint32_t i = 0; !good && i < count; i++) {
        if (children[i].pid > 0) {
            kill(children[i].pid, SIGTERM);
        }
    }
    await(children, count);
    talk_resume();
    for (uint32_t i = 0; i < count; i++) {
        good = good && tell(&children[i], output.file);
        code = code ? code : children[i].code;
        unlink(children[i].path[0]);
        unlink(children[i].path[1]);
    }
    rmdir(folder);
    code = code || good ? code : command_exit_of(grt_last_status());
    return output_end(&output, good, code);
}

int spread_devices(const char *verb, int argc, char **argv) {
    struct line line = {.backend = "auto", .rest = calloc((size_t)argc + 1, sizeof *line.rest)};
    struct child *children = NULL;
    int code = -1;
    if (!line.rest) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    read_line(&line, argc, argv);
    uint32_t count = line.device ? devices_count(line.device) : 1;
    if (count > 1 && !line.help) {
        children = calloc(count, sizeof *children);
        code = COMMAND_USAGE;
        if (count > MOST_DEVICES || !children) {
            talk_error("--device: at most %d devices", MOST_DEVICES);
        } else if (!devices_named(line.device)) {
            code = COMMAND_USAGE;  // it has said why
        } else if (line.bad) {
            talk_error("%s is of one device, and --device names %u", line.bad, count);
        } else if (line.csv) {
            talk_error("csv has no column for the device, and --device names %u: --format json or "
                       "jsonl has it",
                       count);
        } else {
            code = name_devices(children, count, &line) ? run(children, count, verb, &line)
                                                        : command_exit_of(grt_last_status());
        }
    }
    free(children);
    free(line.rest);
    return code;
}
