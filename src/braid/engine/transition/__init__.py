"""From one plan to another while rows keep coming: every strategy, by name.

To add one: a module here with its transition (copy `jisc.py`), an entry below, and the battery in
`tests/engine/transition` runs it.
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
    if not isinstance(name, str) or name not in STRATEGIES:
        raise PlanError(f"there is no strategy '{name}' to change a plan; {did_you_mean(str(name), STRATEGIES)}")
    return STRATEGIES[name]
