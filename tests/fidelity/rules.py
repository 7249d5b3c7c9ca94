# SPDX-License-Identifier: Apache-2.0
"""The rules by which a row becomes a configuration, in words: printed at the head of the report, repeated in docs/fidelity.md."""

RULES = [
    "Sizes, degrees, batch, recompute and sequence parallelism are the row's; schedule, precision, sharding and experts its note's. No rule looks at a measured value or names a row.",
    "Architecture beyond the sizes is the family's. GPT: biases, LayerNorm, plain FFN of 4 h unless given, learned positions, tied head. Nemotron: LayerNorm, plain FFN. Others: RMS norm, gated FFN, no biases, "
    "a head of its own; Qwen3: heads of 128 with query and key norms; gpt-oss: heads of 64, attention biases, a window in every other block; DeepSeek and Kimi: latent attention of 1536, 512, 128 + 64 and 128.",
    "V100 and A100: unfused attention with dropout, gradients reduced after the backward. Later GPUs: flash attention, no dropout, reduction overlapped, ZeRO-1. V100 and A100 of 40 GB (2020): fp16, gradients of 2 bytes.",
    "Without a word on it: bf16, gradients of 4 bytes (of 2 in NeMo and Megatron-Bridge, as their recipes say), sequence parallelism with tp above 1, 1F1B, or interleaved with vp above 1. Interleaved without a number of chunks: two. ZB-1p and ZB-2p: the best order "
    "found (--schedule zb) within the memory of zb-h1 and of zb-h2, no barrier before the optimizer; the zero-bubble runs untie the embedding and train in fp16 with gradients of 2 bytes, as their launch script says.",
    "Tensor parallel exchanges are partly hidden (--overlap-tp) in NeMo and Megatron-Bridge and where the note says asyncTP. Megatron waits for its sends (--overlap-p2p off) but for interleaved schedules from 2023 on, the zero-bubble runs too; torchtitan does not. FSDP is ZeRO-3; under a pipeline weights stay gathered until the step, which is ZeRO-1.",
    "Blocks are cut evenly over p v stages, embedding and head on top; with one fewer at both ends where the note says so or only L + 2 divides; else ceil(L / p v) a stage and what is left in the last.",
    "What is not published is chosen by the prediction alone: the fastest of micro-batches 1, 2, 4, 8 and of no, selective (norms, activations, up-projections of latent attention) and full recompute that fits. A row without a batch takes that of a row of the same model and degrees.",
    "Experts are divided whole (--etp 1), and take the mean where tokens are dropped (--expert-capacity 1). Megatron-Bridge's dispatch, overlap, recompute, CUDA graphs and loss are those of its recipes for the model and GPU as of the container (recipes.py). torchtitan runs as many micro-batches as pipeline ranks where their size is not stated.",
    "torchtitan of 2024: selective recompute is by operation (--recompute-parts ops), keys and values are repeated for every query head, context parallel ranks gather them all, the loss is plain, and without compile kernels are eager: its sources say so.",
    "Machines: 8 GPUs a node with a NIC each (100 Gb/s V100, 200 A100, 400 H100 and B200, 800 B300), nodes of 4 in NVLink domains of 16 for GB200 and GB300; RoCE where the note says so.",
    "An H100 held at 500 of its 700 W: of both 150 W are drawn at any clock (assumed) and the rest goes with the square of the clock, which makes 0.80 of the peaks. It reaches 0.92 of its memory's rate (torchao's roofline for this machine), and with PyTorch's own attention kernels 0.35 of the peak forward and 0.30 backward (FlashAttention-2 on Hopper, Shah et al. 2024).",
    "Time is compared in seconds. Memory: allocated is the peak without reserve and fragmentation; computed is state and activations of the first stage; reserved is with fragmentation; rounded GB are 10^9 bytes.",
    "Two plans are of one job when source, model, GPUs, sequence, precision and software agree, and the global batch or the micro-batches a replica; throughput is compared.",
]


def print_rules():
    print("Rules")
    for number, rule in enumerate(RULES, 1):
        print(f"  {number:2}. {rule}")
