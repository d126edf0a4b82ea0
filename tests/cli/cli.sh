#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The command from outside: exit codes, what goes to stdout and to stderr, and that every format is
# what it says. Usage: cli.sh GPURT JSON_CHECK

set -uo pipefail
gpurt=${1:?usage: cli.sh GPURT JSON_CHECK}
json=${2:?usage: cli.sh GPURT JSON_CHECK}
# shellcheck source-path=SCRIPTDIR source=../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../harness/command.sh"

# ---- usage: 64 ----
expect 64
[ ! -s "$tmp/out" ] || wrong "no command: usage belongs on stderr"
refuse 64 "'bench'" benhc
refuse 64 "'devices'" device
refuse 64 "xyzzy" xyzzy
refuse 64 "--nonsense" --nonsense
refuse 64 "--nonsense" devices --nonsense
# Words where an option is meant, and folders where a file is.
mkdir "$tmp/a folder ü"
refuse 64 "folder ü' is no environment; the trained network is named with --checkpoint PATH" eval "$tmp/a folder ü" --data x.h5
refuse 78 "an environment with --env NAME" train es cartpole
refuse 78 "--data FILE or --config FILE" train supervised x.h5
refuse 66 "a folder ü: is a folder: name a file in it; \`gpurt data import\`" data info "$tmp/a folder ü"
refuse 73 "there is no folder $tmp/not there; make it first" data make regression -o "$tmp/not there/x.h5"
refuse 64 "--format" devices --fromat json
refuse 64 "yaml" devices --format yaml
refuse 64 "'memory'" bench memroy
refuse 64 "1-" bench memory --size 1-
refuse 64 "64Q" bench memory --size 64Q
refuse 64 "count" bench launch --count 0
refuse 64 "character 3" bench gemm --shape 8,8x8
refuse 64 "f32 f16 bf16" bench gemm --precision f64
refuse 64 "NxHxWxCxK is wanted" bench conv --shape 8x8x8x8
refuse 64 "forward data weight" bench conv --pass sideways
refuse 64 "nn nt tn tt" bench gemm --trans nx
refuse 64 "cuda" bench --backend cuda
refuse 64 "mem-fraction" bench --mem-fraction 2
refuse 64 "time" bench --time -1
refuse 64 "extra" version extra

# ---- help and version: 0, on stdout ----
for verb in '' devices doctor bench version help; do
    # shellcheck disable=SC2086  # no verb is no argument
    expect 0 $verb --help
    said '^usage: gpurt'
    [ ! -s "$tmp/err" ] || wrong "gpurt $verb --help wrote to stderr"
done
expect 0 help bench
said 'bench \[KIND'
expect 0 --version
said '^gpurt [0-9]+\.[0-9]+\.[0-9]+$'
expect 0 version

# ---- numbers beyond their range: 64, with the range ----
for size in 18446744073709551615 18446744073709551616 9223372036854775808 1025TiB 99999999999999999999PB -1; do
    refuse 64 "$size" bench memory --device ref:0 --size "$size"
done
refuse 64 "4 to 1125899906842624" bench memory --device ref:0 --size 18446744073709551615
refuse 64 "0 to 1125899906842624" bench memory --device ref:0 --mem-limit 18446744073709551616
refuse 64 "1 to 1000" bench memory --device ref:0 --samples 18446744073709551617
refuse 64 "0 to 4294967295" train es --env cartpole --device ref:0 --seed 4294967296
refuse 64 "0 to 4294967295" train es --env cartpole --device ref:0 --seed -1
refuse 64 "1e+09" bench memory --device ref:0 --time 1e300
for seed in 9007199254740993 18446744073709551616 1e30 -1; do
    refuse 78 "$seed is not between 0 and 9007199254740992" train supervised --device ref:0 "seed=$seed"
done

# ---- no such device: 69, with what there is ----
refuse 69 "ref:0" bench memory --device voodoo
refuse 69 "ref:0" bench memory --device cuda:1
# Software drivers are listed as such; where there is no other, words for a GPU are refused by every
# verb.
if ! "$gpurt" devices --format csv | grep -v ',software,' | grep -qE '^(vulkan|opencl):'; then
    for word in cuda cuda:0 gpu hip rocm mps; do
        refuse 69 "device 'cpu'" bench memory --device "$word"
        GPURT_DEVICE=$word refuse 69 "device 'cpu'" bench launch
    done
    refuse 69 "device 'cpu'" train supervised --data "$tmp/none.h5" device=cuda
    refuse 69 "device 'cpu'" train es --env cartpole --device cuda
    refuse 69 "device 'cpu'" tune --op gemm --budget 1s --device cuda
fi
refuse 69 "ref:0" bench memory --backend ref --require-gpu
expect 69 bench gemm --device ref:0 --shape 8 --variant turbo
expect 69 bench conv --device ref:0 --shape 1x2x2x1x1 --variant turbo
export GPURT_DEVICE=voodoo
refuse 69 "voodoo" bench memory
# A backend on the command line stands above a device that the environment names.
expect 0 bench memory --size 4KiB --time 0.01 --samples 1 --backend ref
said 'on ref:0'
unset GPURT_DEVICE
refuse 69 "there is ref:0" bench memory --backend ref --device vulkan:0
refuse 64 "'--device' needs a value" bench memory --device ''
# Where no driver is found the reference computes; whoever did not ask for it is told so, once.
expect 0 data make regression --samples 40 --features 3 -o "$tmp/slow.h5"
training=(supervised --data "$tmp/slow.h5" epochs=1 model=small "checkpoint_dir=$tmp/slow")
reference='^gpurt: warning: no OpenCL or Vulkan driver.* was found: ref:0, .*.gpurt doctor. tells'
bare() { VK_ICD_FILENAMES=/nonexistent VK_DRIVER_FILES=/nonexistent OCL_ICD_VENDORS=/nonexistent expect 0 "$@"; }
for line in "train ${training[*]}" "eval --checkpoint $tmp/slow --data $tmp/slow.h5" \
    "predict --checkpoint $tmp/slow --data $tmp/slow.h5 -o $tmp/slow.csv" \
    "bench memory --size 4KiB --time 0.01 --samples 1" \
    "bench memory --size 4KiB --time 0.01 --samples 1 --device cpu"; do
    read -ra words <<<"$line"
    bare "${words[@]}"
    [ "$(grep -cE "$reference" "$tmp/err")" -eq 1 ] || wrong "gpurt $line: not said once that it is the reference"
done
told 'driver for the CPU was found'
for word in ref ref:0 C\ ref; do
    bare bench memory --size 4KiB --time 0.01 --samples 1 --device "$word"
    [ ! -s "$tmp/err" ] || wrong "the reference was asked for by '$word', and yet there is a warning"
done
bare bench memory --size 4KiB --time 0.01 --samples 1 --backend ref
[ ! -s "$tmp/err" ] || wrong "the reference was asked for, and yet there is a warning"
refuse 64 "give its name too" profile --memory 24GiB
refuse 66 "nowhere" doctor --root "$tmp/nowhere"

# ---- formats ----
# check FORMAT ARGUMENT...: whether the output of `gpurt ARGUMENT...` is in the format.
check() {
    local format=$1
    shift
    case $format in
    json) "$json" <"$tmp/out" || wrong "gpurt $*: not JSON" ;;
    jsonl) "$json" --lines <"$tmp/out" || wrong "gpurt $*: not one JSON object a line" ;;
    csv) # names may hold a comma inside quotes, so quotes are cut out first
        sed 's/"[^"]*"//g' "$tmp/out" | awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }
            END { if (NR < 2) exit 1 }' || wrong "gpurt $*: rows of different lengths, or no row"
        ;;
    md) grep -qE '^\|[ :]*-+' "$tmp/out" || wrong "gpurt $*: no Markdown table" ;;
    table) [ -s "$tmp/out" ] || wrong "gpurt $*: no table" ;;
    esac
    ! grep -q $'\033' "$tmp/out" "$tmp/err" || wrong "gpurt $*: colour without a terminal"
}
quick=(--device ref:0 --time 0.01 --samples 1)
for format in json jsonl csv md table; do
    for args in 'devices' 'devices -v' "bench memory --size 64KiB ${quick[*]}" \
        "bench launch --count 1-4 ${quick[*]}" "bench gemm --shape 17x31x13,64 ${quick[*]}" \
        "bench conv --shape 2x5x4x3x6 --stride 2 ${quick[*]}"; do
        read -ra words <<<"$args"
        expect 0 "${words[@]}" --format "$format"
        check "$format" "${words[@]}" --format "$format"
    done
    # The doctor's code says how this machine is; both answers are right.
    code=0
    "$gpurt" doctor --format "$format" >"$tmp/out" 2>"$tmp/err" || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 69 ] || wrong "gpurt doctor: exit code $code"
    check "$format" doctor --format "$format"
done
# The profile that a variant's settings stand in, with its line.
expect 0 bench gemm --shape 8 --variant plain,lanes "${quick[@]}" --format csv
said ',plain,cpu:[0-9]+,'
said ',lanes,,'
expect 0 devices --format csv
for device in vulkan:0 opencl:0 ref:0; do
    said "$device"
done
expect 0 devices --backend ref
! grep -q 'vulkan:0' "$tmp/out" || wrong "devices --backend ref lists vulkan"
! grep -q $'\033' "$tmp/out" || wrong "a table that goes to a file has the terminal's bold"

# ---- files ----
expect 0 devices --format json -o "$tmp/file"
"$json" <"$tmp/file" || wrong "-o wrote no JSON"
[ ! -s "$tmp/out" ] || wrong "-o, and yet something on stdout"
# Help where a person looks for it, and words that were nearly right.
for words in "train help" "bench help" "data help" "bench mlp help" "train supervised help" \
    "help bench mlp" "help train es" "tune help"; do
    # shellcheck disable=SC2086  # several words
    expect 0 $words
    said '^usage: gpurt'
done
refuse 64 "did you mean 'train'?" training
refuse 64 "did you mean 'devices'?" dev
refuse 64 "did you mean 'data info'?" data inf x.h5
refuse 64 "did you mean 'data make'?" data maek regression
refuse 64 "did you mean 'supervised'?" train super
refuse 64 "did you mean 'gemm'?" bench gem
refuse 73 "missing" devices -o "$tmp/missing/file"
if [ -e /dev/full ]; then
    for args in version devices "devices --format json"; do
        read -ra words <<<"$args"
        code=0
        "$gpurt" "${words[@]}" >/dev/full 2>"$tmp/err" || code=$?
        : >"$tmp/out"
        [ "$code" -eq 74 ] || wrong "gpurt $args >/dev/full: exit code $code, wanted 74"
    done
fi
code=0
"$gpurt" version >&- 2>"$tmp/err" || code=$?
: >"$tmp/out"
[ "$code" -eq 74 ] || wrong "gpurt version with stdout closed: exit code $code, wanted 74"
# A reader that goes away is no failure to shout about, but the command must end.
"$gpurt" devices --format json 2>/dev/null | head -n 1 >/dev/null

exit "$failed"
