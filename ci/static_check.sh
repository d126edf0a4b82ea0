#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles kernels for GPUs that are not here, and fails on spilled registers or too much shared
# memory. Products, rollouts and elementwise kernels have the settings that shipped profiles give
# them; every other kernel has the constants that stand in it.
#
# Usage: ci/static_check.sh [--build DIR] [--all] [--list] [--json FILE] [TARGET...]
#
#   --all    every target, and every kernel for each; without it, and without a TARGET, one card of
#            each compiler, and every kernel for one of them
#   --list   prints what each kernel takes
#   --json   writes that as results of kind "static" for `gpurt report`: registers, spills, shared
#            memory, occupancy, instructions. A compiler that is missing has a row that says so
#
#   sm_*     clang to PTX, then NVIDIA's ptxas; the kernels with PTX inside too
#   gfx*     clang's AMD back end
#   radv_*   Mesa's Vulkan driver, which compiles for a family that is not here: portable kernels
#   dg2 ...  Intel's ocloc; the kernels of its matrix units too
#
# GPURT_PROFILE=FILE checks that file's settings in place of the shipped ones. The compilers are not
# those of the drivers, so the numbers are indications; but what spills here is a bad choice there.
# A compiler that is not installed is said and its targets are passed over.
#
# Compilers run on every core. What they said is kept in static/ of the build tree, by the hash of
# kernel, constants, compiler and how it is called: a second run compiles what has changed.
# Failures are not kept.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"

build=$root/build/release
list=0
whole=0
json=
wanted=()
while [ $# -gt 0 ]; do
    case $1 in
    --build)
        [ $# -gt 1 ] || die "--build wants a folder"
        build=$(realpath -m "$2")
        shift
        ;;
    --list) list=1 ;;
    --all) whole=1 ;;
    --json)
        [ $# -gt 1 ] || die "--json wants a file"
        json=$(realpath -m "$2")
        shift
        ;;
    -*) die "unknown option '$1'; usage: ci/static_check.sh [--build DIR] [--all] [--list] [--json FILE] [TARGET...]" ;;
    *) wanted+=("$1") ;;
    esac
    shift
done
[ -x "$build/tests/kernel_stats" ] || die "no $build/tests/kernel_stats: build the tests too"
[ -x "$build/gpurt" ] || die "no $build/gpurt: run ci/build.sh, or name a build tree with --build"

# target | device's name as its driver gives it | its memory | bytes of shared memory | a profile it
# must get | in the short list: its products, or every kernel
targets='
sm_80  | NVIDIA A100-SXM4-80GB              | 80GiB  | 49152 | nvidia-a100
sm_80  | NVIDIA A100-PCIE-40GB              | 40GiB  | 49152 | nvidia-a100
sm_86  | NVIDIA GeForce RTX 3060            | 12GiB  | 49152 | nvidia-rtx-3060 | every
sm_86  | NVIDIA GeForce RTX 3060 Laptop GPU | 6GiB   | 49152 | nvidia-rtx-3060-laptop
sm_86  | NVIDIA GeForce RTX 3090            | 24GiB  | 49152 | nvidia-rtx-3090
sm_89  | NVIDIA GeForce RTX 4090            | 24GiB  | 49152 | nvidia-rtx-4090
sm_90  | NVIDIA H200                        | 140GiB | 49152 | nvidia-h200 | products
gfx1030 | AMD Radeon RX 6800 (gfx1030)      | 16GiB  | 65536 | amd-rdna2 | products
gfx1100 | AMD Radeon RX 7900 XTX (gfx1100)  | 24GiB  | 65536 | amd-rdna3
gfx90a | AMD Instinct MI250X (gfx90a)       | 64GiB  | 65536 | amd-cdna2
radv_navi21 | AMD Radeon RX 6800 (RADV NAVI21) | 16GiB | 65536 | amd-rdna2 | products
radv_gfx1100 | AMD Radeon RX 7900 XTX (RADV GFX1100) | 24GiB | 65536 | amd-rdna3
dg2    | Intel(R) Arc(TM) A770 Graphics     | 16GiB  | 65536 | intel-dg2 | products
bmg    | Intel(R) Arc(TM) B580 Graphics     | 12GiB  | 65536 | intel-battlemage
'
for target in "${wanted[@]}"; do
    grep -q "^$target " <<<"$targets" ||
        die "no target '$target'; there are $(awk 'NF { print $1 }' <<<"$targets" | uniq | paste -sd' ')"
done

kept=$build/static
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$kept"
# shellcheck source-path=SCRIPTDIR source=static/compilers.sh
. "$root/ci/static/compilers.sh"
# shellcheck source-path=SCRIPTDIR source=static/kernels.sh
. "$root/ci/static/kernels.sh"

# What is known to spill, and how much at most: shown in the table, and no failure. None of it
# follows from a setting of a profile. NVIDIA's numbers are bytes of a lane, stack, stores and loads
# added up; AMD's are registers.
#
# standing_worlds_step: a lane steps a whole robot, whose bodies and legs are more numbers than the
# 255 registers of a lane. It has no tile that could be smaller. A step of PPO or of a program's
# environment pays some 90 words of memory for it; rollouts, which have the same equations in a loop
# of their own, do not spill.
#
# Hopper's tiles of 128x256 and 256x128: two warpgroups hold 128 sums in each lane, and with a ninth
# warp that copies a unit has 168 registers for one. What does not fit are words that no loop uses.
# Tiles of half the size do not spill, and copy more for each product: runtime/ops/conv/wgmma.c has
# what steps of either took. What the words cost by themselves was not measured.
#
# Those with weights or images in registers hold these beside the sums; it is what they are for.
# Tiles of 256 pixels that load 64 channels ahead spill most, and are quicker than with 32, which do
# not spill: 16x16x128 forward 177 us and 185, 8x8x640 476 and 494 (Vulkan, 2026-11-18).
declare -A spill_known=(
    [sm_80:standing_worlds_step]=348
    [sm_86:standing_worlds_step]=348
    [sm_89:standing_worlds_step]=348
    [sm_90:standing_worlds_step]=348
    [sm_90:conv_wgmma_16]=424
    [sm_90:mlp_pass_wgmma]=560
    [sm_90:conv_wgmma_x_registers_16]=888
    [sm_90:conv_wgmma_w_registers_16]=96
    [sm_90:conv_wgmma_weight_16f32]=84
    [gfx1030:standing_worlds_step]=126
    [gfx1100:standing_worlds_step]=126
    [gfx90a:standing_worlds_step]=12
    [radv_gfx1100:standing_worlds_step]=122
)

comma=
: >"$tmp/rows"
: >"$tmp/jobs"
failed=0
checked=0

# compiler_of TARGET: what must be the same for a result to be the same. Intel's compiler lies in
# libraries that nothing here names: the name of this run's folder stands for it, which no other run
# has.
compiler_of() {
    case $1 in
    sm_* | gfx*) "$clang" --version && cat "$clc"/{nvptx64--nvidiacl,amdgcn--amdhsa}.bc ;;
    radv_*)
        cat "$radv" "$(sed -n 's/.*"library_path": *"\([^"]*\)".*/\1/p' "$radv")" 2>/dev/null || echo "$tmp"
        cat "$root/tests/static/kernel_stats.c"
        ;;
    *) echo "$tmp" ;;
    esac
    case $1 in sm_*) "$ptxas" --version ;; esac
    declare -f stand_in occupancy clang_cl compile compile_radv radv_numbers radv_stats
    echo "${common[*]}"
}

# hash: of what comes in.
hash() { sha256sum | cut -c1-64; }

declare -A begun=() compiler=()
running=0

# begin TARGET KERNEL DEFINE...: compiles in the background unless the result is there; its name in
# job.
begin() {
    local target=$1 kernel=$2 as source
    shift 2
    as=$(stand_in "$target")
    source=$build/kernels/$kernel.$([[ $target = radv_* ]] && echo spv.h || echo cl)
    [ -f "$source" ] || die "no $source"
    [ -n "${compiler[$as]:-}" ] || compiler[$as]=$(compiler_of "$as" | hash)
    job=$({ echo "$as ${compiler[$as]} $strict $kernel $*" && cat "$source"; } | hash)
    [ -z "${begun[$job]:-}" ] || return 0
    begun[$job]=1
    [ ! -s "$kept/$job" ] || return 0
    case $target in
    radv_*)
        batch+=("$job $kernel $*")
        [ "${#batch[@]}" -lt 16 ] || begin_batch "$target"
        ;;
    *) start compile_one "$target" "$source" "$@" ;;
    esac
}

# begin_batch TARGET: what waits for Mesa's driver, in one process, for opening it takes longer than
# most of its kernels.
batch=()
begin_batch() {
    [ "${#batch[@]}" -gt 0 ] || return 0
    start compile_radv "$1" "${batch[@]}"
    batch=()
}

# start COMMAND...: in the background, when a core is free.
start() {
    if [ "$running" -ge "$CMAKE_BUILD_PARALLEL_LEVEL" ]; then
        wait -n || true  # what failed has left no result
        running=$((running - 1))
    fi
    running=$((running + 1))
    (
        trap - EXIT
        "$@"
    ) &
}

# keep JOB: the result that comes in.
keep() { cat >"$tmp/$1.result" && mv "$tmp/$1.result" "$kept/$1"; }

compile_one() {
    local text
    text=$(compile "$1" "$2" "$tmp/$job" "${@:3}") && keep "$job" <<<"$text"
}

# json_row TARGET DEVICE CHECK [KERNEL MODE SETTING REGISTERS SHARED SPILLS OCCUPANCY INSTRUCTIONS]
json_row() {
    [ -n "$json" ] || return 0
    printf '%s\n{"target":"%s","device":"%s"' "$comma" "$1" "$2"
    [ $# -lt 4 ] || printf ',"kernel":"%s","mode":"%s","setting":"%s"' "$4" "$5" "$6"
    [ "${7:-0}" = 0 ] || printf ',"registers":%s,"shared_bytes":%s' "$7" "$8"
    [ $# -lt 9 ] || printf ',"spilled":%s' "$9"
    [ "${10:--}" = - ] || printf ',"occupancy":%s' "${10}"
    [ "${11:--}" = - ] || printf ',"instructions":%s' "${11}"
    printf ',"check":"%s"}' "$3"
    comma=,
}

# check_kernel SHARED LABEL KERNEL MODE DEFINE...: one more for the device that check() is at.
check_kernel() {
    local shared=$1 label=$2 kernel=$3 mode=$4 job
    shift 4
    begin "$target" "$kernel" "$@"
    printf '%s\n' "$target|$device|$shared|$label|$kernel|$mode|$job" >>"$tmp/jobs"
    count=$((count + 1))
}

# judge TARGET DEVICE SHARED LABEL KERNEL MODE JOB: a result; counts into count, bad, most_r,
# most_m.
judge() {
    local target=$1 device=$2 shared=$3 label=$4 kernel=$5 mode=$6 result=$kept/$7 log=$tmp/$7.log
    local r m s occupied instructions check=ok
    count=$((count + 1))
    if [ ! -s "$result" ]; then
        say "$target, $label: $kernel ($mode) does not compile: $(
            grep -m1 -E 'error|fatal' "$log" || tail -n1 "$log")"
        bad=$((bad + 1))
        json_row "$target" "$device" "does not compile" "$kernel" "$mode" "$label" >>"$tmp/rows"
        return
    fi
    read -r r m s occupied instructions <"$result"
    [ "$list" -eq 0 ] ||
        printf '%-8s %-38s %-20s %-9s %4d registers %6d B shared %4d spilled\n' \
            "$target" "$label" "$kernel" "$mode" "$r" "$m" "$s"
    if [ "$s" -gt 0 ] || [ "$m" -gt "$shared" ]; then
        check="spills"
        [ "$s" -gt 0 ] || check="too much shared memory"
        local most=${spill_known["$target:$kernel"]:-0}
        if [ "$m" -le "$shared" ] && [ "$s" -le "$most" ]; then
            check="spills, known"
        else
            say "$target, $label: $kernel ($mode) spills $s$([ "$most" -eq 0 ] || echo ", known are $most"), shared memory $m of $shared"
            bad=$((bad + 1))
        fi
    fi
    json_row "$target" "$device" "$check" "$kernel" "$mode" "$label" "$r" "$m" "$s" "$occupied" "$instructions" \
        >>"$tmp/rows"
    [ "$r" -le "$most_r" ] || most_r=$r
    [ "$m" -le "$most_m" ] || most_m=$m
}

# judge_device TARGET DEVICE: every result of it, and the line that sums them up.
judge_device() {
    local target=$1 device=$2 count=0 bad=0 most_r=0 most_m=0 row as
    while IFS='|' read -ra row; do
        [ "${row[0]}" != "$target" ] || [ "${row[1]}" != "$device" ] || judge "${row[@]}"
    done <"$tmp/jobs"
    # Intel's compiler tells of spills alone.
    local most=", at most $most_r registers, $most_m B shared"
    [ "$most_r" -gt 0 ] || most=
    as=$(stand_in "$target")
    printf '%-8s %-36s %3d kernels%s, %d bad\n' "$target" \
        "$device$([ "$as" = "$target" ] || echo ", as $as")" "$count" "$most" "$bad"
    failed=$((failed + bad))
    checked=$((checked + count))
}

# check TARGET DEVICE MEMORY SHARED PROFILE EVERY: with EVERY 1 the kernels without settings too.
check() {
    local target=$1 device=$2 memory=$3 shared=$4 profile=$5 every=$6 count=0
    XDG_CONFIG_HOME=/nonexistent "$build/gpurt" profile --as "$device" --memory "$memory" --format csv \
        >"$tmp/settings"
    # A misspelt condition would leave the checked device without its own settings.
    [ -n "${GPURT_PROFILE:-}" ] || grep -q ",$profile:[0-9]" "$tmp/settings" ||
        die "$target: $device with $memory does not get the profile $profile"
    local setting numbers names wg kernel mode defines i constants
    while IFS=, read -r setting numbers names wg _; do
        case $setting in gemm.tiled* | gemm.plain) ;; *) continue ;; esac
        defines="-DWG=${wg}u"
        read -ra numbers_ <<<"$numbers"
        read -ra names_ <<<"$names"
        for i in "${!numbers_[@]}"; do
            [ "${names_[i]}" = WG ] || defines="$defines -D${names_[i]}=${numbers_[i]}u"
        done
        while read -r kernel mode; do
            # shellcheck disable=SC2046,SC2086  # lists of options
            check_kernel "$shared" "$setting = $numbers" "$kernel" "$mode" $defines \
                $(mode_defines "$mode")
        done < <(kernels_of "$setting")
    done <"$tmp/settings"
    [ "$count" -gt 0 ] || die "$target: gpurt names no settings for $device"
    while read -r kernel wg constants; do
        defines="-DWG=${wg}u"
        for i in $constants; do defines="$defines -D${i}u"; done
        for mode in nn tn bwd; do
            local room=$shared
            # What Vulkan imports has what Vulkan has.
            case $kernel in
            *lean* | *held*) room=49152 ;;
            *wgmma*) room=232448 ;;
            esac
            # shellcheck disable=SC2046,SC2086  # lists of options
            check_kernel "$room" "$constants" "$kernel" "$mode" \
                $(mode_defines "$mode" | sed 's/-DVEC=[0-9]u//') $defines
        done
    done < <(matrix_kernels "$target")
    while read -r kernel mode constants; do
        defines=
        for i in $constants; do defines="$defines -D${i}u"; done
        local room=232448
        case $mode in *48k) room=49152 ;; esac
        # shellcheck disable=SC2086  # a list of options
        check_kernel "$room" "$constants" "$kernel" "$mode" $defines
    done < <(conv_kernels "$target" && mlp_kernels "$target")
    while read -r kernel mode constants; do
        defines=
        for i in $constants; do defines="$defines -D${i}u"; done
        # shellcheck disable=SC2086  # a list of options
        check_kernel "$shared" "$constants" "$kernel" "$mode" $defines
    done < <(rollout_kernels "$target" "$(setting_of rollout.wg)")
    strict=0
    while [ "$every" -eq 1 ] && read -r kernel constants; do
        setting=
        wg=$(lanes_of "$kernel")
        if [ "$wg" = stream ]; then
            wg=$(setting_of stream.wg)
            setting="stream.wg = $wg"
        fi
        defines=
        for i in $constants; do
            case $i in WG=*) i=WG=${wg:-${i#WG=}} ;; esac
            defines="$defines -D${i}u"
        done
        # shellcheck disable=SC2086  # a list of options
        check_kernel "$shared" "$setting" "$kernel" "default" $defines
    done < <(other_kernels "$target")
    strict=1
    begin_batch "$target"
}

devices=()
while IFS='|' read -r target name memory shared profile short; do
    target=${target// /}
    name=$(sed 's/^ *//; s/ *$//' <<<"$name")
    [ -n "$target" ] || continue
    short=${short// /}
    if [ "${#wanted[@]}" -gt 0 ]; then
        [[ " ${wanted[*]} " = *" $target "* ]] || continue
    elif [ "$whole" -eq 0 ] && [ -z "$short" ]; then
        continue
    fi
    every=0
    if [ "$whole" -eq 1 ] || [ "$short" = every ]; then every=1; fi
    lacks=$(missing "$target" | sort -u | paste -sd, | sed 's/,/, /g')
    if [ -n "$lacks" ]; then
        devices+=("$target|$name|$lacks")
        continue
    fi
    devices+=("$target|$name|")
    check "$target" "$name" "${memory// /}" "${shared// /}" "${profile// /}" "$every"
done <<<"$targets"
wait
for row in "${devices[@]}"; do
    IFS='|' read -r target name lacks <<<"$row"
    if [ -n "$lacks" ]; then
        printf '%-8s %-36s skipped: %s not installed\n' "$target" "$name" "$lacks"
        json_row "$target" "$name" "$lacks not installed" >>"$tmp/rows"
    else
        judge_device "$target" "$name"
    fi
done
if [ -n "$json" ]; then
    printf '{"schema":"gpurt.static/1","nature":"static","command":["ci/static_check.sh"],"date":"%s","rows":[%s\n]}\n' \
        "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(cat "$tmp/rows")" >"$json"
fi
[ "$failed" -eq 0 ] || die "$failed of $checked kernels spill, need too much or do not compile"
if [ "$checked" -eq 0 ]; then
    { [ -n "$clang" ] && [ -d "$clc" ]; } || lane_lacks "clang 15 or newer with its libclc" clang-15 libclc-15
    say "skipped: nothing was compiled, see above what is not installed"
    exit "$lane_skipped"
fi
say "$checked kernels compiled, none spills but what is known to"
