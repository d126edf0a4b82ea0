#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt report` and `gpurt compare` as a person uses them: the records of this repository, results
# with known regressions, files that are broken, and names that are meant to become markup or
# formulas. Usage: report.sh GPURT SOURCE_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: report.sh GPURT SOURCE_DIR}")
source=$(realpath "${2:?usage: report.sh GPURT SOURCE_DIR}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1

# result FILE DEVICE DATE ROW...: what gpurt bench writes. A row is "SHAPE GFLOPS SPREAD CHECK".
result() {
    local file=$1 device=$2 date=$3 comma='' row
    shift 3
    {
        printf '{"schema":"gpurt.bench/1","gpurt":"0.1.0","command":["gpurt","bench","gemm"],"date":"%s",' "$date"
        printf '"device":{"name":"%s","backend":"vulkan","driver_version":"1"},"rows":[' "$device"
        for row in "$@"; do
            read -r shape rate spread check <<<"$row"
            printf '%s{"kind":"gemm","shape":"%s","batch":1,"precision":"f32","trans":"nn","gflop_per_s":%s,' \
                "$comma" "$shape" "$rate"
            printf '"spread":%s,"check":"%s"}' "$spread" "$check"
            comma=,
        done
        printf ']}\n'
    } >"$file"
}

# ---- regressions ----
result old.json A 2026-01-01T00:00:00Z '8x8x8 100 0.001 ok' '16x16x16 100 0.2 ok' '32x32x32 100 0 ok' '64x64x64 5 0 ok'
result new.json A 2026-01-02T00:00:00Z '8x8x8 90 0.001 ok' '16x16x16 90 0.2 ok' '32x32x32 120 0 ok' '48x48x48 5 0 ok'
expect 0 compare old.json new.json
said '^8x8x8 f32 +100 G +90\.0 G +0\.900 +0\.2% +worse$'
said '^16x16x16 f32 .* same$'
said '^32x32x32 f32 .* 1\.200 .* better$'
told '1 better, 1 worse, 1 the same within their spread, 0 broken, 0 mended; 1 missing, 1 new'
[ "$(wc -L <out)" -le 80 ] || wrong "compare: a line of more than 80 columns"
expect 1 compare old.json new.json --fail-under 0.95
told 'gemm 8x8x8 f32 on A · vulkan: 0\.900 of the baseline, at most 0\.902'
told '1 of 3 figures below 0.95'
! grep -q '16x16x16' err || wrong "a figure within its spread is called a regression"
expect 0 compare old.json new.json --fail-under 0.9
expect 0 compare new.json new.json --fail-under 1
result bad.json A 2026-01-02T00:00:00Z '8x8x8 0 0 FAILED'
expect 1 compare old.json bad.json --fail-under 0.5
told "8x8x8 f32 on A · vulkan: was right, is 'FAILED'"
expect 0 compare old.json new.json --format csv
said '^gemm,8x8x8 f32,1e\+11,9e\+10,FLOP/s,0\.9,.*,worse,0$'
expect 0 compare old.json new.json --format json -o changes.json
/usr/bin/python3 -c 'import json; assert len(json.load(open("changes.json"))["rows"]) == 3' || wrong "compare --format json"
expect 1 report new.json --baseline old.json --fail-under 0.95 --md fail.md
told 'at most 0\.902'
grep -q '1 below 0.95 of the baseline' fail.md || wrong "the Markdown lacks what is below"
expect 0 report old.json new.json --baseline old.json --md pass.md --csv pass.csv
# The baseline is no result too, though it is among the files.
[ "$(grep -c ',old.json$' pass.csv) $(grep -c ',new.json$' pass.csv)" = '4 4' ] || wrong "rows of the baseline and the others: $(cat pass.csv)"
[ "$(awk -F, '$9 == 1' pass.csv | grep -c ',A,')" -eq 8 ] || wrong "not every row counts once: $(cat pass.csv)"
grep -q '| 8x8x8 f32 | A · vulkan | 100 GFLOP/s | 90.0 GFLOP/s | 0.900' pass.md || wrong "the Markdown lacks a change"

# ---- snapshots of memory ----
# Made by hand: b lies on a, c comes when a is gone and takes its place, d is too large for that.
block() {
    printf '%s{"label":"%s","kind":"%s","size":%s,"begin":%s,"end":%s,"tensors":[]}' "$@"
}
snapshot() {
    printf '{"schema":"gpurt.memory/1","gpurt":"0.1.0","device":{"name":"A","backend":"vulkan"},'
    printf '"seconds":10,"peak":3072,"peak_at":4,"allocations":['
    cat
    printf ']}\n'
}
{
    block '' a device 1024 0 2
    block , '<b>b</b>' device 1024 1 null
    block , c device 1024 3 8
    block , d device 2048 3 8
    block , up upload 99999 0 9
} | snapshot >memory.json
expect 0 report memory.json
said '^Device memory of A · vulkan: at most 3\.00 KiB, after 4 s; 4 allocations'
expect 0 report memory.json old.json --html memory.html
"$tests/cli/report/report_geometry.py" memory.html 2 || wrong "the chart of memory"
! grep -q '<b>b</b>' memory.html || wrong "a label became markup"
# Heights of the blocks from the bottom of the frame, in KiB: 0, 1, 0 and 2.
/usr/bin/python3 - <<'END' || wrong "blocks do not lie where they must"
import re
page = open("memory.html").read()
chart = re.search(r'id="memory-1".*?</svg>', page, re.S).group(0)
top, down = map(float, re.search(r'class="plot" x="[^"]+" y="([^"]+)" width="[^"]+" height="([^"]+)"', chart).groups())
blocks = [tuple(map(float, b)) for b in re.findall(r'class="block p\d" x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"', chart)]
unit = blocks[0][3]
places = [round((top + down - y - h) / unit, 1) for x, y, w, h in blocks]
assert places == [0, 1, 0, 2], places
assert abs(blocks[3][3] - 2 * unit) < 0.1, blocks
END
block '' a device -5 0 2 | snapshot >broken.json
refuse 65 'size' report broken.json
block '' a device 5 2 1 | snapshot >broken.json
refuse 65 'ends before it begins' report broken.json
sed 's|gpurt.memory/1|gpurt.memory/9|' memory.json >broken.json
refuse 65 'another version' report broken.json
sed 's|"peak":3072,||' memory.json >broken.json
refuse 65 'peak' report broken.json

# ---- what is wrong on the command line ----
refuse 64 'files of' report
refuse 64 '--baseline' report new.json --fail-under 0.9
refuse 64 'two files' compare old.json
refuse 64 'above 0' compare old.json new.json --fail-under 0
refuse 66 'nowhere.json' report nowhere.json
refuse 64 'new.json' report new.json --md new.json
refuse 64 'x.md' report new.json --md x.md --csv x.md
result other.json A 2026-01-01T00:00:00Z '7x7x7 1 0 ok'
refuse 65 'nothing to compare' compare old.json other.json

# ---- broken and foreign files: one line each ----
: >empty.json
refuse 65 'is empty' report empty.json
head -c 200 old.json >cut.json
refuse 65 'line 1' report old.json cut.json --md x.md
[ ! -e x.md ] || wrong "a report was written though a file is broken"
sed 's|gpurt.bench/1|gpurt.bench/7|' old.json >later.json
refuse 65 'another version of gpurt' report later.json
head -c 70000 /dev/urandom >noise.json
refuse 65 'noise.json' report noise.json
mkdir folder.json
refuse 66 'folder.json' report folder.json

# ---- names that would like to be markup, formulas or commands ----
# shellcheck disable=SC2016  # meant as it is
evil='<script>alert(1)</script>|`x`[y](http://z)=1'
result evil.json "$evil" 2026-01-01T00:00:00Z '=SUM(A1)<img/src=x/onerror=alert(2)> 5 0 ok' '8x8x8 6 0 ok'
expect 0 report evil.json old.json --md evil.md --csv evil.csv --html evil.html --title "</title><script>alert(3)</script>"
/usr/bin/python3 - <<'EOF' || wrong "hostile names"
import csv, html.parser
rows = list(csv.DictReader(open("evil.csv", encoding="utf-8", newline="")))
assert len(rows) == 6, rows
for row in rows:
    for text in row.values():
        assert text[:1] not in ("=", "+", "-", "@", "\t"), text
assert any(row["case"].startswith("'=SUM(A1)<img") for row in rows), rows
markdown = open("evil.md", encoding="utf-8").read()
for word in ("<script", "<img", "[y](", "http://"):
    assert word not in markdown, word

class Page(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs):
        assert tag != "img", "a name became an element"
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "href") or value.startswith("#"), (tag, name, value)
        scripts.append(tag == "script")
    def handle_data(self, data):
        texts.append(data)
scripts, texts = [], []
Page().feed(open("evil.html", encoding="utf-8").read())
assert sum(scripts) == 1, sum(scripts)
assert any("<script>alert(1)</script>|`x`" in text for text in texts), "the name is not shown as it is"
EOF

# ---- a large report stays under what a job summary takes, and says what is left out ----
/usr/bin/python3 - <<'EOF'
import json
rows = [{"kind": "gemm", "shape": f"{i}x{i}x{i}", "precision": "<" * 60, "gflop_per_s": i + 1, "check": "ok"} for i in range(9000)]
json.dump({"schema": "gpurt.bench/1", "device": {"name": "A", "backend": "vulkan"}, "rows": rows}, open("large.json", "w"))
EOF
expect 0 report large.json --md large.md
[ "$(wc -c <large.md)" -lt 1024000 ] || wrong "the Markdown has $(wc -c <large.md) bytes"
grep -qE '^[0-9]+ more figures do not fit' large.md || wrong "nothing says that figures are left out"

# ---- the records of this repository, all of them ----
shopt -s nullglob
records=("$source"/ci/records/*/*.json "$source"/ci/records/*/mlp-*.jsonl "$source"/ci/records/*/learning-cartpole*.jsonl)
[ "${#records[@]}" -gt 40 ] || wrong "only ${#records[@]} records were found"
# With predictions beside them, which lead nothing: a card that is not here would.
expect 0 estimate --card h200,a100,rtx-3060-laptop,mi300x --format jsonl -o predicted.jsonl -q
records+=(predicted.jsonl)
expect 0 report predicted.jsonl
said '^There is no figure to compare\. --html FILE shows what the files have\.$'
expect 0 report "${records[@]}"
! grep -q 'no figure' out || wrong "there are figures to compare"
said 'Matrix products: NVIDIA H200'
! grep -q MI300X out || wrong "a prediction is in the summary"
[ "$(wc -L <out)" -le 80 ] || wrong "report: a line of more than 80 columns"
expect 0 report "${records[@]}" --html records.html --md records.md --csv records.csv
[ "$(grep -c '' records.csv)" -gt 200 ] || wrong "the CSV has few rows"
# Figures of a card that was measured stay what was measured, and are their own contender's.
/usr/bin/python3 - <<'EOF' || wrong "predictions beside measured figures"
import csv
rows = [r for r in csv.DictReader(open("records.csv", encoding="utf-8", newline="")) if r["device"] == "NVIDIA H200"]
cases = {}
for r in rows:
    if r["counts"] == "1":
        cases.setdefault((r["bench"], r["case"], r["api"]), []).append(r["kind"])
assert ["measured", "predicted"] in [sorted(k) for k in cases.values()]
assert all(len(k) == len(set(k)) for k in cases.values())
EOF
grep -q 'A100-SXM4-80GB · vulkan (predicted) is\|NVIDIA GeForce RTX 3060 Laptop GPU · vulkan (predicted)' records.html ||
    wrong "the page does not say how far apart the cards are"
grep -q 'by the clock' records.html || wrong "the page does not say why"
for page in "records.html 30" "evil.html 1"; do
    read -r file count <<<"$page"
    /usr/bin/python3 "$tests/cli/report/report_geometry.py" "$file" "$count" || wrong "charts of $file"
done
# Every chart of the table in apps/report/chart.c but those of benches that no record has.
while read -r chart; do
    grep -q "id=\"$chart-1\"" records.html || wrong "no chart $chart"
done < <(sed -n 's/.*{\.id = "\([a-z-]*\)".*/\1/p' "$source/apps/report/chart.c" | grep -vE '^(conv|images-.*)$')

# ---- every form of results that `gpurt bench` writes is known ----
while read -r schema; do
    printf '{"schema":"%s","rows":[]}' "$schema" >known.json
    expect 0 report known.json
done < <(grep -hoE '"gpurt\.bench[a-z.]*/[0-9]+"' "$source"/apps/bench/*.c | tr -d '"' | sort -u)
# Convolutions and networks of images, as the bench writes them.
"$gpurt" bench conv --device ref:0 --shape 1x6x6x3x4,1x4x4x3x4 --time 0.005 --samples 1 --format json -o conv.json -q ||
    wrong "bench conv"
cat >images.jsonl <<'EOF'
{"schema":"gpurt.bench.images/1","gpurt":"0.1.0","command":["gpurt","bench","images"],"date":"2026-01-01T00:00:00Z","device":{"name":"A","backend":"vulkan"}}
{"model":"resnet18","resolution":32,"batch":64,"precision":"f32","ms":10,"images_per_s":6400,"forward_ms":3,"backward_ms":6,"optimizer_ms":1,"spread":0.01,"check":"ok"}
{"model":"resnet18","resolution":32,"batch":256,"precision":"f32","ms":32,"images_per_s":8000,"forward_ms":10,"backward_ms":20,"optimizer_ms":2,"spread":0.01,"check":"ok"}
EOF
expect 0 report conv.json images.jsonl --html more.html
for chart in conv images-batch images-phases; do
    grep -q "id=\"$chart-1\"" more.html || wrong "no chart $chart"
done
/usr/bin/python3 "$tests/cli/report/report_geometry.py" more.html 5 || wrong "charts of convolutions and images"

exit "$failed"
