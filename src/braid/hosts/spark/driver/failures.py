"""Explains Spark's failures: what each means in a sentence, and what to do about it."""

from __future__ import annotations

import re
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from braid.errors import BraidError, FileError, RunError

SPARK_FAILURES = (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError, ConnectionAbortedError)
"""What a call to Spark raises: its own errors, those of Py4J, and those of the connection if Java has ended.

`BrokenPipeError` is not among them. Py4J turns it into an error of its own, so a plain one means that our own standard
output was closed.
"""

GONE = "its Java has ended: it was killed, it had too little memory, or a setting under 'spark' is wrong"

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
        "Spark takes no results with event times up to 1970-01-01 00:00:00 UTC, where its watermark begins; shift the "
        "times of the streams to later years",
    ),
    (
        r"\[UNSUPPORTED_TIME_TYPE\]",
        "Spark does not stream columns of type TIME; read the column as STRING, or leave it out of the schema",
    ),
    (
        r"(?P<what>Invalid (?:maximum|initial) heap size[^\n]*)",
        "the setting spark.driver.memory is wrong ({what}); write it as 2g",
    ),
    (r"(?P<what>Master must [^\n]*)", "the setting spark.master is wrong ({what}); for this machine write local[2]"),
    (
        r"(?:java\.net\.(?:ConnectException|UnknownHostException):? ?|^(?=Connection refused))(?P<what>[^\n]*)",
        "it cannot connect ({what}); check host and port, and that the server runs",
    ),
)
"""Patterns of Spark's messages and what they mean, the most specific first."""

WRONG_INPUT = (
    r"\[(?:INVALID_CONF_VALUE|UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE|UNSUPPORTED_TIME_TYPE)\b|Master must "
    r"|Invalid (?:maximum|initial) heap size|Invalid value '[^'\n]*' for option "
    r"|the checkpoint belongs to another query|There are \[\d+\] sources in the checkpoint"
)
"""Messages about wrong input that Spark notices only while it runs."""


def error_for(event: str, failure: BaseException, log: Path | None = None) -> BraidError:
    """The error to raise for a failure: `FileError` if the input is wrong, else `RunError`.

    Its text says what happened (`event`, such as "Spark did not start") and why.
    """
    kind = FileError if re.search(WRONG_INPUT, f"{failure}\n{_logged(failure, log)}") else RunError
    return kind(f"{event}: {failure_text(failure, log)}")


def failure_text(failure: BaseException, log: Path | None = None) -> str:
    """A failure as one paragraph: Braid's error text if it caused it, a known meaning, or Spark's first paragraph.

    If Java has ended, the cause may be in the log that it wrote until then.
    """
    if isinstance(failure, BraidError):
        return str(failure)
    message = re.sub(r"\s*(?:SQLSTATE: \w+|=== Streaming Query ===.*)", "", str(failure), flags=re.S)
    if _is_gone(failure):
        return _known(_logged(failure, log)) or GONE
    braid_errors = re.findall(r"^(?:\S*: )?braid\.errors\.\w+: (.*?)(?:\n\s*\n|\n\s*at |\n\n|\Z)", message, re.M | re.S)
    if braid_errors:
        return str(braid_errors[-1]).strip()
    return _known(message) or _raised_in_python(message) or _first_paragraph(message)


def _is_gone(failure: BaseException) -> bool:
    return isinstance(failure, ConnectionError | Py4JNetworkError) or "[JAVA_GATEWAY_EXITED]" in str(failure)


def _logged(failure: BaseException, log: Path | None) -> str:
    """The log of a Java that has ended; empty if it still runs."""
    return log.read_text(errors="replace") if _is_gone(failure) and log is not None and log.exists() else ""


def _known(message: str) -> str | None:
    for pattern, meaning in KNOWN:
        match = re.search(pattern, f"{message} ", re.S if pattern.startswith(r"\[") else 0)
        if match:
            return meaning.format(**{name: value.strip() for name, value in match.groupdict().items()})
    return None


def _raised_in_python(message: str) -> str | None:
    """The exception that a Python worker raised: the last line of its traceback."""
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
