"""The job file of `braid run`, a YAML file: streams, queries over them, and where the results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

from braid.files.create_stream import CreatedStream, created_streams
from braid.files.located_yaml import Located, read_yaml
from braid.files.paths import identity, on_this_machine, resolved
from braid.model.access import WrittenStep
from braid.model.duration import UNITS, parse_duration
from braid.model.window import LONGEST

AVAILABLE_NOW = "available now"

PATH_OPTIONS = ("path", "checkpointLocation")
"""Options whose value is a path. Without a scheme it is relative to the directory of the job file."""

SOURCE_KEYS = ("format", "path", "options", "schema", "time", "lateness")

FILE_FORMATS = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
"""Sinks that record the numbers of their batches in the output directory and skip a batch whose number is there."""


@dataclass(frozen=True)
class SourceEntry:
    """A stream: any source that Spark can read as a stream."""

    name: str
    format: str
    options: Mapping[str, str]
    schema: str | None
    time: str
    lateness: str
    location: Located = field(repr=False)
    columns: tuple[tuple[str, Located], ...] = field(repr=False)
    """The parts of the schema as DDL, each with its position in the file."""
    rate: float | None = None


@dataclass(frozen=True)
class TableEntry:
    """A table that streams are joined with: anything that Spark can read, for example files below a path."""

    name: str
    format: str
    options: Mapping[str, str]
    schema: str | None
    refresh: bool
    location: Located = field(repr=False)
    columns: tuple[tuple[str, Located], ...] = field(repr=False)


@dataclass(frozen=True)
class SinkEntry:
    """Where results go: any sink that Spark can append to."""

    format: str
    options: Mapping[str, str]
    location: Located = field(repr=False)

    @property
    def directory(self) -> str | None:
        """The directory of a file sink, which no other query may write to; None for other sinks."""
        return self.options.get("path") if self.format.lower() in FILE_FORMATS else None


@dataclass(frozen=True)
class QueryEntry:
    """A query. `location` is the position of its SQL text, `checkpoint_location` that of its checkpoint."""

    name: str
    text: str
    sink: SinkEntry
    checkpoint: str
    plan: Mapping[str, list[WrittenStep]] | None
    shards: int | None
    idle_timeout: str | None
    location: Located = field(repr=False)
    checkpoint_location: Located = field(repr=False)


@dataclass(frozen=True)
class JobFile:
    """The content of a job file.

    `trigger` is the time between micro-batches in milliseconds. With None, each micro-batch starts when the one before
    it has ended. With AVAILABLE_NOW, the queries stop at the end of the input.
    """

    streams: tuple[SourceEntry, ...]
    queries: tuple[QueryEntry, ...]
    trigger: int | str | None
    spark: Mapping[str, str]
    tables: tuple[TableEntry, ...] = ()


def load(file: Path) -> JobFile:
    """Read and check a job file; `FileError` with file and line for the first mistake in it."""
    keys = ("streams", "tables", "queries", "trigger", "spark")
    fields = read_yaml(file).fields(*keys, required=("streams", "queries"))
    streams = _streams(fields["streams"])
    table_entries = fields["tables"].mapping("a mapping of tables") if "tables" in fields else {}
    tables = tuple(_table(name, entry) for name, entry in table_entries.items())
    for table in tables:
        if table.name in [stream.name for stream in streams]:
            raise table.location.error(f"'{table.name}' is a stream and a table; give one of them another name")
    query_entries = fields["queries"].mapping("a mapping of queries")
    queries = tuple(_query(name, entry) for name, entry in query_entries.items())
    if not queries:
        raise fields["queries"].error("there is no query to run; add one")
    _check_apart(queries)
    trigger = read_trigger(fields["trigger"]) if "trigger" in fields else None
    settings = fields["spark"].options() if "spark" in fields else {}
    return JobFile(streams, queries, trigger, settings, tables)


def _streams(entry: Located) -> tuple[SourceEntry, ...]:
    """The streams of a file: a mapping of names to entries, or a text of CREATE STREAM statements."""
    if isinstance(entry.content, str):
        return tuple(map(_created, created_streams(entry)))
    entries = entry.mapping("a mapping of streams, or CREATE STREAM statements")
    return tuple(read_source(name, stream, more_keys=("rate",)) for name, stream in entries.items())


def _created(stream: CreatedStream) -> SourceEntry:
    """The stream of a CREATE STREAM statement; `format`, `path` and `rate` are Braid's, all other options Spark's."""
    options = dict(stream.options)
    connector = options.pop("connector", "filesystem")
    if connector != "filesystem":
        raise stream.location.error(
            f"stream '{stream.name}' has the connector '{connector}' of Flink; name a source of Spark and its options: "
            f"WITH ('format' = '{connector}', ..)"
        )
    if "format" not in options:
        raise stream.location.error(f"stream '{stream.name}' has no format: WITH ('format' = 'json', 'path' = '..')")
    rate = options.pop("rate", None)
    try:
        rows_per_second = None if rate is None else float(rate)
    except ValueError:
        raise stream.location.error(f"the rate of stream '{stream.name}' must be a number, not '{rate}'") from None
    directory = stream.location.file.resolve().parent
    return SourceEntry(
        name=stream.name,
        format=options.pop("format"),
        options={key: resolved(value, directory) if key in PATH_OPTIONS else value for key, value in options.items()},
        schema=", ".join(column for column, _ in stream.columns),
        time=stream.time,
        lateness=stream.lateness,
        location=stream.location,
        columns=stream.columns,
        rate=rows_per_second,
    )


def read_source(
    name: str, entry: Located, *, more_keys: tuple[str, ...] = (), required: tuple[str, ...] = ("format",)
) -> SourceEntry:
    """A stream; `more_keys` may stand beside its own. Without a format, the ending of its path tells it."""
    fields = entry.fields(*SOURCE_KEYS, *more_keys, required=required)
    columns = _columns(fields["schema"]) if "schema" in fields else ()
    options = _options(entry, fields)
    ending = Path(options.get("path", "")).suffix.removeprefix(".")
    return SourceEntry(
        name=name,
        format=fields["format"].text() if "format" in fields else ending or "parquet",
        options=options,
        schema=", ".join(column for column, _ in columns) or None,
        time=fields["time"].text() if "time" in fields else "ts",
        lateness=_duration(fields["lateness"]) if "lateness" in fields else "0 seconds",
        location=entry,
        columns=columns,
        rate=fields["rate"].number() if "rate" in fields else None,
    )


def _table(name: str, entry: Located) -> TableEntry:
    """A table. Without a format, the ending of its path tells it."""
    fields = entry.fields("format", "path", "options", "schema", "refresh")
    columns = _columns(fields["schema"]) if "schema" in fields else ()
    options = _options(entry, fields)
    ending = Path(options.get("path", "")).suffix.removeprefix(".")
    refresh = fields["refresh"].content if "refresh" in fields else False
    if not isinstance(refresh, bool):
        raise fields["refresh"].expected("true or false")
    return TableEntry(
        name=name,
        format=fields["format"].text() if "format" in fields else ending or "parquet",
        options=options,
        schema=", ".join(column for column, _ in columns) or None,
        refresh=refresh,
        location=entry,
        columns=columns,
    )


def _query(name: str, entry: Located) -> QueryEntry:
    fields = entry.fields(
        "sql", "sink", "checkpoint", "plan", "shards", "idle_timeout", required=("sql", "sink", "checkpoint")
    )
    checkpoint = resolved(fields["checkpoint"].text(), entry.file.resolve().parent)
    check_writable(fields["checkpoint"], checkpoint)
    plan = None
    if "plan" in fields:
        sequences = fields["plan"].mapping("a sequence per stream")
        plan = {head: _steps(sequence) for head, sequence in sequences.items()}
    return QueryEntry(
        name=name,
        text=fields["sql"].text(),
        sink=read_sink(fields["sink"]),
        checkpoint=checkpoint,
        plan=plan,
        shards=fields["shards"].positive_integer() if "shards" in fields else None,
        idle_timeout=_duration(fields["idle_timeout"]) if "idle_timeout" in fields else None,
        location=fields["sql"],
        checkpoint_location=fields["checkpoint"],
    )


def _steps(sequence: Located) -> list[WrittenStep]:
    """A probe sequence: streams, or streams with their access paths (`- {b: key}`)."""
    if not isinstance(sequence.content, list):
        raise sequence.expected("a list of streams")
    steps: list[WrittenStep] = []
    for step in sequence.content:
        if isinstance(step.content, dict):
            paths = step.mapping("a stream and its access path")
            steps.append({stream: path.text() for stream, path in paths.items()})
        else:
            steps.append(step.text())
    return steps


def read_sink(entry: Located) -> SinkEntry:
    fields = entry.fields("format", "path", "options", required=("format",))
    options = _options(entry, fields)
    if "path" in options:
        check_writable(fields.get("path", entry), options["path"])
    sink = SinkEntry(fields["format"].text(), options, entry)
    if sink.format.lower() in FILE_FORMATS and sink.directory is None:
        raise entry.error(f"{entry.name} has no path; give the directory that the files go to")
    return sink


def _options(entry: Located, fields: Mapping[str, Located]) -> dict[str, str]:
    """The options of a source or sink; `path` may be given as an option or beside the options."""
    options = fields["options"].options() if "options" in fields else {}
    if "path" in fields:
        options["path"] = fields["path"].text()
    directory = entry.file.resolve().parent
    return {key: resolved(value, directory) if key in PATH_OPTIONS else value for key, value in options.items()}


def _columns(schema: Located) -> tuple[tuple[str, Located], ...]:
    """Columns as Spark's DDL: the whole schema from a string, or one column for each key of a mapping."""
    if isinstance(schema.content, str):
        return ((schema.text(), schema),)
    columns = schema.mapping("a mapping of columns to types, or a string such as 'ts TIMESTAMP, num INT'")
    return tuple((f"`{name.replace('`', '``')}` {kind.text()}", kind) for name, kind in columns.items())


def _duration(value: Located, *alternatives: str) -> str:
    """A duration, or one of the alternatives."""
    content = value.content
    if isinstance(content, str) and (content in alternatives or parse_duration(content) is not None):
        return content
    quoted = [f"'{alternative}'" for alternative in alternatives]
    raise value.expected(" or ".join(["a duration such as '5 seconds'", *quoted]))


def read_trigger(value: Located) -> int | str:
    """The trigger in milliseconds, because Spark reads fewer spellings of durations; or AVAILABLE_NOW."""
    text = _duration(value, AVAILABLE_NOW)
    duration = parse_duration(text)
    if duration is None:
        return text
    if duration > LONGEST:
        raise value.expected(f"at most {LONGEST // UNITS['day']} days")
    return duration // UNITS["millisecond"]


def check_writable(value: Located, path: str) -> None:
    """Check a path on this machine before anything starts: its nearest existing parent must be writable."""
    target = on_this_machine(path)
    if target is None:
        return
    try:
        nearest = next(parent for parent in (target, *target.parents) if parent.exists())
        if nearest.is_dir():
            # Permissions alone are not enough: /proc and read-only disks refuse files too. This file has no name.
            TemporaryFile(dir=nearest).close()
            return
    except OSError as error:
        raise value.error(f"cannot write to {path} ({error.strerror}); change the path or its permissions") from error
    raise value.error(f"cannot write to {path}: {nearest} is a file; name a directory that can be created")


def _check_apart(queries: tuple[QueryEntry, ...]) -> None:
    """Each query needs its own checkpoint and output directory.

    Two queries on one checkpoint would destroy each other's state; in one directory they would lose results.
    """
    checkpoints: dict[str, str] = {}
    directories: dict[str, str] = {}
    for query in queries:
        other = checkpoints.setdefault(identity(query.checkpoint), query.name)
        if other != query.name:
            raise query.checkpoint_location.error(
                f"queries '{other}' and '{query.name}' have the same checkpoint {query.checkpoint}; give each its own"
            )
        directory = query.sink.directory
        if directory is None:
            continue
        other = directories.setdefault(identity(directory), query.name)
        if other != query.name:
            raise query.sink.location.error(
                f"queries '{other}' and '{query.name}' write files to the same path {directory}, where Spark would "
                "skip batches of one query whose numbers the other has used; give each its own path"
            )
