#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How multi-UAV PPO scales with the number of UAVs: trains and evaluates for each number, and prints
# a JSON object a line: agent-steps/s (median of whole iterations, the first left out), and what
# arrives on unseen maps, by the policy and by random actions. Usage:
#
#     uav_scaling.sh [--gpurt FILE] [--uavs "1 4 10 32"] [--seconds N] [--episodes N]
#                    [KEY=VALUE | OPTION...]
#
#     --gpurt FILE     the program (default: gpurt of PATH)
#     --uavs LIST      numbers of UAVs
#     --seconds N      of training for each number; ends earlier after --iterations
#     --episodes N     maps of the evaluation (default: 256)
#
# All else goes to `gpurt train uav`. On a GPU, within three minutes:
#     uav_scaling.sh --seconds 35 --backend vulkan --num-envs 4096 use_amp=true
# On two cores:
#     uav_scaling.sh --iterations 40 --backend opencl --num-envs 64 --map 16 rollout_steps=64 \
#                    lr=1e-3

set -euo pipefail
gpurt=gpurt
uavs="1 4 10 32"
seconds=0
episodes=256
rest=()
while [ $# -gt 0 ]; do
    case $1 in
    --gpurt | --uavs | --seconds | --episodes)
        [ $# -gt 1 ] || {
            echo "uav_scaling.sh: $1 wants a value" >&2
            exit 64
        }
        declare "${1#--}=$2"
        shift
        ;;
    *) rest+=("$1") ;;
    esac
    shift
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# The device is a matter of eval too.
device=()
for i in "${!rest[@]}"; do
    case ${rest[i]} in
    --backend=* | --device=*) device+=("${rest[i]}") ;;
    --backend | --device) device+=("${rest[i]}" "${rest[i + 1]:-}") ;;
    esac
done
number() { grep -o "\"$1\":[-+.0-9e]*" | cut -d: -f2; }

for count in $uavs; do
    options=(--num-uavs "$count" --checkpoint "$tmp/$count.h5" --log "$tmp/$count.jsonl" -q)
    [ "$seconds" = 0 ] || options+=("max_time=$seconds")
    "$gpurt" train uav "${rest[@]}" "${options[@]}" >/dev/null
    "$gpurt" eval uav --checkpoint "$tmp/$count.h5" --episodes "$episodes" "${device[@]}" --format jsonl >"$tmp/eval"
    grep '"event":"train"' "$tmp/$count.jsonl" >"$tmp/rows"
    rate=$(sed 1d "$tmp/rows" | number steps_per_s | sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }')
    printf '{"num_uavs":%s,"agent_steps_per_s":%.1f,"iterations":%s,"seconds":%.2f' "$count" "${rate:?one iteration alone}" \
        "$(wc -l <"$tmp/rows")" "$(tail -n 1 "$tmp/rows" | number seconds)"
    for policy in "the policy:" "random actions:random_"; do
        row=$(grep "\"policy\":\"${policy%:*}\"" "$tmp/eval")
        for term in arrived all_arrived collisions; do
            printf ',"%s%s":%.4f' "${policy#*:}" "$term" "$(number "$term" <<<"$row")"
        done
    done
    printf ',"device":%s,"options":"%s"}\n' "$(grep -o '"device":"[^"]*"' "$tmp/$count.jsonl" | head -n 1 | cut -d: -f2-)" "${rest[*]}"
done
