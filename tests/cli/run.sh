#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Transcripts of the tool: each case is a directory with `cmd` (a shell script that finds the tool as `pipesched` and the
# test data as data/) and what it must give: `stdout`, `stderr`, `exit`. A file that is missing stands for nothing
# printed, or for exit status 0. Every case runs in a scratch directory of its own under LC_ALL=C.
#
#     sh tests/cli/run.sh [--update] PATH/OF/pipesched CASE...
#
# --update rewrites what is expected. PIPESCHED_EXEC_PREFIX may hold a wrapper, such as "valgrind -q".
set -u

update=no
if [ "${1-}" = --update ]; then
    update=yes
    shift
fi
if [ $# -lt 2 ]; then
    echo "usage: run.sh [--update] PATH/OF/pipesched CASE..." >&2
    exit 2
fi
tool=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
data=$(cd "$(dirname "$0")/../data" && pwd)
unset NO_COLOR COLUMNS
LC_ALL=C
export LC_ALL

scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 2' HUP INT TERM

# What was printed beside what is expected. The third argument names the part.
compare() {
    if [ "$update" = yes ]; then
        if [ -s "$1" ]; then cp "$1" "$2"; else rm -f "$2"; fi
        return 0
    fi
    expected=$2
    [ -e "$expected" ] || expected=/dev/null
    cmp -s "$1" "$expected" && return 0
    echo "$3 differs (- expected, + got):"
    diff -u "$expected" "$1" | sed -n '3,$p'
    return 1
}

failed=0
for case in "$@"; do
    case=$(cd "$case" && pwd) || exit 2
    if [ ! -f "$case/cmd" ]; then
        echo "$case has no cmd" >&2
        exit 2
    fi
    rm -rf "$scratch/case"
    mkdir -p "$scratch/case/work" "$scratch/case/bin"
    ln -s "$data" "$scratch/case/work/data"
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "${PIPESCHED_EXEC_PREFIX-}" "$tool" >"$scratch/case/bin/pipesched"
    chmod +x "$scratch/case/bin/pipesched"

    (cd "$scratch/case/work" && PATH="$scratch/case/bin:$PATH" sh "$case/cmd") \
        >"$scratch/case/stdout" 2>"$scratch/case/stderr" </dev/null
    code=$?
    if [ $code -eq 77 ]; then
        cat "$scratch/case/stderr"
        exit 77
    fi
    : >"$scratch/case/exit"
    [ $code -eq 0 ] || echo $code >"$scratch/case/exit"

    good=yes
    for part in stdout stderr exit; do
        compare "$scratch/case/$part" "$case/$part" "$part" || good=no
    done
    if [ $good = no ]; then
        echo "FAILED: $case"
        failed=1
    fi
done
exit $failed
