"""How a run ends: exit codes, the worst first where several hold."""

from __future__ import annotations

import signal

CLEAN, FINDINGS, NOT_AUDITED, INTERNAL_ERROR, INTERRUPTED = 0, 1, 2, 3, 130
TERMINATED = 128 + signal.SIGTERM
MEANINGS: dict[int, str] = {
    CLEAN: "clean",
    FINDINGS: "findings at or above --fail-on",
    NOT_AUDITED: "something could not be audited: a bad option, an unreadable file, nothing matched (the rest is "
    "reported)",
    INTERNAL_ERROR: "internal error",
    INTERRUPTED: f"interrupted ({TERMINATED}: terminated)",
}
ORDER = "When several hold: 130, 3, 2, 1, 0 in this order."
