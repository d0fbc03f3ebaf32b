"""What can go wrong in a plan change: lost results, rows that outlive their window, results found twice."""

import pyarrow as pa
import pytest

import braid
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.engine.transition import STRATEGIES
from braid.errors import PlanError
from braid.language import bind, parse
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower

SCHEMA = pa.schema({"ts": pa.timestamp("s"), "k": pa.int64()})
STREAMS = {name: Stream(name, SCHEMA, "ts", 0) for name in "rstu"}
TEXT = """
SELECT r.ts AS r, s.ts AS s, t.ts AS t, u.ts AS u
FROM r [RANGE 10 SECONDS], s [RANGE 10 SECONDS], t [RANGE 10 SECONDS], u [RANGE 10 SECONDS]
WHERE r.k = s.k AND s.k = t.k AND t.k = u.k
"""
OLD = ((("r", "s"), "t"), "u")
NEW = ((("s", "t"), "r"), "u")

everywhere = pytest.mark.parametrize("strategy", sorted(STRATEGIES))


def query() -> Query:
    return bind(parse(TEXT), STREAMS)


class Run:
    """An engine that takes rows one by one: a stream, a time in seconds, a key."""

    def __init__(self, plan: object, strategy: str = "jisc") -> None:
        self._strategy = strategy
        self.engine = Engine(self._program(plan), strategy=strategy)
        self.results: list[tuple[int, ...]] = []

    def _program(self, plan: object):  # type: ignore[no-untyped-def]
        full = Plan.of(query(), plan)  # type: ignore[arg-type]
        return lower(STRATEGIES[self._strategy].plan(full))

    def change(self, plan: object) -> None:
        self.engine.change(self._program(plan))

    def take(self, stream: str, second: int, key: int = 1) -> None:
        rows = pa.RecordBatch.from_arrays([pa.array([second], pa.timestamp("s")), pa.array([key])], schema=SCHEMA)
        for batch in self.engine.step([Segment(stream, rows, -(10**15))]):
            self.results += [tuple(value.timestamp() for value in row.values()) for row in batch.to_pylist()]

    def pass_time(self, second: int) -> None:
        """Raise all watermarks: no stream will bring an older row than this."""
        nothing = SCHEMA.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], SCHEMA)]
        self.engine.step([Segment(name, nothing[0], second * 1_000_000) for name in STREAMS])

    def join_state(self, name: str) -> tuple[int, bool]:
        """How many combinations a join state holds, and whether it is complete."""
        counts = self.engine.counts().join_states[name]
        return counts.held, counts.complete


@everywhere
def test_rows_from_before_the_change_still_join(strategy: str) -> None:
    """Scenario 1 of the paper: s, t and u come before the change, r after it."""
    run = Run(OLD, strategy)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    run.take("r", 3)
    assert [tuple(map(int, map(round, row))) for row in run.results] == [(3, 0, 1, 2)]


@everywhere
def test_a_result_is_not_emitted_again_after_the_change(strategy: str) -> None:
    """Scenario 2: the result is emitted before the change; s leaves its window, and no result with it comes again."""
    run = Run(OLD, strategy)
    for second, stream in enumerate("rstu"):
        run.take(stream, second)
    assert len(run.results) == 1
    run.change(NEW)
    run.pass_time(11)
    run.take("u", 11)
    run.take("r", 12)
    assert len(run.results) == 1


@everywhere
def test_a_combination_expires_with_its_first_row(strategy: str) -> None:
    """Scenario 3: r, s and t come before the change, s leaves its window after it, then u comes."""
    run = Run(OLD, strategy)
    for second, stream in ((0, "s"), (5, "r"), (6, "t")):
        run.take(stream, second)
    run.change(NEW)
    run.pass_time(10)
    run.take("u", 10)
    assert run.results == []


@everywhere
def test_completing_a_join_state_completes_those_below_it(strategy: str) -> None:
    """r probes at the top of the new tree; no row of u comes that would have the join state below completed."""
    run = Run(OLD, strategy)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(("r", (("s", "t"), "u")))
    run.take("r", 3)
    assert len(run.results) == 1


@everywhere
def test_a_change_before_the_last_one_is_over(strategy: str) -> None:
    """Overlapping changes: the first plan never joined s and t, and the second did not get to complete them."""
    run = Run(OLD, strategy)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    run.change(((("s", "t"), "u"), "r"))
    run.take("r", 3)
    assert len(run.results) == 1


def test_join_states_of_both_plans_stay() -> None:
    run = Run(OLD)
    for second, stream in enumerate("rst"):
        run.take(stream, second)
    assert run.join_state("r+s") == (1, True)
    run.change(((("s", "r"), "t"), "u"))
    assert run.join_state("r+s") == (1, True)
    assert run.join_state("r+s+t") == (1, True)
    run.change(NEW)
    assert run.join_state("s+t") == (0, False)
    assert run.join_state("r+s+t") == (1, True), "the same streams in another order"


def test_an_incomplete_join_state_stays_incomplete() -> None:
    run = Run(OLD)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    run.change(((("s", "t"), "u"), "r"))
    assert run.join_state("s+t") == (0, False)


def test_only_needed_combinations_are_completed_and_only_once() -> None:
    run = Run(OLD)
    for key in (1, 2, 3):
        for second, stream in enumerate("stu"):
            run.take(stream, second, key)
    run.change(NEW)
    run.take("r", 3, key=2)
    assert run.join_state("s+t") == (1, False)
    run.take("r", 4, key=2)
    assert run.join_state("s+t") == (1, False)
    run.take("r", 4, key=9)
    assert run.join_state("s+t") == (1, False)
    run.take("r", 4, key=1)
    run.take("r", 4, key=3)
    run.take("r", 4, key=3)
    assert run.join_state("s+t") == (3, True), "every older row has been attempted"


def test_a_join_state_is_complete_when_the_older_rows_have_expired() -> None:
    run = Run(OLD)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    assert run.join_state("s+t") == (0, False)
    run.pass_time(12)
    assert run.join_state("s+t") == (0, True)


def test_nothing_is_missing_if_a_stream_had_no_rows() -> None:
    run = Run(OLD)
    run.take("s", 0)
    run.change(NEW)
    assert run.join_state("s+t") == (0, True)


def test_moving_state_completes_at_once() -> None:
    run = Run(OLD, "moving_state")
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    assert run.join_state("s+t") == (1, True)


def test_join_states_are_part_of_the_engine_state() -> None:
    run = Run(OLD)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    moved = Run(NEW)
    moved.engine.load(run.engine.state())
    moved.take("r", 3)
    assert len(moved.results) == 1
    assert moved.join_state("s+t") == (1, True)


def test_an_engine_restored_from_its_rows_completes_its_join_states() -> None:
    run = Run(NEW)
    for second, stream in enumerate("stu"):
        rows = pa.RecordBatch.from_arrays([pa.array([second], pa.timestamp("s")), pa.array([1])], schema=SCHEMA)
        run.engine.restore([Segment(stream, rows, -(10**15))])
    run.take("r", 3)
    assert len(run.results) == 1


def test_windows_stay_small_under_every_strategy() -> None:
    for strategy in STRATEGIES:
        run = Run(OLD, strategy)
        for second in range(200):
            for stream in "rstu":
                run.take(stream, second, key=second % 3)
            run.pass_time(second)
            if second % 50 == 49:
                run.change(NEW if second % 100 == 49 else OLD)
        assert all(join_state.held < 2_000 for join_state in run.engine.counts().join_states.values())
        assert all(stream.held < 20 for stream in run.engine.counts().streams.values())


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ((("r", "s"), "t"), "check u"),
        ((("r", "s"), ("t", "u", "r")), "share a stream"),
        ((("r", "s"), ("t", "x")), "joins 'x', which is not a stream of the query"),
        ((("r", "s", "t", "u"),), "at least two inputs"),
        ((("r", "s"), ("t", 5)), "not 5"),
        ((("r", "s"), ("t", "u\n")), r"joins 'u\\n', which is not a stream of the query"),
        ("rstu", "not 'rstu'"),
        ({"r": ["s", "t", "u"]}, "has no probe sequence for head 's'"),
    ],
)
def test_wrong_plans(plan: object, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.of(query(), plan)  # type: ignore[arg-type]


def test_a_change_to_the_same_plan_is_ignored(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = []
    monkeypatch.setattr(Engine, "change", lambda engine, program: changes.append(program))
    table = pa.table({"ts": pa.array(range(20), pa.timestamp("s")), "k": [1] * 20})
    result = braid.run(
        TEXT, dict.fromkeys("rstu", table), plan=OLD, switches={1: OLD, 2: OLD}, batch_rows=5, strategy="parallel_track"
    )
    assert result.num_rows and not changes
    assert caplog.messages == [
        f"at step {step} the query runs this plan already; there was nothing to change" for step in (1, 2)
    ]


def test_wrong_changes() -> None:
    table = pa.table({"ts": pa.array([1], pa.timestamp("s")), "k": [1]})
    streams = dict.fromkeys("rstu", table)
    with pytest.raises(PlanError, match="no strategy 'jsc' to change a plan; did you mean 'jisc'"):
        braid.run(TEXT, streams, strategy="jsc")
    with pytest.raises(PlanError, match="counted from 0, not at -1"):
        braid.run(TEXT, streams, switches={-1: OLD})
    with pytest.raises(PlanError, match="check u"):
        braid.run(TEXT, streams, switches={1: ("r", ("s", "t"))})
