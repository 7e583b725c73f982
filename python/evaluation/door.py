"""The model of v0 environments: a client of the library whose replies come from the parent."""

import os

REASONS = ("stop", "length", "tool_calls")


def door_client():
    """The class, defined once the library can be imported."""
    from verifiers.clients.openai_chat_completions_client import OpenAIChatCompletionsClient
    from verifiers.types import Response, ResponseMessage, ToolCall, Usage

    class DoorClient(OpenAIChatCompletionsClient):
        """One rollout's client. It opens no connection unless the environment uses `client` itself."""

        def __init__(self, lane, job, rollout):
            self._config = None
            self._own = None
            self._lane, self._job, self._rollout = lane, job, rollout

        @property
        def logger(self):
            import logging

            return logging.getLogger("verifiers.clients.DoorClient")

        @property
        def client(self):
            """The parent's gateway, for environments that call the provider without the library."""
            if self._own is None:
                from openai import AsyncOpenAI

                self._own = AsyncOpenAI(
                    base_url=os.environ.get("OPENAI_BASE_URL"), api_key=os.environ.get("OPENAI_API_KEY", "EMPTY")
                )
            return self._own

        _client = client

        def setup_client(self, config):
            return self.client

        async def close(self):
            if self._own is not None:
                await self._own.close()

        async def get_response(self, prompt, model, sampling_args, tools=None, **kwargs):
            lane, state = self._lane, kwargs.get("state")
            request = {
                "model": model,
                "messages": [message_fields(one) for one in prompt],
                "tools": [tool_fields(one) for one in tools] if tools else [],
                "sampling_args": {name: value for name, value in sampling_args.items() if value is not None},
                "state": {
                    key: str(state.get(key))
                    for key in lane.request["state_keys"]
                    if state is not None and state.get(key) is not None
                },
            }
            answer = await lane.worker.ask(self._job, self._rollout, request)
            reply = answer.get("reply")
            if reply is None:
                raise_failure(answer["failure"])
            calls = reply["tool_calls"]
            if not calls and not reply["reasoning_content"] and not has_text(reply["content"]):
                # The library decides whether this is an error, and which.
                await self.raise_from_native_response(native_reply(reply))
            usage = reply["usage"]
            reason = reply["finish_reason"]
            return Response(
                id=reply["id"],
                created=reply["created"],
                model=reply["model"],
                usage=None if usage is None else Usage(**usage),
                message=ResponseMessage(
                    content=reply["content"],
                    reasoning_content=reply["reasoning_content"],
                    thinking_blocks=reply["thinking_blocks"],
                    finish_reason=reason if reason in REASONS else None,
                    is_truncated=reason == "length",
                    tokens=None,
                    tool_calls=[ToolCall(**one) for one in calls] or None,
                ),
            )

    return DoorClient


def message_fields(message):
    """A message of the library as plain values."""
    if isinstance(message, dict):
        fields = {name: value for name, value in message.items() if value is not None}
    else:
        fields = {"role": message.role, "content": content_fields(message.content)}
        if message.role == "assistant":
            if message.reasoning_content is not None:
                fields["reasoning_content"] = message.reasoning_content
            if message.thinking_blocks is not None:
                fields["thinking_blocks"] = [dumped(one) for one in message.thinking_blocks]
            if message.tool_calls:
                fields["tool_calls"] = [
                    {"id": one.id, "name": one.name, "arguments": one.arguments} for one in message.tool_calls
                ]
        elif message.role == "tool":
            fields["tool_call_id"] = message.tool_call_id
        name = message.get("name")
        if isinstance(name, str):
            fields["name"] = name
    return fields


def content_fields(content):
    return [dumped(one) for one in content] if isinstance(content, list) else content


def dumped(part):
    return part.model_dump(exclude_none=True) if hasattr(part, "model_dump") else part


def tool_fields(tool):
    fields = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return fields


def has_text(content):
    if isinstance(content, list):
        return any(isinstance(one, dict) and one.get("type") == "text" and one.get("text") for one in content)
    return bool(content)


def native_reply(reply):
    """The reply as an object of the provider's package."""
    from openai.types.chat import ChatCompletion

    usage = reply["usage"]
    return ChatCompletion.model_construct(
        id=reply["id"],
        created=reply["created"],
        model=reply["model"],
        object="chat.completion",
        choices=[choice(reply)],
        usage=None
        if usage is None
        else {**usage, "completion_tokens_details": {"reasoning_tokens": usage["reasoning_tokens"]}},
    )


def choice(reply):
    from openai.types.chat import ChatCompletionMessage
    from openai.types.chat.chat_completion import Choice

    message = ChatCompletionMessage.model_construct(role="assistant", content=reply["content"], tool_calls=None)
    return Choice.model_construct(index=0, finish_reason=reply["finish_reason"] or "stop", message=message)


def raise_failure(failure):
    """Raises what the library would raise if its own client met the failure."""
    from verifiers import errors

    kind, text = failure["kind"], failure["message"]
    if kind == "empty":
        raise errors.EmptyModelResponseError(text)
    if kind == "invalid":
        raise errors.InvalidModelResponseError(text)
    cause = provider_error(kind, failure.get("status"), text)
    if kind == "overlong":
        raise errors.OverlongPromptError from cause
    if kind == "refused":
        # The library lets these end the evaluation; here they end the job.
        raise cause
    raise errors.ModelError from cause


def provider_error(kind, status, text):
    """The exception of the provider's package."""
    import httpx
    import openai

    request = httpx.Request("POST", "http://localhost/chat/completions")
    if kind == "timeout":
        return openai.APITimeoutError(request=request)
    if status is None and kind not in ("overlong", "refused", "rate_limited"):
        return openai.APIConnectionError(message=text, request=request)
    status = status or {"overlong": 400, "refused": 401, "rate_limited": 429}[kind]
    classes = {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        403: openai.PermissionDeniedError,
        404: openai.NotFoundError,
        409: openai.ConflictError,
        422: openai.UnprocessableEntityError,
        429: openai.RateLimitError,
    }
    found = classes.get(status, openai.InternalServerError if status >= 500 else openai.APIStatusError)
    return found(text, response=httpx.Response(status, text=text, request=request), body=None)
