#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ci/vendor_report.sh on the devices of this machine, with one small bench, a compiler check whose
# answers are known, and the records. Usage: vendor_report.sh GPURT SOURCE_DIR BUILD_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: vendor_report.sh GPURT SOURCE_DIR BUILD_DIR}")
source=$(realpath "${2:?usage: vendor_report.sh GPURT SOURCE_DIR BUILD_DIR}")
build=$(realpath "${3:?usage: vendor_report.sh GPURT SOURCE_DIR BUILD_DIR}")
# shellcheck source-path=SCRIPTDIR source=../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../harness/command.sh"
cd "$tmp" || exit 1
cat >check.sh <<'EOF'
#!/bin/sh
echo 'sm_80    NVIDIA A100-SXM4-80GB                 41 kernels, at most 128 registers, 49152 B shared, 0 bad'
echo 'gfx1100  AMD Radeon RX 7900 XTX (gfx1100), as gfx1030  30 kernels, at most 256 registers, 65536 B shared, 2 bad'
echo 'dg2      Intel(R) Arc(TM) A770 Graphics       skipped: ocloc (intel-opencl-icd) not installed'
EOF
chmod +x check.sh
GPURT_STATIC_CHECK=$tmp/check.sh "$source/ci/vendor_report.sh" --build "$build" --out "$tmp/report" --benches launch \
    --time 0.005 >out 2>err || wrong "ci/vendor_report.sh failed"
[ ! -s out ] || wrong "something on stdout"
for file in report.html report.md report.csv; do
    [ -s "report/$file" ] || wrong "no $file"
done
/usr/bin/python3 - "$tmp/report/report.csv" "$("$gpurt" devices --format csv | grep -c '^\(vulkan\|opencl\):')" <<'EOF' || wrong "the CSV"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8", newline="")))
static = {row["case"]: row for row in rows if row["bench"] == "static"}
assert set(static) == {"sm_80", "gfx1100", "dg2"}, static
assert all(row["kind"] == "static" for row in static.values())
assert static["sm_80"]["device"] == "NVIDIA A100-SXM4-80GB" and static["sm_80"]["value"] == "128", static["sm_80"]
assert static["gfx1100"]["check"] == "spills" and static["gfx1100"]["value"] == "", static["gfx1100"]
assert static["dg2"]["check"].startswith("ocloc"), static["dg2"]
here = {(row["device"], row["api"]) for row in rows if row["bench"] == "launch" and "/results/" in row["file"]}
assert len(here) == int(sys.argv[2]) >= 1, (here, sys.argv[2])
recorded = {row["api"] for row in rows if row["device"] == "NVIDIA H200"}
assert {"vulkan", "opencl"} <= recorded, recorded
predicted = {row["device"] for row in rows if row["kind"] == "predicted"}
assert {"NVIDIA A100 SXM4 80 GB", "NVIDIA GeForce RTX 3060 Laptop", "AMD Radeon RX 7900 XTX"} <= predicted, predicted
assert all(row["date"] for row in rows if row["device"] == "NVIDIA H200")
EOF
grep -q 'NVIDIA H200 · vulkan | 580.159.04 |' report/report.md || wrong "the record of the H200 has no driver"
exit "$failed"
