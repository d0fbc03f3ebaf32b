"""Channels that are described as plain JSON."""

import json

import pytest

from braid.channels.kinds import channels_of
from braid.channels.memory import MemoryChannels
from braid.errors import ChannelError


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ChannelError, match="there are no channels of kind 'directry'; did you mean 'directory'"):
        channels_of({"kind": "directry"})


def test_what_is_no_mapping_is_refused() -> None:
    with pytest.raises(ChannelError, match=r"channels are a mapping with a 'kind', such as .*, not 'nats'"):
        channels_of("nats")  # type: ignore[arg-type]


def test_channels_in_memory_cannot_be_reached_from_elsewhere() -> None:
    here = MemoryChannels()
    described = json.loads(json.dumps(here.to_json()))
    assert channels_of(described) is here
    with pytest.raises(ChannelError, match="only in the process that made them"):
        channels_of({**described, "id": "of another process"})
