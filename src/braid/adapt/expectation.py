"""What a plan change on trial is expected to do. It is in the checkpoint with the plans, for whoever goes on."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from braid.errors import ModelError
from braid.model.checks import is_figure


@dataclass(frozen=True, slots=True)
class Expectation:
    """The share of the work that a change is predicted to save, and the work per row before it; None if not known."""

    predicted: float | None = None
    work_before: float | None = None

    def to_plain(self) -> list[float | None]:
        return list(astuple(self))

    @classmethod
    def from_plain(cls, content: Any) -> Expectation:
        """What `to_plain` wrote; nothing is known if there is none. Raises a `ModelError` for anything else."""
        if content is None:
            return UNKNOWN
        if not isinstance(content, list) or len(content) != 2 or not all(map(_is_figure_or_none, content)):
            raise ModelError(f"what is expected of a plan change is two numbers or nulls, not {content!r:.200}")
        return cls(*content)


UNKNOWN = Expectation()


def _is_figure_or_none(figure: object) -> bool:
    return figure is None or is_figure(abs(figure) if isinstance(figure, float) else figure)
