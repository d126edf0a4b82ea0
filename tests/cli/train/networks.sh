#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Networks and losses that a config describes, from end to end on one device: what is trained is
# predicted again by NumPy from the checkpoint. What does not fit is refused, by the host, which is
# tried with ref. Usage: tests/cli/train/networks.sh GPURT DEVICE

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpurt=$(realpath "${1:?usage: networks.sh GPURT DEVICE}")
device=${2:?usage: networks.sh GPURT DEVICE}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$here/../../harness/command.sh"
cd "$tmp" || exit 1
export GPURT_DEVICE=$device
python=/usr/bin/python3 # Debian's, which has h5py

# said PATTERN: in what the last command printed.
said() { grep -qE -- "$1" out err || wrong "not said: $1"; }
# tensors FOLDER FILE: all tensors of the newest checkpoint.
tensors() {
    expect 0 convert --all "$1/$(ls "$1" | grep step- | sort | tail -n 1)" "$2"
}

# same_numbers A B: the same tensors, whatever else the files say.
same_numbers() {
    "$python" - "$1" "$2" <<'PY' || wrong "$1 and $2 have other numbers"
import json, struct, sys
def numbers(path):
    blob = open(path, "rb").read()
    size = struct.unpack("<Q", blob[:8])[0]
    head = json.loads(blob[8:8 + size])
    return {k: blob[8 + size + v["data_offsets"][0]:8 + size + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}
assert numbers(sys.argv[1]) == numbers(sys.argv[2])
PY
}

"$python" - <<'PY' || exit 1
import h5py, numpy as np
rng = np.random.default_rng(11)
wind = rng.normal(size=(400, 6)).astype("f4")
with h5py.File("gusts.h5", "w") as file:
    file["wind"] = wind
    file["lift"] = np.column_stack([wind[:, 0] * wind[:, 1], np.abs(wind[:, 2])]).astype("f4")
    file["side"] = (np.abs(wind[:, 3]) + (wind[:, 4] > 0)).astype("i4").clip(0, 2)
    file["swarm"] = rng.normal(size=(400, 5, 3)).astype("f4")
# Inputs of different shapes, types and storage, under names that are none of gpurt's.
with h5py.File("flock.h5", "w") as file:
    file["air/wind here"] = wind
    file["place"] = rng.normal(size=(400, 3)) * [1, 100, 1e3] + [0, 5, 1e9]
    file.create_dataset("swarm", data=rng.normal(size=(400, 5, 3)).astype("f2") * 3 + 1, chunks=(64, 2, 3),
                        compression="gzip")
    file["eye"] = rng.integers(0, 255, size=(400, 4, 2), dtype="u1")
    file["lift"] = np.column_stack([wind[:, 0] * wind[:, 1], np.abs(wind[:, 2])]).astype("f4")
with h5py.File("renamed.h5", "w") as file, h5py.File("flock.h5") as old:
    for new, name in [("a", "air/wind here"), ("b", "place"), ("c", "swarm"), ("d", "eye")]:
        file[new] = old[name][()]
PY
lift=(train supervised --data gusts.h5 inputs=wind targets=lift batch_size=45 epochs=2 seed=3)

# ---- hidden layers of different widths ----
expect 0 "${lift[@]}" checkpoint_dir=widths 'hidden=[24, 12, 7]' activation=tanh
said 'model +mlp, depth 3, hidden \[24, 12, 7\], tanh, 2 outputs'
expect 0 predict --data gusts.h5 --checkpoint widths -o widths-p.h5
expect 0 train supervised --data gusts.h5 inputs=swarm targets=side hidden=9,5 head_depth=2 batch_size=45 epochs=1 \
    checkpoint_dir=swarm
said 'model +points, depth 2, hidden \[9, 5\]'
expect 0 predict --data gusts.h5 --checkpoint swarm -o swarm-p.h5

# ---- groups of parameters ----
cat >groups.yaml <<'YAML'
data: gusts.h5
inputs: wind
targets: lift
hidden: 12
depth: 2
batch_size: 45
weight_decay: 0.1
optimizer:
  decay_of: matrices
  groups:
    - {match: "layers.0.*", learning_rate: 0}
    - {match: "*.bias", lr: 0.01, weight_decay: 0.2}
YAML
groups=(train supervised --config groups.yaml seed=3)
expect 0 "${groups[@]}" checkpoint_dir=groups max_steps=1
said 'optimizer +adamw, learning rate 0.001, constant; 2 groups of parameters'
expect 0 "${groups[@]}" checkpoint_dir=groups max_steps=10 epochs=2 --resume -q
expect 0 "${groups[@]}" checkpoint_dir=ungrouped 'groups=[{match: "*", learning_rate: 0.001}]' decay_of=all max_steps=10 epochs=2 -q
expect 0 "${lift[@]}" checkpoint_dir=plain hidden=12 depth=2 weight_decay=0.1 max_steps=10 -q
tensors ungrouped ungrouped.safetensors
tensors plain plain.safetensors
same_numbers ungrouped.safetensors plain.safetensors

# ---- branches of inputs of their own, one behind the other ----
cat >tails.yaml <<'YAML'
data: gusts.h5
inputs: [wind, lift]
targets: side
seed: 3
model:
  - branches:
      merge: concat
      of:
        - [{columns: {first: 0, count: 6}}, {linear: 9}, tanh]
        - [{columns: {first: 6, count: 2}}, {linear: 4}, relu]
  - linear: out
YAML
expect 0 train supervised --config tails.yaml batch_size=45 epochs=1 checkpoint_dir=tails -q
expect 0 predict --data gusts.h5 --checkpoint tails -o tails-p.h5

# ---- branches that name their inputs ----
cat >flock.yaml <<'YAML'
data: flock.h5
inputs: [air/wind here, place, swarm, eye]
targets: lift
normalize: true
batch_size: 45
seed: 3
model:
  - branches:
      merge: concat
      of:
        - [{input: [place, /air/wind here]}, {linear: 9}, tanh]
        - [{input: swarm}, {linear: 8}, relu, {pool: max}]
        - [{input: eye}, flatten, {linear: 4}, tanh]
  - linear: out
YAML
flock=(train supervised --config flock.yaml)
expect 0 "${flock[@]}" epochs=3 checkpoint_dir=flock cache=device
expect 0 "${flock[@]}" epochs=3 checkpoint_dir=flock2 cache=none -q
for run in flock flock2; do tensors $run $run.safetensors; done
same_numbers flock.safetensors flock2.safetensors
expect 0 eval --data flock.h5 --checkpoint flock --format csv
expect 0 predict --data flock.h5 --checkpoint flock -o flock-p.h5

# ---- class weights ----
side=(train supervised --data gusts.h5 inputs=wind targets=side hidden=12 depth=1 batch_size=45 epochs=2 seed=3 -q)
expect 0 "${side[@]}" checkpoint_dir=weighed 'class_weights=[1, 0.5, 4]'
expect 0 "${side[@]}" checkpoint_dir=weighed class_weights=1,0.5,4 epochs=3 --resume
expect 0 eval --data gusts.h5 --checkpoint weighed --format csv
expect 0 "${side[@]}" checkpoint_dir=unweighed
expect 0 "${side[@]}" checkpoint_dir=equal class_weights=2,2,2

"$python" "$here/networks_peer.py" || wrong "NumPy disagrees"
host_part || exit "$failed"

# ---- widths in other words, and what is refused ----
expect 0 "${lift[@]}" checkpoint_dir=widths2 hidden=24,12,7 activation=tanh depth=3 -q
printf 'data: gusts.h5\ninputs: wind\ntargets: lift\nmodel:\n  hidden_sizes: [24, 12, 7]\n  activation: tanh\n' >widths.yaml
expect 0 train supervised --config widths.yaml batch_size=45 epochs=1 seed=3 checkpoint_dir=widths3 -q
expect 0 train supervised --config widths.yaml batch_size=45 epochs=2 seed=3 checkpoint_dir=widths3 -q --resume
for run in widths widths2 widths3; do tensors $run $run.safetensors; done
cmp -s widths.safetensors widths2.safetensors || wrong "hidden=24,12,7 is another network than hidden=[24, 12, 7]"
cmp -s widths.safetensors widths3.safetensors || wrong "hidden: [24, 12, 7] of a file, resumed, has other bits"
refuse 78 'which is another run' train supervised --config widths.yaml batch_size=45 epochs=3 seed=3 hidden=24,12,8 \
    checkpoint_dir=widths3 --resume
# One width for each is one width.
expect 0 "${lift[@]}" checkpoint_dir=same hidden=16,16 -q
expect 0 "${lift[@]}" checkpoint_dir=one hidden=16 depth=2 -q
tensors same same.safetensors
tensors one one.safetensors
same_numbers same.safetensors one.safetensors
refuse 78 'hidden has 3 widths and depth is 2: leave depth out' "${lift[@]}" checkpoint_dir=none hidden=4,5,6 depth=2
refuse 78 'residual: true adds hidden layers of one width' "${lift[@]}" checkpoint_dir=none hidden=4,5 residual=true
refuse 78 'hidden has 33 widths; at most 32 are taken' "${lift[@]}" checkpoint_dir=none \
    "hidden=$(seq -s, 1 33)"
refuse 78 'hidden: 0 is not between 1 and 65536' "${lift[@]}" checkpoint_dir=none hidden=4,0
expect 0 bench --config widths.yaml --batch-sizes 32 --num-workers 0 --steps 1 --time 0.01 --apply best.yaml --format json
said '"hidden": *\['
grep -q '^  hidden: \[24, 12, 7\]' best.yaml || wrong "bench --apply forgets the widths: $(cat best.yaml)"

# ---- groups that are refused ----
sed -i 's/layers.0.\*/layers.7.*/' groups.yaml
refuse 78 "groups.yaml:11:15: groups: no parameter matches 'layers.7.*'; parameters are layers.0.weight," \
    "${groups[@]}" checkpoint_dir=none
sed -i 's/layers.7.\*/layers.1.*/; s/ lr: 0.01/ learning_rat: 0.01/' groups.yaml
refuse 78 "groups.yaml:12:25: groups: no key 'learning_rat'" "${groups[@]}" checkpoint_dir=none
refuse 78 'groups at character 2: groups: an entry wants match' "${lift[@]}" checkpoint_dir=none 'groups=[{lr: 1}]'
refuse 78 'groups at character 2: groups: an entry wants learning_rate or weight_decay' "${lift[@]}" checkpoint_dir=none \
    'groups=[{match: "*"}]'
refuse 78 'groups at character 19: groups: learning_rate wants a number from 0 to 1000, not -1' "${lift[@]}" checkpoint_dir=none \
    'groups=[{match: "*", lr: -1}]'
refuse 78 'groups wants a list, such as' "${lift[@]}" checkpoint_dir=none 'groups=all'

# ---- branches: what is told, kept and refused ----
expect 0 model tails.yaml --format csv
grep -q '^0,concat,\[8\],\[13\],75,' out || wrong "gpurt model: no concat of 13"
expect 0 model flock.yaml --format csv
for row in '0.0.0,concat,\[32\],\[9\]' '0.1.0,input,\[32\],\[5\]\[3\]' '0.2.0,input,\[32\],\[4\]\[2\]' '1,linear,\[21\],\[2\]'; do
    grep -q "^$row," out || wrong "gpurt model: no row $row"
done
expect 0 "${flock[@]}" epochs=1 checkpoint_dir=flock3 cache=ram -q
expect 0 "${flock[@]}" epochs=3 checkpoint_dir=flock3 cache=ram -q --resume
tensors flock3 flock3.safetensors
same_numbers flock.safetensors flock3.safetensors
expect 0 predict --data renamed.h5 --checkpoint flock inputs=a,b,c,d -o renamed-p.h5
"$python" -c 'import h5py; a, b = (h5py.File(f)["y"][()] for f in ("flock-p.h5", "renamed-p.h5")); assert (a == b).all()' ||
    wrong "data under other names are other data"
expect 0 "${lift[@]}" checkpoint_dir=mixed inputs=wind,swarm -q # an mlp takes all numbers of both
refuse 78 'model points wants inputs of one shape' "${lift[@]}" checkpoint_dir=none inputs=wind,swarm model=points
refuse 78 'another run' "${flock[@]}" epochs=4 checkpoint_dir=flock3 'inputs=place,air/wind here,swarm,eye' --resume
sed 's/input: swarm/input: swarn/' flock.yaml >typo.yaml
refuse 78 "typo.yaml:12:20: no input 'swarn'; did you mean 'swarm'?" model typo.yaml
sed 's/input: swarm/input: y/' flock.yaml >typo.yaml
refuse 78 "typo.yaml:12:20: no input 'y'; inputs are air/wind here, place, swarm, eye" model typo.yaml
sed 's/input: swarm/input: []/' flock.yaml >typo.yaml
refuse 78 "typo.yaml:12:20: input wants a name: air/wind here, place, swarm, eye" model typo.yaml
sed 's/\[{input: swarm}/[{linear: 32}, {input: swarm}/' flock.yaml >typo.yaml
refuse 78 'typo.yaml:12:34: input stands at the beginning of the network, or of its branches' model typo.yaml
sed 's/\[place, /[place, swarm, /' flock.yaml >typo.yaml
refuse 78 'typo.yaml:11:12: concat: the first branch gives [3], another [5][3]' model typo.yaml
sed 's/^inputs: .*/inputs: [place, swarm]/' flock.yaml >typo.yaml
refuse 78 "typo.yaml:11:28: no input 'air/wind here'; inputs are place, swarm" model typo.yaml
# Data that no branch takes, first and last in the list, unless a layer takes whole samples.
sed '/input: eye/d' flock.yaml >untaken.yaml
refuse 78 "untaken.yaml:11:20: the network takes input 'air/wind here', and nothing takes input 'eye': begin a branch with {input: eye}, or leave it out of \`inputs\`" \
    train supervised --config untaken.yaml epochs=1 checkpoint_dir=none
[ ! -e none ] || wrong "a refused network left a folder"
sed 's/\[place, .*here\]}/place}/' flock.yaml >untaken.yaml
refuse 78 "untaken.yaml:11:20: the network takes input 'place', and nothing takes input 'air/wind here': " model untaken.yaml
sed 's/{input: swarm}, {linear: 8}, relu, {pool: max}/{linear: 8}, relu/' flock.yaml >whole.yaml
expect 0 model whole.yaml
sed 's/\[{input: swarm}.*/[{residual: {of: [{input: eye}, flatten, {linear: 8}], shortcut: [{input: eye}, flatten]}}]/' flock.yaml >untaken.yaml
refuse 78 "nothing takes input 'swarm'" model untaken.yaml
sed 's/\[{input: swarm}.*/[{residual: [{input: eye}, flatten, {linear: 32}]}]/' flock.yaml >whole.yaml
expect 0 model whole.yaml # a residual adds the sample

# ---- a list of layers, and keys of an mlp ----
printf 'data: gusts.h5\ninputs: wind\ntargets: lift\nmodel: [{linear: out}]\nhidden_dim: 7\n' >both.yaml
refuse 78 "both.yaml:5:1: hidden_dim describes an mlp, and \`model\` is a list of layers, which has its own: leave hidden_dim out, or the list" \
    train supervised --config both.yaml epochs=1 checkpoint_dir=none
sed -i '/^hidden_dim/d' both.yaml
refuse 78 "head_depth describes an mlp" model both.yaml head_depth=2
expect 0 train supervised --config both.yaml batch_size=45 epochs=1 checkpoint_dir=both -q
expect 0 train supervised --config both.yaml batch_size=45 epochs=2 checkpoint_dir=both -q --resume
# A kind on the command line takes the place of the list, and the other way round.
expect 0 model both.yaml model=small --format csv
grep -q '^,mlp,\[6\],\[2\],' out || wrong "model=small beside a list is no mlp: $(cat out)"
sed -i 's/^model: .*/model: small/' both.yaml
expect 0 model both.yaml 'model=[{linear: 5}, {linear: out}]' --format csv
grep -q '^0,linear,\[6\],\[5\],' out || wrong "a list beside model: small is not taken: $(cat out)"

# Where networks have other names.
printf 'seed: 3\nmodel: [{linear: out}]\n' >other.yaml
refuse 78 'other.yaml:2:1: model is a key of supervised training, and this is a config of PPO: its networks are `actor` and `critic_network`' \
    train ppo --env cartpole --config other.yaml
refuse 78 'this is a config of evolution strategies: its network is `policy`' train es --env cartpole 'model=[{linear: out}]'
refuse 78 'actor=3: actor wants a list, such as [{linear: 64}, tanh, {linear: out}]' train ppo --env cartpole actor=3
# What stands on the command line is not in the file.
refuse 78 "actor at character 2: no layer 'linaer'" train ppo --env cartpole --config <(echo 'seed: 3') 'actor=[{linaer: 5}]'
refuse 78 "model at character 2: no layer 'linaer'" model both.yaml 'model=[{linaer: 5}]'
refuse 78 'critic_network at character 2: the critic gives [2] for an observation; it must give [1]' train ppo --env cartpole 'critic_network=[{linear: 2}]'

# ---- class weights that are refused ----
refuse 78 'class_weights=[1, 0.5, 4]; here it is [1, 0.5, 3]' "${side[@]}" checkpoint_dir=weighed class_weights=1,0.5,3 --resume
refuse 78 'class_weights has 2 numbers, and the targets of gusts.h5 are 3 classes' "${side[@]}" checkpoint_dir=none \
    class_weights=1,2
refuse 78 'class_weights has no effect with loss mse: leave it out, or give loss cross_entropy' "${lift[@]}" \
    checkpoint_dir=none class_weights=1,2
refuse 78 'label_smoothing has no effect with loss mse' "${lift[@]}" checkpoint_dir=none label_smoothing=0.1
refuse 78 'huber_delta has no effect with loss cross_entropy' "${side[@]}" checkpoint_dir=none huber_delta=2
expect 0 "${lift[@]}" checkpoint_dir=off label_smoothing=0 momentum=0 nesterov=false
refuse 78 'class_weights are all 0' "${side[@]}" checkpoint_dir=none class_weights=0,0,0
refuse 78 'class_weights: -1 is not between 0 and' "${side[@]}" checkpoint_dir=none class_weights=1,-1,1

exit "$failed"
