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
# depends on.
#
# Everything lies in build/distro: SUITE, the system, removed at the end, and SUITE-*.log. Mounts
# and processes live in namespaces of their own and end with this script, however it ends.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=private_apt.sh
. "$root/ci/private_apt.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"

usage="usage: ci/distro_check.sh [--only quickstart|test|coop] [--keep] [--mirror URL --keyring FILE]
       SUITE [-- CTEST_ARGUMENT...]"
only=
keep=0
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
[ "$(id -u)" -eq 0 ] || die "root is needed: a system is made and entered"

# debootstrap knows how releases differ by a script for each; of those it is too old for, all of one
# distribution are alike.
case $suite in
bookworm | trixie | forky | sid) family=debian components=main script=sid ;;
jammy | noble | resolute) family=ubuntu components=main,universe script=gutsy ;;
*) die "unknown suite '$suite': bookworm, trixie, sid, jammy and noble are known" ;;
esac
# shellcheck disable=SC1091
here=$(. /etc/os-release && printf '%s' "${ID:-unknown}")
options=(--variant=minbase "--components=$components")
if [ -z "$mirror" ]; then
    [ "$here" = "$family" ] ||
        die "this machine is no $family: name a mirror of it, --mirror URL --keyring FILE"
    entries=$(apt_entries deb "$suite" "")
    mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p;T;q' <<<"$entries")
    [ -n "$mirror" ] || die "apt's sources name no mirror for this release"
    keyring=${keyring:-$(sed -n 's/^Signed-By: *\(\/.*\)/\1/p;T;q' <<<"$entries")}
fi
[ -z "$keyring" ] || options+=("--keyring=$keyring")
[[ $mirror != https:* ]] || options+=(--include=ca-certificates)
packages_install debootstrap
script=/usr/share/debootstrap/scripts/$script
[ ! -e "/usr/share/debootstrap/scripts/$suite" ] || script=/usr/share/debootstrap/scripts/$suite

top=$root/build/distro
tree=$top/$suite
job=
end() {
    trap - EXIT
    # Among them is the first process of the namespace: with it all others go, and the mounts.
    [ -z "$job" ] || { kill -KILL -- "-$job" && wait "$job"; } 2>/dev/null || true
    [ "$keep" -eq 1 ] || rm -rf --one-file-system "$tree"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# timed NAME WHAT COMMAND...: runs it in the background, where a signal to this script is heard at
# once; one line says how it went.
timed() {
    local name=$1 what=$2 log=$top/$suite-$1.log begin=$SECONDS rc=0
    shift 2
    set -m # a group of its own: background jobs would ignore Ctrl-C otherwise, and so would the tests
    "$@" >"$log" 2>&1 </dev/null &
    job=$!
    set +m
    wait "$job" || rc=$?
    job=
    if [ "$rc" -eq 0 ]; then
        say "$suite: $what: ok, $((SECONDS - begin)) s$(summary "$log")"
    else
        tail -n 25 "$log" >&2
        say "$suite: $what: FAILED with $rc after $((SECONDS - begin)) s$(summary "$log"), log: $log"
        failed=1
    fi
}

# summary LOG: what ctest said last, and what was skipped.
summary() {
    sed -n 's/^\([0-9]*% tests passed.*\)/, \1/p' "$1" | tail -n 1
    sed -n 's/^.*- \([^ ]*\) (Skipped)$/\1/p' "$1" | paste -sd' ' | sed 's/^\(..*\)/, skipped: \1/'
}

# inside COMMAND...: in the clone, in the system, with a bare environment.
inside() {
    # shellcheck disable=SC2016  # the inner shell's words
    unshare --mount --pid --fork --kill-child bash -euc '
        tree=$1
        shift
        mount -t proc proc "$tree/proc"
        mount --rbind /sys "$tree/sys"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$tree/dev/pts"
        mount -t tmpfs tmpfs "$tree/dev/shm"
        rc=0 # not exec: the first process of a namespace hears no signal
        chroot "$tree" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            bash -c "cd /gpurt && exec \"\$@\"" bash "$@" || rc=$?
        exit "$rc"
    ' bash "$tree" "$@"
}

make_system() {
    local proxy=''
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    rm -rf --one-file-system "$tree"
    ${proxy:+env http_proxy="$proxy"} debootstrap "${options[@]}" "$suite" "$tree" "$mirror" "$script"
    apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until)' >"$tree/etc/apt/apt.conf.d/99machine" || true
    mkdir -p "$tree/dev/shm" "$tree/dev/pts"
    git clone -q --no-hardlinks "$root" "$tree/gpurt"
    git -C "$tree/gpurt" checkout -q --detach "$(git -C "$root" rev-parse HEAD)"
}

failed=0
mkdir -p "$top"
timed system "a bare system" make_system
[ "$failed" -eq 0 ] || exit 1
if [ "$only" = coop ]; then
    suites='gaps|splitk|quarantine|nn|fused|mlprows|grads|network|layers|learner|precision|torch|optim|apart|gemm'
    # shellcheck disable=SC2016  # the inner shell's words
    timed coop "suites of cooperative matrices" inside bash -euc '
        ci/build.sh release
        build/release/gpurt bench gemm --backend vulkan --precision f16 --shape 64 --variant coop --time 0.01
        GPURT_TEST_SMALL=1 ci/test.sh -R "^($1)[.]vulkan" "${@:2}"
    ' bash "$suites" "$@"
elif [ "$only" != test ]; then
    timed quickstart ci/quickstart.sh inside ci/quickstart.sh
    timed again "ci/quickstart.sh again" inside ci/quickstart.sh
fi
[[ $only = quickstart || $only = coop ]] || timed test "ci/test.sh${*:+ $*}" inside ci/test.sh "$@"
exit "$failed"
