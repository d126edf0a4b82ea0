#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What bash offers after a few words of a command line, and that the man page has every option that
# --help has.
# Usage: completion.sh GPURT SOURCE_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: completion.sh GPURT SOURCE_DIR}")
source=${2:?usage: completion.sh GPURT SOURCE_DIR}
PATH=$(dirname "$gpurt"):$PATH
failed=0
wrong() {
    printf 'completion.sh: %s\n' "$*" >&2
    failed=1
}
files=0
# shellcheck disable=SC2317  # called by the completion
compopt() { files=1; }  # that of bash works inside a completion only
# shellcheck source-path=SCRIPTDIR source=../../apps/gpurt.bash
. "$source/apps/gpurt.bash"

# complete_with WORD...: completes the last of them, into COMPREPLY and files.
complete_with() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    files=0
    _gpurt
}
# offers "WANTED..." WORD...: exactly these, in any order.
offers() {
    local want=$1
    shift
    complete_with "$@"
    [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort | xargs)" = "$(xargs -n 1 <<<"$want" | sort | xargs)" ] ||
        wrong "'$*': offers '${COMPREPLY[*]}', wanted '$want'"
}
offers_files() {
    complete_with "$@"
    [ "$files" -eq 1 ] || wrong "'$*': offers '${COMPREPLY[*]}', wanted files"
}

offers "bench" gpurt be
offers "table md csv json jsonl" gpurt devices --format ''
offers "auto vulkan opencl ref" gpurt bench --backend ''
offers "memory mlp" gpurt bench m
offers "--size --samples" gpurt bench memory --s  # and of no kind that is not named
offers "--num-envs --num-dirs" gpurt bench rollout --num
offers "--variant" gpurt bench mlp --va
offers "--num-envs" gpurt bench ppo --num
offers "supervised classify es" gpurt bench scaling --train ''
offers "--num-workers" gpurt bench --num
offers "supervised classify simclr es standing ppo uav" gpurt train ''
offers "--phase --policy" gpurt train standing --p
offers "standing cartpole pendulum uav uav_flight" gpurt train es --env ''
offers "ars es" gpurt train standing --algo ''
offers "standing" gpurt play s
offers "--start --steps --seed" gpurt play uav --s
offers "uav uav_flight" gpurt eval u
offers "svg json" gpurt play standing --format ''
offers "supervised classify simclr es standing ppo uav" gpurt help train ''
offers "ref:0" gpurt bench --device ref
offers_files gpurt train es --resume ''
offers_files gpurt train standing --from ''
offers_files gpurt devices -o ''
offers_files gpurt play standing --checkpoint ''
offers_files gpurt doctor --root ''
offers_files gpurt convert ''
offers_files gpurt report ''
offers_files gpurt report a.json --html ''
offers_files gpurt compare ''
offers_files gpurt estimate --cards ''
offers "vulkan opencl all" gpurt estimate --api ''
offers "--card --cards" gpurt estimate --car
offers_files gpurt sweep ''
offers_files gpurt sweep resume ''
offers_files gpurt sweep best grid --apply ''
offers "local slurm ssh" gpurt sweep grid.yaml --executor ''
offers "--apply" gpurt sweep best grid --ap
offers "--devices --dir --data --dry-run" gpurt sweep grid.yaml --d
offers "--html" gpurt report a.json --ht
offers "--fail-under --format" gpurt compare a.json b.json --f

# ---- the man page ----
for words in devices doctor bench "bench data" "bench mlp" "bench ppo" "bench scaling" "bench all" data tune profile \
    "train supervised" "train simclr" "eval knn" "eval linear" "train es" "train standing" "train ppo" "train uav" eval "eval uav" predict convert play report compare estimate \
    sweep "sweep best"; do
    # shellcheck disable=SC2086  # several words
    while read -r option; do
        grep -qF -- "${option//-/\\-}" "$source/apps/gpurt.1" || wrong "the man page lacks $option of $words"
    done < <("$gpurt" $words --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
done

exit "$failed"
