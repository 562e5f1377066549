"""`--show-settings`: what counts in a run, as a policy file that means the same, and the options beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .request import listed

if TYPE_CHECKING:
    from types import SimpleNamespace

    from ..pipeline import Settings
    from ..policy import Policy

# keys of a policy, and the parameters of their options
KEYS = {
    "formats": "format",
    "kernels": "kernel",
    "runtime": "runtime",
    "tolerance": "tolerance",
    "share": "share",
    "fail-on": "fail_on",
    "select": "select",
    "ignore": "ignore",
}
TABLES = ("rules", "sites", "ignore-sites", "anchors")
# what a report repeats that no policy says, and its option
BESIDE = {
    "epsilon": "eps",
    "epsilons": "eps",
    "families": "family",
    "compare_epsilon": "compare-eps",
    **{name: name for name in ("axis", "norm", "weight", "bias", "dtype", "field", "verify")},
    "loss_scale": "loss-scale",
    "flush_subnormals": "ftz",
}


def shown(words: SimpleNamespace, policy: Policy, settings: Settings, *, gates: bool) -> str:
    """Return the settings of a run as TOML, each with where it comes from.

    gates: the run fails where the policy says so; otherwise only an option makes it fail.
    """
    from ..policy.write import document_of, toml, toml_table
    from ..wording import printable

    document = document_of(counting(words, policy, settings, gates=gates))
    unsaid = {} if "formats" in document else {"formats": [fmt.name for fmt in settings.formats]}
    if not document.keys() & {"kernels", "runtime"}:
        unsaid["kernels"] = [kernel.name for kernel in settings.default_kernels or ()] or ["native", "fused"]
    lines = [f"# {printable(policy.source) or 'no policy file'}"]
    for key in KEYS:
        value = {**unsaid, **document}.get(key)
        if value is not None:
            mark = "# " if key in unsaid else ""  # said, it would mean more
            origin = printable(_origin(key, words, policy, gates=gates)) + _more(
                key, value, unsaid, settings, gates=gates
            )
            lines.append(f"{mark}{key} = {toml(value)}  # {origin}")
    for name in TABLES:
        if name in document:
            lines += ["", *toml_table(name, document[name])]
    lines += ["", "# options beside the policy, which go before it:"]
    lines += [f"# {name} = {toml(value)}" for name, value in _beside(words, settings, gates=gates).items()]
    return "\n".join(lines) + "\n"


def counting(words: SimpleNamespace, policy: Policy, settings: Settings, *, gates: bool) -> Policy:
    """Return the policy that says all that counts: what options say goes before it, at single sites too."""
    sites = policy.sites
    asked: dict[str, Any] = {}
    if words.format:
        asked["formats"] = tuple(fmt.name for fmt in settings.formats)
        sites = tuple(replace(site, formats=None) for site in sites)
    if words.kernel or words.runtime:
        asked["kernels"] = tuple(listed(words.kernel, "--kernel"))
        asked["runtimes"] = tuple(listed(words.runtime, "--runtime"))
        sites = tuple(replace(site, kernel=None) for site in sites)
    if settings.tolerance is not None:
        asked.update(tolerance=settings.tolerance, tolerances={})
        sites = tuple(replace(site, tolerance=None) for site in sites)
    elif not policy.tolerances:
        asked["tolerance"] = settings.named()["tolerance"]
    if gates:
        asked["fail_on"] = settings.config["fail_on"]
    return replace(policy, **asked, sites=sites)


def _origin(key: str, words: SimpleNamespace, policy: Policy, *, gates: bool) -> str:
    name = KEYS[key]
    if getattr(words, name) and (gates or key != "fail-on"):
        return str(words.variables.get(name, f"--{name.replace('_', '-')}"))
    return policy.source if key in policy.said else "default"


def _more(key: str, value: Any, unsaid: dict[str, Any], settings: Settings, *, gates: bool) -> str:
    """Return what else there is to say of a key."""
    if key == "kernels" and key in unsaid:
        below = "fused below float32 only, and " if len(value) > 1 else ""
        return f": {below}a manifest goes before"
    if key == "tolerance" and isinstance(value, dict):
        return f"; other formats: {settings.named()['tolerance']}"
    return "; counts in lnaudit check" if key == "fail-on" and not gates else ""


def _beside(words: SimpleNamespace, settings: Settings, *, gates: bool) -> dict[str, Any]:
    config = settings.config
    found = {BESIDE[name]: config[name] for name in BESIDE if config.get(name) not in (None, [])}
    if not gates and "fail_on" in config:
        found["fail-on"] = config["fail_on"]
    return {**found, "engine": words.engine, "jobs": words.jobs}
