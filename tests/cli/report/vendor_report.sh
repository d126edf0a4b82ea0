#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ci/vendor_report.sh on the devices of this machine, with one small bench, a compiler check whose
# answers are known, and the records. Usage: vendor_report.sh GPURT SOURCE_DIR BUILD_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: vendor_report.sh GPURT SOURCE_DIR BUILD_DIR}")
source=$(realpath "${2:?usage: vendor_report.sh GPURT SOURCE_DIR BUILD_DIR}")
build=$(realpath "${3:?usage: vendor_report.sh GPURT SOURCE_DIR BUILD_DIR}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
cat >check.sh <<'EOF'
#!/bin/sh
while [ "$1" != --json ]; do shift; done
cat >"$2" <<'ROWS'
{"schema":"gpurt.static/1","nature":"static","command":["ci/static_check.sh"],"date":"2026-01-01T00:00:00Z","rows":[
{"target":"sm_80","device":"NVIDIA A100-SXM4-80GB","kernel":"fill","mode":"default","setting":"","registers":16,"shared_bytes":0,"spilled":0,"occupancy":1.000,"instructions":40,"check":"ok"},
{"target":"sm_80","device":"NVIDIA A100-SXM4-80GB","kernel":"gemm_tiled_f32","mode":"nn","setting":"gemm.tiled.large = 128 128 16 8 8","registers":128,"shared_bytes":49152,"spilled":0,"check":"ok"},
{"target":"gfx1100","device":"AMD Radeon RX 7900 XTX (gfx1100)","kernel":"gemm_tiled_f32","mode":"nn","setting":"large","registers":256,"shared_bytes":65536,"spilled":2,"check":"spills"},
{"target":"dg2","device":"Intel(R) Arc(TM) A770 Graphics","check":"ocloc (intel-opencl-icd) not installed"}
]}
ROWS
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
large = "sm_80 gemm_tiled_f32 nn gemm.tiled.large = 128 128 16 8 8"
assert set(static) == {"sm_80 fill", large, "gfx1100 gemm_tiled_f32 nn large", "dg2"}, static
assert all(row["kind"] == "static" for row in static.values())
assert static[large]["device"] == "NVIDIA A100-SXM4-80GB" and static[large]["value"] == "128", static[large]
spills = static["gfx1100 gemm_tiled_f32 nn large"]
assert spills["check"] == "spills" and spills["value"] == "", spills
assert static["dg2"]["check"].startswith("ocloc"), static["dg2"]
here = {(row["device"], row["api"]) for row in rows if row["bench"] == "launch" and "/results/" in row["file"]}
assert len(here) == int(sys.argv[2]) >= 1, (here, sys.argv[2])
recorded = {row["api"] for row in rows if row["device"] == "NVIDIA H200"}
assert {"vulkan", "opencl"} <= recorded, recorded
images = {row["api"] for row in rows if row["bench"] == "images" and row["device"] == "NVIDIA H200" and row["file"].endswith(".jsonl")}
assert images == {"vulkan", "opencl"}, images
predicted = {row["device"] for row in rows if row["kind"] == "predicted"}
assert {"NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 3060 Laptop GPU", "AMD Radeon RX 7900 XTX"} <= predicted, predicted
assert all(row["date"] for row in rows if row["device"] == "NVIDIA H200")
EOF
grep -q 'NVIDIA H200 · vulkan | 580.159.04 |' report/report.md || wrong "the record of the H200 has no driver"
# The page has every number of the compilers, and says which is missing.
for words in '<td class="n">16</td><td class="n">0</td><td class="n">0</td><td class="n">1</td><td class="n">40</td><td>ok</td>' \
    '<td class="n">256</td><td class="n">2</td><td class="n">65536</td><td class="n"></td><td class="n"></td><td>spills</td>' \
    'ocloc (intel-opencl-icd) not installed'; do
    grep -qF "$words" report/report.html || wrong "the page lacks $words"
done
exit "$failed"
