#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prepares a machine for gpurt: ci/setup.sh [GROUP...] installs the packages that are missing of
# these groups of ci/packages.txt, of all without GROUP, then sees to a GLSL compiler with
# cooperative matrices (ci/glslang.sh) and, of the group tests, to packages of Python that no
# distribution has (ci/python_tools.sh). Where there is no apt it prints the command to give. Run
# again, it finds everything in place and takes well under a second.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"

mapfile -t all < <(package_groups && package_groups lane)
for group in "$@"; do
    [[ " ${all[*]} " == *" $group "* ]] || die "no group '$group' in ci/packages.txt: ${all[*]}"
done
[ $# -gt 0 ] || set -- "${all[@]}"
groups_install "$@"
"$root/ci/glslang.sh"
[[ " $* " != *" tests "* ]] || "$root/ci/python_tools.sh"
