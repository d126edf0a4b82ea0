#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt bench scaling`: supervised training, evolution strategies and PPO by one rank and by two,
# the figures against their formulas in Python, and against logs that are known; the exchange alone
# under mpirun; mistakes. Exit code 77 where there is no Open MPI. Usage: scaling.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: scaling.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
# shellcheck source-path=SCRIPTDIR source=../ranks/ranks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../ranks/ranks.sh"
cd "$tmp" || exit 1
export TMPDIR=$tmp/made
mkdir made
scaling=(bench scaling -n "1,2" --device ref --steps 16 --rounds 1)

expect 0 "${scaling[@]}" --batch-size 32 hidden=16 depth=2 --format json -o s.json
python3 "$tests/cli/bench/scaling.py" s.json || wrong "supervised: rows and formulas differ"
expect 0 "${scaling[@]}" --train es --batch-size 8 --format json -o e.json
python3 "$tests/cli/bench/scaling.py" e.json || wrong "es: rows and formulas differ"
expect 0 "${scaling[@]}" --train ppo --batch-size 4 rollout_steps=16 hidden=8 --format json -o p.json
python3 "$tests/cli/bench/scaling.py" p.json || wrong "ppo: rows and formulas differ"
[ -z "$(find made -name 'gpurt-*')" ] || wrong "the trainings' files are left: $(find made)"
expect 0 data make shapes --samples 40 --classes 2 --pixels 8 -o i.h5
expect 0 "${scaling[@]}" -n 2 --train classify --data i.h5 --batch-size 2 --format csv 'network=[{pool: mean}, {linear: 2}]'
said '^step,classify,'
expect 0 report s.json e.json
said 'Steps of several ranks'

# An mpirun that trains nothing: rows of a queued segment 10 us apart, at rates of 0.8 ms a step of
# all ranks; of one of them alone steps of 0.74 and 0.76 ms in turns, of the other the other way
# round: 0.75 ms, and 0.01 of waiting. Parts of half the bytes; the fitted overlap, 80 %, is in no
# prediction. An epoch ends with a batch of one row.
mkdir false_mpi
cat >false_mpi/mpirun <<'EOF'
#!/usr/bin/python3
import json, os, sys
probe = [w[9:] for w in sys.argv if w.startswith("--output=")]
if probe:
    part = dict(readback_ms=0.01, host_ms=0.02, network_ms=0.03, upload_ms=0.04, overlap=0.5)
    if "OVERLAPS" in os.environ:  # of a quarter of 16 MiB, and of half
        part["overlap"] = float(os.environ["OVERLAPS"].split()["--probe=8388608" in sys.argv])
    json.dump({"rows": [part]}, open(probe[0], "w"))
for i, word in enumerate(sys.argv):
    if word == "--log":
        name = sys.argv[i + 1]
        ms, batch = (float(os.environ["STEP_MS"]), 32) if "together" in name else (0.75, 16)
        rows = [dict(event="start", parameters=int(os.environ.get("PARAMETERS", 1000)), batch=batch)]
        if "ppo" in sys.argv:
            ms = ms if "together" in name else 20
            rows = [dict(event="start", parameters=1000, batch=100)]
            rows += [dict(event="train", step=n, seconds=n * ms / 1e3, steps_per_s=1) for n in range(1, 6)]
            open(name, "w").writelines(json.dumps(r) + "\n" for r in rows)
            continue
        each = 4 if "together" in name else 1
        for n in range(1, 16 // each + 1):
            turn = 0 if each == 4 else 0.01 if (n + ("alone-2-1" in name)) % 2 else -0.01
            rows.append(dict(event="train", step=each * n, epoch=1, seconds=1 + 1e-5 * n,
                             samples_per_s=1e3 * batch / (ms + turn)))
        rows.append(dict(rows[-1], step=17, samples_per_s=1 if each == 4 else 1e9))
        if "es" in sys.argv:  # no rate: iterations of 30 ms each, told by twos, the first pair longer
            rows[1:] = [dict(event="train", step=2 * n, seconds=1 + 0.06 * n - (n == 1)) for n in range(1, 6)]
        open(name, "w").writelines(json.dumps(r) + "\n" for r in rows)
EOF
chmod +x false_mpi/mpirun
export STEP_MS=0.8
PATH=$tmp/false_mpi:$PATH expect 0 bench scaling -n 2 --device ref --batch-size 32 --format csv
said '^step,supervised,1000,32,2,0\.8,0\.96,,40000,0\.75,0\.05,0\.21,0\.01,0\.02,0\.04,0\.06,0\.08,0\.5,0,0\.8,4000,'
# 16 MiB are four buckets: of those 0.1 ms of host and network all but a quarter can be hidden, and
# half of that is.
export PARAMETERS=4194304
PATH=$tmp/false_mpi:$PATH expect 0 bench scaling -n 2 --device ref --batch-size 32 --format csv
said '^step,supervised,4194304,32,2,0\.8,0\.9225,,40000,0\.75,0\.05,0\.1725,0\.01,0\.02,0\.04,0\.06,0\.08,0\.5,0\.0375,0\.8,16777216,'
# What takes longer than its parts is told below 0: of both probes the mean, -0.2, and of that three
# quarters.
OVERLAPS='-0.3 -0.1' PATH=$tmp/false_mpi:$PATH expect 0 bench scaling -n 2 --device ref --batch-size 32 --format csv
said '^step,supervised,4194304,32,2,0\.8,0\.975,,40000,0\.75,0\.05,0\.225,0\.01,0\.02,0\.04,0\.06,0\.08,-0\.2,-0\.015,0\.8,16777216,'
unset PARAMETERS
PATH=$tmp/false_mpi:$PATH expect 0 bench scaling -n 2 --train es --device ref --batch-size 32 --format csv
said '^step,es,1000,32,2,30,'
# Iterations of PPO are told by the clock of the log: 30 ms together and 20 alone. Of 100 rows, 50
# of a part, minibatches of 13 or, for 24 of both parts, of 12: four or five of them, and three
# epochs.
export STEP_MS=30
PATH=$tmp/false_mpi:$PATH expect 0 bench scaling -n 2 --train ppo --device ref --batch-size 4 --format csv update_epochs=3
said '^step,ppo,1000,4,2,30,21\.2,,133\.33333,20,10,1\.2,0,0,0\.48,0\.72,0,0\.5,0,[0-9.]*,48000,'
PATH=$tmp/false_mpi:$PATH expect 0 bench scaling -n 2 --train ppo --device ref --batch-size 4 --format csv update_epochs=3 batch_size=24
said '^step,ppo,1000,4,2,30,21\.5,,133\.33333,20,10,1\.5,0,0,0\.6,0\.9,0,0\.5,0,[0-9.]*,60000,'
# Steps of microseconds beside those of the real training of one rank.
export STEP_MS=0.0001
PATH=$tmp/false_mpi:$PATH expect 0 "${scaling[@]}" --batch-size 32 hidden=16 depth=2
said '^not judged: 2 ranks cannot be '

ranks 0 2 bench scaling --probe 100KB --device ref --format csv
said '^exchange,2,100000,'
said ',ok$'
# The reference has done its work before it returns, so nothing is hidden behind it.
ranks 0 2 bench scaling --probe 8MB --device ref --format csv
awk -F, '/^exchange,/ { got = $8 } END { exit got == "" || got >= 0.5 }' "$tmp/out" || wrong "overlap on ref: $(cat "$tmp/out")"
ranks 64 2 bench scaling -n 2 --device ref
told 'starts its ranks itself'
refuse 64 'several ranks' bench scaling --probe 1MB --device ref
refuse 64 '3 ranks' bench scaling -n 3 --batch-size 32
refuse 64 'classify wants --data' bench scaling --train classify
expect 78 bench scaling -n 1 --device ref no_such_key=1
told "ended with 78: no_such_key=1: no key"
expect 78 bench scaling -n 1 --train ppo --device ref --batch-size 4 target_kl=0.1
told 'target_kl ends updates early'
(PATH=$(dirname "$gpurt") && "$gpurt" bench scaling -n 2 --device ref --steps 16 --batch-size 8 >out 2>err </dev/null)
[ $? -eq 69 ] || wrong "without mpirun: exit code is not 69"
told 'openmpi-bin'
exit "$failed"
