"""v0 environments, of `verifiers` 0.1.14 to 0.3: loading, generating, scoring and the rows of the library."""

import asyncio
import inspect
import json
import os
import time
from copy import deepcopy

from .modules import digest_of, module_name, project_file

PLAIN = (str, int, float, bool, type(None))


class ClassicLane:
    """One loaded v0 environment."""

    def __init__(self, request):
        self.request = request
        self.worker = None
        self.environment = None
        self.inputs = None
        self.library = None

    def import_library(self):
        self.library = Library()

    def load(self):
        import verifiers as vf

        from .door import door_client

        request = self.request
        environment = vf.load_environment(request["env_id"], **request["env_args"])
        given = dict(request["extra_env_kwargs"])
        if request["timeout"] is not None:
            given["timeout_seconds"] = request["timeout"]
        given.setdefault("concurrency", request["concurrency"])
        environment.set_kwargs(**given)
        if not request["score"]:
            environment.set_score_rollouts(False)
        self.environment = environment
        self.client_class = door_client()
        self.inputs = self.select()
        self.whole = plays_itself(environment, self.library.environment_class)
        return self.facts()

    def select(self):
        """The examples in the order of an evaluation."""
        examples = self.environment.get_eval_dataset()
        if self.request["shuffle"]:
            examples = examples.shuffle(seed=self.request["shuffle_seed"] or 0)
        count = self.request["num_examples"]
        if 0 < count < len(examples):
            examples = examples.select(range(count))
        return examples.to_list()

    def facts(self):
        environment = self.environment
        info = dict(self.library.get_version_info(self.request["env_id"]))
        if info.get("env_version") is None:
            info["env_version"] = local_version(self.request["env_id"])
        tools = getattr(environment, "tool_defs", None)
        return {
            "interface": "v0",
            "class_name": type(environment).__name__,
            "version_info": info,
            "example_ids": [one["example_id"] for one in self.inputs],
            "pass_threshold": float(getattr(environment, "pass_threshold", 0.5)),
            "has_group_rewards": bool(getattr(environment, "requires_group_rollouts", False)),
            "tools": [one.model_dump(exclude_none=True) for one in tools or []],
            "max_turns": getattr(environment, "max_turns", None),
            "sampling_args": plain(environment.sampling_args),
            "env_args": plain(environment.env_args),
            "examples_digest": digest_of(self.inputs),
            "generates_and_scores_at_once": self.whole,
        }

    async def open(self, worker):
        self.worker = worker

    async def close(self):
        await self.environment._teardown()

    async def generate(self, job):
        environment = self.environment
        sampling_args = deepcopy(environment.sampling_args)
        sampling_args.update(job.sampling_args)
        inputs = [self.inputs[example] for example, _ in job.members]
        if self.whole:
            client = self.client_class(self, job, None)
            if job.independent:
                played = environment._run_rollout_state

                async def attempt():
                    return [await played(one, client, job.model, sampling_args) for one in inputs]
            else:

                async def attempt():
                    return await environment._run_group_states(inputs, client, job.model, sampling_args)

        else:
            members = [
                (one, self.client_class(self, job, rollout))
                for one, (_, rollout) in zip(inputs, job.members, strict=True)
            ]

            async def attempt():
                return await together(
                    [environment.rollout(one, client, job.model, sampling_args) for one, client in members]
                )

        job.states = await self.library.maybe_retry(attempt, max_retries=self.request["max_retries"])()
        job.scored = self.whole

    def errors(self, job):
        """The class of the error that each rollout ended with, or None."""
        return [error_name(state.get("error")) for state in job.states]

    async def score(self, job):
        states, rubric = job.states, self.environment.rubric
        if not job.scored:
            if job.independent:
                for state in states:
                    state["timing"].scoring.start = time.time()
                    await (
                        rubric.score_rollout(state)
                        if self.environment.score_rollouts
                        else rubric.dummy_score_rollout(state)
                    )
                    state["timing"].scoring.end = time.time()
            else:
                start = time.time()
                for state in states:
                    state["timing"].scoring.start = start
                await (
                    rubric.score_group(states)
                    if self.environment.score_rollouts
                    else rubric.dummy_score_group(states)
                )
                end = time.time()
                for state in states:
                    state["timing"].scoring.end = end
            for state in states:
                await rubric.cleanup(state)
        columns = self.request["state_columns"]
        return [
            json.dumps(self.library.state_to_output(state, columns), default=self.library.make_serializable)
            for state in states
        ]


class Library:
    """The parts of the library that are used, imported after the environment was found."""

    def __init__(self):
        from verifiers.envs import environment, multiturn_env
        from verifiers.rubrics import rubric
        from verifiers.utils import async_utils
        from verifiers.utils.save_utils import make_serializable, state_to_output
        from verifiers.utils.version_utils import get_version_info

        self.environment_class = environment.Environment
        self.maybe_retry = async_utils.maybe_retry
        self.state_to_output = state_to_output
        self.make_serializable = make_serializable
        self.get_version_info = get_version_info
        make_lighter(environment, multiturn_env, rubric, async_utils)


def make_lighter(environment, multiturn_env, rubric, async_utils):
    """Makes the library do the same with less work: it looks up the signatures of the same functions in every turn, copies rows
    of plain values with `deepcopy`, and in 0.3 starts a thread to find that a reply has no tokens."""
    signatures = Signatures()
    for module in (rubric, async_utils):
        if getattr(module, "inspect", None) is inspect:
            module.inspect = signatures
    if getattr(environment, "deepcopy", None) is deepcopy:
        environment.deepcopy = copied
    parse = getattr(multiturn_env, "parse_response_tokens", None)
    if parse is not None:

        async def parse_response_tokens(response, *args, **kwargs):
            if response is not None and response.message.tokens is None:
                return None
            return await parse(response, *args, **kwargs)

        multiturn_env.parse_response_tokens = parse_response_tokens


class Signatures:
    """The module `inspect`, except that signatures are cached."""

    MOST = 10_000

    def __init__(self):
        self.kept = {}

    def __getattr__(self, name):
        return getattr(inspect, name)

    def signature(self, function, **options):
        if options:
            return inspect.signature(function, **options)
        try:
            return self.kept[function]
        except KeyError:
            pass
        except TypeError:
            return inspect.signature(function)
        found = inspect.signature(function)
        if len(self.kept) >= self.MOST:
            self.kept.clear()
        self.kept[function] = found
        return found


def copied(value):
    """Like `deepcopy`, but faster for the types in rows of a dataset."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is dict:
        return {key: copied(one) for key, one in value.items()}
    if kind is list:
        return [copied(one) for one in value]
    return deepcopy(value)


def plays_itself(environment, base):
    """Whether the environment turns inputs into scored states in its own way, so that the two steps cannot be separated."""
    return any(
        getattr(type(environment), name, None) is not getattr(base, name, None)
        for name in ("_run_rollout_state", "_run_group_states")
    )


async def together(rollouts):
    """Awaits all of them. If one fails, the others are cancelled."""
    if len(rollouts) == 1:
        return [await rollouts[0]]
    tasks = [asyncio.ensure_future(alone(one)) for one in rollouts]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def alone(rollout):
    """A rollout that tries to end the process fails; otherwise it would end the event loop."""
    try:
        return await rollout
    except (KeyboardInterrupt, SystemExit) as error:
        raise RuntimeError(f"the environment tried to end the process: {error!r}") from error


def error_name(error):
    if error is None:
        return None
    if isinstance(error, BaseException):
        return type(error).__name__
    named = error.get("error") if hasattr(error, "get") else None
    return named if isinstance(named, str) else str(type(error).__name__)


def plain(value):
    """A value as JSON; what JSON cannot represent becomes text."""
    return json.loads(json.dumps(value, default=str, allow_nan=True), parse_constant=str)


def local_version(env_id):
    """The version of an environment that is not installed, from its project file."""
    import importlib

    try:
        import tomllib
    except ImportError:
        return None
    module = module_name(env_id)
    origin = getattr(importlib.import_module(module), "__file__", None)
    path = None if origin is None else project_file(os.path.abspath(origin), module)
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)["project"]["version"]
    except (OSError, TypeError, KeyError, ValueError):
        return None
    return found if isinstance(found, str) else None
