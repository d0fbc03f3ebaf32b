"""Whatever host runs a query, its result is the oracle's."""

from collections.abc import Callable, Collection
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import OUTER_JOINS, THREE_WAY_JOIN, random_rows, with_last_row
from tests.hosts.conftest import Feed, run_out, without_time

Tables = dict[str, pa.Table]
Host = Callable[[str, Tables], pa.Table]
"""Runs a query over tables."""

TWO = "FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"

INNER_JOINS = {
    "one attribute": THREE_WAY_JOIN,
    "chain": """SELECT a.n AS an, b.t AS bt, c.n AS cn FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS], c [UNBOUNDED]
                WHERE a.k = b.k AND b.t = c.t""",
    "theta": "SELECT a.n AS an, b.n AS bn FROM a [RANGE 4 SECONDS], b [RANGE 3 SECONDS] WHERE a.k < b.k + 1",
    "self join": "SELECT x.n AS xn, y.n AS yn FROM a [RANGE 9 SECONDS] AS x, a [NOW] AS y WHERE x.t = y.t AND y.k > 2",
    "one stream": "SELECT a.n * 2 AS twice, a.t FROM a [NOW] WHERE a.k % 2 = 0",
    "counted rows": "SELECT a.n AS an, b.n AS bn FROM a [ROWS 5], b [PARTITION BY t ROWS 1] WHERE a.k = b.k",
}
JOINS = INNER_JOINS | {
    "outer joins": OUTER_JOINS,
    "semi and anti joins": """SELECT a.n AS an, b.n AS bn FROM a [RANGE 9 SECONDS] JOIN b [RANGE 9 SECONDS] ON a.k = b.k
                              LEFT SEMI JOIN c [RANGE 3 SECONDS] ON c.k = a.k
                              LEFT ANTI JOIN c [RANGE 1 SECOND] AS d ON d.t = b.t WHERE a.n >= 0""",
    "existence": """SELECT a.n AS an FROM a [RANGE 9 SECONDS]
                    WHERE a.k IN (SELECT k FROM b [RANGE 9 SECONDS] WHERE b.t = a.t)
                      AND a.t NOT IN (SELECT t FROM c [NOW])""",
    "no existence": """SELECT a.n AS an, b.n AS bn FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS]
                       WHERE a.k <=> b.k AND NOT EXISTS (SELECT * FROM c [RANGE 2 SECONDS] WHERE c.k = a.k)""",
}
INNER_GROUPS = {
    "groups": f"""SELECT a.k, window.start, window.end AS ends, COUNT(*) AS n, SUM(b.n) AS s, MAX(b.t) AS `most of all`
                  {TWO} GROUP BY a.k, WINDOW(event_time, '10 seconds')""",
    "computed groups": f"""SELECT window.start, SUM(a.n) / COUNT(b.n) AS r, AVG(a.n) AS g, MIN(b.t) AS t
                           {TWO} GROUP BY WINDOW(event_time, '10 seconds', '4 seconds')
                           HAVING COUNT(*) > 20 AND MIN(a.n) > 3""",
}
GROUPS = INNER_GROUPS | {
    "groups of an outer join": """SELECT window.start, COUNT(*) AS n, COUNT(b.n) AS matched FROM a [RANGE 4 SECONDS]
                                  FULL JOIN b [RANGE 1 SECOND] ON a.k = b.k WHERE COALESCE(a.n, b.n) >= 0
                                  GROUP BY WINDOW(event_time, '3 seconds')""",
}
ONE_GROUP = f"SELECT COUNT(*) AS n, SUM(a.n) AS s, SUM(CAST(a.n AS DECIMAL(10, 2))) AS d {TWO}"

LINE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006)])
SITES = {"a": "paris", "b": "lyon", "c": "nice"}


def tables_abc() -> Tables:
    """Tables with some null keys, and a last row each that lets every result before it be decided."""
    tables = {}
    for seed, name in enumerate("abc"):
        table = random_rows(seed)
        is_null = np.random.default_rng(seed).random(table.num_rows) < 0.1
        keys = pa.array(table["k"].to_numpy(), pa.int64(), mask=is_null)
        tables[name] = with_last_row(table.set_column(1, "k", keys), key=-1 - seed)
    return tables


def local_host(text: str, tables: Tables) -> pa.Table:
    return braid.run(text, tables)


def local_host_in_batches(text: str, tables: Tables) -> pa.Table:
    return braid.run(text, tables, batch_rows=40, lateness="1 second")


def simulated_network(text: str, tables: Tables) -> pa.Table:
    return braid.simulate(text, tables, LINE, sites=SITES, sink="lyon", lateness="1 second", batch_rows=40).results


def spark_streams(session: Session, feed: Feed, tmp_path: Path) -> Host:
    def run(text: str, tables: Tables) -> pa.Table:
        for name, table in tables.items():
            session.stream(name, feed(name, table, 40), lateness="1 second")
        return without_time(run_out(session.sql(text, shards=4).dataframe, tmp_path))

    return run


def spark_tables(session: Session) -> Host:
    def run(text: str, tables: Tables) -> pa.Table:
        for name, table in tables.items():
            session.stream(name, session.spark.createDataFrame(table))
        return without_time(session.sql(text).dataframe.toArrow())

    return run


ON_SPARK = pytest.mark.xdist_group("spark")
LOCAL = ["local", "local in batches"]
NETWORK = "simulated network"
SPARK = ["Spark tables", "Spark streams"]


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Host:
    """The host of this name. Only those on Spark need a Spark, which is therefore not a parameter here."""
    match request.param:
        case "local":
            return local_host
        case "local in batches":
            return local_host_in_batches
        case "simulated network":
            return simulated_network
        case "Spark tables":
            return spark_tables(request.getfixturevalue("session"))
        case _:
            return spark_streams(*map(request.getfixturevalue, ["session", "feed", "tmp_path"]))


def runs(queries: Collection[str], hosts: Collection[str]) -> list[Any]:
    """The parameters of a test that asks several hosts the same. Those on Spark share a process."""
    return [pytest.param(name, host, marks=ON_SPARK if host in SPARK else ()) for name, host in product(queries, hosts)]


# Queries with outer joins and existence tests run at one site, so a network refuses them.
@pytest.mark.parametrize(
    ("name", "host"), [*runs(JOINS, LOCAL + SPARK), *runs(INNER_JOINS, [NETWORK])], indirect=["host"]
)
def test_results_are_those_of_the_oracle(name: str, host: Host) -> None:
    expected = oracle(JOINS[name], tables_abc())
    assert expected.num_rows > 5
    assert_same_rows(host(JOINS[name], tables_abc()), expected)


@pytest.mark.parametrize(
    ("name", "host"), [*runs(GROUPS, LOCAL + SPARK), *runs(INNER_GROUPS, [NETWORK])], indirect=["host"]
)
def test_groups_are_those_of_the_oracle(name: str, host: Host) -> None:
    expected = oracle(GROUPS[name], tables_abc())
    assert expected.num_rows > 5
    assert_same_rows(host(GROUPS[name], tables_abc()), expected, types=False)


@pytest.mark.parametrize("host", [*LOCAL, NETWORK, pytest.param("Spark tables", marks=ON_SPARK)], indirect=True)
def test_aggregates_without_group_by_are_those_of_the_oracle(host: Host) -> None:
    """Streams on Spark refuse them: their only group would never be complete."""
    assert_same_rows(host(ONE_GROUP, tables_abc()), oracle(ONE_GROUP, tables_abc()), types=False)


def test_not_exists_removes_some_results() -> None:
    text = JOINS["no existence"]
    everything = oracle(text.split("AND NOT EXISTS")[0], tables_abc())
    assert oracle(text, tables_abc()).num_rows < everything.num_rows
