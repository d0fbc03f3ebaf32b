"""What keeps all channels of a simulation: while it restarts, nothing can be read or published. Nothing gets lost."""

from __future__ import annotations


class Unreachable(Exception):  # noqa: N818
    """The broker did not answer. What was asked for may have been done."""


class Broker:
    """Up, or away until a moment. It goes in the middle of things: some operations succeed before it is gone."""

    def __init__(self) -> None:
        self._left: int | None = None
        self._end = 0.0
        self.back: float | None = None
        """When it is back, if it is away."""

    def restart(self, operations: int, end: float) -> None:
        """Go after this many more operations, and be back at a moment."""
        self._left, self._end = operations, max(end, self._end)
        if self.back is not None:
            self.back = self._end

    def come_back(self, now: float) -> bool:
        """Be back; False if another restart takes longer, or nobody has noticed that it was away."""
        if self._end > now:
            return False
        was_away = self.back is not None
        self._left = self.back = None
        return was_away

    def check(self) -> None:
        """Do an operation: `Unreachable` if the broker is away, or goes now."""
        if self._left is not None:
            if self._left == 0:
                self.back = self._end
            else:
                self._left -= 1
        if self.back is not None:
            raise Unreachable
