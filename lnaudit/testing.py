"""Assertions for the tests of a model, in the manner of torch.testing and numpy.testing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .findings import Finding
    from .policy import Policy
    from .report import Report, Result

__all__ = ["UnstableNormError", "assert_layernorm_stable"]
_DEVIATIONS = ("LN202", "LN204")
_NORMS = {"layer": "LayerNorm", "rms": "RMSNorm"}


class UnstableNormError(AssertionError):
    """A norm is not stable on the rows that entered it; report: the audit."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


def assert_layernorm_stable(
    x: ArrayLike,
    *,
    epsilon: float = 1e-5,
    format: str | Sequence[str] = "float16",
    kernel: str | Sequence[str] = "native",
    axis: int | tuple[int, ...] = -1,
    norm: str = "layer",
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    tolerance: float = 0.02,
    share: float = 0.0,
    select: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    fail_on: str = "error",
    name: str = "x",
    msg: str | Callable[[str], str] | None = None,
) -> Report:
    """Assert that a norm of these rows is stable in a format, under a kernel.

    Parameters
    ----------
    x : array_like, shape (..., d) for axis -1
        What enters the norm, as `lnaudit.audit` takes it: lists, arrays, tensors.
    epsilon, axis, norm, weight, bias, tolerance
        As in `lnaudit.audit`.
    format, kernel : str or sequence of str
        One or several, as in `lnaudit formats` and `lnaudit kernels`; every pair of them is asserted.
    share : float
        Part of the rows, from 0 to 1, that may exceed the tolerance.
    select, ignore : str or sequence of str, optional
        Codes or names of rules, or beginnings of codes as in "LN1"; by default all rules count. The longer one decides.
    fail_on : str
        The least severity that fails: "error", "warning", "note"; "never" only reports.
    name : str
        How messages and the report call the array.
    msg : str or callable, optional
        What to say instead of the message, or a function that is given the message and returns what to say.

    Returns
    -------
    Report
        The audit, as of `lnaudit.audit`.

    Raises
    ------
    UnstableNormError
        An AssertionError, with the report as `report`: if there are such findings, or no row is finite.
    LnauditError
        If the array or an argument cannot be audited.
    """
    __tracebackhide__ = True
    from .api import audit_under, blaming_arguments, site_of

    policy = _policy(share, select, ignore, fail_on)
    with blaming_arguments():
        site = site_of(x, epsilon, axis, norm, weight, bias, str(name))
        report = audit_under(policy, site, format, kernel, tolerance)
    report.config.update(**policy.config(), fail_on=fail_on)
    failure = _failure(report, fail_on)
    if failure:
        raise UnstableNormError(msg(failure) if callable(msg) else failure if msg is None else msg, report)
    return report


def _policy(
    share: float, select: str | Sequence[str] | None, ignore: str | Sequence[str] | None, fail_on: str
) -> Policy:
    from .api import check_number
    from .policy import Policy, values

    return Policy(
        share=values.share(check_number(share, "share"), "share"),
        select=("LN",) if select is None else _prefixes(select, "select"),
        ignore=() if ignore is None else _prefixes(ignore, "ignore"),
        fail_on=values.fail_on(fail_on, "fail_on"),
    )


def _prefixes(words: str | Sequence[str], name: str) -> tuple[str, ...]:
    from .errors import LnauditError
    from .policy import values

    try:
        listed = [words] if isinstance(words, str) else list(words)
    except TypeError:
        raise LnauditError(f"{words!r} is not a code or a list of codes", 'as in "LN1"', name) from None
    return values.ignored(listed, name) if name == "ignore" else values.selected(listed, name)


def _failure(report: Report, fail_on: str) -> str:
    """Return what is wrong, "" if nothing is."""
    from .findings import at_or_above

    site, what = report.sites[0], f"{_NORMS[report.sites[0].norm]} of {report.sites[0].name}"
    if report.not_audited and fail_on != "never":
        return f"{what} is not known to be stable: {report.not_audited[0].reason}"
    counted = at_or_above(report.findings, fail_on)
    if not counted:
        return ""
    by_result = [(result, [f for f in counted if _is_about(f, result)]) for result in site.results]
    failing = [(result, findings) for result, findings in by_result if findings]
    about_site = [finding for finding in counted if finding.format is None]
    first = about_site[0] if about_site else failing[0][1][0]
    wrong = "cannot be called stable" if about_site else f"is not stable in {first.format} under {first.kernel}"
    lines = [f"{what} {wrong}: {_said(first)}", ""]
    for finding in about_site:
        lines += [*([] if finding is first else [_said(finding)]), *_remedy(finding.remedy)]
    for result, findings in failing:
        if findings[0] is not first:
            lines += ["", f"{result.format} under {result.kernel}: {_said(findings[0])}"]
        lines += _facts(result, findings, site.input["finite_rows"], site.limits[result.format])
    return "\n".join(lines)


def _is_about(finding: Finding, result: Result) -> bool:
    return (finding.format, finding.kernel) == (result.format, result.kernel)


def _said(finding: Finding) -> str:
    return f"{finding.title} ({finding.code} {finding.name})"


def _facts(result: Result, findings: list[Finding], rows: int, limit: float) -> list[str]:
    """Return what a failing emulation does to the rows, and what to do."""
    from .wording import count, counted, percent, short

    lines = [f"Also: {_said(finding)}" for finding in findings[1:]]
    if result.failing_rows:
        lines.append(
            f"Failing rows: {count(result.failing_rows)} / {count(rows)} ({percent(result.failing_rows / rows)})"
        )
    if result.nonfinite_rows:
        lines.append(f"Rows with NaN or Inf: {count(result.nonfinite_rows)} / {count(rows)}")
    largest, row = result.error["max"], result.error["max_row"]
    if largest is not None:
        allowed = next((f.limit for f in findings if f.code in _DEVIATIONS), limit)  # the cast may widen it
        lines.append(f"Greatest error: {short(largest)} at row {row} (up to {short(allowed)} allowed)")
    operation, most = max(result.first_bad_operation.items(), key=lambda item: item[1])
    if most:
        lines.append(f"First bad operation: {operation} ({counted(most, 'row')})")
    verified = next((remedy.detail for remedy in result.remedies if remedy.verified), "")
    return lines + _remedy(verified or next((f.remedy for f in findings if f.remedy), ""))


def _remedy(text: str) -> list[str]:
    from .api import in_python

    return [f"What to do: {in_python(text)}"] if text else []
