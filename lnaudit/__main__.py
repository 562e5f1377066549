"""The program: `lnaudit` and `python -m lnaudit`. A crash is exit code 3, never 1."""

from __future__ import annotations

import sys

INTERNAL_ERROR, INTERRUPTED = 3, 130


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        from .cli.app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("lnaudit: interrupted\n")
        sys.exit(INTERRUPTED)
    except Exception as error:
        if {"-v", "--verbose"} & set(sys.argv):
            raise_traceback()
        text = " ".join(f"{type(error).__name__}: {error}".split())
        sys.stderr.write(f"lnaudit: internal error: {text}; run it again with -v and report it\n")
        sys.exit(INTERNAL_ERROR)


def raise_traceback() -> None:
    """Print the traceback of the error that is being handled."""
    import traceback

    traceback.print_exc()


if __name__ == "__main__":
    main()
