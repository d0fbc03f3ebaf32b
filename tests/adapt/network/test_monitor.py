"""What a controller makes of the figures of sites: selectivities, also of joins that the running plan does not make."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.monitor import NetworkMonitor
from braid.adapt.observation import KeyColumn
from braid.adapt.sketch import KeySketch, estimate_share
from braid.language import parse
from braid.model.statistics import Sized, Statistics

RATE, WINDOW, DOMAIN = 100.0, 10.0, 2_000
ORIGINS = {"a": "paris", "b": "lyon", "c": "nice", "d": "rome"}


def monitor(names: str = "abcd") -> NetworkMonitor:
    """For a query whose streams have one key in common."""
    sources = ", ".join(f"{name} [RANGE {WINDOW:g} SECONDS]" for name in names)
    equal = " AND ".join(f"{names[0]}.k = {name}.k" for name in names[1:])
    return NetworkMonitor(parse(f"SELECT * FROM {sources} WHERE {equal}"), {name: ORIGINS[name] for name in names})


def sketches(names: str, rows: int) -> dict[KeyColumn, KeySketch]:
    """Of a few rows, in which most keys have not come yet."""
    made = {}
    for seed, name in enumerate(names):
        made[name, 0] = KeySketch()
        made[name, 0].feed(np.random.default_rng(seed).integers(0, DOMAIN, rows))
    return made


def statistics(
    names: str, joins: Mapping[Sized, float], *, rows: float = 1e6, sketched: int = 0, caution: float = 1.0
) -> Statistics:
    heard = monitor(names)
    heard.caution = caution
    heard.follow(1)
    keys = sketches(names, sketched) if sketched else {}
    so_far = dict.fromkeys(names, rows)
    heard.hear(SiteFigures("paris", INTAKES, dict.fromkeys(names, RATE), keys=keys, rows=so_far, reached=1))
    heard.hear(SiteFigures("lyon", 1, joins, reached=1))
    known = heard.statistics()
    assert known is not None
    return known


@pytest.mark.parametrize("filled", [0.1, 0.5, 1.0])
def test_windows_that_are_not_full_yet_say_the_same_as_full_ones(filled: float) -> None:
    """A window of 10 seconds has half of its rows when its stream is 5 seconds old."""
    population = filled * RATE * WINDOW
    found = 2 * RATE * population / DOMAIN
    known = statistics("ab", {frozenset("ab"): found}, rows=population)
    assert known.selectivities[frozenset("ab")] == pytest.approx(1 / DOMAIN)
    of_heads = {("a", frozenset("ab")): found / 2, ("b", frozenset("ab")): found / 2}
    known = statistics("ab", of_heads, rows=population)
    assert known.selectivities[frozenset("ab")] == pytest.approx(1 / DOMAIN)
    assert known.fanouts["a", frozenset("ab")] == pytest.approx(RATE * WINDOW / DOMAIN)


def test_joins_that_are_made_correct_the_estimates_of_others() -> None:
    """Sketches of a few rows have not seen most keys. Where a pair is joined, it shows by how much they are wrong."""
    found = {("a", frozenset("ab")): RATE * RATE * WINDOW / DOMAIN}
    guessed = statistics("abcd", {}, sketched=500).selectivities[frozenset("cd")]
    assert guessed > 2.5 / DOMAIN
    corrected = statistics("abcd", found, sketched=500).selectivities
    assert corrected[frozenset("cd")] == pytest.approx(1 / DOMAIN, rel=0.15)


def test_pairs_that_are_joined_say_what_the_others_are() -> None:
    """Estimates from sketches do not count where joined pairs connect two streams."""
    found = {("a", frozenset({"a", other})): RATE * RATE * WINDOW / DOMAIN for other in "bcd"}
    known = statistics("abcd", found, sketched=500)
    assert frozenset("cd") not in known.selectivities
    expected = {frozenset({"a", other}): pytest.approx(1 / DOMAIN) for other in "bcd"}
    assert {streams: share for streams, share in known.selectivities.items() if len(streams) == 2} == expected


def test_caution_raises_the_join_of_all_streams_once() -> None:
    plain = statistics("abcd", {}, sketched=500).selectivities
    raised = statistics("abcd", {}, sketched=500, caution=8.0).selectivities
    assert raised[frozenset("cd")] == pytest.approx(2 * plain[frozenset("cd")])
    two = statistics("ab", {}, sketched=500, caution=8.0).selectivities[frozenset("ab")]
    sketched = sketches("ab", 500)
    share = estimate_share(sketched["a", 0], sketched["b", 0])
    assert share is not None
    assert two == pytest.approx(8 * share)


def figures(rate: float, size: float = 50.0, seconds: float = 1.0, more: Sequence[str] = ()) -> SiteFigures:
    rates = {"a": rate, **dict.fromkeys(more, 1.0)}
    return SiteFigures("paris", INTAKES, rates, {"a": size}, seconds=seconds, reached=1)


@pytest.mark.parametrize(
    ("before", "now", "is_news"),
    [
        pytest.param(figures(4), figures(8), False, id="a few rows more"),
        pytest.param(figures(4, seconds=100), figures(8, seconds=100), True, id="a few rows more for long"),
        pytest.param(figures(400), figures(800), True, id="many more"),
        pytest.param(figures(400), figures(440), False, id="less than the drift"),
        pytest.param(figures(4, size=50), figures(4, size=100), False, id="a few wider rows"),
        pytest.param(figures(400, size=50), figures(400, size=100), True, id="many wider rows"),
        pytest.param(figures(4), figures(4, more=["b"]), False, id="a single row of another stream"),
    ],
)
def test_what_moves_by_chance_is_no_news(before: SiteFigures, now: SiteFigures, is_news: bool) -> None:
    assert now.differs(before, 0.15) == before.differs(now, 0.15) == is_news


def test_the_load_of_a_site_is_that_of_its_intakes_and_its_joins() -> None:
    heard = monitor("ab")
    heard.follow(1)
    heard.hear(SiteFigures("paris", INTAKES, {"a": RATE, "b": RATE}, reached=1, load=0.25))
    heard.hear(SiteFigures("paris", 1, {frozenset("ab"): 1.0}, reached=1, load=0.5))
    heard.hear(SiteFigures("lyon", 1, {}, reached=1))
    known = heard.statistics()
    assert known is not None
    assert known.loads == {"paris": 0.75}


@pytest.mark.parametrize("load", [None, 0.125])
def test_figures_tell_the_load_if_it_is_known(load: float | None) -> None:
    told = SiteFigures("paris", INTAKES, {"a": RATE}, reached=1, load=load)
    assert SiteFigures.from_json(told.to_json()) == told
    earlier = {name: value for name, value in told.to_json().items() if name != "load"}
    assert SiteFigures.from_json(earlier).load is None
