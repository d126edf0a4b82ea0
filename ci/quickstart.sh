#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to numbers in one command: installs what building and running need, builds
# gpurt without its tests, shows the devices of this machine, then runs the benchmark. Arguments go
# to `gpurt bench`. All but the benchmark's report goes to stderr, so that report can be redirected
# or piped.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/ci/build.sh" --no-tests release >&2
"$root/build/release/gpurt" devices >&2
"$root/build/release/gpurt" bench "$@"
