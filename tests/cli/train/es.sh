#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt train es`, `gpurt train standing`, `gpurt play` and `gpurt bench rollout` from outside:
# mistakes have one line and their exit code; a resumed run ends with the same file; the picture is
# whole. Usage: es.sh GPURT JSON_CHECK

set -uo pipefail
gpurt=$(realpath "${1:?usage: es.sh GPURT JSON_CHECK}")
json=$(realpath "${2:?usage: es.sh GPURT JSON_CHECK}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1

# ---- mistakes ----
refuse 64 "'standing'" train standin
refuse 64 "--env" train es
refuse 64 "'cartpole'" train es --env cartpol --device ref:0
refuse 64 "outside 1 to" train es --env cartpole --num-envs 0
refuse 64 "no phase 5" train standing --phase 5 --from none --device ref:0
refuse 64 "--until" train es --env cartpole --until 1.5 --device ref:0
refuse 64 "it has 1 to 4" play standing --checkpoint x.h5 --phase 5
refuse 64 "at most 5000" play standing --checkpoint x.h5 --steps 5001
refuse 64 "mlpN" train es --env cartpole --policy conv --device ref:0
refuse 64 "use mlp16 or mlp20" train es --env cartpole --policy mlp18 --device ref:0
refuse 66 "phase 1" train standing --phase 2 --device ref:0
refuse 64 "--checkpoint" play cartpole
refuse 64 "standing" play ant
refuse 64 "it has 1 to 4" train standing --phase 9 --device ref:0
refuse 64 "comes before '--phase'" train --phase 1
refuse 73 "no-such-folder/p.h5" train es --env cartpole --iterations 1 --checkpoint no-such-folder/p.h5 --device ref:0
refuse 64 "did you mean 'standing'" bench rollout --env standin --device ref:0
refuse 64 "use mlp16" bench rollout --policy linear,mlp7 --device ref:0
refuse 64 "svg json" play cartpole --checkpoint x.h5 --format gif
refuse 66 "x.h5" play cartpole --checkpoint x.h5
for name in x.gif x.png x.svg.gz ./x.svg/../x.h6; do
    refuse 64 "gpurt: '$name': the name must end in .svg or .json, or --format svg|json says the form" \
        play cartpole --checkpoint x.h5 -o $name
done

# ---- training, resuming ----
es=(train es --env cartpole --policy linear --num-envs 4 --num-dirs 4 --episode-length 30 --device ref:0)
expect 0 "${es[@]}" --iterations 4 --checkpoint whole.h5 --format json
"$json" <out || wrong "train es: not JSON"
recorded train es --env
expect 0 "${es[@]}" --iterations 2 --checkpoint half.h5 --log log.jsonl
"$json" --lines <log.jsonl || wrong "train es: the log is not one JSON object a line"
logs_agree log.jsonl
expect 0 train es --resume half.h5 --iterations 4 --checkpoint rest.h5 --device ref:0
cmp -s whole.h5 rest.h5 || wrong "a resumed run ends with another checkpoint"
# With an average, and with numbers that are no defaults: what is not given comes from the file.
odd=(ema=0.9 --top-dirs 3 --step-size 0.07 --noise-std 0.05 --seed 9 --no-normalise)
expect 0 "${es[@]}" "${odd[@]}" --iterations 2 --checkpoint mean.h5
for ema in 0 0.5; do
    refuse 78 "mean.h5 was made with ema=0.9; here it is $ema, which is another run" train es --resume mean.h5 --iterations 4 ema=$ema --device ref:0
done
# Another seed is another run, and 0 is one too.
cp mean.h5 reseeded.h5
expect 0 train es --resume reseeded.h5 --iterations 4 --seed 0 --device ref:0
told '^seed        0$'
expect 0 train es --resume mean.h5 --iterations 4 --device ref:0
! cmp -s mean.h5 reseeded.h5 || wrong "--seed 0 is lost when a run is resumed"
expect 0 "${es[@]}" "${odd[@]}" --iterations 4 --checkpoint whole-mean.h5
cmp -s mean.h5 whole-mean.h5 || wrong "a resumed run with an average ends with another checkpoint"
expect 0 "${es[@]}" --iterations 1 --dir-chunk 9 --checkpoint chunk.h5
grep -q 'using 4' err || wrong "a chunk that is too large is not said"
cp whole.h5 before.h5
refuse 65 "'linear' and not 'mlp16'" train es --env cartpole --policy mlp16 --from whole.h5 --checkpoint whole.h5 \
    --device ref:0
cmp -s whole.h5 before.h5 || wrong "a refused run touched a checkpoint"

# A run that is done has nothing left to do; one that is resumed is kept where it was; one that
# begins anew moves what an earlier one has learnt out of its way.
expect 0 train es --resume whole.h5 --iterations 4 --device ref:0
grep -q 'nothing to do' err || wrong "a run that was done goes on"
cmp -s whole.h5 before.h5 || wrong "a run that was done changed its checkpoint"
expect 0 "${es[@]}" --iterations 2 --checkpoint mine.h5
expect 0 train es --resume mine.h5 --iterations 4 --device ref:0
cmp -s mine.h5 whole.h5 || wrong "a resumed run is not kept where it was"
[ ! -e cartpole-phase1.h5 ] || wrong "a resumed run wrote another file"
[ ! -e mine-earlier-1.h5 ] || wrong "a resumed run moved its own checkpoint"
for n in 1 2; do
    expect 0 "${es[@]}" --iterations 1 --checkpoint mine.h5
    grep -q "mine-earlier-$n.h5" err || wrong "where an earlier checkpoint went is not said"
done
cmp -s mine-earlier-1.h5 whole.h5 || wrong "an earlier checkpoint is lost"
head -c 2000 whole.h5 >damaged.h5
refuse 65 "damaged.h5" train es --resume damaged.h5 --device ref:0
refuse 65 "damaged.h5" train es --env cartpole --from damaged.h5 --device ref:0
refuse 65 "damaged.h5" play cartpole --checkpoint damaged.h5 --device ref:0

# ---- settings from a file ----
# A config, KEY=VALUE and options: the same run, whichever they come from; the last two stand above
# the file, and options above all.
cat >es.yaml <<'YAML'
es:
  env: cartpole
  policy: linear
  num_envs: 4
  num_directions: 4
  max_episode_steps: 30
  iterations: 4
gpu:
  device: ref:0
checkpoint:
  file: from-yaml.h5
YAML
expect 0 train es --config es.yaml
cmp -s from-yaml.h5 whole.h5 || wrong "a config gives another run than options"
expect 0 train es env=cartpole policy=linear num_envs=4 num_dirs=4 episode_length=30 iterations=4 device=ref:0 \
    checkpoint_file=words.h5
cmp -s words.h5 whole.h5 || wrong "KEY=VALUE gives another run than options"
sed 's/num_envs: 4/num_envs: 9/; s/iterations: 4/iterations: 9/' es.yaml >other.yaml
printf 'seed: 7\n' >>other.yaml
expect 0 train es --config other.yaml num_envs=5 iterations=4 --num-envs 4 --seed 0 --checkpoint above.h5
cmp -s above.h5 whole.h5 || wrong "options and KEY=VALUE do not stand above the file"
expect 0 train es --config other.yaml num_envs=4 iterations=4 seed=0 --checkpoint seven.h5
cmp -s seven.h5 whole.h5 || wrong "KEY=VALUE does not stand above the file"
expect 0 train es --config es.yaml normalize_observations=false iterations=2 --checkpoint plain0.h5
expect 0 "${es[@]}" --no-normalise --iterations 2 --checkpoint plain.h5
cmp -s plain0.h5 plain.h5 || wrong "normalize_observations=false is not --no-normalise"
printf 'es:\n  env: cartpole\n  num_env: 4\n' >bad.yaml
refuse 78 "bad.yaml:3:3: no key 'num_env'; did you mean 'num_envs'?" train es --config bad.yaml
printf 'es:\n  env: cartpole\n\nbatch_size: 4\n' >bad.yaml
refuse 78 "bad.yaml:4:1: batch_size is a key of supervised training" train es --config bad.yaml
printf 'epochs: 2\nes:\n  num_envs: 4\n' >bad.yaml
refuse 78 "bad.yaml:3:3: num_envs is a key of evolution strategies" train supervised --config bad.yaml
refuse 78 "no key 'nois_std'; did you mean 'noise_std'?" train es --env cartpole nois_std=1
refuse 78 "between 1 and 4294967295" train es --env cartpole num_envs=0
refuse 78 "4294967295" train es --env cartpole seed=4294967296
refuse 78 "which trains standing" train standing env=cartpole
refuse 78 "--config FILE" train es es.yaml
refuse 66 "missing.yaml" train es --config missing.yaml
refuse 64 "give it as max_time=VALUE" train es --env cartpole --max-time 3
refuse 64 "it is an option: give it as --resume VALUE" train es --env cartpole resume=a.h5
refuse 78 "top_dirs has no effect with algo es" train es --env cartpole --algo es --top-dirs 3
refuse 64 "no option '--batch-size'" train es --env cartpole --batch-size 3
! grep -q "setting" err || wrong "train es: batch_size is called a setting of it"
cp es.yaml kept.yaml
refuse 64 "would be overwritten" train es --config kept.yaml --log kept.yaml
cmp -s es.yaml kept.yaml || wrong "a config was written over"
expect 0 train es --keys --format json
"$json" <out || wrong "train es --keys: not JSON"
said '"noise_std"'
said '"patience"'
! grep -q '"batch_size"' out || wrong "train es --keys: keys of another kind"
expect 0 train supervised --keys --format json
! grep -q '"noise_std"' out || wrong "train supervised --keys: keys of another kind"

# A next phase begins with the policy of the one before, whose kind it takes over, and tries it
# first; what a run leaves as it is, a resumed one does too.
st=(train standing --num-envs 2 --num-dirs 2 --episode-length 5 --device ref:0)
expect 0 "${st[@]}" --policy mlp16 --iterations 1
expect 0 "${st[@]}" --phase 2 --iterations 1 --log phase2.jsonl
said 'phase 2.*mlp16'
logs_agree phase2.jsonl
sed -n 2p phase2.jsonl | grep -q '"event":"evaluate".*"step":0,' || wrong "phase 2: the policy is not tried first"
expect 0 "${es[@]}" --no-normalise --iterations 2 --checkpoint plain.h5
expect 0 "${es[@]}" --no-normalise --iterations 1 --checkpoint plain1.h5
expect 0 train es --resume plain1.h5 --iterations 2 --checkpoint plain2.h5 --device ref:0
cmp -s plain.h5 plain2.h5 || wrong "--no-normalise is lost when a run is resumed"

# The largest policy takes 39 KiB and lavapipe has 32 of shared memory: it runs all the same, and
# chunks change no byte.
expect 0 "${st[@]}" --policy mlp256 --iterations 1 --dir-chunk 2 --checkpoint large.h5 --device vulkan:0
expect 0 "${st[@]}" --policy mlp256 --iterations 1 --dir-chunk 1 --checkpoint large1.h5 --device vulkan:0
cmp -s large.h5 large1.h5 || wrong "train standing: mlp256 learns something else in chunks of one direction"
expect 0 play standing --checkpoint large.h5 --steps 3 --device vulkan:0
said '^</svg>'

# ---- interrupted ----
# interrupt SIGNAL ARGUMENT...: a run without an end in sight gets the signal after its first
# iteration. It ends after one, with a checkpoint that has the same bytes as that of a run of just
# so many.
interrupt() {
    local signal=$1 done_
    shift
    rm -f cut.h5 cut.jsonl
    begin "$@" --iterations 1000000 --checkpoint-every 1000000 --checkpoint cut.h5 --log cut.jsonl
    wait_for "gpurt $*: its first iteration" grep -q '"step":1,' cut.jsonl
    stop "$signal" 75 "gpurt $*"
    grep -q -- '--resume cut.h5' err || wrong "$signal: gpurt $*: how to go on is not said"
    logs_agree cut.jsonl
    done_=$(sed -n '$s/.*"step":\([0-9]*\),.*/\1/p' cut.jsonl)
    expect 0 "$@" --iterations "${done_:-1}" --checkpoint uncut.h5
    cmp -s cut.h5 uncut.h5 || wrong "$signal: gpurt $*: not the checkpoint of ${done_:-no} iterations"
}
interrupt INT "${es[@]}"
interrupt TERM "${es[@]}"
interrupt HUP "${es[@]}"
interrupt USR1 "${es[@]}"
interrupt TERM train standing --num-envs 2 --num-dirs 2 --episode-length 10 --device ref:0
# Several seconds an iteration here: it is given up in the middle.
interrupt USR1 train standing --num-envs 32 --num-dirs 32 --episode-length 40 --device ref:0

# ---- the picture, the benchmark ----
refuse 65 "cartpole" play pendulum --checkpoint whole.h5 --device ref:0
refuse 64 "has no --seed; --start N" play cartpole --checkpoint whole.h5 --seed 3 --device ref:0
refuse 64 "has no KEY=VALUE" play cartpole map=3 --checkpoint whole.h5 --device ref:0
expect 0 play cartpole --checkpoint whole.h5 --steps 9 --device ref:0
said '^</svg>'
cp out picture
expect 0 play cartpole --checkpoint whole.h5 --steps 9 --device ref:0 -o by-name.json
"$json" <by-name.json || wrong "play: a name in .json gets something else"
expect 0 play cartpole --checkpoint whole.h5 --steps 9 --device ref:0 -o no-ending
same no-ending picture
expect 0 play cartpole --checkpoint whole.h5 --steps 9 --device ref:0 --format json -o form.svg
same form.svg by-name.json
expect 0 play cartpole --checkpoint whole.h5 --steps 9 --format json --device ref:0
same out by-name.json
"$json" <out || wrong "play: not JSON"
expect 0 bench rollout --env cartpole --num-envs 4,8 --num-dirs 2 --dir-chunk 1,2 --episode-length 9 --device ref:0 \
    --time 0.01 --samples 1 --format json
"$json" <out || wrong "bench rollout: not JSON"
# Without sizes: every policy's table has the setting before and the profile's, and ends with their
# comparison.
expect 0 bench rollout --env cartpole --policy linear,mlp16 --episode-length 3 \
    --device ref:0 --time 0.01 --samples 1
[ "$(grep -c '^cartpole ' out)" -ge 4 ] || wrong "bench rollout: a policy's rows are missing"
[ "$(grep -c 'was held back by' out)" -eq 2 ] || wrong "bench rollout: a comparison is missing"
expect 0 bench rollout --num-envs 2 --num-dirs 1 --dir-chunk 1 --episode-length 3 --device ref:0 --time 0.01 --samples 1 \
    --format json
grep -q '"of_peak"' out || wrong "bench rollout: no share of the device's rate"

# ---- other forms ----
# --directions goes on behind a line that was cut off, and has its head once.
printf 'iteration,direction,seed,return_plus,return_minus\n7,0,5,3' >torn.csv
expect 0 train es --env cartpole --num-envs 2 --num-dirs 2 --episode-length 5 --iterations 1 --device ref:0 \
    --checkpoint torn.h5 --directions torn.csv
[ "$(cut -d, -f1,2 torn.csv | paste -sd' ')" = "iteration,direction 7,0 1,0 1,1" ] || wrong "--directions: $(cat torn.csv)"

# A policy keeps what it does to its observations, in both directions, bit for bit.
python=/usr/bin/python3 # Debian's, which has h5py
for policy in affine mlp16; do
    expect 0 train es --device ref:0 --env pendulum --policy "$policy" --iterations 3 --num-envs 4 --num-dirs 4 \
        --checkpoint "$tmp/n.h5" -q
    expect 0 convert "$tmp/n.h5" "$tmp/n.safetensors"
    read -r kept left <<<"$(sed -nE 's/.*[^0-9]([0-9]+) tensors in .*; ([0-9]+) that only --resume .* stay behind, --all .*/\1 \2/p' <(sed 's/^/ /' "$tmp/err"))"
    expect 0 convert "$tmp/n.safetensors" "$tmp/back.h5"
    "$python" - "$tmp" "${kept:-0}" "${left:-0}" <<'PY' || wrong "convert: another normaliser, or other tensors than it tells"
import h5py, json, struct, sys
import numpy as np
was, back = h5py.File(sys.argv[1] + "/n.h5"), h5py.File(sys.argv[1] + "/back.h5")
blob = open(sys.argv[1] + "/n.safetensors", "rb").read()
size = struct.unpack("<Q", blob[:8])[0]
name = "normalizer/mean_rstd_variance"
entry = json.loads(blob[8:8 + size])[name]
begin, end = entry["data_offsets"]
norm = np.frombuffer(blob[8 + size + begin:8 + size + end], "<f4").reshape(entry["shape"])
assert norm.shape == (3, 3) and (norm == was[name][()]).all() and (norm == back[name][()]).all()
assert not (norm[0] == 0).all() and not (norm[1] == 1).all(), "a normaliser that does nothing tests nothing"
assert "optimizer" not in back and sorted(back["model"]) == sorted(was["model"])
kept, left, count = int(sys.argv[2]), int(sys.argv[3]), []
was.visititems(lambda name, item: count.append(name) if isinstance(item, h5py.Dataset) else None)
there = len([key for key in json.loads(blob[8:8 + size]) if key != "__metadata__"])
assert (kept, kept + left) == (there, len(count)) and left > 0, (kept, left, there, count)
PY
    for form in n.h5 back.h5 n.safetensors; do
        expect 0 play pendulum --device ref:0 --steps 50 --format json --checkpoint "$tmp/$form" -o "$tmp/$form.json"
        cmp -s "$tmp/n.h5.json" "$tmp/$form.json" || wrong "play: another trajectory of $form"
        expect 0 train es --device ref:0 --env pendulum --policy "$policy" --iterations 1 --num-envs 4 --num-dirs 4 \
            --from "$tmp/$form" --checkpoint "$tmp/next.h5" -q --format csv
        sed 1q "$tmp/out" >"$tmp/first" && sed -n 2p "$tmp/out" | cut -d, -f 1-7 >>"$tmp/first"
        [ "$form" = n.h5 ] && cp "$tmp/first" "$tmp/first.h5"
        cmp -s "$tmp/first" "$tmp/first.h5" || wrong "train es --from $form begins otherwise"
    done
    # All of it can be resumed.
    expect 0 convert --all "$tmp/n.h5" "$tmp/all.safetensors"
    expect 0 convert "$tmp/all.safetensors" "$tmp/all.h5"
    for form in n all; do
        expect 0 train es --device ref:0 --resume "$tmp/$form.h5" --checkpoint "$tmp/$form-5.h5" --iterations 5 -q
    done
    cmp -s "$tmp/n-5.h5" "$tmp/all-5.h5" || wrong "convert --all: another run after --resume"
done

exit "$failed"
