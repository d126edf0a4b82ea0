#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt bench all --contribute FILE`: with a user's name, a host's name and paths planted wherever
# a command meets them, the file has none of them, and it fits ci/records as it is.
# Usage: contribute.sh GPURT SOURCE_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: contribute.sh GPURT SOURCE_DIR}")
source=$(realpath "${2:?usage: contribute.sh GPURT SOURCE_DIR}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
home=$tmp/home/plantedperson
mkdir -p "$home/plantedfolder"
cd "$home/plantedfolder" || exit 1
export HOME=$home USER=plantedperson LOGNAME=plantedperson HOSTNAME=plantedhost
export XDG_CONFIG_HOME=$home/plantedconfig
# A profile of the user's own, by its path.
printf 'gpurt-profile 1\nlevel = device\nmatch.name = C reference\nfrom = derived: by plantedperson on plantedhost\ngemm.plain = 32\nend\n' \
    >"$home/plantedprofile.profile"
export GPURT_PROFILE=$home/plantedprofile.profile
sizes=(--size 64KiB --count 16 --shape 8 --num-envs 4 --num-dirs 2 --episode-length 4)
expect 0 bench all --device ref:0 --time 0.002 --samples 1 "${sizes[@]}" --contribute "$PWD/plantedfile.json"
[ ! -s "$tmp/out" ] || wrong "something on stdout"
told 'has the device, its driver'
# The same command without it has what was planted: the test can fail.
expect 0 bench gemm --device ref:0 --time 0.002 --samples 1 --shape 8 --format json -o "$PWD/plantedfile-2.json"
grep -q planted plantedfile-2.json || wrong "nothing was planted"
words=(planted "$(uname -n)" "$(id -un)" "$tmp" "$source")
for word in "${words[@]}"; do
    # Names such as "root" may be part of other words; of one letter nothing can be said.
    [ "${#word}" -gt 3 ] || continue
    ! grep -qiF -- "$word" plantedfile.json || wrong "the file has '$word': $(grep -iF -m1 -- "$word" plantedfile.json)"
done
/usr/bin/python3 - <<'EOF' || wrong "what the file has"
import json
d = json.load(open("plantedfile.json"))
assert set(d) <= {"schema", "gpurt", "command", "date", "units", "device", "rows"}, set(d)
assert d["command"] == ["gpurt", "bench", "all"], d["command"]
assert not {"selector", "pci", "profiles"} & set(d["device"]), d["device"]
assert {"name", "driver_version", "backend"} <= set(d["device"])
assert {r["kind"] for r in d["rows"]} >= {"memory", "launch", "gemm", "rollout"}, {r["kind"] for r in d["rows"]}
assert not any("profile" in r for r in d["rows"])
EOF
# As it is: a report and an estimate read it.
expect 0 report plantedfile.json
expect 0 estimate --card a100 --suite gemm --api vulkan --measured plantedfile.json -q
refuse 64 'no -o' bench all --contribute a.json -o b.json
refuse 64 'neither' bench all --contribute a.json --monitor
refuse 64 'neither' bench all --contribute a.json --env ./mine.k
refuse 64 'gpurt bench all' bench gemm --contribute a.json
exit "$failed"
