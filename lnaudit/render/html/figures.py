"""Pictures on the page: SVG in the text, and the data of each as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .parts import Figure, label, plain

if TYPE_CHECKING:
    from ...pictures import Picture


def figure(picture: Picture) -> Figure:
    """Return a picture as the page shows it."""
    from ...pictures import to_svg

    return Figure(
        title=label(picture.title),
        description=picture.description,
        svg=to_svg(picture, inline=True),
        table=plain(f"Data: {label(picture.title)}", picture.table.headings, picture.table.rows),
    )


def figures(*pictures: Picture | None) -> tuple[Figure, ...]:
    """Return the pictures that there are."""
    return tuple(figure(picture) for picture in pictures if picture is not None)
