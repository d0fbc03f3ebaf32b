"""The nodes that Braid adds to sqlglot's tree, and the notes that its parser leaves in the `meta` of any node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from braid.errors import Span
from braid.model.window import Window
from braid.model.window_function import WindowFunction

SPAN = "span"
"""Key in a node's meta: the `Span` of the text that the node was read from."""

COMMA = "comma"
"""Key in the meta of a join: true if it was written as a comma."""

CALL = "call"
"""Key in a node's meta: the `WrittenCall` that the node was made from."""


VALUE = "value"
"""Key in the meta of brackets: true if they hold what a column of a SELECT in FROM stands for, at its place."""


class WrittenCall(NamedTuple):
    """A function call as written: its name, its number of arguments, and whether the first one is a quoted text."""

    name: str
    arguments: int
    begins_with_text: bool


class WindowNode(exp.Expression):
    """A window as a node of the tree."""

    arg_types = {"this": True}  # noqa: RUF012

    @property
    def window(self) -> Window:
        return self.args["this"]  # type: ignore[no-any-return]


class FunctionNode(exp.Expression):
    """A window function in FROM, as a node of the tree: `TUMBLE(TABLE s, DESCRIPTOR(ts), ..)`."""

    arg_types = {"this": True}  # noqa: RUF012

    @property
    def function(self) -> WindowFunction:
        return self.args["this"]  # type: ignore[no-any-return]


class StreamTable(exp.Table):
    """A stream in FROM, or what takes the place of one.

    Its argument `window` is a `WindowNode`, or None if no window was written; `select` is a SELECT in brackets instead
    of a name; `function` is a `FunctionNode`, a window function around the name.
    """

    arg_types = {**exp.Table.arg_types, "window": False, "select": False, "function": False}  # noqa: RUF012

    @property
    def window(self) -> Window | None:
        node = self.args.get("window")
        return node.window if isinstance(node, WindowNode) else None

    @property
    def function(self) -> WindowFunction | None:
        node = self.args.get("function")
        return node.function if isinstance(node, FunctionNode) else None


def span_of(node: exp.Expr) -> Span | None:
    """The span of a node in the text: as the parser noted it, else from its first to its last token."""
    noted = node.meta.get(SPAN)
    if isinstance(noted, Span):
        return noted
    spans = [
        Span(child.meta["start"], child.meta["end"] + 1) for child in node.walk() if child.meta.get("start") is not None
    ]
    return Span(min(span.start for span in spans), max(span.end for span in spans)) if spans else None


def conjuncts_of(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of the ANDs of a condition."""
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        for operand in condition.flatten(unnest=False):
            yield from conjuncts_of(operand)
    else:
        yield condition
