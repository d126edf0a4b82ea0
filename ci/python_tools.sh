#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Puts the packages of ci/python_tools.txt into a virtual environment of their own,
# build/tools/python, with which tests run ONNX Runtime and Gymnasium and check workflow files by
# their services' schemas, and then those of ci/python_mpi.txt, which fewer machines have wheels
# for. Run again, it finds them in place. What cannot be got (no network, no wheels for this Python)
# is said in one line, the exit status stays 0, and those tests are skipped; workflow files are then
# checked as YAML alone. An environment that is there stays until another is whole. GPURT_SETUP=0
# makes nothing.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools=$root/build/tools
mine=$tools/python
before=$tools/python.before # scripts of an environment name its folder: the new one has it at once

# back: to the environment that was there.
back() {
    [ -e "$before" ] || return 0
    rm -rf "$mine"
    mv "$before" "$mine"
}
# left_out WHAT WHY
left_out() {
    say "tests with $1 will be skipped: $2"
    exit 0
}
# wanted LIST: what made-LIST in the environment says where it has the list's packages.
wanted() { python3 --version && cat "$root/ci/$1.txt"; }
has() { [ "$(cat "$mine/made-$1" 2>/dev/null || true)" = "$(wanted "$1")" ]; }
# get LIST: into the environment.
get() {
    "$mine/bin/python3" -m pip install --no-input --only-binary :all: --disable-pip-version-check \
        --retries 1 --timeout 20 -r "$root/ci/$1.txt" && wanted "$1" >"$mine/made-$1"
}
# why LIST: it could not be got.
why() { echo "$(grep -m1 -E '^ERROR: ' "$tools/$1.log" || tail -n 1 "$tools/$1.log") (see $tools/$1.log)"; }

command -v python3 >/dev/null || left_out "ONNX Runtime and Gymnasium" "python3 is missing"
back # of a run that was cut off
! { has python_tools && has python_mpi; } || exit 0
[ "${GPURT_SETUP:-1}" != 0 ] || exit 0
mkdir -p "$tools"
if ! has python_tools; then
    say "putting $(grep -c == "$root/ci/python_tools.txt") Python packages into $mine, once"
    [ ! -e "$mine" ] || mv "$mine" "$before"
    if ! { python3 -m venv "$mine" && get python_tools; } >"$tools/python_tools.log" 2>&1; then
        rm -rf "$mine"
        back
        [ -e "$mine" ] || left_out "ONNX Runtime and Gymnasium" "$(why python_tools)"
        say "those of before stay in $mine: $(why python_tools)"
        exit 0
    fi
    rm -rf "$before"
fi
has python_mpi || get python_mpi >"$tools/python_mpi.log" 2>&1 ||
    left_out "an Open MPI that outlives ranks" "$(why python_mpi)"
