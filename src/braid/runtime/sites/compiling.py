"""From site programs to what runs at each site: sources, fragments, and what is shipped and emitted.

A program lists instructions; joins among them that belong together become one fragment. Joins of several heads that all
visit the same inputs are one symmetric join, however deep the tree was that they came from: inside a site the order is
free. A chain of joins that only its own head follows is asymmetric.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import TypeVar

from braid.errors import PlanError
from braid.model.predicate import Predicate
from braid.model.program import ALWAYS, Filter, Guard, Join, Narrow, Project, Reuse, Ship, SiteProgram, Union
from braid.model.query import Query
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.wire import WireStream


@dataclass(frozen=True)
class Shipment:
    """Rows of a stream that go to another site, on a channel of their own."""

    channel: str
    stream: WireStream
    site: str
    guard: Guard = ALWAYS


@dataclass(frozen=True)
class Merging:
    """Several streams as one."""

    result: str
    reads: tuple[str, ...]


Node = Fragment | Merging


@dataclass(frozen=True)
class SiteWork:
    """What one site does.

    `sources` are the streams that start here, by alias, with the conditions on each alone; `arriving` are the streams
    that others ship here, by channel, where several channels may carry parts of one stream. `nodes` make streams, by
    name, in an order in which each finds its inputs made. The rows of `emitted` streams become results; fragments
    without an output give results themselves.
    """

    query: Query
    sources: Mapping[str, tuple[Predicate, ...]]
    arriving: Mapping[str, WireStream]
    nodes: tuple[tuple[str, Node], ...]
    shipments: tuple[Shipment, ...]
    emitted: tuple[WireStream, ...]


def compile_programs(programs: Mapping[str, SiteProgram], origins: Mapping[str, str]) -> dict[str, SiteWork]:
    """The work of every site; `origins` tells at which site each stream of the query starts, by alias."""
    query = next(iter(programs.values())).query
    _check(query, programs)
    streams = _Streams(query, programs)
    shipments = {site: list(_shipments(site, program, streams)) for site, program in programs.items()}
    everything = [shipment for sent in shipments.values() for shipment in sent]
    work = {}
    for site in dict.fromkeys([*origins.values(), *programs]):
        own = tuple(alias for alias in query.aliases if origins[alias] == site)
        program = programs.get(site) or SiteProgram(query, ())
        incoming = {shipment.channel: shipment.stream for shipment in everything if shipment.site == site}
        work[site] = _Site(program, streams, own).work(incoming, shipments.get(site, []))
    return work


def _shipments(site: str, program: SiteProgram, streams: _Streams) -> Iterator[Shipment]:
    for number, ship in enumerate(_of_kind(program, Ship)):
        channel = f"{ship.stream} from {site} to {ship.site}, {number}"
        yield Shipment(channel, streams(ship.stream), ship.site, ship.guard)


def _check(query: Query, programs: Mapping[str, SiteProgram]) -> None:
    if query.exclusions:
        raise PlanError("a query with NOT EXISTS or EXCEPT runs at one site; leave it out, or run it there")
    for program in programs.values():
        for instruction in program.instructions:
            if isinstance(instruction, Reuse | Narrow):
                raise PlanError(f"{type(instruction).__name__.lower()} does not run at several sites yet")


class _Streams:
    """Every stream of a deployment by name, with the streams it joins in order."""

    def __init__(self, query: Query, programs: Mapping[str, SiteProgram]) -> None:
        self._query = query
        self._parts: dict[str, tuple[str, ...]] = {alias: (alias,) for alias in query.aliases}
        steps = [step for program in programs.values() for step in program.instructions]
        pending = [step for step in steps if isinstance(step, Join | Union)]
        self._merged = {step.result for step in pending if isinstance(step, Union)}
        while pending:
            undefined = [step for step in pending if not self._define(step)]
            if len(undefined) == len(pending):
                raise PlanError(f"{undefined[0]} reads a stream that no site makes")
            pending = undefined

    def _define(self, step: Join | Union) -> bool:
        """Note what a stream is made of; False if its own inputs are not known yet."""
        read = (step.probe, step.stream) if isinstance(step, Join) else step.streams
        if any(name not in self._parts for name in read):
            return False
        if isinstance(step, Join):
            self._parts[step.result] = self._parts[step.probe] + self._parts[step.stream]
        else:
            members = set(self._parts[step.streams[0]])
            self._parts[step.result] = tuple(alias for alias in self._query.aliases if alias in members)
        return True

    def __call__(self, name: str) -> WireStream:
        parts = self._parts[name]
        if parts == (name,):
            return WireStream(self._query, name, parts)
        # Of a probe sequence only the start of its head matters: it is the latest, and all other parts are alive then.
        started = parts if name in self._merged else parts[:1]
        return WireStream(self._query, name, parts, started)


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


class _Site:
    """The program of one site on its way to its work."""

    def __init__(self, program: SiteProgram, streams: _Streams, own: Sequence[str]) -> None:
        self._program = program
        self._query = program.query
        self._streams = streams
        self._own = own
        self._joins = _of_kind(program, Join)
        self._projected = {step.stream for step in _of_kind(program, Project)}
        self._shipped = {step.stream for step in _of_kind(program, Ship)}

    def work(self, incoming: Mapping[str, WireStream], shipments: Sequence[Shipment]) -> SiteWork:
        chains = list(self._chains())
        nodes: dict[str, Node] = {}
        for union in _of_kind(self._program, Union):
            made_here = [chain for chain in chains if chain.end in union.streams]
            if made_here and self._is_symmetric(made_here):
                nodes[union.result] = self._symmetric(made_here, union.result)
                chains = [chain for chain in chains if chain not in made_here]
            else:
                nodes[union.result] = Merging(union.result, union.streams)
        if chains and self._is_symmetric(chains) and all(chain.end in self._projected for chain in chains):
            # All heads go all the way here, and nothing of them is shipped: a join like that of a single site.
            nodes[chains[0].end] = self._symmetric(chains, chains[0].end)
            self._projected -= {chain.end for chain in chains[1:]}
        else:
            nodes |= {chain.end: self._asymmetric(chain) for chain in chains}
        for name in sorted(self._projected & set(self._query.aliases)):
            # A query of one stream joins nothing, but its window may still leave rows out.
            nodes[f"results of {name}"] = Fragment(self._query, (self._streams(name),), None)
            self._projected.remove(name)
        nodes = self._fused(nodes)
        final = {name for name, node in nodes.items() if isinstance(node, Fragment) and node.output is None}
        filters = _of_kind(self._program, Filter)
        return SiteWork(
            self._query,
            {alias: tuple(step.predicate for step in filters if step.stream == alias) for alias in self._own},
            incoming,
            tuple(_in_order(nodes)),
            tuple(shipments),
            tuple(map(self._streams, sorted(self._projected - final))),
        )

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
        inputs = tuple(self._streams(chain.head) for chain in chains)
        guards = {chain.head: chain.guard for chain in chains if chain.guard != ALWAYS}
        return Fragment(self._query, inputs, self._output(result), guards=guards)

    def _asymmetric(self, chain: _Chain) -> Fragment:
        inputs = tuple(map(self._streams, (chain.head, *chain.visited)))
        guards = {chain.head: chain.guard} if chain.guard != ALWAYS else {}
        return Fragment(self._query, inputs, self._output(chain.end), chain.head, guards)

    def _output(self, name: str) -> WireStream | None:
        return None if name in self._projected and name not in self._shipped else self._streams(name)

    def _fused(self, nodes: dict[str, Node]) -> dict[str, Node]:
        """One join instead of two, where the result of one goes nowhere but into the other: its order is free then."""
        for name in list(nodes):
            node = nodes[name]
            readers = [other for other, reader in nodes.items() if name in reader.reads]
            if not _is_free(node) or name in self._shipped | self._projected or len(readers) != 1:
                continue
            reader = nodes[readers[0]]
            if _is_free(reader):
                assert isinstance(reader, Fragment) and isinstance(node, Fragment)
                inputs = (*(stream for stream in reader.inputs if stream.name != name), *node.inputs)
                nodes[readers[0]] = replace(reader, inputs=self._in_query_order(inputs))
                del nodes[name]
        return nodes

    def _in_query_order(self, inputs: Sequence[WireStream]) -> tuple[WireStream, ...]:
        order = self._query.aliases
        return tuple(sorted(inputs, key=lambda stream: min(map(order.index, stream.parts))))


def _is_free(node: Node) -> bool:
    return isinstance(node, Fragment) and node.head is None and not node.guards


def _in_order(nodes: Mapping[str, Node]) -> Iterator[tuple[str, Node]]:
    sorter = TopologicalSorter({name: [read for read in node.reads if read in nodes] for name, node in nodes.items()})
    for name in sorter.static_order():
        yield name, nodes[name]


Kind = TypeVar("Kind")


def _of_kind(program: SiteProgram, kind: type[Kind]) -> list[Kind]:
    return [step for step in program.instructions if isinstance(step, kind)]
