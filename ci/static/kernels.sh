# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # what ci/static_check.sh sets
#
# For ci/static_check.sh: which kernels, with which constants, a device of a target gets. Wants
# $build and $tmp.

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
        echo "gemm_mma_16 128 BM=64 BN=64 BK=64 WM=32 WN=32 STAGES=3 VEC=63 HALF_SUMS=0 SPLIT=1"
        # With k cut some words of it spill, which no loop uses: 24x192x55168 takes 8.3 us, by a
        # tile of 64 x 64 10.3.
        echo "gemm_mma_16 128 BM=32 BN=64 BK=64 WM=32 WN=16 STAGES=4 VEC=63 HALF_SUMS=0 SPLIT=0"
        echo "gemm_split_mma_f32 128 BM=128 BN=64 BK=16 WM=64 WN=32 VEC=63"
        echo "gemm_split_mma_f32 128 BM=64 BN=64 BK=16 WM=32 WN=32 VEC=63"
        ;;
    esac
    case $1 in
    sm_90)
        echo "gemm_split_wgmma_f32 256 BM=128 BN=128 BK=32 VEC=63 SPLIT=0 AHEAD=1"
        echo "gemm_split_wgmma_f32 128 BM=64 BN=128 BK=16 VEC=63 SPLIT=1 AHEAD=1"
        echo "gemm_split_wgmma_f32 128 BM=64 BN=64 BK=32 VEC=63 SPLIT=1 AHEAD=2"
        echo "gemm_split_wgmma_f32 128 BM=64 BN=32 BK=32 VEC=63 SPLIT=1 AHEAD=2"
        echo "gemm_split_wgmma_f32 128 BM=64 BN=64 BK=32 VEC=63 SPLIT=0 AHEAD=0"
        echo "gemm_wgmma_16 288 BM=128 BN=128 STAGES=4 VEC=63 SPLIT=0"
        echo "gemm_wgmma_16 384 BM=128 BN=256 STAGES=4 VEC=63 SPLIT=1"
        echo "gemm_wgmma_16 384 BM=128 BN=192 STAGES=4 VEC=63 SPLIT=1"
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
        for row in "BM=128 BN=256 STAGES=5 AHEAD=3 SPLIT=0" "BM=128 BN=256 STAGES=5 AHEAD=3 SPLIT=1" \
            "BM=256 BN=160 STAGES=7 AHEAD=1 SPLIT=0" "BM=256 BN=128 STAGES=10 AHEAD=2 SPLIT=1" \
            "BM=256 BN=64 STAGES=20 AHEAD=2 SPLIT=1"; do
            echo "conv_wgmma_x_registers_16 ${pass%% *}-48k ${pass#* } $same WG=384 $row"
        done
    done
    for row in "BACK=0 CHUNKS=1 WIDE=8" "BACK=1 CHUNKS=2 WIDE=4"; do
        row="$row HIGH=3 BROAD=3"
        echo "conv_wgmma_w_registers_16 weights-held WG=256 $same DOWN=16 STAGES=2 $row"
        echo "conv_wgmma_w_registers_16 weights-held-48k WG=256 $same DOWN=16 STAGES=1 $row"
        echo "conv_wgmma_w_registers_16 weights-held-48k WG=256 $same DOWN=12 STAGES=1 $row"
    done
    echo "conv_wgmma_w_registers_16 folded-48k WG=256 $same DOWN=16 STAGES=1 BACK=0 CHUNKS=1 WIDE=8 HIGH=4 BROAD=1"
    same="KIND=0 WIDE=8"
    echo "conv_wgmma_columns_16f32 weights WG=512 $same DOWN=8 STAGES=8 JOINED=1 HIGH=3 BROAD=3"
    echo "conv_wgmma_columns_16f32 weights-48k WG=512 $same DOWN=2 STAGES=6 JOINED=1 HIGH=3 BROAD=3"
    echo "conv_wgmma_columns_16f32 weights-48k WG=512 $same DOWN=4 STAGES=2 JOINED=0 HIGH=3 BROAD=3"
    echo "conv_wgmma_columns_16f32 folded-48k WG=384 $same DOWN=4 STAGES=4 JOINED=0 HIGH=4 BROAD=1"
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

# mlp_kernels TARGET: the same of the fused networks with wide layers, and of steps in one launch.
mlp_kernels() {
    [ "$1" = sm_90 ] || return 0
    local same="INPUTS=32 OUTPUTS=1 ACT=1 LOSS=0 KIND=0"
    echo "mlp_pass_wgmma 256-48k WG=384 $same DEPTH=6 WIDTH=256 KEEP=0 SLAB=32 STAGES=5 ORDERED=0"
    echo "mlp_pass_wgmma 256 WG=256 $same DEPTH=6 WIDTH=256 KEEP=0 SLAB=64 STAGES=12 ORDERED=0"
    # Activations by curves, which once kept ptxas busy for minutes.
    echo "mlp_pass_wgmma 256-gelu WG=256 ${same/ACT=1/ACT=2} DEPTH=6 WIDTH=256 KEEP=0 SLAB=64 STAGES=12 ORDERED=0"
    echo "mlp_pass_wgmma 256-tanh WG=384 ${same/ACT=1/ACT=3} DEPTH=6 WIDTH=256 KEEP=0 SLAB=64 STAGES=12 ORDERED=0"
    echo "mlp_pass_wgmma 512 WG=384 $same DEPTH=8 WIDTH=512 KEEP=0 SLAB=64 STAGES=5 ORDERED=0"
    echo "mlp_grads_wgmma 256-48k WG=384 $same DEPTH=6 WIDTH=256 ROWS=16 STAGES=3"
    echo "mlp_grads_wgmma 512 WG=384 $same DEPTH=8 WIDTH=512 ROWS=64 STAGES=4"
    # As many layers as are taken of each width, and those that were measured.
    local depths depth width
    for depths in "3 16" "12 16" "6 32" "6 64" "7 64"; do
        read -r depth width <<<"$depths"
        echo "mlp_step_mma $width-$depth WG=256 $same DEPTH=$depth WIDTH=$width KEEP=1 ORDERED=1"
    done
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
