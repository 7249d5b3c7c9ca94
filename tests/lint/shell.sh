#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# shell.sh ROOT: shellcheck finds nothing in the scripts. Exit 77 (skipped) where it is missing.
set -eu
command -v shellcheck >/dev/null || exit 77
cd "$1"
{
    echo tests/run
    echo .ci/run
    find docs tests -name '*.sh'
} | xargs shellcheck -x -e SC1091
