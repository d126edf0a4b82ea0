// SPDX-License-Identifier: Apache-2.0
// Runs the lanes of a workgroup.
//
// Without shared memory a kernel has no barrier, and its lanes run one after the other in a plain
// loop. With it, each lane is a coroutine on a stack of its own: a barrier switches back to the
// scheduler, which gives every other lane its turn before it comes back. Lanes run in order of
// their number, so a missing barrier shows as a wrong result in the same way on every run.
//
// A stack is entered once, by setcontext, and from then on by jumps: swapcontext asks the system
// for the signal mask at every switch, and took nine tenths of a PPO update's time. The coroutine
// of a lane stays at the end of its kernel, and the lane of that number of the next workgroup goes
// on there.
#undef _FORTIFY_SOURCE  // its longjmp refuses to change stacks
#include "lane.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

// Enough for a robot's physics in a sanitizer's frames. Three lines of cache more than a power of
// two: the lanes' frames are not all in the same set.
#define STACK_SIZE (((size_t)256 << 10) + 192)

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
// The compiler's own jumps, in functions that it does not look at: at any other jump the sanitizer
// marks the whole stack anew.
#define UNSEEN __attribute__((noinline, no_sanitize_address))
typedef void *jump_place[5];
#define SAVE(at) __builtin_setjmp(at)
static UNSEEN void jump(jump_place at) {
    __builtin_longjmp(at, 1);
}
#else
#define UNSEEN
typedef jmp_buf jump_place;
#define SAVE(at) _setjmp(at)
static void jump(jump_place at) {
    _longjmp(at, 1);
}
#define __sanitizer_start_switch_fiber(save, stack, size) ((void)0)
#define __sanitizer_finish_switch_fiber(save, stack, size) ((void)0)
#endif

// Where a coroutine goes on, or its scheduler.
struct place {
    ucontext_t begin;
    jump_place at;
    bool begun;
    const void *stack;  // for AddressSanitizer, which is told which one comes next
    size_t stack_size;
};

struct ref_turn {
    struct place lane, scheduler;
    const struct grt_kernel_info *info;
    struct ref_lane *self;
    bool done;
};

// Behind a change of stacks: where it came from.
static void arrive(struct place *from) {
    __sanitizer_finish_switch_fiber(NULL, &from->stack, &from->stack_size);
    (void)from;
}

static UNSEEN void change(struct place *from, struct place *to) {
    if (SAVE(from->at) == 0) {
        __sanitizer_start_switch_fiber(NULL, to->stack, to->stack_size);
        if (to->begun) {
            jump(to->at);
        }
        to->begun = true;
        setcontext(&to->begin);
    }
    arrive(to);
}

static void barrier(struct ref_lane *lane) {
    struct ref_turn *turn = lane->turn;
    if (turn) {
        change(&turn->lane, &turn->scheduler);
    }
}

// makecontext passes ints: the pointer comes in two halves.
static void enter(unsigned high, unsigned low) {
    struct ref_turn *turn = (struct ref_turn *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);
    arrive(&turn->scheduler);
    for (;;) {
        turn->info->lane(turn->self);
        turn->done = true;
        change(&turn->lane, &turn->scheduler);
    }
}

static void make_turn(struct ref_turn *turn, unsigned char *stack) {
    getcontext(&turn->lane.begin);
    turn->lane.begin.uc_stack.ss_sp = stack;
    turn->lane.begin.uc_stack.ss_size = STACK_SIZE;
    turn->lane.begin.uc_link = NULL;
    turn->lane.stack = stack;
    turn->lane.stack_size = STACK_SIZE;
    turn->scheduler.begun = true;
    uintptr_t address = (uintptr_t)turn;
    makecontext(&turn->lane.begin, (void (*)(void))enter, 2, (unsigned)(address >> 16 >> 16),
                (unsigned)address);
}

static void run_in_turns(struct ref_group *group, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) {
        group->turns[i].done = false;
    }
    for (uint32_t left = size; left > 0;) {
        for (uint32_t i = 0; i < size; i++) {
            if (!group->turns[i].done) {
                change(&group->turns[i].scheduler, &group->turns[i].lane);
                left -= group->turns[i].done;
            }
        }
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
        for (uint32_t i = 0; i < size; i++) {
            make_turn(&turns[i], stacks + i * STACK_SIZE);
        }
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
    const uint32_t *n = cmd->groups;
    uint64_t total = (uint64_t)n[0] * n[1] * n[2];
    for (uint32_t b = 0; b < info->arg_count; b++) {
        const struct grt_range *range = &cmd->bindings[b];
        group->bindings[b] = (char *)range->buf->host + range->offset;
    }
    for (uint32_t i = 0; i < size; i++) {
        group->lanes[i] = (struct ref_lane){.lid = i,
                                            .groups = {n[0], n[1], n[2]},
                                            .spec = cmd->kernel->spec_values,
                                            .bindings = group->bindings,
                                            .params = cmd->params,
                                            .shmem = group->shmem,
                                            .barrier = barrier};
        if (shmem_size) {
            group->lanes[i].turn = &group->turns[i];
            group->turns[i].info = info;
            group->turns[i].self = &group->lanes[i];
        }
    }
    for (uint64_t g = 0; g < total; g++) {
        const uint32_t x = (uint32_t)(g % n[0]), y = (uint32_t)(g / n[0] % n[1]);
        const uint32_t z = (uint32_t)(g / n[0] / n[1]);
        for (uint32_t i = 0; i < size; i++) {
            uint32_t *at = group->lanes[i].group;
            at[0] = x;
            at[1] = y;
            at[2] = z;
        }
        if (shmem_size) {
            memset(group->shmem, 0xff, shmem_size);  // NaN: what is read before it is written shows
            run_in_turns(group, size);
            continue;
        }
        for (uint32_t i = 0; i < size; i++) {
            info->lane(&group->lanes[i]);
        }
    }
}
