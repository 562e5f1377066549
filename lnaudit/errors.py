"""The one error that a user sees: what is wrong with which input, and what to do."""

from __future__ import annotations


class LnauditError(Exception):
    """An input that cannot be audited or an option that cannot be honoured.

    Parameters
    ----------
    what : str
        What is wrong, in half a sentence.
    remedy : str, optional
        What to do about it.
    source : str, optional
        The path or option concerned, as the user gave it.
    """

    def __init__(self, what: str, remedy: str = "", source: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.source = source

    @property
    def reason(self) -> str:
        """What is wrong and what to do, without the path."""
        return f"{self.what}; {self.remedy}" if self.remedy else self.what

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}" if self.source else self.reason
