"""The model of v1 tasksets: requests of the library's interception server go to the parent if they are chat completions,
and otherwise to the parent's gateway."""

import json

STATUS = {"overlong": 400, "refused": 401, "rate_limited": 429, "timeout": 504, "connection": 503}


def door_client(lane):
    """The class, defined once the library can be imported."""
    from verifiers.v1.clients.client import RelayReply
    from verifiers.v1.clients.eval import EvalClient
    from verifiers.v1.errors import model_error

    class DoorClient(EvalClient):
        """The library's client, except that chat completions need no connection."""

        async def get_response(self, dialect, body, sampling, session_id=None, turn=None, headers=None):
            if not is_chat(dialect):
                return await super().get_response(dialect, body, sampling, session_id, turn, headers)
            raw = await self.complete(body, session_id)
            response = dialect.parse_response(dialect.validate_response(raw))
            response.raw = raw
            return response

        async def relay(self, dialect, body, session_id=None, headers=None):
            if not is_chat(dialect):
                return await super().relay(dialect, body, session_id, headers)
            raw = await self.complete(body, session_id)

            async def events():
                for event in stream_events(raw):
                    yield event

            async def close():
                return None

            return RelayReply(content_type="text/event-stream", chunks=events(), close=close)

        async def complete(self, body, session_id):
            job, rollout = lane.job_of(session_id)
            answer = await lane.worker.ask(job, rollout, request_of(body))
            if answer.get("reply") is not None:
                return completion_of(answer["reply"])
            failure = answer["failure"]
            raise model_error(failure["message"], status_code=failure.get("status") or STATUS.get(failure["kind"], 502))

    return DoorClient


def is_chat(dialect):
    return dialect.upstream_path == "/chat/completions"


def request_of(body):
    """A chat completion request in the parent's format."""
    rest = {key: value for key, value in body.items() if key not in ("model", "messages", "tools", "stream", "stream_options")}
    return {
        "model": body.get("model", ""),
        "messages": [message_of(one) for one in body.get("messages", [])],
        "tools": [tool_of(one) for one in body.get("tools") or []],
        "sampling_args": {name: value for name, value in rest.items() if value is not None},
        "state": {},
    }


def message_of(message):
    fields = {name: value for name, value in message.items() if value is not None and name != "tool_calls"}
    calls = message.get("tool_calls")
    if calls:
        fields["tool_calls"] = [
            {
                "id": one.get("id", ""),
                "name": one.get("function", {}).get("name", ""),
                "arguments": one.get("function", {}).get("arguments", ""),
            }
            for one in calls
        ]
    return fields


def tool_of(tool):
    function = tool.get("function", tool)
    fields = {
        "name": function.get("name", ""),
        "description": function.get("description", ""),
        "parameters": function.get("parameters", {}),
    }
    if function.get("strict") is not None:
        fields["strict"] = function["strict"]
    return fields


def completion_of(reply):
    """The parent's reply as a chat completion."""
    message = {"role": "assistant", "content": reply["content"]}
    if reply["reasoning_content"] is not None:
        message["reasoning_content"] = reply["reasoning_content"]
    if reply["tool_calls"]:
        message["tool_calls"] = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
            for one in reply["tool_calls"]
        ]
    completion = {
        "id": reply["id"],
        "object": "chat.completion",
        "created": reply["created"],
        "model": reply["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply["finish_reason"] or "stop"}],
    }
    usage = reply["usage"]
    if usage is not None:
        completion["usage"] = {
            "prompt_tokens": usage["prompt_tokens"],
            "completion_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
            "completion_tokens_details": {"reasoning_tokens": usage["reasoning_tokens"]},
        }
    return completion


def stream_events(raw):
    """A completion as the one chunk of a stream."""
    choice = raw["choices"][0]
    delta = dict(choice["message"])
    if delta.get("tool_calls"):
        delta["tool_calls"] = [{**one, "index": index} for index, one in enumerate(delta["tool_calls"])]
    head = {**{name: value for name, value in raw.items() if name != "choices"}, "object": "chat.completion.chunk"}
    chunk = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}]}
    return [f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n"]
