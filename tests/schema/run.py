#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hold every JSON file of ours against docs/schema: configs, test data, documentation examples and program output.

Also the other way round: each schema must refuse an input whose fault is one of shape. Exit status 77 when jsonschema
is missing.
"""
import argparse
import copy
import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("not run: Python's jsonschema is missing")
    sys.exit(77)

FORMAT = re.compile(r"^pipesched/([a-z]+)/v1$")
# Faults that a schema can see, by the rule that a bad input's name begins with. Rules about values that depend on
# others (ranges, sums, names that must exist) are the reader's alone.
SHAPE_RULES = ("unknown-key", "missing-key", "json-type")
VALUE_FAULTS = {"missing-key-peak.json"}  # the key is there, but all of its values are 0


class Failures:
    def __init__(self):
        self.count = 0
        self.checked = 0

    def expect(self, good, what):
        self.checked += 1
        if not good:
            self.count += 1
            print("failed:", what)


def load_schemas(folder):
    schemas = {}
    for path in sorted(folder.glob("*-v1.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        schemas[path.name[: -len("-v1.json")]] = jsonschema.Draft7Validator(schema)
    return schemas


def fault_of(schemas, document):
    """The first fault of a document by the schema of its format; None when it is valid."""
    match = FORMAT.match(document.get("format", "")) if isinstance(document, dict) else None
    if not match or match.group(1) not in schemas:
        return "no schema for this format"
    for error in schemas[match.group(1)].iter_errors(document):
        return "/%s: %s" % ("/".join(str(part) for part in error.absolute_path), error.message[:200])
    return None


def check_files(schemas, source, failures):
    seen = set()
    folders = ("configs", "tests/data/models", "tests/data/clusters", "tests/data/jobs", "tests/data/runs")
    for path in (path for folder in folders for path in sorted(source.glob(folder + "/**/*.json"))):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            failures.expect(False, "%s: %s" % (path, error))
            continue
        match = FORMAT.match(document.get("format", "")) if isinstance(document, dict) else None
        if not match or match.group(1) not in schemas:
            continue  # a Hugging Face config, or the catalog
        seen.add(match.group(1))
        fault = fault_of(schemas, document)
        failures.expect(fault is None, "%s: %s" % (path, fault))
    failures.expect({"cluster", "job", "model", "runs"} <= seen, "configs and test data hold clusters, jobs, models and runs")


def code_blocks(text):
    yield from re.findall(r"^```json\n(.*?)^```", text, re.S | re.M)
    for block in re.findall(r"(?:^(?: {4}.*)?\n)+", text, re.M):
        yield "\n".join(line[4:] for line in block.split("\n"))


def check_documentation(schemas, source, failures):
    for path in sorted(source.glob("docs/**/*.md")) + [source / "README.md"]:
        if not path.exists():
            continue
        for block in code_blocks(path.read_text(encoding="utf-8")):
            if not block.strip().startswith("{") or '"format"' not in block or "..." in block:
                continue  # no document, or one with parts left out
            try:
                fault = fault_of(schemas, json.loads(block))
            except json.JSONDecodeError as error:
                fault = str(error)
            failures.expect(fault is None, "%s: example: %s" % (path, fault))


def check_bad_inputs(schemas, source, failures):
    for path in sorted(source.glob("tests/bad/*/*.json")):
        if not path.name.startswith(SHAPE_RULES) or path.name in VALUE_FAULTS:
            continue
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError):
            continue
        if isinstance(document, dict) and FORMAT.match(str(document.get("format", ""))):
            failures.expect(fault_of(schemas, document) is not None, "%s: is accepted by its schema" % path)


def each_required_key(schema, document, path=()):
    """Places of keys that the schema requires, within one document."""
    if isinstance(document, dict) and schema.get("type") == "object":
        for key in schema.get("required", []):
            yield path + (key,)
        for key, value in document.items():
            yield from each_required_key(schema.get("properties", {}).get(key, {}), value, path + (key,))
    if isinstance(document, list) and document and isinstance(schema.get("items"), dict):
        yield from each_required_key(schema["items"], document[0], path + (0,))


def check_plan(schemas, name, text, failures):
    plan = json.loads(text)
    fault = fault_of(schemas, plan)
    failures.expect(fault is None, "plan (%s): %s" % (name, fault))
    for path in each_required_key(schemas["plan"].schema, plan):
        broken = copy.deepcopy(plan)
        at = broken
        for part in path[:-1]:
            at = at[part]
        del at[path[-1]]
        failures.expect(fault_of(schemas, broken) is not None, "plan (%s) without /%s is accepted" % (name, path))


def known_keys(schema):
    """Every key of an object schema and of those inside it."""
    keys = set(schema.get("properties", {}))
    parts = list(schema.get("properties", {}).values()) + schema.get("oneOf", [])
    if "items" in schema:
        parts.append(schema["items"])
    for part in parts:
        keys |= known_keys(part)
    return keys


def keys_of(document):
    if isinstance(document, dict):
        return set(document).union(*(keys_of(value) for value in document.values()))
    if isinstance(document, list):
        return set().union(*(keys_of(value) for value in document))
    return set()


def check_written_plans(schemas, write_plans, failures):
    known = known_keys(schemas["plan"].schema) | {"memory", "megatron"}  # counts by rule, launchable by target
    for name in ("feasible", "timeline", "infeasible"):
        text = subprocess.run([write_plans, name], check=True, capture_output=True, encoding="utf-8").stdout
        check_plan(schemas, name, text, failures)
        unknown = keys_of(json.loads(text)) - known
        failures.expect(not unknown, "plan (%s): keys missing from the schema: %s" % (name, sorted(unknown)))


def check_program(schemas, source, program, failures):
    job = ["--global-batch-size", "64", "--seq-length", "2048", "--json"]
    runs = [
        (["plan", "llama-3.1-8b", "1x8xH100-SXM5-80GB"] + job, "plan"),
        (["plan", "llama-3.1-405b", "1x1xH100-SXM5-80GB"] + job, "plan"),
        (["plan", "no-such-model", "1x8xH100-SXM5-80GB"] + job, "error"),
        (["calibrate", "llama-3.1-8b", "1x8xH100-SXM5-80GB", "--json", "--runs",
          str(source / "tests" / "data" / "runs" / "llama-h100.json")], "calibration"),
    ]
    for arguments, kind in runs:
        result = subprocess.run([program] + arguments, capture_output=True, encoding="utf-8", check=False)
        command = " ".join(["pipesched"] + arguments)
        try:
            document = json.loads(result.stdout)
        except json.JSONDecodeError as error:
            failures.expect(False, "%s: no JSON: %s" % (command, error))
            continue
        fault = fault_of(schemas, document)
        failures.expect(fault is None, "%s: %s" % (command, fault))
        failures.expect(document.get("format") == "pipesched/%s/v1" % kind, "%s: answers with a %s" % (command, kind))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--write-plans", required=True)
    parser.add_argument("--program")
    arguments = parser.parse_args()
    failures = Failures()
    schemas = load_schemas(arguments.source / "docs" / "schema")
    check_files(schemas, arguments.source, failures)
    check_documentation(schemas, arguments.source, failures)
    check_bad_inputs(schemas, arguments.source, failures)
    check_written_plans(schemas, arguments.write_plans, failures)
    if arguments.program:
        check_program(schemas, arguments.source, arguments.program, failures)
    print("%d checks, %d failed" % (failures.checked, failures.count))
    return 1 if failures.count else 0


sys.exit(main())
