"""The version of lnaudit."""

__version__ = "0.1.0"
