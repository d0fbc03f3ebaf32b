"""The quick experiments, end to end: they write pages and plots with the results of the papers."""

from pathlib import Path

import pytest
from experiments import __main__ as experiments
from experiments import report

from braid.errors import FileError


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    return tmp_path


def test_every_experiment_has_a_module() -> None:
    directory = Path(experiments.__file__).parent
    helpers = {"__init__", "__main__", "report", "sinks"}
    assert {path.stem for path in directory.glob("*.py")} - helpers == set(experiments.EXPERIMENTS)


def test_grouping_needs_the_papers_number_of_connections(results: Path) -> None:
    experiments.run("dcape_distribution", quiet=True)
    page = (results / "dcape_distribution.md").read_text()
    assert "| grouping | 8 | 8 | 3 |" in page
    assert (results / "dcape_distribution.png").stat().st_size > 10_000


def test_a_center_sends_as_many_messages_as_in_the_paper(results: Path) -> None:
    experiments.run("nos_updates", quiet=True)
    page = (results / "nos_updates.md").read_text()
    assert "| 4 | up | CNU | 4 (4) | 34 (34) | 24 (24) |" in page
    assert "| 8 | up | CNU | 8 (8) | 131 (131) | 112 (112) |" in page
    assert "| center and nodes arrive at the same plan | always | yes |" in page


def test_the_schemes_of_the_papers_example_ship_as_many_tuples_as_planned(results: Path) -> None:
    experiments.run("pmjoin_example_run", quiet=True)
    page = (results / "pmjoin_example_run.md").read_text()
    table = [line.split(" | ") for line in page.splitlines() if line.startswith(("| cent", "| dist", "| part"))][:3]
    for row, paper in zip(table, (100.1, 54.03, 0.07), strict=True):
        planned, tuples = float(row[2]), float(row[3])
        assert planned == pytest.approx(paper, rel=0.01)
        assert tuples == pytest.approx(paper, rel=0.1)
    assert "are the same as those of `braid.run`" in page
    assert (results / "pmjoin_example_run.png").stat().st_size > 10_000


def test_queries_that_run_ship_as_many_rows_as_planned(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.iflow_approaches_run.QUERIES", 3)
    experiments.run("iflow_approaches_run", quiet=True)
    page = (results / "iflow_approaches_run.md").read_text()
    counting_rows = [
        line.split(" | ") for line in page.splitlines() if line.startswith(("| Relax", "| opt", "| order"))
    ]
    assert len(counting_rows) == 6
    for row in counting_rows[:3]:
        planned, rows = (float(cell.replace(",", "")) for cell in (row[1], row[3]))
        assert rows == pytest.approx(planned, rel=0.15)
    assert (
        "the same number of results for 3 of 3 queries with plans that count rows, and for 3 with plans that know"
        in page
    )


def test_unknown_names_are_refused() -> None:
    with pytest.raises(FileError, match="there is no experiment 'figure_99'"):
        experiments.main(["figure_99"])


def test_bottom_up_considers_fewer_plans_and_planning_time_counts(results: Path) -> None:
    experiments.run("iflow_deployment_time", quiet=True)
    page = (results / "iflow_deployment_time.md").read_text()
    comparisons = [line.split("|") for line in page.splitlines() if line.startswith("| max_cs")]
    assert len(comparisons) == 3
    assert all(row[4].strip().startswith("-") for row in comparisons)
    # Without planning, the time would be a multiple of 7 ms: a message of 3.5 ms up and one down for each level.
    times = [line.split("|")[3:6] for line in page.splitlines() if line.startswith("| top_down |")]
    assert len(times) == 3
    assert all(float(cell) % 7 > 0.001 for row in times for cell in row)


def test_windows_that_both_plans_have_are_not_brought_again(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WINDOWS": (3,), "ASKED": 5.0, "SECONDS": 8}.items():
        monkeypatch.setattr(f"experiments.moves_shared.{name}", value)
    experiments.run("moves_shared", quiet=True)
    page = (results / "moves_shared.md").read_text()
    same, _, all_at_sink = (line.split(" | ") for line in page.splitlines() if line.startswith("| 3 |"))
    assert (same[1], same[3]) == ("same", "0")
    assert (all_at_sink[1], all_at_sink[3]) == ("all at the sink", "3")
    assert same[4] == "0"  # Sites that do the same for both plans go on as they are.
    assert int(all_at_sink[4].replace(",", "")) > 0
