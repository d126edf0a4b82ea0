#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt train ppo`, `train uav` and `eval ENV` from outside: what they learn, the same bits after a
# stop, settings that a checkpoint keeps, and what is refused. Usage: ppo.sh GPURT JSON_CHECK DEVICE

set -uo pipefail
gpurt=$(realpath "${1:?usage: ppo.sh GPURT JSON_CHECK DEVICE}")
json_check=$(realpath "${2:?usage: ppo.sh GPURT JSON_CHECK DEVICE}")
device=${3:?usage: ppo.sh GPURT JSON_CHECK DEVICE}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$tmp" || exit 1
export GPURT_DEVICE=$device
same() { cmp -s "$1" "$2" || wrong "$1 and $2 differ"; }
# column NAME: of the newest CSV, its last row.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } { last = $at[name] } END { print last }' out; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }' || wrong "$3: $1, wanted at least $2"; }

# ---- rows, log, checkpoint ----
uav=(train uav --num-envs 6 --num-uavs 2 --map=8 window=3 rollout_steps=12 max_steps=10 evaluate_envs=5 hidden=16 -q)
expect 0 "${uav[@]}" --iterations 4 --checkpoint whole.h5 --log whole.jsonl --format csv
head -n 1 out | grep -q '^step,return,length,arrived,collisions,.*evaluate_arrived' || wrong "the terms of the environment have no columns"
[ "$(grep -c '"event":"train"' whole.jsonl)" -eq 4 ] || wrong "not a row for each iteration"
grep -q '"event":"baseline".*"arrived":.*"baseline":"random actions"' whole.jsonl || wrong "no baseline"
logs_agree whole.jsonl
# Where the time went: every part once, and all but the whole add up to it.
shares=$(awk -F'"share":' '/"event":"timing"/ && !/"part":"whole"/ { split($2, s, /[,}]/); sum += s[1]; n++ } END { print n, (sum > 0.999 && sum < 1.001) }' whole.jsonl)
[ "$shares" = "5 1" ] || wrong "parts of the time, and whether their shares add up: $shares"
for part in environment 'action selection' advantages update host whole; do
    grep -q "\"event\":\"timing\".*\"part\":\"$part\"" whole.jsonl || wrong "the log lacks the time of '$part'"
done

# ---- the same bits ----
expect 0 "${uav[@]}" --iterations 2 --checkpoint part.h5
# What was given then need not be given again.
expect 0 train uav --resume part.h5 --iterations 4 -q
same part.h5 whole.h5
begin "${uav[@]}" --iterations 100000 --checkpoint cut.h5 --log cut.jsonl
wait_for "an iteration" grep -q '"event":"train"' cut.jsonl && stop INT 75 "train uav"
grep -q 'resume cut.h5' err || wrong "an interruption does not say how to go on"
done_so_far=$(grep -c '"event":"train"' cut.jsonl)
expect 0 train uav --resume cut.h5 --iterations $((done_so_far + 2)) -q
expect 0 "${uav[@]}" --iterations $((done_so_far + 2)) --checkpoint long.h5
same cut.h5 long.h5
# A stop in the middle of an iteration that takes long gives it up; on a device that is too fast for
# that it is as above.
case $device in opencl*) envs=192 ;; vulkan*) envs=64 ;; *) envs=8 ;; esac
long=(train uav --num-envs "$envs" --num-uavs 4 --map 10 window=5 rollout_steps=32 max_steps=20 evaluate_envs=4 evaluate_every=1000 -q)
begin "${long[@]}" --iterations 1000 --checkpoint given.h5 --log given.jsonl
wait_for "an iteration" grep -q '"event":"train"' given.jsonl && stop INT 75 "train uav"
done_so_far=$(grep -c '"event":"train"' given.jsonl)
slow=$(awk -F'"seconds":' '/"event":"train"/ { split($2, s, /[,}]/); print (s[1] > 2); exit }' given.jsonl)
[ "$slow" -eq 0 ] || [ "$done_so_far" -eq 1 ] || wrong "the iteration was not given up: $done_so_far were done"
expect 0 train uav --resume given.h5 --iterations $((done_so_far + 1)) -q
expect 0 "${long[@]}" --iterations $((done_so_far + 1)) --checkpoint straight.h5
same given.h5 straight.h5
expect 0 "${uav[@]}" --iterations 4 normalize_observations=true --checkpoint normal.h5
expect 0 "${uav[@]}" --iterations 2 normalize_observations=true --checkpoint again.h5
expect 0 train uav --resume again.h5 --iterations 4 -q
same again.h5 normal.h5
# Another start, in 16 bits, from networks that are there.
expect 0 "${uav[@]}" --iterations 1 --from whole.h5 use_amp=true seed=5 --checkpoint half.h5

# ---- eval ----
expect 0 eval uav --checkpoint whole.h5 --episodes 7 --format json
"$json_check" <out || wrong "eval: no JSON"
said '"policy": *"random actions"'
expect 0 eval uav --checkpoint whole.h5 --episodes 7 --seed 3 --format csv map=9 num_uavs=4
[ "$(wc -l <out)" -eq 3 ] || wrong "eval: not a row for the policy and one for random actions"
[ "$(head -n 1 out)" = policy,episodes,return,length,arrived,collisions,all_arrived,steps_per_s ] ||
    wrong "eval: other columns than the environment's: $(head -n 1 out)"

# ---- learning ----
# On one device is enough: the others compute the same. The bars are far from what is reached, and
# from random actions: 0.77 of two UAVs arrive by chance, and a pole that is pushed at random falls
# after about 20 steps.
if [ "$device" = opencl:0 ]; then
    expect 0 train uav --num-envs 64 --num-uavs 2 --map 8 rollout_steps=32 lr=1e-3 --iterations 40 evaluate_every=40 \
        --checkpoint learnt.h5 -q
    expect 0 eval uav --checkpoint learnt.h5 --format csv
    at_least "$(sed 3d out >one && mv one out && column arrived)" 0.9 "share of UAVs that arrive"
    expect 0 train ppo --env cartpole --num-envs 32 lr=2e-3 --iterations 12 evaluate_every=12 --checkpoint pole.h5 -q
    expect 0 eval cartpole --checkpoint pole.h5 --format csv
    at_least "$(sed 3d out >one && mv one out && column return)" 200 "steps that the pole stands"
fi

# ---- play ----
# looks CHECKPOINT ...: the picture is what happened, and the same as that of the C reading.
looks() {
    local checkpoint=$1
    shift
    expect 0 play uav --checkpoint "$checkpoint" "$@" -o play.svg
    expect 0 play uav --checkpoint "$checkpoint" "$@" --device ref:0 -o ref.svg
    same play.svg ref.svg
    expect 0 play uav --checkpoint "$checkpoint" "$@" --format json -o play.json
    "$json_check" <play.json || wrong "play: no JSON"
    python3 "$here/play_check.py" play.svg play.json || wrong "play $*: the picture is not what happened"
}
looks whole.h5 --start 5 --seed 3 num_obstacles=9
host_part || exit "$failed"
looks whole.h5
looks whole.h5 --steps 4 map=40 num_uavs=7 max_steps=300
[ "$(grep -c 'class="agent"' play.svg)" -eq 7 ] || wrong "play: KEY=VALUE is not the environment's"
# What is watched is an episode of `gpurt eval`.
expect 0 eval uav --checkpoint whole.h5 --episodes 1 --seed 8 --format csv
returned=$(sed 3d out >one && mv one out && column return)
expect 0 play uav --checkpoint whole.h5 --seed 8 --format json -o play.json
python3 -c 'import json, sys; a = json.load(open("play.json"))["return"]; sys.exit(abs(a - float(sys.argv[1])) > 1e-3)' \
    "$returned" || wrong "play: another return than that of eval, $returned"
refuse 65 "a policy for 'uav' and not for 'cartpole'" play cartpole --checkpoint whole.h5
refuse 65 "a policy for 'uav' and not for 'cartpole'" eval cartpole --checkpoint whole.h5
refuse 64 "at most 5000" play uav --checkpoint whole.h5 --start 5001
refuse 64 "--seed" play uav --checkpoint whole.h5 --seed -1
refuse 78 "map is 2" play uav --checkpoint whole.h5 map=2
# One in registers, and files of one's own: with a drawing, and without.
expect 0 train ppo --env pendulum --num-envs 2 rollout_steps=4 --iterations 1 hidden=8 --checkpoint pendulum.h5 -q
expect 0 play pendulum --checkpoint pendulum.h5 --steps 20 -o pendulum.svg
grep -q 'angle, rad' pendulum.svg || wrong "play: no picture of a pendulum by PPO"
expect 0 play pendulum --checkpoint pendulum.h5 --steps 20 --format json -o pendulum.json
python3 - <<'END' || wrong "play: observations of a pendulum are not those of its states"
import json, math
trip = json.load(open("pendulum.json"))
assert len(trip["frames"]) == 20 and len(trip["actions"]) == 20
for state, seen in zip(trip["frames"], trip["observations"]):
    a = state[trip["state"].index("a")]
    assert any(abs(v - math.cos(a)) < 1e-5 for v in seen) and any(abs(v - math.sin(a)) < 1e-5 for v in seen), (state, seen)
END
awk '/^```/ { inside = $0 == "```team"; next } inside' "$here/../../../shaders/env/README.md" >team.k
sed '/ENV_SHAPES/d' team.k >plain.k
for env in team plain; do
    expect 0 train ppo --env ./$env.k --num-envs 2 rollout_steps=4 --iterations 1 hidden=8 --checkpoint $env.h5 -q
done
expect 0 play ./team.k --checkpoint team.h5 -o team.svg
python3 -c 'import xml.etree.ElementTree as t
import sys
classes = [e.get("class") for e in t.parse("team.svg").iter()]
sys.exit([classes.count(c) for c in ("area", "goal", "agent")] != [1, 1, 3])' || wrong "play: team.k is drawn otherwise"
refuse 65 "does not say how it is drawn" play ./plain.k --checkpoint plain.h5
expect 0 play ./plain.k --checkpoint plain.h5 --format json

# ---- averages, copies, columns ----
# The average of a run is its own.
expect 0 "${uav[@]}" --iterations 4 ema=0.9 --checkpoint mean.h5
expect 0 "${uav[@]}" --iterations 2 ema=0.9 --checkpoint mean-part.h5
cp mean-part.h5 mean-kept.h5
for ema in 0 0.5; do
    refuse 78 "mean-part.h5 was made with ema=0.9; here it is $ema, which is another run" train uav --resume mean-part.h5 --iterations 4 ema=$ema -q
done
same mean-part.h5 mean-kept.h5
refuse 78 "whole.h5 was made with ema=0; here it is 0.9, which is another run" train uav --resume whole.h5 --iterations 5 ema=0.9 -q
expect 0 train uav --resume mean-part.h5 --iterations 4 ema=0.9 -q
same mean-part.h5 mean.h5
# Copies that the device chose are in the same place of a checkpoint after a resume.
few=(--env pendulum rollout_steps=3 evaluate_envs=2 hidden=8 -q)
expect 0 train ppo "${few[@]}" --iterations 2 --checkpoint own.h5
expect 0 train ppo "${few[@]}" --iterations 1 --checkpoint own-part.h5
expect 0 train ppo --resume own-part.h5 --iterations 2 -q
same own-part.h5 own.h5
# Columns of terms that an environment lacks are nowhere: uav has three, pendulum one.
expect 0 train ppo --env pendulum --num-envs 2 rollout_steps=4 --iterations 1 hidden=8 --checkpoint bare.h5 -q --format csv
! head -n 1 out | grep -q term || wrong "train ppo: columns of terms that pendulum lacks: $(head -n 1 out)"
expect 0 eval pendulum --checkpoint bare.h5 --episodes 2 --format csv
[ "$(head -n 1 out)" = policy,episodes,return,length,good,steps_per_s ] ||
    wrong "eval: columns of terms that pendulum lacks: $(head -n 1 out)"
refuse 66 "none.h5" eval uav --checkpoint none.h5
refuse 66 "uav-ppo.h5" eval uav

# ---- what does not fit ----
# Learning, or the trials of a run that would fit: said before an earlier checkpoint is moved.
expect 0 "${uav[@]}" --iterations 1 --checkpoint stays.h5
cp stays.h5 stayed.h5
refuse 78 'log_std has no effect with the discrete actions' "${uav[@]}" --checkpoint stays.h5 log_std=-1
refuse 71 'lower num_envs, rollout_steps or batch_size' "${uav[@]}" --checkpoint stays.h5 --num-envs 900 --mem-limit 2MB
refuse 71 '30000 copies (evaluate_envs) take' "${uav[@]}" --checkpoint stays.h5 evaluate_envs=30000 --mem-limit 2MB
same stays.h5 stayed.h5
[ ! -e stays-earlier-1.h5 ] || wrong "a run that does not fit moved an earlier checkpoint"

# ---- networks that leave ----
# flies CHECKPOINT: the program of docs/environments.md chooses the moves that gpurt chose.
# Debian's Python has NumPy.
flies() {
    expect 0 convert "$1" uav.safetensors
    expect 0 play uav --checkpoint "$1" --start 3 --format json -o uav.json
    /usr/bin/python3 fly.py >fly.txt || wrong "$1: NumPy flies otherwise"
    # A policy that leaves is a policy still; what only a run needs stays.
    expect 0 play uav --checkpoint uav.safetensors --start 3 --format json -o again.json
    same uav.json again.json
    ! grep -qa '"worlds/' uav.safetensors || wrong "convert: the state of the copies left too"
    expect 0 convert --all "$1" all.safetensors
    expect 0 convert all.safetensors back.h5
    cp "$1" there.h5
    for run in there back; do
        expect 0 train uav --resume $run.h5 --iterations 5 -q
    done
    same there.h5 back.h5
}
awk '/^```/ { inside = $0 == "```python"; next } inside' "$here/../../../docs/environments.md" >fly.py
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    flies whole.h5
    expect 0 "${uav[@]}" --iterations 2 activation=tanh depth=3 --checkpoint tanh.h5
    flies tanh.h5
    expect 0 "${uav[@]}" --iterations 3 normalize_observations=true --checkpoint norm.h5
    flies norm.h5
    grep -qa '"normalizer/mean_rstd_variance"' uav.safetensors || wrong "convert: the normalizer stayed behind"
    # What the program is there to find: a policy of another run.
    expect 0 convert whole.h5 uav.safetensors
    ! /usr/bin/python3 fly.py >fly.txt 2>&1 || wrong "fly.py takes the networks of another run"
fi

# ---- a config ----
cat >team.yaml <<'YAML'
ppo:
  num_uavs: 2
  map: 8
  settings: [window=3, collision=0.5]
  episodes_per_batch: 4
  max_steps: 9
  update_epochs: 2
  gamma: 0.9
  evaluate_envs: 4
  actor: [{linear: 12}, relu, {linear: out}]
optimizer:
  lr: 1e-3
YAML
expect 0 train uav --config team.yaml --iterations 1 --checkpoint team.h5
grep -qE '^environment uav: .*map 8.*window 3' err || wrong "settings of the config are not the environment's"
grep -qE '^iteration +9 steps of each copy: 72 rows; 2 epochs' err || wrong "episodes_per_batch is not so many copies"

# ---- targets ----
expect 0 "${uav[@]}" --iterations 50 target_return=-1000 --checkpoint target.h5 --log target.jsonl
grep '"event":"end"' target.jsonl | grep -q '"ended":"until"' || wrong "a target that is reached does not end the run"
[ "$(grep -c '"event":"train"' target.jsonl)" -lt 50 ] || wrong "a target that is reached: all iterations were done"

# ---- a schedule ----
# Over all updates of the run: half of the way down after half of the iterations.
expect 0 "${uav[@]}" --iterations 4 lr=1e-2 schedule=cosine --checkpoint down.h5 --log down.jsonl
grep '"event":"train"' down.jsonl | sed 's/.*"lr":\([^,]*\),.*/\1/' | awk '{ a[NR] = $1 }
    END { exit !(NR == 4 && a[1] > 0.008 && a[1] < 0.01 && a[2] > 0.0045 && a[2] < 0.006 && a[4] < 0.0005) }' ||
    wrong "the learning rate does not follow its schedule"

# ---- what is refused ----
refuse 78 "did you mean 'map'" train uav --mapp 12
refuse 78 "map is 3" train uav --map 3
refuse 78 "window" train uav --map 8 --window 9
refuse 78 "num_uavs" train uav --map 4 --window 3 --num-uavs 12
refuse 78 "rollout_steps" train uav rollout_steps=0
refuse 78 "gives [4]" train uav actor='[{linear: 4}]'
refuse 78 "did you mean 'learning_rate'" train uav --learning-rat 0.1
refuse 78 "did you mean 'learning_rate'" train ppo --env cartpole learning_rat=0.1
refuse 78 "use cosine, linear or constant" train uav schedule=step
refuse 78 "hidden has 2 widths and depth is 3" train uav hidden=8,4 depth=3
refuse 78 "cells" train uav settings=cells=3
refuse 64 "which environment" train ppo
refuse 78 "no observation of the whole" train ppo --env cartpole critic=central
refuse 78 "which trains uav" train uav env=cartpole
refuse 64 "one of them" train uav --resume whole.h5 --from whole.h5
[ "$(ls)" = "$(ls | grep -vE 'uav-ppo|cartpole-ppo')" ] || wrong "a refused command left a checkpoint"

exit "$failed"
