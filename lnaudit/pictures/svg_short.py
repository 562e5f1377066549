"""Paths and numbers of SVG written short: tenths of a point, steps from point to point, no clipping where none is."""

from __future__ import annotations

import re
from xml.etree import ElementTree

_LONG = re.compile(r"-?\d+\.\d+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_STRAIGHT = re.compile(r"[MLZz\d\s.-]+")
_STEP = re.compile(r"([MLZz])\s*(?:(-?[\d.]+)\s+(-?[\d.]+))?")
_COMMAND = re.compile(r"\s*([MLQCzZ])\s*")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_ZERO = re.compile(r"^(-?)0\.")
_EDGE = 0.2  # points by which a path may go beyond where it would be cut


def number(value: float, digits: int) -> str:
    """Write a number with at most so many decimals."""
    text = f"{value:.{digits}f}"
    text = _ZERO.sub(r"\1.", text.rstrip("0").rstrip(".") if "." in text else text)
    return "0" if text in ("-0", "-", "") else text


def rounded(text: str, digits: int) -> str:
    """Round all numbers in a text."""
    return _LONG.sub(lambda found: number(float(found[0]), digits), text)


def path(data: str, digits: int) -> str:
    """Write a path of straight lines by its steps, another with numbers rounded."""
    data = data.strip().replace("\n", " ")
    if not _STRAIGHT.fullmatch(data):
        return _COMMAND.sub(r"\1", rounded(data, digits))
    unit, at, written = 10**digits, (0, 0), ""
    for command, x, y in _STEP.findall(data):
        if command in "Zz":
            written += "z"
            continue
        to = round(float(x) * unit), round(float(y) * unit)
        across, down = to[0] - at[0], to[1] - at[1]
        at = to
        if command == "M":
            written += f"M{_pair(*to, unit, digits)}"
        elif not down:
            written += f"h{number(across / unit, digits)}" if across else ""
        elif not across:
            written += f"v{number(down / unit, digits)}"
        else:
            written += f"l{_pair(across, down, unit, digits)}"
    return written


def _pair(x: int, y: int, unit: int, digits: int) -> str:
    first, second = number(x / unit, digits), number(y / unit, digits)
    return f"{first}{second}" if second.startswith("-") else f"{first} {second}"


def unclip(root: ElementTree.Element) -> None:
    """Take the clipping from paths of straight lines that are inside anyway; before they are written by steps."""
    boxes = {
        clip.get("id", ""): tuple(float(clip[0].get(key, "0")) for key in ("x", "y", "width", "height"))
        for clip in root.iter()
        if clip.tag.endswith("clipPath") and len(clip)
    }
    for element in root.iter():
        found, data = _REFERENCE.match(element.get("clip-path", "")), element.get("d", "")
        if found and data and _STRAIGHT.fullmatch(data):
            left, top, width, height = boxes[found[1]]
            values = [float(value) for value in _NUMBER.findall(data)]
            across = all(left - _EDGE <= x <= left + width + _EDGE for x in values[::2])
            if across and all(top - _EDGE <= y <= top + height + _EDGE for y in values[1::2]):
                del element.attrib["clip-path"]
