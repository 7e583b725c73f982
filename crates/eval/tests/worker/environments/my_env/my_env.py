"""An environment that misbehaves as its arguments say: prints, fails to load, ends the process, hangs."""

import asyncio
import os
import sys
import time

import verifiers as vf
from datasets import Dataset


def load_environment(misbehave: str = "", noise: int = 0, at: str = "crash"):
    for number in range(noise):
        print(f'{{"loaded": {{"noise": {number}}}}}')
        print("noise " * 20, file=sys.stderr)
    if misbehave == "load":
        raise ValueError("the data of this environment is not there")
    if misbehave == "exit on load":
        os._exit(7)

    async def judged(completion, answer, state):
        said = completion[-1]["content"] if completion else ""
        print("scoring", said)
        if said == at:
            if misbehave == "crash":
                print("about to end", flush=True)
                os._exit(3)
            if misbehave == "hang":
                await asyncio.sleep(3600)
            if misbehave == "block":
                time.sleep(3600)
            if misbehave == "nan":
                return float("nan")
        state["judge_response"] = f"said {said}"
        state["environment"] = sorted(name for name in os.environ if "KEY" in name or "SECRET" in name)
        return 1.0 if said == answer else 0.0

    class Own(vf.SingleTurnEnv):
        async def setup_state(self, state, **kwargs):
            if misbehave == "setup":
                raise vf.InfraError("no room is free")
            if misbehave == "unexpected":
                raise KeyError("nobody expects this")
            return state

    class OwnWay(Own):
        async def _run_group_states(self, *args, **kwargs):
            return await super()._run_group_states(*args, **kwargs)

    rows = [{"question": f"Say word {n}.", "answer": f"word {n}"} for n in range(8)]
    kind = OwnWay if misbehave == "own way" else Own
    return kind(dataset=Dataset.from_list(rows), rubric=vf.Rubric(funcs=[judged]))
