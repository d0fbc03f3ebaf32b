"""The operators of a dataflow: what is done with the rows of a stream, base or derived."""

from __future__ import annotations

from dataclasses import dataclass

from braid.engine.join.combinations import Base
from braid.engine.join.matcher import Matcher
from braid.engine.output.emitter import Emitter
from braid.engine.window.join_state import JoinState


@dataclass(frozen=True, slots=True)
class Completion:
    """How to find combinations that are missing from a join state: take older rows of the stream `base` along `path`.

    `finder` finds the rows of that stream that a probing combination needs; None if it needs all of them.
    """

    base: Base
    path: tuple[JoinOperator, ...]
    finder: Matcher | None = None


@dataclass(frozen=True, slots=True)
class JoinOperator:
    """Probe a window or a join state; the matches belong to the stream `result`.

    The matchers of `prefilter` drop rows early that have no candidate in a later window of the sequence. If a join
    state is probed, `join_state` is that one, and `completion` finds what may be missing from it.
    """

    matcher: Matcher
    result: str
    prefilter: tuple[Matcher, ...] = ()
    join_state: JoinState | None = None
    completion: Completion | None = None


@dataclass(frozen=True, slots=True)
class PassOperator:
    """Rows of this stream also belong to the stream `result`; if that has a join state, they are added to it."""

    result: str
    join_state: JoinState | None = None


@dataclass(frozen=True, slots=True)
class EmitOperator:
    """Rows of this stream are results."""

    emitter: Emitter


Operator = JoinOperator | PassOperator | EmitOperator
