"""The program: `lnaudit` and `python -m lnaudit`. A crash is exit code 3, never 1."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import signal
import sys
import threading
from typing import Any, NoReturn

USAGE, INTERNAL_ERROR, INTERRUPTED = 2, 3, 130
TERMINATED = 128 + signal.SIGTERM
GRACE = 0.5  # seconds
SHOW_CURSOR = "\x1b[?25h"  # a progress bar may have hidden it
_signals: list[int] = []
_leaving = threading.Lock()


def main() -> None:
    """Run the command line and end the process with its exit code."""
    _mend_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        from .cli.app import app

        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # what the option parser makes of an interrupt
            _interrupted()
        sys.exit(code if isinstance(code, int) else 0)
    except KeyboardInterrupt:
        _interrupted()
    except Exception as error:
        if _signals:  # what an interrupt in the middle of a compilation turns into
            _interrupted()
        if hasattr(error, "format_message"):
            _usage(error)
        if {"-v", "--verbose"} & set(sys.argv):
            import traceback

            traceback.print_exc()
        text = " ".join(f"{type(error).__name__}: {error}".split())
        sys.stderr.write(f"lnaudit: internal error: {text}; run it again with -v and report it\n")
        _answer_in_json(f"internal error: {text}", "")
        sys.exit(INTERNAL_ERROR)


def _stop(number: int, frame: object) -> None:
    """Clean up and leave when the process is asked to; what swallows the exception has a little time only."""
    _signals.append(number)
    sys.unraisablehook = lambda _: None
    last = threading.Timer(GRACE, _interrupted)
    last.daemon = True
    last.start()
    raise KeyboardInterrupt


def _interrupted() -> NoReturn:
    """Leave at once: threads may be in the middle of a block, and whoever wrote a file has removed it by now."""
    if not _leaving.acquire(blocking=False):
        threading.Event().wait()
    what, code = ("terminated", TERMINATED) if signal.SIGTERM in _signals else ("interrupted", INTERRUPTED)
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{SHOW_CURSOR if sys.stderr.isatty() else ''}lnaudit: {what}\n")
        sys.stderr.flush()
        _answer_in_json(what, "")
        sys.stdout.flush()
    os._exit(code)


def _usage(error: Any) -> NoReturn:
    """Say in one line what the option parser did not understand, before any command ran."""
    message = str(error.format_message())
    command = f" {sys.argv[1]}" if sys.argv[1:] and getattr(getattr(error, "ctx", None), "parent", None) else ""
    if "\n" in message.strip():  # the help, where nothing was asked for
        sys.stderr.write(message.rstrip() + "\n")
    else:
        sys.stderr.write(f"lnaudit: {message.strip().rstrip('.')}; see lnaudit{command} --help\n")
        _answer_in_json(f"{message.strip().rstrip('.')}; see lnaudit{command} --help", command.strip())
    sys.exit(USAGE)


def _mend_streams() -> None:
    """Let closed streams swallow what is written to them, and escape what an encoding cannot say."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (open until the process ends)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _answer_in_json(reason: str, source: str) -> None:
    """Write a JSON document where one was asked for, so that a reader of stdout always finds one."""
    pairs = {" ".join(pair).replace("=", " ") for pair in itertools.pairwise([*sys.argv, ""])}
    if any(pair.strip().startswith("--output-format json") for pair in pairs):
        from .cli.output import refused

        kind = next((word for word in sys.argv[1:2] if word in ("sweep", "check", "diff", "rule")), "scan")
        sys.stdout.write(refused(reason, source, kind))


if __name__ == "__main__":
    main()
