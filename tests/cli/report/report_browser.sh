#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The page of `gpurt report` over this repository's records in headless Chromium: report_browser.py
# says what is looked at. Ends with status 77 where there is no Chromium. Screenshots are kept in
# the folder PICTURES. Usage: report_browser.sh GPURT SOURCE_DIR PICTURES

set -uo pipefail
gpurt=$(realpath "${1:?usage: report_browser.sh GPURT SOURCE_DIR PICTURES}")
source=$(realpath "${2:?usage: report_browser.sh GPURT SOURCE_DIR PICTURES}")
pictures=${3:?usage: report_browser.sh GPURT SOURCE_DIR PICTURES}
chromium=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$chromium" ]; then
    echo "report_browser.sh: skipped: chromium is not installed (ci/setup.sh installs it)" >&2
    exit 77
fi
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
mkdir -p "$pictures"
cd "$source/ci/records" || exit 1
expect 0 estimate --card h200,a100,rtx-3060-laptop,rtx-4090,rx-7900-xtx,arc-a770 --api vulkan --format jsonl \
    -o "$tmp/predicted.jsonl" -q
expect 0 report "$tmp/predicted.jsonl" 2026-11-1[56]-h200/*.json ./*-neoverse-v1/*.json ./*/learning-cartpole*.jsonl \
    --baseline 2026-11-15-h200/mlp-vulkan.json --html "$tmp/page.html"
[ "$failed" -eq 1 ] || timeout 300 /usr/bin/python3 "$tests/cli/report/report_browser.py" "$chromium" "$tmp/page.html" \
    "$pictures" || failed=1
exit "$failed"
