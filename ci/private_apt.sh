# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A private apt, read with `.` after common.sh: packages of another release or another architecture
# from the machine's own mirror, with apt's own signature and hash checks, and nothing changed on
# the system.
#
#   dir/sources.sources   the machine's source entry for its own release, suite and type replaced
#   dir/apt.conf          state, cache, status point into dir; proxies and keys stay the machine's
#   dir/state, dir/cache  what apt downloads
#
# Mirror and keyring come from the machine's configuration, so no host name stands in this tree.

# apt_entries TYPE SUITE ARCH: the machine's entries for its own release, rewritten, as deb822.
# With a SUITE only entries whose suite is exactly the code name count: updates and security live
# under other names. With SUITE "" the machine's own suites stay, security included.
apt_entries() {
    local type=$1 suite=$2 arch=$3 codename files=() f l='' d=''
    # shellcheck disable=SC1091
    codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    eval "$(apt-config shell l Dir::Etc::sourcelist/f d Dir::Etc::sourceparts/d)"
    for f in "$l" "$d"/*.list "$d"/*.sources; do
        [ -r "$f" ] && files+=("$f")
    done
    [ "${#files[@]}" -gt 0 ] || return 0
    awk -v type="$type" -v suite="$suite" -v arch="$arch" -v codename="$codename" '
        # suites_of("bookworm bookworm-updates"): the suites to ask for, "" for none
        function suites_of(list,    n, i, w, keep) {
            n = split(list, w, /[ \t\n]+/)
            for (i = 1; i <= n; i++) {
                if (w[i] == codename && suite != "") return suite
                if (suite == "" && (w[i] == codename || index(w[i], codename "-") == 1))
                    keep = keep " " w[i]
            }
            return keep
        }
        function entry(uris, list, components, signed,    suites) {
            suites = suites_of(list)
            if (suites == "") return
            printf "Types: %s\nURIs: %s\nSuites: %s\n", type, uris, suites
            printf "Components: %s\n", components
            if (arch != "") printf "Architectures: %s\n", arch
            if (signed != "") printf "Signed-By:%s%s\n", signed ~ /^\n/ ? "" : " ", signed
            printf "\n"
        }
        function flush_stanza() {
            if ((" " field["types"] " ") ~ / deb / && field["enabled"] !~ /^(no|false|0)/)
                entry(field["uris"], field["suites"], field["components"], field["signed-by"])
            split("", field); name = ""
        }
        FNR == 1 { flush_stanza() }
        /^[ \t]*#/ { next }
        FILENAME ~ /[.]sources$/ {
            if ($0 ~ /^[ \t]*$/) { flush_stanza(); next }
            if ($0 ~ /^[ \t]/) { field[name] = field[name] "\n" $0; next }   # an inline key
            name = tolower($0); sub(/:.*/, "", name)
            sub(/^[^:]*:[ \t]*/, ""); sub(/[ \t]+$/, ""); field[name] = $0
            next
        }
        { sub(/[ \t]#.*/, "") }
        $1 == "deb" {
            signed = ""
            if (match($0, /\[[^]]*\]/)) {
                option = substr($0, RSTART + 1, RLENGTH - 2)
                if (match(option, /signed-by=[^ \t]+/))
                    signed = substr(option, RSTART + 10, RLENGTH - 10)
                sub(/\[[^]]*\]/, "")
            }
            components = $4
            for (i = 5; i <= NF; i++) components = components " " $i
            entry($2, $3, components, signed)
        }
        END { flush_stanza() }
    ' "${files[@]}"
}

# apt_open DIR TYPE SUITE [ARCH]: makes the private apt; false when the machine has no entry for its
# own release. Afterwards `apt_private DIR arguments...` is apt-get within it.
apt_open() {
    local dir=$1 type=$2 suite=$3 arch=${4:-}
    rm -rf "$dir"
    mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial"
    : >"$dir/status"
    apt_entries "$type" "$suite" "$arch" >"$dir/sources.sources"
    [ -s "$dir/sources.sources" ] || return 1
    # Read with -c, so after the machine's own files: that keeps its proxies and lets #clear drop
    # its hooks, which would clean or refresh the system's caches.
    cat >"$dir/apt.conf" <<END
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
Dir::State "$dir/state";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Dir::Etc::sourcelist "$dir/sources.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Binary::apt-get::APT::Keep-Downloaded-Packages "true";
APT::Keep-Downloaded-Packages "true";
// The folders belong to the caller: apt's own user could not write there.
APT::Sandbox::User "$(id -un)";
END
    if [ -n "$arch" ]; then
        cat >>"$dir/apt.conf" <<END
#clear APT::Architectures;
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
END
    fi
}

apt_private() {
    local dir=$1
    shift
    apt-get -q -y -c "$dir/apt.conf" "$@" </dev/null
}
