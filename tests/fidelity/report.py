#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fidelity report: predictions of pipesched beside published measurements. docs/fidelity.md explains it.

report.py [options] PIPESCHED CSV. Exit status 0 when every bar is met, 1 when one is not, 2 on wrong use or a broken file.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import sys

import configs
import rows as row_files
from calibrated import print_calibrated
from errors import Unpredictable
from judge import Judged, print_memory, print_order, print_time
from others import print_others
from predict import Tool
from rules import print_rules


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", metavar="PIPESCHED", help="the built binary")
    parser.add_argument("file", metavar="CSV", help="the measured rows")
    parser.add_argument("--group", metavar="PATTERN", default="*", help="only groups that match, as in 'bridge-*'")
    parser.add_argument("-v", "--verbose", action="store_true", help="every row: measured, predicted, error, command")
    parser.add_argument("--gpu-override", metavar="JSON", type=json.loads, default=None,
                        help="keys merged into the cluster's \"gpu\", as in '{\"gemm_efficiency\": 0.7}'")
    parser.add_argument("--calibrated", action="store_true", help="also calibrate on each run in turn (minutes)")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="predictions at a time [2]")
    return parser.parse_args()


def judge(row, rows, tool, gpu_override):
    """The row with its prediction, or with the reason why there is none."""
    try:
        config = configs.build(row, rows, gpu_override)
        return Judged(row, tool.predict(config), None)
    except Unpredictable as reason:
        return Judged(row, None, str(reason))


def judge_all(rows, every, tool, gpu_override, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda row: judge(row, every, tool, gpu_override), rows))


def print_rows(judged):
    for one in judged:
        if one.prediction is None:
            continue
        print(f"{one.row.group}: {one.row.title()}")
        if one.row.iteration_s:
            print(f"    time    measured {one.row.iteration_s:9.4g} s    predicted {one.prediction.iteration_s:9.4g} s"
                  f"    {one.time_error():+6.1f} %{'' if one.prediction.fits else '    predicted not to fit'}")
        if one.memory_error() is not None:
            print(f"    memory  measured {one.measured_bytes() / 2**30:9.4g} GiB  predicted "
                  f"{one.predicted_bytes() / 2**30:9.4g} GiB  {one.memory_error():+6.1f} %  ({one.row.mem_kind})")
        print(f"    {one.prediction.command}")


def print_missing(judged):
    missing = [one for one in judged if one.prediction is None]
    print(f"\nNot predicted: {len(missing)} of {len(judged)} rows")
    reasons = {}
    for one in missing:
        reasons.setdefault((one.row.group, one.reason), []).append(one.row)
    for (group, reason), rows in reasons.items():
        print(f"  {group}: {reason}")
        for row in rows:
            print(f"      {row.title()}")
    return len(missing)


def main():
    options = arguments()
    try:
        every = row_files.read(options.file)
    except (OSError, row_files.RowError) as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    rows = [row for row in every if fnmatch.fnmatchcase(row.group, options.group)]
    if not rows:
        print(f"report.py: no group matches \"{options.group}\"", file=sys.stderr)
        return 2
    judged = judge_all(rows, every, Tool(options.program), options.gpu_override, options.jobs)
    print_rules()
    if options.verbose:
        print_rows(judged)
    passed = [print_time(judged), print_memory(judged), print_order(judged)]
    if options.calibrated:
        passed.append(print_calibrated(judged, every, options.program))
    print_others(judged)
    print_missing(judged)
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
