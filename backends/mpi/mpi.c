// SPDX-License-Identifier: Apache-2.0
// libgpurt-mpi.so: ranks meet by Open MPI. gpurt opens it only under mpirun or srun, so that
// nothing else of it depends on MPI.
//
// Every exchange is begun and then tested: a signal or a lost rank ends no wait inside of MPI.
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpurt/transport.h"

static MPI_Request request = MPI_REQUEST_NULL;
static bool own;  // MPI was begun here, and ends here

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
    if ((own && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) ||
        MPI_Comm_rank(MPI_COMM_WORLD, &number) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &count) != MPI_SUCCESS) {
        snprintf(why, GRT_TRANSPORT_WHY, "MPI_Init failed");
        return false;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    *rank = (uint32_t)number;
    *ranks = (uint32_t)count;
    return true;
}

static bool gather(void *self, void *all, size_t each) {
    (void)self;
    return each <= INT_MAX && MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)each,
                                             MPI_BYTE, MPI_COMM_WORLD, &request) == MPI_SUCCESS;
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    (void)self;
    return each <= INT_MAX && MPI_Ialltoall(out, (int)each, MPI_BYTE, in, (int)each, MPI_BYTE,
                                            MPI_COMM_WORLD, &request) == MPI_SUCCESS;
}

static bool test(void *self, bool *over) {
    int flag = 0;
    (void)self;
    bool good = MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    *over = flag != 0;
    return good;
}

static void end(void *self) {
    (void)self;
    if (own) {
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
    };
    return &table;
}
