"""Continuous multi-way window joins over streams, with plans that may change while they run.

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

from braid.errors import BraidError, PlanError, PlanningError, QueryError, StreamError, TopologyError
from braid.hosts.deploy import plan
from braid.hosts.local import run
from braid.language import parse
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.model.topology import Topology

__all__ = [
    "BraidError",
    "Plan",
    "PlanError",
    "PlanningError",
    "Query",
    "QueryError",
    "Statistics",
    "Stream",
    "StreamError",
    "Topology",
    "TopologyError",
    "parse",
    "plan",
    "run",
]
