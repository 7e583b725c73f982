#!/usr/bin/env python3
"""@TITLE@

Calculator of an aec-bench task. `--help` lists what it takes; the result is one JSON object.
"""

import argparse
import importlib.abc
import importlib.util
import json
import sys

SPEC = json.loads(@SPEC@)


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The calculation's own modules, which are part of this file."""

    def find_spec(self, name, path=None, target=None):
        if f"{name}.py" in SPEC["modules"]:
            return importlib.util.spec_from_loader(name, self, origin=f"{name}.py")
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = f"{module.__name__}.py"
        exec(compile(SPEC["modules"][name], name, "exec"), module.__dict__)


def stop(message, code):
    print(json.dumps({"error": message}), file=sys.stderr)
    sys.exit(code)


def typed(param, value):
    """The value as the calculation takes it; anything else ends the program."""
    name, kind = param["name"], param["type"]
    try:
        if isinstance(value, bool):
            raise ValueError
        if kind == "enum":
            value = str(value)
        elif kind == "int":
            if float(value) != int(float(value)):
                raise ValueError
            value = int(float(value))
        else:
            value = float(value)
    except (TypeError, ValueError, OverflowError):
        stop(f"{name}: {value!r} is not {'a whole number' if kind == 'int' else 'a number'}", 2)
    options = param.get("values")
    if kind == "enum" and value not in options:
        stop(f"{name}: {value!r} is not one of {', '.join(options)}", 2)
    return value


def parser():
    about = argparse.ArgumentParser(description=SPEC["description"].replace("%", "%%"), epilog=SPEC["epilog"].replace("%", "%%"))
    about.add_argument("--json", metavar="OBJECT", help="all inputs as one JSON object; - reads it from stdin")
    for param in SPEC["params"]:
        text = param["description"]
        if param.get("unit"):
            text += f" [{param['unit']}]"
        if param.get("values"):
            text += f"; one of {', '.join(map(str, param['values']))}"
        if param.get("default") is not None:
            text += f"; usually {param['default']}"
        flag = "--" + param["name"].replace("_", "-")
        about.add_argument(flag, dest=param["name"], metavar=param["type"].upper(), help=text.replace("%", "%%"))
    return about


def main():
    arguments = vars(parser().parse_args())
    given = {}
    if arguments["json"] is not None:
        text = sys.stdin.read() if arguments["json"] == "-" else arguments["json"]
        try:
            given = json.loads(text)
        except ValueError as error:
            stop(f"--json: not JSON: {error}", 2)
        if not isinstance(given, dict):
            stop("--json: must be an object", 2)
    given.update({name: value for name, value in arguments.items() if name != "json" and value is not None})
    names = [param["name"] for param in SPEC["params"]]
    for name in given:
        if name not in names:
            stop(f"{name}: no such input; see --help", 2)
    missing = [name for name in names if name not in given]
    if missing:
        stop(f"missing: {', '.join(missing)}", 2)
    values = {param["name"]: typed(param, given[param["name"]]) for param in SPEC["params"]}
    sys.meta_path.insert(0, Modules())
    import engine

    try:
        result = engine.compute(**values)
    except (ValueError, ArithmeticError) as error:
        stop(str(error), 1)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
