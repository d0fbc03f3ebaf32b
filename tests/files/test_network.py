"""Network files: what a query may say about reuse, and where it begins."""

from pathlib import Path

import pytest

from braid.errors import FileError
from braid.files.network import NetworkFile, load_network
from braid.model.window import FOREVER

FILE = """\
topology: {{links: [[paris, lyon, 0.004]]}}
streams:
  a: {{site: paris, format: json, path: a, schema: {{ts: TIMESTAMP, k: INT}}}}
queries:
  all:
    sql: SELECT a.k FROM a [RANGE 1 MINUTE]
{keys}
"""


TOPOLOGY = """\
topology:
  links:
    - [paris, lyon, 0.004]
    - {link}
  sites: {sites}
streams:
  a: {{site: paris, format: json, path: a, schema: {{ts: TIMESTAMP, k: INT}}}}
queries:
  all: {{sql: "SELECT a.k FROM a [RANGE 1 MINUTE]"}}
"""


def load(directory: Path, keys: str = "") -> NetworkFile:
    file = directory / "network.yaml"
    file.write_text(FILE.format(keys=keys))
    return load_network(file)


@pytest.mark.parametrize(
    ("since", "moment"),
    [
        ("2024-07-01 06:00:00", 1_719_813_600_000_000),
        ("2024-07-01T08:00:00+02:00", 1_719_813_600_000_000),
        ("2024-07-01", 1_719_792_000_000_000),
        ("5", 5),
    ],
)
def test_a_query_says_where_it_begins_and_whether_it_reuses_joins(since: str, moment: int, tmp_path: Path) -> None:
    (query,) = load(tmp_path, f"    since: {since}\n    reuse: true").queries
    assert (query.since, query.reuse) == (moment, True)
    (query,) = load(tmp_path).queries
    assert (query.since, query.reuse) == (-FOREVER, False)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("    since: yesterday", r"line 7: queries.all.since must be a time such as 2024-07-01 06:00:00, or micros"),
        ("    since: true", r"line 7: queries.all.since must be a time"),
        (f"    since: {10**30}", r"line 7: a moment is a datetime, or a whole number of microseconds"),
        ("controller: nobody", r"line 7: there is no controller 'nobody'; "),
        ("    statistics: nowhere.yaml", r"line 7: cannot read .*nowhere\.yaml"),
        ("channels: nats", r"line 7: channels must be a mapping with a kind, such as .*, not 'nats'"),
        ("channels:", r"line 7: channels must be a mapping with a kind, such as .*, not empty"),
        ("channels: {url: 5}", r"line 7: channels need the key 'kind'"),
        ("channels: {kind: 5}", r"line 7: channels.kind must be a string, not 5"),
        ("    reuse: sometimes", r"line 7: queries.all.reuse must be true or false, not 'sometimes'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(keys: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=message):
        load(tmp_path, keys)


@pytest.mark.parametrize(
    ("link", "sites", "message"),
    [
        ("[lyon, nice, fast]", "[paris, lyon, nice]", r"line 4: the latency of link lyon - nice cannot be 'fast'"),
        ("[lyon, lyon, 0.1]", "[paris, lyon]", r"line 4: a link connects 'lyon' with itself"),
        ("{source: lyon}", "[paris, lyon]", r"line 4: a link needs the name of its target, not None"),
        ("{source: lyon, goal: nice}", "[paris, lyon]", r"line 4: a link has no field 'goal'"),
        (
            "[lyon, niece, 0.1]",
            "[paris, lyon, nice]",
            r"line 4: link lyon - niece names an unknown site 'niece'",
        ),
        ("[lyon, paris, 0.1]", "[paris, lyon]", r"line 4: link lyon - paris is given twice"),
        ("[lyon, nice, 0.1]", "paris", r"line 5: topology.sites must be a list of names or mappings, not 'paris'"),
        ("[lyon, nice, 0.1]", "[paris, lyon, 7]", r"line 5: a site is a name, or a mapping"),
        ("[lyon, nice, 0.1]", "[paris, lyon, nice, paris]", r"line 1: two sites are called 'paris'"),
    ],
)
def test_what_is_wrong_with_a_topology_is_named_with_its_line(
    link: str, sites: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "network.yaml"
    file.write_text(TOPOLOGY.format(link=link, sites=sites))
    with pytest.raises(FileError, match=message):
        load_network(file)
