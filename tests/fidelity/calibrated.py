# SPDX-License-Identifier: Apache-2.0
"""Calibrated on one run: each run with a filled pipeline in turn calibrates, and the rest of its group judges."""
import json
import pathlib
import shlex
import statistics
import subprocess
import tempfile

import configs
from errors import Unpredictable
from predict import NO_LIMIT, Tool

BAR = 5  # percent, median over the choice of the run


def _may_calibrate(one):
    """The run shows what a layer takes: pp above 1 and at least 2 pp micro-batches."""
    found = one.prediction
    return one.time_error() is not None and found.pp > 1 and found.num_microbatches >= 2 * found.pp


def _calibrate(program, one, config, folder):
    """The calibration file that the tool makes of this one run; None where it refuses."""
    words = shlex.split(one.prediction.command)[4:]
    options = dict(zip(words[::2], words[1::2]))
    if options.get("--memory-limit") == NO_LIMIT:
        del options["--memory-limit"]
    run = {key[2:].replace("-", "_"): value for key, value in options.items()} | {"iteration_ms": 1e3 * one.row.iteration_s}
    runs = {"format": "pipesched/runs/v1", "framework": configs.framework(one.row), "runs": [run]}
    for name, content in (("model", config.model), ("cluster", config.cluster), ("runs", runs)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    path = folder / "calibration.json"
    done = subprocess.run([str(pathlib.Path(program).resolve()), "calibrate", "model.json", "cluster.json", "--runs", "runs.json", "-q",
                           "-o", str(path)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return path if done.returncode == 0 else None


def _errors(program, path, others, every):
    tool = Tool(program, ["--calibration", str(path)])
    for other in others:
        try:
            predicted = tool.predict(configs.build(other.row, every))
        except Unpredictable:
            continue  # of another precision: the calibration does not hold for it
        yield 100 * abs(predicted.iteration_s / other.row.iteration_s - 1)


def _by_choice(program, members, every):
    """Mean absolute error over the rest of a group for each run that may calibrate."""
    for one in members:
        if not _may_calibrate(one):
            continue
        with tempfile.TemporaryDirectory() as name:
            path = _calibrate(program, one, configs.build(one.row, every), pathlib.Path(name))
            errors = list(_errors(program, path, [other for other in members if other is not one], every)) if path else []
        if errors:
            yield statistics.mean(errors)


def print_calibrated(judged, every, program):
    """By group, then over all choices. True when the bar is met, or no run can calibrate."""
    timed = [one for one in judged if one.time_error() is not None and one.row.mem_kind != "single-layer"]
    print("\nTime, calibrated on one run (pp > 1, at least 2 pp micro-batches) and judged on the rest of its group")
    choices = []
    for group in dict.fromkeys(one.row.group for one in timed):
        found = list(_by_choice(program, [one for one in timed if one.row.group == group], every))
        choices += found
        if found:
            print(f"  {group:<34} {len(found):3} choices  median {statistics.median(found):5.1f} %  worst {max(found):5.1f} %")
    if not choices:
        print("  no run can calibrate")
        return True
    median = statistics.median(choices)
    print(f"  {'PASS' if median <= BAR else 'FAIL'}  median over the choice of the run: {median:.1f} %, at most {BAR} %")
    return median <= BAR
