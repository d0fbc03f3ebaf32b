"""A site that changes its own plan as it goes; its clock is event time."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import pyarrow as pa

from braid.adapt.adaptation import Adaptation
from braid.engine.segment import Segment
from braid.engine.site import Site
from braid.hosts.observing import Watch
from braid.planning.lower import lower

logger = logging.getLogger(__name__)

SECOND = 1_000_000


class AdaptiveSite:
    """Watches each step of a site, and gives it another plan between two steps if that is worth it."""

    def __init__(self, site: Site, adaptation: Adaptation) -> None:
        self._site = site
        self._newest: int | None = None
        self._steps = 0
        self.adaptation = adaptation

    def step(self, segments: Iterable[Segment]) -> list[pa.RecordBatch]:
        """As the site does it, under the plan that runs now."""
        taken: Sequence[Segment] = list(segments)
        watch = Watch(self._site)
        results = self._site.step(taken)
        seen = watch.observe(taken)
        reached = [stream.newest for stream in seen.streams.values() if stream.newest is not None]
        if reached:
            self._newest = max(reached) if self._newest is None else max(self._newest, *reached)
        if self._newest is not None:
            instruction = self.adaptation.observe(seen, self._newest / SECOND, self._steps)
            if instruction is not None:
                logger.info("after batch %d: %s", self._steps, instruction.reason)
                self._site.change(lower(instruction.after))
        self._steps += 1
        return results
