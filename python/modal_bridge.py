"""Speaks to Modal for aec-bench: opens rooms in sandboxes, reports prices, finds and ends sandboxes left behind.

Started with one argument, a JSON object with the wanted action in `do`. An error is the last line of stderr, as JSON with
a kind that aec-bench knows.

`room` makes a sandbox, starts the room's first process there, and copies bytes: from stdin to that process, and from its
output to stdout. The sandbox ends when stdin ends. All other actions print one line of JSON on stdout and create nothing.
"""

import json
import os
import sys
import threading

# Tags that identify the process that ends a sandbox: if that process is gone, the sandbox was left behind.
PID_TAG = "aec-bench-pid"


def say(kind, error):
    message = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
    sys.stderr.write("\n" + json.dumps({"kind": kind, "message": message}) + "\n")
    sys.stderr.flush()


def fail(kind, error):
    say(kind, error)
    os._exit(1)


try:
    import modal
    import modal.exception
except ImportError as error:
    fail("engine_refused", error)


def kind_of(error):
    name = type(error).__name__
    if isinstance(error, ConnectionError) or name in ("ConnectionError", "TimeoutError", "ServiceError", "InternalError"):
        return "engine_lost"
    return "engine_refused"


def build(wanted):
    """The task's image with its layers and the program. Modal caches images by their instructions."""
    image = modal.Image.from_dockerfile(wanted["dockerfile"], context_dir=wanted["context"])
    if wanted["layers"]:
        image = image.dockerfile_commands(wanted["layers"])
    for name, path in wanted["files"]:
        image = image.add_local_file(path, f"{wanted['place']}/{name}")
    return image


def start(wanted):
    try:
        app = modal.App.lookup(wanted["app"], create_if_missing=True)
    except Exception as error:
        fail(kind_of(error), error)
    try:
        image = build(wanted)
        image.build(app) if hasattr(image, "build") else None
    except Exception as error:
        lost = kind_of(error) == "engine_lost"
        fail("engine_lost" if lost else "image_build", error)
    try:
        return modal.Sandbox.create(
            "sh",
            "-c",
            "sleep infinity",
            app=app,
            image=image,
            # Set with the sandbox, not after it: if this process died in between, the sandbox could not be found.
            tags={**wanted["tags"], PID_TAG: str(os.getpid())},
            timeout=wanted["seconds"],
            # A single number would be only a reservation; use beyond it would be allowed and charged.
            cpu=(float(wanted["cpus"]), float(wanted["cpus"])),
            memory=(wanted["memory_mb"], wanted["memory_mb"]),
            block_network=not wanted["network"],
        )
    except Exception as error:
        fail(kind_of(error), error)


def carry(process):
    """Copies bytes until the program closes the connection."""

    def out():
        # However it ends, the reader must notice that it has ended.
        try:
            for piece in process.stdout:
                view = memoryview(piece)
                while view:
                    view = view[os.write(1, view) :]
        except Exception as error:
            say("engine_lost", error)
        finally:
            os.close(1)

    def complaints():
        for piece in process.stderr:
            os.write(2, piece)

    for pump in (out, complaints):
        threading.Thread(target=pump, daemon=True).start()
    while piece := os.read(0, 65536):
        process.stdin.write(piece)
        process.stdin.drain()


def room(wanted):
    sandbox = start(wanted)
    wrong = None
    try:
        process = sandbox.exec(*wanted["command"], text=False, bufsize=-1)
        carry(process)
    except Exception as error:
        wrong = error
    # A sandbox that is not ended is charged until its time is up.
    try:
        sandbox.terminate()
    except Exception:
        pass
    if wrong is not None:
        fail("engine_lost", wrong)


def rates(wanted):
    """The prices of the workspace, by Modal's names, without deprecated ones."""
    return {name: str(rate) for name, rate in modal.Workspace.from_context().billing.rates().items()}


def sandboxes(wanted):
    """Running sandboxes of the app that have all these tags, each with the process that is to end it."""
    try:
        app = modal.App.lookup(wanted["app"])
    except modal.exception.NotFoundError:
        return []
    found = []
    for sandbox in list(modal.Sandbox.list(app_id=app.app_id, tags=wanted["tags"])):
        try:
            tags = sandbox.get_tags()
        except modal.exception.NotFoundError:
            continue  # It ended meanwhile.
        # The caller may end these sandboxes, so the tags are checked again here.
        if all(tags.get(name) == value for name, value in wanted["tags"].items()):
            found.append({"id": sandbox.object_id, "pid": tags.get(PID_TAG)})
    return found


def end(wanted):
    """Ends sandboxes. Returns how many of them were still running."""
    ended = 0
    for sandbox in wanted["sandboxes"]:
        try:
            modal.Sandbox.from_id(sandbox).terminate()
            ended += 1
        except modal.exception.NotFoundError:
            pass
    return ended


def main():
    wanted = json.loads(sys.argv[1])
    if wanted["do"] == "room":
        room(wanted)
    else:
        try:
            answer = {"rates": rates, "sandboxes": sandboxes, "end": end}[wanted["do"]](wanted)
        except Exception as error:
            fail(kind_of(error), error)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    os._exit(0)


main()
