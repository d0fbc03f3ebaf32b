"""From one plan to another while rows keep coming: every way to do it, by name.

A strategy is given the tracks that run, the newest last (none at the start), and a function that puts the new plan
together from combinations that are kept already. It returns the tracks that are to run from now on.
"""

from __future__ import annotations

from braid.engine.transition.cacq import cacq
from braid.engine.transition.jisc import jisc
from braid.engine.transition.moving_state import moving_state
from braid.engine.transition.parallel_track import parallel_track
from braid.engine.transition.stairs import stairs, stairs_jisc
from braid.engine.transition.strategy import Assemble, Strategy
from braid.errors import PlanError, did_you_mean

__all__ = ["STRATEGIES", "Assemble", "Strategy", "strategy_named"]

STRATEGIES: dict[str, Strategy] = {
    "jisc": jisc,
    "moving_state": moving_state,
    "parallel_track": parallel_track,
    "cacq": cacq,
    "stairs": stairs,
    "stairs_jisc": stairs_jisc,
}


def strategy_named(name: str) -> Strategy:
    if not isinstance(name, str) or name not in STRATEGIES:
        raise PlanError(f"there is no strategy '{name}' to change a plan; {did_you_mean(str(name), STRATEGIES)}")
    return STRATEGIES[name]
