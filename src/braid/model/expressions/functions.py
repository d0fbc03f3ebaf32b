"""The functions of the language: how many arguments each takes, and the rule for the type of its result."""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.expressions import element_rules, number_rules, rules, text_rules
from braid.model.expressions.expression import Call
from braid.model.expressions.types import TypeMismatch

MANY = 100_000
"""The most arguments of a function that takes any number of them."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The typing rule of a function, and the least and the most arguments it takes."""

    rule: rules.Rule
    least: int
    most: int

    def check_arity(self, call: Call) -> None:
        count = len(call.arguments)
        if self.least <= count <= self.most:
            return
        expected = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
        if self.most == MANY:
            expected = f"at least {self.least}"
        plural = "" if expected == "1" else "s"
        raise TypeMismatch(f"{rules.name(call)} takes {expected} argument{plural}, not {count}", call)


def _signatures(rule: rules.Rule, least: int, most: int, *names: str) -> dict[str, Signature]:
    return {name: Signature(rule, least, most) for name in names}


FUNCTIONS: dict[str, Signature] = {
    **_signatures(
        rules.comparison, 2, 2, "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same"
    ),
    **_signatures(rules.truth, 2, 2, "and", "or"),
    **_signatures(rules.truth, 1, 1, "not"),
    **_signatures(rules.nulls, 1, 1, "is_null"),
    **_signatures(rules.membership, 2, MANY, "in"),
    **_signatures(rules.branches, 3, MANY, "case"),
    **_signatures(rules.alternatives, 1, MANY, "coalesce"),
    **_signatures(rules.extremes, 2, MANY, "greatest", "least"),
    **_signatures(number_rules.addition, 2, 2, "add"),
    **_signatures(number_rules.subtraction, 2, 2, "subtract"),
    **_signatures(number_rules.multiplication, 2, 2, "multiply"),
    **_signatures(number_rules.division, 2, 2, "divide"),
    **_signatures(number_rules.integer_division, 2, 2, "div"),
    **_signatures(number_rules.remainder, 2, 2, "remainder"),
    **_signatures(number_rules.negation, 1, 1, "negate"),
    **_signatures(number_rules.absolute, 1, 1, "abs"),
    **_signatures(number_rules.real, 1, 1, "sign", "sqrt", "exp", "ln", "log10"),
    **_signatures(number_rules.real, 2, 2, "power", "log"),
    **_signatures(number_rules.whole, 1, 1, "floor", "ceil"),
    **_signatures(number_rules.rounding, 1, 2, "round"),
    **_signatures(text_rules.like, 2, 3, "like", "ilike"),
    **_signatures(text_rules.regular_expression, 2, 2, "rlike"),
    **_signatures(text_rules.text_test, 2, 2, "startswith", "endswith", "contains"),
    **_signatures(text_rules.text, 1, 1, "lower", "upper"),
    **_signatures(text_rules.text, 1, 2, "trim", "ltrim", "rtrim"),
    **_signatures(text_rules.text, 2, 3, "replace"),
    **_signatures(text_rules.size, 1, 1, "length"),
    **_signatures(text_rules.part_of_text, 2, 3, "substring"),
    **_signatures(text_rules.concatenation, 1, MANY, "concat"),
    **_signatures(rules.date_part, 1, 1, "year", "quarter", "month", "week", "day", "dayofweek", "dayofyear"),
    **_signatures(rules.date_part, 1, 1, "hour", "minute", "second"),
    **_signatures(rules.second_with_fraction, 1, 1, "fractional_second"),
    **_signatures(rules.epoch, 1, 1, "unix_seconds", "unix_millis", "unix_micros", "unix_timestamp"),
    **_signatures(rules.truncation, 2, 2, "date_trunc"),
    **_signatures(element_rules.field, 2, 2, "field"),
    **_signatures(element_rules.element, 2, 2, "element"),
}
"""Every function by its name in `Call.function`. Operators have the names that `INFIX` gives them."""
