"""One JSON line for each event of each trial, for the program that started the job."""

import json
from typing import Any

from harbor.models.job.plugin import BaseJobPlugin

HOOKS = (
    "on_trial_started",
    "on_environment_started",
    "on_agent_started",
    "on_agent_ended",
    "on_verification_started",
    "on_trial_ended",
    "on_trial_cancelled",
)


class Progress(BaseJobPlugin):
    """Appends to the file that `--pk path=FILE` names."""

    def __init__(self, path: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._file = open(path, "a", buffering=1, encoding="utf-8")

    def _say(self, **line: Any) -> None:
        self._file.write(json.dumps(line) + "\n")

    async def on_job_start(self, job: Any) -> None:
        self._say(event="job-start", job=str(job.id))
        for name in HOOKS:
            # A version without one of them reports less; the result files contain the rest.
            register = getattr(job, name, None)
            if register is not None:
                register(self._hear)

    async def _hear(self, event: Any) -> None:
        task = event.config.task
        self._say(
            event=event.event.value,
            trial=event.trial_name,
            task=str(task.path) if task.path is not None else None,
            source=task.source,
            agent=(event.config.agent.kwargs or {}).get("aec_agent"),
        )

    async def on_job_end(self, job_result: Any) -> None:
        self._say(event="job-end")
        self._file.close()
