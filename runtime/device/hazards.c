// SPDX-License-Identifier: Apache-2.0
// Which command must wait for which. Walking the commands in order, each is compared by byte range
// with those since the last barrier. A conflict (one of the two writes) puts a barrier before it,
// and the walk goes on from there. So a command needs to be compared with its own window only, and
// barriers stand only where a true dependence is.
#include "graph_parts.h"

bool grt_ranges_overlap(const struct grt_range *a, const struct grt_range *b) {
    return a->buf == b->buf && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

bool grt_kernel_writes(const struct grt_kernel_info *info, uint32_t i) {
    return info->args[i].access != GRT_READ;
}

uint32_t grt_cmd_uses(const struct grt_cmd *cmd, struct grt_use *uses) {
    uint32_t count = 0;
    switch (cmd->kind) {
    case GRT_CMD_DISPATCH:
        for (uint32_t i = 0; i < cmd->kernel->info->arg_count; i++) {
            uses[count++] =
                (struct grt_use){cmd->bindings[i], grt_kernel_writes(cmd->kernel->info, i)};
        }
        break;
    case GRT_CMD_COPY:
        uses[count++] = (struct grt_use){cmd->dst, true};
        uses[count++] = (struct grt_use){cmd->src, false};
        break;
    case GRT_CMD_FILL:
        uses[count++] = (struct grt_use){cmd->dst, true};
        break;
    case GRT_CMD_PHASE:
        break;
    }
    return count;
}

// Kernels in PTX have variables of their own in device memory (cl/nvidia/lib/tma.k), which all
// launches share.
static bool share_variables(const struct grt_cmd *a, const struct grt_cmd *b) {
    return a->kind == GRT_CMD_DISPATCH && b->kind == GRT_CMD_DISPATCH && a->kernel == b->kernel &&
           a->kernel->info->imports;
}

static bool conflict(const struct grt_cmd *a, const struct grt_cmd *b) {
    if (share_variables(a, b)) {
        return true;
    }
    struct grt_use of_a[GRT_MAX_BINDINGS], of_b[GRT_MAX_BINDINGS];
    uint32_t count_a = grt_cmd_uses(a, of_a);
    uint32_t count_b = grt_cmd_uses(b, of_b);
    for (uint32_t i = 0; i < count_a; i++) {
        for (uint32_t k = 0; k < count_b; k++) {
            if ((of_a[i].write || of_b[k].write) &&
                grt_ranges_overlap(&of_a[i].range, &of_b[k].range)) {
                return true;
            }
        }
    }
    return false;
}

uint32_t grt_find_hazards(struct grt_cmd *cmds, uint32_t count) {
    uint32_t barriers = 0;
    uint32_t window = 0;  // first command since the last barrier
    for (uint32_t i = 0; i < count; i++) {
        struct grt_cmd *cmd = &cmds[i];
        cmd->sync = -1;
        if (cmd->kind == GRT_CMD_PHASE) {  // a barrier in itself
            window = i + 1;
            continue;
        }
        for (uint32_t k = i; k > window && cmd->sync < 0; k--) {
            if (conflict(cmd, &cmds[k - 1])) {
                cmd->sync = (int32_t)(k - 1);
            }
        }
        if (cmd->sync >= 0) {
            barriers++;
            window = i;
        }
    }
    return barriers;
}
