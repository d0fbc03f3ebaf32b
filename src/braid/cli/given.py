"""Queries and statistics as people give them to a command."""

from __future__ import annotations

from pathlib import Path

from braid.errors import BraidError, FileError, reason_of
from braid.hosts.located import Located, read
from braid.model.statistics import Statistics

FIGURES = ("rates", "sizes", "populations", "selectivities", "lengths")


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
    fields = content.fields(*FIGURES, "sites")
    figures = {name: _figures(fields[name]) for name in FIGURES if name in fields}
    sites = {name: site.text() for name, site in fields["sites"].mapping().items()} if "sites" in fields else {}
    try:
        return Statistics(**figures, sites=sites)  # type: ignore[arg-type]
    except BraidError as error:
        raise content.wrong(str(error)) from error


def _figures(given: Located) -> dict[str, float]:
    return {name: value.figure() for name, value in given.mapping().items()}
