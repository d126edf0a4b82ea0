#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Do the README's two commands work on another release? Makes a bare system of it, puts a clean
# clone of this checkout's HEAD inside, and runs them there as root:
#
#   ci/distro_check.sh [--only quickstart|test|coop] [--keep] SUITE [-- CTEST_ARGUMENT...]
#   ci/distro_check.sh trixie -- -R gemm
#   ci/distro_check.sh --only coop sid
#
# --only coop builds, sees that a GEMM runs by cooperative matrices on Vulkan, and runs the suites
# whose kernels may take them, with small cases. Mesa 26's lavapipe has them on the CPU, for f16 and
# 8x8x8: of the variants `coop` runs there; stream, coop_deep and the fused MLP want 16x16x16.
#
# SUITE is a release of this machine's distribution, taken from this machine's own mirror (Debian:
# bookworm, trixie, sid; Ubuntu: jammy, noble). One of another distribution needs --mirror URL and
# --keyring FILE. --keep leaves the system for a look. Run it after changes in ci/ or of what gpurt
# depends on. What it leaves where: ci/system.sh.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=private_apt.sh
. "$root/ci/private_apt.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"
# shellcheck source-path=SCRIPTDIR source=system.sh
. "$root/ci/system.sh"

usage="usage: ci/distro_check.sh [--only quickstart|test|coop] [--keep] [--mirror URL --keyring FILE]
       SUITE [-- CTEST_ARGUMENT...]"
only=
mirror=
keyring=
suite=
while [ $# -gt 0 ]; do
    case $1 in
    --only | --mirror | --keyring)
        [ $# -gt 1 ] || die "$1 wants a value"
        declare "${1#--}=$2"
        shift
        ;;
    --keep) keep=1 ;;
    --)
        shift
        break
        ;;
    -*) die "unknown option '$1'; $usage" ;;
    *)
        [ -z "$suite" ] || die "one suite at a time; $usage"
        suite=$1
        ;;
    esac
    shift
done
[ -n "$suite" ] || die "$usage"
case $only in '' | quickstart | test | coop) ;; *) die "--only quickstart, test or coop, not '$only'" ;; esac
system_open "$suite" "$mirror" "$keyring"

make_system() {
    system_make
    git clone -q --no-hardlinks "$root" "$tree/gpurt"
    git -C "$tree/gpurt" checkout -q --detach "$(git -C "$root" rev-parse HEAD)"
}
in_clone() { inside /gpurt "$@"; }

timed system "a bare system" make_system
[ "$failed" -eq 0 ] || exit 1
if [ "$only" = coop ]; then
    suites='gaps|splitk|quarantine|nn|fused|mlprows|grads|network|layers|learner|precision|torch|optim|apart|gemm'
    # shellcheck disable=SC2016  # the inner shell's words
    timed coop "suites of cooperative matrices" in_clone bash -euc '
        ci/build.sh release
        build/release/gpurt bench gemm --backend vulkan --precision f16 --shape 64 --variant coop --time 0.01
        GPURT_TEST_SMALL=1 ci/test.sh -R "^($1)[.]vulkan" "${@:2}"
    ' bash "$suites" "$@"
elif [ "$only" != test ]; then
    timed quickstart ci/quickstart.sh in_clone ci/quickstart.sh
    timed again "ci/quickstart.sh again" in_clone ci/quickstart.sh
fi
[[ $only = quickstart || $only = coop ]] || timed test "ci/test.sh${*:+ $*}" in_clone ci/test.sh "$@"
exit "$failed"
