"""PySpark's daemon for the workers of a local Spark, with what they need loaded before it forks the first of them.

Otherwise every worker would load it with its first rows, which takes more than a second of a core. PySpark's own daemon
loads nothing, because forks do not have the threads of their parent. Of these modules only Arrow starts one, for an
allocator that is made for forks.
"""

import gc
import os

import numpy as np
import pyspark.worker
from pyspark.daemon import manager

from braid.engine.window.chain import first_alive
from braid.hosts.spark.worker import packer, task

LOADED = (pyspark.worker, packer, task)
"""The modules of a worker."""


def load() -> None:
    """Load what modules load with their first use, and spare the garbage collector of each fork all of it.

    Functions of users may draw random numbers: every fork draws its own.
    """
    os.register_at_fork(after_in_child=np.random.seed)
    # The first compiled function brings numba's own modules with it.
    first_alive(np.zeros(1, np.int64), 0, 0, 0, 0)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    manager()
