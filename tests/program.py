"""The program as users run it, in a process of its own, warnings as errors.

A process that has imported the program already is forked where that can be: most of a short run is imports. What the
interpreter reads before the program begins is the subject of `started` runs, and of the variables that it reads.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

TIMEOUT = 120
# a process of macOS that uses its frameworks cannot be forked safely
FORKS = hasattr(os, "fork") and sys.platform != "darwin"
INTERPRETERS = ("PYTHON", "LANG", "LC_")  # beginnings of the names of what an interpreter reads


def run(
    *args: Any, cwd: Any = None, env: dict[str, str] | None = None, started: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the program; what the environment says of terminals and CI does not count.

    An interpreter is started for it where `started` says so, or `env` has something to say to one.
    """
    words = list(map(str, args))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS")}
    environment |= env or {}
    command = [sys.executable, "-W", "error", "-m", "lnaudit", *words]
    if started or not FORKS or any(name.startswith(INTERPRETERS) for name in env or ()):
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=TIMEOUT)
    code, stdout, stderr = forked({"args": words, "cwd": str(Path(cwd or "").resolve()), "env": environment})
    return subprocess.CompletedProcess(command, code, stdout, stderr)


def run_in(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder, with these environment variables."""
    return run(*words, cwd=folder, env=variables)


@cache
def fork_server() -> socket.socket:
    """Return the channel to the process that forks; it ends with this one."""
    ours, theirs = socket.socketpair()
    script = Path(__file__).with_name("fork_server.py")
    command = [sys.executable, "-W", "error", str(script), str(theirs.fileno())]
    with theirs:
        # a group of its own, so that a child goes with it
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True)

    def end() -> None:
        ours.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()

    atexit.register(end)
    ours.settimeout(TIMEOUT)
    return ours


def forked(request: dict[str, Any]) -> tuple[int, str, str]:
    """Run what is asked for in a fork; return its exit code and what it wrote."""
    channel = fork_server()
    with open(os.devnull, "rb") as nothing, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        message = json.dumps(request).encode()
        socket.send_fds(channel, [message], [stream.fileno() for stream in (nothing, out, err)])
        try:
            answer = channel.recv(64)
        except TimeoutError:
            fork_server.cache_clear()  # the answer may still come, and is no other's
            raise
        assert answer, "the process that forks has ended"
        written = []
        for stream in (out, err):
            stream.seek(0)
            written.append(stream.read().decode().replace("\r\n", "\n"))
    return int(answer), written[0], written[1]
