"""What can go wrong when a plan changes: rows lost, rows that outlive their window, work done twice."""

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
    """A engine that takes rows one by one: a stream, a time in seconds, a key."""

    def __init__(self, plan: object, strategy: str = "jisc") -> None:
        self._strategy = strategy
        self.engine = Engine(self._program(plan), strategy=strategy)
        self.results: list[tuple[int, ...]] = []

    def _program(self, plan: object):  # type: ignore[no-untyped-def]
        made = Plan.of(query(), plan)  # type: ignore[arg-type]
        return lower(made.without_kept() if self._strategy == "cacq" else made)

    def change(self, plan: object) -> None:
        self.engine.change(self._program(plan))

    def take(self, stream: str, second: int, key: int = 1) -> None:
        rows = pa.RecordBatch.from_arrays([pa.array([second], pa.timestamp("s")), pa.array([key])], schema=SCHEMA)
        for found in self.engine.step([Segment(stream, rows, -(10**15))]):
            self.results += [tuple(value.timestamp() for value in row.values()) for row in found.to_pylist()]

    def pass_time(self, second: int) -> None:
        """No stream will bring anything older than this."""
        nothing = SCHEMA.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], SCHEMA)]
        self.engine.step([Segment(name, nothing[0], second * 1_000_000) for name in STREAMS])

    def kept(self, name: str) -> tuple[int, bool]:
        counts = self.engine.counts().kept[name]
        return counts.kept, counts.complete


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
def test_a_result_is_not_given_again_after_the_change(strategy: str) -> None:
    """Scenario 2: the quadruple is out before the change; s leaves its window, and nothing of it comes back."""
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
def test_combinations_end_with_their_first_row_to_go(strategy: str) -> None:
    """Scenario 3: r, s and t come before the change, s leaves its window after it, then u comes."""
    run = Run(OLD, strategy)
    for second, stream in ((0, "s"), (5, "r"), (6, "t")):
        run.take(stream, second)
    run.change(NEW)
    run.pass_time(10)
    run.take("u", 10)
    assert run.results == []


@everywhere
def test_who_asks_for_combinations_asks_for_their_parts_too(strategy: str) -> None:
    """r is the first stream of the new tree and asks at its top; u, which would ask below, brings nothing more."""
    run = Run(OLD, strategy)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(("r", (("s", "t"), "u")))
    run.take("r", 3)
    assert len(run.results) == 1


@everywhere
def test_a_change_before_the_last_one_is_over(strategy: str) -> None:
    """Overlapped changes: s and t were never joined under the first plan, nor completed under the second."""
    run = Run(OLD, strategy)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    run.change(((("s", "t"), "u"), "r"))
    run.take("r", 3)
    assert len(run.results) == 1


def test_what_both_plans_keep_stays() -> None:
    run = Run(OLD)
    for second, stream in enumerate("rst"):
        run.take(stream, second)
    assert run.kept("r+s") == (1, True)
    run.change(((("s", "r"), "t"), "u"))
    assert run.kept("r+s") == (1, True)
    assert run.kept("r+s+t") == (1, True)
    run.change(NEW)
    assert run.kept("s+t") == (0, False)
    assert run.kept("r+s+t") == (1, True), "the same streams in another order"


def test_what_was_incomplete_stays_so() -> None:
    run = Run(OLD)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    run.change(((("s", "t"), "u"), "r"))
    assert run.kept("s+t") == (0, False)


def test_only_what_is_asked_for_is_completed_and_once() -> None:
    run = Run(OLD)
    for key in (1, 2, 3):
        for second, stream in enumerate("stu"):
            run.take(stream, second, key)
    run.change(NEW)
    run.take("r", 3, key=2)
    assert run.kept("s+t") == (1, False)
    run.take("r", 4, key=2)
    assert run.kept("s+t") == (1, False)
    run.take("r", 4, key=9)
    assert run.kept("s+t") == (1, False)
    run.take("r", 4, key=1)
    run.take("r", 4, key=3)
    run.take("r", 4, key=3)
    assert run.kept("s+t") == (3, True), "every older row has been attempted"


def test_complete_when_the_older_rows_have_gone() -> None:
    run = Run(OLD)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    assert run.kept("s+t") == (0, False)
    run.pass_time(12)
    assert run.kept("s+t") == (0, True)


def test_nothing_is_missing_where_nothing_has_come() -> None:
    run = Run(OLD)
    run.take("s", 0)
    run.change(NEW)
    assert run.kept("s+t") == (0, True)


def test_moving_state_completes_at_once() -> None:
    run = Run(OLD, "moving_state")
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    assert run.kept("s+t") == (1, True)


def test_kept_combinations_move_with_the_site() -> None:
    run = Run(OLD)
    for second, stream in enumerate("stu"):
        run.take(stream, second)
    run.change(NEW)
    moved = Run(NEW)
    moved.engine.load(run.engine.state())
    moved.take("r", 3)
    assert len(moved.results) == 1
    assert moved.kept("s+t") == (1, True)


def test_a_site_restored_from_its_rows_completes_what_its_plan_keeps() -> None:
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
        assert all(kept.kept < 2_000 for kept in run.engine.counts().kept.values())
        assert all(stream.kept < 20 for stream in run.engine.counts().streams.values())


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


def test_a_change_to_the_same_plan_is_none(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = []
    monkeypatch.setattr(Engine, "change", lambda engine, program: changes.append(program))
    table = pa.table({"ts": pa.array(range(20), pa.timestamp("s")), "k": [1] * 20})
    found = braid.run(
        TEXT, dict.fromkeys("rstu", table), plan=OLD, switches={1: OLD, 2: OLD}, batch_rows=5, strategy="parallel_track"
    )
    assert found.num_rows and not changes
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
