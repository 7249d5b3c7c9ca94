#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that a compiler does not check (docs/DESIGN.md sections 2 and 3).

house.py RULE ROOT, where RULE is one of: includes, third-party, calls, size, licence.
Prints every breach as file:line: text and exits 1 when there is one.
"""
import pathlib
import re
import sys

# Folder -> folders it may include directly; what those may include in turn is added below.
ARROWS = {
    "base": [], "io": ["base"], "milp": ["base"], "model": ["io"], "cluster": ["io"], "job": ["io"],
    "cost": ["model", "cluster", "job"], "partition": ["milp"], "schedule": ["io"], "sim": ["base"],
    "search": ["partition", "schedule", "sim"], "check": ["io"],
    "plan": ["cost", "search", "partition", "schedule", "sim", "check"],
    "report": ["io", "job"], "cli": ["plan", "report"],
}
# Third-party header -> the one file that may include it.
OWNERS = {
    "cjson/cJSON.h": "src/io/json_read.c", "expat.h": "src/io/xml_read.c", "sha2.h": "src/io/file.c",
    "glpk.h": "src/milp/milp.c", "hwloc.h": "src/cluster/cluster_hwloc.c", "popt.h": "src/cli/options.c",
    "setjmp.h": "src/base/guard.c src/milp/milp.c", "pthread.h": "src/base/parallel.c",
}
# Calls that belong in src/cli alone.
CALLS = re.compile(r"(?<![\w>.])(printf|puts|putchar|exit|abort|getenv|isatty|time|clock|clock_gettime|gettimeofday|rand|srand)\s*\(")
ABORTS = {"src/base/guard.c"}  # exhaustion outside a guard is a programmer error
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def sources(root, folders=("src",), endings=(".c", ".h")):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in endings:
                yield path


def reachable(folder):
    seen = {folder}
    todo = [folder]
    while todo:
        for other in ARROWS[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def code_lines(path):
    """Lines with comments and string literals blanked."""
    text = path.read_text()
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
    return text.splitlines()


def includes(root):
    for path in sources(root):
        folder = path.relative_to(root / "src").parts[0]
        if folder not in ARROWS:
            yield path, 1, f"folder {folder} is in no arrow"
            continue
        allowed = reachable(folder)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or match[1] != '"':
                continue
            target = match[2].split("/")[0]
            if "/" in match[2] and target == "pipesched":
                continue
            if "/" not in match[2]:
                if not (path.parent / match[2]).exists():
                    yield path, number, f"write the folder: {match[2]}"
                continue
            if target not in allowed:
                yield path, number, f"{folder} may not include {match[2]}"


def third_party(root):
    for path in sources(root, ("src", "include")):
        name = str(path.relative_to(root))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match[2] in OWNERS and name not in OWNERS[match[2]].split():
                yield path, number, f"{match[2]} belongs in {OWNERS[match[2]]}"


def calls(root):
    for path in sources(root):
        name = str(path.relative_to(root))
        if name.startswith("src/cli/"):
            continue
        for number, line in enumerate(code_lines(path), 1):
            match = CALLS.search(line)
            if match and not (match[1] == "abort" and name in ABORTS):
                yield path, number, f"{match[1]}() belongs in src/cli"


def size(root):
    for path in sources(root, ("src", "include", "tests")):
        lines = path.read_text().count("\n")
        if path.suffix == ".c" and path.parts[-3:][0] != "tests" and "tests" not in path.relative_to(root).parts and lines > 500:
            yield path, lines, f"{lines} lines, 500 at most"


def licence(root):
    for path in sources(root, ("src", "include", "tests"), (".c", ".h")):
        if not path.read_text().startswith("// SPDX-License-Identifier: Apache-2.0\n"):
            yield path, 1, "the first line is the SPDX identifier"


def main():
    rules = {"includes": includes, "third-party": third_party, "calls": calls, "size": size, "licence": licence}
    if len(sys.argv) != 3 or sys.argv[1] not in rules:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2]).resolve()
    count = 0
    for path, line, text in rules[sys.argv[1]](root):
        print(f"{path.relative_to(root)}:{line}: {text}")
        count += 1
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
