"""What Spark's failures mean, in a sentence, and what to do about them."""

from __future__ import annotations

import re

from braid.errors import BraidError

KNOWN = (
    (
        r"BindException|Address already in use",
        "a port it was told to use is taken by another program; choose another one, or leave the port out of the "
        "settings and Spark finds a free one",
    ),
    (
        r"\[DATA_SOURCE_NOT_FOUND\].*?data source: ?`?(?P<what>[\w\-]+(?:\.[\w\-]+)*)",
        "Spark knows no format '{what}'; check its name, or add the package that has it (spark.jars.packages)",
    ),
    (r"\[PATH_NOT_FOUND\] Path does not exist: (?:file:)?(?P<what>\S+?)\.? ", "there is no {what}; check the path"),
    (
        r"(?P<what>(?:Mkdirs failed to create|Permission denied|Read-only file system|No space left on device)[^\n]*)",
        "a file cannot be written ({what}); check the path, its permissions and the space left",
    ),
    (
        r"java\.net\.(?:ConnectException|UnknownHostException):? ?(?P<what>[^\n]*)",
        "nobody answers where it connects to ({what}); check host and port, and that the other side runs",
    ),
)
"""Patterns of messages, most telling first."""


def told(failure: BaseException) -> str:
    """A failure as one paragraph: our own words where the cause is ours or known, else the first of Spark's."""
    if isinstance(failure, BraidError):
        return str(failure)
    message = str(failure)
    ours = re.findall(r"^(?:\S*: )?braid\.errors\.\w+: (.*?)(?:\n\s*\n|\n\s*at |\n\n|\Z)", message, re.M | re.S)
    if ours:
        return str(ours[-1]).strip()
    for pattern, meaning in KNOWN:
        found = re.search(pattern, f"{message} ", re.S if pattern.startswith(r"\[") else 0)
        if found:
            return meaning.format(**found.groupdict())
    return _first_paragraph(message)


def _first_paragraph(message: str) -> str:
    text = message.split("JVM stacktrace")[0].split("\n\n")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip() and not re.match(r"\s*(at |File )", line)]
    return " ".join(lines)[:600] or "no reason was given"
