"""Matplotlib's SVG made fit for a page: ink as currentColor, a generic font, small, with ids that do not clash."""

from __future__ import annotations

import hashlib
import re
from xml.etree import ElementTree

from .picture import Picture
from .style import INK

_NAMESPACE, _LINKS = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_LONG = re.compile(r"-?\d+\.\d{2,}")
_FONT = re.compile(r"font-family: [^;]*(; )?")
_COMMAND = re.compile(r"\s*([MLQCzZ])\s*")
_NO_TURN = re.compile(r"rotate\(-?0 [^)]*\)")
# only what says nothing: the values that the root passes on
_IDLE = re.compile(r"(stroke-linejoin: round|stroke-linecap: butt|stroke-dashoffset: 0|(?<!-)fill: currentColor)(; |$)")
_PROLOG = '<?xml version="1.0" encoding="utf-8"?>\n'
# a file may be read on white or on dark; viewers without CSS take the attribute `color`
_FILE_STYLE = (
    ":root{color-scheme:light dark;color:#111111;background:#ffffff}"
    "@media(prefers-color-scheme:dark){:root{color:#e8e8e8;background:#121212}}"
)


def clean(svg: str, picture: Picture, *, inline: bool) -> str:
    """Return what matplotlib wrote as a piece of a page or, not `inline`, as a file."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        _tidy(element)
    _thin(root)
    _rename_ids(root, picture, svg)
    width, height = (float(number) / 72 for number in root.attrib["viewBox"].split()[2:])
    attributes = {
        **({} if inline else {"xmlns": _NAMESPACE}),
        "xmlns:xlink": _LINKS,
        "viewBox": root.attrib["viewBox"],
        "width": f"{96 * width:.0f}",
        "height": f"{96 * height:.0f}",
        "role": "img",
        "aria-label": picture.description,
        "font-family": "sans-serif",
        "fill": "currentColor",
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
        **({} if inline else {"color": "#111111"}),
    }
    root.attrib.clear()
    root.attrib.update(attributes)
    if not inline:
        title, style = ElementTree.Element("title"), ElementTree.Element("style")
        title.text, style.text = picture.title, _FILE_STYLE
        root[:0] = [title, style]
    text = ElementTree.tostring(root, encoding="unicode")
    return text if inline else f"{_PROLOG}{text}\n"


def _tidy(element: ElementTree.Element) -> None:
    """Write one element short: no namespaces, no layout, two decimals, ink in the colour of the text around."""
    element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
    element.tail = None
    if element.tag != "text":
        element.text = None
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        key = key.replace(f"{{{_LINKS}}}", "xlink:")
        if key != "id" and "href" not in key:
            value = _LONG.sub(_short_number, value)
        if key == "style":
            value = _IDLE.sub("", _FONT.sub("", value).replace(INK, "currentColor")).rstrip("; ")
            value = value.replace(": ", ":").replace("; ", ";")
        elif key == "d":
            value = _COMMAND.sub(r"\1", value.strip().replace("\n", " "))
        elif key == "transform":
            value = _NO_TURN.sub("", value).strip()
        if value:
            element.attrib[key] = value


def _short_number(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _thin(parent: ElementTree.Element) -> None:
    """Take out the style sheet for all of a page, what cannot be seen, and groups that only hold others together."""
    children = []
    for child in parent:
        _thin(child)
        _share_style(child)
        hidden = child.tag == "path" and child.get("style") == "fill:none"
        if child.tag in ("style", "metadata") or hidden or (child.tag in ("g", "defs") and not len(child)):
            continue
        idle = child.tag == "g" and not child.attrib.keys() - {"id"}
        children += list(child) if idle else [child]
    parent[:] = children


def _share_style(group: ElementTree.Element) -> None:
    """Write once what all markers of a curve have in common."""
    styles = {child.get("style") for child in group}
    if group.tag == "g" and "style" not in group.attrib and all(child.tag == "use" for child in group):
        (style, *others) = styles or {None}
        if style is not None and not others:
            group.set("style", style)
            for child in group:
                del child.attrib["style"]


def _rename_ids(root: ElementTree.Element, picture: Picture, svg: str) -> None:
    """Keep the ids that something refers to, under names that no other picture of a page has."""
    prefix = "p" + hashlib.sha256(f"{picture.name}\0{picture.title}\0{svg}".encode("utf-8", "replace")).hexdigest()[:8]
    names: dict[str, str] = {}
    elements = list(root.iter())
    for element in elements:
        for key, value in element.attrib.items():
            found = [value[1:]] if key == "xlink:href" else _REFERENCE.findall(value)
            for name in found:
                names.setdefault(name, f"{prefix}-{len(names)}")
    for element in elements:
        own = element.attrib.pop("id", None)
        if own in names:
            element.set("id", names[own])
        for key, value in list(element.attrib.items()):
            if key == "xlink:href":
                element.set(key, f"#{names[value[1:]]}")
            elif "url(#" in value:
                element.set(key, _REFERENCE.sub(lambda m: f"url(#{names[m[1]]})", value))
