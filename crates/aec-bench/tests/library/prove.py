"""The solvability proof: every instance is solved from what an agent is given, and cannot be solved from less.

Reads one JSON object a line: the prompt, the workspace files, the calculator, the expected answers with their
tolerances, and where the engine and the reference solution are. Prints one JSON object with counts and failures.
"""

import importlib.util
import json
import math
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tempfile

import reader


class Module:
    """A module of a template, imported once."""

    loaded = {}

    @classmethod
    def of(cls, directory, file="engine.py"):
        path = os.path.join(directory, file)
        if path not in cls.loaded:
            spec = importlib.util.spec_from_file_location(f"module_{len(cls.loaded)}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            cls.loaded[path] = module
        return cls.loaded[path]


def close(field, found):
    """Whether a value is what a field of answers.json expects, within its tolerance."""
    kind = field["type"]
    if kind == "list":
        return isinstance(found, list) and sorted(map(str, found)) == sorted(map(str, field["items"]))
    if kind == "table":
        return rows_match(field, found)
    expected = field["accept"][0] if kind == "text" else field["value"]
    if kind != "number":
        return found == expected and isinstance(found, bool) == isinstance(expected, bool)
    bound = max(field.get("abs_tol", 0), field.get("rel_tol", 0) * abs(expected))
    if "sig" in field and expected:
        bound = max(bound, 0.5 * 10 ** (math.floor(math.log10(abs(expected))) - field["sig"] + 1))
    return isinstance(found, (int, float)) and abs(found - expected) <= bound


def rows_match(field, found):
    key = field["key"]
    by_key = {str(row[key]): row for row in found}
    for row in field["rows"]:
        other = by_key.get(str(row[key]))
        if other is None or len(found) != len(field["rows"]):
            return False
        for name, column in field["columns"].items():
            cell = {**column, "value": row[name], "accept": [row[name]]}
            if not close(cell, other[name]):
                return False
    return True


def mistakes(fields, answers):
    return [name for name, field in fields.items() if not close(field, answers.get(name))]


def from_prompt(line, prompt):
    """Answers from the text of a prompt alone."""
    engine = Module.of(line["template"])
    names = engine.compute.__code__.co_varnames[: engine.compute.__code__.co_argcount]
    known = reader.givens(prompt)
    return engine.compute(**{name: known[name] for name in names})


def without_each_given(prompt):
    """The prompt with one given removed, for each given."""
    lines = prompt.split("\n## Answer")[0].split("\n")
    tail = prompt[len("\n".join(lines)):]
    tables = reader_tables(lines)
    for heading, rows in tables:
        is_givens = reader.cells(lines[heading]) == ["quantity", "name", "value"]
        is_lookup = reader.NAME.match(reader.cells(lines[heading])[0])
        if is_givens:
            removals = [[row] for row in rows]
        elif is_lookup:
            removals = [[heading, heading + 1, *rows]]
        else:
            continue
        for removal in removals:
            kept = [text for at, text in enumerate(lines) if at not in removal]
            yield lines[removal[0]], "\n".join(kept) + tail
    for at, text in enumerate(lines):
        if re.match(r"^- .*?`[a-z][a-z0-9_]*` = `[^`]+`", text):
            yield text, "\n".join(lines[:at] + lines[at + 1:]) + tail


def reader_tables(lines):
    """Line numbers of each table: its heading, its rows."""
    at = 0
    while at < len(lines):
        if lines[at].lstrip().startswith("|"):
            end = at
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            yield at, list(range(at + 2, end))
            at = end
        at += 1


def from_files(line, files):
    """The mistakes of the reference solution, which sees only the workspace."""
    solution = os.path.join(line["template"], "solution", "solve.py")
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as directory:
        for path, text in files.items():
            place = pathlib.Path(directory, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        os.chdir(directory)
        try:
            runpy.run_path(solution, run_name="__main__")
            if line["fields"] is None:
                return own_mistakes(line)
            return mistakes(line["fields"], json.loads(pathlib.Path("output.json").read_text()))
        finally:
            os.chdir(here)


def own_mistakes(line):
    """The mistakes that the template's own verifier finds, as the missing part of the reward."""
    verifier = Module.of(line["template"], "verify.py")
    output = re.findall(r"/workspace/([\w./-]*\w)", line["prompt"])[-1]
    reward = verifier.score(pathlib.Path(output).read_bytes(), line["instance"])["reward"]
    return [] if reward == 1 else [f"{1 - reward} of the reward"]


def fails(work):
    """Whether something fails or gives a wrong result."""
    try:
        return bool(work())
    except (Exception, SystemExit):
        return True


def run_tool(line, known):
    """The problems of the calculator: its help, flags and JSON."""
    with tempfile.TemporaryDirectory() as directory:
        tool = os.path.join(directory, "calc.py")
        pathlib.Path(tool).write_text(line["tool"])
        run = lambda *arguments, text="": subprocess.run(
            [sys.executable, "-I", tool, *arguments], input=text, capture_output=True, text=True
        )
        helped = run("--help")
        if helped.returncode or any(f"--{name.replace('_', '-')}" not in helped.stdout for name in known):
            return f"--help: {helped.stderr}"
        flags = [part for name, value in known.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        for answered in (run(*flags), run("--json", "-", text=json.dumps(known)), run("--json", json.dumps(known))):
            if answered.returncode:
                return answered.stderr
            if wrong := mistakes(line["fields"], json.loads(answered.stdout)):
                return f"wrong {wrong}"
        refused = run("--json", "{}")
        if refused.returncode != 2 or "missing" not in refused.stderr:
            return f"nothing given: {refused.stderr}"
    return None


def prove(line):
    what, fields = line["task"], line["fields"]
    if line["files"]:
        if wrong := from_files(line, line["files"]):
            yield f"{what}: the reference solution gets {wrong} wrong"
        if line["thorough"]:
            for path in line["files"]:
                rest = {name: text for name, text in line["files"].items() if name != path}
                if not fails(lambda: from_files(line, rest)):
                    yield f"{what}: can be solved without {path}"
        return
    if wrong := mistakes(fields, from_prompt(line, line["prompt"])):
        yield f"{what}: the prompt gives {wrong} wrong"
    if line["thorough"]:
        removals = 0
        for given, prompt in without_each_given(line["prompt"]):
            removals += 1
            if not fails(lambda: mistakes(fields, from_prompt(line, prompt))):
                yield f"{what}: can be solved without: {given}"
        if removals < 3:
            yield f"{what}: only {removals} givens were found"
    if line["tool"]:
        engine = Module.of(line["template"])
        names = engine.compute.__code__.co_varnames[: engine.compute.__code__.co_argcount]
        known = reader.givens(line["prompt"])
        if wrong := run_tool(line, {name: known[name] for name in names}):
            yield f"{what}: calculator: {wrong}"


def main():
    proved, thorough, tools, failures = 0, 0, 0, []
    for text in sys.stdin:
        line = json.loads(text)
        try:
            failures.extend(prove(line))
        except (Exception, SystemExit) as error:
            failures.append(f"{line['task']}: {type(error).__name__}: {error}")
        proved += 1
        thorough += line["thorough"]
        tools += bool(line["tool"])
    print(json.dumps({"proved": proved, "thorough": thorough, "tools": tools, "failures": failures[:50]}))


if __name__ == "__main__":
    main()
