#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sweeps on slots of this machine: grids and random ones, every way in which a trial can end, what
# is killed and gone on with, halving, and what is refused. Usage: sweep.sh GPURT JSON_CHECK

set -uo pipefail
gpurt=$(realpath "${1:?usage: sweep.sh GPURT JSON_CHECK}")
json_check=$(realpath "$2")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
# Its name would be a format, were it taken for one.
fake=$tmp/100%dtrainer
ln -s "$tests/cli/sweep/fake_trainer.sh" "$fake"
two=(--devices "ref:0,ref:0")

# column NAME FILE: of a CSV without commas in it.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 1 { print $at[name] }' "$2"; }
# once N FILE: each trial from 0 on is there once, whatever the order.
once() { [ "$(column trial "$2" | sort -n | xargs)" = "$(seq 0 $(($1 - 1)) | xargs)" ] || wrong "$2: not each trial once"; }
# states FILE: those of the trials, in their order.
states() { tail -n +2 "$1" | sort -n | awk -F, '{ print $2 }' | xargs; }

expect 0 data make regression --samples 300 --features 4 -o d.h5

# ---- the guides' lists: six trials on two slots ----
cat >grid.yaml <<'Y'
# three rates by two batches
lr: [0.0001, 0.001, 0.01]
batch_size: [64, 128]
epochs: 2
data: d.h5
model: small
Y
expect 0 sweep grid.yaml --dry-run --format csv
[ "$(column lr out | xargs)" = "0.0001 0.0001 0.001 0.001 0.01 0.01" ] || wrong "another order of the grid"
[ ! -e grid ] || wrong "--dry-run made a folder"
expect 0 sweep grid.yaml "${two[@]}" --format csv
once 6 out
[ "$(states out)" = "done done done done done done" ] || wrong "not all are done"
cp out first.csv
told '^best: val_loss [0-9.]+, trial [0-9]: lr='
expect 0 sweep status grid --format csv
cmp -s <(sort first.csv | cut -d, -f1-6) <(sort out | cut -d, -f1-6) || wrong "status tells something else"
expect 0 sweep status grid --format json
"$json_check" <out || wrong "status: no JSON"
# The value is the smallest validation loss of the log, and the trial is what training alone gives.
for trial in 0 3; do
    expect 0 train supervised --config "grid/000$trial/config.yaml" --device ref:0 checkpoint_dir="alone$trial"
    same "alone$trial/best.h5" "grid/000$trial/checkpoints/best.h5"
    least=$(sed -n 's/.*"event":"evaluate".*"loss":\([^,]*\),"train_loss.*/\1/p' "grid/000$trial/log.jsonl" | sort -g | head -n 1)
    awk -v a="$least" -v b="$(sed -n 's/^ "value": \([^,]*\),/\1/p' "grid/000$trial/result.json")" \
        'BEGIN { exit !(a - b < 1e-9 && b - a < 1e-9) }' || wrong "trial $trial: another value than its log's"
done
logs_agree grid/000?/log.jsonl
expect 0 sweep best grid --apply best.yaml --format csv
best=$(sort -t, -g -k3 first.csv | awk -F, '$1 != "trial" { print $1; exit }')
[ "$(column trial out)" = "$best" ] || wrong "the best is trial $best"
grep -q "^# trial $best of grid: val_loss " best.yaml || wrong "best.yaml does not say where it is from"
kept=$(sed -n 's/^its checkpoints are in //p' err)
mkdir elsewhere
(cd elsewhere && "$gpurt" sweep best ../grid --apply best.yaml --format csv -o row.csv) 2>err
same best.yaml elsewhere/best.yaml
same out elsewhere/row.csv
expect 0 eval --checkpoint "$kept" --data d.h5 --device ref:0
(cd elsewhere && "$gpurt" sweep resume ../grid --format csv -o rows.csv) 2>err
once 6 elsewhere/rows.csv
expect 0 train supervised --config best.yaml --device ref:0 checkpoint_dir=again
same again/best.h5 "grid/000$best/checkpoints/best.h5"
# The report of a folder, and of a file: three figures, a line for each trial.
expect 0 report grid
said "the best val_loss is .*, of trial $best with"
expect 0 sweep status grid --format json -o grid.json
expect 0 report grid grid.json --html page.html
[ "$(grep -c 'figure class="chart" id="sweep' page.html)" -eq 6 ] || wrong "the report lacks figures of sweeps"
[ "$(grep -c '<title>trial [0-5]: val_loss' page.html)" -eq 24 ] || wrong "the report lacks trials"
refuse 66 'is no folder of a sweep' report alone0
refuse 73 'gpurt sweep resume grid' sweep grid.yaml "${two[@]}"
mkdir full
echo text >full/config.yaml
refuse 73 'full is not an empty folder' sweep grid.yaml --dir full
[ "$(find full -type f)$(cat full/config.yaml)" = full/config.yamltext ] || wrong "a folder of other files was changed"
# A sweep that was killed before its folder was whole: the next one begins there. With another file
# besides it does not.
mkdir killed
printf 'lr: [0.001]\nepochs: 1\ndata: d.h5\nmodel: small\n' >one.yaml
echo 4711 >killed/sweep.lock
for file in sweep.yaml config.yaml.4711.tmp mine.yaml; do echo half >killed/$file; done
refuse 73 'killed is not an empty folder' sweep one.yaml "${two[@]}" --dir killed
rm killed/mine.yaml
expect 0 sweep one.yaml "${two[@]}" --dir killed --format csv
once 1 out
same one.yaml killed/sweep.yaml
[ ! -e killed/config.yaml.4711.tmp ] || wrong "half a file is left of the sweep that was killed"
expect 0 sweep resume grid --format csv
once 6 out
sed -i 's/0.0001/0.0002/' grid.yaml
refuse 78 'has changed since the sweep began' sweep resume grid
sed -i 's/0.0002/0.0001/' grid/sweep.yaml grid.yaml
sed -i 's/64/32/' grid/sweep.yaml
refuse 78 'was changed' sweep status grid

# ---- Weights & Biases' keys ----
cat >wandb.yaml <<'Y'
name: rates
method: random
run_cap: 3
metric: {name: val_loss, goal: minimize}
parameters:
  lr: {distribution: log_uniform_values, min: 1e-4, max: 1e-2}
  optimizer: {value: adam}
  seed: {min: 0, max: 9}
config: best.yaml
retries: 1
Y
expect 0 sweep wandb.yaml --slots 2 device=ref:0 epochs=1 --dir random --format csv
once 3 out
cp out random.csv
expect 0 sweep wandb.yaml --dry-run --format csv device=cpu
[ "$(column lr out)" = "$(sort -n random.csv | sed -n 's/^[0-9].*,\(.*\),adam,.*/\1/p')" ] || wrong "other trials the second time"
cat >es.yaml <<'Y'
kind: es
parameters: {step_size: {values: [0.01, 0.02]}}
metric: {name: return}
Y
expect 0 sweep es.yaml env=cartpole num_envs=2 num_dirs=2 iterations=3 episode_length=20 --devices ref:0 --format csv
[ "$(states out)" = "done done" ] || wrong "es: not all are done"
expect 0 sweep best es --format csv
kept=$(sed -n 's/^its checkpoint is //p' err)
expect 0 play cartpole --checkpoint "$kept" --steps 3 --device ref:0

# ---- a command that is replaced, and one that is not there ----
cp "$gpurt" copy
library=$(ldd "$gpurt" | sed -n 's|.*=> \(.*\)/libgpurt[^/]*$|\1|p')
printf 'data: d.h5\nmodel: small\nepochs: 2\nlr: [0.01, 0.02, 0.03]\n' >replaced.yaml
LD_LIBRARY_PATH=$library gpurt=$tmp/copy into=1 begin sweep replaced.yaml --devices ref:0 --format csv
first() { [ -e replaced/0000/log.jsonl ]; }
wait_for "a trial of the copy" first
cp copy other && mv other copy
wait "$pid" || wrong "a command that was replaced: exit code $?"
[ "$(states out1)" = "done done done" ] || wrong "a command that was replaced: $(cat err1)"
export GPURT_SWEEP_COMMAND=$tmp/nowhere
expect 66 sweep replaced.yaml --dir nothing --slots 2
[ "$(grep -c 'nowhere cannot be started' err)" -eq 1 ] || wrong "a command that is not there: not one sentence"
grep -q '"crashes": 0' nothing/0000/state.json || wrong "a start that failed counts as a crash"

# ---- every way to end ----
export GPURT_SWEEP_COMMAND=$fake
echo 'lr: [1, 2, 3, 4, 5, 6, 8, 9]' >ways.yaml
expect 1 sweep ways.yaml --slots 3 --format csv
once 8 out
[ "$(states out)" = "done memory failed done done failed nan failed" ] || wrong "other ends: $(states out)"
[ "$(sort -n out | awk -F, '$1 == "0" { print $3 }')" = 0.5 ] || wrong "a row before any training is a trial's value"
for want in '1 1' '2 3' '3 2' '4 3' '5 1' '6 1' '7 10'; do
    read -r trial runs <<<"$want"
    [ "$(wc -l <"ways/000$trial/runs")" -eq "$runs" ] || wrong "trial $trial: $(wc -l <"ways/000$trial/runs") runs, wanted $runs"
done
told 'trial 2 failed: ended by signal 11'
told 'trial 5 failed: error: refused'
[ "$(grep -c '"crashes": 0' ways/0004/result.json)" -eq 1 ] || wrong "75 counts as a crash"
[ "$(grep -c '"crashes": 1' ways/0003/result.json)" -eq 1 ] || wrong "a crash does not count"
# A metric that no row has ends the sweep with its place.
printf 'metric: {name: val_loss}\nlr: [7, 1]\n' >none.yaml
expect 78 sweep none.yaml
told 'none.yaml:1:16: metric .val_loss. never appeared in the log of trial 0; its rows .evaluate. have accuracy'
[ ! -e none/0001/runs ] || wrong "a sweep without its metric went on"

# ---- halving at epoch 2, in the order 20, 30, 40, 10 ----
for lr in 20 30 40 10; do : >"next-$lr"; done
printf 'early_terminate: {type: hyperband, min_iter: 2, eta: 2}\nlr: [20, 30, 40, 10]\n' >halve.yaml
into=1 begin sweep halve.yaml --slots 4 --format csv
row_of() { grep -q "$2" "halve/000$1/log.jsonl"; }
printf '1\n1\n' >next-20
wait_for "epoch 2 of the first" row_of 0 '"epoch":2'
printf '1\n1\n' >next-30
wait_for "the end of the second, which is worse" row_of 1 '"ended":"signal"'
printf '1\n1\n' >next-40
wait_for "the end of the third, the worst" row_of 2 '"ended":"signal"'
printf '1\n1\n1\n1\n' >next-10
wait_for "the end of the best" row_of 3 '"ended":"epochs"'
printf '1\n1\n' >>next-20
wait "$pid" || wrong "halve: exit code $?"
[ "$(sort -n out1 | awk -F, '$1 != "trial" { print $2 $3 }' | xargs)" = "done5 halved15 halved20 done2.5" ] ||
    wrong "halving: $(cat out1)"

# ---- stopped, killed, gone on with ----
# A sweep that is killed takes its trials with it: they are asked to stop, and write checkpoints.
: >next-10
echo 'lr: [10]' >alone.yaml
into=1 begin sweep alone.yaml --format csv
started() { grep -q '"start"' alone/0000/log.jsonl; }
wait_for "a trial" started
kill -KILL "$pid"
wait "$pid" 2>/dev/null
begun=$SECONDS
until grep -q '"ended":"signal"' alone/0000/log.jsonl; do
    if [ $((SECONDS - begun)) -gt 60 ]; then
        wrong "a trial goes on a minute after its sweep was killed"
        break
    fi
    sleep 0.05
done
printf '1\n1\n1\n1\n' >next-10
expect 0 sweep resume alone --format csv
[ "$(states out)" = "done" ] || wrong "alone: not done"
unset GPURT_SWEEP_COMMAND
cat >long.yaml <<'Y'
lr: [0.01, 0.003, 0.001, 0.0003]
data: d.h5
model: small
batch_size: 8
epochs: 12
checkpoint_interval: 1
Y
expect 0 sweep long.yaml "${two[@]}" --dir whole --format csv
sort -n out | cut -d, -f1-4 >whole.csv
# rows N: whether trials have so many evaluations in all.
rows() { [ "$(cat long/000?/log.jsonl 2>/dev/null | grep -c '"event":"evaluate"')" -ge "$1" ]; }
into=1 begin sweep long.yaml "${two[@]}" --format csv
wait_for "three epochs" rows 3
refuse 73 "process $pid on" sweep resume long
expect 0 sweep status long
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
into=1 begin sweep resume long --format csv
wait_for "fifteen epochs" rows 15
stop TERM 75 "a sweep"
grep -q 'gpurt sweep resume' err1 || wrong "a sweep that was stopped does not say how to go on"
into=1 begin sweep resume long --format csv
wait_for "twenty epochs" rows 20
expect 0 sweep stop long
wait "$pid"
code=$?
[ "$code" -eq 75 ] || [ "$code" -eq 0 ] || wrong "sweep stop: exit code $code"
into=1 begin sweep resume long --format csv
child() { pgrep -P "$pid" >child; }
if wait_for "a trial of it, or its end" child; then
    kill -KILL "$(head -n 1 child)" 2>/dev/null || true
fi
wait "$pid" || wrong "resume after kill -9 of a trial: exit code $?"
expect 0 sweep status long --format csv
once 4 out
cmp -s <(sort -n out | cut -d, -f1-4) whole.csv || wrong "killed and gone on with: other results"
for trial in 0 1 2 3; do
    same "long/000$trial/checkpoints/best.h5" "whole/000$trial/checkpoints/best.h5"
done
grep -q '"event":"start",.*"step":[1-9]' long/000?/log.jsonl || wrong "no trial went on from a checkpoint"
left=$(find long -name '*.tmp' -print)
[ -z "$left" ] || wrong "left behind: $left"

# ---- what is refused ----
bad() { # CODE WORD LINES...: a file with these lines
    printf '%s\n' "${@:3}" >bad.yaml
    refuse "$1" "$2" sweep bad.yaml
    [ ! -e bad ] || wrong "a sweep that was refused made its folder"
}
bad 78 "bad.yaml:2:1: no key 'epoch'; did you mean 'epochs'?" 'lr: [1]' 'epoch: 3'
bad 78 "bad.yaml:1:1: lr: the list is empty" 'lr: []'
bad 78 "bad.yaml:2:20: max wants a finite number, not 'inf'" 'parameters:' ' lr: {min: 1, max: inf}'
bad 78 "no metric 'val_los'" 'lr: [1]' 'metric: val_los'
bad 78 'momentum' 'optimizer: [sgd, adam]' 'momentum: 0.9'
refuse 66 nowhere.yaml sweep nowhere.yaml
refuse 66 'is no folder of a sweep' sweep status .
refuse 64 'known are local slurm ssh' sweep grid.yaml --executor cloud
refuse 78 'lr=0.5: wandb.yaml:6:3 has lr already' sweep wandb.yaml lr=0.5
refuse 64 'behind --' sweep wandb.yaml -- --partition=gpu
refuse 78 '--sshlogin' sweep es.yaml --dir ssh --executor ssh
refuse 69 'no device 99' sweep es.yaml --dir dev --devices 99
refuse 64 'sweep best: the folder' sweep best

exit "$failed"
