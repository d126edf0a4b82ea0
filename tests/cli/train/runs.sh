#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What happens to a training when something around it fails: its output, its log, a signal at a bad
# moment, a second run in the same place, a start that cannot succeed. What it has learnt is on the
# disk then, bit for bit, and nothing else is left there. Usage: runs.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: runs.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
export GPURT_DEVICE=ref:0
python=/usr/bin/python3 # Debian's, which has h5py

es=(train es --env cartpole --policy linear --num-envs 4 --num-dirs 4 --episode-length 30)
st=(train standing --num-envs 2 --num-dirs 2 --episode-length 5)
expect 0 data make regression --samples 3000 --features 8 --seed 3 -o speeds.h5
sup=(train supervised --data speeds.h5 model=small batch_size=16 epochs=2 -q)
last=step-000000000338.h5 # 2 epochs of 169 steps
# A run that prints, and logs, more than the 64 KiB that a pipe holds: it cannot end before its
# reader has gone.
long=("${es[@]}" --num-envs 1 --num-dirs 1 --episode-length 3 --iterations 1000)

# as_was WHAT CODE WANTED FILE UNDISTURBED: the exit code of a run, and its file.
as_was() {
    [ "$2" -eq "$3" ] || wrong "$1: exit code $2, wanted $3"
    cmp -s "$4" "$5" || wrong "$1: $4 is not what an undisturbed run writes"
}
# nothing_left WHERE: neither half a file nor a lock.
nothing_left() {
    local left
    left=$(find . \( -name '*.tmp' -o -name '*.lock' -o -name '.lock' \) -print)
    [ -z "$left" ] || wrong "$1: left behind: $left"
}

# ---- output that fails ----
expect 0 "${es[@]}" --iterations 6 --checkpoint es.h5
expect 0 "${st[@]}" --iterations 6 --checkpoint st.h5
expect 0 "${sup[@]}" checkpoint_dir=sup
expect 0 "${long[@]}" --checkpoint long.h5 --log long.jsonl
for file in out long.jsonl; do
    [ "$(stat -c %s $file)" -gt 70000 ] || wrong "$file of the long run fits into a pipe"
done
# A pipe whose reader is gone from the beginning.
mkfifo unread
exec 8<>unread 9>unread 8<&-

"$gpurt" "${long[@]}" --checkpoint head.h5 2>err | head -n 3 >out
as_was 'es | head -3' "${PIPESTATUS[0]}" 74 head.h5 long.h5
[ "$(grep -c 'Broken pipe' err)" -eq 1 ] || wrong "es | head -3: the failure is not said once"
"$gpurt" "${st[@]}" --iterations 6 --checkpoint full.h5 >/dev/full 2>err
as_was 'standing >/dev/full' $? 74 full.h5 st.h5
[ "$(grep -c 'No space left' err)" -eq 1 ] || wrong "standing >/dev/full: the failure is not said once"
"$gpurt" "${sup[@]}" checkpoint_dir=true 2>err >&9
as_was 'supervised | true' $? 74 "true/$last" "sup/$last"
[ "$(wc -l <err)" -eq 1 ] || wrong "supervised | true: not one line on stderr"
cmp -s true/best.h5 sup/best.h5 || wrong "supervised | true: another best.h5"
"$gpurt" "${es[@]}" --iterations 6 --checkpoint closed.h5 2>err >&-
as_was 'es >&-' $? 74 closed.h5 es.h5
"$gpurt" "${es[@]}" --iterations 6 --checkpoint mute.h5 >out 2>&- <&-
as_was 'es 2>&- <&-' $? 0 mute.h5 es.h5
"$gpurt" "${es[@]}" --iterations 6 --checkpoint mute.h5 --format json >out 2>/dev/full
as_was 'es 2>/dev/full' $? 0 mute.h5 es.h5
# Logs: -q leaves the failure's line.
"$gpurt" "${es[@]}" --iterations 6 --checkpoint log.h5 -q --log /dev/full >out 2>err
as_was 'es --log /dev/full' $? 74 log.h5 es.h5
[ "$(grep -c '/dev/full' err)" -eq 1 ] || wrong "--log /dev/full: the failure is not said once"
"$gpurt" "${sup[@]}" checkpoint_dir=log --log /dev/full >out 2>err
as_was 'supervised --log /dev/full' $? 74 "log/$last" "sup/$last"
mkfifo pipe
head -n 1 pipe >out2 &
"$gpurt" "${long[@]}" --checkpoint fifo.h5 --log pipe >out 2>err
as_was 'es --log into a pipe that closes' $? 74 fifo.h5 long.h5
wait
# A limit on the size of files stands for a full disk: the events grow beyond it, checkpoints do
# not.
limit=$((($(stat -c %s long.h5) + 1023) / 1024 + 1))
(ulimit -f "$limit" && exec "$gpurt" "${long[@]}" --checkpoint board.h5 --tensorboard board) >out 2>err
as_was 'es --tensorboard on a full disk' $? 74 board.h5 long.h5
grep -q 'tfevents.*File too large' err || wrong "--tensorboard on a full disk: nothing is said"
# Checkpoints too: each failure is said, the last one is the exit code, and no half file stays.
(ulimit -f 1 && exec "$gpurt" "${sup[@]}" checkpoint_dir=tight checkpoint_interval=100) >out 2>err
code=$?
[ $code -eq 74 ] || wrong "supervised on a full disk: exit code $code, wanted 74"
[ "$(grep -c 'step-.*File too large' err)" -eq 4 ] || wrong "checkpoints on a full disk: $(cat err)"
nothing_left "output that fails"

# ---- a start that fails touches nothing ----
# unchanged WHAT COMMAND...: the folder sup and es.h5 are as before.
unchanged() {
    local before after
    before=$(find sup es.h5 -type f -exec md5sum {} + | sort)
    "$@"
    after=$(find sup es.h5 -type f -exec md5sum {} + | sort)
    [ "$before" = "$after" ] || wrong "${*:2}: a start that failed changed files: $after"
    nothing_left "$*"
}
unchanged refuse 73 nowhere/x.jsonl "${sup[@]}" checkpoint_dir=sup --log nowhere/x.jsonl
unchanged refuse 73 speeds.h5/board "${sup[@]}" checkpoint_dir=sup --tensorboard speeds.h5/board
unchanged refuse 73 nowhere/o "${sup[@]}" checkpoint_dir=sup -o nowhere/o
unchanged expect 66 "${sup[@]}" checkpoint_dir=sup --data nowhere.h5
unchanged expect 69 "${sup[@]}" checkpoint_dir=sup --device opencl:99
unchanged expect 78 "${sup[@]}" checkpoint_dir=sup schedule=cosine warmup_steps=9999
unchanged refuse 73 nowhere/x.jsonl "${es[@]}" --checkpoint es.h5 --log nowhere/x.jsonl
unchanged refuse 73 es.h5/board "${es[@]}" --checkpoint es.h5 --tensorboard es.h5/board
[ ! -e fresh ] || wrong "there is a folder already"
refuse 73 nowhere/x.jsonl "${sup[@]}" checkpoint_dir=fresh --log nowhere/x.jsonl
[ ! -e fresh ] || wrong "a start that failed made the folder of checkpoints"

# ---- two runs in one place ----
# steps FILE: whether that log has a step.
steps() { grep -q '"step":[1-9]' "$1"; }
into=1 begin "${sup[@]}" checkpoint_dir=one epochs=100000 checkpoint_interval=1 --log one.jsonl
wait_for "a first step of supervised" steps one.jsonl
refuse 73 "process $pid on" "${sup[@]}" checkpoint_dir=one
refuse 73 "process $pid on" "${sup[@]}" checkpoint_dir=one/ --resume
kill -KILL "$pid"
wait "$pid" 2>/dev/null
expect 0 "${sup[@]}" checkpoint_dir=one
cmp -s "one/$last" "sup/$last" || wrong "after a killed run: another checkpoint"
[ -d one/earlier-1 ] || wrong "the killed run's checkpoints were not moved aside"
into=1 begin "${es[@]}" --iterations 1000000 --checkpoint two.h5 --log two.jsonl
wait_for "a first step of es" steps two.jsonl
refuse 73 "two.h5 is in use by process $pid on" "${es[@]}" --checkpoint two.h5
kill -KILL "$pid"
wait "$pid" 2>/dev/null
# Nobody has the number that half a file of a killed process bears.
touch two.h5.4194399.tmp two.h5.x.tmp
expect 0 "${es[@]}" --iterations 6 --checkpoint two.h5
cmp -s two.h5 es.h5 || wrong "after a killed run: another checkpoint of es"
[ ! -e two.h5.4194399.tmp ] || wrong "es: half a file of a killed process is still there"
[ -e two.h5.x.tmp ] || wrong "es: somebody else's file was removed"
rm two.h5.x.tmp
nothing_left "two runs"

# ---- signals ----
# The library lists 120,000 chunks one by one, in a process of its own, which takes minutes.
"$python" - <<'PY' || wrong "no file with many chunks"
import h5py, numpy
with h5py.File("chunks.h5", "w") as f:
    x = numpy.arange(480000, dtype="f4").reshape(120000, 4)
    f.create_dataset("speeds", data=x, chunks=(1, 4))
    f["force"] = x[:, :1]
PY
chunks=(--data chunks.h5 inputs=speeds targets=force)
# listing FILE: whether a child of the process has it open.
listing() { find "/proc/$(pgrep -P "$pid" | head -n 1)/fd" -lname "*/$1" | grep -q .; }
for name in TERM INT HUP USR1; do
    begin train supervised "${chunks[@]}" checkpoint_dir=chunks
    wait_for "the list of chunks" listing chunks.h5
    stop "$name" 75 "train in its list of chunks"
    nothing_left "$name in the list of chunks"
    [ ! -e chunks ] || wrong "$name: a folder of checkpoints before the first step"
    grep -q 'before the first step' err || wrong "$name: nothing is said"
done
begin data info chunks.h5 -o info
wait_for "the list of chunks" listing chunks.h5
stop TERM 130 "data info in its list of chunks"
nothing_left "data info"
[ ! -e info ] || wrong "data info was ended, and yet there is its file"
# An iteration of the C reading takes minutes and is given up: with what was measured, 75, or, where
# a slow machine is still in the preparations after four seconds, without, 130.
begin bench rollout --num-envs 512 --num-dirs 64 --dir-chunk 64
wait_for "the heading of bench rollout" grep -q '^test ' out
stop TERM "75 130" "bench rollout in an iteration"
nothing_left "bench rollout"
# Trained networks: minutes of work for the C reading, and an output that nobody reads. Half a file
# is never left.
expect 0 data make regression --samples 100 --features 64 -o gusts.h5
expect 0 data make regression --samples 200000 --features 64 -o flights.h5
for hidden in 8 1024; do
    expect 0 train supervised --data gusts.h5 hidden=$hidden depth=2 max_steps=1 batch_size=50 checkpoint_dir=net-$hidden
done
# computing: whether it has had two seconds of a processor; opening the files takes far less.
computing() { [ "$(awk '{ print $14 + $15 }' "/proc/$pid/stat")" -ge $((2 * $(getconf CLK_TCK))) ]; }
# filling: whether it has the pipe open, of which it has inherited this script's end, number 7.
filling() { find "/proc/$pid/fd" ! -name 7 -lname '*/kept.csv' | grep -q .; }
mkfifo kept.csv
exec 7<>kept.csv
for form in 'TERM eval result.txt' 'INT eval result.txt' 'HUP predict result.h5' 'TERM predict result.csv'; do
    read -r name verb result <<<"$form"
    begin "$verb" --data flights.h5 --checkpoint net-1024 -o "$result"
    wait_for "$verb: two seconds of its work" computing
    stop "$name" 130 "$verb in its work"
    nothing_left "$name: $verb"
    [ ! -e "$result" ] || wrong "$name: $verb was ended, and yet there is its file"
done
for name in TERM INT; do
    begin predict --data flights.h5 --checkpoint net-8 -o kept.csv
    wait_for "predictions in a pipe" filling
    stop "$name" 130 "predict into a pipe that nobody reads"
    nothing_left "$name: predict into a pipe"
done
# The list of chunks comes before either begins.
for verb in eval predict; do
    begin "$verb" "${chunks[@]}" --checkpoint net-8 -o listed.h5
    wait_for "the list of chunks" listing chunks.h5
    stop HUP 130 "$verb in its list of chunks"
    nothing_left "$verb in its list of chunks"
    [ ! -e listed.h5 ] || wrong "$verb was ended in its list of chunks, and yet there is its file"
done
exec 7>&-
# nohup's word stands.
(trap '' HUP && exec "$gpurt" "${es[@]}" --iterations 1000000 --checkpoint nohup.h5 --log nohup.jsonl) >out 2>err &
pid=$!
wait_for "a first step under nohup" steps nohup.jsonl
kill -HUP "$pid"
count=$(wc -l <nohup.jsonl)
more() { [ "$(wc -l <nohup.jsonl)" -gt "$count" ]; }
wait_for "a step after the SIGHUP that nohup ignores" more
stop TERM 75 "a run under nohup"

# ---- policies that are no numbers ----
expect 70 "${es[@]}" --iterations 20 --algo es --noise-std 1e-40 --checkpoint nan.h5 --log nan.jsonl
logs_agree nan.jsonl
ended nonfinite nan.jsonl
grep -q 'is not finite' err || wrong "a policy that is not finite: nothing is said"
[ ! -e nan.h5 ] || wrong "a policy that is not finite was saved"

# ---- a best checkpoint that cannot be written ----
mkdir -p best/best.h5
expect 73 "${sup[@]}" checkpoint_dir=best
grep -q 'best/best.h5' err || wrong "best.h5 cannot be written: nothing is said"
cmp -s "best/$last" "sup/$last" || wrong "best.h5 cannot be written: another last checkpoint"

# ---- names that are not ours ----
expect 0 "${sup[@]}" checkpoint_dir=keep epochs=1
mkdir keep/step-000000000998.h5
touch keep/step-7.h5 keep/step-000000000999.h5 keep/step-+00000000008.h5
expect 0 "${sup[@]}" checkpoint_dir=keep --resume checkpoint_interval=50 keep=3
for step in 250 300 338; do
    [ -f "keep/step-000000000$step.h5" ] || wrong "keep=3: the checkpoint of step $step is gone: $(ls keep)"
done
[ ! -e keep/step-000000000200.h5 ] || wrong "keep=3: more than three are kept"
if [ ! -e keep/step-7.h5 ] || [ ! -e keep/step-+00000000008.h5 ]; then
    wrong "somebody else's files were removed"
fi

exit "$failed"
