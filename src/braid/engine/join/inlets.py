"""The inlets of a program: one for each stream whose window the program updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from braid.engine.input.admission import Admission
from braid.engine.input.inlet import Inlet
from braid.engine.keys.band_scale import BandScale
from braid.engine.window.window_state import WindowState
from braid.model.expressions.expression import Column, columns_of
from braid.model.program import Filter, SiteProgram, Update
from braid.model.query import Output, Query


def build_inlets(program: SiteProgram, scales: Mapping[int, BandScale], hash_bits: int) -> dict[str, Inlet]:
    """Empty inlets, by the alias of their stream."""
    aliases = [update.stream for update in program.all_of(Update)]
    return {
        alias: _build_inlet(program, alias, scales, hash_bits) for alias in aliases if alias in program.query.aliases
    }


def _build_inlet(program: SiteProgram, alias: str, scales: Mapping[int, BandScale], hash_bits: int) -> Inlet:
    source = program.query.source(alias)
    classes = program.query.graph.classes_of(alias)
    own_scales = {band_number: scale for band_number, scale in scales.items() if alias in scale.band.sources}
    admission = Admission(
        source,
        [filter_.predicate for filter_ in program.all_of(Filter) if filter_.stream == alias],
        classes,
        [column for column in _columns_read_later(program.query) if column.source == alias],
        hash_bits,
        own_scales,
    )
    grains = {band_number: scale.grain for band_number, scale in own_scales.items()}
    return Inlet(source, admission, WindowState(classes, admission.exact, admission.kinds, hash_bits, grains))


def _columns_read_later(query: Query) -> Iterator[Column]:
    """Columns that are read after a row entered its window: for results, for what comes then, and for residuals."""
    for output in query.projected:
        if isinstance(output, Output):
            yield from columns_of(output.expression)
    for predicate in query.graph.residuals:
        yield from columns_of(predicate.expression)
