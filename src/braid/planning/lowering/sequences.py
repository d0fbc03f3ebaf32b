"""Node operator sets: what each site has to do so that per-head sequences run.

The join of a step runs where its placement says. At the source, the stream that is probed is shipped to where the rows
are, and its window kept there; at the destination, the rows are shipped to where the stream starts. The rows of a head
that have been joined with some streams are the derived stream `head>stream>..`.
"""

from __future__ import annotations

from collections import defaultdict

from braid.model.program import Emit, Filter, Instruction, Join, Project, Ship, SiteProgram, Update, reads
from braid.planning.lowering.checks import check_shipped
from braid.planning.lowering.emitting import finish
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import SOURCE, HeadPlan, SequencedSolution
from braid.planning.stream_names import separator

Operators = dict[str, dict[Instruction, None]]
"""Of each site, its instructions in order, each once."""


def head_operators(problem: Problem, plan: HeadPlan) -> Operators:
    """What each site does for one head, up to the end of its sequence (the paper's NOS of a sequence)."""
    sites, graph, arrow = problem.topology.names, problem.query.graph, separator(problem.query, ">")
    operators: Operators = defaultdict(dict)
    here, bound = problem.origins[plan.head], [problem.streams[plan.head]]
    for stream, placement in zip(plan.order, plan.placements, strict=True):
        name, origin = problem.streams[stream], problem.origins[stream]
        rows = arrow.join(bound)
        if placement == SOURCE:
            if origin != here:
                operators[sites[origin]][Ship(name, sites[here])] = None
        elif origin != here:
            operators[sites[here]][Ship(rows, sites[origin])] = None
            here = origin
        keys, predicates = graph.classes_between(bound, name), graph.residuals_at(bound, name)
        operators[sites[here]][Update(name)] = None
        operators[sites[here]][Join(rows, name, f"{rows}{arrow}{name}", keys, predicates)] = None
        bound.append(name)
    if problem.sink is not None and here != problem.sink:
        operators[sites[here]][Ship(arrow.join(bound), sites[problem.sink])] = None
    return operators


def end_of(problem: Problem, plan: HeadPlan) -> tuple[str, int]:
    """The derived stream that a sequence ends with, and the site where it is made."""
    here = problem.origins[plan.head]
    for stream, placement in zip(plan.order, plan.placements, strict=True):
        here = here if placement == SOURCE else problem.origins[stream]
    names = (problem.streams[stream] for stream in (plan.head, *plan.order))
    return separator(problem.query, ">").join(names), here


def sequence_programs(solution: SequencedSolution) -> dict[str, SiteProgram]:
    """The union of the operator sets of all heads, as programs: windows first, then joins, then what is sent on."""
    problem = solution.problem
    operators: Operators = defaultdict(dict)
    for plan in solution.heads:
        for site, instructions in head_operators(problem, plan).items():
            operators[site].update(instructions)
        name, here = end_of(problem, plan)
        operators[problem.topology.names[here if problem.sink is None else problem.sink]].update(
            dict.fromkeys(finish(problem.query, name))
        )
    for alias, origin in zip(problem.streams, problem.origins, strict=True):
        filters: list[Instruction] = [Filter(alias, found) for found in problem.query.graph.selections_of(alias)]
        site = problem.topology.names[origin]
        operators[site] = {**dict.fromkeys(filters), **operators[site]}
    made = {site: _program(problem, list(found)) for site, found in operators.items() if found}
    check_shipped(made)
    return made


ORDER: tuple[type[Instruction], ...] = (Filter, Update, Join, Ship, Project, Emit)


def _program(problem: Problem, instructions: list[Instruction]) -> SiteProgram:
    # The joins of each head come in the order of its sequence, and stay in it.
    ordered = sorted(instructions, key=lambda instruction: ORDER.index(type(instruction)))
    made = {step.result for step in ordered if isinstance(step, Join | Project)} | set(problem.streams)
    read = [name for step in ordered for name in reads(step)]
    return SiteProgram(problem.query, tuple(ordered), tuple(dict.fromkeys(name for name in read if name not in made)))
