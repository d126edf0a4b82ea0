# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For tests of the command from outside, read with `.`; they set `gpurt` to its path first. Makes the folder
# $tmp, gone at the end; out and err in it keep what the command wrote last. A test ends with `exit
# "$failed"`.

me=$(basename "$0")
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset GPURT_DEVICE GPURT_PROFILE
failed=0

wrong() {
    printf '%s: %s\n' "$me" "$*" >&2
    sed 's/^/    stdout: /' "$tmp/out" | head -n 8 >&2
    sed 's/^/    stderr: /' "$tmp/err" | head -n 8 >&2
    # shellcheck disable=SC2034  # read by the including file
    failed=1
}
# expect CODE ARGUMENT...: runs gpurt.
expect() {
    local want=$1 got=0
    shift
    # shellcheck disable=SC2154  # set by the including file
    "$gpurt" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || got=$?
    [ "$got" -eq "$want" ] || wrong "gpurt $*: exit code $got, wanted $want"
}
# refuse CODE WORD ARGUMENT...: the same, with one line on stderr that has WORD, nothing on stdout.
refuse() {
    local want=$1 word=$2
    shift 2
    expect "$want" "$@"
    grep -qF -- "$word" "$tmp/err" || wrong "gpurt $*: stderr lacks '$word'"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || wrong "gpurt $*: not one line on stderr"
    [ ! -s "$tmp/out" ] || wrong "gpurt $*: an error, and yet something on stdout"
}
said() { grep -qE -- "$1" "$tmp/out" || wrong "stdout lacks '$1'"; }
# recorded WORD...: the JSON on stdout says that the command began with gpurt and these words.
recorded() {
    local want='"command":["gpurt"' word
    for word in "$@"; do want+=",\"$word\""; done
    tr -d ' \n' <"$tmp/out" | grep -qF -- "$want" || wrong "the JSON lacks $want"
}
# logs_agree LOG...: every row has the fields that docs/training.md says.
logs_agree() {
    /usr/bin/python3 "$tests/cli/log_schema.py" "$tests/../docs/training.md" "$@" 2>"$tmp/err" ||
        wrong "another schema than that of docs/training.md"
}
