"""A v1 episode as a row of the v0 shape."""

import json
import math


def row_of(example, task, episode, columns):
    """The row of the episode's first trace; an episode without a trace becomes a row with its error."""
    trace = episode.traces[0] if episode.traces else None
    data = task.data
    prompt, completion = conversation(trace, data)
    row = {"example_id": example if data.idx is None else data.idx, "prompt": prompt, "completion": completion}
    answer, info = getattr(data, "answer", None), getattr(data, "info", None)
    if isinstance(answer, str) and answer:
        row["answer"] = answer
    if isinstance(info, dict) and info:
        row["info"] = plain(info)
    metrics = scores(trace)
    error = error_of(episode, trace)
    row["reward"] = 0.0 if trace is None else number(trace.reward)
    row["error"] = error
    row["timing"] = timing(trace)
    row["is_completed"] = trace is not None and trace.is_completed
    row["is_truncated"] = trace is not None and bool(trace.is_truncated)
    row["stop_condition"] = None if trace is None else trace.stop_condition
    row["metrics"] = metrics
    row["tool_defs"] = [tool_fields(one) for one in (tools(trace) if trace is not None else [])]
    usage = None if trace is None else trace.usage
    if usage is not None:
        read = number(getattr(usage, "input_tokens", usage.prompt_tokens))
        row["token_usage"] = {
            "input_tokens": read,
            "output_tokens": number(usage.completion_tokens),
            "final_output_tokens": trace.num_output_tokens,
            "final_input_tokens": trace.num_input_tokens,
        }
    if error is not None:
        row["error_chain"] = error["error_chain_repr"]
        row["long_error_chain"] = error["error_chain_str"]
    row.update(metrics)
    for column in columns:
        row[column] = column_of(column, episode, trace)
    return row


def column_of(column, episode, trace):
    if column == "trace":
        return None if trace is None else plain(trace.model_dump(mode="json", exclude_none=True))
    if column == "episode":
        return plain(episode.model_dump(mode="json", exclude_none=True))
    for place in (trace.info, vars(trace.state)) if trace is not None else ():
        if column in place:
            return plain(place[column])
    return None


def conversation(trace, data):
    """(the prompt, the completion)"""
    branches = [] if trace is None else trace.branches
    if not branches:
        given = [] if data.system_prompt is None else [{"role": "system", "content": data.system_prompt}]
        if isinstance(data.prompt, str):
            given.append({"role": "user", "content": data.prompt})
        elif data.prompt is not None:
            given += [message_fields(one) for one in data.prompt]
        return given, []
    nodes = branches[-1].nodes
    first = next((at for at, node in enumerate(nodes) if node.sampled), len(nodes))
    said = [message_fields(node.message) for node in nodes]
    return said[:first], said[first:]


def message_fields(message):
    """A message in the format of v0 rows: a tool call is the text of an object."""
    fields = message if isinstance(message, dict) else message.model_dump(mode="json", exclude_none=True)
    content = fields.get("content")
    if isinstance(content, list) and all(isinstance(one, dict) and one.get("type") == "text" for one in content):
        content = "".join(one.get("text", "") for one in content)
    kept = {"role": fields["role"], "content": "" if content is None else content}
    if fields.get("tool_calls"):
        kept["tool_calls"] = [
            json.dumps({name: one.get(name, "") for name in ("id", "name", "arguments")}) for one in fields["tool_calls"]
        ]
    for name in ("reasoning_content", "tool_call_id"):
        if isinstance(fields.get(name), str):
            kept[name] = fields[name]
    return kept


def scores(trace):
    """Rewards before their weights, and metrics."""
    if trace is None:
        return {}
    rewards = {
        name: number(getattr(one, "score", one)) for name, one in trace.rewards.items() if one is not None
    }
    return {**rewards, **{name: number(one) for name, one in trace.metrics.items() if one is not None}}


def number(value):
    value = float(value)
    return value if math.isfinite(value) else 0.0


def error_of(episode, trace):
    if episode.ok:
        return None
    errors = [*episode.errors, *(() if trace is None else trace.errors)]
    if not errors:
        return None
    last = errors[-1]
    return {
        "error": last.type,
        "message": last.message,
        "error_chain_repr": f"{last.type}({last.message!r})",
        "error_chain_str": last.type,
    }


def timing(trace):
    if trace is None:
        blank = span(None)
        return {
            "start_time": 0.0,
            **{name: blank for name in ("setup", "generation", "scoring")},
            **{name: {"spans": [], "duration": 0.0} for name in ("model", "env")},
            "total": 0.0,
            "overhead": 0.0,
        }
    held = trace.timing
    agent = getattr(held, "agent", None) or getattr(held, "generation", None)
    setup, generation, scoring = span(held.setup), span(agent), span(held.scoring)
    calls = [span(one.time) for one in trace.calls]
    model = sum(one["duration"] for one in calls)
    total = max(0.0, scoring["end"] - held.start) if scoring["end"] else 0.0
    return {
        "start_time": held.start,
        "setup": setup,
        "generation": generation,
        "scoring": scoring,
        "model": {"spans": calls, "duration": model},
        "env": {"spans": [], "duration": 0.0},
        "total": total,
        "overhead": total - setup["duration"] - model - scoring["duration"],
    }


def span(held):
    start, end = getattr(held, "start", 0.0) or 0.0, getattr(held, "end", 0.0) or 0.0
    return {"start": start, "end": end, "duration": max(0.0, end - start) if end else 0.0}


def tools(trace):
    found = getattr(trace, "tools", None)
    if found is None:
        found = trace.branches[-1].tools if trace.branches else []
    return found


def tool_fields(tool):
    fields = tool.model_dump(mode="json", exclude_none=True)
    return {name: fields[name] for name in ("name", "description", "parameters", "strict") if name in fields}


def plain(value):
    """A value as JSON; what JSON cannot represent becomes text, and NaN becomes null."""
    return json.loads(json.dumps(value, default=str), parse_constant=lambda constant: None)
