// SPDX-License-Identifier: Apache-2.0
// UAVs on a grid, in plain C and double precision, from the rules at the head of shaders/env/uav.k;
// it shares no code with it.
#ifndef ORACLE_UAV_H
#define ORACLE_UAV_H

#include <stdbool.h>
#include <stdint.h>

#define ORACLE_UAV_SIDE 128
#define ORACLE_UAVS 64

struct oracle_uav_rules {
    int map, uavs, window;
    bool masked;
    double progress, arrival, collision, time, team;
};

struct oracle_uav {
    int x, y, target_x, target_y, last;
    bool landed;
};

struct oracle_grid {
    bool obstacle[ORACLE_UAV_SIDE][ORACLE_UAV_SIDE];  // [y][x]
    struct oracle_uav uav[ORACLE_UAVS];
    int refused, flown;
};

// One step; rewards of those that flew, and who did.
void oracle_grid_step(struct oracle_grid *g, const struct oracle_uav_rules *r,
                      const uint32_t *moves, double *rewards, bool *flew);
uint32_t oracle_grid_mask(const struct oracle_grid *g, const struct oracle_uav_rules *r, int uav);
// All numbers of an observation, and of the whole.
void oracle_grid_observe(const struct oracle_grid *g, const struct oracle_uav_rules *r, int uav,
                         double *numbers);
void oracle_grid_whole(const struct oracle_grid *g, const struct oracle_uav_rules *r,
                       double *numbers);
// Whether b can be reached from a over free cells, breadth first.
bool oracle_grid_reaches(const struct oracle_grid *g, int map, int ax, int ay, int bx, int by);

#endif
