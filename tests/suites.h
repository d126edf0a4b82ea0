// SPDX-License-Identifier: Apache-2.0
// Every suite, in the order they run: X(name) is the file suite_name.c, which defines suite_name.
// The build reads this list too (tests/CMakeLists.txt): H suites run once, D suites on every device.
#define TEST_SUITES(X)                                                                             \
    X(oracle, H)                                                                                   \
    X(status, H)                                                                                   \
    X(choose, H)                                                                                   \
    X(cache, H)                                                                                    \
    X(probe, H)                                                                                    \
    X(profile, H)                                                                                  \
    X(shipped, H)                                                                                  \
    X(buffer, D)                                                                                   \
    X(kernel, D)                                                                                   \
    X(record, D)                                                                                   \
    X(graph, D)                                                                                    \
    X(schedule, D)                                                                                 \
    X(plan, D)                                                                                     \
    X(tuned, D)                                                                                    \
    X(convert, D)                                                                                  \
    X(map, D)                                                                                      \
    X(reduce, D)                                                                                   \
    X(shape, D)                                                                                    \
    X(gemm, D)                                                                                     \
    X(quarantine, D)                                                                               \
    X(nn, D)                                                                                       \
    X(colsum, D)                                                                                   \
    X(random, D)                                                                                   \
    X(chunk, D)                                                                                    \
    X(cartpole, D)                                                                                 \
    X(big, D)
