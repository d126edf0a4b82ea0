#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt tune` from outside, on a CPU driver: it betters a bad setting and keeps a good one, the
# profile it writes is read again, and a candidate that crashes or hangs, a damaged profile and
# Ctrl-C end as they should. Usage: tune.sh GPURT

set -uo pipefail
gpurt=${1:?usage: tune.sh GPURT}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
export XDG_CONFIG_HOME=$tmp/config

# column NAME: of the first row of the CSV in out. Only the last columns may hold commas.
column() {
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i }
        NR == 2 { print $c }' "$tmp/out"
}
# setting: the workgroup of the plain product that the device gets.
setting() {
    "$gpurt" profile --device opencl:0 --format csv | awk -F, '$1 == "gemm.plain" { print $2 }'
}
# Of a thousand lanes eight have work here: whatever else is tried is many times faster.
tune=(tune --device opencl:0 --variant plain --shape 4096x8x8 --format csv)
worst=1024

# ---- usage ----
expect 64 tune --budget never
expect 64 tune --level 7
expect 64 tune --op sort
expect 69 tune --device opencl:0 --variant nosuch
expect 64 tune --device opencl:0 --trans nn,tn
expect 64 tune --device opencl:0 --data some.yaml --shape 64
expect 66 tune --device opencl:0 --data "$tmp/none.yaml"

# ---- operands that are stored transposed ----
for way in nn tn; do
    expect 0 "${tune[@]}" --level 0 --budget 60 --trans $way
    [ "$(column trans)" = $way ] || wrong "--trans $way measures $(column trans)"
done

# ---- several shapes have one setting: one row, and one that is better for all of them ----
expect 0 "${tune[@]}" --level 0 --budget 60 --shape 2048x8x8 --shape 64x8x8,32x8x8
[ "$(wc -l <"$tmp/out")" = 2 ] || wrong "shapes of one class have more than one row"
[ "$(column shape)" = '4096x8x8 and 3 more' ] || wrong "shapes are not all taken: $(column shape)"

# ---- the file's name, and a setting that is as bad as can be ----
expect 0 "${tune[@]}" --level 0 --budget 60
[ "$(column result)" = measured ] || wrong "level 0 does more than measure"
[ ! -e "$tmp/config/gpurt" ] || wrong "level 0 writes"
file=$(sed -n 's/.* in \(.*\.profile\)$/\1/p' "$tmp/err")
[ -n "$file" ] || wrong "the path of the profile is not said"
mkdir -p "$tmp/config/gpurt"
bad() {
    printf 'gpurt-profile 1\nlevel = user\nfrom = default\ngemm.plain = %d\n%s\ntrain.num_envs = 77\nend\n' \
        $worst '# a word of mine' >"$file"
}

# ---- a crash and a hang cost one candidate, and a better setting is stored and used ----
for fault in crash hang; do
    bad
    [ "$(setting)" = $worst ] || wrong "the user's profile is not read"
    GPURT_TUNE_FAULT=$fault expect 0 "${tune[@]}" --budget 60s  # far less, unless the machine is busy
    [ "$(column before)" = $worst ] || wrong "$fault: started from $(column before), not from what is stored"
    # On a busy machine another may not answer in time.
    [ "$(column failed)" -ge 1 ] || wrong "$fault: no candidate failed"
    [ "$(column result)" = stored ] || wrong "$fault: not stored"
    [ "$(setting)" = "$(column after)" ] || wrong "$fault: found $(column after), uses $(setting)"
    [ "$(setting)" != $worst ] || wrong "$fault: the bad setting stays"
    grep -q '^from = measured: 20..-..-.., .*GFLOP/s' "$file" || wrong "$fault: no provenance"
    grep -q '^train.num_envs = 77' "$file" || wrong "$fault: another setting was lost"
    grep -q '^# a word of mine' "$file" || wrong "$fault: a comment of the user's was lost"
done

# ---- a second run starts there, and what it stores is better ----
before=$(setting)
expect 0 "${tune[@]}" --budget 60s
[ "$(column before)" = "$before" ] || wrong "the second run starts from $(column before)"
case $(column result) in
kept)
    [ "$(setting)" = "$before" ] || wrong "kept, and yet changed"
    [ "$(column after)" = "$before" ] || wrong "kept $before, and the row has $(column after)"
    ;;
stored) [ "$(setting)" = "$(column after)" ] || wrong "stored another" ;;
*) wrong "the second run came to nothing" ;;
esac
expect 0 devices -v --backend opencl
grep -qF "$file" "$tmp/out" || wrong "devices -v does not name the user's profile"

# ---- Ctrl-C keeps what was found ----
# It comes with the row of the first type; the others would take several seconds.
bad
begin "${tune[@]}" --budget 600s --precision f32,f16,bf16
wait_for "the first row" grep -q '^gemm,plain,f32,.*,stored' "$tmp/out"
stop INT 0 "tune"
grep -q 'interrupted; [123] of 3 settings improved' "$tmp/err" || wrong "the interruption is not said"
[ "$(setting)" != $worst ] || wrong "interrupted: what was found is not kept"

# ---- a folder that cannot be written to is said before the time is spent ----
touch "$tmp/file"
XDG_CONFIG_HOME=$tmp/file expect 73 "${tune[@]}" --budget 60s
grep -q 'file/gpurt.*Not a directory' "$tmp/err" || wrong "the folder is not named"
[ "$(wc -l <"$tmp/out")" -le 1 ] || wrong "measured first, and said then that nothing can be stored"
XDG_CONFIG_HOME=$tmp/file expect 0 "${tune[@]}" --level 0 --budget 60s

# ---- a damaged profile is named with its line, and not overwritten ----
printf 'gpurt-profile 1\nlevel = user\nfrom = default\ngemm.plian = 1\nend\n' >"$file"
expect 78 "${tune[@]}" --budget 5s
grep -qF "$file:4: no setting 'gemm.plian'; did you mean 'gemm.plain'?" "$tmp/err" ||
    wrong "a damaged profile is not explained"
grep -q plian "$file" || wrong "a damaged profile was overwritten"
printf 'gpurt-profile 9\n' >"$tmp/other.profile"
GPURT_PROFILE=$tmp/other.profile expect 78 "${tune[@]}" --device ref:0 --budget 5s
grep -qF "$tmp/other.profile:1: a profile of version 9" "$tmp/err" || wrong "another version is read"

exit "$failed"
