"""Fan-outs along the probe sequences of the running plan, from what its joins have counted."""

from __future__ import annotations

from collections.abc import Mapping

from braid.model.statistics import Prefix

JoinKey = tuple[tuple[str, ...], str]
"""The streams joined so far, in order, and the stream they probe."""


def fanouts_of(joins: Mapping[JoinKey, tuple[float, float]], rows: Mapping[str, float]) -> dict[Prefix, float]:
    """How many combinations of each prefix a row of its head has made, given the probes and matches of each join.

    `rows` are the rows of each head. A prefilter drops some of them before their first probe. During a trial, rows of
    one head take one of two orders; where both join the same streams, the order that more rows took counts.
    """
    first_probes: dict[str, float] = {}
    for (bound, _), (probes, _) in joins.items():
        if len(bound) == 1:
            first_probes[bound[0]] = first_probes.get(bound[0], 0.0) + probes
    means: dict[tuple[str, ...], float] = {
        (head,): probes / rows[head] for head, probes in first_probes.items() if rows.get(head)
    }
    fanouts: dict[Prefix, float] = {}
    most_probes: dict[Prefix, float] = {}
    for (bound, stream), (probes, matches) in sorted(joins.items(), key=lambda join: len(join[0][0])):
        if bound not in means or (means[bound] and not probes):
            continue  # Nothing went along this order.
        prefix, order = (bound[0], frozenset([*bound, stream])), (*bound, stream)
        means[order] = means[bound] * matches / probes if probes else 0.0
        order_probes = joins[order[:1], order[1]][0]
        if order_probes >= most_probes.get(prefix, 0.0):
            fanouts[prefix], most_probes[prefix] = means[order], order_probes
    return fanouts
