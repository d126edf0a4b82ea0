#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt bench` as a person uses it: help of one kind, what is measured when one setting is asked
# for, how long a grid takes, what is left after Ctrl-C or SIGTERM. Usage: bench.sh GPURT
# JSON_CHECK

set -uo pipefail
gpurt=$(realpath "${1:?usage: bench.sh GPURT JSON_CHECK}")
json_check=$(realpath "${2:?usage: bench.sh GPURT JSON_CHECK}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
expect 0 data make regression --samples 2000 --features 3 -o bowls.h5

# ---- help: the options of the kinds that are named, and what all kinds have ----
expect 0 bench rollout --help
for word in --num-envs --policy --time --samples --device --format --help; do
    said "$word "
done
for word in --shape --count --size; do
    ! grep -q -- "$word" out || wrong "bench rollout --help shows $word"
done
expect 0 bench launch memory --help
said '--count' && said '--size'
! grep -q -- '--num-envs' out || wrong "bench launch memory --help shows --num-envs"
expect 0 bench all --help
said '--num-envs' && said '--shape'
refuse 64 "is an option of \`gpurt bench gemm\`" bench rollout --shape 8

# ---- the record names the kind ----
expect 0 bench conv --device ref:0 --shape 1x4x4x3x4 --pass forward --time 0.005 --samples 1 --format json
recorded bench conv

# ---- one setting is one row ----
one=(bench rollout --device ref:0 --env cartpole --episode-length 5 --time 0.01 --samples 1)
expect 0 "${one[@]}" --num-envs 128 --num-dirs 16 --dir-chunk 8 --format csv
[ "$(grep -c '^rollout,' out)" -eq 1 ] || wrong "bench rollout of one setting: not one row"
expect 0 "${one[@]}" --num-envs 4 --num-dirs 2,3 --dir-chunk 1 --policy linear,mlp16 --format csv
[ "$(grep -c '^rollout,' out)" -eq 4 ] || wrong "bench rollout of 2 directions and 2 policies: not 4 rows"
# ---- an environment whose state lies in memory: alone, with settings ----
team=(bench rollout --device ref:0 --env uav --time 0.01 --samples 1 --policy random)
expect 0 "${team[@]}" --num-envs 2,5 --set map=12,num_uavs=3,window=5 --format csv
[ "$(grep -c '^rollout,uav,.*,ok' out)" -eq 2 ] || wrong "bench rollout of uav: not two rows: $(cat out)"
grep -q ',5,.*,15,' out || wrong "bench rollout of uav: 5 copies of 3 UAVs are not 15 at once: $(cat out)"
refuse 78 "did you mean 'num_uavs'?" "${team[@]}" --num-envs 2 --set num_uav=3
refuse 78 "the window is larger than the map" "${team[@]}" --num-envs 2 --set map=5
refuse 64 "the value is no number" "${team[@]}" --set map=big
refuse 64 "settings are NAME=VALUE" "${team[@]}" --set map
refuse 64 "has no settings" bench rollout --device ref:0 --env cartpole --set map=4
refuse 64 "random actions" "${team[@]}" --policy mlp16
refuse 64 "evolution strategies" "${team[@]}" --num-dirs 4
refuse 64 "keeps its state in device memory" train es --env uav --device ref:0
refuse 64 "uav-ppo.h5" play uav --device ref:0
small=(bench --device ref:0 --data bowls.h5 --model 'depth=1,hidden=4' --time 0.01 --steps 1)
expect 0 "${small[@]}" --batch-sizes 32 --num-workers 0 --precision f32 --format csv
[ "$(grep -c ',ok,' out)" -eq 1 ] || wrong "bench of one setting: not one row"

# ---- memory of a small model is not 0.000 ----
expect 0 "${small[@]}" --batch-sizes 32 --num-workers 0
grep -qE ' [0-9.]+ KiB  ok$' out || wrong "the memory of a small model is not in KiB"

# ---- the next command has every option that was given, each once ----
expect 0 "${small[@]}" --batch-sizes 16,32 --num-workers 0,1 --precision f32,f16 --pin-memory on --mem-fraction 0.5 \
    --max-submit-ms 100 --mem-limit 1GB --targets y
next=$(sed -n 's/^Next: gpurt //p' out)
for word in '--device ref:0' '--data bowls.h5' '--model depth=1,hidden=4' '--time 0.01' '--steps 1' '--num-workers' \
    '--precision' '--pin-memory' '--mem-fraction 0.5' '--max-submit-ms 100' '--mem-limit 1000MB' '--targets y'; do
    case " $next " in
    *" $word "* | *" $word"[0-9a-z,\ ]*) ;;
    *) wrong "the next command lacks $word: $next" ;;
    esac
done
[ -z "$(grep -oE -- '--[a-z-]+' <<<"$next" | sort | uniq -d)" ] || wrong "the next command repeats an option: $next"
# Where nothing fits a small model is proposed, in place of the one that was given.
expect 71 "${small[@]}" --batch-sizes 64 --num-workers 0 --mem-limit 1KB
[ "$(grep '^Next:' out | grep -o -- '--model' | wc -l)" -eq 1 ] || wrong "the next command names two models"

# ---- a long grid says how long it takes ----
# interrupt SIGNAL PATTERN ARGUMENT...: the signal comes when PATTERN is on stdout. A bench has
# printed what it had.
interrupt() {
    local signal=$1 pattern=$2
    shift 2
    begin "$@"
    wait_for "gpurt $*: '$pattern'" grep -qE -- "$pattern" out
    stop "$signal" 75 "gpurt $*"
    grep -qE 'partial: [0-9]+ of [0-9]+ rows' err || wrong "gpurt $*, SIG$signal: not said to be partial"
}
grid=(bench --device ref:0 --data bowls.h5 --batch-sizes 16-1000+8 --num-workers 0,1 --time 0.3 --steps 1)
interrupt INT ' ok$' "${grid[@]}"
grep -qE '^248 rows of 0.3 s each and more: about 2 min' err || wrong "a grid of 248 rows does not say how long it takes"

# ---- after Ctrl-C and SIGTERM: rows, and that they are not all ----
said 'Highest throughput'
said '^partial: [1-9][0-9]* of 248 rows'
interrupt TERM ' ok$' "${grid[@]}" --apply partial.yaml
said '^partial: '
grep -qE '^ +batch_size: [0-9]+$' partial.yaml || wrong "bench --apply after SIGTERM: no config of the rows that there are"
# Before the first row nothing can be recommended.
interrupt INT '^ *Batch' bench --device ref:0 --data bowls.h5 --batch-sizes 16 --num-workers 0 --time 60 --apply none.yaml
grep -q 'none.yaml is not written' err || wrong "bench --apply without a row: no word"
[ ! -e none.yaml ] || wrong "bench --apply without a row wrote a config"
for signal in INT TERM; do
    interrupt "$signal" '^device copy' bench memory --device ref:0 --size 4KiB-64KiB+1KiB --time 0.3
    interrupt "$signal" '^independent|^[a-z]+ .* ok$' bench launch --device ref:0 --count 1-64+1 --time 0.3
    interrupt "$signal" ' ok$' bench gemm --device ref:0 --shape "$(seq -s, 8 40)" --time 1
    interrupt "$signal" ' ok$' bench rollout --device ref:0 --env cartpole --num-envs 1-50 --num-dirs 1 --episode-length 5
    interrupt "$signal" ' ok$' bench mlp --device ref:0 --model depth=1,hidden=4 --batch-sizes 8-64+8 --time 1
    interrupt "$signal" ' ok$' bench data --data bowls.h5 --batch-sizes 8-64+1 --num-workers 0 --time 1
done
# Programs are told as well, and the file is kept.
interrupt TERM . bench memory --device ref:0 --size 4KiB-64KiB+1KiB --time 0.3 --format jsonl
grep -q '"partial": *true' out || wrong "jsonl of a part: no \"partial\": true"
begin bench memory --device ref:0 --size 4KiB-64KiB+1KiB --time 0.2 --format json -o part.json
wait_for "the first row of JSON" grep -q '^244 rows' err
stop TERM 75 "bench --format json"
"$json_check" <part.json || wrong "json of a part is no JSON"
grep -q '"partial": *true' part.json || wrong "json of a part: no \"partial\": true"
expect 0 bench memory --device ref:0 --size 4KiB --time 0.01 --samples 1 --format json
! grep -q '"partial"' out || wrong "a whole bench says that it is partial"

exit "$failed"
