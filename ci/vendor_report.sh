#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A report of every device of this machine beside the recorded ones: a short suite on each, the
# results of ci/records, what compilers say of GPUs that are not here (ci/static_check.sh), and what
# is predicted of them (gpurt estimate).
#
# Usage: ci/vendor_report.sh [--build DIR] [--out DIR] [--benches LIST] [--time SECONDS]
#                            [--targets LIST | --no-static] [--cards LIST | --no-predicted]
#                            [--no-records] [-- OPTION...]
#
#   --build     build tree (default build/release)
#   --out       where the report and its results go (default DIR/report of the build tree)
#   --benches   of: memory launch gemm conv rollout mlp train ppo learn (default all)
#   --time      of each row (default 0.05)
#   --targets   of ci/static_check.sh, or --all for every one (default its short list)
#   --cards     of `gpurt estimate --list` (default: those of the docs)
#   OPTION      of `gpurt report`: --baseline FILE --fail-under 0.95
#
# Writes report.html, report.md and report.csv. A bench that fails is named, and the exit status is
# 1 at the end; the report has the others.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build=$root/build/release
out=
benches='memory launch gemm conv rollout mlp train ppo learn'
seconds=0.05
static=1
records=1
cards=h200,a100,rtx-3060-laptop,rtx-3060,rtx-4090,rx-7900-xtx,arc-a770
targets=()
while [ $# -gt 0 ]; do
    case $1 in
    --build | --out | --benches | --time | --targets | --cards)
        [ $# -gt 1 ] || die "$1 wants a value"
        case $1 in
        --build) build=$(realpath -m "$2") ;;
        --out) out=$2 ;;
        --benches) benches=$2 ;;
        --time) seconds=$2 ;;
        --targets) read -ra targets <<<"$2" ;;
        --cards) cards=$2 ;;
        esac
        shift
        ;;
    --no-static) static=0 ;;
    --no-predicted) cards= ;;
    --no-records) records=0 ;;
    --)
        shift
        break
        ;;
    *) die "unknown option '$1'; see the head of ci/vendor_report.sh" ;;
    esac
    shift
done
gpurt=$build/gpurt
[ -x "$gpurt" ] || die "no $gpurt: run ci/build.sh, or name a build tree with --build"
out=$(realpath -m "${out:-$build/report}")
mkdir -p "$out/results"
rm -f "$out"/results/*
failed=0

# measure DEVICE BENCH OPTION...: one file of results.
measure() {
    local device=$1 bench=$2 file
    shift 2
    file=$out/results/$bench-${device//[^a-z0-9]/-}.json
    if ! "$gpurt" bench "$bench" --device "$device" --time "$seconds" --format json -o "$file" -q "$@"; then
        say "$device: \`gpurt bench $bench\` failed"
        failed=1
    fi
}

# suite DEVICE TYPE: sizes that take seconds, larger ones where there is a GPU.
suite() {
    local device=$1 type=$2 bench
    for bench in $benches; do
        case $bench-$type in
        memory-gpu) measure "$device" memory --size 64MiB,256MiB ;;
        memory-*) measure "$device" memory --size 4MiB ;;
        launch-*) measure "$device" launch --count 64,1024 ;;
        gemm-gpu) measure "$device" gemm --shape 1024,4096,8192,65536x128x128 --precision f32,f16 ;;
        gemm-*) measure "$device" gemm --shape 128,256,512 --precision f32 ;;
        conv-gpu) measure "$device" conv --images 256 ;;
        conv-*) measure "$device" conv --shape 4x16x16x32x32,4x8x8x64x64 --precision f32 ;;
        rollout-gpu) measure "$device" rollout --num-envs 128-2048*4 --num-dirs 64 --dir-chunk 64 ;;
        rollout-*) measure "$device" rollout --num-envs 16,64 --num-dirs 4 --dir-chunk 4 --episode-length 50 ;;
        mlp-gpu) measure "$device" mlp --model small,medium,large --precision f16 ;;
        mlp-*) measure "$device" mlp --model small,medium --batch-sizes 256,1024 --precision f32 ;;
        train-gpu) measure "$device" train ;;
        train-*) measure "$device" train --model depth=3,hidden=16 --batch-sizes 64-4096*4 --num-workers 0,2 --precision f32 ;;
        ppo-gpu) measure "$device" ppo --env uav --num-envs 1024-16384*4 --precision f16 ;;
        ppo-*) measure "$device" ppo --env cartpole --num-envs 16,64 --rollout-steps 32 ;;
        learn-*)
            "$gpurt" train ppo --env cartpole --num-envs 32 lr=2e-3 evaluate_every=2 --iterations 16 --device "$device" \
                --checkpoint "$out/policy.h5" --log "$out/results/learn-${device//[^a-z0-9]/-}.jsonl" -q >/dev/null || {
                say "$device: \`gpurt train ppo\` failed"
                failed=1
            }
            rm -f "$out"/policy*.h5
            ;;
        *) die "no bench '$bench'; there are memory launch gemm conv rollout mlp train ppo learn" ;;
        esac
    done
}

while IFS=$'\t' read -r device type; do
    say "$device"
    suite "$device" "$type"
done < <("$gpurt" devices --format jsonl | sed -n 's/.*"selector":"\([^"]*\)".*"type":"\([^"]*\)".*/\1\t\2/p' |
    grep -v '^ref:')

files=("$out"/results/*)
[ -e "${files[0]}" ] || files=()
if [ "$static" -eq 1 ]; then
    say "kernels for GPUs that are not here"
    status=0
    "${GPURT_STATIC_CHECK:-$root/ci/static_check.sh}" --build "$build" --json "$out/results/static.json" \
        "${targets[@]}" >&2 || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || failed=1
    [ ! -s "$out/results/static.json" ] || files+=("$out/results/static.json")
fi
if [ -n "$cards" ]; then
    "$gpurt" estimate --card "$cards" --api vulkan --format jsonl -o "$out/results/predicted.jsonl" -q
    files+=("$out/results/predicted.jsonl")
fi
if [ "$records" -eq 1 ]; then
    files+=("$root"/ci/records/*/*.json "$root"/ci/records/*/{images-,learning-cartpole}*.jsonl)
fi
[ "${#files[@]}" -gt 0 ] || die "nothing to report"
# Names inside the report begin at the root of the tree where they can.
cd "$root"
status=0
"$gpurt" report "${files[@]#"$root"/}" --title "$("$gpurt" version | sed -n 1p): devices compared" --html "$out/report.html" \
    --md "$out/report.md" --csv "$out/report.csv" "$@" || status=$?
[ "$status" -le 1 ] || exit "$status"
say "$out/report.html, report.md and report.csv: ${#files[@]} files"
[ "$failed" -eq 0 ] || die "some benches failed, see above"
exit "$status"
