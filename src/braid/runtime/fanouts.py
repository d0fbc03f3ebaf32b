"""Fan-outs along the running plan, from what its joins have counted."""

from __future__ import annotations

from collections.abc import Mapping

from braid.model.statistics import Prefix

JoinKey = tuple[tuple[str, ...], tuple[str, ...]]
"""The streams joined so far, in order, and those they probe: one stream, or those of a join state."""

Joins = Mapping[JoinKey, tuple[float, float]]
"""The probes and matches of each join."""


def fanouts_of(joins: Joins, rows: Mapping[str, float]) -> dict[Prefix, float]:
    """The mean number of combinations of each prefix that a row of its head has made along probe sequences.

    `rows` are the rows of each head. A prefilter drops some of them before their first probe. During a trial, rows of
    a head take one of two orders, or both. An order that less than half of them took is left out, because these may be
    the rows that cost most.
    """
    first_probes: dict[str, float] = {}
    for (bound, _), (probes, _) in joins.items():
        if len(bound) == 1:
            first_probes[bound[0]] = first_probes.get(bound[0], 0.0) + probes
    means: dict[tuple[str, ...], float] = {
        (head,): min(1.0, probes / rows[head]) for head, probes in first_probes.items() if rows.get(head)
    }
    fanouts: dict[Prefix, float] = {}
    for (bound, probed), (probes, matches) in sorted(joins.items(), key=lambda join: len(join[0][0])):
        if bound not in means or (means[bound] and not probes):
            continue  # Nothing went along this order.
        head, order = bound[0], (*bound, *probed)
        means[order] = means[bound] * matches / probes if probes else 0.0
        rows_of_order, _ = joins[order[:1], order[1:2]]
        if rows_of_order >= first_probes[head] / 2:
            fanouts[head, frozenset(order)] = means[order]
    return fanouts


def tree_fanouts(joins: Joins, rows: Mapping[str, float]) -> dict[Prefix, float]:
    """The mean number of combinations that a row of each head has made at each join of a tree.

    A join counts the combinations of an input together, whichever head made them. Each is taken to find equally many
    matches: so the figures of a single head are estimates, and only those of all heads together were counted.
    """
    means: dict[Prefix, float] = {(head, frozenset([head])): 1.0 for head, count in rows.items() if count}
    by_sets: dict[tuple[frozenset[str], frozenset[str]], tuple[float, float]] = {}
    for (bound, probed), counts in joins.items():
        probes, matches = by_sets.get((frozenset(bound), frozenset(probed)), (0.0, 0.0))
        by_sets[frozenset(bound), frozenset(probed)] = probes + counts[0], matches + counts[1]
    for (left, right), (probes, matches) in sorted(by_sets.items(), key=lambda join: len(join[0][0])):
        for head in left:
            mean = means.get((head, left))
            if mean is not None and (probes or not mean):
                means[head, left | right] = mean * matches / probes if probes else 0.0
    return {(head, bound): mean for (head, bound), mean in means.items() if len(bound) > 1}
