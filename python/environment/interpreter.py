"""Tells what a room must show of the Python that runs this, one line each: a word, a blank, a value.

`program` is the interpreter itself, `library` an entry of its own search path (the standard library), `object` a shared
object outside the system's directories. It is run with `-I -S`, so that no installed package has a part in it.
"""

import os
import sys

# Where the loader finds shared objects in every room.
SYSTEM = ("/lib/", "/lib32/", "/lib64/", "/libx32/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/libx32/")
# Modules that exist for tests of the interpreter; importing them may have effects.
UNWANTED = ("_test", "_xx", "xx")


def main():
    # Behind a virtual environment is the interpreter whose library does not depend on the current user.
    program = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    prefix = os.path.realpath(sys.base_prefix)
    libraries = sorted({os.path.realpath(place) for place in sys.path if os.path.exists(place)})
    say("program", program)
    say("prefix", prefix)
    say("version", ".".join(map(str, sys.version_info[:3])))
    for library in libraries:
        say("library", library)
    # Should a module crash while it is loaded, everything above has been told.
    sys.stdout.flush()
    if prefix not in ("/usr", "/"):
        if brings_objects(os.path.join(prefix, "lib")):
            load_everything(libraries)
        known = (*SYSTEM, *(library + "/" for library in libraries))
        for path in sorted(path for path in loaded() if not path.startswith(known)):
            say("object", path)
            for name in names_of(path):
                say("object", name)


def say(word, value):
    if "\n" not in value:
        print(word, value)


def brings_objects(directory):
    """Whether an interpreter has shared objects of its own beside its library, as those of conda do."""
    names = os.listdir(directory) if os.path.isdir(directory) else ()
    return any(".so" in name and not name.startswith("libpython") for name in names)


def load_everything(libraries):
    """Loads the compiled modules of the standard library, so that what they need is in memory."""
    for library in libraries:
        if not os.path.isdir(library):
            continue
        for name in os.listdir(library):
            module = name.split(".")[0]
            if ".so" in name and not module.startswith(UNWANTED):
                try:
                    __import__(module)
                except Exception:
                    # A module whose libraries are missing here would not work in a room either.
                    continue


def loaded():
    """The shared objects in this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line[line.find("/") :].rstrip("\n") for line in maps if "/" in line}
    return {path for path in paths if ".so" in os.path.basename(path)}


def names_of(path):
    """Links beside an object that lead to it: programs ask for it by such a name."""
    directory = os.path.dirname(path)
    names = (os.path.join(directory, name) for name in sorted(os.listdir(directory)) if ".so" in name)
    return [name for name in names if os.path.islink(name) and os.path.realpath(name) == path]


if __name__ == "__main__":
    main()
