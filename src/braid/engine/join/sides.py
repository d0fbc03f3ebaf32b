"""Everything that the joins of a program can probe: the windows of its streams, and its join states."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from braid.engine.input.inlet import Inlet
from braid.engine.join.combinations import Base, Side
from braid.engine.join.inlets import build_inlets
from braid.engine.kernels.expression import Compiled, compile_expression
from braid.engine.keys.band_scale import BandScale
from braid.engine.window.join_state import JoinState
from braid.errors import PlanError
from braid.model.expressions.expression import Column, Expression
from braid.model.program import Join, Reuse, SiteProgram, Union, Update


class Sides:
    """The windows (`inlets`, `bases`) and join states of a program, by stream.

    `members` are the sources that each stream, base or derived, combines. Attribute classes have numbers
    (`class_numbers`), and bands have the numbers after them (`scales`).
    """

    def __init__(
        self,
        program: SiteProgram,
        hash_bits: int,
        inlets: Mapping[str, Inlet] | None = None,
        join_states: Mapping[frozenset[str], JoinState] | None = None,
    ) -> None:
        self.graph = program.query.graph
        self.class_numbers = {
            attribute_class: class_number for class_number, attribute_class in enumerate(self.graph.classes)
        }
        self.scales = {band_number: BandScale.of(band) for band_number, band in self.graph.numbered_bands().items()}
        self.inlets = inlets or build_inlets(program, self.scales, hash_bits)
        self.bases = {alias: Base(alias, inlet.window) for alias, inlet in self.inlets.items()}
        self.members = members_of_streams(program, self.inlets)
        self.join_states = self._join_states(program, hash_bits, join_states or {})
        self.payload_positions: dict[Column, int] = {}
        for inlet in self.inlets.values():
            self.payload_positions.update(inlet.admission.columns)

    def side(self, stream: str) -> Side:
        """What a join with this stream probes."""
        return self.join_states[stream] if stream in self.join_states else self.bases[stream]

    def compile(self, expression: Expression) -> Compiled:
        """Compile an expression over columns of the sources."""
        return compile_expression(expression, self._type_of_column)

    def _type_of_column(self, column: Column) -> pa.DataType:
        declaration = self.inlets[column.source or ""].declaration
        return declaration.schema.field(column.name).type

    def _join_states(
        self, program: SiteProgram, hash_bits: int, earlier: Mapping[frozenset[str], JoinState]
    ) -> dict[str, JoinState]:
        """The join states of the program: the earlier one of the same sources if there is one, else an empty one."""
        join_states = {}
        for stream in (update.stream for update in program.all_of(Update)):
            if stream not in self.inlets:
                members = self.members[stream]
                reused = earlier.get(frozenset(members))
                join_states[stream] = self._new_join_state(members, hash_bits) if reused is None else reused
        return join_states

    def _new_join_state(self, members: Collection[str], hash_bits: int) -> JoinState:
        inside = frozenset(members)
        # Indexed are the attribute classes and bands that tie the combinations to any other stream.
        class_streams = {
            class_number: next(alias for alias in members if alias in attribute_class.sources)
            for class_number, attribute_class in enumerate(self.graph.classes)
            if attribute_class.sources & inside and attribute_class.sources - inside
        }
        band_streams = {
            band_number: next(alias for alias in members if alias in scale.band.sources)
            for band_number, scale in self.scales.items()
            if len(scale.band.sources & inside) == 1
        }
        grains = {band_number: self.scales[band_number].grain for band_number in band_streams}
        exact = frozenset().union(*(self.inlets[alias].admission.exact for alias in members))
        counted = [alias for alias in members if self.inlets[alias].source.window.counts_rows]
        bases = [self.bases[alias] for alias in members]
        return JoinState(bases, class_streams | band_streams, exact, counted, hash_bits, grains)


def members_of_streams(program: SiteProgram, aliases: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The sources that each stream, base or derived, combines."""
    members: dict[str, tuple[str, ...]] = {alias: (alias,) for alias in aliases}
    for instruction in program.instructions:
        if isinstance(instruction, Join):
            members[instruction.result] = (*members[instruction.probe], *members[instruction.stream])
        elif isinstance(instruction, Union):
            members[instruction.result] = tuple(alias for alias in aliases if alias in members[instruction.streams[0]])
        elif isinstance(instruction, Reuse):
            raise PlanError(
                f"an engine that runs alone cannot reuse {instruction.advertisement}, which another query makes"
            )
    return members
