#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same inputs give the same bytes.

run.py TOOL ROOT again|threads|locale=SHIM|compiler=OTHER. Runs every command of COMMANDS and compares standard output,
output file and exit status with a second run: the same once more, with 1, 2 and 4 threads, in a locale that writes commas
for points, or by OTHER, the tool from another compiler. SHIM sets the locale inside the process, where the tool itself does
not: JSON stays as it is even so, while text for people follows a program that wants its locale.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

JOB = ["--global-batch-size", "64", "--seq-length", "4096"]
COMMANDS = [
    ["plan", "gpt2", "1x4xA100-SXM4-80GB", "--global-batch-size", "32", "--seq-length", "1024"],
    ["plan", "llama-3.1-8b", "2x8xL40S", "--nic", "50Gb/s", *JOB],
    ["plan", "mixtral-8x7b", "h100-8x8", *JOB, "--optimizer-barrier", "off"],
    ["plan", "llama-3.1-405b", "1x8xH100-SXM5-80GB", *JOB],
    ["plan", "{root}/tests/data/models/timed-chain.json", "a100-4x8", *JOB],
    ["plan", "llama-3.1-70b", "8x8xH100-SXM5-80GB", "--nic", "400Gb/s", "--global-batch-size", "1024",
     "--seq-length", "8192"],
    ["partition", "--weights", "3.25,1,4,1.5,5,9,2,6,5,3.5,5,8,9,7,9", "--stages", "4", "--engine", "milp"],
    ["partition", "--weights", "A=3.25,1,4,1.5,5,9,2,6;B=6.5,2,8,3,10,18,4,12", "--types", "A:2,B:2", "--top-k", "3"],
    ["partition", "llama-3.1-8b", "--stages", "4", "--gpu", "H100-SXM5-80GB", "--seq-length", "8192", "--tp", "1",
     "--micro-batch-size", "1"],
    ["simulate", "--schedule", "zb-h2", "--pp", "8", "--num-microbatches", "24", "--forward", "18.522",
     "--backward-input", "18.086", "--backward-weight", "9.337", "--comm-ms", "0.601"],
    ["simulate", "--schedule", "1f1b", "--pp", "4", "--num-microbatches", "8", "--forward", "1", "--backward", "2",
     "--comm-ms", "0.1", "--jitter", "5%", "--straggler", "2:1.2"],
    ["show", "{root}/tests/data/hwloc/a100-nvswitch.xml"],
    ["show", "llama-3.1-8b", "--cost", "--gpu", "H100-SXM5-80GB", "--seq-length", "8192"],
]


JSON_ONLY = "decimal comma set by the caller of the library"
FORMS = ([], ["--json"], ["-o", "out"])


def run(tool, root, words, more=(), environment=None):
    """(exit status, stdout, contents of the file of -o) of one command, by form of its output."""
    words = [word.replace("{root}", root) for word in words]
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for form in FORMS:
            done = subprocess.run([tool, *words, *more, *form], cwd=scratch, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False,
                                  env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **(environment or {})})
            if done.returncode not in (0, 1):
                sys.exit(f"{' '.join(words)}: exit status {done.returncode}\n{done.stderr.decode()}")
            file = pathlib.Path(scratch, "out")
            results.append((done.returncode, done.stdout, file.read_bytes() if file.exists() else None))
    return results


def make_locale(folder):
    """A compiled locale with a decimal comma, from the few lines beside this script."""
    source = pathlib.Path(__file__).with_name("comma.src")
    subprocess.run(["localedef", "-c", "-i", source, f"{folder}/comma"], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)  # it warns of the categories left out
    if not pathlib.Path(folder, "comma", "LC_NUMERIC").exists():
        sys.exit("localedef made no locale")


def variants(what, tool, folder):
    """(name, tool, more options, environment) of the runs to compare."""
    if what == "again":
        yield "once more", tool, (), {}
    elif what == "threads":
        for count in ("1", "2", "4"):
            yield f"{count} threads", tool, ("--threads", count), {}
    elif what.startswith("locale="):
        make_locale(folder)
        shim = str(pathlib.Path(what.partition("=")[2]).resolve())
        comma = {"LC_ALL": "comma", "LOCPATH": folder}
        yield "decimal comma", tool, (), comma
        yield JSON_ONLY, tool, (), {**comma, "LD_PRELOAD": shim}
    elif what.startswith("compiler="):
        yield "other compiler", str(pathlib.Path(what.partition("=")[2]).resolve()), (), {}
    else:
        sys.exit(__doc__)


def first_difference(a, b):
    for number, (left, right) in enumerate(zip(a.splitlines(), b.splitlines()), 1):
        if left != right:
            return f"line {number}:\n  {left.decode()}\n  {right.decode()}"
    return "one is longer"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tool, root = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
    what = sys.argv[3]
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        runs = list(variants(what, tool, folder))
        for words in COMMANDS:
            if what == "threads" and words[0] != "plan":
                continue
            plain = run(tool, root, words)
            for name, other, more, environment in runs:
                for form, one, two in zip(FORMS, plain, run(other, root, words, more, environment)):
                    if one == two or (name == JSON_ONLY and form != ["--json"]):
                        continue
                    different += 1
                    print(f"{name}: pipesched {' '.join([*words, *form])}")
                    for left, right in zip(one[1:], two[1:]):
                        if left != right:
                            print(first_difference(left or b"", right or b""))
    print(f"{len(COMMANDS)} commands, {different} differences")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
