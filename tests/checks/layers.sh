#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The layer check finds what it is there for: breaches are put into a copy of the sources, one at a
# time, and each must be named with its file. Usage: layers.sh SOURCE_DIR BUILD_DIR

set -euo pipefail
source=${1:?usage: layers.sh SOURCE_DIR BUILD_DIR}
build=${2:?usage: layers.sh SOURCE_DIR BUILD_DIR}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tree"
(cd "$source" && git ls-files --cached --others --exclude-standard -z | grep -zvE '^ci/records/' |
    tar -c --null -T - --ignore-failed-read 2>/dev/null) | tar -x -C "$tmp/tree"
cd "$tmp/tree"
git init -q .
mkdir -p "$tmp/build/CMakeFiles"
cp -r "$build/CMakeFiles/gpurt_objects.dir" "$tmp/build/CMakeFiles/"

failed=0
judge() { ci/lint.sh --build "$tmp/build" layers >"$tmp/out" 2>&1; }
judge || { cat "$tmp/out"; echo "layers.sh: the tree itself is not clean" >&2; exit 1; }

# breach FILE LINE WORDS: LINE behind the last include of FILE, or its end; the check must name FILE
# and say WORDS.
breach() {
    cp "$1" "$tmp/kept"
    awk -v line="$2" '{ text[NR] = $0 } /^#include/ { last = NR }
        END { if (!last) last = NR; for (i = 1; i <= NR; i++) { print text[i]; if (i == last) print line } }' "$tmp/kept" >"$1"
    if judge || ! grep -qF "$1:" "$tmp/out" || ! grep -qF "$3" "$tmp/out"; then
        echo "layers.sh: not found: $1 with $2" >&2
        cat "$tmp/out" >&2
        failed=1
    fi
    cp "$tmp/kept" "$1"
}
# Upwards, by an include.
breach runtime/nn/layers/linear.c '#include "gpurt/../run/task_parts.h"' 'runtime/nn/layers/ must not include'
breach runtime/nn/layers/linear.c '#include "run/task_parts.h"' 'runtime/nn/layers/ must not include run/task_parts.h'
breach runtime/tuning/tunable.c '#include "ops/gemm/tunables.h"' 'must not include ops/gemm/tunables.h'
breach runtime/base/clock.c '#include "device/kernels.h"' 'must not include device/kernels.h'
# What is private to a folder, and the seam.
breach runtime/rl/rollout.c '#include "device/graph_parts.h"' 'must not include device/graph_parts.h'
breach runtime/nn/layer_ops.c '#include "device/internal.h"' 'must not include device/internal.h'
breach runtime/nn/layer_ops.c '#include "backends/backend.h"' 'must not include backends/backend.h'
breach apps/cli/stats.c '#include "bench/bench.h"' 'apps/cli/ must not include bench/bench.h'
breach tests/oracle/gemm.c '#include "gpurt/gemm.h"' 'tests/oracle/ must not include gpurt/gemm.h'
# Folders inside folders are their own layer.
breach runtime/ops/ops_nn.c '#include "gemm/case.h"' 'runtime/ops/ must not include gemm/case.h'
# Kernels.
breach shaders/core/fill.k '#include "gemm/lib/gemm.k"' 'shaders/core/ must not include gemm/lib/gemm.k'
breach cl/intel/probe_xmx8.k '#include "nvidia/lib/ptx.k"' 'cl/intel/ must not include nvidia/lib/ptx.k'
# A GPU API, and an outside library.
breach runtime/nn/layers/linear.c 'static VkBuffer hidden;' 'must not name VkBuffer'
breach runtime/ops/gemm/plain.c 'static cl_mem hidden;' 'must not name cl_mem'
breach apps/bench/gemm/bench_gemm.c '#include <CL/cl.h>' 'must not include CL/cl.h'
breach runtime/config/config.c '#include <hdf5.h>' 'must not include hdf5.h'

# Upwards through a public header: no include tells, the object does.
call_breach() { # FILE DEFINES USES OF
    local object=$tmp/build/CMakeFiles/gpurt_objects.dir/$1.o
    printf 'int %s(void);\nint %s(void) { return %s(); }\n' "$3" "$2" "$3" |
        "${CC:-cc}" -x c -c - -o "$object"
    if judge || ! grep -q "$1: must not use $3 of $4" "$tmp/out"; then
        echo "layers.sh: not found: a call of $3 in $1" >&2
        cat "$tmp/out" >&2
        failed=1
    fi
    cp "$build/CMakeFiles/gpurt_objects.dir/$1.o" "$object"
}
call_breach runtime/base/clock.c grt_seconds grt_config_set runtime/config/config.c
# The circle of devices, buffers and profiles.
call_breach runtime/tuning/profile.c grt_profile_create grt_dev_create runtime/device/
call_breach runtime/tuning/profile.c grt_profile_create grt_buf_create runtime/device/

# A folder that nobody has thought about.
mkdir runtime/new
echo 'int x;' >runtime/new/x.c
if judge || ! grep -q 'runtime/new/ has no row' "$tmp/out"; then
    echo "layers.sh: a folder without a row is not found" >&2
    failed=1
fi
rm -r runtime/new

# Checks of the text alone: lint.sh CHECK must name FILE when LINE stands in it.
text_breach() {
    cp "$2" "$tmp/kept"
    printf '%s\n' "$3" >>"$2"
    if ci/lint.sh "$1" >"$tmp/out" 2>&1 || ! grep -qF "$2:" "$tmp/out"; then
        echo "layers.sh: $1 does not find: $2 with $3" >&2
        failed=1
    fi
    cp "$tmp/kept" "$2"
}
long=$(printf 'word %.0s' {1..21})
text_breach width runtime/rl/rollout.c "// $long"
text_breach width shaders/env/uav.k "float x;    // $long"
text_breach width ci/build.sh "# $long"
text_breach width cl/cpu/lib/gemm_panel.k "FN uint wide(uint x) { return $(printf 'x + %.0s' {1..25})x; }"
text_breach width cl/dialect.h "#define WIDE(x) $(printf '(x) + %.0s' {1..15})(x)"
text_breach heads runtime/rl/rollout.c '    } params = {quads, desc->direction, desc->sigma};'
ci/lint.sh width heads >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; failed=1; }
[ "$failed" -eq 0 ] && echo "layers.sh: every breach is found"
