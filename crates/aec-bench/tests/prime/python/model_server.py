"""A model that plays scripts, in the format of OpenAI chat completions, on a free port of the loopback interface.

A script is a list of replies, one per turn; a reply is a text, or a list of calls `[name, arguments]`. The model's name
selects the script; a name may also select a dictionary of scripts, of which the first is played whose key is in the
user's message. Turns are counted by the assistant's messages in the request.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def text(content):
    """The text of a message, which may consist of parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def reply(script, body):
    if isinstance(script, dict):
        asked = text(next(message["content"] for message in body["messages"] if message["role"] == "user"))
        script = next((played for key, played in script.items() if key in asked), ["I was not told what to say."])
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    said = script[turn] if turn < len(script) else "I have nothing more to say."
    message = {"role": "assistant", "content": said if isinstance(said, str) else None}
    if not isinstance(said, str):
        message["tool_calls"] = [
            {
                "id": f"call_{turn}_{number}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                },
            }
            for number, (name, arguments) in enumerate(said)
        ]
    reason = "stop" if isinstance(said, str) else "tool_calls"
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def chunks(whole):
    """The same as a stream with one chunk."""
    choice = whole["choices"][0]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(delta["tool_calls"])]
    base = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**base, "choices": [], "usage": whole["usage"]}


@contextmanager
def serve(scripts):
    """Yields the base address and the list of requests seen so far."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append(body)
            whole = reply(scripts[body["model"]], body)
            if body.get("stream"):
                data = b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in chunks(whole))
                data, kind = data + b"data: [DONE]\n\n", "text/event-stream"
            else:
                data, kind = json.dumps(whole).encode(), "application/json"
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            data = json.dumps(
                {"object": "list", "data": [{"id": name, "object": "model"} for name in scripts]}
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
