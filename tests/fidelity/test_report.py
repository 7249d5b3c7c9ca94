#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report end to end on fixture.csv, with the built program: test_report.py PIPESCHED."""
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent


def report(*words):
    return subprocess.run([sys.executable, "-B", HERE / "report.py", PROGRAM, HERE / "fixture.csv", *words],
                          capture_output=True, text=True, check=False)


class Report(unittest.TestCase):
    def test_every_row_is_predicted_or_named(self):
        done = report()
        self.assertEqual(done.stderr, "")
        self.assertRegex(done.stdout, r"old +1/1 ")
        self.assertRegex(done.stdout, r"chunks +2/2 ")
        self.assertRegex(done.stdout, r"allocated-gb-rounded: chunks +2/2 ")
        self.assertIn("lost: no machine known for GPU type \"unknown 8-GPU node\"\n      Small", done.stdout)

    def test_commands_are_shown(self):
        done = report("-v", "--group", "chunks")
        self.assertIn("pipesched plan model.json cluster.json --global-batch-size 16 --seq-length 1024 --tp 1 --pp 4 --vp 2", done.stdout)
        self.assertNotIn("old", done.stdout)

    def test_gpu_override_changes_time_alone(self):
        plain, slow = report("-v", "--group", "old"), report("-v", "--group", "old", "--gpu-override", '{"gemm_efficiency": 0.1}')
        self.assertNotEqual(plain.stdout, slow.stdout)

    def test_wrong_use(self):
        self.assertEqual(report("--group", "none").returncode, 2)
        self.assertEqual(report("--gpu-override", "{").returncode, 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
