"""Channels on a NATS server with JetStream.

Begin with `channel.py`. `publishing.py` writes a batch, `marks.py` finds batches, `document.py` holds what a channel
knows of its subscribers, `connection.py` asks the server and tries again, and `channels.py` opens channels by name.
"""
