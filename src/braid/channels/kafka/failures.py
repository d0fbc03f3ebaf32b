"""What the errors of a Kafka cluster and of its client mean."""

from __future__ import annotations

from confluent_kafka import KafkaError

GONE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
"""Codes of the error that a partition has no record at an offset any more."""

UNKNOWN_TOPIC = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}

TROUBLE = {
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
}
"""Codes of brokers for what may be over in a moment: they are away, start, or choose leaders."""

LASTING = {
    KafkaError._AUTHENTICATION,
    KafkaError._INVALID_ARG,
    KafkaError._SSL,
    KafkaError._UNSUPPORTED_FEATURE,
}
"""Codes of the client, which are negative, for what will not be over in a moment."""

REFUSED = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}
"""Codes of errors that mean that the cluster does not let this process in."""

HINTS = {
    **dict.fromkeys(REFUSED, "check the settings security.protocol, sasl.* and ssl.* of 'client', and the ACLs"),
    KafkaError.MSG_SIZE_TOO_LARGE: "give 'client' the message.max.bytes of the brokers, so that chunks are smaller",
    KafkaError.INVALID_REPLICATION_FACTOR: "give 'replicas', at most the number of brokers",
}


def may_pass(error: KafkaError) -> bool:
    """Whether it is worth trying again."""
    code = error.code()
    return code in TROUBLE or (code < 0 and code not in LASTING) or error.retriable()


def with_hint(error: KafkaError) -> str:
    """An error in words, with what to do about it."""
    return f"{error.str()}; {HINTS[error.code()]}" if error.code() in HINTS else error.str()
