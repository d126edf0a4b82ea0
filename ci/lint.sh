#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the sources without running them.
# Usage: ci/lint.sh [--changed] [--any-version] [--build DIR] [CHECK...]
#
#   format     clang-format, nothing rewritten (to rewrite: clang-format -i FILE)
#   width      comments and kernels have at most 100 columns; clang-format sees to C
#   layers     who may include whom, ci/layers.txt
#   words      no package host and no path of one machine in the tree
#   names      files that comments name are there
#   heads      kernels in cl/ that write their own heads take what the OpenCL backend gives
#              (cl/dialect.h); those for hardware that is not here are built nowhere else in the
#              tests. And the host tells a kernel its parameters by the struct that the kernel has
#              (shaders/host.h), not by one like it
#   cppcheck   over the compile database of DIR (default build/release)
#   tidy       clang-tidy over the same, checks in .clang-tidy
#
# Without CHECK all of them. --changed limits tidy to files that differ from the last commit, for
# work at the desk; the continuous check runs the whole. Every check says what it looked at, and all
# run even if one fails.
#
# One version of each tool judges, Debian 12's: where lines break, and what is found, changes with
# every release. Where the distribution does not have it the check is skipped, and says so;
# --any-version takes what is there. Where it has it, a missing tool is an error. Exit status 77
# when all checks were skipped.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"

all='format width layers words names heads cppcheck tidy'
checks=()
changed=0
any=0
build=$root/build/release
while [ $# -gt 0 ]; do
    case $1 in
    --changed) changed=1 ;;
    --any-version) any=1 ;;
    --build)
        [ $# -gt 1 ] || die "--build wants a folder"
        build=$(realpath -m "$2")
        shift
        ;;
    *)
        case " $all " in
        *" $1 "*) checks+=("$1") ;;
        *) die "unknown check '$1'; known: $all" ;;
        esac
        ;;
    esac
    shift
done
[ "${#checks[@]}" -gt 0 ] || read -ra checks <<<"$all"

cd "$root"
command -v git >/dev/null || die "git is missing: install git (ci/setup.sh does)"
git rev-parse --git-dir >/dev/null 2>&1 || die "not a git checkout: git's list of files is needed"

# files PATTERN: what is, or would be, in the repository, new files included; only what exists.
files() {
    git ls-files --cached --others --exclude-standard | LC_ALL=C sort -u | grep -E -- "$1" |
        while IFS= read -r f; do [ ! -f "$f" ] || printf '%s\n' "$f"; done
}

# The preludes of the other two readings end in .h but are GLSL and OpenCL C, no C.
c_files() { files '\.[ch]$' | grep -vE '^(cl/|shaders/dialect\.h$)' || true; }

# Ends a check that wants a compile database where there is none.
need_database() {
    [ -f "$build/compile_commands.json" ] ||
        die "no $build/compile_commands.json: run ci/build.sh, or name a build tree with --build"
}

# Sources in it that are in the repository: generated files are not ours to judge.
database() {
    comm -12 <(c_files) <(sed -n "s|^ *\"file\": \"$root/\(.*\)\".*|\1|p" \
        "$build/compile_commands.json" | LC_ALL=C sort -u)
}

# judge NAME VERSION: the command to call, NAME of that version. Ends the check where there is none.
judge() {
    local command version
    for command in "$1-$2" "$1"; do
        version=$("$command" --version 2>/dev/null | grep -m 1 -oE '[0-9]+([.][0-9]+)*' | sed -n 1p) || continue
        if [ "$any" -eq 1 ] || [[ $version. == "$2".* ]]; then
            echo "$command"
            return
        fi
    done
    [ -z "$version" ] || [ "$1" != cppcheck ] || {
        say "skipped: $1 $version is here, and $2 judges; --any-version takes this one"
        exit "$lane_skipped"
    }
    lane_lacks "$1 $2" "$1$([ "$1" = cppcheck ] || echo "-$2")"
}

check_format() {
    local list format
    format=$(judge clang-format 14)
    mapfile -t list < <(c_files)
    say "format: ${#list[@]} files"
    [ "${#list[@]}" -gt 0 ] || return 0
    # One line per file with its first place; clang-format itself would print three per place.
    "$format" --style=file --dry-run -Werror "${list[@]}" 2>&1 | awk -F: '
        / error: /  { if (!count[$1]++) first[$1] = $2 }
        !/ error: / && /^(error|[^ ]+: error)/ { print; other = 1 }
        END {
            for (f in count) {
                printf "%s:%d: not formatted in %d places; ", f, first[f], count[f]
                printf "run clang-format -i %s\n", f
            }
            for (f in count) exit 1
            exit other
        }' | LC_ALL=C sort
}

# Lines that are a comment, and in C those that end in one. Kernels and the preludes of their
# readings, which clang-format does not see, whole.
check_width() {
    local list
    mapfile -t list < <(files '[.](c|h|k|cc|sh|py|awk|cmake)$|CMakeLists[.]txt$' | grep -v '^tests/golden/')
    say "width: ${#list[@]} files"
    [ "${#list[@]}" -gt 0 ] || return 0
    awk '
        length($0) <= 100 { next }
        FILENAME ~ /[.]k$|^(cl|shaders)\/dialect[.]h$/ {
            printf "%s:%d: reaches column %d; 100 is the last\n", FILENAME, FNR, length($0)
            bad = 1
            next
        }
        FILENAME ~ /[.](c|h|cc)$/ ? /(^|[^:"])\/\/ / : /^[ \t]*#/ {
            printf "%s:%d: a comment reaches column %d; 100 is the last\n", FILENAME, FNR, length($0)
            bad = 1
        }
        END { exit bad }' "${list[@]}"
}

check_layers() {
    local list objects
    mapfile -t list < <(c_files; files '\.k$' || true)
    [ "${#list[@]}" -gt 0 ] || { say "layers: 0 files" && return 0; }
    objects=$build/CMakeFiles/gpurt_objects.dir
    [ -d "$objects" ] || die "no $objects: run ci/build.sh, or name a build tree with --build"
    find "$objects" -name '*.c.o' -exec nm -A --format=bsd {} + |
        awk -f ci/layers.awk ci/layers.txt <(files .) - "${list[@]}" | sed "s|^layers:|$me: layers:|" >&2
}

# The patterns are spelled with brackets so that they do not find themselves.
check_words() {
    local list hosts paths
    hosts='(deb|ftp|cdn|security|archive|snapshot|ports)[a-z.-]*[.](debian|ubuntu)[.](org|com|net)'
    hosts="$hosts|pypi[.]org|python[h]osted|npm[j]s|crates[.]io|docker[.]io|ghcr[.]io|gcr[.]io"
    hosts="$hosts|[.]pkg[.]dev|quay[.]io|conda[.]anaconda|artifact[o]ry"
    paths='(^|[^A-Za-z0-9_.$}/-])/([w]ork|[h]ome|[r]oot|[U]sers)/[A-Za-z0-9_.]'
    mapfile -t list < <(files . | grep -v '^LICENSE$')
    say "words: ${#list[@]} files"
    [ "${#list[@]}" -gt 0 ] || return 0
    local rc=0
    grep -nIE "$hosts" "${list[@]}" &&
        say "words: package hosts above; derive them from the machine's configuration" && rc=1
    grep -nIE "$paths" "${list[@]}" &&
        say "words: paths of one machine above; make them relative to the checkout" && rc=1
    return $rc
}

# A comment's NAME.c, .h, .k, .sh, .py, .awk or .cmake is the end of a path in the tree. Passed
# over: patterns (name.k, NAME.k, *), headers that a system has, and members of structs (one letter
# and .k).
check_names() {
    local list
    mapfile -t list < <(files '[.](c|h|k|cc|sh|py|awk|cmake)$|CMakeLists[.]txt$')
    say "names: ${#list[@]} files"
    [ "${#list[@]}" -gt 0 ] || return 0
    awk '
        FNR == 1 { part++; script = FILENAME !~ /[.](c|h|k|cc)$/ }
        part == 1 { n = split($0, w, "/"); end = w[n]; there[end]
            for (i = n - 1; i > 0; i--) { end = w[i] "/" end; there[end] }
            next }
        {
            line = $0
            if (script) { if (!sub(/^[ \t]*#[ \t]/, "", line)) next }
            else if (!sub(/^(.*[^:])?\/\/[ \t]/, "", line)) next
            while (match(line, /[A-Za-z0-9_.$\/*-]*[A-Za-z0-9_*-][.](c|h|k|sh|py|awk|cmake)([^A-Za-z0-9_(.*-]|[.]?$|[.] )/)) {
                name = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
                sub(/[^A-Za-z0-9_]+$/, "", name)
                while (sub(/^[.][.]?\//, "", name)) ;
                if (name in there || name ~ /[*$A-Z]|[.][.]|^\/|^[a-z][.]|(^|\/)(name|user|folder)[.\/]|^(cblas|hello|libc|shape)[.]/) continue
                printf "%s:%d: names %s, which is not in the tree\n", FILENAME, FNR, name; bad = 1
            }
        }
        END { exit bad }' <(files .) "${list[@]}"
}

check_heads() {
    local list rc=0
    mapfile -t list < <(files '^cl/.*[.]k$')
    say "heads: ${#list[@]} files"
    grep -nE '^(kernel .*)?void [A-Za-z_0-9]+[(]' "${list[@]}" | grep -vE '[(]ARGS[(]' &&
        say "heads: kernels above must take ARGS(args, params) and begin with BINDINGS(args)" && rc=1
    grep -lE '[(]ARGS[(]' "${list[@]}" | xargs grep -LE '^    BINDINGS[(]' | grep . &&
        say "heads: no BINDINGS(args) in the files above" && rc=1
    mapfile -t list < <(files '^runtime/.*[.][ch]$')
    grep -nE '^ *[}] (const )?params( =|;)|uint32_t params\[' "${list[@]}" &&
        say "heads: parameters above must be structs of a *_params.k, which kernel and host read" && rc=1
    return $rc
}

check_cppcheck() {
    local list filters=() f cppcheck
    need_database
    cppcheck=$(judge cppcheck 2.10)
    mapfile -t list < <(database)
    say "cppcheck: ${#list[@]} files"
    [ "${#list[@]}" -gt 0 ] || return 0
    for f in "${list[@]}"; do filters+=("--file-filter=$root/$f"); done
    # ctunullpointer: a made function of a test has the name of one that other tests call with NULL.
    # uninitvar: the robot takes one substep at least.
    # The build dir remembers what was checked, by what the preprocessor makes of it and by the
    # options: a second run looks only at files that changed. A new build tree begins with what
    # others have checked, wherever they lie: no option may name the place of the checkout.
    local memory=$build/lint/cppcheck kept=${XDG_CACHE_HOME:-$HOME/.cache}/gpurt-build/cppcheck
    mkdir -p "$memory" "$kept"
    [ -e "$memory/files.txt" ] || cp -r "$kept/." "$memory"
    "$cppcheck" --project="$build/compile_commands.json" "${filters[@]}" --std=c11 --quiet \
        --enable=warning,portability --inline-suppr --error-exitcode=1 \
        --suppress=missingIncludeSystem --suppress='*:build/*' --suppress='*:/usr/include/*' \
        --suppress='ctunullpointer:tests/*' --suppress='uninitvar:*/env/standing_body.k' \
        --cppcheck-build-dir="$memory" -j "$CMAKE_BUILD_PARALLEL_LEVEL" \
        --relative-paths="$root" --template='{file}:{line}: {severity}: {message} [{id}]'
    cp -r "$memory/." "$kept"
}

check_tidy() {
    local list
    need_database
    tidy=$(judge clang-tidy 14)
    mapfile -t list < <(database)
    if [ "$changed" -eq 1 ]; then
        mapfile -t list < <(comm -12 <(printf '%s\n' "${list[@]}") \
            <({ git diff --name-only HEAD 2>/dev/null || true
                git ls-files --others --exclude-standard; } | LC_ALL=C sort -u))
    fi
    say "tidy: ${#list[@]} files"
    [ "${#list[@]}" -gt 0 ] || return 0
    # One file per process, so the cores stay busy to the end.
    export root build tidy tidy_cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpurt-build/tidy
    tidy_tool=$("$tidy" --version | cat - .clang-tidy)
    export tidy_tool
    export -f tidy_one
    mkdir -p "$tidy_cache"
    printf '%s\0' "${list[@]}" |
        xargs -0 -n 1 -P "$CMAKE_BUILD_PARALLEL_LEVEL" bash -c 'tidy_one "$0"' 2>&1 |
        sed -E '/^[0-9]+ warnings? (generated|treated as errors?)/d'
}

# tidy_one FILE: judges a file once. What was found well is remembered by what the compiler sees of
# it and by the text itself, for comments can silence a finding: 3 s become 0.1 s.
tidy_one() {
    local compile key
    compile=$(awk -v file="/$1\"" '/"command":/ { line = $0 }
        /"file":/ && index($0, file) { sub(/^ *"command": "/, "", line); sub(/",$/, "", line)
            gsub(/\\"/, "\"", line); gsub(/\\\\/, "\\", line); print line; exit }' "$build/compile_commands.json")
    key=$({ printf '%s\n' "$tidy_tool"; cat "$1"
        cd "$build" && sh -c "${compile%% -o *} -E -P $root/$1" 2>/dev/null || date +%N; } | sha256sum)
    key=${key%% *}
    [ ! -e "$tidy_cache/$key" ] || return 0
    # The analyzer takes 9 of 10 seconds. Its parts for other languages find nothing in C and take a
    # seventh of them. It follows cmocka's assertions as if tests went on behind them.
    local none='-clang-analyzer-' no
    no="${none}cplusplus*,${none}optin.cplusplus*,${none}osx*,${none}optin.osx*,${none}webkit*,${none}fuchsia*,${none}nullability*"
    case $1 in tests/*) no="${none}*" ;; esac
    # The database holds gcc's options: a warning that clang does not know is no finding.
    "$tidy" -p "$build" --quiet "--checks=$no" --extra-arg=-Wno-unknown-warning-option "$1" || return 1
    touch "$tidy_cache/$key"
}

failed=()
skipped=()
for check in "${checks[@]}"; do
    # In a subshell with -e on: a condition would switch -e off inside the check.
    set +e
    (set -e; "check_$check")
    rc=$?
    set -e
    case $rc in
    0) ;;
    "$lane_skipped") skipped+=("$check") ;;
    *) failed+=("$check") ;;
    esac
done
[ "${#failed[@]}" -eq 0 ] || die "failed: ${failed[*]}"
[ "${#skipped[@]}" -lt "${#checks[@]}" ] || exit "$lane_skipped"
say "all well: ${checks[*]}${skipped[*]:+, but skipped: ${skipped[*]}}"
