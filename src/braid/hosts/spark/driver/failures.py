"""What Spark's failures mean, in a sentence, and what to do about them."""

from __future__ import annotations

import re
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from braid.errors import BraidError, FileError, RunError

SPARK_FAILURES = (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError, ConnectionAbortedError)
"""What a call to Spark raises: errors of its own, of Py4J, and of the connection if its Java is gone.

A `BrokenPipeError` is none: Py4J makes its own error of one, so that it is of our output, which nobody reads any more.
"""

GONE = "its Java has ended: somebody killed it, it had too little memory, or a setting under 'spark' is wrong"

KNOWN = (
    (
        r"BindException|Address already in use",
        "a port it was told to use is taken by another program; choose another one, or leave the port out of the "
        "settings and Spark finds a free one",
    ),
    (
        r"\[(?:KAFKA_)?DATA_SOURCE_NOT_(?:FOUND|ENABLED)\].*?data source: ?`?(?P<what>[\w\-]+(?:\.[\w\-]+)*)",
        "Spark knows no format '{what}'; check its name, or add the package that has it (spark.jars.packages)",
    ),
    (r"\[PATH_NOT_FOUND\] Path does not exist: (?:file:)?(?P<what>\S+?)\.? ", "there is no {what}; check the path"),
    (
        r"(?P<what>(?:Mkdirs failed to create|Permission denied|Read-only file system|No space left on device)[^\n]*)",
        "a file cannot be written ({what}); check the path, its permissions and the space left",
    ),
    (
        r'No FileSystem for scheme "(?P<what>[^"]*)"',
        "Spark knows no file system '{what}'; check the path, or add the package that has it (spark.jars.packages)",
    ),
    (
        r"There are \[\d+\] sources in the checkpoint",
        "the checkpoint belongs to another query, over other streams; go on with that one, or start on a new "
        "checkpoint and a new place for the results",
    ),
    (
        r"\[EMITTING_ROWS_OLDER_THAN_WATERMARK_NOT_ALLOWED\].*?current_watermark_value=[1-9]",
        "a stream with a watermark of Spark's has rows whose event times are behind it; declare it by the column "
        "that has the watermark (of a window, window_time makes one)",
    ),
    (
        r"\[EMITTING_ROWS_OLDER_THAN_WATERMARK_NOT_ALLOWED\]",
        "Spark takes no results with event times up to 1970-01-01 00:00:00 UTC, where its watermark begins; add some "
        "years to the times of the streams",
    ),
    (
        r"\[UNSUPPORTED_TIME_TYPE\]",
        "Spark does not stream columns of type TIME; read the column as STRING, or leave it out of the schema",
    ),
    (
        r"(?P<what>Invalid (?:maximum|initial) heap size[^\n]*)",
        "the setting spark.driver.memory is wrong ({what}); 2g is one",
    ),
    (r"(?P<what>Master must [^\n]*)", "the setting spark.master is wrong ({what}); local[2] is this machine"),
    (
        r"(?:java\.net\.(?:ConnectException|UnknownHostException):? ?|^(?=Connection refused))(?P<what>[^\n]*)",
        "nobody answers where it connects to ({what}); check host and port, and that the other side runs",
    ),
)
"""Patterns of messages, most telling first."""

WRONG_INPUT = (
    r"\[(?:INVALID_CONF_VALUE|UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE|UNSUPPORTED_TIME_TYPE)\b|Master must "
    r"|Invalid (?:maximum|initial) heap size|Invalid value '[^'\n]*' for option "
    r"|the checkpoint belongs to another query|There are \[\d+\] sources in the checkpoint"
)
"""Messages that are found out only by running, and are about what was given all the same."""


def error_for(what: str, failure: BaseException, log: Path | None = None) -> BraidError:
    """The error to raise for a failure: it says what failed and why, and by its type whose fault it was."""
    kind = FileError if re.search(WRONG_INPUT, f"{failure}\n{_logged(failure, log)}") else RunError
    return kind(f"{what}: {told(failure, log)}")


def told(failure: BaseException, log: Path | None = None) -> str:
    """A failure as one paragraph: our own words where the cause is ours or known, else the first of Spark's.

    A Java that is gone says nothing more; what it has logged until then may tell why.
    """
    if isinstance(failure, BraidError):
        return str(failure)
    message = re.sub(r"\s*(?:SQLSTATE: \w+|=== Streaming Query ===.*)", "", str(failure), flags=re.S)
    if _is_gone(failure):
        return _known(_logged(failure, log)) or GONE
    ours = re.findall(r"^(?:\S*: )?braid\.errors\.\w+: (.*?)(?:\n\s*\n|\n\s*at |\n\n|\Z)", message, re.M | re.S)
    if ours:
        return str(ours[-1]).strip()
    return _known(message) or _raised_in_python(message) or _first_paragraph(message)


def _is_gone(failure: BaseException) -> bool:
    return isinstance(failure, ConnectionError | Py4JNetworkError) or "[JAVA_GATEWAY_EXITED]" in str(failure)


def _logged(failure: BaseException, log: Path | None) -> str:
    """What a Java that is gone has logged; nothing if it is there."""
    return log.read_text(errors="replace") if _is_gone(failure) and log is not None and log.exists() else ""


def _known(message: str) -> str | None:
    for pattern, meaning in KNOWN:
        found = re.search(pattern, f"{message} ", re.S if pattern.startswith(r"\[") else 0)
        if found:
            return meaning.format(**{name: what.strip() for name, what in found.groupdict().items()})
    return None


def _raised_in_python(message: str) -> str | None:
    """The last line of the traceback that a Python worker sent: what was raised there."""
    if "thrown from the Python worker" not in message:
        return None
    raised = re.findall(
        r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b.*$", message.split("JVM stacktrace")[0], re.M
    )
    return f"a Python worker of Spark's raised {raised[-1].strip()[:500]}" if raised else None


def _first_paragraph(message: str) -> str:
    text = message.split("JVM stacktrace")[0].split("\n\n")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip() and not re.match(r"\s*(at |File )", line)]
    return " ".join(lines)[:600] or "no reason was given"
