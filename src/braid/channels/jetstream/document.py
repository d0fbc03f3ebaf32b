"""What a channel knows of its subscribers: one JSON document in the bucket, replaced only if nobody else changed it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError

from braid.channels.batch import NONE
from braid.channels.jetstream.connection import NatsSession
from braid.channels.plain_names import plain_name
from braid.errors import ChannelError


@dataclass(frozen=True)
class Document:
    """`removed` is the newest batch that counts as removed, `revision` the one that was read, 0 if there was none."""

    channel: str
    keep: int = 0
    removed: int = NONE
    released: Mapping[str, int] = field(default_factory=dict)
    revision: int = 0

    async def store(self, session: NatsSession) -> bool:
        """Put this document in the place of the one that was read; False if that is not there any more."""
        content = {"channel": self.channel, "keep": self.keep, "removed": self.removed, "released": self.released}
        data = json.dumps(content).encode()
        try:
            if self.revision:
                await session.bucket.update(_key(self.channel), data, self.revision)
            else:
                await session.bucket.create(_key(self.channel), data)
        except KeyWrongLastSequenceError:
            return False
        return True

    async def reset(self, session: NatsSession) -> bool:
        return await replace(Document(self.channel), revision=self.revision).store(session)


async def load(session: NatsSession, channel: str) -> Document:
    try:
        entry = await session.bucket.get(_key(channel))
    except KeyNotFoundError:
        return Document(channel)
    try:
        content = json.loads(entry.value or b"")
        released = {str(name): int(number) for name, number in content["released"].items()}
        return Document(channel, int(content["keep"]), int(content["removed"]), released, entry.revision or 0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ChannelError(
            f"what the bucket of the NATS server holds on channel '{channel}', under {_key(channel)}, cannot be read: "
            f"{error}; restore it, or remove the channel"
        ) from error


async def remove(session: NatsSession, channel: str) -> None:
    await session.bucket.delete(_key(channel))


def _key(channel: str) -> str:
    return f"channel.{plain_name(channel)}"
