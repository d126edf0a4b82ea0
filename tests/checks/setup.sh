#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ci/setup.sh and the lanes on machines that are made up here: their package managers are scripts
# that note what they are asked. Nothing is installed. Usage: setup.sh SOURCE_DIR

set -euo pipefail
source=$(realpath "${1:?usage: setup.sh SOURCE_DIR}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "setup.sh: $*" >&2
    cat "$tmp/out" "$tmp/asked" >&2 2>/dev/null || true
    exit 1
}

# machine COMMAND...: a PATH with the ordinary tools and these stand-ins.
machine() {
    rm -rf "${tmp:?}/bin"
    mkdir "$tmp/bin"
    : >"$tmp/asked"
    local tool
    for tool in awk basename bash cat comm dirname env grep head mktemp nproc paste rm sed sort tail tr uniq wc; do
        ln -s "$(command -v "$tool")" "$tmp/bin/$tool"
    done
    echo 'echo 0' >"$tmp/bin/id" # root
    for tool in "$@"; do
        echo "echo \"$tool \$*\" >>'$tmp/asked'" >"$tmp/bin/$tool"
    done
}
# run STATUS COMMAND...: on that machine.
run() {
    local want=$1 got=0
    shift
    chmod +x "$tmp"/bin/*
    env -i PATH="$tmp/bin" HOME="$tmp" "$@" >"$tmp/out" 2>&1 || got=$?
    [ "$got" -eq "$want" ] || fail "status $got, not $want: $*"
}
# A tree without a shader compiler to build, and Python's packages in place.
mkdir -p "$tmp/tree/ci"
cp "$source"/ci/*.sh "$source/ci/packages.txt" "$tmp/tree/ci/"
echo 'exit 0' >"$tmp/tree/ci/glslang.sh"
echo 'exit 0' >"$tmp/tree/ci/python_tools.sh"

# apt INSTALLED KNOWN: a machine with these packages, of a distribution with those. A package once
# asked for is not installed: each run begins anew.
apt() {
    machine apt-get
    {
        echo 'for p in "$@"; do case " '"$1"' " in *" $p "*) echo "installed $p" ;; esac; done'
    } >"$tmp/bin/dpkg-query"
    {
        echo 'for p in "$@"; do case " '"$2"' " in *" $p "*) echo "$p | 1 | mirror" ;; esac; done'
    } >"$tmp/bin/apt-cache"
}
table() { sed 's/#.*//' "$source/ci/packages.txt" | cut -d';' -f1 | tr ' |' '\n\n' | sed '/^$/d' | sort -u; }
all=$(table | paste -sd' ')
without() { table | grep -vxE "$1" | paste -sd' '; }

# Everything is there: nothing is asked for.
apt "$all" "$all"
run 0 "$tmp/tree/ci/setup.sh"
[ ! -s "$tmp/asked" ] || fail "apt-get was called for nothing"

# Debian 12: nothing is left out, and of the alternatives one is taken.
apt '' "$(without '(clang|libclc)-(1[7-9]|2.)|libclang-rt-.*')"
run 0 "$tmp/tree/ci/setup.sh"
! grep -q skipped "$tmp/out" || fail "a lane was left out"
for package in oclgrind clang-15 libclc-15 cppcheck clang-tidy-14 libcmocka-dev python3-h5py; do
    grep -q "install .* $package\( \|$\)" "$tmp/asked" || fail "$package was not asked for"
done
! grep -q 'clang-16' "$tmp/asked" || fail "two versions of clang were asked for"

# Debian 13: another clang, no oclgrind, which is said. The one already installed is kept.
apt '' "$(without 'oclgrind|(clang|libclc|libclang-rt)-(15|16|2.).*')"
run 0 "$tmp/tree/ci/setup.sh"
grep -q 'lane oclgrind will be skipped: .* no package oclgrind' "$tmp/out" || fail "oclgrind's absence was not said"
for package in clang-19 libclc-19 libclang-rt-19-dev; do
    grep -q " $package\( \|$\)" "$tmp/asked" || fail "$package was not asked for"
done
! grep -q 'oclgrind' "$tmp/asked" || fail "oclgrind was asked for"
apt 'clang-17 libclc-17 libclang-rt-17-dev' "$(without 'oclgrind|(clang|libclc|libclang-rt)-(15|16|2.).*')"
run 0 "$tmp/tree/ci/setup.sh"
! grep -q ' clang-1[0-9]' "$tmp/asked" || fail "a second clang was asked for"

# What building needs must be there: apt-get is asked and says why not.
apt '' "$(without 'libhdf5-dev')"
run 0 "$tmp/tree/ci/setup.sh" build
grep -q ' libhdf5-dev' "$tmp/asked" || fail "libhdf5-dev was left out"
# To build and run, nothing for tests and lint.
apt '' "$all"
run 0 "$tmp/tree/ci/setup.sh" build drivers
! grep -qE 'cmocka|h5py|clang|cppcheck|oclgrind|git|validation' "$tmp/asked" || fail "too much was asked for"
run 1 "$tmp/tree/ci/setup.sh" nonsense
grep -q "no group 'nonsense'" "$tmp/out" || fail "an unknown group was not refused"

# Lanes: a tool that is missing is an error where the distribution has it, else skipped and said.
echo '. "$(dirname "$0")/common.sh"; . "$root/ci/packages.sh"; need oclgrind oclgrind' >"$tmp/tree/ci/lane.sh"
apt '' "$all"
run 1 bash "$tmp/tree/ci/lane.sh"
grep -q 'oclgrind is missing: install oclgrind' "$tmp/out" || fail "a missing tool was not said"
apt '' "$(without oclgrind)"
run 77 bash "$tmp/tree/ci/lane.sh"
grep -q 'skipped: oclgrind is missing, .* no package oclgrind' "$tmp/out" || fail "a skipped lane was not said"

# Packages of Python: got once; without a network one line says what is skipped, and setup goes on.
cp "$source/ci/python_tools.sh" "$source"/ci/python_{tools,mpi}.txt "$tmp/tree/ci/"
python3() { # STATUS of pip for python_tools.txt, for python_mpi.txt
    machine
    local tool
    for tool in cp mkdir mv; do
        ln -s "$(command -v "$tool")" "$tmp/bin/$tool"
    done
    cat >"$tmp/bin/python3" <<END
echo "python3 \$*" >>'$tmp/asked'
case \$* in
--version) echo Python 3.11.2 ;;
'-m venv '*) mkdir -p "\$3/bin" && cp "\$0" "\$3/bin/python3" ;;
*python_tools.txt) echo 'ERROR: no way to a mirror' && exit $1 ;;
*python_mpi.txt) echo 'ERROR: no wheel' && exit $2 ;;
esac
END
}
mine=$tmp/tree/build/tools/python
python3 1 0
run 0 bash "$tmp/tree/ci/python_tools.sh"
grep -q 'Gymnasium will be skipped: ERROR: no way to a mirror' "$tmp/out" || fail "it was not said what is skipped"
[ ! -e "$mine" ] || fail "half of it was left"
python3 0 1
run 0 env GPURT_SETUP=0 bash "$tmp/tree/ci/python_tools.sh"
! grep -q venv "$tmp/asked" || fail "made although GPURT_SETUP is 0"
# The second list fails: what the first one has stays, and the second is asked for again.
run 0 bash "$tmp/tree/ci/python_tools.sh"
grep -q -- '-m pip install .*python_tools.txt' "$tmp/asked" || fail "pip was not asked"
grep -q 'an Open MPI .* will be skipped: ERROR: no wheel' "$tmp/out" || fail "it was not said that there is no Open MPI"
! grep -q Gymnasium "$tmp/out" || fail "Gymnasium was given up with Open MPI"
: >"$mine/mark"
python3 1 0
chmod +x "$tmp/bin/python3"
cp "$tmp/bin/python3" "$mine/bin/python3"
run 0 bash "$tmp/tree/ci/python_tools.sh"
! grep -qE 'venv|python_tools.txt' "$tmp/asked" || fail "packages that are there were got again"
grep -q 'python_mpi.txt' "$tmp/asked" || fail "Open MPI was not asked for again"
: >"$tmp/asked"
run 0 bash "$tmp/tree/ci/python_tools.sh"
! grep -q pip "$tmp/asked" || fail "packages that are there were got again"
[ ! -s "$tmp/out" ] || fail "it talks about nothing"
# Another list: without a network what is there stays, also where the run before was cut off.
echo '# more' >>"$tmp/tree/ci/python_tools.txt"
for cut in no yes; do
    if [ $cut = yes ]; then
        mv "$mine" "$mine.before"
        mkdir "$mine"
    fi
    run 0 bash "$tmp/tree/ci/python_tools.sh"
    grep -q 'those of before stay in .*: ERROR: no way to a mirror' "$tmp/out" || fail "another list was not asked for"
    [ -e "$mine/mark" ] && [ -e "$mine/bin/python3" ] || fail "the environment that was there is lost (cut off: $cut)"
done
python3 0 0
run 0 bash "$tmp/tree/ci/python_tools.sh"
grep -q 'pip .*python_tools.txt' "$tmp/asked" && grep -q 'pip .*python_mpi.txt' "$tmp/asked" ||
    fail "another list was not got"
[ ! -e "$mine/mark" ] && [ ! -e "$mine.before" ] || fail "the environment is not a new one"

# No apt: the command to give, with what is missing; nothing is run. With everything there it goes
# on.
machine dnf
echo 'case $3 in gcc | cmake) exit 0 ;; esac; exit 1' >"$tmp/bin/rpm"
run 1 "$tmp/tree/ci/setup.sh" build drivers
grep -q '^dnf install glibc-devel .*hdf5-devel .*pocl' "$tmp/out" || fail "no command for dnf"
! grep -qw cmake "$tmp/out" || fail "what is installed was named"
[ ! -s "$tmp/asked" ] || fail "dnf was called"
echo 'exit 0' >"$tmp/bin/rpm"
run 0 "$tmp/tree/ci/setup.sh"
machine
echo 'exit 127' >"$tmp/bin/pacman"
run 1 "$tmp/tree/ci/setup.sh"
grep -q '^pacman -S --needed gcc .*hdf5 .*vulkan-swrast' "$tmp/out" || fail "no command for pacman"
echo 'exit 0' >"$tmp/bin/pacman"
run 0 "$tmp/tree/ci/setup.sh"
machine
run 1 "$tmp/tree/ci/setup.sh" build
grep -q '^dnf install gcc ' "$tmp/out" && grep -q '^pacman -S --needed gcc ' "$tmp/out" ||
    fail "no list for a machine without any of them"
run 0 env GPURT_SETUP=0 "$tmp/tree/ci/setup.sh" build
echo "setup.sh: all well"
