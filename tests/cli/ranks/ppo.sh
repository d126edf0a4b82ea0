#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt train ppo` and `train uav` as several ranks, by a real Open MPI: the file of one rank to
# the bit; in one minibatch of all rows the numbers of a learner that is not cut into parts; a rank
# that is killed is named and costs nothing. Usage: ppo.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: ppo.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
# shellcheck source-path=SCRIPTDIR source=ranks.sh
. "$(dirname "${BASH_SOURCE[0]}")/ranks.sh"
cd "$tmp" || exit 1

# near LOG LOG: the rows of iterations agree. Sums of other order differ in their last bits.
near() {
    /usr/bin/python3 - "$@" <<'END' || wrong "$1 and $2: an iteration differs by more than 1e-5"
import json, sys
rows = [[r for r in map(json.loads, open(f)) if r["event"] == "train"] for f in sys.argv[1:]]
assert len(rows[0]) == len(rows[1]) == 3
for a, b in zip(*rows):
    assert a["episodes"] == b["episodes"]
    for key in ("value_loss", "entropy", "grad_norm", "explained"):
        assert abs(a[key] - b[key]) <= 1e-5 * max(1, abs(a[key])), (key, a[key], b[key])
END
}

# ---- the same bits ----
cart=(train ppo --env cartpole --num-envs 8 --rollout-steps 16 --iterations 2 --seed 3 evaluate_envs=2 target_kl=1e-7
    update_epochs=2 batch_size=64 hidden=16)
expect 0 "${cart[@]}" micro_batches=4 --device ref --checkpoint one.h5
# By target_kl epochs end early here, which ranks must do together.
expect 0 "${cart[@]}" target_kl=0 micro_batches=4 --device ref --checkpoint late.h5
/usr/bin/python3 - one.h5 late.h5 <<'END' || wrong "target_kl ended no epoch early"
import h5py, sys
a, b = (h5py.File(f)["model"] for f in sys.argv[1:])
same = []
a.visititems(lambda n, d: same.append((d[()] == b[n][()]).all()) if isinstance(d, h5py.Dataset) else None)
sys.exit(len(same) == 0 or all(same))
END
# One part for each rank, unless micro_batches says otherwise.
for count in 2 4; do
    [ "$count" = 4 ] && parts=() || parts=(micro_batches=4)
    ranks 0 "$count" "${cart[@]}" "${parts[@]}" --device ref --checkpoint "$count.h5" --log "$count.jsonl"
    told 'in 4 parts'
    same one.h5 "$count.h5"
    [ "$(grep -c '^rank [0-9]* *ref:0 ' err)" -eq "$count" ] || wrong "the banner does not name every rank"
    [ "$(grep -c '"event":"end"' "$count.jsonl")" -eq 1 ] || wrong "not the first rank alone has a log"
done
logs_agree 2.jsonl
small=("${cart[@]}" --num-envs 4 --rollout-steps 8 --iterations 1)
for device in opencl vulkan; do
    expect 0 "${small[@]}" micro_batches=2 --device $device --checkpoint $device.h5
    ranks 0 2 "${small[@]}" --device $device --checkpoint both.h5
    same $device.h5 both.h5
done
uav=(train uav num_uavs=3 map=8 num_envs=4 rollout_steps=8 iterations=2 update_epochs=2 batch_size=48 evaluate_envs=1 episode_limit=6 --device ref)
expect 0 "${uav[@]}" micro_batches=2 --checkpoint alone.h5
ranks 0 2 "${uav[@]}" --checkpoint both.h5
same alone.h5 both.h5
# Ranks of different kinds hold the same weights, or the run would end.
ranks 0 2 "${small[@]}" --device opencl,ref --checkpoint mixed.h5

# ---- the right numbers ----
# Copies, their starts and their actions have the same numbers whoever has them; so have statistics
# of advantages and observations, and the mean gradient.
swing=(train ppo --env pendulum --num-envs 8 --rollout-steps 16 --iterations 3 --seed 3 evaluate_envs=2
    episode_limit=12 update_epochs=1 batch_size=128 normalize_observations=true --device ref)
expect 0 "${swing[@]}" --checkpoint whole.h5 --log whole.jsonl
ranks 0 2 "${swing[@]}" micro_batches=4 --checkpoint cut.h5 --log cut.jsonl
near whole.jsonl cut.jsonl
# One part, by the steps of ranks.
GPURT_AS_RANK=1 expect 0 "${swing[@]}" --checkpoint as.h5 --log as.jsonl
near whole.jsonl as.jsonl
# Parts with unequal numbers of rows that count.
lost=("${uav[@]}" update_epochs=1 batch_size=96 iterations=3)
expect 0 "${lost[@]}" --checkpoint whole.h5 --log uav1.jsonl
ranks 0 2 "${lost[@]}" --checkpoint cut.h5 --log uav2.jsonl
near uav1.jsonl uav2.jsonl
expect 0 eval uav --checkpoint cut.h5 --device ref

# ---- another run, and the end of the time ----
# A new run has parts of its own: both.h5 has two.
ranks 0 4 "${uav[@]}" --iterations 1 --from both.h5 --checkpoint four.h5
told 'in 4 parts'
expect 0 "${uav[@]}" --iterations 1 --from both.h5 num_envs=3 --checkpoint three.h5
# The iteration in which the time is over is still done.
ranks 0 2 "${small[@]}" --iterations 100000 max_time=0.3 --device ref --checkpoint timed.h5 --log timed.jsonl
grep -q '"event":"timing"' timed.jsonl || wrong "no times of iterations behind max_time"

# ---- mistakes ----
patience 0 # each refuses by itself
ranks 78 2 "${cart[@]}" micro_batches=1 --device ref --checkpoint u.h5
told 'micro_batches is 1: it has to be a power of two that the number of ranks, 2, divides'
# A run without parts goes on without them, or is told otherwise.
expect 0 "${small[@]}" --device ref --checkpoint single.h5
ranks 78 2 train ppo --resume single.h5 --iterations 2 --device ref
told 'micro_batches is 1: it has to be'
ranks 0 2 train ppo --resume single.h5 --iterations 2 micro_batches=2 --device ref
patience 1 # and here hears of it from the other
refuse 78 'num_envs: 8 copies are not cut into 16 equal parts' "${cart[@]}" micro_batches=16 --device ref --checkpoint u.h5
got=0
"${mpi[@]}" -n 1 "$gpurt" "${cart[@]}" --device ref --checkpoint u.h5 : \
    -n 1 "$gpurt" "${cart[@]}" gae_lambda=0.5 --device ref --checkpoint u.h5 >out 2>err || got=$?
[ "$got" -eq 78 ] || wrong "unequal settings: exit code $got, wanted 78"
told 'rank 1 \(ref:0 .*\) differs in its gae_lambda'
[ ! -e u.h5 ] || wrong "a mistake, and yet a checkpoint"
patience 2

# ---- a rank is gone ----
# Far more iterations than are done before a rank is killed.
end=(--iterations 40 --evaluate-every 40)
long=(train ppo --env cartpole --num-envs 4 --rollout-steps 8 --update-epochs 1 "${end[@]}" hidden=16
    --checkpoint-interval 40 --seed 5 evaluate_envs=1 batch_size=32 --device ref micro_batches=4)
expect 0 "${long[@]}" --checkpoint whole.h5
begin_ranks 2 "${long[@]}" --checkpoint KILL.h5 --log KILL.jsonl
wait_for "row 6" rows KILL.jsonl 6
victim=$(rank_pid 1)
kill -KILL "$victim"
ends "137 75" "rank 1 got SIGKILL"
told "^gpurt: error: rank 1 \(ref:0 .*, process $victim on .*\) has ended"
told "interrupted; the checkpoint is in KILL.h5"
# The states of its copies went with it: before the first checkpoint there is what the run began
# with.
told "the checkpoint is that of step 0$"
# Any number of ranks that divides the parts goes on; how many parts there are is in the file.
begin_ranks 4 train ppo --resume KILL.h5 "${end[@]}" --checkpoint-interval 4 --device ref --log again.jsonl
wait_for "row 7" rows again.jsonl 7
kill -KILL "$(rank_pid 3)"
ends "137 75" "rank 3 got SIGKILL"
told "interrupted; the checkpoint is in KILL.h5"
# Where it was killed right behind a checkpoint nothing is lost, and nothing said of it.
! grep -q 'the checkpoint is that of step' err || told 'the checkpoint is that of step ([0-9]*[02468])?[048]$|that of step [0-9]*[13579][26]$'
ranks 0 2 train ppo --resume KILL.h5 "${end[@]}" --checkpoint-interval 40 --device ref
same whole.h5 KILL.h5
begin "${long[@]}" --device ref,ref --iterations 100000 --checkpoint asked.h5 --log asked.jsonl
wait_for "row 4" rows asked.jsonl 4
stop TERM 75 "two devices"
told 'interrupted; the checkpoint is in asked.h5'
[ -e asked.h5 ] || wrong "no checkpoint of two ranks that were asked to stop"
exit "$failed"
