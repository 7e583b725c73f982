"""Lines of JSON to and from the parent over a socket that arrives as standard input.

A line is an object with one key, the kind of message. A `rows` message is followed by the number of lines that it names, each
the text of one row as the library would write it to a file. A row may contain `NaN`, so the parent does not parse it either.
"""

import asyncio
import json
import os
import select
import signal
import socket
import threading

PROTOCOL = 1
LONGEST_TEXT = 16_000


def open_channel():
    """Moves the socket away from standard input, so that nothing that the environment starts or reads can reach it."""
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=end_with_parent, args=(channel.fileno(),), name="parent", daemon=True).start()
    return channel


def end_with_parent(descriptor):
    """Ends the whole process group once the parent is gone, even while the environment keeps the main thread busy."""
    watch = select.poll()
    watch.register(descriptor, 0)
    watch.poll()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def line(kind, **fields):
    """One message as bytes. A lone surrogate is not valid text for the parent, so it becomes a question mark."""
    return json.dumps({kind: fields}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def first_message(channel):
    """Waits for the first message, before there is an event loop. Returns it, and what was read after it."""
    held = bytearray()
    while b"\n" not in held:
        part = channel.recv(65536)
        if not part:
            raise SystemExit("the parent closed the channel")
        held += part
    end = held.index(b"\n")
    return json.loads(held[:end]), bytes(held[end + 1 :])


class Channel(asyncio.Protocol):
    """The socket inside the event loop. Messages of one turn of the loop are sent in one write."""

    def __init__(self, receive, held):
        self.receive = receive
        self.held = bytearray(held)
        self.transport = None
        self.waiting = []
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        if self.held:
            self.data_received(b"")

    def data_received(self, data):
        searched = len(self.held)
        self.held += data
        end = self.held.rfind(b"\n", max(0, searched - 1) if data else 0)
        if end < 0:
            return
        lines = bytes(self.held[:end])
        del self.held[: end + 1]
        for one in lines.split(b"\n"):
            self.receive(json.loads(one))

    def connection_lost(self, reason):
        if not self.closed.done():
            self.closed.set_result(reason)

    def send(self, kind, **fields):
        self.send_bytes(line(kind, **fields))

    def send_bytes(self, data):
        if not self.waiting:
            asyncio.get_running_loop().call_soon(self.flush)
        self.waiting.append(data)

    def flush(self):
        if self.waiting and self.transport is not None:
            self.transport.write(b"".join(self.waiting))
            self.waiting.clear()


def tail(text, longest=LONGEST_TEXT):
    """The end of a text of any length."""
    return text if len(text) <= longest else "…" + text[-longest:]
