#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds env_operations.cc and runs it: what environments state about their operations is what is
# counted, and a wrong statement is found. Usage: env_operations.sh SOURCE_DIR

set -euo pipefail
source=${1:?usage: env_operations.sh SOURCE_DIR}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
build=("${CXX:-c++}" -std=c++17 -O1 -Wall -Wno-unused -I "$source/shaders")
"${build[@]}" -o "$tmp/count" "$source/tests/checks/env_operations.cc"
"$tmp/count"
"${build[@]}" -DSTATED_TOO_MUCH=1 -o "$tmp/wrong" "$source/tests/checks/env_operations.cc"
! "$tmp/wrong" >/dev/null || { echo "env_operations.sh: a wrong statement was not found" >&2; exit 1; }
