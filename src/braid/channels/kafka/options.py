"""How to reach the Kafka cluster that holds the channels of a network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from braid.channels.broker_options import addresses, check_prefix, check_replicas, check_seconds
from braid.errors import ChannelError, did_you_mean
from braid.model.checks import check

SERVER = re.compile(r"[^\s,/]+:\d{1,5}")

Setting = str | int | float | bool
Settings = tuple[tuple[str, Setting], ...]

RESERVED = {"bootstrap.servers": "'servers'", "group.id": None, "transactional.id": None, "enable.auto.commit": None}
"""Settings of the client that Braid sets itself, each with the option to give instead, if there is one."""


@dataclass(frozen=True)
class KafkaOptions:
    """`client` are settings of the client library, by its own names: encryption, login, compression.

    `topic` are settings of the topics that Braid creates. `replicas` is the number of brokers that keep a copy; if it
    is None, the brokers choose. `prefix` separates networks that share a cluster. `timeout` is how many seconds to wait
    for one answer, `patience` how many seconds to try again before a cluster that does not answer is an error. Without
    `administer`, the brokers create topics when they are first used, and Braid neither trims nor deletes any.
    """

    servers: tuple[str, ...]
    client: Settings = field(default=(), repr=False)
    topic: Settings = ()
    prefix: str = "braid"
    replicas: int | None = None
    timeout: float = 10.0
    patience: float = 60.0
    administer: bool = True

    def __post_init__(self) -> None:
        if not self.servers:
            raise ChannelError("channels of kind 'kafka' need the 'servers' of a cluster, such as 127.0.0.1:9092")
        for server in self.servers:
            if not (isinstance(server, str) and SERVER.fullmatch(server)):
                raise ChannelError(f"'{server}' is no address of a Kafka broker; write host:port")
        check_prefix(self.prefix, "Kafka")
        check_seconds(self.timeout, "timeout", "Kafka")
        check_seconds(self.patience, "patience", "Kafka")
        if self.replicas is not None:
            check_replicas(self.replicas, "Kafka")
        check(self.administer, bool, "administer of Kafka channels", ChannelError)
        for name, _ in self.client:
            if name in RESERVED:
                advice = f"give {RESERVED[name]} instead" if RESERVED[name] else "leave it out"
                raise ChannelError(f"the setting '{name}' of the client of Kafka channels is Braid's own; {advice}")

    @property
    def client_settings(self) -> dict[str, Setting]:
        return dict(self.client)

    def to_json(self) -> dict[str, Any]:
        changed = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name != "servers" and getattr(self, each.name) != each.default
        }
        for name in ("client", "topic"):
            if name in changed:
                changed[name] = dict(changed[name])
        return {"kind": "kafka", "servers": list(self.servers), **changed}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> KafkaOptions:
        known = {each.name for each in fields(cls)} | {"kind"}
        for name in content:
            if name not in known:
                raise ChannelError(f"channels of kind 'kafka' have no option '{name}'; {did_you_mean(name, known)}")
        options = {name: value for name, value in content.items() if name != "kind"}
        options["servers"] = addresses(options.get("servers"), "servers", "Kafka")
        for name in ("client", "topic"):
            if name in options:
                options[name] = _settings(name, options[name])
        return cls(**options)


def _settings(name: str, content: Any) -> Settings:
    if not isinstance(content, Mapping):
        raise ChannelError(f"'{name}' of Kafka channels must be a mapping of settings; {content!r} was given")
    for setting, value in content.items():
        if not isinstance(value, str | int | float):
            raise ChannelError(f"the setting '{setting}' in '{name}' of Kafka channels must be a text or a number")
    return tuple(sorted((str(setting), value) for setting, value in content.items()))
