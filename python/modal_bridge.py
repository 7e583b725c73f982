"""Speaks to Modal for aec-bench: opens rooms in sandboxes, tells what sandboxes cost, finds and ends those left behind.

Started with one argument, a JSON object that says in `do` what is wanted. What goes wrong is the last line of stderr, as
JSON with a kind that aec-bench knows.

`room` makes a sandbox, starts the room's first process there, and carries bytes: whatever comes on stdin goes to that
process, whatever it prints goes to stdout. The sandbox ends when stdin ends. All else is answered with one line of JSON on
stdout and creates nothing.
"""

import json
import os
import sys
import threading

# The process that keeps a sandbox: when it is gone, nobody ends the sandbox.
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
    """The task's image with its layers and the program. Modal keeps images by what they are made from."""
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
            # With the sandbox, not after it: whoever dies between the two would leave one that nobody can find.
            tags={**wanted["tags"], PID_TAG: str(os.getpid())},
            timeout=wanted["seconds"],
            # A single number is only what is reserved; use beyond it is allowed and charged.
            cpu=(float(wanted["cpus"]), float(wanted["cpus"])),
            memory=(wanted["memory_mb"], wanted["memory_mb"]),
            block_network=not wanted["network"],
        )
    except Exception as error:
        fail(kind_of(error), error)


def carry(process):
    """Carries bytes until the program hangs up."""

    def out():
        # However it ends, whoever listens hears that it has ended.
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
    # A sandbox that nobody ends is charged until its time is up.
    try:
        sandbox.terminate()
    except Exception:
        pass
    if wrong is not None:
        fail("engine_lost", wrong)


def rates(wanted):
    """What the workspace pays, by Modal's names; those that Modal is about to take back are left out."""
    return {name: str(rate) for name, rate in modal.Workspace.from_context().billing.rates().items()}


def sandboxes(wanted):
    """Running sandboxes of the app that have all of some tags, each with the process that keeps it."""
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
        # What comes back may be ended, so nothing is taken on trust.
        if all(tags.get(name) == value for name, value in wanted["tags"].items()):
            found.append({"id": sandbox.object_id, "pid": tags.get(PID_TAG)})
    return found


def end(wanted):
    """Ends sandboxes; how many there still were."""
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
