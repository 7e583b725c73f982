"""Reports what an interpreter has of an environment, without importing it: `python discover.py < REQUEST`, one line of JSON."""

import importlib.metadata
import importlib.util
import json
import os
import sys

from .modules import local_spec, module_name


def main():
    request = json.load(sys.stdin)
    env_id, directory = request["env_id"], request["env_dir_path"]
    module = module_name(env_id)
    answer = {
        "python": sys.version.split()[0],
        "verifiers": version("verifiers"),
        "module": module,
        "origin": None,
        "local": False,
        "package_directory": None,
        "installed_version": version(module),
        "problem": None,
    }
    try:
        found = None if directory is None else local_spec(env_id, os.path.abspath(directory))
        spec = importlib.util.find_spec(module) if found is None else found[0]
        answer["local"] = found is not None
        if spec is not None and spec.origin is not None:
            answer["origin"] = spec.origin
            answer["package_directory"] = os.path.dirname(spec.origin)
    except Exception as error:
        answer["problem"] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(answer) + "\n")


def version(name):
    try:
        return importlib.metadata.version(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
