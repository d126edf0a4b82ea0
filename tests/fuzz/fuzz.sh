#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the libFuzzer targets fuzz_*.c side by side for SECONDS each, with AddressSanitizer and
# UndefinedBehaviorSanitizer. Usage: tests/fuzz/fuzz.sh BUILD [SECONDS]. The readers are compiled
# for it; what they need besides comes from the library of BUILD.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../ci/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../ci/common.sh"
# shellcheck source-path=SCRIPTDIR source=../../ci/packages.sh
. "$root/ci/packages.sh"
here=$root/tests/fuzz
build=$(realpath "$1")
seconds=${2:-60}
clang=$(tool_clang)
[ -n "$clang" ] || lane_lacks "clang 15 or newer" clang-15
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# One row per target: its name, the sources that it tries, and the libraries these need.
config=$root/runtime/config
store=$root/runtime/store
whole=$root/runtime/base/whole_file.c
sources_config="$config/config.c $config/calls.c $config/config_value.c $config/config_yaml.c $config/tree.c $whole"
sources_safetensors="$store/safetensors.c $store/archive.c $whole"
data=$root/runtime/data
sources_filter="$data/file/filter.c $data/file/filter_szip.c $data/file/element.c $data/file/fault.c"
sources_profile="$root/runtime/tuning/profile_parse.c $root/runtime/tuning/profile_keys.c $root/runtime/tuning/profile_match.c"
sources_ranges="$root/apps/cli/options/ranges.c"
libs_config=yaml-0.1
libs_filter=zlib
libs_safetensors=jansson

seed_config() {
    printf 'data:\n  batch_size: 256\n  inputs: [a, b]\ntraining: {use_amp: true, lr: 1e-3}\n' >"$1/a"
    printf 'benchmark:\n  batch_sizes: [1, 2]\n  num_workers: 0,4\noptimizer: sgd\n' >"$1/b"
    printf 'betas=0.9,0.99' >"$1/c"
    sed -n 's/^ *X([A-Z_]*, \([a-z_]*\),.*/\1/p; s/^ *X("\([a-z]*\)").*/\1/p' \
        "$root/runtime/gpurt/config_keys.h" | sort -u | sed 's/.*/"&: "/' >"$1.dict"
}
seed_safetensors() {
    local header='{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}}'
    # shellcheck disable=SC2059 # the length is an escape
    printf "\\$(printf %o "${#header}")\\0\\0\\0\\0\\0\\0\\0%s01234567" "$header" >"$1/a"
    printf '"%s"\n' dtype shape data_offsets F32 BF16 U8 __metadata__ >"$1.dict"
}
# A word that says type and filters, then the stored bytes: plain, and deflated ones of 64 zeros.
seed_filter() {
    printf '\1\0%s' "$(printf 'x%.0s' $(seq 64))" >"$1/a"
    printf '\1\6\x78\x9c\x63\x60\xa0\x3d\x00\x00\x00\x40\x00\x01' >"$1/b"
    printf '"\\x78\\x9c"\n' >"$1.dict"
}

seed_profile() {
    cp "$root"/runtime/tuning/profiles/nvidia-h*.profile "$root"/runtime/tuning/profiles/c*.profile "$1"
    cat "$1"/* | grep -oE '^[a-z_.]+' | sort -u | sed 's/.*/"& "/' >"$1.dict"
}
seed_ranges() {
    printf '\0%s' '1,2,8,1-64*2' >"$1/a"
    printf '\2%s' '4KB-256MB*4,1.5GiB' >"$1/b"
    printf '"%s"\n' - '*' + , KB MiB . >"$1.dict"
}

pids=()
names=()
for source in "$here"/fuzz_*.c; do
    name=${source##*/fuzz_}
    name=${name%.c}
    list=sources_$name
    libs=libs_$name
    mkdir "$tmp/$name"
    "seed_$name" "$tmp/$name"
    # shellcheck disable=SC2046,SC2086 # lists of words
    "$clang" -g -O1 -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -DGPURT_VERSION='"fuzz"' \
        -DGPURT_COOPMAT=0 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I"$root" \
        -I"$root/runtime" -I"$root/apps" "$source" ${!list} "$root"/runtime/base/{status,closest,visible}.c \
        -o "$tmp/fuzz_$name" -L"$build" -lgpurt -Wl,-rpath,"$build" -lm \
        $([ -z "${!libs-}" ] || pkg-config --cflags --libs "${!libs}")
    (cd "$tmp" && exec "./fuzz_$name" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 \
        -max_len=8192 -dict="$tmp/$name.dict" -verbosity=0 -print_final_stats=1 "$name") \
        >"$tmp/$name.log" 2>&1 &
    pids+=($!)
    names+=("$name")
done
failed=0
for i in "${!pids[@]}"; do
    name=${names[i]}
    if wait "${pids[i]}"; then
        echo "fuzz_$name: $(awk '/executed_units/ { print $2 }' "$tmp/$name.log") inputs in ${seconds} s"
    else
        echo "fuzz_$name failed:"
        tail -n 60 "$tmp/$name.log"
        for file in "$tmp"/crash-* "$tmp"/timeout-* "$tmp"/oom-* "$tmp"/leak-*; do
            [ ! -f "$file" ] || { echo "input, base64:" && base64 "$file"; }
        done
        failed=1
    fi
done
exit "$failed"
