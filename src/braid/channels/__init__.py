"""Channels: durable logs of batches that carry one stream from one site to its subscribers.

Begin with `channel.py`, the protocol of one channel, and `channels.py`, that of the place where a network has its
channels. `batch.py` is what a channel carries, as bytes. `memory.py`, `directory.py`, `jetstream/` and `kafka/` are
kinds of channels, and `kinds.py` finds a kind by its name. To add a kind, implement both protocols and add it to the
battery in `tests/channels`.
"""
