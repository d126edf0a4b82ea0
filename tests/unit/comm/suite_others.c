// SPDX-License-Identifier: Apache-2.0
// The other ranks as processes: one that is stopped, ends or is of another version, which machine
// it is on, and what launchers say of it.
#include "harness/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/peers.h"
#include "gpurt/comm.h"
#include "gpurt/gpurt.h"

// ---- the other rank as a process that is stopped, ends, or is elsewhere ----

// What happens to it in a wait, and when.
struct event {
    double seconds;
    int signal;  // 0: the exchange is over; below 0: and nothing of it is left
};

static struct {
    pid_t pid;
    const struct event *next;
    double begun;
    bool elsewhere, asked;
    bool older;         // of another version
    uint32_t protocol;  // of its exchanges; 0: as this rank's
} other;

static bool two(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    (void)self, (void)why;
    *rank = 0;
    *ranks = 2;
    return true;
}

// Who it is, when they meet; the rest is as this rank's.
static bool tell(void *self, void *all, size_t each) {
    struct peer *peers = all;
    (void)self;
    if (each == sizeof *peers) {
        peers[1].pid = (int32_t)other.pid;
        peers[1].began = 0;  // it has told nothing of itself
        peers[1].machine[0] = (char)(peers[0].machine[0] + other.elsewhere);
    } else {
        memcpy((char *)all + each, all, each);
    }
    if (each == sizeof(struct peer_hello) && other.protocol > 0) {
        ((struct peer_hello *)all)[1].protocol = other.protocol;
    }
    // The first text that is compared behind who they are: its length, its digest, itself.
    bool text = each > 16 && each != sizeof *peers && each != sizeof(struct peer_hello);
    if (other.older && text) {
        memcpy((char *)all + each + 16, "0.0.1", sizeof "0.0.1");
    }
    other.begun = grt_seconds();
    return true;
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    (void)self, (void)out, (void)in, (void)each;
    return false;  // nothing is spread here
}

static void end(void *self) {
    (void)self;
}

static bool happens(void *self, bool *over) {
    (void)self;
    *over = !other.next;
    while (!*over && grt_seconds() - other.begun >= other.next->seconds) {
        *over = other.next->signal == 0;
        if (!*over) {
            int signal = other.next->signal;
            assert_int_equal(kill(other.pid, signal < 0 ? -signal : signal), 0);
            assert_true(signal > 0 || waitpid(other.pid, NULL, 0) == other.pid);
        }
        other.next++;
    }
    return true;
}

static bool asked(void) {
    return other.asked;
}

// Waits for an exchange while that happens; what was said, or "".
static const char *waits(const struct event *events, bool elsewhere, bool stop) {
    static char said[512];
    const struct grt_transport table = {
        GRT_TRANSPORT_VERSION, "a child", NULL, two, tell, spread, happens, end};
    uint32_t word = 5;
    other.pid = fork();
    assert_true(other.pid >= 0);
    if (other.pid == 0) {
        for (;;) {
            pause();
        }
    }
    other.elsewhere = elsewhere;
    other.asked = stop;
    other.next = NULL;
    struct grt_comm *comm =
        grt_comm_start(grt_comm_desc(.device = "ref:0", .transport = &table, .stop = asked));
    assert_non_null(comm);
    uint32_t words[2] = {word, 0};
    other.next = events;
    bool good = grt_comm_gather(comm, words, sizeof word);
    snprintf(said, sizeof said, "%s", good ? "" : grt_last_error());
    test_log.expected += !good;
    assert_int_equal(grt_comm_stop(comm), good ? 0 : GRT_STOP_LOST);
    assert_int_equal(words[1], word);
    // Nothing is begun any more with one that is gone.
    other.next = NULL;
    assert_int_equal(grt_comm_gather(comm, words, sizeof word), good);
    kill(other.pid, SIGKILL);
    waitpid(other.pid, NULL, 0);
    grt_comm_end(&comm, good);
    return said;
}

static void other_processes(void **state) {
    static const struct event twice[] = {
        {0, SIGSTOP}, {1.5, SIGCONT}, {1.8, SIGSTOP}, {3.3, SIGCONT}, {3.4, 0}};
    static const struct event stops[] = {{0, SIGSTOP}, {60, 0}}, ends[] = {{0, SIGKILL}, {60, 0}};
    static const struct event left[] = {{0, -SIGKILL}, {60, 0}};
    static const struct event gone[] = {{0, SIGKILL}, {0.6, 0}}, late[] = {{60, 0}};
    (void)state;
    // Stopped for 1.5 s is not lost, also not the second time.
    assert_string_equal(waits(twice, false, false), "");
    const char *said = waits(stops, false, false);
    assert_non_null(strstr(said, "rank 1 (ref:0, process "));
    assert_non_null(strstr(said, "is stopped and does not answer"));
    assert_non_null(strstr(waits(ends, false, false), "has ended"));
    assert_non_null(strstr(waits(left, false, false), "has ended"));
    // Numbers of processes say nothing of another machine.
    assert_string_equal(waits(gone, true, false), "");
    assert_non_null(strstr(waits(late, false, true), "did not come to the stop"));
}

// Ranks of several versions do not begin.
static void versions(void **state) {
    const struct grt_transport table = {
        GRT_TRANSPORT_VERSION, "a child", NULL, two, tell, spread, happens, end};
    char wanted[96];
    (void)state;
    other.next = NULL;
    other.elsewhere = false;
    other.older = true;
    test_log.expected += 1;
    assert_null(grt_comm_start(grt_comm_desc(.device = "ref:0", .transport = &table)));
    other.older = false;
    assert_int_equal(grt_last_status(), GRT_CONFIG);
    snprintf(wanted, sizeof wanted,
             "differs in its version of gpurt from rank 0: '0.0.1' and not '%s'", grt_version());
    assert_non_null(strstr(grt_last_error(), wanted));
    // Nor those of builds that exchange in other ways, whatever version they say.
    other.protocol = PEER_PROTOCOL + 5;
    test_log.expected += 1;
    assert_null(grt_comm_start(grt_comm_desc(.device = "ref:0", .transport = &table)));
    other.protocol = 0;
    assert_int_equal(grt_last_status(), GRT_CONFIG);
    snprintf(wanted, sizeof wanted, "its ranks exchange by version %u (gpurt %s), those of rank 0",
             PEER_PROTOCOL + 5, grt_version());
    assert_non_null(strstr(grt_last_error(), wanted));
    struct grt_comm *comm = grt_comm_start(grt_comm_desc(.device = "ref:0", .transport = &table));
    assert_non_null(comm);
    grt_comm_end(&comm, true);
}

// ---- who is on this machine ----

// Hosts of one name are told apart by their boot, containers by their space of process numbers.
static void machines(void **state) {
    struct peer one, other_one;
    char boot[64] = "", space[64] = "";
    (void)state;
    peer_describe(&one, "ref:0");
    peer_describe(&other_one, "ref:1");
    assert_string_equal(one.machine, other_one.machine);
    assert_int_equal(one.pid, getpid());
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    assert_true(file && fscanf(file, "%63s", boot) == 1);
    fclose(file);
    assert_true(readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0);
    assert_non_null(strstr(one.machine, boot));
    assert_non_null(strstr(one.machine, space));
}

// A process may call itself as it likes: what it does stands behind the last bracket.
static void names_of_processes(void **state) {
    (void)state;
    static const char *const names[] = {"plain", "a) T (b", "a) S (b", "Z)"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int ready[2], status;
        struct peer peer, stranger;
        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prctl(PR_SET_NAME, names[i]);
            peer_describe(&peer, "ref:0");
            (void)!write(ready[1], &peer, sizeof peer);
            for (;;) {
                pause();
            }
        }
        assert_int_equal(read(ready[0], &peer, sizeof peer), sizeof peer);
        assert_int_equal(peer.pid, pid);
        assert_int_equal(peer_look(&peer), PEER_RUNS);
        assert_false(peer_end_stopped(&peer));
        assert_int_equal(kill(pid, SIGSTOP), 0);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_int_equal(peer_look(&peer), PEER_STOPPED);
        // One that began at another time has only its number, and is left alone.
        assert_true(peer.began > 0);
        stranger = peer;
        stranger.began--;
        assert_int_equal(peer_look(&stranger), PEER_GONE);
        assert_false(peer_end_stopped(&stranger));
        assert_int_equal(peer_look(&peer), PEER_STOPPED);
        assert_true(peer_end_stopped(&peer));
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        assert_int_equal(peer_look(&peer), PEER_GONE);  // nobody has asked how it ended
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(peer_look(&peer), PEER_GONE);
        close(ready[0]);
        close(ready[1]);
    }
}

// ---- launchers ----

static void launchers(void **state) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID",
                                        "PMIX_RANK",
                                        "PMI_RANK"};
    struct grt_comm_place place;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsetenv(names[i]);
    }
    assert_false(grt_comm_launched(&place));
    assert_true(place.rank == 0 && place.ranks == 1);
    // A batch script of Slurm is alone, whatever the size of its job.
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_PROCID", "3", 1);
    setenv("SLURM_LOCALID", "1", 1);
    assert_false(grt_comm_launched(&place));
    assert_null(place.note);  // said by the first alone
    setenv("PMIX_RANK", "3", 1);
    assert_true(grt_comm_launched(&place));
    assert_true(place.rank == 3 && place.ranks == 4 && place.local == 1);
    setenv("SLURM_PROCID", "0", 1);
    assert_true(grt_comm_launched(&place) && !place.note);
    unsetenv("PMIX_RANK");
    assert_false(grt_comm_launched(&place));
    assert_true(strstr(place.note, "each of them trains alone") != NULL);
    setenv("PMI_RANK", "0", 1);
    assert_true(grt_comm_launched(&place));
    assert_true(strstr(place.note, "by PMI-2") != NULL);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    assert_true(grt_comm_launched(&place));
    assert_true(place.rank == 1 && place.ranks == 2 && place.local == 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsetenv(names[i]);
    }
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    assert_false(grt_comm_launched(NULL));
    // What is no number says nothing.
    static const char *const sizes[] = {"2x", "x", "", "99999999999"};
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        setenv("OMPI_COMM_WORLD_SIZE", sizes[i], 1);
        assert_false(grt_comm_launched(&place));
    }
    // Nor does a place behind the last.
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    assert_true(grt_comm_launched(&place) && place.rank == 1);
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    assert_false(grt_comm_launched(&place));
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(other_processes), TEST_CASE(versions),           TEST_CASE(machines),
    TEST_CASE(launchers),       TEST_CASE(names_of_processes),
};
TEST_SUITE(others, false, cases);
