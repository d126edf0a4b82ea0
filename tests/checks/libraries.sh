#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs load no library from the current directory: they are run where every library they need
# lies, as an empty file. Usage: libraries.sh PROGRAM..., each of which must take --help

set -euo pipefail
[ $# -gt 0 ] || { echo "usage: libraries.sh PROGRAM..." >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset LD_LIBRARY_PATH
fail() {
    echo "libraries.sh: $*" >&2
    exit 1
}

for program in "$@"; do
    program=$(realpath "$program")
    mapfile -t needed < <(ldd "$program" | awk '$2 == "=>" { print $1, $3 }')
    [ "${#needed[@]}" -gt 2 ] || fail "$program needs ${#needed[@]} libraries: ldd was misread"
    rm -rf "$tmp/here"
    mkdir "$tmp/here"
    for library in "${needed[@]}"; do
        : >"$tmp/here/${library%% *}"
    done
    (cd "$tmp/here" && "$program" --help) >"$tmp/out" 2>&1 ||
        fail "$program loads from the current directory: $(tail -n 1 "$tmp/out")"
    # The same said by the files themselves, those beside the program among them: an empty or a
    # relative folder of the search path is the current directory.
    top=$(dirname "$(dirname "$program")")
    for file in "$program" $(printf '%s\n' "${needed[@]#* }" | grep -F "$top/" || true); do
        path=$(readelf -d "$file" | sed -n 's/.*(R[UN]*PATH).*\[\(.*\)\]/\1/p')
        # shellcheck disable=SC2016  # the loader reads $ORIGIN, not the shell
        [ -z "$path" ] || ! tr ':' '\n' <<<"$path" | grep -qvE '^(/|\$ORIGIN(/|$))' ||
            fail "$file searches the current directory: '$path'"
    done
    echo "$program: ${#needed[@]} libraries, none from the current directory"
done
