"""`braid explain` and `braid plan`."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from braid.cli import app
from braid.cli.programs import program_json
from braid.language import parse
from braid.model.advertisement import Advertisement
from braid.model.partitions import HashPartitions, RangePartition
from braid.model.program import Guard, Reuse, Ship, SiteProgram
from braid.planning.planners import PLANNERS

TEXT = "SELECT * FROM flights [RANGE 1 MINUTE] f, bags [RANGE 1 MINUTE] b WHERE f.num = b.flight"


def braid(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def files(directory: Path) -> tuple[Path, Path]:
    network, known = directory / "network.yaml", directory / "known.yaml"
    network.write_text(
        "links:\n- {source: paris, target: lyon, latency: 0.004}\n- {source: lyon, target: nice, latency: 0.006}\n"
    )
    known.write_text("rates: {f: 100, b: 20}\nselectivities: {f.num = b.flight: 0.0001}\nsites: {f: paris, b: nice}\n")
    return network, known


def test_explain(tmp_path: Path) -> None:
    query = tmp_path / "query.sql"
    query.write_text(TEXT)
    _, known = files(tmp_path)
    shown = braid("explain", query, "--statistics", known)
    assert shown.exit_code == 0, shown.output
    assert "new rows of f: about 100 rows/s\n  1. probe b on f.num = b.flight: about 12 rows/s" in shown.output
    assert json.loads(braid("explain", TEXT, "--json").stdout)["plan"] == {"f": ["b"], "b": ["f"]}


def test_plan(tmp_path: Path) -> None:
    network, known = files(tmp_path)
    shown = braid("plan", TEXT, "--topology", network, "--statistics", known, "--sink", "lyon")
    assert shown.exit_code == 0, shown.output
    assert "f ⋈ b at paris" in shown.output
    made = json.loads(braid("plan", TEXT, "--topology", network, "--statistics", known, "--json").stdout)
    assert made["planner"] == "exact"
    assert made["programs"]["nice"] == [{"instruction": "ship", "stream": "b", "site": "paris"}]
    assert {"instruction": "update", "stream": "f"} in made["programs"]["paris"]
    assert {
        "instruction": "join",
        "probe": "f",
        "stream": "b",
        "result": "f>b",
        "keys": ["f.num = b.flight"],
    } in made["programs"]["paris"]
    assert made["bill"] == [{"what": "ship b", "from": "nice", "to": "paris", "amount": made["cost"]}]


@pytest.mark.parametrize("planner", PLANNERS)
def test_every_plan_is_for_machines(planner: str, tmp_path: Path) -> None:
    network, known = files(tmp_path)
    shown = braid("plan", TEXT, "--topology", network, "--statistics", known, "--planner", planner, "--json")
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


def test_plans_by_part_of_the_values(tmp_path: Path) -> None:
    network, known = files(tmp_path)
    known.write_text(HISTOGRAMS)
    options = ("--topology", network, "--statistics", known, "--planner", "pmjoin", "--cost", "communication")
    shown = braid("plan", TEXT, *options)
    assert shown.exit_code == 0, shown.output
    assert "(b ⋈ f) in 2 parts of f.num = b.flight" in shown.output
    made = json.loads(braid("plan", TEXT, *options, "--json").stdout)
    shipped = [step for steps in made["programs"].values() for step in steps if step["instruction"] == "ship"]
    assert any(step["guard"]["partitions"]["ranges"] for step in shipped)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("7", "histograms.f.num must be a list of {value, rate}, or of {first, last, rate} for a range of whole"),
        ("[{first: 1, rate: 2}]", "line 5: histograms.f.num[0] needs the key 'last'"),
        ("[{value: 1, first: 1, rate: 2}]", "line 5: histograms.f.num[0] has no key 'first'"),
        ("[{first: 1, last: many, rate: 2}]", "line 5: histograms.f.num[0].last must be a whole number, not 'many'"),
        ("[{value: [1], rate: 2}]", "line 5: histograms.f.num[0].value must be a single value, not a list"),
        ("[{value: 1, rate: 2}, {value: 1, rate: 3}]", "line 5: histograms.f.num has 1 twice; add the rates up"),
        ("[{value: 1, rate: !!float ''}]", "line 5: this is no valid YAML: '' is not a valid float"),
        (f"[{{value: 1, rate: 0x{'f' * 6000}}}]", "line 5: histograms.f.num[0].rate is too large for a number"),
    ],
)
def test_histograms_that_make_no_sense(entry: str, told: str, tmp_path: Path) -> None:
    network, known = files(tmp_path)
    lines = HISTOGRAMS.splitlines()
    known.write_text("\n".join([*lines[:4], f"  f.num: {entry}"]))
    shown = braid("plan", TEXT, "--topology", network, "--statistics", known)
    assert shown.exit_code != 0
    assert told in " ".join(shown.output.split())


def test_guards_are_for_machines() -> None:
    query = parse(TEXT)
    (key,) = query.graph.classes
    guards = [Guard(HashPartitions(key, 4, frozenset({1, 3}))), Guard(RangePartition(key, last=7), since=5)]
    steps = program_json(SiteProgram(query, tuple(Ship("f", "lyon", guard) for guard in guards)))
    assert json.loads(json.dumps([step["guard"] for step in steps])) == [
        {"partitions": {"attribute_class": "f.num = b.flight", "count": 4, "members": [1, 3]}},
        {"partitions": {"attribute_class": "f.num = b.flight", "first": None, "last": 7}, "since": 5},
    ]


def test_what_is_reused_is_for_machines() -> None:
    query = parse(TEXT)
    reuse = Reuse(Advertisement(query, "lyon"), (("f", "b"), ("b", "f")), "f+b")
    (step,) = program_json(SiteProgram(query, (reuse,)))
    assert json.loads(json.dumps(step)) == {
        "instruction": "reuse",
        "advertisement": {"query": TEXT, "site": "lyon"},
        "names": [["f", "b"], ["b", "f"]],
        "result": "f+b",
    }


def test_wrong_input_is_told(tmp_path: Path) -> None:
    network, known = files(tmp_path)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("rates:\n  f: fast\n")
    cases = [
        (("explain", "nowhere.sql"), "cannot read the query file nowhere.sql: there is no such file; check the path"),
        (("explain", "SELECT FROM"), "braid: "),
        (("explain", TEXT, "--statistics", wrong), f"{wrong}, line 2: rates.f must be a number, not 'fast'"),
        (("plan", TEXT, "--topology", wrong, "--statistics", known), "a topology has a list of 'links'"),
        (
            ("plan", TEXT, "--topology", "nowhere.yaml", "--statistics", known),
            "cannot read the topology file nowhere.yaml: there is no such file; check the path",
        ),
        (
            ("plan", TEXT, "--topology", network, "--statistics", "nowhere.yaml"),
            "cannot read nowhere.yaml: there is no such file; check the path",
        ),
        (("plan", TEXT, "--topology", network, "--statistics", known, "--sink", "rome"), "rome"),
        (("plan", TEXT, "--topology", network, "--statistics", known, "--planner", "exakt"), "exact"),
    ]
    for arguments, message in cases:
        result = braid(*arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert message in result.output
        assert "Traceback" not in result.output


def test_bench_knows_its_benchmarks() -> None:
    assert {"kernel", "plans"} <= set(braid("bench", "--list").stdout.split())
    result = braid("bench", "kernle")
    assert result.exit_code == 2
    assert "there is no benchmark 'kernle'; did you mean 'kernel'?" in result.output
