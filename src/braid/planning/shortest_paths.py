"""Dijkstra's algorithm from all sites at once, compiled with numba."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]


@numba.njit(cache=True)
def spread_along(values: Floats, starts: Integers, targets: Integers, lengths: Floats) -> None:
    """Lower the value of each site, in position, to the least sum of another site's value and the path from there.

    The links of site u are those from `starts[u]` up to `starts[u + 1]`. Only sites that lower the value of a neighbour
    enter the heap, so values that are almost final take one pass over the links.
    """
    keys = np.empty(len(lengths) + len(values) + 1)
    sites = np.empty(len(lengths) + len(values) + 1, np.int32)
    count = 0
    for site in range(len(values)):
        value = values[site]
        for link in range(starts[site], starts[site + 1]):
            if value + lengths[link] < values[targets[link]]:
                count = _push(keys, sites, count, value, site)
                break
    while count:
        value, site = keys[0], sites[0]
        count = _pop(keys, sites, count)
        if value > values[site]:
            continue
        for link in range(starts[site], starts[site + 1]):
            through = value + lengths[link]
            target = targets[link]
            if through < values[target]:
                values[target] = through
                if count == len(keys):
                    keys = np.concatenate((keys, np.empty(count)))
                    sites = np.concatenate((sites, np.empty(count, np.int32)))
                count = _push(keys, sites, count, through, target)


@numba.njit(cache=True)
def _push(keys: Floats, sites: Integers, count: int, key: float, site: int) -> int:
    position = count
    while position:
        parent = (position - 1) >> 1
        if keys[parent] <= key:
            break
        keys[position], sites[position] = keys[parent], sites[parent]
        position = parent
    keys[position], sites[position] = key, site
    return count + 1


@numba.njit(cache=True)
def _pop(keys: Floats, sites: Integers, count: int) -> int:
    count -= 1
    key, site = keys[count], sites[count]
    position = 0
    while True:
        child = 2 * position + 1
        if child >= count:
            break
        if child + 1 < count and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[position], sites[position] = keys[child], sites[child]
        position = child
    keys[position], sites[position] = key, site
    return count
