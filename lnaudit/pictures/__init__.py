"""Pictures of a report: which there are, and which one a document is.

A picture is one function and one line of a table. Matplotlib is imported when something is drawn.
"""

from __future__ import annotations

from ..errors import LnauditError
from ..report import Document, Report, SweepReport
from .curves import curves_picture
from .depth import depth_picture
from .drawing import to_png, to_svg
from .map import map_picture
from .picture import Picture, Table, report_extra
from .response import response_picture
from .window import window_picture


def pictures_of(document: Document) -> list[Picture]:
    """Return all pictures of a document, in the order in which a page shows them."""
    if isinstance(document, Report):
        sites = [window_picture(site) for site in document.sites]
        return [depth_picture(document), *(picture for picture in sites if picture is not None)]
    if isinstance(document, SweepReport):
        limits = document.config.get("limits")
        found = [(response_picture(site), curves_picture(site, limits)) for site in document.sites]
        return [p for pair in found for p in pair if p is not None] + [map_picture(m) for m in document.maps]
    return []


def picture_for(document: Document) -> Picture:
    """Return the one picture that stands for a document.

    A scan of one site: its window; of several: the depth view. A sweep of one site: the response where it is of that
    family, else the curves; of one map: the map.

    Raises
    ------
    LnauditError
        If the document is not one picture, or none.
    """
    if isinstance(document, Report) and len(document.sites) == 1:
        return window_picture(document.sites[0]) or depth_picture(document)
    if isinstance(document, Report) and document.sites:
        return depth_picture(document)
    if isinstance(document, SweepReport) and len(document.sites) + len(document.maps) == 1:
        if document.maps:
            return map_picture(document.maps[0])
        (site,) = document.sites
        return response_picture(site) or curves_picture(site, document.config.get("limits"))
    if isinstance(document, SweepReport) and (document.sites or document.maps):
        if len(document.maps) > 1:
            what = f"holds {len(document.maps)} maps, a picture shows one"
            raise LnauditError(what, "name one format, kernel and epsilon, or write a page (.html) with all of them")
        what = f"holds {len(document.sites)} sites, a picture of a sweep shows one"
        raise LnauditError(what, "name one PATH or --family, or write a page (.html) with all of them")
    raise LnauditError("no site was judged, so there is nothing to draw", "see what could not be audited")


__all__ = [
    "Picture",
    "Table",
    "curves_picture",
    "depth_picture",
    "map_picture",
    "picture_for",
    "pictures_of",
    "report_extra",
    "response_picture",
    "to_png",
    "to_svg",
    "window_picture",
]
