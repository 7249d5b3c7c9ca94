#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# quickstart.sh TOOL: wall time and peak memory of the quick-start plan, beside what is aimed at (release build, 2 cores).
# The best of five runs; nothing is asserted.
set -eu
exec python3 - "$1" <<'END'
import resource
import subprocess
import sys
import time

command = [sys.argv[1], "plan", "llama-3.1-70b", "8x8xH100-SXM5-80GB", "--nic", "400Gb/s", "--global-batch-size", "1024",
           "--seq-length", "8192", "--json"]
best = None
for _ in range(5):
    start = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    seconds = time.monotonic() - start
    best = seconds if best is None else min(best, seconds)
peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"quick-start plan: {best:.3f} s (target 1 s, {1 / best:.1f} times faster), "
      f"{peak_mib:.1f} MiB (target 64 MiB, {64 / peak_mib:.1f} times less)")
END
