#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prepares a Debian machine for gpurt: installs the packages of ci/packages.txt that are missing,
# then sees to a GLSL compiler with cooperative matrices (ci/glslang.sh; --no-glslang leaves that
# out). Run again, it finds everything in place and takes well under a second.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

glslang=1
for arg in "$@"; do
    case $arg in
    --no-glslang) glslang=0 ;;
    *) die "unknown argument '$arg'; usage: ci/setup.sh [--no-glslang]" ;;
    esac
done

# shellcheck disable=SC2119  # no group: all of them
mapfile -t packages < <(packages_of)
packages_install "${packages[@]}"
[ "$glslang" -eq 0 ] || "$root/ci/glslang.sh"
