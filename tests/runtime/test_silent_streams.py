"""Silent streams are told of once, and only while something waits for them."""

import pytest

from braid.language import parse
from braid.runtime.report import StreamProgress
from braid.runtime.silent_streams import SILENT_BATCHES, SilenceWatch, waited_for

JOIN = "FROM a [NOW], b [NOW] WHERE a.k = b.k"


def progress(active: str) -> dict[str, StreamProgress]:
    return {alias: StreamProgress(alias in active, 0) for alias in "abc"}


@pytest.mark.parametrize(
    ("text", "aliases"),
    [
        (f"SELECT a.k {JOIN}", ""),
        (f"SELECT a.k {JOIN} AND NOT EXISTS (SELECT * FROM c [NOW] WHERE c.k = a.k)", "c"),
        (f"SELECT a.k {JOIN}".replace("a [NOW]", "a [ROWS 2]"), "ab"),
        (f"SELECT COUNT(*) AS n {JOIN} GROUP BY WINDOW(event_time, '1 minute')", "ab"),
    ],
)
def test_which_streams_results_wait_for(text: str, aliases: str) -> None:
    assert waited_for(parse(text)) == set(aliases)


def test_a_silent_stream_is_told_of_once() -> None:
    watch = SilenceWatch("bc")
    told = [watch.update(progress("ab"), 7) for _ in range(3 * SILENT_BATCHES)]
    assert told == [[]] * (SILENT_BATCHES - 1) + [["c"]] + [[]] * 2 * SILENT_BATCHES
    told = [watch.update(progress("a"), 7) for _ in range(SILENT_BATCHES)]
    assert told == [[]] * (SILENT_BATCHES - 1) + [["b"]]


def test_a_stream_is_not_silent_if_it_speaks_now_and_then_or_if_all_are_or_if_nothing_waits() -> None:
    watch = SilenceWatch("abc")
    assert not any(watch.update(progress("abc" if batch % SILENT_BATCHES == 0 else "a"), 7) for batch in range(50))
    assert not any(watch.update(progress(""), 7) for _ in range(50))
    assert not any(watch.update(progress("a"), 0) for _ in range(50))
