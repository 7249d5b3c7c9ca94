#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The guide to launch rules has a row for every rule of src/job/dialect_*.c, and no other.
#
#     sh tests/docs/launch_rules.sh PROJECT
set -eu
cd "$1"
found=$(mktemp)
listed=$(mktemp)
trap 'rm -f "$found" "$listed"' EXIT
sed -n 's/.*"\([a-z]*-[0-9][0-9]*-[a-z0-9-]*\)".*/\1/p' src/job/dialect_*.c | sort >"$found"
sed -n 's/^| .\([a-z]*-[0-9]*-[a-z-]*\). |.*/\1/p' docs/guides/launch-rules.md | sort >"$listed"
[ -s "$found" ] || {
    echo "no rule found in src/job/dialect_*.c"
    exit 1
}
diff -u "$found" "$listed"
