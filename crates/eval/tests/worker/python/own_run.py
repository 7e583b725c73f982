"""Plays an environment with the library's own evaluation against a server that says what it is told: `python own_run.py < REQUEST`

The request has `path` (directories for the module search), `env_id`, `env_args`, `rollouts`, `independent`, `state_columns`,
`sampling_args` and `replies`: the reply is chosen by how often the assistant has spoken, from a list, or from the list of the word
that the first message of the user has. Prints the rows as the library writes them.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

request = json.load(sys.stdin)
sys.path[:0] = request["path"]
printed, sys.stdout = sys.stdout, sys.stderr


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        turn = sum(one["role"] == "assistant" for one in body["messages"])
        replies = request["replies"]
        if isinstance(replies, dict):
            first = next(one["content"] for one in body["messages"] if one["role"] == "user")
            replies = next(listed for word, listed in replies.items() if word in first)
        reply = dict(replies[min(turn, len(replies) - 1)])
        status = reply.pop("status", 200)
        if status == 200:
            message = {"role": "assistant", "content": reply.get("content")}
            if reply.get("reasoning_content"):
                message["reasoning_content"] = reply["reasoning_content"]
            if reply.get("tool_calls"):
                message["tool_calls"] = [
                    {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
                    for one in reply["tool_calls"]
                ]
            answer = {
                "id": "reply",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": reply.get("finish_reason", "stop")}],
                "usage": {"prompt_tokens": 10 + turn, "completion_tokens": 5, "total_tokens": 15 + turn},
            }
        else:
            answer = {"error": {"message": reply["message"]}}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["OWN_RUN_KEY"] = "none"

import verifiers as vf  # noqa: E402
from verifiers.types import ClientConfig  # noqa: E402
from verifiers.utils.save_utils import save_outputs  # noqa: E402

environment = vf.load_environment(request["env_id"], **request["env_args"])
client = ClientConfig(api_base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key_var="OWN_RUN_KEY", max_retries=0)
done = asyncio.run(
    environment.evaluate(
        client=client,
        model="scripted",
        sampling_args=request["sampling_args"],
        rollouts_per_example=request["rollouts"],
        independent_scoring=request["independent"],
        state_columns=request["state_columns"],
    )
)
with tempfile.TemporaryDirectory() as directory:
    save_outputs(done["outputs"], Path(directory))
    printed.write(Path(directory, "results.jsonl").read_text())
printed.flush()
os._exit(0)
