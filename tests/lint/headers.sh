#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# headers.sh ROOT BUILD [CC...]: every public and internal header compiles alone, without a warning.
set -eu
root=$1
build=$2
shift 2
status=0
for header in "$root"/include/pipesched/*.h "$root"/src/*/*.h; do
    printf '#include "%s"\ntypedef int compiles_alone;\n' "$header" |
        "$@" -std=c17 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
            -I "$root/include" -I "$root/src" -I "$build/include" -x c - || {
        echo "does not compile alone: $header"
        status=1
    }
done
exit $status
