#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# chroot.sh: both README commands in a bare Debian 12, made by debootstrap from this machine's own package source. Needs
# root. The tree under test is the last commit. CHROOT names the folder to use (default build/chroot); it is removed.
set -eu
cd "$(dirname "$0")/.."
. tests/packages.sh

[ "$(id -u)" -eq 0 ] || { echo "chroot.sh: debootstrap needs root" >&2; exit 77; }
need_packages debootstrap git
mkdir -p build/log
root=${CHROOT:-$PWD/build/chroot}
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' 2>/dev/null | head -n 1)
[ -n "$mirror" ] || mirror=$(sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list | head -n 1)
[ -n "$mirror" ] || { echo "chroot.sh: no package source found" >&2; exit 1; }

clean_up() {
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root"
}
trap clean_up EXIT
clean_up

say "debootstrap into ${root#"$PWD"/}"
debootstrap --variant=minbase bookworm "$root" "$mirror" >build/log/debootstrap.log 2>&1 || {
    tail -n 20 build/log/debootstrap.log >&2
    exit 1
}
# The way to the packages, as on this machine.
for file in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/resolv.conf /etc/hosts; do
    [ ! -e "$file" ] || cp -rL "$file" "$root$(dirname "$file")/" 2>/dev/null || true
done
mount -t proc proc "$root/proc" 2>/dev/null || true
mkdir -p "$root/pipesched"
git archive HEAD | tar -x -C "$root/pipesched"

# An empty environment but for proxies, in case the packages come through one.
set -- PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
for name in http_proxy https_proxy ftp_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    eval "value=\${$name:-}"
    # shellcheck disable=SC2154
    [ -z "$value" ] || set -- "$@" "$name=$value"
done

for command in 'sh docs/quickstart.sh' 'sh tests/run'; do
    say "in the chroot: $command"
    start=$(date +%s)
    chroot "$root" env -i "$@" sh -c "cd /pipesched && $command" \
        >build/log/chroot.log 2>&1 || {
        tail -n 60 build/log/chroot.log >&2
        say "failed in the chroot: $command"
        exit 1
    }
    tail -n 4 build/log/chroot.log
    say "passed in the chroot in $(($(date +%s) - start)) s: $command"
done
