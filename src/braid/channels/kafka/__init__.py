"""Channels on a Kafka cluster.

Begin with `channel.py`. `channel_state.py` says what the records of a channel mean, without I/O, and `documents.py`
says it of announced documents. `follower.py` reads a log into such a state. `connection.py` asks the brokers and tries
again; `failures.py` knows which errors may pass. `topics.py` creates, trims and deletes topics, and `channels.py` opens
channels by name.
"""
