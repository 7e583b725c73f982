"""A Harbor environment for tests: a throw-away root on this machine, without a container engine.

Every command runs in separate mount and process namespaces, with the host's /usr read-only and the trial's own
/workspace, /logs, /tests and /solution; without network it also has a separate network namespace. Only `COPY` and
`WORKDIR` of the Dockerfile have an effect. Needs root and util-linux; it gives no protection against hostile commands.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.task.config import NetworkMode

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENTER = r"""
set -e
R=$1; W=$2; shift 2
mount --make-rprivate /
mount --bind "$R" "$R"
for d in usr etc dev; do mkdir -p "$R/$d"; mount --rbind "/$d" "$R/$d"; done
mount -o remount,bind,ro "$R/usr"; mount -o remount,bind,ro "$R/etc"
mkdir -p "$R/proc"; mount -t proc proc "$R/proc"
exec /usr/sbin/chroot "$R" /usr/bin/bash -c 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"' enter "$W" "$@"
"""


class LocalRoom(BaseEnvironment):
    """Environments of tasks whose paths contain `LOCAL_ROOM_FAILS` do not start; commands get `LOCAL_ROOM_SLOWLY`
    as `SLOWLY`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._root: Path | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "local-room"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError("environment/Dockerfile")

    def _inside(self, path: Any) -> Path:
        if self._root is None:
            raise RuntimeError("the environment is not running")
        return self._root / str(path).lstrip("/")

    async def start(self, force_build: bool) -> None:
        wanted = os.environ.get("LOCAL_ROOM_FAILS")
        if wanted and wanted in str(self.environment_dir):
            raise RuntimeError("asked to fail at the start")
        self._root = Path(tempfile.mkdtemp(prefix="aec-local-room-"))
        for name in ("workspace", "logs/agent", "logs/verifier", "logs/artifacts", "tmp", "root", "home"):
            (self._root / name).mkdir(parents=True, exist_ok=True)
        for link in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink("/" + link):
                os.symlink(os.readlink("/" + link), self._root / link)
        for line in (self.environment_dir / "Dockerfile").read_text().splitlines():
            words = line.split()
            if len(words) == 3 and words[0] == "COPY":
                source, target = self.environment_dir / words[1], self._inside(words[2])
                if source.is_dir():
                    shutil.copytree(source, target, dirs_exist_ok=True)
                else:
                    shutil.copy(source, target / source.name if words[2].endswith("/") else target)

    async def stop(self, delete: bool) -> None:
        if self._root is not None and delete:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None

    async def upload_file(self, source_path: Any, target_path: Any) -> None:
        target = self._inside(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target)

    async def upload_dir(self, source_dir: Any, target_dir: Any) -> None:
        shutil.copytree(source_dir, self._inside(target_dir), dirs_exist_ok=True, symlinks=True)

    async def download_file(self, source_path: Any, target_path: Any) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._inside(source_path), target_path)

    async def download_dir(self, source_dir: Any, target_dir: Any) -> None:
        shutil.copytree(self._inside(source_dir), target_dir, dirs_exist_ok=True, symlinks=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        argv = ["unshare", "-m", "-p", "-f", "--kill-child"]
        if self._network_policy.network_mode == NetworkMode.NO_NETWORK:
            argv.append("-n")
        argv += ["/usr/bin/bash", "-c", ENTER, "enter", str(self._root), cwd or "/workspace"]
        argv += ["/usr/bin/bash", "-c", command]
        full = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "SLOWLY": os.environ.get("LOCAL_ROOM_SLOWLY", "0")}
        full.update(self._merge_env(env) or {})
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=full,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        except BaseException:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            raise
        return ExecResult(
            stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace"), return_code=process.returncode
        )
