#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# In place of `gpurt train` (GPURT_SWEEP_COMMAND): writes a log as it does and ends as the learning
# rate of its config says. Rows of epoch e have the loss lr / e. Usage: as `gpurt train KIND`.
#
#   1  done       3  crashes always    5  exit code 75 the first two times   7  no metric
#   2  memory     4  crashes once      6  a config that is refused           8  NaN
#   9  75 always  from 10 on: four epochs, of which as many may be done as next-LR has lines
#
# FAKE_SECONDS: how long one that is done takes.

set -u
config='' log=''
while [ $# -gt 0 ]; do
    case $1 in
    --config) config=$2 ;;
    --log) log=$2 ;;
    esac
    shift
done
dir=$(dirname "$log")
echo run >>"$dir/runs"
runs=$(wc -l <"$dir/runs")
lr=$(sed -n 's/^ *learning_rate: //p' "$config")
row() { echo "{\"event\":\"$1\",\"time\":$(date +%s.%N),$2}" >>"$log"; }
evaluate() { row evaluate "\"step\":$1,\"epoch\":$1,\"loss\":$(awk "BEGIN { print $lr / $1 }"),\"seconds\":$1"; }
finish() {
    row end "\"step\":3,\"ended\":\"$1\",\"seconds\":3"
    exit "$2"
}
start() { row start '"step":0,"steps":4'; }
case $lr in
1 | 1.*) ;;
2) echo 'gpurt: error: it does not fit' && exit 71 ;;
3) kill -SEGV $$ ;;
4) [ "$runs" -gt 1 ] || { start && exit 70; } ;;
5) [ "$runs" -gt 2 ] || { start && exit 75; } ;;
6) echo 'gpurt: error: refused' && exit 78 ;;
9) exit 75 ;;
[1-9][0-9]*) trap 'finish signal 75' TERM ;; # before anybody sees it start
esac
start
case $lr in
7)
    row evaluate '"step":1,"epoch":1,"accuracy":0.5,"seconds":1'
    finish epochs 0
    ;;
8) finish nonfinite 70 ;;
[1-9][0-9]*)
    for ((e = 1; e <= 4; e++)); do
        until [ "$(wc -l <"next-$lr")" -ge "$e" ]; do sleep 0.02; done
        evaluate "$e"
    done
    finish epochs 0
    ;;
esac
row evaluate '"step":0,"loss":-1,"seconds":0' # before any training: no trial's result
evaluate 1
sleep "${FAKE_SECONDS:-0}"
evaluate 2
finish epochs 0
