"""The query language: from a text to a checked `Query`.

A text passes these modules in turn; begin with `parsing`.

- `tokens` splits it into tokens and checks them; `dialect` parses them into sqlglot's tree, with the window of each
  stream read by `window_syntax`. `spark_parser` repairs sqlglot's own parser, `nodes` has the nodes that Braid adds.
- `existence` finds EXISTS and IN among conditions, and rewrites EXCEPT to NOT EXISTS.
- `parsing` turns the tree into a `Query`: `from_clause` reads FROM, `expressions` reads expressions, with `literals`
  and `intervals` for constants and `names` for the names of functions and types, and `grouping` reads GROUP BY and
  aggregates.
- `binding` resolves names and checks types against the declared streams: `source_binding` those of FROM,
  `expression_binding` those of expressions; `resolving` says when two names match.
- What the engine does not have is left to the host, if there is one: `expressions.hosted` keeps its text,
  `host_aggregates` that of aggregates, `host_types` is what binding asks the host, `host_columns` makes columns of it.

Every error is a `QueryError`: `refusal` has those for SQL that the language lacks, `syntax_errors` those for texts that
do not parse.
"""

from braid.language.binding import bind
from braid.language.parsing import parse

__all__ = ["bind", "parse"]
