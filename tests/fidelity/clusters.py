# SPDX-License-Identifier: Apache-2.0
"""The cluster of a row: the machine that its GPU type is sold in, unless the note says otherwise."""
from errors import Unpredictable

# What the catalog lacks. Datasheets; the 96 GB H100 by its operators: HBM2e, a limit of 500 instead of 700 W.
GB200 = {"name": "GB200", "like": "B200-SXM-180GB", "memory_nominal": "186GiB", "memory_usable": "184GiB",
         "memory_bandwidth": "8000GB/s", "peak_tflops": {"bf16": 2500, "fp16": 2500, "fp8": 5000, "mxfp8": 5000, "nvfp4": 10000}}
B300 = {"name": "B300", "like": "B200-SXM-180GB", "memory_nominal": "268GiB", "memory_usable": "267GiB",
        "memory_bandwidth": "8000GB/s", "peak_tflops": {"bf16": 2250, "fp16": 2250, "fp8": 4500, "mxfp8": 4500, "nvfp4": 13500}}
GB300 = {"name": "GB300", "like": "B200-SXM-180GB", "memory_nominal": "277GiB", "memory_usable": "276GiB",
         "memory_bandwidth": "8000GB/s", "peak_tflops": {"bf16": 2500, "fp16": 2500, "fp8": 5000, "mxfp8": 5000, "nvfp4": 15000}}
H100_500W = {"name": "H100-96GB-500W", "like": "H100-SXM5-80GB", "memory_nominal": "96GiB", "memory_usable": "95GiB",
             "memory_bandwidth": "2400GB/s", "memory_efficiency": 0.92,
             "peak_tflops": {"bf16": 791, "fp16": 791, "fp8": 1583},
             "attention_efficiency": 0.35, "attention_backward_efficiency": 0.30}

# GPU type of the file: GPU, GPUs a node, NIC type, rate of one of its NICs (one a GPU), nodes of an NVLink domain.
MACHINES = {
    "V100-32G": ("V100-SXM2-32GB", 8, "IB-EDR", "100Gb/s", 1),
    "A100-40G": ("A100-SXM4-40GB", 8, "IB-HDR", "200Gb/s", 1),
    "A100-80G": ("A100-SXM4-80GB", 8, "IB-HDR", "200Gb/s", 1),
    "A100": ("A100-SXM4-80GB", 8, "IB-HDR", "200Gb/s", 1),
    "H100": ("H100-SXM5-80GB", 8, "IB-NDR", "400Gb/s", 1),
    "H100-SXM": ("H100-SXM5-80GB", 8, "IB-NDR", "400Gb/s", 1),
    "H800": ("H800-SXM5-80GB", 8, "IB-NDR", "400Gb/s", 1),
    "H200": ("H200-SXM-141GB", 8, "IB-NDR", "400Gb/s", 1),
    "H100-96G-HBM2e-500W": (H100_500W, 8, "IB-NDR", "400Gb/s", 1),
    "B200": ("B200-SXM-180GB", 8, "IB-NDR", "400Gb/s", 1),
    "B200-SXM": ("B200-SXM-180GB", 8, "IB-NDR", "400Gb/s", 1),
    "B300": (B300, 8, "IB-XDR", "800Gb/s", 1),
    "GB200": (GB200, 4, "IB-NDR", "400Gb/s", 16),
    "GB300": (GB300, 4, "IB-XDR", "800Gb/s", 16),
}


def build(row, gpu_override):
    """The cluster file of a row. `gpu_override` replaces keys of its GPU."""
    if row.gpu_type not in MACHINES:
        raise Unpredictable(f"no machine known for GPU type \"{row.gpu_type}\"")
    if row.gpus is None:
        raise Unpredictable("number of GPUs not published")
    gpu, per_node, nic, rate, domain = MACHINES[row.gpu_type]
    per_node = min(per_node, row.gpus)
    if row.gpus % per_node != 0:
        raise Unpredictable(f"{row.gpus} GPUs are no whole number of nodes of {per_node}")
    nodes = row.gpus // per_node
    if gpu_override:
        whole = dict(gpu) if isinstance(gpu, dict) else {"name": gpu, "like": gpu}
        gpu = {**whole, **gpu_override}
    node = {"gpu": gpu, "gpus": per_node}
    if nodes > 1:
        node |= {"nics": per_node, "nic": "RoCE-200" if row.has("RoCE") else nic, "nic_bandwidth": rate}
    group = {"name": "g", "nodes": nodes, "node": node}
    if domain > 1 and nodes > 1:
        group["nvlink_domain_nodes"] = next(size for size in range(min(domain, nodes), 0, -1) if nodes % size == 0)
    return {"format": "pipesched/cluster/v1", "name": row.gpu_type, "groups": [group]}
