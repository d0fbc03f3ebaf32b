"""From the joins of a program to the matchers that run them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from braid.engine.join.matcher import BandProbe, KeyPair, Matcher, Workspace
from braid.engine.join.sides import Sides
from braid.engine.output.emitter import gather
from braid.engine.window.window_state import KeyClasses
from braid.model.access import BAND, KEY, KEY_AND_BAND, possible_paths
from braid.model.graph import AttributeClass
from braid.model.predicate import Predicate
from braid.model.program import Join


class MatcherBuilder:
    """Builds matchers that probe the sides of one program; they share a workspace."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._workspace = Workspace()

    def for_join(self, join: Join) -> Matcher:
        """The matcher of a join instruction, by its access path."""
        sides = self._sides
        probing, probed = sides.members[join.probe], sides.members[join.stream]
        path = join.path or possible_paths(sides.graph, probing, probed)[0]
        index = [sides.class_numbers[key] for key in join.keys] if path in (KEY, KEY_AND_BAND) else []
        band_number = sides.graph.band_between(probing, probed)
        if band_number is not None and path in (BAND, KEY_AND_BAND):
            index.append(band_number)
        return self._matcher(join.stream, probing, join.keys, join.predicates, tuple(index))

    def for_streams(self, head: str, stream: str) -> Matcher:
        """A matcher that probes the window of `stream` with rows of `head`, by all conditions on these two."""
        graph = self._sides.graph
        keys, predicates = graph.classes_between([head], stream), graph.residuals_at([head], stream)
        return self.for_join(Join(head, stream, f"{head} with {stream}", keys, predicates))

    def for_sample(self, bound: Collection[str], stream: str, index: KeyClasses) -> Matcher:
        """A matcher that probes an index of the window of `stream` with combinations of the streams `bound`."""
        graph = self._sides.graph
        keys, predicates = graph.classes_between(bound, stream), graph.residuals_at(bound, stream)
        return self._matcher(stream, bound, keys, predicates, index)

    def _matcher(
        self,
        stream: str,
        probing: Collection[str],
        keys: Iterable[AttributeClass],
        predicates: Iterable[Predicate],
        index: KeyClasses,
    ) -> Matcher:
        sides = self._sides
        probed = sides.members[stream]
        return Matcher(
            stream,
            sides.side(stream),
            [self._key_pair(key, probing, probed) for key in keys],
            [sides.compile(predicate.expression) for predicate in predicates],
            partial(gather, positions=sides.payload_positions),
            self._workspace,
            self._band_probe(probing, probed),
            index,
        )

    def _key_pair(self, key: AttributeClass, probing: Collection[str], probed: Collection[str]) -> KeyPair:
        class_number = self._sides.class_numbers[key]
        probing_stream = next(alias for alias in probing if alias in key.sources)
        probed_stream = next(alias for alias in probed if alias in key.sources)
        return KeyPair(
            class_number,
            probing_stream,
            self._sides.inlets[probing_stream].admission.key_positions.get(class_number),
            probed_stream,
            self._sides.inlets[probed_stream].admission.key_positions.get(class_number),
        )

    def _band_probe(self, probing: Collection[str], probed: Collection[str]) -> BandProbe | None:
        band_number = self._sides.graph.band_between(probing, probed)
        if band_number is None:
            return None
        scale = self._sides.scales[band_number]
        probing_stream = next(alias for alias in probing if alias in scale.band.sources)
        return BandProbe(band_number, probing_stream, scale.reach, scale.grain)
