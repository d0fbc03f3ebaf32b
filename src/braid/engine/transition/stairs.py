"""STAIRs: an eddy that also keeps combinations, and moves them when its routes change.

*Demote* breaks combinations up that the new routes do not use. Here that means to drop them: their rows are in the
windows of their streams. *Promote* makes the combinations that the new routes use. Promoting all at once is Moving
State; promoting only what a row needs is just-in-time completion (JISC).
"""

from __future__ import annotations

from braid.engine.transition.jisc import jisc
from braid.engine.transition.moving_state import moving_state

stairs = moving_state
stairs_jisc = jisc
