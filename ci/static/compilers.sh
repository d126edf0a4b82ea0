# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # what ci/static_check.sh sets
#
# For ci/static_check.sh: compilers of GPUs that are not here, how they are called, and what they
# say of a kernel. Wants $build, $tmp and keep().

clang=$(tool_clang)
clc=/usr/lib/clc
radv=/usr/share/vulkan/icd.d/radeon_icd.$(uname -m).json
stats=$build/tests/kernel_stats
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

# compile_radv TARGET "JOB KERNEL DEFINE..."...: Mesa's numbers of every job, each kept. It places
# arrays of a lane in scratch memory, which is no spill. Where the driver crashes or takes too long,
# it is opened again for the kernels that have no answer; one that fails first of all has failed.
compile_radv() {
    local target=$1 batch answers answer status job
    shift
    batch=$(mktemp -p "$tmp")
    while [ $# -gt 0 ]; do
        status=0
        printf '%s\n' "${@#* }" | sed -E 's/-D//g; s/(=[0-9]+)u\b/\1/g' | radv_stats "$target" >"$batch" 2>"$batch.log" ||
            status=$?
        mapfile -t answers <"$batch"
        if [ "${#answers[@]}" -eq 0 ]; then
            answers=("error=$(why_ended "$status" "$radv_seconds")")
        fi
        for answer in "${answers[@]}"; do
            job=${1%% *}
            shift
            case $answer in
            *error=*) echo "error: ${answer#*error=}" >"$tmp/$job.log" ;;
            *) radv_numbers <<<"$answer" | keep "$job" ;;
            esac
        done
    done
}

# radv_numbers < ANSWER
radv_numbers() {
    awk -F'[\t;]' '{ for (i = 2; i <= NF; i++) { split($i, w, "="); n[w[1]] = w[2] } }
        END { print n["VGPRs"] + 0, n["LDS size"] + 0, n["Spilled VGPRs"] + 0,
                    n["Subgroups per SIMD"] / 32, n["Instructions"] + 0 }'
}
