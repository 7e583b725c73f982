"""The tool loop of aec-bench as a Harbor agent: the program is copied into the environment and works there."""

import json
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent

HOME = "/opt/aec-bench"
WORKSPACE = "/workspace"
LOGS = "/logs/agent"
INSTRUCTION = f"{HOME}/instruction.md"
SYSTEM_PROMPT = "system_prompt.md"
#: Files that the loop itself writes into the workspace; they are not the agent's work.
FILES = ("agent_result.json", "trajectory.jsonl", "conversation.jsonl")


class AecBenchAgent(BaseAgent):
    """Runs `aec-bench agent-entry` in the environment.

    `files` are the program and the shared objects that it was linked with, by their names below `/opt/aec-bench`;
    `command` starts it there. The task's own `aec-bench/tools.json` lists its tools.
    """

    def __init__(
        self,
        logs_dir: Path,
        model_name: str | None = None,
        *,
        aec_agent: str = "",
        version: str = "unknown",
        files: dict[str, str] | None = None,
        command: list[str] | None = None,
        settings: dict[str, str] | None = None,
        system_prompt: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(logs_dir=logs_dir, model_name=model_name, **kwargs)
        self._version = version
        self._files = files or {}
        self._command = command or []
        self._settings = settings or {}
        self._system_prompt = system_prompt

    @staticmethod
    def name() -> str:
        return "aec-bench"

    def version(self) -> str:
        return self._version

    async def setup(self, environment: Any) -> None:
        await environment.exec(f"mkdir -p {HOME}/lib {LOGS} {WORKSPACE}", user="root")
        for name, source in self._files.items():
            await environment.upload_file(source, f"{HOME}/{name}")
        program = shlex.join(self._command)
        done = await environment.exec(f"chmod -R a+rX {HOME} && chmod -R a+x {HOME} && {program} --version", user="root")
        if done.return_code != 0:
            raise RuntimeError(f"aec-bench does not run in this environment: {(done.stderr or '')[-500:]}")

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        # Variables become part of command lines and are limited in size; a file is not.
        written = self.logs_dir / "instruction.md"
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(instruction, encoding="utf-8")
        await environment.upload_file(written, INSTRUCTION)
        if self._system_prompt is not None:
            prompt = self.logs_dir / SYSTEM_PROMPT
            prompt.write_text(self._system_prompt, encoding="utf-8")
            await environment.upload_file(prompt, f"{WORKSPACE}/{SYSTEM_PROMPT}")
        variables = {**self._settings, "AGENT_INSTRUCTION_FILE": INSTRUCTION}
        tools = Path(environment.environment_dir).parent / "aec-bench" / "tools.json"
        if tools.is_file():
            variables["AGENT_TOOLS_JSON"] = tools.read_text(encoding="utf-8")
        moved = " ".join(f"{WORKSPACE}/{name}" for name in FILES)
        # `exec`, because commands of the agent could read the keys in the environment of a remaining shell.
        script = (
            f"exec {shlex.join(self._command)} agent-entry --workspace {WORKSPACE} "
            f"> {LOGS}/stdout.txt 2> {LOGS}/stderr.txt"
        )
        done = await environment.exec(script, cwd=WORKSPACE, env=variables)
        await environment.exec(f"mv {moved} {LOGS}/ 2>/dev/null; rm -f {WORKSPACE}/{SYSTEM_PROMPT}", cwd=WORKSPACE)
        report = await self._report(environment)
        context.n_input_tokens = report.get("input_tokens")
        context.n_output_tokens = report.get("output_tokens")
        context.metadata = {"exit_code": done.return_code, "report": report}

    async def _report(self, environment: Any) -> dict[str, Any]:
        place = self.logs_dir / FILES[0]
        try:
            await environment.download_file(f"{LOGS}/{FILES[0]}", place)
            report = json.loads(place.read_text(encoding="utf-8"))
        except Exception as error:  # Environments raise different exceptions for a missing file.
            self.logger.warning("the loop left no report: %s", error)
            return {}
        return report if isinstance(report, dict) else {}
