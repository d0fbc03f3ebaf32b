"""String functions give what Spark gives (ANSI mode off), in each row of `TABLE` in `conftest.py`."""

from typing import Any

import pytest

from tests.engine.kernels.conftest import assert_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s LIKE 'a%'", [True, False, None, False]),
        ("s LIKE '%ß%'", [False, True, None, False]),
        ("s LIKE '%e'", [False, True, None, False]),
        ("s LIKE 'a_c'", [True, False, None, False]),
        ("s LIKE 'Stra_e'", [False, True, None, False]),
        ("s LIKE 'a%c'", [True, False, None, False]),
        ("s LIKE '%'", [True, True, None, True]),
        ("s LIKE ''", [False, False, None, False]),
        ("s NOT LIKE 'abc'", [False, True, None, True]),
        ("s LIKE NULL", [None] * 4),
        ("s LIKE p", [True, True, None, True]),
        ("'a%b' LIKE 'a\\%b'", [True] * 4),
        ("'axb' LIKE 'a\\%b'", [False] * 4),
        ("'a%b' LIKE 'a!%b' ESCAPE '!'", [True] * 4),
        ("'a.b' LIKE 'a.b'", [True] * 4),
        ("'axb' LIKE '_.b'", [False] * 4),
        ("'a\nb' LIKE 'a_b'", [True] * 4),
        ("s ILIKE 'A_C'", [True, False, None, False]),
        ("s RLIKE '^[a-z]+$'", [True, False, None, False]),
        ("s RLIKE 'b'", [True, False, None, False]),
        (r"s RLIKE r'\d+'", [False, False, None, True]),
        ("s RLIKE ('[' || w)", [None, None, None, None]),
        ("LOWER(s)", ["abc", "straße", None, " 12 "]),
        ("UPPER(s)", ["ABC", "STRASSE", None, " 12 "]),
        ("LENGTH(s)", [3, 6, None, 4]),
        ("LENGTH(z)", [2, 1, None, 0]),
        ("TRIM(s)", ["abc", "Straße", None, "12"]),
        ("LTRIM(s)", ["abc", "Straße", None, "12 "]),
        ("RTRIM(s)", ["abc", "Straße", None, " 12"]),
        ("TRIM(BOTH 'ac' FROM s)", ["b", "Straße", None, " 12 "]),
        ("TRIM(LEADING w FROM s)", ["bc", "Straße", None, None]),
        ("SUBSTRING(s, 2)", ["bc", "traße", None, "12 "]),
        ("SUBSTRING(s, 0, 2)", ["ab", "St", None, " 1"]),
        ("SUBSTRING(s, -2, 1)", ["b", "ß", None, "2"]),
        ("SUBSTRING(s, -5, 3)", ["a", "tra", None, " 1"]),
        ("SUBSTRING(s, -2, 5)", ["bc", "ße", None, "2 "]),
        ("SUBSTRING(s, 2, -1)", ["", "", None, ""]),
        ("SUBSTRING(s, 9)", ["", "", None, ""]),
        ("SUBSTRING(s, j, 2)", ["bc", "ra", None, " "]),
        ("CONCAT(s, '-', i)", ["abc-1", "Straße--7", None, " 12 -2147483647"]),
        ("w || v", ["ax", "by", "cx", None]),
        ("REPLACE(s, 'b', 'XX')", ["aXXc", "Straße", None, " 12 "]),
        ("REPLACE(s, 'b')", ["ac", "Straße", None, " 12 "]),
        ("REPLACE(s, '', 'X')", ["abc", "Straße", None, " 12 "]),
        ("REPLACE(s, w, 'Q')", ["Qbc", "Straße", None, None]),
        ("STARTSWITH(s, 'a')", [True, False, None, False]),
        ("STARTSWITH(s, w)", [True, False, None, None]),
        ("ENDSWITH(s, 'ße')", [False, True, None, False]),
        ("CONTAINS(s, 'b')", [True, False, None, False]),
    ],
)
def test_string_functions(text: str, expected: list[Any]) -> None:
    assert_values(text, expected)
