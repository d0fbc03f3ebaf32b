"""The dialect "braid" of sqlglot: Spark's SQL with a window in brackets after each stream.

The tree is sqlglot's own, so that anybody who knows sqlglot can read or rewrite it. Braid adds `StreamTable`, a table
with a window, and two nodes that hold what sqlglot does not know: `WindowNode` and `FunctionNode`.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel
from sqlglot.generators.spark import SparkGenerator

from braid.errors import QueryError
from braid.language.nodes import SPAN, StreamTable, WindowNode, span_of
from braid.language.source_parser import SourceParser
from braid.language.spark_parser import SyntaxFault
from braid.language.syntax_errors import EXAMPLE, syntax_error
from braid.language.tokens import tokenize
from braid.model.duration import duration_text
from braid.model.window_function import WindowFunction

ORDER_OF_CLAUSES = "write them in this order: SELECT .. FROM .. JOIN .. ON .. WHERE .. GROUP BY .. HAVING .."

__all__ = ["Braid", "BraidGenerator", "StreamTable", "WindowNode", "parse_statement"]


def _stream_sql(generator: SparkGenerator, stream: StreamTable) -> str:
    select, function = stream.args.get("select"), stream.function
    window: object = stream.window
    special = ("window", "select", "function", "joins")
    plain = {name: value for name, value in stream.args.items() if name not in special}
    text = str(generator.table_sql(exp.Table(**plain)))
    name = generator.sql(stream, "this")
    if select is not None:
        text = text.replace(name, f"({generator.sql(select)})", 1)
    if function is not None and function.time is None:
        window = f"[HOP {duration_text(function.size)} SLIDE {duration_text(function.slide)}]"
    elif function is not None and function.time is not None:
        text = text.replace(name, _function_sql(name, function.time, function), 1)
        window = None
    # In brackets, the streams that are joined to this one follow its window.
    joins = generator.expressions(stream, key="joins", sep="", flat=True)
    return f"{text} {window or ''}".rstrip() + joins


def _function_sql(name: str, column: str, function: WindowFunction) -> str:
    size, slide = (f"INTERVAL '{length}' MICROSECONDS" for length in (function.size, function.slide))
    time = exp.to_identifier(column, quoted=True).sql(dialect="spark")
    if function.slide == function.size:
        return f"TUMBLE(TABLE {name}, DESCRIPTOR({time}), {size})"
    return f"HOP(TABLE {name}, DESCRIPTOR({time}), {slide}, {size})"


class BraidGenerator(SparkGenerator):
    """Writes the tree back as text that parses to the same tree."""

    # QUALIFY stays QUALIFY, which Spark does not have.
    TRANSFORMS = {  # noqa: RUF012
        **{node: write for node, write in SparkGenerator.TRANSFORMS.items() if node is not exp.Select},
        StreamTable: _stream_sql,
    }


class Braid(Spark):
    """The dialect, known to sqlglot as "braid"."""

    Parser = SourceParser
    Generator = BraidGenerator

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """Leave JSON paths as they are: they are refused later, and checking them here would only log warnings."""
        return path


def parse_statement(text: str) -> exp.Select | exp.Except:
    """The syntax tree of a text that is one SELECT, or several combined by EXCEPT; any other text is a `QueryError`.

    >>> parse_statement("SELECT * FROM bids [RANGE 2min] AS b").sql(dialect="braid")
    'SELECT * FROM bids AS b [RANGE 2 MINUTES]'
    """
    dialect = Braid()
    tokens = tokenize(text, dialect.tokenizer())
    try:
        statements = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except QueryError:
        raise
    except SyntaxFault as problem:
        raise syntax_error(problem.description, problem.token, text) from None
    except RecursionError:
        raise QueryError("the query is nested too deeply", text, hint="simplify it") from None
    except Exception:
        # sqlglot fails in many ways on texts that it does not expect; for the user each one is an error in the text.
        raise QueryError("the query cannot be understood", text, hint=f"it reads like {EXAMPLE}") from None
    statement = statements[0] if statements else None
    if isinstance(statement, exp.Select | exp.Except):
        _check_order_of_clauses(statement, text)
        _take_fields_apart(statement)
        return statement
    if isinstance(statement, exp.SetOperation):
        raise QueryError(f"{statement.key.upper()} is not supported", text, hint="run its parts as two queries")
    raise QueryError("a query is a SELECT statement", text, hint=f"for example {EXAMPLE}")


CLAUSES = {
    "from_": "FROM",
    "joins": "FROM",
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
}
"""The clauses of a SELECT in the order in which SQL has them, by sqlglot's names. Joins are the streams of FROM."""


def _check_order_of_clauses(statement: exp.Expr, text: str) -> None:
    """Refuse clauses in another order than that of SQL, in which sqlglot reads them too."""
    for select in statement.find_all(exp.Select):
        earlier, start = "SELECT", 0
        for argument, clause in CLAUSES.items():
            nodes = select.args.get(argument) or []
            spans = [span_of(node) for node in (nodes if isinstance(nodes, list) else [nodes])]
            for span in filter(None, spans):
                if span.start < start:
                    misplaced = f"{clause} stands before " + ("a stream of FROM" if earlier == "FROM" else earlier)
                    raise QueryError(misplaced, text, span, ORDER_OF_CLAUSES)
                earlier, start = clause, span.start


def _take_fields_apart(statement: exp.Expr) -> None:
    """Make `a.address.city` a field of the column `a.address`; sqlglot reads it as a column of a table in a schema."""
    for column in list(statement.find_all(exp.Column)):
        source, *names = column.parts
        if len(names) < 2 or isinstance(column.this, exp.Star):
            continue
        node: exp.Expr = exp.Column(this=names[0].copy(), table=source.copy())
        for name in names[1:]:
            node = exp.Dot(this=node, expression=name.copy())
        if SPAN in column.meta:
            node.meta[SPAN] = column.meta[SPAN]
        column.replace(node)
