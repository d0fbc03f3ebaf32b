"""From the program of one site to its fragments.

Joins of a program that belong together become one fragment. Joins of several heads that all visit the same inputs are
one symmetric join, however deep the tree was that they came from: inside a site the order is free. A chain of joins
that only its own head follows is asymmetric.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from braid.errors import PlanError
from braid.model.program import ALWAYS, Filter, Guard, Join, Project, Reuse, Ship, SiteProgram, Union
from braid.model.window import FOREVER
from braid.runtime.sites.deployed_streams import DeployedStreams
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.wire import Reading, WireStream


@dataclass(frozen=True)
class _Chain:
    """Joins that new rows of one head go through, one after the other."""

    head: str
    visited: tuple[str, ...]
    end: str
    guard: Guard

    @property
    def inputs(self) -> frozenset[str]:
        return frozenset([self.head, *self.visited])


class SiteCompiler:
    """Compiles the program of one site to the work of the site.

    Whole base streams are not shipped: sites read them from the channels of their intakes. `offered` are joins that
    this site makes for later queries too, each as the set of its streams. If `shared`, these are published even if this
    query needs them nowhere else, with every column that the site has of them. Rows of base streams that have ended at
    `alive_at` are left out. The streams `filtered` here come without a filter from another deployment.
    """

    def __init__(
        self,
        program: SiteProgram,
        streams: DeployedStreams,
        since: int = -FOREVER,
        offered: Iterable[frozenset[str]] = (),
        *,
        shared: bool = False,
        alive_at: int = -FOREVER,
        filtered: Collection[str] = (),
    ) -> None:
        self._query = program.query
        self._filtered = frozenset(filtered)
        self._streams = streams
        self._since = since
        self._offered = frozenset(offered)
        self._shared = shared
        self._alive_at = alive_at
        self._filters = _of_kind(program, Filter)
        self.reused = {step.result: step for step in _of_kind(program, Reuse)}
        self._joins = _of_kind(program, Join)
        self._projected = {step.stream for step in _of_kind(program, Project)}
        self.ships = [step for step in _of_kind(program, Ship) if not self._is_whole_base(step)]
        self._shipped = {step.stream for step in self.ships}
        self._merged: dict[str, tuple[str, ...]] = {}
        """Streams that arrive in several parts, with the streams that are their parts."""
        self.fragments = self._compile(_of_kind(program, Union))
        self.read_as = self._names_read()
        """What the streams that are read here are called by those who read them."""

    def _is_whole_base(self, step: Ship) -> bool:
        return step.guard == ALWAYS and step.stream in self._query.aliases and step.stream not in self._filtered

    def _compile(self, unions: Sequence[Union]) -> dict[str, Fragment]:
        chains = list(self._chains())
        fragments: dict[str, Fragment] = {}
        for union in unions:
            made_here = [chain for chain in chains if chain.end in union.streams]
            if made_here and self._is_symmetric(made_here):
                fragments[union.result] = self._symmetric(made_here, union.result)
                chains = [chain for chain in chains if chain not in made_here]
            else:
                self._merge(union)
        if chains and self._is_symmetric(chains) and all(chain.end in self._projected for chain in chains):
            # All heads go all the way here, and nothing of them is shipped: a join like that of a single site.
            fragments[chains[0].end] = self._symmetric(chains, chains[0].end)
            self._projected -= {chain.end for chain in chains[1:]}
        else:
            fragments |= {chain.end: self._asymmetric(chain) for chain in chains}
        finished = self._finished(self._fused(fragments))
        return {name: self._widened(name, self._entered(fragment)) for name, fragment in finished.items()}

    def _merge(self, union: Union) -> None:
        result = self._streams(union.result)
        for name in union.streams:
            if self._streams(name).schema != result.schema:
                raise PlanError(f"'{name}' and '{union.result}' have other columns, so that they cannot be one stream")
        self._merged[union.result] = union.streams

    def _finished(self, fragments: dict[str, Fragment]) -> dict[str, Fragment]:
        """All fragments of the site: with those that pass on what is made elsewhere, and those that give results."""
        complete = {}
        for name, fragment in fragments.items():
            complete[f"results of {name}" if fragment.output is None else name] = fragment
        finals = {name for name, fragment in fragments.items() if fragment.output is None}
        for name in sorted(self._projected - finals):
            # Rows that were joined elsewhere; or a query of one stream, whose window may still leave rows out.
            complete[f"results of {name}"] = Fragment(self._query, (self._streams(name),), None)
        for name in sorted(self._shipped - set(complete)):
            stream = self._streams(name)
            complete[name] = Fragment(self._query, (stream,), stream)
        return complete

    def _entered(self, fragment: Fragment) -> Fragment:
        """The fragment, with what it must know of the streams that enter the query here."""
        return replace(fragment, inputs=tuple(map(self._entering, fragment.inputs)))

    def _entering(self, stream: WireStream) -> WireStream:
        if stream.name in self.reused:
            remaining = tuple(step.predicate for step in self._filters if step.stream == stream.name)
            return replace(stream, reused=Reading(self.reused[stream.name].names, remaining), since=self._since)
        if stream.name in self._filtered:
            selections = self._query.graph.selections_of(stream.name)
            return replace(stream, reused=Reading((), selections), alive_at=self._alive_at)
        return replace(stream, alive_at=self._alive_at) if stream.is_base else stream

    def is_offered(self, name: str) -> bool:
        """Whether a stream is a join that later queries may use. Rows of windows that count rows cannot travel."""
        parts = self._streams(name).parts
        travels = all(self._query.source(alias).window.lifetime is not None for alias in parts)
        return travels and frozenset(parts) in self._offered

    def _widened(self, name: str, fragment: Fragment) -> Fragment:
        """The fragment of a shared join carries every column that the site has of it: other queries may need it."""
        output = fragment.output
        if output is None or not self._shared or not self.is_offered(name):
            return fragment
        columns = tuple(column for stream in fragment.inputs for column in stream.columns)
        return replace(fragment, output=replace(output, kept=columns))

    def fields_needed(self, name: str) -> tuple[str, ...]:
        """The columns of a stream that this query needs where it reads it, by their names on the wire."""
        return tuple(self._streams(name).schema.names)

    def has_more_columns(self, name: str) -> bool:
        """Whether the site makes a stream with more columns than this query needs."""
        output = self.fragments[name].output
        return output is not None and tuple(output.schema.names) != self.fields_needed(output.name)

    def kept(self, name: str) -> int:
        """How long the channel of a stream keeps its rows for readers that come later, in microseconds of event time.

        A new plan of the query needs rows as long as they live, and other queries, if shared, as long as the longest
        window of a part. 0 if rows never end, or not by time alone: they are kept for nobody.
        """
        stream = self._streams(name)
        lifetimes = [self._query.source(alias).window.lifetime for alias in stream.parts]
        ending = [lifetime for lifetime in lifetimes if lifetime is not None and lifetime < FOREVER]
        if not ending or None in lifetimes:
            return 0
        if self._shared and self.is_offered(name):
            return max(ending)
        # On its way through a probe sequence, a row lives at the moment of its head.
        return min(ending) if stream.is_base or stream.started == stream.parts else 1

    def _names_read(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for fragment in self.fragments.values():
            for name in fragment.reads:
                names |= dict.fromkeys(self._merged.get(name, (name,)), name)
        return names

    def _chains(self) -> Iterator[_Chain]:
        by_probe: dict[str, list[Join]] = defaultdict(list)
        for join in self._joins:
            by_probe[join.probe].append(join)
        results = {join.result for join in self._joins}
        for first in self._joins:
            if first.probe in results:
                continue
            visited, end = [first.stream], first.result
            while by_probe[end]:
                (following,) = by_probe[end]
                visited.append(following.stream)
                end = following.result
            yield _Chain(first.probe, tuple(visited), end, first.guard)

    def _is_symmetric(self, chains: Sequence[_Chain]) -> bool:
        """Whether rows of every input that the chains visit are the head of one of them."""
        inputs = {chain.inputs for chain in chains}
        return len(inputs) == 1 and {chain.head for chain in chains} == next(iter(inputs))

    def _symmetric(self, chains: Sequence[_Chain], result: str) -> Fragment:
        inputs = self._in_query_order([self._streams(chain.head) for chain in chains])
        guards = {chain.head: chain.guard for chain in chains if chain.guard != ALWAYS}
        return Fragment(self._query, inputs, self._output(result), guards=guards)

    def _asymmetric(self, chain: _Chain) -> Fragment:
        inputs = tuple(map(self._streams, (chain.head, *chain.visited)))
        guards = {chain.head: chain.guard} if chain.guard != ALWAYS else {}
        return Fragment(self._query, inputs, self._output(chain.end), chain.head, guards)

    def _output(self, name: str) -> WireStream | None:
        published = name in self._shipped or (self._shared and self.is_offered(name))
        return None if name in self._projected and not published else self._streams(name)

    def _fused(self, fragments: dict[str, Fragment]) -> dict[str, Fragment]:
        """One join instead of two, where the result of one goes nowhere but into the other: its order is free then."""
        parts = {part for members in self._merged.values() for part in members}
        for name in list(fragments):
            fragment = fragments[name]
            readers = [other for other, reader in fragments.items() if name in reader.reads]
            leaves = name in self._shipped | self._projected | parts
            if not _is_free(fragment) or leaves or len(readers) != 1:
                continue
            reader = fragments[readers[0]]
            if _is_free(reader):
                inputs = (*(stream for stream in reader.inputs if stream.name != name), *fragment.inputs)
                fragments[readers[0]] = replace(reader, inputs=self._in_query_order(inputs))
                del fragments[name]
        return fragments

    def _in_query_order(self, inputs: Sequence[WireStream]) -> tuple[WireStream, ...]:
        order = self._query.aliases
        return tuple(sorted(inputs, key=lambda stream: min(map(order.index, stream.parts))))


def _is_free(fragment: Fragment) -> bool:
    return fragment.head is None and not fragment.guards


Kind = TypeVar("Kind")


def _of_kind(program: SiteProgram, kind: type[Kind]) -> list[Kind]:
    return [step for step in program.instructions if isinstance(step, kind)]
