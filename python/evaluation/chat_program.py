"""Plays the library's chat program (`null`) inside the worker instead of in a separate process.

The program is the library's text, unchanged: a loop that asks the interception server and calls tools over the network. In a
separate process every rollout would need seconds of start-up, and an environment that `uv` must prepare.
"""

import argparse
import contextvars
import hashlib
import io
import os
import traceback

arguments = contextvars.ContextVar("arguments of the chat program")
clients = contextvars.ContextVar("clients of the chat program")
programs = {}


def play_in_process():
    """Changes the `null` harness, if its program can be played here."""
    from verifiers.v1.harnesses.null.harness import NullHarness

    setup, launch = NullHarness.setup, NullHarness.launch

    async def setup_here(self, runtime):
        if not plays_here(self, runtime):
            await setup(self, runtime)

    async def launch_here(self, ctx, trace, runtime, *args, **kwargs):
        if plays_here(self, runtime):
            runtime = HereRuntime(runtime)
        return await launch(self, ctx, trace, runtime, *args, **kwargs)

    NullHarness.setup, NullHarness.launch = setup_here, launch_here


def plays_here(harness, runtime):
    """Whether no separate process is needed for another runtime, variables, a user, or packages that are missing here."""
    if runtime.type != "subprocess" or harness.config.resolved_env or getattr(runtime, "user", None) is not None:
        return False
    return program_of(harness) is not None


def program_of(harness):
    """The names that the program's text defines, or None if it cannot be imported here."""
    import sys

    module = sys.modules[type(harness).__module__]
    source = getattr(module, "CHAT_PROGRAM_SOURCE", None) or getattr(module, "PROGRAM_SOURCE", None)
    if not isinstance(source, str):
        return None
    key = hashlib.sha256(source.encode()).hexdigest()
    if key not in programs:
        programs[key] = loaded(source)
    return programs[key]


def loaded(source):
    names = {"__name__": "verifiers_chat_program"}
    try:
        exec(compile(source, "<the chat program of verifiers>", "exec"), names)
    except ImportError:
        return None
    parse = names.get("parse_args")
    if not callable(parse) or not callable(names.get("main")):
        return None
    # `main` reads its arguments with `parse_args`, which knows only the arguments of its process.
    names["parse_args"] = lambda: parsed(parse)
    if "AsyncOpenAI" in names:
        names["AsyncOpenAI"] = own_client(names["AsyncOpenAI"])
        names["DefaultAsyncHttpxClient"] = lambda **options: None
    return names


def own_client(make):
    """Makes clients that are closed with the rollout. Their endpoint is a plain one on this machine: reading the certificates
    again for every rollout would be most of its cost."""
    from openai import DefaultAsyncHttpxClient

    def made(**options):
        options["http_client"] = DefaultAsyncHttpxClient(verify=False)
        client = make(**options)
        clients.get().append(client)
        return client

    return made


def parsed(parse):
    """Calls `parse_args` with the arguments of the current rollout."""
    given = arguments.get()
    original = argparse.ArgumentParser.parse_args

    def with_given(self, args=None, namespace=None):
        return original(self, given if args is None else args, namespace)

    # There is no await in between, so no other rollout sees the change.
    argparse.ArgumentParser.parse_args = with_given
    try:
        return parse()
    finally:
        argparse.ArgumentParser.parse_args = original


class HereRuntime:
    """The runtime of a rollout, except that the chat program runs here."""

    def __init__(self, runtime):
        self.runtime = runtime
        self.names = None

    def __getattr__(self, name):
        return getattr(self.runtime, name)

    async def prepare_uv_script(self, script, env=None, **options):
        self.names = programs[hashlib.sha256(script.encode()).hexdigest()]
        return []

    async def run_program(self, argv, env):
        from verifiers.v1.runtimes import ProgramResult

        held = "--initial-messages-file="
        given = [
            held + os.path.join(self.runtime.workdir, one.removeprefix(held)) if one.startswith(held) else one
            for one in argv
        ]
        arguments.set(given)
        opened = []
        clients.set(opened)
        said = io.StringIO()
        try:
            await self.names["main"]()
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
            traceback.print_exc(file=said)
        except Exception:
            code = 1
            traceback.print_exc(file=said)
        finally:
            for client in opened:
                await client.close()
        return ProgramResult(exit_code=code, stdout="", stderr=said.getvalue())
