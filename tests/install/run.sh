#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh BUILD VERSION CC: a staged install works by itself: the program finds its built-ins far from the sources, another
# program builds against the library with pkg-config alone, and the packages hold the same files.
set -eu
build=$1
version=$2
cc=$3
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

cmake --install "$build" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/moved" # nothing may remember where it was installed
cd "$scratch"
moved/bin/pipesched --version | grep -qx "pipesched $version" || fail "the installed program does not tell version $version"
moved/bin/pipesched plan gpt2 1x8xH100-SXM5-80GB --global-batch-size 64 --seq-length 1024 -q -o plan.json
moved/bin/pipesched check plan.json >/dev/null

pc=$(find moved -name pipesched.pc)
export PKG_CONFIG_PATH="${pc%/*}"
[ "$(pkg-config --modversion pipesched)" = "$version" ] || fail "pkg-config does not tell version $version"
# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -Werror -o consumer "$here/consumer.c" $(pkg-config --static --cflags --libs pipesched)
./consumer | grep -qx "$version: bottleneck 11000000 ns" || fail "the consumer got another answer"

for file in bin/pipesched share/man/man1/pipesched.1 share/doc/pipesched/README.md share/doc/pipesched/LICENSE \
    share/pipesched/configs/models/gpt2.json share/pipesched/schema/plan-v1.json include/pipesched/plan.h; do
    [ -s "moved/$file" ] || fail "not installed: $file"
done

# The packages, from a copy of the list of files, so that tests side by side do not share an output folder.
cpack --config "$build/CPackConfig.cmake" -B "$scratch/packages" >"$scratch/cpack.log" 2>&1 || {
    cat "$scratch/cpack.log" >&2
    exit 1
}
runtime=$(find packages -maxdepth 1 -name 'pipesched_*.deb')
dev=$(find packages -maxdepth 1 -name 'libpipesched-dev_*.deb')
dpkg-deb -c "$runtime" | grep -q ' ./usr/bin/pipesched$' || fail "no program in the package"
dpkg-deb -c "$dev" | grep -q '/libpipesched.a$' || fail "no library in the package"
dpkg-deb -f "$runtime" Depends | grep -q libglpk || fail "the package does not depend on the libraries it uses"
dpkg-deb -x "$runtime" unpacked
unpacked/usr/bin/pipesched show --list | grep -q llama-3.1-70b || fail "the packaged program lacks its built-ins"
for archive in packages/*.tar.gz; do
    tar -tzf "$archive" >/dev/null
done
[ "$(find packages -maxdepth 1 -name '*.tar.gz' | wc -l)" -eq 2 ] || fail "not two archives: $(ls packages)"
