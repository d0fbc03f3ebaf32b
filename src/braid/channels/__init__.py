"""Channels: durable logs of batches that carry one stream from one site to whoever subscribes.

Begin with `channel.py`, the protocol. `batch.py` is what a channel carries, as bytes; `memory.py` and `directory.py`
are kinds of channel. To add a kind, implement the protocol and add it to the battery in `tests/channels`.
"""
