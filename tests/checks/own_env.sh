#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Does what shaders/env/README.md says: puts its example into a copy of the sources, as one file and one row, builds, and
# trains it on every backend until it learns. Usage: own_env.sh SOURCE_DIR BUILD_DIR

set -euo pipefail
source=${1:?usage: own_env.sh SOURCE_DIR BUILD_DIR}
build=${2:?usage: own_env.sh SOURCE_DIR BUILD_DIR}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkdir "$tmp/tree"
for part in CMakeLists.txt CMakePresets.json apps backends cl runtime shaders; do
    cp -r "$source/$part" "$tmp/tree/"
done
awk '/^```/ { inside = $0 == "```c"; next } inside' "$source/shaders/env/README.md" \
    >"$tmp/tree/shaders/env/slider.k"
grep -q 'define ENV slider' "$tmp/tree/shaders/env/slider.k"
row=$(sed -n 's/^    \(X(slider)\)$/\1/p' "$source/shaders/env/README.md")
[ -n "$row" ]
sed -i "s/^\( *\)X(cartpole)\( *\\\\\)$/&\n\1$row \\\\/" "$tmp/tree/shaders/kernels.h"
grep -qF "$row" "$tmp/tree/shaders/kernels.h"

glslang=$(sed -n 's/^GPURT_GLSLANG_FOUND:FILEPATH=//p; s/^GPURT_GLSLANG:FILEPATH=\(..*\)/\1/p' \
    "$build/CMakeCache.txt" | head -n 1)
cmake -S "$tmp/tree" -B "$tmp/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 \
    -DGPURT_TESTS=OFF -DGPURT_GLSLANG="$glslang" >"$tmp/log" 2>&1 || { tail "$tmp/log"; exit 1; }
cmake --build "$tmp/build" >"$tmp/log" 2>&1 || { tail "$tmp/log"; exit 1; }

cd "$tmp"
for device in ref:0 opencl:0 vulkan:0; do
    "$tmp/build/gpurt" train es --env slider --step-size 0.1 --noise-std 0.1 --iterations 30 --num-envs 16 \
        --num-dirs 8 --until 0.7 --device "$device" --format jsonl >rows.jsonl
    tail -n 1 rows.jsonl
    # At first it is near the middle for a tenth of the time or less.
    awk -F'"policy_good_rate":' 'END { split($2, rest, /[,}]/); exit !(rest[1] > 0.7) }' rows.jsonl ||
        { echo "own_env.sh: slider did not learn on $device" >&2; exit 1; }
    "$tmp/build/gpurt" play slider --checkpoint slider-phase1.h5 --device "$device" -o slider.svg
    grep -q '</svg>' slider.svg
    rm -f slider-phase1.h5 slider.svg
done
