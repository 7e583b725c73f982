"""One worker: loads the environment that the parent names, then generates and scores the jobs that it is given.

The parent enforces all limits on concurrency. A job is generated as soon as it arrives; its states are kept until the parent
asks for its rows, and only then is it scored.
"""

import asyncio
import gc
import logging
import os
import sys
import traceback
import warnings

from .channel import PROTOCOL, Channel, first_message, line, open_channel, tail

SHUTDOWN_SECONDS = 5.0
MOST_LOG_LINES = 500


class Job:
    """Rollouts that are generated together and, unless they are independent, also scored together."""

    __slots__ = ("id", "independent", "members", "model", "sampling_args", "scored", "states", "task")

    def __init__(self, message):
        self.id = message["job"]
        self.members = [(one["example"], one["rollout"]) for one in message["members"]]
        self.independent = message["independent"]
        self.model = message["model"]
        self.sampling_args = message["sampling_args"]
        self.states = None
        self.scored = False
        self.task = None


class LogLines(logging.Handler):
    """Passes warnings of the library on; the streams of the process contain everything."""

    def __init__(self, tell):
        super().__init__(logging.WARNING)
        self.tell = tell
        self.left = MOST_LOG_LINES

    def emit(self, record):
        if self.left > 0:
            self.left -= 1
            try:
                self.tell(record.levelname.lower(), tail(record.getMessage(), 2000))
            except Exception:
                self.handleError(record)


class Worker:
    """Connects the channel with the environment."""

    def __init__(self, lane):
        self.lane = lane
        self.channel = None
        self.jobs = {}
        self.answers = {}
        self.next_call = 0
        self.ending = None

    async def serve(self, socket, held, loaded):
        loop = asyncio.get_running_loop()
        self.ending = loop.create_future()
        socket.setblocking(False)
        _, self.channel = await loop.create_unix_connection(lambda: Channel(self.receive, held), sock=socket)
        await self.lane.open(self)
        self.channel.send_bytes(loaded)
        await asyncio.wait((self.ending, self.channel.closed), return_when=asyncio.FIRST_COMPLETED)
        for job in list(self.jobs.values()):
            if job.task is not None:
                job.task.cancel()
        try:
            await asyncio.wait_for(self.lane.close(), SHUTDOWN_SECONDS)
        except Exception:
            traceback.print_exc()

    def receive(self, message):
        for kind, fields in message.items():
            getattr(self, f"on_{kind}")(fields)

    def on_run(self, fields):
        job = Job(fields)
        self.jobs[job.id] = job
        job.task = asyncio.get_running_loop().create_task(self.play(job, self.generate))

    def on_score(self, fields):
        job = self.jobs.get(fields["job"])
        if job is None or job.states is None:
            self.channel.send("failed", job=fields["job"], error="NoSuchJob", message="nothing is kept of it", traceback="")
            return
        job.task = asyncio.get_running_loop().create_task(self.play(job, self.score))

    def on_drop(self, fields):
        job = self.jobs.pop(fields["job"], None)
        if job is not None and job.task is not None:
            job.task.cancel()
        self.channel.send("dropped", job=fields["job"])

    def on_answer(self, fields):
        answer = self.answers.pop(fields["call"], None)
        if answer is not None and not answer.done():
            answer.set_result(fields)

    def on_shutdown(self, fields):
        if not self.ending.done():
            self.ending.set_result(None)

    async def play(self, job, step):
        try:
            await step(job)
        except asyncio.CancelledError:
            # The parent expects no answer for a job that it dropped; any other job was cancelled by the environment.
            if self.jobs.pop(job.id, None) is not None:
                self.fail(job, "CancelledError", "the environment cancelled the rollout", "")
        except (KeyboardInterrupt, SystemExit) as error:
            self.jobs.pop(job.id, None)
            self.fail(job, type(error).__name__, f"the environment tried to end the process: {error}", "")
        except BaseException as error:
            if self.jobs.pop(job.id, None) is not None:
                self.fail(job, type(error).__name__, str(error), traceback.format_exc())

    def fail(self, job, error, message, trace):
        self.channel.send("failed", job=job.id, error=error, message=tail(message, 4000), traceback=tail(trace))

    async def generate(self, job):
        await self.lane.generate(job)
        self.channel.send("generated", job=job.id, errors=self.lane.errors(job), scored=job.scored)

    async def score(self, job):
        rows = await self.lane.score(job)
        self.jobs.pop(job.id, None)
        head = line("rows", job=job.id, lines=len(rows))
        self.channel.send_bytes(head + "".join(f"{row}\n" for row in rows).encode("ascii"))

    async def ask(self, job, rollout, request):
        """One call of the model, answered by the parent: `{"reply": …}` or `{"failure": …}`."""
        self.next_call += 1
        call = self.next_call
        answer = asyncio.get_running_loop().create_future()
        self.answers[call] = answer
        self.channel.send("call", call=call, job=job.id, rollout=rollout, **request)
        try:
            return await answer
        finally:
            if self.answers.pop(call, None) is not None:
                self.channel.send("hang_up", call=call, job=job.id)


def choose_lane(request):
    """The executor for the installed library: packages with both interfaces use v0 as long as the library supports it."""
    from .modules import find_environment, verifiers_version

    version = verifiers_version()
    if version is None:
        raise RuntimeError("the package `verifiers` is not installed in this interpreter")
    find_environment(request["env_id"], request["env_dir_path"])
    wanted = request["interface"]
    has_v0 = version < (0, 4)
    if wanted == "v0" and not has_v0:
        raise RuntimeError(f"verifiers {'.'.join(map(str, version))} has no v0 environments; install verifiers<0.4")
    if wanted == "v0" or (wanted == "auto" and has_v0 and exports_v0(request["env_id"])):
        from .classic import ClassicLane

        return ClassicLane(request)
    if version < (0, 3, 1):
        raise RuntimeError(
            f"tasksets need verifiers 0.3.1 or later, and this is {'.'.join(map(str, version))}"
            if wanted == "v1"
            else f"`{request['env_id']}` has no load_environment, and tasksets need verifiers 0.3.1 or later"
        )
    from .tasksets import TasksetLane

    return TasksetLane(request)


def exports_v0(env_id):
    import importlib

    from .modules import module_name

    return hasattr(importlib.import_module(module_name(env_id)), "load_environment")


def main():
    socket = open_channel()
    socket.sendall(line("hello", protocol=PROTOCOL, python=sys.version.split()[0], pid=os.getpid()))
    message, held = first_message(socket)
    request = message["load"]
    told = []
    handler = LogLines(lambda level, text: told.append(f"{level}: {text}"))
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("default")
            lane = choose_lane(request)
            lane.import_library()
            # When the library is imported, it clears the handlers of its logger.
            for name in (None, "verifiers"):
                logging.getLogger(name).addHandler(handler)
            facts = lane.load()
    except BaseException as error:
        socket.sendall(
            line(
                "load_failed",
                error=type(error).__name__,
                message=tail(str(error), 4000),
                traceback=tail(traceback.format_exc()),
            )
        )
        leave(1)
    told += [f"warning: {one.message}" for one in seen if not issubclass(one.category, ImportWarning | ResourceWarning)]
    facts["warnings"] = list(dict.fromkeys(told))[:50]
    worker = Worker(lane)
    handler.tell = lambda level, text: worker.channel and worker.channel.send("log", level=level, message=text)
    # Loaded objects live as long as the process, so the garbage collector can ignore them.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    code = 1
    try:
        asyncio.run(worker.serve(socket, held, line("loaded", **facts)))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def leave(code):
    """Ends without the library's exit handlers, which would tear down a second time, and without waiting for threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
