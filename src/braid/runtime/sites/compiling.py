"""From site programs to what runs at each site: fragments, and the channels they read and publish on.

A program lists instructions; joins among them that belong together become one fragment. Joins of several heads that all
visit the same inputs are one symmetric join, however deep the tree was that they came from: inside a site the order is
free. A chain of joins that only its own head follows is asymmetric.

Fragments know nothing of each other. One that reads what another makes reads it from a channel, at the same site too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from braid.errors import PlanError
from braid.model.program import ALWAYS, Guard, Join, Narrow, Project, Reuse, Ship, SiteProgram, Union
from braid.model.query import Query
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.wire import WireStream


@dataclass(frozen=True)
class Outlet:
    """A channel on which a site publishes what one of its fragments makes, as far as a guard lets it through.

    `readers` are the sites that subscribe, the site itself among them if it reads the stream too. The results of the
    query have no readers among the sites.
    """

    channel: str
    fragment: str
    readers: tuple[str, ...] = ()
    guard: Guard = ALWAYS


@dataclass(frozen=True)
class SiteWork:
    """What one site does.

    `own` are the streams that start here, by alias. `fragments` make streams, by name. `arriving` tells which stream
    each channel that is read here carries; several channels may carry parts of one stream.
    """

    query: Query
    own: tuple[str, ...]
    fragments: Mapping[str, Fragment]
    arriving: Mapping[str, str]
    outlets: tuple[Outlet, ...]

    @property
    def finals(self) -> tuple[str, ...]:
        """The fragments whose results are those of the query."""
        return tuple(name for name, fragment in self.fragments.items() if fragment.output is None)


def compile_programs(programs: Mapping[str, SiteProgram], origins: Mapping[str, str]) -> dict[str, SiteWork]:
    """The work of every site; `origins` tells at which site each stream of the query starts, by alias."""
    query = next(iter(programs.values())).query
    _check(query, programs)
    streams = _Streams(query, programs)
    sites = {}
    for site in dict.fromkeys([*origins.values(), *programs]):
        own = tuple(alias for alias in query.aliases if origins[alias] == site)
        sites[site] = _Site(programs.get(site) or SiteProgram(query, ()), streams, own)
    outlets = {site: _outlets(site, sites) for site in sites}
    work = {}
    for site, compiled in sites.items():
        arriving = {}
        for outlet in (outlet for published in outlets.values() for outlet in published):
            if site in outlet.readers:
                arriving[outlet.channel] = compiled.read_as[outlet.fragment]
        work[site] = SiteWork(query, compiled.own, compiled.fragments, arriving, tuple(outlets[site]))
    return work


def _outlets(site: str, sites: Mapping[str, _Site]) -> list[Outlet]:
    """The channels of a site: one for each stream and guard, whoever reads it, and one for each of its results."""
    compiled = sites[site]
    readers: dict[tuple[str, Guard], list[str]] = defaultdict(list)
    for ship in compiled.ships:
        readers[ship.stream, ship.guard].append(ship.site)
    for name, fragment in compiled.fragments.items():
        if name in compiled.read_as and not fragment.relays:
            readers[name, ALWAYS].append(site)
    outlets = []
    for number, ((stream, guard), subscribed) in enumerate(readers.items()):
        part = "" if guard == ALWAYS else f", part {number}"
        outlets.append(Outlet(f"{stream} at {site}{part}", stream, tuple(dict.fromkeys(subscribed)), guard))
    finals = [name for name, fragment in compiled.fragments.items() if fragment.output is None]
    return [*outlets, *(Outlet(f"{name} at {site}", name) for name in finals)]


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

    def __init__(self, program: SiteProgram, streams: _Streams, own: tuple[str, ...]) -> None:
        self._query = program.query
        self._streams = streams
        self.own = own
        self._joins = _of_kind(program, Join)
        self._projected = {step.stream for step in _of_kind(program, Project)}
        self.ships = _of_kind(program, Ship)
        self._shipped = {step.stream for step in self.ships}
        self._merged: dict[str, tuple[str, ...]] = {}
        """Streams that arrive in several parts, with the streams that are their parts."""
        self.fragments = self._compile(_of_kind(program, Union))
        self.read_as = self._names_read()
        """What the streams that are read here are called by those who read them."""

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
        fragments = self._fused(fragments)
        return self._finished({name: self._with_own(fragment) for name, fragment in fragments.items()})

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
            complete[f"results of {name}"] = self._with_own(Fragment(self._query, (self._streams(name),), None))
        for name in sorted(self._shipped - set(complete)):
            stream = self._streams(name)
            complete[name] = self._with_own(Fragment(self._query, (stream,), stream))
        return complete

    def _with_own(self, fragment: Fragment) -> Fragment:
        inputs = (replace(stream, at_origin=stream.name in self.own) for stream in fragment.inputs)
        return replace(fragment, inputs=tuple(inputs))

    def _names_read(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for fragment in self.fragments.values():
            for name in set(fragment.reads) - fragment.own:
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
        inputs = tuple(self._streams(chain.head) for chain in chains)
        guards = {chain.head: chain.guard for chain in chains if chain.guard != ALWAYS}
        return Fragment(self._query, inputs, self._output(result), guards=guards)

    def _asymmetric(self, chain: _Chain) -> Fragment:
        inputs = tuple(map(self._streams, (chain.head, *chain.visited)))
        guards = {chain.head: chain.guard} if chain.guard != ALWAYS else {}
        return Fragment(self._query, inputs, self._output(chain.end), chain.head, guards)

    def _output(self, name: str) -> WireStream | None:
        return None if name in self._projected and name not in self._shipped else self._streams(name)

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
