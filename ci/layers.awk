# SPDX-License-Identifier: Apache-2.0
#
# The layer check of ci/lint.sh. Input: ci/layers.txt (the table), then the list of all files of
# the tree, then every source file to judge. An #include is resolved the way the compiler would:
# beside the including file, then from the root, then anywhere (an -I folder); what is found nowhere
# is an outside header. Layers that must not know a GPU API (apps, runtime) are also searched for
# its type and function names, with comments and strings taken out first: the word Vulkan in
# a sentence is no dependency.

function bad(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; errors++ }

function dir_of(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/) - 1) : "." }

# "runtime/../backends/backend.h" -> "backends/backend.h"
function plain(path) {
    gsub(/\/\.\//, "/", path); sub(/^\.\//, "", path)
    while (sub(/[^\/]+\/\.\.\//, "", path)) ;
    return path
}

function layer_of(path,    d) {
    for (d = path; d ~ /\//; ) { d = dir_of(d); if (d in rule) return d }
    return ""
}

function resolve(from, name,    p) {
    p = plain(dir_of(from) "/" name)
    if (p in exists) return p
    if (name in exists) return name
    return (name in by_tail) ? by_tail[name] : ""
}

function matches(name, pattern) {
    if (pattern == "libc") return name in libc
    gsub(/[.]/, "[.]", pattern); gsub(/\*/, ".*", pattern)
    return name ~ ("^" pattern "$")
}

function allowed(layer, target, name,    n, w, i) {
    n = split(rule[layer], w, " ")
    for (i = 1; i <= n; i++) {
        if (w[i] ~ /^</) {
            if (target == "" && matches(name, substr(w[i], 2, length(w[i]) - 2))) return 1
        } else if (target == w[i] || (target != "" && index(target, w[i] "/") == 1)) {
            return 1
        }
    }
    return 0
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
    api_name = "(^|[^A-Za-z0-9_])(Vk[A-Z]|vk[A-Z]|VK_[A-Z]|volk[A-Z]|cl_[a-z]|cl[A-Z]|CL_[A-Z])" \
        "[A-Za-z0-9_]*"
}

FNR == 1 {
    part++
    in_comment = 0
    layer = part > 2 ? layer_of(FILENAME) : ""
    files += layer != ""
}

part == 1 {
    sub(/#.*/, "")
    if (NF) { key = $1; $1 = ""; rule[key] = $0 }
    next
}

part == 2 {
    exists[$0] = 1
    for (tail = $0; tail ~ /\//; ) { sub(/^[^\/]*\//, "", tail); by_tail[tail] = $0 }
    next
}

layer == "" { nextfile }

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    name = $0; sub(/^[^"<]*["<]/, "", name); sub(/[">].*/, "", name)
    includes++
    # Our own header in angle brackets is ours all the same, unless the C library has that name.
    angled = $0 ~ /include[ \t]*</
    target = angled && name in libc ? "" : resolve(FILENAME, name)
    if (target != "" && layer_of(target) == layer) next
    if (!allowed(layer, target, name)) {
        found = target == "" || target == name ? "" : " (" target ")"
        bad(layer "/ must not include " name found "; ci/layers.txt lists what it may")
    }
    next
}

layer == "apps" || layer == "runtime" {
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
    printf "layers: %d files, %d includes, %d wrong\n", files, includes, errors
    exit errors > 0
}
