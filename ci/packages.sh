# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The packages of ci/packages.txt, read with `.` after common.sh: which there are, which are
# missing, installing them with apt, and the command to give where there is no apt.
#
# A lane is a check that needs tools of its own. Where this distribution has no package of them the
# lane says so and ends with exit status 77, which ctest reports as skipped; where it has, a missing
# tool is an error.

lane_skipped=77

# package_groups [lane]: the names of all groups that are needed, or of those that are lanes.
package_groups() {
    sed -n "s/^# *${1:+$1 }\([a-z]*\):.*/\1/p" "$root/ci/packages.txt"
}

# package_rows MANAGER GROUP...: their rows, without notes, in the column of apt, dnf or pacman.
package_rows() {
    local column
    case $1 in apt) column=1 ;; dnf) column=2 ;; pacman) column=3 ;; esac
    awk -F';' -v column="$column" -v want=" ${*:2} " '
        /^# *(lane )?[a-z]+:/ { group = $0; sub(/^# *(lane )?/, "", group); sub(/:.*/, "", group) }
        /^#/ || !index(want, " " group " ") { next }
        { sub(/#.*/, ""); cell = $column; gsub(/^[ \t]+|[ \t]+$/, "", cell) }
        cell != "" && cell != "-" { print cell }
    ' "$root/ci/packages.txt"
}

# ---- apt ----

# packages_installed PACKAGE..., packages_known PACKAGE...: those that this machine has, and those
# that its distribution has. One call for all: 30 ms and 300 ms.
packages_installed() {
    { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } |
        awk '$1 == "installed" { print $2 }'
}
packages_known() {
    { apt-cache madison "$@" 2>/dev/null || true; } | awk '{ print $1 }'
}

# package_choices: of each row of the input, "a b | c d", the alternative that serves. A row of
# which the distribution has nothing whole stays as it is, with a "!" before it.
package_choices() {
    local rows words installed
    rows=$(cat)
    mapfile -t words < <(tr ' |' '\n\n' <<<"$rows" | sed '/^$/d' | sort -u)
    installed=$(packages_installed "${words[@]}")
    # The distribution is asked for what no installed package serves.
    first_whole "$installed" <<<"$rows" | grep -v '^!' || true
    rows=$(first_whole "$installed" <<<"$rows" | sed -n 's/^! //p')
    [ -z "$rows" ] || first_whole "$installed $(packages_known "${words[@]}")" <<<"$rows"
}

# first_whole PACKAGES: of each row of the input the first alternative that is all among PACKAGES.
first_whole() {
    awk -v have=" ${1//$'\n'/ } " '{
        n = split($0, choice, "|")
        for (i = 1; i <= n; i++) {
            lacks = 0
            for (j = split(choice[i], p, " "); j > 0; j--) lacks += !index(have, " " p[j] " ")
            if (!lacks) { print choice[i]; next }
        }
        print "! " $0
    }'
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# apt_quiet ARGUMENT...: apt-get as root; its output is shown when it fails.
apt_quiet() {
    local log
    log=$(mktemp)
    # A lock wait, because a fresh machine is often still running its own unattended upgrade.
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
        -o Acquire::Retries=3 "$@" >"$log" 2>&1 </dev/null; then
        tail -n 15 "$log" >&2
        die "apt-get $1 failed (whole log: $log)"
    fi
    rm -f "$log"
}

# packages_install PACKAGE...: installs what is missing; touches no network when nothing is.
packages_install() {
    local missing
    mapfile -t missing < <(comm -23 <(printf '%s\n' "$@" | sort -u) \
        <(packages_installed "$@" | sort -u))
    [ "${#missing[@]}" -gt 0 ] || return 0
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
        die "not root and no sudo; as root run: apt-get install ${missing[*]}"
    say "installing ${missing[*]}"
    apt_quiet update
    apt_quiet install --no-install-recommends "${missing[@]}"
}

# apt_groups GROUP...: installs these groups. What only a lane needs and the distribution does not
# have is said and left out.
apt_groups() {
    local group packages=() choice
    # A machine that has never asked its mirror knows no package at all.
    [ -n "$(packages_installed gcc)" ] || [ -n "$(packages_known gcc)" ] || apt_quiet update
    for group in "$@"; do
        while IFS= read -r choice; do
            if [[ $choice == '! '* && " $(package_groups lane | paste -sd' ') " == *" $group "* ]]; then
                say "lane $group will be skipped: this distribution has no package ${choice#! }"
            else
                # shellcheck disable=SC2206  # a list of packages
                packages+=(${choice#! })
            fi
        done < <(package_rows apt "$group" | package_choices)
    done
    packages_install "${packages[@]}"
}

# ---- no apt ----

# other_groups MANAGER GROUP...: ends with the command that installs what is missing, if anything
# is.
other_groups() {
    local manager=$1 all missing=() package install
    mapfile -t all < <(package_rows "$@" | tr ' ' '\n' | awk '!seen[$0]++')
    for package in "${all[@]}"; do
        case $manager in
        dnf) rpm -q --whatprovides "$package" >/dev/null 2>&1 || missing+=("$package") ;;
        pacman) pacman -T "$package" >/dev/null 2>&1 || missing+=("$package") ;;
        esac
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    install='dnf install'
    [ "$manager" = dnf ] || install='pacman -S --needed'
    say "packages are missing; install them as root, then run this again:"
    echo "$install ${missing[*]}" >&2
    exit 1
}

# groups_install GROUP...: with what the machine has. GPURT_SETUP=0 takes everything for granted.
groups_install() {
    [ "${GPURT_SETUP:-1}" != 0 ] || return 0
    if command -v apt-get >/dev/null; then
        apt_groups "$@"
    elif command -v dnf >/dev/null; then
        other_groups dnf "$@"
    elif command -v pacman >/dev/null; then
        other_groups pacman "$@"
    else
        say "no apt-get, dnf or pacman here; install what these would, then run this again with" \
            "GPURT_SETUP=0 in the environment:"
        {
            echo "dnf install $(package_rows dnf "$@" | tr ' ' '\n' | awk '!n[$0]++' | paste -sd' ')"
            echo "pacman -S --needed $(package_rows pacman "$@" | tr ' ' '\n' | awk '!n[$0]++' |
                paste -sd' ')"
        } >&2
        exit 1
    fi
}

# ---- lanes ----

# lane_lacks WHAT PACKAGE...: ends a lane that lacks WHAT, which these packages would bring.
lane_lacks() {
    local what=$1
    shift
    if ! command -v apt-get >/dev/null; then
        say "skipped: $what is not installed"
        exit "$lane_skipped"
    fi
    [ "$(packages_known "$@" | sort -u | wc -l)" -lt $# ] ||
        die "$what is missing: install $* (ci/setup.sh does)"
    say "skipped: $what is missing, and this distribution has no package $*"
    exit "$lane_skipped"
}

# need COMMAND PACKAGE: for checks of a lane.
need() {
    command -v "$1" >/dev/null || lane_lacks "$@"
}

# tool_clang: a clang of the table, else any from 15 on; nothing when there is none.
tool_clang() {
    local name path
    for name in $(package_rows apt clang | grep -oE 'clang-[0-9]+') clang; do
        path=$(command -v "$name") || continue
        [ "$(clang_version "$path")" -ge 15 ] || continue
        echo "$path"
        return
    done
}
clang_version() {
    "$1" --version | sed -n '1s/.*version \([0-9]*\).*/\1/p'
}
