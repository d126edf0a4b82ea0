// SPDX-License-Identifier: Apache-2.0
// A program that has begun MPI itself and then trains with ranks of gpurt: they are those of MPI,
// and MPI goes on when they have ended. Run by mpirun; tests/cli/ranks/es.sh does.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "gpurt/comm.h"

static int failed;

static void check(bool good, const char *what) {
    if (!good) {
        fprintf(stderr, "ranks_begun: wrong: %s\n", what);
        failed = 1;
    }
}

// A sum over all ranks, of 1, 2, ...
static void meet(int rank, int ranks, bool messages) {
    float number = (float)(rank + 1);
    int over = 1, all = 0, wanted = ranks * (ranks + 1) / 2;
    struct grt_comm *comm = grt_comm_start(grt_comm_desc(.device = "none", .messages = messages));
    check(comm != NULL, grt_last_error());
    check(grt_comm_rank(comm) == (uint32_t)rank && grt_comm_ranks(comm) == (uint32_t)ranks,
          "the ranks are not those of MPI");
    check(grt_comm_sum(comm, &number, &number, 1), "no sum");
    check(number == (float)wanted, "another sum");
    grt_comm_end(&comm, true);
    check(MPI_Finalized(&over) == MPI_SUCCESS && !over, "MPI was ended");
    check(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS &&
              all == ranks * (ranks - 1) / 2,
          "MPI does not go on");
}

int main(int argc, char **argv) {
    int rank = 0, ranks = 0;
    check(MPI_Init(&argc, &argv) == MPI_SUCCESS &&
              MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS &&
              MPI_Comm_size(MPI_COMM_WORLD, &ranks) == MPI_SUCCESS,
          "MPI does not begin");
    check(ranks > 1, "mpirun is wanted");
    meet(rank, ranks, false);
    meet(rank, ranks, true);
    MPI_Finalize();
    struct grt_comm *late = grt_comm_start(grt_comm_desc(.device = "none"));
    check(!late && strstr(grt_last_error(), "has ended MPI") != NULL, "ranks behind MPI's end");
    printf("rank %d of %d: %s\n", rank, ranks, failed ? "wrong" : "well");
    return failed;
}
