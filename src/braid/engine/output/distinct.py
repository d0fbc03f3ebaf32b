"""SELECT DISTINCT: of results with the same columns and the same event time, one is kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from braid.engine.keys.nested import canonical

_ROW = "row"


def distinct(results: pa.Table) -> pa.Table:
    """The first of the results that are equal in all columns. NaN equals NaN, null equals null, and -0.0 is 0.0."""
    if not results.num_rows:
        return results
    keys = {str(position): canonical(column.combine_chunks()) for position, column in enumerate(results.columns)}
    table = pa.table({**keys, _ROW: pa.array(np.arange(results.num_rows))})
    first = table.group_by(list(keys)).aggregate([(_ROW, "min")]).column(f"{_ROW}_min")
    return results.take(pa.array(np.sort(first.to_numpy())))
