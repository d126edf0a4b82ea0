#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt bench scaling`: supervised training and evolution strategies by one rank and by two, the
# figures against their formulas in Python; the exchange alone under mpirun; mistakes. Exit code 77
# where there is no Open MPI. Usage: scaling.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: scaling.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
# shellcheck source-path=SCRIPTDIR source=../ranks/ranks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../ranks/ranks.sh"
cd "$tmp" || exit 1
export TMPDIR=$tmp/made
mkdir made
scaling=(bench scaling -n "1,2" --device ref --steps 16)

expect 0 "${scaling[@]}" --batch-size 32 hidden=16 depth=2 --format json -o s.json
python3 "$tests/cli/bench/scaling.py" s.json || wrong "supervised: rows and formulas differ"
expect 0 "${scaling[@]}" --train es --batch-size 8 --format json -o e.json
python3 "$tests/cli/bench/scaling.py" e.json || wrong "es: rows and formulas differ"
[ -z "$(find made -name 'gpurt-*')" ] || wrong "the trainings' files are left: $(find made)"
expect 0 report s.json e.json
said 'Steps of several ranks'

ranks 0 2 bench scaling --probe 100KB --device ref --format csv
said '^exchange,2,100000,'
said ',ok$'
ranks 64 2 bench scaling -n 2 --device ref
told 'starts its ranks itself'
refuse 64 'several ranks' bench scaling --probe 1MB --device ref
refuse 64 '3 ranks' bench scaling -n 3 --batch-size 32
refuse 64 'classify wants --data' bench scaling --train classify
expect 78 bench scaling -n 1 --device ref no_such_key=1
told "ended with 78: no_such_key=1: no key"
(PATH=$(dirname "$gpurt") && "$gpurt" bench scaling -n 2 --device ref --steps 16 --batch-size 8 >out 2>err </dev/null)
[ $? -eq 69 ] || wrong "without mpirun: exit code is not 69"
told 'openmpi-bin'
exit "$failed"
