"""A process that has imported the program and forks for every run of it: a run is a process, without the imports.

What runs has arguments, environment, folder and streams of its own, ends as an interpreter does, and nothing that it
does is seen by the next. What it cannot show is what an interpreter does before the program begins: variables that the
interpreter reads itself, encodings, which modules are imported and what that costs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import socket
import sys

# what most runs import; nothing here starts a thread
MODULES = (
    "lnaudit.cli.app", "lnaudit.cli.progress", "lnaudit.comparison", "lnaudit.families", "lnaudit.pipeline.mapping",
    "lnaudit.pipeline.rejudging", "lnaudit.pipeline.scanning", "lnaudit.pipeline.sweeping", "lnaudit.policy.load",
    "lnaudit.readers.discover", "lnaudit.readers.stdin", "lnaudit.render.diff", "lnaudit.render.html",
    "lnaudit.render.plot", "lnaudit.render.rules",
)  # fmt: skip


def serve(channel: socket.socket) -> dict[str, object]:
    """Answer every request with the exit code of a child; return the request in the child itself."""
    while True:
        message, streams, *_ = socket.recv_fds(channel, 1 << 20, 3)
        if not message:
            os._exit(0)
        child = os.fork()
        if child == 0:
            channel.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return json.loads(message)
        for stream in streams:
            os.close(stream)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        channel.sendall(f"{status}\n".encode())


if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    with contextlib.redirect_stdout(io.StringIO()):
        sys.modules["lnaudit.cli.app"].app(["formats"], standalone_mode=False)  # imports more where it reads options
    gc.freeze()  # a collection in a child would copy every page
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[1:] = request["args"]
    sys.path[0] = request["cwd"]  # as `-m` has it
    runpy.run_module("lnaudit", run_name="__main__", alter_sys=True)
