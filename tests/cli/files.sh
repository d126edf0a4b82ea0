#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the command does with the files that it is given, over every verb: devices, pipes and links
# stay what they are, nothing that is read is written over, text of files reaches no terminal raw,
# and what is not to be trusted is not used. Usage: files.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: files.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../harness/command.sh"
export GPURT_DEVICE=ref:0 TMPDIR=$tmp/tmp XDG_CONFIG_HOME=$tmp/config XDG_CACHE_HOME=$tmp/cache
mkdir "$tmp/tmp" "$tmp/config" "$tmp/cache" "$tmp/in"
cd "$tmp" || exit 1

# left_over: what a command left behind of its own.
left_over() { find "$tmp" -name '*.tmp' -o -path "$tmp/tmp/*" | head -n 3; }

# ---- inputs of every kind ----
expect 0 data make classification --samples 120 --features 3 --classes 2 -o in/d.h5
expect 0 train supervised --data in/d.h5 epochs=1 batch_size=32 hidden=4 depth=1 checkpoint_dir=in/net
cp in/net/best.h5 in/net.h5
expect 0 convert in/net.h5 in/net.safetensors
expect 0 train es --env cartpole --iterations 1 --num-envs 4 --num-dirs 2 --checkpoint in/policy.h5
printf 'batch_size: 32\n' >in/c.yaml

# Every way in which a verb writes, with OUT where the file's name goes. Names that must end so:
# OUT.h5.
writers=(
    'data make regression --samples 20 -o OUT'
    'data info in/d.h5 -o OUT'
    'data info in/d.h5 --format json -o OUT'
    'devices -o OUT'
    'doctor -o OUT'
    'profile -o OUT'
    'train supervised --keys -o OUT'
    'train supervised --data in/d.h5 epochs=1 hidden=4 depth=1 checkpoint_dir=ck -q -o OUT'
    'train es --env cartpole --iterations 1 --num-envs 4 --num-dirs 2 --checkpoint es.h5 -q -o OUT'
    'eval --data in/d.h5 --checkpoint in/net -o OUT'
    'predict --data in/d.h5 --checkpoint in/net -o OUT'
    'play cartpole --checkpoint in/policy.h5 -o OUT'
    'bench data --data in/d.h5 --batch-sizes 8 --num-workers 0 --time 0.01 -o OUT'
    'bench --data in/d.h5 --batch-sizes 8 --num-workers 0 --steps 1 --model depth=1,hidden=4 -q -o OUT'
    'bench --data in/d.h5 --batch-sizes 8 --num-workers 0 --steps 1 --model depth=1,hidden=4 -q -o o/table --apply OUT'
    'bench launch --count 1 --time 0.01 -o OUT'
    'bench mlp --model small --batch-sizes 8 --time 0.01 -o OUT'
    'convert in/net.h5 OUT.safetensors'
    'convert in/net.safetensors OUT.h5'
)
# named TEMPLATE NAME: the file that it writes. words TEMPLATE NAME: puts its words into `words`.
named() { case $1 in *OUT.*) echo "$2.${1##*OUT.}" ;; *) echo "$2" ;; esac; }
words() {
    local word
    words=()
    for word in $1; do words+=("${word/#OUT*/$(named "$1" "$2")}"); done
}
# write TEMPLATE NAME: runs it. The limit is for a pipe that nobody reads or writes, and would hang
# for ever.
limit=600
write() {
    words "$@"
    timeout $limit "$gpurt" "${words[@]}" >"$tmp/out" 2>"$tmp/err" </dev/null
}
begins() { [ "$(head -c 4 "$1" | od -c)" = "$(head -c 4 "$2" | od -c)" ]; }

# ---- devices, pipes and links ----
nodes=1
mknod in/probe c 1 3 2>/dev/null || nodes=0
[ "$nodes" -eq 1 ] || echo "$me: device nodes are NOT tested, this user cannot make one"
for writer in "${writers[@]}"; do
    rm -rf o && mkdir o
    # A file: its permissions stay.
    plain=$(named "$writer" o/plain)
    : >"$plain" && chmod 604 "$plain"
    write "$writer" o/plain || wrong "$writer: exit code $?"
    [ -s "$plain" ] && [ "$(stat -c %a "$plain")" = 604 ] || wrong "$writer: not written, or other permissions"
    # A link stays one, to a file that is there or not.
    for target in there new; do
        mkdir -p o/far
        [ "$target" = new ] || : >o/far/there
        link=$(named "$writer" "o/link-$target")
        ln -s "far/$target" "$link"
        write "$writer" "o/link-$target" || wrong "$writer to a link: exit code $?"
        [ -L "$link" ] && [ -s "o/far/$target" ] || wrong "$writer: the link was replaced"
    done
    # A device stays one.
    if [ "$nodes" -eq 1 ]; then
        device=$(named "$writer" o/null)
        mknod "$device" c 1 3
        write "$writer" o/null || wrong "$writer to a device: exit code $?"
        [ -c "$device" ] || wrong "$writer: the device was replaced"
    fi
    # A pipe gets all of it.
    pipe=$(named "$writer" o/pipe)
    mkfifo "$pipe"
    timeout $limit cat "$pipe" >o/got &
    write "$writer" o/pipe || wrong "$writer to a pipe: exit code $?"
    [ -p "$pipe" ] || wrong "$writer: the pipe was replaced"
    wait
    begins o/got "$plain" || wrong "$writer: the pipe got $(wc -c <o/got) bytes that begin otherwise"
    # stdout under its other names; what stands there already, and what comes behind, stays. The
    # link is as /dev/stdout, which a mistake would not spare.
    case $writer in *OUT.*) continue ;; esac
    ln -s /proc/self/fd/1 o/stdout
    for stdout in - /dev/fd/1 o/stdout; do
        words "$writer" "$stdout"
        {
            echo before
            timeout $limit "$gpurt" "${words[@]}" 2>"$tmp/err" </dev/null || wrong "${words[*]}: exit code $?"
            echo behind
        } >o/all
        tail -n +2 o/all >o/rest
        [ "$(head -n 1 o/all)" = before ] && [ "$(tail -c 7 o/all)" = behind ] && begins o/rest "$plain" ||
            wrong "${words[*]}: not between what was written before and behind"
        [ -L o/stdout ] || wrong "${words[*]}: the link was replaced"
    done
done
"$gpurt" predict --data in/d.h5 --checkpoint in/net -o /dev/fd/1 2>/dev/null | cat >o/piped
expect 0 predict --data in/d.h5 --checkpoint in/net -o o/whole.h5
cmp -s o/piped o/whole.h5 || wrong "predict through a pipe: other bytes"
# A checkpoint that is there already is moved: of a link the file behind it, and never a device.
es=(train es --env cartpole --iterations 1 --num-envs 4 --num-dirs 2 -q)
cp in/policy.h5 o/far/old.h5
ln -s far/old.h5 o/es.h5
expect 0 "${es[@]}" --checkpoint o/es.h5
[ -L o/es.h5 ] && cmp -s o/far/old-earlier-1.h5 in/policy.h5 || wrong "train es: the link was moved"
if [ "$nodes" -eq 1 ]; then
    mknod o/es-null c 1 3
    expect 0 "${es[@]}" --checkpoint o/es-null
    [ -c o/es-null ] || wrong "train es: the device was moved"
fi
refuse 73 "Is a directory" predict --data in/d.h5 --checkpoint in/net -o o
refuse 73 "Is a directory" devices -o o
refuse 73 "Too many levels" devices -o "$(ln -s loop o/loop && echo o/loop)"
refuse 73 "there is no folder o/missing" devices -o o/missing/x
[ -z "$(left_over)" ] || wrong "left behind: $(left_over)"

# ---- what is read is not written ----
# A row: the file that is read, as whose name; what writes it, as whose; the command, with OUT where
# that goes.
rows=(
    'd.h5 FILE --output data info in/d.h5 -o OUT'
    'd.h5 --data --output eval --data in/d.h5 --checkpoint in/net -o OUT'
    'net.h5 --checkpoint --output eval --data in/d.h5 --checkpoint in/net.h5 -o OUT'
    'net/best.h5 --checkpoint --output eval --data in/d.h5 --checkpoint in/net -o OUT'
    'c.yaml --config --output eval --data in/d.h5 --checkpoint in/net --config in/c.yaml -o OUT'
    'd.h5 --data --output predict --data in/d.h5 --checkpoint in/net -o OUT'
    'net.h5 --checkpoint --output predict --data in/d.h5 --checkpoint in/net.h5 -o OUT'
    'net/best.h5 --checkpoint --output predict --data in/d.h5 --checkpoint in/net -o OUT'
    'c.yaml --config --output predict --data in/d.h5 --checkpoint in/net --config in/c.yaml --format csv -o OUT'
    'policy.h5 --checkpoint --output play cartpole --checkpoint in/policy.h5 -o OUT'
    'd.h5 --data --output bench --data in/d.h5 -o OUT'
    'd.h5 --data --apply bench --data in/d.h5 --apply OUT'
    'c.yaml --config --output bench --data in/d.h5 --config in/c.yaml -o OUT'
    'c.yaml --config --apply bench train --data in/d.h5 --config in/c.yaml --apply OUT'
    'd.h5 --data --output bench data --data in/d.h5 -o OUT'
    'd.h5 --data --output train supervised --data in/d.h5 checkpoint_dir=never -o OUT'
    'd.h5 --data --log train supervised --data in/d.h5 checkpoint_dir=never --log OUT'
    'd.h5 --data --log train supervised data=in/d.h5 checkpoint_dir=never log=OUT'
    'c.yaml --config --output train supervised --data in/d.h5 --config in/c.yaml checkpoint_dir=never -o OUT'
    'c.yaml --config --log train supervised --data in/d.h5 --config in/c.yaml checkpoint_dir=never --log OUT'
    'net/best.h5 checkpoint_dir --log train supervised --data in/d.h5 checkpoint_dir=in/net --resume --log OUT'
    'net/best.h5 checkpoint_dir --output train supervised --data in/d.h5 checkpoint_dir=in/net -o OUT'
    'policy.h5 --resume --output train es --resume in/policy.h5 -o OUT'
    'policy.h5 --resume --log train es --resume in/policy.h5 --log OUT'
    'policy.h5 --from --output train es --env cartpole --from in/policy.h5 -o OUT'
    'policy.h5 --from --log train es --env cartpole --from in/policy.h5 --log OUT'
    'policy.h5 --checkpoint --log train es --env cartpole --checkpoint in/policy.h5 --log OUT'
    'policy.h5 --from --output train standing --from in/policy.h5 -o OUT'
    'a.profile GPURT_PROFILE --output devices -o OUT'
    'a.profile GPURT_PROFILE --output bench launch -o OUT'
    'a.profile GPURT_PROFILE --output data make points -o OUT'
)
printf 'gpurt-profile 1\nlevel = user\nend\n' >in/a.profile
export GPURT_PROFILE=in/a.profile
sums() { find in -type f -exec sha256sum {} + | sort; }
before=$(sums)
for row in "${rows[@]}"; do
    read -r file reads by rest <<<"$row"
    rm -rf o && mkdir o
    ln -s "../in/$file" o/link
    ln "in/$file" o/same
    for path in "in/$file" "$tmp/in/../in/$file" o/link o/same; do
        # Of a folder the names count: a file with another name is none of its checkpoints.
        [ "$file$path" != net/best.h5o/same ] || continue
        # shellcheck disable=SC2086  # words
        refuse 64 "($by)" ${rest/OUT/$path}
        grep -qF -- "$reads" "$tmp/err" || wrong "$rest: no word of $reads"
    done
done
[ "$(sums)" = "$before" ] || wrong "an input was changed"
unset GPURT_PROFILE
# A profile that is shown or tuned is not written over either.
profile=$("$gpurt" tune --help >/dev/null && echo config/gpurt/ref-c-reference.profile)
mkdir -p config/gpurt && cp in/a.profile "$profile"
refuse 64 "the device's profile" profile -o "$profile"
refuse 64 "the device's profile" tune -o "$profile"
cmp -s in/a.profile "$profile" || wrong "the profile was written over"
# Two outputs are two files, also of a name that nobody has yet.
for rest in 'bench --data in/d.h5 --apply one -o ./one' 'train supervised --data in/d.h5 checkpoint_dir=never --log one -o one' \
    'train es --env cartpole --checkpoint one --log ./one' 'train es --env cartpole --checkpoint one -o one'; do
    # shellcheck disable=SC2086  # words
    refuse 64 "name two files" $rest
done
if [ -e one ] || [ -e never ]; then wrong "a refused command began"; fi
# Devices clash with nothing.
if [ "$nodes" -eq 1 ]; then
    mknod o/null c 1 3
    expect 0 "${es[@]}" --checkpoint o/null -o o/null --log o/null
fi
# A run that goes on in its file, or begins with it, may: nothing is lost.
cp in/policy.h5 goes-on.h5
expect 0 train es --resume goes-on.h5 --checkpoint ./goes-on.h5 --iterations 2 -q
expect 0 "${es[@]}" --from goes-on.h5 --checkpoint goes-on.h5
[ -f goes-on-earlier-1.h5 ] || wrong "--from and --checkpoint of one name: the earlier one is gone"

# ---- text of files and arguments ----
# What would act on a terminal is seen instead. Bytes below 32 but the end of a line, DEL, and C1 as
# UTF-8.
acts() { LC_ALL=C grep -qaP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$@"; }
python=/usr/bin/python3 # Debian's, which has h5py
"$python" <<'PY' || wrong "no file with hostile names"
import h5py, numpy as np
with h5py.File("in/evil.h5", "w") as file:
    file["\x1b]0;owned\x07x\r\ny"] = np.zeros((4, 2), "f4")
    file["a|b\u009b31m"] = np.zeros((4, 2), "c8")
    file["größe 大"] = np.zeros((4, 1), "f4")
    file.attrs["gpurt_make"] = np.bytes_("made \x1b[2J by\nnobody")
PY
for format in table md csv json jsonl; do
    expect 0 data info in/evil.h5 --format "$format"
    case $format in
    json*) ;; # which has escapes of its own
    *) ! acts out || wrong "data info --format $format: raw control characters" ;;
    esac
    case $format in
    table | csv | md)
        said '\\x1b\]0;owned\\x07x\\x0d\\x0ay'
        said 'größe 大'
        ;;
    esac
    [ "$format" != md ] || said '\| a\\\|b\\xc2\\x9b31m +\|'
    [ "$format" != json ] || "$python" -c 'import json; rows = json.load(open("out"))["rows"]
assert "\x1b]0;owned\x07x\r\ny" in {row["name"] for row in rows}, rows' || wrong "JSON holds other names"
done
name=$'no\e[31m\r\n\a\xc2\x9bname'
printf 'batch_size: "%s"\n' '\e[31m' >in/evil.yaml
evil() {
    local want=$1
    shift
    expect "$want" "$@"
    ! acts out err || wrong "gpurt $(printf '%q ' "$@"): raw control characters"
    grep -q '\\x1b\[31m' out err || wrong "gpurt $(printf '%q ' "$@"): not said what was wrong"
    [ "$(cat out err | wc -l)" -le 2 ] || wrong "gpurt $(printf '%q ' "$@"): more lines than meant"
}
evil 64 "$name"
evil 64 devices "--$name"
evil 66 data info "$name"
evil 64 data make "$name" -o o/x.h5
evil 73 data make points --samples 2 -o "missing/$name"
evil 69 bench launch --device "$name"
evil 64 bench launch --count "$name"
evil 64 bench "$name"
evil 78 eval --data "$name" --checkpoint in/net
evil 66 eval --data in/d.h5 --checkpoint "$name"
evil 78 eval --data in/d.h5 --checkpoint in/net inputs="$name"
evil 78 train supervised --data in/d.h5 "$name=3"
evil 78 train supervised --data in/d.h5 "loss=$name"
evil 78 train supervised --config in/evil.yaml --data in/d.h5
evil 64 convert in/net.h5 "$name"
evil 64 play "$name"
evil 64 train es --env "$name"
evil 66 train es --resume "$name"

# ---- what is missing, full or crashes ----
for rest in 'bench data --time 0.01' 'bench --steps 1' 'data make points --samples 2 -o -'; do
    # shellcheck disable=SC2086  # words
    TMPDIR=$tmp/missing refuse 73 "$tmp/missing: No such file or directory; TMPDIR names another folder" $rest
done
if [ -w /dev/full ]; then
    "$gpurt" train supervised --data in/d.h5 epochs=1 hidden=4 depth=1 checkpoint_dir=full -q --log /dev/full \
        >"$tmp/out" 2>"$tmp/err"
    code=$?
    [ "$code" -eq 74 ] || wrong "train supervised: a log was lost, and the exit code is $code, not 74"
    grep -q 'cannot write /dev/full: No space left' err || wrong "train supervised -q: a log was lost without a word"
    "$gpurt" "${es[@]}" --log /dev/full >"$tmp/out" 2>"$tmp/err"
    code=$?
    [ "$code" -eq 74 ] || wrong "train es: a log was lost, and the exit code is $code, not 74"
    grep -q 'cannot write /dev/full: No space left' err || wrong "train es -q: a log was lost without a word"
fi
# A pipe as config is read to its end, whoever writes it.
"$gpurt" train supervised --config <(sleep 0.2 && echo 'epochs: 1') --data in/d.h5 hidden=4 depth=1 \
    checkpoint_dir=piped --format csv >"$tmp/out" 2>"$tmp/err" || wrong "a config through a pipe"
[ "$(wc -l <out)" -eq 2 ] || wrong "a config through a pipe: not one epoch"
# A folder of kernels that anybody can write is not used, and that is said once.
mkdir -p strange/gpurt && chmod 777 strange/gpurt
XDG_CACHE_HOME=$tmp/strange expect 0 train supervised --data in/d.h5 epochs=1 hidden=4 depth=1 checkpoint_dir=ck2 -o o/rows
[ "$(grep -c 'strange/gpurt can be written by others and is not used' err)" -eq 1 ] || wrong "a strange cache: not said once"
[ -z "$(ls strange/gpurt)" ] || wrong "a strange cache was used"
# A crash has last words, whatever crashed.
if ! ldd "$gpurt" | grep -q libasan; then
    : >"$tmp/out"
    (ulimit -c 0 -v 60000000 && exec "$gpurt" bench launch --count 1024 --time 60) >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    wait_for "the heading of bench launch" grep -q '^launch on' "$tmp/out"
    stop SEGV 139 "a crash"
    grep -q '^gpurt: crashed (SIGSEGV) while this driver was in use: ref:0: C reference, .*(ulimit -v)' "$tmp/err" ||
        wrong "a crash without last words"
fi

exit "$failed"
