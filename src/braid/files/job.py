"""What `braid run` runs, as a YAML file: streams, queries over them, and where their results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

from braid.files.located_yaml import Located, read
from braid.files.paths import identity, on_this_machine, resolved
from braid.model.duration import UNITS, parse_duration
from braid.model.window import LONGEST

AVAILABLE_NOW = "available now"
PLACES = ("path", "checkpointLocation")
"""Options whose value is a place: where it says no scheme, it is relative to the file."""

FILE_FORMATS = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
"""Sinks that list in their directory the batches they have, by number, and take none of a number that is there."""


@dataclass(frozen=True)
class SourceEntry:
    """A stream: any source that Spark can read as a stream."""

    name: str
    format: str
    options: Mapping[str, str]
    schema: str | None
    time: str
    lateness: str
    place: Located = field(repr=False)
    columns: tuple[tuple[str, Located], ...] = field(repr=False)
    """The parts of the schema, each in its place."""


@dataclass(frozen=True)
class SinkEntry:
    """Where results go: any sink that Spark can append to."""

    format: str
    options: Mapping[str, str]
    place: Located = field(repr=False)

    @property
    def directory(self) -> str | None:
        """Where files go, which no other query may write to; None for a sink that sees to that itself."""
        return self.options.get("path") if self.format.lower() in FILE_FORMATS else None


@dataclass(frozen=True)
class QueryEntry:
    """A query; `place` is that of its text."""

    name: str
    text: str
    sink: SinkEntry
    checkpoint: str
    plan: Mapping[str, list[str]] | None
    shards: int | None
    idle_timeout: str | None
    place: Located = field(repr=False)
    checkpoint_place: Located = field(repr=False)


@dataclass(frozen=True)
class JobFile:
    """`trigger` is how many milliseconds apart micro-batches are: None at once, AVAILABLE_NOW until the input ends."""

    streams: tuple[SourceEntry, ...]
    queries: tuple[QueryEntry, ...]
    trigger: int | str | None
    spark: Mapping[str, str]


def load(file: Path) -> JobFile:
    """The jobs of a file; `FileError` with the place of whatever is wrong with it."""
    fields = read(file).fields("streams", "queries", "trigger", "spark", required=("streams", "queries"))
    streams = tuple(_source(name, given) for name, given in fields["streams"].mapping("a mapping of streams").items())
    queries = tuple(_query(name, given) for name, given in fields["queries"].mapping("a mapping of queries").items())
    if not queries:
        raise fields["queries"].wrong("there is no query to run")
    _check_apart(queries)
    trigger = _trigger(fields["trigger"]) if "trigger" in fields else None
    return JobFile(streams, queries, trigger, fields["spark"].settings() if "spark" in fields else {})


def _source(name: str, given: Located) -> SourceEntry:
    fields = given.fields("format", "path", "options", "schema", "time", "lateness", required=("format",))
    columns = _columns(fields["schema"]) if "schema" in fields else ()
    return SourceEntry(
        name,
        fields["format"].text(),
        _options(fields),
        ", ".join(column for column, _ in columns) or None,
        fields["time"].text() if "time" in fields else "ts",
        _length(fields["lateness"]) if "lateness" in fields else "0 seconds",
        given,
        columns,
    )


def _query(name: str, given: Located) -> QueryEntry:
    fields = given.fields(
        "sql", "sink", "checkpoint", "plan", "shards", "idle_timeout", required=("sql", "sink", "checkpoint")
    )
    checkpoint = resolved(fields["checkpoint"].text(), given.file.resolve().parent)
    _check_writable(fields["checkpoint"], checkpoint)
    plan = None
    if "plan" in fields:
        plan = {head: sequence.texts() for head, sequence in fields["plan"].mapping("a sequence per stream").items()}
    return QueryEntry(
        name,
        fields["sql"].text(),
        _sink(fields["sink"]),
        checkpoint,
        plan,
        fields["shards"].count() if "shards" in fields else None,
        _length(fields["idle_timeout"]) if "idle_timeout" in fields else None,
        fields["sql"],
        fields["checkpoint"],
    )


def _sink(given: Located) -> SinkEntry:
    fields = given.fields("format", "path", "options", required=("format",))
    options = _options(fields)
    if "path" in options:
        _check_writable(fields.get("path", given), options["path"])
    sink = SinkEntry(fields["format"].text(), options, given)
    if sink.format.lower() in FILE_FORMATS and sink.directory is None:
        raise given.wrong(f"{given.name} has no path; say in which directory the files go")
    return sink


def _options(fields: Mapping[str, Located]) -> dict[str, str]:
    """All options, with `path`, which may stand beside them."""
    options = fields["options"].settings() if "options" in fields else {}
    if "path" in fields:
        options["path"] = fields["path"].text()
    directory = fields["format"].file.resolve().parent
    return {key: resolved(value, directory) if key in PLACES else value for key, value in options.items()}


def _columns(given: Located) -> tuple[tuple[str, Located], ...]:
    """Columns as Spark's DDL, all from one text or each from a mapping of names to types."""
    if isinstance(given.content, str):
        return ((given.text(), given),)
    columns = given.mapping("a mapping of columns to types, or a text such as 'ts TIMESTAMP, num INT'")
    return tuple((f"`{name.replace('`', '``')}` {kind.text()}", kind) for name, kind in columns.items())


def _length(given: Located, *others: str) -> str:
    """A length of time, or one of some other texts."""
    written = given.content
    if isinstance(written, str) and (written in others or parse_duration(written) is not None):
        return written
    raise given.expected(" or ".join(["a length of time such as '5 seconds'", *(f"'{other}'" for other in others)]))


def _trigger(given: Located) -> int | str:
    """A number, since Spark knows fewer spellings of lengths of time."""
    written = _length(given, AVAILABLE_NOW)
    length = parse_duration(written)
    if length is None:
        return written
    if length > LONGEST:
        raise given.expected(f"at most {LONGEST // UNITS['day']} days")
    return length // UNITS["millisecond"]


def _check_writable(place: Located, path: str) -> None:
    """Said before anything starts, where the place is on this machine."""
    target = on_this_machine(path)
    if target is None:
        return
    try:
        nearest = next(parent for parent in (target, *target.parents) if parent.exists())
        if nearest.is_dir():
            # Permissions do not tell it all: not of /proc, nor of a disk that is read-only. No name is left behind.
            TemporaryFile(dir=nearest).close()
            return
    except OSError as error:
        raise place.wrong(f"cannot write to {path} ({error.strerror}); change the path or its permissions") from error
    raise place.wrong(f"cannot write to {path}: {nearest} is a file; name a directory that can be made")


def _check_apart(queries: tuple[QueryEntry, ...]) -> None:
    """Two queries on one checkpoint would destroy each other's state, and in one directory lose results."""
    checkpoints: dict[str, str] = {}
    directories: dict[str, str] = {}
    for query in queries:
        other = checkpoints.setdefault(identity(query.checkpoint), query.name)
        if other != query.name:
            raise query.checkpoint_place.wrong(
                f"queries '{other}' and '{query.name}' have the same checkpoint {query.checkpoint}; give each its own"
            )
        directory = query.sink.directory
        if directory is None:
            continue
        other = directories.setdefault(identity(directory), query.name)
        if other != query.name:
            raise query.sink.place.wrong(
                f"queries '{other}' and '{query.name}' write files to the same path {directory}, where Spark would "
                "leave out batches of one that the other has written; give each its own"
            )
