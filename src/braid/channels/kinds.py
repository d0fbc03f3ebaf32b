"""The kinds of channels by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from braid.channels.channels import Channels
from braid.channels.directories import DirectoryChannels
from braid.channels.memory import MemoryChannels
from braid.errors import ChannelError, did_you_mean
from braid.model.checks import shown


def _nats(content: Mapping[str, Any]) -> Channels:
    try:
        from braid.channels.jetstream.channels import NatsChannels
    except ModuleNotFoundError as error:
        raise ChannelError(f"channels of kind 'nats' need {error.name}; install braid[nats]") from error
    return NatsChannels.from_json(content)


def _kafka(content: Mapping[str, Any]) -> Channels:
    try:
        from braid.channels.kafka.channels import KafkaChannels
    except ModuleNotFoundError as error:
        raise ChannelError(f"channels of kind 'kafka' need {error.name}; install braid[kafka]") from error
    return KafkaChannels.from_json(content)


KINDS: dict[str, Callable[[Mapping[str, Any]], Channels]] = {
    "memory": MemoryChannels.from_json,
    "directory": DirectoryChannels.from_json,
    "nats": _nats,
    "kafka": _kafka,
}


def channels_of(content: Mapping[str, Any]) -> Channels:
    """The channels that `Channels.to_json` describes."""
    if not isinstance(content, Mapping):
        raise ChannelError(
            f"channels are a mapping with a 'kind', such as {{kind: nats, url: ..}}, not {shown(content)}"
        )
    kind = str(content.get("kind"))
    if kind not in KINDS:
        raise ChannelError(f"there are no channels of kind '{kind}'; {did_you_mean(kind, KINDS)}")
    return KINDS[kind](content)


def open_channels(content: Mapping[str, Any] | None, directory: Path) -> Channels:
    """The channels that a network file describes; without a description they are in the directory of the network."""
    return DirectoryChannels(directory) if content is None else channels_of(content)
