#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reader and the rules of the fidelity report, on fixture.csv, whose rows are made up."""
import dataclasses
import pathlib
import tempfile
import unittest

import clusters
import configs
import judge
import models
import recipes
import rows
from errors import Unpredictable
from predict import Prediction
from rules import RULES

FIXTURE = pathlib.Path(__file__).parent / "fixture.csv"
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "fidelity.md"


def read_text(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.csv"
        path.write_text(text, encoding="utf-8")
        return rows.read(path)


def first_variant(config):
    return next(config.variants())


class Reader(unittest.TestCase):
    def setUp(self):
        self.lines = FIXTURE.read_text(encoding="utf-8").splitlines(keepends=True)

    def test_reads_every_row_with_its_line(self):
        found = rows.read(FIXTURE)
        self.assertEqual([row.line for row in found], list(range(2, 10)))
        self.assertEqual((found[0].hidden, found[0].iteration_s, found[0].memory_gib), (2048, 0.5, None))
        self.assertIs(found[0].sequence_parallel, False)
        self.assertIsNone(found[4].sequence_parallel)

    def test_facts_are_all_keys_of_the_note(self):
        self.assertEqual(rows.read(FIXTURE)[4].facts, {"mode": "pretrain", "precision": "FP8(as", "fsdp": "0", "tok/s/GPU": "3600"})
        self.assertEqual(rows.facts("FSDP(ZeRO-3)=8; a=1, b=2.5"), {"FSDP(ZeRO-3)": "8", "a": "1", "b": "2.5"})

    def test_word_is_whole(self):
        row = rows.read(FIXTURE)[6]
        self.assertTrue(row.has("fp8") and row.has("compile"))
        self.assertFalse(row.has("fp") or row.has("comp"))

    def test_refuses_with_line_and_column(self):
        cases = {",GPT-1B,2048,": (",GPT-1B,none,", "line 2: hidden"), ",0,0.5,": (",0,-0.5,", "line 2: measured_iteration_s"),
                 ",full,0,": (",half,0,", "line 2: recompute"), ",0.5,,,one": (",,,,one", "line 2: nothing measured"),
                 "one micro-batch": ("a=1; a=2", "line 2: note: a is both 1 and 2"), ",read\n": ("\n", "line 2: 27 cells")}
        for old, (new, message) in cases.items():
            text = self.lines[0] + self.lines[1].replace(old, new)
            with self.assertRaisesRegex(rows.RowError, message):
                read_text(text)
        with self.assertRaisesRegex(rows.RowError, "expected the columns"):
            read_text("group,model\n")


class Split(unittest.TestCase):
    def test_even(self):
        self.assertEqual(configs.split(12, 4, False), [3, 3, 3, 3])
        self.assertEqual(configs.split(12, 1, False), [12])

    def test_one_fewer_at_both_ends(self):
        self.assertEqual(configs.split(126, 16, False), [7] + [8] * 14 + [7])
        self.assertEqual(configs.split(22, 24, True), [0] + [1] * 22 + [0])
        with self.assertRaises(Unpredictable):
            configs.split(21, 8, True)

    def test_what_is_left_goes_to_the_last(self):
        self.assertEqual(configs.split(61, 16, False), [4] * 15 + [1])
        self.assertEqual(configs.split(61, 8, False), [8] * 7 + [5])


class Rules(unittest.TestCase):
    def setUp(self):
        self.rows = rows.read(FIXTURE)
        self.configs = [None if row.group == "lost" else configs.build(row, self.rows) for row in self.rows]

    def test_gpt_on_old_hardware(self):
        config = self.configs[0]
        self.assertEqual({key: first_variant(config)[key] for key in (
            "--precision", "--attention", "--grad-dtype", "--zero", "--overlap-grad-sync", "--overlap-tp", "--sequence-parallel",
            "--schedule", "--micro-batch-size", "--recompute")}, {
                "--precision": "fp16", "--attention": "unfused", "--grad-dtype": "bf16", "--zero": "0",
                "--overlap-grad-sync": "off", "--overlap-tp": "off", "--sequence-parallel": "off", "--schedule": "1f1b",
                "--micro-batch-size": "4", "--recompute": "full"})
        embedding, block, norm, head = config.model["layers"]
        self.assertEqual((embedding["learned_positions"], embedding["dropout"]), (1024, True))
        self.assertEqual((block["repeat"], block["gated"], block["norm"], block["ffn_bias"], block["dropout"]), (8, False, "layer", True, True))
        self.assertEqual((norm["norm"], head["tied_with"]), ("layer", "embedding"))

    def test_one_block_a_chunk(self):
        config = self.configs[1]
        options = first_variant(config)
        self.assertEqual((options["--schedule"], options["--vp"]), ("interleaved", "2"))
        pins = {entry["pin"]: entry["stage"] for entry in config.model["constraints"] if "pin" in entry}
        self.assertEqual(pins, {"embedding": 0, "head": "last", **{f"block0.{block}": block + 1 for block in range(6)}})

    def test_batch_of_a_row_laid_out_alike(self):
        self.assertEqual(first_variant(self.configs[3])["--global-batch-size"], "16")
        self.assertEqual(self.configs[3].choices["--micro-batch-size"], ["1"])
        with self.assertRaisesRegex(Unpredictable, "global batch"):
            configs.build(self.rows[3], ())

    def test_llama_on_new_hardware(self):
        options = first_variant(self.configs[4])
        self.assertEqual({key: options[key] for key in ("--precision", "--attention", "--grad-dtype", "--zero", "--overlap-grad-sync",
                                                        "--overlap-tp", "--sequence-parallel", "--schedule", "--vp")}, {
            "--precision": "fp8", "--attention": "flash", "--grad-dtype": "bf16", "--zero": "1", "--overlap-grad-sync": "on",
            "--overlap-tp": "on", "--sequence-parallel": "on", "--schedule": "interleaved", "--vp": "4"})
        self.assertEqual(self.configs[4].choices["--recompute"], ["none"])  # its recipe's
        self.assertEqual(options["--cuda-graphs"], "off")
        self.assertNotIn("gated", self.configs[4].model["layers"][1])

    def test_experts_and_latent_attention(self):
        dense, experts = self.configs[5].model["layers"][1:3]
        self.assertEqual((dense["kind"], dense["repeat"], dense["ffn_size"]), ("decoder", 3, 6144))
        self.assertEqual((experts["kind"], experts["repeat"], experts["experts"], experts["experts_per_token"],
                          experts["expert_ffn_size"], experts["shared_ffn_size"]), ("moe-decoder", 28, 64, 8, 768, 768))
        self.assertEqual((dense["q_lora_rank"], dense["kv_lora_rank"], dense["head_dim"], dense["rope_head_dim"]), (1024, 256, 128, 64))
        self.assertEqual(self.configs[5].choices["--micro-batch-size"], ["1", "2", "4", "8"])
        options = first_variant(self.configs[5])
        self.assertEqual((options["--etp"], options["--ep-dispatch"], options["--expert-capacity"]), ("1", "all-to-all", "0"))

    def test_recipes_are_those_of_the_container(self):
        row = dataclasses.replace(self.rows[4], source="Megatron-Bridge [26.06 NeMo Container]", model="DeepSeekV3", gpu_type="GB200")
        self.assertEqual(recipes.of(row), recipes.Recipe(once=True, recompute=("mlp",), graphs=True))  # of 26.04, the last before
        older = recipes.of(dataclasses.replace(row, source="Megatron-Bridge [25.09 NeMo Container]", gpu_type="H100"))
        self.assertEqual(older.options(experts=True), {
            "--cuda-graphs": "off", "--loss": "fused", "--recompute": "selective", "--recompute-parts": "mla-up,ffn",
            "--ep-dispatch": "dedup", "--overlap-ep": "on"})
        self.assertNotIn("--ep-dispatch", older.options(experts=False))

    def test_searched_orders_have_the_memory_of_the_fixed_ones(self):
        facts = self.rows[1].facts | {"schedule": "ZB-2p"}
        config = configs.build(dataclasses.replace(self.rows[1], facts=facts, vp="", source="arXiv 2401.10241"), self.rows)
        self.assertEqual((config.options["--schedule"], config.within), ("zb", "zb-h2"))
        self.assertEqual(config.options["--optimizer-barrier"], "off")
        self.assertNotIn("tied_with", config.model["layers"][-1])

    def test_sharded_parameters(self):
        options = first_variant(self.configs[6])
        self.assertEqual((options["--zero"], options["--precision"], options["--overlap-tp"]), ("3", "fp8", "off"))
        self.assertEqual((options["--recompute-parts"], options["--repeat-kv"], options["--cp-method"], options["--kernels"]),
                         ("ops", "on", "all-gather", "fused"))

    def test_machines(self):
        self.assertEqual(self.configs[5].cluster["groups"][0]["nvlink_domain_nodes"], 16)
        self.assertEqual(self.configs[0].cluster["groups"][0]["node"], {"gpu": "A100-SXM4-40GB", "gpus": 8})
        override = clusters.build(self.rows[0], {"gemm_efficiency": 0.5})
        self.assertEqual(override["groups"][0]["node"]["gpu"],
                         {"name": "A100-SXM4-40GB", "like": "A100-SXM4-40GB", "gemm_efficiency": 0.5})

    def test_reasons(self):
        with self.assertRaisesRegex(Unpredictable, "unknown 8-GPU node"):
            configs.build(self.rows[7], self.rows)
        with self.assertRaisesRegex(Unpredictable, "sizes not published: heads, vocab"):
            models.build(self.rows[7], False)


class Document(unittest.TestCase):
    def test_has_every_rule(self):
        text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
        for rule in RULES:
            self.assertIn(rule, text)


def judged(row, seconds, memory=0):
    return judge.Judged(row, Prediction(seconds, memory, memory, memory, True, 1, 16, 4, ""), None)


class Judging(unittest.TestCase):
    def setUp(self):
        self.rows = rows.read(FIXTURE)

    def test_errors(self):
        one = judged(self.rows[1], 0.44, int(19e9))
        self.assertAlmostEqual(one.time_error(), 10)
        self.assertAlmostEqual(one.memory_error(), -5)
        self.assertIsNone(judge.Judged(self.rows[1], None, "why").time_error())
        self.assertIsNone(judged(self.rows[0], 1).memory_error())

    def test_summary(self):
        found = judge.summary([(4, self.rows[0]), (-6, self.rows[1]), (None, self.rows[2])])
        self.assertEqual((found.count, found.mean, found.bias, found.worst, found.worst_row), (2, 5, -1, -6, self.rows[1]))
        self.assertIsNone(judge.summary([(None, self.rows[0])]))

    def test_order_of_plans(self):
        right = list(judge.pairs([judged(self.rows[1], 0.40), judged(self.rows[2], 0.41), judged(self.rows[0], 1)]))
        self.assertEqual([(group, good) for group, good, *_ in right], [("chunks", True)])
        wrong = list(judge.pairs([judged(self.rows[1], 0.42), judged(self.rows[2], 0.41)]))
        self.assertEqual([good for _, good, *_ in wrong], [False])


if __name__ == "__main__":
    unittest.main()
