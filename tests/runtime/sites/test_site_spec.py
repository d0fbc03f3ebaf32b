"""What a site must know of its work travels as JSON, whatever the plan looks like."""

from dataclasses import replace

import pyarrow as pa
import pytest

import braid
from braid.language import parse
from braid.model.graph import AttributeClass
from braid.model.partitions import HashPartitions, Partitioning, RangePartition, ValuePartition
from braid.model.program import ALWAYS, Guard
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.planning.planners import PLANNERS
from braid.runtime.sites.compiling import compile_deployment
from braid.runtime.sites.guard_json import guard_from_json, guard_to_json
from braid.runtime.sites.intake import intake_channels
from braid.runtime.sites.offer import offered_streams
from braid.runtime.sites.site_spec import SiteSpec
from braid.testing.networks import NINE_SITES

TEXT = """SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id
          FROM a [RANGE 8 SECONDS], b [RANGE 3 SECONDS], c [UNBOUNDED] WHERE a.k = b.k AND b.j = c.j AND a.id > 3"""
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "id": pa.int64(), "k": pa.int32(), "j": pa.string()})
STREAMS = {name: Stream(name, SCHEMA, "ts", 5) for name in "abc"}
ORIGINS = {"a": "n0", "b": "n5", "c": "n8"}
KNOWN = Statistics(
    rates={"a": 10, "b": 12, "c": 9},
    lengths={"c": 12},
    selectivities={"a.k = b.k": 0.3, "b.j = c.j": 0.25, "a.id > 3": 0.5},
    histograms={"a.k": {0: 6.0, 1: 3.0, 2: 1.0}, "b.k": {0: 1.0, 1: 5.0, 2: 6.0}},
    sites=ORIGINS,
)


@pytest.mark.parametrize("planner", sorted(PLANNERS))
def test_the_work_of_every_site_is_the_same_after_a_journey_as_json(planner: str) -> None:
    query = parse(TEXT, STREAMS)
    deployment = braid.plan(query, KNOWN, NINE_SITES, planner=planner, sink="n4")
    for site, work in compile_deployment("airport", deployment, intake_channels("airport", ORIGINS)).items():
        spec = SiteSpec("airport", site, TEXT, tuple(STREAMS.values()), work, "event_time", shards=2)
        spec = spec.spread(2, tuple(range(10, 10 + len(spec.shard_keys))))
        read = SiteSpec.from_json(spec.to_json())
        assert read == spec
        assert read.label_of == spec.label_of
        assert {name: node.query for name, node in read.nodes.items()} == {
            name: node.query for name, node in spec.nodes.items()
        }


def test_what_a_site_reuses_and_offers_is_the_same_after_a_journey_as_json() -> None:
    first = braid.plan(parse(TEXT.replace(" AND a.id > 3", ""), STREAMS), KNOWN, NINE_SITES, sink="n4")
    offers = list(offered_streams(compile_deployment("first", first, intake_channels("first", ORIGINS), shared=True)))
    assert {offer.advertisement.site for offer in offers} <= set(first.placement.values())
    text = TEXT.replace("RANGE 8 SECONDS]", "RANGE 5 SECONDS] AS x").replace("a.", "x.")
    query = parse(text, STREAMS)
    known = replace(KNOWN, rates={"x": 10, "b": 12, "c": 9}, sites={"x": "n0", "b": "n5", "c": "n8"})
    advertised = [offer.advertisement for offer in offers]
    second = braid.plan(query, known, NINE_SITES, sink="n4", advertised=advertised)
    works = compile_deployment(
        "second", second, intake_channels("second", known.sites), since=17, offers=offers, shared=True
    )
    streams = [stream for work in works.values() for made in work.fragments.values() for stream in made.inputs]
    (reused,) = {stream.reused for stream in streams if stream.reused is not None}
    assert [str(condition) for condition in reused.remaining] == ["x.id > 3"]
    for site, work in works.items():
        spec = SiteSpec("second", site, text, tuple(STREAMS.values()), work, "event_time")
        assert SiteSpec.from_json(spec.to_json()) == spec


def attribute_class() -> AttributeClass:
    return parse(TEXT, STREAMS).graph.classes[0]


@pytest.mark.parametrize(
    "partitions",
    [
        HashPartitions(attribute_class(), 5, frozenset({0, 3})),
        ValuePartition(attribute_class(), frozenset({1, 7}), others=True, ranges=((2, 3), (5, 6))),
        ValuePartition(attribute_class(), frozenset({"Orly", "Nice"})),
        RangePartition(attribute_class(), 3, None),
        RangePartition(attribute_class(), None, 3.5),
    ],
)
def test_guards_keep_their_keys_and_times(partitions: Partitioning) -> None:
    query = parse(TEXT, STREAMS)
    for guard in (ALWAYS, Guard(partitions), Guard(partitions, since=3, until=9)):
        assert guard_from_json(guard_to_json(guard, query), query) == guard
