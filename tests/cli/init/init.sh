#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt init`: every kind is written, names every key with its meaning, and trains as it is; what
# was chosen follows from the data; files that are there stay. Usage: init.sh GPURT

set -uo pipefail
gpurt=${1:?usage: init.sh GPURT}
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
ref=(--device ref:0)

expect 0 data make regression --samples 60 --features 4 -o r.h5
expect 0 data make classification --samples 60 --features 4 --classes 3 -o c.h5
expect 0 data make points --samples 40 --points 4 --features 3 -o p.h5
expect 0 data make shapes --samples 24 --pixels 8 --classes 3 -o s.h5

# has FILE KEY VALUE: the key is set, and to that.
has() { grep -qxE " *$2: \"?$3\"?" "$1" || wrong "$1 has no $2: $3, but: $(grep "$2:" "$1")"; }
# whole KIND FILE: every key of the kind stands in it once, below its meaning.
whole() {
    expect 0 train "$1" --keys --format json
    /usr/bin/python3 - "$tmp/out" "$2" <<'EOF' || wrong "$2 lacks keys, or their meaning"
import json, re, sys
keys = json.load(open(sys.argv[1]))["rows"]
lines = open(sys.argv[2]).read().splitlines()
at = {}
for number, line in enumerate(lines):
    found = re.match(r"^  (?:# )?([a-z_0-9]+):( |$)", line)
    if found and found[1] in {k["key"] for k in keys}:
        at.setdefault(found[1], []).append(number)
for key in keys:
    name = key["key"]
    # A word of a meaning may begin a line and end in a colon: the last such line is the key's own.
    assert name in at, name
    above, number = [], at[name][-1] - 1
    while lines[number].startswith("  # "):
        above.insert(0, lines[number][4:])
        number -= 1
    assert " ".join(above).endswith(key["help"]), (name, key["help"], above)
assert all(len(line) <= 140 for line in lines), max(lines, key=len)
EOF
}

expect 0 init supervised --data r.h5 -o r.yaml "${ref[@]}"
told 'r.yaml is written'
has r.yaml data r.h5
has r.yaml loss mse
has r.yaml model mlp
has r.yaml normalize false
has r.yaml batch_size '[1-9][0-9]*'
whole supervised r.yaml
expect 0 train supervised -c r.yaml "${ref[@]}"
expect 0 init supervised --data c.h5 -o c.yaml "${ref[@]}"
has c.yaml loss cross_entropy
expect 0 train supervised -c c.yaml "${ref[@]}" epochs=1 checkpoint_dir=cc
expect 0 init supervised --data p.h5 -o p.yaml "${ref[@]}"
has p.yaml model points
expect 0 train supervised -c p.yaml "${ref[@]}" epochs=1 checkpoint_dir=pc
# Other names, and inputs that are far from 0.
/usr/bin/python3 - <<'EOF'
import h5py, numpy as np
rng = np.random.default_rng(0)
with h5py.File("n.h5", "w") as f:
    f["speed"] = rng.normal(300, 20, (50, 2)).astype("f4")
    f["height"] = rng.normal(0, 1, (50, 3)).astype("f4")
    f["label"] = rng.integers(0, 4, 50)
# Around 0, but wide, in one of two columns; and narrow.
for name, deviation in ("wide", 3), ("narrow", 0.3), ("usual", 1.2):
    numbers = rng.normal(size=(200, 2))
    numbers = (numbers - numbers.mean(0)) / numbers.std(0) * [1, deviation]
    with h5py.File(name + ".h5", "w") as f:
        f["x"], f["y"] = numbers.astype("f4"), numbers[:, :1].astype("f4")
with h5py.File("odd.h5", "w") as f:
    for name in ("a=b", " [b", 'q"u\\o: #', "ziel,1"):
        f[name] = rng.normal(size=(50, 1 if name[0] == "z" else 2)).astype("f4")
with h5py.File("none.h5", "w") as f:
    f["x"] = rng.normal(size=(5, 2))
EOF
# A table, by the names of its columns.
printf 'size,rooms,price\n' >t.csv
for i in $(seq 40); do printf '%s,%s,%s.5\n' "$((i * 7 % 90))" "$((i % 5))" "$((i * 21 % 270))"; done >>t.csv
expect 0 init supervised --data t.csv -o t.yaml "${ref[@]}"
has t.yaml inputs '\["size", "rooms"\]'
has t.yaml targets '\["price"\]'
has t.yaml loss mse
expect 0 train supervised -c t.yaml "${ref[@]}" epochs=1 checkpoint_dir=tc
sed '1s/rooms/"rooms, all"/' t.csv >comma.csv
expect 0 init supervised --data comma.csv -o comma.yaml "${ref[@]}"
has comma.yaml inputs '\["size", "rooms, all"\]'
expect 0 train supervised -c comma.yaml "${ref[@]}" epochs=1 checkpoint_dir=tc
# Names of data sets that YAML, or a list with commas, would take for something else.
expect 0 init supervised --data odd.h5 -o odd.yaml "${ref[@]}"
has odd.yaml inputs '\[" \[b", "a=b", "q\\"u\\\\o: #"\]'
has odd.yaml targets '\["ziel,1"\]'
expect 0 train supervised -c odd.yaml "${ref[@]}" epochs=1 checkpoint_dir=oc
expect 0 eval --data odd.h5 --checkpoint oc "${ref[@]}"
refuse 65 "--targets '[\"ziel,1\"]'" init supervised --data odd.h5 --inputs a=b --targets ziel,1 -o odd2.yaml "${ref[@]}"
refuse 65 "has no data set 'ziel,2'" init supervised --data odd.h5 --inputs a=b --targets ziel,2 -o odd2.yaml "${ref[@]}"
expect 0 init supervised --data odd.h5 --inputs a=b --targets '["ziel,1"]' -o odd2.yaml "${ref[@]}"
has odd2.yaml inputs '\["a=b"\]'
expect 0 train supervised --data odd.h5 --inputs a=b targets="['ziel,1']" "${ref[@]}" epochs=1 checkpoint_dir=oc
expect 0 init supervised --data n.h5 -o n.yaml "${ref[@]}"
has n.yaml inputs '\["height", "speed"\]'
has n.yaml targets '\["label"\]'
has n.yaml loss cross_entropy
has n.yaml normalize true
expect 0 train supervised -c n.yaml "${ref[@]}" epochs=1 checkpoint_dir=nc

for name in wide:true narrow:true usual:false; do
    expect 0 init supervised --data "${name%:*}.h5" -o "${name%:*}.yaml" "${ref[@]}"
    has "${name%:*}.yaml" normalize "${name#*:}"
done

expect 0 init classify --data s.h5 "${ref[@]}"
has classify.yaml loss cross_entropy
whole classify classify.yaml
expect 0 train classify -c classify.yaml "${ref[@]}" epochs=1 model=small checkpoint_dir=sc
expect 0 init simclr --data s.h5 "${ref[@]}"
has simclr.yaml loss nt_xent
has simclr.yaml model resnet18
whole simclr simclr.yaml
# A network of two layers in place of ResNet-18, which takes minutes on this backend.
expect 0 train simclr -c simclr.yaml "${ref[@]}" epochs=1 batch_size=8 checkpoint_dir=xc \
    'model=[{conv: 4}, relu, flatten, {linear: 8}]'

expect 0 init es "${ref[@]}"
has es.yaml env cartpole
whole es es.yaml
expect 0 train es -c es.yaml "${ref[@]}" iterations=2
expect 0 init ppo --env pendulum -o ppo.yaml "${ref[@]}"
has ppo.yaml env pendulum
whole ppo ppo.yaml
small=(iterations=1 num_envs=4 rollout_steps=8 evaluate_envs=2 episode_limit=8)
expect 0 train ppo -c ppo.yaml "${ref[@]}" "${small[@]}"
expect 0 init uav "${ref[@]}" -o -
mv "$tmp/out" uav.yaml
whole uav uav.yaml
expect 0 train uav -c uav.yaml "${ref[@]}" "${small[@]}"

# ---- refused ----
before=$(cksum <r.yaml)
refuse 73 '--force replaces it' init supervised --data r.h5 -o r.yaml
[ "$before" = "$(cksum <r.yaml)" ] || wrong "a file that was there was changed"
expect 0 init supervised --data c.h5 -o r.yaml --force "${ref[@]}"
has r.yaml data c.h5
refuse 64 '--data FILE is wanted' init supervised
refuse 64 'takes no --data' init es --data r.h5
refuse 64 'takes no --env' init uav --env cartpole -o new.yaml
refuse 64 "did you mean 'supervised'" init supervise
refuse 64 'one KIND is wanted' init
refuse 66 'nowhere.h5' init supervised --data nowhere.h5 -o new.yaml "${ref[@]}"
refuse 65 'classes are whole numbers' init classify --data r.h5 -o new.yaml "${ref[@]}"
refuse 65 'no data sets that could be targets' init supervised --data none.h5 -o new.yaml "${ref[@]}"
refuse 65 "has no data set 'nosuch'; " init supervised --data r.h5 --targets nosuch -o new.yaml "${ref[@]}"
refuse 65 "has no data set 'nothing'; " init supervised --data r.h5 --inputs nothing -o new.yaml "${ref[@]}"
refuse 64 'nowhere' init ppo --env nowhere -o new.yaml "${ref[@]}"
refuse 64 'would be overwritten' init supervised --data r.h5 -o r.h5 --force
[ ! -e new.yaml ] || wrong "what was refused left a file"
exit "$failed"
