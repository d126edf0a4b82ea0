#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What bash, zsh and fish offer after a few words of a command line, each by its own script and in
# the shell itself where it is installed.
# Usage: completion.sh GPURT SOURCE_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: completion.sh GPURT SOURCE_DIR}")
source=$(realpath "${2:?usage: completion.sh GPURT SOURCE_DIR}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
PATH=$(dirname "$gpurt"):$PATH
export HOME=$tmp XDG_CONFIG_HOME=$tmp XDG_CACHE_HOME=$tmp XDG_DATA_HOME=$tmp GPURT_DEVICE=
failed=0
wrong() {
    printf 'completion.sh: %s\n' "$*" >&2
    failed=1
}
mkdir "$tmp/here"
cd "$tmp/here" || exit 1
mkdir runs
touch a.h5 b.safetensors c.yaml d.txt world.k

# A line, and what it is completed by: all of it, in any order; "..." at the end: that among others.
# Names of files are those above.
cat >"$tmp/cases" <<'CASES'
gpurt be|bench
gpurt --v|--version
gpurt devices --format |table md csv json jsonl
gpurt devices --format=j|--format=json --format=jsonl
gpurt bench --backend |auto vulkan opencl ref
gpurt bench m|memory mlp
gpurt bench memory --s|--size --samples
gpurt bench rollout --num|--num-envs --num-dirs
gpurt bench mlp --va|--variant
gpurt bench ppo --num-e|--num-envs
gpurt bench --num|--num-workers
gpurt train |supervised classify simclr es standing ppo uav
gpurt train standing --ph|--phase
gpurt train es --env |standing cartpole pendulum uav uav_flight world.k runs/
gpurt train es --env=cart|--env=cartpole
gpurt train standing --algo |ars es
gpurt train supervised prec|precision=
gpurt train supervised precision=|precision=f32 precision=f16 precision=bf16
gpurt train supervised precision=b|precision=bf16
gpurt train supervised --pin-memory |true false
gpurt train supervised pin_memory=t|pin_memory=true
gpurt train supervised data=|data=a.h5 data=runs/
gpurt train supervised validation_s|validation_split=
gpurt train ppo rollout_s|rollout_steps=
gpurt train ppo env=uav_|env=uav_flight
gpurt play st|standing
gpurt play uav --sta|--start
gpurt eval u|uav uav_flight
gpurt play standing --format |svg json
gpurt help train s|supervised simclr standing
gpurt help comp|compare completion
gpurt bench --device ref|ref:0
gpurt bench --device ref:|ref:0
gpurt sweep grid.yaml --devices ref:0,ref|ref:0,ref:0
gpurt bench train --precision f32,b|f32,bf16
gpurt train es --resume |a.h5 runs/
gpurt train standing --from |a.h5 b.safetensors none runs/
gpurt train supervised --config |c.yaml runs/
gpurt train supervised --data |a.h5 runs/
gpurt eval --checkpoint |a.h5 b.safetensors runs/
gpurt devices -o d|d.txt
gpurt doctor --root r|runs/
gpurt convert a|a.h5 ...
gpurt report c|c.yaml ...
gpurt compare b|b.safetensors ...
gpurt report a.json --html d|d.txt
gpurt estimate --api |vulkan opencl all
gpurt estimate --car|--card --cards
gpurt sweep c|c.yaml ...
gpurt sweep st|status stop ...
gpurt sweep resume r|runs/ ...
gpurt sweep grid.yaml --executor |local slurm ssh
gpurt sweep best grid --ap|--apply
gpurt data make sh|shapes
gpurt bench scaling --train |supervised classify es ppo
gpurt init s|supervised simclr
gpurt completion z|zsh
CASES

# judge SHELL: reads what it offers, a line a case, words with spaces between.
judge() {
    local shell=$1 line want got plain
    while IFS='|' read -r line want; do
        IFS= read -r got <&3 || got='nothing: the shell ended'
        if [[ $want == *' ...' ]]; then
            for plain in ${want% ...}; do
                [[ " $got " == *" $plain "* ]] || wrong "$shell: '$line': offers '$got', wanted $plain among others"
            done
        else
            [ "$(xargs -n 1 <<<"$got" | sort | xargs)" = "$(xargs -n 1 <<<"$want" | sort | xargs)" ] ||
                wrong "$shell: '$line': offers '$got', wanted '$want'"
        fi
    done <"$tmp/cases" 3<"$tmp/$shell.out"
}
run() { # SHELL COMMAND...
    local shell=$1
    shift
    "$@" <"$tmp/cases" >"$tmp/$shell.out" 2>"$tmp/$shell.err" || wrong "$shell failed: $(head -n 5 "$tmp/$shell.err")"
    judge "$shell"
}
for shell in bash zsh fish; do
    if ! command -v "$shell" >/dev/null; then
        echo "completion.sh: $shell is not installed: its script is not run" >&2
    else
        run "$shell" "$shell" "$here/offers.$shell" "$source/apps/completions/gpurt.$shell"
    fi
    cmp <("$gpurt" completion "$shell") "$source/apps/completions/gpurt.$shell" || wrong "completion $shell prints another script"
done

# The table that all three ask: a key with its help; what cannot be completed offers nothing.
"$gpurt" completion -- train supervised batch_s | grep -q $'^batch_size=\tsamples of one batch' || wrong "no help of keys"
for words in nonsense 'nonsense ' 'devices --nonsense' 'version ' 'train nonsense --l' 'train supervised nonsense='; do
    read -ra line <<<"$words"
    [ "${words% }" = "$words" ] || line+=('')
    offered=$("$gpurt" completion -- "${line[@]}" 2>/dev/null) || wrong "completion of '$words' fails"
    [ -z "$offered" ] || wrong "'$words': offers $offered"
done
"$gpurt" completion nonsense 2>/dev/null && wrong "any shell is taken"
[ "$("$gpurt" completion 2>/dev/null; echo $?)" = 64 ] || wrong "no shell is taken"
exit "$failed"
