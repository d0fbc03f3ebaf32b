"""The last instructions of every program: from joined rows to the results of the query."""

from __future__ import annotations

from collections.abc import Iterable

from braid.model.program import Emit, Exclude, Instruction, Project
from braid.model.query import Output, Query

RESULT = "result"
CANDIDATES = "candidates"
"""Results before the exclusions of the query are applied."""


def finish(query: Query, stream: str) -> Iterable[Instruction]:
    """The instructions that turn the joined rows of a stream into results of a query."""
    result = f"{RESULT} of {stream}"
    if not query.exclusions:
        return Project(stream, result, query.outputs), Emit(result, query.text)
    compared = (Output(str(column), column) for column in query.compared)
    return (
        Project(stream, f"{CANDIDATES} of {stream}", (*query.outputs, *compared)),
        Exclude(f"{CANDIDATES} of {stream}", result, query.exclusions),
        Emit(result, query.text),
    )
