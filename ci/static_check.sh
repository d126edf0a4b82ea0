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

clang=$(tool_clang)
clc=/usr/lib/clc
radv=/usr/share/vulkan/icd.d/radeon_icd.$(uname -m).json
stats=$build/tests/kernel_stats
kept=$build/static
ptxas=$(command -v ptxas || command -v /usr/local/cuda/bin/ptxas || true)
ocloc=$(command -v ocloc || true)

# stand_in TARGET: what is compiled for it. clang 15 gives gfx11 chips 128 of their 256 registers,
# so that nearly every tile spills there; gfx1030 has as many as they have.
version=$([ -z "$clang" ] || clang_version "$clang")
stand_in() {
    case $1 in
    gfx11*) [ "${version:-0}" -ge 16 ] && echo "$1" || echo gfx1030 ;;
    *) echo "$1" ;;
    esac
}

# As backends/opencl/kernel.c gives them to a GPU's driver.
common=(-cl-std=CL1.2 -DGRT_FMA=fma -DGRT_NATIVE=1 -Dasm=__asm__
    '-DGRT_BUFFER(x)=x,' '-DGRT_WHOLE(x)=(global char *)x +' '-DGRT_ASK(x)=')

# missing TARGET: what is not installed, nothing when all is there.
missing() {
    case $1 in
    sm_*)
        [ -n "$ptxas" ] || echo "ptxas (CUDA toolkit)"
        [ -f "$clc/nvptx64--nvidiacl.bc" ] || echo "libclc"
        ;;
    gfx*) [ -f "$clc/amdgcn--amdhsa.bc" ] || echo "libclc" ;;
    radv_*)
        if [ ! -x "$stats" ] || [ ! -f "$radv" ]; then
            echo "radv (mesa-vulkan-drivers)"
        elif ! radv_stats "$1" </dev/null >/dev/null 2>&1; then
            echo "a radv that compiles for ${1#radv_}"
        fi
        ;;
    *)
        if [ -z "$ocloc" ]; then
            echo "ocloc (intel-opencl-icd)"
        elif ! "$ocloc" compile --help 2>&1 | grep -qw -- "$1"; then
            echo "an ocloc that knows $1"
        fi
        ;;
    esac
    case $1 in sm_* | gfx*) [ -n "$clang" ] || echo "clang" ;; esac
}

# radv_stats TARGET < JOBS: see tests/static/kernel_stats.c.
radv_stats() (
    ulimit -S -t "$radv_seconds"
    RADV_FORCE_FAMILY=${1#radv_} VK_ICD_FILENAMES=$radv VK_DRIVER_FILES=$radv MESA_SHADER_CACHE_DISABLE=true \
        timeout $((20 * radv_seconds)) "$stats" vulkan
)
# Of a CPU: a kernel that takes longer to compile is a fault of its own. A step of the robot takes
# 44.
radv_seconds=120

# why_ended STATUS SECONDS: in words, of a command whose time was limited.
why_ended() {
    case $1 in
    124 | 152) echo "more than $2 s" ;;  # 152: SIGXCPU
    1[3-9][0-9]) echo "crashed by signal $(kill -l "$1")" ;;
    *) echo "ended with exit code $1" ;;
    esac
}

# occupancy TARGET REGISTERS SHARED WORKGROUP: the share of a unit's warps that can run at once.
occupancy() {
    awk -v target="$1" -v r="$2" -v m="$3" -v wg="$4" 'BEGIN {
        most = target ~ /sm_8[69]/ ? 48 : 64
        room = target ~ /sm_90/ ? 233472 : target ~ /sm_80/ ? 167936 : 102400
        warps = int((wg + 31) / 32)
        one = int((r * 32 + 255) / 256) * 256
        groups = int(most / warps)
        if (one > 0 && int(65536 / (one * warps)) < groups) groups = int(65536 / (one * warps))
        if (int(room / (m + 1024)) < groups) groups = int(room / (m + 1024))
        printf "%.3f", groups * warps / most
    }'
}

# clang_cl TRIPLE LIBRARY OUTPUT SOURCE OPTION...
clang_cl() {
    local triple=$1 library=$2 output=$3 source=$4
    shift 4
    "$clang" --target="$triple" -x cl "${common[@]}" -O3 -nogpulib -Xclang -finclude-default-header \
        -Xclang -mlink-builtin-bitcode -Xclang "$clc/$library" -Wno-linker-warnings "$@" \
        -o "$output" "$source"
}

# 1: arrays of a lane that lie in memory count as spilled. Products and rollouts have none; others
# may. On AMD what has no scalar register lies in a vector register's lanes, not in memory: only
# those count.
strict=1

# compile TARGET SOURCE OUT DEFINE...: prints "registers shared spills occupancy instructions",
# spills being bytes or counts, and - what a compiler does not say.
compile() {
    local target source=$2 out=$3 text
    target=$(stand_in "$1")
    shift 3
    case $target in
    sm_*)
        # One text for all chips: clang takes longer than ptxas.
        text=$tmp/$(sha256sum <<<"$source $*" | cut -c1-64).ptx
        if [ ! -f "$text" ]; then
            clang_cl nvptx64-nvidia-nvcl nvptx64--nvidiacl.bc "$out.text" "$source" -S "$@" \
                -Xclang -target-cpu -Xclang sm_80 -Xclang -target-feature -Xclang +ptx75 \
                2>"$out.log" || return 1
            mv "$out.text" "$text"  # two chips may make it at a time
        fi
        cp "$text" "$out.ptx"
        # clang 15 does not know newer chips by name; the text of a program for sm_80 serves all.
        # What Hopper alone has wants another head, as the OpenCL backend makes it.
        # It writes the oldest version that knows what it made itself, not what stands in asm.
        if grep -q 'ptx_target sm_90a' "$source"; then
            target=sm_90a
            sed -i 's/^\.version.*/.version 8.3/; s/^\.target.*/.target sm_90a/' "$out.ptx"
        elif grep -q movmatrix "$out.ptx"; then
            sed -i 's/^\.version.*/.version 7.8/' "$out.ptx"
        fi
        # Nor does it tell how large the workgroup is, as NVIDIA's does: without that registers
        # cannot go from warp to warp, and 288 lanes get more of them than a unit has.
        if [ "$target" = sm_90a ]; then
            local wg
            wg=$(sed -n 's/.*-DWG=\([0-9]*\)u.*/\1/p' <<<"$*")
            sed -i "s/^)\$/)\n.reqntid $wg, 1, 1/" "$out.ptx"
        fi
        "$ptxas" -v -arch="$target" "$out.ptx" -o "$out.cubin" 2>"$out.log" || return 1
        local wg size
        wg=$(sed -n 's/.*-DWG=\([0-9]*\)u.*/\1/p' <<<"$*")
        # An instruction has 16 bytes.
        size=$(readelf -SW "$out.cubin" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] *//' |
            awk '$1 ~ /^\.text/ { print $5 }')
        awk -v strict="$strict" '/spill stores/ { for (i = 1; i < NF; i++)
                 if ($i == "bytes" && ($(i + 1) ~ /^spill/ || (strict && $(i + 1) ~ /^stack/))) s += $(i - 1) }
             /Used [0-9]+ registers/ { for (i = 1; i < NF; i++) { if ($i == "Used") r = $(i + 1)
                                                                   if ($(i + 1) ~ /^smem/ ) m = $(i - 1) } }
             END { print r + 0, m + 0, s + 0 }' "$out.log" >"$out.numbers"
        read -r r m s <"$out.numbers"
        echo "$r $m $s $(occupancy "$target" "$r" "$m" "${wg:-64}") $((16#${size:-0} / 16))"
        ;;
    gfx*)
        clang_cl amdgcn-amd-amdhsa amdgcn--amdhsa.bc "$out.o" "$source" -c -mcpu="$target" "$@" \
            -Rpass-analysis=kernel-resource-usage 2>"$out.log" || return 1
        awk -v strict="$strict" -v most="$(case $target in gfx9*) echo 8 ;; *) echo 16 ;; esac)" '/remark: / && / VGPRs: / { sub(/.* VGPRs: /, ""); r = $1 }
             /remark: / && /VGPRs Spill: / { sub(/.*Spill: /, ""); s += $1 }
             strict && /remark: / && /ScratchSize/ { sub(/.*: /, ""); s += $1 }
             /remark: / && /LDS Size/ { sub(/.*\]: /, ""); m = $1 }
             /remark: / && /Occupancy/ { sub(/.*\]: /, ""); o = $1 }
             END { print r + 0, m + 0, s + 0, o / most, "-" }' \
            <(sed 's/ \[-Rpass.*//' "$out.log")
        ;;
    *)
        "$ocloc" compile -q -file "$source" -device "$target" -out_dir "$out.d" \
            -options "${common[*]} -Dcl_intel_subgroup_matrix_multiply_accumulate $*" \
            >"$out.log" 2>&1 || return 1
        awk '/spill/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+$/) n = $i; s += n }
             END { print 0, 0, s + 0, "-", "-" }' "$out.log"
        ;;
    esac
}

# compile_radv TARGET KERNEL OUT DEFINE...: the same by Mesa. It places arrays of a lane in scratch
# memory, which is no spill.
compile_radv() {
    local target=$1 kernel=$2 out=$3
    shift 3
    local status=0
    printf '%s %s\n' "$kernel" "$(sed 's/-D//g; s/u\b//g' <<<"$*")" | radv_stats "$target" >"$out.stats" 2>"$out.log" ||
        status=$?
    if [ "$status" -ne 0 ]; then
        echo "error: $(why_ended "$status" "$radv_seconds")" >"$out.log"
        return 1
    fi
    if grep -q 'error=' "$out.stats"; then
        sed 's/.*error=/error: /' "$out.stats" >"$out.log"
        return 1
    fi
    awk -F'[\t;]' '{ for (i = 2; i <= NF; i++) { split($i, w, "="); n[w[1]] = w[2] } }
        END { print n["VGPRs"] + 0, n["LDS size"] + 0, n["Spilled VGPRs"] + 0,
                    n["Subgroups per SIMD"] / 32, n["Instructions"] + 0 }' "$out.stats"
}

# How a product can be asked for: the ways its operands lie, in whole vectors or not, and what
# follows it in a forward pass (bias, gelu, the skip connection) and a backward one (the sum of
# before, the derivative of gelu).
mode_defines() {
    local a=0 b=0 forward=0 backward=0 vec=1
    case $1 in nt) b=1 ;; tn) a=1 ;; fwd) forward=1 ;; bwd) backward=1 ;; unaligned) vec=0 ;; esac
    echo "-DA_T=${a}u -DB_T=${b}u -DKIND=0u -DBETA=${backward}u -DBIAS=${forward}u" \
        "-DACT=$((forward * 2))u -DADD=${forward}u -DGRAD=$((backward * 2))u -DVEC=${vec}u"
}

# kernels_of SETTING: "kernel mode" lines, for gemm.VARIANT[.CLASS], a variant's name ending in 16
# for the types of that size.
kernels_of() {
    local variant=${1#gemm.} mode
    variant=${variant%%.*}
    if [ "$variant" = "${variant%16}" ]; then
        for mode in nn nt tn fwd bwd unaligned; do echo "gemm_${variant}_f32 $mode"; done
    else
        for mode in nn fwd bwd; do echo "gemm_${variant%16}_16 $mode"; done
        echo "gemm_${variant%16}_16f32 nn"
    fi
}

# Kernels of matrix units and the tiles that runtime/ops/gemm gives them: "kernel lanes constants".
# Those of mma.sync have 48 KiB of shared memory everywhere; wgmma's are Hopper's alone.
matrix_kernels() {
    case $1 in
    sm_*)
        echo "gemm_mma_16 128 BM=128 BN=128 BK=32 WM=64 WN=64 STAGES=3 VEC=63 HALF_SUMS=0 SPLIT=0"
        echo "gemm_mma_16 128 BM=128 BN=128 BK=32 WM=64 WN=64 STAGES=3 VEC=63 HALF_SUMS=1 SPLIT=0"
        echo "gemm_mma_16f32 128 BM=64 BN=64 BK=32 WM=32 WN=32 STAGES=3 VEC=63 HALF_SUMS=0 SPLIT=1"
        echo "gemm_mma_16 128 BM=64 BN=64 BK=32 WM=32 WN=32 STAGES=3 VEC=0 HALF_SUMS=0 SPLIT=1"
        echo "gemm_split_mma_f32 128 BM=128 BN=64 BK=16 WM=64 WN=32 VEC=63"
        echo "gemm_split_mma_f32 128 BM=64 BN=64 BK=16 WM=32 WN=32 VEC=63"
        ;;
    esac
    case $1 in
    sm_90)
        echo "gemm_split_wgmma_f32 256 BM=128 BN=128 BK=32 VEC=63 SPLIT=0"
        echo "gemm_split_wgmma_f32 128 BM=64 BN=128 BK=16 VEC=63 SPLIT=1"
        echo "gemm_split_wgmma_f32 128 BM=64 BN=64 BK=32 VEC=63 SPLIT=1"
        echo "gemm_wgmma_16 288 BM=128 BN=128 STAGES=4 VEC=63 SPLIT=0"
        echo "gemm_wgmma_16 288 BM=128 BN=256 STAGES=4 VEC=63 SPLIT=1"
        echo "gemm_wgmma_16 160 BM=64 BN=64 STAGES=4 VEC=63 SPLIT=1"
        echo "gemm_wgmma_48k_16 384 BN=256 STAGES=5 AHEAD=3 OUT=512 VEC=63 SPLIT=0"
        # With BN=256 some words of it spill, which no loop uses: 9600x512x2304 takes 66 us with k
        # cut, 79 without.
        echo "gemm_wgmma_48k_16 384 BN=128 STAGES=10 AHEAD=3 OUT=512 VEC=63 SPLIT=1"
        echo "gemm_wgmma_48k_16f32 384 BN=128 STAGES=10 AHEAD=3 OUT=512 VEC=63 SPLIT=1"
        echo "gemm_wgmma_b_registers_16 256 BN=256 KS=16 STAGES=5 HOLD=2 VEC=63 KEEP=1"
        echo "gemm_wgmma_b_registers_16f32 256 BN=128 KS=8 STAGES=2 HOLD=2 VEC=63 KEEP=0"
        echo "gemm_wgmma_b_shared_16 288 BN=256 STEPS=4 STAGES=8 PANELS=1 VEC=63 KEEP=1"
        echo "gemm_wgmma_b_shared_16f32 416 BN=128 STEPS=2 STAGES=16 PANELS=1 VEC=63 KEEP=0"
        ;;
    dg2) echo "gemm_xmx8_16 64 BM=128 BN=32" && echo "gemm_xmx8_16f32 64 BM=128 BN=32" ;;
    pvc | bmg) echo "gemm_xmx16_16 128 BM=128 BN=64" && echo "gemm_xmx16_16f32 128 BM=128 BN=64" ;;
    esac
}

# Convolutions on Hopper's matrix units with the tiles that runtime/ops/conv gives them: "kernel
# mode constants". What Vulkan imports has 48 KiB.
conv_kernels() {
    [ "$1" = sm_90 ] || return 0
    local pass same="KIND=0 BIAS=0" row
    for pass in "forward BACK=0 BETA=0" "back BACK=1 BETA=1"; do
        for row in "WG=288 BM=128 BN=256 STAGES=4 SPLIT=1" "WG=288 BM=256 BN=128 STAGES=4 SPLIT=0" \
            "WG=288 BM=128 BN=160 STAGES=5 SPLIT=0" "WG=288 BM=128 BN=64 STAGES=3 SPLIT=1"; do
            echo "conv_wgmma_16 $pass $same DEPTH=64 LEAN=0 $row"
        done
        echo "conv_wgmma_16 ${pass%% *}-48k ${pass#* } $same DEPTH=32 LEAN=1 WG=288 BM=128 BN=128 STAGES=2 SPLIT=1"
        for row in "BN=256 STAGES=5 SPLIT=0" "BN=256 STAGES=5 SPLIT=1" "BN=160 STAGES=7 SPLIT=0" \
            "BN=64 STAGES=20 SPLIT=1"; do
            echo "conv_wgmma_x_registers_16 ${pass%% *}-48k ${pass#* } $same WG=384 $row"
        done
    done
    for row in "BACK=0 CHUNKS=1 WIDE=8" "BACK=1 CHUNKS=2 WIDE=4"; do
        echo "conv_wgmma_w_registers_16 weights-held WG=256 $same DOWN=16 STAGES=2 $row"
        echo "conv_wgmma_w_registers_16 weights-held-48k WG=256 $same DOWN=16 STAGES=1 $row"
    done
    echo "conv_wgmma_columns_16f32 weights WG=512 KIND=0 WIDE=8 DOWN=8 STAGES=3"
    echo "conv_wgmma_columns_16f32 weights-48k WG=512 KIND=0 WIDE=8 DOWN=4 STAGES=2"
    same="KIND=0 BETA=0 SPLIT=1 SINGLE=0"
    for row in "WG=288 BM=128 BN=256 STAGES=4" "WG=160 BM=64 BN=256 STAGES=4"; do
        echo "conv_wgmma_weight_16f32 weights $same DEPTH=64 LEAN=0 $row"
    done
    for row in "WG=288 BM=128 BN=128 STAGES=2 DEPTH=32" "WG=160 BM=64 BN=256 STAGES=4 DEPTH=16"; do
        echo "conv_wgmma_weight_16f32 weights-48k $same LEAN=1 $row"
    done
}

# Rollouts of the robot, linear policy and 256 hidden units, all held in shared memory or as many as
# 32 KiB hold, with observations normed. NVIDIA's compilers are the ones that once moved a thousand
# bytes a lane out of the step loop.
rollout_kernels() {  # TARGET WORKGROUP
    local same="WG=$2 TANH=0 NORM=1 SHIFT=4 RESTART=1"
    case $1 in
    sm_*)
        echo "standing_rollout linear POLICY=1 QUADS=62 HIDDEN=0 HELD=0 BIAS=0 $same"
        echo "standing_rollout mlp256 POLICY=2 QUADS=2498 HIDDEN=256 HELD=256 BIAS=0 $same"
        echo "standing_rollout held208 POLICY=2 QUADS=2030 HIDDEN=256 HELD=208 BIAS=0 $same"
        ;;
    esac
}

# other_kernels TARGET: "kernel constants" of every kernel that the target's driver would get and
# that has no settings of a profile above. Those of cl/cpu, and products by lanes, are for CPUs.
other_kernels() {
    local reading=opencl vendor=none cpu
    case $1 in
    sm_*) vendor=NVIDIA ;;
    dg2 | bmg) vendor=Intel ;;
    radv_*) reading=vulkan ;;
    esac
    cpu=" $(cd "$root/cl/cpu" && echo *.k) "
    "$stats" list | awk -F'\t' -v reading="$reading" -v vendor="$vendor" -v cpu="$cpu" '
        $1 ~ /^gemm_/ || $1 ~ /_(rollout|rollout_wide|probe)$/ || index(cpu, " " $1 ".k ") { next }
        # Hopper alone has wgmma, and its tiles are above; cooperative matrices want a newer Mesa.
        $1 ~ /wgmma/ || $1 ~ /coop|chain/ { next }
        # The fused network without matrix units is for CPUs.
        $1 ~ /^mlp_(pass|grads)_f32$/ { next }
        index($2, reading) && ($3 == "-" || $3 == vendor) { print $1, $4 }'
}

# lanes_of KERNEL: "stream" where the profile says how many (grt_op_stream()), 256 for sums in a
# tree (grt_op_tree_wg()), nothing where the number that stands in the kernel serves.
lanes_of() {
    case $1 in
    fill | fill16 | copy* | widen | narrow | recode | map | random | dropout_* | add_to_* | geglu_* | pool_* | columns_* | \
        image_draw* | image_take_* | image_mix_* | conv_sum) echo stream ;;
    reduce | argmax | colsum* | mlp_reduce | batch_stats | image_view_* | image_blur_* | ppo_moments | tally | loss_* | draw)
        echo 256
        ;;
    esac
}

# setting_of KEY: its number for the device whose settings were asked for last.
setting_of() { awk -F, -v key="$1" '$1 == key { print $2 }' "$tmp/settings"; }

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
declare -A spill_known=(
    [sm_80:standing_worlds_step]=348
    [sm_86:standing_worlds_step]=348
    [sm_89:standing_worlds_step]=348
    [sm_90:standing_worlds_step]=348
    [sm_90:gemm_wgmma_16]=916
    [sm_90:conv_wgmma_16]=424
    [sm_90:conv_wgmma_x_registers_16]=216
    [sm_90:conv_wgmma_w_registers_16]=96
    [sm_90:conv_wgmma_weight_16f32]=84
    [gfx1030:standing_worlds_step]=126
    [gfx1100:standing_worlds_step]=126
    [gfx90a:standing_worlds_step]=12
    [radv_gfx1100:standing_worlds_step]=122
)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$kept"
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
    declare -f stand_in occupancy clang_cl compile compile_radv radv_stats
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
    if [ "$running" -ge "$CMAKE_BUILD_PARALLEL_LEVEL" ]; then
        wait -n || true  # what failed has left no result
        running=$((running - 1))
    fi
    running=$((running + 1))
    (
        trap - EXIT
        case $target in
        radv_*) compile_radv "$target" "$kernel" "$tmp/$job" "$@" ;;
        *) compile "$target" "$source" "$tmp/$job" "$@" ;;
        esac >"$tmp/$job.result" && mv "$tmp/$job.result" "$kept/$job"
    ) &
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
    done < <(conv_kernels "$target")
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
