#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt bench ppo` and the policy's rows of `gpurt bench rollout` from outside: rows for every
# size, precision and loop, phases whose shares add up, and what is refused.
# Usage: bench_ppo.sh GPURT JSON_CHECK DEVICE

set -uo pipefail
gpurt=$(realpath "${1:?usage: bench_ppo.sh GPURT JSON_CHECK DEVICE}")
json_check=$(realpath "${2:?usage: bench_ppo.sh GPURT JSON_CHECK DEVICE}")
device=${3:?usage: bench_ppo.sh GPURT JSON_CHECK DEVICE}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
export GPURT_DEVICE=$device

# check_rows SIZES PRECISIONS: the JSON on stdout has an iteration of each loop, and its phases.
check_rows() {
    /usr/bin/python3 - "$1" "$2" <<'PY' || wrong "bench ppo: the rows above"
import json
import sys

report = json.load(open("out", encoding="utf-8"))
sizes = [int(n) for n in sys.argv[1].split(",")]
precisions = sys.argv[2].split(",")
rows = report["rows"]
wanted = [(loop, n, p) for p in precisions for loop, n in [("host", 1)] + [("device", n) for n in sizes]]
key = lambda row: (row["loop"], row["num_envs"], row["precision"])
iterations = [row for row in rows if row["kind"] == "iteration"]
assert [key(row) for row in iterations] == wanted, iterations
for row in iterations:
    assert row["check"] == "ok" and row["samples"] >= 3 and row["memory"] > 0, row
    steps = row["num_envs"] * row["rollout_steps"]
    assert abs(row["env_steps_per_s"] * row["seconds"] / steps - 1) < 1e-3, row
    # Rows of agents that have ended do not count.
    assert 0 < row["agent_steps_per_s"] * row["seconds"] <= steps * row["agents"] * 1.001, row
    assert ("speedup" in row) == (row["loop"] == "device"), row
    before = next(r for r in iterations if r["loop"] == "host" and r["precision"] == row["precision"])
    assert row["loop"] == "host" or abs(row["speedup"] * before["agent_steps_per_s"] / row["agent_steps_per_s"] - 1) < 1e-3
    phases = [r for r in rows if r["kind"] == "phase" and key(r) == key(row)]
    names = [r["phase"] for r in phases]
    assert names == ["environment", "action selection", "advantages", "update", "host", "whole"], names
    assert abs(sum(r["share"] for r in phases[:-1]) - 1) < 1e-6 and phases[-1]["share"] == 1, phases
    # Steps of the environment alone may take as long as with the actions, where other work
    # interrupts them: then nothing is left for the actions.
    sure = [r for r in phases if r["phase"] not in ("host", "action selection")]
    assert all(r["seconds"] > 0 and 0 < r["gpu"] <= 1 for r in sure), phases
    assert phases[-1]["gpu"] == row["gpu"] and phases[-1]["seconds"] >= row["seconds"] * 0.999, phases
PY
}

team=(bench ppo --env uav --num-uavs 3 --map 8 window=3 max_steps=9 --rollout-steps 6 --hidden 8 --time 0.01)
expect 0 "${team[@]}" --num-envs 2,5 --precision f32,f16 --format json
"$json_check" <out || wrong "bench ppo: no JSON"
recorded bench ppo --env uav
check_rows 2,5 f32,f16
# Continuous actions, a size of the settings, other forms.
pole=(bench ppo --env pendulum num_envs=3 rollout_steps=5 hidden=8 --time 0.01)
expect 0 "${pole[@]}" --format json
check_rows 3 f32
expect 0 "${pole[@]}" --loop device --format csv
[ "$(grep -c '^iteration,device,pendulum,3,1,5,f32,' out)" -eq 1 ] || wrong "bench ppo --loop device: not one row: $(cat out)"
! grep -q ',host,' <(grep '^iteration' out) || wrong "bench ppo --loop device has a row of the host"
expect 0 "${pole[@]}"
said '^action selection +[0-9.]+ +[0-9.]+%'
said '^before, one environment with the host in every step'
expect 0 "${pole[@]}" --format md
said '^\| advantages '

# ---- with Ctrl-C there is what was measured ----
begin "${team[@]}" --num-envs 2-40+1 --time 5
wait_for "a row" grep -qE '^host .* ok$' out && stop INT 75 "bench ppo"
grep -qE 'partial: [0-9]+ of [0-9]+ rows' err || wrong "bench ppo after SIGINT: not said to be partial"
said '^update +[0-9.]+'

# ---- what is refused ----
refuse 64 "which environment" bench ppo
refuse 64 "num-envs" bench ppo --env uav --num-envs 0
refuse 64 "precision" bench ppo --env uav --precision f64
refuse 64 "loop" bench ppo --env uav --loop gpu
refuse 78 "did you mean 'map'" bench ppo --env uav --mapp 12
refuse 78 "rollout_steps" bench ppo --env uav rollout_steps=0
refuse 66 "none.k" bench ppo --env ./none.k

# ---- the environment alone, and with the policy that training begins with ----
expect 0 bench rollout --env uav --num-envs 2,3 --episode-length 7 --set map=9,num_uavs=2,window=3 --policy random,actor \
    --time 0.01 --samples 1 --format csv
for envs in 2 3; do
    for policy in random actor; do
        [ "$(grep -c "^rollout,uav,.*,$policy,$envs,.*,ok\$" out)" -eq 1 ] || wrong "bench rollout of $envs maps: no row of $policy"
    done
done

exit "$failed"
