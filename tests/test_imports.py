"""Imports go one way, without cycles; pure packages do no I/O; classes have names of their own."""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import braid

ROOT = Path(braid.__file__).parent
TESTS = Path(__file__).parent

BASE = {"errors", "strict_yaml"}
ALLOWED = {
    "errors": set(),
    "strict_yaml": set(),
    "model": BASE,
    "language": {*BASE, "model"},
    "planning": {*BASE, "model", "language"},
    "engine": {*BASE, "model"},
    "adapt": {*BASE, "model", "planning"},
    "runtime": {*BASE, "model", "language", "planning", "engine", "adapt"},
    "channels": {*BASE, "model", "engine"},
    "files": {*BASE, "model"},
    "workloads": {*BASE, "model", "planning"},
    "testing": {*BASE, "model", "language", "planning", "engine", "adapt", "runtime", "channels"},
    "hosts": {*BASE, "model", "language", "planning", "engine", "adapt", "runtime", "channels", "files"},
    "cli": {
        *BASE,
        "model",
        "language",
        "planning",
        "engine",
        "adapt",
        "runtime",
        "channels",
        "files",
        "workloads",
        "hosts",
        "testing",
    },
    "__main__": {"cli"},
}
"""For each package, the packages that it may import from."""

PURE = {"engine", "adapt", "runtime"}
IMPURE_MODULES = {"time", "threading", "asyncio", "socket", "pathlib", "os", "logging", "random", "secrets", "tempfile"}
IMPURE_CALLS = {"open", "print", "eval", "exec"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Each module by its name below `braid`, parsed."""
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield name.removesuffix(".__init__"), ast.parse(path.read_text())


MODULES = dict(modules())
each_module = pytest.mark.parametrize("module", MODULES)


def imported(tree: ast.Module) -> Iterator[str]:
    """The names of all imported modules: `a.b` for `import a.b` and for `from a.b import c`, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """The modules of Braid that a module imports, without `braid.`; for `from package import module`, that module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("braid."):
            source = node.module.removeprefix("braid.")
            submodules = {f"{source}.{alias.name}" for alias in node.names} & MODULES.keys()
            yield from submodules or {source}


@each_module
def test_packages_import_only_allowed_packages(module: str) -> None:
    package = module.split(".")[0]
    if package == "__init__":
        return
    used = {name.split(".")[1] for name in imported(MODULES[module]) if name.startswith("braid.")}
    assert used <= ALLOWED[package] | {package}


def test_there_are_no_import_cycles_between_modules() -> None:
    """Imports inside functions and under TYPE_CHECKING count too."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for module, tree in MODULES.items():
        if module != "__init__":
            graph.add_edges_from((module, other) for other in imported_modules(tree) if other != module)
    cycles = [sorted(cycle) for cycle in nx.strongly_connected_components(graph) if len(cycle) > 1]
    assert cycles == []


@each_module
def test_pure_packages_read_no_clock_and_do_no_io(module: str) -> None:
    if module.split(".")[0] not in PURE:
        return
    assert not set(imported(MODULES[module])) & IMPURE_MODULES
    called = {
        node.func.id
        for node in ast.walk(MODULES[module])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & IMPURE_CALLS


@each_module
def test_only_the_spark_host_imports_pyspark_and_no_module_imports_pickle(module: str) -> None:
    libraries = {name.split(".")[0] for name in imported(MODULES[module])}
    assert "pickle" not in libraries
    assert "pyspark" not in libraries or module.startswith("hosts.spark.")


def test_public_classes_have_names_of_their_own() -> None:
    """Only the adapters of a protocol may share names."""
    modules_of = defaultdict(set)
    for module, tree in MODULES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules_of[node.name].add("channels" if module.startswith("channels.") else module)
    assert {name: modules for name, modules in modules_of.items() if len(modules) > 1} == {}


def test_hosts_give_no_word_of_the_runtime_another_meaning() -> None:
    """Neither by a class nor by an alias: both are in the signatures of hosts."""
    defined: dict[str, set[str]] = {"hosts": set(), "runtime": set()}
    for module, tree in MODULES.items():
        words = defined.get(module.split(".")[0], set())
        words |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        words |= {target.id for target in targets if isinstance(target, ast.Name) and not target.id.isupper()}
    assert {word for word in defined["hosts"] & defined["runtime"] if word[0].isupper()} == set()


def test_tests_import_helpers_only_from_braid_and_conftest() -> None:
    """No test module imports another, so that each can be read, run and removed alone."""
    others = [
        (path.relative_to(TESTS), name)
        for path in sorted(TESTS.rglob("*.py"))
        for name in imported(ast.parse(path.read_text()))
        if name.split(".")[0] == TESTS.name and name.split(".")[-1] != "conftest"
    ]
    assert others == []


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import braid", "duckdb matplotlib networkx numba numpy pandas pyarrow pyspark scipy sqlglot"),
        ("import braid; braid.run", "duckdb matplotlib networkx pyspark scipy.sparse"),
        ("import braid; braid.plan", "duckdb matplotlib networkx pyspark scipy.sparse"),
        ("import braid.cli", "duckdb matplotlib networkx numba numpy pandas pyarrow pyspark scipy sqlglot"),
        ("import braid; braid.Topology.from_links([('a', 'b', 1)])", "matplotlib networkx numba"),
    ],
)
def test_heavy_libraries_are_loaded_on_first_use(statement: str, unwanted: str) -> None:
    """The list for braid.run has no pandas: pyarrow itself loads pandas if it is installed."""
    code = f"import sys; {statement}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "braid" in loaded
    assert not set(unwanted.split()) & set(loaded)


def test_braid_testing_is_loaded_on_first_use() -> None:
    program = "import braid; assert 'duckdb' not in __import__('sys').modules; braid.testing.oracle"
    subprocess.run([sys.executable, "-c", program], check=True)
