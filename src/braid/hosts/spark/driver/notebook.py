"""How queries and their plan changes look in a notebook."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from braid.adapt.history import RecordedChange
from braid.model.html import heading, table, text_block, written_plan
from braid.model.plan import Plan
from braid.runtime.sites.traffic import Traffic

PLANS = ("before", "after")
"""The fields of a change that are plans."""

SHARES = ("predicted",)
"""The fields of a change that are shares."""

SHOWN_FIGURES = ("batch", "rows_in", "rows_joined", "rows_out", "waiting", "state_rows", "state_bytes", "seconds")
"""The figures of `progress()` that a notebook shows."""


class RecordedChanges(tuple[RecordedChange, ...]):
    """Plan changes in order; a notebook shows them as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return "<div>no plan change yet</div>"
        names = [field.name for field in fields(self[0])]
        return table(names, [[_shown(name, getattr(change, name)) for name in names] for change in self])


def query_html(name: str, text: str, plan: Plan, progress: dict[str, Any] | None) -> str:
    """A query: its text, its plan and the figures of its last micro-batch."""
    parts = [heading(f"query {name}"), text_block(text.strip()), plan._repr_html_()]
    if progress is None:
        parts.append("<div>no micro-batch has reported yet</div>")
    else:
        parts.append(table(["figure", "last micro-batch", "in all"], _figures(progress)))
    return "".join(parts)


def deployed_query_html(
    name: str, text: str, explanation: str, traffic: Mapping[str, Traffic], loads: Mapping[str, float]
) -> str:
    """A query over a network: its text, its plan, what has crossed each link, and the load of each site."""
    links = [[link, crossed.bytes, crossed.rows, crossed.batches, crossed.planned] for link, crossed in traffic.items()]
    parts = [heading(f"query {name}"), text_block(text.strip()), text_block(explanation)]
    parts.append(table(["link", "bytes", "rows", "batches", "planned bytes a second"], links))
    if loads:
        rows: list[list[object]] = [[site, f"{load:.2g}"] for site, load in loads.items()]
        parts.append(table(["site", "seconds of work a second of event time"], rows))
    return "".join(parts)


def network_html(sites: Mapping[str, Collection[str]], queries: Mapping[str, str]) -> str:
    """The sites that run here with the streams that start there, and the queries with the sites of their results."""
    parts = [heading("sites"), table(["site", "streams"], [[site, ", ".join(names)] for site, names in sites.items()])]
    parts += [heading("queries"), table(["name", "results at"], [[name, sink] for name, sink in queries.items()])]
    return "".join(parts)


def _figures(progress: dict[str, Any]) -> list[list[object]]:
    return [[name, progress[name], progress["total"].get(name)] for name in SHOWN_FIGURES]


def _shown(name: str, value: object) -> object:
    if name in PLANS:
        return written_plan(value)
    if name == "time" and isinstance(value, int | float):
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value:.0%}" if name in SHARES else value
    return ", ".join(value) if isinstance(value, tuple) else value
