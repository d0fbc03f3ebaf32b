"""Continuous multi-way window joins over streams, with plans that may change while they run.

Begin with `braid.run` (in this process, on Arrow tables) or `braid.Session` (on Spark).

>>> import braid, pyarrow as pa
>>> from datetime import datetime
>>> def at(*seconds): return pa.array([datetime(2024, 1, 1, 12, 0, second) for second in seconds], pa.timestamp("us"))
>>> flights = pa.table({"ts": at(0, 20), "num": [7, 8], "gate": ["A1", "B2"]})
>>> bags = pa.table({"ts": at(5, 9, 40), "flight": [7, 8, 8], "status": ["loaded", "lost", "loaded"]})
>>> braid.run(
...     '''SELECT f.gate, b.status FROM flights [RANGE 5 MINUTES] AS f, bags [RANGE 1 MINUTE] AS b
...        WHERE f.num = b.flight''',
...     {"flights": flights, "bags": bags},
... ).to_pylist()
[{'gate': 'A1', 'status': 'loaded'}, {'gate': 'B2', 'status': 'lost'}, {'gate': 'B2', 'status': 'loaded'}]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from braid.errors import BraidError, PlanError, PlanningError, QueryError, StreamError, TopologyError

if TYPE_CHECKING:
    from braid.hosts.local.run import run
    from braid.hosts.simulated.faults import Faults
    from braid.hosts.simulated.simulate import simulate
    from braid.hosts.spark.driver.network import Network
    from braid.hosts.spark.driver.session import Session
    from braid.language import parse
    from braid.model.network.topology import Topology
    from braid.model.plan import Plan
    from braid.model.query import Query
    from braid.model.statistics import Statistics
    from braid.model.stream import Stream
    from braid.planning.plan import plan

__all__ = [
    "BraidError",
    "Faults",
    "Network",
    "Plan",
    "PlanError",
    "PlanningError",
    "Query",
    "QueryError",
    "Session",
    "Statistics",
    "Stream",
    "StreamError",
    "Topology",
    "TopologyError",
    "parse",
    "plan",
    "run",
    "simulate",
]

_MODULES = {
    "Faults": "braid.hosts.simulated.faults",
    "Network": "braid.hosts.spark.driver.network",
    "Plan": "braid.model.plan",
    "Query": "braid.model.query",
    "Session": "braid.hosts.spark.driver.session",
    "Statistics": "braid.model.statistics",
    "Stream": "braid.model.stream",
    "Topology": "braid.model.network.topology",
    "parse": "braid.language",
    "plan": "braid.planning.plan",
    "run": "braid.hosts.local.run",
    "simulate": "braid.hosts.simulated.simulate",
}
"""The module of each public name. Modules are imported at the first use of a name, so that `import braid` is fast."""


def __getattr__(name: str) -> Any:
    if name == "testing":
        return import_module("braid.testing")
    if name not in _MODULES:
        raise AttributeError(f"module 'braid' has no attribute {name!r}")
    try:
        value = getattr(import_module(_MODULES[name]), name)
    except ImportError as problem:
        if name not in ("Network", "Session"):
            raise
        raise BraidError(f"braid.{name} needs Spark: pip install 'braid[spark]' ({problem})") from problem
    globals()[name] = value  # the next access finds it without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "testing"})
