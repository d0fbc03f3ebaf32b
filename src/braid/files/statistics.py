"""Queries and statistics as people give them to a command."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from braid.errors import BraidError, FileError, reason_of
from braid.files.located_yaml import Located, read
from braid.model.statistics import Statistics

FIGURES = ("rates", "sizes", "populations", "selectivities", "lengths")
ENDS = ("first", "last")


def query_text(given: str) -> str:
    """The text of a query, which is given itself or as the name of a file."""
    if len(given.split()) != 1:
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"cannot read the query file {given}: {reason_of(error)}; a query itself goes in quotes"
        ) from error


def statistics_of(file: Path | None) -> Statistics:
    """Figures from a YAML file with the fields of `braid.Statistics`; nothing is known if there is none."""
    if file is None:
        return Statistics()
    content = read(file)
    fields = content.fields(*FIGURES, "sites", "histograms")
    figures = {name: _figures(fields[name]) for name in FIGURES if name in fields}
    sites = {name: site.text() for name, site in fields["sites"].mapping().items()} if "sites" in fields else {}
    columns = fields["histograms"].mapping() if "histograms" in fields else {}
    histograms = {column: _histogram(given) for column, given in columns.items()}
    try:
        return Statistics(**figures, sites=sites, histograms=histograms)  # type: ignore[arg-type]
    except BraidError as error:
        raise content.wrong(str(error)) from error


def _figures(given: Located) -> dict[str, float]:
    return {name: value.figure() for name, value in given.mapping().items()}


def _histogram(given: Located) -> dict[Hashable, float]:
    """Rates by value: a list of `{value: .., rate: ..}` and of `{first: .., last: .., rate: ..}`."""
    if not isinstance(given.content, list):
        raise given.expected("a list of {value, rate}, or of {first, last, rate} for a range of whole numbers")
    rates: dict[Hashable, float] = {}
    for entry in given.content:
        names = ("value",) if "value" in entry.mapping() else ENDS
        fields = entry.fields("rate", *names, required=("rate", *names))
        key = tuple(_whole(fields[end]) for end in ENDS) if names is ENDS else _value(fields["value"])
        if key in rates:
            raise entry.wrong(f"{given.name} has {key!r} twice; add the rates up")
        rates[key] = fields["rate"].figure()
    return rates


def _value(given: Located) -> Hashable:
    if isinstance(given.content, list | dict):
        raise given.expected("a single value")
    value: Hashable = given.content
    return value


def _whole(given: Located) -> int:
    if not isinstance(given.content, int) or isinstance(given.content, bool):
        raise given.expected("a whole number")
    return given.content
