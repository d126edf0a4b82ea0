// SPDX-License-Identifier: Apache-2.0
// A training of several processes, started by mpirun or srun: each takes a device by its number on
// its machine, and the first speaks for all.
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/options/spread.h"
#include "cli/talk.h"
#include "trainer.h"

// More than a day is no wait for an answer.
static bool read_timeout(const char *text, void *into, char why[RANGES_WHY]) {
    double seconds = 0;
    char ignored[RANGES_WHY];
    if (!options_read_positive(text, &seconds, ignored) || seconds < 1 || seconds > 86400) {
        snprintf(why, RANGES_WHY, "seconds from 1 to 86400 are wanted");
        return false;
    }
    *(double *)into = seconds;
    return true;
}

const struct option_row trainer_ranks_options[1] = {
    {.name = "rank-timeout",
     .value = "SECONDS",
     .help = "a rank without an answer for so long is lost, also on another machine",
     .fallback = "600",
     .read = read_timeout,
     .at = offsetof(struct trainer, rank_timeout)},
};

bool trainer_first(const struct trainer *t) {
    return grt_comm_rank(t->comm) == 0;
}

void trainer_ranks_speak(struct trainer *t) {
    if (t->silent && t->comm && trainer_first(t)) {
        t->silent = false;
        talk_as_first();
    }
}

// ---- devices ----

// The GPUs of this machine, each once: drivers of two APIs tell the same address.
static bool nth_gpu(const char *backend, uint32_t i, char *word, size_t size) {
    struct grt_dev_list *list = grt_dev_list_create();
    uint32_t gpus[64], count = 0;
    for (uint32_t k = 0; list && k < list->count && count < 64; k++) {
        const struct grt_dev_info *info = &list->devices[k];
        bool wanted =
            strcmp(backend, "auto") == 0 || strcmp(backend, grt_backend_text(info->backend)) == 0;
        bool known = info->caps.software != 0 || !wanted;
        for (uint32_t n = 0; n < count && info->pci[0]; n++) {
            known = known || strcmp(list->devices[gpus[n]].pci, info->pci) == 0;
        }
        if (!known) {
            gpus[count++] = k;
        }
    }
    if (count > 0) {
        snprintf(word, size, "%s", list->devices[gpus[i % count]].selector);
    }
    grt_dev_list_destroy(&list);
    return count > 0;
}

static bool whole(const char *text) {
    return *text && strspn(text, "0123456789") == strlen(text);
}

bool trainer_ranks_device(const struct options *o, uint32_t number, char *device, size_t size) {
    const char *given = o->device;
    device[0] = '\0';
    if (given && *given) {
        devices_word(given, number, device, size);
        number = whole(device) ? (uint32_t)strtoul(device, NULL, 10) : number;
    }
    if ((!device[0] || whole(device)) && !nth_gpu(o->backend, number, device, size)) {
        device[0] = '\0';
    }
    return device[0] || given;
}

void trainer_ranks_place(struct trainer *t) {
    struct options *o = &t->config.common;
    struct grt_comm_place place;
    bool launched = grt_comm_launched(&place);
    if (place.note) {
        talk_line("%s", place.note);
    }
    if (!launched) {
        return;
    }
    if (trainer_ranks_device(o, place.local, t->device, sizeof t->device)) {
        o->device = t->device[0] ? t->device : NULL;
    }
    if (place.rank > 0) {
        talk_as_rank(place.rank);
        t->silent = true;
        o->output = "/dev/null";
        o->metrics = o->trace = o->memory_snapshot = NULL;
        o->monitor = o->kernels = o->every_command = 0;
    }
}

// ---- mpirun ----

// Of ranks whose mpirun this command has started: where the first tells its exit code.
#define OWN_RANKS "GPURT_OWN_RANKS"

extern char **environ;

// mpirun tells the code of a rank that ended by itself. Where one was killed or asked to end, the
// others could save; a crash, and what mpirun itself fails with, would come again. Asked to stop,
// mpirun ends with 1.
static int exit_of(int status, bool asked) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 128 + SIGKILL || code == 128 + SIGTERM || (asked && code == 128 + SIGUSR1) ||
        (asked && code == 1)) {
        return COMMAND_RESUMABLE;
    }
    return code == 0 || (code >= COMMAND_USAGE && code <= COMMAND_CONFIG) ? code : COMMAND_INTERNAL;
}

// What the first rank has written there, or 0.
static int told_code(FILE *file) {
    int code = COMMAND_OK;
    return file && fscanf(file, "%d", &code) == 1 && code == COMMAND_RESUMABLE ? code : COMMAND_OK;
}

// Waits; a signal that asks to stop is passed on once.
static int wait_for(pid_t pid, FILE *told) {
    int status = 0;
    bool passed = false;
    while (waitpid(pid, &status, 0) != pid) {
        if (errno != EINTR) {
            return COMMAND_INTERNAL;
        }
        // mpirun passes SIGUSR1 on and goes on; asked to end itself, it would end the ranks, and
        // wait for that twice, whether they have ended or not.
        if (talk_stopped() && !passed) {
            passed = kill(pid, SIGUSR1) == 0;
        }
    }
    talk_resume();
    int code = exit_of(status, passed);
    return code == COMMAND_OK ? told_code(told) : code;
}

size_t trainer_ranks_mpirun(const char *words[TRAINER_MPIRUN_WORDS]) {
    // Bound to cores, as mpirun would have them, ranks' threads would share one.
    static const char *const first[] = {"mpirun",
                                        "--oversubscribe",
                                        "--bind-to",
                                        "none",
                                        "--mca",
                                        "mpi_yield_when_idle",
                                        "1",
                                        "--mca",
                                        "odls_base_sigkill_timeout",
                                        "2",
                                        "--allow-run-as-root"};
    size_t count = sizeof first / sizeof *first - (geteuid() != 0);
    memcpy(words, first, count * sizeof *first);
    // mpirun looks at the machine by hwloc, whose plugin opens PoCL: LLVM takes its signals then.
    setenv("HWLOC_COMPONENTS", "-opencl,-cuda,-nvml,-rsmi,-gl,-levelzero", 0);
    return count;
}

int trainer_ranks_launch(const struct trainer *t, int argc, char **argv) {
    const char *given = t->config.common.device;
    if (!given || !*given || devices_count(given) == 1 || grt_comm_launched(NULL)) {
        return -1;
    }
    if (!devices_named(given)) {
        return COMMAND_USAGE;
    }
    char count[16], self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    const char **words = calloc((size_t)argc + 20, sizeof *words);
    if (!words || length < 1) {
        free(words);
        talk_error("the ranks of --device %s cannot be started", given);
        return COMMAND_INTERNAL;
    }
    self[length] = '\0';
    snprintf(count, sizeof count, "%u", devices_count(given));
    size_t n = trainer_ranks_mpirun(words);
    words[n++] = "-n";
    words[n++] = count;
    words[n++] = self;
    words[n++] = "train";
    memcpy(words + n, argv, (size_t)argc * sizeof *words);
    FILE *told = tmpfile();
    char path[64];
    // A group of its own: Ctrl-C reaches it once, through this process.
    posix_spawnattr_t attributes;
    pid_t pid = -1;
    int error = posix_spawnattr_init(&attributes);
    if (!error) {
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        talk_stop_by(TALK_STOP_AFTER_STEP);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), told ? fileno(told) : -1);
        setenv(OWN_RANKS, path, 1);
        error = posix_spawnp(&pid, "mpirun", NULL, &attributes, (char *const *)(uintptr_t)words,
                             environ);
        posix_spawnattr_destroy(&attributes);
    }
    free(words);
    if (error) {
        if (told) {
            fclose(told);
        }
        talk_error("several devices want mpirun, and it cannot be started: %s. Debian: apt install "
                   "openmpi-bin",
                   strerror(error));
        return COMMAND_NO_DEVICE;
    }
    int code = wait_for(pid, told);
    if (told) {
        fclose(told);
    }
    return code;
}

// ---- the others ----

static bool asked(const char *name) {
    const char *value = getenv(name);
    return value && strcmp(value, "1") == 0;
}

int trainer_ranks_meet(struct trainer *t) {
    const struct grt_dev_info *info = grt_dev_info(t->dev);
    char device[96];
    bool alone = !grt_comm_launched(NULL);
    if (alone && !asked("GPURT_AS_RANK")) {
        return COMMAND_OK;
    }
    snprintf(device, sizeof device, "%s %.70s", info->selector, info->name);
    talk_progress("waiting for the other ranks");
    t->comm = grt_comm_start(&(struct grt_comm_desc){.device = device,
                                                     .stop = talk_stopped,
                                                     .silent = t->rank_timeout,
                                                     .alone = alone,
                                                     .outlive = t->kind->outlives,
                                                     .messages = asked("GPURT_MESSAGES")});
    talk_clear();
    if (!t->comm) {
        return command_exit_of(grt_last_status());
    }
    return grt_comm_agree(t->comm, "kind of training", t->kind->verb)
               ? COMMAND_OK
               : command_exit_of(grt_last_status());
}

// The first rank that ends with another code than 0 makes mpirun end all others, which takes it
// seconds, also where nobody is left. So where all stop as they were asked, all end well, and the
// first tells its code who has started mpirun. Where it cannot, it ends with that code.
int trainer_ranks_end(struct trainer *t, int code) {
    const char *path = getenv(OWN_RANKS);
    bool well = code == COMMAND_RESUMABLE && grt_comm_stop(t->comm) == GRT_STOP_SIGNAL && path;
    if (well && trainer_first(t)) {
        FILE *file = fopen(path, "w");
        well = file && fprintf(file, "%d\n", code) > 0;
        well = file && fclose(file) == 0 && well;
    }
    well = well || code == COMMAND_OK;
    grt_comm_end(&t->comm, well);
    return well ? COMMAND_OK : code;
}

void trainer_ranks_banner(const struct trainer *t) {
    const char *who;
    for (uint32_t r = 0; t->comm && (who = grt_comm_who(t->comm, r)) != NULL; r++) {
        talk_line("rank %-6u %s", r, who);
    }
}
