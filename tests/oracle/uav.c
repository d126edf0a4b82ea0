// SPDX-License-Identifier: Apache-2.0
#include "oracle/uav.h"

#include <stdlib.h>
#include <string.h>

// Stay, then from east against the clock; y grows to the north.
static const int way[9][2] = {{0, 0},  {1, 0},   {1, 1},  {0, 1}, {-1, 1},
                              {-1, 0}, {-1, -1}, {0, -1}, {1, -1}};

static int larger(int a, int b) {
    return abs(a) > abs(b) ? abs(a) : abs(b);
}

static int distance(const struct oracle_uav *u) {
    return larger(u->x - u->target_x, u->y - u->target_y);
}

static bool inside(int map, int x, int y) {
    return x >= 0 && y >= 0 && x < map && y < map;
}

// Another UAV in the air at a cell.
static bool held(const struct oracle_grid *g, int uavs, int x, int y, int but) {
    bool any = false;
    for (int i = 0; i < uavs; i++) {
        any = any || (i != but && !g->uav[i].landed && g->uav[i].x == x && g->uav[i].y == y);
    }
    return any;
}

void oracle_grid_step(struct oracle_grid *g, const struct oracle_uav_rules *r,
                      const uint32_t *moves, double *rewards, bool *flew) {
    struct oracle_grid before = *g;
    double own[ORACLE_UAVS] = {0}, sum = 0;
    for (int i = 0; i < r->uavs; i++) {
        const struct oracle_uav *was = &before.uav[i];
        struct oracle_uav *now = &g->uav[i];
        flew[i] = !was->landed;
        if (!flew[i]) {
            continue;
        }
        int x = was->x + way[moves[i]][0], y = was->y + way[moves[i]][1];
        bool goes =
            inside(r->map, x, y) && !before.obstacle[y][x] && !held(&before, r->uavs, x, y, i);
        for (int k = 0; k < i; k++) {
            const struct oracle_uav *other = &before.uav[k];
            goes = goes && (other->landed || other->x + way[moves[k]][0] != x ||
                            other->y + way[moves[k]][1] != y);
        }
        g->flown++;
        now->last = (int)moves[i];
        if (moves[i] != 0 && goes) {
            now->x = x;
            now->y = y;
        } else if (moves[i] != 0) {
            g->refused++;
            own[i] -= r->collision;
        }
        now->landed = now->x == now->target_x && now->y == now->target_y;
        own[i] += r->progress * (distance(was) - distance(now)) - r->time;
        own[i] += now->landed ? r->arrival : 0;
        sum += own[i];
    }
    for (int i = 0; i < r->uavs; i++) {
        rewards[i] = flew[i] ? own[i] + r->team * sum / r->uavs : 0;
    }
}

uint32_t oracle_grid_mask(const struct oracle_grid *g, const struct oracle_uav_rules *r, int uav) {
    const struct oracle_uav *u = &g->uav[uav];
    uint32_t mask = 1;
    for (int m = 1; m < 9 && !u->landed; m++) {
        int x = u->x + way[m][0], y = u->y + way[m][1];
        if (inside(r->map, x, y) && !g->obstacle[y][x] && !held(g, r->uavs, x, y, uav)) {
            mask |= 1u << m;
        }
    }
    return r->masked ? mask : 0x1ff;
}

static double scaled(const struct oracle_uav_rules *r, int x) {
    return 2.0 * x / (r->map - 1) - 1;
}

static double near(int cells) {
    return cells > 4 ? 1 : cells < -4 ? -1 : cells / 4.0;
}

void oracle_grid_observe(const struct oracle_grid *g, const struct oracle_uav_rules *r, int uav,
                         double *numbers) {
    const struct oracle_uav *u = &g->uav[uav];
    int half = r->window / 2, cells = r->window * r->window, i = 0;
    numbers[0] = scaled(r, u->x);
    numbers[1] = scaled(r, u->y);
    numbers[2] = (double)(u->target_x - u->x) / (r->map - 1);
    numbers[3] = (double)(u->target_y - u->y) / (r->map - 1);
    numbers[4] = near(u->target_x - u->x);
    numbers[5] = near(u->target_y - u->y);
    numbers += 6;
    for (int dy = -half; dy <= half; dy++) {
        for (int dx = -half; dx <= half; dx++, i++) {
            int x = u->x + dx, y = u->y + dy;
            bool in = inside(r->map, x, y);
            numbers[i] = in && g->obstacle[y][x];
            numbers[cells + i] = in && (dx || dy) && held(g, r->uavs, x, y, uav);
            numbers[2 * cells + i] = !in;
        }
    }
    for (int m = 0; m < 9; m++) {
        numbers[3 * cells + m] = u->last == m;
    }
}

void oracle_grid_whole(const struct oracle_grid *g, const struct oracle_uav_rules *r,
                       double *numbers) {
    for (int i = 0; i < r->uavs; i++, numbers += 5) {
        const struct oracle_uav *u = &g->uav[i];
        numbers[0] = scaled(r, u->x);
        numbers[1] = scaled(r, u->y);
        numbers[2] = scaled(r, u->target_x);
        numbers[3] = scaled(r, u->target_y);
        numbers[4] = u->landed;
    }
    for (int part = 0; part < 64; part++) {
        int cells = 0, obstacles = 0;
        for (int y = 0; y < r->map; y++) {
            for (int x = 0; x < r->map; x++) {
                int px = part % 8, py = part / 8;
                bool in = px * r->map / 8 <= x && x < (px + 1) * r->map / 8 &&
                          py * r->map / 8 <= y && y < (py + 1) * r->map / 8;
                cells += in;
                obstacles += in && g->obstacle[y][x];
            }
        }
        numbers[part] = cells > 0 ? (double)obstacles / cells : 0;
    }
}

bool oracle_grid_reaches(const struct oracle_grid *g, int map, int ax, int ay, int bx, int by) {
    static int queue[ORACLE_UAV_SIDE * ORACLE_UAV_SIDE];
    static bool seen[ORACLE_UAV_SIDE * ORACLE_UAV_SIDE];
    memset(seen, 0, sizeof seen);
    int first = 0, count = 0;
    queue[count++] = ay * map + ax;
    seen[ay * map + ax] = true;
    while (first < count) {
        int x = queue[first] % map, y = queue[first] / map;
        first++;
        if (x == bx && y == by) {
            return true;
        }
        for (int m = 1; m < 9; m++) {
            int nx = x + way[m][0], ny = y + way[m][1];
            if (inside(map, nx, ny) && !g->obstacle[ny][nx] && !seen[ny * map + nx]) {
                seen[ny * map + nx] = true;
                queue[count++] = ny * map + nx;
            }
        }
    }
    return false;
}
