"""What the shards of a site report: figures for people, and observations by which its joins change their orders."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Policy
from braid.adapt.history import RecordedChange
from braid.hosts.site_teller import SiteTeller
from braid.hosts.spark.driver.control import Control
from braid.hosts.spark.driver.progress import progress_of
from braid.runtime.adapting import observe_reports
from braid.runtime.report import ShardReport
from braid.runtime.sites.site_spec import SiteSpec


class SiteReports:
    """Takes the reports of each micro-batch of a site; Spark calls it from a thread of its own.

    The order inside a join of more than two inputs is free. With `adapt` it changes as in a query on one site.
    """

    def __init__(
        self,
        spec: SiteSpec,
        control: Control,
        adapt: bool | Policy,
        teller: SiteTeller | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._spec = spec
        self._control = control
        self._teller = teller
        self._clock = clock
        self._lock = threading.Lock()
        self._progress: dict[str, dict[str, Any]] = {}
        self._adaptations = {
            name: Adaptation(node.plan, adapt) for name, node in spec.nodes.items() if len(node.fragment.inputs) > 2
        }

    def receive(self, batch: int, reports: Sequence[ShardReport]) -> None:
        by_node: dict[str, list[ShardReport]] = defaultdict(list)
        for report in reports:
            name, _ = self._spec.shard_of[report.shard]
            by_node[name].append(report)
        with self._lock:
            for name, own in by_node.items():
                self._progress[name] = progress_of(batch, own, self._spec.nodes[name], None, {})
                if name in self._adaptations:
                    self._adapt(name, batch, own)
                if self._teller is not None:
                    self._teller.receive(name, own)

    def _adapt(self, name: str, batch: int, reports: Sequence[ShardReport]) -> None:
        change = observe_reports(self._adaptations[name], reports, self._clock(), batch)
        if change is not None:
            self._control.send(change.after, change.against, change.expected, node=name)

    def progress(self) -> dict[str, dict[str, Any]]:
        """The figures of the last micro-batch that each join of the site took part in."""
        with self._lock:
            return dict(self._progress)

    def history(self) -> dict[str, tuple[RecordedChange, ...]]:
        """The plan changes of each join whose order is free."""
        with self._lock:
            return {name: adaptation.history.changes for name, adaptation in self._adaptations.items()}

    def clear(self) -> None:
        """Forget everything: datasketches reports sketches that are still alive when Python ends as leaks."""
        with self._lock:
            self._progress.clear()
            self._adaptations.clear()
