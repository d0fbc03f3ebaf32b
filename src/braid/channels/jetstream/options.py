"""How to reach the NATS server that has the channels of a network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from braid.channels.broker_options import addresses, check_prefix, check_replicas, check_seconds
from braid.errors import ChannelError, did_you_mean
from braid.model.checks import check

TEXTS = ("user", "password", "token", "credentials", "tls_ca", "tls_certificate", "tls_key")
"""The options that are texts, if they are given."""


@dataclass(frozen=True)
class NatsOptions:
    """`prefix` sets the networks apart that share a server. `credentials` and those with `tls` are paths of files.

    `timeout` is how many seconds to wait for one answer, `patience` how many seconds to try before that is an error.
    `replicas` is the number of servers of a cluster that keep a copy.
    """

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    credentials: str | None = None
    tls_ca: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    prefix: str = "braid"
    replicas: int = 1
    timeout: float = 10.0
    patience: float = 60.0

    def __post_init__(self) -> None:
        if not self.urls:
            raise ChannelError("channels of kind 'nats' need the 'url' of a server, such as nats://127.0.0.1:4222")
        for url in self.urls:
            if not (isinstance(url, str) and _is_url(url)):
                raise ChannelError(
                    f"'{url}' is no address of a NATS server; write nats://host:port, or tls://host:port"
                )
        check_prefix(self.prefix, "NATS")
        check_seconds(self.timeout, "timeout", "NATS")
        check_seconds(self.patience, "patience", "NATS")
        check_replicas(self.replicas, "NATS")
        for name in TEXTS:
            check(getattr(self, name), str | None, f"{name} of NATS channels", ChannelError)

    @property
    def shown_urls(self) -> str:
        """The addresses without what is secret in them."""
        return ", ".join(re.sub(r"//[^/@]*@", "//", url) for url in self.urls)

    def to_json(self) -> dict[str, Any]:
        defaults = {each.name: each.default for each in fields(self)}
        changed = {name: value for name, value in vars(self).items() if name != "urls" and value != defaults[name]}
        return {"kind": "nats", "url": list(self.urls), **changed}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> NatsOptions:
        known = {each.name for each in fields(cls)} - {"urls"} | {"kind", "url"}
        for name in content:
            if name not in known:
                raise ChannelError(f"channels of kind 'nats' have no option '{name}'; {did_you_mean(name, known)}")
        urls = addresses(content.get("url"), "url", "NATS")
        return cls(urls, **{name: value for name, value in content.items() if name not in ("kind", "url")})


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("nats", "tls", "ws", "wss") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
