#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What ci/package_check.sh runs in its bare system, in the folder with the packages: try.sh PART.

set -euo pipefail
export DEBIAN_FRONTEND=noninteractive HOME=/try/user
fail() {
    echo "try.sh: $*" >&2
    exit 1
}
install() { apt-get -q -y -o Acquire::Retries=3 install --no-install-recommends "$@"; }
root_home=$(getent passwd root | cut -d: -f6)
# All files but apt's own, and those of the user who tries.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /try -o -path "$root_home" -o -path /tmp \
        -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log -o -path /run \
        \) -prune -o -print | sort
}

try_command() { # apt install of the command; doctor, training, evaluation
    apt-get -q -y update
    apt-get -q -y install --no-install-recommends python3 # others of the check want it: not gpurt's
    mkdir -p "$HOME"
    files >/try/before
    dpkg-query -W -f '${Package}\n' >/try/packages-before
    install ./gpurt_*.deb ./libgpurt0_*.deb
    cd "$(mktemp -d)"
    gpurt --version
    gpurt devices --format csv | grep '^ref:0,'
    # No GPU and no driver here: doctor says what is missing, and how to mend it.
    gpurt doctor >doctor || true
    cat doctor
    grep -q 'apt install' doctor || fail "doctor names no remedy"
    gpurt data make regression --samples 512 --features 4 -o d.h5
    gpurt train supervised --data d.h5 --epochs 3 --device ref:0 model=mlp
    gpurt eval --data d.h5 --device ref:0
    [ -s /usr/share/man/man1/gpurt.1.gz ] || fail "no man page"
}

try_others() { # apt install of the other packages; Python, pkg-config, CMake, Open MPI
    local others
    mapfile -t others < <(ls ./*.deb | grep -v '/gpurt_\|/libgpurt0_')
    install "${others[@]}" gcc libc6-dev pkg-config cmake make
    cd "$(mktemp -d)"
    /usr/bin/python3 -c 'import gpurt; print(gpurt.__version__, [d.name for d in gpurt.devices()])'
    cat >main.c <<'C'
#include <gpurt/gpurt.h>
#include <stdio.h>
int main(void) {
    return printf("%s\n", grt_version()) > 0 ? 0 : 1;
}
C
    # shellcheck disable=SC2046  # several words
    cc main.c -o by-pkg-config $(pkg-config --cflags --libs gpurt)
    ./by-pkg-config
    cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(program LANGUAGES C)
find_package(gpurt REQUIRED)
add_executable(by-cmake main.c)
target_link_libraries(by-cmake PRIVATE gpurt::gpurt)
CMAKE
    cmake -B b . >log && cmake --build b >>log || { cat log; fail "find_package(gpurt)"; }
    b/by-cmake
    if [ "$(ls /try | grep -c '^gpurt-mpi_')" -gt 0 ]; then
        install openmpi-bin
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 \
            gpurt train es --env cartpole --device ref:0 --iterations 2 --num-dirs 4 --num-envs 4
    fi
}

try_purge() { # apt purge; nothing is left
    local own
    mapfile -t own < <(dpkg-query -W -f '${Package}\n' | grep gpurt)
    apt-get -q -y purge "${own[@]}"
    files | grep -i gpurt && fail "left behind after apt purge: see above"
    # What came along goes too.
    mapfile -t own < <(dpkg-query -W -f '${Package}\n' | grep -vxFf /try/packages-before)
    apt-get -q -y purge "${own[@]}"
    comm -13 /try/before <(files) | grep -v '^/etc/\|^/var/\|/__pycache__\|^/usr/share/info' >/try/left || true
    [ ! -s /try/left ] || { cat /try/left; fail "files that were not there before"; }
}

try_wheel() { # pip install of the wheel in a fresh environment; training from Python
    # NumPy is Debian's: the wheel itself comes from its file, and nothing from the network.
    install python3-venv python3-numpy
    python3 -m venv --system-site-packages --clear /try/venv
    /try/venv/bin/pip install --no-index --no-deps ./gpurt-*.whl
    cd "$(mktemp -d)"
    /try/venv/bin/python - <<'PYTHON'
import gpurt
import numpy

print(gpurt.__file__, [d.name for d in gpurt.devices()])
assert gpurt.__file__.startswith("/try/venv/")
x = numpy.random.default_rng(0).normal(size=(256, 4))
learner = gpurt.Learner(depth=1, hidden=8, epochs=3, device="ref:0")
print(learner.fit(x, x[:, 0])[-1]["loss"])
PYTHON
}

"try_$1"
