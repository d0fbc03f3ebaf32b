"""Statistics from a YAML file, as `--statistics` names it."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from braid.errors import BraidError
from braid.files.located_yaml import Located, read_yaml
from braid.model.statistics import Statistics

NUMBERS = ("rates", "sizes", "populations", "selectivities", "lengths")
"""The fields of `Statistics` that map names to numbers."""

RANGE_ENDS = ("first", "last")


def statistics_of(file: Path | None) -> Statistics:
    """Statistics from a YAML file with the fields of `braid.Statistics`; empty statistics without a file."""
    if file is None:
        return Statistics()
    content = read_yaml(file)
    fields = content.fields(*NUMBERS, "sites", "histograms")
    numbers = {name: _numbers(fields[name]) for name in NUMBERS if name in fields}
    sites = {name: site.text() for name, site in fields["sites"].mapping().items()} if "sites" in fields else {}
    columns = fields["histograms"].mapping() if "histograms" in fields else {}
    histograms = {column: _histogram(entries) for column, entries in columns.items()}
    try:
        return Statistics(**numbers, sites=sites, histograms=histograms)  # type: ignore[arg-type]
    except BraidError as error:
        raise content.error(str(error)) from error


def _numbers(field: Located) -> dict[str, float]:
    return {name: value.number() for name, value in field.mapping().items()}


def _histogram(entries: Located) -> dict[Hashable, float]:
    """Rates by value, or by range of whole numbers: a list of `{value, rate}` and of `{first, last, rate}`."""
    if not isinstance(entries.content, list):
        raise entries.expected("a list of {value, rate}, or of {first, last, rate} for a range of whole numbers")
    rates: dict[Hashable, float] = {}
    for entry in entries.content:
        key: Hashable
        if "value" in entry.mapping():
            fields = entry.fields("rate", "value", required=("rate", "value"))
            key = _scalar(fields["value"])
        else:
            fields = entry.fields("rate", *RANGE_ENDS, required=("rate", *RANGE_ENDS))
            key = tuple(fields[end].integer() for end in RANGE_ENDS)
        if key in rates:
            raise entry.error(f"{entries.name} has {key!r} twice; add the rates up")
        rates[key] = fields["rate"].number()
    return rates


def _scalar(value: Located) -> Hashable:
    if isinstance(value.content, list | dict):
        raise value.expected("a single value")
    scalar: Hashable = value.content
    return scalar
