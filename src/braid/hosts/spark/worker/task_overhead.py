"""Reduces what PySpark does before and after each task.

PySpark makes every importer read its archive again, and collects garbage over the objects of all modules. Together that
takes over 100 ms per task. A micro-batch has several tasks, and a small one takes less time than that.
"""

from __future__ import annotations

import gc
import sys
from zipimport import zipimporter

_modules_seen = 0
"""The number of modules when their objects were last frozen."""


def reduce_task_overhead() -> None:
    """Make the end of this task and the start of the next one fast; to be called at the end of a task."""
    global _modules_seen
    # Without its importer, an archive is not read again until something is imported from it.
    for path in [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]:
        del sys.path_importer_cache[path]
    # Objects of modules live as long as the process, so the garbage collector need not visit them again.
    if len(sys.modules) != _modules_seen:
        _modules_seen = len(sys.modules)
        gc.collect()
        gc.freeze()
