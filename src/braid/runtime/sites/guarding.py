"""Applies guards to rows that travel between sites."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from braid.engine.join.partitions import covered
from braid.engine.kernels.expression import Compiled, compile_expression
from braid.engine.keys.hashing import is_exact, key_words
from braid.model.expressions.expression import Cast
from braid.model.graph import AttributeClass
from braid.model.program import ALWAYS, Guard
from braid.runtime.sites.wire import WireStream


def guarded(rows: pa.RecordBatch, stream: WireStream, guard: Guard) -> pa.RecordBatch:
    """The rows that a guard lets through, by their starts and their keys. A null key is in no partition."""
    if guard == ALWAYS or not rows.num_rows:
        return rows
    starts, _ = stream.lifetimes(rows)
    passed = (starts >= guard.since) & (starts < guard.until)
    if guard.partitions is not None:
        key = _key(stream, guard.partitions.attribute_class)
        values = key({column: rows.column(stream.field_names[column]) for column in key.columns}, rows.num_rows)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        present = values.drop_null()
        words = key_words(present)
        inside = np.zeros(rows.num_rows, np.bool_)
        inside[valid] = covered(guard.partitions, words, None if is_exact(values.type) else present)
        passed &= inside
    return rows if passed.all() else rows.filter(pa.array(passed))


@lru_cache(maxsize=256)
def _key(stream: WireStream, attribute_class: AttributeClass) -> Compiled:
    """The key of an attribute class in the rows of a stream, in the type in which keys are compared."""
    candidates = (alias for alias in stream.query.aliases if alias in attribute_class.sources)
    alias = next(alias for alias in candidates if alias in stream.parts)
    return compile_expression(Cast(attribute_class.key(alias), attribute_class.type), stream.type_of)
