// SPDX-License-Identifier: Apache-2.0
// libgpurt-mpi.so: ranks meet by Open MPI. gpurt opens it only under mpirun or srun, so that
// nothing else of it depends on MPI.
//
// Every exchange is begun and then tested: a signal or a lost rank ends no wait inside of MPI.
//
// An MPI with ULFM, as Open MPI from 5 on has it with `mpirun --with-ft ulfm`, outlives its ranks.
// Its calls are looked up when MPI has begun: a plugin that was built with Open MPI 4 finds those
// of the Open MPI 5 that it runs with, whose library has the same name.
#define _GNU_SOURCE  // RTLD_DEFAULT
#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpurt/transport.h"

#define LEAVE_SECONDS 1.0

static MPI_Request request = MPI_REQUEST_NULL;
static MPI_Comm comm;  // the ranks that are left
static bool own;       // MPI was begun here, and ends here
static bool outlives;  // ranks have agreed, or one was lost, and MPI went on

// ---- ULFM ----

static struct {
    int (*revoke)(MPI_Comm comm);
    int (*iagree)(MPI_Comm comm, int *flag, MPI_Request *request);
    int (*shrink)(MPI_Comm comm, MPI_Comm *left);
    int (*acknowledge)(MPI_Comm comm);
    bool on;
} ulfm;
static int agreed;         // flag of the agreement that is under way
static bool *agreed_into;  // NULL: none is

static bool find(const char *name, void *call) {
    void *found = dlsym(RTLD_DEFAULT, name);
    *(void **)call = found;
    return found != NULL;
}

// What mpirun was told: without --with-ft the calls are there, and mpirun ends all ranks.
static bool told_to_outlive(void) {
    int given = 0, index = 0, count = 0;
    MPI_T_cvar_handle handle;
    union {
        bool flag;
        char room[64];
    } value = {.room = {0}};
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &given) != MPI_SUCCESS) {
        return false;
    }
    bool on = MPI_T_cvar_get_index("mpi_ft_enable", &index) == MPI_SUCCESS &&
              MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS;
    if (on) {
        on = MPI_T_cvar_read(handle, &value) == MPI_SUCCESS && value.flag;
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    return on;
}

static bool leave(void *self) {
    (void)self;
    if (!ulfm.on || ulfm.revoke(comm) != MPI_SUCCESS) {
        return false;
    }
    // What was begun has memory of who called: it comes to an end before that is used again.
    double begun = MPI_Wtime();
    int over = 0;
    while (request != MPI_REQUEST_NULL && !over && MPI_Wtime() - begun < LEAVE_SECONDS &&
           MPI_Test(&request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
        sched_yield();
    }
    request = MPI_REQUEST_NULL;
    agreed_into = NULL;
    outlives = true;
    return true;
}

static bool agree(void *self, bool *all) {
    (void)self;
    agreed = *all;
    if (!ulfm.on || ulfm.iagree(comm, &agreed, &request) != MPI_SUCCESS) {
        return false;
    }
    agreed_into = all;
    outlives = true;
    return true;
}

static bool shrink(void *self, uint32_t *rank, uint32_t *ranks) {
    MPI_Comm left;
    int number = 0, count = 0;
    (void)self;
    if (!ulfm.on || ulfm.acknowledge(comm) != MPI_SUCCESS ||
        ulfm.shrink(comm, &left) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(left, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(left, &number) != MPI_SUCCESS || MPI_Comm_size(left, &count) != MPI_SUCCESS) {
        return false;
    }
    comm = left;
    *rank = (uint32_t)number;
    *ranks = (uint32_t)count;
    return true;
}

// ---- every MPI ----

static bool start(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    int given = 0, number = 0, count = 0, begun = 0, over = 0;
    (void)self;
    // MPI looks at the machine by hwloc, whose plugins would open every GPU driver once more.
    setenv("HWLOC_COMPONENTS", "-opencl,-cuda,-nvml,-rsmi,-gl,-levelzero", 0);
    if (MPI_Initialized(&begun) != MPI_SUCCESS || MPI_Finalized(&over) != MPI_SUCCESS || over) {
        snprintf(why, GRT_TRANSPORT_WHY, "this process has ended MPI, which begins only once");
        return false;
    }
    own = !begun;
    comm = MPI_COMM_WORLD;
    if ((own && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) ||
        MPI_Comm_rank(comm, &number) != MPI_SUCCESS || MPI_Comm_size(comm, &count) != MPI_SUCCESS) {
        snprintf(why, GRT_TRANSPORT_WHY, "MPI_Init failed");
        return false;
    }
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    ulfm.on = find("MPIX_Comm_revoke", &ulfm.revoke) && find("MPIX_Comm_iagree", &ulfm.iagree) &&
              find("MPIX_Comm_shrink", &ulfm.shrink) &&
              find("MPIX_Comm_failure_ack", &ulfm.acknowledge) && told_to_outlive();
    *rank = (uint32_t)number;
    *ranks = (uint32_t)count;
    return true;
}

static bool gather(void *self, void *all, size_t each) {
    (void)self;
    return each <= INT_MAX && MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)each,
                                             MPI_BYTE, comm, &request) == MPI_SUCCESS;
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    (void)self;
    return each <= INT_MAX && MPI_Ialltoall(out, (int)each, MPI_BYTE, in, (int)each, MPI_BYTE, comm,
                                            &request) == MPI_SUCCESS;
}

static bool test(void *self, bool *over) {
    int flag = 0;
    (void)self;
    bool good = MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    *over = flag != 0;
    if (*over && agreed_into) {
        // It tells of ranks that are gone by an error, and has come to its end all the same.
        *agreed_into = agreed != 0;
        agreed_into = NULL;
        good = true;
    }
    return good;
}

// Where a rank is gone Open MPI 5.0 may wait for ever in MPI_Finalize, also where it ends in there.
// Ranks that have agreed wait for nobody; mpirun --with-ft takes the end of the process as it is.
static void end(void *self) {
    (void)self;
    if (own && !outlives) {
        MPI_Finalize();
    }
}

__attribute__((visibility("default"))) const struct grt_transport *grt_transport(void);

const struct grt_transport *grt_transport(void) {
    static const struct grt_transport table = {
        .version = GRT_TRANSPORT_VERSION,
        .name = "Open MPI",
        .start = start,
        .gather = gather,
        .spread = spread,
        .test = test,
        .end = end,
        .leave = leave,
        .agree = agree,
        .shrink = shrink,
    };
    return &table;
}
