"""One bucket of the join during one micro-batch: its engine opened, fed, and put away again."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Set
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from braid.engine.difference import TIME
from braid.engine.lifetime import event_times, lifetimes
from braid.engine.segment import Segment, no_rows
from braid.engine.site import Counts, Site
from braid.errors import BraidError
from braid.hosts.observing import Watch
from braid.hosts.spark.cache import Cache, Version, new_token
from braid.hosts.spark.control import in_order, parse_message
from braid.hosts.spark.counted import counts_of_joins
from braid.hosts.spark.job import Job, change_of
from braid.hosts.spark.memory import Memory, Note
from braid.model.plan import Plan
from braid.model.window import FOREVER, Range, Rows
from braid.planning.lower import lower

logger = logging.getLogger(__name__)

CONTROL = -1
"""The source number of control messages."""

WAITING = ""
"""What results that wait are known by among the segments: no stream is called that."""

WAITING_NUMBER = -2

_hot: dict[str, Site] = {}
"""The last site of this process by the token of its version: if the next batch lands here, nothing is even mapped."""


class Bucket:
    """One bucket during one micro-batch.

    `spark_watermark` is Spark's, in milliseconds; 0 if there is none yet.
    """

    def __init__(self, job: Job, memory: Memory, cache: Cache, spark_watermark: int = 0) -> None:
        self._job = job
        self._memory = memory
        self._cache = cache
        # To Spark, who is at the watermark is late.
        self._in_time_for_spark = 1_000 * spark_watermark + 1 if spark_watermark > 0 else -FOREVER
        self._sources = {alias: number for number, alias in enumerate(source.alias for source in job.narrow.inputs)}
        self._streams = {source.alias: source.declared.name for source in job.query.inputs}
        self._started = time.perf_counter()
        self._waited = memory.seconds
        self._note = memory.note() or Note(job.fingerprint(), job.plan)
        self._check_fingerprint()
        self._version: Version | None = None
        self.measured: dict[str, Any] = {}
        self.site = self._open()

    def take(self, packed: Iterable[tuple[int, bytes]]) -> list[pa.RecordBatch]:
        """Segments and control messages in, results out; what must be remembered is, in the store."""
        note = self._note
        note.step += 1
        self._hear_spark(self._job.watermarked - self._job.derived)
        arrived: list[Segment] = []
        messages: list[bytes] = []
        for source, payload in packed:
            if source == CONTROL:
                messages.append(payload)
            else:
                segment = Segment.from_bytes(payload)
                segment = replace(segment, watermark=self._watermark(segment.stream))
                arrived.append(segment)
                if segment.rows.num_rows:
                    self._memory.add(note, source, segment, payload, self._end(segment))
        for message in in_order(messages):
            self._obey(message)
        before, watch = self.site.counts(), Watch(self.site)
        started = time.perf_counter()
        results = self.site.step(arrived)
        self._advance(arrived)
        results += self.site.step(self._progress())
        probing = time.perf_counter() - started
        seen = watch.observe(arrived).to_json()
        watching = time.perf_counter() - started - probing
        self._remember_waiting()
        self._forget()
        self._close()
        after = self.site.counts()
        self.measured |= {
            "rows_out": after.emitted - before.emitted,
            "streams": self._counts_of_streams(arrived, before, after),
            "joins": self._counts_of_joins(before, after),
            "state_rows": sum(entry.rows for kept in note.entries.values() for entry in kept),
            "state_bytes": sum(entry.size for kept in note.entries.values() for entry in kept),
            "segments": sum(len(kept) for kept in note.entries.values()),
            "waiting": after.waiting,
            "rejected_messages": note.rejected,
            "plan": note.plan,
            "seen": seen,
            "join_seconds": round(probing, 6),
            "watch_seconds": round(watching, 6),
            "store_seconds": round(self._memory.seconds - self._waited, 6),
            "seconds": round(time.perf_counter() - self._started, 6),
        }
        return results

    def _counts_of_streams(self, arrived: list[Segment], before: Counts, after: Counts) -> dict[str, dict[str, int]]:
        own = {alias: [part.rows for part in arrived if part.stream == alias] for alias in after.streams}
        return {
            alias: {
                "rows": sum(rows.num_rows for rows in own[alias]),
                "bytes": sum(rows.nbytes for rows in own[alias]),
                "late": counts.late - before.streams[alias].late,
                "untimed": counts.untimed - before.streams[alias].untimed,
                "window": counts.kept,
                "newest": self._note.newest.get(alias, -FOREVER),
                "heard": any(part.newest > -FOREVER for part in arrived if part.stream == alias),
                "watermark": self._watermark(alias),
            }
            for alias, counts in after.streams.items()
        }

    def _counts_of_joins(self, before: Counts, after: Counts) -> list[list[Any]]:
        earlier, later = (counts_of_joins(self.site, counts) for counts in (before, after))
        return [
            [list(bound), stream, probes - earlier[bound, stream][0], matches - earlier[bound, stream][1]]
            for (bound, stream), (probes, matches) in later.items()
        ]

    def _check_fingerprint(self) -> None:
        wanted = json.loads(json.dumps(self._job.fingerprint()))
        change = change_of(self._note.fingerprint, wanted) if self._note.fingerprint and self._note.step else None
        if change is not None:
            raise BraidError(
                f"the checkpoint belongs to another query: {change}\n"
                "go on with what it was, or start on a new checkpoint and a new place for the results"
            )

    def _open(self) -> Site:
        """The engine of this bucket as the last committed batch left it."""
        hot = _hot.pop(self._note.token, None)
        _hot.clear()
        if hot is not None and not hot.movable and hot.program.query == self._job.narrow:
            self.measured["cache"] = "hot"
            return hot
        self._version = self._cache.claim(self._note.token) if self._note.token else None
        if hot is not None and self._version is not None and self._version.adopt(hot.state()):
            self.measured["cache"] = "hot"
            return hot
        site = self._job.site(self._note.plan)
        state = self._version.read() if self._version is not None else None
        if state is not None:
            self.measured["cache"] = "mapped"
            site.load(state)
            return site
        self._version = None
        self.measured["cache"] = "rebuilt" if self._note.step else "new"
        self._rebuild(site)
        return site

    def _rebuild(self, site: Site) -> None:
        """The windows from their segments."""
        note = self._note
        site.restore(
            Segment(alias, self._memory.read(note, alias, self._sources[alias], entry, self._time_column(alias)))
            for alias, entries in note.entries.items()
            if alias != WAITING
            for entry in entries
        )
        site.restore(self._progress())
        for entry in note.entries.get(WAITING, []):
            site.wait(self._memory.read(note, WAITING, WAITING_NUMBER, entry, TIME))

    def _time_column(self, alias: str) -> str:
        return self._job.narrow.source(alias).declared.time

    def _watermark(self, alias: str) -> int:
        return self._note.watermarks.get(alias, -FOREVER)

    def _advance(self, arrived: Iterable[Segment]) -> None:
        """Watermarks after this batch, never going back: the newest of each source less its lateness, or Spark's."""
        note = self._note
        for segment in arrived:
            note.newest[segment.stream] = max(note.newest.get(segment.stream, -FOREVER), segment.newest)
        for source in self._job.narrow.inputs:
            newest = note.newest.get(source.alias, -FOREVER)
            reached = newest - source.declared.lateness if newest > -FOREVER else -FOREVER
            if self._streams[source.alias] not in self._job.watermarked:
                note.watermarks[source.alias] = max(self._watermark(source.alias), reached)
        self._hear_spark(self._job.derived)

    def _hear_spark(self, streams: Set[str]) -> None:
        """The watermarks of these streams are Spark's.

        What comes out of an operator with state may be as old as Spark's watermark was in the batch before: it is
        heard when the batch is done. What comes out of none is late as soon as Spark's watermark has passed it.
        """
        for alias, stream in self._streams.items():
            if stream in streams:
                self._note.watermarks[alias] = max(self._watermark(alias), self._in_time_for_spark)

    def _progress(self) -> list[Segment]:
        """Segments without rows that tell the engine the watermarks."""
        return [
            Segment(source.alias, no_rows(source.declared.schema), self._watermark(source.alias))
            for source in self._job.narrow.inputs
        ]

    def _end(self, segment: Segment) -> int:
        """When the last row of a segment ends; never, as far as is known, if rows are counted."""
        source = self._job.narrow.source(segment.stream)
        if isinstance(source.window, Rows):
            return FOREVER
        _, ends = lifetimes(np.array([segment.newest]), source.window)
        return int(ends[0])

    def _forget(self) -> None:
        """Segments that are not needed go; those of one source are merged, in turn, so that no batch waits for all."""
        note = self._note
        for alias, source in self._sources.items():
            horizon = self._horizon(alias)
            note.since[alias] = self._oldest_needed(alias, horizon)
            self._memory.forget(note, alias, source, horizon)
            if note.step % len(self._sources) == source:
                self._memory.merge(note, alias, source, self._time_column(alias))

    def _horizon(self, alias: str) -> int:
        """The event time before which nobody starts who will still look for rows of a source.

        Rows of the streams that it is joined with do. If rows are counted they all wait for each other, so that none is
        gone before its own stream has come so far; so it is with an excluded stream, for which results wait.
        """
        query = self._job.narrow
        others = set(query.aliases if alias in query.aliases else self._sources)
        if alias in query.aliases and not query.counts_rows:
            others.remove(alias)
        return min(map(self._watermark, others), default=FOREVER)

    def _remember_waiting(self) -> None:
        """Results that began to wait in this batch go to the store; those that have been decided leave it."""
        note, waiting = self._note, self.site.newly_waiting()
        if waiting is None:
            return
        if waiting.num_rows:
            newest = int(event_times(waiting.column(TIME)).max())
            segment = Segment(WAITING, waiting, newest=newest)
            self._memory.add(note, WAITING_NUMBER, segment, segment.to_bytes(), newest + 1)
        decided = min(self._watermark(exclusion.source.alias) for exclusion in self._job.narrow.exclusions)
        note.since[WAITING] = decided
        self._memory.forget(note, WAITING, WAITING_NUMBER, decided)
        self._memory.merge(note, WAITING, WAITING_NUMBER, TIME)

    def _oldest_needed(self, alias: str, horizon: int) -> int:
        """The event time before which no row of a source is needed: none that starts before `horizon` will come."""
        window = self._job.narrow.source(alias).window
        if isinstance(window, Rows):
            return self.site.oldest_needed(alias)
        if isinstance(window, Range) and horizon not in (FOREVER, -FOREVER):
            return horizon - window.length - (window.slide or 0)
        return self._note.since.get(alias, -FOREVER)

    def _obey(self, payload: bytes) -> None:
        """A control message; what cannot be done is counted and logged, and the query goes on as it was."""
        try:
            message = parse_message(payload)
            if message.get("plan") is None:
                self._pass_the_silent(message["reached"])
                return
            plan = Plan.of(self._job.narrow, message["plan"])
            if plan != Plan.of(self._job.narrow, self._note.plan):
                self.site.change(lower(plan))
                self._note.plan = plan.written
        except (TypeError, RecursionError, BraidError) as problem:
            self._note.rejected += 1
            logger.warning("control message rejected: %s: %r", problem, payload[:200])

    def _pass_the_silent(self, reached: dict[str, int]) -> None:
        """Streams that have been silent for too long are taken to have come so far."""
        for source in self._job.narrow.inputs:
            newest = reached.get(self._streams[source.alias], -FOREVER)
            passed = newest - source.declared.lateness
            self._note.watermarks[source.alias] = max(self._watermark(source.alias), passed)

    def _close(self) -> None:
        """Write down where the bucket is, and leave its arrays where the next batch finds them."""
        note = self._note
        note.token = ""
        if self.site.movable:
            version = self._version or self._cache.create()
            state = version.write(self.site.state()) if version is not None else None
            if version is not None and state is not None:
                self.site.load(state)
                note.token = version.token
        elif not self._cache.closed:
            # Only this process can go on from here; others rebuild.
            note.token = new_token()
        if note.token:
            _hot[note.token] = self.site
        self._memory.write_note(note)
