#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds gpurt and runs every test, the last word being ctest's own summary. Lint and the sanitizer
# build are ctest tests too, so this is the whole gate. Arguments go to ctest, e.g. -R vulkan.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/ci/build.sh" release
cd "$root"
# No test found would count as success otherwise.
ctest --preset release --parallel "$CMAKE_BUILD_PARALLEL_LEVEL" --output-on-failure \
    --no-tests=error "$@"
