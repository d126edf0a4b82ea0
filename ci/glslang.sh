#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gets a GLSL compiler that knows GL_KHR_cooperative_matrix and GL_NV_cooperative_matrix2. The first
# of these that compiles a small matrix shader wins:
#
#   1. build/tools/glslang/bin/glslang           made here earlier
#   2. glslangValidator or glslang on PATH       Debian 13 and newer; nothing to do
#   3. <cache>/gpurt-build/glslang-*/bin/glslang made by another clone of this tree
#   4. the source package of a newer release of the distribution, from the machine's own mirror,
#      built here
#
# Without any of them gpurt is whole but for its cooperative-matrix kernels: one line says so and
# the exit status stays 0, because a build without a network must go on.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=private_apt.sh
. "$root/ci/private_apt.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"

tools=$root/build/tools
mine=$tools/glslang/bin/glslang
work=$tools/glslang-work
failed=$tools/glslang-failed
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/gpurt-build
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

left_out() {
    rm -rf "$work"
    say "cooperative-matrix kernels will be left out: $*"
    exit 0
}

# has_matrices COMPILER: does it turn the matrix shader into SPIR-V on this machine? Running it also
# rejects a cached program of another architecture.
cat >"$scratch/probe.comp" <<'END'
#version 450
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 32) in;
layout(binding = 0) buffer b { float c[]; };
void main()
{
    coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> m;
    coopMatLoad(m, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
    coopMatStore(m, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
}
END
has_matrices() {
    "$1" --target-env vulkan1.3 -V "$scratch/probe.comp" -o "$scratch/probe.spv" >/dev/null 2>&1
}

# put FROM TO: copies a tool folder into place in one step, so nobody ever sees half of it.
put() {
    local new
    new=$(mktemp -d "$2.XXXXXX") && cp -a "$1/." "$new/" && chmod 755 "$new" &&
        rm -rf "$2" && mv -T "$new" "$2"
}

from_cache() {
    local dir
    for dir in "$cache"/glslang-*; do
        if [ -x "$dir/bin/glslang" ] && has_matrices "$dir/bin/glslang"; then
            put "$dir" "$tools/glslang"
            return
        fi
    done
    return 1
}

[ -x "$mine" ] && has_matrices "$mine" && exit 0
for compiler in glslangValidator glslang; do
    command -v "$compiler" >/dev/null && has_matrices "$compiler" && exit 0
done
mkdir -p "$tools"
from_cache && exit 0

# A build that failed fails again, minutes later: remember it. Downloads are tried anew every time.
[ ! -e "$failed" ] || left_out "$(cat "$failed") (delete $failed to try again)"

# shellcheck disable=SC1091
release=$(. /etc/os-release && printf '%s' "${ID:-} ${VERSION_CODENAME:-}")
case $release in
"debian bookworm") next=trixie ;;
"ubuntu jammy" | "ubuntu noble") next=resolute ;;
*) left_out "the installed glslang is too old and no newer source is known for '$release'" ;;
esac
if [ "${GPURT_SETUP:-1}" != 0 ]; then
    # shellcheck disable=SC2046  # a list of packages
    (packages_install $(package_rows apt glslang)) || true
fi
for tool in cmake ninja g++ apt-get; do
    command -v "$tool" >/dev/null || left_out "$tool is missing, glslang cannot be built"
done

# Two clones at once: the second waits and takes the first one's work. No cache folder, no lock.
if mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]; then
    exec 9>"$cache/glslang.lock"
    flock 9
    from_cache && exit 0
fi

log=$tools/glslang.log
rm -rf "$work"
mkdir -p "$work"
apt_open "$work/apt" deb-src "$next" ||
    left_out "apt's sources name no mirror for this release, so the source of $next cannot be found"
cd "$work"
if ! { apt_private "$work/apt" update -o APT::Update::Error-Mode=any &&
    apt_private "$work/apt" source --download-only glslang; } >"$log" 2>&1; then
    left_out "the glslang source of $next cannot be downloaded: $(
        grep -m1 -E '^[EW]: ' "$log" || echo "see $log")"
fi

# apt has checked signature and hashes. The upstream archive alone is enough: Debian's own changes
# concern packaging, and unpacking them would need dpkg-dev.
version=$(sed -n 's/^Version: //p' glslang_*.dsc | head -n 1)
version=${version%-*}
version=${version%%+*}
mkdir source
tar -x -C source --strip-components=1 -f glslang_*.orig.tar.*

say "building glslang $version for cooperative matrices, once, a few minutes (log: $log)"
if ! {
    cmake -G Ninja -S source -B tree -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DENABLE_OPT=OFF -DENABLE_HLSL=OFF -DGLSLANG_TESTS=OFF -DBUILD_EXTERNAL=OFF &&
        cmake --build tree --target glslang-standalone
} >>"$log" 2>&1; then
    echo "glslang $version did not build, see $log" >"$failed"
    left_out "$(cat "$failed")"
fi

mkdir -p made/bin
cp tree/StandAlone/glslang made/bin/glslang
strip made/bin/glslang
ln -s glslang made/bin/glslangValidator
cp source/LICENSE.txt made/
if ! has_matrices made/bin/glslang; then
    echo "glslang $version, built here, does not compile the matrix shader" >"$failed"
    left_out "$(cat "$failed")"
fi
put "$work/made" "$tools/glslang"
if [ -w "$cache" ]; then
    put "$work/made" "$cache/glslang-$version" ||
        say "$cache cannot be written: every clone will build its own glslang"
fi
cd "$root"
rm -rf "$work"
