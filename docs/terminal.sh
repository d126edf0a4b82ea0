#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes docs/terminal.svg, the picture of the README: runs the commands below with the gpurt of a
# build, and draws what they print.
# Usage: docs/terminal.sh [GPURT [FILE]]

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
gpurt=$(realpath "${1:-$root/build/release/gpurt}")
svg=$(realpath -m "${2:-$root/docs/terminal.svg}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin" "$tmp/here"
ln -s "$gpurt" "$tmp/bin/gpurt"
cd "$tmp/here"

# Messages and results in the order in which they come, without progress, which rewrites its line on
# a terminal. Of the three recommendations of `gpurt bench` the last is shown.
show() {
    printf '$ %s\n' "$*"
    PATH=$tmp/bin:$PATH "$@" >"$tmp/said" 2>&1 || { cat "$tmp/said" >&2; return 1; }
    sed -E '/^(epoch [0-9]+\/|compiling kernels)/d
        /^Highest throughput/,/^Recommended/ { /^Recommended/!d; s/^/[highest throughput and best efficiency, in the same form]\n/ }' "$tmp/said"
    echo
}
{
    show gpurt devices
    show gpurt data make regression --samples 50000 -o d.h5
    show gpurt bench --data d.h5 --apply best.yaml
    show gpurt train supervised --config best.yaml --data d.h5 --epochs 5
    show gpurt eval --data d.h5 --part validation
} >"$tmp/text"

# One text element a line, all characters equally wide: 7.2 units of 12.
awk -v columns=136 '
    function line(text, bold) {
        gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text)
        rows++
        if (text != "")
            body = body sprintf("<text x=\"14\" y=\"%d\"%s>%s</text>\n", 12 + 16 * rows, bold ? " class=\"p\"" : "", text)
    }
    { text = $0; bold = /^[$] /
      do { line(substr(text, 1, columns), bold); text = substr(text, columns + 1) } while (text != "") }
    END {
        width = 28 + columns * 7.2; height = 24 + 16 * rows
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", width, height, width, height
        print "<title>gpurt in a terminal</title>"
        print "<style>text { font: 12px \"DejaVu Sans Mono\", Menlo, Consolas, monospace; fill: #1f2328; white-space: pre }"
        print ".p { font-weight: bold; fill: #0550ae }</style>"
        printf "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#f6f8fa\" stroke=\"#d0d7de\"/>\n"
        printf "%s</svg>\n", body
    }' <(sed -e '$d' "$tmp/text") >"$tmp/svg"
mv "$tmp/svg" "$svg"
