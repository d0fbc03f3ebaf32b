"""From a sequence for each head to the program of each site (the node operator sets of the NOS paper).

If a step is placed at its source, the probed stream is shipped to the site of the rows, which keeps its window. If it
is placed at its destination, the rows are shipped to the site where the probed stream starts. The rows of a head after
some steps are the derived stream `head>stream>..`.
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
"""The instructions of each site, in order and without duplicates."""


def head_operators(problem: Problem, plan: HeadPlan) -> Operators:
    """The instructions of each site for the sequence of one head (the paper's NOS of a sequence)."""
    sites, graph = problem.topology.names, problem.query.graph
    arrow = separator(problem.query, ">")
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
    """The derived stream at the end of a sequence, and the site that makes it."""
    here = problem.origins[plan.head]
    for stream, placement in zip(plan.order, plan.placements, strict=True):
        here = here if placement == SOURCE else problem.origins[stream]
    names = (problem.streams[stream] for stream in (plan.head, *plan.order))
    return separator(problem.query, ">").join(names), here


def sequence_programs(solution: SequencedSolution) -> dict[str, SiteProgram]:
    """The program of each site: the instructions for all heads, windows first, then joins, then shipping."""
    problem = solution.problem
    operators: Operators = defaultdict(dict)
    for plan in solution.heads:
        for site, instructions in head_operators(problem, plan).items():
            operators[site].update(instructions)
        name, here = end_of(problem, plan)
        emitting = problem.topology.names[here if problem.sink is None else problem.sink]
        operators[emitting].update(dict.fromkeys(finish(problem.query, name)))
    for alias, origin in zip(problem.streams, problem.origins, strict=True):
        selections = problem.query.graph.selections_of(alias)
        filters: list[Instruction] = [Filter(alias, predicate) for predicate in selections]
        site = problem.topology.names[origin]
        operators[site] = {**dict.fromkeys(filters), **operators[site]}
    programs = {site: _program(problem, list(instructions)) for site, instructions in operators.items() if instructions}
    check_shipped(programs)
    return programs


ORDER: tuple[type[Instruction], ...] = (Filter, Update, Join, Ship, Project, Emit)
"""The order of instructions in a program, by kind."""


def _program(problem: Problem, instructions: list[Instruction]) -> SiteProgram:
    # The sort is stable, so the joins of each head stay in the order of its sequence.
    ordered = sorted(instructions, key=lambda instruction: ORDER.index(type(instruction)))
    results = {instruction.result for instruction in ordered if isinstance(instruction, Join | Project)}
    available = results.union(problem.streams)
    read = [name for instruction in ordered for name in reads(instruction)]
    arriving = dict.fromkeys(name for name in read if name not in available)
    return SiteProgram(problem.query, tuple(ordered), tuple(arriving))
