# SPDX-License-Identifier: Apache-2.0
"""Errors of predictions by group, and the bars that they are held to."""
import dataclasses
import itertools

from configs import precision
from predict import Prediction
from rows import Row

GIB = 2**30
TIME_BARS = [  # (name, groups, mean absolute error in percent at most)
    ("A100 groups together", ["korthikanti-t5-a100", "megatron-2020-a100", "zero-bubble-a100"], 5),
    ("H100 and B200 groups together", ["nemo-2407-h100-fp8", "bridge-h100", "torchtitan-h10096ghbm2e500w", "simumax-b200-llama",
                                       "simumax-b200-deepseek"], 8)]
MEMORY_BARS = [("allocated and computed", ["allocated", "computed"], 3, 5), ("allocated-gb-rounded", ["allocated-gb-rounded"], 5, None)]
ORDER_BAR = 90
APART = 0.02  # plans closer than this are not ordered


@dataclasses.dataclass(frozen=True)
class Judged:
    """A row with its prediction, or with the reason why it has none."""

    row: Row
    prediction: Prediction | None
    reason: str | None

    def time_error(self):
        """In percent of the measured time; None where either is missing."""
        if self.prediction is None or self.row.iteration_s is None:
            return None
        return 100 * (self.prediction.iteration_s / self.row.iteration_s - 1)

    def measured_bytes(self):
        unit = 1e9 if self.row.mem_kind == "allocated-gb-rounded" else GIB
        return self.row.memory_gib * unit

    def predicted_bytes(self):
        if self.row.mem_kind == "computed":
            return self.prediction.first_stage
        return self.prediction.reserved if self.row.mem_kind == "reserved" else self.prediction.allocated

    def memory_error(self):
        """In percent of the measured bytes; None where either is missing."""
        if self.prediction is None or self.row.memory_gib is None or not self.row.mem_kind:
            return None
        return 100 * (self.predicted_bytes() / self.measured_bytes() - 1)


@dataclasses.dataclass(frozen=True)
class Summary:
    """Of errors in percent."""

    count: int
    mean: float
    bias: float
    worst: float
    worst_row: Row


def summary(pairs):
    """Of (error, row) pairs; None of none."""
    pairs = [pair for pair in pairs if pair[0] is not None]
    if not pairs:
        return None
    errors = [error for error, _ in pairs]
    worst, row = max(pairs, key=lambda pair: abs(pair[0]))
    return Summary(len(errors), sum(map(abs, errors)) / len(errors), sum(errors) / len(errors), worst, row)


def _line(name, rows, found, verdict=""):
    if found is None:
        return f"  {name:<34} {0:3}/{rows:<3}{verdict}"
    return (f"  {name:<34} {found.count:3}/{rows:<3} {found.mean:6.1f} % {found.bias:+6.1f} % {found.worst:+6.1f} %  "
            f"{found.worst_row.title()}{verdict}")


def _head(title):
    print(f"\n{title}\n  {'':<34} {'n/rows':>7} {'mean':>8} {'bias':>8} {'worst':>8}  worst row")


def _bar(name, found, rows, most, value=None):
    """Prints whether a bar is met; rows without a prediction are said, and a bar of no rows fails."""
    value = found.mean if found and value is None else value
    passed = found is not None and value <= most
    figure = f"{value:.1f} %" if found else "nothing predicted"
    print(f"  {'PASS' if passed else 'FAIL'}  {name}: {figure}, at most {most} % ({found.count if found else 0} of {rows} rows)")
    return passed


def left_out(members):
    """Mean absolute error in percent when every group is scaled by what the other groups are off in the mean: how much of the
    figure the constants owe to a group. None of one group."""
    groups = dict.fromkeys(one.row.group for one in members if one.time_error() is not None)
    errors = []
    for group in groups:
        others = [one.time_error() for one in members if one.row.group != group and one.time_error() is not None]
        if not others:
            return None
        scale = 1 + sum(others) / len(others) / 100
        errors += [abs((100 + one.time_error()) / scale - 100) for one in members
                   if one.row.group == group and one.time_error() is not None]
    return sum(errors) / len(errors) if errors else None


def print_time(judged):
    """Time by group, then the bars over groups. True when all are met."""
    timed = [one for one in judged if one.row.iteration_s is not None and one.row.mem_kind != "single-layer"]
    _head("Time of an iteration, uncalibrated: error of the prediction")
    for group in dict.fromkeys(one.row.group for one in timed):
        members = [one for one in timed if one.row.group == group]
        print(_line(group, len(members), summary((one.time_error(), one.row) for one in members)))
    passed = True
    for name, groups, most in TIME_BARS:
        members = [one for one in timed if one.row.group in groups]
        if members:
            passed &= _bar(name, summary((one.time_error(), one.row) for one in members), len(members), most)
            without = left_out(members)
            if without is not None:
                print(f"        each group scaled by what the others are off in the mean: {without:.1f} %")
    return passed


def print_memory(judged):
    """Memory by kind and group, then the bars over kinds. True when all are met."""
    held = [one for one in judged if one.row.memory_gib is not None and one.row.mem_kind]
    _head("Peak memory: error of the prediction")
    for kind, group in dict.fromkeys((one.row.mem_kind, one.row.group) for one in held):
        members = [one for one in held if (one.row.mem_kind, one.row.group) == (kind, group)]
        print(_line(f"{kind}: {group}", len(members), summary((one.memory_error(), one.row) for one in members)))
    passed = True
    for name, kinds, most, under in MEMORY_BARS:
        members = [one for one in held if one.row.mem_kind in kinds]
        if not members:
            continue
        found = summary((one.memory_error(), one.row) for one in members)
        passed &= _bar(name, found, len(members), most)
        if under and found:
            least = min(one.memory_error() for one in members if one.memory_error() is not None)
            passed &= _bar(name + ", furthest under", found, len(members), under, -least)
    return passed


def job(row):
    """What two plans must share to be plans of one job."""
    software = tuple(word for word in ("eager", "compile") if row.has(word))
    return row.group, row.source, row.model, row.gpus, row.gpu_type, row.seq, precision(row), software


def _comparable(one, other):
    """Same global batch, or as many equal micro-batches a replica: then throughputs are compared."""
    if one.row.global_batch == other.row.global_batch:
        return True
    return (one.prediction.micro_batch, one.prediction.num_microbatches) == (other.prediction.micro_batch,
                                                                             other.prediction.num_microbatches)


def _rates(one):
    return one.row.global_batch / one.row.iteration_s, one.row.global_batch / one.prediction.iteration_s


def pairs(judged):
    """(group, right, faster, slower) of every two plans of one job measured more than 2 % apart."""
    timed = [one for one in judged if one.time_error() is not None and one.row.global_batch and one.row.mem_kind != "single-layer"]
    for one, other in itertools.combinations(timed, 2):
        if job(one.row) != job(other.row) or not _comparable(one, other):
            continue
        if _rates(one)[0] < _rates(other)[0]:
            one, other = other, one
        if _rates(one)[0] > (1 + APART) * _rates(other)[0]:
            yield one.row.group, _rates(one)[1] > _rates(other)[1], one, other


def print_order(judged):
    """Order of plans by group and in all. True when the bar is met, or nothing can be ordered."""
    found = list(pairs(judged))
    print(f"\nOrder: of two plans of one job, measured more than {100 * APART:.0f} % apart, is the better predicted better?")
    for group in dict.fromkeys(group for group, *_ in found):
        right = [right for name, right, *_ in found if name == group]
        print(f"  {group:<34} {sum(right):3} of {len(right)} pairs")
    for _, right, faster, slower in found:
        if not right:
            print(f"      wrong: {faster.row.title()} is faster than {slower.row.title()}")
    if not found:
        print("  no pairs")
        return True
    share = 100 * sum(right for _, right, *_ in found) / len(found)
    passed = share >= ORDER_BAR
    print(f"  {'PASS' if passed else 'FAIL'}  all: {share:.1f} % right, at least {ORDER_BAR} % ({len(found)} pairs)")
    return passed
