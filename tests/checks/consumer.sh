#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs gpurt into a temporary folder and builds a program against it the two ways users do, with
# pkg-config and with find_package(gpurt); then moves the tree and runs both once more.
# Usage: consumer.sh BUILD_DIR C_COMPILER

set -euo pipefail
build=${1:?usage: consumer.sh BUILD_DIR C_COMPILER}
cc=${2:?usage: consumer.sh BUILD_DIR C_COMPILER}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cmake --install "$build" --prefix "$tmp/first" >/dev/null
# The tests and the inside of gpurt are nobody's business.
for path in bin/gpurt-test include/gpurt/log.h include/gpurt/cache.h include/gpurt/backend.h; do
    [ ! -e "$tmp/first/$path" ] || { echo "consumer.sh: $path was installed" >&2; exit 1; }
done

mkdir "$tmp/program"
cat >"$tmp/program/main.c" <<'END'
#include <gpurt/gpurt.h>
#include <gpurt/learner.h>
#include <stdio.h>
int main(void) {
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    struct grt_plan *plan = grt_plan_create(dev);
    struct grt_tensor *x = grt_plan_tensor(plan, grt_tensor_desc(.label = "x", .shape = {1000}));
    struct grt_graph *graph = grt_plan_alloc(plan) ? grt_graph_create(dev, "fill") : NULL;
    float last = 0;
    grt_op_fill(graph, x, 42.0f);
    bool ok = grt_graph_finish(graph) && grt_buf_read(x->range.buf, 999 * 4, &last, 4);
    printf("gpurt %s: %g\n", grt_version(), (double)last);
    grt_graph_destroy(&graph);
    grt_plan_destroy(&plan);
    grt_dev_destroy(&dev);
    return ok && last == 42.0f ? 0 : 1;
}
END
cat >"$tmp/program/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(program LANGUAGES C)
set(CMAKE_C_STANDARD 11)
find_package(gpurt 0.1 REQUIRED)
add_executable(program main.c)
target_link_libraries(program PRIVATE gpurt::gpurt)
END

pc=$(find "$tmp/first" -name gpurt.pc)
lib=$(cd "$(dirname "$pc")/.." && pwd)
read -ra flags < <(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs gpurt)
version=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --modversion gpurt)
# A library built with a sanitizer wants it in the program too.
read -ra sanitize <<<"$(sed -n 's/^GPURT_SANITIZE:BOOL=ON$/-fsanitize=address,undefined/p' \
    "$build/CMakeCache.txt")"
"$cc" -std=c11 -Wall -Wextra -pedantic -Werror "$tmp/program/main.c" -o "$tmp/with-pkg-config" \
    "${flags[@]}" "${sanitize[@]}"
if ! { cmake -G Ninja -S "$tmp/program" -B "$tmp/program/build" -DCMAKE_PREFIX_PATH="$tmp/first" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="${sanitize[*]}" &&
    cmake --build "$tmp/program/build"; } >"$tmp/log" 2>&1; then
    cat "$tmp/log"
    exit 1
fi

LD_LIBRARY_PATH=$lib "$tmp/with-pkg-config" | tee "$tmp/said"
"$tmp/program/build/program" >/dev/null
grep -qx "gpurt $version: 42" "$tmp/said"
"$tmp/first/bin/gpurt" --version | grep -q "$version"

"$here/libraries.sh" "$tmp/first/bin/gpurt"

# An installed tree can be moved.
mv "$tmp/first" "$tmp/second"
lib=${lib/"$tmp/first"/"$tmp/second"}
LD_LIBRARY_PATH=$lib "$tmp/with-pkg-config" >/dev/null
"$tmp/second/bin/gpurt" --version >/dev/null
PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags gpurt | grep -q "$tmp/second\|\.\./"

# What was installed goes, and what others have put beside it stays. The list is made here: that of
# the build tree is of whoever installed last.
touch "$tmp/second/bin/other" "$tmp/second/share/gpurt/mine"
find "$tmp/second" \( -type f -o -type l \) ! -name other ! -name mine >"$tmp/manifest"
[ -e "$tmp/second/share/doc/gpurt/LICENSE" ] || { echo "consumer.sh: no LICENSE was installed" >&2; exit 1; }
cmake -DMANIFEST="$tmp/manifest" -P "$here/../../ci/uninstall.cmake" >/dev/null
[ "$(cd "$tmp/second" && find . ! -type d | sort | xargs)" = "./bin/other ./share/gpurt/mine" ] &&
    [ ! -e "$tmp/second/include/gpurt" ] && [ ! -e "$tmp/second/share/gpurt/python" ] ||
    { echo "consumer.sh: uninstalling left, or took: $(find "$tmp/second")" >&2; exit 1; }
