"""The streams of a deployment: the base streams of its query, what its joins make, and what it reuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from braid.errors import PlanError
from braid.model.program import Join, Reuse, SiteProgram, Union
from braid.model.query import Query
from braid.runtime.sites.wire import WireStream


class DeployedStreams:
    """Every stream of a deployment by name, with the streams it joins in order."""

    def __init__(self, query: Query, programs: Mapping[str, SiteProgram]) -> None:
        self._query = query
        self._parts: dict[str, tuple[str, ...]] = {alias: (alias,) for alias in query.aliases}
        steps = [step for program in programs.values() for step in program.instructions]
        for step in steps:
            if isinstance(step, Reuse):
                self._parts[step.result] = self._in_order(ours for _, ours in step.names)
        pending = [step for step in steps if isinstance(step, Join | Union)]
        self._whole = {step.result for step in steps if isinstance(step, Union | Reuse)}
        """Streams with every combination of their parts, whichever part was the head."""
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
            self._parts[step.result] = self._in_order(self._parts[step.streams[0]])
        return True

    def _in_order(self, aliases: Iterable[str]) -> tuple[str, ...]:
        members = set(aliases)
        return tuple(alias for alias in self._query.aliases if alias in members)

    def __call__(self, name: str) -> WireStream:
        parts = self._parts[name]
        if parts == (name,):
            return WireStream(self._query, name, parts)
        # Of a probe sequence only the start of its head matters: it is the latest, and all other parts are alive then.
        started = parts if name in self._whole else parts[:1]
        return WireStream(self._query, name, parts, started)
