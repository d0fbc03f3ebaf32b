"""Tables in FROM: each is attached to one stream, whose rows meet it before they enter any window.

The rows of a table are alive at all times. So a row of a stream joined with a row of a table lives as long as the row
of the stream, and the pair can be made where the stream is read: the columns of the table become columns of the stream,
called `alias.column`. What is left of the query names streams only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from braid.errors import QueryError
from braid.language.attached_tables import all_of, define_view, expand_stars, rename_columns
from braid.language.existence import is_test
from braid.language.from_entries import ANTI, INNER, LEFT, SEMI, Entries, FromEntry
from braid.language.nodes import COMMA, StreamTable, conjuncts_of
from braid.language.views import Scope
from braid.model.table import Table


@dataclass(frozen=True)
class _Condition:
    """A condition of the inner joins, the entries that it reads, and the one in whose ON it stands, if any."""

    node: exp.Expr
    owners: frozenset[str]
    origin: str | None


def attach_tables(statement: exp.Select, scope: Scope) -> None:
    """Join the tables of a statement to their streams: each such stream becomes a view."""
    # A statement without FROM can have a table in a subquery; it is refused where it is parsed.
    tables = (isinstance(scope.find(table.name), Table) for table in statement.find_all(StreamTable))
    if statement.args.get("from_") is not None and any(tables):
        _TableJoins(statement, scope).attach()


class _TableJoins:
    def __init__(self, statement: exp.Select, scope: Scope) -> None:
        self._statement = statement
        self._scope = scope
        self._entries = Entries(statement, scope)
        self._tables = self._entries.tables
        self._streams = self._entries.streams
        self._host: dict[str, str] = {}
        """The stream that each table is attached to, by alias."""

    def attach(self) -> None:
        self._check()
        expand_stars(self._statement, self._entries)
        self._attach_inner()
        for entry in self._tables:
            if entry.kind != INNER:
                self._attach_other(entry)
        self._refuse_subqueries()
        self._remove_joins()
        names = {}
        for host in dict.fromkeys(self._host.values()):
            tables = [entry for entry in self._tables if self._host[entry.alias] == host]
            names[host] = define_view(self._streams[host], tables, self._scope)
        rename_columns(self._statement, self._entries, self._host, names)

    def _refuse_subqueries(self) -> None:
        """Rows meet a table one by one, before any join of streams."""
        for entry in self._tables:
            for condition in entry.conditions:
                subquery = condition.find(exp.Select)
                if subquery is not None:
                    problem = f"a subquery cannot decide which rows of table '{entry.alias}' are joined"
                    raise self._entries.error(subquery, problem, "write EXISTS (..) or IN (SELECT ..) in WHERE")

    def _check(self) -> None:
        known = {id(entry.node) for entry in self._entries.all}
        for table in self._statement.find_all(StreamTable):
            if id(table) not in known and isinstance(self._scope.find(table.name), Table):
                problem = f"'{table.name}' is a table, and EXISTS and IN test streams"
                raise self._entries.error(table, problem, "write LEFT SEMI JOIN or LEFT ANTI JOIN in FROM")
        if not self._streams:
            hint = "a query reads at least one stream"
            raise self._entries.error(self._tables[0].node, "the query reads tables only", hint)
        first = next(iter(self._streams.values()))
        if first.kind != INNER:
            hint = f"begin FROM with a stream, and join '{self._tables[0].alias}' to it"
            raise self._entries.error(first.node, f"{first.kind} JOIN with a stream follows a table", hint)

    def _attach_inner(self) -> None:
        """Find a stream for each table of the inner joins, and take the conditions between the two."""
        tables = [entry for entry in self._tables if entry.kind == INNER]
        conditions = list(self._inner_conditions())
        waiting = list(tables)
        while waiting:
            entry = next((entry for entry in waiting if self._inner_host(entry, conditions)), None)
            if entry is None:
                raise self._no_host(waiting[0])
            waiting.remove(entry)
        rest: list[exp.Expr] = []
        for condition in conditions:
            entry = self._goes_with(condition, tables)
            (rest if entry is None else entry.conditions).append(condition.node)
        if tables:
            self._put_inner_conditions(rest)

    def _goes_with(self, condition: _Condition, tables: list[FromEntry]) -> FromEntry | None:
        """The table in whose join a condition is checked: the last one of those that it reads, or stands at."""
        if any(map(is_test, condition.node.walk())):
            return None
        concerned = [entry for entry in tables if entry.alias in condition.owners or entry.alias == condition.origin]
        hosts = {self._host.get(owner, owner) for owner in condition.owners}
        return concerned[-1] if concerned and hosts <= {self._host[concerned[-1].alias]} else None

    def _inner_conditions(self) -> Iterator[_Condition]:
        """The conditions of the inner joins; those of WHERE too, unless it comes after other joins."""
        clauses: list[tuple[exp.Expr | None, str | None]] = [
            (entry.join.args.get("on"), entry.alias)
            for entry in self._entries.all
            if entry.join and entry.kind == INNER
        ]
        where = self._statement.args.get("where")
        if where is not None and self._takes_where:
            clauses.append((where.this, None))
        for clause, origin in clauses:
            for condition in () if clause is None else conjuncts_of(clause):
                yield _Condition(condition, self._entries.owners(condition), origin)

    @property
    def _takes_where(self) -> bool:
        return all(entry.kind == INNER for entry in self._entries.all)

    def _inner_host(self, entry: FromEntry, conditions: list[_Condition]) -> bool:
        """Attach a table to the stream that its first condition with one stream reads, an equality if there is one."""
        candidates = []
        for condition in conditions:
            hosts = {self._host.get(owner, owner) for owner in condition.owners if owner != entry.alias}
            if entry.alias in condition.owners and len(hosts) == 1 and (host := next(iter(hosts))) in self._streams:
                candidates.append((not isinstance(condition.node.unnest(), exp.EQ), host))
        if not candidates and len(self._streams) == 1:
            candidates = [(True, next(iter(self._streams)))]
        if not candidates:
            return False
        # Sorting is stable: the first equality, else the first condition.
        _, host = sorted(candidates, key=lambda candidate: candidate[0])[0]
        stream = self._streams[host]
        if stream.kind != INNER or host in entry.nullable:
            problem = f"table '{entry.alias}' is joined with '{host}', of which an outer join may have no row"
            raise self._entries.error(
                entry.node, problem, "write LEFT JOIN for the table, or join it in a SELECT in FROM"
            )
        self._attach_to(entry, host)
        return True

    def _attach_other(self, entry: FromEntry) -> None:
        """Attach the table of a LEFT, LEFT SEMI or LEFT ANTI JOIN; all its conditions go with it."""
        assert entry.join is not None
        clause = entry.join.args.get("on")
        entry.conditions = [] if clause is None else list(conjuncts_of(clause))
        owners = frozenset[str]().union(*map(self._entries.owners, entry.conditions)) - {entry.alias}
        hosts = {self._host.get(owner, owner) for owner in owners}
        if not hosts and len(self._streams) == 1:
            hosts = set(self._streams)
        if len(hosts) != 1:
            raise self._no_host(entry)
        (host,) = hosts
        stream = self._streams[host]
        may_be_null = host in entry.nullable
        if stream.kind in (SEMI, ANTI) or (may_be_null and not self._rejects_nulls(entry, host)):
            problem = f"table '{entry.alias}' is joined with '{host}', of which an outer join may have no row"
            raise self._entries.error(entry.node, problem, f"compare a column of '{host}' with one of the table by =")
        if may_be_null and entry.kind != LEFT:
            problem = (
                f"{entry.kind} JOIN of table '{entry.alias}' with '{host}', of which an outer join may have no row"
            )
            raise self._entries.error(entry.node, problem, "join the table before the outer join")
        self._attach_to(entry, host)

    def _rejects_nulls(self, entry: FromEntry, host: str) -> bool:
        """Whether a row of nulls of the stream has no partner in the table, as if the table were joined before."""
        for condition in entry.conditions:
            equality = condition.unnest()
            if isinstance(equality, exp.EQ):
                for side in (equality.this.unnest(), equality.expression.unnest()):
                    if isinstance(side, exp.Column) and self._entries.owners(side) == {host}:
                        return True
        return False

    def _attach_to(self, entry: FromEntry, host: str) -> None:
        window = self._streams[host].node.window
        if window is not None and window.counts_rows:
            problem = f"the window of '{host}' counts rows, and table '{entry.alias}' may repeat or drop them"
            hint = f"say which rows count: FROM (SELECT .. FROM {host} JOIN {entry.alias} ON ..) {window} AS {host}"
            raise self._entries.error(entry.node, problem, hint)
        self._host[entry.alias] = host

    def _no_host(self, entry: FromEntry) -> QueryError:
        return self._entries.error(
            entry.node,
            f"table '{entry.alias}' has no condition with one stream alone",
            f"add one to its ON, {entry.alias}.k = s.k; conditions with other streams may stand beside it",
        )

    def _put_inner_conditions(self, conditions: list[exp.Expr]) -> None:
        """Put back the conditions of the inner joins that stay with the query."""
        for entry in self._entries.all:
            if entry.join is not None and entry.kind == INNER:
                entry.join.set("on", None)
                entry.join.set("kind", "CROSS")
        joins = [
            entry.join
            for entry in self._streams.values()
            if entry.join is not None and entry.kind == INNER and not entry.join.meta.get(COMMA)
        ]
        together = all_of(conditions)
        if self._takes_where:
            self._statement.set("where", None if together is None else exp.Where(this=together))
        elif together is not None and joins:
            joins[-1].set("on", together)
            joins[-1].set("kind", None)
        elif together is not None:
            # A condition of one stream alone that stood in the ON of a table.
            where = self._statement.args.get("where")
            both = all_of([together] if where is None else [together, where.this])
            self._statement.set("where", exp.Where(this=both))

    def _remove_joins(self) -> None:
        """Take the tables out of FROM; the first stream moves to the place of a table that stood there."""
        streams = list(self._streams.values())
        first = streams[0]
        first.node.pop()
        self._statement.args["from_"].set("this", first.node)
        self._statement.set("joins", [entry.join for entry in streams[1:]])
