"""Joins with weaker filters: what a running query and a later one can share, although the running one filters more.

The join has the conditions that both queries imply. It is a query of its own, with a text, so that it can be deployed
like any other. `weaker_join` plans it as the running query has planned its own: the same order at the same sites. Then
`reading` gives the running query a plan that reads the weaker join and checks its own filters there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from braid.errors import BraidError, PlanningError
from braid.language import parse
from braid.model.advertisement import Advertisement
from braid.model.expressions.expression import Column, Expression, columns_of, map_columns
from braid.model.needed_columns import columns_needed_outside
from braid.model.predicate import Predicate, conjunction
from braid.model.query import Query, Source
from braid.model.tree import JoinTree, Leaf, Merge, Reused, merges
from braid.planning.assumed import assumed_statistics
from braid.planning.deployment import Deployment
from braid.planning.problem import Problem
from braid.planning.reuse.implication import implied
from braid.planning.reuse.matching import Match
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class WeakerJoin:
    """The plan of a join for two queries.

    `names` has the alias of each of its streams in the running query.
    """

    text: str
    plan: Deployment
    names: Mapping[str, str]


def weakenable(running: Deployment, offered: Advertisement) -> Advertisement | None:
    """A join that a running query offers, as later queries may have it with weaker filters.

    None if it has no filters. With weaker ones it has the columns that they read, too.
    """
    filters = [predicate for predicate in offered.query.predicates if len(predicate.sources) == 1]
    streams = frozenset(offered.query.aliases)
    advertised = (one for one in running.advertise(weaken=True) if one.site == offered.site and one.may_weaken)
    weaker = next((one for one in advertised if frozenset(one.query.aliases) == streams), None)
    if weaker is None or not filters or offered.columns is None:
        return None
    return replace(weaker, columns=offered.columns.union(*(columns_of(one.expression) for one in filters)))


def weaker_join(
    running: Deployment, match: Match, problem: Problem, available: Collection[Column]
) -> WeakerJoin | None:
    """The join that serves the running query and the one of a problem, which matches it with weaker filters.

    None if it needs other columns of the running query than are `available`, or cannot be written as a query.
    """
    ours = dict(match.names)
    sources = [replace(source, alias=ours[source.alias], span=None) for source in match.advertisement.query.sources]
    streams = {source.declared.name: source.declared for source in sources}
    conditions = _common_conditions(match, problem.query)
    theirs = {alias: name for name, alias in match.names}
    columns = _columns_for_both(running.query, match, problem.query)
    if not all(Column(theirs[column.source or ""], column.name) in available for column in columns):
        return None
    text = _text(sources, conditions, columns or [Column(sources[0].alias, sources[0].declared.time)])
    try:
        query = parse(text, streams)
    except BraidError:
        return None
    if query.sources != tuple(sources) or set(query.predicates) != set(conditions):
        return None
    placement: dict[Merge, str] = {}
    solution = running.solution
    assert isinstance(solution, TreeSolution)
    join = next(merge for merge in merges(solution.tree) if merge.streams == frozenset(ours))
    tree = _renamed_tree(join, ours, solution.placement, placement)
    try:
        own = Problem.of(query, problem.statistics, problem.topology, problem.model)
    except PlanningError:  # The statistics of the query tell nothing of conditions that only the running one has.
        known = replace(assumed_statistics(query), sites=problem.statistics.sites)
        own = Problem.of(query, known, problem.topology, problem.model)
    plan = Deployment(running.planner, TreeSolution(own, tree, placement, 1))
    return WeakerJoin(text, plan, theirs)


def _common_conditions(match: Match, query: Query) -> list[Predicate]:
    """The conditions of the running query that the other one implies, and the filters of that one which it implies."""
    ours = dict(match.names)

    def renamed(predicate: Predicate) -> Predicate:
        return Predicate(_renamed(predicate.expression, ours))

    theirs = match.advertisement.query.predicates
    kept = [renamed(predicate) for predicate in theirs if predicate not in match.weakened]
    strict = [renamed(predicate).expression for predicate in theirs]
    filters = [one.expression for one in query.conditions_within(match.streams) if len(one.sources) == 1]
    return list(dict.fromkeys([*kept, *(Predicate(one) for one in filters if implied(one, strict))]))


def _columns_for_both(running: Query, match: Match, query: Query) -> list[Column]:
    """The columns of the joined streams that either query needs behind the join."""
    ours = dict(match.names)
    columns = [*columns_needed_outside(query, match.streams)]
    for predicate in match.remaining:
        columns += columns_of(predicate.expression)
    theirs = [*columns_needed_outside(running, frozenset(ours))]
    for predicate in match.weakened:
        theirs += columns_of(predicate.expression)
    columns += [Column(ours[column.source or ""], column.name) for column in theirs]
    return list(dict.fromkeys(columns))


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    return map_columns(expression, lambda column: Column(names.get(column.source or "", column.source), column.name))


def _text(sources: list[Source], conditions: list[Predicate], columns: list[Column]) -> str:
    """The query as SQL, with every name in quotes."""
    selected = ", ".join(f"{_quoted(column)} AS c{number}" for number, column in enumerate(columns))
    joined = ", ".join(f"{_name(source.stream)} {source.window} AS {_name(source.alias)}" for source in sources)
    where = conjunction([Predicate(map_columns(one.expression, _quoted)) for one in conditions]) if conditions else ""
    return f"SELECT {selected} FROM {joined}{' WHERE ' if where else ''}{where}"


def _quoted(column: Column) -> Column:
    return Column(_name(column.source or ""), _name(column.name))


def _name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _renamed_tree(
    tree: JoinTree, names: Mapping[str, str], placed: Mapping[Merge, str], placement: dict[Merge, str]
) -> JoinTree:
    """The same tree with other aliases; notes the sites of its joins."""
    if isinstance(tree, Merge):
        merge = Merge(tuple(_renamed_tree(below, names, placed, placement) for below in tree.inputs))
        placement[merge] = placed[tree]
        return merge
    assert isinstance(tree, Leaf)
    return Leaf(names[tree.stream])


def reading(running: Deployment, advertisement: Advertisement) -> Deployment | None:
    """The plan of a running query, with one of its joins read from a derived stream at the same site.

    None if the derived stream has not all that the query needs, or the plan has no such join there.
    """
    solution = running.solution
    if not isinstance(solution, TreeSolution):
        return None
    old = solution.problem
    problem = _with_offers(old, [advertisement])
    for merge in merges(solution.tree):
        site = old.topology.position(solution.placement[merge])
        if any((offer.mask, offer.site) == (old.mask(merge.streams), site) for offer in problem.offers):
            leaf = Reused(merge.streams, solution.placement[merge], advertisement.name)
            placement: dict[Merge, str] = {}
            tree = _with_leaf(solution.tree, leaf, solution.placement, placement)
            return Deployment(running.planner, TreeSolution(problem, tree, placement, 1))
    return None


def _with_leaf(tree: JoinTree, leaf: Reused, placed: Mapping[Merge, str], placement: dict[Merge, str]) -> JoinTree:
    """The tree with a join replaced by a leaf; notes the sites of the joins that are left."""
    if tree.streams == leaf.streams:
        return leaf
    if not isinstance(tree, Merge):
        return tree
    merge = Merge(tuple(_with_leaf(below, leaf, placed, placement) for below in tree.inputs))
    placement[merge] = placed[tree]
    return merge


def with_offers(plan: Deployment, advertised: Iterable[Advertisement]) -> Deployment:
    """The same plan, whose reused joins are these derived streams."""
    solution = plan.solution
    assert isinstance(solution, TreeSolution)
    return Deployment(plan.planner, replace(solution, problem=_with_offers(solution.problem, advertised)))


def _with_offers(problem: Problem, advertised: Iterable[Advertisement]) -> Problem:
    sink = None if problem.sink is None else problem.topology.names[problem.sink]
    return Problem.of(problem.query, problem.statistics, problem.topology, problem.model, sink, advertised)
