#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a wheel of a bundle twice, the same bytes, installs it with pip into a clean environment
# that has NumPy and no compiler in its PATH, and runs the tests of the package there.
# Usage: wheel.sh SOURCE_DIR BUNDLE.tar.gz GPURT

set -euo pipefail
source=${1:?usage: wheel.sh SOURCE_DIR BUNDLE GPURT}
bundle=${2:?usage: wheel.sh SOURCE_DIR BUNDLE GPURT}
gpurt=${3:?usage: wheel.sh SOURCE_DIR BUNDLE GPURT}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python=/usr/bin/python3 # the distribution's, which has NumPy

mkdir "$tmp/a" "$tmp/b"
"$python" "$source/apps/python/wheel.py" "$bundle" "$tmp/a" >/dev/null
"$python" "$source/apps/python/wheel.py" "$bundle" "$tmp/b" >/dev/null
wheels=("$tmp"/a/*.whl)
cmp "${wheels[0]}" "$tmp"/b/*.whl || { echo "wheel.sh: two wheels of a bundle differ" >&2; exit 1; }

"$python" -m venv --system-site-packages "$tmp/venv"
env -i HOME="$tmp" PATH="$tmp/venv/bin" "$tmp/venv/bin/pip" install --quiet --no-index --no-deps \
    --disable-pip-version-check "${wheels[0]}"
mkdir "$tmp/here"
cd "$tmp/here"
env -i HOME="$tmp" PATH="$tmp/venv/bin" "$tmp/venv/bin/python" "$source/tests/python/package.py" installed - "$gpurt" |
    tee "$tmp/said"
grep -q "cases, $tmp/venv/" "$tmp/said" || { echo "wheel.sh: another package was imported" >&2; exit 1; }
env -i HOME="$tmp" PATH="$tmp/venv/bin" "$tmp/venv/bin/pip" uninstall --quiet --yes gpurt
[ -z "$(find "$tmp/venv/lib" -name 'gpurt*')" ] || { echo "wheel.sh: pip left something behind" >&2; exit 1; }
