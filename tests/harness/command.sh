# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For tests of the command from outside, read with `.`; they set `gpurt` to its path first, and
# `scratch` where they want another folder than the system's for temporary files. Makes the folder
# $tmp, gone at the end; out and err in it keep what the command wrote last. A test ends with `exit
# "$failed"`.
#
# No verdict depends on how fast the machine is, or on what else it does. A test that needs a
# process at some point of its work waits for a sign of that, with wait_for, and never for so many
# seconds.

me=$(basename "$0")
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tmp=$(mktemp -d -p "${scratch:-${TMPDIR:-/tmp}}" 2>/dev/null || mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset GPURT_DEVICE GPURT_PROFILE
failed=0

wrong() {
    printf '%s: %s\n' "$me" "$*" >&2
    sed 's/^/    stdout: /' "$tmp/out" | tail -n 12 >&2
    sed 's/^/    stderr: /' "$tmp/err" | tail -n 12 >&2
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
# On a slow machine a line before it says that kernels are compiled.
refuse() {
    local want=$1 word=$2
    shift 2
    expect "$want" "$@"
    grep -qF -- "$word" "$tmp/err" || wrong "gpurt $*: stderr lacks '$word'"
    [ "$(grep -vc '^compiling kernels, ' "$tmp/err")" -eq 1 ] || wrong "gpurt $*: not one line on stderr"
    [ ! -s "$tmp/out" ] || wrong "gpurt $*: an error, and yet something on stdout"
}
# said, told PATTERN: on stdout, on stderr.
said() { grep -qE -- "$1" "$tmp/out" || wrong "stdout lacks '$1'"; }
told() { grep -qE -- "$1" "$tmp/err" || wrong "stderr lacks '$1'"; }
same() { cmp -s "$1" "$2" || wrong "$1 and $2 differ"; }
# ended WORD LOG: its last row says so.
ended() {
    tail -n 1 "$2" | grep -q "\"event\":\"end\".*\"ended\":\"$1\"" ||
        wrong "$2 does not end by $1: $(tail -n 1 "$2")"
}
# recorded WORD...: the JSON on stdout says that the command began with gpurt and these words.
recorded() {
    local want='"command":["gpurt"' word
    for word in "$@"; do want+=",\"$word\""; done
    tr -d ' \n' <"$tmp/out" | grep -qF -- "$want" || wrong "the JSON lacks $want"
}
# logs_agree LOG...: every row has the fields that docs/training.md says.
logs_agree() {
    local why
    why=$(/usr/bin/python3 "$tests/cli/train/log_schema.py" "$tests/../docs/training.md" "$@" 2>&1) || wrong "$why"
}

# ---- commands in the background ----

# begin ARGUMENT...: starts gpurt as process $pid. `into=1 begin ...` writes to out1 and err1: other
# commands run beside it.
begin() {
    # Emptied here: the process in the background may come to it later.
    : >"$tmp/out${into-}" && : >"$tmp/err${into-}"
    "$gpurt" "$@" >"$tmp/out${into-}" 2>"$tmp/err${into-}" </dev/null &
    pid=$!
}
# host_part: whether what follows, which the host alone decides, is tried here. It is with ref: a
# training of a few steps takes 0.3 s of a core there, and 0.85 s with PoCL or lavapipe (2026-11).
host_part() { [[ $device == ref* ]]; }

# wait_for WHAT COMMAND...: until COMMAND succeeds. WHAT never came when process $pid ends before,
# or after ten minutes.
wait_for() {
    local what=$1 begun=$SECONDS lives=1
    shift
    until "$@" >/dev/null 2>&1; do
        if [ "$lives" -eq 0 ]; then
            wrong "$what never came: the process ended before"
            return 1
        elif [ $((SECONDS - begun)) -gt 600 ]; then
            wrong "$what did not come within ten minutes"
            kill -KILL "$pid"
            return 1
        fi
        # Looked for once more after the process's end: it may have come with that.
        kill -0 "$pid" 2>/dev/null || lives=0
        sleep 0.02
    done
}
# Five seconds are promised from a signal to the end. With ten processes on two cores a process has
# a fifth of its time.
stop_seconds=25
# stop SIGNAL CODES WORD...: process $pid gets the signal, ends within that time and with one of the
# exit codes. The words name it; what it does must take far longer.
stop() {
    local signal=$1 want=$2 begun=$SECONDS code=0
    shift 2
    kill "-$signal" "$pid" 2>/dev/null || wrong "$*: ended before SIG$signal came"
    while kill -0 "$pid" 2>/dev/null; do
        if [ $((SECONDS - begun)) -gt $stop_seconds ]; then
            wrong "$*: goes on $stop_seconds s after SIG$signal"
            kill -KILL "$pid"
            break
        fi
        sleep 0.02
    done
    wait "$pid" 2>/dev/null || code=$?
    [[ " $want " == *" $code "* ]] || wrong "$*: exit code $code after SIG$signal, wanted $want"
}
