// SPDX-License-Identifier: Apache-2.0
// `gpurt eval ENV`: how good a policy that `gpurt train ppo` trained is.
#ifndef APPS_EVAL_POLICY_H
#define APPS_EVAL_POLICY_H

// argv[0] is the verb, argv[1] the environment. Returns the exit code.
int eval_policy(int argc, char **argv);

#endif
