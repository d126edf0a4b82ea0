// SPDX-License-Identifier: Apache-2.0
// The oracle of proximal policy optimization.
#ifndef ORACLE_PPO_H
#define ORACLE_PPO_H

#include "oracle.h"

// One row of all steps; value has one step more.
struct oracle_ppo_path {
    size_t steps;
    const double *reward, *value;
    const bool *last, *cut;
    double gamma, lambda;
};
// The discounted sum of temporal differences from step t to the end of its episode.
double oracle_ppo_advantage(const struct oracle_ppo_path *path, size_t t);

#define ORACLE_PPO_LAYERS 4
// Hidden layers with tanh, and an output layer; weights [to][from].
struct oracle_ppo_net {
    size_t depth, inputs, hidden, outputs;
    double *weight[ORACLE_PPO_LAYERS], *bias[ORACLE_PPO_LAYERS];
};
void oracle_ppo_net(const struct oracle_ppo_net *net, const double *x, double *y);
// Of an action, among those that the mask allows.
double oracle_ppo_probability(const double *logits, size_t width, uint32_t mask, size_t action);

struct oracle_ppo {
    size_t rows, width;
    const bool *in;                 // rows of the minibatch; NULL: all of them
    const double *own, *seen;       // what actor and critic see
    const uint32_t *mask, *action;  // action NULL: continuous
    const double *acts, *log_std;
    const double *logp, *advantage, *returns, *value;
    const bool *counts;
    double clip, value_clip, value_weight, entropy_weight;
    struct oracle_ppo_net actor, critic;
};
struct oracle_ppo_result {
    double loss, policy, value, entropy, kl, clipped;
};
struct oracle_ppo_result oracle_ppo(const struct oracle_ppo *batch);

#endif
