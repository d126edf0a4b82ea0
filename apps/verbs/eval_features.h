// SPDX-License-Identifier: Apache-2.0
// `gpurt eval knn` and `gpurt eval linear`.
#ifndef APPS_EVAL_FEATURES_H
#define APPS_EVAL_FEATURES_H

#include <stdbool.h>

// Whether a word names one of them.
bool eval_features_knows(const char *word);
// argv[0] is the verb, argv[1] such a word. Returns the exit code.
int eval_features(int argc, char **argv);

#endif
