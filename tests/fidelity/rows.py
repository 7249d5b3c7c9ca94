# SPDX-License-Identifier: Apache-2.0
"""Measured rows: a strict reader of the CSV, and what the free text of a row says as facts."""
import csv
import dataclasses
import re

COLUMNS = ["group", "mem_kind", "source", "model", "hidden", "layers", "heads", "kv", "ffn", "vocab", "seq", "gpus",
           "gpu_type", "tp", "pp", "vp", "dp", "ep", "cp", "micro_batch", "global_batch", "recompute", "seq_parallel",
           "measured_iteration_s", "measured_tflops_per_gpu", "measured_mem_gib", "note", "read_or_recalled"]
COUNTS = ["hidden", "layers", "heads", "kv", "ffn", "vocab", "seq", "gpus", "tp", "pp", "dp", "ep", "cp", "micro_batch",
          "global_batch"]
MEASURED = ["measured_iteration_s", "measured_tflops_per_gpu", "measured_mem_gib"]
MEMORY_KINDS = ["", "allocated", "computed", "allocated-gb-rounded", "reserved", "single-layer"]
RECOMPUTES = ["", "none", "selective", "full"]
NOTHING = ["", "n/a"]
FACT = re.compile(r"([A-Za-z][\w./+()-]*)=([^\s;,]+)")


class RowError(Exception):
    """A row that breaks a rule of the file; says where and what."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One measured run. Counts are None where the file has none; `facts` are the key=value pairs of its note."""

    line: int
    group: str
    mem_kind: str
    source: str
    model: str
    counts: dict
    gpu_type: str
    vp: str
    recompute: str
    sequence_parallel: bool | None
    iteration_s: float | None
    tflops_per_gpu: float | None
    memory_gib: float | None
    note: str
    facts: dict

    def __getattr__(self, name):
        if name in COUNTS:
            return self.counts[name]
        raise AttributeError(name)

    def has(self, word):
        """Whether the note has the word, letters of any case."""
        return re.search(r"(?<![A-Za-z0-9])" + re.escape(word) + r"(?![A-Za-z0-9])", self.note, re.IGNORECASE) is not None

    def title(self):
        """Short text that tells the row from its neighbours."""
        given = [f"{name}{self.counts[name]}" for name in ("tp", "pp", "dp", "cp", "ep")
                 if self.counts[name] not in (None, 1)]
        what = [self.model, f"{self.gpus}x{self.gpu_type}", *given]
        if self.vp not in ("", "1"):
            what.append("vp" + self.vp.split("(", maxsplit=1)[0])
        if self.global_batch:
            what.append(f"batch {self.global_batch}")
        what += [word for word in (self.facts.get("schedule"), self.facts.get("precision"), self.recompute) if word]
        return " ".join(what) + f" (line {self.line})"


def _number(line, column, text, kind):
    if text in NOTHING:
        return None
    try:
        value = kind(text)
    except ValueError as error:
        raise RowError(f"line {line}: {column}: expected a number or nothing, got \"{text}\"") from error
    if not 0 < value < float("inf"):
        raise RowError(f"line {line}: {column}: expected a number above 0, got \"{text}\"")
    return value


def _choice(line, column, text, choices):
    if text not in choices:
        raise RowError(f"line {line}: {column}: expected one of {', '.join(filter(None, choices))} or nothing, got \"{text}\"")
    return text


def _row(line, cells):
    parallel = _choice(line, "seq_parallel", cells["seq_parallel"], ["", "0", "1"])
    measured = {name: _number(line, name, cells[name], float) for name in MEASURED}
    if not any(measured.values()):
        raise RowError(f"line {line}: nothing measured")
    if not cells["group"]:
        raise RowError(f"line {line}: group: empty")
    return Row(line=line, group=cells["group"], mem_kind=_choice(line, "mem_kind", cells["mem_kind"], MEMORY_KINDS),
               source=cells["source"], model=cells["model"],
               counts={name: _number(line, name, cells[name], int) for name in COUNTS},
               gpu_type=cells["gpu_type"], vp="" if cells["vp"] in NOTHING else cells["vp"],
               recompute=_choice(line, "recompute", cells["recompute"].split("(")[0].strip(), RECOMPUTES),
               sequence_parallel=None if parallel == "" else parallel == "1",
               iteration_s=measured["measured_iteration_s"], tflops_per_gpu=measured["measured_tflops_per_gpu"],
               memory_gib=measured["measured_mem_gib"], note=cells["note"], facts=facts(cells["note"]))


def facts(note):
    """Every key=value of a note. A key that is there twice with different values is an error."""
    found = {}
    for key, value in FACT.findall(note):
        if found.setdefault(key, value) != value:
            raise RowError(f"note: {key} is both {found[key]} and {value}")
    return found


def read(path):
    """All rows of the file, in its order. RowError on the first that breaks a rule."""
    with open(path, newline="", encoding="utf-8") as file:
        table = csv.reader(file, strict=True)
        header = next(table, [])
        if header != COLUMNS:
            raise RowError(f"{path}: line 1: expected the columns {','.join(COLUMNS)}")
        rows = []
        for cells in table:
            line = table.line_num
            if len(cells) != len(COLUMNS):
                raise RowError(f"{path}: line {line}: {len(cells)} cells, expected {len(COLUMNS)}")
            try:
                rows.append(_row(line, dict(zip(COLUMNS, cells))))
            except RowError as error:
                where = "" if str(error).startswith("line") else f"line {line}: "
                raise RowError(f"{path}: {where}{error}") from error
    return rows
