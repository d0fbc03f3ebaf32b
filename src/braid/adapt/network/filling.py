"""What a plan change ships once: the windows that its new sites need.

Each window is filled by reading a channel from further back. A base stream has one channel for all plans, so a site
that has read it before has its window. The channel of a join belongs to the site that makes it. If that site does the
same for both plans, it goes on, and so does its channel; if not, the join is made once more, and all its live rows are
shipped once more.
"""

from __future__ import annotations

from braid.model.program import ALWAYS, Emit, Instruction, Ship, Union
from braid.planning.cost.bill import Charge
from braid.planning.deployment import Deployment
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import SequencedSolution


def filling_cost(problem: Problem, before: Deployment, after: Deployment) -> float:
    """What it costs to ship the live rows of everything that the sites of a new plan have not read before."""
    going_on = sites_going_on(before, after)
    read = {(charge.shipped, charge.target) for charge in before.bill.charges}
    shipped = {
        (charge.shipped, charge.target): charge for charge in after.bill.charges if charge.source != charge.target
    }
    return sum(
        charge.amount * _seconds_alive(problem, charge)
        for key, charge in shipped.items()
        if key not in read or not (charge.shipped in problem.streams or charge.source in going_on)
    )


def _seconds_alive(problem: Problem, charge: Charge) -> float:
    """For how many seconds a stream ships as many rows as are alive at once."""
    is_base = charge.shipped in problem.streams
    mask = problem.mask([charge.shipped] if is_base else charge.streams)
    rate = problem.figures.rate(mask)
    return problem.figures.population(mask) / rate if rate else 0.0


def sites_going_on(before: Deployment, after: Deployment) -> frozenset[str]:
    """The sites that do the same for both plans, with the same inputs.

    Sites with results start anew with each plan, and so does every site of a plan with probe sequences.
    """
    if isinstance(after.solution, SequencedSolution):
        return frozenset()
    old, new = _work(before), _work(after)
    same = {
        site
        for site, work in new.items()
        if work == old.get(site) and not any(isinstance(instruction, Emit) for instruction in work)
    }
    while True:
        senders = {site: _senders(before, site) | _senders(after, site) for site in same}
        remaining = {site for site in same if senders[site] <= same and _senders(before, site) == _senders(after, site)}
        if remaining == same:
            return frozenset(same)
        same = remaining


def _work(plan: Deployment) -> dict[str, frozenset[Instruction]]:
    """What each site does, in whichever order, and wherever it ships the outcome."""
    return {
        site: frozenset(
            _alike(site, instruction)
            for instruction in program.instructions
            if not (isinstance(instruction, Ship) and _is_of_intake(plan, instruction))
        )
        for site, program in plan.programs.items()
    }


def _alike(site: str, instruction: Instruction) -> Instruction:
    """The same instruction for all that differ in nothing that other sites could tell."""
    if isinstance(instruction, Union):
        return Union(tuple(sorted(instruction.streams)), instruction.result)
    if isinstance(instruction, Ship):
        return Ship(instruction.stream, site, instruction.guard)
    return instruction


def _senders(plan: Deployment, target: str) -> frozenset[str]:
    """The sites that ship joins, or parts of streams, to a site. Whole streams come from intakes."""
    return frozenset(
        site
        for site, program in plan.programs.items()
        for ship in program.all_of(Ship)
        if ship.site == target and not _is_of_intake(plan, ship)
    )


def _is_of_intake(plan: Deployment, ship: Ship) -> bool:
    return ship.stream in plan.query.aliases and ship.guard == ALWAYS
