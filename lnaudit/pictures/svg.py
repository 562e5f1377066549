"""Matplotlib's SVG made fit for a page: ink as currentColor, a generic font, small, with ids that do not clash."""

from __future__ import annotations

import base64
import hashlib
import re
from xml.etree import ElementTree

from .picture import Picture
from .style import INK
from .svg_short import path, rounded, unclip

_NAMESPACE, _LINKS = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"font-family: [^;]*(; )?")
_NO_TURN = re.compile(r"rotate\(-?0 [^)]*\)")
# what says nothing: the values that the root passes on, and corners of thin lines, which look alike
_IDLE = re.compile(
    r"(stroke-linejoin: (?:round|miter)|stroke-linecap: butt|stroke-dashoffset: 0|stroke-dasharray:|"
    r"(?<!-)fill: currentColor|text-anchor: start|font-size: 8px)(; |$)"
)
_PLACES = ("x", "y", "transform", "points")
_MANY = 4  # marks of one form from which on a path with markers is shorter
_MARKER = {"markerUnits": "userSpaceOnUse", "overflow": "visible"}
_SHARP = 2  # decimals of what is not a place on the picture: a width, the form of a marker
_PROLOG = '<?xml version="1.0" encoding="utf-8"?>\n'
# a file may be read on white or on dark; viewers without CSS take the attribute `color`
_FILE_STYLE = (
    ":root{color-scheme:light dark;color:#111111;background:#ffffff}"
    "@media(prefers-color-scheme:dark){:root{color:#e8e8e8;background:#121212}}"
)


def clean(svg: str, picture: Picture, *, inline: bool) -> str:
    """Return what matplotlib wrote as a piece of a page or, not `inline`, as a file."""
    root = ElementTree.fromstring(svg)
    unclip(root)
    forms = {form for marker in root.iter(f"{{{_NAMESPACE}}}defs") for form in marker.iter()}
    for element in root.iter():
        _tidy(element, _SHARP if element in forms else 1)
    _thin(root, {element.attrib["id"]: element for element in root.iter("path") if "id" in element.attrib})
    _rename_ids(root, picture, svg)
    for parent in list(root.iter()):
        parent[:] = [child for child in parent if child.tag != "defs" or any("id" in form.attrib for form in child)]
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
        "font-size": "8px",
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
    text = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    return text if inline else f"{_PROLOG}{text}\n"


def _tidy(element: ElementTree.Element, digits: int) -> None:
    """Write one element short: no namespaces, no layout, few decimals, ink in the colour of the text around."""
    element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
    element.tail = None
    if element.tag != "text":
        element.text = None
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        key = key.replace(f"{{{_LINKS}}}", "xlink:")
        if key == "d":
            value = path(value, digits)
        elif key != "id" and "href" not in key:
            value = rounded(value, digits if key in _PLACES else _SHARP)
        if key == "style":
            value = _IDLE.sub("", _FONT.sub("", value).replace(INK, "currentColor")).rstrip("; ")
            value = value.replace(": ", ":").replace("; ", ";")
        elif key == "transform":
            value = _NO_TURN.sub("", value).strip()
        if value:
            element.attrib[key] = value


def _thin(parent: ElementTree.Element, forms: dict[str, ElementTree.Element]) -> None:
    """Take out the style sheet for all of a page, what cannot be seen, and groups that only hold others together."""
    children = []
    for child in parent:
        _thin(child, forms)
        _share_style(child, forms)
        hidden = child.tag == "path" and child.get("style") == "fill:none"
        if child.tag in ("style", "metadata") or hidden or (child.tag in ("g", "defs") and not len(child)):
            continue
        idle = child.tag == "g" and not child.attrib.keys() - {"id"}
        children += list(child) if idle else [child]
    parent[:] = children


def _share_style(group: ElementTree.Element, forms: dict[str, ElementTree.Element]) -> None:
    """Write once what all marks of a group have in common: many of one form are the corners of one path."""
    if group.tag != "g" or not len(group) or any(child.tag != "use" for child in group):
        return
    names, styles = {child.get("xlink:href", "") for child in group}, {child.get("style") for child in group}
    form, style = forms.get(group[0].get("xlink:href", "")[1:]), group.get("style") or group[0].get("style")
    if len(names) > 1 or len(styles) > 1 or form is None:
        return
    for child in group:
        child.attrib.pop("style", None)
    group.attrib.pop("style", None)
    if style is not None and style != form.get("style"):
        group.set("style", style)
    if len(group) >= _MANY:
        group.attrib.pop("style", None)
        group[:] = _marked(group, form, style)


def _marked(group: ElementTree.Element, form: ElementTree.Element, style: str | None) -> list[ElementTree.Element]:
    """Return a form as a marker in a style of its own, for it does not take that of the path, and the path."""
    corners = "L".join(f"{child.get('x', '0')} {child.get('y', '0')}" for child in group)
    marker = ElementTree.Element("marker", _MARKER)
    marker.set("id", f"marks-{id(marker)}")  # renamed with the others
    marker.append(ElementTree.Element("path", {"d": form.get("d", ""), **({"style": style} if style else {})}))
    ends = {f"marker-{place}": f"url(#{marker.get('id')})" for place in ("start", "mid", "end")}
    return [marker, ElementTree.Element("path", {"d": path(f"M{corners}", 1), "fill": "none", **ends})]


def _rename_ids(root: ElementTree.Element, picture: Picture, svg: str) -> None:
    """Keep the ids that something refers to, under names that no other picture of a page has."""
    content = f"{picture.name}\0{picture.title}\0{svg}".encode("utf-8", "replace")
    prefix = "p" + base64.b32encode(hashlib.sha256(content).digest()).decode().lower()[:8]
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
