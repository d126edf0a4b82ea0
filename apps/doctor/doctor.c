// SPDX-License-Identifier: Apache-2.0
// The verb `gpurt doctor`: gathers the facts of this system, finds, prints. People get groups of
// short lines, each problem with its remedy below it; programs get a row per finding.
#include "doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/options/options.h"
#include "cli/output/output.h"
#include "cli/output/table.h"
#include "cli/talk.h"

struct values {
    struct options common;
    const char *root;
};

static bool read_root(const char *text, void *into, char why[RANGES_WHY]) {
    (void)why;
    *(const char **)into = text;
    return true;
}

// A folder that is not there would look like a system that lacks everything.
static bool can_look(const char *root) {
    struct stat info;
    int error = stat(root, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    if (error) {
        talk_error("--root %s: %s", root, strerror(error));
    }
    return error == 0;
}

// ---- this system ----

// The values are copied: listing devices may tell a loader of a driver through the environment.
static void env_init(struct doctor_env *env) {
    const char *text = NULL;
#define X(field, name)                                                                             \
    text = getenv(name);                                                                           \
    env->field = text && *text ? strdup(text) : NULL;
    DOCTOR_ENV(X)
#undef X
}

static void env_finish(struct doctor_env *env) {
#define X(field, name) free((char *)env->field);
    DOCTOR_ENV(X)
#undef X
}

// The folder above the one of this program.
static void prefix_init(char prefix[DOCTOR_PATH]) {
    ssize_t length = readlink("/proc/self/exe", prefix, DOCTOR_PATH - 1);
    prefix[length > 0 ? length : 0] = '\0';
    for (int i = 0; i < 2 && strchr(prefix, '/'); i++) {
        *strrchr(prefix, '/') = '\0';
    }
}

static void user_init(struct doctor_user *user) {
    user->uid = geteuid();
    int count = getgroups(DOCTOR_MAX_GROUPS - 1, user->gids);
    user->gid_count = count > 0 ? (uint32_t)count : 0;
    user->gids[user->gid_count++] = getegid();
}

static void drop_line(void *context, enum grt_log_level level, const char *line) {
    (void)context;
    (void)level;
    (void)line;
}

// What the library complains about while facts are gathered becomes a finding.
static void gather(struct doctor_facts *facts, const struct doctor_source *source,
                   const struct options *options) {
    grt_log_set(drop_line, NULL, GRT_LOG_ERROR);
    doctor_facts_gather(facts, source);
    talk_set_level(options->quiet ? -1 : (int)options->verbose);
}

// ---- for people ----

static void print_level(FILE *file, enum doctor_level level) {
    static const char *const colours[DOCTOR_LEVEL_COUNT] = {
        [DOCTOR_OK] = "\033[32m",
        [DOCTOR_NOTE] = "\033[36m",
        [DOCTOR_WARNING] = "\033[33m",
        [DOCTOR_ERROR] = "\033[1;31m",
    };
    bool styled = talk_styled(file);
    fprintf(file, "  %s%-7s%s  ", styled ? colours[level] : "", doctor_level_text(level),
            styled ? "\033[0m" : "");
}

static void print_heading(FILE *file, const char *text) {
    bool styled = talk_styled(file);
    fprintf(file, "%s%s%s\n", styled ? "\033[1m" : "", text, styled ? "\033[0m" : "");
}

static void print_finding(FILE *file, const struct doctor_finding *finding,
                          const struct doctor_finding *before, const struct doctor_finding *after) {
    if (!before || strcmp(before->group, finding->group) != 0) {
        fputs(before ? "\n" : "", file);
        print_heading(file, finding->group);
    }
    print_level(file, finding->level);
    output_line(file, "%s", finding->sentence);
    // Eight GPUs that lack the same thing have one remedy.
    bool repeated =
        after && strcmp(after->id, finding->id) == 0 && strcmp(after->remedy, finding->remedy) == 0;
    if (finding->remedy[0] && !repeated) {
        output_line(file, "           -> %s", finding->remedy);
    }
}

static void print_devices(FILE *file, const struct grt_dev_list *list) {
    fputs("\n", file);
    print_heading(file, "devices");
    for (uint32_t i = 0; list && i < list->count; i++) {
        const struct grt_dev_info *info = &list->devices[i];
        char memory[TABLE_TEXT_SIZE];
        table_bytes_text(info->caps.memory, memory);
        output_line(file, "  %-9s  %s, %s, %s", info->selector, info->name,
                    info->caps.software     ? "CPU driver"
                    : info->caps.integrated ? "integrated"
                                            : "GPU",
                    memory);
    }
    if (!list) {
        fputs("  not listed\n", file);
    }
}

static void print_summary(FILE *file, const struct doctor_findings *findings) {
    bool any = false;
    fputs("\n", file);
    for (enum doctor_level level = DOCTOR_ERROR; level > DOCTOR_OK; level--) {
        uint32_t count = findings->counts[level];
        if (count > 0) {
            fprintf(file, "%s%" PRIu32 " %s%s", any ? ", " : "", count, doctor_level_text(level),
                    count > 1 ? "s" : "");
            any = true;
        }
    }
    fputs(any ? "\n" : "all is well\n", file);
}

static bool print_for_people(struct output *output, const struct doctor_findings *findings,
                             const struct grt_dev_list *list) {
    const struct doctor_finding *items = findings->items;
    for (uint32_t i = 0; i < findings->count; i++) {
        print_finding(output->file, &items[i], i > 0 ? &items[i - 1] : NULL,
                      i + 1 < findings->count ? &items[i + 1] : NULL);
    }
    print_devices(output->file, list);
    print_summary(output->file, findings);
    return output_flush(output);
}

// ---- for programs ----

static json_t *describe_devices(const struct grt_dev_list *list) {
    json_t *devices = json_array();
    for (uint32_t i = 0; list && i < list->count; i++) {
        json_array_append_new(devices, devices_json(&list->devices[i]));
    }
    return devices;
}

static bool print_table(struct output *output, const struct doctor_findings *findings,
                        const struct grt_dev_list *list, enum table_format format, int argc,
                        char **argv) {
    static const struct table_column columns[] = {
        {.key = "group", .heading = "group"},   {.key = "level", .heading = "level"},
        {.key = "id", .heading = "id"},         {.key = "sentence", .heading = "finding"},
        {.key = "remedy", .heading = "remedy"},
    };
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    struct table table;
    bool good =
        table_open(&table, &(struct table_desc){
                               .output = output,
                               .format = format,
                               .columns = columns,
                               .column_count = COLUMNS,
                               .schema = "gpurt.doctor/1",
                               .argc = argc,
                               .argv = argv,
                               .head = json_pack("{s:o}", "devices", describe_devices(list)),
                           });
    good = good && table_section(&table, NULL, (1u << COLUMNS) - 1, NULL, 0);
    for (uint32_t i = 0; good && i < findings->count; i++) {
        const struct doctor_finding *finding = &findings->items[i];
        good = table_row(&table, (struct table_cell[COLUMNS]){
                                     TABLE_CELL(.text = finding->group),
                                     TABLE_CELL(.text = doctor_level_text(finding->level)),
                                     TABLE_CELL(.text = finding->id),
                                     TABLE_CELL(.text = finding->sentence),
                                     {.known = finding->remedy[0] != '\0', .text = finding->remedy},
                                 });
    }
    return table_close(&table) && good;
}

// ---- the verb ----

// Returns the exit code.
static int print(const struct options *options, const struct doctor_findings *findings,
                 const struct grt_dev_list *list, int argc, char **argv) {
    struct output output;
    int code = output_open(&output, options->output);
    if (code != COMMAND_OK) {
        return code;
    }
    bool good = options->format == TABLE_PLAIN
                    ? print_for_people(&output, findings, list)
                    : print_table(&output, findings, list, options->format, argc, argv);
    code = output_close(&output, good);
    if (code == COMMAND_OK && findings->counts[DOCTOR_ERROR] > 0) {
        code = COMMAND_NO_DEVICE;
    }
    return code;
}

int cmd_doctor(int argc, char **argv) {
    static const struct option_row rows[] = {
        {.name = "root",
         .value = "DIR",
         .help = "look at the system that lies under DIR; its devices are not listed",
         .read = read_root,
         .at = offsetof(struct values, root)},
    };
    struct option_list lists[] = {
        OPTION_LIST("What is looked at", rows),
        OPTION_LIST("Output", options_output),
        OPTION_LIST("General", options_general),
    };
    const struct options_desc desc = {
        .verb = "doctor",
        .about = "Tells what gpurt found on this machine, what is missing, and how to get it.\n"
                 "The exit code is 69 when something keeps a GPU from being used, else 0.\n",
        .lists = lists,
        .list_count = sizeof lists / sizeof lists[0],
    };
    struct values values = {.root = ""};
    size_t word_count = 0;
    int code = options_parse(&desc, argc, argv, &values.common, NULL, &word_count);
    if (code >= 0) {
        return code;
    }
    if (values.root[0] && !can_look(values.root)) {
        return COMMAND_NO_INPUT;
    }
    // Paths below it are told apart from others by their first letter.
    char *root = values.root[0] ? realpath(values.root, NULL) : strdup("");

    struct {
        char prefix[DOCTOR_PATH];
        struct doctor_source source;
        struct doctor_facts facts;
        struct doctor_findings findings;
    } *work = calloc(1, sizeof *work);
    if (!work || !root) {
        talk_error("out of memory");
        free(work);
        free(root);
        return COMMAND_INTERNAL;
    }
    prefix_init(work->prefix);
    work->source.root = root;
    work->source.prefix = values.root[0] ? NULL : work->prefix;
    work->source.coopmat = grt_built_with_coopmat();
    env_init(&work->source.env);
    user_init(&work->source.user);
    struct grt_dev_list *list = values.root[0] ? NULL : grt_dev_list_create();
    work->source.list = list;
    gather(&work->facts, &work->source, &values.common);
    doctor_findings_make(&work->findings, &work->facts);
    code = print(&values.common, &work->findings, list, argc, argv);
    grt_dev_list_destroy(&list);
    env_finish(&work->source.env);
    free(work);
    free(root);
    return code;
}
