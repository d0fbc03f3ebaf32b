"""What Spark's Python workers do around every task, made cheap.

A micro-batch has a handful of tasks, and before and after each of them PySpark asks every importer to look at its
archive again, and collects garbage among all objects of all modules. Together that is over 100 ms a task, more than a
small micro-batch takes.
"""

from __future__ import annotations

import gc
import sys
from zipimport import zipimporter

_modules_seen = 0


def lighten() -> None:
    """Leave this worker so that the next task starts soon; to be called when a task is about to end."""
    global _modules_seen
    # Importers of archives are made again when something is imported from them, without reading the archive.
    for path in [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]:
        del sys.path_importer_cache[path]
    # What modules consist of is there to stay, and need not be looked at again.
    if len(sys.modules) != _modules_seen:
        _modules_seen = len(sys.modules)
        gc.collect()
        gc.freeze()
