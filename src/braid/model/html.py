"""Plans and tables as HTML, for notebooks. Every text is escaped; there are no scripts and no style sheets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from braid.model.access import step_text
from braid.model.explain import conditions_at
from braid.model.numbers import readable
from braid.model.parts import are_parts
from braid.model.predicate import conjunction
from braid.model.query import Query
from braid.model.tree import JoinTree

BOX = "display:inline-block;border:1px solid #888;border-radius:4px;padding:1px 6px;margin:1px"
HEAD = f"{BOX};background:#1f77b422;font-weight:bold"
LEFT = "text-align:left;vertical-align:top"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a header; numbers are readable and aligned to the right."""
    head = "".join(f'<th style="{LEFT}">{escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text_block(text: str) -> str:
    """A text of several lines, as it is."""
    return f'<pre style="{LEFT}">{escape(text)}</pre>'


def heading(text: str) -> str:
    return f"<b>{escape(text)}</b>"


def drawn_plan(query: Query, sequences: Mapping[str, Sequence[str]], tree: JoinTree | None, keys: str = "") -> str:
    """A plan as boxes: for each head the streams that its new rows probe, in order, with the conditions below.

    `keys` names the keys that the plan is for, if it is not for all.
    """
    lines = [heading(keys)] if keys else []
    lines += [] if tree is None else [f"<div>join tree {escape(str(tree))}, with the results of each join kept</div>"]
    lines += [_drawn_sequence(query, head, sequence) for head, sequence in sequences.items()]
    return f"<div>{''.join(lines)}</div>"


def written_plan(written: object) -> str:
    """A plan as users write it, in one line of text."""
    if isinstance(written, Mapping):
        return "; ".join(
            f"{head}: {', '.join(map(step_text, sequence)) or 'nothing'}" for head, sequence in written.items()
        )
    if isinstance(written, list | tuple) and are_parts(written):
        return " | ".join(f"{keys}: {written_plan(plan)}" for keys, plan in written)
    if isinstance(written, list | tuple):
        return f"({' ⋈ '.join(map(written_plan, written))})"
    return str(written)


def _drawn_sequence(query: Query, head: str, sequence: Sequence[str]) -> str:
    boxes = [f'<span style="{HEAD}">{escape(head)}</span>']
    bound = [head]
    for stream in sequence:
        predicates = conditions_at(query, bound, stream)
        shown = escape(f"on {conjunction(predicates, 'and')}" if predicates else "every row")
        boxes.append(f'<span style="{BOX}">{escape(stream)}<br><small>{shown}</small></span>')
        bound.append(stream)
    return f"<div>{' &rarr; '.join(boxes)}</div>"


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td style="text-align:right">{readable(value)}</td>'
    return f'<td style="{LEFT}">{escape("" if value is None else str(value))}</td>'
