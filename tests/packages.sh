# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh: sourced by the README's two commands. need_packages NAME... installs the Debian packages that are missing,
# as root or through sudo, and says which.

say() {
    printf '==> %s\n' "$*"
}

need_packages() {
    missing=
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "These Debian packages, or what your system calls them, are needed:$missing" >&2
        return 1
    fi
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "Run as root, or install by hand:$missing" >&2
            return 1
        fi
        as_root=sudo
    fi
    say "installing$missing"
    # shellcheck disable=SC2086
    { $as_root apt-get -qq update &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $missing; } \
        >"${TMPDIR:-/tmp}/pipesched-apt.log" 2>&1 || {
        cat "${TMPDIR:-/tmp}/pipesched-apt.log" >&2
        return 1
    }
}

BUILD_PACKAGES="gcc libc6-dev cmake ninja-build pkg-config libcjson-dev libglpk-dev libhwloc-dev libexpat1-dev libpopt-dev libmd-dev"
TEST_PACKAGES="libcmocka-dev clang clang-format libclang-rt-dev python3-minimal python3-jsonschema shellcheck mandoc dpkg-dev file locales git"
LONG_PACKAGES="clang-tidy cppcheck gcovr debootstrap"
