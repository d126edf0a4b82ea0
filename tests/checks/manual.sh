#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The man page, docs/options.md and docs/keys.md are made from the tables of the command. The page
# must have every option and verb that --help has, and no fault of form; the two others must be what
# the command makes now.
# Usage: manual.sh GPURT SOURCE_DIR; manual.sh --write GPURT SOURCE_DIR writes both anew.

set -uo pipefail
write=0
[ "${1:-}" != --write ] || { write=1 && shift; }
gpurt=$(realpath "${1:?usage: manual.sh [--write] GPURT SOURCE_DIR}")
source=${2:?usage: manual.sh [--write] GPURT SOURCE_DIR}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    printf 'manual.sh: %s\n' "$*" >&2
    failed=1
}

doc=$source/docs/options.md
{
    sed '/^<!-- Made from/q' "$doc"
    echo '@OPTIONS@' | "$gpurt" help --manual md
} >"$tmp/options.md" || wrong "no table of options was made"
keys() { # KIND: its keys as a table, without the blanks that pad cells
    "$gpurt" train "$1" --keys --format md | sed -E '2s/.*/|---|---|---|---|---|---|/; s/ +\|/ |/g'
}
kind() { # KIND TEXT [OTHER]: of the keys, or of those that are not as OTHER has them
    local rows
    rows=$(keys "$1") && [ "$(wc -l <<<"$rows")" -gt 20 ] || wrong "no keys of $1"
    printf '\n## %s\n\n' "$2"
    head -n 2 <<<"$rows"
    tail -n +3 <<<"$rows" | if [ -n "${3:-}" ]; then grep -vxFf <(keys "$3"); else cat; fi
}
{
    sed '/^<!-- Made from/q' "$source/docs/keys.md"
    kind supervised 'gpurt train supervised'
    kind classify 'gpurt train classify: what differs' supervised
    kind es 'gpurt train es, standing'
    kind ppo 'gpurt train ppo, uav'
} >"$tmp/keys.md"
if [ "$write" -eq 1 ]; then
    cp "$tmp/options.md" "$tmp/keys.md" "$source/docs"
    exit "$failed"
fi
for page in options keys; do
    diff "$source/docs/$page.md" "$tmp/$page.md" >"$tmp/diff" || {
        head -n 20 "$tmp/diff" >&2
        wrong "docs/$page.md is not what the command says: tests/checks/manual.sh --write GPURT SOURCE_DIR writes it anew"
    }
done

"$gpurt" help --manual man <"$source/apps/gpurt.1.in" >"$tmp/gpurt.1" || wrong "no man page was made"
! grep -n '^@[A-Z]*@' "$tmp/gpurt.1" >&2 || wrong "the man page has a line that was to be replaced"
# --help is printed by other code than the tables here are.
verbs=$("$gpurt" --help | sed -n 's/^  \([a-z]\+\)  .*/\1/p')
sed -n '/^\.SH COMMANDS/,/^\.SH OPTIONS/p' "$tmp/gpurt.1" >"$tmp/commands"
for verb in $verbs; do
    grep -q "^\.B gpurt $verb" "$tmp/gpurt.1" || wrong "the man page lacks the command $verb"
    grep -qE "^(\.BR? .*\b$verb\b|\\\\fB$verb\b)" "$tmp/commands" || wrong "the man page does not explain $verb"
done
options() { # COMMAND...: what its tables have, one a line
    "$gpurt" "$@" --help | awk '/^[A-Z][A-Za-z ]*:$/ { table = 1 } table' | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'
}
kinds() { "$gpurt" completion -- "$1" '' | sed -n 's/^\([a-z]\+\)\t.*/\1/p' | grep -vx all; }
for verb in $verbs; do
    commands=("$verb")
    case $verb in
    completion | version | help) continue ;;
    train) mapfile -t commands < <(kinds train | sed 's/^/train /') ;;
    eval) commands+=("eval knn" "eval linear" "eval uav") ;;
    bench | sweep) mapfile -t -O 1 commands < <(kinds "$verb" | sed "s/^/$verb /") ;;
    esac
    for words in "${commands[@]}"; do
        read -ra command <<<"$words"
        while read -r option; do
            grep -qF -- "\\fB${option//-/\\-}\\fR" "$tmp/gpurt.1" || wrong "the man page lacks $option of $words"
            grep -qE -- "\`$option[ \`]" "$doc" || wrong "docs/options.md lacks $option of $words"
        done < <(options "${command[@]}")
    done
done
while read -r code text; do
    grep -A 2 -x '\.TP' "$tmp/gpurt.1" | grep -A 1 -x "\.B $code" | tail -n 1 | sed 's/\\-/-/g' | grep -qxF -- "$text" ||
        wrong "the man page does not explain exit code $code"
done < <("$gpurt" --help | sed -n '/^Exit codes/,$s/^ *\([0-9]\+\)  \(.*\)/\1 \2/p')
if command -v groff >/dev/null; then
    groff -man -Tutf8 -ww "$tmp/gpurt.1" 2>"$tmp/warnings" >/dev/null || wrong "groff fails"
    [ ! -s "$tmp/warnings" ] || { head -n 5 "$tmp/warnings" >&2 && wrong "the man page has faults of form"; }
fi
exit "$failed"
