"""From the reports of all shards on a batch to a plan change."""

from __future__ import annotations

from collections.abc import Sequence

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import PlanChange
from braid.adapt.expectation import UNKNOWN, Expectation
from braid.adapt.observation import Observation
from braid.model.plan import Plan
from braid.runtime.report import ShardReport


def observe_reports(
    adaptation: Adaptation, reports: Sequence[ShardReport], time: float, batch: int
) -> PlanChange | None:
    """Give the reports on a batch to the controller; returns the plan change that it wants, if any."""
    query = adaptation.plan.query
    plans = [Plan.of(query, report.plan) for report in reports]
    # If any shard has not changed to the plan asked for, the query still runs the old one.
    running = next((plan for plan in plans if plan != adaptation.plan), adaptation.plan)
    tried = next((report for report in reports if report.against is not None), None)
    against = None if tried is None else Plan.of(query, tried.against)
    expected = UNKNOWN if tried is None else Expectation.from_plain(tried.expected)
    observation = Observation.merged(report.observation for report in reports)
    return adaptation.observe(observation, time, batch, running, against, expected)
