# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Bare systems of a release, read with `.` after common.sh, private_apt.sh and packages.sh. They lie
# in build/distro: SUITE, removed at the end, and SUITE-*.log. Mounts and processes live in
# namespaces of their own and end with the script, however it ends.
#
#   system_open SUITE [MIRROR KEYRING]   finds the mirror; sets suite, top, tree
#   timed system "a bare system" system_make
#   inside DIR COMMAND...                as root, in that folder of it, with a bare environment
#
# `keep=1` leaves the system for a look. `failed` is 1 when something timed has failed.

keep=0
failed=0
job=

system_open() {
    local components here entries
    suite=$1 mirror=${2:-} keyring=${3:-}
    [ "$(id -u)" -eq 0 ] || die "root is needed: a system is made and entered"
    # debootstrap knows how releases differ by a script for each; of those it is too old for, all of
    # one distribution are alike.
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
    mkdir -p "$top"
    trap system_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

system_end() {
    trap - EXIT
    # Among them is the first process of the namespace: with it all others go, and the mounts.
    [ -z "$job" ] || { kill -KILL -- "-$job" && wait "$job"; } 2>/dev/null || true
    [ "$keep" -eq 1 ] || rm -rf --one-file-system "$tree"
}

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

inside() {
    # shellcheck disable=SC2016  # the inner shell's words
    unshare --mount --pid --fork --kill-child bash -euc '
        tree=$1 folder=$2
        shift 2
        mount -t proc proc "$tree/proc"
        mount --rbind /sys "$tree/sys"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$tree/dev/pts"
        mount -t tmpfs tmpfs "$tree/dev/shm"
        rc=0 # not exec: the first process of a namespace hears no signal
        chroot "$tree" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            bash -c "cd \"\$1\" && shift && exec \"\$@\"" bash "$folder" "$@" || rc=$?
        exit "$rc"
    ' bash "$tree" "$@"
}

system_make() {
    local proxy=''
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    rm -rf --one-file-system "$tree"
    ${proxy:+env http_proxy="$proxy"} debootstrap "${options[@]}" "$suite" "$tree" "$mirror" "$script"
    apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until)' >"$tree/etc/apt/apt.conf.d/99machine" || true
    mkdir -p "$tree/dev/shm" "$tree/dev/pts"
}
