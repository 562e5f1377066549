"""The fields of a structured array: where each lies in a record, whatever is nested in what."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeGuard

from ..errors import LnauditError
from ..wording import nearest
from .elements import Element, is_float, parse_element
from .files import shortened
from .paths import enumerated

# numpy's own limit
MOST_DIMENSIONS = 64


@dataclass(frozen=True, kw_only=True)
class Field:
    """One number, or array of numbers, of each record.

    Attributes
    ----------
    element : Element
        What it consists of.
    offset : int
        Where it starts in the record, in bytes.
    shape, strides : tuple of int
        Of the array in a record, () where it is one number; strides in bytes.
    name, title : str
        Names of nested records joined by dots, and the same with titles where there are some; "" for the element of an
        array without fields.
    """

    element: Element
    offset: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    name: str = ""
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What an array is an array of: its bytes and its fields; one without a name where it is not structured."""

    itemsize: int
    fields: tuple[Field, ...]
    structured: bool

    @property
    def described(self) -> str:
        """The names of the fields in a few words."""
        return f"structured array (fields {enumerated([shortened(field.name) for field in self.fields])})"

    def field(self, name: str | None) -> Field:
        """Return the field that `--field NAME` means.

        Raises
        ------
        LnauditError
            If there is none, several, or one has to be named and is not.
        """
        if not self.structured:
            if name is None:
                return self.fields[0]
            raise LnauditError(f"has no fields (elements {self.fields[0].element.descr})", "leave --field out")
        if name is None:
            likely = next((field for field in self.fields if is_float(field.element)), self.fields[0])
            raise LnauditError(self.described, f"audit one of them: --field {shortened(likely.name)}")
        found = [field for field in self.fields if name in (field.name, field.title)]
        if not found:
            choice = nearest(name, [field.name for field in self.fields])
            raise LnauditError(f"has no field '{shortened(name)}'", shortened(choice))
        if len(found) > 1:
            raise LnauditError(f"has {len(found)} fields '{shortened(name)}'", "save one of them alone as an array")
        return found[0]


def parse_record(descr: object) -> Record:
    """Read the `descr` of a header.

    Raises
    ------
    ValueError
        If it describes nothing.
    LnauditError
        If there are elements in it whose size is not known.
    """
    if isinstance(descr, tuple):
        raise ValueError("an array, not an element")
    size, fields = _repeated(descr)
    if not fields:
        raise ValueError("no fields")
    return Record(itemsize=size, fields=fields, structured=isinstance(descr, list))


def _structure(entries: list[object]) -> tuple[int, tuple[Field, ...]]:
    """Return bytes and fields of a record."""
    end = 0
    fields: list[Field] = []
    for entry in entries:
        if not (isinstance(entry, tuple) and len(entry) in (2, 3)):
            raise ValueError("no field")
        name, descr, *shape = entry
        title, name = name if isinstance(name, tuple) and len(name) == 2 else (name, name)
        if not (isinstance(name, str) and isinstance(title, str)):
            raise ValueError("no name")
        size, inner = _repeated(descr, *shape)
        # bytes without a name are there to align what follows
        if name or any(field.name or not field.element.code.startswith("V") for field in inner):
            fields += [
                replace(f, offset=end + f.offset, name=_path(name, f.name), title=_path(title, f.title)) for f in inner
            ]
        end += size
    return end, tuple(fields)


def _repeated(descr: object, shape: object = ()) -> tuple[int, tuple[Field, ...]]:
    """Return bytes and fields of an array, within a record, of what is described."""
    shape = (shape,) if isinstance(shape, int) else shape
    if not is_shape(shape):
        raise ValueError("no shape")
    if isinstance(descr, list):
        size, fields = _structure(descr)
    elif isinstance(descr, tuple) and len(descr) == 2:
        size, fields = _repeated(*descr)
    else:
        element = parse_element(descr)
        size, fields = element.itemsize, (Field(element=element),)
    strides = c_strides(shape, size)
    fields = tuple(replace(f, shape=shape + f.shape, strides=strides + f.strides) for f in fields)
    return math.prod(shape) * size, fields


def _path(outer: str, inner: str) -> str:
    return ".".join(filter(None, (outer, inner)))


def is_shape(value: object) -> TypeGuard[tuple[int, ...]]:
    """Whether a word of a header is a shape: a tuple of sizes that an array can have."""
    return (
        isinstance(value, tuple)
        and len(value) <= MOST_DIMENSIONS
        and all(type(n) is int and 0 <= n < 2**63 for n in value)
    )


def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the bytes from one element to the next along each axis of an array in C order."""
    return tuple(itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape)))
