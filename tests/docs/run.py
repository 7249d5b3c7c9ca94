#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Examples in the documentation are tests.

run.py [--update] TOOL ROOT DOCUMENT. Runs every ```console block of a Markdown file, top to bottom in one scratch directory,
with `pipesched` first on the PATH and configs/ beside it, and compares what is printed (stderr included) line by line. In a
block, "$ " begins a command, "> " goes on with it, and a line "..." in the output stands for any number of lines.
`echo $?` shows the exit status of the command before. With --update, the output that is found replaces the one expected,
except where that has a line "..."; look at the difference before you keep it.
"""
import os
import pathlib
import subprocess
import sys
import tempfile


class Example:
    """A command, the line it stands on, and the lines it is expected to print, [first, end) of the document."""

    def __init__(self, number, command):
        self.number = number
        self.command = command
        self.first = self.end = number


def examples(lines):
    found = []
    inside = False
    for index, line in enumerate(lines):
        if line.strip() == "```console":
            inside, current = True, None
        elif line.strip() == "```":
            inside = False
        elif inside and line.startswith("$ "):
            current = Example(index + 1, line[2:])
            found.append(current)
        elif inside and current is None:
            sys.exit(f"line {index + 1}: output before any command")
        elif inside and line.startswith("> ") and current.first == current.end:
            current.command += "\n" + line[2:]
            current.first = current.end = index + 1
        elif inside:
            current.end = index + 1
    if inside:
        sys.exit("the last block is not closed")
    return found


def matches(want, have):
    """Whether the lines agree; a want of "..." takes any number of lines."""
    if not want:
        return not have
    if want[0] == "...":
        return any(matches(want[1:], have[skip:]) for skip in range(len(have) + 1))
    return bool(have) and want[0] == have[0] and matches(want[1:], have[1:])


def prepare(folder, tool, root):
    """The scratch directory and the environment that examples run in."""
    work = folder / "work"
    work.mkdir()
    (work / "configs").symlink_to(root / "configs")
    (folder / "bin").mkdir()
    (folder / "bin" / "pipesched").symlink_to(tool)
    return work, {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LC_ALL": "C"}


def run(found, work, environment):
    """(example, exit status, printed lines) of each, the status handed on to the next."""
    status = 0
    for example in found:
        done = subprocess.run(["sh", "-c", f"(exit {status})\n{example.command}"], cwd=work, env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              check=False)
        status = done.returncode
        yield example, status, done.stdout.decode().splitlines()


def main():
    update = sys.argv[1:2] == ["--update"]
    if len(sys.argv) != 4 + update:
        sys.exit(__doc__)
    tool, root, document = (pathlib.Path(word).resolve() for word in sys.argv[1 + update:])
    lines = document.read_text().splitlines()
    found = examples(lines)
    changed = []
    with tempfile.TemporaryDirectory() as scratch:
        for example, status, have in run(found, *prepare(pathlib.Path(scratch), tool, root)):
            want = lines[example.first:example.end]
            if matches(want, have):
                continue
            changed.append((example, have))
            if not update:
                print(f"{document.relative_to(root)}:{example.number}: $ {example.command}\nexpected:")
                print("\n".join("  " + text for text in want))
                print(f"got, with exit status {status}:")
                print("\n".join("  " + text for text in have))
    if update:
        for example, have in reversed(changed):
            if "..." not in lines[example.first:example.end]:
                lines[example.first:example.end] = have
        document.write_text("\n".join(lines) + "\n")
    print(f"{len(found)} examples, {len(changed)} {'updated' if update else 'failed'}")
    sys.exit(1 if (changed and not update) or not found else 0)


if __name__ == "__main__":
    main()
