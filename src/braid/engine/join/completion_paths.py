"""Which rows to take along which joins, to find the combinations that are missing from a join state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from braid.engine.join.matcher_builder import MatcherBuilder
from braid.engine.join.operators import Completion, JoinOperator, Operator, PassOperator
from braid.engine.join.sides import Sides
from braid.model.program import Join


class CompletionPaths:
    """Plans completions over the operators of a dataflow, which may still grow: those below a join come before it."""

    def __init__(self, sides: Sides, matchers: MatcherBuilder, operators: Mapping[str, Sequence[Operator]]) -> None:
        self._sides = sides
        self._matchers = matchers
        self._operators = operators

    def for_join(self, join: Join) -> Completion:
        """How to find what probing combinations need of the join state that this join probes.

        The stream to start from is tied to the probing streams by a key, else by a residual; the shortest path wins.
        """
        graph, probing = self._sides.graph, self._sides.members[join.probe]
        paths = {alias: self._path(alias, join.stream) for alias in self._sides.members[join.stream]}
        nearest_first = sorted(paths, key=lambda alias: len(paths[alias]))
        tied = [alias for alias in nearest_first if graph.classes_between(probing, alias)]
        tied += [alias for alias in nearest_first if graph.residuals_at(probing, alias)]
        if not tied:
            return self.for_everything(join.stream)
        alias = tied[0]
        keys, predicates = graph.classes_between(probing, alias), graph.residuals_at(probing, alias)
        finder = self._matchers.for_join(Join(join.probe, alias, join.result, keys, predicates))
        return Completion(self._sides.bases[alias], paths[alias], finder)

    def for_everything(self, stream: str) -> Completion:
        """How to find everything that is missing from the join state of a derived stream."""
        alias = min(self._sides.members[stream], key=lambda alias: len(self._path(alias, stream)))
        return Completion(self._sides.bases[alias], self._path(alias, stream))

    def _path(self, start: str, end: str) -> tuple[JoinOperator, ...]:
        """The joins that rows of the stream `start` go through until they are combinations of `end`."""
        path: list[JoinOperator] = []
        wanted = frozenset(self._sides.members[end])
        stream = start
        while stream != end:
            operator = self._operator_within(stream, wanted)
            if isinstance(operator, JoinOperator):
                path.append(operator)
            stream = operator.result
        return tuple(path)

    def _operator_within(self, stream: str, wanted: frozenset[str]) -> JoinOperator | PassOperator:
        """The operator of a stream whose result combines wanted sources only."""
        for operator in self._operators[stream]:
            if isinstance(operator, JoinOperator | PassOperator) and wanted.issuperset(
                self._sides.members[operator.result]
            ):
                return operator
        raise AssertionError(f"no operator of '{stream}' leads to the combinations of {sorted(wanted)}")
