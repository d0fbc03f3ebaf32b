"""What a site does for a deployment: the fragments it runs, and the channels they read and publish on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from braid.model.expressions.expression import Column
from braid.model.program import ALWAYS, Guard
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.sites.fragment import Fragment


@dataclass(frozen=True)
class Outlet:
    """A channel on which a site publishes what one of its fragments makes, as far as a guard lets it through.

    `readers` are the sites that subscribe, the site itself among them if it reads the stream too. The results of the
    query have no readers among the sites. `fields` are the columns that go out, by their names on the wire; None is all
    that the fragment makes. The channel holds at least the last `keep` microseconds of event time for new plans of the
    query, even if all its readers have read further. If `is_offered`, other queries may subscribe too.
    """

    channel: str
    fragment: str
    readers: tuple[str, ...] = ()
    guard: Guard = ALWAYS
    fields: tuple[str, ...] | None = None
    is_offered: bool = False
    keep: int = 0


@dataclass(frozen=True)
class SiteWork:
    """What one site does.

    `own` are the streams that start here, by alias. `fragments` make streams, by name. `arriving` tells which streams
    each channel that is read here carries; several channels may carry parts of one stream. All combinations of the
    query have parts that start at or after `since`.
    """

    query: Query
    own: tuple[str, ...]
    fragments: Mapping[str, Fragment]
    arriving: Mapping[str, tuple[str, ...]]
    outlets: tuple[Outlet, ...]
    since: int = -FOREVER

    @property
    def finals(self) -> tuple[str, ...]:
        """The fragments whose results are those of the query."""
        return tuple(name for name, fragment in self.fragments.items() if fragment.output is None)

    @property
    def alive_at(self) -> int:
        """The event time at which rows had to be alive for this plan: those that had ended were left out."""
        inputs = (stream for fragment in self.fragments.values() for stream in fragment.inputs)
        return max((stream.alive_at for stream in inputs), default=-FOREVER)

    def offered(self) -> Iterator[tuple[Outlet, tuple[str, ...], frozenset[Column]]]:
        """The outlets that later queries may read: with the streams that are joined there, and the columns of them."""
        for outlet in self.outlets:
            stream = self.fragments[outlet.fragment].output
            if outlet.is_offered and stream is not None:
                fields = stream.field_names.items()
                carried = (column for column, name in fields if outlet.fields is None or name in outlet.fields)
                yield outlet, stream.parts, frozenset(carried)
