#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the bundle of this machine's architecture, unpacks it elsewhere and runs it with an empty
# environment: it has all libraries that its programs need but glibc's, and the loaders of both
# APIs. Then the wheel that is made of it (tests/python/wheel.sh). Usage: bundle.sh SOURCE_DIR

set -euo pipefail
source=${1:?usage: bundle.sh SOURCE_DIR}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "bundle.sh: $*" >&2
    exit 1
}

"$source/ci/bundle.sh" --output "$tmp" >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log"; fail "no bundle was made"; }
mkdir "$tmp/else where"
tar -xzf "$tmp"/gpurt-*-linux-*.tar.gz -C "$tmp/else where"
folders=("$tmp/else where"/*)
[ "${#folders[@]}" -eq 1 ] || fail "the archive has more than one folder: ${folders[*]}"
top=${folders[0]}
for file in bin/gpurt bin/gpurt-test lib/libgpurt.so.0 lib/libvulkan.so.1 lib/fallback/libOpenCL.so.1; do
    [ -e "$top/$file" ] || fail "$file is missing"
done

# Whatever the programs and their libraries find outside of the bundle belongs to glibc.
for file in "$top/bin/gpurt" "$top/bin/gpurt-test"; do
    outside=$(env -i PATH="$PATH" ldd "$file" | grep -v "$top/" |
        grep -vE '^\s*(linux-vdso|/?.*ld-linux|lib(c|m|dl|rt|pthread|resolv|util)\.so)' || true)
    [ -z "$outside" ] || fail "${file#"$top/"} needs from outside: $outside"
done

"$source/tests/checks/libraries.sh" "$top/bin/gpurt" "$top/bin/gpurt-test" || fail "see above"

cd /
run() { env -i HOME="$tmp" "$top/bin/$1" "${@:2}"; }
run gpurt devices --format csv | grep -q '^ref:0,' || fail "ref:0 is not listed"
run gpurt bench memory --device ref:0 --size 64KiB --time 0.01 --samples 1 | grep -q ok || fail "the benchmark failed"
# The one command of docs/install.md, as short as it can be.
run gpurt bench --device ref:0 --batch-sizes 64 --num-workers 0 --steps 2 --time 0.02 >"$tmp/log" 2>&1 ||
    { tail -n 20 "$tmp/log"; fail "gpurt bench failed"; }
grep -q '^ *throughput .*samples/s' "$tmp/log" || { tail -n 20 "$tmp/log"; fail "gpurt bench recommends nothing"; }
run gpurt-test probe >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log"; fail "the tests of drivers failed"; }
! grep -q SKIPPED "$tmp/log" || fail "the drivers of the tests are not in the bundle"
# Without them, as where the program alone was copied, their cases are skipped and nothing fails.
rm -r "$top/bin/gpurt-test-icd"
run gpurt-test probe >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log"; fail "lost drivers fail the tests"; }
[ "$(grep -c '^\[  SKIPPED \] driver_' "$tmp/log")" -ge 4 ] || { cat "$tmp/log"; fail "lost drivers are not said"; }
run gpurt-test --device ref:0 reduce >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log"; fail "the tests failed"; }
sed -n 's/.*\(\[  PASSED  \].*\)/bundle: \1/p' "$tmp/log"
"$source/tests/python/wheel.sh" "$source" "$(echo "$tmp"/gpurt-*-linux-*.tar.gz)" "$top/bin/gpurt" || fail "the wheel: see above"
