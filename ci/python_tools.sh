#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Puts the packages of ci/python_tools.txt into a virtual environment of their own,
# build/tools/python, with which tests run ONNX Runtime and Gymnasium and check workflow files by
# their services' schemas. Run again, it finds it in place. Where it cannot be made (no network, no
# wheels for this Python) one line says why, the exit status stays 0, and those tests are skipped;
# workflow files are then checked as YAML alone. GPURT_SETUP=0 makes nothing.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools=$root/build/tools
mine=$tools/python
log=$tools/python.log
list=$root/ci/python_tools.txt

left_out() {
    rm -rf "$mine"
    say "tests with ONNX Runtime and Gymnasium will be skipped: $*"
    exit 0
}

command -v python3 >/dev/null || left_out "python3 is missing"
wanted=$(python3 --version && cat "$list")
[ "$(cat "$mine/made" 2>/dev/null || true)" != "$wanted" ] || exit 0
[ "${GPURT_SETUP:-1}" != 0 ] || exit 0
mkdir -p "$tools"
rm -rf "$mine"
say "putting $(grep -c == "$list") Python packages into $mine, once"
if ! { python3 -m venv "$mine" && "$mine/bin/python3" -m pip install --no-input --only-binary :all: \
    --disable-pip-version-check --retries 1 --timeout 20 -r "$list"; } >"$log" 2>&1; then
    left_out "$(grep -m1 -E '^ERROR: ' "$log" || tail -n 1 "$log") (see $log)"
fi
printf '%s\n' "$wanted" >"$mine/made"
