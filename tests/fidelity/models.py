# SPDX-License-Identifier: Apache-2.0
"""The model of a row: its sizes are the row's, the rest is what its family is published with."""
import re

from errors import Unpredictable

GPT = {"norm": "layer", "gated": False, "biases": True, "tied": True, "positions": True}
NEMOTRON = {"norm": "layer", "gated": False}  # squared ReLU
QWEN3 = {"head_dim": 128, "qk_norm": True}
GPT_OSS = {"head_dim": 64, "attention_biases": True}  # a sliding window in every other block
FAMILIES = [  # the first whose pattern begins the name
    (r"gpt[ _-]?oss", GPT_OSS), (r"gpt|megatron|mt-nlg", GPT), (r"nemotron[-_ ]\d+b", NEMOTRON), (r"qwen3", QWEN3),
    (r"", {})]  # Llama: RMS norm, gated FFN, rotary positions, no biases, a head of its own
LATENT = {"q": 1536, "kv": 512, "nope": 128, "rope": 64, "value": 128}  # DeepSeek-V2, V3 and Kimi-K2


def family(row):
    """What the model family is published with."""
    name = row.model.lower()
    return next(traits for pattern, traits in FAMILIES if re.match(pattern, name))


def _number(row, *keys):
    for key in keys:
        if key in row.facts:
            return int(row.facts[key])
    return 0


def _attention(row, traits):
    latent = re.search(r"\bmla\b(?: q(\d+))?(?: kv(\d+))?(?: qk(\d+)\+(\d+))?(?: v(\d+))?", row.note)
    if latent:
        sizes = [int(given or usual) for given, usual in zip(latent.groups(), LATENT.values())]
        return {"attention_heads": row.heads, "q_lora_rank": sizes[0], "kv_lora_rank": sizes[1], "head_dim": sizes[2],
                "rope_head_dim": sizes[3], "value_head_dim": sizes[4]}
    keys = {"attention_heads": row.heads, "kv_heads": row.kv or row.heads}
    if "head_dim" in traits:
        keys["head_dim"] = traits["head_dim"]
    return keys


def _experts(row):
    """Keys of the expert FFN; nothing in a dense model. `shared` counts experts, or where large is their FFN."""
    if "experts" not in row.facts:
        return {}
    size = _number(row, "moe_ffn")
    shared = _number(row, "shared_ffn") or _number(row, "shared")
    keys = {"experts": _number(row, "experts"), "experts_per_token": _number(row, "topk"), "expert_ffn_size": size}
    if shared:
        keys["shared_ffn_size"] = shared if shared >= 64 else shared * size
    return keys


def _blocks(row, traits, dropout):
    """One dict for each block, from first to last."""
    common = {"hidden_size": row.hidden, **_attention(row, traits)}
    if traits.get("biases"):
        common |= {"qkv_bias": True, "output_bias": True, "ffn_bias": True}
    if traits.get("attention_biases"):
        common |= {"qkv_bias": True, "output_bias": True}
    if traits.get("qk_norm"):
        common["qk_norm"] = True
    if not traits.get("gated", True):
        common["gated"] = False
    if "norm" in traits:
        common["norm"] = traits["norm"]
    if dropout:
        common["dropout"] = True
    experts = _experts(row)
    dense = row.layers if not experts else _number(row, "dense_first", "dense", "dense_layers")
    window = re.search(r"\bswa(\d+)\b", row.note)
    blocks = []
    for index in range(row.layers):
        block = {"kind": "decoder", **common, "ffn_size": row.ffn or 4 * row.hidden}
        if index >= dense:
            block = {"kind": "moe-decoder", **common, **experts}
        if window and index % 2 == 0:
            block["sliding_window"] = int(window[1])
        blocks.append(block)
    return blocks


def _runs(blocks):
    """(block, how many in a row), so that equal neighbours are one entry of the file."""
    runs = []
    for block in blocks:
        if runs and runs[-1][0] == block:
            runs[-1][1] += 1
        else:
            runs.append([block, 1])
    return runs


def build(row, dropout, tied=True):
    """(layers of the native format, name of every block in order). Unpredictable where the row lacks sizes. `tied` false
    gives a family that ties its head one of its own."""
    missing = [name for name in ("hidden", "layers", "heads", "vocab", "seq") if getattr(row, name) is None]
    if missing:
        raise Unpredictable("sizes not published: " + ", ".join(missing))
    traits = family(row)
    ends = {"hidden_size": row.hidden, "vocab_size": row.vocab}
    embedding = {"name": "embedding", "kind": "embedding", **ends}
    if traits.get("positions"):
        embedding["learned_positions"] = row.seq
    if dropout:
        embedding["dropout"] = True
    layers, names = [embedding], []
    for number, (block, count) in enumerate(_runs(_blocks(row, traits, dropout))):
        name = f"block{number}"
        layers.append({"name": name, **({"repeat": count} if count > 1 else {}), **block})
        names += [name] if count == 1 else [f"{name}.{index}" for index in range(count)]
    norm = {"norm": traits["norm"]} if "norm" in traits else {}
    layers.append({"name": "final_norm", "kind": "norm", "hidden_size": row.hidden, **norm})
    layers.append({"name": "head", "kind": "head", **ends, **({"tied_with": "embedding"} if tied and traits.get("tied") else {})})
    return layers, names
