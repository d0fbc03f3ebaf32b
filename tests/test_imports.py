"""Imports point one way, and the engine does no I/O."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import braid

ROOT = Path(braid.__file__).parent

ALLOWED = {
    "errors": set(),
    "model": {"errors"},
    "language": {"errors", "model"},
    "planning": {"errors", "model"},
    "engine": {"errors", "model"},
    "adapt": {"errors", "model", "planning"},
    "testing": {"errors", "model", "language"},
    "hosts": {"errors", "model", "language", "planning", "engine", "adapt"},
    "cli": {"errors", "model", "language", "planning", "engine", "adapt", "hosts", "testing"},
    "__main__": {"cli"},
}
"""What each part may import of the others."""

OUTSIDE_THE_ENGINE = {"time", "datetime.now", "threading", "asyncio", "socket", "pathlib", "os", "logging", "random"}


def modules() -> Iterator[tuple[str, str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT).with_suffix("")
        yield relative.parts[0], str(relative), ast.parse(path.read_text())


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize(("part", "module", "tree"), [pytest.param(*found, id=found[1]) for found in modules()])
def test_imports_point_one_way(part: str, module: str, tree: ast.Module) -> None:
    if part == "__init__":
        return
    own = {name.split(".")[1] for name in imported(tree) if name.startswith("braid.")}
    assert own <= ALLOWED[part] | {part}


@pytest.mark.parametrize(("part", "module", "tree"), [pytest.param(*found, id=found[1]) for found in modules()])
def test_the_engine_reads_no_clock_and_does_no_io(part: str, module: str, tree: ast.Module) -> None:
    if part in {"engine", "adapt"}:
        assert not set(imported(tree)) & OUTSIDE_THE_ENGINE
        assert not any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "print", "eval"}
            for node in ast.walk(tree)
        )


@pytest.mark.parametrize(("part", "module", "tree"), [pytest.param(*found, id=found[1]) for found in modules()])
def test_only_the_spark_host_knows_spark_and_nobody_pickles(part: str, module: str, tree: ast.Module) -> None:
    names = {name.split(".")[0] for name in imported(tree)}
    assert "pickle" not in names
    assert "pyspark" not in names or module.startswith("hosts/spark")


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import braid", "duckdb matplotlib networkx numba numpy pandas pyarrow pyspark scipy sqlglot"),
        ("import braid; braid.run", "duckdb matplotlib networkx pyspark scipy.sparse"),
        ("import braid; braid.plan", "duckdb matplotlib networkx pyspark scipy.sparse"),
        ("import braid; braid.Topology.from_links([('a', 'b', 1)])", "matplotlib networkx numba"),
    ],
)
def test_what_is_heavy_is_loaded_by_who_uses_it(statement: str, unwanted: str) -> None:
    """Not asked of braid.run: pandas, which pyarrow itself loads wherever it is installed."""
    code = f"import sys; {statement}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "braid" in loaded
    assert not set(unwanted.split()) & set(loaded)


def test_testing_is_there_when_it_is_asked_for() -> None:
    program = "import braid; assert 'duckdb' not in __import__('sys').modules; braid.testing.oracle"
    subprocess.run([sys.executable, "-c", program], check=True)
