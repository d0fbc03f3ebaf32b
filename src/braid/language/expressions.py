"""Expressions: from sqlglot's tree to Braid's. What is not known here is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import pyarrow as pa
from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.dialect import CALL, PLACE
from braid.language.literals import interval_literal, negative, number_literal, suffixed_number, time_literal
from braid.language.names import (
    CALLED,
    COMPARISONS,
    FUNCTION_NAMES,
    FUNCTION_NODES,
    LEAST_ARGUMENTS,
    MOST_ARGUMENTS,
    OPERATORS,
    PARTS,
    SIZED_NAMES,
    TYPE_NAMES,
    TYPES,
)
from braid.language.refusal import place_of, refuse_expression, refuse_function, written_name
from braid.language.tokens import TYPE_HINT, shorten
from braid.model.expressions.expression import Call, Cast, Column, Expression, Literal
from braid.model.expressions.functions import FUNCTIONS
from braid.model.expressions.types import TypeMismatch

DEEPEST = 100
"""Expressions within expressions, at most, so that no walk over them exhausts the stack."""

Resolve = Callable[[str, Span | None], str]
"""The alias that a qualifier stands for."""


class ExpressionReader:
    """Reads the expressions of one query text."""

    def __init__(self, text: str, resolve: Resolve) -> None:
        self._text = text
        self._resolve = resolve
        self._depth = 0

    def read(self, node: exp.Expr) -> Expression:
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise QueryError(
                    f"expressions are nested more than {DEEPEST} deep",
                    self._text,
                    place_of(node),
                    "take it apart",
                )
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: exp.Expr) -> Expression:
        kind = type(node)
        special = _SPECIAL.get(kind)
        if special is not None or kind in OPERATORS or kind in FUNCTION_NODES:
            self._refuse_foreign_name(node)
        self._refuse_number_of_arguments(node)
        if special is not None:
            return special(self, node)
        if kind in OPERATORS:
            self._refuse_extras(node, "this", "expression")
            if kind in COMPARISONS:
                self._refuse_bare_tests(node)
            return self._call(node, OPERATORS[kind], node.this, node.args["expression"])
        if kind in FUNCTION_NODES:
            function, keys = FUNCTION_NODES[kind]
            self._refuse_extras(node, *keys)
            return self._call(node, function, *_arguments(node, keys))
        raise refuse_expression(node, self._text, list(FUNCTION_NAMES))

    def _refuse_foreign_name(self, node: exp.Expr) -> None:
        """What sqlglot reads as a function of Braid's, though Spark does not know it by that name."""
        call = node.meta.get(CALL)
        if call is not None and not isinstance(node, exp.Anonymous) and call.name.lower() not in CALLED:
            raise refuse_function(call.name, self._text, place_of(node), list(FUNCTION_NAMES))

    def _refuse_number_of_arguments(self, node: exp.Expr) -> None:
        """Arguments that sqlglot has passed over are not in the tree, so they are counted in the text."""
        call = node.meta.get(CALL)
        if call is None:
            return
        name = call.name.lower()
        least, most = LEAST_ARGUMENTS.get(name, 0), MOST_ARGUMENTS.get(name, call.arguments)
        if least <= call.arguments <= most:
            return
        wanted = "1 argument" if most == 1 else f"{most} arguments" if least == most else f"at most {most} arguments"
        problem = f"{call.name.upper()} takes {wanted}, not {call.arguments}"
        raise QueryError(problem, self._text, place_of(node), "what it may be given is in the reference")

    def _refuse_extras(self, node: exp.Expr, *known: str) -> None:
        """Nothing that is written may be passed over in silence."""
        for key, value in node.args.items():
            if key not in known and key not in _FLAGS and value not in (None, False, []):
                name = written_name(node, self._text).upper()
                problem = f"this form of {name} is not supported"
                raise QueryError(problem, self._text, place_of(node), "what it may be given is in the reference")

    def _refuse_bare_tests(self, node: exp.Expr) -> None:
        """Spark compares before it does BETWEEN, IN and LIKE, and sqlglot afterwards: only brackets mean the same."""
        for operand in (node.this, node.args["expression"]):
            test = operand.this if isinstance(operand, exp.Not) else operand
            if isinstance(test, _TESTS) and CALL not in test.meta:
                raise QueryError(
                    "it is unclear what is compared here, and what is tested",
                    self._text,
                    place_of(node),
                    "put what belongs together into brackets: a.x = (b.y IN (1, 2))",
                )

    def _call(self, node: exp.Expr, function: str, *operands: exp.Expr | None) -> Expression:
        given = [operand for operand in operands if operand is not None]
        if len(given) < len(operands):
            name = written_name(node, self._text).upper()
            raise QueryError(f"{name} lacks an argument", self._text, place_of(node), "write it")
        return self._checked(Call(function, tuple(self.read(operand) for operand in given), place_of(node)))

    def _checked(self, call: Call) -> Call:
        try:
            FUNCTIONS[call.function].check_arity(call)
        except TypeMismatch as problem:
            raise QueryError(problem.message, self._text, call.span, problem.hint) from None
        return call

    def _paren(self, node: exp.Expr) -> Expression:
        call = node.meta.get(CALL)
        if call is not None and call.name.upper() in ("AND", "OR"):
            hint = f"write it between two conditions: x {call.name} y"
            raise QueryError(f"{call.name.upper()} is no function", self._text, place_of(node), hint)
        return self.read(node.this)

    def _column(self, node: exp.Expr) -> Expression:
        assert isinstance(node, exp.Column)
        span = place_of(node)
        if isinstance(node.this, exp.Star) or not isinstance(node.this, exp.Identifier):
            raise refuse_expression(node.this, self._text, [])
        if node.args.get("db") is not None:
            raise QueryError(
                f"'{self._written(span)}' has too many parts",
                self._text,
                span,
                "write stream.column; fields of structs are not supported",
            )
        qualifier = node.args.get("table")
        source = None if qualifier is None else self._resolve(qualifier.name, place_of(qualifier))
        return Column(source, node.name, span)

    def _literal(self, node: exp.Expr) -> Expression:
        assert isinstance(node, exp.Literal)
        span = place_of(node)
        if node.is_string:
            return Literal(node.name, pa.string(), span)
        return number_literal(node.name, span, self._text)

    def _boolean(self, node: exp.Expr) -> Expression:
        return Literal(bool(node.this), pa.bool_(), place_of(node))

    def _null(self, node: exp.Expr) -> Expression:
        return Literal(None, pa.null(), place_of(node))

    def _raw(self, node: exp.Expr) -> Expression:
        return Literal(node.name, pa.string(), place_of(node))

    def _hex(self, node: exp.Expr) -> Expression:
        digits = node.name
        try:
            return Literal(bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")), pa.binary(), place_of(node))
        except ValueError:
            raise QueryError(
                "these are no hexadecimal digits", self._text, place_of(node), "for example X'1F'"
            ) from None

    def _interval(self, node: exp.Expr) -> Expression:
        assert isinstance(node, exp.Interval)
        return interval_literal(node, self._text)

    def _negate(self, node: exp.Expr) -> Expression:
        # The minus belongs to the number: the least of a type has no positive counterpart in it.
        span, operand = place_of(node), node.this
        if isinstance(operand, exp.Literal) and not operand.is_string:
            return number_literal("-" + operand.name, span, self._text)
        suffixed = self._suffixed(operand, "-")
        if suffixed is not None:
            return replace(suffixed, span=span)
        value = self.read(operand)
        folded = negative(value, span) if isinstance(value, Literal) else None
        return folded or Call("negate", (value,), span)

    def _suffixed(self, node: exp.Expr, sign: str = "") -> Literal | None:
        """A number with its type after it, such as 10L, which sqlglot reads as a cast; None if that is not written."""
        span = place_of(node)
        if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal) or span is None:
            return None
        return suffixed_number(sign + self._written(span), span, self._text)

    def _cast(self, node: exp.Expr) -> Expression:
        self._refuse_extras(node, "this", "to")
        suffixed = self._suffixed(node)
        if suffixed is not None:
            return suffixed
        span = place_of(node)
        operand = node.this
        target = self._type(node.args["to"])
        written = self._written(span).lower()
        if isinstance(operand, exp.Literal) and operand.is_string and written.startswith(("date", "timestamp")):
            return time_literal(operand.name, target, place_of(operand) or span, self._text)
        return Cast(self.read(operand), target, span)

    def _type(self, node: exp.Expr) -> pa.DataType:
        assert isinstance(node, exp.DataType)
        type_ = TYPES.get(node.this)
        written = self._written(place_of(node)).upper()
        collation = node.args.get("collate")
        if collation is not None:
            hint = "texts compare by their bytes"
            raise QueryError("COLLATE is not supported", self._text, place_of(collation), hint)
        word, bracket, size = written.partition("(")
        is_sized = word.strip() in SIZED_NAMES and size.removesuffix(")").strip().isdecimal()
        is_known = not written or word.strip() in TYPE_NAMES or is_sized
        if is_known and node.this == exp.DType.DECIMAL:
            return self._decimal(node, bool(bracket))
        if type_ is None or node.expressions or not is_known:
            problem = f"there is no type {shorten(written)} to cast to"
            raise QueryError(problem, self._text, place_of(node), TYPE_HINT)
        return type_

    def _decimal(self, node: exp.DataType, is_sized: bool) -> pa.DataType:
        digits = [parameter.name for parameter in node.expressions]
        numbers = (1, 2) if is_sized else (0,)
        if len(digits) not in numbers or not all(digit.isdigit() and len(digit) < 4 for digit in digits):
            raise QueryError(
                "DECIMAL takes two whole numbers", self._text, place_of(node), "for example DECIMAL(10, 2)"
            )
        precision, scale = [*map(int, digits), 10, 0][:2] if not digits else [*map(int, digits), 0][:2]
        if not 1 <= precision <= 38 or scale > precision:
            raise QueryError(
                f"there is no DECIMAL({precision}, {scale})",
                self._text,
                place_of(node),
                "it has 1 to 38 digits, and no more than that after the point",
            )
        return pa.decimal128(precision, scale)

    def _connective(self, node: exp.Expr) -> Expression:
        """A chain of AND or OR as a balanced tree: long chains are common, deep trees are not welcome."""
        function = "and" if isinstance(node, exp.And) else "or"
        parts = [self.read(part) for part in node.flatten(unnest=False)]
        return balanced(function, parts)

    def _not(self, node: exp.Expr) -> Expression:
        return Call("not", (self.read(node.this),), place_of(node))

    def _require(self, word: str, left: exp.Expr, right: exp.Expr) -> None:
        """Some words may be missing between two expressions, as far as sqlglot is concerned."""
        first, last = place_of(left), place_of(right)
        if first and last and word not in self._text[first.end : last.start].upper():
            raise QueryError(f"{word} is missing here", self._text, first.union(last), f"write {word} between the two")

    def _between(self, node: exp.Expr) -> Expression:
        self._require("AND", node.args["low"], node.args["high"])
        value, low, high = (self.read(node.args[key]) for key in ("this", "low", "high"))
        span = place_of(node)
        if node.args.get("symmetric"):
            raise QueryError("BETWEEN SYMMETRIC is not supported", self._text, span, "write the smaller bound first")
        return Call("and", (Call("greater_equal", (value, low), span), Call("less_equal", (value, high), span)), span)

    def _in(self, node: exp.Expr) -> Expression:
        if node.args.get("query") is not None or node.args.get("unnest") is not None or not node.expressions:
            hint = "for example x IN (1, 2, 3); instead of a subquery, join the stream; for NOT IN, NOT EXISTS (..)"
            raise QueryError("IN takes a list of values", self._text, place_of(node), hint)
        return self._call(node, "in", node.this, *node.expressions)

    def _is(self, node: exp.Expr) -> Expression:
        operand, what = self.read(node.this), node.args["expression"]
        span = place_of(node)
        if isinstance(what, exp.Null):
            return Call("is_null", (operand,), span)
        if isinstance(what, exp.Boolean):
            return Call("same", (operand, Literal(bool(what.this), pa.bool_())), span)
        raise QueryError(
            "IS is followed by NULL, TRUE, FALSE or DISTINCT FROM",
            self._text,
            span,
            "compare with =, or with <=>",
        )

    def _distinct(self, node: exp.Expr) -> Expression:
        same = Call("same", (self.read(node.this), self.read(node.args["expression"])), place_of(node))
        return Call("not", (same,), place_of(node))

    def _like(self, node: exp.Expr, escape: exp.Expr | None = None) -> Expression:
        self._refuse_extras(node, "this", "expression", "negate")
        pattern = node.args["expression"]
        if isinstance(pattern, exp.Any | exp.All | exp.Tuple):
            raise QueryError(
                "LIKE ANY and LIKE ALL are not supported",
                self._text,
                place_of(node),
                "join several LIKE with OR",
            )
        operands = [node.this, pattern, *([] if escape is None else [escape])]
        function = {"ilike": "ilike", "regexplike": "rlike"}.get(node.key, "like")
        call = self._call(node, function, *operands)
        return Call("not", (call,), call.span) if node.args.get("negate") else call

    def _escape(self, node: exp.Expr) -> Expression:
        if not isinstance(node.this, exp.Like | exp.ILike):
            raise refuse_expression(node, self._text, [])
        return self._like(node.this, node.args["expression"])

    def _case(self, node: exp.Expr) -> Expression:
        subject = node.args.get("this")
        arguments: list[Expression] = []
        for branch in node.args["ifs"]:
            self._require("THEN", branch.this, branch.args["true"])
            condition = self.read(branch.this)
            if subject is not None:
                condition = Call("equal", (self.read(subject), condition), condition.span)
            arguments += [condition, self.read(branch.args["true"])]
        default = node.args.get("default")
        arguments.append(Literal(None, pa.null()) if default is None else self.read(default))
        return self._checked(Call("case", tuple(arguments), place_of(node)))

    def _if(self, node: exp.Expr) -> Expression:
        otherwise = node.args.get("false")
        default = Literal(None, pa.null()) if otherwise is None else self.read(otherwise)
        return Call("case", (self.read(node.this), self.read(node.args["true"]), default), place_of(node))

    def _nullif(self, node: exp.Expr) -> Expression:
        value, other = self.read(node.this), self.read(node.args["expression"])
        equal = Call("equal", (value, other), place_of(node))
        return Call("case", (equal, Literal(None, pa.null()), value), place_of(node))

    def _concat(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.DPipe):
            parts = [self.read(part) for part in node.flatten(unnest=False)]
            return self._checked(Call("concat", tuple(parts), place_of(node)))
        parts = [self.read(part) for part in node.expressions]
        written = [part.value for part in parts if isinstance(part, Literal) and isinstance(part.value, str)]
        if len(written) == len(parts) and self._written(place_of(node))[:1] in ("'", '"'):
            # 'a' 'b' is one text in two pieces.
            return Literal("".join(written), pa.string(), place_of(node))
        return self._checked(Call("concat", tuple(parts), place_of(node)))

    def _trim(self, node: exp.Expr) -> Expression:
        self._refuse_extras(node, "this", "expression", "position")
        position = str(node.args.get("position") or "BOTH").upper()
        function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
        return self._call(node, function, *_arguments(node, ("this", "expression")))

    def _log(self, node: exp.Expr) -> Expression:
        base, value = node.this, node.args["expression"]
        if isinstance(base, exp.Literal) and base.name == "10":
            return self._call(node, "log10", value)
        return self._call(node, "log", base, value)

    def _extract(self, node: exp.Expr) -> Expression:
        unit = node.name.lower()
        function = "fractional_second" if unit in ("second", "seconds") else PARTS.get(unit)
        if function is None:
            raise QueryError(f"EXTRACT does not know '{unit}'", self._text, place_of(node), did_you_mean(unit, PARTS))
        return self._call(node, function, node.args["expression"])

    def _truncate(self, node: exp.Expr) -> Expression:
        unit, call = node.args.get("unit"), node.meta.get(CALL)
        if call is None or not call.begins_with_text:
            self._refuse_unit(node, "DATE_TRUNC")
        literal = Literal("" if unit is None else unit.name.lower(), pa.string(), place_of(node))
        return Call("date_trunc", (literal, self.read(node.this)), place_of(node))

    def _refuse_unit(self, node: exp.Expr, name: str) -> NoReturn:
        """A name without quotes is a column's, though sqlglot takes it for a unit of time."""
        hint = f"for example {name}('day', ts)"
        raise QueryError(f"{name} takes its unit as a text in quotes", self._text, place_of(node), hint)

    def _to_date(self, node: exp.Expr) -> Expression:
        """Where the text has no TO_DATE, sqlglot has put one around what a function of dates is given."""
        if node.this is None:
            raise QueryError("an argument is missing here", self._text, place_of(node.parent or node), "write it")
        if PLACE not in node.meta:
            return self.read(node.this)
        if node.args.get("format") is not None:
            hint = "a text like '2024-01-31' needs none; read others before the query"
            raise QueryError("TO_DATE with a format is not supported", self._text, place_of(node), hint)
        return Cast(self.read(node.this), pa.date32(), place_of(node))

    def _anonymous(self, node: exp.Expr) -> Expression:
        name = written_name(node, self._text).lower()
        if name == "date_part" and len(node.expressions) == 2:
            if not node.expressions[0].is_string:
                self._refuse_unit(node, "DATE_PART")
            return self._extract(exp.Extract(this=exp.var(node.expressions[0].name), expression=node.expressions[1]))
        if name == "isnotnull" and len(node.expressions) == 1:
            return Call("not", (self._call(node, "is_null", *node.expressions),), place_of(node))
        function = FUNCTION_NAMES.get(name)
        if function not in FUNCTIONS:
            raise refuse_expression(node, self._text, list(FUNCTION_NAMES))
        return self._call(node, function, *node.expressions)

    def _unix(self, node: exp.Expr) -> Expression:
        """UNIX_TIMESTAMP(x) of a time; the forms that read the clock or a format are refused."""
        call = node.meta.get(CALL)
        if call is None or call.arguments != 1:
            raise QueryError(
                "UNIX_TIMESTAMP takes one timestamp here",
                self._text,
                place_of(node),
                "cast a text first: CAST(x AS TIMESTAMP)",
            )
        return self._call(node, "unix_timestamp", node.this)

    def _written(self, span: Span | None) -> str:
        return "" if span is None else self._text[span.start : span.end]


def _arguments(node: exp.Expr, keys: tuple[str, ...]) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for key in keys:
        value = node.args.get(key)
        found += value if isinstance(value, list) else [] if value is None else [value]
    return found


def balanced(function: str, parts: list[Expression]) -> Expression:
    """One call of two arguments over many, as flat as can be."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = balanced(function, parts[:half]), balanced(function, parts[half:])
    return Call(function, (left, right), left.span.union(right.span) if left.span else right.span)


_TESTS = (exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)

_FLAGS = frozenset({"typed", "safe", "coalesce", "ignore_nulls", "requires_string", "full_match"})
"""What sqlglot notes on nodes by itself, whatever is written."""

_SPECIAL: dict[type[exp.Expr], Callable[[ExpressionReader, exp.Expr], Expression]] = {
    exp.Paren: ExpressionReader._paren,
    exp.Column: ExpressionReader._column,
    exp.Literal: ExpressionReader._literal,
    exp.Boolean: ExpressionReader._boolean,
    exp.Null: ExpressionReader._null,
    exp.HexString: ExpressionReader._hex,
    exp.RawString: ExpressionReader._raw,
    exp.Interval: ExpressionReader._interval,
    exp.Neg: ExpressionReader._negate,
    exp.Cast: ExpressionReader._cast,
    exp.TryCast: ExpressionReader._cast,
    exp.And: ExpressionReader._connective,
    exp.Or: ExpressionReader._connective,
    exp.Not: ExpressionReader._not,
    exp.Between: ExpressionReader._between,
    exp.In: ExpressionReader._in,
    exp.Is: ExpressionReader._is,
    exp.NullSafeNEQ: ExpressionReader._distinct,
    exp.Like: ExpressionReader._like,
    exp.ILike: ExpressionReader._like,
    exp.RegexpLike: ExpressionReader._like,
    exp.Escape: ExpressionReader._escape,
    exp.Case: ExpressionReader._case,
    exp.If: ExpressionReader._if,
    exp.Nullif: ExpressionReader._nullif,
    exp.Concat: ExpressionReader._concat,
    exp.DPipe: ExpressionReader._concat,
    exp.Trim: ExpressionReader._trim,
    exp.Log: ExpressionReader._log,
    exp.Extract: ExpressionReader._extract,
    exp.TimestampTrunc: ExpressionReader._truncate,
    exp.TsOrDsToDate: ExpressionReader._to_date,
    exp.Anonymous: ExpressionReader._anonymous,
    exp.StrToUnix: ExpressionReader._unix,
}
