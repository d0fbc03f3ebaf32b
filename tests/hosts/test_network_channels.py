"""The channels of a network file: where errors point to."""

from pathlib import Path

import pytest

from braid.errors import FileError
from braid.files.network import load_network
from braid.hosts.network_channels import channels_of_file

FILE = """\
topology: {{links: [[paris, lyon, 0.004]]}}
streams:
  a: {{site: paris, format: json, path: a, schema: {{ts: TIMESTAMP, k: INT}}}}
queries: {{all: {{sql: "SELECT a.k FROM a [RANGE 1 MINUTE]"}}}}
channels: {channels}
"""


@pytest.mark.parametrize(
    ("channels", "message"),
    [
        ("{kind: memory}", "channels in memory can be used only in the process that made them"),
        ("{kind: memory, id: [1]}", "channels in memory can be used only in the process that made them"),
        ("{kind: directory}", "channels of kind 'directory' need the 'path' of a directory, not None"),
        ("{kind: directory, path: 5}", "channels of kind 'directory' need the 'path' of a directory, not 5"),
        ("{kind: directory, paht: x}", "channels of kind 'directory' have no option 'paht'; they have a 'path'"),
        ("{kind: nat}", "there are no channels of kind 'nat'; did you mean 'nats'"),
        ("{kind: nats}", "channels of kind 'nats' need the 'url' of a server"),
        ("{kind: kafka, servers: [5]}", "'5' is no address of a Kafka broker"),
    ],
)
def test_what_is_wrong_with_the_channels_is_named_with_its_line(channels: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "network.yaml"
    file.write_text(FILE.format(channels=channels))
    with pytest.raises(FileError, match=f"network.yaml, line 5: {message}"):
        channels_of_file(load_network(file))
