#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Does what README.md and docs/*.md say. Blocks of a page are taken in order, in a folder of the
# page's own:
#
#   sh        run with the built gpurt in PATH and the installed library for pkg-config; every
#             command must succeed
#   python    run, with the package in PYTHONPATH
#   c, yaml   written to the file that the comment in the first line names; a sh block of the page
#             must use it
#   text      what is printed, not run
#
# A comment before a block changes that: <!-- needs a GPU --> and <!-- not run: WHY --> skip it,
# though options must be known and scripts of the tree must exist; <!-- with MODULE --> is for
# python that imports what no distribution has, and is skipped where ci/setup.sh could not get it;
# <!-- with MODULE, or FILE --> then takes that file of the tree, which the block made once;
# <!-- from FILE --> says that the block is a part of that file. In prose, `gpurt ...` and
# `--option` must be known, and `key: value` must be a config. Links to files and headings are
# followed, in every page of the tree.
# Usage: docs.sh SOURCE_DIR BUILD_DIR

set -uo pipefail
source=${1:?usage: docs.sh SOURCE_DIR BUILD_DIR}
build=${2:?usage: docs.sh SOURCE_DIR BUILD_DIR}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python=/usr/bin/python3 # Debian's, which has h5py
tools=$source/build/tools/python/bin/python3

cmake --install "$build" --prefix "$tmp/prefix" >/dev/null || exit 1
pc=$(dirname "$(find "$tmp/prefix" -name gpurt.pc)")
export PATH=$tmp/prefix/bin:$PATH PKG_CONFIG_PATH=$pc LD_LIBRARY_PATH=${pc%/pkgconfig}
export XDG_CONFIG_HOME=$tmp/config PYTHONPATH=$tmp/prefix/share/gpurt/python PYTHONDONTWRITEBYTECODE=1
unset GPURT_DEVICE GPURT_PROFILE
for command in $(gpurt --help | sed -n 's/^  \([a-z]\+\)  .*/\1/p') 'train supervised' 'train simclr' 'train es' \
    'train standing' 'eval knn' 'eval linear' 'eval uav' 'bench data' 'bench mlp' 'bench images' 'bench conv' 'bench ppo' \
    'bench all' 'bench scaling' 'data preview' 'data order' \
    'sweep best'; do
    # shellcheck disable=SC2086  # a verb and a kind
    gpurt $command --help 2>/dev/null
done >"$tmp/all-help"

faults=0
fault() { # PLACE TEXT
    echo "docs.sh: $1: $2" >&2
    faults=$((faults + 1))
}

# split PAGE DIR: the blocks as DIR/LINE.LANGUAGE, what stands in a comment before each as
# DIR/LINE.mark, prose as DIR/prose; faults of form on stdout as LINE:TEXT.
split() {
    awk -v dir="$2" '
        /^```/ && !inside {
            inside = 1; file = sprintf("%s/%04d.%s", dir, NR, substr($0, 4))
            if ($0 !~ /^```(sh|c|yaml|python|text)$/)
                print NR ":a block is sh, c, yaml, python or text, not \"" substr($0, 4) "\""
            printf "%s", "" >file
            if (mark != "") print mark >sprintf("%s/%04d.mark", dir, NR)
            next
        }
        /^```/ { inside = 0; mark = ""; next }
        inside { print >file; next }
        { print >(dir "/prose") }
        /^    +[$]?(gpurt|cmake|cc|ci\/|build\/|GPURT_)/ { print NR ":a command outside of a sh block" }
        /^<!-- .* -->$/ { mark = substr($0, 6, length($0) - 9); next }
        /./ { mark = "" }
        END { if (inside) print NR ":a block without an end" }' "$1"
}

# commands_known PLACE FILE: the options of commands that are not run.
commands_known() {
    local place=$1 line words option
    while read -r line; do
        read -ra words <<<"${line%%#*}"
        case ${words[0]-} in
        ci/*) [ -x "$source/${words[0]}" ] || fault "$place" "no ${words[0]} in the tree" ;;
        gpurt)
            local verb=("${words[1]-}")
            case ${words[1]-} in
            bench | train) case ${words[2]--} in -*) ;; *) verb+=("${words[2]}") ;; esac ;;
            sweep) case ${words[2]--} in status | best | resume | stop) verb+=("${words[2]}") ;; esac ;;
            esac
            gpurt "${verb[@]}" --help >"$tmp/help" 2>&1 || fault "$place" "no gpurt ${verb[*]}"
            for option in "${words[@]}"; do
                case $option in
                --) break ;; # what follows is another program's
                --*) grep -qE -- "^ .*${option%%=*}( |\$)" "$tmp/help" ||
                    fault "$place" "gpurt ${verb[*]} has no option $option" ;;
                esac
            done
            ;;
        esac
    done <"$2"
}

# who_has MODULE: a python that can import it.
who_has() {
    local one
    for one in "$tools" "$python"; do
        if [ -x "$one" ] && "$one" -c "import $1" 2>/dev/null; then
            echo "$one"
            return
        fi
    done
    return 1
}

# block TREE PAGE FILE: one block, in the folder that is current.
block() {
    local tree=$1 place mark='' name module by=$python
    place=$2:$(basename "$3" | sed 's/^0*//; s/[.].*//')
    [ ! -f "${3%.*}.mark" ] || mark=$(cat "${3%.*}.mark")
    case $mark in
    'needs a GPU' | 'not run: '?*)
        skipped+=("$place ($mark)")
        [ "${3##*.}" != sh ] || commands_known "$place" "$3"
        return
        ;;
    'from '*)
        "$python" -c 'import sys; a, b = (open(f).read() for f in sys.argv[1:]); sys.exit(a not in b)' \
            "$3" "$tree/${mark#from }" || fault "$place" "is no part of ${mark#from }"
        return
        ;;
    'with '*)
        module=${mark#with }
        if ! by=$(who_has "${module%%,*}"); then
            skipped+=("$place (no Python here has ${module%%,*})")
            case $mark in
            *', or '*) cp "$tree/${mark#*, or }" . 2>/dev/null || fault "$place" "no file ${mark#*, or }" ;;
            esac
            return
        fi
        ;;
    ?*) fault "$place" "unknown comment '$mark'" ;;
    esac
    case $3 in
    *.text) return ;;
    *.sh) bash -euo pipefail "$3" >"$tmp/out" 2>&1 </dev/null ;;
    *.python) "$by" "$3" >"$tmp/out" 2>&1 ;;
    *.c | *.yaml)
        name=$(sed -nE '1s,^(//|#) ([a-z_0-9]+[.][a-z]+)$,\2,p' "$3")
        cp "$3" "${name:-none}" >"$tmp/out" 2>&1
        [ -n "$name" ] && grep -qwF -- "$name" "${3%/*}"/*.sh || fault "$place" "no sh block uses it"
        return
        ;;
    *) return ;;
    esac || { fault "$place" 'failed; its last lines:' && tail -n 15 "$tmp/out" >&2; }
    ran=$((ran + 1))
}

# links TREE PAGE PROSE
links() {
    local target file
    while read -r target; do
        case $target in http://* | https://*) continue ;; esac
        file=${target%%#*}
        file=$1/${file:+$(dirname "$2")/}${file:-$2}
        if [ ! -e "$file" ]; then
            fault "$2" "a link to $target, which is not there"
        elif [[ $target == *'#'* ]] &&
            ! sed -n 's/^#\+ //p' "$file" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g' |
                grep -qxF -- "${target#*#}"; then
            fault "$2" "a link to $target: no such heading"
        fi
    done < <(grep -oE '\]\([^) ]+\)' "$3" | sed 's/^](//; s/)$//')
}

# spans PROSE PATTERN: what stands between backticks.
spans() { grep -oE "\`$2[^\`]*\`" "$1" | tr -d '\`' | LC_ALL=C sort -u; }

# prose PAGE FILE
prose() {
    local span
    spans "$2" 'gpurt [a-z]' >"$tmp/commands"
    commands_known "$1" "$tmp/commands"
    while read -r span; do
        grep -qE -- "^ .*${span%% *}( |\$)" "$tmp/all-help" || fault "$1" "no command has the option $span"
    done < <(spans "$2" '--[a-z]')
    while read -r span; do
        echo "$span" >"$tmp/span.yaml"
        gpurt train supervised --config "$tmp/span.yaml" --data "$tmp/none.h5" >"$tmp/out" 2>&1
        # A config is read before the data, which are not there.
        [ $? -eq 66 ] || fault "$1" "not a config: $span: $(tail -n 1 "$tmp/out")"
    done < <(spans "$2" '[a-z_]+: ')
}

# judge TREE: every page of it. Fills ran, skipped and faults.
judge() {
    local tree=$1 page dir file form
    faults=0 ran=0 skipped=()
    rm -rf "$tmp/pages"
    while read -r page; do
        dir=$tmp/pages/${page//\//,}
        mkdir -p "$dir/blocks" "$dir/here"
        : >"$dir/blocks/prose"
        while IFS=: read -r file form; do
            case $page in README.md | docs/*) fault "$page:$file" "$form" ;; esac
        done < <(split "$tree/$page" "$dir/blocks")
        links "$tree" "$page" "$dir/blocks/prose"
        case $page in
        README.md | docs/*)
            prose "$page" "$dir/blocks/prose"
            # Pages about files: the device does not matter, and with ref a command takes a tenth.
            case $page in docs/data.md | docs/exchange.md | docs/sweeps.md) export GPURT_DEVICE=ref:0 ;; *) unset GPURT_DEVICE ;; esac
            cd "$dir/here" || exit 1
            for file in "$dir"/blocks/[0-9]*; do
                case $file in *.mark | *'*') ;; *) block "$tree" "$page" "$file" ;; esac
            done
            ;;
        esac
    done < <(cd "$tree" && find . -name '*.md' -not -path './build/*' -not -path './.*' | sed 's|^\./||' | LC_ALL=C sort)
}

# What it is there to find, one fault a page: WORDS are what must be said.
planted() { # WORDS, the page on stdin
    rm -rf "$tmp/tree"
    mkdir -p "$tmp/tree"
    cat >"$tmp/tree/README.md"
    judge "$tmp/tree" 2>"$tmp/said"
    if [ "$faults" -ne 1 ] || ! grep -qF -- "$1" "$tmp/said"; then
        echo "docs.sh: not found: $1; $faults faults" >&2
        cat "$tmp/said" >&2
        missed=1
    fi
}
missed=0
planted 'README.md:2: failed' <<<$'# T\n```sh\ngpurt devices --no-such-option\n```'
planted 'README.md:1: failed' <<<$'```sh\nfalse\ngpurt --version\n```'
planted 'README.md:2: gpurt bench mlp has no option --shapes' <<<$'<!-- needs a GPU -->\n```sh\ngpurt bench mlp --shapes 4\n```'
planted 'no ci/start.sh in the tree' <<<$'<!-- not run: long -->\n```sh\nci/start.sh\n```'
planted 'not ""' <<<$'```\ngpurt devices\n```'
planted 'README.md:3: a command outside of a sh block' <<<$'Run:\n\n    gpurt devices'
planted 'no sh block uses it' <<<$'```c\n// a.c\nint main(void) { return 0; }\n```'
planted "README.md:5: failed" <<<$'```c\n// a.c\nint main(void) { return 3; }\n```\n```sh\ncc a.c -o a\n./a\n```'
planted 'is no part of ../out' <<<$'<!-- from ../out -->\n```c\nint nowhere;\n```'
planted 'README.md:2: failed' <<<$'<!-- with sys -->\n```python\nraise SystemExit(3)\n```'
planted 'no file golden/none' <<<$'<!-- with no_such_module, or golden/none -->\n```python\nx\n```'
planted "unknown comment 'skip'" <<<$'<!-- skip -->\n```text\nx\n```'
planted 'a link to docs/none.md' <<<'[x](docs/none.md)'
planted 'no such heading' <<<$'# One two\n[x](#one-three) [y](#one-two)'
# shellcheck disable=SC2016  # backticks of a page
{
    planted 'no command has the option --fast' <<<'With `--fast N` and `--mem-limit` it is fast.'
    planted 'gpurt eval has no option --quick' <<<'Use `gpurt eval --quick`.'
    planted "no key 'batch_sise'" <<<'Use `batch_sise: 3` or `batch_size: 3`.'
}
[ "$missed" -eq 0 ] || exit 1

start=$SECONDS
judge "$source"
lines=$(wc -l <"$source/README.md")
[ "$lines" -le 220 ] || fault README.md "$lines lines, 220 at most"
for page in "$source"/docs/*.md; do
    grep -qF "(docs/$(basename "$page"))" "$source/README.md" || fault README.md "no link to docs/$(basename "$page")"
done
# The picture can be made again, and shows the commands that its script runs.
commands() { sed -n 's/.*class="p">[$] \(.*\)<.text>/\1/p' "$1"; }
"$source/docs/terminal.sh" "$(command -v gpurt)" "$tmp/picture.svg" || fault docs/terminal.sh "failed"
if [ -z "$(commands "$tmp/picture.svg")" ] ||
    ! diff <(commands "$source/docs/terminal.svg") <(commands "$tmp/picture.svg") >&2; then
    fault docs/terminal.svg "other commands than those of docs/terminal.sh"
fi
# Pictures of episodes: as `gpurt play` writes them, and small.
for picture in "$source"/docs/uav.svg; do
    [ "$(wc -c <"$picture")" -lt 150000 ] || fault "$picture" "150 KB or more"
    "$python" -c 'import sys, xml.etree.ElementTree as t
sys.exit([e.get("class") for e in t.parse(sys.argv[1]).iter()].count("agent") != 8)' "$picture" ||
        fault "$picture" "not eight UAVs, as its command says"
done

[ "${#skipped[@]}" -eq 0 ] || printf 'not run: %s\n' "${skipped[@]}"
echo "docs.sh: $ran blocks run in $((SECONDS - start)) s, ${#skipped[@]} not run, $faults faults"
[ "$faults" -eq 0 ]
