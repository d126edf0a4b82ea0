#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The public interface is runtime/gpurt/: each header stands alone in C11 and C++, libgpurt.so
# exports the functions that they declare, under a symbol version, and nothing else, and programs in
# C and C++ link all of them.
# Usage: exports.sh SOURCE_DIR BUILD_DIR C_COMPILER

set -euo pipefail
source=${1:?usage: exports.sh SOURCE_DIR BUILD_DIR C_COMPILER}
build=${2:?usage: exports.sh SOURCE_DIR BUILD_DIR C_COMPILER}
cc=${3:?usage: exports.sh SOURCE_DIR BUILD_DIR C_COMPILER}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "exports.sh: $*" >&2
    exit 1
}
strict=(-Wall -Wextra -pedantic -Werror -I"$source/runtime")
read -ra sanitize <<<"$(sed -n 's/^GPURT_SANITIZE:BOOL=ON$/-fsanitize=address,undefined/p' "$build/CMakeCache.txt")"
read -ra cxxs <<<"$(for cxx in g++ clang++; do command -v $cxx || true; done | tr '\n' ' ')"
[ "${#cxxs[@]}" -gt 0 ] || fail "neither g++ nor clang++ is here: install one"

# ---- every header alone, and twice ----

cd "$source/runtime"
headers=(gpurt/*.h)
[ "${#headers[@]}" -gt 20 ] || fail "only ${#headers[@]} headers in $PWD/gpurt"
for header in "${headers[@]}"; do
    printf '#include "%s"\n#include "%s"\nextern int unused;\n' "$header" "$header" >"$tmp/alone.c"
    "$cc" -std=c11 "${strict[@]}" -fsyntax-only "$tmp/alone.c" || fail "$header does not stand alone in C11"
    for cxx in "${cxxs[@]}"; do
        "$cxx" -std=c++17 "${strict[@]}" -x c++ -fsyntax-only "$tmp/alone.c" ||
            fail "$header does not stand alone in C++17 with $cxx"
    done
done
printf '#include <%s>\n' "${headers[@]}" >"$tmp/all.h"

# ---- what is declared is what is exported ----

# Of the preprocessed text: bodies in braces go, then each declaration's name stands before its
# first parenthesis.
"$cc" -std=c11 -E -P -I"$source/runtime" -x c "$tmp/all.h" | tr '\n' ' ' |
    sed -E ':a; s/\{[^{}]*\}//; ta; s/__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\)//g' | tr ';' '\n' |
    grep -v typedef | sed -nE 's/^[^(]*\b(grt_[a-z0-9_]+) *\(.*/\1/p' | LC_ALL=C sort -u >"$tmp/declared"
nm -D --defined-only --with-symbol-versions "$build/libgpurt.so" | awk '$2 != "A" { print $3 }' |
    LC_ALL=C sort >"$tmp/versioned"
sed 's/@.*//' "$tmp/versioned" | LC_ALL=C sort -u >"$tmp/exported"
[ "$(wc -l <"$tmp/declared")" -gt 200 ] || fail "only $(wc -l <"$tmp/declared") functions were read from the headers"
bad=$(comm -23 "$tmp/declared" "$tmp/exported" | tr '\n' ' ')
[ -z "$bad" ] || fail "declared in runtime/gpurt/ and not exported (GRT_API is missing, or the function): $bad"
bad=$(comm -13 "$tmp/declared" "$tmp/exported" | tr '\n' ' ')
[ -z "$bad" ] || fail "exported and not declared in runtime/gpurt/: $bad"
bad=$(grep -vE '@@GPURT_[0-9]+\.[0-9]+$' "$tmp/versioned" | tr '\n' ' ' || true)
[ -z "$bad" ] || fail "exported without a symbol version: $bad"

# ---- a program that links every function, and uses every desc macro ----

mapfile -t macros < <(sed -nE 's/^#define (grt_[a-z0-9_]+)\(\.\.\.\).*/\1/p' "${headers[@]}" | LC_ALL=C sort -u)
[ "${#macros[@]}" -gt 15 ] || fail "only ${#macros[@]} desc macros were found"
{
    printf '#include <stdio.h>\n'
    cat "$tmp/all.h"
    printf 'typedef void any_fn(void);\nstatic any_fn *const all[] = {\n'
    sed 's/.*/    (any_fn *)&,/' "$tmp/declared"
    printf '};\n'
    cat <<'BODY'
static const void *seen;
int main(void) {
    unsigned linked = 0;
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
        linked += all[i] != NULL;
    }
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(BACKEND "ref"));
    struct grt_plan *plan = grt_plan_create(dev);
    struct grt_tensor *sky =
        grt_plan_tensor(plan, grt_tensor_desc(LABEL "sky", GROUP "colours", DTYPE GRT_F32, SHAPE {777}));
    struct grt_graph *graph = grt_plan_alloc(plan) ? grt_graph_create(dev, "fill") : NULL;
    float last = 0;
    grt_op_fill(graph, sky, 4.5f);
    bool ok = grt_graph_finish(graph) && grt_buf_read(sky->range.buf, 776 * 4, &last, 4);
    grt_graph_destroy(&graph);
    grt_plan_destroy(&plan);
    grt_dev_destroy(&dev);
#ifdef __cplusplus
BODY
    # In C an empty list of initializers is C23's.
    sed 's/.*/    seen = &();/' < <(printf '%s\n' "${macros[@]}")
    printf '#endif\n    (void)seen;\n    printf("%%u\\n", linked);\n    return ok && last == 4.5f ? 0 : 1;\n}\n'
} >"$tmp/program.c"
names=(-DBACKEND=.backend= -DLABEL=.label= -DGROUP=.group= -DDTYPE=.dtype= -DSHAPE=.shape=)
places=(-DBACKEND= -DLABEL= -DGROUP= -DDTYPE= -DSHAPE=)
functions=$(wc -l <"$tmp/declared")

# try COMPILER FLAG...: builds the program and runs it. A cast between types of functions, which the
# table is, and members left out are meant.
try() {
    "$@" "${sanitize[@]}" -Wno-cast-function-type -Wno-missing-field-initializers -I"$source/runtime" \
        "$tmp/program.c" -o "$tmp/program" -L"$build" -lgpurt -Wl,-rpath,"$build" || fail "does not build: $*"
    [ "$("$tmp/program")" = "$functions" ] || fail "$*: the program does not run, or links fewer than $functions functions"
}
try "$cc" -std=c11 "${strict[@]}" "${names[@]}"
for cxx in "${cxxs[@]}"; do
    # Members by name are part of C++20, and an extension of both compilers before; by place they
    # are C++17.
    try "$cxx" -x c++ -std=c++17 -Wall -Wextra -Werror -Wno-c++20-designator "${names[@]}"
    try "$cxx" -x c++ -std=c++17 "${strict[@]}" "${places[@]}"
    try "$cxx" -x c++ -std=c++20 "${strict[@]}" "${names[@]}"
done
echo "exports.sh: ${#headers[@]} headers, $functions functions, ${#macros[@]} desc macros, $cc ${cxxs[*]}"
