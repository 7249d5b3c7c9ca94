#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# quickstart.sh: from a fresh clone to a first plan: installs what is missing, builds pipesched into build/release, and
# plans Llama 3.1 70B on 64 H100 GPUs. Takes about a minute, most of it apt and the compiler.
set -eu
cd "$(dirname "$0")/.."
. tests/packages.sh

# shellcheck disable=SC2086
need_packages $BUILD_PACKAGES

say "building build/release/pipesched"
mkdir -p build
{ cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF &&
    cmake --build build/release; } >build/quickstart.log 2>&1 || {
    cat build/quickstart.log >&2
    exit 1
}

set -- plan llama-3.1-70b 8x8xH100-SXM5-80GB --nic 400Gb/s --global-batch-size 1024 --seq-length 8192
say "build/release/pipesched $*"
build/release/pipesched "$@"
say "done: build/release/pipesched --help shows what else it does"
say "to call it by name: export PATH=\"$PWD/build/release:\$PATH\""
