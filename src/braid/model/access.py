"""Access paths: by which index a probe finds the rows of a window that may match.

Where two streams are joined by an equality and by a band, there are three: the index of the key, which finds all rows
of the key; the index of the band, which finds all rows near by; and an index of both, which finds the rows of the key
that are near by. The last one looks into several places, so for keys of few rows the first one is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from braid.errors import PlanError
from braid.model.graph import JoinGraph

KEY = "key"
BAND = "band"
KEY_AND_BAND = "key and band"
SCAN = "scan"
"""The access paths. A scan, which compares every row of the window, is only used where there is no index."""

CELLS = 3
"""The most places that a probe of the index of a band looks into; a probe of a key index looks into one."""

PATHS = (KEY, BAND, KEY_AND_BAND, SCAN)

WrittenStep: TypeAlias = "str | Mapping[str, str]"
"""A step of a probe sequence as users write it: a stream, or a stream with the access path: `{"b": "key"}`."""

Paths: TypeAlias = "Mapping[tuple[str, str], str]"
"""The access paths of a plan that are not the default, by head and probed stream."""


def possible_paths(graph: JoinGraph, bound: Collection[str], probed: Collection[str]) -> tuple[str, ...]:
    """The access paths of combinations of the streams `bound` to `probed`; the first is the default.

    The default is the one that bounds the work whatever the keys are: a hot key cannot make it slow.
    """
    keyed = bool(graph.between(frozenset(bound), frozenset(probed))[0])
    banded = graph.band_between(bound, probed) is not None
    if keyed and banded:
        return KEY_AND_BAND, KEY, BAND
    if keyed or banded:
        return (KEY if keyed else BAND,)
    return (SCAN,)


def check_path(graph: JoinGraph, bound: Sequence[str], stream: str, path: str) -> None:
    """Refuse an access path that is not possible with a `PlanError`."""
    possible = possible_paths(graph, bound, [stream])
    if path not in possible:
        raise PlanError(
            f"new rows of '{bound[0]}' reach '{stream}' by {' or by '.join(possible)}, not by {path!r}; "
            "write one of these, or only the name of the stream"
        )


def read_step(head: str, step: object) -> tuple[str, str | None]:
    """The stream of a written step, and its access path if it has one."""
    if isinstance(step, str):
        return step, None
    if isinstance(step, Mapping) and len(step) == 1:
        ((stream, path),) = step.items()
        if isinstance(stream, str) and isinstance(path, str):
            return stream, path
    raise PlanError(
        f"a step of head '{head}' is a stream, or a stream with its access path such as {{'b': 'key'}}, not {step!r}"
    )


def step_text(step: WrittenStep) -> str:
    """A written step as people read it."""
    return step if isinstance(step, str) else ", ".join(f"{stream} (by {path})" for stream, path in step.items())
