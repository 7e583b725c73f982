"""Answers which tasks a package offers: `python select_tasks.py PACKAGE`, a JSON list of arguments on stdin."""

import importlib
import json
import sys
from pathlib import Path


def answer(core, package, arguments):
    try:
        chosen = core.select(package, core.read_options(arguments))
    except core.PackageError as error:
        return {"tasks": [], "overlap": False, "error": str(error)}
    return {"tasks": [task.task_id for task in chosen.tasks], "overlap": chosen.overlap, "error": None}


def main():
    directory = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(directory))
    core = importlib.import_module(f"{directory.name}.core")
    package = core.load_package()
    json.dump([answer(core, package, arguments) for arguments in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
