"""Which derived streams can serve a query, and when joining again is cheaper."""

from dataclasses import replace
from datetime import datetime
from itertools import count, pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import braid
from braid.errors import DeadlineError, PlanError
from braid.language import bind
from braid.model.advertisement import Advertisement, subquery
from braid.model.expressions.expression import Column
from braid.model.network.generators import fully_connected
from braid.model.network.topology import Topology
from braid.model.program import Filter
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.model.tree import Reused, leaves
from braid.planning.cost.models import MODELS
from braid.planning.deadline import Deadline
from braid.planning.deployment import Deployment
from braid.planning.plan import plan
from braid.planning.problem import Problem
from braid.planning.reuse.matching import matches
from braid.testing import assert_same_rows

WINDOWS = "a [RANGE 10 SECONDS], b [RANGE 10 SECONDS]"


def serves(offered: str, asked: str) -> list[tuple[set[str], list[str]]]:
    """For each match: the streams of the query that the offered join serves, and the conditions that remain."""
    advertisement = Advertisement(braid.parse(f"SELECT * FROM {offered}"), "here")
    return [
        (set(match.streams), [str(predicate) for predicate in match.remaining])
        for match in matches(braid.parse(f"SELECT * FROM {asked}"), advertisement)
    ]


def test_the_same_join_serves_under_any_aliases() -> None:
    asked = "a [RANGE 10 SECONDS] AS x, b [RANGE 10 SECONDS] AS y, c [NOW] WHERE y.k = x.k AND y.j = c.j"
    assert serves(f"{WINDOWS} WHERE a.k = b.k", asked) == [({"x", "y"}, [])]


@pytest.mark.parametrize(
    ("offered", "asked", "remaining"),
    [
        ("a.k = b.k", "a.k = b.k AND a.v = 3", ["a.v = 3"]),
        ("a.k = b.k AND a.v < 10", "a.k = b.k AND a.v < 5", ["a.v < 5"]),
        ("a.k = b.k AND a.v < 10", "a.k = b.k AND a.v = 7", ["a.v = 7"]),
        ("a.k = b.k AND a.v < 10", "a.k = b.k AND 10 > a.v", []),
        ("a.k = b.k", "a.k = b.k AND a.v < b.v", ["a.v < b.v"]),
        ("a.k = b.k AND a.v < 10", "a.k = b.k", None),
        ("a.k = b.k AND a.v < 10", "a.k = b.k AND a.v < 11", None),
        ("a.k = b.k AND a.v < 10", "a.k = b.k AND b.v < 5", None),
        ("a.k = b.k AND a.j = b.j", "a.k = b.k", None),
        ("a.k = b.j", "a.k = b.k", None),
        ("a.k = b.k AND a.v <= 10", "a.k = b.k AND a.v < 9.5", ["a.v < 9.5"]),
        ("a.k = b.k AND a.v < b.v", "a.k = b.k AND b.v > a.v", []),
        ("a.k = b.k AND a.v < b.v", "a.k = b.k AND b.v < a.v", None),
        # Converted to doubles both constants are equal: then the second condition passes rows that the first does not.
        ("a.k = b.k AND a.v < 9007199254740993", "a.k = b.k AND a.v <= 9007199254740992", None),
        ("a.k = b.k AND a.v < 9007199254740994", "a.k = b.k AND a.v < 9007199254740992", ["a.v < 9007199254740992"]),
        # A text may be converted to a number: as numbers, 5 is less than 10.
        ("a.k = b.k AND a.v < '5'", "a.k = b.k AND a.v < '10'", None),
        ("a.k = b.k AND a.v <> '05'", "a.k = b.k AND a.v = '5'", None),
        ("a.k = b.k AND a.v <= '5'", "a.k = b.k AND a.v = '5'", ["a.v = '5'"]),
        ("a.k = b.k AND a.v = 1", "a.k = b.k AND a.v = TRUE", None),
        ("a.k = b.k AND a.v < 1e-1", "a.k = b.k AND a.v < 0.1", None),
        # A float differs from the double with the same digits, and different digits may give the same float.
        ("a.k = b.k AND a.v <= 0.1F", "a.k = b.k AND a.v <= 0.1D", None),
        ("a.k = b.k AND a.v < 0.1000000001F", "a.k = b.k AND a.v <= 0.1F", None),
        ("a.k = b.k AND a.v <= 0.1F", "a.k = b.k AND a.v < 0.1F", ["a.v < 0.1"]),
        # Python cannot compare a time that has a zone with one that has none.
        ("a.k = b.k AND a.v < TIMESTAMP '2024-01-02'", "a.k = b.k AND a.v < TIMESTAMP_LTZ '2024-01-01'", None),
        ("a.k = b.k", "a.k <=> b.k", None),
        ("a.k < b.k", "a.k <= b.k", None),
        ("a.k = b.k", "a.j = b.j", None),
    ],
)
def test_offered_conditions_must_follow_from_those_asked_for(
    offered: str, asked: str, remaining: list[str] | None
) -> None:
    served = serves(f"{WINDOWS} WHERE {offered}", f"{WINDOWS} WHERE {asked}")
    assert served == ([] if remaining is None else [({"a", "b"}, remaining)])


@pytest.mark.parametrize(
    ("offered", "asked", "served"),
    [
        ("[RANGE 20 SECONDS]", "[RANGE 10 SECONDS]", True),
        ("[RANGE 10 SECONDS]", "[RANGE 20 SECONDS]", False),
        ("[RANGE 20 SECONDS SLIDE 5 SECONDS]", "[RANGE 10 SECONDS SLIDE 5 SECONDS]", True),
        ("[RANGE 20 SECONDS SLIDE 5 SECONDS]", "[RANGE 10 SECONDS]", False),
        ("[ROWS 20]", "[ROWS 20]", True),
        ("[ROWS 20]", "[ROWS 10]", False),
        ("[RANGE 10 SECONDS]", "[NOW]", True),
        ("[RANGE 10 SECONDS SLIDE 5 SECONDS]", "[NOW]", False),
        ("[ROWS 20]", "[RANGE 10 SECONDS]", False),
        ("[UNBOUNDED]", "[RANGE 10 SECONDS]", True),
        ("[RANGE 10 SECONDS]", "[UNBOUNDED]", False),
        ("[NOW]", "[NOW]", True),
    ],
)
def test_an_offered_window_must_hold_all_rows_of_the_window_asked_for(offered: str, asked: str, served: bool) -> None:
    rest = ", b [NOW] WHERE a.k = b.k"
    assert bool(serves(f"a {offered}{rest}", f"a {asked}{rest}")) is served


def test_rows_windows_count_before_filters_so_filters_may_be_checked_after_the_join() -> None:
    rows = "a [ROWS 5], b [ROWS 5] WHERE a.k = b.k"
    assert serves(rows, rows) == [({"a", "b"}, [])]
    assert serves(rows, f"{rows} AND a.v < 2") == [({"a", "b"}, ["a.v < 2"])]
    times = pa.array([datetime(2024, 1, 1, 12, 0, second) for second in range(20)], pa.timestamp("us"))
    stream = pa.table(
        {"ts": times, "k": [second % 2 for second in range(20)], "v": [second % 3 for second in range(20)]}
    )
    streams = {"a": stream, "b": stream}
    joined = braid.run(f"SELECT a.v, b.v AS other FROM {rows}", streams)
    asked = braid.run(f"SELECT a.v, b.v AS other FROM {rows} AND a.v < 2", streams)
    assert 0 < len(asked) < len(joined)
    assert_same_rows(asked, joined.filter(pc.field("v") < 2))


def test_an_equality_that_follows_through_another_stream_is_checked() -> None:
    asked = f"{WINDOWS}, c [NOW] WHERE a.k = c.k AND c.k = b.k AND a.j = b.j"
    assert serves(f"{WINDOWS} WHERE a.j = b.j", asked) == [({"a", "b"}, ["a.k = b.k"])]
    assert serves(f"{WINDOWS} WHERE a.k = b.k", asked) == [({"a", "b"}, ["a.j = b.j"])]


@pytest.mark.parametrize(
    ("asked", "advertised"),
    [
        ("a.k = c.k AND c.k = b.k", ["a.k = b.k"]),
        ("a.k = c.x AND a.j = c.x AND a.v = b.v", ["a.v = b.v", "a.k = a.j"]),
        ("a.k = b.k AND b.k = c.k", ["a.k = b.k"]),
        ("a.k = b.k AND a.j = c.j", ["a.k = b.k"]),
    ],
)
def test_an_advertisement_includes_conditions_that_follow_through_other_streams(
    asked: str, advertised: list[str]
) -> None:
    query = braid.parse(f"SELECT * FROM {WINDOWS}, c [NOW] WHERE {asked}")
    part = subquery(query, frozenset("ab"))
    assert [str(predicate) for predicate in part.predicates] == advertised
    # It serves the query it is a part of, but not a query that does not imply the additional conditions.
    (match,) = matches(query, Advertisement(part, "here"))
    assert match.remaining == ()
    weaker = f"SELECT * FROM {WINDOWS} WHERE {advertised[0] if len(advertised) > 1 else 'a.x = b.x'}"
    assert list(matches(braid.parse(weaker), Advertisement(part, "here"))) == []


TIME = pa.timestamp("us")


def declaring(text: str) -> braid.Query:
    """A query over streams a and b with integer keys and c with double keys."""
    kinds = {"a": pa.int64(), "b": pa.int64(), "c": pa.float64()}
    streams = {name: Stream(name, pa.schema([("ts", TIME), ("k", kind)]), "ts") for name, kind in kinds.items()}
    return bind(braid.parse(text), streams)


def test_an_implied_equality_is_compared_in_the_type_of_the_stream_between() -> None:
    """Large integers that differ may be equal as doubles."""
    query = declaring(f"SELECT * FROM {WINDOWS}, c [NOW] WHERE a.k = c.k AND c.k = b.k")
    part = subquery(query, frozenset("ab"))
    assert [str(predicate) for predicate in part.predicates] == ["CAST(a.k AS double) = CAST(b.k AS double)"]
    (match,) = matches(query, Advertisement(part, "here"))
    assert match.remaining == ()
    exact = declaring(f"SELECT * FROM {WINDOWS} WHERE a.k = b.k")
    assert list(matches(exact, Advertisement(part, "here"))) == []
    assert list(matches(query, Advertisement(exact, "here"))) == []


def test_equalities_in_different_types_do_not_imply_a_third() -> None:
    offered = f"SELECT * FROM {WINDOWS}, c [NOW] WHERE a.k = b.k AND b.k = c.k"
    (match,) = matches(declaring(f"{offered} AND a.k = c.k"), Advertisement(declaring(offered), "here"))
    assert [str(predicate) for predicate in match.remaining] == ["a.k = c.k"]
    (match,) = matches(declaring(offered), Advertisement(declaring(f"{offered} AND c.k = b.k"), "here"))
    assert match.remaining == ()


@pytest.mark.parametrize(("time", "lateness", "served"), [("ts", 0, True), ("created", 0, False), ("ts", 5, False)])
def test_streams_are_the_same_if_they_are_declared_alike(time: str, lateness: int, served: bool) -> None:
    text = "SELECT * FROM a [NOW], b [NOW] WHERE a.k = b.k"
    schema = pa.schema([("ts", TIME), ("created", TIME), ("k", pa.int64())])

    def declared(time: str, lateness: int) -> braid.Query:
        return bind(braid.parse(text), {"a": Stream("a", schema, time, lateness), "b": Stream("b", schema, "ts")})

    asked = declared(time, lateness)
    assert bool(list(matches(asked, Advertisement(declared("ts", 0), "here")))) is served
    # A query without declarations matches streams with any declaration.
    assert list(matches(asked, Advertisement(braid.parse(text), "here")))
    assert list(matches(braid.parse(text), Advertisement(asked, "here")))


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("x.k FROM a [NOW] AS x, b [NOW] WHERE x.k = b.k", True),
        ("x.k FROM a [NOW] AS x, b [NOW] WHERE x.k = b.k AND b.ts > x.ts", False),
        ("x.k, b.k AS other FROM a [NOW] AS x, b [NOW] WHERE x.k = b.k", False),
        ("y.k FROM a [NOW] AS x, b [NOW], b [NOW] AS y WHERE x.k = b.k AND b.k = y.k", True),
        ("c.k FROM a [NOW] AS x, b [NOW], c [NOW] WHERE x.k = b.k AND b.ts = c.ts", False),
        ("* FROM a [NOW] AS x, b [NOW] WHERE x.k = b.k", False),
    ],
)
def test_a_derived_stream_must_carry_the_columns_that_a_query_needs(asked: str, served: bool) -> None:
    offered = declaring("SELECT * FROM a [NOW], b [NOW] WHERE a.k = b.k")
    carries = Advertisement(offered, "here", columns=frozenset({Column("a", "k"), Column("a", "ts")}))
    assert bool(list(matches(declaring(f"SELECT {asked}"), carries))) is served
    # Without declarations it is not known what a query needs.
    assert not list(matches(braid.parse(f"SELECT {asked}"), carries))


def test_a_stream_joined_with_itself_can_be_served_both_ways() -> None:
    both = "a [NOW] AS l, a [NOW] AS r WHERE l.k = r.k"
    assert len(serves(both, both)) == 2


def test_every_assignment_of_aliases_is_found() -> None:
    windows = "a [NOW] AS l, a [NOW] AS m, a [NOW] AS r"
    on_one_key = f"{windows} WHERE l.k = m.k AND m.k = r.k"
    in_a_row = f"{windows} WHERE l.k = m.j AND m.k = r.j"
    assert len(serves(on_one_key, on_one_key)) == 6
    assert len(serves(in_a_row, in_a_row)) == 1
    assert serves(in_a_row, f"{windows}, a [NOW] AS s WHERE r.k = m.j AND m.k = s.j AND s.k = l.j") == [
        ({"m", "s", "l"}, []),
        ({"r", "m", "s"}, []),
    ]


def self_join(streams: int) -> tuple[braid.Query, Statistics]:
    names = [f"s{number}" for number in range(streams)]
    equalities = [f"{one}.k = {other}.k" for one, other in pairwise(names)]
    windows = ", ".join(f"a [RANGE 1 SECOND] AS {name}" for name in names)
    query = braid.parse(f"SELECT * FROM {windows} WHERE {' AND '.join(equalities)}")
    return query, Statistics(rates={"a": 1}, selectivities=dict.fromkeys(equalities, 0.1), sites={"a": "left"})


def test_a_stream_joined_with_itself_many_times_does_not_try_every_assignment() -> None:
    query, known = self_join(7)
    first = plan(query, known, LINE)
    assert isinstance(plan(query, known, LINE, advertised=first.advertised).tree, Reused)


def test_the_deadline_is_checked_for_every_assignment_of_aliases() -> None:
    query, known = self_join(7)
    ticks = count()
    deadline = Deadline.of("exact", 500, lambda: float(next(ticks)))
    with pytest.raises(DeadlineError, match="'exact' did not finish within 500 s"):
        Problem.of(query, known, LINE, MODELS["network_usage"], None, [Advertisement(query, "left")], deadline)


@pytest.mark.parametrize(
    "asked",
    [
        "a.*, b.* FROM a [NOW], b [NOW] WHERE a.k = b.k AND NOT EXISTS (SELECT * FROM c [NOW] WHERE c.k = a.k)",
        "a.k, count(*) AS n FROM a [NOW], b [NOW] WHERE a.k = b.k GROUP BY a.k",
    ],
)
def test_only_joins_are_advertised(asked: str) -> None:
    with pytest.raises(PlanError, match="an advertised query joins streams and keeps all rows; leave out"):
        Advertisement(braid.parse(f"SELECT {asked}"), "here")


QUERY = braid.parse("SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k AND a.v = 3")
KNOWN = Statistics(
    rates={"a": 100, "b": 100},
    selectivities={"a.k = b.k": 0.01, "a.v = 3": 0.1},
    sites={"a": "left", "b": "right"},
)
LINE = Topology.from_links([("left", "right", 1.0), ("right", "far", 50.0)])


def test_a_derived_stream_is_reused_if_that_is_cheaper() -> None:
    wider = braid.parse("SELECT * FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k")
    near, far = Advertisement(wider, "left"), Advertisement(wider, "far")
    alone = plan(QUERY, KNOWN, LINE, sink="right")
    reusing = plan(QUERY, KNOWN, LINE, sink="left", advertised=[far, near])
    assert alone.cost == pytest.approx(10)
    assert reusing.cost == 0
    assert [leaf.site for leaf in leaves(reusing.tree) if isinstance(leaf, Reused)] == ["left"]
    # The filter that the derived stream does not have is checked at the site of the derived stream.
    assert [str(step.predicate) for step in reusing.programs["left"].instructions if isinstance(step, Filter)] == [
        "a.v = 3"
    ]
    # Joining again costs less than shipping the derived stream from far away.
    assert plan(QUERY, KNOWN, LINE, sink="right", advertised=[far]).cost == alone.cost


def test_a_deployment_advertises_every_join_it_makes() -> None:
    text = "SELECT a.k FROM a [NOW], b [NOW], c [NOW] WHERE a.k = b.k AND b.j = c.j AND a.v = 1"
    known = Statistics(
        rates={"a": 1, "b": 2, "c": 3},
        selectivities={"a.k = b.k": 0.1, "b.j = c.j": 0.1},
        sites={"a": "n0", "b": "n1", "c": "n2"},
    )
    deployment = plan(braid.parse(text), known, fully_connected(3))
    streams = [frozenset(offer.query.aliases) for offer in deployment.advertised]
    assert streams == [merge.streams for merge in deployment.placement]
    assert [offer.site for offer in deployment.advertised] == list(deployment.placement.values())
    again = plan(braid.parse(text), known, fully_connected(3), advertised=deployment.advertised)
    assert again.cost == 0


def test_a_filter_is_weakened_if_that_is_cheaper_than_another_join() -> None:
    def asking(value: int) -> braid.Query:
        return braid.parse(f"SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k AND a.v = {value}")

    known = Statistics(
        rates={"a": 100, "b": 100},
        selectivities={"a.k = b.k": 0.01, "a.v = 3": 0.1, "a.v = 4": 0.1},
        sites={"a": "right", "b": "left"},
    )
    first = plan(asking(3), known, LINE, sink="far")
    strict = plan(asking(4), known, LINE, sink="far", advertised=first.advertise())
    assert strict.cost == first.cost
    assert list(first.placement.values()) == ["left"]
    again = plan(asking(4), known, LINE, sink="far", advertised=first.advertise(weaken=True))
    # The rows of a with the other value are shipped too, and the result of this query; b is at the join already.
    assert [charge.what for charge in again.bill.charges] == ["let more through: a", "deliver a ⋈ b"]
    assert again.bill.charges[0].amount == pytest.approx(100 * 0.1 * 1.0)
    assert again.cost == pytest.approx(first.cost)
    third = plan(asking(4), known, LINE, sink="left", advertised=again.advertised)
    assert third.cost == 0


def test_weakening_also_charges_for_derived_streams_below_a_derived_stream() -> None:
    def asking(value: int) -> braid.Query:
        windows = ", ".join(f"{name} [RANGE 1 SECOND]" for name in "abc")
        return braid.parse(f"SELECT * FROM {windows} WHERE a.k = b.k AND b.j = c.j AND a.v = {value}")

    star = Topology.from_links([("left", "middle", 1.0), ("right", "middle", 1.0)])
    known = Statistics(
        rates={"a": 100, "b": 10, "c": 5},
        selectivities={"a.k = b.k": 0.1, "b.j = c.j": 0.1, "a.v = 3": 0.1, "a.v = 4": 0.1, "a.v = 5": 0.1},
        sites={"a": "left", "b": "right", "c": "left"},
    )

    def planned(query: braid.Query, *advertised: Advertisement) -> Deployment:
        return plan(query, known, star, sink="middle", advertised=advertised)

    joined = braid.parse("SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k AND a.v = 3")
    first = planned(joined)
    assert paid(first) == {"ship a": 10, "ship b": 10}
    second = planned(asking(4), *first.advertise(weaken=True))
    assert paid(second) == {"let more through: a": 10, "ship c": 5}
    assert [(offer.name, str(condition)) for offer, condition in second.weakened] == [("a ⋈ b", "a.v = 3")]
    assert "\na ⋈ b at middle must let more through than a.v = 3\n" in second.explain()
    third = planned(asking(5), *second.advertise(weaken=True))
    assert isinstance(third.tree, Reused)
    assert paid(third) == {"let more through: a": 10}
    assert [(offer.name, str(condition)) for offer, condition in third.weakened] == [("a ⋈ b ⋈ c", "a.v = 4")]
    # If the first deployment does not allow weakening, the second cannot allow it either.
    again = planned(asking(3), *first.advertise())
    assert paid(again) == {"ship c": 5}
    assert not any(offer.may_weaken for offer in again.advertise(weaken=True))


def paid(deployment: Deployment) -> dict[str, float]:
    return {charge.what: pytest.approx(charge.amount) for charge in deployment.bill.charges if charge.amount}


def test_filters_may_be_weakened_if_nothing_is_shipped() -> None:
    known = replace(KNOWN, sites={"a": "left", "b": "left"})
    (offered,) = plan(QUERY, known, LINE, sink="left").advertise(weaken=True)
    assert (offered.flows, offered.may_weaken) == ((), True)
    other = braid.parse(QUERY.text.replace("a.v = 3", "a.v = 4"))
    assert plan(other, known, LINE, sink="left", advertised=[offered]).weakened == ((offered, QUERY.predicates[1]),)
    # A derived stream that serves without weakening is preferred.
    whole = Advertisement(braid.parse(QUERY.text.replace(" AND a.v = 3", "")), "left")
    assert plan(other, known, LINE, sink="left", advertised=[offered, whole]).weakened == ()


def test_a_condition_on_no_stream_is_advertised_only_where_it_is_checked() -> None:
    """The first stream of a query checks it, so joins of the other streams still have rows."""
    query = braid.parse("SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE 1 = 0 AND a.k = b.k AND b.k = c.k")
    assert [str(predicate) for predicate in subquery(query, frozenset("ab")).predicates] == ["1 = 0", "a.k = b.k"]
    part = subquery(query, frozenset("bc"))
    assert [str(predicate) for predicate in part.predicates] == ["b.k = c.k"]
    nothing = braid.parse("SELECT * FROM b [NOW], c [NOW] WHERE 1 = 0 AND b.k = c.k")
    (match,) = matches(nothing, Advertisement(part, "here"))
    assert [str(predicate) for predicate in match.remaining] == ["1 = 0"]
    # A query whose result is always empty can reuse a join that is always empty, whichever streams check it.
    (match,) = matches(query, Advertisement(nothing, "here"))
    assert match.remaining == ()


def test_a_subquery_has_only_the_conditions_on_its_streams() -> None:
    part = subquery(QUERY, frozenset({"a"}))
    assert [str(predicate) for predicate in part.predicates] == ["a.v = 3"]
