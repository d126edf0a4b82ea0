#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The robot learns to stand: phase 1 of `gpurt train standing` with a reduced setting. At least two
# of three policies stand for 90 % of the steps; beside the last one, actions that never change do
# for less than half, the best that was found among them. Usage: stands.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: stands.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1

number() { # NAME: of the last line of standard input that has it
    sed -n "s/.*\"$1\": *\([0-9.e-]*\).*/\1/p" | tail -n 1
}
stands=0
for seed in 1 2 3; do
    [ "$seed" -eq 3 ] && more=(--baselines) || more=()
    expect 0 train standing --num-envs 16 --num-dirs 32 --episode-length 200 --until 0.9 --iterations 80 --seed "$seed" \
        --device opencl:0 --format jsonl --checkpoint stands.h5 --log "$seed.jsonl" "${more[@]}"
    awk -v learnt="$(grep '"event":"evaluate"' "$seed.jsonl" | number good_rate)" 'BEGIN { exit !(learnt >= 0.9) }' &&
        stands=$((stands + 1))
    logs_agree "$seed.jsonl"
done
[ "$stands" -ge 2 ] || wrong "train standing: $stands of 3 seeds stand"
for constant in 'no action' 'its biases alone' 'best constant action'; do
    share=$(grep "\"baseline\": *\"$constant\"" out | number evaluate_good_rate)
    awk -v share="$share" 'BEGIN { exit !(share != "" && share < 0.5) }' ||
        wrong "train standing: $constant stands for $share"
done
[ "$(grep -c '"event":"baseline"' 3.jsonl)" -eq 4 ] || wrong "train standing: the log lacks the baselines"

exit "$failed"
