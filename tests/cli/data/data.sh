#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt data`, `gpurt bench data` and `gpurt bench` from outside: a file is made, described, read
# and trained on; mistakes have their exit codes; Ctrl-C gives the summary. Usage: data.sh GPURT
# JSON_CHECK H5_CRASH

set -uo pipefail
gpurt=${1:?usage: data.sh GPURT JSON_CHECK H5_CRASH}
json=${2:?usage: data.sh GPURT JSON_CHECK H5_CRASH}
h5_crash=${3:?usage: data.sh GPURT JSON_CHECK H5_CRASH}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
export TMPDIR=$tmp

# ---- make and info ----
refuse 64 "make KIND" data
refuse 64 "make KIND" data info
refuse 64 "'regression'" data make regresion -o "$tmp/x.h5"
refuse 64 "-o FILE" data make regression
refuse 64 "samples" data make regression --samples 0 -o "$tmp/x.h5"
refuse 64 "deflate" data make regression --deflate 10 -o "$tmp/x.h5"
for noise in -1 0.1x x nan; do
    refuse 64 "a number from 0 on is wanted" data make regression --noise $noise -o "$tmp/x.h5"
done
refuse 64 "data make" data info --samples 3 "$tmp/x.h5"
refuse 66 "No such file" data info "$tmp/x.h5"
refuse 73 "missing" data make regression --samples 10 -o "$tmp/missing/x.h5"
[ -z "$(find "$tmp" -name 'x.h5*')" ] || wrong "a refused file was left behind"
printf 'no data\n' >"$tmp/text.h5"
refuse 65 "not an HDF5 file" data info "$tmp/text.h5"
expect 0 data make regression --samples 600 --features 8 -o "$tmp/r.h5"
[ -z "$(cat "$tmp/out" "$tmp/err")" ] || wrong "data make talks without a terminal"

# ---- the HDF5 library crashes ----
export LD_PRELOAD=$h5_crash
if ! ldd "$gpurt" | grep -q libasan; then
    refuse 65 "the HDF5 library crashed (signal 11" data info "$tmp/r.h5"
    refuse 65 "the HDF5 library crashed (signal 11" train supervised --device ref:0 --data "$tmp/r.h5" \
        checkpoint_dir="$tmp/none"
    refuse 65 "the HDF5 library crashed (signal 11" convert "$tmp/r.h5" "$tmp/r.safetensors"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || wrong "more than one line about a crash"
fi
unset LD_PRELOAD
# Bytes of a good file changed, each time others: it is read or refused, never worse.
for i in $(seq 1 40); do
    cp "$tmp/r.h5" "$tmp/flip.h5"
    for k in 1 2 3; do
        # The head and the tail of the file are the library's own.
        at=$(((i * 7919 + k * 104729) % 2048))
        printf '%b' "\\x$(printf %02x $(((i * 37 + k * 101) % 256)))" |
            dd of="$tmp/flip.h5" bs=1 seek="$at" conv=notrunc 2>/dev/null
    done
    code=0
    "$gpurt" data info "$tmp/flip.h5" >"$tmp/out" 2>"$tmp/err" || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 65 ] || wrong "data info of damaged file $i: exit code $code"
done
expect 0 data make classification --samples 600 --features 4 --classes 5 --seed 3 -o "$tmp/c.h5"
expect 0 data make points --samples 100 --features 3 --points 6 --chunk 30 --deflate 2 -o "$tmp/p.h5"
refuse 64 "8 to 1024" data make shapes --pixels 4 -o "$tmp/s.h5"
refuse 64 "gpurt: --classes 11: shapes has at most 10" data make shapes --samples 5 --classes 11 -o "$tmp/s.h5"
[ ! -e "$tmp/s.h5" ] || wrong "data make: a refused file is there"
expect 0 data make shapes --samples 20 --pixels 8 --classes 4 -o "$tmp/s.h5"
# HDF5 closes at the end of a process what it could not write before.
(
    ulimit -f 60
    refuse 74 "File too large" data make regression --samples 3000 --deflate 1 --chunk 100 -o "$tmp/large.h5"
    exit "$failed"
) || failed=1
[ ! -e "$tmp/large.h5" ] || wrong "data make: a file that could not be written is there"
# More rows than are asked for at once, in batches that do not divide those.
expect 0 data make regression --samples 5000 --features 1 -o "$tmp/long.h5"
expect 0 data order --data "$tmp/long.h5" --device ref:0 shuffle=false validation_split=0 batch_size=1000 --format csv
[ "$(sed -n '1p; 2p; 1002p; 4097p; 4098p; $p' "$tmp/out" | xargs)" = 'step,row 1,0 2,1000 5,4095 5,4096 5,4999' ] ||
    wrong "data order: $(sed -n '1p; 2p; 1002p; 4097p; 4098p; $p' "$tmp/out" | xargs)"
rm "$tmp/long.h5"
expect 0 data info "$tmp/s.h5"
said 'shapes, 4 classes'
said '^x +u8 +20 x 8 x 8 x 3 '
expect 0 data info "$tmp/r.h5"
said 'regression, noise floor 0\.01'
said '^x +f32 +600 x 8 '
expect 0 data info "$tmp/c.h5"
said ' 5 classes'
said '^y +i32 +600 '
expect 0 data info "$tmp/p.h5"
said '^x +f32 +100 x 6 x 3 +30 x 6 x 3 +shuffle deflate 2'
for format in json jsonl csv md; do
    expect 0 data info "$tmp/r.h5" --format "$format"
    case $format in
    json) "$json" <"$tmp/out" || wrong "data info: not JSON" ;;
    jsonl) "$json" --lines <"$tmp/out" || wrong "data info: not JSON lines" ;;
    csv) said '^x,f32,600 x 8,' ;;
    md) said '^\| x ' ;;
    esac
done

# ---- the loader ----
refuse 66 "No such file" bench data --data "$tmp/nothing.h5"
refuse 65 "no data set 'q'" bench data --data "$tmp/r.h5" --inputs q
refuse 64 "num-workers" bench data --num-workers 1000
expect 0 bench data --data "$tmp/r.h5" --batch-sizes 32,100 --num-workers 0,2 --time 0.01
[ "$(grep -c ' ok$' "$tmp/out")" -eq 4 ] || wrong "bench data: not 4 rows"
expect 0 bench data --data "$tmp/p.h5" --batch-sizes 10 --num-workers 1 --time 0.01 --cache ram --format json
"$json" <"$tmp/out" || wrong "bench data: not JSON"
recorded bench data --data
grep -q '"slowest_stage": *"convert"' "$tmp/out" || wrong "bench data: memory is only converted"
expect 0 bench data --data "$tmp/r.h5" --batch-sizes 100 --num-workers 1 --time 0.01 --format json
grep -Eq '"slowest_stage": *"(read|convert)"' "$tmp/out" || wrong "bench data: no stage of a file"

# ---- the step of an MLP alone ----
for kind in 'mlp --device ref:0' '--device ref:0 mlp'; do
    # shellcheck disable=SC2086  # words
    expect 0 bench $kind --model small --batch-sizes 16 --time 0.01 --format json
    "$json" <"$tmp/out" || wrong "bench mlp: not JSON"
    recorded bench mlp --device ref:0 --model
done

# ---- the step of an image network alone ----
expect 0 bench images --device ref:0 --model wideresnet-10-1 --resolution 4 --batch-sizes 2 --time 0.01 --format json
"$json" <"$tmp/out" || wrong "bench images: not JSON"
grep -q '"check": *"ok"' "$tmp/out" || wrong "bench images: its check failed"
recorded bench images --device ref:0 --model
expect 0 bench images --device ref:0 --model simclr-wideresnet-10-1 --resolution 4 --batch-sizes 3 --time 0.01 --format json
grep -q '"model": *"simclr-wideresnet-10-1"' "$tmp/out" || wrong "bench images: no row of pairs"
grep -q '"check": *"ok"' "$tmp/out" || wrong "bench images: the check of pairs failed"
refuse 64 "behind simclr-" bench images --device ref:0 --model simclr-mlp
expect 71 bench images --device ref:0 --model wideresnet-10-1 --resolution 4 --batch-sizes 2 --mem-limit 100KB
said ' OOM$'
refuse 64 "wideresnet-28-10 is wanted" bench images --device ref:0 --model resnet19
refuse 64 "known are f32" bench images --device ref:0 --precision f33

# ---- training steps ----
quick=(--device ref:0 --steps 2 --model 'depth=1,hidden=4')
refuse 64 "small, medium" bench --model tiny
refuse 64 "f32 f16 bf16" bench --precision f64
refuse 64 "the kind comes first" bench -v gemm
refuse 66 "No such file" bench "${quick[@]}" --data "$tmp/nothing.h5"
printf 'benchmark:\n  batch_sizs: [1]\n' >"$tmp/bad.yaml"
refuse 78 "batch_sizs" bench --config "$tmp/bad.yaml" "${quick[@]}"
for format in json jsonl csv md table; do
    expect 0 bench train "${quick[@]}" --data "$tmp/r.h5" --batch-sizes 32,64 --num-workers 0,1 --format "$format"
    case $format in
    json)
        "$json" <"$tmp/out" || wrong "bench: not JSON"
        recorded bench train --device
        ;;
    jsonl)
        "$json" --lines <"$tmp/out" || wrong "bench: not JSON lines"
        said '^\{"summary":'
        ;;
    csv) [ "$(wc -l <"$tmp/out")" -eq 5 ] || wrong "bench --format csv: not a head and 4 rows" ;;
    *)
        said 'Highest throughput'
        said 'Best efficiency'
        said 'Recommended for training'
        said '^Next: '
        ;;
    esac
done
for device in opencl:0 vulkan:0; do
    expect 0 bench --device "$device" --steps 2 --model 'depth=1,hidden=4' --data "$tmp/r.h5" --cache ram \
        --batch-sizes 32 --num-workers 0,1 --pin-memory on,off --precision f32,f16
    [ "$(grep -c ' ok$' "$tmp/out")" -eq 8 ] || wrong "bench on $device: not 8 good rows"
done
for data in c p; do
    expect 0 bench "${quick[@]}" --data "$tmp/$data.h5" --batch-sizes 50 --num-workers 0
    said ' ok$'
done
# Batches that do not fit, and more rows than there are, end the way up and not the program.
expect 0 bench "${quick[@]}" --data "$tmp/r.h5" --batch-sizes 32,256,1024,2048 --num-workers 0,1
[ "$(grep -c 'few rows$' "$tmp/out")" -eq 2 ] || wrong "bench: rows beyond the data set"
expect 0 bench "${quick[@]}" --data "$tmp/r.h5" --batch-sizes 32,512 --num-workers 0 --mem-limit 40KB --format csv
said ',OOM,plan$'
expect 71 bench "${quick[@]}" --data "$tmp/r.h5" --batch-sizes 64,512 --num-workers 0 --mem-limit 1KB
said ' OOM$'
# A list in words of its own, as other tools take it, and their word for any device.
expect 0 bench --device auto --model 'depth=1,hidden=4' --data "$tmp/r.h5" --batch-sizes 16 32 64 --num-workers 0 1 \
    --steps 1 --format csv
[ "$(grep -c ',ok,' "$tmp/out")" -eq 6 ] || wrong "bench with lists of words: not 6 good rows"
refuse 64 "no kind of bench '64'" bench 64
# Steps that take their rows from the device wait for no data, and the recommendation says so.
expect 0 bench "${quick[@]}" --data "$tmp/r.h5" --batch-sizes 64 --num-workers 0 --cache device --apply "$tmp/dev.yaml"
grep -q 'cache: device' "$tmp/dev.yaml" || wrong "bench --cache device --apply: no cache in the config"
# Rows of u8 lie there as bytes: as f32 these would take 6.1 MB.
expect 0 data make shapes --samples 2000 -o "$tmp/u8.h5"
expect 0 train supervised --device ref:0 --data "$tmp/u8.h5" depth=1 hidden=4 loss=cross_entropy batch_size=8 \
    max_steps=1 checkpoint_dir="$tmp/u8" --mem-limit 4MB
told '^cache +device \(auto\): the data set takes 1.5 MB'
expect 0 bench "${quick[@]}" --data "$tmp/r.h5" --batch-sizes 64 --num-workers 2 --time 0.2 --format json
# A share of the step, which may be written as 6e-05.
tr -d ' \n' <"$tmp/out" | sed -n 's/.*"input_stall":\([0-9.e-]*\),.*/\1/p' |
    awk '{ share = $1 + 0; found = $1 != "" && share >= 0 && share <= 1 } END { exit !found }' ||
    wrong "bench: no input_stall, or no share"
refuse 64 "one number is wanted" bench --device ref:0 --steps 5,10
refuse 64 "depth=6,hidden=64" bench mlp --device ref:0 --model depth=6
refuse 64 "known are f32" bench mlp --device ref:0 --precision f33
# What the config asks for, and what is written for training.
printf 'data:\n  batch_size: 128\nbenchmark:\n  batch_sizes: [32, 64]\n  num_workers_options: [0]\n  steps_per_test: 2
  test_mixed_precision: true\n  test_pin_memory: true\n' >"$tmp/seed.yaml"
expect 0 bench --device ref:0 --model 'depth=1,hidden=4' --config "$tmp/seed.yaml" --data "$tmp/r.h5" --apply "$tmp/best.yaml" --format csv
[ "$(wc -l <"$tmp/out")" -eq 9 ] || wrong "bench --config: not 2 batches x 2 precisions x 2 pins"
grep -qE '^ +batch_size: (32|64)$' "$tmp/best.yaml" || wrong "bench --apply: no batch size"
grep -qE '^ +accumulate: (2|4)$' "$tmp/best.yaml" || wrong "bench --apply: no accumulation"
grep -qE '^ +learning_rate: 0\.001$' "$tmp/best.yaml" || wrong "bench --apply: no learning rate"
expect 0 bench "${quick[@]}" --config "$tmp/best.yaml" --batch-sizes 16 --num-workers 0
said 'r\.h5'
refuse 73 "best.yaml" bench "${quick[@]}" --batch-sizes 16 --num-workers 0 --data "$tmp/r.h5" -q \
    --format csv -o "$tmp/csv" --apply "$tmp/missing/best.yaml"
# The next command is about the same device, data and model; larger batches are tried where one was.
expect 0 bench --device ref:0 --steps 1 --data "$tmp/r.h5" --inputs x --batch-sizes 16 --num-workers 0 \
    --model 'depth=1,hidden=4' --mem-limit 64MB --pin-memory off
said '^Next: gpurt bench --device ref:0 --mem-limit 64MB --data .*/r\.h5 --inputs x --model depth=1,hidden=4 .*'
sed -n 's/^Next: gpurt //p' "$tmp/out" >"$tmp/next"
sed -i "s|best.yaml|$tmp/best.yaml|" "$tmp/next"
xargs "$gpurt" <"$tmp/next" >"$tmp/out" 2>"$tmp/err" || wrong "the next command does not run: $(cat "$tmp/next")"
# A shell reads it as it is meant, whatever the file is called.
cp "$tmp/r.h5" "$tmp/it's [mine] & \$HOME.h5"
expect 0 bench "${quick[@]}" --data "$tmp/it's [mine] & \$HOME.h5" --batch-sizes 32 --num-workers 0
! grep -q 'larger batches gain little' "$tmp/out" || wrong "one batch size says nothing of larger ones"
(cd "$tmp" && eval "\"$gpurt\" $(sed -n 's/^Next: gpurt //p' out)") >"$tmp/out2" 2>"$tmp/err" ||
    wrong "the next command does not run in a shell: $(grep ^Next "$tmp/out")"
expect 0 bench "${quick[@]}" --data "$tmp/r.h5" --batch-sizes 16 --num-workers 0 --apply "$tmp/best.yaml"
said '^Next: gpurt train supervised --config .*/best.yaml --device ref:0 --data .*/r.h5$'
# What is read is not written over, and a full disk has its own exit code.
refuse 64 "would be overwritten" bench "${quick[@]}" --data "$tmp/r.h5" -o "$tmp/r.h5"
refuse 64 "would be overwritten" bench "${quick[@]}" --data "$tmp/r.h5" --apply "$tmp/r.h5"
if [ -w /dev/full ]; then
    for kind in 'train --device ref:0 --model depth=1,hidden=4 --batch-sizes 16' data 'mlp --device ref:0 --model small --batch-sizes 16'; do
        # shellcheck disable=SC2086  # words
        refuse 74 "No space left" bench $kind --time 0.01 -o /dev/full
    done
fi
# Ctrl-C: the rows so far, and the summary.
begin bench --device ref:0 --batch-sizes 16,32,64,128,256,512 --num-workers 0,1,2 --time 2 --data "$tmp/r.h5"
wait_for "the first row of the bench" grep -q ' ok$' "$tmp/out"
stop INT 75 "bench with its first row"
said 'Highest throughput'
# SIGTERM as well, and the synthetic data are removed.
begin bench --device ref:0 --batch-sizes 16 --num-workers 0 --time 60
wait_for "the heading of the bench" grep -q '^ *Batch' "$tmp/out"
[ -n "$(find "$tmp" -name 'gpurt-*')" ] || wrong "no synthetic data where TMPDIR says"
stop TERM 75 "bench without a row"
[ -z "$(find "$tmp" -name 'gpurt-*')" ] || wrong "synthetic data were left behind"

exit "$failed"
