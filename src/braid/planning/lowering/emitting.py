"""The last instructions of every program: from joined rows to the results of the query."""

from __future__ import annotations

from collections.abc import Iterable

from braid.model.program import Conclude, Emit, Instruction, Project
from braid.model.query import Query

RESULT = "result"


def finish(query: Query, stream: str) -> Iterable[Instruction]:
    """The instructions that turn the joined rows of a stream into results of a query."""
    result = f"{RESULT} of {stream}"
    if query.ends_at_joins:
        return Project(stream, result, query.outputs), Emit(result, query.text)
    return (
        Project(stream, f"rows of {stream}", query.projected),
        Conclude(f"rows of {stream}", result),
        Emit(result, query.text),
    )
