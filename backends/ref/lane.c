// SPDX-License-Identifier: Apache-2.0
// Runs the lanes of a workgroup.
//
// Without shared memory a kernel has no barrier, and its lanes run one after the other in a plain
// loop. With it, each lane is a coroutine on a stack of its own: a barrier switches back to the
// scheduler, which gives every other lane its turn before it comes back. Lanes run in order of their
// number, so a missing barrier shows as a wrong result in the same way on every run.
#include "lane.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "runtime/report.h"

#define STACK_SIZE ((size_t)256 << 10)  // enough for a robot's physics in a sanitizer's frames

struct turn {
    ucontext_t lane, scheduler;
    const struct grt_kernel_info *info;
    struct ref_lane *self;
    bool done;
};

void ref_lane_barrier(struct ref_lane *lane) {
    struct turn *turn = lane->turn;
    if (turn) {
        swapcontext(&turn->lane, &turn->scheduler);
    }
}

// makecontext passes ints: the pointer comes in two halves.
static void enter(unsigned high, unsigned low) {
    struct turn *turn = (struct turn *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);
    turn->info->lane(turn->self);
    turn->done = true;
    swapcontext(&turn->lane, &turn->scheduler);
}

struct workgroup {
    struct ref_lane *lanes;
    struct turn *turns;
    unsigned char *stacks;
    uint32_t size;
};

static void run_in_turns(struct workgroup *group, const struct grt_kernel_info *info) {
    for (uint32_t i = 0; i < group->size; i++) {
        struct turn *turn = &group->turns[i];
        turn->info = info;
        turn->self = &group->lanes[i];
        turn->done = false;
        group->lanes[i].turn = turn;
        getcontext(&turn->lane);
        turn->lane.uc_stack.ss_sp = group->stacks + i * STACK_SIZE;
        turn->lane.uc_stack.ss_size = STACK_SIZE;
        turn->lane.uc_link = NULL;
        uintptr_t address = (uintptr_t)turn;
        makecontext(&turn->lane, (void (*)(void))enter, 2, (unsigned)(address >> 16 >> 16),
                    (unsigned)address);
    }
    for (uint32_t left = group->size; left > 0;) {
        for (uint32_t i = 0; i < group->size; i++) {
            if (!group->turns[i].done) {
                swapcontext(&group->turns[i].scheduler, &group->turns[i].lane);
                left -= group->turns[i].done;
            }
        }
    }
}

static void run_in_order(struct workgroup *group, const struct grt_kernel_info *info) {
    for (uint32_t i = 0; i < group->size; i++) {
        info->lane(&group->lanes[i]);
    }
}

bool ref_lanes_run(const struct grt_cmd *cmd) {
    const struct grt_kernel_info *info = cmd->kernel->info;
    uint32_t size = cmd->kernel->spec_values[0];
    uint32_t shmem_size = info->shmem(cmd->kernel->spec_values);
    struct workgroup group = {.size = size, .lanes = calloc(size, sizeof *group.lanes)};
    unsigned char *shmem = shmem_size ? malloc(shmem_size) : NULL;
    bool ok = group.lanes && (!shmem_size || shmem);
    if (ok && shmem_size) {
        group.turns = calloc(size, sizeof *group.turns);
        group.stacks = malloc(size * STACK_SIZE);
        ok = group.turns && group.stacks;
    }
    uint64_t total = (uint64_t)cmd->groups[0] * cmd->groups[1] * cmd->groups[2];
    for (uint64_t g = 0; ok && g < total; g++) {
        for (uint32_t i = 0; i < size; i++) {
            struct ref_lane *lane = &group.lanes[i];
            lane->lid = i;
            lane->group[0] = (uint32_t)(g % cmd->groups[0]);
            lane->group[1] = (uint32_t)(g / cmd->groups[0] % cmd->groups[1]);
            lane->group[2] = (uint32_t)(g / cmd->groups[0] / cmd->groups[1]);
            memcpy(lane->groups, cmd->groups, sizeof lane->groups);
            lane->spec = cmd->kernel->spec_values;
            lane->params = cmd->params;
            lane->shmem = shmem;
            for (uint32_t b = 0; b < info->arg_count; b++) {
                const struct grt_range *range = &cmd->bindings[b];
                lane->bindings[b] = (char *)range->buf->host + range->offset;
            }
        }
        if (shmem_size) {
            memset(shmem, 0xff, shmem_size);  // NaN: what is read before it is written shows
            run_in_turns(&group, info);
        } else {
            run_in_order(&group, info);
        }
    }
    free(group.stacks);
    free(group.turns);
    free(group.lanes);
    free(shmem);
    return ok || grt_fail(GRT_NO_MEMORY, "no host memory to run kernel '%s'", info->name);
}
