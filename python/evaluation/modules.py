"""Finds the module of an environment: an installed one, or one in a directory of environments."""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
from importlib.machinery import PathFinder


def module_name(env_id):
    """`owner/name@version` names the module `name`, with underscores."""
    return env_id.split("@", 1)[0].rsplit("/", 1)[-1].replace("-", "_")


def verifiers_version():
    """(major, minor, patch) of the installed library without importing it, or None."""
    try:
        text = importlib.metadata.version("verifiers")
    except importlib.metadata.PackageNotFoundError:
        return None
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def places(env_id, env_dir_path):
    """Directories in `env_dir_path` that may contain the module."""
    module = module_name(env_id)
    for name in dict.fromkeys((module, module.replace("_", "-"))):
        own = os.path.join(env_dir_path, name)
        yield own
        yield os.path.join(own, "src")
    yield env_dir_path


def local_spec(env_id, env_dir_path):
    """(spec, directory) of the module in the directory of environments, or None."""
    module = module_name(env_id)
    for place in places(env_id, env_dir_path):
        spec = PathFinder.find_spec(module, [place]) if os.path.isdir(place) else None
        # A directory without `__init__.py` is the project around the module, not the module.
        if spec is not None and spec.origin is not None:
            return spec, place
    return None


class LocalFinder:
    """Finds one module in one directory, before installed ones. Other files in that directory hide no module."""

    def __init__(self, module, place):
        self.module, self.place = module, place

    def find_spec(self, name, path=None, target=None):
        return PathFinder.find_spec(name, [self.place]) if name == self.module else None


def find_environment(env_id, env_dir_path):
    """Makes the local module, if there is one, importable, together with the modules beside it."""
    found = None if env_dir_path is None else local_spec(env_id, os.path.abspath(env_dir_path))
    if found is None:
        return None
    spec, place = found
    sys.meta_path.insert(0, LocalFinder(module_name(env_id), place))
    sys.path.append(place)
    # Processes that the environment starts must find the module, too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), place)))
    return spec


def project_file(origin, module):
    """The `pyproject.toml` next to the module, or of the project around a package, or None."""
    directory = os.path.dirname(origin)
    candidates = [directory]
    if os.path.basename(directory) == module:
        candidates.append(os.path.dirname(directory))
    for one in candidates:
        path = os.path.join(one, "pyproject.toml")
        if os.path.isfile(path):
            return path
    return None


def digest_of(examples):
    """A digest that is equal in processes that loaded the same examples."""
    digest = hashlib.sha256()
    for one in examples:
        digest.update(json.dumps(one, default=repr, sort_keys=True).encode("utf-8", "replace"))
        digest.update(b"\n")
    return digest.hexdigest()
