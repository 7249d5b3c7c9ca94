# SPDX-License-Identifier: Apache-2.0
"""Runs `pipesched plan` for a configuration and reads time and memory from the plan."""
import dataclasses
import json
import pathlib
import shlex
import subprocess
import tempfile

from errors import Unpredictable

NO_LIMIT = "100TiB"  # of memory: a run that was made is predicted even where it is predicted not to fit


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Of one row. Memory is that of the fullest device, in bytes."""

    iteration_s: float
    allocated: int     # at the peak, as the framework's allocator counts
    reserved: int      # with fragmentation
    first_stage: int   # parameters, gradients, optimizer state and activations of the first pipeline rank
    fits: bool
    micro_batch: int
    num_microbatches: int
    pp: int
    command: str       # to be run in the folder of model.json and cluster.json


class Tool:
    """The built program, with a memory of what it was asked: tuning asks the same again and again."""

    def __init__(self, program, extra=(), timeout_s=120):
        self.program = str(pathlib.Path(program).resolve())
        self.extra = list(extra)
        self.timeout_s = timeout_s
        self.answers = {}

    def predict(self, config):
        """The Prediction of a Config: of its variants that fit the one predicted fastest, or else the last that ran."""
        if config.within:
            return self.predict(self._limited(config))
        best = last = refused = None
        for options in config.variants():
            try:
                plan = self._plan(config, options, fitting=True)
                if plan["verdict"] == "feasible" and (best is None or _time(plan) < _time(best[0])):
                    best = plan, options, True
                if plan["verdict"] != "feasible" and best is None:
                    last = options
            except Unpredictable as error:
                refused = refused or error
        if best is None and last is None:
            raise refused
        if best is None:
            best = self._plan(config, last, fitting=False), last, False
        return _prediction(*best)

    def _limited(self, config):
        """The same without `within`: memory is limited to what that schedule needs."""
        options = config.options | {"--schedule": config.within}
        bound = self._plan(config, next(dataclasses.replace(config, options=options).variants()), fitting=False)
        peak = max(device["memory"]["total_peak"] for device in bound["devices"])
        return dataclasses.replace(config, options=config.options | {"--memory-limit": f"{peak}B"}, within=None)

    def _plan(self, config, options, fitting):
        words = [word for pair in options.items() for word in pair] + self.extra
        words += [] if fitting else ["--memory-limit", NO_LIMIT]
        key = json.dumps([config.model, config.cluster, words])
        if key not in self.answers:
            self.answers[key] = self._run(config, words)
        answer = self.answers[key]
        if isinstance(answer, Unpredictable):
            raise answer
        if not fitting and answer["verdict"] != "feasible":
            raise Unpredictable("infeasible: " + answer["reasons"][0]["message"])
        return answer

    def _run(self, config, words):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in (("model", config.model), ("cluster", config.cluster)):
                (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
            done = subprocess.run([self.program, "plan", "model.json", "cluster.json", *words, "--threads", "1", "--json"],
                                  cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=self.timeout_s, check=False)
        if done.returncode not in (0, 1):
            return Unpredictable(_refusal(done))
        plan = json.loads(done.stdout)
        if "verdict" not in plan:  # refused for this layout, as a calibration of another precision is
            return Unpredictable(_refusal(done))
        return plan if done.returncode == 0 or all(_about_memory(reason) for reason in plan["reasons"]) else Unpredictable(
            "infeasible: " + plan["reasons"][0]["message"])


def _refusal(done):
    """What the program said in one line."""
    try:
        error = json.loads(done.stdout)
        return f"refused, {error['rule']}: {' '.join(filter(None, [error['source'], error['pointer'], error['message']]))}"
    except (ValueError, KeyError):
        text = (done.stderr.strip() or "no message").splitlines()[0]
        return f"exit status {done.returncode}: {text}"


def _about_memory(reason):
    return "need" in reason and "have" in reason and reason.get("dominant")


def _time(plan):
    return plan["prediction"]["iteration_ms"]


def _prediction(plan, options, fits):
    memories = [device["memory"] for device in plan["devices"]]
    first = memories[0]
    static = first["parameters"] + first["gradients"] + first["optimizer"]
    reserved = max(memory["total_peak"] - memory["reserve"] for memory in memories)
    words = [word for pair in options.items() for word in pair] + ([] if fits else ["--memory-limit", NO_LIMIT])
    layout = plan["layout"]
    return Prediction(
        iteration_s=_time(plan) / 1e3,
        allocated=max(memory["total_peak"] - memory["reserve"] - memory.get("fragmentation", 0) for memory in memories),
        reserved=reserved, first_stage=static + first["activations_peak"], fits=fits,
        micro_batch=layout["micro_batch_size"], num_microbatches=layout["num_microbatches"], pp=layout["pp"],
        command="pipesched plan model.json cluster.json " + shlex.join(words))
