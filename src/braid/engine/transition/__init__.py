"""Transition strategies: how an engine goes from one plan to another while rows keep coming.

Begin with `strategy.py`, what every strategy is, and `jisc.py`, the default. To add a strategy, write a module with its
transition (copy `jisc.py`) and an entry below; `tests/engine/transition/test_battery.py` then tests it.
"""

from __future__ import annotations

from braid.engine.transition.cacq import cacq
from braid.engine.transition.jisc import jisc
from braid.engine.transition.moving_state import moving_state
from braid.engine.transition.parallel_track import parallel_track
from braid.engine.transition.stairs import stairs, stairs_jisc
from braid.engine.transition.strategy import BuildTrack, Strategy
from braid.errors import PlanError, did_you_mean

__all__ = ["STRATEGIES", "BuildTrack", "Strategy", "strategy_named"]

_ALL = (
    Strategy("jisc", jisc),
    Strategy("moving_state", moving_state),
    Strategy("parallel_track", parallel_track),
    Strategy("cacq", cacq, keeps_join_states=False),
    Strategy("stairs", stairs),
    Strategy("stairs_jisc", stairs_jisc),
)

STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in _ALL}


def strategy_named(name: str) -> Strategy:
    """The strategy of this name; an error if there is none."""
    if not isinstance(name, str) or name not in STRATEGIES:
        raise PlanError(f"there is no strategy '{name}' to change a plan; {did_you_mean(str(name), STRATEGIES)}")
    return STRATEGIES[name]
