#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Data that are hard on a training run, from end to end on one device: numbers that f32 does not
# tell apart, against NumPy, and files that lose their end. With drivers: rows that the device
# keeps, and those that the host reads beside them, for the same bits. All else is the host's alone
# and tried with ref. Usage: train_data.sh GPURT DEVICE

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpurt=$(realpath "$1")
python=/usr/bin/python3 # Debian's, which has h5py
scratch=/dev/shm # in memory where that is to be had: each checkpoint waits for the disk
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$here/../../harness/command.sh"
device=$2
export GPURT_DEVICE=$device XDG_CONFIG_HOME=$tmp/config
unset NO_COLOR
cd "$tmp" || exit 1

# said PATTERN: in what the last command printed.
said() { grep -qE -- "$1" out err || wrong "not said: $1"; }
unsaid() { ! grep -qE -- "$1" out err || wrong "said: $1"; }

# ---- times since 1970, half a second apart: f32 has one number for 256 of them ----
"$python" "$here/train_data_peer.py" make || wrong "NumPy makes no data"
base=(train supervised model=small batch_size=50 epochs=2 learning_rate=0.01 normalize=true inputs=stamp)
host_part && caches=(none ram device) || caches=(none device)
host_part && judged=("${caches[@]}") || judged=(device) # by predictions and losses
for type in f64 i64 i32 f32; do
    for cache in "${caches[@]}"; do
        run=$type-$cache
        expect 0 "${base[@]}" --data "$type.h5" cache="$cache" checkpoint_dir="$run"
        unsaid 'apart'
        [[ " ${judged[*]} " == *" $cache "* ]] || continue
        expect 0 predict --data "$type.h5" --checkpoint "$run" -o "$run.p.h5" cache="$cache"
        unsaid 'apart'
        expect 0 eval --data "$type.h5" --checkpoint "$run" --format csv
        awk -F, 'NR == 2 { print $2 }' out >"$run.loss"
    done
    last=$(basename "$(ls "$type-none"/step-*.h5 | tail -n 1)")
    for cache in "${caches[@]:1}"; do
        cmp -s "$type-none/$last" "$type-$cache/$last" || wrong "$type: another network with cache $cache"
    done
done
if host_part; then
    # The mean goes through other forms of file without loss, and older checkpoints have no rest.
    expect 0 convert --all f64-none/best.h5 all.safetensors
    expect 0 convert all.safetensors back.h5
    expect 0 predict --data f64.h5 --checkpoint back.h5 -o back.p.h5
    # Without normalize nothing can be done, but said.
    expect 0 "${base[@]}" --data f64.h5 normalize=false checkpoint_dir=plain
    said 'f64.h5: f32 tells [0-9]+ of [0-9]+ values apart in input column 0 .*normalize: true keeps them apart'
    expect 0 "${base[@]}" --data target.h5 checkpoint_dir=target targets=when
    said 'f32 tells [0-9]+ of [0-9]+ values apart in target column 0 .*subtract an offset'
fi
"$python" "$here/train_data_peer.py" check "${judged[@]}" || wrong "NumPy disagrees"

# ---- narrow rows stay what they are, wherever they are kept ----
for type in u8 f16; do
    for cache in "${caches[@]}"; do
        for norm in true false; do
            expect 0 train supervised --data $type.h5 inputs=picture targets=kind model=small batch_size=50 epochs=2 \
                normalize=$norm cache=$cache checkpoint_dir=$type-$norm-$cache
            said 'loss cross_entropy'
            last=$(basename "$(ls $type-$norm-$cache/step-*.h5 | tail -n 1)")
            cmp -s "$type-$norm-none/$last" "$type-$norm-$cache/$last" ||
                wrong "$type: another network with cache $cache, normalize $norm"
        done
    done
done

# ---- a number too large for the network, in the first of several micro-batches, is named ----
"$python" - <<'PY' || wrong "no data"
import h5py, numpy as np
with h5py.File("huge.h5", "w") as file:
    x = np.ones((400, 8), "f4")
    x[3] = 3e38
    file["gauge"], file["y"] = x, np.ones(400, "f4")
PY
expect 70 train supervised --data huge.h5 inputs=gauge model=small batch_size=25 accumulate=4 shuffle=false \
    validation_split=0 cache=none checkpoint_dir=huge
said 'step 1 \(epoch 1, batch 1\): activations of layers\.0 is not finite'

host_part || exit $failed

# ---- windows ----
expect 0 "${base[@]}" --data f32.h5 checkpoint_dir=windows shuffle_window=480
said '^loading .*, shuffled in windows of 480 samples'
expect 78 "${base[@]}" --data f32.h5 checkpoint_dir=windows shuffle_window=960 epochs=3 --resume
said 'was made with'
expect 0 "${base[@]}" --data f32.h5 checkpoint_dir=windows shuffle_window=480 epochs=3 --resume
expect 0 "${base[@]}" --data f32.h5 checkpoint_dir=windows3 shuffle_window=480 epochs=3 cache=ram
last=$(basename "$(ls windows3/step-*.h5 | tail -n 1)")
cmp -s "windows/$last" "windows3/$last" || wrong "windows: another network after a stop, or out of memory"

# ---- a file that loses its end while it is read ----
for workers in 0 2; do
    expect 0 data make regression --samples 40000 --features 16 -o cut.h5
    begin train supervised --data cut.h5 model=small batch_size=64 epochs=100000 cache=none \
        num_workers=$workers checkpoint_dir=cut-$workers
    wait_for "the first step out of cut.h5" grep -q ', step [0-9]' err
    truncate -s 300001 cut.h5
    code=0
    wait $pid || code=$?
    [ $code -eq 65 ] || wrong "a truncated file: exit code $code, wanted 65"
    said 'cut.h5: the file ends at byte 300001, .* it was truncated while it was being read'
    [ "$(grep -cE 'error|truncated|Bus' err)" -eq 1 ] || wrong "a truncated file: not one line"
done

exit $failed
