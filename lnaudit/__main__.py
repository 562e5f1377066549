"""The program: `lnaudit` and `python -m lnaudit`. A crash is exit code 3, never 1."""

from __future__ import annotations

import io
import itertools
import os
import sys

USAGE, INTERNAL_ERROR, INTERRUPTED = 2, 3, 130


def main() -> None:
    """Run the command line and end the process with its exit code."""
    _mend_streams()
    try:
        from .cli.app import app

        app()
    except SystemExit as end:
        # the option parser refuses in its own way, before any command runs
        if end.code == USAGE and not _answered():
            _answer_in_json("the options could not be understood; see --help", " ".join(sys.argv[1:2]))
        raise
    except KeyboardInterrupt:
        sys.stderr.write("lnaudit: interrupted\n")
        sys.exit(INTERRUPTED)
    except Exception as error:
        if {"-v", "--verbose"} & set(sys.argv):
            import traceback

            traceback.print_exc()
        text = " ".join(f"{type(error).__name__}: {error}".split())
        sys.stderr.write(f"lnaudit: internal error: {text}; run it again with -v and report it\n")
        _answer_in_json(f"internal error: {text}", "")
        sys.exit(INTERNAL_ERROR)


def _mend_streams() -> None:
    """Let closed streams swallow what is written to them, and escape what an encoding cannot say."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (open until the process ends)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _answered() -> bool:
    """Whether a command has begun, which then writes its own answer."""
    output = sys.modules.get("lnaudit.cli.output")
    return output is not None and output.begun


def _answer_in_json(reason: str, source: str) -> None:
    """Write a JSON document where one was asked for, so that a reader of stdout always finds one."""
    pairs = {" ".join(pair).replace("=", " ") for pair in itertools.pairwise([*sys.argv, ""])}
    if any(pair.strip().startswith("--output-format json") for pair in pairs):
        from .cli.output import refused

        sys.stdout.write(refused(reason, source, "sweep" if "sweep" in sys.argv[1:2] else "scan"))


if __name__ == "__main__":
    main()
