"""Plans that were made before: whether they are for this query, over this network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from braid.errors import PlanError, QueryError
from braid.language import bind
from braid.model.checks import shown
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.planning.deployment import Deployment
from braid.planning.solution.written import solution_of, written_of
from braid.runtime.fingerprint import meaning


def fitted(plan: object, name: str, query: Query, origins: Mapping[str, str], topology: Topology) -> Deployment:
    """A plan that was made before, for a query with a name, whose streams are declared.

    `origins` tells at which site each of its streams starts, by alias. The plan may be of a query whose streams are not
    declared, as `braid.plan` makes it from a text. `PlanError` if it is for another query or for another network.
    """
    if not isinstance(plan, Deployment):
        raise PlanError(
            f"a plan is a deployment that braid.plan has made, not {shown(plan)}; to name a planner, write planner=.."
        )
    if plan.query != query:
        plan = _of_declared_streams(plan, name, query)
    differences = [*_unknown_places(plan, topology), *_other_origins(plan, origins)]
    if differences:
        raise PlanError(
            f"the plan is for another network than that of query '{name}': {'; '.join(differences)}; "
            "plan the query over this network, with the sites where its streams start"
        )
    return plan


def _of_declared_streams(plan: Deployment, name: str, query: Query) -> Deployment:
    """The same plan for a query that means the same, and whose streams are declared."""
    declared = {source.declared.name: source.declared for source in query.inputs}
    try:
        bound = plan.query if plan.query.bound else bind(plan.query, declared)
    except QueryError:
        bound = None
    if bound is None or bound.schemas != query.schemas or meaning(bound) != meaning(query):
        raise PlanError(
            f"the plan is for another query than '{name}', or for other streams; give braid.plan the text of this "
            "query, or braid.parse(text, streams) with the streams that are declared"
        )
    written = written_of(plan.solution)
    if written is None:
        raise PlanError(
            f"the plan of query '{name}' reuses joins of others, or divides keys that cannot be written, and its "
            "streams are not declared; plan braid.parse(text, streams) with the streams that are declared"
        )
    problem = replace(plan.solution.problem, query=query)
    return Deployment(plan.planner, solution_of(written, problem))


def _unknown_places(plan: Deployment, topology: Topology) -> Iterator[str]:
    """The sites and links that a plan needs and the network does not have."""
    needed = {site for path in plan.paths.values() for site in path}.union(plan.programs, _origins(plan).values())
    unknown = sorted(needed.difference(topology.names))
    if unknown:
        yield f"there is no {' and no '.join(f'site {site!r}' for site in unknown)} here"
    linked = {(link.source, link.target) for link in topology.links}
    linked |= {(link.target, link.source) for link in topology.links if not link.one_way}
    used = {step for path in plan.paths.values() for step in pairwise(path)}
    for source, target in sorted(used - linked):
        if source not in unknown and target not in unknown:
            yield f"there is no link from '{source}' to '{target}' here"


def _other_origins(plan: Deployment, origins: Mapping[str, str]) -> Iterator[str]:
    for alias, planned in _origins(plan).items():
        if origins[alias] != planned:
            yield f"stream '{alias}' starts at '{origins[alias]}', and the plan has it start at '{planned}'"


def _origins(plan: Deployment) -> dict[str, str]:
    """The site where a plan has each stream start, by alias."""
    problem = plan.solution.problem
    return {alias: problem.topology.names[site] for alias, site in zip(problem.streams, problem.origins, strict=True)}
