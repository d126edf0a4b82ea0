// SPDX-License-Identifier: Apache-2.0
// Runs the lanes of a workgroup.
//
// Without shared memory a kernel has no barrier, and its lanes run one after the other in a plain
// loop. With it, each lane is a coroutine on a stack of its own: a barrier switches back to the
// scheduler, which gives every other lane its turn before it comes back. Lanes run in order of
// their number, so a missing barrier shows as a wrong result in the same way on every run.
#include "lane.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_SIZE ((size_t)256 << 10)  // enough for a robot's physics in a sanitizer's frames

struct ref_turn {
    ucontext_t lane, scheduler;
    const struct grt_kernel_info *info;
    struct ref_lane *self;
    bool done;
};

static void barrier(struct ref_lane *lane) {
    struct ref_turn *turn = lane->turn;
    if (turn) {
        swapcontext(&turn->lane, &turn->scheduler);
    }
}

// makecontext passes ints: the pointer comes in two halves.
static void enter(unsigned high, unsigned low) {
    struct ref_turn *turn = (struct ref_turn *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);
    turn->info->lane(turn->self);
    turn->done = true;
    swapcontext(&turn->lane, &turn->scheduler);
}

static void run_in_turns(struct ref_group *group, uint32_t size,
                         const struct grt_kernel_info *info) {
    for (uint32_t i = 0; i < size; i++) {
        struct ref_turn *turn = &group->turns[i];
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
    for (uint32_t left = size; left > 0;) {
        for (uint32_t i = 0; i < size; i++) {
            if (!group->turns[i].done) {
                swapcontext(&group->turns[i].scheduler, &group->turns[i].lane);
                left -= group->turns[i].done;
            }
        }
    }
}

static void run_in_order(struct ref_group *group, uint32_t size,
                         const struct grt_kernel_info *info) {
    for (uint32_t i = 0; i < size; i++) {
        group->lanes[i].turn = NULL;
        info->lane(&group->lanes[i]);
    }
}

bool ref_group_fit(struct ref_group *group, const struct grt_cmd *cmd) {
    uint32_t size = cmd->kernel->spec_values[0];
    uint32_t shmem_size = cmd->kernel->info->shmem(cmd->kernel->info, cmd->kernel->spec_values);
    if (size > group->lane_capacity) {
        struct ref_lane *lanes = calloc(size, sizeof *lanes);
        if (!lanes) {
            return false;
        }
        free(group->lanes);
        group->lanes = lanes;
        group->lane_capacity = size;
    }
    if (shmem_size > 0 && size > group->turn_capacity) {
        struct ref_turn *turns = calloc(size, sizeof *turns);
        unsigned char *stacks = malloc(size * STACK_SIZE);
        if (!turns || !stacks) {
            free(turns);
            free(stacks);
            return false;
        }
        free(group->turns);
        free(group->stacks);
        group->turns = turns;
        group->stacks = stacks;
        group->turn_capacity = size;
    }
    if (shmem_size > group->shmem_capacity) {
        unsigned char *shmem = malloc(shmem_size);
        if (!shmem) {
            return false;
        }
        free(group->shmem);
        group->shmem = shmem;
        group->shmem_capacity = shmem_size;
    }
    return true;
}

void ref_group_finish(struct ref_group *group) {
    free(group->stacks);
    free(group->turns);
    free(group->lanes);
    free(group->shmem);
    *group = (struct ref_group){0};
}

void ref_lanes_run(struct ref_group *group, const struct grt_cmd *cmd) {
    const struct grt_kernel_info *info = cmd->kernel->info;
    uint32_t size = cmd->kernel->spec_values[0];
    uint32_t shmem_size = info->shmem(info, cmd->kernel->spec_values);
    uint64_t total = (uint64_t)cmd->groups[0] * cmd->groups[1] * cmd->groups[2];
    for (uint32_t b = 0; b < info->arg_count; b++) {
        const struct grt_range *range = &cmd->bindings[b];
        group->bindings[b] = (char *)range->buf->host + range->offset;
    }
    for (uint64_t g = 0; g < total; g++) {
        for (uint32_t i = 0; i < size; i++) {
            struct ref_lane *lane = &group->lanes[i];
            lane->lid = i;
            lane->group[0] = (uint32_t)(g % cmd->groups[0]);
            lane->group[1] = (uint32_t)(g / cmd->groups[0] % cmd->groups[1]);
            lane->group[2] = (uint32_t)(g / cmd->groups[0] / cmd->groups[1]);
            memcpy(lane->groups, cmd->groups, sizeof lane->groups);
            lane->spec = cmd->kernel->spec_values;
            lane->params = cmd->params;
            lane->shmem = group->shmem;
            lane->bindings = group->bindings;
            lane->barrier = barrier;
        }
        if (shmem_size) {
            memset(group->shmem, 0xff, shmem_size);  // NaN: what is read before it is written shows
            run_in_turns(group, size, info);
        } else {
            run_in_order(group, size, info);
        }
    }
}
