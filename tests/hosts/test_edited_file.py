"""A network file that is edited while its sites run."""

import os
from pathlib import Path

from braid.files.network import load_network
from braid.hosts.edited_file import EditedFile

CONTENT = """
topology: {{links: [{{source: paris, target: {target}, latency: {latency}}}]}}
streams:
  a: {{site: paris, format: json, path: a, schema: {{ts: TIMESTAMP, k: INT}}}}
queries:
  q: {{sql: "SELECT a.k FROM a [NOW]"}}
"""


def write(path: Path, moment: int, latency: float, target: str = "lyon") -> None:
    path.write_text(CONTENT.format(latency=latency, target=target))
    os.utime(path, (moment, moment))


def test_other_figures_of_links_are_noticed_once(tmp_path: Path) -> None:
    path = tmp_path / "network.yaml"
    write(path, 1, 0.004)
    file = EditedFile(load_network(path))
    assert file.edited_topology() is None
    write(path, 2, 0.5)
    topology = file.edited_topology()
    assert topology is not None and topology.links[0].latency == 0.5
    assert file.edited_topology() is None


def test_a_file_with_mistakes_or_other_sites_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "network.yaml"
    write(path, 1, 0.004)
    file = EditedFile(load_network(path))
    path.write_text("topology: [")
    os.utime(path, (2, 2))
    assert file.edited_topology() is None
    write(path, 3, 0.5, target="nice")
    assert file.edited_topology() is None
    write(path, 4, 0.5)
    assert file.edited_topology() is not None
