#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# format.sh ROOT: clang-format changes nothing. Exit 77 (skipped) where clang-format is missing.
set -eu
command -v clang-format >/dev/null || exit 77
cd "$1"
find src include tests -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror
