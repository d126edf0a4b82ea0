// SPDX-License-Identifier: Apache-2.0
// `gpurt monitor`: what the GPUs of this machine do, and the gpurt processes on them.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/talk.h"
#include "monitor/rows.h"
#include "monitor/view.h"

struct monitor {
    struct options common;  // first: see options.h
    double interval;
    uint32_t once;
    struct output output;
    struct table table;
    struct look *look;
};

static bool read_interval(const char *text, void *into, char why[RANGES_WHY]) {
    double *seconds = into;
    if (options_read_positive(text, into, why) && *seconds >= 0.05 && *seconds <= 3600) {
        return true;
    }
    snprintf(why, RANGES_WHY, "seconds from 0.05 to 3600 are wanted");
    return false;
}

static const struct option_row monitor_options[] = {
    {.name = "interval",
     .value = "SECONDS",
     .help = "from one look to the next",
     .fallback = "0.5",
     .read = read_interval,
     .at = offsetof(struct monitor, interval)},
    {.name = "once",
     .help = "one look over an interval, and exit",
     .at = offsetof(struct monitor, once)},
};

static const char about[] =
    "Shows how busy, full, warm and fast each GPU is, and the gpurt processes of this user:\n"
    "what they run, step, samples/s, loss and the time that is left. NVIDIA is asked through\n"
    "its library NVML, AMD through sysfs, any other through DRM fdinfo, the CPU through /proc;\n"
    "what a driver does not tell is not available (-, and null in JSON). Without a terminal the\n"
    "rows of each look are printed one after the other; --format json wants --once. Ctrl-C ends,\n"
    "on a terminal q too.\n";

// Waits for the next look; false: it was asked to stop.
static bool wait_interval(const struct monitor *m) {
    struct timespec time = {(time_t)m->interval, (long)(1e9 * (m->interval - (long)m->interval))};
    return !talk_stopped() && nanosleep(&time, NULL) == 0 && !talk_stopped();
}

// To people as lines, and as an array for programs.
static json_t *tell_warnings(FILE *file, const struct look *look) {
    json_t *all = json_array();
    for (size_t i = 0; i < look->sample.count; i++) {
        const struct sensor_device *device = &look->sample.devices[i];
        char warnings[LOOK_WARNINGS][LOOK_WARNING];
        size_t count = look_warnings(look, i, warnings);
        for (size_t k = 0; k < count; k++) {
            json_array_append_new(all,
                                  json_pack("{so ss ss}", "name", table_json_text(device->name),
                                            "pci", device->pci, "text", warnings[k]));
            if (file) {
                output_line(file, "%s: %s", device->name, warnings[k]);
            }
        }
    }
    return all;
}

static bool print_look(struct monitor *m) {
    bool people = m->common.format == TABLE_PLAIN || m->common.format == TABLE_MD;
    bool good =
        monitor_print_devices(&m->table, m->look) && monitor_print_processes(&m->table, m->look);
    if (good && people) {
        fputs("\n", m->output.file);
        if (m->look->process_count == 0) {
            fputs("No gpurt process of this user is running.\n", m->output.file);
        }
        json_decref(tell_warnings(m->output.file, m->look));
    }
    return good && output_flush(&m->output);
}

// On a terminal.
static void run_live(struct monitor *m) {
    bool going = true;
    while (going) {
        char *text = view_text(m->look, screen_size(), m->interval);
        if (text) {
            screen_show(text);
        }
        free(text);
        enum screen_event event = screen_wait(m->interval);
        going = event != SCREEN_QUIT && !talk_stopped();
        if (going && event == SCREEN_TIME) {
            look_again(m->look);
        }
    }
}

static void run(struct monitor *m) {
    bool going = wait_interval(m);
    while (going) {
        look_again(m->look);
        going = print_look(m) && !m->once && wait_interval(m);
    }
    if (m->once) {
        table_note(&m->table, "warnings", tell_warnings(NULL, m->look));
    }
}

int cmd_monitor(int argc, char **argv) {
    struct monitor m = {0};
    struct option_list lists[] = {
        OPTION_LIST("Options", monitor_options),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "monitor", .about = about, .lists = lists, .list_count = 3};
    size_t word_count = 0;
    int code = options_parse(&desc, argc, argv, &m.common, NULL, &word_count);
    if (code >= 0) {
        return code;
    }
    if (m.common.format == TABLE_JSON && !m.once) {
        talk_error("--format json is one object, so it wants --once; --format jsonl goes on");
        return COMMAND_USAGE;
    }
    bool live = !m.once && m.common.format == TABLE_PLAIN && !m.common.output;
    talk_stop_by(TALK_STOP_QUIETLY);
    code = output_open(&m.output, m.common.output);
    if (code) {
        return code;
    }
    m.look = look_open(NULL);
    struct table_desc table = {
        .output = &m.output, .format = m.common.format, .argc = argc, .argv = argv};
    if (!m.look) {
        talk_error("out of memory");
        code = COMMAND_INTERNAL;
    } else if (live && screen_open()) {
        run_live(&m);
        screen_close();
    } else if (monitor_table_open(&m.table, &table)) {
        run(&m);
        table_close(&m.table);
    }
    look_close(&m.look);
    talk_resume();  // to be stopped is how it ends
    int written = output_close(&m.output, code == COMMAND_OK);
    return code ? code : written;
}
