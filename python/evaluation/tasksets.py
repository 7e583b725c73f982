"""v1 tasksets, of `verifiers` 0.3.1 and later: each rollout is an episode of the library, mapped to a row of the v0 shape.

The chat program (`null`) plays the tasks on this machine, unless the taskset has a harness or the arguments name another.
"""

import asyncio
import contextlib
import json

from .modules import digest_of, module_name
from .trace_rows import row_of

NOWHERE = "http://127.0.0.1:9/v1"


class TasksetLane:
    """One loaded taskset with its environment."""

    def __init__(self, request):
        self.request = request
        self.worker = None
        self.environment = None
        self.tasks = None
        self.serving = contextlib.AsyncExitStack()
        self.slots = {}

    def import_library(self):
        import verifiers.v1  # noqa: F401

    def load(self):
        from verifiers.v1.configs.cli.eval import EvalConfig
        from verifiers.v1.utils.loaders import default_harness_id, load_environment

        request = self.request
        fields = environment_fields(request)
        config = {"push": False, "rich": None}
        first = EvalConfig.model_validate({**config, "env": copy_of(fields)})
        brings_harness = default_harness_id(fields["taskset"]["id"]) != "bash"
        for role in roles_of(first.env):
            agent = fields.setdefault(role, {})
            if not brings_harness:
                agent.setdefault("harness", {"id": "null"})
            agent.setdefault("runtime", {"type": "subprocess"})
            if request["timeout"] is not None:
                agent["timeout"] = {**agent.get("timeout", {}), "rollout": request["timeout"]}
        if request["max_retries"] > 0:
            fields.setdefault("retries", {"max_retries": request["max_retries"]})
        self.config = EvalConfig.model_validate({**config, "env": copy_of(fields)})
        roles = roles_of(self.config.env)
        self.environment = load_environment(self.config.env)
        self.tasks = self.select()
        self.refuse_images(roles)
        return self.facts(roles)

    def select(self):
        """The tasks in the order of an evaluation."""
        request, taskset = self.request, self.environment.taskset
        count = request["num_examples"]
        endless = not taskset.bounded if hasattr(taskset, "bounded") else taskset.INFINITE
        if endless and count <= 0:
            raise ValueError(f"{type(taskset).__name__} has no end: say how many examples are evaluated")
        if request["shuffle"]:
            taskset = taskset.shuffle(request["shuffle_seed"] or 0)
        if count > 0:
            taskset = taskset.take(count) if hasattr(taskset, "take") else taskset.head(count)
        return list(taskset)

    def refuse_images(self, roles):
        """Fails early where every rollout would fail: tasks that need a container, with a runtime that has none."""
        local = [name for name, one in roles.items() if one.runtime.type == "subprocess"]
        images = next((one.data.image for one in self.tasks if getattr(one.data, "image", None)), None)
        if local and (images or any(getattr(type(one), "NEEDS_CONTAINER", False) for one in self.tasks)):
            example = json.dumps({local[0]: {"runtime": {"type": "docker"}}})
            raise RuntimeError(
                f"tasks of `{self.request['env_id']}` run in a container"
                + (f" (image {images})" if images else "")
                + f", and `{local[0]}` runs on this machine; name a container runtime: --extra-env-kwargs '{example}'"
            )

    def facts(self, roles):
        from importlib import metadata

        try:
            version = metadata.version(module_name(self.request["env_id"]))
        except (metadata.PackageNotFoundError, ValueError):
            from .classic import local_version

            version = local_version(self.request["env_id"])
        return {
            "interface": "v1",
            "class_name": type(self.environment.taskset).__name__,
            "version_info": {
                "vf_version": metadata.version("verifiers"),
                "vf_commit": None,
                "env_version": version,
                "env_commit": None,
            },
            "example_ids": [index if one.data.idx is None else one.data.idx for index, one in enumerate(self.tasks)],
            "pass_threshold": 0.5,
            "has_group_rewards": False,
            "tools": [],
            "max_turns": next((one.max_turns for one in roles.values() if getattr(one, "max_turns", None)), None),
            "sampling_args": {},
            "env_args": self.request["env_args"],
            "examples_digest": digest_of([one.data.model_dump(mode="json") for one in self.tasks]),
            "generates_and_scores_at_once": True,
        }

    async def open(self, worker):
        from verifiers.v1.interception import server

        from .v1_door import door_client

        self.worker = worker
        own = door_client(self)
        server.resolve_client = lambda config, resolve=server.resolve_client: (
            own(config) if getattr(config, "type", "eval") == "eval" else resolve(config)
        )
        from .chat_program import play_in_process

        play_in_process()
        await self.serving.enter_async_context(self.environment.serving())

    async def close(self):
        await self.serving.aclose()

    def job_of(self, trace_id):
        """The (job, rollout) whose episode contains a trace."""
        for slot, job, rollout in self.slots.values():
            if any(trace.id == trace_id for trace in slot.traces):
                return job, rollout
        raise KeyError(f"no rollout has the trace {trace_id}")

    async def generate(self, job):
        from verifiers.v1.clients import EvalClientConfig, ModelContext
        from verifiers.v1.types import SamplingConfig

        given = {name: value for name, value in job.sampling_args.items() if value is not None}
        client = EvalClientConfig(base_url=self.request["gateway"] or NOWHERE, api_key_var="OPENAI_API_KEY")
        context = ModelContext(model=job.model, client=client, sampling=SamplingConfig.model_validate(given))
        job.states = list(await asyncio.gather(*(self.episode(job, context, *member) for member in job.members)))
        job.scored = True

    async def episode(self, job, context, example, rollout):
        task = self.tasks[example]
        slot = self.environment.slots(task, 1)[0]
        self.slots[id(slot)] = (slot, job, rollout)
        try:
            return example, task, await self.environment.run_slot(slot, context)
        finally:
            del self.slots[id(slot)]

    def errors(self, job):
        return [None if episode.ok else last_error(episode) for _, _, episode in job.states]

    async def score(self, job):
        return [
            json.dumps(row_of(example, task, episode, self.request["state_columns"]))
            for example, task, episode in job.states
        ]


def environment_fields(request):
    """The `env` table of a v1 configuration. Arguments go to the taskset, except `config`, which may contain more tables, as in
    files with `taskset` and `harness`."""
    arguments = dict(request["env_args"])
    tables = arguments.pop("config", None) or {}
    if not isinstance(tables, dict):
        raise TypeError("the argument `config` of a taskset must be a table")
    fields = {**copy_of(tables), **copy_of(request["extra_env_kwargs"])}
    harness, runtime = fields.pop("harness", None), fields.pop("runtime", None)
    if harness is not None:
        fields.setdefault("agent", {}).setdefault("harness", harness)
    if runtime is not None:
        fields.setdefault("agent", {}).setdefault("runtime", runtime)
    fields["taskset"] = {**fields.get("taskset", {}), **arguments, "id": request["env_id"]}
    return fields


def roles_of(config):
    """The configurations of the playing agents, by role."""
    from verifiers.v1.configs.agent import AgentConfig

    held = {name: getattr(config, name) for name in type(config).model_fields}
    return {name: one for name, one in held.items() if isinstance(one, AgentConfig)}


def copy_of(value):
    return json.loads(json.dumps(value))


def last_error(episode):
    for errors in (episode.errors, *(trace.errors for trace in episode.traces)):
        if errors:
            return errors[-1].type
    return "RolloutError"
