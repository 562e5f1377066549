"""Finding and severity: one thing that is wrong, with what was measured and what to do."""

from __future__ import annotations

from dataclasses import dataclass

SEVERITIES = ("error", "warning", "note")  # worst first


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding of a rule.

    Attributes
    ----------
    code, name, severity : str
        The rule, and "error", "warning" or "note".
    latent : bool
        Has not happened on this data, but will: on a zero row, under flush-to-zero, ...
    site, source : str
        Where.
    format, kernel : str or None
        The emulation; None for a finding about the site.
    rows : int
        Rows concerned.
    row : int or None
        The worst of them.
    measured, limit : float or None
        What was measured, and what it was compared with.
    title, message, remedy : str
        The fact in half a line; the explanation in a sentence or two; one thing to do, or "".
    known : bool
        A baseline has it.
    """

    code: str
    name: str
    severity: str
    site: str
    source: str
    title: str
    message: str
    latent: bool = False
    format: str | None = None
    kernel: str | None = None
    rows: int = 0
    row: int | None = None
    measured: float | None = None
    limit: float | None = None
    remedy: str = ""
    known: bool = False


def at_or_above(findings: list[Finding], severity: str) -> list[Finding]:
    """Return the findings at least as bad as a severity; none for any other word, such as "never".

    What a baseline knows does not count.
    """
    counted = SEVERITIES[: SEVERITIES.index(severity) + 1] if severity in SEVERITIES else ()
    return [finding for finding in findings if finding.severity in counted and not finding.known]


def worst(findings: list[Finding] | tuple[Finding, ...]) -> str | None:
    """Return the worst severity among findings, None if there are none."""
    return min((f.severity for f in findings), key=SEVERITIES.index, default=None)
