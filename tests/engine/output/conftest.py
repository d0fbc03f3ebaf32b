"""Runs in which one engine continues what another has begun."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from braid.engine.engine import Engine
from braid.engine.output.waiting import WaitingRows
from braid.hosts.local.streams import LocalStreams
from braid.language import bind, parse
from braid.model.plan import Plan
from braid.planning.lowering.one_site import lower
from braid.runtime.arrival import steps
from braid.testing import Case
from braid.testing.changes import random_plan
from braid.testing.choices import SeededChoices


def logged(waited: Iterable[Sequence[WaitingRows]]) -> dict[str, list[pa.RecordBatch]]:
    """What all logs hold of waiting rows."""
    logs: dict[str, list[pa.RecordBatch]] = {}
    for waiting in itertools.chain.from_iterable(waited):
        logs.setdefault(waiting.name, []).append(waiting.rows)
    return logs


def interrupted(case: Case, seed: int) -> pa.Table:
    """The results if every few steps another engine continues: from the state of the last, or from its rows."""
    generator, choices = np.random.default_rng(seed), SeededChoices(seed)
    options = case.options
    arrivals = LocalStreams(case.streams, options["time"], options["lateness"])
    query = bind(parse(case.text), arrivals)
    plan = lower(Plan.of(query, random_plan(choices, query.aliases)))
    engine, received, waited = Engine(plan), [], []
    results: list[pa.RecordBatch] = []
    windows = [(source.declared.name, source.window) for source in query.inputs]
    for segments in steps(arrivals.read, case.batch_rows or 3, windows):
        received.append(segments)
        results += engine.step(segments)
        waited.append(engine.newly_waiting())
        if generator.random() < 0.4:
            other = Engine(plan)
            if engine.movable and generator.random() < 0.5:
                other.load(engine.state())
            else:
                for earlier in received:
                    other.restore(earlier)
                other.wait(logged(waited))
            assert other.counts().waiting == engine.counts().waiting
            engine = other
        if generator.random() < 0.2:
            engine.change(lower(Plan.of(query, random_plan(choices, query.aliases))))
            plan = engine.program
    return pa.Table.from_batches([*results, *engine.finish()], engine.schema)
