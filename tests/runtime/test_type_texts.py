"""Types read back from their texts."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.errors import ModelError
from braid.runtime.type_texts import type_from_text

PLAIN = [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.binary(), pa.bool_()]
TIMES = [pa.date32(), pa.timestamp("us"), pa.timestamp("ns", "Europe/Berlin"), pa.time64("us"), pa.duration("ms")]
OTHERS = [pa.decimal128(10, 2), pa.decimal256(50, -3), pa.binary(16), pa.dictionary(pa.int32(), pa.string())]


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.builds(pa.field, st.sampled_from(["a", "b c", "ü"]), inner, st.booleans())
    return st.one_of(
        fields.map(pa.list_),
        fields.map(pa.large_list),
        st.builds(pa.list_, fields, st.integers(1, 3)),
        st.lists(fields, max_size=3).map(pa.struct),
        st.builds(pa.map_, inner, inner),
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.recursive(st.sampled_from([*PLAIN, *TIMES, *OTHERS]), nested, max_leaves=5))
def test_a_type_is_read_back_from_its_text(kind: pa.DataType) -> None:
    assert str(type_from_text(str(kind))) == str(kind)


@pytest.mark.parametrize("text", ["", "integer", "list<int64>", "struct<a>", "map<int64>", "decimal128(a, b)"])
def test_any_other_text_is_an_error(text: str) -> None:
    with pytest.raises(ModelError, match="is not the text of a column type"):
        type_from_text(text)
