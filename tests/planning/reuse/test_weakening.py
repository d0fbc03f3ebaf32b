"""Joins with weaker filters: which conditions and columns they have, and how they are written."""

from collections.abc import Collection

import pyarrow as pa
import pytest

import braid
from braid.language import parse
from braid.model.expressions.expression import Column
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.planning.deployment import Deployment
from braid.planning.plan import plan
from braid.planning.problem import Problem
from braid.planning.reuse.weakening import WeakerJoin, reading, weaker_join
from braid.planning.solution.tree import TreeSolution

LINE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006)])
SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "k": pa.int64(),
        "v": pa.int64(),
        "w": pa.float64(),
        "t": pa.string(),
        "a`b c": pa.int64(),
    }
)
STREAMS = {name: Stream(name, SCHEMA, "ts") for name in ("a", "b", "c d")}
SELECT = "SELECT a.v, b.v AS bv FROM a [RANGE 1.5 SECONDS], b [RANGE 1 MINUTE SLIDE 500 MILLISECONDS] WHERE a.k = b.k"
OTHER = "SELECT y.v FROM a [RANGE 1 SECOND] AS x, b [RANGE 1 MINUTE SLIDE 500 MILLISECONDS] AS y WHERE x.k = y.k"
ALL = [Column(alias, name) for alias in "ab" for name in SCHEMA.names]


def known(query: Query) -> Statistics:
    return Statistics(
        rates=dict.fromkeys(query.aliases, 10),
        selectivities={str(predicate): 0.1 for predicate in query.predicates},
        sites=dict(zip(query.aliases, ["paris", "nice"], strict=True)),
    )


def planned(text: str) -> Deployment:
    query = parse(text, STREAMS)
    return plan(query, known(query), LINE, sink="lyon")


def weakened(running: Deployment, text: str, available: Collection[Column]) -> WeakerJoin | None:
    """The join for a running query and a later one."""
    query = parse(text, STREAMS)
    model = running.solution.problem.model
    problem = Problem.of(query, known(query), LINE, model, "lyon", running.advertise(weaken=True))
    (offer,) = problem.offers
    return weaker_join(running, offer.match, problem, available)


@pytest.mark.parametrize(
    ("running", "later", "conditions"),
    [
        ("a.v > 100", "x.v > 50", ["x.v > 50"]),
        ("a.v > 100", "x.v < 50", []),
        ("a.v > 100", "1 = 1", []),
        ("a.v > 100 AND a.w < 3", "x.v > 50 AND x.w < 2", ["x.v > 50", "x.w < 3"]),
        ("a.v > 100 AND b.t = 'it''s'", "x.v > 100", ["x.v > 100"]),
        ("a.v > 100 AND b.t = 'it''s'", "y.t = 'it''s'", ["y.t = 'it''s'"]),
        ("a.v > 100 AND a.v < b.v", "x.v < y.v", ["x.v < y.v"]),
        ("a.`a``b c` = 1 AND b.`a``b c` > 2", "y.`a``b c` > 1", ["y.a`b c > 1"]),
    ],
)
def test_it_has_the_conditions_that_both_queries_imply(running: str, later: str, conditions: list[str]) -> None:
    join = weakened(planned(f"{SELECT} AND {running}"), f"{OTHER} AND {later}", ALL)
    assert join is not None
    assert sorted(map(str, join.plan.query.predicates)) == sorted([*conditions, "x.k = y.k"])


def test_it_is_planned_as_the_running_query_has_planned_it() -> None:
    running = planned(f"{SELECT} AND a.v > 100")
    join = weakened(running, f"{OTHER} AND x.v > 50", ALL)
    assert join is not None
    assert join.names == {"x": "a", "y": "b"}
    assert list(join.plan.placement.values()) == list(running.placement.values())
    assert [str(source) for source in join.plan.query.sources] == [
        "a [RANGE 1500 MILLISECONDS] AS x",
        "b [RANGE 1 MINUTE SLIDE 500 MILLISECONDS] AS y",
    ]
    # The later query needs v of b, the running one v of both.
    assert [str(column) for column in join.plan.query.selected] == ["y.v", "x.v"]
    (advertised,) = join.plan.advertised
    plan_of_running = reading(running, advertised)
    assert plan_of_running is not None
    assert plan_of_running.query == running.query
    assert isinstance(plan_of_running.solution, TreeSolution)
    (match,) = plan_of_running.solution.reused(plan_of_running.solution.tree)
    assert [str(predicate) for predicate in match.remaining] == ["a.v > 100"]


def test_it_needs_no_column_that_is_not_there() -> None:
    of_a = [column for column in ALL if column.source == "a"]
    assert weakened(planned(f"{SELECT} AND a.v > 100"), f"{OTHER} AND x.v > 50", of_a) is None
