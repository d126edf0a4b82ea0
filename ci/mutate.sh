#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Would a test notice? Plants small mistakes in C sources and kernels, one at a time, and runs the
# tests that reach each: ci/mutate.sh [--area NAME] [--count N] [--seed S] [--most SECONDS]
# [--slow SECONDS] [--jobs N] [--tests PATTERN] [--again FILE] [--output FILE] [--list].
#
#   --area NAME    base, comm, data, device, opencl, vulkan, ref, ops, nn, learn, rl, es, run,
#                  store, config, tuning, source, apps, kernels; several with commas (default: all)
#   --count N      mistakes of each seed (default: 40)
#   --seed S       which ones; several with commas are planted at once (default: 1)
#   --most SECONDS of the cores for the tests of each mistake, the quickest first (default: 600)
#   --slow SECONDS of the cores that a test may take, or it is left out (default: 900)
#   --jobs N       tests at once (default: 2)
#   --tests PATTERN of names: of the area's tests these only (default: all)
#   --again FILE   what an earlier run's output has as not noticed, in place of --count and --seed
#   --output FILE  a JSON object for each mistake
#   --list         show the mistakes and end
#
# All are built at once into a copy of the tree under build/mutate (or the folder that
# GPURT_MUTATE_WORK names, so that two can run at once), and GPURT_MUTANT=N switches one
# on; a kernel is built anew for each. ci/mutate.py has the rules. Not part of the gate.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
    sed -n '4,23s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
fi
"$root/ci/setup.sh" build drivers tests mutate
cd "$root"
# The system's Python has the C parser's binding.
exec /usr/bin/python3 ci/mutate.py --glslang "$(tool_glslang)" "$@"
