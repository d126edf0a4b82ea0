// SPDX-License-Identifier: Apache-2.0
// The kinds of `gpurt train`: one file train_KIND.c and one row each.
#ifndef APPS_TRAIN_H
#define APPS_TRAIN_H

// X(name, help)
#define TRAIN_KINDS(X)                                                                             \
    X(supervised, "a network on samples with targets, of an HDF5 file, a table or arrays")         \
    X(classify, "the same for images and their classes, with the field's defaults")                \
    X(simclr, "a network on samples without targets, by telling views of them apart")              \
    X(es, "a policy for an environment, by evolution strategies: --env NAME")                      \
    X(standing, "the same for the four-legged robot that stands up, in phases")                    \
    X(ppo, "a policy for an environment, by proximal policy optimization: --env NAME")             \
    X(uav, "the same for UAVs that fly to their targets, with a central critic")

// argv[0] is the kind. Each returns an exit code.
#define X(name, help) int train_##name(int argc, char **argv);
TRAIN_KINDS(X)
#undef X

#endif
