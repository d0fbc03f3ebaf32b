"""Random cases: queries of every shape, windows of every kind, and streams with difficult values and orders.

`random_case` makes a case from a seed and is fast, for sweeps. `cases` is a Hypothesis strategy, which finds small
counterexamples. Both use the same generator, with different `Choices`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from braid.model.fixed_join import JoinKind, lags
from braid.model.window import FOREVER, Now, Range, Rows, Unbounded, Window
from braid.testing.case import Case
from braid.testing.choices import Choices, Draw, DrawnChoices, SeededChoices
from braid.testing.conditions import (
    KEYS,
    SHAPES,
    Condition,
    is_tied_by_equality,
    make_conditions,
    make_later_conditions,
)
from braid.testing.streams import TICK, Contents, Layout, make_layout, make_rows
from braid.testing.values import FAMILIES, LARGEST_DOMAIN

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Generated = TypeVar("Generated")

ALIASES = "abcdef"
FIXED_JOINS = {
    "LEFT": JoinKind.LEFT,
    "LEFT OUTER": JoinKind.LEFT,
    "RIGHT": JoinKind.RIGHT,
    "RIGHT OUTER": JoinKind.RIGHT,
    "FULL": JoinKind.FULL,
    "FULL OUTER": JoinKind.FULL,
    "LEFT SEMI": JoinKind.SEMI,
    "SEMI": JoinKind.SEMI,
    "LEFT ANTI": JoinKind.ANTI,
    "ANTI": JoinKind.ANTI,
    "": JoinKind.INNER,
    "INNER": JoinKind.INNER,
    ",": JoinKind.INNER,
}
"""The joins that may follow the inner joins, as they are written. An inner join is never the first of them."""
ROWS_WHEN_TIED = {1: 40, 2: 30, 3: 24, 4: 18, 5: 13, 6: 10}
ROWS_WHEN_FREE = {1: 40, 2: 25, 3: 12, 4: 7, 5: 5, 6: 4}
"""The most rows of a stream, by number of sources; fewer where no equality limits the combinations."""


def random_case(seed: int) -> Case:
    """A random case, the same for the same seed."""
    return make_case(SeededChoices(seed))


def random_existence(seed: int) -> Case:
    """A random case whose query has EXISTS or IN, with or without NOT, the same for the same seed."""
    return make_case(SeededChoices(seed), tests=True)


def random_fixed_joins(seed: int) -> Case:
    """A random case whose query has outer, semi or anti joins, the same for the same seed."""
    choices = SeededChoices(seed)
    return make_case(choices, joins=True, tests=choices.once_in(5))


def cases(most_rows: int = 12) -> SearchStrategy[Case]:
    """Cases whose streams have at most `most_rows` rows each."""
    return _strategy(lambda choices: make_case(choices, most_rows))


def windows() -> SearchStrategy[Window]:
    """Windows of every kind."""
    return _strategy(make_window)


def layouts() -> SearchStrategy[Layout]:
    """Layouts of streams: their schemas, and how their rows are made."""
    return _strategy(lambda choices: make_layout(choices, "s1", make_contents(choices, 2)))


def join_graphs(count: int) -> SearchStrategy[list[Condition]]:
    """Join conditions in every shape between `count` sources called a, b, c .."""
    return _strategy(lambda choices: _make_graph(choices, count))


def _make_graph(choices: Choices, count: int) -> list[Condition]:
    families = make_contents(choices, count).family_names
    shape = choices.pick(SHAPES)
    return make_conditions(choices, shape, count, families, lambda position, name: f"{ALIASES[position]}.{name}")


def _strategy(make: Callable[[Choices], Generated]) -> SearchStrategy[Generated]:
    from hypothesis import strategies

    @strategies.composite
    def drawn(draw: Draw) -> Generated:
        return make(DrawnChoices(draw))

    return drawn()


def make_case(choices: Choices, most_rows: int = 40, *, tests: bool = False, joins: bool = False) -> Case:
    """A random case; with `tests`, its query has existence tests, with `joins`, outer, semi or anti joins."""
    sources = _make_sources(choices, most=3 if joins else len(ALIASES), counting=not joins)
    fixed = _make_fixed_joins(choices, sources) if joins else []
    tested = _make_tested(choices, sources) if tests else []
    contents = make_contents(choices, len(sources))
    stream_names = dict.fromkeys(source.stream for source in [*sources, *(join.source for join in fixed), *tested])
    layouts = {name: make_layout(choices, name, contents) for name in stream_names}
    shape = choices.pick(SHAPES)
    speller = _Speller(choices, sources, layouts)
    conditions = make_conditions(choices, shape, len(sources), contents.family_names, speller.column)
    tied = is_tied_by_equality(len(sources), conditions)
    most = min(most_rows, (ROWS_WHEN_TIED if tied else ROWS_WHEN_FREE)[len(sources) + len(fixed)])
    if fixed:
        text, sources = _with_fixed_joins(choices, speller, conditions, fixed, contents)
    else:
        text = speller.query(conditions)
    return Case(
        text=_with_conditions(text, [_make_test(choices, sources, source, layouts, contents) for source in tested]),
        streams={name: make_rows(choices, layout, contents, most) for name, layout in layouts.items()},
        time={name: layout.time for name, layout in layouts.items()},
        lateness={name: layout.lateness for name, layout in layouts.items()},
        plan=_make_plan(choices, speller.aliases),
        batch_rows=choices.pick((None, 1, 2, 3, 5, 8, 1000)),
    )


def make_contents(choices: Choices, count: int) -> Contents:
    """What the streams of a case have in common. With many sources, the keys have fewer values, so that joins match."""
    return Contents(
        families={key: choices.pick(FAMILIES) for key in KEYS},
        domain=choices.pick((3, 2, 4, LARGEST_DOMAIN) if count < 4 else (3, 2)),
        skewed=choices.once_in(3),
        mixed_types=choices.once_in(2),
        zone="UTC" if choices.once_in(8) else None,
        origin=choices.pick((0, -20, 1_600_000_000)),
    )


def make_window(choices: Choices, *, counting: bool = True) -> Window:
    """A window of any kind; unless `counting`, one that does not count rows."""
    kind = choices.integer(0, 17)
    if 9 <= kind <= 14 and not counting:
        kind -= 9
    if kind <= 5:
        return Range(choices.integer(1, 24) * TICK)
    if kind <= 8:
        return Range(choices.integer(2, 40) * TICK // 2, choices.integer(1, 6) * TICK // choices.pick((1, 2)))
    if kind <= 11:
        return Rows(choices.integer(1, 10))
    if kind <= 14:
        return Rows(choices.integer(1, 5), tuple(choices.shuffle(KEYS)[: choices.pick((1, 1, 2))]))
    return Unbounded() if kind <= 16 else Now()


@dataclass(frozen=True)
class _Source:
    """A stream in FROM."""

    alias: str
    stream: str
    window: Window


@dataclass(frozen=True)
class _FixedJoin:
    """A join in FROM that follows the inner joins; `mirrored`, its stream is written before all others."""

    word: str
    source: _Source
    mirrored: bool

    @property
    def kind(self) -> JoinKind:
        return FIXED_JOINS[self.word]

    def written(self, text: str, table: str, on: str) -> str:
        """The join of this text, which is all before it, with a table."""
        if self.word == ",":
            return f"{table}, {text}" if self.mirrored else f"{text}, {table}"
        kind = self.kind.mirrored if self.mirrored else None
        if kind is not None:
            return f"{table} {kind.value} ({text}) ON {on}"
        return f"{text} {self.word} JOIN {table} ON {on}"


def _make_sources(choices: Choices, most: int = len(ALIASES), *, counting: bool = True) -> list[_Source]:
    """The streams of the inner joins; unless `counting`, no window counts rows."""
    sources: list[_Source] = []
    for position in range(min(most, choices.pick((2, 3, 1, 2, 3, 4, 4, 5, len(ALIASES))))):
        again = bool(sources) and choices.once_in(6)
        stream = choices.pick(sources).stream if again else f"s{position + 1}"
        alias = stream if not again and choices.once_in(4) else ALIASES[position]
        sources.append(_Source(alias, stream, make_window(choices, counting=counting)))
    return sources


def _make_fixed_joins(choices: Choices, sources: Sequence[_Source]) -> list[_FixedJoin]:
    """One to three joins; sometimes with a stream that is joined before."""
    joins: list[_FixedJoin] = []
    count = choices.pick((1, 1, 2, 2, 3))
    for position in range(count):
        known = [(join.kind, join.source.window) for join in joins]
        *_, lag = lags([source.window for source in sources], [*known, (JoinKind.LEFT, Now())])
        words = [
            word
            for word, kind in FIXED_JOINS.items()
            if not (position == 0 and kind is JoinKind.INNER) and not (kind.preserves_right and lag == FOREVER)
        ]
        if any(join.word == "," for join in joins):
            words = [","]  # Any other join would join what stands after the comma.
        word = choices.pick(words)
        kind = FIXED_JOINS[word]
        may_count = position == 0 and (not kind.shows_right or (kind is JoinKind.LEFT and count == 1))
        stream = choices.pick(sources).stream if choices.once_in(5) else f"f{position}"
        source = _Source(f"y{position}", stream, make_window(choices, counting=may_count))
        # Of two streams, the first is the one that a plan is about.
        may_mirror = kind.mirrored is not None and position + len(sources) > 1
        joins.append(_FixedJoin(word, source, mirrored=may_mirror and choices.once_in(4)))
    return joins


def _with_fixed_joins(
    choices: Choices,
    inner: _Speller,
    conditions: Sequence[Condition],
    joins: Sequence[_FixedJoin],
    contents: Contents,
) -> tuple[str, list[_Source]]:
    """The text of a query with these joins, and the streams that its SELECT and WHERE can read."""
    text, visible = inner.joined(conditions), list(inner.sources)
    where: list[str] = []
    for join in joins:
        speller = _Speller(choices, [*visible, join.source], inner.layouts)
        on = make_later_conditions(choices, len(visible), contents.family_names, speller.column)
        written = " AND ".join(condition.text for condition in on)
        text = join.written(text, speller.table(join.source), written)
        if join.word == ",":
            where.append(written)
        if join.kind.shows_right:
            visible.insert(0 if join.mirrored else len(visible), join.source)
    speller = _Speller(choices, visible, inner.layouts)
    more = make_conditions(choices, "cross", len(visible), contents.family_names, speller.column)
    text = f"SELECT {speller.selected()} FROM {text}"
    return _with_conditions(text, [*where, *(condition.text for condition in more)]), visible


def _make_tested(choices: Choices, sources: Sequence[_Source]) -> list[_Source]:
    """One or two streams to test; sometimes one that is joined as well."""
    return [
        _Source(
            alias=f"x{position}",
            stream=choices.pick(sources).stream if choices.once_in(4) else f"e{position}",
            window=make_window(choices),
        )
        for position in range(choices.pick((1, 1, 2)))
    ]


def _make_test(
    choices: Choices,
    sources: Sequence[_Source],
    tested: _Source,
    layouts: Mapping[str, Layout],
    contents: Contents,
) -> str:
    speller = _Speller(choices, [*sources, tested], layouts)
    conditions = make_later_conditions(choices, len(sources), contents.family_names, speller.column)
    negation = "" if choices.once_in(3) else "NOT "
    if choices.once_in(3):
        keys = choices.shuffle(KEYS)[: choices.pick((1, 1, 2))]
        value = ", ".join(f"{choices.pick(sources).alias}.{key}" for key in keys)
        member = ", ".join(f"{tested.alias}.{key}" for key in keys)
        value = f"({value})" if len(keys) > 1 else value
        where = f" WHERE {conditions[0].text}" if choices.once_in(3) else ""
        return f"{value} {negation}IN (SELECT {member} FROM {speller.table(tested)}{where})"
    where = " AND ".join(condition.text for condition in conditions)
    selected = choices.pick(("*", "1", f"{tested.alias}.v"))
    return f"{negation}EXISTS (SELECT {selected} FROM {speller.table(tested)}{f' WHERE {where}' if where else ''})"


def _with_conditions(text: str, conditions: Sequence[str]) -> str:
    if not conditions:
        return text
    return f"{text} {'AND' if ' WHERE ' in text else 'WHERE'} {' AND '.join(conditions)}"


def _make_plan(choices: Choices, aliases: Sequence[str]) -> dict[str, list[str]] | None:
    if choices.once_in(3):
        return None
    return {head: choices.shuffle([other for other in aliases if other != head]) for head in aliases}


class _Speller:
    """Writes the query, in one of the many ways to write the same query."""

    def __init__(self, choices: Choices, sources: Sequence[_Source], layouts: Mapping[str, Layout]) -> None:
        self._choices = choices
        self.sources = sources
        self.layouts = layouts

    @property
    def aliases(self) -> list[str]:
        return [source.alias for source in self.sources]

    def column(self, position: int, name: str) -> str:
        """A column of a source, with its alias unless the alias may be left out."""
        source = self.sources[position]
        layout = self.layouts[source.stream]
        name = {"time": layout.time, "id": layout.identity}.get(name, name)
        streams = [other.stream for other in self.sources]
        unambiguous = len(streams) == 1 or (name == layout.identity and streams.count(source.stream) == 1)
        if unambiguous and self._choices.once_in(2):
            return name
        alias = source.alias.upper() if self._choices.once_in(20) else source.alias
        return f"{alias}.{name.upper() if self._choices.once_in(20) else name}"

    def query(self, conditions: Sequence[Condition]) -> str:
        joined = len(self.sources) > 1 and self._choices.once_in(3)
        text = f"SELECT {self.selected()} FROM {self.joined(conditions) if joined else self._listed()}"
        # Conditions on one source are always in WHERE; JOIN .. ON has only those between sources.
        remaining = [condition.text for condition in conditions if not joined or len(condition.sources) < 2]
        return f"{text} WHERE {' AND '.join(remaining)}" if remaining else text

    def _listed(self) -> str:
        return ", ".join(map(self.table, self.sources))

    def joined(self, conditions: Sequence[Condition]) -> str:
        text = self.table(self.sources[0])
        for position in range(1, len(self.sources)):
            on = [
                condition.text
                for condition in conditions
                if len(condition.sources) > 1 and max(condition.sources) == position
            ]
            table = self.table(self.sources[position])
            text += f" JOIN {table} ON {' AND '.join(on)}" if on else f" CROSS JOIN {table}"
        return text

    def table(self, source: _Source) -> str:
        window = str(source.window).lower() if self._choices.once_in(4) else str(source.window)
        if source.alias == source.stream:
            return f"{source.stream} {window}"
        keyword = "" if self._choices.once_in(2) else "AS "
        if self._choices.once_in(3):
            return f"{source.stream} {keyword}{source.alias} {window}"
        return f"{source.stream} {window} {keyword}{source.alias}"

    def selected(self) -> str:
        kind = self._choices.integer(0, 4)
        numbers = range(len(self.sources))
        identities = [self.column(position, "id") for position in numbers]
        if kind == 1:
            return "*"
        if kind == 2:
            return ", ".join([f"{self.sources[-1].alias}.*", *identities])
        if kind == 3:
            return ", ".join([*identities, *(self.column(position, "p") for position in numbers)])
        if kind == 4:
            return ", ".join([*identities, self._computed()])
        return ", ".join(identities)

    def _computed(self) -> str:
        last = len(self.sources) - 1
        first_k, first_v, first_t = (self.column(0, name) for name in "kvt")
        last_k, last_v, last_t = (self.column(last, name) for name in "kvt")
        return (
            f"{first_k}, {last_k} AS other, {first_v} + {last_v} AS total, "
            f"{first_v} / {last_v} AS ratio, concat({first_t}, '-', {last_t}) AS words"
        )
