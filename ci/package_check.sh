#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Do the packages and the wheel serve a machine with nothing? Makes the .deb files (ci/package.sh)
# and the wheel (ci/bundle.sh, apps/python/wheel.py), then a bare system of this machine's release,
# and there, as root:
#
#   apt install ./gpurt.deb ./libgpurt0.deb      doctor, a training, an evaluation on the CPU
#   apt install the others                       Python; a program by pkg-config and by CMake
#   apt purge, autoremove                        no file is left that was not there before
#   pip install ./gpurt.whl                      in a fresh environment of a system without gpurt
#
# Usage: ci/package_check.sh [--keep] [--files DIR] [--mirror URL --keyring FILE]. --files takes
# packages and a wheel that are made already, of this machine's release. It takes a few minutes,
# most of them for the system, and is no part of ci/test.sh, whose test `packages` looks at the same
# files without installing them.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=private_apt.sh
. "$root/ci/private_apt.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"
# shellcheck source-path=SCRIPTDIR source=system.sh
. "$root/ci/system.sh"

files=
mirror=
keyring=
while [ $# -gt 0 ]; do
    case $1 in
    --files | --mirror | --keyring)
        [ $# -gt 1 ] || die "$1 wants a value"
        declare "${1#--}=$2"
        shift
        ;;
    --keep) keep=1 ;;
    *) die "unknown argument '$1'; usage: ci/package_check.sh [--keep] [--files DIR] [--mirror URL --keyring FILE]" ;;
    esac
    shift
done
# shellcheck disable=SC1091
system_open "$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")" "$mirror" "$keyring"

[ -z "$files" ] || files=$(realpath -e "$files")
make_files() {
    rm -rf "$top/files"
    "$root/ci/package.sh" --output "$top/files"
    "$root/ci/bundle.sh" --output "$top/files"
    python3 "$root/apps/python/wheel.py" "$top"/files/gpurt-*-linux-*.tar.gz "$top/files"
}
make_system() {
    system_make
    mkdir "$tree/try"
    cp "$files"/*.deb "$files"/*.whl "$tree/try/"
    cp "$root/ci/debian/try.sh" "$tree/try/"
}
if [ -z "$files" ]; then
    timed files "packages and the wheel" make_files
    files=$top/files
fi
[ "$failed" -eq 0 ] || exit 1
timed system "a bare system" make_system
[ "$failed" -eq 0 ] || exit 1
for part in command others purge wheel; do
    timed "$part" "$(sed -n "s/^try_$part() { # //p" "$root/ci/debian/try.sh")" inside /try bash try.sh "$part"
    [ "$failed" -eq 0 ] || exit 1
done
