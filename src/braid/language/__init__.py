"""The query language: text to a checked Query."""

from braid.language.binding import bind
from braid.language.parsing import parse

__all__ = ["bind", "parse"]
