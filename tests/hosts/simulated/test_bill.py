"""What a plan expects on each link is what crosses it: rates and row sizes are those of streams as they travel."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.model.statistics import Statistics
from braid.planning.partition.pmjoin import PMJoin

CITIES = braid.Topology.from_links(
    [("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009), ("nice", "rome", 0.007)]
)
SITES = {"a": "paris", "b": "lyon", "c": "nice"}
CHAIN = """SELECT a.value AS av, b.name AS bn, c.value AS cv
           FROM a [RANGE 400 MILLISECONDS], b [RANGE 600 MILLISECONDS], c [RANGE 500 MILLISECONDS]
           WHERE a.k = b.k AND b.j = c.j AND c.value < 800000000"""
ONE_KEY = """SELECT a.name AS an, c.value AS cv
             FROM a [RANGE 300 MILLISECONDS], b [RANGE 300 MILLISECONDS], c [RANGE 300 MILLISECONDS]
             WHERE a.k = b.k AND b.k = c.k"""
ROWS = 12_000


def stream(seed: int, rate: float) -> pa.Table:
    """Twelve seconds or more of rows with skewed keys, texts, and a column that no query needs."""
    choose = np.random.default_rng(seed)
    times = np.cumsum(choose.exponential(1e6 / rate, ROWS)).astype("int64") + 1_700_000_000_000_000
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": (80 * choose.random(ROWS) ** 1.3).astype("int64"),
            "j": choose.integers(0, 60, ROWS),
            "value": choose.integers(0, 1_000_000_000, ROWS),
            "name": pa.array([f"name {number}" for number in choose.integers(0, 1_000, ROWS)]),
            "unused": pa.array([f"text {number}" for number in choose.integers(0, 1_000_000, ROWS)]),
        }
    )


def sample(seed: int) -> dict[str, pa.Table]:
    return {name: stream(10 * seed + number, 1_000 - 50 * number) for number, name in enumerate("abc")}


@pytest.fixture(scope="module", params=[CHAIN, ONE_KEY], ids=["chain", "one key"])
def measured(request: pytest.FixtureRequest) -> tuple[str, Statistics]:
    """A query, and what a simulation measures of a sample of its streams."""
    text = request.param
    return text, braid.simulate(text, sample(1), CITIES, sites=SITES, batch_rows=2_000).statistics


def rates_by_key(tables: dict[str, pa.Table], known: Statistics) -> dict[str, dict[int, float]]:
    """The histograms of the key of each stream."""
    histograms = {}
    for name, table in tables.items():
        keys, counts = np.unique(table.column("k").to_numpy(), return_counts=True)
        rates = known.rates[name] * counts / ROWS
        histograms[f"{name}.k"] = dict(zip(keys.tolist(), rates.tolist(), strict=True))
    return histograms


@pytest.mark.parametrize("planner", ["exact", "in_network", "greedy", "best_sequences", PMJoin(parts=2)], ids=str)
def test_links_carry_what_was_planned(planner: str | PMJoin, measured: tuple[str, Statistics]) -> None:
    """Within 10%, on other rows of the same kind than those that were measured."""
    text, known = measured
    simulation = braid.simulate(
        text,
        sample(2),
        CITIES,
        sites=SITES,
        sink="rome",
        planner=planner,
        statistics=replace(known, histograms=rates_by_key(sample(1), known)),
        batch_rows=2_000,
        seed=3,
    )
    assert simulation.results.num_rows > 1_000
    for link, traffic in simulation.links.items():
        assert traffic.planned is not None
        assert traffic.planned * simulation.seconds == pytest.approx(traffic.bytes, rel=0.1), link


RARE = """SELECT a.value AS av, b.name AS bn FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS], c [RANGE 20 SECONDS]
          WHERE a.k = b.k AND b.k = c.k AND a.value < 100000000"""


@pytest.mark.parametrize("batch_rows", [None, 60], ids=["as many batches of each", "batches of as many rows"])
def test_links_carry_what_was_planned_in_small_batches_of_streams_of_other_rates(batch_rows: int | None) -> None:
    """Most bytes are what each batch has of its own, also one without rows: so it counts when batches come."""
    choose = np.random.default_rng(5)

    def rows(rate: int) -> pa.Table:
        table = stream(rate, rate).slice(0, 40 * rate)
        return table.set_column(1, "k", pa.array(choose.integers(0, 1_500, len(table))))

    streams = {name: rows(rate) for name, rate in {"a": 12, "b": 90, "c": 40}.items()}
    simulation = braid.simulate(RARE, streams, CITIES, sites=SITES, sink="rome", batch_rows=batch_rows)
    assert simulation.results.num_rows > 10
    for link, traffic in simulation.links.items():
        assert traffic.planned is not None
        assert traffic.planned * simulation.seconds == pytest.approx(traffic.bytes, rel=0.1), link


DEAR = braid.Topology.from_links(
    [
        ("paris", "nice", {"latency": 0.001, "price_per_gb": 0.9}),
        ("paris", "lyon", {"latency": 0.1, "price_per_gb": 0.1}),
        ("lyon", "nice", {"latency": 0.1, "price_per_gb": 0.2}),
    ]
)
PAIR = "SELECT a.value FROM a [RANGE 100 MILLISECONDS], c [RANGE 100 MILLISECONDS] WHERE a.k = c.k"


@pytest.mark.parametrize(
    ("cost", "used"), [("money", {"paris - lyon", "lyon - nice"}), ("communication", {"paris - nice"})]
)
def test_batches_take_the_path_of_least_cost(cost: str, used: set[str]) -> None:
    """The direct link is the fastest and the dearest."""
    streams = {name: sample(1)[name].slice(0, 500) for name in "ac"}
    simulation = braid.simulate(PAIR, streams, DEAR, sites=SITES, sink="nice", planner="at_sink", cost=cost)
    assert {link for link, traffic in simulation.links.items() if traffic.rows} == used
    (charge,) = (charge for charge in simulation.bill.charges if charge.source != charge.target)
    assert {traffic.planned for traffic in simulation.links.values()} == {charge.volume}
    if cost == "money":
        assert charge.amount == pytest.approx(charge.volume * 3_600 / 1e9 * 0.3)


def test_without_sizes_no_bytes_are_planned() -> None:
    known = Statistics(rates={"a": 1_000, "c": 900}, selectivities={"a.k = c.k": 0.02})
    streams = {name: sample(1)[name].slice(0, 500) for name in "ac"}
    simulation = braid.simulate(PAIR, streams, CITIES, sites=SITES, sink="nice", statistics=known)
    assert simulation.links
    assert all(traffic.planned is None for traffic in simulation.links.values())
