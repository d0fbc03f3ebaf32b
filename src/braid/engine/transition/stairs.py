"""STAIRs: an eddy whose windows may also hold combinations, which must follow when its routes change.

*Demote* takes combinations apart that the new routes do not use, which here is to let go of them: the rows they were
made of are in the windows of their streams. *Promote* makes those that the new routes do use. All at once, that comes
to Moving State; promoting only what a row asks for is just-in-time completion.
"""

from __future__ import annotations

from braid.engine.transition.jisc import jisc
from braid.engine.transition.moving_state import moving_state

stairs = moving_state
stairs_jisc = jisc
