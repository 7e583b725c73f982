"""Plays rollouts of an environment package through `verifiers` up to 0.3: `python smoke.py < REQUEST`.

The request is JSON: `environment`, `arguments` of load_environment, and `runs`, each with `player`, `model`, `url`, `key_variable` and
`max_tokens`. Answers are lines of JSON on the descriptor that AEC_BENCH_SMOKE_FD names: what was loaded, then one line a rollout. Whatever
the library prints stays on its own streams.
"""

import asyncio
import json
import os
import sys
import warnings


def main():
    request = json.load(sys.stdin)
    answers = os.fdopen(int(os.environ["AEC_BENCH_SMOKE_FD"]), "w", encoding="utf-8")

    def say(**line):
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    warnings.simplefilter("ignore")
    import verifiers as vf
    from verifiers.types import ClientConfig

    environment = vf.load_environment(request["environment"], **request["arguments"])
    kinds = [kind.__name__ for kind in type(environment).__mro__ if kind.__module__.startswith("verifiers")]
    say(event="loaded", kind=kinds[0] if kinds else type(environment).__name__, examples=len(environment.get_dataset()))
    for run in request["runs"]:
        client = ClientConfig(api_base_url=run["url"], api_key_var=run["key_variable"], max_retries=0)
        done = asyncio.run(
            environment.evaluate(
                client=client,
                model=run["model"],
                num_examples=run["num_examples"],
                rollouts_per_example=1,
                sampling_args={"max_tokens": run["max_tokens"]},
            )
        )
        for output in done["outputs"]:
            info = output.get("info") or {}
            error = output.get("error")
            say(
                event="rollout",
                player=run["player"],
                task_id=(json.loads(info) if isinstance(info, str) else info).get("task_id"),
                reward=output.get("reward"),
                stop_condition=output.get("stop_condition"),
                error=None if error is None else str(error),
                metrics={name: value for name, value in (output.get("metrics") or {}).items()},
            )


main()
