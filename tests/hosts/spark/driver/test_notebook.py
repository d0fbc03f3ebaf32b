"""What a notebook shows of sessions, queries, plans and histories, and how a session is stopped."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.adapt.history import RecordedChange
from braid.errors import StreamError
from braid.hosts.spark.driver.notebook import RecordedChanges
from braid.hosts.spark.driver.session import Session
from braid.model.plan import Plan
from braid.testing.stream_files import ROWS, THREE_WAY_JOIN, random_rows
from tests.hosts.conftest import Feed, declare, reported, run_out

NASTY = "<script>alert('&')</script>"


class Tags(HTMLParser):
    """Checks that every tag is closed, and collects the tags and the texts between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_plan_is_drawn_and_everything_is_escaped() -> None:
    text = f"SELECT a.x FROM a [NOW], `{NASTY}` [NOW] AS b WHERE a.x = b.x AND (a.y < b.y OR a.s = '{NASTY}')"
    query = braid.parse(text.replace("'&'", "&"))
    for plan in (Plan.in_text_order(query), Plan.of(query, ("b", "a"))):
        shown = Tags(plan._repr_html_())
        assert "script" not in shown.tags
        assert any("a.x = b.x and ((a.y < b.y) OR (a.s = '<script>" in text for text in shown.texts)
        assert {"a", "b"} <= set(shown.texts)


def test_a_history_is_a_table() -> None:
    change = RecordedChange(7, 0.0, NASTY, {"a": ["b", "c"]}, (("a", "b"), "c"), "kept", 0.98, 0.5, -12_345.6)
    shown = Tags(RecordedChanges([change])._repr_html_())
    assert shown.tags.count("tr") == 2 and "script" not in shown.tags
    for text in ("7", "1970-01-01 00:00:00", NASTY, "a: b, c", "((a ⋈ b) ⋈ c)", "98%", "0.5", "-12,346"):
        assert text in shown.texts
    assert RecordedChanges([change]) == (change,)
    assert "no plan change yet" in RecordedChanges()._repr_html_()


def test_sessions_and_queries_show_their_streams_and_figures(session: Session, feed: Feed, tmp_path: Path) -> None:
    declare(session, feed, "abc")
    query = session.sql(THREE_WAY_JOIN)
    assert "no micro-batch has reported yet" in query._repr_html_()
    result = run_out(query.dataframe, tmp_path)
    reported(query, {"rows_in": 3 * ROWS, "rows_out": result.num_rows})
    shown = Tags(query._repr_html_())
    assert "360" in shown.texts and f"{result.num_rows:,}" in shown.texts
    assert any("[RANGE 20 SECONDS]" in text for text in shown.texts)
    assert query.history()._repr_html_()
    overview = Tags(session._repr_html_())
    assert {"a", "b", "c", "1 SECOND", query.name, "a, b, c"} <= set(overview.texts)
    assert list(session.streams) == ["a", "b", "c"] and session.queries == (query,)
    assert repr(query) == f"<query {query.name} over a, b, c>"
    assert repr(session) == "<session with streams a, b, c and 1 queries>"


def test_stop_ends_the_queries_of_this_session_only(session: Session, feed: Feed, spark: Any, tmp_path: Path) -> None:
    """Also one that has not reported yet; the Spark that was given goes on."""
    declare(session, feed, "abc")
    other = Session(spark)
    other.stream("a", session._dataframes["a"])
    running = {}
    for name, dataframe in {
        "own": session.sql(THREE_WAY_JOIN).dataframe,
        "other": other.sql("SELECT a.n FROM a [NOW]").dataframe,
    }.items():
        writer = dataframe.writeStream.format("noop").option("checkpointLocation", str(tmp_path / name))
        running[name] = writer.start()
    try:
        session.stop()
        assert not running["own"].isActive and running["other"].isActive
    finally:
        running["other"].stop()
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_a_frame_of_another_library_is_told_how_to_become_one_of_spark(session: Session, library: str) -> None:
    table: pa.Table = random_rows(0)
    frame = table.to_pandas() if library == "pandas" else table
    with pytest.raises(StreamError, match=rf"stream 'a' is {library}'s \w+; make a Spark DataFrame of it: session"):
        session.stream("a", frame)  # type: ignore[arg-type]
    session.stream("a", session.spark.createDataFrame(frame))
