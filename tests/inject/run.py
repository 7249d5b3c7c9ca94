#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failure injection: whatever call fails, the tool ends by itself with one clear error, or as if nothing had happened.

run.py TOOL INJECT.so ROOT CASE [SAMPLES]. Runs a command of CASES once to count its calls, then again with one call after
the other failing (a sample of them where there are many), and requires of every run:
  - exit status 70 for memory and 4 for files, or success with the very output of the undisturbed run;
  - no signal, and exactly one error line on standard error;
  - the output file either as it was before or complete, and nothing else left behind.
"""
import errno
import os
import pathlib
import subprocess
import sys
import tempfile

CASES = {
    "plan": ["plan", "gpt2", "1x2xA100-SXM4-80GB", "--global-batch-size", "8", "--seq-length", "1024", "--threads", "1",
             "-o", "out.json"],
    "plan-stdout": ["plan", "{root}/configs/models/gpt2.json", "1x2xA100-SXM4-80GB", "--global-batch-size", "8",
                    "--seq-length", "1024", "--threads", "2", "--json"],
    "simulate": ["simulate", "--schedule", "zb-h1", "--pp", "4", "--num-microbatches", "8", "--forward", "1",
                 "--backward-input", "1", "--backward-weight", "1", "--json", "-o", "out.json"],
    "partition-dp": ["partition", "--weights", "3,1,4,1,5,9,2,6", "--stages", "3", "--engine", "dp", "-o", "out.json"],
    "partition-milp": ["partition", "--weights", "A=3,1,4,1,5,9,2,6;B=5,2,7,2,8,15,3,9", "--types", "A:2,B:1",
                       "--engine", "milp", "-o", "out.json"],
    "show-model": ["show", "{root}/configs/models/llama-3.1-8b.json", "--json"],
    "show-hwloc": ["show", "{root}/tests/data/hwloc/v100-mesh.xml", "--json", "-o", "out.json"],
}
# call -> (errno it fails with, statuses allowed besides success)
CALLS = {
    "malloc": (errno.ENOMEM, {70}),
    "open": (errno.EMFILE, {4}),
    "read": (errno.EIO, {4}),
    "write": (errno.ENOSPC, {4}),
    "flush": (errno.ENOSPC, {4}),
    "close": (errno.EIO, {4}),
    "sync": (errno.EIO, {4}),
    "rename": (errno.EACCES, {4}),
}
# Not these libraries' own allocations, which no caller can make safe: popt (1.19) prints "virtual memory exhausted." and
# exits with status 1, or follows the null pointer; hwloc (2.9) follows null pointers while it builds the topology, or
# leaves out what it could not copy and reports success; libxml2, which hwloc reads with, reports exhaustion as bad XML;
# the dynamic linker, which loads hwloc's plugins, prints "out of memory" and exits with status 127.
SKIP = "libpopt,libhwloc,hwloc_,libxml2,ld-linux"
OLD = "what was here before\n"


class Bench:
    def __init__(self, tool, library, root, words):
        self.tool, self.library, self.root = tool, library, root
        self.words = [word.replace("{root}", root) for word in words]

    def run(self, folder, call, at, sticky):
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "LD_PRELOAD": self.library, "INJECT_CALL": call,
                       "INJECT_AT": str(at), "INJECT_ERRNO": str(CALLS[call][0]), "INJECT_COUNT": "count.txt", "INJECT_SKIP": SKIP}
        if sticky:
            environment["INJECT_STICKY"] = "1"
        (folder / "out.json").write_text(OLD)
        done = subprocess.run([self.tool, *self.words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        count = folder / "count.txt"
        counted = int(count.read_text()) if count.exists() else 0
        count.unlink(missing_ok=True)
        left = {path.name: path.read_bytes() for path in folder.iterdir()}
        return done, counted, left


def sample(total, most):
    """At most `most` numbers from 1 to total: the first and last ones, and evenly between."""
    if total <= most:
        return range(1, total + 1)
    edge = most // 4
    middle = most - 2 * edge
    between = {edge + 1 + (total - 2 * edge - 1) * step // middle for step in range(middle)}
    return sorted(set(range(1, edge + 1)) | between | set(range(total - edge + 1, total + 1)))


def faults(done, left, plain, plain_left, allowed):
    """What is wrong with a run, as sentences."""
    errors = done.stderr.decode(errors="replace").splitlines()
    lines = [line for line in errors if line.startswith("pipesched: error: ")]
    if done.returncode < 0:
        yield f"ended by signal {-done.returncode}"
    elif done.returncode == plain.returncode:
        if done.stdout != plain.stdout:
            yield "succeeded with another output on stdout"
        if left != plain_left:
            yield "succeeded with another output file"
        if lines:
            yield "succeeded with an error line"
    elif done.returncode not in allowed:
        yield f"exit status {done.returncode}, expected {sorted(allowed)} or {plain.returncode}"
    else:
        if len(lines) != 1:
            yield f"{len(lines)} error lines"
        if any(not line.startswith(("pipesched: error: ", "  hint: ")) for line in errors):
            yield "other text on stderr"
    if set(left) != {"out.json"}:
        yield f"left behind: {sorted(set(left) - {'out.json'})}"
    elif left["out.json"] not in (OLD.encode(), plain_left["out.json"]):
        yield "a partial output file"


def main():
    if len(sys.argv) not in (5, 6) or sys.argv[4] not in CASES:
        sys.exit(__doc__)
    tool, library, root = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:4])
    most = int(sys.argv[5]) if len(sys.argv) == 6 else 60
    bench = Bench(tool, library, root, CASES[sys.argv[4]])
    broken = 0
    tried = 0
    ended = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        plain, _, plain_left = bench.run(folder, "open", 0, False)
        if plain.returncode != 0:
            sys.exit(f"the undisturbed run failed: {plain.stderr.decode()}")
        for call, (_, allowed) in CALLS.items():
            _, total, _ = bench.run(folder, call, 0, False)
            failures = 0
            for sticky in (False, True):
                for at in sample(total, most):
                    done, _, left = bench.run(folder, call, at, sticky)
                    tried += 1
                    failures += done.returncode != plain.returncode
                    for fault in faults(done, left, plain, plain_left, allowed):
                        onward = " and every later one" if sticky else ""
                        print(f"{call} {at} of {total}{onward} failing: {fault}")
                        print("  " + done.stderr.decode(errors="replace").replace("\n", "\n  "))
                        broken += 1
                    for path in folder.iterdir():
                        path.unlink()
            print(f"{call}: {total} calls, {failures} runs ended in an error")
            ended += failures
    print(f"{tried} runs, {broken} faults")
    sys.exit(1 if broken or ended == 0 else 0)  # with no error at all, nothing was injected


if __name__ == "__main__":
    main()
