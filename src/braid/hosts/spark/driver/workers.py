"""Checks that Spark's Python workers can import what Braid needs, before a query starts."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.sql import SparkSession

from braid.errors import BraidError
from braid.hosts.spark.driver.failures import SPARK_FAILURES, failure_text
from braid.hosts.spark.driver.local_spark import runs_this_python

NEEDED = ("braid", "pyarrow", "pandas", "numba")
"""The modules that workers import."""

_checked: WeakSet[SparkContext] = WeakSet()


def check_workers(spark: SparkSession) -> None:
    """Refuse a Spark whose workers run a Python without Braid; `BraidError` says which Python, and what to do.

    A query would fail with a long traceback of Java's. Workers on this machine with the Python of this process need no
    check; all others are asked by a job of one task, once for each Spark.
    """
    context = spark.sparkContext
    python = str(context.pythonExec)
    if runs_this_python(str(context.master), python) or context in _checked:
        return
    try:
        missing = _missing(context)
    except SPARK_FAILURES as failure:
        problem = f"Spark's Python workers run '{python}', which does not start: {failure_text(failure)}"
        raise BraidError(f"{problem}; {_remedy()}") from failure
    if missing:
        raise BraidError(f"Spark's Python workers run '{python}', which has no module '{missing[0]}'; {_remedy()}")
    _checked.add(context)


def _missing(context: SparkContext) -> list[str]:
    """The modules that a worker does not find. It runs functions of Python's own: it may not have ours."""
    is_there = context.parallelize(NEEDED, 1).map(find_spec).map(bool).collect()
    return [name for name, is_installed in zip(NEEDED, is_there, strict=True) if not is_installed]


def _remedy() -> str:
    return (
        f"set the environment variable PYSPARK_PYTHON to {sys.executable}, the Python of this program, before Spark "
        "starts. On a cluster, install Braid for the Python of the workers"
    )
