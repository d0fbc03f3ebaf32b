"""String functions. Constant arguments, such as a pattern, are prepared once; others are computed row by row."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.casts import convert_all, in_type
from braid.engine.kernels.compare import Types
from braid.engine.kernels.values import Builder, Datum, Kernel, by_unique, nulls_like, one_row, row_by_row
from braid.model.expressions.expression import Call, Literal
from braid.model.expressions.patterns import ANY, like_parts
from braid.model.expressions.types import kind

TEXT = pa.string()


def simple(kernel: Kernel) -> Builder:
    """A function whose arguments are all strings."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        return in_type(kernel, types, TEXT)

    return build


def _in_case(ascii_kernel: Kernel, change: Callable[[str], str]) -> Kernel:
    """LOWER or UPPER: by Arrow for ASCII, by Python otherwise, since Arrow cannot turn one character into two (ß)."""
    unicode_kernel = by_unique(change, TEXT)

    def evaluate(value: pa.Array) -> Datum:
        is_ascii = pc.all(pc.string_is_ascii(value), min_count=0).as_py()
        return ascii_kernel(value) if is_ascii else unicode_kernel(value)

    return evaluate


lower = _in_case(pc.ascii_lower, str.lower)
upper = _in_case(pc.ascii_upper, str.upper)


def with_constants(prepare: Callable[..., Kernel], compute_row: Callable[..., object]) -> Builder:
    """A function of a string and further arguments.

    If these are constants, `prepare` makes the kernel from them; otherwise `compute_row` computes each row.
    """

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        targets = [TEXT if kind(type_) in ("string", "null") else pa.int64() for type_ in types]
        constants = [argument.value for argument in call.arguments[1:] if isinstance(argument, Literal)]
        if len(constants) < len(types) - 1:
            return convert_all(row_by_row(compute_row, result), types, targets)
        if None in constants:
            return lambda *values: nulls_like(values, result)
        kernel = prepare(*constants)
        return convert_all(lambda value, *_: kernel(value), types, targets)

    return build


def pattern_test(matcher: Callable[..., Kernel]) -> Builder:
    """A test of a string against a pattern; `matcher` makes the kernel, once for each distinct pattern of a column."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        options = [argument.value for argument in call.arguments[2:] if isinstance(argument, Literal)]

        def evaluate(value: Datum, pattern: Datum, *_: Datum) -> Datum:
            if isinstance(pattern, pa.Scalar):
                return matcher(pattern.as_py(), *options)(value) if pattern.is_valid else nulls_like((value,), result)
            return _match_patterns(value, pattern, lambda text: matcher(text, *options))

        return in_type(evaluate, types, TEXT)

    return build


def _match_patterns(value: Datum, patterns: pa.Array, matcher: Callable[[str], Kernel]) -> Datum:
    """Group the rows by pattern, match each group at once, and restore the order of the rows."""
    if isinstance(value, pa.Scalar):
        value = pa.array([value.as_py()] * len(patterns), TEXT)
    encoded = patterns.dictionary_encode()
    order = pc.sort_indices(encoded.indices)
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(encoded.indices).to_pylist()}
    matches = []
    start = 0
    for index, pattern in enumerate(encoded.dictionary.to_pylist()):
        rows = order.slice(start, counts.get(index, 0))
        matches.append(matcher(pattern)(value.take(rows)))
        start += len(rows)
    # Null patterns are sorted last.
    matches.append(pa.nulls(len(patterns) - start, pa.bool_()))
    return pa.concat_arrays(matches).take(pc.sort_indices(order))


@lru_cache(maxsize=1024)
def like(pattern: str, escape: str = "\\") -> Kernel:
    """LIKE as a search for a substring if the pattern allows it, else as a regular expression."""
    parts = like_parts(pattern, escape)
    if parts is None:
        return lambda value: nulls_like((value,), pa.bool_())
    # The shape of a pattern has a point in place of each character that is not a wildcard.
    shape = "".join(character if is_wildcard else "." for character, is_wildcard in parts)
    text = "".join(character for character, is_wildcard in parts if not is_wildcard)
    for simple_shape, kernel in _LIKE_SHAPES:
        if re.fullmatch(simple_shape, shape):
            return kernel(text)
    expression = "".join(_like_to_regex(character, is_wildcard) for character, is_wildcard in parts)
    return lambda value: pc.match_substring_regex(value, rf"(?s)\A{expression}\z")


def _like_to_regex(character: str, is_wildcard: bool) -> str:
    if not is_wildcard:
        return re.escape(character)
    return ".*" if character == ANY else "."


_LIKE_SHAPES: tuple[tuple[str, Callable[[str], Kernel]], ...] = (
    (r"\.*", lambda text: lambda value: pc.equal(value, pa.scalar(text, TEXT))),
    (r"\.*%+", lambda text: lambda value: pc.starts_with(value, text)),
    (r"%+\.*", lambda text: lambda value: pc.ends_with(value, text)),
    (r"%+\.+%+", lambda text: lambda value: pc.match_substring(value, text)),
)
"""The shapes of LIKE patterns that need no regular expression, as regular expressions, each with its kernel."""


def ilike(pattern: str, escape: str = "\\") -> Kernel:
    match_lower = like(pattern.lower(), escape)
    return lambda value: match_lower(lower(value if isinstance(value, pa.Array) else one_row(value)))


def rlike(pattern: str) -> Kernel:
    """RLIKE; null if the pattern is not a valid regular expression."""

    def match(value: Datum) -> Datum:
        try:
            return pc.match_substring_regex(value, pattern)
        except pa.ArrowInvalid:
            return nulls_like((value,), pa.bool_())

    return match


def _trim(kernel: Kernel, compute_row: Callable[[str, str], str]) -> Builder:
    return with_constants(lambda characters=" ": lambda value: kernel(value, characters), compute_row)


def _replace(search: str, replacement: str = "") -> Kernel:
    if not search:
        return lambda value: value
    return lambda value: pc.replace_substring(value, search, replacement)


def _replace_row(text: str, search: str, replacement: str = "") -> str:
    return text.replace(search, replacement) if search else text


def _substring(start: int, length: int | None = None) -> Kernel:
    first, last = _slice(start, length)
    if last is not None and first >= 0 and last <= first:
        return lambda value: pc.if_else(pc.is_null(value), pa.scalar(None, TEXT), pa.scalar("", TEXT))
    return lambda value: pc.utf8_slice_codeunits(value, first, last)


def _substring_row(text: str, start: int, length: int | None = None) -> str:
    first, last = _slice(start, length)
    return text[first:last]


def _slice(start: int, length: int | None) -> tuple[int, int | None]:
    """The bounds of a Python slice for SUBSTRING, which counts from 1, or from the end if negative; 0 counts as 1."""
    start = max(-(2**31), min(start, 2**31))
    first = start - 1 if start > 0 else start
    if length is None:
        return first, None
    if length <= 0:
        return 0, 0
    last = first + min(length, 2**31)
    return first, None if first < 0 <= last else last


def length(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if kind(types[0]) == "binary":
        return in_type(lambda value: pc.cast(pc.binary_length(value), result), types, pa.large_binary())
    return in_type(lambda value: pc.cast(pc.utf8_length(value), result), types, TEXT)


def concat(call: Call, types: Types, result: pa.DataType) -> Kernel:
    return in_type(lambda *values: pc.binary_join_element_wise(*values, pa.scalar("", TEXT)), types, TEXT)


BUILDERS: dict[str, Builder] = {
    "lower": simple(lower),
    "upper": simple(upper),
    "length": length,
    "concat": concat,
    "like": pattern_test(like),
    "ilike": pattern_test(ilike),
    "rlike": pattern_test(rlike),
    "startswith": pattern_test(lambda prefix: lambda value: pc.starts_with(value, prefix)),
    "endswith": pattern_test(lambda suffix: lambda value: pc.ends_with(value, suffix)),
    "contains": pattern_test(lambda substring: lambda value: pc.match_substring(value, substring)),
    "trim": _trim(pc.utf8_trim, lambda text, characters: text.strip(characters)),
    "ltrim": _trim(pc.utf8_ltrim, lambda text, characters: text.lstrip(characters)),
    "rtrim": _trim(pc.utf8_rtrim, lambda text, characters: text.rstrip(characters)),
    "replace": with_constants(_replace, _replace_row),
    "substring": with_constants(_substring, _substring_row),
}
