# SPDX-License-Identifier: Apache-2.0
#
# The layer check of ci/lint.sh. Input: ci/layers.txt (the table), the list of all files of the
# tree, the symbols of the objects as `nm -A` prints them (may be empty), then every source file to
# judge.
#
# An #include is resolved as the compiler does it: beside the including file, then in each -I
# folder. What is found nowhere is an outside header. Folders that have no business with a GPU API
# are searched for its type and function names, without comments and strings: the word Vulkan in a
# sentence is no dependency.

function bad(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; errors++ }

function dir_of(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/) - 1) : "." }

# "runtime/../backends/backend.h" -> "backends/backend.h"
function plain(path) {
    gsub(/\/\.\//, "/", path); sub(/^\.\//, "", path)
    while (sub(/[^\/]+\/\.\.\//, "", path)) ;
    return path
}

function resolve(from, name,    p, i) {
    p = plain(dir_of(from) "/" name)
    if (p in exists) return p
    for (i = 1; i <= roots; i++) if (plain(root[i] name) in exists) return plain(root[i] name)
    return ""
}

function matches(name, pattern) {
    if (pattern == "libc") return name in libc
    gsub(/[.]/, "[.]", pattern); gsub(/\*/, ".*", pattern)
    return name ~ ("^" pattern "$")
}

# Whether the folder may include the file, or the outside header `name`.
function allowed(layer, target, name,    n, w, i) {
    n = split(rule[layer], w, " ")
    for (i = 1; i <= n; i++) {
        if (w[i] ~ /^</) {
            if (target == "" && matches(name, substr(w[i], 2, length(w[i]) - 2))) return 1
        } else if (target != "" && (w[i] == "*" || target == w[i] || dir_of(target) == w[i])) {
            return 1
        }
    }
    return 0
}

# "DIR/CMakeFiles/gpurt_objects.dir/runtime/nn/layers/linear.c.o" -> "runtime/nn/layers/linear.c"
function source_of(object) {
    sub(/^.*gpurt_objects[.]dir\//, "", object); sub(/[.]o$/, "", object)
    return object
}

BEGIN {
    n = split("assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp " \
        "signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string " \
        "tgmath threads time uchar wchar wctype dirent dlfcn fcntl getopt ftw glob libgen poll " \
        "pthread pwd sched semaphore spawn strings ucontext unistd link endian fnmatch termios " \
        "sys/file sys/ioctl sys/mman sys/resource sys/stat sys/statvfs sys/time sys/types " \
        "sys/uio sys/utsname sys/wait sys/syscall sys/prctl sys/random sys/socket sys/un " \
        "netinet/in arpa/inet netdb", w, " ")
    for (i = 1; i <= n; i++) libc[w[i] ".h"] = 1
    roots = split("./ runtime/ apps/ tests/ shaders/ cl/", root, " ")
    api_name = "(^|[^A-Za-z0-9_])(Vk[A-Z]|vk[A-Z]|VK_[A-Z]|volk[A-Z]|cl_[a-z]|cl[A-Z]|CL_[A-Z])" \
        "[A-Za-z0-9_]*"
}

FNR == 1 {
    part++
    in_comment = 0
    layer = ""
    if (part > 3) {
        layer = dir_of(FILENAME)
        files++
        if (!(layer in rule)) { bad(layer "/ has no row in ci/layers.txt"); nextfile }
        has_api = FILENAME !~ /[.][ch]$/ || rule[layer] ~ /<(vulkan|CL)\/\*>|<\*>/
    }
}

part == 1 {
    sub(/#.*/, "")
    if (NF) { key = $1; $1 = ""; rule[key] = $0 " "; height[key] = ++rows }
    next
}

part == 2 { exists[$0] = 1; next }

# FILE:[VALUE] TYPE NAME
part == 3 {
    object = $1; sub(/:[0-9a-f]*$/, "", object)
    from = source_of(object)
    if (!(from in exists)) next         # made by the build, or of a source that is gone
    if ($(NF - 1) == "U") takes[from, $NF] = 1
    else if ($(NF - 1) ~ /^[A-TV-Z]$/) home[$NF] = from
    next
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    name = $0; sub(/^[^"<]*["<]/, "", name); sub(/[">].*/, "", name)
    includes++
    # Our own header in angle brackets is ours all the same, unless the C library has that name.
    angled = $0 ~ /include[ \t]*</
    target = angled && name in libc ? "" : resolve(FILENAME, name)
    if (target != "" && dir_of(target) == layer) next
    if (!allowed(layer, target, name)) {
        found = target == "" || target == name ? "" : " (" target ")"
        bad(layer "/ must not include " name found "; ci/layers.txt lists what it may")
    }
    next
}

!has_api {
    line = $0
    if (in_comment) {
        if (!match(line, /\*\//)) next
        line = substr(line, RSTART + 2); in_comment = 0
    }
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    sub(/\/\/.*/, "", line)
    while (match(line, /\/\*([^*]|\*+[^*\/])*\*+\//))
        line = substr(line, 1, RSTART - 1) " " substr(line, RSTART + RLENGTH)
    if (match(line, /\/\*/)) { line = substr(line, 1, RSTART - 1); in_comment = 1 }
    if (match(line, api_name)) {
        word = substr(line, RSTART, RLENGTH); sub(/^[^A-Za-z0-9_]/, "", word)
        bad(layer "/ must not name " word ": GPU API types stay in backends/")
    }
}

END {
    for (pair in takes) {
        split(pair, w, SUBSEP)
        if (!(w[2] in home)) continue
        calls++
        a = dir_of(w[1]); b = dir_of(home[w[2]])
        if (a != b && height[b] >= height[a]) {
            printf "%s: must not use %s of %s: %s/ stands above %s/ in ci/layers.txt\n", w[1], w[2], home[w[2]], b, a
            errors++
        }
    }
    printf "layers: %d files, %d includes, %d symbols, %d wrong\n", files, includes, calls, errors
    exit errors > 0
}
