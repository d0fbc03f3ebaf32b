"""`braid explain`, `braid plan` and the list of `braid bench`."""

import json
from pathlib import Path

import pytest

from braid.cli.programs import program_json
from braid.language import parse
from braid.model.advertisement import Advertisement
from braid.model.partitions import HashPartitions, RangePartition
from braid.model.program import Guard, Reuse, Ship, SiteProgram
from braid.planning.planners import PLANNERS
from tests.cli.conftest import braid

TEXT = "SELECT * FROM flights [RANGE 1 MINUTE] f, bags [RANGE 1 MINUTE] b WHERE f.num = b.flight"


def write_files(directory: Path) -> tuple[Path, Path]:
    """A topology and statistics of the streams, as files."""
    network = directory / "network.yaml"
    statistics = directory / "statistics.yaml"
    network.write_text(
        "links:\n- {source: paris, target: lyon, latency: 0.004}\n- {source: lyon, target: nice, latency: 0.006}\n"
    )
    statistics.write_text(
        "rates: {f: 100, b: 20}\nselectivities: {f.num = b.flight: 0.0001}\nsites: {f: paris, b: nice}\n"
    )
    return network, statistics


def test_explain(tmp_path: Path) -> None:
    query = tmp_path / "query.sql"
    query.write_text(TEXT)
    _, statistics = write_files(tmp_path)
    shown = braid("explain", query, "--statistics", statistics)
    assert shown.exit_code == 0, shown.output
    assert "new rows of f: about 100 rows/s\n  1. probe b on f.num = b.flight: about 12 rows/s" in shown.output
    assert json.loads(braid("explain", TEXT, "--json").stdout)["plan"] == {"f": ["b"], "b": ["f"]}


def test_plan(tmp_path: Path) -> None:
    network, statistics = write_files(tmp_path)
    shown = braid("plan", TEXT, "--topology", network, "--statistics", statistics, "--sink", "lyon")
    assert shown.exit_code == 0, shown.output
    assert "f ⋈ b at paris" in shown.output
    plan = json.loads(braid("plan", TEXT, "--topology", network, "--statistics", statistics, "--json").stdout)
    assert plan["planner"] == "exact"
    assert plan["programs"]["nice"] == [{"instruction": "ship", "stream": "b", "site": "paris"}]
    assert {"instruction": "update", "stream": "f"} in plan["programs"]["paris"]
    assert {
        "instruction": "join",
        "probe": "f",
        "stream": "b",
        "result": "f>b",
        "keys": ["f.num = b.flight"],
    } in plan["programs"]["paris"]
    assert plan["bill"] == [{"what": "ship b", "from": "nice", "to": "paris", "amount": plan["cost"]}]


@pytest.mark.parametrize("planner", PLANNERS)
def test_the_plan_of_every_planner_as_json(planner: str, tmp_path: Path) -> None:
    network, statistics = write_files(tmp_path)
    shown = braid("plan", TEXT, "--topology", network, "--statistics", statistics, "--planner", planner, "--json")
    assert shown.exit_code == 0, shown.output
    programs = json.loads(shown.stdout)["programs"]
    assert "join" in {step["instruction"] for program in programs.values() for step in program}
    assert "(" not in json.dumps(programs)


HISTOGRAMS = """
rates: {f: 100, b: 20}
sites: {f: paris, b: nice}
histograms:
  f.num: [{value: 7, rate: 60}, {first: 10, last: 1000000009, rate: 40}]
  b.flight: [{first: 0, last: 9, rate: 15}, {value: 20, rate: 4}, {value: null, rate: 1}]
"""


def test_a_plan_in_parts_from_histograms(tmp_path: Path) -> None:
    network, statistics = write_files(tmp_path)
    statistics.write_text(HISTOGRAMS)
    options = ("--topology", network, "--statistics", statistics, "--planner", "pmjoin", "--cost", "communication")
    shown = braid("plan", TEXT, *options)
    assert shown.exit_code == 0, shown.output
    assert "(b ⋈ f) in 2 parts of f.num = b.flight" in shown.output
    plan = json.loads(braid("plan", TEXT, *options, "--json").stdout)
    shipped = [step for steps in plan["programs"].values() for step in steps if step["instruction"] == "ship"]
    assert any(step["guard"]["partitions"]["ranges"] for step in shipped)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("7", "histograms.f.num must be a list of {value, rate}, or of {first, last, rate} for a range of whole"),
        ("[{first: 1, rate: 2}]", "line 5: histograms.f.num[0] needs the key 'last'"),
        ("[{value: 1, first: 1, rate: 2}]", "line 5: histograms.f.num[0] has no key 'first'"),
        ("[{first: 1, last: many, rate: 2}]", "line 5: histograms.f.num[0].last must be a whole number, not 'many'"),
        ("[{value: [1], rate: 2}]", "line 5: histograms.f.num[0].value must be a single value, not a list"),
        ("[{value: 1, rate: 2}, {value: 1, rate: 3}]", "line 5: histograms.f.num has 1 twice; add the rates up"),
        ("[{value: 1, rate: !!float ''}]", "line 5: not valid YAML: '' is not a valid float"),
        (f"[{{value: 1, rate: 0x{'f' * 6000}}}]", "line 5: histograms.f.num[0].rate is too large for a number"),
    ],
)
def test_a_mistake_in_a_histogram_is_reported(entry: str, message: str, tmp_path: Path) -> None:
    network, statistics = write_files(tmp_path)
    lines = HISTOGRAMS.splitlines()
    statistics.write_text("\n".join([*lines[:4], f"  f.num: {entry}"]))
    shown = braid("plan", TEXT, "--topology", network, "--statistics", statistics)
    assert shown.exit_code != 0
    assert message in " ".join(shown.output.split())


def test_guards_as_json() -> None:
    query = parse(TEXT)
    (key,) = query.graph.classes
    guards = [Guard(HashPartitions(key, 4, frozenset({1, 3}))), Guard(RangePartition(key, below=7), since=5)]
    steps = program_json(SiteProgram(query, tuple(Ship("f", "lyon", guard) for guard in guards)))
    assert json.loads(json.dumps([step["guard"] for step in steps])) == [
        {"partitions": {"attribute_class": "f.num = b.flight", "count": 4, "members": [1, 3]}},
        {"partitions": {"attribute_class": "f.num = b.flight", "first": None, "below": 7}, "since": 5},
    ]


def test_a_reused_advertisement_as_json() -> None:
    query = parse(TEXT)
    reuse = Reuse(Advertisement(query, "lyon"), (("f", "b"), ("b", "f")), "f+b")
    (step,) = program_json(SiteProgram(query, (reuse,)))
    assert json.loads(json.dumps(step)) == {
        "instruction": "reuse",
        "advertisement": {"query": TEXT, "site": "lyon"},
        "names": [["f", "b"], ["b", "f"]],
        "result": "f+b",
    }


def test_wrong_input_is_reported(tmp_path: Path) -> None:
    network, statistics = write_files(tmp_path)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("rates:\n  f: fast\n")
    cases = [
        (("explain", "nowhere.sql"), "cannot read the query file nowhere.sql: there is no such file; check the path"),
        (("explain", "SELECT FROM"), "braid: "),
        (("explain", TEXT, "--statistics", wrong), f"{wrong}, line 2: rates.f must be a number, not 'fast'"),
        (("plan", TEXT, "--topology", wrong, "--statistics", statistics), "a topology has a list of 'links'"),
        (
            ("plan", TEXT, "--topology", "nowhere.yaml", "--statistics", statistics),
            "cannot read the topology file nowhere.yaml: there is no such file; check the path",
        ),
        (
            ("plan", TEXT, "--topology", network, "--statistics", "nowhere.yaml"),
            "cannot read nowhere.yaml: there is no such file; check the path",
        ),
        (("plan", TEXT, "--topology", network, "--statistics", statistics, "--sink", "rome"), "rome"),
        (("plan", TEXT, "--topology", network, "--statistics", statistics, "--planner", "exakt"), "exact"),
    ]
    for arguments, message in cases:
        result = braid(*arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert message in result.output
        assert "Traceback" not in result.output


def test_bench_lists_its_benchmarks_and_refuses_unknown_names() -> None:
    assert {"kernel", "nexmark", "plans"} <= set(braid("bench", "--list").stdout.split())
    result = braid("bench", "kernle")
    assert result.exit_code == 2
    assert "there is no benchmark 'kernle'; did you mean 'kernel'?" in result.output
