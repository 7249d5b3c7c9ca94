# SPDX-License-Identifier: Apache-2.0
"""A row as files and options of `pipesched plan`, by rules that hold for every row (docs/fidelity.md has them in words).

No rule looks at a measured value, and none names a row.
"""
import dataclasses
import itertools
import re

import clusters
import models
import recipes
from errors import Unpredictable

SCHEDULES = {"gpipe": "gpipe", "1f1b": "1f1b", "1f1b-i": "interleaved", "interleaved1f1b": "interleaved",
             "zb-1p": "zb", "zb-2p": "zb", "zbv": "zb-v", "dualpipe": "dualpipe"}
WITHIN = {"zb-1p": "zb-h1", "zb-2p": "zb-h2"}      # searched orders hold what these hold: p and 2p micro-batches
MICRO_BATCHES = [1, 2, 4, 8]          # tried where the file has none
RECOMPUTES = ["none", "selective", "full"]         # tried where the file has none
STAGES_A_RANK = 2                     # of an interleaved schedule whose chunks are not published: the framework's default
FRAMEWORKS = [("2401.10241", "zero-bubble"), ("torchtitan", "torchtitan"), ("megatron-bridge", "megatron-bridge"), ("nemo", "nemo"), ("simumax", "simumax")]


@dataclasses.dataclass(frozen=True)
class Config:
    """`options` are fixed; every entry of `choices` is an option with the values among which the prediction decides."""

    model: dict
    cluster: dict
    options: dict
    choices: dict
    within: str | None = None  # the schedule whose memory limits a searched order

    def variants(self):
        """Every way to decide the choices, as whole option dicts, in the order of the lists."""
        for values in itertools.product(*self.choices.values()):
            yield {**self.options, **dict(zip(self.choices, values))}


def framework(row):
    """By the source: whose defaults hold where the row says nothing."""
    text = row.source.lower()
    return next((name for word, name in FRAMEWORKS if word in text), "megatron-lm")


def era(row):
    """By the hardware: "2020" (V100, A100 of 40 GB), "2021" (A100 of 80 GB) or "2023" and later."""
    if row.gpu_type.startswith("V100") or row.gpu_type == "A100-40G":
        return "2020"
    return "2021" if row.gpu_type.startswith("A100") else "2023"


def precision(row):
    """As the note says; bf16 otherwise, fp16 in 2020 and in the zero-bubble runs."""
    text = row.facts.get("precision", "").split("(")[0].lower()
    if text:
        return text
    if row.has("fp8"):
        return "fp8"
    return "fp16" if era(row) == "2020" or framework(row) == "zero-bubble" else "bf16"


def split(blocks, stages, short_ends):
    """Blocks of every virtual stage. Even, or one fewer at both ends when said so or when only blocks + 2 divides, or
    else full stages from the first on with what is left in the last, next to the head."""
    if stages == 1:
        return [blocks]
    if (short_ends or blocks % stages != 0) and (blocks + 2) % stages == 0:
        each = (blocks + 2) // stages
        return [each - 1] + [each] * (stages - 2) + [each - 1]
    if short_ends:
        raise Unpredictable(f"{blocks} blocks do not make {stages} stages with one fewer at both ends")
    each = -(-blocks // stages)
    return [max(0, min(each, blocks - stage * each)) for stage in range(stages)]


def _pins(names, counts):
    """Constraints that leave this cut alone: first and last block of every virtual stage."""
    pins = [{"pin": "embedding", "stage": 0}]
    first = 0
    for stage, count in enumerate(counts):
        for name in sorted({names[first], names[first + count - 1]}, key=names.index) if count else []:
            pins.append({"pin": name, "stage": stage})
        first += count
    return pins + [{"pin": "head", "stage": "last"}, {"colocate": ["final_norm", "head"]}]


def _degrees(row):
    tp, pp, cp = row.tp or 1, row.pp or 1, row.cp or 1
    dp = row.dp or (row.gpus // (tp * pp * cp) if row.gpus else None)
    if dp is None or dp * tp * pp * cp != row.gpus:
        raise Unpredictable(f"tp {tp}, pp {pp}, cp {cp}, dp {dp} are not the {row.gpus} GPUs")
    return tp, pp, cp, dp


def _schedule(row, pp):
    """(schedule, whether it is interleaved)."""
    named = row.facts.get("schedule")
    if named is None and row.has("1F1B"):
        named = "1F1B"
    if named is None or pp == 1:
        chunked = pp > 1 and row.vp not in ("", "1")
        return "interleaved" if chunked else "1f1b"
    if named.lower() not in SCHEDULES:
        raise Unpredictable(f"no schedule known as \"{named}\"")
    return SCHEDULES[named.lower()]


def _chunks(row, pp, schedule):
    if schedule != "interleaved":
        return 1
    if row.vp.isdigit():
        return int(row.vp)
    if row.vp.startswith("max"):  # one block a chunk
        return (row.layers + (2 if _short_ends(row) else 0)) // pp
    return STAGES_A_RANK


def _short_ends(row):
    return re.search(r"first and last stage hold one layer fewer", row.note) is not None


def _zero(row, dp, pp):
    """Sharded parameters are gathered once an iteration under a pipeline: the framework's default keeps them until the step."""
    shards = next((int(value) for key, value in row.facts.items() if key in ("fsdp", "FSDP(ZeRO-3)")), 0)
    if shards > 0:
        return 3 if pp == 1 else 1
    return 1 if era(row) == "2023" and dp > 1 else 0


def _switches(row, tp, pp, dp):
    """Options that are on or off, or have few values."""
    modern = era(row) == "2023"
    parallel = row.sequence_parallel if row.sequence_parallel is not None else tp > 1
    recipe = framework(row) in ("nemo", "megatron-bridge")
    tuned = recipe or row.has("asyncTP")
    barrier = not row.facts.get("schedule", "").lower().startswith("zb")
    flag = {True: "on", False: "off"}
    return {
        "--precision": precision(row), "--attention": "flash" if modern else "unfused", "--zero": str(_zero(row, dp, pp)),
        "--grad-dtype": "bf16" if precision(row) == "fp16" or recipe else "fp32", "--sequence-parallel": flag[parallel and tp > 1],
        "--overlap-grad-sync": flag[modern], "--overlap-tp": flag[tuned and parallel and tp > 1],
        "--optimizer-barrier": flag[barrier], "--overlap-p2p": flag[_overlaps_p2p(row)],
    }


def _overlaps_p2p(row):
    """Megatron waits for its sends but for interleaved schedules from 2023 on; torchtitan does not."""
    chunked = row.vp not in ("", "1")
    return framework(row) == "torchtitan" or (era(row) == "2023" and chunked)


def _experts(row):
    """Experts are divided whole, and take the mean where tokens are dropped."""
    drops = row.has("tokendrop") or "tokendrop" in row.model
    return {"--overlap-ep": "off", "--etp": "1", "--ep-dispatch": "all-to-all", "--expert-capacity": "1" if drops else "0"}


def _batches(row, dp, pp, siblings):
    """(global batch, micro-batch sizes to choose from). Where the row has neither, those of a row of the same source that
    is laid out alike."""
    batch, micro = row.global_batch, row.micro_batch
    if batch is None:
        alike = [other for other in siblings if other.global_batch is not None and all(
            getattr(other, name) == getattr(row, name) for name in ("model", "seq", "gpus", "tp", "pp", "dp", "cp", "ep"))]
        if not alike:
            raise Unpredictable("global batch not published")
        batch, micro = alike[0].global_batch, micro or alike[0].micro_batch
    if row.has("size not stated"):  # torchtitan's default: as many micro-batches as pipeline ranks
        micro = batch // (dp * pp)
    sizes = [micro] if micro else [size for size in MICRO_BATCHES if batch % (dp * size) == 0]
    if not sizes or batch % (dp * sizes[0]) != 0:
        raise Unpredictable(f"global batch {batch} is no multiple of dp {dp} times micro-batch {micro}")
    return batch, sizes


def build(row, siblings=(), gpu_override=None):
    """The Config of a row; `siblings` are all rows. Unpredictable, with the reason, where there is none."""
    if row.mem_kind == "single-layer":
        raise Unpredictable("one layer outside a model; no plan is one layer's forward and backward")
    if row.facts.get("mode", "pretrain") != "pretrain":
        raise Unpredictable("mode " + row.facts["mode"])
    cluster = clusters.build(row, gpu_override)
    layers, names = models.build(row, dropout=era(row) != "2023", tied=framework(row) != "zero-bubble")
    tp, pp, cp, dp = _degrees(row)
    schedule = _schedule(row, pp)
    vp = _chunks(row, pp, schedule)
    batch, sizes = _batches(row, dp, pp, siblings)
    model = {"format": "pipesched/model/v1", "name": row.model, "layers": layers,
             "constraints": _pins(names, split(row.layers, pp * vp, _short_ends(row)))}
    options = {"--global-batch-size": str(batch), "--seq-length": str(row.seq), "--tp": str(tp), "--pp": str(pp),
               "--vp": str(vp), "--dp": str(dp), "--cp": str(cp), "--ep": str(row.ep or 1), "--schedule": schedule,
               **_switches(row, tp, pp, dp)}
    if framework(row) == "torchtitan":
        options |= {"--recompute-parts": "ops", "--repeat-kv": "on", "--cp-method": "all-gather", "--loss": "plain",
                    "--kernels": "eager" if row.has("eager") else "fused"}
    if not row.recompute:
        options["--recompute-parts"] = "norm,activation,mla-up"
    if row.ep:
        options |= _experts(row)
    choices = {"--micro-batch-size": [str(size) for size in sizes],
               "--recompute": [row.recompute] if row.recompute else RECOMPUTES}
    if framework(row) == "megatron-bridge":
        options |= recipes.of(row).options(row.ep)
        choices["--recompute"] = [options.pop("--recompute")]
    return Config(model, cluster, options, choices, WITHIN.get(row.facts.get("schedule", "").lower()) if pp > 1 else None)
