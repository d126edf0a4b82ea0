#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With packages that no distribution has, which ci/python_tools.sh puts under build/tools/python:
# Gymnasium's own check of our environments and a loop over them, and networks drawn at random that
# pass onnx's check and give ONNX Runtime our numbers. Usage: tools.sh SOURCE_DIR LIBRARY GPURT

set -euo pipefail
source=${1:?usage: tools.sh SOURCE_DIR LIBRARY GPURT}
library=$2 gpurt=$3
python=$source/build/tools/python/bin/python3
if [ ! -x "$python" ]; then
    echo "tools.sh: skipped: no Gymnasium and ONNX Runtime in build/tools/python: \`ci/setup.sh tests\` puts them there, with a network"
    exit 77
fi
fail() {
    echo "tools.sh: $*" >&2
    exit 1
}
said=$("$python" "$source/tests/python/package.py" "$source/apps/python" "$library" "$gpurt" gymnasiums environments)
echo "$said"
grep -q ' 2 cases' <<<"$said" || fail "not both cases ran"
! grep -q skipped <<<"$said" || fail "Gymnasium cannot be imported"
said=$("$python" "$source/tests/cli/convert/to_onnx.py" "$gpurt" 2)
echo "$said"
grep -q 'by ONNX Runtime ' <<<"$said" || fail "ONNX Runtime cannot be imported"
