// SPDX-License-Identifier: Apache-2.0
// What launchers say, and the plugin that speaks with their ranks.
#include "launch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN "libgpurt-mpi.so"

// A number of the environment; UINT32_MAX: there is none.
static uint32_t number(const char *name) {
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long value = text && *text ? strtoul(text, &end, 10) : 0;
    return end && *end == '\0' && value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

// Of processes that srun has started: whether they can meet.
static const char *srun_note(void) {
    uint32_t tasks = number("SLURM_STEP_NUM_TASKS");
    bool several = tasks != UINT32_MAX && tasks > 1, first = number("SLURM_PROCID") == 0;
    bool by_mpirun = number("OMPI_COMM_WORLD_SIZE") != UINT32_MAX;
    if (!several || !first || by_mpirun || number("PMIX_RANK") != UINT32_MAX) {
        return NULL;
    }
    return number("PMI_RANK") != UINT32_MAX
               ? "srun has started these ranks by PMI-2, and an Open MPI that has PMIx alone, such "
                 "as Debian's, cannot begin so: srun --mpi=pmix"
               : "srun has started several tasks that do not know each other, and each of them "
                 "trains alone: srun --mpi=pmix makes them ranks of one training";
}

bool grt_comm_launched(struct grt_comm_place *place) {
    // Slurm sets its variables for batch scripts too: only with one of a PMI the ranks can meet.
    static const struct {
        const char *ranks, *rank, *local, *besides;
    } launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", NULL},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "PMIX_RANK"},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "PMI_RANK"},
    };
    struct grt_comm_place found = {.ranks = 1};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && found.ranks == 1; i++) {
        uint32_t ranks = number(launchers[i].ranks), rank = number(launchers[i].rank);
        uint32_t local = number(launchers[i].local);
        bool met = !launchers[i].besides || number(launchers[i].besides) != UINT32_MAX;
        if (met && ranks != UINT32_MAX && ranks > 1 && rank < ranks) {
            found = (struct grt_comm_place){
                .rank = rank, .ranks = ranks, .local = local != UINT32_MAX ? local : rank};
        }
    }
    if (place) {
        *place = found;
        place->note = srun_note();
    }
    return found.ranks > 1;
}

const struct grt_transport *launch_transport(void) {
    // Found beside this library or in the folder gpurt there, by its run path. Global: Open MPI's
    // own components look for its symbols.
    void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        grt_fail(GRT_UNSUPPORTED,
                 "several ranks want Open MPI, and its plugin cannot be opened: %s. It is built "
                 "where Open MPI is (Debian: apt install libopenmpi-dev openmpi-bin) and runs "
                 "with the package libopenmpi3",
                 dlerror());
        return NULL;
    }
    union {
        void *object;
        grt_transport_fn *call;
    } symbol = {.object = dlsym(library, GRT_TRANSPORT_SYMBOL)};
    const struct grt_transport *transport = symbol.object ? symbol.call() : NULL;
    if (!transport || transport->version != GRT_TRANSPORT_VERSION) {
        grt_fail(GRT_UNSUPPORTED, PLUGIN " is of another version of gpurt");
        return NULL;
    }
    return transport;
}
