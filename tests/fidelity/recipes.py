# SPDX-License-Identifier: Apache-2.0
"""Megatron-Bridge's published recipes: what the rows of its tables leave to them ("recompute settings in Megatron-Bridge recipes").

Read in scripts/performance of its repository, as of the release behind each container. Names of recomputed modules are its own.
"""
import dataclasses
import re

PARTS = {"layernorm": "norm", "moe_act": "activation", "mla_up_proj": "mla-up", "mlp": "ffn", "core_attn": "core-attention", "moe": "moe"}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """`once`: a token is sent once a node (DeepEP, HybridEP). `overlap`: behind another micro-batch."""

    once: bool = False
    overlap: bool = False
    recompute: tuple = ()
    graphs: bool = False
    fused_loss: bool = True

    def options(self, experts):
        """As options of `pipesched plan`."""
        found = {"--cuda-graphs": "on" if self.graphs else "off", "--loss": "fused" if self.fused_loss else "plain",
                 "--recompute": "selective" if self.recompute else "none"}
        if self.recompute:
            found["--recompute-parts"] = ",".join(PARTS[name] for name in self.recompute)
        if experts:
            found |= {"--ep-dispatch": "dedup" if self.once else "all-to-all", "--overlap-ep": "on" if self.overlap else "off"}
        return found


# (model, GPU, recipe), the first that matches; for each container.
TABLE = {
    "25.09": [
        (r"deepseek", r"H100", Recipe(once=True, overlap=True, recompute=("mla_up_proj", "mlp"))),
        (r"deepseek", r"GB200", Recipe(recompute=("mla_up_proj", "mlp", "moe_act"))),
        (r"deepseek", r"B200", Recipe(graphs=True)),
        (r"qwen3_30b", r"GB200|B200", Recipe(graphs=True)),
        (r"qwen3_235b", r"GB200", Recipe(graphs=True)),
        (r"llama3_8b", r"GB200|B200", Recipe(graphs=True)),
        (r"", r"", Recipe())],
    "26.04": [
        (r"deepseek", r"H100", Recipe(once=True, recompute=("mla_up_proj", "mlp"))),
        (r"deepseek", r"GB200", Recipe(once=True, recompute=("mlp",), graphs=True)),
        (r"deepseek", r"", Recipe(once=True, recompute=("mla_up_proj",))),
        (r"kimi", r"GB300", Recipe(once=True, recompute=("mla_up_proj",))),
        (r"kimi", r"GB200", Recipe(once=True, recompute=("mla_up_proj",), graphs=True)),
        (r"kimi", r"H100", Recipe(recompute=("mla_up_proj", "mlp"))),
        (r"kimi", r"", Recipe(recompute=("mla_up_proj",))),
        (r"gpt oss", r"GB300", Recipe(graphs=True, fused_loss=False)),
        (r"gpt oss", r"GB200", Recipe(once=True, overlap=True, recompute=("layernorm", "moe_act"), fused_loss=False)),
        (r"gpt oss", r"B300", Recipe(once=True, graphs=True, fused_loss=False)),
        (r"gpt oss", r"B200", Recipe(once=True, recompute=("layernorm", "moe_act"), fused_loss=False)),
        (r"gpt oss", r"", Recipe(recompute=("layernorm", "moe_act"), fused_loss=False)),
        (r"qwen3_235b", r"H100", Recipe(overlap=True)),
        (r"qwen3_235b", r"GB", Recipe(once=True, graphs=True)),
        (r"qwen3_235b", r"", Recipe()),
        (r"qwen3_30b", r"H100", Recipe(once=True)),
        (r"qwen3_30b", r"", Recipe(once=True, graphs=True)),
        (r"nemotron_3_nano", r"H100", Recipe(once=True, recompute=("moe", "layernorm", "core_attn", "moe_act"), graphs=True)),
        (r"nemotron_3", r"", Recipe(once=True, graphs=True)),
        (r"llama3_8b", r"B300|B200", Recipe(graphs=True)),
        (r"", r"", Recipe())],
}


def of(row):
    """The recipe of a row of Megatron-Bridge's tables: of its container, or of the last one before it."""
    container = re.search(r"\[(\d\d\.\d\d)", row.source)
    release = max((name for name in TABLE if container and name <= container[1]), default=min(TABLE))
    return next(recipe for model, gpu, recipe in TABLE[release] if re.match(model, row.model.lower()) and re.match(gpu, row.gpu_type))
