"""The gate before the results of a generation: which of them may be published."""

from __future__ import annotations

import pyarrow as pa

from braid.engine.input.lifetime import event_times
from braid.model.window import FOREVER
from braid.runtime.migration.change import ChangeState, Promise


class Gate:
    """Holds a site to what it has promised: it publishes results only before the moment of a change.

    Between its promise and the moment it may publish what is before the promise. What is later has to wait, because it
    may belong to either generation.
    """

    def __init__(self) -> None:
        self._promised: int | None = None
        self._moment: int | None = None

    def learn(self, state: ChangeState, site: str) -> None:
        """Take what is known of a change from this generation to another one.

        A site may hear of an aborted change, in which nobody has promised anything, after it has promised in a later
        one. What it has promised holds.
        """
        if site in state.promises:
            self._promised = state.promises[site]
            self._moment = state.moment

    def promise(self, state: ChangeState, site: str, newest: int, margin: int) -> Promise:
        """Promise to publish nothing from an event time on that is later than the newest that was published.

        With a margin of event time, results that come before the others have promised need not wait.
        """
        until = min(max(state.change.since, newest + 1) + margin, FOREVER)
        self._promised = until
        return Promise(site, until)

    def admits(self, newest: int) -> bool:
        """Whether results up to an event time may be published now, or must wait for the moment of the change."""
        return self._moment is not None or self._promised is None or newest < self._promised

    def passing(self, rows: pa.RecordBatch, event_time: str) -> pa.RecordBatch:
        """The results of this generation's reign."""
        if self._moment is None:
            return rows
        belongs = event_times(rows.column(event_time)) < self._moment
        return rows if belongs.all() else rows.filter(pa.array(belongs))

    def watermark(self, reached: int) -> int:
        """The watermark of the published results, given that of the results at the gate.

        A reader may not know of the change yet. It must not take results from the moment on for complete: they come
        from the new generation.
        """
        return reached if self._moment is None else min(reached, self._moment)
