"""Several turns: the environment reads out pages until the model says the answer."""

import verifiers as vf
from datasets import Dataset

PAGES = {"bridges": "A beam bridge rests on piers.", "roads": "A road has lanes."}


class Pages(vf.MultiTurnEnv):
    async def setup_state(self, state, **kwargs):
        state["pages_read"] = []
        return state

    async def env_response(self, messages, state, **kwargs):
        asked = str(messages[-1]["content"]).strip()
        if asked.startswith("ANSWER"):
            state["final_env_response"] = [{"role": "user", "content": "Thank you."}]
            return state["final_env_response"]
        state["pages_read"].append(asked)
        return [{"role": "user", "content": PAGES.get(asked, "There is no such page.")}]


def found(completion, answer, state):
    said = " ".join(str(one["content"]) for one in completion if one["role"] == "assistant")
    return 1.0 if answer in said else 0.0


async def pages(state) -> float:
    return float(len(state["pages_read"]))


def load_environment(max_turns: int = 6, judge_model: str = "gpt-4.1-mini"):
    rows = [
        {"prompt": [{"role": "user", "content": "What does a beam bridge rest on?"}], "answer": "piers"},
        {"prompt": [{"role": "user", "content": "What has a road?"}], "answer": "lanes"},
    ]
    rubric = vf.Rubric(funcs=[found])
    rubric.add_metric(pages)
    return Pages(eval_dataset=Dataset.from_list(rows), rubric=rubric, max_turns=max_turns)
