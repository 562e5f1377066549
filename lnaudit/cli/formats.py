"""`lnaudit formats`: the table, explained."""

from __future__ import annotations


def _constant(value: float) -> str:
    """Write a constant in full if it is short: 65504, 6.1035e-5."""
    mantissa, _, exponent = f"{value:.5g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def formats() -> None:
    """List the formats with their constants."""
    from ..formats import DEFAULT_FORMATS, FORMATS
    from .output import write_out

    lines = [f"{'format':15}{'bits':>5}{'unit roundoff':>15}{'smallest':>13}{'normal from':>13}{'max':>11}  also"]
    for fmt in FORMATS.values():
        cells = (fmt.unit_roundoff, fmt.smallest_subnormal, fmt.smallest_normal, fmt.max)
        u, least, normal, largest = (_constant(value) for value in cells)
        aliases = ", ".join(fmt.aliases)
        lines.append(f"{fmt.name:15}{fmt.precision:>5}{u:>15}{least:>13}{normal:>13}{largest:>11}  {aliases}")
    lines.append("\nbits: of the significand, the implicit one included. unit roundoff: 2^-bits.")
    without = ", ".join(fmt.name for fmt in FORMATS.values() if not fmt.infinity)
    lines.append(f"Overflow gives Inf; {without} has none, there it gives NaN.")
    lines.append(f"Audited unless others are named: {', '.join(fmt.name for fmt in DEFAULT_FORMATS)}.")
    write_out("\n".join(lines) + "\n")
