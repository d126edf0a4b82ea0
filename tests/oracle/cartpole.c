// SPDX-License-Identifier: Apache-2.0
// Cart-pole: Barto, Sutton, Anderson, "Neuronlike adaptive elements that can solve difficult
// learning control problems", 1983, frictionless, as in Gymnasium's CartPole-v1 with Euler steps.
#include "oracle.h"

#include <math.h>

struct oracle_cartpole oracle_cartpole_step(struct oracle_cartpole s, bool right) {
    const double gravity = 9.8;
    const double mass_cart = 1.0;
    const double mass_pole = 0.1;
    const double length = 0.5;  // half the pole
    const double tau = 0.02;
    const double total = mass_cart + mass_pole;
    double force = right ? 10.0 : -10.0;
    double sine = sin(s.theta);
    double cosine = cos(s.theta);
    double temp = (force + mass_pole * length * s.theta_dot * s.theta_dot * sine) / total;
    double theta_acc = (gravity * sine - cosine * temp) /
                       (length * (4.0 / 3.0 - mass_pole * cosine * cosine / total));
    double x_acc = temp - mass_pole * length * theta_acc * cosine / total;
    struct oracle_cartpole next = {
        .x = s.x + tau * s.x_dot,
        .x_dot = s.x_dot + tau * x_acc,
        .theta = s.theta + tau * s.theta_dot,
        .theta_dot = s.theta_dot + tau * theta_acc,
    };
    return next;
}
