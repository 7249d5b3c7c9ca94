// SPDX-License-Identifier: Apache-2.0
//
// constants.h: every number of the cost model that is neither architecture, nor in the catalog, nor a job option.
//
// None but the share of 8 bits was fitted to end-to-end runs that the tests compare with. "recalled" is a source too:
// the least certain.
#ifndef PS_COST_CONSTANTS_H
#define PS_COST_CONSTANTS_H

// Reached shares and kernel time where the catalog has none. Source: GEMM tables of A100 (0.74) and H100 (0.62-0.70);
// attention and elementwise are guesses made before any comparison.
#define PS_COST_GEMM_EFFICIENCY 0.65
#define PS_COST_ATTENTION_EFFICIENCY 0.50
#define PS_COST_MEMORY_EFFICIENCY 0.75
#define PS_COST_KERNEL_SECONDS 8e-6

// Grouped GEMMs of experts reach less than one GEMM: 0.65 against 0.74 on A100 (SimuMax operator tables).
#define PS_COST_GROUPED_GEMM_SHARE 0.88
// Products of small matrices in batches, the scan of a state space among them (recalled: about half of a large GEMM).
#define PS_COST_BATCHED_GEMM_SHARE 0.5
// Where the catalog has no efficiency of GEMMs in 8 or 4 bits: they run 1.5 times as fast as BF16 where the peak
// doubles (NeMo 24.07 runs on H100, casts included), and 4 bits gain less again (assumed).
#define PS_COST_FP8_SHARE 0.8
#define PS_COST_FP4_SHARE 0.6
// Casting an element to 8 or 4 bits writes it and its transposed copy; what it reads is written by the kernel before,
// into which frameworks mostly fuse the cast.
#define PS_COST_CAST_BYTES 2.0
// Weight gradients multiply transposed operands: 0.71 against 0.74 of the peak on A100 (SimuMax operator tables, by
// layout).
#define PS_COST_WEIGHT_GRADIENT_SHARE 0.955

// The host launches kernels one after the other: a layer takes at least this a kernel. A captured CUDA graph replays
// them faster (recalled: 4 to 6 us and 1.5 us).
#define PS_COST_LAUNCH_SECONDS 5e-6
#define PS_COST_GRAPH_LAUNCH_SECONDS 1.5e-6

// Flash attention fills and drains its tiles: a sequence of s tokens runs at s / (s + this) of the reached rate (A100
// and H100 kernels at 1k to 16k tokens, Dao 2023, figures 4 to 6).
#define PS_COST_FLASH_RAMP_TOKENS 512.0

// Backward FLOP of core attention by those of the forward. Flash recomputes the scores (Dao 2023).
#define PS_COST_FLASH_BACKWARD 2.5
#define PS_COST_UNFUSED_BACKWARD 2.0
// Bytes an element of the score matrix moves, 2-byte precision, softmax, mask and dropout (Korthikanti 2022, figure 3).
#define PS_COST_SCORE_BYTES 6.0
#define PS_COST_SCORE_DROPOUT_BYTES 5.0
#define PS_COST_SCORE_KERNELS 4.0

// The backward of the softmax reads what it kept and the gradient and writes one, that of dropout the mask: as much as
// the forward moves.
#define PS_COST_SCORE_BACKWARD 1.0
// Instructions of 32 bits that a random number of dropout takes (Philox 4x32-10, its key and the comparison), beyond
// what memory hides: with it the forward passes of four GPT models come out as measured (Qi et al. 2024, table 6).
#define PS_COST_DRAW_INSTRUCTIONS 30.0

// FLOP of a state space's scan a token, channel and state: the chunked form's products (Megatron-LM's count), and
// tokens of a chunk, between which states are kept.
#define PS_COST_SCAN_FLOPS 7.0
#define PS_COST_SCAN_CHUNK 256.0

// Bytes an element moves in 2-byte precision. In one kernel each: norms and rotary positions read and write once, a
// gated activation reads two and writes one. Operation by operation as PyTorch runs them eagerly, in 32 bits where
// models ask for it: an RMS norm casts, squares, takes the mean, scales, casts back and weighs; rotary positions cast,
// multiply as complex numbers and cast back; an activation writes what the gate reads again.
#define PS_COST_NORM_BYTES 4.0
#define PS_COST_NORM_KERNELS 1.0
#define PS_COST_EAGER_NORM_BYTES 36.0
#define PS_COST_EAGER_NORM_KERNELS 6.0
#define PS_COST_ROTARY_BYTES 4.0
#define PS_COST_ROTARY_KERNELS 1.0
#define PS_COST_EAGER_ROTARY_BYTES 20.0
#define PS_COST_EAGER_ROTARY_KERNELS 6.0
#define PS_COST_EAGER_ACTIVATION_BYTES 4.0 // beyond one kernel

// Blocks of one attention are joined in 32 bits: their output is read, what was joined so far is read and written.
#define PS_COST_JOIN_BYTES 10.0

// Elementwise backward reads and writes about twice what the forward does.
#define PS_COST_ELEMENTWISE_BACKWARD 2.0

// Cross-entropy on the logits, fused, 2-byte precision: bytes moved an element (14 in all).
#define PS_COST_LOSS_FORWARD_BYTES 6.0
#define PS_COST_LOSS_BACKWARD_BYTES 8.0
// The same in separate kernels on 32-bit logits (24 to 30 in all).
#define PS_COST_PLAIN_LOSS_FORWARD_BYTES 12.0
#define PS_COST_PLAIN_LOSS_BACKWARD_BYTES 16.0
// Beyond the logits that are kept for the backward: 8 B an element in all fits the peaks of SimuMax' B200 runs.
#define PS_COST_LOSS_TRANSIENT_BYTES 6.0
#define PS_COST_PLAIN_LOSS_TRANSIENT_BYTES 10.0

// The vocabulary is padded to this many rows a tensor parallel rank (Megatron-LM, --make-vocab-size-divisible-by).
#define PS_COST_VOCABULARY_MULTIPLE 128

// Collectives inside a fast domain of n GPUs: seconds = max(floor(n), latency(n) + wire bytes / bandwidth) with
// f(n) = base + step * (n - 1). All-reduce: nccl-tests on A100 NVLink, n = 2, 4, 8: latency 45, 57, 80 us, floor 44,
// 51, 93 us. Reduce-scatter and all-gather: base of SimuMax' B200 fit, its step by all-reduce (0.77) on A100's.
#define PS_COST_ALL_REDUCE_BASE_SECONDS 34e-6
#define PS_COST_ALL_REDUCE_STEP_SECONDS 6.5e-6
#define PS_COST_ALL_REDUCE_FLOOR_BASE_SECONDS 28e-6
#define PS_COST_ALL_REDUCE_FLOOR_STEP_SECONDS 9e-6
#define PS_COST_SCATTER_BASE_SECONDS 24e-6
#define PS_COST_SCATTER_STEP_SECONDS 5e-6

// All-to-all reaches less than a ring: 0.597 against 0.742 of the fabric (SimuMax' B200 fit).
#define PS_COST_ALL_TO_ALL_SHARE 0.8

// Reduce-scatter and all-gather: 0.673 against 0.742 (the same fit).
#define PS_COST_SCATTER_SHARE 0.9

// A link whose bandwidth nobody knows: 100 Gb/s.
#define PS_COST_LINK_BYTES_PER_S 12.5e9

// Share of tensor parallel communication that user-buffer overlap hides (0.5 to 0.7 in Megatron-Core runs; recalled).
#define PS_COST_TP_HIDDEN_SHARE 0.5

// Share of expert exchanges that another micro-batch's compute hides: kernels that send take cores from those that
// compute (assumed as of tensor parallel communication).
#define PS_COST_EP_HIDDEN_SHARE 0.5

// Gradients leave in buckets of 40 million parameters (Megatron-Core, DistributedDataParallelConfig; recalled).
#define PS_COST_BUCKET_PARAMETERS 40e6

// Bytes that an optimizer step moves a parameter, mixed precision. Adam: read gradient, master, two moments (16), write
// master, two moments and the 2-byte weight (14), clear the gradient (4). SGD with momentum has one moment.
#define PS_COST_ADAM_STEP_BYTES 34.0
#define PS_COST_SGD_STEP_BYTES 26.0

// Bytes that a GPU's share of a host moves, where the host steps the optimizer: 8 channels of DDR4-3200 over 8 GPUs
// (recalled).
#define PS_COST_HOST_BYTES_PER_S 25e9

// What to expect of a calibration by one run of the same framework: with each group of published runs calibrated by
// each of its runs in turn, the rest of the group is 4.8 % off in the median over all choices (docs/fidelity.md),
// rounded up; 9 to 17 % on GPU types newer than H100, and so on others.
#define PS_COST_ONE_RUN_PERCENT 5
#define PS_COST_ONE_RUN_PERCENT_ELSEWHERE 15

#endif
