#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checkpoints of version 0.1 load: they are evaluated, predict and play, and runs that were stopped
# then go on to the end that they had then. On ref to the same bits. Usage: old_checkpoints.sh GPURT
# DEVICE

set -uo pipefail
gpurt=$(realpath "${1:?usage: old_checkpoints.sh GPURT DEVICE}")
device=${2:?usage: old_checkpoints.sh GPURT DEVICE}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
golden=$tests/golden/version_0_1
# shellcheck source-path=SCRIPTDIR source=../../golden/version_0_1/runs.sh
. "$golden/runs.sh"
cd "$tmp" || exit 1
export GPURT_DEVICE=$device

# ends_as NAME FILE BITS: the tensors of FILE are those of then; with BITS 1 bit by bit.
ends_as() {
    expect 0 convert --all "$2" "$1.safetensors"
    gunzip -c "$golden/$1.safetensors.gz" >then.safetensors
    "$python" - "$1.safetensors" then.safetensors "$3" <<'PY' || wrong "$1 ends with other numbers than in version 0.1"
import json, struct, sys
import numpy as np
def tensors(path):
    blob = open(path, "rb").read()
    size = struct.unpack("<Q", blob[:8])[0]
    head = json.loads(blob[8:8 + size])
    return {k: blob[8 + size + v["data_offsets"][0]:8 + size + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}
now, then = tensors(sys.argv[1]), tensors(sys.argv[2])
assert now.keys() == then.keys() and len(then) > 5, sorted(now.keys() ^ then.keys())
for name in then:
    if sys.argv[3] == "1":
        assert now[name] == then[name], name
    elif name.startswith("model/"):
        a, b = (np.frombuffer(x[name], "f4") for x in (now, then))
        assert np.abs(a - b).max() < 1e-4, (name, np.abs(a - b).max())
PY
}

make_data harbour.h5 || exit 1
bits=0
[ "$device" != ref:0 ] || bits=1
for name in tide tide_first kind; do
    mkdir "$name"
    gunzip -c "$golden/$name.h5.gz" >"$name/step-000000000013.h5"
    [ "$name" != kind ] || mv "$name/step-000000000013.h5" "$name/step-000000000008.h5"
    expect 0 eval --data harbour.h5 --checkpoint "$name"/step-*.h5 --format csv
    expect 0 predict --data harbour.h5 --checkpoint "$name"/step-*.h5 -o "$name-p.h5"
    run "$name"
    expect 0 "${args[@]}" --resume
    case $name in tide_first) exact=0 ;; *) exact=$bits ;; esac
    ends_as "$name" "$name/step-000000000018.h5" "$exact"
done

gunzip -c "$golden/pole.h5.gz" >pole.h5
expect 0 play cartpole --checkpoint pole.h5 -o pole.svg
run pole
expect 0 "${args[@]}" --resume pole.h5 --iterations 6
ends_as pole pole.h5 "$bits"
exit "$failed"
