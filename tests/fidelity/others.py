# SPDX-License-Identifier: Apache-2.0
"""What is known of other models' errors: on rows of the table where they were run or say what they predict, else as claimed."""
import re

from judge import GIB, summary

# (what, group, filter of its schedule or None, model, rows, mean absolute error in percent), by running the model on these rows.
# Calculon of 2023 with its own files of GPUs; Megatron-LM's theoretical_memory_usage.
RUN = [
    ("time", "korthikanti-t5-a100", None, "Calculon (its own validation set)", 8, 3.7),
    ("time", "zero-bubble-a100", "1F1B", "Calculon", 12, 13.2),
    ("time", "zero-bubble-a100", "1F1B-I", "Calculon", 12, 11.2),
    ("time", "megatron-2020-a100", None, "Calculon", 8, 14.6),
    ("memory", "zero-bubble-a100", None, "Calculon", 24, 2.8),
    ("memory", "zero-bubble-a100", "1F1B", "Megatron-LM's formula", 4, 27.8),
    ("memory", "korthikanti-fig1-a100", None, "Megatron-LM's formula", 4, 3.4),
    ("memory", "simumax-b200-llama", None, "Megatron-LM's formula", 8, 4.0),
    ("memory", "simumax-b200-deepseek", None, "Megatron-LM's formula", 4, 15.2)]
CLAIMS = [  # of their authors, on runs of their own
    "Calculon 2023: time 3.7 % on 8 runs, 8.9 % at most", "vTrain 2024: time 8.4 % on one node, 14.7 % up to 512 A100",
    "SimAI 2025: time 1.9 %", "Charon 2026: time below 5.4 %", "Pipette 2024: time 5.9 %, memory 7.4 % (recalled)"]
PREDICTS = re.compile(r"SimuMax predicts ([\d.]+) ms, ([\d.]+) GiB")


def _same(one, group, schedule):
    return one.row.group == group and (schedule is None or one.row.facts.get("schedule") == schedule)


def _ours(judged, what, group, schedule):
    return summary((one.time_error() if what == "time" else one.memory_error(), one.row) for one in judged
                   if _same(one, group, schedule) and (what == "time" or one.memory_error() is not None))


def _simumax(judged, what):
    """(their error, ours) by the rows that say what SimuMax predicts, with the efficiencies that it measured on the machine."""
    theirs, ours = [], []
    for one in judged:
        found = PREDICTS.search(one.row.note)
        error = one.time_error() if what == "time" else one.memory_error()
        if not found or error is None:
            continue
        ratio = float(found[1]) / 1e3 / one.row.iteration_s if what == "time" else float(found[2]) * GIB / one.measured_bytes()
        theirs.append((100 * (ratio - 1), one.row))
        ours.append((error, one.row))
    return summary(theirs), summary(ours)


def _line(what, where, model, rows, mean, ours):
    print(f"  {what:<7} {where:<34} {model:<38} {mean:5.1f} % ({rows})   here {ours.mean:5.1f} % ({ours.count})")


def print_others(judged):
    """Errors of other models beside those of this report."""
    print("\nOther models: mean absolute error, on how many rows")
    for what, group, schedule, model, rows, mean in RUN:
        ours = _ours(judged, what, group, schedule)
        if ours:
            _line(what, f"{group}{', ' + schedule if schedule else ''}", model, rows, mean, ours)
    for what in ("time", "memory"):
        theirs, ours = _simumax(judged, what)
        if theirs:
            _line(what, "simumax-b200-*", "SimuMax (measured on that machine)", theirs.count, theirs.mean, ours)
    print("  as claimed, on other runs: " + "; ".join(CLAIMS))
