"""What tests of Braid, and of anything built on it, stand on."""

from braid.testing.case import Case, without_late_rows
from braid.testing.comparison import assert_same_rows, compare_rows
from braid.testing.generators import cases, random_case
from braid.testing.oracle import oracle

__all__ = ["Case", "assert_same_rows", "cases", "compare_rows", "oracle", "random_case", "without_late_rows"]
