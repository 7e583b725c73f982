"""A room in a Modal sandbox: makes the sandbox, starts the room's first process there, and carries bytes.

Started by aec-bench with one argument, a JSON object that says what is wanted. Whatever comes on stdin goes to that
process, whatever it prints goes to stdout. The sandbox ends when stdin ends. What goes wrong is the last line of stderr,
as JSON with a kind that aec-bench knows.
"""

import json
import os
import sys
import threading


def fail(kind, error):
    message = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
    sys.stderr.write("\n" + json.dumps({"kind": kind, "message": message}) + "\n")
    sys.stderr.flush()
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
            timeout=wanted["seconds"],
            cpu=float(wanted["cpus"]),
            memory=wanted["memory_mb"],
            block_network=not wanted["network"],
        )
    except Exception as error:
        fail(kind_of(error), error)


def carry(process):
    """Carries bytes until the program hangs up."""

    def out():
        for piece in process.stdout:
            view = memoryview(piece)
            while view:
                view = view[os.write(1, view) :]
        os.close(1)

    def complaints():
        for piece in process.stderr:
            os.write(2, piece)

    for pump in (out, complaints):
        threading.Thread(target=pump, daemon=True).start()
    while piece := os.read(0, 65536):
        process.stdin.write(piece)
        process.stdin.drain()


def main():
    wanted = json.loads(sys.argv[1])
    sandbox = start(wanted)
    try:
        for key, value in wanted["tags"].items():
            sandbox.set_tags({key: value})
    except Exception:
        # Names are for people who look; the sandbox works without them.
        pass
    try:
        process = sandbox.exec(*wanted["command"], text=False, bufsize=-1)
        carry(process)
    except Exception as error:
        fail("engine_lost", error)
    finally:
        try:
            sandbox.terminate()
        except Exception:
            pass
    os._exit(0)


main()
